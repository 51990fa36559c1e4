//! From a text to trials, and from their rows to what they say.

use super::compared::arm_name;
use super::outcome::Outcome;
use super::plan::{Planned, plan_text};
use super::read::Experiment;
use analyze::arms::By;
use record::summary::Stats;
use record::table::TrialRow;
use std::collections::BTreeSet;
use std::path::Path;
use units::Nanos;

const TEXT: &str = r#"
[experiment]
name = "e"
repetitions = 6
seed = 5
compare = "layout"
budget = "threads"

[settings]
workload = "ycsb:a"
duration = "2s"
cassandra = { concurrent_reads = 16 }

[factors]
layout = [
    { name = "one", cassandra = { concurrent_writes = 8, "nested" = { key = 1 } }, heap = "1GiB" },
    { name = "two", database = "cassandra", jvm = ["-XX:+UseNUMA", "-Xss256k"] },
]

[load]
threads = [1, 2]

[[except]]
why = "of no use"
layout = "two"
threads = 2

[[when]]
layout = "one"
threads = 2
set = { duration = "5s", property = { requestdistribution = "zipfian" } }
"#;

fn plan(text: &str) -> (Experiment, Vec<Planned>) {
    plan_text(Path::new("e.toml"), text).unwrap()
}

fn of(planned: &[Planned], levels: [&str; 2]) -> Planned {
    let has = |p: &&Planned| p.factors.iter().map(|(_, level)| level.as_str()).eq(levels);
    planned.iter().find(has).unwrap().clone()
}

#[test]
fn blocks_hold_each_combination_once_and_come_forth_and_back() {
    let (_, planned) = plan(TEXT);
    assert_eq!(planned.len(), 3 * 6);
    assert!(planned.iter().map(|p| p.number).eq(1..=18));
    let blocks: Vec<Vec<_>> =
        planned.chunks(3).map(|block| block.iter().map(|p| p.factors.clone()).collect()).collect();
    for (pair, number) in blocks.chunks(2).zip(0..) {
        let back: Vec<_> = pair[1].iter().rev().cloned().collect();
        assert_eq!(pair[0], back, "pair {number}");
        assert_eq!(pair[0].iter().collect::<BTreeSet<_>>().len(), 3);
    }
    assert!(planned.chunks(3).zip(1..).all(|(block, n)| block.iter().all(|p| p.block == n)));
    assert!(planned.iter().all(|p| p.seed == 4 + u64::from(p.block)));
    assert_eq!(plan(TEXT).1, planned, "the same text, the same order");
    let other = plan(&TEXT.replace("seed = 5", "seed = 6")).1;
    assert!(other.iter().zip(&planned).any(|(a, b)| a.factors != b.factors));
    let listed = plan(&TEXT.replace("seed = 5", "order = \"listed\"")).1;
    assert!(listed[..6].iter().all(|p| p.factors == listed[0].factors));
}

#[test]
fn settings_of_levels_and_of_combinations_win_and_become_flags() {
    let (_, planned) = plan(TEXT);
    let one = of(&planned, ["one", "2"]);
    // Settings of Cassandra are none of the reference target's.
    assert_eq!(
        one.arguments(),
        [
            "ycsb:a",
            "--duration=5s",
            "--threads=2",
            "-p=requestdistribution=zipfian",
            &format!("--seed={}", one.seed)
        ]
    );
    assert_eq!(one.expected.measure, Nanos::from_secs(5));
    let two = of(&planned, ["two", "1"]);
    assert_eq!(
        two.arguments(),
        [
            "ycsb:a",
            "--duration=2s",
            "--set=cassandra.concurrent_reads=16",
            "--target=cassandra",
            "--jvm=-XX:+UseNUMA",
            "--jvm=-Xss256k",
            "--threads=1",
            &format!("--seed={}", two.seed)
        ]
    );
    assert!(two.expected.start > one.expected.start && two.expected.settle > Nanos::ZERO);
    let cassandra = TEXT.replace("heap = \"1GiB\"", "database = \"cassandra\"");
    let arguments = of(&plan(&cassandra).1, ["one", "1"]).arguments().join(" ");
    for key in ["concurrent_reads=16", "concurrent_writes=8", "nested.key=1"] {
        assert!(arguments.contains(&format!("--set=cassandra.{key}")), "{arguments}");
    }
}

#[test]
fn what_is_not_built_is_named_by_the_trials_that_need_it() {
    let text = TEXT.replace("heap = \"1GiB\"", "capture = [\"JFR\"], needs = [\"vm\"]");
    let (experiment, planned) = plan(&text);
    assert_eq!(of(&planned, ["one", "1"]).needs, ["capture", "vm"]);
    assert!(of(&planned, ["two", "1"]).needs.is_empty());
    let words = super::plan_in_words(&experiment, &planned);
    assert!(words.contains("not built, for 12 of them: vm (virtual machines as hosts)"), "{words}");
    assert!(words.lines().filter(|line| line.contains("capture, vm")).count() == 12, "{words}");
    assert_eq!(super::plan_as_json(&experiment, &planned)["trials"][0]["block"], 1);
}

/// Rows with the throughput of a law, and noise that is the same for all trials of a block.
fn rows(planned: &[Planned], ops_s: impl Fn(&Planned) -> f64) -> Vec<TrialRow> {
    let row = |p: &Planned| TrialRow {
        trial: p.number,
        workload: "ycsb:a".to_owned(),
        target: "reference".to_owned(),
        factors: p.factors.clone(),
        ops: 10,
        ops_s: ops_s(p) * (1.0 + 0.05 * f64::from(p.block % 3)),
        duration_s: 1.0,
        errors: 0,
        scheduled_rate_s: None,
        service: None,
        response: None,
        lag: None,
        verdict: "ok".to_owned(),
        caveats: Vec::new(),
    };
    planned.iter().map(row).collect()
}

#[test]
fn the_outcome_compares_arms_and_scales_the_budget() {
    let text = TEXT.replace("threads = [1, 2]", "threads = [1, 2, 3, 4, 6, 8]");
    let (experiment, planned) = plan(&text);
    let threads = |p: &Planned| p.factors[1].1.parse::<f64>().unwrap();
    let factor = |p: &Planned| if p.factors[0].1 == "one" { 1.0 } else { 1.3 };
    let law = |n: f64| 1000.0 * n / (1.0 + 0.1 * (n - 1.0));
    let mut rows = rows(&planned, |p| law(threads(p)) * factor(p));
    // One trial failed: its block is left out of its comparison, and the trial is missing.
    let failed = rows.iter_mut().find(|r| r.factors[1].1 == "3" && r.factors[0].1 == "one");
    "failed".clone_into(&mut failed.unwrap().verdict);
    // Instances of another were moved: it says nothing of its layout, however fast it was.
    let moved = rows.iter_mut().find(|r| r.factors[1].1 == "4" && r.factors[0].1 == "one").unwrap();
    (moved.ops_s, moved.caveats) = (1e9, vec!["misplaced".to_owned()]);
    let outcome = Outcome::of(&experiment, &planned, &rows, &[], Path::new("runs/x"));
    assert_eq!((outcome.planned, outcome.done, outcome.missing), (66, 64, 2));
    assert_eq!(outcome.misplaced, 1);
    assert_eq!(outcome.cells.len(), 6, "a cell for each number of threads");
    let cell = &outcome.cells[0];
    assert_eq!(cell.factors, [("threads".to_owned(), "1".to_owned())]);
    let sentence = cell.sentence.as_ref().unwrap();
    assert!(
        sentence.starts_with("best by throughput is two: 1.300 times one (1.300 to 1.300, 95 %)"),
        "{sentence}"
    );
    // The excepted combination leaves one arm, and nothing to compare.
    let lone = &outcome.cells[1];
    assert_eq!((lone.arms.len(), &lone.comparison), (1, &None));
    assert!(lone.sentence.as_ref().unwrap().contains("one is the only arm"), "{lone:?}");
    let three = &outcome.cells[2];
    assert_eq!(three.arms[0].ops_s.iter().flatten().count(), 5);
    assert!(three.sentence.as_ref().unwrap().contains("min-max"), "{:?}", three.sentence);
    let scaled = &outcome.scaled[0];
    let eight = scaled.steps.last().unwrap();
    assert_eq!(eight.budget, 8);
    assert!((eight.speedup.unwrap().value - 8.0 / 1.7).abs() < 1e-9, "{eight:?}");
    let analyze::usl::Usl::Fitted(fit) = &scaled.usl else { panic!("{:?}", scaled.usl) };
    assert!((fit.sigma_interval.0..=fit.sigma_interval.1).contains(&0.1), "{fit:?}");
    // The other arm has five budgets.
    assert!(matches!(outcome.scaled[1].usl, analyze::usl::Usl::NotFitted { .. }));
    let words = outcome.in_words();
    assert!(words.contains("1 misplaced, not counted"), "{words}");
    assert!(
        words.contains("e: 64 of 66 trials ok") && words.contains("growth with threads"),
        "{words}"
    );
    assert!(words.contains("no scalability law: 5 distinct N"), "{words}");
}

/// At a rate of 5000/s, with a p99 of so many microseconds; None missed the rate.
fn at_a_rate(planned: &[Planned], p99_us: impl Fn(&Planned) -> Option<f64>) -> Vec<TrialRow> {
    let mut rows = rows(planned, |_| 4990.0);
    for (row, planned) in rows.iter_mut().zip(planned) {
        let noise = 1.0 + 0.02 * f64::from(planned.block % 2);
        let stats = |us| Stats { mean: us, p50: us, p90: us, p99: us, p999: us, max: us };
        row.scheduled_rate_s = Some(5000.0);
        row.response = p99_us(planned).map(|us| stats(us * noise));
    }
    rows
}

#[test]
fn at_a_rate_arms_are_compared_by_what_users_wait() {
    let (experiment, planned) = plan(TEXT);
    let is_one = |p: &Planned| p.factors[0].1 == "one";
    let slow = at_a_rate(&planned, |p| Some(if is_one(p) { 3000.0 } else { 1000.0 }));
    let outcome = Outcome::of(&experiment, &planned, &slow, &[], Path::new("runs/x"));
    let cell = &outcome.cells[0];
    assert_eq!(cell.by, By::ResponseP99);
    let sentence = cell.sentence.as_ref().unwrap();
    assert!(
        sentence.starts_with("best by p99 of the response time is two: that of one is 3.000 times"),
        "{sentence}"
    );
    let spread = cell.arms[0].response_p99_us_spread.as_ref().unwrap();
    assert_eq!((spread.median, spread.max), (3000.0, 3060.0), "a value that was measured");
    // More op/s come of a higher schedule: nothing has grown.
    assert!(outcome.scaled.is_empty(), "{:?}", outcome.scaled);
    assert!(outcome.in_words().contains("op/s is the schedule here"), "{}", outcome.in_words());

    // An arm that missed its rate once is not compared by the trials in which it did not.
    let missed = |p: &Planned| (!is_one(p) || p.block != 2).then_some(1000.0);
    let missed = at_a_rate(&planned, missed);
    let outcome = Outcome::of(&experiment, &planned, &missed, &[], Path::new("runs/x"));
    let cell = &outcome.cells[0];
    let sentence = cell.sentence.as_ref().unwrap();
    assert_eq!((&cell.comparison, cell.arms[0].rate_missed), (&None, 1));
    assert!(
        sentence.starts_with("only two kept its rate in every trial; one missed"),
        "{sentence}"
    );
}

#[test]
fn arms_have_names_that_are_no_figures() {
    let names = [("instances", "1"), ("instances", "4"), ("numa-count", "1"), ("layout", "single")];
    let names = names.map(|(factor, level)| arm_name(factor, level));
    assert_eq!(names, ["1 instance", "4 instances", "numa-count 1", "single"]);
}

#[test]
fn data_are_shared_by_trials_that_differ_in_the_load_alone() {
    let kept = TEXT.replace("[settings]", "[settings]\ndatabase = \"cassandra\"\ndata = \"keep\"");
    let planned = plan(&kept).1;
    for trial in &planned {
        let first = trial.data_of.unwrap();
        assert!(first <= trial.number);
        let layout = |number: u32| planned[number as usize - 1].factors[0].1.clone();
        assert_eq!(layout(first), trial.factors[0].1);
    }
    let wiped = plan(&kept.replace("keep", "wipe")).1;
    assert!(wiped.iter().all(|trial| trial.data_of.is_none() && trial.needs.is_empty()));
    // A database that runs is not wiped, and keeps what it has.
    let running = |data: &str| {
        let target = format!("[settings]\ntarget = [\"h\"]\ndata = \"{data}\"");
        let text = TEXT.replace("[settings]", &target).replace("database = \"cassandra\", ", "");
        plan(&text).1
    };
    assert!(running("wipe").iter().all(|trial| trial.needs == ["data"]));
    assert!(running("keep").iter().all(|t| t.needs.is_empty() && t.data_of.is_none()));
}
