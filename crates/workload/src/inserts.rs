//! Acknowledged inserts: which keys of the run phase exist for certain.
//!
//! Worker w of W inserts keys first + w + j * W, j = 0, 1, ... In: the keys of its finished inserts
//! in any order. Out: how many of its inserts are finished without a gap, and over all workers the
//! newest key such that no earlier one is missing. A fixed bitmap, no allocation after `new`.
//! Source: YCSB's AcknowledgedCounterGenerator (one window of 2^20 for all threads); as there, a
//! failed insert is acknowledged too, or reads would stay behind the gap for the rest of the run.

use thiserror::Error;

/// Why an insert could not be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InsertWindowError {
    /// The key was never handed out to this worker.
    #[error(
        "key {key} is no insert of worker {worker} of {workers}; acknowledge it where it was drawn"
    )]
    Foreign {
        /// The key number.
        key: u64,
        /// This worker.
        worker: u64,
        /// All workers.
        workers: u64,
    },
    /// Acknowledged before.
    #[error("key {key} was acknowledged before; acknowledge each insert once")]
    Twice {
        /// The key number.
        key: u64,
    },
    /// Too far ahead of the oldest unfinished insert.
    #[error(
        "key {key} is {capacity} or more own inserts ahead of the oldest unfinished one; make the \
         window at least as large as the inserts in flight"
    )]
    Beyond {
        /// The key number.
        key: u64,
        /// Inserts that the window holds.
        capacity: u64,
    },
}

/// The finished inserts of one worker.
#[derive(Debug, Clone)]
pub struct InsertWindow {
    first_new_key: u64,
    worker: u64,
    workers: u64,
    /// Bit (j mod capacity) is set when insert j is finished and some earlier one is not.
    finished: Vec<u64>,
    contiguous: u64,
}

impl InsertWindow {
    /// A window for worker `worker` of `workers`. `capacity` (most inserts in flight at once) is
    /// rounded up to a power of two, at least 64.
    #[must_use]
    pub fn new(first_new_key: u64, worker: usize, workers: usize, capacity: usize) -> Self {
        let words = capacity.div_ceil(64).max(1).next_power_of_two();
        Self {
            first_new_key,
            worker: worker as u64,
            workers: workers.max(1) as u64,
            finished: vec![0; words],
            contiguous: 0,
        }
    }

    /// Goes on behind `inserts` own inserts that were finished before. For a window in which
    /// nothing was noted yet.
    pub fn skip(&mut self, inserts: u64) {
        self.contiguous = self.contiguous.max(inserts);
    }

    /// Notes that the insert of `key` is finished, well or not.
    ///
    /// # Errors
    /// When the key is not this worker's, was acknowledged before, or lies beyond the window; the
    /// window is unchanged then.
    #[inline]
    pub fn acknowledge(&mut self, key: u64) -> Result<(), InsertWindowError> {
        let own = self.own_index(key).ok_or(InsertWindowError::Foreign {
            key,
            worker: self.worker,
            workers: self.workers,
        })?;
        if own < self.contiguous {
            return Err(InsertWindowError::Twice { key });
        }
        if own - self.contiguous >= self.capacity() {
            return Err(InsertWindowError::Beyond { key, capacity: self.capacity() });
        }
        let (word, bit) = self.place(own);
        if self.finished[word] & bit != 0 {
            return Err(InsertWindowError::Twice { key });
        }
        self.finished[word] |= bit;
        self.advance();
        Ok(())
    }

    /// Number of own inserts finished without a gap.
    #[must_use]
    pub fn contiguous(&self) -> u64 {
        self.contiguous
    }

    fn advance(&mut self) {
        loop {
            let (word, bit) = self.place(self.contiguous);
            if self.finished[word] & bit == 0 {
                return;
            }
            self.finished[word] &= !bit;
            self.contiguous += 1;
        }
    }

    fn own_index(&self, key: u64) -> Option<u64> {
        let offset = key.checked_sub(self.first_new_key)?.checked_sub(self.worker)?;
        (offset % self.workers == 0).then_some(offset / self.workers)
    }

    fn capacity(&self) -> u64 {
        self.finished.len() as u64 * 64
    }

    fn place(&self, own: u64) -> (usize, u64) {
        let slot = own & (self.capacity() - 1);
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

/// The newest key (inclusive) such that it and all before it are acknowledged, from each worker's
/// [`InsertWindow::contiguous`], in the order of the workers; `first_new_key - 1` when there is
/// none.
#[must_use]
pub fn last_acknowledged(
    first_new_key: u64,
    contiguous_of_each_worker: impl Iterator<Item = u64>,
) -> u64 {
    let (mut workers, mut least, mut least_worker) = (0u64, u64::MAX, 0u64);
    for contiguous in contiguous_of_each_worker {
        // The first worker with the least count owns the oldest missing key.
        if contiguous < least {
            (least, least_worker) = (contiguous, workers);
        }
        workers += 1;
    }
    let missing = if workers == 0 { 0 } else { least * workers + least_worker };
    (first_new_key + missing).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn refuses_foreign_repeated_and_distant_keys() {
        let mut window = InsertWindow::new(100, 1, 3, 10);
        assert_eq!(window.acknowledge(104), Ok(()));
        assert_eq!(window.contiguous(), 0);
        assert_eq!(window.acknowledge(104), Err(InsertWindowError::Twice { key: 104 }));
        assert_eq!(window.acknowledge(101), Ok(()));
        assert_eq!(window.contiguous(), 2);
        assert_eq!(window.acknowledge(101), Err(InsertWindowError::Twice { key: 101 }));
        for key in [0, 99, 100, 102, 103] {
            let error = window.acknowledge(key).unwrap_err();
            assert!(matches!(error, InsertWindowError::Foreign { .. }), "{error}");
        }
        // 64 places behind the two finished ones.
        assert_eq!(window.acknowledge(101 + 3 * 65), Ok(()));
        let beyond = 101 + 3 * 66;
        assert_eq!(
            window.acknowledge(beyond),
            Err(InsertWindowError::Beyond { key: beyond, capacity: 64 })
        );
    }

    #[test]
    fn no_workers_or_no_inserts_leave_the_watermark_before_the_first() {
        assert_eq!(last_acknowledged(100, std::iter::empty()), 99);
        assert_eq!(last_acknowledged(100, [0, 5].into_iter()), 99);
        assert_eq!(last_acknowledged(100, [1, 0, 5].into_iter()), 100);
        assert_eq!(last_acknowledged(0, [0].into_iter()), 0);
    }

    proptest! {
        #[test]
        fn any_order_yields_the_watermark_of_a_set(
            workers in 1usize..6,
            first in 1u64..5_000_000_000,
            // Per step: which worker, and which of its 100 unfinished inserts.
            steps in prop::collection::vec((0usize..6, 0usize..100), 0..800),
        ) {
            let mut windows: Vec<_> =
                (0..workers).map(|w| InsertWindow::new(first, w, workers, 100)).collect();
            let mut issued = vec![0u64; workers];
            let mut open: Vec<Vec<u64>> = vec![Vec::new(); workers];
            let mut done = BTreeSet::new();
            for (worker, pick) in steps {
                let worker = worker % workers;
                while open[worker].len() < 20 {
                    open[worker].push(first + worker as u64 + issued[worker] * workers as u64);
                    issued[worker] += 1;
                }
                let at = pick % open[worker].len();
                let oldest = *open[worker].iter().min().unwrap();
                let key = open[worker][at];
                // A worker stops inserting before it outruns its window.
                let key = if key - oldest < 100 * workers as u64 { key } else { oldest };
                open[worker].retain(|k| *k != key);
                prop_assert_eq!(windows[worker].acknowledge(key), Ok(()));
                done.insert(key);

                let mut expected = first;
                while done.contains(&expected) {
                    expected += 1;
                }
                let watermark =
                    last_acknowledged(first, windows.iter().map(InsertWindow::contiguous));
                prop_assert_eq!(watermark, expected - 1);
            }
        }

        #[test]
        fn any_key_is_taken_or_refused(
            keys in prop::collection::vec(any::<u64>(), 0..50),
            first: u64,
            worker in 0usize..4,
        ) {
            let mut window = InsertWindow::new(first, worker, 4, 64);
            for key in keys {
                let _ = window.acknowledge(key);
                let _ = window.acknowledge(first.wrapping_add(key % 1000));
            }
            prop_assert!(window.contiguous() <= 250);
        }
    }
}
