//! Several instances of a target, each in its place.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, RunDir};
use serde_json::Value;
use stage::{ProcessId, Signal};
use std::time::Duration;
use units::cpus_of_current_thread;

#[test]
fn instances_hold_their_own_rows_and_are_where_they_were_put() {
    let home = Home::new();
    let cpus = cpus_of_current_thread().unwrap();
    let (first, last) = (cpus.iter().next().unwrap().0, cpus.iter().last().unwrap().0);
    let numa = std::path::Path::new("/sys/devices/system/node/node0").exists() && first == 0;
    let place = format!("{first}{}", if numa { "@0" } else { "" });
    let client = last.to_string();
    let run = ["run", "ycsb:d", "--records", "3000", "--ops", "20k", "--warm", "0s"];
    let places = ["--target-cpus", &place, "--target-cpus", &place, "--client-cpus", &client];
    let summary = home.summary(&[&run[..], &places[..], &["--out", "run"]].concat());
    // Whoever asks the wrong instance finds nothing.
    assert_eq!((summary.ops, summary.errors), (20_000, 0));
    assert_eq!(summary.outcomes.of(record::Outcome::Ok), 20_000);
    let manifest: Value = RunDir(home.at("run")).json("trial-0001/manifest.json");
    let target = &manifest["target"];
    assert_eq!(target["addresses"].as_array().unwrap().len(), 2);
    let placed = target["places"].as_array().unwrap();
    assert_eq!(placed.len(), 2);
    for instance in placed {
        assert_eq!(instance["cpus"], first.to_string());
        if numa {
            assert_eq!(instance["memory"], "bind:0");
            assert!(instance["anonymous_bytes"]["0"].as_u64().unwrap() > 1 << 20, "{instance}");
        }
    }
    home.assert_nothing_left();
}

#[test]
fn places_that_cannot_be_are_named() {
    let home = Home::new();
    for (place, said) in
        [("0@900", "NUMA node 900"), ("0@", "0-7@0"), ("@0", "0-7@0"), ("9999", "9999")]
    {
        let ended = home.run(&["run", "ycsb:c", "--records", "10", "--target-cpus", place]);
        assert!(matches!(ended.status, Some(2 | 3)), "{place}: {ended:?}");
        assert!(ended.stderr.contains(said), "{place}: {ended:?}");
    }
    home.assert_nothing_left();
}

#[test]
fn the_death_of_one_instance_is_the_end_of_the_run() {
    let home = Home::new();
    let cpu = cpus_of_current_thread().unwrap().iter().next().unwrap().0.to_string();
    let run = ["run", "ycsb:c", "--records", "1000", "--duration", "60s", "--give-up", "60s"];
    let places = ["--target-cpus", &cpu, "--target-cpus", &cpu, "--out", "run"];
    let process = home.start(&[&run[..], &places[..]].concat());
    // The window has begun when its first interval is there.
    let begun = || {
        std::fs::metadata(home.at("run/trial-0001/latency.hlog")).is_ok_and(|file| file.len() > 500)
    };
    assert!(rig::eventually(Duration::from_secs(30), begun));
    let command_line =
        |id: &ProcessId| std::fs::read(format!("/proc/{}/cmdline", id.pid)).unwrap_or_default();
    let serves = |id: &ProcessId| command_line(id).split(|b| *b == 0).any(|word| word == b"serve");
    let instance = home.left().into_iter().find(serves).unwrap();
    assert!(instance.signal(Signal::KILL).unwrap());
    let ended = process.wait(Duration::from_secs(30));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("has ended") || ended.stderr.contains("has ended"), "{ended:?}");
    home.assert_nothing_left();
}
