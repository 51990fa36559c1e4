//! The program tells the truth about latency: a target that stands still for two seconds shows in
//! the response times of all operations that were due meanwhile, and the figures of a closed loop
//! add up.
//!
//! The expected figures of the freeze are those of a queue: 50,000 operations, of which 10,000 are
//! due while the target stands and wait 0 to 2 s; so one in ten waits longer than 1 s plus the time
//! that the backlog takes, one in a hundred longer than 1.8 s.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::summary::{OpSummary, Stats, Summary};
use rig::serve::{executed, two_cpus};
use rig::{Home, RunDir, Serve, alone, eventually};
use std::time::Duration;

const RATE: u64 = 5000;
const WARM_S: u64 = 1;
const WINDOW_S: u64 = 10;
const FREEZE: Duration = Duration::from_secs(2);
/// One operation in five is slow for being frozen, so that the median of all is this quantile of
/// the others.
const P50_WITHOUT_THE_FROZEN: f64 = 0.5 / 0.8;

/// 5000 op/s for 10 s at a target on another cpu, frozen in the middle of the window or not.
fn at_rate(home: &Home, serve: &Serve, client_cpu: &str, out: &str, freeze: bool) -> Summary {
    let mut control = serve.control();
    let before = executed(&mut control);
    let (target, out) = (serve.target(), home.at(out));
    let run = home.start(&[
        "run",
        "ycsb:a",
        "--target",
        &target,
        "--skip-load",
        "--records",
        "20k",
        "--rate",
        &format!("{RATE}/s"),
        "--warm",
        &format!("{WARM_S}s"),
        "--duration",
        &format!("{WINDOW_S}s"),
        "--client-cpus",
        client_cpu,
        "--out",
        out.to_str().unwrap(),
        "--json",
    ]);
    if freeze {
        // The freeze is 4 s into the window by the count of what has arrived, whenever it began.
        let middle = before + (WARM_S + 4) * RATE;
        let reached = eventually(Duration::from_secs(30), || executed(&mut control) >= middle);
        assert!(reached, "the run did not get to the middle of its window");
        serve.freeze(FREEZE);
    }
    let ended = run.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    ended.summary()
}

fn response(op: &OpSummary) -> Stats {
    op.response.expect("the rate was kept, so there is a response time")
}

#[test]
fn a_frozen_target_shows_in_the_response_times_of_all_who_waited() {
    let _alone = alone();
    let home = Home::new();
    let (target_cpu, client_cpu) = two_cpus();
    let serve = Serve::start(&home, &["--cpus", &target_cpu]);
    // Creates and loads the table.
    let target = serve.target();
    let create = ["run", "ycsb:a", "--records", "20k", "--ops", "1000", "--warm", "0s"];
    home.summary(&[&create[..], &["--target", &target]].concat());

    // What else runs on this host moves the median of one run; a client that let the freeze into
    // the service time would move it in every pair.
    let pair = |number: u32| {
        let (calm, frozen) = (format!("calm-{number}"), format!("frozen-{number}"));
        assert_calm(&at_rate(&home, &serve, &client_cpu, &calm, false));
        assert_frozen(&at_rate(&home, &serve, &client_cpu, &frozen, true));
        assert_frozen_over_all(&RunDir(home.at(&frozen)));
        let due_us = service_us(&home, &calm, P50_WITHOUT_THE_FROZEN);
        let (calm_us, frozen_us) = (service_us(&home, &calm, 0.5), service_us(&home, &frozen, 0.5));
        println!("service p50 us: calm {calm_us}, due {due_us}, frozen {frozen_us}");
        (0.5..=2.0).contains(&(frozen_us / due_us)) && frozen_us < 5000.0
    };
    assert!((1..=3).any(pair), "the freeze moves the median of the service time");
}

fn assert_calm(summary: &Summary) {
    assert_complete(summary);
    for op in summary.latency_us.values() {
        assert!(response(op).p90 < 100_000.0, "the calm run was not calm: {summary:?}");
    }
}

fn assert_frozen(summary: &Summary) {
    assert_complete(summary);
    for (name, op) in &summary.latency_us {
        let response = response(op);
        let (p90_s, p99_s) = (response.p90 / 1e6, response.p99 / 1e6);
        assert!((0.9..=1.5).contains(&p90_s), "{name}: response p90 {p90_s} s");
        assert!((1.8..=2.2).contains(&p99_s), "{name}: response p99 {p99_s} s");
        assert!(response.max / 1e6 >= 1.9, "{name}: response max {} us", response.max);
    }
}

/// The same in the histograms, over both operations.
fn assert_frozen_over_all(directory: &RunDir) {
    let all = directory.series("total.hlog", "response");
    assert_eq!(all.count(), WINDOW_S * RATE);
    let (p90_s, p99_s) = (all.quantile(0.9).as_secs_f64(), all.quantile(0.99).as_secs_f64());
    assert!((0.9..=1.5).contains(&p90_s), "response p90 over all {p90_s} s");
    assert!((1.8..=2.2).contains(&p99_s), "response p99 over all {p99_s} s");
}

fn assert_complete(summary: &Summary) {
    assert_eq!((summary.ops, summary.errors), (WINDOW_S * RATE, 0), "{summary:?}");
    assert_eq!(summary.latency_us.len(), 2, "reads and updates");
}

fn service_us(home: &Home, run: &str, quantile: f64) -> f64 {
    let service = RunDir(home.at(run)).series("total.hlog", "service");
    service.quantile(quantile).0 as f64 / 1e3
}

#[test]
fn in_a_closed_loop_threads_are_throughput_times_response() {
    let _alone = alone();
    let home = Home::new();
    for (workload, threads) in [("ycsb:a", 1), ("ycsb:a", 64), ("ycsb:f", 7)] {
        let threads_text = threads.to_string();
        let summary = home.summary(&[
            "run",
            workload,
            "--records",
            "10k",
            "--threads",
            &threads_text,
            "--warm",
            "300ms",
            "--duration",
            "3s",
        ]);
        let ops: u64 = summary.latency_us.values().map(|op| op.ops).sum();
        assert_eq!((ops, summary.errors), (summary.ops, 0));
        let weighted = |op: &OpSummary| response(op).mean * op.ops as f64;
        let mean_us = summary.latency_us.values().map(weighted).sum::<f64>() / ops as f64;
        let law_us = f64::from(threads) / summary.ops_s * 1e6;
        let off = mean_us / law_us - 1.0;
        println!("{workload}, {threads} threads: {mean_us} us, by the law {law_us} us");
        assert!(off.abs() <= 0.01, "{workload}: mean {mean_us} us, by the law {law_us} us");
        assert!(summary.caveats.iter().all(|c| c.code != "littles-law"), "{summary:?}");
    }
}
