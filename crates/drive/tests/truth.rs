//! The recorded times are true: they equal a log of every operation, and the laws of a closed loop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Arrivals, Load, OpDone, Unwitnessed, Witness};
use record::{Latency, Outcome};
use rig::{SECOND, closed, drive, load, open, ops, plan, prepare, run, serve};
use std::collections::BTreeMap;
use target::Storage;
use units::Nanos;

/// Keeps every operation.
#[derive(Default)]
struct Log(Vec<OpDone>);

impl Witness for Log {
    fn op(&mut self, done: OpDone) {
        self.0.push(done);
    }
}

/// The value below which a share `q` of `sorted` lies, as HdrHistogram counts it.
fn exact_quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

fn assert_equal_within_1_percent(histogram: &Latency, mut exact: Vec<u64>, what: &str) {
    exact.sort_unstable();
    assert_eq!(histogram.count(), exact.len() as u64, "{what}");
    for q in [0.0001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
        let (recorded, exact) = (histogram.quantile(q).0 as f64, exact_quantile(&exact, q) as f64);
        assert!(
            (recorded - exact).abs() <= exact * 0.01 + 1.0,
            "{what} at {q}: {recorded} is not {exact}"
        );
    }
    let mean = exact.iter().sum::<u64>() as f64 / exact.len() as f64;
    assert!((histogram.mean() - mean).abs() <= mean * 0.01, "{what}: mean");
}

#[test]
fn histograms_equal_a_log_of_every_operation() {
    let target = serve(Storage::Memory);
    let plan = plan("a", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    for the_load in [
        closed(32, Amount::Duration(SECOND)),
        open("5000/s", Amount::Duration(SECOND), 4096),
        Load { warm: Nanos::from_millis(300), ..open("7777/s", Amount::Ops(5000), 64) },
    ] {
        let drive = drive(target.local_addr(), &encoder, 2, the_load);
        let (driven, logs, counts) = run(&drive, vec![Log::default(), Log::default()]);
        let all: Vec<OpDone> = logs.into_iter().flat_map(|log| log.0).collect();
        assert_eq!(ops(&driven), all.len() as u64);
        assert_eq!(counts.0.iter().sum::<u64>(), all.len() as u64, "intervals hold all");
        for (index, op) in driven.total.ops.iter().enumerate() {
            let own = all.iter().filter(|done| usize::from(done.operation) == index);
            let of = |time: fn(&OpDone) -> Nanos| own.clone().map(|done| time(done).0).collect();
            assert_equal_within_1_percent(&op.response, of(|d| d.done - d.scheduled), "response");
            assert_equal_within_1_percent(&op.service, of(|d| d.done - d.sent.unwrap()), "service");
            assert_equal_within_1_percent(&op.lag, of(|d| d.sent.unwrap() - d.scheduled), "lag");
        }
        // Operations belong to the window by when they were due.
        let end = driven.window.end;
        for done in &all {
            assert!(
                done.scheduled >= driven.window.start
                    && end.is_none_or(|end| done.scheduled <= end)
            );
        }
    }
}

#[test]
fn a_closed_loop_keeps_littles_law() {
    let target = serve(Storage::Memory);
    let plan = plan("a", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    for (threads, workers) in [(1, 1), (16, 1), (50, 2)] {
        let warm =
            Load { warm: Nanos::from_millis(200), ..closed(threads, Amount::Duration(SECOND)) };
        let (driven, ..) =
            run(&drive(target.local_addr(), &encoder, workers, warm), vec![Unwitnessed; workers]);
        let mut response = Latency::new();
        driven.total.ops.iter().for_each(|op| response.merge(&op.response));
        let first = driven.usage.iter().map(|u| u.first_scheduled).min().unwrap();
        let last = driven.usage.iter().map(|u| u.last_done).max().unwrap();
        let expected_ns = threads as f64 * last.since(first).0 as f64 / response.count() as f64;
        let off = response.mean() / expected_ns - 1.0;
        assert!(
            off.abs() < 0.01,
            "{threads} threads: mean response is off by {:.2} %",
            off * 100.0
        );
    }
}

#[test]
fn a_schedule_is_driven_to_the_operation_whatever_the_warm_up() {
    let target = serve(Storage::Null);
    let plan = plan("c", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    for (rate, expected) in [("1000/s", 500), ("99999/s", 50_000), ("333/s", 167)] {
        let half = Nanos::from_millis(500);
        let warm =
            Load { warm: Nanos::from_millis(123), ..open(rate, Amount::Duration(half), 4096) };
        let (driven, ..) =
            run(&drive(target.local_addr(), &encoder, 2, warm), vec![Unwitnessed; 2]);
        assert_eq!(ops(&driven), expected, "{rate}");
    }
}

#[test]
fn a_throttled_closed_loop_stays_below_its_cap() {
    let target = serve(Storage::Null);
    let plan = plan("c", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    let throttle = Some("2000/s".parse().unwrap());
    let the_load = Load {
        arrivals: Arrivals::Closed { threads: 8, throttle },
        ..closed(8, Amount::Duration(SECOND))
    };
    let drive = drive(target.local_addr(), &encoder, 2, the_load);
    let (driven, logs, _) = run(&drive, vec![Log::default(), Log::default()]);
    // Each of two workers allows one operation per millisecond, whatever a busy host lets pass.
    for Log(mut own) in logs {
        own.sort_by_key(|done| done.scheduled);
        assert!(own.len() > 100, "{} operations are too few to tell", own.len());
        for pair in own.windows(2) {
            let gap = pair[1].scheduled - pair[0].scheduled;
            assert!(gap >= Nanos(999_999), "{gap}");
        }
    }
    assert!(ops(&driven) <= 2000, "{}", ops(&driven));
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    let sequence = |workload: &str, seed: u64, threads: usize| {
        let target = serve(Storage::Null);
        let plan = plan(workload, &[], 10_000, Some(5000));
        let encoder = prepare(target.local_addr(), &plan);
        // A warm-up of unknown length must not shift what is measured.
        let load = Load { warm: Nanos::from_millis(50), ..closed(threads, Amount::Ops(5000)) };
        let mut drive = drive(target.local_addr(), &encoder, 2, load);
        drive.seed = seed;
        let (_, logs, _) = run(&drive, vec![Log::default(), Log::default()]);
        logs.into_iter()
            .map(|log| log.0.into_iter().map(|done| (done.operation, done.key)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    for workload in ["a", "b", "c", "f"] {
        // One client per worker: operations are done in the order in which they were drawn.
        assert_eq!(sequence(workload, 1, 2), sequence(workload, 1, 2), "workload {workload}");
        assert_ne!(sequence(workload, 1, 2), sequence(workload, 2, 2), "workload {workload}");
        // Many clients finish in any order; what each worker has drawn is the same.
        let multiset = |sequence: Vec<Vec<(u16, u64)>>| {
            sequence
                .into_iter()
                .map(|worker| {
                    let mut counts = BTreeMap::new();
                    worker.into_iter().for_each(|op| *counts.entry(op).or_insert(0u32) += 1);
                    counts
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(multiset(sequence(workload, 1, 40)), multiset(sequence(workload, 1, 2)));
    }
}

#[test]
fn outcomes_of_a_run_without_trouble_are_all_ok() {
    let target = serve(Storage::Memory);
    let plan = plan("d", &[], 1000, Some(3000));
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 2);
    let (driven, ..) = run(
        &drive(target.local_addr(), &encoder, 2, closed(32, Amount::Ops(3000))),
        vec![Unwitnessed; 2],
    );
    for op in &driven.total.ops {
        assert_eq!(op.count(Outcome::Ok), op.ops());
    }
    assert_eq!(ops(&driven), 3000);
    assert!(driven.usage.iter().all(|u| u.intervals_merged == 0 && u.acknowledgements_lost == 0));
}
