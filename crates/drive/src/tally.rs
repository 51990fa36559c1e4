//! What a worker has measured: its histograms of the current interval, its counters, and their
//! hand-over at each edge.

use crate::exchange::{WorkerEnd, WorkerInterval, WorkerUsage};
use crate::slots::Slot;
use crate::source::Window;
use record::hlog::Intervals;
use record::{IntervalRecord, Outcome};
use units::{Nanos, RunQueue, clock};

/// One finished operation, as the witness of a test sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpDone {
    /// Index of the operation in its phase of the plan.
    pub operation: u16,
    /// Key number.
    pub key: u64,
    /// When it was due.
    pub scheduled: Nanos,
    /// When its first frame was offered to the kernel; None when none was.
    pub sent: Option<Nanos>,
    /// When its final outcome was known.
    pub done: Nanos,
    /// How it ended.
    pub outcome: Outcome,
}

/// Sees every measured operation. The data plane itself uses [`Unwitnessed`], which costs nothing.
pub trait Witness: Send {
    /// Called once per measured operation, on the worker's thread.
    fn op(&mut self, done: OpDone);
}

/// Nobody looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwitnessed;

impl Witness for Unwitnessed {
    #[inline]
    fn op(&mut self, _: OpDone) {}
}

/// Length of the intervals of a warm-up, which are recorded as those of the window are.
pub const WARM_BLOCK: Nanos = Nanos::from_millis(250);

#[derive(Debug)]
pub(crate) struct Tally {
    worker: usize,
    window: Window,
    /// The window is known; until then its start is the latest one.
    settled: bool,
    intervals: Intervals,
    /// Index and end of the current interval of the warm-up.
    warm: (u64, Nanos),
    index: u64,
    /// End of the current interval.
    edge: Nanos,
    record: Option<Box<IntervalRecord>>,
    pub(crate) usage: WorkerUsage,
    /// Thread time and system calls at the start of the window; None before it.
    baseline: Option<(Nanos, u64)>,
    /// Its wait for its cpu, and that at the start of the window.
    queue: Option<(RunQueue, Nanos)>,
    end: WorkerEnd,
}

impl Tally {
    pub(crate) fn new(worker: usize, window: Window, intervals: Intervals, end: WorkerEnd) -> Self {
        Self {
            worker,
            window,
            settled: true,
            intervals,
            warm: (0, window.begin + WARM_BLOCK),
            index: 0,
            edge: window.start + intervals.end_of(Nanos::ZERO),
            record: end.spare(),
            usage: WorkerUsage { first_scheduled: Nanos::MAX, ..WorkerUsage::default() },
            baseline: None,
            queue: None,
            end,
        }
    }

    /// The window is not known yet.
    pub(crate) fn look_ahead(&mut self) {
        self.settled = false;
    }

    /// It is now.
    pub(crate) fn settle(&mut self, window: Window) {
        (self.window, self.settled) = (window, true);
        self.edge = window.start + self.intervals.end_of(Nanos::ZERO);
    }

    /// Counts a finished operation of the warm-up, while that lasts.
    #[inline]
    pub(crate) fn warm_op(&mut self, slot: &Slot, at: Nanos, outcome: Outcome) {
        if self.baseline.is_some() {
            return;
        }
        let first = if slot.first_sent == Nanos::ZERO { at } else { slot.first_sent };
        if let Some(op) = self.op_record(slot.draw.operation) {
            let (service, response) = (at.since(first), at.since(slot.scheduled));
            op.record(outcome, service, response, first.since(slot.scheduled));
        }
    }

    /// Counts a finished operation of the window.
    #[inline]
    pub(crate) fn op(
        &mut self,
        slot: &Slot,
        at: Nanos,
        outcome: Outcome,
        witness: &mut impl Witness,
    ) {
        let sent = (slot.first_sent != Nanos::ZERO).then_some(slot.first_sent);
        let first = sent.unwrap_or(at);
        let usage = &mut self.usage;
        usage.first_scheduled = usage.first_scheduled.min(slot.scheduled);
        usage.last_done = usage.last_done.max(at);
        usage.done_in_window += u64::from(self.window.end.is_none_or(|end| at <= end));
        if let Some(op) = self.op_record(slot.draw.operation) {
            op.record(
                outcome,
                at.since(first),
                at.since(slot.scheduled),
                first.since(slot.scheduled),
            );
            if slot.rows > 0 {
                op.rows += u64::from(slot.rows);
                op.partitions += u64::from(slot.draw.scan_length);
            }
        }
        witness.op(OpDone {
            operation: slot.draw.operation,
            key: slot.draw.key,
            scheduled: slot.scheduled,
            sent,
            done: at,
            outcome,
        });
    }

    /// Counts one step of an operation that has several.
    #[inline]
    pub(crate) fn part(&mut self, operation: u16, step: u8, service: Nanos) {
        if let Some(op) = self.op_record(operation) {
            op.record_part(usize::from(step), service);
        }
    }

    #[inline]
    fn op_record(&mut self, operation: u16) -> Option<&mut record::OpRecord> {
        self.record.as_mut()?.ops.get_mut(usize::from(operation))
    }

    /// When the next edge needs the worker awake.
    #[inline]
    pub(crate) fn wake_at(&self) -> Nanos {
        match (self.baseline, self.settled) {
            (Some(_), _) => self.edge,
            (None, true) => self.window.start.min(self.warm.1),
            (None, false) => self.warm.1,
        }
    }

    /// Takes the baseline at the start of the window, and swaps records at the edges of intervals.
    #[inline]
    pub(crate) fn tick(&mut self, now: Nanos, syscalls: u64, in_flight: usize) {
        if now >= self.wake_at() {
            self.on_edge(now, syscalls, in_flight);
        }
    }

    #[cold]
    fn on_edge(&mut self, now: Nanos, syscalls: u64, in_flight: usize) {
        if self.baseline.is_none() {
            self.on_warm_edge(now, syscalls);
            return;
        }
        self.measure(syscalls, in_flight);
        while self.edge <= now {
            match self.end.spare() {
                Some(spare) => self.swap(spare),
                None => self.usage.intervals_merged += 1,
            }
            self.index += 1;
            let since_start = self.edge.since(self.window.start);
            self.edge = self.window.start + self.intervals.end_of(since_start);
        }
    }

    /// Hands an interval of the warm-up over; at the start of the window the last one, however
    /// short, so that nothing of the warm-up is left in the record.
    fn on_warm_edge(&mut self, now: Nanos, syscalls: u64) {
        let over = self.settled && now >= self.window.start;
        let (index, edge) = self.warm;
        let end = if over { self.window.start.min(edge) } else { edge };
        // Without a warm-up, or with one of whole intervals, nothing is left at its end.
        let some = end + WARM_BLOCK > edge;
        let spare = if some { self.end.spare() } else { None };
        let kept = match (self.record.take(), spare) {
            (Some(mut record), Some(spare)) => {
                record.end = end;
                let (worker, usage) = (self.worker, self.usage);
                let interval =
                    WorkerInterval { worker, index, record, usage, warm: true, last: false };
                self.end.hand_over(interval).err().or(Some(spare))
            }
            (record, spare) => record.or(spare),
        };
        self.record = kept;
        while self.warm.1 <= now {
            self.warm = (self.warm.0 + 1, self.warm.1 + WARM_BLOCK);
        }
        if over {
            // Nothing is left in it, unless the recorder was late.
            if let Some(record) = &mut self.record {
                record.clear();
            }
            self.baseline = Some((clock::thread_cpu(), syscalls));
            let queue = RunQueue::of_current_thread();
            self.queue = queue.and_then(|queue| queue.waited().map(|waited| (queue, waited)));
            self.usage.spin = Nanos::ZERO;
            self.usage.spin_syscalls = 0;
        }
    }

    fn swap(&mut self, spare: Box<IntervalRecord>) {
        let Some(record) = self.record.replace(spare) else { return };
        let interval = self.interval(record, false);
        if let Err(kept) = self.end.hand_over(interval) {
            self.record = Some(kept);
            self.usage.intervals_merged += 1;
        }
    }

    fn interval(&self, mut record: Box<IntervalRecord>, last: bool) -> WorkerInterval {
        record.end = self.edge;
        let (worker, index, usage) = (self.worker, self.index, self.usage);
        WorkerInterval { worker, index, record, usage, warm: false, last }
    }

    fn measure(&mut self, syscalls: u64, in_flight: usize) {
        if let Some((cpu, calls)) = self.baseline {
            self.usage.cpu = clock::thread_cpu().since(cpu);
            self.usage.syscalls = (syscalls - calls).saturating_sub(self.usage.spin_syscalls);
        }
        if let Some((queue, before)) = &self.queue {
            self.usage.waited = queue.waited().unwrap_or_default().since(*before);
        }
        self.usage.in_flight = in_flight;
    }

    /// Hands over what is left.
    pub(crate) fn finish(mut self, now: Nanos, syscalls: u64) {
        self.measure(syscalls, 0);
        if let Some(mut record) = self.record.take() {
            if self.baseline.is_none() {
                record.clear();
            }
            let mut interval = self.interval(record, true);
            interval.record.end = now;
            self.end.hand_over_last(interval);
        }
    }
}
