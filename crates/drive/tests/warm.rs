//! A warm-up that its observer ends: the window begins when it says so, with exactly its own
//! operations. And loads that continue earlier ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{
    Amount, Arrivals, Drive, Driven, Ended, Interval, Load, Observer, OpDone, WARM_BLOCK, Window,
    Witness,
};
use rig::{SECOND, closed, drive, load, ok, open, ops, plan, prepare, serve};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use target::Storage;
use units::Nanos;

/// Ends the warm-up after so many of its intervals.
#[derive(Default)]
struct Ender {
    after: usize,
    /// Operations of each interval of the warm-up.
    warm: Vec<u64>,
    /// Stops the run when the window is not known by then.
    stop_after: usize,
    stop: Arc<AtomicBool>,
    latest: Option<Nanos>,
}

fn count(interval: &Interval<'_>) -> u64 {
    interval.record.ops.iter().map(record::OpRecord::ops).sum()
}

impl Observer for Ender {
    fn tick(&mut self, _: Nanos, window: &Window) {
        self.latest.get_or_insert(window.start);
    }

    fn ends_warm_up(&self) -> bool {
        true
    }

    fn warm(&mut self, interval: Interval<'_>) -> bool {
        assert!(interval.record.end > interval.record.start);
        self.warm.push(count(&interval));
        if self.stop_after > 0 && self.warm.len() >= self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.after > 0 && self.warm.len() >= self.after
    }

    fn interval(&mut self, _: Interval<'_>) -> Result<(), io::Error> {
        Ok(())
    }
}

/// Keeps what each worker has done.
#[derive(Default)]
struct Log(Vec<OpDone>);

impl Witness for Log {
    fn op(&mut self, done: OpDone) {
        self.0.push(done);
    }
}

fn run(drive: &Drive, mut ender: Ender) -> (Driven, Vec<Vec<OpDone>>, Ender) {
    let (witnesses, stop) = (vec![Log::default(), Log::default()], ender.stop.clone());
    let (driven, logs) = drive::run(drive, witnesses, &mut ender, &stop).unwrap();
    (driven, logs.into_iter().map(|log| log.0).collect(), ender)
}

fn warm(load: Load, warm: Nanos) -> Load {
    Load { warm, ..load }
}

#[test]
fn the_window_begins_when_the_observer_says_so_with_exactly_its_operations() {
    let target = serve(Storage::Null);
    let plan = plan("a", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    let minute = Nanos::from_secs(60);
    for the_load in [
        closed(6, Amount::Ops(5001)),
        closed(6, Amount::Duration(SECOND)),
        open("5000/s", Amount::Duration(SECOND), 4096),
        open("3333/s", Amount::Ops(3333), 64),
    ] {
        let drive = drive(target.local_addr(), &encoder, 2, warm(the_load, minute));
        let (driven, logs, ender) = run(&drive, Ender { after: 3, ..Ender::default() });
        let window = driven.window;
        let took = window.start.since(window.begin);
        assert!(took < Nanos::from_secs(30), "{the_load:?}: warm for {took}");
        assert!(took.0 > 3 * WARM_BLOCK.0 && ender.latest == Some(window.begin + minute));
        assert!(ender.warm.len() >= 3 && ender.warm[..3].iter().all(|&ops| ops > 0));
        let all: Vec<_> = logs.into_iter().flatten().collect();
        assert_eq!(all.len() as u64, ops(&driven));
        match (the_load.amount, the_load.arrivals) {
            (Amount::Ops(amount), _) => assert_eq!(ops(&driven), amount, "{the_load:?}"),
            (_, Arrivals::Open { .. }) => assert_eq!(ops(&driven), 5000, "{the_load:?}"),
            _ => assert!(!all.is_empty()),
        }
        for done in &all {
            assert!(done.scheduled >= window.start);
            assert!(window.end.is_none_or(|end| done.scheduled <= end));
        }
    }
}

#[test]
fn what_is_measured_does_not_depend_on_when_the_warm_up_ends() {
    let target = serve(Storage::Null);
    let plan = plan("a", &[], 10_000, Some(3000));
    let encoder = prepare(target.local_addr(), &plan);
    let sequence = |after| {
        let load = warm(closed(2, Amount::Ops(3000)), Nanos::from_secs(60));
        let drive = drive(target.local_addr(), &encoder, 2, load);
        let (_, logs, _) = run(&drive, Ender { after, ..Ender::default() });
        let draws = |log: Vec<OpDone>| log.into_iter().map(|d| (d.operation, d.key)).collect();
        logs.into_iter().map(draws).collect::<Vec<Vec<_>>>()
    };
    assert_eq!(sequence(1), sequence(4));
}

#[test]
fn a_warm_up_that_nobody_ends_takes_as_long_as_it_may() {
    let target = serve(Storage::Null);
    let plan = plan("c", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    let load = warm(open("2000/s", Amount::Ops(500), 64), Nanos::from_millis(1700));
    let (driven, _, ender) = run(
        &drive(target.local_addr(), &encoder, 2, load),
        // Not asked again.
        Ender { after: 100, ..Ender::default() },
    );
    assert_eq!(driven.window.start, driven.window.begin + load.warm);
    assert_eq!((ops(&driven), ender.latest), (500, Some(driven.window.start)));
    // Nothing of the warm-up is lost, but what was under way at its end.
    let warm: u64 = ender.warm.iter().sum();
    assert!((1700..=3400).contains(&warm), "{warm} of 3400");
}

#[test]
fn a_run_can_be_stopped_before_the_window_is_known() {
    let target = serve(Storage::Null);
    let plan = plan("c", &[], 1000, None);
    let encoder = prepare(target.local_addr(), &plan);
    for the_load in [closed(4, Amount::Ops(500)), open("2000/s", Amount::Ops(500), 64)] {
        let load = warm(the_load, Nanos::from_secs(60));
        let drive = drive(target.local_addr(), &encoder, 2, load);
        let (driven, logs, _) = run(&drive, Ender { stop_after: 2, ..Ender::default() });
        assert_eq!(driven.ended, Ended::Stopped);
        assert_eq!((ops(&driven), logs.concat().len()), (0, 0), "nothing was measured");
    }
}

#[test]
fn a_load_goes_on_behind_the_inserts_of_the_one_before() {
    let target = serve(Storage::Memory);
    let plan = plan("d", &[], 1000, Some(4000));
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 2);
    let mut first = drive(target.local_addr(), &encoder, 2, closed(16, Amount::Ops(4000)));
    let (driven, logs, _) = run(&first, Ender::default());
    let new = |logs: &[Vec<OpDone>]| -> Vec<u64> {
        let keys = logs.iter().flatten().filter(|d| d.operation == 1).map(|d| d.key);
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys
    };
    let before = new(&logs);
    let inserted: Vec<u64> = driven.usage.iter().map(|u| u.inserts).collect();
    assert_eq!(inserted.iter().sum::<u64>(), before.len() as u64);
    assert!(before.len() > 50 && before[0] == 1000, "{} inserts", before.len());

    (first.inserted, first.seed) = (inserted, 8);
    let (driven, logs, _) = run(&first, Ender::default());
    let behind = new(&logs);
    assert_eq!(ok(&driven), 4000, "what is read is there");
    assert!(behind.iter().all(|key| before.binary_search(key).is_err()), "no key comes twice");
    assert!(behind.len() > 50);
    // Reads of the latest keys find those of the load before.
    let old = before[0]..=before[before.len() - 1];
    let reads = logs.iter().flatten().filter(|d| d.operation == 0 && old.contains(&d.key));
    assert!(reads.count() > 0);
}
