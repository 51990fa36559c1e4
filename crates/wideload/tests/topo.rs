//! `wideload topo`: this host, a described machine, a recording; as text, JSON, a picture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::Home;
use serde_json::Value;
use std::fs;

const EPYC: &str = "package:2 die:4 numa:1(memory=32GiB) llc:2(size=8MiB) core:4 cpu:2";

#[test]
fn this_host_is_shown_recorded_and_shown_again() {
    let home = Home::new();
    let live = home.run(&["topo", "--record", "here.tar.gz"]);
    assert_eq!(
        (live.status, live.stderr.as_str()),
        (Some(0), "recording here.tar.gz\n"),
        "{live:?}"
    );
    assert!(live.stdout.contains("core"), "{live:?}");
    let parts = |ended: &rig::Ended| -> Value {
        assert_eq!(ended.status, Some(0), "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let (here, recorded) = (
        parts(&home.run(&["topo", "--json"])),
        parts(&home.run(&["topo", "here.tar.gz", "--json"])),
    );
    assert_eq!((here["schema"].as_u64(), here["source"].as_str()), (Some(1), Some("/")));
    assert_eq!(recorded["source"], "here.tar.gz");
    for key in ["present", "online", "allowed", "cpus", "caches", "nics", "disks"] {
        assert_eq!(here["machine"][key], recorded["machine"][key], "{key}");
    }
    // A recording is a host to `check`, too.
    let checked = home.run(&["check", "--root", "here.tar.gz", "--json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["host"]["cpus"], here["machine"]["online"]);
}

#[test]
fn a_described_machine_is_shown_in_all_forms() {
    let home = Home::new();
    let ended = home.run(&["topo", "--synthetic", EPYC, "--svg", "epyc.svg"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let counts = "2 packages, 8 NUMA nodes, 16 L3, 64 cores, 128 cpus";
    assert!(ended.stdout.contains(counts), "{ended:?}");
    assert!(ended.stdout.contains("├─ die 1 · numa 1 32 GiB  cpus 8-15,72-79\n"), "{ended:?}");
    let svg = fs::read_to_string(home.at("epyc.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains(counts), "{svg}");
    let ended = home.run(&["topo", "--synthetic", EPYC, "--json"]);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let machine = &value["machine"];
    assert_eq!(machine["numa"][1]["cpus"], "8-15,72-79");
    assert_eq!(machine["numa"][1]["distances"], "16 10 16 16 32 32 32 32");
    assert_eq!(machine["caches"][0]["size_bytes"], 8 << 20);
    assert_eq!(machine["cpus"].as_array().unwrap().len(), 128);
}

#[test]
fn what_is_no_machine_is_refused_with_its_place() {
    let home = Home::new();
    fs::write(home.at("text"), "no archive").unwrap();
    for (arguments, status, told) in [
        (&["topo", "absent"][..], 3, "absent"),
        (&["topo", "text"], 3, "text"),
        (&["topo", "--synthetic", "package:2 dye:4"], 2, "column 11"),
        (&["topo", "--synthetic", ""], 2, "empty"),
        (&["topo", "text", "--synthetic", "core:1"], 2, "--synthetic"),
        (&["topo", "--record", "absent/here.tar.gz"], 3, "absent/here.tar.gz"),
        (&["topo", "--synthetic", "core:1", "--svg", "absent/x.svg"], 3, "absent/x.svg"),
    ] {
        let ended = home.run(arguments);
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(ended.stderr.contains(told), "{ended:?}");
    }
}
