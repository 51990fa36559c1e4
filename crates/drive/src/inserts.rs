//! Which inserted keys exist by now, over all workers.
//!
//! Each worker publishes how many of its inserts are finished without a gap, once per turn of its
//! loop, and reads the others': one relaxed store and one load per worker, each counter on a cache
//! line of its own. Only plans that insert pay for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use workload::{InsertWindow, last_acknowledged};

/// Finished inserts of one worker, alone on its cache lines (two, because neighbours are fetched in
/// pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Published(AtomicU64);

/// One worker's view.
#[derive(Debug)]
pub(crate) struct Inserts {
    first_new_key: u64,
    worker: usize,
    window: InsertWindow,
    all: Arc<[Published]>,
    last_key: u64,
}

/// Own inserts that may be in flight or finished behind a gap.
const WINDOW: usize = 1 << 20;

impl Inserts {
    /// `before`: by worker, inserts of the loads that this one continues.
    pub(crate) fn shared(before: &[u64]) -> Arc<[Published]> {
        before.iter().map(|count| Published(AtomicU64::new(*count))).collect()
    }

    pub(crate) fn new(first_new_key: u64, worker: usize, all: Arc<[Published]>) -> Self {
        let mut window = InsertWindow::new(first_new_key, worker, all.len(), WINDOW);
        window.skip(all[worker].0.load(Ordering::Relaxed));
        Self { first_new_key, worker, window, all, last_key: 0 }
    }

    /// An insert has ended, whatever its outcome. False when it could not be counted.
    #[inline]
    pub(crate) fn acknowledge(&mut self, key: u64) -> bool {
        self.window.acknowledge(key).is_ok()
    }

    /// Publishes what is finished here, and tells the newest key that exists with all before it,
    /// when it is newer than last time.
    pub(crate) fn exchange(&mut self) -> Option<u64> {
        self.all[self.worker].0.store(self.window.contiguous(), Ordering::Relaxed);
        let counts = self.all.iter().map(|count| count.0.load(Ordering::Relaxed));
        let last_key = last_acknowledged(self.first_new_key, counts);
        (last_key > self.last_key).then(|| {
            self.last_key = last_key;
            last_key
        })
    }
}
