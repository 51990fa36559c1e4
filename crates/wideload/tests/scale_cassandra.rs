//! The layout study on real Cassandras.
//!
//! Needs a JDK that fits and Maven with its network or repository; where one is missing the test
//! says so and counts as skipped. Addresses of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::cassandra::{cache, is_lacking};
use rig::{Home, Process, RunDir, alone};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);
const ARMS: &str = "--instances 1,2 --repetitions 1 --threads 8 --listen 127.72.1.1";
const SMALL: &str = "--records 500 --warm 500ms --duration 1s --heap-total 768MiB";

fn scale(home: &Home, words: &str) -> Process {
    let words: Vec<_> = words.split(' ').collect();
    let mut command = home.wideload(&[&["scale", "--target", "cassandra"], &words[..]].concat());
    command.env("XDG_CACHE_HOME", cache()).env("XDG_STATE_HOME", home.at("state"));
    Process::start(command)
}

/// Directories of that name, however deep.
fn named(dir: &Path, name: &str) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let dirs = entries.filter(|path| path.is_dir());
    dirs.map(|path| usize::from(path.ends_with(name)) + named(&path, name)).sum()
}

#[test]
fn every_arm_has_the_same_memory_and_nothing_stays() {
    let _alone = alone();
    let home = Home::new();
    let ended = scale(&home, &format!("{ARMS} {SMALL} --out run --json")).wait(PATIENCE);
    if is_lacking(ended.status, &ended.stderr) {
        return;
    }
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&outcome["planned"], &outcome["done"]), (&2.into(), &2.into()));
    for arm in outcome["cells"][0]["arms"].as_array().unwrap() {
        // Warming up, a JVM uses what it can get.
        let (used, bound) = (&arm["cpu"]["target_cpus"], &arm["cpu"]["target_cpus_bound"]);
        assert!(used.as_f64().unwrap() > 0.1, "{arm}");
        assert!(used.as_f64().unwrap() < bound.as_f64().unwrap() * 1.2, "{arm}");
        let instances = arm["cpu"]["instances_cpus"].as_array().unwrap();
        assert_eq!(instances.len().to_string(), arm["name"].as_str().unwrap());
        // Of each heap every page was touched at the start.
        let bytes = arm["pages"]["bytes"].as_array().unwrap().iter();
        let bytes: u64 =
            bytes.flat_map(|row| row.as_array().unwrap()).filter_map(Value::as_u64).sum();
        assert!(bytes > 768 << 20, "{arm}");
    }
    let run = RunDir(home.at("run"));
    let mut seen = Vec::new();
    for number in [1, 2] {
        let manifest: Value = run.json(&format!("trial-{number:04}/manifest.json"));
        let target = &manifest["target"];
        assert_eq!((&target["kind"], &target["version"]), (&"cassandra".into(), &"5.0.5".into()));
        let instances = target["places"].as_array().unwrap().len() as u64;
        let heap_bytes = target["started"]["heap_bytes"].as_u64().unwrap();
        assert_eq!(heap_bytes * instances, 768 << 20, "{target}");
        // What its JVMs say of themselves.
        let jvms = target["jvms"].as_array().unwrap();
        assert_eq!(jvms.len() as u64, instances, "{target}");
        for jvm in jvms {
            for (what, is) in [("heap_bytes", heap_bytes.into()), ("collector", "G1".into())] {
                assert_eq!((&jvm[what]["asked"], &jvm[what]["seen"]), (&is, &is), "{jvm}");
            }
            assert_eq!(jvm["cpus"]["asked"], jvm["cpus"]["seen"], "{jvm}");
            assert!(jvm["numa"]["seen"].is_boolean(), "{jvm}");
        }
        seen.push(instances);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2]);
    assert_eq!(named(run.0.as_path(), "data"), 0);
    home.assert_nothing_left();
}

/// The same data for both trials.
const KEEP: &str = r#"
[experiment]
name = "keep"
repetitions = 2

[settings]
database = "cassandra"
data = "keep"
workload = "ycsb:a"
heap = "512MiB"
listen = "127.72.2.1"
records = 500
threads = 4
warm = "300ms"
duration = "500ms"
"#;

#[test]
fn data_that_are_kept_are_loaded_once_and_go_with_the_last_trial() {
    let _alone = alone();
    let home = Home::new();
    fs::write(home.at("keep.toml"), KEEP).unwrap();
    let mut command = home.wideload(&["lab", "keep.toml", "--out", "run", "--json"]);
    command.env("XDG_CACHE_HOME", cache()).env("XDG_STATE_HOME", home.at("state"));
    let ended = Process::start(command).wait(PATIENCE);
    if is_lacking(ended.status, &ended.stderr) {
        return;
    }
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let run = RunDir(home.at("run"));
    let loaded = [1, 2].map(|number| {
        let manifest: Value = run.json(&format!("trial-{number:04}/manifest.json"));
        let summary: Value = run.json(&format!("trial-{number:04}/summary.json"));
        // Every row that is asked for is there.
        assert_eq!(summary["errors"], 0, "{summary}");
        let started = manifest["target"]["started"]["data"].as_str().unwrap().to_owned();
        assert!(started.ends_with("data/of-0001"), "{started}");
        manifest["target"]["loaded_rows"].as_u64().unwrap()
    });
    assert_eq!(loaded, [500, 0]);
    assert_eq!(named(run.0.as_path(), "data"), 0);
    home.assert_nothing_left();
}

#[test]
fn data_that_cannot_be_kept_are_refused() {
    let home = Home::new();
    let reference = KEEP.replace("\"cassandra\"", "\"reference\"");
    let inserts = KEEP.replace("ycsb:a", "ycsb:d");
    let elsewhere = KEEP.replace("records", "data-dir = \"/tmp\"\nrecords");
    for (text, said) in [
        (reference, "they end with it"),
        (inserts, "inserts rows"),
        (elsewhere, "leave data-dir out"),
    ] {
        fs::write(home.at("keep.toml"), text).unwrap();
        let ended = home.run(&["lab", "keep.toml"]);
        assert_eq!(ended.status, Some(2), "{said}: {ended:?}");
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        assert!(!home.at("runs").exists(), "{said}: something was begun");
    }
}

#[test]
fn what_would_give_arms_unequal_memory_is_refused() {
    let home = Home::new();
    for (words, said) in [
        ("--heap 1GiB", "--heap-total"),
        ("--jvm -Xmx1g", "--heap-total"),
        ("--serial 1ms", "--serial"),
        ("--heap-total 4096GiB", "no memory for the heap"),
        ("--set cassandra.listen_address=x", "--listen"),
    ] {
        let ended = scale(&home, words).wait(PATIENCE);
        assert!(matches!(ended.status, Some(2 | 3)), "{words}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words}: {}", ended.stderr);
        assert!(!home.at("runs").exists(), "{words} began something");
    }
    let ended = home.run(&["scale", "--heap-total", "1GiB"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--target cassandra only"), "{}", ended.stderr);
}
