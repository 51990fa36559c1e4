//! CQL as the engine's protocol: many requests per connection, told apart by stream ids; replicas
//! by token, shards and tablets; STARTUP before the first request.

use crate::connection::{Connection, State};
use crate::cql::Encoder;
use crate::framed::Framed;
use crate::handshake::{self, Next, Refusal, options, startup};
use crate::protocol::{Failure, Introduction, Link, Protocol};
use crate::roster::Hosts;
use crate::router::Route;
use crate::rows::RowScratch;
use crate::sharded::Want;
use crate::slots::Slot;
use crate::streams::Streams;
use crate::tally::Witness;
use crate::worker::Worker;
use ring::{BufferSizes, ConnectionId, Ring, SendBuffer};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use units::Nanos;
use wire::cql::framing::{FramingError, Outgoing};
use wire::cql::{DecodeError, HEADER_SIZE, Header};
use wire::shards::Offer;
use wire::tablets::Tablet;
use workload::{Draw, Plan};

/// What CQL knows of a connection.
#[derive(Debug)]
pub(crate) struct CqlLink {
    /// None to a host without shards.
    pub(crate) want: Option<Want>,
    /// The shard that it came to, as the host says.
    pub(crate) shard: Option<u16>,
    pub(crate) streams: Streams,
    /// None as long as frames stand on the wire as they are.
    pub(crate) framed: Option<Box<Framed>>,
}

impl Link for CqlLink {
    /// To the shard that is wanted, where a port of ours can choose it.
    fn dial<R: Ring>(&mut self, ring: &mut R, address: SocketAddr) -> io::Result<ConnectionId> {
        if let Some((port, mut own)) = self.want.and_then(|want| want.by_port()) {
            let chosen = SocketAddr::new(address.ip(), port);
            let begun = own.find_map(|port| ring.connect_from(Some(port), chosen).ok());
            if let Some(id) = begun {
                return Ok(id);
            }
            // All of them are taken.
            if let Some(want) = &mut self.want {
                want.failed();
            }
        }
        ring.connect(address)
    }

    fn has_choice(&self) -> bool {
        self.want.is_some_and(|want| want.by_port().is_some())
    }

    fn failed(&mut self) -> bool {
        self.want.as_mut().is_some_and(Want::failed)
    }

    fn clear(&mut self) {
        self.streams.clear();
        self.framed = None;
        self.shard = None;
    }

    #[inline]
    fn available(&self) -> bool {
        self.streams.available()
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<i16> {
        self.streams.take(slot)
    }

    fn put_back(&mut self, request: i16) {
        self.streams.answered(request);
    }

    fn give_up(&mut self, request: i16) -> bool {
        self.streams.give_up(request);
        self.streams.mostly_late()
    }

    fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.streams.slots()
    }

    #[inline]
    fn buffer<'a, R: Ring>(&'a mut self, ring: &'a mut R, id: ConnectionId) -> &'a mut SendBuffer {
        match &mut self.framed {
            None => ring.filling(id),
            Some(framed) => &mut framed.pending,
        }
    }

    #[inline]
    fn offer<R: Ring>(&mut self, ring: &mut R, id: ConnectionId) {
        if let Some(framed) = &mut self.framed {
            framed.offer(ring, id);
        }
    }

    fn has_pending(&self) -> bool {
        self.framed.as_ref().is_some_and(|framed| !framed.pending.filled().is_empty())
    }
}

/// What a worker has of CQL.
pub(crate) struct CqlLocal {
    pub(crate) route: Route,
    /// What rows are made in, of a plan over tables.
    rows: Option<RowScratch>,
    /// Tablets that answers have told of, not learnt yet, each with the plan's table.
    pub(crate) told: Vec<(usize, Tablet)>,
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

impl Protocol for Encoder {
    type Link = CqlLink;
    type Local = CqlLocal;

    fn plan(&self) -> &Arc<Plan> {
        self.plan()
    }

    fn frame_size_max(&self) -> usize {
        self.frame_size_max()
    }

    fn buffer_sizes(&self, in_flight_max: usize, connections: usize) -> BufferSizes {
        let frame = self.frame_size_max();
        let per_connection = in_flight_max.div_ceil(connections.max(1)).clamp(4, 256);
        let send = (frame * per_connection).clamp(64 << 10, 1 << 20).max(2 * frame);
        BufferSizes {
            send: if self.protocol().is_bare() { send } else { Outgoing::size_max(send) },
            receive: 256 << 10,
            receive_max: 256 << 20,
        }
    }

    fn link(hosts: &Hosts, host: usize, place: usize) -> CqlLink {
        let want = hosts.shards.as_ref().and_then(|shards| shards.want(host, place));
        CqlLink { want, shard: None, streams: Streams::new(), framed: None }
    }

    fn local(&self, hosts: &Hosts, worker: usize, peers: usize, _: usize) -> CqlLocal {
        let rows = self.plan().tables.as_ref().map(|tables| RowScratch::new(tables, peers));
        CqlLocal { route: Route::to(hosts, worker), rows, told: Vec::new() }
    }

    fn connections_per_host(hosts: &Hosts, workers: usize) -> Option<usize> {
        hosts.shards.as_ref().map(|shards| shards.connections_per_host(workers))
    }

    #[inline]
    fn write_key(&self, draw: &Draw, out: &mut [u8]) -> usize {
        Encoder::write_key(self, draw, out)
    }

    #[inline]
    fn write(
        &self,
        slot: &mut Slot,
        key: &[u8],
        local: &mut CqlLocal,
        out: &mut [u8],
    ) -> Result<usize, String> {
        let statement = usize::from(slot.statement);
        match &mut local.rows {
            None => Ok(self.encode(statement, &slot.draw, key, slot.stream, out)),
            Some(scratch) => {
                let into = (slot.stream, scratch, out);
                let (size, rows) =
                    self.encode_rows(statement, &slot.draw, into).map_err(|why| why.to_string())?;
                slot.rows = rows;
                Ok(size)
            }
        }
    }

    fn begin<R: Ring>(
        who: &Introduction<'_, Self>,
        ring: &mut R,
        connection: &mut Connection<CqlLink>,
        deadline: Nanos,
    ) -> io::Result<()> {
        let protocol = who.encoder.protocol();
        connection.state = State::Starting(deadline);
        // On a host with shards it is asked which one this is.
        let hello = match connection.link.want {
            Some(_) => options(protocol),
            None => startup(protocol, false),
        };
        ring.filling(connection.id).append(|out| out.extend_from_slice(&hello));
        ring.flush(connection.id).map(drop)
    }

    /// By the frame at the front of what it has received, if there is a whole one. What follows
    /// the first one is framed.
    fn go_on<R: Ring>(
        who: &Introduction<'_, Self>,
        ring: &mut R,
        connection: &mut Connection<CqlLink>,
    ) -> Result<(), Failure> {
        let (id, protocol) = (connection.id, who.encoder.protocol());
        let bytes = match &mut connection.link.framed {
            Some(framed) => framed.frames(ring, id)?,
            None => ring.received(id),
        };
        let Some(header) = Header::decode(bytes)? else { return Ok(()) };
        let size = HEADER_SIZE + header.body_size;
        let Some(body) = bytes.get(HEADER_SIZE..size) else { return Ok(()) };
        let next =
            handshake::next(protocol, &header, body, who.credentials).map_err(Failure::Refused)?;
        match &mut connection.link.framed {
            Some(framed) => framed.take(ring, id, size),
            None => {
                ring.consume(id, size);
                if !matches!(next, Next::Offered(_)) {
                    connection.link.framed = Framed::of(protocol, ring.filling(id).space_left());
                }
            }
        }
        match (next, &mut connection.link.framed) {
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

    #[inline]
    fn usable<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, hint: u16) -> Option<u16> {
        worker.next_usable(hint)
    }

    /// By `any` when there is one host only or none that holds the key can be asked.
    #[inline]
    fn send<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u32, any: u16) {
        let draw = &worker.operations.slots.get(index).draw;
        let key_size = worker.encoder.write_key(draw, &mut worker.key);
        let ready = &worker.ready_per_host;
        let host = match &mut worker.local.route {
            Route::Any => None,
            Route::Ring(router) => router.host(&worker.key[..key_size], |host| {
                ready.get(usize::from(host)).is_some_and(|&ready| ready > 0)
            }),
            Route::Shards(_) => return worker.send_to_shard(index, any, key_size),
        };
        let connection = host.and_then(|host| worker.usable_of(host, any)).unwrap_or(any);
        worker.encode(index, connection, key_size);
    }

    #[inline]
    fn receive<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16, at: Nanos) {
        worker.receive(index, at);
    }

    /// The one who routes by shards learns what there is.
    fn changed<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, index: u16) {
        if let Route::Shards(router) = &mut worker.local.route {
            let own = usize::from(worker.connections_per_host);
            let host = usize::from(index) / own;
            let first = host * own;
            router.connected(host, first, &worker.connections[first..first + own]);
        }
    }

    fn follow<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>, hosts: &Hosts) {
        match (&mut worker.local.route, &hosts.ring, &hosts.shards) {
            (Route::Shards(router), _, Some(shards)) => {
                router.follow(shards, hosts);
                worker.meet();
            }
            (Route::Ring(router), Some(ring), _) => router.follow(ring.clone()),
            (route, ..) => *route = Route::to(hosts, usize::from(worker.turn)),
        }
    }

    /// Says what went to each shard.
    fn end<R: Ring, W: Witness>(worker: &mut Worker<R, W, Self>) {
        if let Route::Shards(router) = &worker.local.route {
            let mut loads = worker.setup.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.extend(router.loads());
        }
    }
}

/// The host has said which shard the connection came to: goes on with STARTUP, unless a port of
/// ours should have chosen another one.
fn begin_at<R: Ring>(
    ring: &mut R,
    connection: &mut Connection<CqlLink>,
    who: &Introduction<'_, Encoder>,
    offer: Option<Offer>,
) -> Result<(), Failure> {
    let link = &mut connection.link;
    let (Some(want), None) = (&mut link.want, link.shard) else {
        let text = "it says what it offers without being asked";
        return Err(Failure::Refused(Refusal::Other(text.to_owned())));
    };
    if let Some(offer) = offer {
        if !want.came_to(offer.shard) {
            return Err(Failure::Elsewhere);
        }
        link.shard = Some(offer.shard);
    }
    let startup = startup(who.encoder.protocol(), want.offer.tablets);
    ring.filling(connection.id).append(|out| out.extend_from_slice(&startup));
    ring.flush(connection.id).map(drop).map_err(Failure::Broken)
}

impl<R: Ring, W: Witness> Worker<R, W, Encoder> {
    /// To the shard that has the key; on another connection where there is none to that one, or
    /// none that takes it.
    #[inline(never)]
    fn send_to_shard(&mut self, index: u32, any: u16, key_size: usize) {
        let slot = self.operations.slots.get(index);
        let (measured, draw) = (slot.measured, &slot.draw);
        let step =
            &self.setup.operations[usize::from(draw.operation)].steps[usize::from(slot.step)];
        let table = self.encoder.table_of(step.statement(draw));
        let ready = &self.ready_per_host;
        let Route::Shards(router) = &mut self.local.route else { return };
        let place = router.place(table, &self.key[..key_size], |host| {
            ready.get(usize::from(host)).is_some_and(|&ready| ready > 0)
        });
        let own = place.and_then(|place| router.connection(place));
        let own = own.filter(|&connection| self.is_usable(connection));
        if let (Some(place), true, Route::Shards(router)) = (place, measured, &mut self.local.route)
        {
            router.count(place, own.is_none());
        }
        let near = || place.and_then(|(host, _)| self.usable_of(host, any));
        let connection = own.or_else(near).unwrap_or(any);
        self.encode(index, connection, key_size);
    }

    /// Learns where tablets are, as answers have told.
    #[cold]
    pub(crate) fn learn_tablets(&mut self) {
        for (table, tablet) in self.local.told.drain(..) {
            self.operations.tally.usage.tablets += 1;
            if let Route::Shards(router) = &mut self.local.route {
                router.learn(table, tablet);
            }
        }
    }
}
