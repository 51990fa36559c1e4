//! The control plane of servers that speak Aerospike's protocol: who they are, which partitions
//! each of them has, and single records.
//!
//! In: seeds. Out: the addresses of all servers, the master of each partition, and what becomes of
//! both while they are looked after ([`Cluster::tend`]). Blocking sockets, one to each server. What
//! is asked is what clients ask (`node`, `partition-generation`, `peers-generation`, `replicas`,
//! `peers-clear-std`, `service-clear-std`). Limits: no users, no TLS, one namespace at a time.

mod cluster;
mod records;
mod server;

pub use cluster::{Cluster, Config};
pub use records::Bins;
pub use server::{Error, Server};
