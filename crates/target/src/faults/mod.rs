//! Faults on purpose: a target that stalls, is slow, refuses, breaks off and sends in pieces, so
//! that what a client makes of it is known.
//!
//! In: what is asked for ([`Faults`], from the words of a command line). Out: the [`Fate`] of each
//! operation, and when the whole server stands still. What is drawn comes from a seed, one stream
//! for each connection in the order in which they were accepted: the same operations on the same
//! connections meet the same fates. Off by default; then a session and an event loop know nothing
//! of it.
//!
//! Faults meet operations on the tables of clients. What a client asks of the system tables, and
//! changes of the schema, are carried out as ever; only a stall holds all of them up, and pieces
//! are made of every answer.

mod fate;
mod meet;
mod text;

pub(crate) use fate::{Access, Fate, Fates, Random};
pub(crate) use meet::{counter, told};
pub use text::FaultError;

use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, clock};

/// What can become of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// ERROR 0x0000; the operation is not carried out.
    Error,
    /// ERROR 0x1001; the operation is not carried out.
    Overloaded,
    /// ERROR 0x1000; the operation is not carried out.
    Unavailable,
    /// ERROR 0x1200, of reads.
    ReadTimeout,
    /// ERROR 0x1100, of writes; half of them are carried out.
    WriteTimeout,
    /// It is carried out, and its connection ends in the midst of the answer.
    Drop,
    /// It is carried out, and answered so much later.
    Late(Nanos),
}

/// How long an operation waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// Always so long.
    Constant(Nanos),
    /// Equally likely from the first to the second.
    Uniform(Nanos, Nanos),
    /// Exponentially distributed, of this mean.
    Exponential(Nanos),
    /// Lognormally distributed, of this median and 99th percentile.
    Lognormal(Nanos, Nanos),
}

/// The whole server stands still for `time` out of every `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Shorter than `every`.
    pub time: Nanos,
    /// From the end of one to the end of the next one.
    pub every: Nanos,
}

/// The share of operations that meet a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Which.
    pub fault: Fault,
    /// Above 0, at most 1; of the reads or of the writes for a timeout of theirs.
    pub share: f64,
}

/// What a server does wrong on purpose.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    /// Nothing is received or answered meanwhile.
    pub stall: Option<Stall>,
    /// Answers are held back.
    pub delay: Option<Delay>,
    /// At most one of them meets an operation.
    pub shares: Vec<Share>,
    /// Bytes go out in pieces of at most so many, of a random size, each in a send of its own.
    pub pieces_max: Option<usize>,
    /// Answers of a connection go out together, once in so long.
    pub gather: Option<Nanos>,
    /// The first so many operations meet none of it.
    pub after_ops: u64,
    /// What is drawn follows from it.
    pub seed: u64,
}

impl Faults {
    /// Whether there are any.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.stall.is_some()
            || self.delay.is_some()
            || !self.shares.is_empty()
            || self.pieces_max.is_some()
            || self.gather.is_some()
    }
}

/// The faults of a server that runs, over all its threads.
#[derive(Debug)]
pub(crate) struct FaultPlan {
    pub(crate) faults: Faults,
    connections: AtomicU64,
    operations: AtomicU64,
    /// Since when there are faults, in nanoseconds; 0 is not yet.
    armed_ns: AtomicU64,
}

impl FaultPlan {
    pub(crate) fn new(faults: Faults) -> Self {
        let armed_ns = if faults.after_ops == 0 { clock::now().0.max(1) } else { 0 };
        Self {
            faults,
            connections: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            armed_ns: AtomicU64::new(armed_ns),
        }
    }

    /// The number of one more connection.
    fn next_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts an operation; whether it may meet a fault.
    fn operation(&self) -> bool {
        let before = self.operations.fetch_add(1, Ordering::Relaxed);
        if before == self.faults.after_ops && before > 0 {
            self.armed_ns.store(clock::now().0.max(1), Ordering::Relaxed);
        }
        before >= self.faults.after_ops
    }

    /// Operations so far that could have met a fault.
    pub(crate) fn exposed(&self) -> u64 {
        self.operations.load(Ordering::Relaxed).saturating_sub(self.faults.after_ops)
    }

    /// Until when the server stands still; None when it does not.
    pub(crate) fn stalled_until(&self, now: Nanos) -> Option<Nanos> {
        let stall = self.faults.stall?;
        let armed_ns = self.armed_ns.load(Ordering::Relaxed);
        if armed_ns == 0 {
            return None;
        }
        // It ends a period, so that the first one begins with a server that answers.
        let phase = now.0.saturating_sub(armed_ns) % stall.every.0.max(1);
        (phase >= stall.every.0.saturating_sub(stall.time.0))
            .then(|| Nanos(now.0 + stall.every.0 - phase))
    }

    /// Stalls so far, also of a server that nobody asked anything.
    pub(crate) fn stalls(&self, now: Nanos) -> u64 {
        let armed_ns = self.armed_ns.load(Ordering::Relaxed);
        let Some(stall) = self.faults.stall.filter(|_| armed_ns > 0) else { return 0 };
        let elapsed_ns = now.0.saturating_sub(armed_ns);
        (elapsed_ns + stall.time.0) / stall.every.0.max(1)
    }

    /// When an answer that is due at `due` goes out.
    pub(crate) fn gathered(&self, due: Nanos) -> Nanos {
        match self.faults.gather {
            Some(gather) => Nanos(due.0.div_ceil(gather.0.max(1)) * gather.0),
            None => due,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_ends_every_period() {
        let stall = Stall { time: Nanos(30), every: Nanos(100) };
        let plan = FaultPlan::new(Faults { stall: Some(stall), ..Faults::default() });
        let start = plan.armed_ns.load(Ordering::Relaxed);
        let until = |at: u64| plan.stalled_until(Nanos(start + at)).map(|n| n.0 - start);
        let found = [0, 69, 70, 99, 100, 169, 170, 250, 275].map(until);
        let t = Some(100);
        assert_eq!(found, [None, None, t, t, None, None, Some(200), None, Some(300)]);
        assert_eq!([69, 70, 169, 170].map(|at| plan.stalls(Nanos(start + at))), [0, 1, 1, 2]);
    }

    #[test]
    fn nothing_stalls_before_its_operations() {
        let stall = Stall { time: Nanos(99), every: Nanos(100) };
        let faults = Faults { stall: Some(stall), after_ops: 2, ..Faults::default() };
        let plan = FaultPlan::new(faults);
        assert_eq!((plan.operation(), plan.operation()), (false, false));
        assert_eq!(plan.stalled_until(clock::now()), None);
        assert!(plan.operation());
        let soon = Nanos(plan.armed_ns.load(Ordering::Relaxed) + 50);
        assert!(plan.stalled_until(soon).is_some());
        assert_eq!(plan.exposed(), 1);
    }

    #[test]
    fn gathered_answers_share_a_moment() {
        let faults = Faults { gather: Some(Nanos(50)), ..Faults::default() };
        let plan = FaultPlan::new(faults);
        assert_eq!([1, 49, 50, 51].map(|at| plan.gathered(Nanos(at)).0), [50, 50, 50, 100]);
    }
}
