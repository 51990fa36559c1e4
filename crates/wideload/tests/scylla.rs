//! A run on a target that is like a ScyllaDB host: every request goes to the shard that has its
//! key, and how they lay on the shards is told wherever the figures are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Summary;
use rig::{Home, Serve};
use stage::Signal;
use std::time::Duration;

const RUN: [&str; 12] = [
    "run",
    "ycsb:a",
    "--records",
    "2k",
    "--ops",
    "20k",
    "--warm",
    "200ms",
    "-p",
    "requestdistribution=uniform",
    "--out",
    "out",
];

/// Runs at a target with these shards, which is ended then; what it has counted: by shard all
/// requests, and the misrouted ones.
fn run(serve: &[&str], arguments: &[&str]) -> (Home, Summary, String, Vec<[u64; 2]>) {
    let home = Home::new();
    let serve = Serve::start(&home, &[&["--scylla", "--shards", "4"], serve].concat());
    let target = serve.target();
    let ended = home.run(&[&RUN[..], &["--target", &target], arguments].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(serve.process.signal(Signal::TERM));
    let served = serve.process.wait(Duration::from_secs(20));
    assert_eq!(served.status, Some(0), "{served:?}");
    let told = served.stdout.lines().find_map(|line| line.strip_prefix("requests by shard: "));
    let shard = |text: &str| {
        let (all, misrouted) = text.split_once(" (").unwrap();
        let misrouted = misrouted.strip_suffix(" misrouted)").unwrap();
        [all, misrouted].map(|number| number.trim().parse().unwrap())
    };
    let counted = told.unwrap().split(',').map(shard).collect();
    let summary = rig::RunDir(home.at("out")).summary();
    home.assert_nothing_left();
    (home, summary, ended.stdout, counted)
}

#[test]
fn every_request_goes_to_its_shard_and_the_balance_is_told() {
    let (home, summary, printed, counted) = run(&[], &[]);
    let shards = summary.shards.unwrap();
    assert_eq!((shards.count, shards.requests, shards.astray), (4, 20_000, 0));
    // Uniform keys: 5000 each, and the share of the keys that each has.
    assert!(shards.least > 4000 && shards.most < 6000, "{shards:?}");
    assert!(printed.contains("\nshards    4, each with "), "{printed}");
    // The control plane's requests are among them.
    assert!(counted.iter().all(|[all, misrouted]| *all > 4000 && *misrouted == 0), "{counted:?}");
    let counters = std::fs::read_to_string(home.at("out/trial-0001/counters.csv")).unwrap();
    assert_eq!(counters.matches(",shard_requests,").count(), 4);
    let page = std::fs::read_to_string(home.at("out/report.html")).unwrap();
    assert!(page.contains("shard requests") && page.contains("shard-3"), "no balance of shards");
}

#[test]
fn tablets_that_move_in_mid_run_are_followed() {
    let topology = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}";
    let (_, summary, _, counted) = run(
        &["--move-tablets", "100ms"],
        &["--replication", topology, "--rate", "10k/s", "--threads", "8"],
    );
    let shards = summary.shards.unwrap();
    assert_eq!((shards.requests, shards.astray), (20_000, 0));
    assert!(shards.tablets_told > 0, "{shards:?}");
    let misrouted: u64 = counted.iter().map(|[_, misrouted]| misrouted).sum();
    let all: u64 = counted.iter().map(|[all, _]| all).sum();
    // A move is found out by what is in flight, and then known.
    assert!(misrouted > 0 && misrouted * 5 < all, "{misrouted} of {all}");
}

#[test]
fn connections_that_are_too_few_are_a_caveat() {
    let (_, summary, ..) = run(&["--storage", "null"], &["--connections", "1", "--threads", "1"]);
    let shards = summary.shards.unwrap();
    assert!(shards.astray > 10_000, "{shards:?}");
    assert!(summary.caveats.iter().any(|caveat| caveat.code == "shards-missed"), "{summary:?}");
}

#[test]
fn flags_of_shards_are_checked() {
    let home = Home::new();
    for (flags, why) in [
        (&["--shards", "4"][..], "--scylla"),
        (&["--scylla", "--shards", "0"], "1..=4096"),
        (&["--scylla", "--shards", "70000"], "1..=4096"),
        (&["--scylla", "--move-tablets", "0s"], "at least 1ms"),
    ] {
        let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        assert_eq!(ended.status, Some(2), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{flags:?}: {ended:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--scylla", "--shard-aware-port", &port];
    let ended = home.run(&serve);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("choose another port with --shard-aware-port"), "{ended:?}");
}
