//! How a worker's histograms get to the recorder: two records per worker, swapped at the edge of an
//! interval.
//!
//! The worker fills one; at the edge it takes the spare, which the recorder has cleared, and hands
//! the full one over. Both ways are bounded channels with their memory set aside beforehand,
//! touched once per interval. A recorder that is late is never waited for: the worker goes on
//! filling, and that interval comes with the next.

use record::IntervalRecord;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use units::Nanos;

/// What a worker has cost since the start of the window, and its state at the end of an interval.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkerUsage {
    /// User and system time, polling included.
    pub cpu: Nanos,
    /// The part of it that was spent polling for the next due operation.
    pub spin: Nanos,
    /// Time in which it was ready to run and others had its cpu; zero where the kernel does not
    /// say.
    pub waited: Nanos,
    /// System calls, polling left out.
    pub syscalls: u64,
    /// System calls of polling.
    pub spin_syscalls: u64,
    /// Operations in flight now.
    pub in_flight: usize,
    /// Answers that came after their timeout.
    pub late: u64,
    /// How often an operation of the window was due and as many as may be were in flight.
    pub full_in_flight: u64,
    /// How often one was due and no connection that was ready had a stream id free.
    pub full_streams: u64,
    /// Connections lost.
    pub connections_lost: u64,
    /// Connections closed for others in their place, because requests on them had timed out.
    pub connections_replaced: u64,
    /// Tablets that answers have told of.
    pub tablets: u64,
    /// Payloads of answers that were no tablet.
    pub tablets_unread: u64,
    /// Statements that a host had forgotten and that were prepared there again.
    pub prepares: u64,
    /// Those that failed, or came under another id.
    pub prepares_failed: u64,
    /// Intervals that were handed over with the next one, because the recorder was late.
    pub intervals_merged: u64,
    /// Inserts whose acknowledgement came too far behind later ones to be counted.
    pub acknowledgements_lost: u64,
    /// Measured operations that were done by the end of the window.
    pub done_in_window: u64,
    /// The earliest time that a measured operation was scheduled for; MAX before the first.
    pub first_scheduled: Nanos,
    /// When the last measured operation so far was done.
    pub last_done: Nanos,
    /// When the last operation so far, measured or not, was ok; zero before the first.
    pub last_ok: Nanos,
    /// At its end it was allowed other cpus than the one that it was pinned to.
    pub moved: bool,
    /// Inserts that were begun, measured or not, by this load and those that it continues.
    pub inserts: u64,
}

/// One worker's record of one interval.
#[derive(Debug)]
pub(crate) struct WorkerInterval {
    /// Index of the worker.
    pub worker: usize,
    /// Index of the interval, from 0 at the start of the window, or of the warm-up.
    pub index: u64,
    /// What was done in it.
    pub record: Box<IntervalRecord>,
    /// As of its end.
    pub usage: WorkerUsage,
    /// Of the warm-up.
    pub warm: bool,
    /// Nothing follows.
    pub last: bool,
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct WorkerEnd {
    full: SyncSender<WorkerInterval>,
    spare: Receiver<Box<IntervalRecord>>,
}

/// The recorder's end of one worker.
#[derive(Debug)]
pub(crate) struct RecorderEnd {
    spare: SyncSender<Box<IntervalRecord>>,
}

/// Intervals that may wait for the recorder.
const WAITING_MAX: usize = 4;

/// Ends for `workers` workers and the receiver of all their intervals. `parts` as for
/// [`IntervalRecord::new`].
pub(crate) fn exchange(
    workers: usize,
    parts: &[usize],
) -> (Vec<WorkerEnd>, Vec<RecorderEnd>, Receiver<WorkerInterval>) {
    let (full, intervals) = sync_channel(workers * WAITING_MAX);
    let (worker_ends, recorder_ends) = (0..workers)
        .map(|_| {
            let (spare_in, spare) = sync_channel(2);
            // One to fill and one to swap it for. Cannot fail: there is room for both.
            for _ in 0..2 {
                let _ = spare_in.try_send(Box::new(IntervalRecord::new(parts)));
            }
            (WorkerEnd { full: full.clone(), spare }, RecorderEnd { spare: spare_in })
        })
        .unzip();
    (worker_ends, recorder_ends, intervals)
}

impl WorkerEnd {
    /// Takes a cleared record; None when the recorder is late.
    pub(crate) fn spare(&self) -> Option<Box<IntervalRecord>> {
        self.spare.try_recv().ok()
    }

    /// Hands an interval over; gives its record back when there is no room.
    pub(crate) fn hand_over(&self, interval: WorkerInterval) -> Result<(), Box<IntervalRecord>> {
        self.full.try_send(interval).map_err(|error| match error {
            std::sync::mpsc::TrySendError::Full(interval)
            | std::sync::mpsc::TrySendError::Disconnected(interval) => interval.record,
        })
    }

    /// Hands the last interval over, waiting for room: nothing is measured any more.
    pub(crate) fn hand_over_last(&self, interval: WorkerInterval) {
        // An error means that the recorder is gone, and with it the run.
        let _ = self.full.send(interval);
    }
}

impl RecorderEnd {
    /// Gives a record back, cleared here so that the worker does not have to.
    pub(crate) fn give_back(&self, mut record: Box<IntervalRecord>) {
        record.clear();
        // Full means that the worker has its spare already; a worker that is done needs none.
        let _ = self.spare.try_send(record);
    }
}
