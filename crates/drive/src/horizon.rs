//! The end of a warm-up that is decided while it goes on.
//!
//! In: a watcher that extends the horizon every few milliseconds, and fixes it once. Out: for
//! workers, up to when operations may begin that are not measured. An operation that is due behind
//! the horizon waits until the horizon is further, or fixed; so none that is scheduled inside the
//! window has begun as one of the warm-up, however late a worker learns where the window starts.
//! One relaxed load per turn of a worker's loop, during the warm-up only. Limits: a watcher that
//! the host keeps from running for longer than [`LEAD`] holds the warm-up up, never the window.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// How far ahead of now the horizon is kept.
pub(crate) const LEAD: Nanos = Nanos::from_secs(1);
/// The window starts no sooner after the decision, so that every worker knows of it before.
pub(crate) const NOTICE: Nanos = Nanos::from_millis(300);

/// An instant of [`units::clock::now`], and in the lowest bit whether it is the last.
#[derive(Debug)]
pub(crate) struct Horizon(AtomicU64);

impl Horizon {
    /// Where it does not start before `until`.
    pub(crate) fn open(until: Nanos) -> Self {
        Self(AtomicU64::new(until.0 << 1))
    }

    /// By the watcher alone: the window does not start before `until`. Never goes back.
    pub(crate) fn extend(&self, until: Nanos) {
        self.0.fetch_max(until.0 << 1, Ordering::Relaxed);
    }

    /// By the watcher alone, once: the window starts at `start`, or where the horizon is if that is
    /// later. Returns which.
    pub(crate) fn fix(&self, start: Nanos) -> Nanos {
        let start = start.max(self.get().0);
        self.0.store(start.0 << 1 | 1, Ordering::Relaxed);
        start
    }

    /// The horizon, and whether it is the start of the window.
    pub(crate) fn get(&self) -> (Nanos, bool) {
        let word = self.0.load(Ordering::Relaxed);
        (Nanos(word >> 1), word & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_goes_on_until_it_is_fixed_and_never_back() {
        let horizon = Horizon::open(Nanos(100));
        assert_eq!(horizon.get(), (Nanos(100), false));
        horizon.extend(Nanos(300));
        horizon.extend(Nanos(200));
        assert_eq!(horizon.get(), (Nanos(300), false));
        assert_eq!(horizon.fix(Nanos(250)), Nanos(300));
        assert_eq!(horizon.get(), (Nanos(300), true));
        assert_eq!(Horizon::open(Nanos(100)).fix(Nanos(101)), Nanos(101));
    }
}
