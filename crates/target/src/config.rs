//! How a server behaves, and why one does not serve.

use crate::aerospike::Instances;
use crate::engine::{Clock, EngineError, Storage};
use crate::faults::Faults;
use crate::shards::Scylla;
use ring::{Unavailable, tls};
use std::io;
use std::net::SocketAddr;
use thiserror::Error;
use units::{Bytes, Nanos};
use wire::cql::VERSION_5;

/// What is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Protocol {
    /// CQL, over tables.
    #[default]
    Cql,
    /// Aerospike's, over records; always in memory.
    Aerospike {
        /// Names of the namespaces that there are.
        namespaces: Vec<String>,
        /// The servers that it is.
        instances: Instances,
    },
}

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// What is spoken.
    pub protocol: Protocol,
    /// What becomes of rows.
    pub storage: Storage,
    /// Threads, each with its own event loop.
    pub threads: usize,
    /// Writes that add are refused when the rows take more, approximately.
    pub memory_max: Bytes,
    /// Longest body of a frame or message, bytes; at most 256 MiB.
    pub frame_size_max: usize,
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Prepared statements kept; the oldest is forgotten for one more.
    pub prepared_max: usize,
    /// Bytes waiting to be sent on a connection, beyond which it is not read from.
    pub backlog_max: usize,
    /// Where the time of TTLs and default timestamps comes from.
    pub clock: Clock,
    /// Each operation holds one lock of the server for so long: a mock of known capacity.
    pub serial: Option<Nanos>,
    /// Greatest version of CQL's protocol that is spoken: 4 or 5.
    pub protocol_max: u8,
    /// How its threads talk to the kernel.
    pub io: ring::Engine,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Inside TLS; None takes everything as it is.
    pub tls: Option<tls::Server>,
    /// It is like a ScyllaDB host; None: like a Cassandra.
    pub scylla: Option<Scylla>,
}

impl Config {
    /// Storage in memory up to 4 GiB, one thread, frames up to 16 MiB, 10 000 connections and
    /// prepared statements, a backlog of 4 MiB.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            protocol: Protocol::Cql,
            storage: Storage::Memory,
            threads: 1,
            memory_max: Bytes(4 << 30),
            frame_size_max: 16 << 20,
            connections_max: 10_000,
            prepared_max: 10_000,
            backlog_max: 4 << 20,
            clock: Clock::System,
            serial: None,
            protocol_max: VERSION_5,
            io: ring::Engine::Epoll,
            faults: Faults::default(),
            tls: None,
            scylla: None,
        }
    }
}

/// Why the target does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", bind_cure(source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Nor can the one that chooses shards.
    #[error(
        "cannot listen on {address} for clients that choose their shard: {source}; choose another \
         port with --shard-aware-port"
    )]
    BindShards {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There is no such way of talking to the kernel here.
    #[error(transparent)]
    Io(#[from] Unavailable),
    /// There is no engine to serve.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What is written cannot be kept.
    #[error(
        "{0}: nothing has been acknowledged since; see whether the disk is full or broken, and \
         start again"
    )]
    Store(String),
    /// A thread or its event loop cannot be made, or has failed.
    #[error(
        "the event loop on {address} failed: {source}; check the limits on threads and \
         open files (ulimit -n)"
    )]
    Loop {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

fn bind_cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there, or choose another port with --listen",
        io::ErrorKind::AddrNotAvailable => "choose an address of this host with --listen",
        io::ErrorKind::PermissionDenied => "choose a port above 1023 with --listen",
        _ => "choose another address with --listen",
    }
}
