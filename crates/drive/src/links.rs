//! A worker's connections: set up before the run, mended while it goes on.

use crate::connection::{Connection, State};
use crate::framed::Framed;
use crate::handshake::{self, Next, Refusal, startup};
use crate::roster::Hosts;
use crate::router::Router;
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::{ConnectionId, Event, Ring, Unavailable};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use units::{Credentials, Nanos, clock};
use wire::cql::framing::FramingError;
use wire::cql::{DecodeError, HEADER_SIZE, Header, Protocol};

/// How long a request to stop may go unseen while connecting.
const STOP_SEEN_MAX: Nanos = Nanos::from_millis(100);

/// How long a connection may take to be established and to answer STARTUP while the run goes on.
const ESTABLISH_MAX: Nanos = Nanos::from_secs(5);

/// Why a worker's connections could not be set up. The cure is in the text.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum LinkError {
    /// Refused, reset, unreachable.
    #[error(
        "cannot open connection {number} to {address}: {source}; does the target limit \
         connections? --connections opens fewer"
    )]
    Failed { address: SocketAddr, number: usize, source: io::Error },
    /// Established, and then not let in.
    #[error("connection {number} to {address} is of no use: {refusal}")]
    Refused { address: SocketAddr, number: usize, refusal: Refusal },
    /// Established, and then nothing.
    #[error(
        "{open} of {wanted} connections to {address} were ready within {timeout}; --connections \
         opens fewer, --timeout waits longer"
    )]
    Slow { address: SocketAddr, open: usize, wanted: usize, timeout: Nanos },
    /// The stop flag was set.
    #[error("interrupted while connecting")]
    Interrupted,
    /// The kernel gives no epoll instance, no descriptor, no memory.
    #[error("this host cannot watch its sockets: {0}; `ulimit -n` tells how many it may have")]
    Host(#[from] io::Error),
    /// There is no such engine on this host.
    #[error(transparent)]
    Engine(#[from] Unavailable),
}

/// In place of the index of a connection: it is lost, and its id may be given again.
pub(crate) const NOBODY: u16 = u16::MAX;

fn owned(owners: &mut Vec<u16>, id: ConnectionId, index: usize) {
    if owners.len() <= id.index() {
        owners.resize(id.index() + 1, NOBODY);
    }
    owners[id.index()] = index as u16;
}

/// A worker's connections, and by [`ConnectionId::index`] the index of each.
pub(crate) type Links = (Vec<Connection>, Vec<u16>);

/// Who the connections are, and what they speak.
#[derive(Clone, Copy)]
pub(crate) struct Introduction<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) credentials: Option<&'a Credentials>,
}

/// Why a connection does not come to be ready.
enum Failure {
    Refused(Refusal),
    Broken(io::Error),
}

impl From<FramingError> for Failure {
    fn from(error: FramingError) -> Self {
        Self::Broken(io::Error::other(error))
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Broken(io::Error::other(error))
    }
}

/// Goes on with a connection that is not ready yet, by the frame at the front of what it has
/// received, if there is a whole one. What follows the first one is framed.
fn introduce<R: Ring>(
    ring: &mut R,
    connection: &mut Connection,
    who: Introduction<'_>,
) -> Result<(), Failure> {
    let (id, protocol) = (connection.id, who.protocol);
    let bytes = match &mut connection.framed {
        Some(framed) => framed.frames(ring, id)?,
        None => ring.received(id),
    };
    let Some(header) = Header::decode(bytes)? else { return Ok(()) };
    let size = HEADER_SIZE + header.body_size;
    let Some(body) = bytes.get(HEADER_SIZE..size) else { return Ok(()) };
    let next =
        handshake::next(protocol, &header, body, who.credentials).map_err(Failure::Refused)?;
    match &mut connection.framed {
        Some(framed) => framed.take(ring, id, size),
        None => {
            ring.consume(id, size);
            connection.framed = Framed::of(protocol, ring.filling(id).space_left());
        }
    }
    match (next, &mut connection.framed) {
        (Next::Ready, _) => connection.ready(),
        (Next::Send(frame), Some(framed)) => {
            framed.pending.append(|out| out.extend_from_slice(&frame));
            framed.offer(ring, id);
            ring.flush(id).map_err(Failure::Broken)?;
        }
        (Next::Send(frame), None) => {
            ring.filling(id).append(|out| out.extend_from_slice(&frame));
            ring.flush(id).map_err(Failure::Broken)?;
        }
    }
    Ok(())
}

/// Opens `own` connections to each host that has not left, and waits until they are ready. Returns
/// all, host by host, and the table from [`ConnectionId`] to their index.
pub(crate) fn establish<R: Ring>(
    ring: &mut R,
    hosts: &Hosts,
    own: usize,
    in_flight_max: usize,
    timeout: Nanos,
    who: Introduction<'_>,
    stop: &AtomicBool,
) -> Result<Links, LinkError> {
    let deadline = clock::now() + timeout;
    let (mut connections, mut owners) = (Vec::new(), Vec::new());
    let each = hosts.addresses.iter().zip(&hosts.left);
    let each = each.flat_map(|host| std::iter::repeat_n(host, own));
    for (number, (&address, &left)) in each.enumerate() {
        let mut connection = Connection::new(address, in_flight_max);
        let failed = |source| LinkError::Failed { address, number, source };
        if stop.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        if left {
            connection.state = State::Gone;
        } else {
            connection.id = ring.connect(address).map_err(failed)?;
            connection.state = State::Connecting(deadline);
            owned(&mut owners, connection.id, number);
        }
        connections.push(connection);
    }
    let wanted = connections.iter().filter(|c| c.state != State::Gone).count();
    let mut events = Vec::new();
    loop {
        let open = connections.iter().filter(|c| c.state == State::Ready).count();
        if open == wanted {
            return Ok((connections, owners));
        }
        if clock::now() >= deadline {
            let address = hosts.addresses[0];
            return Err(LinkError::Slow { address, open, wanted, timeout });
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        ring.wait(Some(deadline.min(clock::now() + STOP_SEEN_MAX)), &mut events)?;
        for event in events.drain(..) {
            establish_one(ring, &mut connections, &owners, event, deadline, who)?;
        }
    }
}

fn establish_one<R: Ring>(
    ring: &mut R,
    connections: &mut [Connection],
    owners: &[u16],
    event: Event,
    deadline: Nanos,
    who: Introduction<'_>,
) -> Result<(), LinkError> {
    let (Event::Received { connection: id, .. }
    | Event::Connected { connection: id }
    | Event::Writable { connection: id }
    | Event::Closed { connection: id, .. }
    | Event::Accepted { connection: id, .. }) = event;
    let number = usize::from(owners[id.index()]);
    let connection = &mut connections[number];
    let address = connection.address;
    let failed = |source| LinkError::Failed { address, number, source };
    match event {
        Event::Connected { .. } => {
            ring.filling(id).append(|out| out.extend_from_slice(&startup(who.protocol)));
            ring.flush(id).map_err(failed)?;
            connection.state = State::Starting(deadline);
        }
        Event::Received { .. } => {
            introduce(ring, connection, who).map_err(|failure| match failure {
                Failure::Refused(refusal) => LinkError::Refused { address, number, refusal },
                Failure::Broken(source) => failed(source),
            })?;
        }
        Event::Closed { error, .. } => {
            let closed = || io::Error::other("the target closed it");
            return Err(failed(error.unwrap_or_else(closed)));
        }
        Event::Writable { .. } | Event::Accepted { .. } => {}
    }
    Ok(())
}

impl<R: Ring, W: Witness> Worker<R, W> {
    /// The socket is connected: says STARTUP.
    pub(crate) fn start(&mut self, index: u16) {
        let connection = &mut self.connections[usize::from(index)];
        connection.state = State::Starting(clock::now() + ESTABLISH_MAX);
        let startup = startup(self.setup.encoder.protocol());
        self.ring.filling(connection.id).append(|out| out.extend_from_slice(&startup));
        if self.ring.flush(connection.id).is_err() {
            self.lost(index, clock::now());
        }
    }

    /// Goes on with a connection that is not ready yet, by the frame at the front of what it has
    /// received.
    pub(crate) fn on_started(&mut self, index: u16, at: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        let protocol = self.setup.encoder.protocol();
        let who = Introduction { protocol, credentials: self.setup.credentials.as_ref() };
        match introduce(&mut self.ring, connection, who) {
            Ok(()) if connection.state == State::Ready => {
                self.ready_per_host[usize::from(index / self.connections_per_host)] += 1;
            }
            Ok(()) => {}
            Err(_) => self.lost(index, at),
        }
    }

    /// The connection is broken: what was on its way failed, what was only encoded goes out on
    /// another one.
    pub(crate) fn lost(&mut self, index: u16, now: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        if matches!(connection.state, State::Down(_) | State::Gone) {
            return;
        }
        if connection.state != State::Leaving {
            self.roster.cry();
        }
        self.ring.close(connection.id);
        if let Some(owner) = self.owners.get_mut(connection.id.index()) {
            *owner = NOBODY;
        }
        if connection.state == State::Ready {
            self.operations.tally.usage.connections_lost += 1;
            self.ready_per_host[usize::from(index / self.connections_per_host)] -= 1;
        }
        let slots: Vec<u32> = connection.streams.slots().collect();
        connection.down(now);
        for slot in slots {
            if self.operations.slots.get(slot).sent == Nanos::ZERO {
                self.operations.resend.push_back(slot);
            } else {
                self.operations.attempted(slot, now, Outcome::ConnectionLost);
            }
        }
    }

    /// Connects again what is down and has waited long enough, and gives up what takes too long.
    pub(crate) fn mend_connections(&mut self, now: Nanos) {
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            match connection.state {
                State::Down(at) if now >= at => match self.ring.connect(connection.address) {
                    Ok(id) => {
                        connection.id = id;
                        connection.state = State::Connecting(now + ESTABLISH_MAX);
                        owned(&mut self.owners, id, index);
                    }
                    Err(_) => {
                        connection.down(now);
                        self.roster.cry();
                    }
                },
                State::Connecting(at) | State::Starting(at) if now >= at => {
                    self.lost(index as u16, now);
                }
                // What was in flight when its host left has been answered.
                State::Leaving if connection.streams.slots().next().is_none() => {
                    self.lost(index as u16, now);
                }
                _ => {}
            }
        }
    }

    /// Takes over the hosts of a ring that has changed: to those that joined connections are
    /// opened, to those that left none are any more, and operations go to whom the ring now says.
    #[cold]
    pub(crate) fn adopt_hosts(&mut self, now: Nanos) {
        let (generation, hosts) = self.roster.current();
        self.generation = generation;
        let own = usize::from(self.connections_per_host);
        for (host, &address) in hosts.addresses.iter().enumerate() {
            // An index has to name each connection.
            if (host + 1) * own > usize::from(u16::MAX) {
                break;
            }
            if host == self.ready_per_host.len() {
                self.ready_per_host.push(0);
                let new = || Connection::new(address, self.operations.slots.capacity());
                self.connections.extend(std::iter::repeat_with(new).take(own));
                self.dirty.reserve(self.connections.len());
            }
            for index in host * own..(host + 1) * own {
                match (self.connections[index].state, hosts.left[host]) {
                    (State::Gone, false) => self.connections[index].wanted(),
                    (_, true) => self.leave(index as u16, now),
                    _ => {}
                }
            }
        }
        match (&mut self.router, &hosts.ring) {
            (Some(router), Some(ring)) => router.follow(ring.clone()),
            (router, ring) => {
                *router = ring.clone().map(|ring| Router::new(ring, usize::from(self.turn)));
            }
        }
    }

    /// Nothing more goes out on this connection.
    fn leave(&mut self, index: u16, now: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        match connection.state {
            State::Ready => {
                connection.state = State::Leaving;
                self.ready_per_host[usize::from(index / self.connections_per_host)] -= 1;
            }
            State::Connecting(_) | State::Starting(_) => {
                connection.state = State::Leaving;
                self.lost(index, now);
            }
            State::Down(_) => connection.state = State::Gone,
            State::Leaving | State::Gone => {}
        }
    }
}
