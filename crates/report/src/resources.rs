//! What the arms of an experiment used, on its page: cpu time as bars, memory as a heat table of
//! the NUMA node of the cpu by that of the page.
//!
//! Input: `cpu` and `pages` of the arms in `outcome.json`; output: rows of texts with shares from
//! 0 to 1 for bars and shades. Limits: of a matrix the first [`NUMAS_MAX`] rows and columns.

use crate::number::{fixed, percent};
use serde::{Deserialize, Serialize};

/// Rows and columns of a matrix.
const NUMAS_MAX: usize = 32;
const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct CpuUse {
    host_share: Option<f64>,
    client_cpus: f64,
    target_cpus: Option<f64>,
    target_cpus_bound: f64,
    instances_cpus: Vec<f64>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PagePlacement {
    cpu_numas: Vec<u32>,
    page_numas: Vec<u32>,
    bytes: Vec<Vec<u64>>,
    local_share: f64,
}

/// A text with the length of its bar, or its shade.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    text: String,
    share: f64,
}

/// The cpu time of an arm.
#[derive(Debug, Serialize)]
pub(crate) struct CpuRow {
    arm: String,
    host: Part,
    target: Part,
    each: String,
    client: String,
}

/// The memory of an arm.
#[derive(Debug, Serialize)]
pub(crate) struct Matrix {
    arm: String,
    local: String,
    unit: &'static str,
    columns: Vec<u32>,
    rows: Vec<(u32, Vec<Part>)>,
    left_out: bool,
}

/// A share to a tenth of a percent, cut: what is not all is never shown as 100 %.
fn rough(share: f64) -> String {
    format!("{} %", fixed((share * 1000.0).floor() / 10.0, 1))
}

fn nothing() -> Part {
    Part { text: "–".to_owned(), share: 0.0 }
}

impl CpuUse {
    /// Cpus used and cpus given; None of a target that was not seen.
    pub(crate) fn of_target(&self) -> Option<(f64, f64)> {
        Some((self.target_cpus?, self.target_cpus_bound))
    }

    pub(crate) fn row(&self, arm: &str) -> CpuRow {
        let part = |share: f64, text: String| Part { text, share: share.clamp(0.0, 1.0) };
        let target = self.of_target().map_or_else(nothing, |(used, bound)| {
            let text = format!("{} of {}", fixed(used, 2), fixed(bound, 0));
            part(used / bound.max(1.0), text)
        });
        let least = self.instances_cpus.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.instances_cpus.iter().copied().fold(0.0, f64::max);
        let each = match self.instances_cpus.len() {
            0 => "–".to_owned(),
            1 => fixed(most, 2),
            count => format!("{count} x {} to {}", fixed(least, 2), fixed(most, 2)),
        };
        CpuRow {
            arm: arm.to_owned(),
            host: self.host_share.map_or_else(nothing, |share| part(share, rough(share))),
            target,
            each,
            client: fixed(self.client_cpus, 2),
        }
    }
}

impl PagePlacement {
    /// Whether there was but one node for cpus and pages: a matrix would say nothing.
    pub(crate) fn is_one(&self) -> bool {
        self.cpu_numas.len() == 1 && self.page_numas == self.cpu_numas
    }

    pub(crate) fn matrix(&self, arm: &str) -> Matrix {
        let most = self.bytes.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        // One unit for all, or the cells of a large machine do not fit beside one another.
        let (unit, unit_bytes, decimals) = match most >= GIB {
            true => ("GiB", GIB, 2),
            false => ("MiB", MIB, 0),
        };
        let text = |of: u64| match of {
            0 => "0".to_owned(),
            of => fixed(of as f64 / unit_bytes, decimals),
        };
        let part = |of: &u64| Part { text: text(*of), share: *of as f64 / most };
        let row =
            |(numa, of): (&u32, &Vec<u64>)| (*numa, of.iter().take(NUMAS_MAX).map(part).collect());
        Matrix {
            arm: arm.to_owned(),
            local: percent(self.local_share),
            unit,
            columns: self.page_numas.iter().take(NUMAS_MAX).copied().collect(),
            rows: self.cpu_numas.iter().zip(&self.bytes).take(NUMAS_MAX).map(row).collect(),
            left_out: self.cpu_numas.len().max(self.page_numas.len()) > NUMAS_MAX,
        }
    }
}
