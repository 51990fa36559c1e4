//! The figures of a trial as tables: latencies, outcomes, what the client itself cost.
//!
//! Input: a summary and the histograms of the window; output: rows of texts, times in microseconds
//! or milliseconds by the largest of them.

use crate::load::Trial;
use crate::number::{fixed, grouped, percent, significant};
use record::summary::{OpSummary, Stats};
use record::{Outcome, Series, Summary, Tag};
use serde::Serialize;

/// From this on a table of latencies is in milliseconds.
const MILLISECONDS_FROM_US: f64 = 100_000.0;
/// Samples that must lie above a percentile for it to be shown without a mark.
const SAMPLES_ABOVE_MIN: u64 = 10;

/// One line of the table of latencies: mean, p50, p90, p99, p99.9, max.
#[derive(Debug, Serialize)]
pub(crate) struct LatencyRow {
    op: String,
    kind: String,
    term: &'static str,
    first: bool,
    count: String,
    values: Vec<Cell>,
}

impl LatencyRow {
    /// Whether one of its figures is marked.
    pub(crate) fn is_thin(&self) -> bool {
        self.values.iter().any(|cell| cell.thin)
    }
}

#[derive(Debug, Serialize)]
struct Cell {
    text: String,
    thin: bool,
}

/// A row of two or three texts and the term that says what it is.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    term: &'static str,
    texts: Vec<String>,
}

/// The unit of the table and its rows.
pub(crate) fn latencies(summary: &Summary, trial: &Trial) -> (&'static str, Vec<LatencyRow>) {
    let all = summary.latency_us.values();
    let all = all.flat_map(|op| [op.service, op.response, op.lag]).flatten();
    let in_ms = all.map(|stats| stats.max).fold(0.0, f64::max) >= MILLISECONDS_FROM_US;
    let mut rows = Vec::new();
    for (name, op) in &summary.latency_us {
        rows.extend(op_rows(name, op, trial, in_ms));
    }
    (if in_ms { "ms" } else { "µs" }, rows)
}

fn op_rows(name: &str, op: &OpSummary, trial: &Trial, in_ms: bool) -> Vec<LatencyRow> {
    let mut kinds = vec![
        ("service".to_owned(), "service", Series::Service, op.service),
        ("response".to_owned(), "response", Series::Response, op.response),
        ("lag".to_owned(), "lag", Series::Lag, op.lag),
    ];
    for (step, stats) in &op.parts {
        kinds.push((format!("step {step}"), "step", Series::Part(step.clone()), *stats));
    }
    let rows = kinds.into_iter().enumerate().map(|(i, (kind, term, series, stats))| {
        let tag = Tag { op: name.to_owned(), series }.to_string();
        let total = trial.totals.iter().find(|(found, _)| *found == tag);
        // Without the histogram the count of the operation stands in, an upper bound.
        let count = total.map_or(op.ops, |(_, latency)| latency.count());
        LatencyRow {
            op: name.to_owned(),
            kind,
            term,
            first: i == 0,
            count: if stats.is_some() { grouped(count) } else { "–".into() },
            values: cells(stats, count, in_ms),
        }
    });
    rows.collect()
}

fn cells(stats: Option<Stats>, count: u64, in_ms: bool) -> Vec<Cell> {
    let Some(s) = stats else {
        return (0..6).map(|_| Cell { text: "–".into(), thin: false }).collect();
    };
    // Of the percentiles one sample in so many lies above; mean and maximum need none.
    [(s.mean, 0), (s.p50, 2), (s.p90, 10), (s.p99, 100), (s.p999, 1000), (s.max, 0)]
        .into_iter()
        .map(|(us, one_in)| Cell {
            text: if in_ms { fixed(us / 1e3, 3) } else { fixed(us, 1) },
            thin: one_in > 0 && count / one_in < SAMPLES_ABOVE_MIN,
        })
        .collect()
}

/// Operations and their share, by outcome; those that did not occur are left out.
pub(crate) fn outcomes(summary: &Summary) -> Vec<Row> {
    let total = summary.ops.max(1) as f64;
    let shown = summary.outcomes.iter().filter(|&(outcome, n)| n > 0 || outcome == Outcome::Ok);
    let rows = shown.map(|(outcome, n)| {
        let name = outcome.name().replace('_', " ");
        let term = crate::glossary::find(&name).unwrap_or("outcome");
        Row { name, term, texts: vec![grouped(n), percent(n as f64 / total)] }
    });
    rows.collect()
}

/// What measuring took.
pub(crate) fn cost(summary: &Summary) -> Vec<Row> {
    let client = &summary.client;
    let row = |term: &'static str, value: Option<f64>, text: fn(f64) -> String| Row {
        name: term.to_owned(),
        term,
        texts: vec![value.map_or_else(|| "not measured".into(), text)],
    };
    vec![
        row("CPU time per operation", client.cpu_us_per_op, |v| format!("{} µs", significant(v))),
        row("system calls per operation", client.syscalls_per_op, significant),
        row("busiest worker", client.busy_max, percent),
        row("spinning", client.spin_share, percent),
        row("largest resident set", client.rss_mib_max, |v| format!("{} MiB", significant(v))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_without_samples_above_are_marked() {
        let s = Stats { mean: 1.0, p50: 1.0, p90: 1.0, p99: 1.0, p999: 1234.5, max: 2.0 };
        let thin = |count| cells(Some(s), count, false).iter().map(|c| c.thin).collect::<Vec<_>>();
        assert_eq!(thin(9_999), [false, false, false, false, true, false]);
        assert_eq!(thin(10_000), [false; 6]);
        assert_eq!(cells(Some(s), 1, true)[4].text, "1.234");
    }
}
