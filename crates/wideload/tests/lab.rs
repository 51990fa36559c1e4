//! `wideload lab`: an experiment from its file to its run directory, its interruption and how it
//! goes on, and files that are refused before anything starts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::table::{TrialRow, read_trials};
use record::{Manifest, Verdict};
use rig::{Home, RunDir, alone, eventually};
use serde_json::Value;
use stage::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// Two workloads, two loads, two repetitions: eight short trials.
const EXPERIMENT: &str = r#"
[experiment]
name = "short"
repetitions = 2
compare = "workload"
budget = "threads"

[settings]
storage = "null"
records = 1000
warm = "100ms"
duration = "300ms"
interval = "100ms"

[factors]
workload = ["ycsb:a", "ycsb:c"]
threads = [2, 4]
"#;

fn home(text: &str) -> Home {
    let home = Home::new();
    fs::write(home.at("short.toml"), text).unwrap();
    home
}

fn rows(run: &Path) -> Vec<TrialRow> {
    let Ok(file) = fs::File::open(run.join("trials.csv")) else { return Vec::new() };
    read_trials(file, 100).unwrap().0
}

#[test]
fn an_experiment_leaves_one_directory_with_all_of_its_trials() {
    let _alone = alone();
    let home = home(EXPERIMENT);
    let ended = home.run(&["lab", "short.toml", "--out", "out", "--json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((outcome["planned"].as_u64(), outcome["done"].as_u64()), (Some(8), Some(8)));
    // Two repetitions of equal or unequal arms: neither has won.
    let cells = outcome["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["arms"].as_array().unwrap().len(), 2);
        assert!(!cell["sentence"].as_str().unwrap().contains("best by"), "{cell}");
    }
    let out = RunDir(home.at("out"));
    assert_eq!(out.manifest().verdict, Verdict::Ok);
    assert_eq!(out.json::<Value>("outcome.json"), outcome);
    assert!(
        fs::read_to_string(home.at("out/experiment.toml")).unwrap().contains(EXPERIMENT.trim())
    );
    let rows = rows(&out.0);
    assert!(rows.iter().map(|row| row.trial).eq(1..=8));
    for row in &rows {
        // Names of factors that are columns already are told apart.
        let names: Vec<_> = row.factors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["workload_level", "threads"]);
        assert_eq!(row.factors[0].1, row.workload);
        assert!(row.ops > 0 && row.verdict == "ok", "{row:?}");
        let of = |file: &str| format!("trial-{:04}/{file}", row.trial);
        let manifest: Manifest = out.json(&of("manifest.json"));
        assert_eq!((manifest.trial, manifest.verdict), (Some(row.trial), Verdict::Ok));
        assert_eq!(manifest.settings["threads"].to_string(), row.factors[1].1);
        let summary: record::Summary = out.json(&of("summary.json"));
        assert_eq!((summary.ops, &summary.workload), (row.ops, &row.workload));
        assert!(out.0.join(of("total.hlog")).exists());
    }
    let page = fs::read_to_string(home.at("out/report.html")).unwrap();
    assert!(page.contains("short on") && page.contains("Efficiency, by threads"), "the report");
    for cell in cells {
        // As far as nothing in it is escaped.
        let sentence = cell["sentence"].as_str().unwrap().split([';', '(']).next().unwrap();
        assert!(page.contains(sentence), "{sentence}");
    }
    home.assert_nothing_left();
}

#[test]
fn figures_are_told_also_where_no_report_can_be_written() {
    let _alone = alone();
    let home = home(&EXPERIMENT.replace("repetitions = 2", "repetitions = 1"));
    let process = home.start(&["lab", "short.toml", "--out", "out"]);
    assert!(eventually(PATIENCE, || home.at("out/trial-0001").is_dir()), "{}", process.stdout());
    // As a full disk would: the page cannot take its place.
    fs::create_dir_all(home.at("out/report.html/taken")).unwrap();
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("no report: "), "{ended:?}");
    assert!(ended.stderr.contains("make it with: wideload report out"), "{ended:?}");
    assert!(ended.stdout.contains("run     out") && !ended.stdout.contains("report  "));
    assert_eq!(RunDir(home.at("out")).json::<Value>("outcome.json")["done"], 4);
    home.assert_nothing_left();
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_was() {
    let _alone = alone();
    let home = home(&EXPERIMENT.replace("300ms", "600ms"));
    let process = home.start(&["lab", "short.toml", "--out", "out"]);
    let out = RunDir(home.at("out"));
    assert!(eventually(PATIENCE, || rows(&out.0).len() >= 2), "{}", process.stdout());
    process.signal(Signal::INT);
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stdout.contains("go on with: wideload lab --resume out"), "{ended:?}");
    let started = out.manifest().started;
    assert_eq!(out.manifest().verdict, Verdict::Interrupted);
    home.assert_nothing_left();
    let before = rows(&out.0);
    let kept: Vec<_> = before.iter().filter(|row| row.verdict == "ok").cloned().collect();
    assert!((2..8).contains(&kept.len()), "{before:?}");
    let first = fs::read(home.at("out/trial-0001/total.hlog")).unwrap();

    let ended = home.run(&["lab", "--resume", "out"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nshort: 8 of 8 trials ok"), "{ended:?}");
    // What is no database is told before anything else.
    assert!(ended.stdout.starts_with("The target is a mock"), "{ended:?}");
    let after = rows(&out.0);
    assert!(after.iter().map(|row| row.trial).eq(1..=8));
    assert!(kept.iter().all(|row| after.contains(row)), "{kept:?} {after:?}");
    assert_eq!(fs::read(home.at("out/trial-0001/total.hlog")).unwrap(), first);
    assert_eq!(out.manifest().started, started);
    // All of the trials that are there, those that stayed among them, and none of those that went.
    let said: BTreeSet<_> = out.manifest().caveats.into_iter().map(|c| c.code).collect();
    let found: BTreeSet<_> = after.iter().flat_map(|row| row.caveats.iter().cloned()).collect();
    assert!(!said.is_empty() && said == found, "{said:?} {found:?}");
    assert_eq!(out.manifest().verdict, Verdict::Ok);
    // There is nothing left to do, and the outcome is the same.
    let again = home.run(&["lab", "--resume", "out"]);
    assert_eq!((again.status, rows(&out.0)), (Some(0), after.clone()));
    // An arm has one setting: a file that was changed does not go on with what was measured before.
    let file = home.at("out/experiment.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, said) in [
        ("600ms", "700ms", "its duration was"),
        ("repetitions = 2", "repetitions = 1", "no such trial any more"),
    ] {
        fs::write(&file, text.replace(from, to)).unwrap();
        let refused = home.run(&["lab", "--resume", "out"]);
        assert_eq!(refused.status, Some(2), "{refused:?}");
        for part in [said, "begin anew with wideload lab"] {
            assert!(refused.stderr.contains(part), "{refused:?}");
        }
        assert_eq!(rows(&out.0), after);
    }
    home.assert_nothing_left();
}

#[test]
fn a_run_directory_has_one_process_at_a_time() {
    let _alone = alone();
    let home = home(&EXPERIMENT.replace("300ms", "600ms"));
    let process = home.start(&["lab", "short.toml", "--out", "out"]);
    let out = RunDir(home.at("out"));
    assert!(eventually(PATIENCE, || !rows(&out.0).is_empty()), "{}", process.stdout());
    let second = home.run(&["lab", "--resume", "out"]);
    assert_eq!(second.status, Some(3), "{second:?}");
    let said = format!("'out' is in use by process {}", process.id().pid);
    assert!(second.stderr.contains(&said), "{second:?}");
    // What a killed one leaves is nobody's.
    process.signal(Signal::KILL);
    process.wait(PATIENCE);
    assert!(home.at("out/.lock").exists());
    assert!(eventually(PATIENCE, || home.left().is_empty()), "{:?}", home.left());
    let ended = home.run(&["lab", "--resume", "out"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("short: 8 of 8 trials ok"), "{ended:?}");
    assert!(!home.at("out/.lock").exists());
    home.assert_nothing_left();
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_starts() {
    for (from, to, says) in [
        ("storage = \"null\"", "database = \"scylla\"", "do not have yet: scylla"),
        ("\"ycsb:c\"", "\"ycsb:z\"", "(workload ycsb:z, threads 2)"),
        ("threads = [2, 4]", "threads = [2, 0]", "has the level '0'"),
        ("threads = [2, 4]", "thread = [2, 4]", "short.toml, line 17, column 1"),
        ("storage = \"null\"", "target-cpus = \"4000\"", "4000"),
    ] {
        let home = home(&EXPERIMENT.replace(from, to));
        let ended = home.run(&["lab", "short.toml", "--out", "out"]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
        assert!(!home.at("out").exists(), "nothing is begun: {ended:?}");
        home.assert_nothing_left();
    }
    let home = home(EXPERIMENT);
    let nothing = home.run(&["lab", "--resume", "."]);
    assert_eq!(nothing.status, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("holds no experiment that could go on"), "{nothing:?}");
}

#[test]
fn the_plan_lists_every_trial_with_its_expected_time() {
    let home = home(EXPERIMENT);
    fs::write(home.at("other.toml"), EXPERIMENT.replace("\"short\"", "\"other\"")).unwrap();
    let ended = home.run(&["lab", "--plan", "short.toml", "other.toml"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for name in ["short", "other"] {
        assert!(ended.stdout.contains(&format!("{name}: 8 trials, 2 of each combination")));
    }
    let trials = ended.stdout.lines().filter(|line| line.contains("ycsb:") && line.contains(" s"));
    assert_eq!(trials.count(), 16, "{ended:?}");
    // What cannot run is told as that, at once, and does not bury what can.
    let scylla = EXPERIMENT.replace("storage = \"null\"", "database = \"scylla\"");
    fs::write(home.at("scylla.toml"), scylla).unwrap();
    let mixed = home.run(&["lab", "--plan", "scylla.toml", "short.toml"]);
    let first: Vec<_> = mixed.stdout.lines().take(2).collect();
    assert!(first[0].ends_with("cannot run: see what is not built"), "{mixed:?}");
    assert!(first[1].ends_with("runs here"), "{mixed:?}");
    assert_eq!(mixed.stdout.matches("ycsb:").count(), 8, "{mixed:?}");
    let json = home.run(&["lab", "--plan", "short.toml", "--json"]);
    let plans: Value = serde_json::from_str(&json.stdout).unwrap();
    let trials = plans[0]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 8);
    assert!(trials.iter().all(|trial| trial["expected_s"].as_f64().unwrap() > 0.3), "{json:?}");
    assert!(!home.at("runs").exists());
}

#[test]
fn names_in_a_file_never_steer_a_terminal() {
    let home = Home::new();
    let name = "\"\\u001b]0;title\\u0007\\u202e\"";
    let text = EXPERIMENT.replacen("name = ", &format!("name = {name} # "), 1);
    fs::write(home.at("steers.toml"), text).unwrap();
    let plan = home.run(&["lab", "--plan", "steers.toml"]);
    let shown = format!("{plan:?}");
    assert!(!plan.stdout.contains('\u{1b}') && !plan.stdout.contains('\u{202e}'), "{shown}");
    assert!(!plan.stderr.contains('\u{1b}'), "{shown}");
    assert!(plan.stdout.contains("title") || plan.stderr.contains("title"), "{shown}");
}
