//! Every single operation, kept until the end for tools that tell each.

use drive::{OpDone, Witness};

/// The operations of one worker, as many as there is room for: it allocates when made and never
/// again.
#[derive(Debug)]
pub(crate) struct Kept(pub(crate) Vec<OpDone>);

impl Kept {
    /// Room for each worker's share of `operations`.
    pub(crate) fn of(operations: u64, workers: usize) -> Vec<Self> {
        let share = operations as usize / workers.max(1) + 1;
        (0..workers).map(|_| Self(Vec::with_capacity(share))).collect()
    }
}

impl Witness for Kept {
    fn op(&mut self, done: OpDone) {
        if self.0.len() < self.0.capacity() {
            self.0.push(done);
        }
    }
}
