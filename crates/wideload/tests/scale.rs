//! The layout study, against a truth that is known.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::Home;
use rig::eventually;
use serde_json::Value;
use stage::Signal;
use std::fs;
use std::time::Duration;

/// Every operation holds one lock of its instance for 4 ms, asleep: 250 op/s for each instance.
/// What is in flight when the window ends adds its service time to it: 48 ms to 2 s.
const SERIAL: &str = "--serial 4ms --records 300 --warm 300ms --duration 2s --threads 12";

fn mean(cell: &Value, arm: &str) -> f64 {
    let arms = cell["arms"].as_array().unwrap();
    let arm = arms.iter().find(|one| one["name"] == arm).unwrap();
    arm["ops_s_mean"]["value"].as_f64().unwrap()
}

#[test]
fn instances_with_a_known_capacity_scale_as_they_must() {
    let home = Home::new();
    let arms = ["--instances", "1,2,3", "--repetitions", "2", "--workload", "ycsb:c"];
    let serial: Vec<_> = SERIAL.split(' ').collect();
    let given = [&["scale"][..], &arms, &serial, &["--out", "run", "--json"]].concat();
    let ended = home.run(&given);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&outcome["planned"], &outcome["done"]), (&6.into(), &6.into()));
    let cell = &outcome["cells"][0];
    let one = mean(cell, "1");
    assert!((one / 250.0 - 1.0).abs() < 0.05, "{one}");
    for (arm, gain) in [("2", 2.0), ("3", 3.0)] {
        let found = mean(cell, arm) / one;
        assert!((found / gain - 1.0).abs() < 0.05, "{arm}: {found}");
    }
    assert_eq!(cell["comparison"]["best"], 2);
    let law = outcome["scaled"][0]["usl"].to_string();
    assert!(law.contains("3 distinct"), "{law}");
    for file in ["experiment.toml", "outcome.json", "trials.csv", "report.html"] {
        assert!(home.at("run").join(file).exists(), "{file}");
    }
    // What was carried out can be carried out again.
    let plan = home.run(&["lab", "--plan", "run/experiment.toml"]);
    assert!(plan.status == Some(0) && plan.stdout.contains("6 trials"), "{plan:?}");
    home.assert_nothing_left();
}

#[test]
fn the_load_is_looked_for_and_arms_that_are_the_same_are_measured_once() {
    let home = Home::new();
    let layouts = ["--layouts", "single,1-shared,2-shared,999", "--repetitions", "1"];
    let small = ["--records", "500", "--warm", "100ms", "--duration", "300ms", "--serial", "1ms"];
    let ended = home.run(&[&["scale"][..], &layouts, &small, &["--out", "run"]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for said in [
        "says nothing about Cassandra",
        "1-shared is the same as single here",
        "999 is left out",
        "2 of 2 trials ok",
        "nothing is recommended",
    ] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let pilots = fs::read_to_string(home.at("run/pilots.json")).unwrap();
    let pilots: Value = serde_json::from_str(&pilots).unwrap();
    let points = pilots[0]["points"].as_array().unwrap();
    let text = fs::read_to_string(home.at("run/experiment.toml")).unwrap();
    let of = |point: &Value| format!("threads = {}", point["threads"]);
    assert!(points.iter().any(|point| text.contains(&of(point))), "{points:?}: {text}");
    home.assert_nothing_left();
}

#[test]
fn who_ends_the_search_for_the_load_leaves_nothing() {
    let home = Home::new();
    let before = ["scale", "--layouts", "single", "--threads", "4", "--repetitions", "1"];
    let short = ["--records", "100", "--warm", "10ms", "--duration", "100ms"];
    assert_eq!(home.run(&[&before[..], &short].concat()).status, Some(0));
    let latest = fs::read_link(home.at("runs/latest")).unwrap();

    let process = home.start(&["scale", "--layouts", "single,2-shared,3-shared"]);
    let begun = || fs::read_link(home.at("runs/latest")).is_ok_and(|now| now != latest);
    let searches = || begun() && home.at("runs/latest/pilots").exists();
    assert!(eventually(Duration::from_secs(60), searches), "{}", process.stdout());
    let manifest = fs::read_to_string(home.at("runs/latest/manifest.json")).unwrap();
    assert!(manifest.contains("\"running\""), "{manifest}");
    process.signal(Signal::INT);
    let ended = process.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert_eq!(fs::read_dir(home.at("runs")).unwrap().count(), 2, "the first run and latest");
    assert_eq!(fs::read_link(home.at("runs/latest")).unwrap(), latest);
    home.assert_nothing_left();
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_cure() {
    let home = Home::new();
    for (arguments, said) in [
        (&["--layouts", "per-socket"][..], "per-numa"),
        (&["--layouts", "single", "--instances", "2"], "--instances"),
        (&["--layouts", "999"], "999"),
        (&["--numa-count", "999", "--layouts", "single"], "999"),
        (&["--workload", "ycsb:z"], "ycsb:z"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["--database", "oracle"], "cassandra"),
    ] {
        let ended = home.run(&[&["scale"], arguments].concat());
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{arguments:?}: {}", ended.stderr);
        assert!(!home.at("runs").exists(), "{arguments:?} began something");
    }
    home.assert_nothing_left();
}
