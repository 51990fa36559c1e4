//! What a study would compare on another machine: a recorded one, or one that is only described.
//!
//! In: a machine and a study. Out: arms and where their instances would be, arms that would be the
//! same, and what cannot be, as text. Nothing is run. A local client gets half of the cores, as in
//! a study that is run.

use super::{Compared, Study};
use crate::layout::{Asked, Database, Policy, lay_out};
use machine::layout::Policy::{Count, PerLlc, PerNuma, PerPackage, Single};
use machine::{Machine, client_and_target_cpus};
use serde::Serialize;
use stage::Place;
use stage::cassandra::HeapAsked;
use std::fmt;
use units::CpuSet;

/// What a study would compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreseen {
    /// Cpus of the client.
    pub client_cpus: String,
    /// Cpus of the target.
    pub target_cpus: String,
    /// Whether these are the same, the only ones.
    pub shared: bool,
    /// Cpus of neither.
    pub idle_cpus: String,
    /// What is compared on each budget.
    pub budgets: Vec<Budget>,
    /// Arms of all budgets that differ.
    pub arms: usize,
    /// The workloads.
    pub workloads: Vec<String>,
    /// Of each combination.
    pub repetitions: u32,
    /// The measured time of a trial, and the time before it, as they were asked for.
    pub duration: String,
    /// See `duration`.
    pub warm: String,
}

/// One budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// In NUMA nodes; none is all of the target's.
    pub numa_count: Option<u32>,
    /// What was asked for there.
    pub layouts: Vec<Layout>,
}

/// One layout on a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Its name.
    pub policy: String,
    /// Where its instances would be.
    #[serde(flatten)]
    pub found: Found,
}

/// What becomes of a layout on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// An arm: `cpus@NUMA nodes` of each instance.
    Instances(Vec<String>),
    /// The same places as the layout of this name.
    SameAs(String),
    /// Why it cannot be.
    CannotBe(String),
}

/// What `wideload scale --from` tells.
#[must_use]
pub fn foresee(study: &Study, machine: &Machine, database: Database) -> Foreseen {
    let split = client_and_target_cpus(machine, &machine.allowed);
    let both: CpuSet = split.client.iter().chain(split.target.iter()).collect();
    let policies = match &study.compared {
        Some(Compared::Layouts(policies)) => policies.clone(),
        Some(Compared::Instances(counts)) => {
            counts.iter().map(|count| Policy::Parts(Count(*count))).collect()
        }
        None => [Single, PerPackage, PerNuma, PerLlc].map(Policy::Parts).to_vec(),
    };
    let numa_counts = match study.numa_counts.as_slice() {
        [] => vec![None],
        counts => counts.iter().copied().map(Some).collect(),
    };
    let of_budget = |numa_count: Option<u32>| {
        let mut seen: Vec<(Vec<Place>, String)> = Vec::new();
        let of_policy = |policy: &Policy| {
            let asked = Asked {
                policy: policy.clone(),
                numa_count,
                order: None,
                cpus: split.target.clone(),
                database,
                heap: study.heap_total.map(HeapAsked::Total),
            };
            let found = match lay_out(machine, &asked) {
                Err(error) => Found::CannotBe(error.to_string()),
                Ok((places, _)) => match seen.iter().find(|(known, _)| *known == places) {
                    Some((_, other)) => Found::SameAs(other.clone()),
                    None => {
                        let words = places.iter().map(ToString::to_string).collect();
                        seen.push((places, policy.to_string()));
                        Found::Instances(words)
                    }
                },
            };
            Layout { policy: policy.to_string(), found }
        };
        Budget { numa_count, layouts: policies.iter().map(of_policy).collect() }
    };
    let budgets: Vec<Budget> = numa_counts.into_iter().map(of_budget).collect();
    let layouts = budgets.iter().flat_map(|budget| &budget.layouts);
    let arms = layouts.filter(|layout| matches!(layout.found, Found::Instances(_))).count();
    let setting = |name: &str| {
        let found = study.settings.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "default".to_owned(), |(_, value)| value.to_string())
    };
    Foreseen {
        client_cpus: split.client.to_string(),
        target_cpus: split.target.to_string(),
        shared: split.shared,
        idle_cpus: machine.allowed.difference(&both).to_string(),
        budgets,
        arms,
        workloads: study.workloads.clone(),
        repetitions: study.repetitions,
        duration: setting("duration"),
        warm: setting("warm"),
    }
}

impl fmt::Display for Foreseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "client on cpus {}, target on cpus {}", self.client_cpus, self.target_cpus)?;
        if self.shared {
            writeln!(f, "client and target share their only core: no result would be worth much")?;
        }
        if !self.idle_cpus.is_empty() {
            writeln!(
                f,
                "idle are cpus {}: the client has half of the cores and one cpu of each, because \
                 two of its\nthreads on one core would slow each other",
                self.idle_cpus
            )?;
        }
        writeln!(f, "below: instances x  cpus@NUMA nodes that memory is bound to")?;
        for budget in &self.budgets {
            if let Some(count) = budget.numa_count {
                let what = if count == 1 { "node" } else { "nodes" };
                writeln!(f, "\non {count} NUMA {what}")?;
            }
            for Layout { policy, found } in &budget.layouts {
                writeln!(f, "  {policy:<12} {found}")?;
            }
        }
        let (arms, workloads, repetitions) = (self.arms, self.workloads.len(), self.repetitions);
        writeln!(
            f,
            "{} trials: arms {arms} x workloads {workloads} x repetitions {repetitions}; of each \
             {} are measured after a warm-up of {},\nbesides its start and its rows",
            arms * workloads * repetitions as usize,
            self.duration,
            self.warm
        )
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instances(places) => write!(f, "{} x  {}", places.len(), places.join("  ")),
            Self::SameAs(other) => write!(f, "the same as {other}"),
            Self::CannotBe(why) => write!(f, "cannot be: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_of_a_described_machine_are_told_without_running() {
        let machine = Machine::synthetic("package:2 die:2 numa:1 llc:1 core:2 cpu:1").unwrap();
        let study = Study {
            compared: None,
            numa_counts: vec![1, 2, 9],
            workloads: vec!["ycsb:a".to_owned()],
            repetitions: 6,
            seed: 1,
            threads: None,
            heap_total: None,
            settings: Vec::new(),
        };
        let foreseen = foresee(&study, &machine, Database::Reference);
        let text = foreseen.to_string();
        for said in [
            "target on cpus 0-3",
            "per-numa     2 x  0-1@0  2-3@1",
            "per-package  the same as single",
            "cannot be: ",
            "cpus@NUMA nodes that memory is bound to",
            " x workloads 1 x repetitions 6",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        let json = serde_json::to_value(&foreseen).unwrap();
        let layouts = &json["budgets"][1]["layouts"];
        assert_eq!(json["target_cpus"], "0-3");
        assert_eq!(layouts[2]["instances"], serde_json::json!(["0-1@0", "2-3@1"]), "{json}");
        assert_eq!(layouts[1]["same_as"], "single", "{json}");
        let impossible = &json["budgets"][2]["layouts"][0]["cannot_be"];
        assert!(impossible.is_string(), "{json}");
    }
}
