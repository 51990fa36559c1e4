//! Warm-up until steady, windows that were not, and repetitions, end to end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::repeats::Repeats;
use record::{Manifest, Summary, Verdict};
use rig::{Home, RunDir, Serve, alone, eventually};
use serde_json::Value;
use stage::Signal;
use std::fs;
use std::time::Duration;

fn trial(run: &RunDir, number: u32) -> (Manifest, Summary) {
    let file = |name: &str| format!("trial-{number:04}/{name}");
    (run.json(&file("manifest.json")), run.json(&file("summary.json")))
}

fn has(summary: &Summary, code: &str) -> bool {
    summary.caveats.iter().any(|caveat| caveat.code == code)
}

#[test]
fn a_repeated_run_gives_its_median_trial_and_keeps_all() {
    let _alone = alone();
    let home = Home::new();
    let out = home.at("out");
    let summary = home.summary(&[
        "run",
        "ycsb:d",
        "--records",
        "2000",
        "--ops",
        "3000",
        "--warm",
        "200ms",
        "--repeat",
        "3",
        "--seed",
        "11",
        "--out",
        out.to_str().unwrap(),
    ]);
    let run = RunDir(out.clone());
    let repeats: Repeats = summary.repeats.clone().unwrap();
    assert_eq!(run.manifest().repeats.as_ref(), Some(&repeats));
    assert_eq!((repeats.asked, repeats.trials.len()), (3, 3));
    assert_eq!(repeats.ops_s.interval_kind, "min-max");
    assert!(has(&summary, "repeats-grow"), "{:?}", summary.caveats);
    let mut ops_s = Vec::new();
    for (number, seed) in [(1, 11), (2, 12), (3, 13)] {
        let (manifest, summary) = trial(&run, number);
        assert_eq!((manifest.trial, manifest.seeds["workload"]), (Some(number), seed));
        assert_eq!((manifest.verdict, summary.repeats.is_none()), (Verdict::Ok, true));
        // Inserts go on behind those of the trial before, so all that is asked for is there.
        assert_eq!((summary.ops, summary.errors), (3000, 0));
        ops_s.push(summary.ops_s);
    }
    ops_s.sort_by(f64::total_cmp);
    assert_eq!(summary.ops_s, ops_s[1]);
    assert_eq!((repeats.ops_s.min, repeats.ops_s.max), (ops_s[0], ops_s[2]));
    let table = fs::read_to_string(out.join("trials.csv")).unwrap();
    let first: Vec<_> = table.lines().skip(1).map(|l| l.split(',').next().unwrap()).collect();
    assert_eq!(first, ["1", "2", "3"]);
}

#[test]
fn an_interrupted_repetition_keeps_the_trials_before_it() {
    let _alone = alone();
    let home = Home::new();
    let out = home.at("out");
    let process = home.start(&[
        "run",
        "ycsb:c",
        "--records",
        "1000",
        "--duration",
        "2s",
        "--warm",
        "0s",
        "--repeat",
        "500",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    let second = out.join("trial-0002/latency.hlog");
    assert!(eventually(Duration::from_secs(60), || second.exists()), "no second trial");
    assert!(process.signal(Signal::INT));
    let ended = process.wait(Duration::from_secs(30));
    assert_eq!(ended.status, Some(130), "{ended:?}");
    let run = RunDir(out);
    let (manifest, first) = trial(&run, 1);
    assert_eq!((manifest.verdict, run.manifest().verdict), (Verdict::Ok, Verdict::Interrupted));
    let summary = ended.summary();
    let repeats = summary.repeats.unwrap();
    assert_eq!((summary.ops_s, repeats.median_trial, repeats.asked), (first.ops_s, 1, 500));
    assert!(run.manifest().failure.unwrap().starts_with("trial 2: "));
    let second: Manifest = run.json("trial-0002/manifest.json");
    assert_eq!(second.verdict, Verdict::Interrupted);
    home.assert_nothing_left();
}

#[test]
fn a_warm_up_lasts_until_it_is_steady_or_to_its_bound() {
    let _alone = alone();
    let home = Home::new();
    let out = home.at("out");
    let ended = home.run(&[
        "run",
        "ycsb:a",
        "--records",
        "2000",
        "--warm",
        "auto",
        "--warm-max",
        "20s",
        "--duration",
        "1s",
        "--rate",
        "2000/s",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    assert_eq!(summary.ops, 2000, "the window has its own schedule, whenever it begins");
    let run = RunDir(out.clone());
    let (manifest, _) = trial(&run, 1);
    let warm = &manifest.phases["warm"];
    let took_s = warm["took_s"].as_f64().unwrap();
    // A busy host may keep it from being steady; then it says so.
    let steady = warm["became_steady"].as_bool().unwrap();
    assert!(if steady { (5.0..=20.0).contains(&took_s) } else { took_s == 20.0 }, "{warm}");
    assert_eq!(has(&summary, "warm-up-unsteady"), !steady, "{:?}", summary.caveats);
    assert!(ended.stderr.contains("of the time driven is not in the figures"), "{ended:?}");
    let settings = &run.manifest().settings;
    assert_eq!((&settings["warm"], &settings["warm-max"]), (&"auto".into(), &"20s".into()));
    // Blocks of a quarter second, up to the window.
    let blocks = fs::read_to_string(out.join("trial-0001/blocks.csv")).unwrap();
    let rows: Vec<Vec<&str>> = blocks.lines().skip(1).map(|l| l.split(',').collect()).collect();
    let warm: Vec<_> = rows.iter().filter(|row| row[2] == "warm").collect();
    assert!(warm.len() as f64 >= took_s * 2.0, "{} blocks in {took_s} s", warm.len());
    assert!(warm.iter().all(|row| row[0].starts_with('-')), "{blocks}");
    assert_eq!(manifest.phases["window"]["state"], "too-short-to-tell");
    assert!(!has(&summary, "not-steady"), "nothing is said of a second");
}

#[test]
fn a_window_with_a_break_in_it_is_not_steady() {
    let _alone = alone();
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let (target, out) = (serve.target(), home.at("out"));
    let process = home.start(&[
        "run",
        "ycsb:c",
        "--target",
        &target,
        "--records",
        "1000",
        "--duration",
        "14s",
        "--warm",
        "1s",
        "--threads",
        "4",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    let log = out.join("trial-0001/latency.hlog");
    let begun = || fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    assert!(eventually(Duration::from_secs(60), begun), "the window does not begin");
    std::thread::sleep(Duration::from_secs(2));
    serve.freeze(Duration::from_secs(5));
    let ended = process.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    let caveat = summary.caveats.iter().find(|c| c.code == "not-steady").unwrap();
    assert!(caveat.text.contains("throughput"), "{caveat:?}");
    assert!(caveat.evidence.contains("blocks over") && !caveat.cure.is_empty(), "{caveat:?}");
    let (manifest, _) = trial(&RunDir(out), 1);
    assert_eq!(manifest.phases["window"]["state"], "not-steady");
    let throughput: &Value = &manifest.phases["window"]["movements"]["throughput"];
    assert!(throughput["variation_share"].as_f64().unwrap() > 0.05, "{throughput}");
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let home = Home::new();
    for (flags, said) in [
        (&["--warm-max", "30s"][..], "--warm auto"),
        (&["--warm", "auto", "--warm-max", "5s"], "--warm-max 5s is too short"),
        (&["--warm", "often"], "or the word auto"),
        (&["--settle", "5s"], "--target"),
        (&["--repeat", "0"], "--repeat"),
    ] {
        let ended = home.run(&[&["run", "ycsb:a"], flags].concat());
        assert_eq!(ended.status, Some(2), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{flags:?}: {}", ended.stderr);
    }
}
