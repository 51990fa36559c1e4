//! Lines of cassandra-stress tell the truth about latency where the original's do, and where they
//! do not a caveat says so; runs that end by themselves do so where they should.
//!
//! The expected figures of the stall are those of a queue: 10,000 operations, of which 2000 are due
//! while the target stands and wait up to 1 s; so one in twenty waits longer than 0.75 s, one in a
//! hundred longer than 0.95 s. Of all these only 16 are under way when it begins: one in 625.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::serve::{executed, two_cpus};
use rig::stress::{result, start};
use rig::{Ended, Home, RunDir, Serve, alone, eventually};
use std::time::Duration;

const RATE: u64 = 2000;
const WINDOW_S: u64 = 5;
const STALL: Duration = Duration::from_secs(1);

/// 2000 op/s for 5 s with 16 threads at a target that stands still for a second.
fn at_a_stall(home: &Home, serve: &Serve, client_cpu: &str, rate: &str, out: &str) -> Ended {
    let mut control = serve.control();
    let middle = executed(&mut control) + 2 * RATE;
    let out = home.at(out);
    let line = format!("write no-warmup duration={WINDOW_S}s -rate threads=16 {rate}={RATE}/s");
    let own = ["--client-cpus", client_cpu, "--out", out.to_str().unwrap()];
    let run = start(home, serve, &own, &line);
    let reached = eventually(Duration::from_secs(30), || executed(&mut control) >= middle);
    assert!(reached, "the run did not get to the middle of its window");
    serve.freeze(STALL);
    let ended = run.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(result(&ended, "Total partitions"), (RATE * WINDOW_S) as f64, "{ended:?}");
    assert_eq!(result(&ended, "Total errors"), 0.0, "{ended:?}");
    ended
}

#[test]
fn a_stall_shows_under_fixed_and_a_caveat_tells_that_it_does_not_under_throttle() {
    let _alone = alone();
    let home = Home::new();
    let (target_cpu, client_cpu) = two_cpus();
    let serve = Serve::start(&home, &["--cpus", &target_cpu]);
    let (p95, p99) = ("Latency 95th percentile", "Latency 99th percentile");
    let hides = "caveat: The lines of throttle= show service times";

    let fixed = at_a_stall(&home, &serve, &client_cpu, "fixed", "fixed");
    let (p95_ms, p99_ms) = (result(&fixed, p95), result(&fixed, p99));
    assert!((650.0..1200.0).contains(&p95_ms), "{p95_ms} ms: {fixed:?}");
    assert!((900.0..1400.0).contains(&p99_ms), "{p99_ms} ms: {fixed:?}");
    assert!(!fixed.stderr.contains(hides), "{fixed:?}");

    let throttled = at_a_stall(&home, &serve, &client_cpu, "throttle", "throttle");
    let (p95_ms, p99_ms) = (result(&throttled, p95), result(&throttled, p99));
    assert!(p95_ms < 200.0 && p99_ms < 400.0, "{p95_ms} and {p99_ms} ms: {throttled:?}");
    // Those that were under way are told.
    assert!(result(&throttled, "Latency max") > 900.0, "{throttled:?}");
    assert!(throttled.stderr.contains(hides), "{throttled:?}");

    // The run directories know it all, whatever is printed.
    for out in ["fixed", "throttle"] {
        let directory = RunDir(home.at(out));
        let [service, response] =
            ["service", "response"].map(|series| directory.series("total.hlog", series));
        assert_eq!((service.count(), response.count()), (RATE * WINDOW_S, RATE * WINDOW_S));
        let p99_s = |latency: &record::Latency| latency.quantile(0.99).as_secs_f64();
        let (waited_s, served_s) = (p99_s(&response), p99_s(&service));
        assert!((0.9..1.4).contains(&waited_s) && served_s < 0.4, "{out}: {waited_s}, {served_s}");
        let told = directory.summary().caveats.iter().any(|c| c.code == "stress-service-time");
        assert_eq!(told, out == "throttle");
    }
}

#[test]
fn more_threads_are_tried_until_they_bring_nothing() {
    let _alone = alone();
    let home = Home::new();
    // One operation in 500 us, however many are under way: 2000 op/s from 2 threads on.
    let serve = Serve::start(&home, &["--serial", "500us"]);
    let wait = Duration::from_secs(60);
    let wrote = start(&home, &serve, &[], "write n=200 no-warmup -rate threads=16").wait(wait);
    assert_eq!(wrote.status, Some(0), "{wrote:?}");

    let more = "-pop dist=uniform(1..200) -log interval=200ms no-settings -rate";
    let read = "read no-warmup";
    let stepped = format!("{read} err<0.2 n>3 n<5 {more} auto threads>=4 threads<=1000");
    let ended = start(&home, &serve, &[], &stepped).wait(Duration::from_secs(90));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.trim_end().ends_with("END"), "{ended:?}");
    let table: Vec<(f64, f64, f64)> = ended.stdout.lines().filter_map(step).collect();
    // Up to 9 steps are there; what they bring is known after three, and known to be too little
    // after five.
    assert!((4..=6).contains(&table.len()), "{table:?}");
    let threads: Vec<f64> = table.iter().map(|(threads, ..)| *threads).collect();
    assert_eq!(threads, [4.0, 104.0, 204.0, 304.0, 404.0, 504.0][..threads.len()]);
    for (threads, ops_s, mean_ms) in &table {
        assert!((1400.0..=2050.0).contains(ops_s), "capacity is 2000 op/s: {table:?}");
        let law_ms = threads / ops_s * 1e3;
        assert!((mean_ms / law_ms - 1.0).abs() < 0.25, "{mean_ms} ms, by the law {law_ms} ms");
    }

    // A rate that hardly varies is known soon; one that is to be known better than it can be takes
    // as many intervals as are allowed.
    let intervals = |end: &str| {
        let line = format!("{read} {end} {more} threads=8");
        let ended = start(&home, &serve, &[], &line).wait(wait);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let rows = ended.stdout.lines().filter(|line| line.starts_with("total,"));
        let stderr = rows.map(|row| row.split(',').nth(12).unwrap().trim().parse().unwrap());
        stderr.collect::<Vec<f64>>()
    };
    // What is behind the interval that was enough is the rest of the next one.
    let known = intervals("err<0.1 n>3 n<60");
    assert!((3..=20).contains(&known.len()), "{known:?}");
    assert!(known.iter().skip(2).any(|stderr| *stderr < 0.1), "{known:?}");
    let unknown = intervals("err<0.000001 n>3 n<8");
    assert!((8..=9).contains(&unknown.len()), "{unknown:?}");
}

/// Threads, operations per second and mean milliseconds of a line of the table of all steps.
fn step(line: &str) -> Option<(f64, f64, f64)> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let threads = cells.first()?.strip_suffix(" threadCount")?.trim().parse().ok()?;
    let value = |at: usize| cells.get(at)?.parse().ok();
    (cells.get(1) == Some(&"total")).then_some((threads, value(3)?, value(6)?))
}
