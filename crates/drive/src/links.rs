//! A worker's connections: set up before the run, mended while it goes on.

use crate::connection::{Connection, State};
use crate::framed::Framed;
use crate::handshake::{self, Next, Refusal, options, startup};
use crate::roster::Hosts;
use crate::router::Route;
use crate::sharded::Want;
use crate::tally::Witness;
use crate::worker::Worker;
use record::Outcome;
use ring::tls;
use ring::{ConnectionId, Event, Ring, Unavailable};
use std::io;
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use units::{Credentials, Nanos, clock};
use wire::cql::framing::FramingError;
use wire::cql::{DecodeError, HEADER_SIZE, Header, Protocol};
use wire::shards::Offer;

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
    /// It came to another shard than the one that was chosen.
    Elsewhere,
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
            if !matches!(next, Next::Offered(_)) {
                connection.framed = Framed::of(protocol, ring.filling(id).space_left());
            }
        }
    }
    match (next, &mut connection.framed) {
        (Next::Ready, _) => connection.ready(),
        (Next::Offered(offer), _) => return begin_at(ring, connection, who, offer),
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

/// The first frame of a connection: on a host with shards it is asked which one this is.
fn hello(connection: &Connection, protocol: Protocol) -> Vec<u8> {
    match connection.want {
        Some(_) => options(protocol),
        None => startup(protocol, false),
    }
}

/// The host has said which shard the connection came to: goes on with STARTUP, unless a port of
/// ours should have chosen another one.
fn begin_at<R: Ring>(
    ring: &mut R,
    connection: &mut Connection,
    who: Introduction<'_>,
    offer: Option<Offer>,
) -> Result<(), Failure> {
    let (Some(want), None) = (&mut connection.want, connection.shard) else {
        let text = "it says what it offers without being asked";
        return Err(Failure::Refused(Refusal::Other(text.to_owned())));
    };
    if let Some(offer) = offer {
        if !want.came_to(offer.shard) {
            return Err(Failure::Elsewhere);
        }
        connection.shard = Some(offer.shard);
    }
    let startup = startup(who.protocol, want.offer.tablets);
    ring.filling(connection.id).append(|out| out.extend_from_slice(&startup));
    ring.flush(connection.id).map(drop).map_err(Failure::Broken)
}

/// Begins to connect for the first time, or again because the way before did not work.
fn dial<R: Ring>(
    ring: &mut R,
    connection: &mut Connection,
    number: usize,
    owners: &mut Vec<u16>,
    deadline: Nanos,
) -> io::Result<()> {
    connection.dial(ring)?;
    let chooses = connection.want.is_some_and(|want| want.by_port().is_some());
    let patience = if chooses { deadline.min(clock::now() + CHOICE_MAX) } else { deadline };
    connection.state = State::Connecting(patience);
    owned(owners, connection.id, number);
    Ok(())
}

/// Closes a connection that cannot be had this way, and tries the other one; false when there is
/// none.
fn dial_otherwise<R: Ring>(
    ring: &mut R,
    connection: &mut Connection,
    number: usize,
    owners: &mut Vec<u16>,
    deadline: Nanos,
) -> io::Result<bool> {
    let other = connection.want.as_mut().is_some_and(Want::failed);
    if other {
        ring.close(connection.id);
        owners[connection.id.index()] = u16::MAX;
        connection.shard = None;
        dial(ring, connection, number, owners, deadline)?;
    }
    Ok(other)
}

/// Opens `own` connections to each host that has not left, and waits until they are ready. Returns
/// all, host by host, and the table from [`ConnectionId`] to their index.
pub(crate) fn establish<R: Ring>(
    ring: &mut R,
    hosts: &Hosts,
    (own, first_own): (usize, usize),
    in_flight_max: usize,
    timeout: Nanos,
    who: Introduction<'_>,
    stop: &AtomicBool,
) -> Result<Links, LinkError> {
    let deadline = clock::now() + timeout;
    let (mut connections, mut owners) = (Vec::new(), Vec::new());
    let each = hosts.addresses.iter().zip(&hosts.left);
    let each = each.enumerate().flat_map(|host| (0..own).map(move |i| (host, first_own + i)));
    for (number, ((host, (&address, &left)), place)) in each.enumerate() {
        let mut connection = Connection::new(address, in_flight_max);
        connection.want = hosts.shards.as_ref().and_then(|shards| shards.want(host, place));
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

fn establish_one<R: Ring>(
    ring: &mut R,
    connections: &mut [Connection],
    owners: &mut Vec<u16>,
    event: Event,
    deadline: Nanos,
    who: Introduction<'_>,
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
            let hello = hello(connection, who.protocol);
            ring.filling(id).append(|out| out.extend_from_slice(&hello));
            ring.flush(id).map_err(failed)?;
            connection.state = State::Starting(deadline);
        }
        Event::Received { .. } => match introduce(ring, connection, who) {
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

impl<R: Ring, W: Witness> Worker<R, W> {
    /// The socket is connected: says the first frame.
    pub(crate) fn start(&mut self, index: u16) {
        let connection = &mut self.connections[usize::from(index)];
        connection.state = State::Starting(clock::now() + ESTABLISH_MAX);
        let hello = hello(connection, self.setup.encoder.protocol());
        self.ring.filling(connection.id).append(|out| out.extend_from_slice(&hello));
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
                self.tell_shards(index);
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
        } else if let (State::Connecting(_) | State::Starting(_), Some(want)) =
            (connection.state, &mut connection.want)
        {
            // Whether there is another way or not: that is what comes next.
            want.failed();
        }
        let slots: Vec<u32> = connection.streams.slots().collect();
        connection.down(now);
        self.tell_shards(index);
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
                let shards = hosts.shards.as_ref();
                let new = |place| {
                    let mut new = Connection::new(address, self.operations.slots.capacity());
                    new.want = shards.and_then(|shards| shards.want(host, place));
                    new
                };
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
        match (&mut self.route, &hosts.ring, &hosts.shards) {
            (Route::Shards(router), _, Some(shards)) => {
                router.follow(shards, &hosts);
                self.meet_shards();
            }
            (Route::Ring(router), Some(ring), _) => router.follow(ring.clone()),
            (route, ..) => *route = Route::to(&hosts, usize::from(self.turn)),
        }
    }

    /// The router learns of all connections that are established.
    pub(crate) fn meet_shards(&mut self) {
        for host in 0..self.ready_per_host.len() {
            self.tell_shards(host as u16 * self.connections_per_host);
        }
    }

    /// Says what went to each shard, at the end.
    pub(crate) fn tell_loads(&self) {
        if let Route::Shards(router) = &self.route {
            let mut loads = self.setup.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.extend(router.loads());
        }
    }

    /// Learns where tablets are, as answers have told.
    #[cold]
    pub(crate) fn learn_tablets(&mut self) {
        for (table, tablet) in self.operations.told.drain(..) {
            self.operations.tally.usage.tablets += 1;
            if let Route::Shards(router) = &mut self.route {
                router.learn(table, tablet);
            }
        }
    }

    /// A connection has come or gone: the one who routes by shards learns what there is.
    fn tell_shards(&mut self, index: u16) {
        if let Route::Shards(router) = &mut self.route {
            let own = usize::from(self.connections_per_host);
            let host = usize::from(index) / own;
            let first = host * own;
            router.connected(host, first, &self.connections[first..first + own]);
        }
    }

    /// Nothing more goes out on this connection.
    fn leave(&mut self, index: u16, now: Nanos) {
        let connection = &mut self.connections[usize::from(index)];
        match connection.state {
            State::Ready => {
                connection.state = State::Leaving;
                self.ready_per_host[usize::from(index / self.connections_per_host)] -= 1;
                self.tell_shards(index);
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
