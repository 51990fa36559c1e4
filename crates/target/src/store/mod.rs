//! Rows in memory or on disk (see `lsm`): table -> partitions in the order of Murmur3 tokens ->
//! rows in clustering order -> cells.
//!
//! Every cell has a timestamp (microseconds) and perhaps an expiry (seconds); what a write does to
//! a cell is decided by reconciliation, so the order in which writes arrive does not matter
//! (counters and lists excepted, as in Cassandra). Reconciliation follows
//! `org.apache.cassandra.db.rows.Cells` of 3.11: the later timestamp wins; of equal ones a
//! tombstone, then the larger value, then the later expiry.
//!
//! Deletions are applied to what is there and kept for what arrives late: a partition keeps its own
//! and those of ranges, a row its own. Limits: tombstones and expired cells are never purged (there
//! is no `gc_grace_seconds` at work), only a TRUNCATE or DROP frees them. Sizes are approximate:
//! payload plus the structures around it.

mod atom;
mod encoding;
mod lsm;
mod partition;
mod row;
mod table;

pub(crate) use atom::{Atom, Expiry};
pub(crate) use lsm::Disk;
pub use lsm::{LsmOptions, StoreError};
pub(crate) use partition::{KeyRange, Partition};
pub(crate) use row::{Content, Elements, Row, Write};
pub(crate) use table::{Memory, Position, TableStore};

/// Timestamp of what was never deleted: older than any write.
pub(crate) const NEVER: i64 = i64::MIN;
