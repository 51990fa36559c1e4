//! How hard the data plane drives, and for how long: the meaning of `--threads`, `--rate`,
//! `--throttle`, `--ops`, `--duration` (design section 7).

use units::{Nanos, Rate};

/// When operations fall due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Closed loop: `threads` logical clients with one operation each in flight. An operation is
    /// due when the one before it on the same client was done, or when `throttle` (over all
    /// clients) next allows one.
    Closed {
        /// Logical clients over all workers.
        threads: usize,
        /// Upper bound of the rate; a stalled target lowers it, nothing is caught up.
        throttle: Option<Rate>,
    },
    /// Open loop: operations fall due by a schedule, whatever the target does. At most
    /// `in_flight_max` are in flight; what is due beyond that waits, is never dropped, and
    /// shows in lag and response time.
    Open {
        /// Operations per time over all workers.
        rate: Rate,
        /// Exponential gaps instead of equal ones.
        poisson: bool,
        /// Bound of operations in flight over all workers.
        in_flight_max: usize,
    },
}

/// How much is measured, warm-up excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many operations of any outcome.
    Ops(u64),
    /// All operations scheduled within so much time.
    Duration(Nanos),
    /// Until the sampler of the load phase has no key left.
    EveryKey,
}

/// How a worker waits for the next due operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Sleeps until 100 us before it is due, then polls: low lag, a busy cpu. For cpus of its own.
    Spin,
    /// Sleeps until it is due. For cpus shared with the target.
    Sleep,
}

/// The load of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// When operations fall due.
    pub arrivals: Arrivals,
    /// How much is measured.
    pub amount: Amount,
    /// Unmeasured time before the window: all of it, or at most so much where the observer ends it.
    pub warm: Nanos,
    /// Nothing is begun that falls due later than so long after the start of the window, whatever
    /// the amount.
    pub limit: Option<Nanos>,
}

impl Arrivals {
    /// Operations in flight at once, over all workers.
    #[must_use]
    pub fn in_flight_max(&self) -> usize {
        match *self {
            Self::Closed { threads, .. } => threads,
            Self::Open { in_flight_max, .. } => in_flight_max,
        }
    }
}

/// The share of `total` that falls to `part` of `parts`: equal, the remainder to the first ones.
#[must_use]
pub(crate) fn share(total: u64, part: usize, parts: usize) -> u64 {
    let (part, parts) = (part as u64, parts.max(1) as u64);
    total / parts + u64::from(part < total % parts)
}
