//! The target's sockets: one thread per cpu asked for, each with its own event loop. The first one
//! listens, and gives each new connection to the thread that has the fewest.
//!
//! A thread wakes at least every 50 ms to see whether it shall stop and whether other threads have
//! changed the schema. Bounded: connections, the size of a frame, and what waits to be sent: a peer
//! that does not read is not read from. A connection that has broken the protocol gets its error,
//! and what it still sends is dropped for up to two seconds, so that the error is not lost to a
//! reset.
//!
//! With a serial part or faults answers wait for their moment (see `delivery`); the loop sleeps
//! until the first one's, and a peer's waiting answers count as its backlog.
//!
//! Limit: a connection stays with its thread, however unevenly clients use theirs.

use crate::config::{Config, ServeError};
use crate::counters::Counters;
use crate::delivery::{Delivery, Outbox};
use crate::engine::{Engine, EngineConfig};
use crate::faults::{self, Fault, FaultPlan};
use crate::serial::Serial;
use crate::session::{After, Session, SessionLimits};
use crate::shards::{self, Scylla};
use crate::store::Disk;
use ring::{BufferSizes, ConnectionId, Epoll, Event, Ring, Uring};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use units::{Nanos, clock};
use wire::cql::HEADER_SIZE;
use wire::cql::framing::Outgoing;

/// A target that listens and does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    address: SocketAddr,
    listener: TcpListener,
    /// Where the client's port chooses the shard.
    shard_listener: Option<TcpListener>,
    engine: Arc<Engine>,
}

/// Listens where a client's port chooses the shard, and notes the port.
fn listen_for_shards(config: &Config, scylla: &mut Scylla) -> Result<TcpListener, ServeError> {
    let address = SocketAddr::new(config.listen.ip(), scylla.port);
    let failed = |source| ServeError::BindShards { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    scylla.port = listener.local_addr().map_err(failed)?.port();
    Ok(listener)
}

/// A target that serves on threads of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Server {
    /// Listens; clients can connect from now on and are served by [`Self::run`].
    ///
    /// # Errors
    /// [`ServeError::Bind`] when the address is taken or not of this host.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut scylla = config.scylla.clone();
        let shard_listener = scylla.as_mut().map(|scylla| listen_for_shards(&config, scylla));
        let shard_listener = shard_listener.transpose()?;
        let engine = Engine::new(EngineConfig {
            storage: config.storage.clone(),
            memory_max: config.memory_max,
            prepared_max: config.prepared_max,
            clock: config.clock.clone(),
            address,
            protocol_max: config.protocol_max,
            faults: config.faults.clone(),
            scylla,
        })?;
        Ok(Self { config, address, listener, shard_listener, engine: Arc::new(engine) })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Tells the faults that operations have met, while it serves and after that; None when there
    /// are none on purpose.
    pub fn faults_met(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let engine = Arc::clone(&self.engine);
        move || faults::told(&engine, clock::now())
    }

    /// Tells the requests that have come to each shard, while it serves and after that; None
    /// without shards.
    pub fn shards_met(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let engine = Arc::clone(&self.engine);
        move || shards::told(&engine)
    }

    /// The port where a client's port chooses the shard.
    #[must_use]
    pub fn shard_aware_port(&self) -> Option<u16> {
        let port = |listener: &TcpListener| listener.local_addr().ok().map(|local| local.port());
        self.shard_listener.as_ref().and_then(port)
    }

    /// Serves until `stop` is set, which is noticed within 50 ms.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when an event loop cannot be made or fails; the other threads are
    /// stopped then.
    pub fn run(self, stop: &AtomicBool) -> Result<(), ServeError> {
        let failed = |source| ServeError::Loop { address: self.address, source };
        let epoll = |sizes| Epoll::new(sizes).map_err(failed);
        let uring = |sizes| Ok(Uring::new(sizes)?);
        match (&self.config.tls, self.config.io) {
            (None, ring::Engine::Epoll) => self.run_on(stop, epoll),
            (None, ring::Engine::IoUring) => self.run_on(stop, uring),
            (Some(tls), ring::Engine::Epoll) => self.run_on(stop, |s| Ok(tls.over(epoll(s)?, s))),
            (Some(tls), ring::Engine::IoUring) => self.run_on(stop, |s| Ok(tls.over(uring(s)?, s))),
        }
    }

    fn run_on<R: Ring + Send>(
        &self,
        stop: &AtomicBool,
        ring: impl Fn(BufferSizes) -> Result<R, ServeError>,
    ) -> Result<(), ServeError> {
        let failed = |source| ServeError::Loop { address: self.address, source };
        let connections = AtomicUsize::new(0);
        let serial = self.config.serial.map(Serial::new);
        let mut workers = Vec::new();
        for _ in 0..self.config.threads.max(1) {
            let ring = ring(buffer_sizes(&self.config))?;
            let serial = serial.as_ref();
            workers.push(Worker::new(ring, &self.config, &self.engine, &connections, serial));
        }
        let rings = workers.iter_mut().map(|worker| worker.ring.mailbox());
        let rings = rings.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        if let Some(first) = workers.first_mut() {
            first.ring.share(rings);
            for listener in std::iter::once(&self.listener).chain(&self.shard_listener) {
                let listener = listener.try_clone().map_err(failed)?;
                first.ring.listen(listener).map_err(failed)?;
            }
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (n, mut worker) in workers.into_iter().enumerate() {
                let name = format!("target-{n}");
                let serve = move || {
                    let result = worker.serve(stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                };
                let thread = std::thread::Builder::new().name(name).spawn_scoped(scope, serve);
                if thread.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                threads.push(thread);
            }
            let mut outcome = Ok(());
            for thread in threads {
                let died = |_| Err(io::Error::other("a thread has panicked"));
                let result = thread.and_then(|t| t.join().unwrap_or_else(died));
                outcome = outcome.and(result.map_err(failed));
            }
            let broken = self.engine.disk.as_ref().and_then(|disk| disk.failure());
            broken.map_or(outcome, |why| Err(ServeError::Store(why.to_owned())))
        })
    }

    /// Serves on threads of its own.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when no thread can be made.
    pub fn start(self) -> Result<Handle, ServeError> {
        let address = self.address;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("target".to_owned())
            .spawn(move || self.run(&stopped))
            .map_err(|source| ServeError::Loop { address, source })?;
        Ok(Handle { address, stop, thread: Some(thread) })
    }
}

impl Handle {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Asks it to stop; [`Self::join`] waits for it.
    pub fn shutdown(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops it and waits until its threads have ended.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when an event loop had failed.
    pub fn join(mut self) -> Result<(), ServeError> {
        self.shutdown();
        let address = self.address;
        let died = |_| {
            Err(ServeError::Loop { address, source: io::Error::other("a thread has panicked") })
        };
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(died))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shutdown();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended calls `join`.
            let _ = thread.join();
        }
    }
}

const TICK: Nanos = Nanos::from_millis(50);
const LINGER: Nanos = Nanos::from_secs(2);
const BUFFER_BYTES: usize = 16 << 10;

/// A connection of a worker.
struct Peer {
    session: Session,
    /// Receiving is paused until the backlog has gone out.
    paused: bool,
    /// Nothing is answered any more; closed at this time at the latest.
    closing_at: Option<Nanos>,
    outbox: Outbox,
}

/// Sleeps through a stall, unless the server is to stop.
fn stand_still(faults: &FaultPlan, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed)
        && let now = clock::now()
        && let Some(until) = faults.stalled_until(now)
    {
        std::thread::sleep(Duration::from_nanos(until.since(now).min(TICK).0));
    }
}

/// One thread of the server.
struct Worker<'a, R: Ring> {
    config: &'a Config,
    ring: R,
    engine: &'a Arc<Engine>,
    counters: Arc<Counters>,
    /// Connections of all threads.
    connections: &'a AtomicUsize,
    peers: Vec<Option<Peer>>,
    /// Answers on their way into a connection's send buffer.
    out: Vec<u8>,
    events_seen: u64,
    /// Connections whose `closing_at` is set.
    lingering: Vec<ConnectionId>,
    /// None: all answers go at once.
    delivery: Option<Delivery<'a>>,
    /// Of all threads.
    faults: Option<&'a FaultPlan>,
    /// Of all threads; None when rows are not on disk.
    disk: Option<&'a Disk>,
}

/// Of each connection.
fn buffer_sizes(config: &Config) -> BufferSizes {
    // A frame, or the segments in which it comes.
    let receive_max = Outgoing::size_max(config.frame_size_max + HEADER_SIZE);
    BufferSizes { send: BUFFER_BYTES, receive: BUFFER_BYTES, receive_max }
}

impl<'a, R: Ring> Worker<'a, R> {
    fn new(
        ring: R,
        config: &'a Config,
        engine: &'a Arc<Engine>,
        connections: &'a AtomicUsize,
        serial: Option<&'a Serial>,
    ) -> Self {
        let faults = engine.faults.as_deref();
        Self {
            config,
            ring,
            engine,
            counters: engine.counters(),
            connections,
            peers: Vec::new(),
            out: Vec::new(),
            events_seen: engine.events.published(),
            lingering: Vec::new(),
            delivery: Delivery::new(serial, faults),
            faults,
            disk: engine.disk.as_deref(),
        }
    }

    fn serve(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let tick = Nanos(clock::now().0 + TICK.0);
            let wake = self.delivery.as_ref().and_then(Delivery::wake);
            let until = wake.map_or(tick, |wake| wake.min(tick));
            self.ring.wait(Some(until), &mut events)?;
            if let Some(faults) = self.faults {
                stand_still(faults, stop);
            }
            for event in events.drain(..) {
                match event {
                    Event::Accepted { connection, peer, port } => {
                        self.accept(connection, peer, port);
                    }
                    Event::Received { connection, .. } => self.answer(connection),
                    Event::Writable { connection } => self.resume(connection),
                    Event::Closed { connection, .. } => self.close(connection),
                    Event::Connected { .. } => {}
                }
            }
            if self.disk.is_some_and(|disk| disk.failure().is_some()) {
                return Err(io::Error::other("the storage has failed"));
            }
            if self.delivery.is_some() {
                self.release();
            }
            if self.config.scylla.is_some() {
                // What does not work here was refused when the table was made.
                let _ = shards::move_when_due(self.engine, clock::now());
            }
            if self.events_seen != self.engine.events.published() {
                self.publish();
            }
            self.close_lingering();
        }
        Ok(())
    }

    fn accept(&mut self, id: ConnectionId, peer: SocketAddr, port: u16) {
        if self.connections.fetch_add(1, Ordering::Relaxed) >= self.config.connections_max {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            self.ring.close(id);
            return;
        }
        let limits = SessionLimits {
            frame_size_max: self.config.frame_size_max,
            backlog_max: self.config.backlog_max,
        };
        let (engine, counters) = (Arc::clone(self.engine), Arc::clone(&self.counters));
        let session = match engine.shards.as_ref().is_some_and(|shards| shards.port == port) {
            true => Session::at_shard(engine, counters, limits, peer.port()),
            false => Session::new(engine, counters, limits),
        };
        if self.peers.len() <= id.index() {
            self.peers.resize_with(id.index() + 1, || None);
        }
        let peer = Peer { session, paused: false, closing_at: None, outbox: Outbox::default() };
        self.peers[id.index()] = Some(peer);
    }

    fn close(&mut self, id: ConnectionId) {
        self.ring.close(id);
        if self.peers.get_mut(id.index()).is_some_and(|peer| peer.take().is_some()) {
            self.connections.fetch_sub(1, Ordering::Relaxed);
            // The id may be given again.
            self.delivery.iter_mut().for_each(|delivery| delivery.forget(id));
        }
    }

    /// More waits to be sent to the peer than it may.
    fn is_backlogged(&self, id: ConnectionId) -> bool {
        let peer = self.peers.get(id.index()).and_then(Option::as_ref);
        self.ring.unsent(id) + peer.map_or(0, |p| p.outbox.size()) > self.config.backlog_max
    }

    /// Answers what has arrived, as long as the peer takes the answers.
    fn answer(&mut self, id: ConnectionId) {
        loop {
            if self.answer_frames(id).and_then(|()| self.ring.flush(id)).is_err() {
                return self.close(id);
            }
            // The kernel may have taken all at once, and then no event follows.
            let paused = matches!(self.peers.get(id.index()), Some(Some(p)) if p.paused);
            if !paused || self.is_backlogged(id) {
                break;
            }
        }
        if self.out.capacity() > 4 * self.config.backlog_max {
            self.out = Vec::new();
        }
    }

    /// Answers whole frames into the send buffer until there are no more or the backlog is full.
    fn answer_frames(&mut self, id: ConnectionId) -> io::Result<()> {
        loop {
            let backlog = self.is_backlogged(id);
            let Some(Some(peer)) = self.peers.get_mut(id.index()) else { return Ok(()) };
            if peer.closing_at.is_some() {
                let size = self.ring.received(id).len();
                self.ring.consume(id, size);
                return Ok(());
            }
            if backlog != peer.paused {
                peer.paused = backlog;
                self.ring.pause_receiving(id, backlog)?;
            }
            if backlog {
                return Ok(());
            }
            self.out.clear();
            let received = self.ring.received(id);
            // Each operation is queued for itself.
            let frames_max = if self.delivery.is_some() { 1 } else { usize::MAX };
            let done = peer.session.receive(received, frames_max, &mut self.out);
            self.ring.consume(id, done.consumed);
            if self.disk.is_some_and(|disk| !disk.settle()) {
                // Whoever waits for these answers learns that they are not acknowledged.
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            match &mut self.delivery {
                None => self.ring.filling(id).append(|buffer| buffer.extend_from_slice(&self.out)),
                Some(delivery) if done.operations == 0 => {
                    delivery.put(&mut self.ring, id, &mut peer.outbox, &self.out);
                }
                Some(delivery) => {
                    let fate = peer.session.take_fate();
                    if fate.fault == Some(Fault::Drop) {
                        let part = &self.out[..delivery.torn(self.out.len())];
                        self.ring.filling(id).append(|buffer| buffer.extend_from_slice(part));
                        // What of it the kernel takes is with the client before the end.
                        self.ring.flush(id)?;
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                    delivery.hold(id, &mut peer.outbox, &self.out, fate);
                }
            }
            if done.after == After::Close {
                peer.closing_at = Some(Nanos(clock::now().0 + LINGER.0));
                self.lingering.push(id);
            }
            if done.consumed == 0 && done.answered == 0 {
                return Ok(());
            }
        }
    }

    /// Sends the answers, and the pieces of answers, whose moment has come.
    fn release(&mut self) {
        let now = clock::now();
        while let Some(delivery) = &mut self.delivery
            && let Some(held) = delivery.due(now)
        {
            let id = held.connection;
            if let Some(Some(peer)) = self.peers.get_mut(id.index()) {
                Delivery::let_go(&mut peer.outbox, &held);
                delivery.put(&mut self.ring, id, &mut peer.outbox, &held.bytes);
            }
            if !delivery.goes_on(id, now) {
                self.resume(id);
            }
        }
        let due = self.delivery.as_mut().map_or(Vec::new(), |delivery| delivery.pieces_due(now));
        for id in due {
            let (Some(delivery), Some(Some(peer))) =
                (&mut self.delivery, self.peers.get_mut(id.index()))
            else {
                continue;
            };
            delivery.piece(&mut self.ring, id, &mut peer.outbox);
            self.resume(id);
        }
    }

    /// The peer has taken what was offered.
    fn resume(&mut self, id: ConnectionId) {
        let paused = matches!(self.peers.get(id.index()), Some(Some(p)) if p.paused);
        if paused {
            self.answer(id);
        } else if self.ring.flush(id).is_err() {
            self.close(id);
        }
    }

    /// Sends new events to the connections that have asked for them.
    fn publish(&mut self) {
        let frames = self.engine.events.since(&mut self.events_seen);
        for index in 0..self.peers.len() {
            let id = ConnectionId(index as u32);
            let wants = |p: &&mut Peer| p.session.wants_schema_changes() && !p.paused;
            let Some(peer) = self.peers[index].as_mut().filter(wants) else { continue };
            match &mut self.delivery {
                None => {
                    let tell = |out: &mut Vec<u8>| {
                        frames.iter().for_each(|frame| peer.session.tell(frame, out));
                    };
                    self.ring.filling(id).append(tell);
                }
                Some(delivery) => {
                    self.out.clear();
                    frames.iter().for_each(|frame| peer.session.tell(frame, &mut self.out));
                    delivery.put(&mut self.ring, id, &mut peer.outbox, &self.out);
                }
            }
            if self.ring.flush(id).is_err() {
                self.close(id);
            }
        }
    }

    fn close_lingering(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        let now = clock::now();
        for id in std::mem::take(&mut self.lingering) {
            // An id that was closed and given again is not closing.
            let Some(Some(peer)) = self.peers.get(id.index()) else { continue };
            match peer.closing_at {
                Some(at) if at <= now => self.close(id),
                Some(_) => self.lingering.push(id),
                None => {}
            }
        }
    }
}
