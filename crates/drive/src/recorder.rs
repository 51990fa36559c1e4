//! Puts the workers' intervals together: in, one record per worker and interval; out, each interval
//! once, merged, in order, and the total.
//!
//! An interval is complete when every worker has handed over that interval or a later one (a worker
//! that found no spare record hands two intervals over as one). Runs on the caller's thread, beside
//! the data plane.

use crate::exchange::{RecorderEnd, WorkerInterval, WorkerUsage};
use crate::source::Window;
use record::IntervalRecord;
use record::hlog::Intervals;
use std::collections::BTreeMap;
use units::Nanos;

/// A merged interval, as an observer sees it.
#[derive(Debug)]
pub struct Interval<'a> {
    /// From 0 at the start of the window, or of the warm-up.
    pub index: u64,
    /// All workers' operations that were done in it.
    pub record: &'a IntervalRecord,
    /// Each worker's counters, as of its latest interval.
    pub usage: &'a [WorkerUsage],
}

/// The intervals of the warm-up or of the window, as far as they have come.
#[derive(Debug)]
struct Lane {
    /// Intervals that some worker has not handed over yet.
    pending: BTreeMap<u64, IntervalRecord>,
    /// By worker: the first interval that it has not handed over; MAX after its last.
    next: Vec<u64>,
    /// Start of the interval to be emitted next.
    start: Nanos,
}

impl Lane {
    fn new(workers: usize, start: Nanos) -> Self {
        Self { pending: BTreeMap::new(), next: vec![0; workers], start }
    }

    /// The first interval, once every worker has handed it or a later one over.
    fn pop(&mut self) -> Option<(u64, IntervalRecord)> {
        let complete = self.next.iter().copied().min().unwrap_or(u64::MAX);
        let entry = self.pending.first_entry().filter(|entry| *entry.key() < complete)?;
        let (index, mut record) = entry.remove_entry();
        record.start = self.start;
        self.start = self.start.max(record.end);
        Some((index, record))
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    ends: Vec<RecorderEnd>,
    intervals: Intervals,
    window_start: Nanos,
    warm: Lane,
    window: Lane,
    /// Cleared records for intervals.
    vacant: Vec<IntervalRecord>,
    pub(crate) total: IntervalRecord,
    pub(crate) usage: Vec<WorkerUsage>,
    parts: Vec<usize>,
}

impl Recorder {
    pub(crate) fn new(
        ends: Vec<RecorderEnd>,
        intervals: Intervals,
        window: &Window,
        parts: &[usize],
    ) -> Self {
        Self {
            usage: vec![
                WorkerUsage { first_scheduled: Nanos::MAX, ..WorkerUsage::default() };
                ends.len()
            ],
            warm: Lane::new(ends.len(), window.begin),
            window: Lane::new(ends.len(), window.start),
            ends,
            intervals,
            window_start: window.start,
            vacant: Vec::new(),
            total: IntervalRecord::new(parts),
            parts: parts.to_vec(),
        }
    }

    /// The window starts at `start`.
    pub(crate) fn open(&mut self, start: Nanos) {
        (self.window_start, self.window.start) = (start, start);
    }

    /// Takes one worker's interval; its record goes back to the worker, cleared.
    pub(crate) fn add(&mut self, interval: WorkerInterval) {
        let WorkerInterval { worker, index, record, usage, warm, last } = interval;
        let lane = if warm { &mut self.warm } else { &mut self.window };
        let pending = lane.pending.entry(index).or_insert_with(|| {
            self.vacant.pop().unwrap_or_else(|| IntervalRecord::new(&self.parts))
        });
        pending.merge(&record);
        self.ends[worker].give_back(record);
        lane.next[worker] = if last { u64::MAX } else { index + 1 };
        if !warm {
            self.warm.next[worker] = u64::MAX;
        }
        self.usage[worker] = usage;
    }

    /// Every worker has handed over its last interval.
    pub(crate) fn complete(&self) -> bool {
        self.window.next.iter().all(|&next| next == u64::MAX)
    }

    /// Emits what is complete of the window.
    pub(crate) fn emit(&mut self, mut observe: impl FnMut(Interval<'_>)) {
        while let Some((index, mut record)) = self.window.pop() {
            self.total.merge(&record);
            observe(Interval { index, record: &record, usage: &self.usage });
            record.clear();
            self.vacant.push(record);
        }
        self.total.start = self.window_start;
    }

    /// Emits what is complete of the warm-up.
    pub(crate) fn emit_warm(&mut self, mut observe: impl FnMut(Interval<'_>)) {
        while let Some((index, mut record)) = self.warm.pop() {
            observe(Interval { index, record: &record, usage: &self.usage });
            record.clear();
            self.vacant.push(record);
        }
    }

    /// Length of the first intervals.
    pub(crate) fn interval(&self) -> Nanos {
        self.intervals.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::exchange;
    use record::Outcome;

    fn interval(worker: usize, index: u64, ops: u64, last: bool) -> WorkerInterval {
        let mut record = Box::new(IntervalRecord::new(&[0]));
        record.end = Nanos(100 * (index + 1));
        for _ in 0..ops {
            record.ops[0].record(Outcome::Ok, Nanos(5), Nanos(6), Nanos(1));
        }
        let (usage, warm) = (WorkerUsage::default(), false);
        WorkerInterval { worker, index, record, usage, warm, last }
    }

    #[test]
    fn intervals_come_once_in_order_when_all_workers_have_passed_them() {
        let (_workers, ends, _full) = exchange(2, &[0]);
        let window = Window { begin: Nanos(0), start: Nanos(0), end: None };
        let mut recorder = Recorder::new(ends, Intervals::of(Nanos(100)), &window, &[0]);
        let mut seen = Vec::new();
        for i in [
            interval(0, 0, 1, false),
            interval(0, 1, 2, false),
            interval(1, 0, 10, false),
            // Worker 1 found no spare: its intervals 1 and 2 come as one.
            interval(1, 2, 20, false),
            interval(0, 2, 4, true),
            interval(1, 3, 40, true),
        ] {
            recorder.add(i);
            recorder.emit(|i| {
                seen.push((i.index, i.record.ops[0].ops(), i.record.start, i.record.end))
            });
        }
        let n = Nanos;
        assert_eq!(
            seen,
            [
                (0, 11, n(0), n(100)),
                (1, 2, n(100), n(200)),
                (2, 24, n(200), n(300)),
                (3, 40, n(300), n(400))
            ]
        );
        assert!(recorder.complete());
        assert_eq!(recorder.total.ops[0].ops(), 77);
    }
    #[test]
    fn the_warm_up_comes_apart_from_the_window_and_is_not_in_the_total() {
        let (_workers, ends, _full) = exchange(2, &[0]);
        let window = Window { begin: Nanos(0), start: Nanos(900), end: None };
        let mut recorder = Recorder::new(ends, Intervals::of(Nanos(100)), &window, &[0]);
        let mut seen = Vec::new();
        let mut warm = |worker, index, ops, recorder: &mut Recorder| {
            recorder.add(WorkerInterval { warm: true, ..interval(worker, index, ops, false) });
            recorder.emit_warm(|i| seen.push((i.index, i.record.ops[0].ops(), i.record.start)));
        };
        warm(0, 0, 1, &mut recorder);
        warm(1, 0, 2, &mut recorder);
        warm(0, 1, 4, &mut recorder);
        recorder.open(Nanos(150));
        // Worker 1 begins the window with the rest of its warm-up in the recorder's hands.
        recorder.add(interval(1, 0, 10, true));
        warm(0, 2, 8, &mut recorder);
        recorder.add(interval(0, 0, 20, true));
        recorder.emit_warm(|i| seen.push((i.index, i.record.ops[0].ops(), i.record.start)));
        assert_eq!(seen, [(0, 3, Nanos(0)), (1, 4, Nanos(100)), (2, 8, Nanos(200))]);
        let mut measured = Vec::new();
        recorder.emit(|i| measured.push((i.record.ops[0].ops(), i.record.start)));
        assert_eq!(measured, [(30, Nanos(150))]);
        assert_eq!(recorder.total.ops[0].ops(), 30);
        assert!(recorder.complete());
    }
}
