//! Sockets and timers for one thread: the only place of the data plane that talks to the kernel.
//!
//! A [`Ring`] belongs to one thread and owns its connections and their buffers. Its interface is
//! that of completions ("so many bytes have arrived"), because that is what io_uring gives;
//! [`Epoll`] emulates it by receiving as soon as the kernel says that a socket is readable. Send
//! memory is double-buffered: one half is filled while the kernel has the other, and a half never
//! moves while it is in flight.
//!
//! Cost, epoll: one `epoll_pwait2` a turn, one `recv` per readable connection, one `send` per
//! flushed connection; all frames that are ready go out in one send and come in with one receive.
//! io_uring: one `io_uring_enter` a turn for all of these.

mod buffer;
mod engine;
mod epoll;
mod mailbox;
mod sharing;
mod socket;
mod timer;
mod uring;

pub use buffer::{ReceiveBuffer, SendBuffer};
pub use engine::{Engine, EngineError};
pub use epoll::Epoll;
pub use mailbox::Mailbox;
pub use uring::{Unavailable, Uring};

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use units::Nanos;

/// A connection of a ring: an index that is reused after [`Ring::close`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// As an index into the user's own table of connections.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What has happened. One wait may tell several things of a connection: those behind one for which
/// its owner closed it are to be ignored.
#[derive(Debug)]
pub enum Event {
    /// Bytes were appended to the receive buffer; `at` is a clock read after the receive returned.
    Received {
        /// On this connection.
        connection: ConnectionId,
        /// When the receive had returned.
        at: Nanos,
    },
    /// A connection begun with [`Ring::connect`] is established.
    Connected {
        /// This connection.
        connection: ConnectionId,
    },
    /// All that was flushed is with the kernel again: another flush can go out.
    Writable {
        /// On this connection.
        connection: ConnectionId,
    },
    /// The peer closed or the socket failed. The id stays valid until [`Ring::close`].
    Closed {
        /// This connection.
        connection: ConnectionId,
        /// None when the peer closed in good order.
        error: Option<io::Error>,
    },
    /// A connection was accepted from the listener and attached.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// Its peer.
        peer: SocketAddr,
    },
}

/// What became of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The filled half was offered to the kernel (which may have taken a part of it so far).
    Offered,
    /// The half before is still in flight; what is filled waits for [`Event::Writable`].
    Waiting,
    /// There was nothing to send.
    Empty,
}

/// How much memory a connection gets.
#[derive(Debug, Clone, Copy)]
pub struct BufferSizes {
    /// Each half of the send buffer, bytes, before it grows.
    pub send: usize,
    /// The receive buffer, bytes, before it grows.
    pub receive: usize,
    /// A receive buffer grows up to this, bytes; a longer frame closes the connection.
    pub receive_max: usize,
}

/// System calls made, for the report of the client's own cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Syscalls {
    /// Waits for events, of which some may have slept.
    pub wait: u64,
    /// Sends.
    pub send: u64,
    /// Receives.
    pub receive: u64,
}

impl Syscalls {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.wait + self.send + self.receive
    }
}

/// Sockets and timers of one thread.
pub trait Ring {
    /// Begins to connect; [`Event::Connected`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    /// When no socket can be made, or the address is refused at once.
    fn connect(&mut self, address: SocketAddr) -> io::Result<ConnectionId>;

    /// Takes over an established connection.
    ///
    /// # Errors
    /// When the kernel refuses to watch it.
    fn attach(&mut self, stream: TcpStream) -> io::Result<ConnectionId>;

    /// Accepts connections from `listener` from now on.
    ///
    /// # Errors
    /// When the kernel refuses to watch it.
    fn listen(&mut self, listener: TcpListener) -> io::Result<()>;

    /// The mailbox of this ring, made when first asked for.
    ///
    /// # Errors
    /// When the kernel gives no descriptor for it.
    fn mailbox(&mut self) -> io::Result<Arc<Mailbox>>;

    /// Connections accepted from now on go to the ring, of these, that has the fewest.
    fn share(&mut self, rings: Vec<Arc<Mailbox>>);

    /// Closes and forgets a connection; its id may be given to another one.
    fn close(&mut self, connection: ConnectionId);

    /// The half of the send buffer that is being filled.
    fn filling(&mut self, connection: ConnectionId) -> &mut SendBuffer;

    /// Bytes that are not with the kernel yet: filled or in flight.
    fn unsent(&self, connection: ConnectionId) -> usize;

    /// Offers the filled half to the kernel unless the half before is still in flight.
    ///
    /// # Errors
    /// When the connection is broken. [`Event::Closed`] does not follow.
    fn flush(&mut self, connection: ConnectionId) -> io::Result<Flush>;

    /// What has arrived and was not consumed.
    fn received(&self, connection: ConnectionId) -> &[u8];

    /// Drops the first `size` bytes of [`Self::received`].
    fn consume(&mut self, connection: ConnectionId, size: usize);

    /// Stops or resumes receiving: back-pressure on a peer that sends without reading.
    ///
    /// # Errors
    /// When the kernel refuses the change.
    fn pause_receiving(&mut self, connection: ConnectionId, pause: bool) -> io::Result<()>;

    /// Waits until something happens or `until` has come (None: no limit; the past: does not
    /// sleep), and appends what happened to `events`. An interrupted wait returns early.
    ///
    /// # Errors
    /// When the wait itself fails; failures of a connection are events.
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> io::Result<()>;

    /// System calls made so far.
    fn syscalls(&self) -> Syscalls;
}
