//! A real Cassandra that stands still, dies, comes back, or never does, under a run.
//!
//! The expected figures of the freeze are those of `tests/truth.rs`. Needs what
//! `tests/cassandra.rs` needs, else it is skipped with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::hlog::HlogReader;
use record::{Manifest, Outcome, Summary, Verdict};
use rig::cassandra::Cluster;
use rig::{Home, Process, RunDir, eventually};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

const ROWS: [&str; 7] =
    ["ycsb:a", "-p", "fieldcount=5", "-p", "fieldlength=34", "--records", "20k"];

/// Starts a run at the first instance.
fn start(cluster: &Cluster<'_>, out: &Path, extra: &[&str]) -> Process {
    let target = cluster.instances[0].address.to_string();
    let words = ["--json", "--target", &target, "--out", out.to_str().unwrap()];
    cluster.start(&[&["run"], &ROWS[..], &words, extra].concat())
}

/// Waits until so much of the measured window is on disk.
fn until_in_window(out: &Path, seconds: f64) {
    let log = out.join("trial-0001/counters.csv");
    let reached = eventually(Duration::from_secs(60), || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let times = text.lines().filter_map(|line| line.split(',').next()?.parse::<f64>().ok());
        times.fold(0.0, f64::max) >= seconds
    });
    assert!(reached, "the window did not get so far");
}

/// Operations that ended ok or timed out, by the second of the window in which they ended.
fn done_by_second(out: &Path) -> BTreeMap<u64, u64> {
    let log = File::open(out.join("trial-0001/latency.hlog")).unwrap();
    let mut done = BTreeMap::new();
    for entry in HlogReader::new(BufReader::new(log)) {
        let entry = entry.unwrap();
        // Also those of steps and classes have a dash in front of the series' name.
        if ["read-service", "update-service"].contains(&entry.tag.as_str()) {
            *done.entry(entry.start.as_secs_f64() as u64).or_default() += entry.latency.count();
        }
    }
    done
}

fn assert_complete(summary: &Summary) {
    assert_eq!(summary.outcomes.total(), summary.ops, "outcomes sum to the operations");
    assert_eq!(summary.errors, summary.ops - summary.outcomes.of(Outcome::Ok));
}

#[test]
fn a_run_tells_the_truth_of_a_cassandra_that_stalls_dies_and_comes_back_or_not() {
    let home = Home::new();
    // A freeze is to be late answers, not the server's own timeouts: that of a write is 2 s.
    let patient = ["cassandra.write_request_timeout=10s", "cassandra.read_request_timeout=10s"];
    let up = ["--listen", "127.72.1.1", "--heap", "1GiB", "--set", patient[0], "--set", patient[1]];
    let Some(mut cluster) = Cluster::up(&home, &up) else { return };
    let warm = [&ROWS[..], &["--ops", "120k", "--warm", "0s", "--threads", "64"]].concat();
    let ended = cluster.run(&warm);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    frozen(&home, &cluster);
    killed_and_back(&home, &mut cluster);
    killed_for_good(&home, &cluster);
}

/// 5000 op/s for 10 s, standing still for 2 s in the middle.
fn frozen(home: &Home, cluster: &Cluster<'_>) {
    let at_rate = ["--skip-load", "--rate", "5000/s", "--warm", "2s", "--duration", "10s"];
    let run = |out: &str, freeze: bool| -> Summary {
        let process = start(cluster, &home.at(out), &at_rate);
        if freeze {
            until_in_window(&home.at(out), 3.9);
            cluster.instances[0].freeze(Duration::from_secs(2));
        }
        let ended = process.wait(Duration::from_secs(60));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let summary = ended.summary();
        assert_eq!((summary.ops, summary.errors), (50_000, 0), "{summary:?}");
        summary
    };
    run("calm", false);
    let summary = run("frozen", true);
    for (name, op) in &summary.latency_us {
        let response = op.response.expect("the rate was kept");
        let (p90_s, p99_s) = (response.p90 / 1e6, response.p99 / 1e6);
        println!("{name}: response p90 {p90_s:.2} s, p99 {p99_s:.2} s");
        assert!((0.9..=1.5).contains(&p90_s), "{name}: response p90 {p90_s} s");
        assert!((1.8..=2.2).contains(&p99_s), "{name}: response p99 {p99_s} s");
    }
    let median_ms = |out: &str| {
        let service = RunDir(home.at(out)).series("total.hlog", "service");
        service.quantile(0.5).as_secs_f64() * 1e3
    };
    let (calm_ms, frozen_ms) = (median_ms("calm"), median_ms("frozen"));
    println!("service p50: calm {calm_ms:.2} ms, frozen {frozen_ms:.2} ms");
    // One operation in five was due in the freeze: were they late in the service time, the median
    // would move, if only to where five in eight were. What else runs moves it by less than this.
    let limit_ms = (4.0 * calm_ms).max(5.0);
    assert!(frozen_ms < limit_ms, "the freeze moves the service time: {frozen_ms} ms");
}

/// kill -9, and a start 5 s later: the run goes on and ends in time.
fn killed_and_back(home: &Home, cluster: &mut Cluster<'_>) {
    const WINDOW: Duration = Duration::from_secs(45);
    let out = home.at("back");
    let run = start(
        cluster,
        &out,
        &["--skip-load", "--threads", "16", "--warm", "1s", "--duration", "45s", "--timeout", "2s"],
    );
    let started = std::time::Instant::now();
    until_in_window(&out, 2.9);
    cluster.instances[0].kill();
    std::thread::sleep(Duration::from_secs(5));
    cluster.instances[0].start_again();
    let ended = run.wait(WINDOW + Duration::from_secs(60));
    let took = started.elapsed();
    assert!(took < WINDOW + Duration::from_secs(15), "it took {took:?}");
    let summary = ended.summary();
    assert_complete(&summary);
    let lost = summary.outcomes.of(Outcome::ConnectionLost);
    println!("{} op, {} errors, {lost} lost with their connection", summary.ops, summary.errors);
    assert!(lost > 0, "{:?}", summary.outcomes);
    let expected = i32::from(summary.errors as f64 > summary.ops as f64 * 0.01);
    assert_eq!(ended.status, Some(expected), "{}", ended.stderr);
    assert!(summary.caveats.iter().any(|c| c.code == "connections-lost"));
    let done = done_by_second(&out);
    let at = |second: u64| done.get(&second).copied().unwrap_or_default();
    assert!(at(1) > 0 && at(6) == 0, "it was dead then: {done:?}");
    assert!((40..45).all(|second| at(second) > 0), "it did not go on: {done:?}");
}

/// kill -9, and nothing more: the run ends after `--give-up` and leaves what it has.
fn killed_for_good(home: &Home, cluster: &Cluster<'_>) {
    let out = home.at("gone");
    let run = start(
        cluster,
        &out,
        &["--skip-load", "--warm", "0s", "--duration", "120s", "--give-up", "5s"],
    );
    until_in_window(&out, 1.9);
    cluster.instances[0].kill();
    let ended = run.wait(Duration::from_secs(40));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.after < Duration::from_secs(30), "{:?}", ended.after);
    assert_complete(&ended.summary());
    let directory = RunDir(out.clone());
    assert_eq!(directory.summary().ops, ended.summary().ops);
    let manifest: Manifest = directory.manifest();
    assert_eq!(manifest.verdict, Verdict::Failed);
    assert!(manifest.failure.unwrap().contains("--give-up"));
    let rebuilt = home.run(&["report", out.to_str().unwrap()]);
    assert_eq!(rebuilt.status, Some(0), "{rebuilt:?}");
}
