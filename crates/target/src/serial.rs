//! `--serial`: a lock that every operation holds for so long, so that the capacity of an instance
//! is known: 1 / length, whatever the machine.
//!
//! In: moments at which operations arrive, over all threads of a server. Out: the moment at which
//! each of them has had the lock for its length, in the order of their arrival. Nobody waits with a
//! thread: the answer is made at once and held back until that moment (see `delivery`), and the
//! event loop sleeps until the first one is due, so connections are received from all the while.
//! Who was queued begins where the one before has ended, hence waking late does not add up.
//! Limits: an operation is an EXECUTE, a QUERY or a BATCH, also one that fails; what it does is
//! seen by others when it arrives, not when it is answered.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// The lock.
#[derive(Debug)]
pub(crate) struct Serial {
    length: Nanos,
    /// When the last operation in the queue gives it back.
    free_at_ns: AtomicU64,
}

impl Serial {
    pub(crate) const fn new(length: Nanos) -> Self {
        Self { length, free_at_ns: AtomicU64::new(0) }
    }

    /// Queues an operation that has arrived `now`; returns when it is done with the lock.
    pub(crate) fn queue(&self, now: Nanos) -> Nanos {
        let end = |free_at: u64| free_at.max(now.0).saturating_add(self.length.0);
        let queued =
            self.free_at_ns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free_at| Some(end(free_at)));
        // The closure never refuses.
        let (Ok(before) | Err(before)) = queued;
        Nanos(end(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_follow_each_other_and_an_idle_lock_is_free() {
        let serial = Serial::new(Nanos(500));
        let ends = [1000, 1000, 1100, 2700, 9000].map(|now| serial.queue(Nanos(now)).0);
        assert_eq!(ends, [1500, 2000, 2500, 3200, 9500]);
    }

    #[test]
    fn threads_share_one_lock() {
        let serial = Serial::new(Nanos(7));
        let ends = std::thread::scope(|scope| {
            let queue = || (0..1000).map(|_| serial.queue(Nanos(1)).0).collect::<Vec<_>>();
            let threads = [0; 4].map(|_| scope.spawn(queue));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(ends.iter().all(|ends| ends.is_sorted()), "in the order of arrival");
        let mut all = ends.concat();
        all.sort_unstable();
        assert_eq!(all, (1..=4000).map(|n| 1 + 7 * n).collect::<Vec<_>>());
    }
}
