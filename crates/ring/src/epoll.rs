//! The default engine: level-triggered epoll that receives as soon as a socket is readable.
//!
//! Level-triggered, because a socket that has more than one receive took simply shows up in the
//! next wait; a second `recv` that only finds EAGAIN would cost a system call per wake-up.

use crate::buffer::{ReceiveBuffer, SendBuffer};
use crate::mailbox::Mailbox;
use crate::sharing::{ACCEPTS_MAX, Accepted, Sharing};
use crate::socket::connecting;
use crate::timer::{TIMER, Waiter};
use crate::{BufferSizes, ConnectionId, Event, Flush, Ring, Syscalls};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use units::{Nanos, clock};

/// Marks the listener among the events.
const LISTENER: u64 = u64::MAX - 1;
/// Marks the mailbox among the events.
const MAILBOX: u64 = u64::MAX - 2;

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    connecting: bool,
    /// Counted by the mailbox.
    accepted: bool,
    paused: bool,
    /// What epoll watches now.
    interest: EventFlags,
    filling: SendBuffer,
    flying: SendBuffer,
    /// Bytes of `flying` that the kernel has taken.
    taken: usize,
    receive: ReceiveBuffer,
}

impl Connection {
    fn in_flight(&self) -> usize {
        self.flying.filled().len() - self.taken
    }

    fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        if !self.paused {
            wanted |= EventFlags::IN;
        }
        if self.connecting || self.in_flight() > 0 {
            wanted |= EventFlags::OUT;
        }
        wanted
    }
}

/// A [`Ring`] over epoll.
#[derive(Debug)]
pub struct Epoll {
    epoll: OwnedFd,
    waiter: Waiter,
    sharing: Sharing,
    connections: Vec<Option<Connection>>,
    /// Places in `connections` that may be given again.
    vacant: Vec<u32>,
    sizes: BufferSizes,
    syscalls: Syscalls,
    /// Stands in for a closed connection's buffer, so that no caller has to be refused.
    nowhere: SendBuffer,
}

impl Epoll {
    /// Without connections.
    ///
    /// # Errors
    /// When the kernel gives no epoll instance (`RLIMIT_NOFILE`).
    pub fn new(sizes: BufferSizes) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            waiter: Waiter::new(),
            sharing: Sharing::default(),
            connections: Vec::new(),
            vacant: Vec::new(),
            sizes,
            syscalls: Syscalls::default(),
            nowhere: SendBuffer::default(),
        })
    }

    fn add(&mut self, socket: OwnedFd, connecting: bool) -> io::Result<ConnectionId> {
        let index = self.vacant.pop().unwrap_or(self.connections.len() as u32);
        let mut connection = Connection {
            socket,
            connecting,
            accepted: false,
            paused: false,
            interest: EventFlags::empty(),
            filling: SendBuffer::new(self.sizes.send),
            flying: SendBuffer::new(self.sizes.send),
            taken: 0,
            receive: ReceiveBuffer::new(self.sizes.receive, self.sizes.receive_max),
        };
        connection.interest = connection.wanted();
        let data = EventData::new_u64(u64::from(index));
        if let Err(error) = epoll::add(&self.epoll, &connection.socket, data, connection.interest) {
            self.vacant.push(index);
            return Err(error.into());
        }
        match self.connections.get_mut(index as usize) {
            Some(place) => *place = Some(connection),
            None => self.connections.push(Some(connection)),
        }
        Ok(ConnectionId(index))
    }

    fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id.index())?.as_mut()
    }

    /// Tells epoll when what is wanted of a connection has changed.
    fn watch(&mut self, id: ConnectionId) -> io::Result<()> {
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return Ok(()) };
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            let data = EventData::new_u64(u64::from(id.0));
            epoll::modify(&self.epoll, connection.socket.as_fd(), data, wanted)?;
        }
        Ok(())
    }

    /// One send of what is in flight. Ok(true) when the kernel has taken all.
    fn send(&mut self, id: ConnectionId) -> io::Result<bool> {
        let size_max = self.sizes.send.max(1 << 20);
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return Ok(true) };
        let rest = &connection.flying.filled()[connection.taken..];
        self.syscalls.send += 1;
        match rustix::net::send(&connection.socket, rest, SendFlags::NOSIGNAL) {
            Ok(size) => connection.taken += size,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let all = connection.in_flight() == 0;
        if all {
            connection.flying.shrink(size_max);
            connection.taken = 0;
        }
        self.watch(id)?;
        Ok(all)
    }

    fn on_event(&mut self, id: ConnectionId, flags: u32, events: &mut Vec<Event>) {
        let flags = EventFlags::from_bits_retain(flags);
        let Some(connection) = self.get(id) else { return };
        if connection.connecting {
            return self.on_connected(id, events);
        }
        if flags.intersects(EventFlags::OUT) && connection.in_flight() > 0 {
            match self.send(id) {
                Ok(true) => events.push(Event::Writable { connection: id }),
                Ok(false) => {}
                Err(error) => return self.on_closed(id, Some(error), events),
            }
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.receive(id, events);
        }
    }

    fn on_connected(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let Some(connection) = self.get(id) else { return };
        match sockopt::socket_error(&connection.socket) {
            Ok(Ok(())) => {
                connection.connecting = false;
                match self.watch(id) {
                    Ok(()) => events.push(Event::Connected { connection: id }),
                    Err(error) => self.on_closed(id, Some(error), events),
                }
            }
            Ok(Err(error)) | Err(error) => self.on_closed(id, Some(error.into()), events),
        }
    }

    /// Stops watching: a closed socket would be reported by every wait until its owner has closed
    /// it.
    fn on_closed(&mut self, id: ConnectionId, error: Option<io::Error>, events: &mut Vec<Event>) {
        if let Some(Some(connection)) = self.connections.get(id.index()) {
            // A failure here means that it is not watched any more, which is what is wanted.
            let _ = epoll::delete(&self.epoll, &connection.socket);
        }
        events.push(Event::Closed { connection: id, error });
    }

    fn receive(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let Some(Some(connection)) = self.connections.get_mut(id.index()) else { return };
        let space = connection.receive.space();
        if space.is_empty() {
            let error = io::Error::other("a frame is longer than the receive buffer may grow");
            return self.on_closed(id, Some(error), events);
        }
        self.syscalls.receive += 1;
        match rustix::net::recv(&connection.socket, space, RecvFlags::empty()) {
            Ok((_, 0)) => self.on_closed(id, None, events),
            Ok((_, size)) => {
                let at = clock::now();
                connection.receive.commit(size);
                events.push(Event::Received { connection: id, at });
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => self.on_closed(id, Some(error.into()), events),
        }
    }

    fn accept(&mut self, events: &mut Vec<Event>) {
        for _ in 0..ACCEPTS_MAX {
            match self.sharing.accept() {
                Some(Accepted::Here(stream, peer)) => self.accepted(stream, peer, events),
                Some(Accepted::Elsewhere) => {}
                None => return,
            }
        }
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

    fn take_from_mailbox(&mut self, events: &mut Vec<Event>) {
        for (stream, peer) in self.sharing.take() {
            self.accepted(stream, peer, events);
        }
    }
}

impl Ring for Epoll {
    fn connect_from(&mut self, port: Option<u16>, address: SocketAddr) -> io::Result<ConnectionId> {
        self.add(connecting(address, port)?, true)
    }

    fn attach(&mut self, stream: TcpStream) -> io::Result<ConnectionId> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        self.add(stream.into(), false)
    }

    fn listen(&mut self, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        epoll::add(&self.epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        self.sharing.listen(listener);
        Ok(())
    }

    fn mailbox(&mut self) -> io::Result<Arc<Mailbox>> {
        let (mailbox, is_new) = self.sharing.mailbox()?;
        if is_new {
            let data = EventData::new_u64(MAILBOX);
            epoll::add(&self.epoll, mailbox.bell(), data, EventFlags::IN)?;
        }
        Ok(mailbox)
    }

    fn share(&mut self, rings: Vec<Arc<Mailbox>>) {
        self.sharing.share(rings);
    }

    fn close(&mut self, connection: ConnectionId) {
        if let Some(place) = self.connections.get_mut(connection.index())
            && let Some(closed) = place.take()
        {
            if closed.accepted {
                self.sharing.closed();
            }
            // Closing the descriptor takes it out of the epoll set.
            self.vacant.push(connection.0);
        }
    }

    #[inline]
    fn filling(&mut self, connection: ConnectionId) -> &mut SendBuffer {
        match self.connections.get_mut(connection.index()) {
            Some(Some(c)) => &mut c.filling,
            _ => {
                self.nowhere.shrink(0);
                &mut self.nowhere
            }
        }
    }

    fn unsent(&self, connection: ConnectionId) -> usize {
        match self.connections.get(connection.index()) {
            Some(Some(c)) => c.filling.filled().len() + c.in_flight(),
            _ => 0,
        }
    }

    fn flush(&mut self, connection: ConnectionId) -> io::Result<Flush> {
        let Some(c) = self.get(connection) else { return Ok(Flush::Empty) };
        if c.filling.filled().is_empty() {
            return Ok(Flush::Empty);
        }
        if c.connecting || c.in_flight() > 0 {
            return Ok(Flush::Waiting);
        }
        std::mem::swap(&mut c.filling, &mut c.flying);
        self.send(connection)?;
        Ok(Flush::Offered)
    }

    #[inline]
    fn received(&self, connection: ConnectionId) -> &[u8] {
        match self.connections.get(connection.index()) {
            Some(Some(c)) => c.receive.received(),
            _ => &[],
        }
    }

    #[inline]
    fn consume(&mut self, connection: ConnectionId, size: usize) {
        if let Some(c) = self.get(connection) {
            c.receive.consume(size);
        }
    }

    fn pause_receiving(&mut self, connection: ConnectionId, pause: bool) -> io::Result<()> {
        if let Some(c) = self.get(connection) {
            c.paused = pause;
        }
        self.watch(connection)
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> io::Result<()> {
        self.syscalls.wait += 1;
        let count = self.waiter.wait(&self.epoll, until)?;
        for i in 0..count {
            let libc::epoll_event { events: flags, u64: data } = self.waiter.events[i];
            match data {
                TIMER => {}
                LISTENER => self.accept(events),
                MAILBOX => self.take_from_mailbox(events),
                index => self.on_event(ConnectionId(index as u32), flags, events),
            }
        }
        Ok(())
    }

    fn syscalls(&self) -> Syscalls {
        self.syscalls
    }
}
