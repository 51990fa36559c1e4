//! The layout study, against a truth that is known.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, alone, eventually};
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

/// Whether the arms did what their locks let them, each within 5 %.
fn is_true(cell: &Value) -> bool {
    let one = mean(cell, "1");
    let gain = |arm: &str, gain: f64| (mean(cell, arm) / one / gain - 1.0).abs() < 0.05;
    (one / 250.0 - 1.0).abs() < 0.05 && gain("2", 2.0) && gain("3", 3.0)
}

#[test]
fn instances_with_a_known_capacity_scale_as_they_must() {
    let _alone = alone();
    let home = Home::new();
    let arms = ["--instances", "1,2,3", "--repetitions", "2", "--workload", "ycsb:c"];
    let serial: Vec<_> = SERIAL.split(' ').collect();
    // Who is kept from a cpu for longer than 48 ms, all that waits at one lock, leaves it idle: on
    // a machine with other work one of three tries has to do.
    let mut tries = ["run", "run-2", "run-3"].into_iter();
    let (out, outcome) = loop {
        let out = tries.next().expect("one of three tries is as the locks let it");
        let given = [&["scale"][..], &arms, &serial, &["--out", out, "--json"]].concat();
        let ended = home.run(&given);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&outcome["planned"], &outcome["done"]), (&6.into(), &6.into()));
        let cell = &outcome["cells"][0];
        if is_true(cell) {
            break (out, outcome);
        }
        eprintln!("{out}: {cell}");
    };
    assert_eq!(outcome["cells"][0]["comparison"]["best"], 2);
    let law = outcome["scaled"][0]["usl"].to_string();
    assert!(law.contains("3 distinct"), "{law}");
    for file in ["experiment.toml", "outcome.json", "trials.csv", "report.html"] {
        assert!(home.at(out).join(file).exists(), "{file}");
    }
    // What was carried out can be carried out again.
    let plan = home.run(&["lab", "--plan", &format!("{out}/experiment.toml")]);
    assert!(plan.status == Some(0) && plan.stdout.contains("6 trials"), "{plan:?}");
    home.assert_nothing_left();
}

/// An experiment whose arms of N instances do N / (1 + 0.1 (N - 1)) times as much as one: each
/// instance holds its lock for so much longer. Each has four operations in flight, so that what
/// waits for it at the end of the window is the same for all.
fn with_contention() -> String {
    let arm = |count: u32| {
        let (serial_us, threads) = (8000 + 800 * (count - 1), 4 * count);
        let set = format!("serial = \"{serial_us}us\", threads = {threads}");
        format!("{{ name = \"{count}\", layout = \"{count}-shared\", {set} }}")
    };
    let arms: Vec<_> = [1, 2, 3, 4, 6, 8].into_iter().map(arm).collect();
    format!(
        "[experiment]\nname = \"contention\"\ncompare = \"instances\"\nbudget = \"instances\"\n\
         [settings]\nworkload = \"ycsb:c\"\nrecords = 80\nwarm = \"200ms\"\nduration = \"2s\"\n\
         [factors]\ninstances = [{}]\n",
        arms.join(", ")
    )
}

#[test]
fn a_contention_that_is_known_is_found() {
    let _alone = alone();
    let home = Home::new();
    fs::write(home.at("contention.toml"), with_contention()).unwrap();
    let ended = home.run(&["lab", "contention.toml", "--out", "run", "--json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
    let cell = &outcome["cells"][0];
    for (arm, gain) in [("2", 2.0 / 1.1), ("4", 4.0 / 1.3), ("8", 8.0 / 1.7)] {
        let found = mean(cell, arm) / mean(cell, "1");
        assert!((found / gain - 1.0).abs() < 0.05, "{arm}: {found}, not {gain}");
    }
    let fit = &outcome["scaled"][0]["usl"]["fitted"];
    let sigma = fit["law"]["sigma"].as_f64().unwrap();
    let end = |at: usize| fit["sigma_interval"][at].as_f64().unwrap();
    assert!((sigma - 0.1).abs() < 0.03, "{fit}");
    // The interval tells its own scatter; that of a busy machine may be beside it.
    assert!(end(0) - 0.02 < 0.1 && 0.1 < end(1) + 0.02, "{fit}");
    home.assert_nothing_left();
}

#[test]
fn the_load_is_looked_for_and_arms_that_are_the_same_are_measured_once() {
    let _alone = alone();
    let home = Home::new();
    let layouts = ["--layouts", "single,1-shared,2-shared,999", "--repetitions", "1"];
    let small = ["--records", "500", "--warm", "100ms", "--duration", "300ms", "--serial", "1ms"];
    let ended = home.run(&[&["scale"][..], &layouts, &small, &["--out", "run"]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for said in [
        "says nothing about Cassandra",
        "Left out: 1-shared. The same as single here.",
        "Left out: 999. ",
        "2 of 2 trials ok",
        "cannot tell",
        "one repetition says nothing",
        "Nothing is recommended",
    ] {
        // Sentences are broken where a line is full.
        let told = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(said), "{said}: {}", ended.stdout);
    }
    // The page says what the terminal says.
    let page = fs::read_to_string(home.at("run/report.html")).unwrap();
    for said in ["Left out: 1-shared", "Clients, each with one operation", "Nothing is recommended"]
    {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("Efficiency, by"), "more instances are no more resources");
    let pilots = fs::read_to_string(home.at("run/pilots.json")).unwrap();
    let pilots: Value = serde_json::from_str(&pilots).unwrap();
    let points = pilots[0]["points"].as_array().unwrap();
    let text = fs::read_to_string(home.at("run/experiment.toml")).unwrap();
    let of = |point: &Value| format!("threads = {}", point["threads"]);
    assert!(points.iter().any(|point| text.contains(&of(point))), "{points:?}: {text}");

    // As if it had been interrupted in its last trial: what is recommended is told all the same.
    fs::remove_dir_all(home.at("run/trial-0002")).unwrap();
    let study = fs::read_to_string(home.at("run/study.json")).unwrap();
    let mut study: Value = serde_json::from_str(&study).unwrap();
    study["recommended"] = Value::Null;
    fs::write(home.at("run/study.json"), study.to_string()).unwrap();
    let resumed = home.run(&["lab", "--resume", "run"]);
    assert_eq!(resumed.status, Some(0), "{resumed:?}");
    assert!(resumed.stdout.contains("Nothing is recommended"), "{}", resumed.stdout);
    assert!(home.at("run/trial-0002").is_dir());
    home.assert_nothing_left();
}

#[test]
fn who_ends_the_search_for_the_load_leaves_nothing() {
    let _alone = alone();
    let home = Home::new();
    let before = ["scale", "--layouts", "single", "--threads", "4", "--repetitions", "1"];
    let short = ["--records", "100", "--warm", "10ms", "--duration", "500ms"];
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
    let _alone = alone();
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
