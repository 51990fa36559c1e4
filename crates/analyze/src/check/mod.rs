//! Preflight rules: what would falsify a result on a host or at a target, and what mends it.
//!
//! Input: [`machine::Facts`] of a host with what is planned there ([`Host`]), answers of a target
//! ([`Target`]). Output: [`Finding`]s, one per thing looked at, good ones too. Pure. The limits are
//! those of the documents in [`Source`]; where none gives one it is our own and says so.
//! Limits: the advice on memory and files is that for Apache Cassandra.

mod cpu;
mod io;
mod kernel;
mod memory;
mod occupation;
mod source;
mod target;

pub use occupation::{Occupation, Space};
pub use source::Source;
pub use target::{Clock, Local, Reached, Setting, Target, heap, java, ports, unreachable};

use machine::Facts;
use serde::Serialize;
use std::fmt;
use units::CpuSet;

/// What a check has come to, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be, or only to be known.
    Ok,
    /// It could not be found out.
    Unknown,
    /// Results suffer or vary; they can still be read with that in mind.
    Warn,
    /// Results would be wrong, or the run would not work.
    Fail,
}

impl Verdict {
    /// All, worst first.
    pub const ALL: [Self; 4] = [Self::Fail, Self::Warn, Self::Unknown, Self::Ok];

    /// In tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// What is driven.
    Target,
    /// Speed and sleep of the cpus.
    Cpu,
    /// Memory and swap.
    Memory,
    /// Clock and kernel.
    Kernel,
    /// Disks.
    Disk,
    /// Network.
    Network,
    /// What a process may use.
    Limits,
    /// What else runs.
    Occupation,
}

impl Group {
    /// The heading in a table.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Cpu => "cpus",
            Self::Memory => "memory",
            Self::Kernel => "clock and kernel",
            Self::Disk => "disks",
            Self::Network => "network",
            Self::Limits => "limits of processes",
            Self::Occupation => "what else runs",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, for machines: `cpu.governor`.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
    /// Which thing, where there are several: a disk, an interface, a host. Empty else.
    pub of: String,
    /// What it is called for people.
    pub what: &'static str,
    /// What was found; `-` when nothing could be.
    pub value: String,
    /// What it should be; `recorded` when it is only to be known.
    pub limit: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// What it does to results, or why it is not known; empty when it is ok.
    pub why: String,
    /// The command or the step that mends it; empty when there is nothing to mend.
    pub mend: String,
    /// Where the limit comes from.
    pub sources: &'static [Source],
}

impl Finding {
    fn new(
        group: Group,
        id: &'static str,
        what: &'static str,
        limit: impl Into<String>,
        sources: &'static [Source],
    ) -> Self {
        Self {
            id,
            group,
            of: String::new(),
            what,
            value: "-".to_owned(),
            limit: limit.into(),
            verdict: Verdict::Ok,
            why: String::new(),
            mend: String::new(),
            sources,
        }
    }

    fn of(self, of: &str) -> Self {
        Self { of: of.to_owned(), ..self }
    }

    fn value(self, value: impl fmt::Display) -> Self {
        Self { value: value.to_string(), ..self }
    }

    fn bad(self, verdict: Verdict, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), mend: mend.into(), ..self }
    }

    fn warn(self, why: impl Into<String>, mend: impl Into<String>) -> Self {
        self.bad(Verdict::Warn, why, mend)
    }

    fn fail(self, why: impl Into<String>, mend: impl Into<String>) -> Self {
        self.bad(Verdict::Fail, why, mend)
    }

    fn unknown(self, why: impl Into<String>) -> Self {
        self.bad(Verdict::Unknown, why, "")
    }

    /// Its name with the thing that it is about: `readahead nvme0n1`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.of.is_empty() { self.what.to_owned() } else { format!("{} {}", self.what, self.of) }
    }

    /// It in one line, as other messages quote it.
    #[must_use]
    pub fn line(&self) -> String {
        let (verdict, name) = (self.verdict.name().to_uppercase(), self.name());
        format!("{verdict} {name}: {}, wanted {}", self.value, self.limit)
    }
}

/// A host, and what is planned on it.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// What it is.
    pub facts: &'a Facts,
    /// Cpus of the load generator.
    pub client_cpus: &'a CpuSet,
    /// Cpus of a target on the same host; `None` when it is elsewhere or nobody knows.
    pub target_cpus: Option<&'a CpuSet>,
    /// What was seen to run over a while; `None` of a recorded host.
    pub occupation: Option<&'a Occupation>,
    /// Room where data would go; `None` of a recorded host.
    pub space: Option<&'a Space>,
    /// Whether a database is to be started from this process, so that it inherits its limits.
    pub starts_target: bool,
}

/// All findings on a host, by group.
#[must_use]
pub fn host(host: &Host<'_>) -> Vec<Finding> {
    let mut findings = cpu::findings(host);
    findings.extend(memory::findings(host));
    findings.extend(kernel::findings(host));
    findings.extend(io::findings(host));
    findings.extend(occupation::findings(host));
    findings
}

/// All findings on a target.
#[must_use]
pub fn target(target: &Target, client_cpus: &CpuSet, host: Option<&Facts>) -> Vec<Finding> {
    target::findings(target, client_cpus, host)
}

/// Why a value is not there, where that is simply not in the tree.
fn absent(path: &str) -> String {
    format!("{path} is not there")
}
