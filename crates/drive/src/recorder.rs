//! Puts the workers' intervals together: in, one record per worker and interval; out, each interval
//! once, merged, in order, and the total.
//!
//! An interval is complete when every worker has handed over that interval or a later one (a worker
//! that found no spare record hands two intervals over as one). Runs on the caller's thread, beside
//! the data plane.

use crate::exchange::{RecorderEnd, WorkerInterval, WorkerUsage};
use record::IntervalRecord;
use record::hlog::Intervals;
use std::collections::BTreeMap;
use units::Nanos;

/// A merged interval, as an observer sees it.
#[derive(Debug)]
pub struct Interval<'a> {
    /// From 0 at the start of the window.
    pub index: u64,
    /// All workers' operations that were done in it.
    pub record: &'a IntervalRecord,
    /// Each worker's counters, as of its latest interval.
    pub usage: &'a [WorkerUsage],
}

#[derive(Debug)]
pub(crate) struct Recorder {
    ends: Vec<RecorderEnd>,
    intervals: Intervals,
    window_start: Nanos,
    /// Intervals that some worker has not handed over yet.
    pending: BTreeMap<u64, IntervalRecord>,
    /// Cleared records for them.
    vacant: Vec<IntervalRecord>,
    /// By worker: the first interval that it has not handed over; MAX after its last.
    next: Vec<u64>,
    /// Start of the interval to be emitted next.
    start: Nanos,
    pub(crate) total: IntervalRecord,
    pub(crate) usage: Vec<WorkerUsage>,
    parts: Vec<usize>,
}

impl Recorder {
    pub(crate) fn new(
        ends: Vec<RecorderEnd>,
        intervals: Intervals,
        start: Nanos,
        parts: &[usize],
    ) -> Self {
        Self {
            next: vec![0; ends.len()],
            usage: vec![
                WorkerUsage { first_scheduled: Nanos::MAX, ..WorkerUsage::default() };
                ends.len()
            ],
            ends,
            intervals,
            window_start: start,
            pending: BTreeMap::new(),
            vacant: Vec::new(),
            start,
            total: IntervalRecord::new(parts),
            parts: parts.to_vec(),
        }
    }

    /// Takes one worker's interval; its record goes back to the worker, cleared.
    pub(crate) fn add(&mut self, interval: WorkerInterval) {
        let WorkerInterval { worker, index, record, usage, last } = interval;
        let pending = self.pending.entry(index).or_insert_with(|| {
            self.vacant.pop().unwrap_or_else(|| IntervalRecord::new(&self.parts))
        });
        pending.merge(&record);
        self.ends[worker].give_back(record);
        self.next[worker] = if last { u64::MAX } else { index + 1 };
        self.usage[worker] = usage;
    }

    /// Every worker has handed over its last interval.
    pub(crate) fn complete(&self) -> bool {
        self.next.iter().all(|&next| next == u64::MAX)
    }

    /// Emits what is complete.
    pub(crate) fn emit(&mut self, mut observe: impl FnMut(Interval<'_>)) {
        let complete = self.next.iter().copied().min().unwrap_or(u64::MAX);
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() >= complete {
                return;
            }
            let (index, mut record) = entry.remove_entry();
            record.start = self.start;
            self.start = self.start.max(record.end);
            self.total.merge(&record);
            observe(Interval { index, record: &record, usage: &self.usage });
            record.clear();
            self.vacant.push(record);
        }
        self.total.start = self.window_start;
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
        WorkerInterval { worker, index, record, usage: WorkerUsage::default(), last }
    }

    #[test]
    fn intervals_come_once_in_order_when_all_workers_have_passed_them() {
        let (_workers, ends, _full) = exchange(2, &[0]);
        let mut recorder = Recorder::new(ends, Intervals::of(Nanos(100)), Nanos(0), &[0]);
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
}
