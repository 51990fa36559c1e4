//! A real ring of three Cassandras: what is written is what is read, requests go to a replica, and
//! the death of one instance is borne by the others.
//!
//! Needs what `tests/cassandra.rs` needs, else it is skipped with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Outcome;
use rig::cassandra::{Cluster, Instance};
use rig::{Home, eventually};
use std::net::TcpListener;
use std::time::{Duration, Instant};

#[test]
fn a_ring_keeps_its_rows_is_asked_at_replicas_and_survives_a_death() {
    let home = Home::new();
    let up = ["--instances", "3", "--listen", "127.73.1.1", "--heap", "512MiB"];
    let Some(mut cluster) = Cluster::up(&home, &up) else { return };
    rows_come_back(&cluster);
    requests_reach_a_replica(&cluster);
    a_death_is_borne(&home, &mut cluster);
}

/// All six workloads, verified, with one and with three replicas.
fn rows_come_back(cluster: &Cluster<'_>) {
    for (replication, consistency) in [("1", "ONE"), ("3", "QUORUM")] {
        for workload in ["a", "b", "c", "d", "e", "f"] {
            let (name, keyspace) = (format!("ycsb:{workload}"), format!("rf{replication}"));
            // D and E add keys, so each has a table of its own.
            let table = format!("rows_{workload}");
            let data = ["--keyspace", &keyspace, "--table", &table, "--replication", replication];
            let rows = ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "fieldlength=20"];
            let load = ["--records", "2k", "--ops", "4k", "--warm", "0s", "--threads", "16"];
            let level = ["--consistency", consistency];
            let ended = cluster.run(&[&[&name[..]], &data[..], &rows, &load, &level].concat());
            assert_eq!(ended.status, Some(0), "{name}, RF {replication}: {ended:?}");
            let summary = ended.summary();
            let ok = summary.outcomes.of(Outcome::Ok);
            assert_eq!((summary.ops, ok), (4000, 4000), "{name}, RF {replication}: {summary:?}");
        }
    }
}

/// With one replica, a request that was sent to a host without the key would be coordinated by one
/// host and served by another.
fn requests_reach_a_replica(cluster: &Cluster<'_>) {
    const OPS: u64 = 20_000;
    let counts = |metric: &str| {
        let count = |instance: &Instance| instance.counted(metric, "rf1", "rows_c");
        cluster.instances.iter().map(count).collect::<Vec<u64>>()
    };
    let metrics = ["coordinator_read_latency", "local_read_latency"];
    let before = metrics.map(counts);
    let rows = ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "fieldlength=20"];
    let data = ["--keyspace", "rf1", "--table", "rows_c", "--records", "2k", "--skip-load"];
    let load = ["--ops", "20k", "--warm", "0s", "--threads", "16"];
    let ended = cluster.run(&[&["ycsb:c"], &data[..], &rows, &load].concat());
    assert_eq!((ended.status, ended.summary().errors), (Some(0), 0), "{ended:?}");
    let after = metrics.map(counts);
    let grown = |i: usize| -> Vec<u64> {
        after[i].iter().zip(&before[i]).map(|(after, before)| after - before).collect()
    };
    let (coordinated, served) = (grown(0), grown(1));
    println!("reads coordinated {coordinated:?}, served {served:?}");
    // What the control plane probes before the run is in them too.
    assert!(coordinated.iter().sum::<u64>() >= OPS, "{coordinated:?}");
    assert!(coordinated.iter().all(|&count| count > OPS / 10), "one is left out: {coordinated:?}");
    let elsewhere: u64 = coordinated.iter().zip(&served).map(|(c, s)| c.abs_diff(*s)).sum();
    assert!(elsewhere < OPS / 100, "coordinated {coordinated:?}, served {served:?}");
}

/// Three replicas, level ONE, one instance killed: the run goes on, the others share the load, and
/// the dead one is tried again less and less often.
fn a_death_is_borne(home: &Home, cluster: &mut Cluster<'_>) {
    let counts = |cluster: &Cluster<'_>, metric: &str| -> Vec<u64> {
        let living = &cluster.instances[..2];
        living.iter().map(|i| i.counted(metric, "rf3", "rows_a")).collect()
    };
    let out = home.at("death");
    let target = cluster.instances[0].address.to_string();
    let data = ["--keyspace", "rf3", "--table", "rows_a", "--records", "2k", "--skip-load"];
    let rows = ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "fieldlength=20"];
    let load = ["--duration", "20s", "--warm", "0s", "--threads", "16", "--connections", "1"];
    let more = ["--consistency", "ONE", "--target", &target, "--out", out.to_str().unwrap()];
    let run = cluster.start(
        &[&["run", "ycsb:a", "--json", "--timeout", "2s"], &data[..], &rows, &load, &more].concat(),
    );
    let log = out.join("trial-0001/counters.csv");
    let begun = || std::fs::read_to_string(&log).is_ok_and(|text| text.lines().count() > 1);
    assert!(eventually(Duration::from_secs(60), begun), "the run did not begin");
    cluster.instances[2].kill();
    let metrics = ["coordinator_read_latency", "coordinator_write_latency"];
    let before = metrics.map(|metric| counts(cluster, metric));
    let tries = tries(&cluster.instances[2].impersonate(), Duration::from_secs(13));
    let after = metrics.map(|metric| counts(cluster, metric));
    let ended = run.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    println!("{:?}; tries at s {tries:?}", summary.outcomes);
    assert!(summary.errors * 100 < summary.ops, "{:?}", summary.outcomes);
    assert_eq!(summary.outcomes.of(Outcome::Invalid), 0);
    for (before, after) in before.iter().zip(&after) {
        let grown: Vec<u64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        println!("coordinated by the living: {grown:?}");
        let (low, high) = (grown.iter().min().unwrap(), grown.iter().max().unwrap());
        assert!(*low > 1000 && *high < low * 5 / 4, "not balanced: {grown:?}");
    }
    assert!((3..60).contains(&tries.len()), "{} tries: {tries:?}", tries.len());
    // The control plane looks at the ring now and then, and so tries it too.
    let gaps = tries.windows(2).map(|pair| pair[1] - pair[0]);
    let longest_s = gaps.fold(0.0, f64::max);
    let (early, late): (Vec<f64>, Vec<f64>) = tries.iter().partition(|&&at_s| at_s < 6.5);
    assert!(longest_s > 2.0 && late.len() < early.len(), "tried at the same pace: {tries:?}");
    // Whether the others have noticed by the end is theirs; who is down is still of the ring.
    let events = std::fs::read_to_string(out.join("trial-0001/events.csv")).unwrap_or_default();
    assert!(!events.contains("The ring changed"), "{events}");
}

/// When somebody has tried to connect, in seconds; each is turned away.
fn tries(listener: &TcpListener, for_so_long: Duration) -> Vec<f64> {
    listener.set_nonblocking(true).unwrap();
    let began = Instant::now();
    let mut tries = Vec::new();
    while began.elapsed() < for_so_long {
        match listener.accept() {
            Ok(_) => tries.push(began.elapsed().as_secs_f64()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    tries
}
