//! `wideload calibrate`, and what a run makes of a calibration that is there, foreign or damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use lab::{Calibration, Calibrations, Identity, Limit, SCHEMA, Spread};
use machine::Machine;
use record::Summary;
use rig::{Ended, Home, RunDir};
use serde_json::Value;
use stage::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CODE: &str = "beyond-calibration";

fn identity() -> Identity {
    Identity::of(&Machine::read(Path::new("/")).unwrap())
}

/// A calibration of this machine that says so many operations per second and cpu.
fn planted(ops_per_cpu_s: f64) -> Calibration {
    let spread = Spread { p50: 1.0, p99: 2.0, p999: 3.0, max: 4.0 };
    Calibration {
        schema: SCHEMA,
        identity: identity(),
        made: "2026-11-20T11:06:36Z".into(),
        target: "null-mock on cpus 0".into(),
        workload: "ycsb:a".into(),
        client_cpus: "1".into(),
        workers: 1,
        shared_cpus: false,
        in_flight: 256,
        ops_per_cpu_s,
        ops_s: ops_per_cpu_s,
        client_busy: 1.0,
        limit: Limit::Client,
        floor_us: spread,
        sleep_late_us: spread,
        poll_late_us: spread,
        caveats: Vec::new(),
    }
}

fn calibrations(home: &Home) -> Calibrations {
    Calibrations::below(&home.at("state/wideload"))
}

/// Runs with a state directory and temporary files of its own.
fn wideload(home: &Home, arguments: &[&str]) -> Ended {
    start(home, arguments).wait(Duration::from_secs(120))
}

fn start(home: &Home, arguments: &[&str]) -> rig::Process {
    fs::create_dir_all(home.at("tmp")).unwrap();
    let mut command = home.wideload(arguments);
    command.env("XDG_STATE_HOME", home.at("state")).env("TMPDIR", home.at("tmp"));
    rig::Process::start(command)
}

/// A short run at 200/s on one client cpu.
fn run(home: &Home) -> (Ended, Summary) {
    let cpu = rig::serve::two_cpus().1;
    let ended = wideload(
        home,
        &[
            "run",
            "ycsb:c",
            "--rate",
            "200/s",
            "--duration",
            "300ms",
            "--warm",
            "0s",
            "--records",
            "100",
            "--storage",
            "null",
            "--client-cpus",
            &cpu,
            "--json",
        ],
    );
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    (ended, summary)
}

fn has_caveat(summary: &Summary) -> bool {
    summary.caveats.iter().any(|caveat| caveat.code == CODE)
}

#[test]
fn a_rate_beyond_half_of_the_ceiling_is_told_before_and_after() {
    let home = Home::new();
    calibrations(&home).write(&planted(399.0)).unwrap();
    let (ended, summary) = run(&home);
    assert!(ended.stderr.starts_with("warning: The rate is more than half"), "{ended:?}");
    let caveat = summary.caveats.iter().find(|caveat| caveat.code == CODE).unwrap();
    assert!(caveat.evidence.contains("200 op/s") && caveat.evidence.contains("399 op/s"));
    assert!(caveat.cure.contains("--client-cpus") && caveat.cure.contains("199/s"), "{caveat:?}");
    let manifest = RunDir(home.at("runs/latest")).manifest();
    assert!(manifest.caveats.contains(caveat), "it stands in the run directory too");

    calibrations(&home).write(&planted(199.0)).unwrap();
    let (ended, summary) = run(&home);
    assert!(ended.stderr.contains("more than this client can drive"), "{ended:?}");
    assert!(has_caveat(&summary));

    calibrations(&home).write(&planted(400.0)).unwrap();
    let (ended, summary) = run(&home);
    assert_eq!(ended.stderr, "");
    assert!(!has_caveat(&summary), "{:?}", summary.caveats);
}

#[test]
fn a_closed_loop_and_a_machine_that_was_not_calibrated_are_not_warned() {
    let home = Home::new();
    let (ended, summary) = run(&home);
    assert_eq!(ended.stderr, "");
    assert!(!has_caveat(&summary));
    calibrations(&home).write(&planted(1.0)).unwrap();
    let closed = ["run", "ycsb:c", "--ops", "100", "--warm", "0s", "--records", "100", "--json"];
    let ended = wideload(&home, &closed);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(!has_caveat(&ended.summary()));
}

#[test]
fn what_is_no_calibration_is_named_and_ignored() {
    let home = Home::new();
    let path = calibrations(&home).write(&planted(1.0)).unwrap();
    let good: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |key: &str, value: Value| {
        let mut other = good.clone();
        other[key] = value;
        serde_json::to_vec(&other).unwrap()
    };
    let whole = serde_json::to_vec(&good).unwrap();
    let cases = [
        Vec::new(),
        whole[..whole.len() / 2].to_vec(),
        b"\xff\xfe\x00".to_vec(),
        with("schema", 2.into()),
        with("ops_per_cpu_s", (-1.0).into()),
        with("ops_per_cpu_s", 0.into()),
        with("unknown_key", 1.into()),
        with("identity", Value::Null),
        with("made", "x".repeat(70_000).into()),
    ];
    for text in cases {
        fs::write(&path, &text).unwrap();
        let (ended, summary) = run(&home);
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
        assert!(ended.stderr.starts_with("note: ") && ended.stderr.lines().count() == 1, "{shown}");
        for word in [path.to_str().unwrap(), "is ignored", "wideload calibrate"] {
            assert!(ended.stderr.contains(word), "{word}: {ended:?}");
        }
        assert!(!has_caveat(&summary), "{shown}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(run(&home).0.stderr.contains("it is no regular file"));
}

#[test]
fn a_calibration_of_another_machine_is_not_this_ones() {
    let home = Home::new();
    let mut other = planted(1.0);
    other.identity.kernel.push_str("-other");
    let foreign = calibrations(&home).write(&other).unwrap();
    assert_eq!(calibrations(&home).of(&identity()).unwrap(), None);
    // Copied by hand to this one's name.
    fs::copy(foreign, calibrations(&home).path(&identity())).unwrap();
    assert!(run(&home).0.stderr.contains("of another machine"));
}

/// Names below a directory.
fn names(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn calibrating_measures_keeps_and_cleans_up() {
    let home = Home::new();
    let ended = wideload(&home, &["calibrate", "--json"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let mut value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let file = value.as_object_mut().unwrap().remove("file").unwrap();
    let printed: Calibration = serde_json::from_value(value).unwrap();
    assert_eq!(calibrations(&home).path(&identity()).to_str(), file.as_str());
    assert_eq!(calibrations(&home).of(&identity()).unwrap().unwrap(), printed);
    assert!(printed.target.starts_with("null-mock"), "{printed:?}");
    for spread in [printed.floor_us, printed.sleep_late_us, printed.poll_late_us] {
        assert!(spread.p50 <= spread.p99 && spread.p99 <= spread.p999, "{printed:?}");
        assert!(spread.p999 <= spread.max * 1.002, "{printed:?}");
    }
    let codes: Vec<_> = printed.caveats.iter().map(|caveat| caveat.code.as_str()).collect();
    assert_eq!(codes.contains(&"shared-cpus"), printed.shared_cpus);
    assert!(names(&home.at("tmp")).is_empty(), "temporary files are gone");
    assert_eq!(names(&home.at("state/wideload/calibration")).len(), 1);
    home.assert_nothing_left();
}

#[test]
fn an_interrupted_calibration_leaves_nothing() {
    let home = Home::new();
    let process = start(&home, &["calibrate"]);
    let begun = || !names(&home.at("tmp")).is_empty();
    assert!(rig::eventually(Duration::from_secs(30), begun), "it has begun");
    assert!(process.signal(Signal::INT));
    let ended = process.wait(Duration::from_secs(30));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    assert!(names(&home.at("tmp")).is_empty() && !home.at("state/wideload/calibration").exists());
    home.assert_nothing_left();
}

#[test]
fn cpus_that_are_none_and_no_place_to_keep_it() {
    let home = Home::new();
    let ended = wideload(&home, &["calibrate", "--client-cpus", "1000"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--client-cpus 1000"), "{ended:?}");
    let mut command = home.wideload(&["calibrate"]);
    command.env("XDG_STATE_HOME", "relative").env("HOME", "");
    let ended = rig::Process::start(command).wait(Duration::from_secs(30));
    assert_eq!(ended.status, Some(3), "refused before anything is measured: {ended:?}");
    assert!(ended.stderr.contains("XDG_STATE_HOME"), "{ended:?}");
}
