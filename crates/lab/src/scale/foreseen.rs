//! What a study would compare on another machine: a recorded one, or one that is only described.
//!
//! In: a machine and a study. Out: arms and where their instances would be, arms that would be the
//! same, and what cannot be, as text. Nothing is run. A local client gets half of the cores, as in
//! a study that is run.

use super::{Compared, Study};
use crate::layout::{Asked, Database, Policy, lay_out};
use machine::layout::Policy::{Count, PerLlc, PerNuma, PerPackage, Single};
use machine::{Machine, client_and_target_cpus};
use stage::Place;
use stage::cassandra::HeapAsked;
use std::fmt::Write as _;
use units::CpuSet;

/// The text of `wideload scale --from`.
#[must_use]
pub fn foresee(study: &Study, machine: &Machine, database: Database) -> String {
    let split = client_and_target_cpus(machine, &machine.allowed);
    let mut text = format!("client on cpus {}, target on cpus {}\n", split.client, split.target);
    if split.shared {
        text.push_str("client and target share their only core: no result would be worth much\n");
    }
    let both: CpuSet = split.client.iter().chain(split.target.iter()).collect();
    let idle = machine.allowed.difference(&both);
    if !idle.is_empty() {
        let _ = writeln!(
            text,
            "idle are cpus {idle}: the client has half of the cores and one cpu of each, because \
             two of its\nthreads on one core would slow each other"
        );
    }
    text.push_str("below: instances x  cpus@NUMA nodes that memory is bound to\n");
    let mut arms = 0;
    let policies = match &study.compared {
        Some(Compared::Layouts(policies)) => policies.clone(),
        Some(Compared::Instances(counts)) => {
            counts.iter().map(|count| Policy::Parts(Count(*count))).collect()
        }
        None => [Single, PerPackage, PerNuma, PerLlc].map(Policy::Parts).to_vec(),
    };
    let budgets = match study.numa_counts.as_slice() {
        [] => vec![None],
        counts => counts.iter().copied().map(Some).collect(),
    };
    for budget in budgets {
        let mut seen: Vec<(Vec<Place>, String)> = Vec::new();
        if let Some(count) = budget {
            let what = if count == 1 { "node" } else { "nodes" };
            let _ = writeln!(text, "\non {count} NUMA {what}");
        }
        for policy in &policies {
            let asked = Asked {
                policy: policy.clone(),
                numa_count: budget,
                order: None,
                cpus: split.target.clone(),
                database,
                heap: study.heap_total.map(HeapAsked::Total),
            };
            let said = match lay_out(machine, &asked) {
                Err(error) => format!("cannot be: {error}"),
                Ok((places, _)) => match seen.iter().find(|(known, _)| *known == places) {
                    Some((_, other)) => format!("the same as {other}"),
                    None => {
                        let words: Vec<_> = places.iter().map(ToString::to_string).collect();
                        seen.push((places, policy.to_string()));
                        arms += 1;
                        format!("{} x  {}", words.len(), words.join("  "))
                    }
                },
            };
            let name = policy.to_string();
            let _ = writeln!(text, "  {name:<12} {said}");
        }
    }
    text.push_str(&trials(study, arms));
    text
}

/// How many trials that would be, and how long their windows are.
fn trials(study: &Study, arms: usize) -> String {
    let (workloads, repetitions) = (study.workloads.len(), study.repetitions as usize);
    let each = |name: &str| {
        let found = study.settings.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "default".to_owned(), |(_, value)| value.to_string())
    };
    format!(
        "{} trials: arms {arms} x workloads {workloads} x repetitions {repetitions}; of each \
         {} are measured after a warm-up of {},\nbesides its start and its rows\n",
        arms * workloads * repetitions,
        each("duration"),
        each("warm")
    )
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
        let text = foresee(&study, &machine, Database::Reference);
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
    }
}
