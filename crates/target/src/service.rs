//! What an event loop knows of a protocol: bytes in, answers out, for each connection.

use crate::counters::Counters;
use crate::events::EventLog;
use crate::faults::{Fate, FaultPlan};
use crate::store::Disk;
use std::net::SocketAddr;
use std::sync::Arc;

/// Whether a connection lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum After {
    /// More requests may come.
    #[default]
    Continue,
    /// Send what was answered, then close.
    Close,
}

/// What became of what has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// So many bytes are done with.
    pub consumed: usize,
    /// So many requests were answered; they may have been consumed before.
    pub answered: usize,
    /// Those of them that were operations on data: of CQL an EXECUTE, a QUERY or a BATCH.
    pub operations: usize,
    /// Whether the connection lives on.
    pub after: After,
}

/// Bounds of a connection.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Greatest body that is read, bytes.
    pub frame_size_max: usize,
    /// Answers waiting to be sent, bytes: beyond, no further request is taken.
    pub backlog_max: usize,
}

/// A protocol, and the data behind it.
pub(crate) trait Service: Send + Sync {
    /// A connection of it.
    type Session: Conversation + Send;

    /// A new connection of `peer`, which came to `port`; `counters` is its thread's block.
    fn session(
        self: &Arc<Self>,
        counters: &Arc<Counters>,
        limits: SessionLimits,
        peer: SocketAddr,
        port: u16,
    ) -> Self::Session;

    /// A block of counters for one more thread.
    fn counters(&self) -> Arc<Counters>;

    /// Bytes that a request takes at most on the wire, with a body of at most `frame_size_max`.
    fn receive_max(frame_size_max: usize) -> usize;

    /// None when nothing goes wrong on purpose.
    fn faults(&self) -> Option<&FaultPlan>;

    /// None when data is not on disk.
    fn disk(&self) -> Option<&Disk>;

    /// What is to be done now and then: called by each thread after each of its turns.
    fn after_a_turn(&self) {}

    /// None when connections are told nothing unasked.
    fn events(&self) -> Option<&EventLog>;
}

/// One connection, without its socket.
pub(crate) trait Conversation {
    /// Answers the whole requests at the start of `received`, at most `requests_max` of them, into
    /// `out`. Stops early when `out` has grown beyond the backlog.
    fn receive(&mut self, received: &[u8], requests_max: usize, out: &mut Vec<u8>) -> Received;

    /// What became of the operation that was carried out last; asked once.
    fn take_fate(&mut self) -> Fate;

    /// Whether the client has asked to be told of changes of the schema.
    fn wants_schema_changes(&self) -> bool;

    /// Appends an event of the service as it goes to this client.
    fn tell(&mut self, event: &[u8], out: &mut Vec<u8>);
}
