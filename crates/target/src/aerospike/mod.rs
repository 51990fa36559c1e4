//! Aerospike's protocol over records in memory.
//!
//! Clients see a server of version 7.2 that has all partitions of its namespaces, or several that
//! have a part of them each (see [`Instances`]). Values are kept as they came. How it differs from
//! Aerospike:
//! - One copy of everything, in memory: consistency and commit levels make no difference. Several
//!   servers share it, and none passes a request on to another.
//! - Sets tell keys apart and are not known otherwise; a key that is sent along is not kept, since
//!   nothing here lists records.
//! - All records of a batch are carried out, whatever becomes of the others.
//! - Memory is bounded for all namespaces together, in approximate bytes: beyond, writes are
//!   answered 8 (out of space); deletes never are. Records that have ended go when they are asked
//!   for, and all of them when memory is short, once a second at most.
//! - A record's bins take 8 MiB at most, an answer about one 64 MiB, one to a batch 128 MiB: more
//!   is answered 13 (too big).
//! - Refused with 16 (unsupported): scans and queries, functions, expressions, operations inside
//!   lists, maps, bits and HyperLogLogs, reads that renew the expiry. Refused with 25 (enterprise
//!   only): transactions, deletions that are remembered. Users: 51 (not supported).
//! - Faults on purpose are answered 1 (error), 18 (overloaded), 11 (unavailable) and 9 (timeouts);
//!   a batch meets one fate.

mod bins;
mod info;
mod members;
mod operate;
mod records;
mod session;

pub use members::Instances;
pub use records::{Records, RecordsConfig};
pub use session::RecordSession;
