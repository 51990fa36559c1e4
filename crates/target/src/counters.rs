//! What the target has counted since its start, for tests that compare it with what a client
//! counted.
//!
//! Each thread of the server adds to its own block, so counting shares no cache line; a read sums
//! the blocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Counter {
    Options,
    Startup,
    Register,
    Query,
    Prepare,
    Execute,
    Batch,
    Other,
    Select,
    Insert,
    Update,
    Delete,
    /// Batches, by frame or by text; their statements are counted as inserts, updates and deletes.
    Batches,
    Schema,
    /// Selects, of those counted above, from the target's own keyspaces: what drivers ask for by
    /// themselves.
    SystemSelect,
    /// Rows sent.
    Rows,
    Errors,
    /// Connections accepted, and closed again.
    Connections,
    Closed,
    BytesReceived,
    BytesSent,
    /// Messages on records, and requests for info.
    Message,
    Info,
    /// Records read, written and deleted.
    RecordRead,
    RecordWrite,
    RecordDelete,
    /// Requests on records for a partition that the server has not.
    Misrouted,
    /// Faults that operations have met on purpose.
    FaultError,
    FaultOverloaded,
    FaultUnavailable,
    FaultReadTimeout,
    FaultWriteTimeout,
    FaultDrop,
    FaultLate,
}

/// Counters and their names in `system_wideload.counters`, and in the info `statistics`.
const NAMES: [(Counter, &str); 34] = [
    (Counter::Options, "requests.options"),
    (Counter::Startup, "requests.startup"),
    (Counter::Register, "requests.register"),
    (Counter::Query, "requests.query"),
    (Counter::Prepare, "requests.prepare"),
    (Counter::Execute, "requests.execute"),
    (Counter::Batch, "requests.batch"),
    (Counter::Other, "requests.other"),
    (Counter::Select, "statements.select"),
    (Counter::Insert, "statements.insert"),
    (Counter::Update, "statements.update"),
    (Counter::Delete, "statements.delete"),
    (Counter::Batches, "statements.batch"),
    (Counter::Schema, "statements.schema"),
    (Counter::SystemSelect, "statements.select.system"),
    (Counter::Rows, "rows.sent"),
    (Counter::Errors, "errors"),
    (Counter::Connections, "connections.accepted"),
    (Counter::Closed, "connections.closed"),
    (Counter::BytesReceived, "bytes.received"),
    (Counter::BytesSent, "bytes.sent"),
    (Counter::Message, "requests.message"),
    (Counter::Info, "requests.info"),
    (Counter::RecordRead, "records.read"),
    (Counter::RecordWrite, "records.write"),
    (Counter::RecordDelete, "records.delete"),
    (Counter::Misrouted, "requests.misrouted"),
    (Counter::FaultError, "faults.error"),
    (Counter::FaultOverloaded, "faults.overloaded"),
    (Counter::FaultUnavailable, "faults.unavailable"),
    (Counter::FaultReadTimeout, "faults.read-timeout"),
    (Counter::FaultWriteTimeout, "faults.write-timeout"),
    (Counter::FaultDrop, "faults.drop"),
    (Counter::FaultLate, "faults.late"),
];

/// One thread's counts.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters([AtomicU64; NAMES.len()]);

impl Default for Counters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; NAMES.len()])
    }
}

impl Counters {
    /// Adds `amount` to a counter.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, amount: u64) {
        self.0[counter as usize].fetch_add(amount, Ordering::Relaxed);
    }
}

/// The blocks of all threads.
#[derive(Debug, Default)]
pub(crate) struct CounterBlocks(Mutex<Vec<Arc<Counters>>>);

impl CounterBlocks {
    /// A block for one more thread.
    pub(crate) fn block(&self) -> Arc<Counters> {
        let block = Arc::new(Counters::default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&block));
        block
    }

    /// Names and sums.
    pub(crate) fn sums(&self) -> Vec<(&'static str, u64)> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |c: Counter| blocks.iter().map(|b| b.0[c as usize].load(Ordering::Relaxed)).sum();
        NAMES.iter().map(|(counter, name)| (*name, sum(*counter))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_blocks() {
        let blocks = CounterBlocks::default();
        let (a, b) = (blocks.block(), blocks.block());
        a.add(Counter::Rows, 2);
        b.add(Counter::Rows, 3);
        b.add(Counter::BytesSent, 1);
        let sums = blocks.sums();
        assert!(sums.contains(&("rows.sent", 5)) && sums.contains(&("bytes.sent", 1)));
        for (at, (counter, _)) in NAMES.iter().enumerate() {
            assert_eq!(*counter as usize, at);
        }
    }
}
