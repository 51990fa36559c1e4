//! One thread of the server: an event loop, its connections, and what they are answered.
//!
//! The same for every protocol: a [`Service`] makes a [`Conversation`] for each connection.

use crate::config::Config;
use crate::counters::Counters;
use crate::delivery::{Delivery, Outbox};
use crate::events::EventLog;
use crate::faults::{Fault, FaultPlan};
use crate::serial::Serial;
use crate::service::{After, Conversation, Service, SessionLimits};
use crate::store::Disk;
use ring::{BufferSizes, ConnectionId, Event, Ring};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use units::{Nanos, clock};

const TICK: Nanos = Nanos::from_millis(50);
const LINGER: Nanos = Nanos::from_secs(2);
const BUFFER_BYTES: usize = 16 << 10;

/// A connection of a worker.
struct Peer<C> {
    session: C,
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
pub(crate) struct Worker<'a, R: Ring, S: Service> {
    config: &'a Config,
    pub(crate) ring: R,
    service: &'a Arc<S>,
    counters: Arc<Counters>,
    /// Connections of all threads.
    connections: &'a AtomicUsize,
    peers: Vec<Option<Peer<S::Session>>>,
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
pub(crate) fn buffer_sizes<S: Service>(config: &Config) -> BufferSizes {
    let receive_max = S::receive_max(config.frame_size_max);
    BufferSizes { send: BUFFER_BYTES, receive: BUFFER_BYTES, receive_max }
}

impl<'a, R: Ring, S: Service> Worker<'a, R, S> {
    pub(crate) fn new(
        ring: R,
        config: &'a Config,
        service: &'a Arc<S>,
        connections: &'a AtomicUsize,
        serial: Option<&'a Serial>,
    ) -> Self {
        let faults = service.faults();
        Self {
            config,
            ring,
            service,
            counters: service.counters(),
            connections,
            peers: Vec::new(),
            out: Vec::new(),
            events_seen: service.events().map_or(0, EventLog::published),
            lingering: Vec::new(),
            delivery: Delivery::new(serial, faults),
            faults,
            disk: service.disk(),
        }
    }

    pub(crate) fn serve(&mut self, stop: &AtomicBool) -> io::Result<()> {
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
            self.service.after_a_turn();
            if let Some(events) = self.service.events()
                && self.events_seen != events.published()
            {
                self.publish(events);
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
        let session = self.service.session(&self.counters, limits, peer, port);
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
    fn publish(&mut self, events: &EventLog) {
        let frames = events.since(&mut self.events_seen);
        for index in 0..self.peers.len() {
            let id = ConnectionId(index as u32);
            let wants = |p: &&mut Peer<S::Session>| p.session.wants_schema_changes() && !p.paused;
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
