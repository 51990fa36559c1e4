//! A study as the text of an experiment.
//!
//! In: a study, its arms, and clients by combination. Out: TOML, as `docs/FORMAT.md` describes it:
//! what is carried out can be read, changed and carried out again with `wideload lab`.

use super::Study;
use super::arms::Arms;
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
        let _ = writeln!(text, "{name} = {}", quoted(value));
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
    for (factors, threads) in clients {
        let _ = writeln!(text, "\n[[when]]");
        for (name, level) in factors {
            let _ = writeln!(text, "{name} = {}", quoted(level));
        }
        let _ = writeln!(text, "set = {{ threads = {threads} }}");
    }
    text
}

/// A basic string of TOML, which is one of JSON too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
