//! A real ring of Cassandras that another instance joins under a run, and leaves again: it gets its
//! part of the load meanwhile, unless the hosts are fixed.
//!
//! Needs what `tests/cassandra.rs` needs, else it is skipped with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Outcome;
use record::events::{EventKind, read_events};
use rig::cassandra::{Cluster, Instance};
use rig::{Home, Process, eventually};
use stage::Signal;
use std::fs;
use std::path::Path;
use std::time::Duration;

const ROWS: [&str; 6] = ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "fieldlength=20"];

/// Starts a run that goes on until it is told to end.
fn start(cluster: &Cluster<'_>, out: &Path, table: &str, more: &[&str]) -> Process {
    let run = ["run", "ycsb:a", "--json", "--out", out.to_str().unwrap()];
    let data = ["--keyspace", "growing", "--table", table, "--replication", "2"];
    let load = ["--records", "2k", "--rate", "300/s", "--warm", "0s", "--duration", "10m"];
    // Each read sees each write: a replica that drops one on a busy machine is outvoted.
    let surely = ["--consistency", "quorum"];
    let process = cluster.start(&[&run[..], &ROWS, &data, &load, &surely, more].concat());
    let log = out.join("trial-0001/counters.csv");
    let begun = || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() > 1);
    assert!(eventually(Duration::from_secs(90), begun), "the run did not begin");
    process
}

fn coordinated(instance: &Instance, table: &str) -> u64 {
    let metrics = ["coordinator_read_latency", "coordinator_write_latency"];
    metrics.iter().map(|metric| instance.counted(metric, "growing", table)).sum()
}

#[test]
fn an_instance_that_joins_in_mid_run_gets_its_part_until_it_leaves() {
    let home = Home::new();
    let up = ["--instances", "2", "--listen", "127.74.1.1", "--heap", "512MiB"];
    let Some(mut cluster) = Cluster::up(&home, &up) else { return };
    let addresses: Vec<_> = cluster.instances.iter().map(|i| i.address.to_string()).collect();
    let outs = ["free", "fixed"].map(|name| home.at(name));
    let free = start(&cluster, &outs[0], "free", &["--target", &addresses[0]]);
    let both = addresses.join(",");
    let fixed = start(&cluster, &outs[1], "fixed", &["--target", &both, "--fixed-hosts"]);

    // A quarter of the ring is its own.
    cluster.join(1 << 62);
    let third = &cluster.instances[2];
    assert!(eventually(Duration::from_secs(120), || third.answers()), "it did not join");
    let asked = || coordinated(third, "free") > 300;
    let in_time = eventually(Duration::from_secs(60), asked);
    let told = fs::read_to_string(outs[0].join("trial-0001/events.csv")).unwrap_or_default();
    assert!(in_time, "it was asked {} times: {told}", coordinated(third, "free"));
    assert_eq!(coordinated(third, "fixed"), 0, "it is not among the fixed hosts");

    // It hands its rows back, and is asked no more.
    let left = third.decommission(&home).wait(Duration::from_secs(120));
    assert_eq!(left.status, Some(0), "{left:?}");
    let leaves = format!("{} left", third.address);
    let told = || fs::read_to_string(outs[0].join("trial-0001/events.csv")).unwrap_or_default();
    let in_time = eventually(Duration::from_secs(30), || told().contains(&leaves));
    assert!(in_time, "that it left was not seen: {}", told());

    for (process, out) in [(free, &outs[0]), (fixed, &outs[1])] {
        assert!(process.signal(Signal::INT));
        let ended = process.wait(Duration::from_secs(60));
        assert_eq!(ended.status, Some(130), "{ended:?}");
        let summary = ended.summary();
        println!("{:?}: {:?}", out.file_name(), summary.outcomes);
        for wrong in [Outcome::Invalid, Outcome::NotFound] {
            assert_eq!(summary.outcomes.of(wrong), 0, "{:?}", summary.outcomes);
        }
        // One that has handed its rows back fails what it is asked until it is seen to be gone, up
        // to some seconds later; the fixed hosts stay.
        let errors_max = if out == &outs[0] { summary.ops / 5 } else { summary.ops / 100 };
        assert!(summary.errors < errors_max, "{:?}", summary.outcomes);
        let changed = summary.caveats.iter().any(|caveat| caveat.code == "ring-changed");
        let events = fs::File::open(out.join("trial-0001/events.csv"));
        let events = events.map_or(Vec::new(), |file| read_events(file, 100).unwrap());
        println!("{events:?}");
        let joined = |text: &str| text.contains(&format!("{} joined", third.address));
        let joined = events.iter().any(|e| e.kind == EventKind::Ring && joined(&e.text));
        // To those who stay with the first two, tokens have moved.
        assert_eq!((joined, changed), (out == &outs[0], true), "{events:?}");
    }
}
