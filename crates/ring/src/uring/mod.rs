//! An engine over io_uring: one system call a turn sends, receives and waits.
//!
//! Receives stay armed (multishot) and take buffers from a [`pool::Pool`]; what has arrived is read
//! there, see [`arrivals`]. Sends do not wait
//! for room in the socket: they are done when the call that submits them returns, and one that
//! finds no room polls for it. So a wait asks for as many completions as there are sends, and one
//! more. Task work is deferred to our own calls (`DEFER_TASKRUN`, Linux 6.1), so that a poll
//! without anything to submit reads a flag and makes no system call.
//!
//! Cost: one `io_uring_enter` a turn. Source: io_uring_setup(2), io_uring_enter(2),
//! io_uring_prep_recv_multishot(3). Limits: Linux 6.0; a wait's timeout is relative.

#![allow(unsafe_code)]

mod arrivals;
mod connection;
mod pool;
mod requests;
mod setup;

pub use setup::Unavailable;

use crate::buffer::SendBuffer;
use crate::mailbox::Mailbox;
use crate::sharing::{ACCEPTS_MAX, Accepted, Sharing};
use crate::socket::connecting;
use crate::{BufferSizes, ConnectionId, Event, Flush, Ring, Syscalls};
use connection::Connection;
use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};
use pool::Pool;
use rustix::fd::{AsRawFd, OwnedFd};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use units::{Nanos, clock};

/// Completions that are looked at in one turn before memory for them grows.
const COMPLETIONS_ROOM: usize = 4096;

/// What a completion belongs to: the upper half of its user data; the lower one is the connection,
/// or the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Receive,
    Send,
    Poll,
    Cancel,
    Listener,
    Mailbox,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Receive, Self::Send, Self::Poll, Self::Cancel, Self::Listener, Self::Mailbox];

    fn user_data(self, id: ConnectionId) -> u64 {
        u64::from(self as u32) << 32 | u64::from(id.0)
    }

    fn of(user_data: u64) -> Option<Self> {
        Self::ALL.get((user_data >> 32) as usize).copied()
    }
}

/// No connection.
const NONE: ConnectionId = ConnectionId(0);

/// A [`Ring`] over io_uring.
pub struct Uring {
    // Closed before the memory that it knows is freed: fields are dropped in this order.
    uring: IoUring,
    pool: Pool,
    connections: Vec<Option<Connection>>,
    /// Places in `connections` that may be given again.
    vacant: Vec<u32>,
    /// Requests that found no room in the submission queue.
    backlog: VecDeque<squeue::Entry>,
    /// Requests, not completed yet, that are complete when their submission returns.
    at_once: usize,
    /// A flush waits for the half before it: the next wait ends when that is with the kernel.
    flush_waits: bool,
    /// Kept for its memory.
    completions: Vec<cqueue::Entry>,
    /// Connections that were lent buffers in the last turn.
    lent: Vec<ConnectionId>,
    /// Connections that may hold more than they are allowed to.
    full: Vec<ConnectionId>,
    /// Connections resumed with bytes that came while they were paused.
    resumed: Vec<ConnectionId>,
    sharing: Sharing,
    sizes: BufferSizes,
    syscalls: Syscalls,
    /// The first wait enables the ring, for the thread that makes it.
    enabled: bool,
    /// Stands in for a closed connection's buffer, so that no caller has to be refused.
    nowhere: SendBuffer,
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl Uring {
    /// Without connections. The thread that waits first is the only one that may wait.
    ///
    /// # Errors
    /// [`Unavailable`], which says why.
    pub fn new(sizes: BufferSizes) -> Result<Self, Unavailable> {
        let (uring, pool) = setup::set_up()?;
        Ok(Self {
            uring,
            pool,
            connections: Vec::new(),
            vacant: Vec::new(),
            backlog: VecDeque::new(),
            at_once: 0,
            flush_waits: false,
            completions: Vec::with_capacity(COMPLETIONS_ROOM),
            lent: Vec::new(),
            full: Vec::new(),
            resumed: Vec::new(),
            sharing: Sharing::default(),
            sizes,
            syscalls: Syscalls::default(),
            enabled: false,
            nowhere: SendBuffer::default(),
        })
    }

    /// Ends every request, so that the kernel lets go of the sockets they name: of a closed ring it
    /// ends them some time later, and until then a listener's port stays taken. It is done only for
    /// the thread that waited; for another one, the kernel's own time is what there is.
    fn let_go(&mut self) {
        if !self.enabled {
            return;
        }
        let submitter = self.uring.submitter();
        let wait_max = Timespec::new().sec(1);
        let _ = submitter.register_sync_cancel(Some(wait_max), CancelBuilder::any());
        // What was cancelled is released by the task work of a call that asks for completions.
        // SAFETY: nothing is submitted, so that no memory is named.
        let _ = unsafe { submitter.enter::<()>(0, 0, EnterFlags::GETEVENTS.bits(), None) };
    }

    /// Whether this machine can, before anything depends on it.
    ///
    /// # Errors
    /// [`Unavailable`], which says why not.
    pub fn check() -> Result<(), Unavailable> {
        setup::set_up().map(drop)
    }

    fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.index())?.as_mut().filter(|connection| !connection.closing)
    }

    fn add(&mut self, socket: OwnedFd, connecting: bool) -> ConnectionId {
        let connection = Connection::new(socket, connecting, self.sizes);
        let index = self.vacant.pop().unwrap_or(self.connections.len() as u32);
        match self.connections.get_mut(index as usize) {
            Some(place) => *place = Some(connection),
            None => {
                self.connections.push(Some(connection));
                // Each may be lent buffers in one turn, and a turn is not to allocate.
                self.lent.reserve(self.connections.len() - self.lent.len());
            }
        }
        let id = ConnectionId(index);
        match connecting {
            true => self.poll(id),
            false => self.receive_from(id),
        }
        id
    }

    /// The place of a closed connection is given again when nothing of it is with the kernel.
    fn reap(&mut self, id: ConnectionId) {
        if let Some(place) = self.connections.get_mut(id.index())
            && place.as_ref().is_some_and(|c| c.closing && c.pending == 0)
        {
            *place = None;
            self.vacant.push(id.0);
        }
    }

    fn tell_closed(&mut self, id: ConnectionId, error: Option<io::Error>, out: &mut Vec<Event>) {
        if let Some(connection) = self.get(id)
            && !connection.told
        {
            connection.told = true;
            out.push(Event::Closed { connection: id, error });
        }
    }

    /// What is due without asking the kernel.
    fn before_waiting(&mut self, events: &mut Vec<Event>) {
        while let Some(id) = self.lent.pop() {
            let Some(Some(connection)) = self.connections.get_mut(id.index()) else { continue };
            match connection.arrivals.settle(&mut self.pool) {
                true if connection.paused => connection.held = true,
                true => events.push(Event::Received { connection: id, at: clock::now() }),
                false => {}
            }
            if connection.arrivals.is_full() {
                self.full.push(id);
            }
        }
        while let Some(id) = self.full.pop() {
            if self.get(id).is_some_and(|connection| connection.arrivals.is_full()) {
                let text = "a frame is longer than the receive buffer may grow";
                self.tell_closed(id, Some(io::Error::other(text)), events);
            }
        }
        while let Some(id) = self.resumed.pop() {
            let holds = |c: &mut Connection| !c.paused && std::mem::take(&mut c.held);
            if self.get(id).is_some_and(holds) {
                events.push(Event::Received { connection: id, at: clock::now() });
            }
        }
    }

    /// Submits what is queued and, if so asked, waits for what does not come at once.
    fn enter(&mut self, until: Option<Nanos>, sleep: bool) -> io::Result<()> {
        while let Some(entry) = self.backlog.pop_front() {
            // SAFETY: as in [`Self::push`].
            if unsafe { self.uring.submission().push(&entry) }.is_err() {
                self.backlog.push_front(entry);
                self.call(|uring| uring.submitter().submit())?;
                if self.uring.submission().is_full() {
                    // The kernel takes none until completions have been taken.
                    return Ok(());
                }
            }
        }
        let timeout = until.map(|until| until.since(clock::now()));
        if !sleep || timeout == Some(Nanos::ZERO) {
            let submission = self.uring.submission();
            let idle = submission.is_empty() && !submission.taskrun() && !submission.cq_overflow();
            drop(submission);
            return if idle { Ok(()) } else { self.call(|uring| uring.submitter().submit()) };
        }
        let want = match std::mem::take(&mut self.flush_waits) {
            true => self.at_once.max(1),
            false => self.at_once + 1,
        };
        match timeout {
            None => self.call(|uring| uring.submitter().submit_and_wait(want)),
            Some(timeout) => {
                let (s, ns) = (timeout.0 / 1_000_000_000, timeout.0 % 1_000_000_000);
                let timeout = Timespec::new().sec(s).nsec(ns as u32);
                let args = SubmitArgs::new().timespec(&timeout);
                self.call(|uring| uring.submitter().submit_with_args(want, &args))
            }
        }
    }

    fn call(&mut self, enter: impl FnOnce(&IoUring) -> io::Result<usize>) -> io::Result<()> {
        self.syscalls.wait += 1;
        match enter(&self.uring) {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // In time, interrupted, or to be tried again when completions have been taken.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn enable(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.uring.submitter().register_enable_rings()?;
            // Only spares the kernel a look-up.
            let _ = self.uring.submitter().register_ring_fd();
            self.enabled = true;
        }
        Ok(())
    }

    fn on_completion(&mut self, done: &cqueue::Entry, at: Nanos, events: &mut Vec<Event>) {
        let id = ConnectionId(done.user_data() as u32);
        match Kind::of(done.user_data()) {
            Some(Kind::Receive) => self.on_received(id, done, at, events),
            Some(Kind::Send) => {
                self.at_once -= 1;
                self.completed(id);
                self.on_sent(id, done.result(), events);
            }
            Some(Kind::Poll) => {
                self.completed(id);
                self.on_polled(id, events);
            }
            Some(Kind::Cancel) => {
                self.at_once -= 1;
                self.completed(id);
            }
            // No connection's, so that none is reaped.
            Some(Kind::Listener) => return self.accept(id.index(), events),
            Some(Kind::Mailbox) => {
                for (stream, peer) in self.sharing.take() {
                    self.accepted(stream, peer, events);
                }
                self.watch_mailbox();
            }
            None => {}
        }
        self.reap(id);
    }

    fn completed(&mut self, id: ConnectionId) {
        if let Some(Some(connection)) = self.connections.get_mut(id.index()) {
            connection.pending -= 1;
        }
    }

    fn on_received(
        &mut self,
        id: ConnectionId,
        done: &cqueue::Entry,
        at: Nanos,
        events: &mut Vec<Event>,
    ) {
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return };
        if !cqueue::more(done.flags()) {
            connection.armed = false;
            connection.pending -= 1;
        }
        let over = connection.closing || connection.told;
        match self.pool.take(done) {
            Some(arrived) if over => self.pool.give_back(arrived),
            Some(arrived) => {
                let first = connection.arrivals.push(arrived, &mut self.pool);
                self.lent.extend(first.then_some(id));
            }
            None => {}
        }
        if over {
            return;
        }
        match done.result() {
            1.. if connection.paused => connection.held = true,
            1.. => events.push(Event::Received { connection: id, at }),
            0 => self.tell_closed(id, None, events),
            negative => match -negative {
                // Out of buffers, which are back by now; paused; or interrupted.
                libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                code => {
                    self.tell_closed(id, Some(io::Error::from_raw_os_error(code)), events);
                }
            },
        }
        if self.get(id).is_some_and(|connection| connection.arrivals.is_full()) {
            self.full.push(id);
        }
        self.receive_from(id);
    }

    fn on_sent(&mut self, id: ConnectionId, result: i32, events: &mut Vec<Event>) {
        let size_max = self.sizes.send.max(1 << 20);
        let Some(connection) = self.get(id) else { return };
        match usize::try_from(result) {
            Ok(size) => {
                connection.taken += size;
                if connection.rest().is_empty() {
                    connection.flying.shrink(size_max);
                    connection.taken = 0;
                    events.push(Event::Writable { connection: id });
                } else {
                    self.poll(id);
                }
            }
            Err(_) => match -result {
                libc::EAGAIN => self.poll(id),
                libc::EINTR => self.send_from(id),
                code => {
                    self.tell_closed(id, Some(io::Error::from_raw_os_error(code)), events);
                }
            },
        }
    }

    fn on_polled(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let Some(connection) = self.get(id) else { return };
        if !connection.connecting {
            return self.send_from(id);
        }
        match connection.connected() {
            Ok(()) => {
                events.push(Event::Connected { connection: id });
                self.receive_from(id);
            }
            Err(error) => self.tell_closed(id, Some(error), events),
        }
    }

    /// The listener of this index can be accepted from.
    fn accept(&mut self, index: usize, events: &mut Vec<Event>) {
        for _ in 0..ACCEPTS_MAX {
            match self.sharing.accept() {
                Some(Accepted::Here(stream, peer)) => self.accepted(stream, peer, events),
                Some(Accepted::Elsewhere) => {}
                None => break,
            }
        }
        self.watch_listener(index);
    }

    /// Attaches a connection that the mailbox counts already.
    fn accepted(&mut self, stream: TcpStream, peer: SocketAddr, events: &mut Vec<Event>) {
        let port = stream.local_addr().map_or(0, |local| local.port());
        match self.attach(stream) {
            Ok(id) => {
                if let Some(connection) = self.get(id) {
                    connection.accepted = true;
                }
                events.push(Event::Accepted { connection: id, peer, port });
            }
            Err(_) => self.sharing.closed(),
        }
    }

    fn watch_listener(&mut self, index: usize) {
        if let Some(fd) = self.sharing.listener(index).map(AsRawFd::as_raw_fd) {
            self.watch(fd, Kind::Listener, ConnectionId(index as u32));
        }
    }

    fn watch_mailbox(&mut self) {
        if let Some(fd) = self.sharing.bell().map(AsRawFd::as_raw_fd) {
            self.watch(fd, Kind::Mailbox, NONE);
        }
    }
}

impl Ring for Uring {
    fn connect_from(&mut self, port: Option<u16>, address: SocketAddr) -> io::Result<ConnectionId> {
        Ok(self.add(connecting(address, port)?, true))
    }

    fn attach(&mut self, stream: TcpStream) -> io::Result<ConnectionId> {
        // The kernel refuses to wait for one that is asked not to.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(self.add(stream.into(), false))
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let index = self.sharing.listen(listener);
        self.watch_listener(index);
        Ok(())
    }

    fn mailbox(&mut self) -> io::Result<Arc<Mailbox>> {
        let (mailbox, is_new) = self.sharing.mailbox()?;
        if is_new {
            self.watch_mailbox();
        }
        Ok(mailbox)
    }

    fn share(&mut self, rings: Vec<Arc<Mailbox>>) {
        self.sharing.share(rings);
    }

    fn close(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        connection.closing = true;
        if connection.accepted {
            self.sharing.closed();
        }
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return };
        connection.arrivals.clear(&mut self.pool);
        if connection.pending > 0 {
            // Ends an armed receive. A socket that is not connected has nothing to shut down.
            let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
            self.cancel(Kind::Poll, id);
        }
        self.reap(id);
    }

    #[inline]
    fn filling(&mut self, id: ConnectionId) -> &mut SendBuffer {
        match self.connections.get_mut(id.index()) {
            Some(Some(c)) if !c.closing => &mut c.filling,
            _ => {
                self.nowhere.shrink(0);
                &mut self.nowhere
            }
        }
    }

    fn unsent(&self, id: ConnectionId) -> usize {
        match self.connections.get(id.index()) {
            Some(Some(c)) if !c.closing => c.filling.filled().len() + c.rest().len(),
            _ => 0,
        }
    }

    fn flush(&mut self, id: ConnectionId) -> io::Result<Flush> {
        let Some(connection) = self.get(id) else { return Ok(Flush::Empty) };
        if connection.filling.filled().is_empty() {
            return Ok(Flush::Empty);
        }
        if !connection.rest().is_empty() {
            self.flush_waits = true;
            return Ok(Flush::Waiting);
        }
        std::mem::swap(&mut connection.filling, &mut connection.flying);
        self.send_from(id);
        Ok(Flush::Offered)
    }

    #[inline]
    fn received(&self, id: ConnectionId) -> &[u8] {
        match self.connections.get(id.index()) {
            Some(Some(c)) if !c.closing => c.arrivals.received(&self.pool),
            _ => &[],
        }
    }

    #[inline]
    fn consume(&mut self, id: ConnectionId, size: usize) {
        if let Some(Some(c)) = self.connections.get_mut(id.index()) {
            c.arrivals.consume(size, &mut self.pool);
        }
    }

    fn pause_receiving(&mut self, id: ConnectionId, pause: bool) -> io::Result<()> {
        let Some(connection) = self.get(id) else { return Ok(()) };
        let was = std::mem::replace(&mut connection.paused, pause);
        match (was, pause) {
            (false, true) if connection.armed => self.cancel(Kind::Receive, id),
            (true, false) => {
                self.resumed.push(id);
                self.receive_from(id);
            }
            _ => {}
        }
        Ok(())
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> io::Result<()> {
        self.enable()?;
        let before = events.len();
        self.before_waiting(events);
        self.enter(until, events.len() == before)?;
        let mut completions = std::mem::take(&mut self.completions);
        completions.extend(self.uring.completion());
        if !completions.is_empty() {
            let at = clock::now();
            for done in completions.drain(..) {
                self.on_completion(&done, at, events);
            }
        }
        self.completions = completions;
        Ok(())
    }

    fn syscalls(&self) -> Syscalls {
        self.syscalls
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        for connection in self.connections.iter().flatten() {
            let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Both);
        }
        self.let_go();
        let _ = self.uring.submitter().unregister_ring_fd();
    }
}
