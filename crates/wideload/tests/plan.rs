//! `wideload plan`: layouts, their reasons and their files; what cannot be is status 2 with a cure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::serve::announced;
use rig::{Home, Process, eventually};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// Two AMD EPYC 7601.
const EPYC_7601: &str = "package:2 die:4 numa:1(memory=64GiB) llc:2 core:4 cpu:2";

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["plan", "--synthetic", EPYC_7601][..], more].concat()
}

fn json(home: &Home, more: &[&str]) -> Value {
    let ended = home.run(&words(&[more, &["--json"]].concat()));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn refused(home: &Home, more: &[&str], parts: &[&str]) {
    let ended = home.run(&words(more));
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

#[test]
fn this_host_can_be_planned_for() {
    let home = Home::new();
    let ended = home.run(&["plan", "--policy", "single", "--database", "reference"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("single: 1 instance of reference"), "{}", ended.stdout);
}

#[test]
fn several_budgets_are_several_plans_with_reasons() {
    let home = Home::new();
    let value = json(&home, &["--policy", "per-package", "--numa-count", "1,2,4,8"]);
    let plans = value["plans"].as_array().unwrap();
    let numas = |plan: &Value| -> Vec<String> {
        let of = plan["layout"]["placements"].as_array().unwrap().iter();
        of.map(|placement| placement["memory_numas"].as_str().unwrap().to_owned()).collect()
    };
    let expected: [&[&str]; 4] = [&["0"], &["0", "4"], &["0-1", "4-5"], &["0-3", "4-7"]];
    assert_eq!(plans.iter().map(numas).collect::<Vec<_>>(), expected);
    for plan in plans {
        let about = |word: &str| {
            plan["layout"]["why"].as_array().unwrap().iter().any(|why| why["about"] == word)
        };
        for word in ["budget", "policy", "smt", "memory", "heap", "address"] {
            assert!(about(word), "{word}: {plan:#}");
        }
    }
    let ended = home.run(&words(&["--policy", "per-numa"]));
    assert!(ended.stdout.contains("8 instances of cassandra on NUMA nodes 0-7"), "{ended:?}");
    let reasons = ended.stdout.lines().skip_while(|line| *line != "why");
    for line in reasons {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn files_are_written_where_asked_and_listed() {
    let home = Home::new();
    let set = ["--set", "cassandra.concurrent_writes=64", "--jvm=-XX:+UseNUMA"];
    let emit = ["--numa-count", "1,2", "--emit", "a layout"];
    let value = json(&home, &[&set[..], &emit].concat());
    let mut files = 0;
    for plan in value["plans"].as_array().unwrap() {
        for file in plan["files"].as_array().unwrap() {
            assert!(std::path::Path::new(file.as_str().unwrap()).is_file(), "{file}");
            files += 1;
        }
        let notes = plan["notes"].to_string();
        assert!(notes.contains("concurrent_writes=64, as asked"), "{notes}");
    }
    // For each instance six; one to start all, and one of what they find where.
    assert_eq!(files, (6 + 2) + (2 * 6 + 2));
    let yaml = home.at("a layout/numa-2/cassandra-2/cassandra.yaml");
    assert!(fs::read_to_string(yaml).unwrap().contains("concurrent_writes: 64"));
    let again = words(&["--numa-count", "1,2", "--emit", "a layout"]);
    let ended = home.run(&again);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("is there already"), "{ended:?}");
}

#[test]
fn what_is_assumed_and_what_comes_next_is_told() {
    let home = Home::new();
    let plan = ["plan", "--synthetic", "package:2 numa:1 core:4 cpu:2", "--emit", "a layout"];
    let ended = home.run(&plan);
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "! memory: the description says nothing of it: 32.0 GiB for each NUMA node is assumed",
        "ring: 2 databases that share nothing",
        "reserve: no core is kept for the operating system",
        "a layout/start.sh",
        "needs numactl on PATH",
        "systemctl link",
    ] {
        assert!(text.contains(part), "{part}: {}", ended.stdout);
    }
    assert!(home.at("a layout/environment").is_file());
    let ended = home.run(&words(&["--policy", "per-package", "--numa-count", "1"]));
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("too few for every package"), "{ended:?}");
    assert!(!ended.stdout.contains("is assumed"), "{ended:?}");
    let topo = home.run(&["topo", "--synthetic", "package:2 core:4"]);
    assert!(topo.stdout.contains("32.0 GiB for each NUMA"), "{topo:?}");
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    let home = Home::new();
    refused(&home, &["--policy", "per-socket"], &["per-package"]);
    refused(&home, &["--numa-count", "16"], &["16 NUMA nodes", "--numa-count from 1 to 8"]);
    refused(&home, &["--policy", "65"], &["65 instances", "64 cores"]);
    refused(&home, &["--memory", "1TiB"], &["1.0 TiB", "60.0 GiB"]);
    refused(&home, &["--cpus", "0-200"], &["128-200", "online"]);
    refused(&home, &["--jvm=-XX:+UseParNewGC"], &["Java 17", "UseG1GC"]);
    refused(&home, &["--version", "3.11.19"], &["3.11.19"]);
    refused(&home, &["--database", "scylla", "--set", "cassandra.x=1"], &["another database"]);
    refused(&home, &["--set", "nothing"], &["cassandra.concurrent_writes=64"]);
    refused(&home, &["--size", "--heap", "1GiB"], &["--size"]);
    let ended = home.run(&["plan", "--synthetic", "package:2 foo:1"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("column"), "{ended:?}");
    // As of every verb that reads a machine.
    let ended = home.run(&["plan", "--machine", "no/such/machine"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("no/such/machine"), "{ended:?}");
}

#[test]
fn sizes_are_those_of_the_study_and_fit_by_what_is_least() {
    let home = Home::new();
    let value = json(
        &home,
        &["--size", "--instance-cores", "16", "--instance-memory", "64GiB", "--disk", "4TiB"],
    );
    assert_eq!(value["sizes"][0]["disk_bytes"], 30_u64 * (64 << 30));
    assert_eq!(value["sizes"][0]["disk_in_text"], "1.8TB");
    assert_eq!(value["host"]["cores"], 64);
    assert_eq!(value["instance"]["fit"]["instances"], 2);
    assert_eq!(value["instance"]["fit"]["ended_by"][0], "disk");
    // 60 of 64 GiB of each NUMA node, as a layout has them.
    assert_eq!(value["host"]["usable_memory_bytes"], 8_u64 * (60 << 30));
    let asked = ["--size", "--instance-cores", "8", "--instance-memory", "64GiB"];
    let ended = home.run(&words(&asked));
    assert!(ended.stdout.contains("7 instances of 8 cores"), "{ended:?}");
    assert!(ended.stdout.contains("by memory; the host's disk is not known"), "{ended:?}");
    assert!(ended.stdout.contains("of 512.0 GiB memory 32.0 GiB are left"), "{ended:?}");
    let ended = home.run(&words(&["--size"]));
    assert!(ended.stdout.contains("analytics, heavy duty"), "{ended:?}");
    refused(&home, &["--size", "--instance-cores", "1"], &["--instance-memory"]);
    refused(
        &home,
        &["--size", "--instance-cores", "0", "--instance-memory", "1GiB"],
        &["above zero"],
    );
}

/// The files are no mere text: what they start answers, and ends with the script.
#[test]
fn the_scripts_of_the_reference_target_start_it_and_end_it() {
    let home = Home::new();
    let place = ["--address", "127.93.7.1", "--memory", "64MiB", "--emit", "a layout"];
    let plan = [&["plan", "--policy", "single", "--database", "reference"][..], &place].concat();
    let ended = home.run(&plan);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    // Binding is not what is looked at here; many a machine has no numactl.
    let bin = home.at("bin");
    fs::create_dir(&bin).unwrap();
    let stub = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    fs::write(bin.join("numactl"), stub).unwrap();
    fs::set_permissions(bin.join("numactl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = home.command(home.at("a layout/start.sh"));
    command.env("PATH", path).env("WIDELOAD", env!("CARGO_BIN_EXE_wideload"));
    let process = Process::start(command);
    let up = eventually(Duration::from_secs(60), || announced(&process.stdout()).is_some());
    let address = announced(&process.stdout());
    process.signal(stage::Signal::TERM);
    let ended = process.wait(Duration::from_secs(60));
    assert!(up, "{ended:?}");
    assert_eq!(address.unwrap().to_string(), "127.93.7.1:9042");
    home.assert_nothing_left();
}
