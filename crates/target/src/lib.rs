//! The reference target: a small server of CQL or of Aerospike's protocol inside wideload. It is a
//! default, a calibration target and a test double; it is not a database, and a result on it says
//! nothing about Apache Cassandra, Aerospike or any other.
//!
//! Bytes of the native protocol v4 or v5 in, answers out ([`Session`], without I/O); [`Server`] is
//! its sockets. Drivers see one instance of Cassandra 4.1 (`release_version` 4.1.0-wideload) with
//! one token. Of Aerospike ([`RecordSession`]) its module `aerospike` tells.
//!
//! How it differs from Cassandra:
//! - One instance, rows in memory, or on disk with a log ([`Storage::Lsm`]): no replication, hints
//!   or repair. A replication factor above one is taken with a warning; TWO and THREE are answered
//!   Unavailable, all other levels by the one replica.
//! - Storage `null` is a mock ([`Storage::Null`]): writes are answered without being done or their
//!   values looked at, reads by one row that is always the same.
//! - With [`Config::serial`] it is a mock too: each operation holds one lock of the server for so
//!   long, so that capacity and scaling over instances are known.
//! - With [`Faults`] it does wrong on purpose: it stalls, is slow, refuses, breaks off; see there.
//! - Memory is bounded, where rows are there: beyond `memory_max` (approximate bytes) writes that
//!   add are answered Overloaded, deletes beyond nine eighths of it.
//! - A request is carried out in one go on its connection's thread: a scan of a large table without
//!   paging, or a COUNT, delays the other connections of that thread.
//! - Tombstones and expired cells are never purged; only DROP and TRUNCATE free what they take.
//! - A write on disk costs the size of its partition, which is kept as a whole.
//! - A counter is a sum: its updates are not ordered by time, and one after a delete starts again
//!   from zero. Elements of lists are ordered by arrival.
//! - Conditions (`IF ..`) are looked at under the lock of the partition: no rounds of a protocol,
//!   and every one is decided at once. Collections are compared with null alone.
//! - Refused by name: conditions on elements of collections, user-defined types, functions and
//!   aggregates, secondary indexes, materialized views, triggers, roles, JSON, GROUP BY, ALTER
//!   TABLE DROP/RENAME/ALTER, functions in a SELECT beyond COUNT, WRITETIME, TTL, TOKEN;
//!   authentication; protocol versions other than 4 and 5.
//! - Clustering columns of type decimal, collection or tuple are refused, and ORDER BY together
//!   with IN on the partition key.
//! - Rows of an IN on the partition key come in the order of tokens.
//! - Options of tables are checked and shown, but only `default_time_to_live` has an effect;
//!   COMPACT STORAGE is taken with a warning. No tracing: the flag is ignored.
//! - A LOGGED batch is applied write by write under each partition's lock; it is refused as a whole
//!   or done as a whole, but others may see it half-done across partitions.
//! - `USING TIMEOUT`, which drivers add for a ScyllaDB, is taken with `--scylla`; nothing takes so
//!   long here that it would end.
//! - Pages end at 8 MiB too; an answer without paging beyond 128 MiB is refused.

mod aerospike;
mod catalog;
mod choice;
mod collection;
mod condition;
mod config;
mod counters;
pub mod cql;
mod datetime;
mod ddl;
mod delivery;
mod describe;
mod engine;
mod error;
mod events;
mod execute;
mod expr;
mod faults;
mod filter;
mod keys;
mod literal;
mod mock;
mod options;
mod order;
mod paging;
mod plan;
mod read;
mod restrict;
mod schema_file;
mod select;
mod serial;
mod server;
mod service;
mod session;
mod shards;
mod store;
mod system_tables;
mod types;
mod uuid;
mod worker;
mod write;
mod write_compile;

pub use aerospike::{Instances, RecordSession, Records, RecordsConfig};
pub use config::{Config, Protocol, ServeError};
pub use counters::Counters;
pub use engine::{Clock, Engine, EngineConfig, EngineError, Storage};
pub use error::CqlError;
pub use faults::{Delay, Fault, FaultError, Faults, Share, Stall};
pub use server::{Handle, Server};
pub use service::{After, Received, SessionLimits};
pub use session::Session;
pub use shards::Scylla;
pub use store::{LsmOptions, StoreError};
