//! A study as the text of an experiment.
//!
//! In: a study, its arms, and clients by combination. Out: TOML, as `docs/FORMAT.md` describes it:
//! what is carried out can be read, changed and carried out again with `wideload lab`.

use super::Study;
use super::arms::Arms;
use crate::experiment::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(super) fn experiment(
    study: &Study,
    arms: &Arms,
    clients: &BTreeMap<Vec<(String, String)>, usize>,
) -> String {
    let mut text = String::new();
    let budget = match (study.numa_counts.len() > 1, arms.factor) {
        (true, _) => Some("numa-count"),
        (false, "instances") => Some("instances"),
        _ => None,
    };
    let factor = arms.factor;
    let _ = writeln!(text, "[experiment]\nname = \"scale\"\norder = \"interleaved\"");
    let about = "Which layout of instances is best on this machine, and by how much";
    let _ = writeln!(text, "about = {}", quoted(about));
    let _ = writeln!(text, "repetitions = {}\nseed = {}", study.repetitions, study.seed);
    let _ = writeln!(text, "compare = \"{factor}\"");
    if let Some(budget) = budget {
        let _ = writeln!(text, "budget = \"{budget}\"");
    }
    let _ = writeln!(text, "\n[settings]");
    for (name, value) in &study.settings {
        let _ = writeln!(text, "{name} = {}", as_toml(value));
    }
    if let Some(total) = study.heap_total {
        let _ = writeln!(text, "heap-total = \"{}B\"", total.0);
    }
    if let Some(threads) = study.threads {
        let _ = writeln!(text, "threads = {threads}");
    }
    if let [only] = study.numa_counts.as_slice() {
        let _ = writeln!(text, "numa-count = {only}");
    }
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let _ = writeln!(text, "\n[factors]");
    let workloads = study.workloads.iter().map(|workload| quoted(workload)).collect();
    let _ = writeln!(text, "workload = {}", list(workloads));
    if study.numa_counts.len() > 1 {
        let counts = study.numa_counts.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "numa-count = {}", list(counts));
    }
    let arm = |arm: &super::arms::Arm| {
        let (name, layout) = (quoted(&arm.name), quoted(&arm.layout.to_string()));
        format!("{{ name = {name}, layout = {layout} }}")
    };
    let _ = writeln!(text, "{factor} = {}", list(arms.arms.iter().map(arm).collect()));
    for (name, budget) in &arms.except {
        let _ = writeln!(text, "\n[[except]]\n{factor} = {}", quoted(name));
        if let Some(count) = budget {
            let _ = writeln!(text, "numa-count = \"{count}\"");
        }
    }
    let largest = study.numa_counts.iter().copied().max().unwrap_or(1);
    for count in study.numa_counts.iter().filter(|count| **count < largest) {
        let Some(total) = study.heap_total else { continue };
        let part = u128::from(total.0) * u128::from(*count) / u128::from(largest);
        let _ = writeln!(text, "\n[[when]]\nnuma-count = \"{count}\"");
        let _ = writeln!(text, "set = {{ heap-total = \"{part}B\" }}");
    }
    for (factors, threads) in clients {
        let _ = writeln!(text, "\n[[when]]");
        for (name, level) in factors {
            let _ = writeln!(text, "{name} = {}", quoted(level));
        }
        let _ = writeln!(text, "set = {{ threads = {threads} }}");
    }
    text
}

fn as_toml(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(entries) => {
            let entry =
                |(key, value): &(String, Value)| format!("{} = {}", quoted(key), as_toml(value));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A basic string of TOML, which is one of JSON too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Planned, plan_text};
    use crate::layout::Policy;
    use crate::scale::arms::Arm;
    use std::path::Path;
    use units::Bytes;

    fn planned(numa_counts: &[u32]) -> Vec<Planned> {
        let text = |text: &str| Value::Text(text.to_owned());
        let study = Study {
            compared: None,
            numa_counts: numa_counts.to_vec(),
            workloads: vec!["ycsb:a".to_owned()],
            repetitions: 1,
            seed: 1,
            threads: Some(8),
            heap_total: Some(Bytes(8 << 30)),
            settings: vec![
                ("database".to_owned(), text("cassandra")),
                ("jvm".to_owned(), Value::List(vec!["-Xss1m".to_owned(), "-Da=\"b\"".to_owned()])),
                ("cassandra".to_owned(), Value::Table(vec![("a.b".to_owned(), text("\"x\""))])),
            ],
        };
        let arm = |name: &str| {
            let layout: Policy = name.parse().unwrap();
            Arm { name: name.to_owned(), layout }
        };
        let arms = Arms {
            factor: "layout",
            arms: vec![arm("single"), arm("per-numa")],
            except: Vec::new(),
            why: Vec::new(),
            left_out: crate::scale::arms::LeftOut::default(),
        };
        let text = experiment(&study, &arms, &BTreeMap::new());
        plan_text(Path::new("scale"), &text).unwrap_or_else(|e| panic!("{e}: {text}")).1
    }

    #[test]
    fn every_arm_has_the_same_heap_in_all_and_its_part_on_a_smaller_budget() {
        let heap = |trial: &Planned| {
            let of = trial.arguments().into_iter().find_map(|word| {
                word.strip_prefix("--heap-total=").map(|size| size.parse::<Bytes>().unwrap().0)
            });
            of.unwrap() >> 30
        };
        assert_eq!(planned(&[]).iter().map(heap).collect::<Vec<_>>(), [8, 8]);
        let trials = planned(&[1, 2, 8]);
        assert_eq!(trials.len(), 6);
        for trial in &trials {
            let count = &trial.factors.iter().find(|(name, _)| name == "numa-count").unwrap().1;
            assert_eq!(heap(trial).to_string(), *count);
        }
    }

    #[test]
    fn settings_of_any_kind_come_back_as_flags() {
        let words = planned(&[])[0].arguments();
        for word in ["--jvm=-Xss1m", "--jvm=-Da=\"b\"", "--set=cassandra.a.b=\"x\""] {
            assert!(words.iter().any(|known| known == word), "{word}: {words:?}");
        }
    }
}
