//! The control plane of a cluster: connects, changes the schema and waits until all hosts agree,
//! asks, reads the ring.
//!
//! In: addresses, who we are, CQL text. Out: rows, and a [`wire::routing::Ring`] of hosts and
//! replicas. Built on the `scylla` driver (protocol v4), whose tasks run on one thread of their
//! own, off the workers' cpus; nothing async shows. Nothing of it lives while a run is measured:
//! drop the [`Admin`], and connect again when it is needed. Limits: Murmur3 token rings, no
//! tablets. Clusters of Aerospike's protocol are [`aerospike`]'s, over blocking sockets.

pub mod aerospike;
mod bridge;
mod connect;
mod fixed;
mod replication;
mod ring;
mod rows;
mod runtime;
mod statements;

pub use connect::{Admin, Config, ConnectError};
pub use replication::ReplicationError;
pub use ring::RingError;
pub use rows::{Cell, Row};
pub use statements::{QueryError, SchemaError, literal};
