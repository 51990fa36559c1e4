//! What the engine leaves to a protocol: how a connection begins, how an operation is encoded and
//! where it goes, and which answer is whose.
//!
//! The engine has the schedule, the operations under way, timeouts, attempts, reconnecting and
//! recording; see [`Worker`]. A [`Protocol`] is what encodes a plan, shared by all workers; each
//! worker has a [`Protocol::Local`] of its own, each connection a [`Link`]. All of it is
//! monomorphised: a worker speaks one protocol over one engine.

use crate::connection::Connection;
use crate::handshake::Refusal;
use crate::roster::Hosts;
use crate::slots::Slot;
use crate::tally::Witness;
use crate::worker::Worker;
use ring::{BufferSizes, ConnectionId, Ring, SendBuffer};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use units::{Credentials, Nanos};
use workload::{Draw, Plan};

/// What a protocol knows of a connection: the requests that are under way on it.
pub(crate) trait Link: fmt::Debug {
    /// Begins to connect.
    ///
    /// # Errors
    /// What the kernel says at once.
    fn dial<R: Ring>(&mut self, ring: &mut R, address: SocketAddr) -> io::Result<ConnectionId> {
        ring.connect(address)
    }

    /// Whether it is being connected to in a way that may not work where another one does.
    fn has_choice(&self) -> bool {
        false
    }

    /// It was not had this way; whether there is another one.
    fn failed(&mut self) -> bool {
        false
    }

    /// It is lost: nothing is under way any more.
    fn clear(&mut self);

    /// Whether one more request may be under way.
    fn available(&self) -> bool;

    /// The number of a request for the operation in `slot`; None unless [`Self::available`].
    fn take(&mut self, slot: u32) -> Option<i16>;

    /// The request was not made.
    fn put_back(&mut self, request: i16);

    /// Nobody waits for the answer to a request any more; whether the connection is of no further
    /// use by this.
    fn give_up(&mut self, request: i16) -> bool;

    /// Slots of all requests that are under way.
    fn slots(&self) -> impl Iterator<Item = u32> + '_;

    /// Where requests are written.
    #[inline]
    fn buffer<'a, R: Ring>(&'a mut self, ring: &'a mut R, id: ConnectionId) -> &'a mut SendBuffer {
        ring.filling(id)
    }

    /// What is written goes on to the socket's buffer.
    #[inline]
    fn offer<R: Ring>(&mut self, _: &mut R, _: ConnectionId) {}

    /// Whether something is written that was not offered.
    fn has_pending(&self) -> bool {
        false
    }
}

/// Who the connections are, and what they speak.
#[derive(Debug)]
pub(crate) struct Introduction<'a, P> {
    pub(crate) encoder: &'a P,
    pub(crate) credentials: Option<&'a Credentials>,
}

/// Why a connection does not come to be ready.
pub(crate) enum Failure {
    Refused(Refusal),
    Broken(io::Error),
    /// It came to another shard than the one that was chosen.
    Elsewhere,
}

/// A plan in a protocol's requests.
pub(crate) trait Protocol: fmt::Debug + Send + Sync + Sized + 'static {
    /// Of a connection.
    type Link: Link;
    /// Of a worker: what it encodes with, and where operations go.
    type Local;

    /// The plan that is encoded.
    fn plan(&self) -> &Arc<Plan>;

    /// No request is longer, bytes.
    fn frame_size_max(&self) -> usize;

    /// Of each connection, when so many operations of a worker are spread over so many of them.
    fn buffer_sizes(&self, in_flight_max: usize, connections: usize) -> BufferSizes;

    /// Of a connection to a host that is its `place`th one.
    fn link(hosts: &Hosts, host: usize, place: usize) -> Self::Link;

    /// Of one of so many workers on a database.
    fn local(&self, hosts: &Hosts, worker: usize, peers: usize, in_flight: usize) -> Self::Local;

    /// Connections that a worker has to each host for reasons of its own.
    fn connections_per_host(hosts: &Hosts, workers: usize) -> Option<usize>;

    /// Writes the key of a draw, which routes it, to the front of `out`, which has the plan's room
    /// for keys; returns its size in bytes.
    fn write_key(&self, draw: &Draw, out: &mut [u8]) -> usize;

    /// Writes the request of a slot's current step to the front of `out`, which has room for
    /// [`Self::frame_size_max`] bytes; returns its size.
    ///
    /// # Errors
    /// Why there is no such request.
    fn write(
        &self,
        slot: &mut Slot,
        key: &[u8],
        local: &mut Self::Local,
        out: &mut [u8],
    ) -> Result<usize, String>;

    /// The socket is connected: says the first thing, to be answered until `deadline`, or is ready.
    ///
    /// # Errors
    /// When the connection is broken.
    fn begin<R: Ring>(
        who: &Introduction<'_, Self>,
        ring: &mut R,
        connection: &mut Connection<Self::Link>,
        deadline: Nanos,
    ) -> io::Result<()>;

    /// Something has arrived on a connection that is not ready yet.
    ///
    /// # Errors
    /// [`Failure`].
    fn go_on<R: Ring>(
        who: &Introduction<'_, Self>,
        ring: &mut R,
        connection: &mut Connection<Self::Link>,
    ) -> Result<(), Failure>;

    /// A connection that takes an operation now: the one hinted at, or another one.
    fn usable<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, hint: u16) -> Option<u16>;

    /// Sends the current step of an operation to a host that holds its key; `any` was found
    /// [`Self::usable`].
    fn send<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u32, any: u16);

    /// Takes every whole answer that has arrived on a connection. `at` is the clock read behind the
    /// receive.
    fn receive<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16, at: Nanos);

    /// A connection has become ready, or is not any more.
    fn changed<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16);

    /// The hosts are others from now on, or others of them hold what is held.
    fn follow<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, hosts: &Hosts);

    /// Called once per turn, when what is overdue has ended.
    fn turn<R: Ring, W: Witness>(_: &mut Worker<R, W, Self>, _now: Nanos) {}

    /// Operations that wait for a connection by an order of the protocol's wait in that of all.
    fn unsent<R: Ring, W: Witness>(_: &mut Worker<R, W, Self>) {}

    /// The worker is done.
    fn end<R: Ring, W: Witness>(_: &mut Worker<R, W, Self>) {}
}
