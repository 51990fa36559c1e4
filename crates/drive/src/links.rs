//! A worker's connections: set up before the run, mended while it goes on.

use crate::connection::{Connection, State};
use crate::handshake::Refusal;
use crate::protocol::{Failure, Introduction, Link, Protocol};
use crate::roster::Hosts;
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::tls;
use ring::{ConnectionId, Event, Ring, Unavailable};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use units::{Nanos, clock};

/// How long a request to stop may go unseen while connecting.
const STOP_SEEN_MAX: Nanos = Nanos::from_millis(100);

/// How long a connection may take to be established and to answer STARTUP while the run goes on.
const ESTABLISH_MAX: Nanos = Nanos::from_secs(5);

/// How long the port where we choose the shard may be silent before the other one is tried.
const CHOICE_MAX: Nanos = Nanos::from_secs(2);

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
    /// Established, and then no TLS.
    #[error("cannot speak TLS with {address} on connection {number}: {failure}")]
    Tls { address: SocketAddr, number: usize, failure: tls::Failure },
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

impl LinkError {
    fn failed(address: SocketAddr, number: usize, source: io::Error) -> Self {
        match tls::Failure::of(&source).cloned() {
            Some(failure) => Self::Tls { address, number, failure },
            None => Self::Failed { address, number, source },
        }
    }
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
pub(crate) type Links<L> = (Vec<Connection<L>>, Vec<u16>);

/// Begins to connect for the first time, or again because the way before did not work.
fn dial<R: Ring, L: Link>(
    ring: &mut R,
    connection: &mut Connection<L>,
    number: usize,
    owners: &mut Vec<u16>,
    deadline: Nanos,
) -> io::Result<()> {
    connection.dial(ring)?;
    let chooses = connection.link.has_choice();
    let patience = if chooses { deadline.min(clock::now() + CHOICE_MAX) } else { deadline };
    connection.state = State::Connecting(patience);
    owned(owners, connection.id, number);
    Ok(())
}

/// Closes a connection that cannot be had this way, and tries the other one; false when there is
/// none.
fn dial_otherwise<R: Ring, L: Link>(
    ring: &mut R,
    connection: &mut Connection<L>,
    number: usize,
    owners: &mut Vec<u16>,
    deadline: Nanos,
) -> io::Result<bool> {
    let other = connection.link.failed();
    if other {
        ring.close(connection.id);
        owners[connection.id.index()] = u16::MAX;
        connection.link.clear();
        dial(ring, connection, number, owners, deadline)?;
    }
    Ok(other)
}

/// Opens `own` connections to each host that has not left, and waits until they are ready. Returns
/// all, host by host, and the table from [`ConnectionId`] to their index.
pub(crate) fn establish<R: Ring, P: Protocol>(
    ring: &mut R,
    hosts: &Hosts,
    (own, first_own): (usize, usize),
    in_flight_max: usize,
    timeout: Nanos,
    who: &Introduction<'_, P>,
    stop: &AtomicBool,
) -> Result<Links<P::Link>, LinkError> {
    let deadline = clock::now() + timeout;
    let (mut connections, mut owners) = (Vec::new(), Vec::new());
    let each = hosts.addresses.iter().zip(&hosts.left);
    let each = each.enumerate().flat_map(|host| (0..own).map(move |i| (host, first_own + i)));
    for (number, ((host, (&address, &left)), place)) in each.enumerate() {
        let link = P::link(hosts, host, place);
        let mut connection = Connection::new(address, in_flight_max, link);
        let failed = |source| LinkError::failed(address, number, source);
        if stop.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        if left {
            connection.state = State::Gone;
        } else {
            dial(ring, &mut connection, number, &mut owners, deadline).map_err(failed)?;
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
            establish_one(ring, &mut connections, &mut owners, event, deadline, who)?;
        }
        let now = clock::now();
        for (number, connection) in connections.iter_mut().enumerate() {
            if matches!(connection.state, State::Connecting(at) if now >= at && at < deadline) {
                let (address, owners) = (connection.address, &mut owners);
                dial_otherwise(ring, connection, number, owners, deadline)
                    .map_err(|source| LinkError::Failed { address, number, source })?;
            }
        }
    }
}

fn establish_one<R: Ring, P: Protocol>(
    ring: &mut R,
    connections: &mut [Connection<P::Link>],
    owners: &mut Vec<u16>,
    event: Event,
    deadline: Nanos,
    who: &Introduction<'_, P>,
) -> Result<(), LinkError> {
    let (Event::Received { connection: id, .. }
    | Event::Connected { connection: id }
    | Event::Writable { connection: id }
    | Event::Closed { connection: id, .. }
    | Event::Accepted { connection: id, .. }) = event;
    let number = owners.get(id.index()).map_or(usize::MAX, |owner| usize::from(*owner));
    // None: it was closed, and another one took its place.
    let Some(connection) = connections.get_mut(number) else { return Ok(()) };
    let address = connection.address;
    let failed = |source| LinkError::failed(address, number, source);
    match event {
        Event::Connected { .. } => {
            P::begin(who, ring, connection, deadline).map_err(failed)?;
        }
        Event::Received { .. } => match P::go_on(who, ring, connection) {
            Ok(()) => {}
            Err(Failure::Refused(refusal)) => {
                return Err(LinkError::Refused { address, number, refusal });
            }
            Err(Failure::Broken(source)) => return Err(failed(source)),
            Err(Failure::Elsewhere) => {
                ring.close(id);
                owners[id.index()] = u16::MAX;
                dial(ring, connection, number, owners, deadline).map_err(failed)?;
            }
        },
        Event::Closed { error, .. } => {
            if !dial_otherwise(ring, connection, number, owners, deadline).map_err(failed)? {
                let closed = || io::Error::other("the target closed it");
                return Err(failed(error.unwrap_or_else(closed)));
            }
        }
        Event::Writable { .. } | Event::Accepted { .. } => {}
    }
    Ok(())
}

impl<R: Ring, W: Witness, P: Protocol> Worker<R, W, P> {
    /// The socket is connected: says the first thing.
    pub(crate) fn start(&mut self, index: u16) {
        let deadline = clock::now() + ESTABLISH_MAX;
        let Self { encoder, setup, ring, connections, .. } = self;
        let who = Introduction { encoder: &**encoder, credentials: setup.credentials.as_ref() };
        let connection = &mut connections[usize::from(index)];
        match P::begin(&who, ring, connection, deadline) {
            Ok(()) if connection.state == State::Ready => self.is_ready(index),
            Ok(()) => {}
            Err(_) => self.lost(index, clock::now()),
        }
    }

    /// Goes on with a connection that is not ready yet, by what it has received.
    pub(crate) fn on_started(&mut self, index: u16, at: Nanos) {
        let Self { encoder, setup, ring, connections, .. } = self;
        let who = Introduction { encoder: &**encoder, credentials: setup.credentials.as_ref() };
        let connection = &mut connections[usize::from(index)];
        match P::go_on(&who, ring, connection) {
            Ok(()) if connection.state == State::Ready => self.is_ready(index),
            Ok(()) => {}
            Err(_) => self.lost(index, at),
        }
    }

    fn is_ready(&mut self, index: u16) {
        self.ready_per_host[usize::from(index / self.connections_per_host)] += 1;
        P::changed(self, index);
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
        if connection.state == State::Ready {
            self.operations.tally.usage.connections_lost += 1;
        } else if matches!(connection.state, State::Connecting(_) | State::Starting(_)) {
            // Whether there is another way or not: that is what comes next.
            connection.link.failed();
        }
        self.close(index, now);
    }

    /// Closes a connection on which nothing good can come any more, for another one in its place:
    /// at once, because its host has done nothing that asks for a pause.
    #[cold]
    pub(crate) fn replace(&mut self, index: u16, now: Nanos) {
        self.operations.tally.usage.connections_replaced += 1;
        self.close(index, now);
        let connection = &mut self.connections[usize::from(index)];
        if matches!(connection.state, State::Down(_)) {
            connection.wanted();
        }
    }

    fn close(&mut self, index: u16, now: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        self.ring.close(connection.id);
        if let Some(owner) = self.owners.get_mut(connection.id.index()) {
            *owner = NOBODY;
        }
        if connection.state == State::Ready {
            self.ready_per_host[usize::from(index / self.connections_per_host)] -= 1;
        }
        let slots: Vec<u32> = connection.link.slots().collect();
        connection.down(now);
        self.is_unsettled = true;
        P::changed(self, index);
        for slot in slots {
            if self.operations.slots.get(slot).sent == Nanos::ZERO {
                self.operations.resend.push_back(slot);
            } else {
                self.operations.attempted(slot, now, Outcome::ConnectionLost);
            }
        }
    }

    /// Connects again what is down and has waited long enough, and gives up what takes too long.
    #[inline]
    pub(crate) fn mend_connections(&mut self, now: Nanos) {
        // There may be thousands of them.
        if self.is_unsettled {
            self.mend(now);
        }
    }

    fn mend(&mut self, now: Nanos) {
        self.is_unsettled = false;
        for index in 0..self.connections.len() {
            let connection = &mut self.connections[index];
            match connection.state {
                State::Down(at) if now >= at => match connection.dial(&mut self.ring) {
                    Ok(()) => {
                        connection.state = State::Connecting(now + ESTABLISH_MAX);
                        owned(&mut self.owners, connection.id, index);
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
                State::Leaving if connection.link.slots().next().is_none() => {
                    self.lost(index as u16, now);
                }
                _ => {}
            }
            let is_settled = matches!(self.connections[index].state, State::Ready | State::Gone);
            self.is_unsettled |= !is_settled;
        }
    }

    /// Takes over the hosts of a ring that has changed: to those that joined connections are
    /// opened, to those that left none are any more, and operations go to whom the ring now says.
    #[cold]
    pub(crate) fn adopt_hosts(&mut self, now: Nanos) {
        let (generation, hosts) = self.roster.current();
        self.generation = generation;
        self.is_unsettled = true;
        let own = usize::from(self.connections_per_host);
        for (host, &address) in hosts.addresses.iter().enumerate() {
            // An index has to name each connection.
            if (host + 1) * own > usize::from(u16::MAX) {
                break;
            }
            if host == self.ready_per_host.len() {
                self.ready_per_host.push(0);
                let room = self.operations.slots.capacity();
                let new = |place| Connection::new(address, room, P::link(&hosts, host, place));
                self.connections.extend((self.first_place..).take(own).map(new));
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
        P::follow(self, &hosts);
    }

    /// The protocol learns of all connections that are established.
    pub(crate) fn meet(&mut self) {
        for index in 0..self.connections.len() {
            P::changed(self, index as u16);
        }
    }

    /// Nothing more goes out on this connection.
    fn leave(&mut self, index: u16, now: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        match connection.state {
            State::Ready => {
                connection.state = State::Leaving;
                self.ready_per_host[usize::from(index / self.connections_per_host)] -= 1;
                P::changed(self, index);
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
