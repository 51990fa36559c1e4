//! One thread of the data plane: generate -> encode -> send -> match -> record, for its share of
//! the load.
//!
//! In: a [`Protocol`] that encodes a plan, a [`Source`] of due operations, a [`Ring`]. Out:
//! interval records. After the ramp-up a turn of the loop allocates nothing, takes no lock and
//! writes nothing that another thread reads (but, in plans that insert, one counter per turn), but
//! for the turn in which it takes over a ring that has changed. Per turn: a clock read, a wait, and
//! per connection that has something a receive with a clock read behind it and a send with a clock
//! read before it.

use crate::Wait;
use crate::connection::{Connection, State};
use crate::horizon::Horizon;
use crate::links::{Links, NOBODY};
use crate::operations::Operations;
use crate::protocol::{Link, Protocol};
use crate::roster::Roster;
use crate::run::{Health, Setup};
use crate::slots::Slot;
use crate::source::{Due, Window};
use crate::tally::Witness;
use record::Outcome;
use ring::{ConnectionId, Event, Flush, Ring};
use std::cmp::Reverse;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{CpuId, CpuSet, Nanos, clock};
use workload::Sampler;

/// Operations that go out on one connection before the next one is taken, in an open loop.
const BURST_MAX: u32 = 16;
/// How long before an operation is due a worker stops sleeping and polls.
const SPIN: Nanos = Nanos::from_micros(100);
/// No sleep is longer, so that a request to stop is seen.
pub(crate) const SLEEP_MAX: Nanos = Nanos::from_millis(100);
/// Between looks at a horizon that keeps what is due from being begun.
const HOLD: Nanos = Nanos::from_millis(1);

pub(crate) struct Worker<R: Ring, W: Witness, P: Protocol> {
    pub(crate) setup: Arc<Setup>,
    pub(crate) encoder: Arc<P>,
    /// It is pinned to this one.
    cpu: CpuId,
    pub(crate) ring: R,
    pub(crate) operations: Operations<W>,
    /// Host by host, equally many to each.
    pub(crate) connections: Vec<Connection<P::Link>>,
    pub(crate) connections_per_host: u16,
    /// Of its first connection to a host, among those of all workers.
    pub(crate) first_place: usize,
    /// By host: how many of its connections are ready.
    pub(crate) ready_per_host: Vec<u16>,
    /// What it has of its protocol.
    pub(crate) local: P::Local,
    /// Some connection may be neither ready nor gone for good.
    pub(crate) is_unsettled: bool,
    /// Of the hosts that are driven.
    pub(crate) generation: u64,
    pub(crate) roster: Arc<Roster>,
    /// By [`ConnectionId::index`]: index into `connections`.
    pub(crate) owners: Vec<u16>,
    pub(crate) window: Window,
    /// Tells where the window starts.
    horizon: Arc<Horizon>,
    pub(crate) warm: Sampler,
    pub(crate) measured: Sampler,
    /// Those that [`Self::expire`] ends; kept for its memory.
    overdue: Vec<u32>,
    /// The text of the key at hand.
    pub(crate) key: Vec<u8>,
    /// Operations that have no frame.
    unsendable: Vec<u32>,
    /// As [`Protocol::frame_size_max`].
    frame_size_max: usize,
    /// The connection for the next operation of an open loop.
    pub(crate) turn: u16,
    /// Something is due that cannot be sent before something else happens.
    blocked: bool,
    /// Indices of connections that have something to flush.
    pub(crate) dirty: Vec<u16>,
    health: Arc<Health>,
    /// When `health` was told last.
    told: Nanos,
    /// Nothing is sent any more.
    pub(crate) cut_off: bool,
    /// From when on nothing is waited for any more; set when no operation is left to begin.
    pub(crate) deadline: Option<Nanos>,
}

/// All of them, of hosts that have not left: the run begins when they have been established.
fn ready_per_host<L>(connections: &[Connection<L>], own: u16) -> Vec<u16> {
    let hosts = connections.chunks(usize::from(own.max(1)));
    hosts.map(|host| host.iter().filter(|c| c.state == State::Ready).count() as u16).collect()
}

/// What a worker is made of, beside its ring.
pub(crate) struct Parts<W: Witness, P: Protocol> {
    pub(crate) encoder: Arc<P>,
    pub(crate) cpu: CpuId,
    pub(crate) operations: Operations<W>,
    pub(crate) in_flight_max: usize,
    pub(crate) window: Window,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) samplers: (Sampler, Sampler),
    pub(crate) connections_per_host: u16,
    pub(crate) first_place: usize,
    pub(crate) local: P::Local,
    pub(crate) generation: u64,
    pub(crate) roster: Arc<Roster>,
    pub(crate) health: Arc<Health>,
}

impl<R: Ring, W: Witness, P: Protocol> Worker<R, W, P> {
    pub(crate) fn new(
        setup: Arc<Setup>,
        ring: R,
        links: Links<P::Link>,
        parts: Parts<W, P>,
    ) -> Self {
        let (connections, owners) = links;
        let key = vec![0; parts.encoder.plan().key_room()];
        let mut worker = Self {
            cpu: parts.cpu,
            ring,
            operations: parts.operations,
            dirty: Vec::with_capacity(connections.len()),
            connections_per_host: parts.connections_per_host,
            first_place: parts.first_place,
            ready_per_host: ready_per_host(&connections, parts.connections_per_host),
            local: parts.local,
            is_unsettled: true,
            generation: parts.generation,
            roster: parts.roster,
            connections,
            owners,
            window: parts.window,
            horizon: parts.horizon,
            warm: parts.samplers.0,
            measured: parts.samplers.1,
            overdue: Vec::with_capacity(parts.in_flight_max),
            key,
            unsendable: Vec::new(),
            frame_size_max: parts.encoder.frame_size_max(),
            encoder: parts.encoder,
            turn: 0,
            blocked: false,
            health: parts.health,
            told: Nanos::ZERO,
            cut_off: false,
            deadline: None,
            setup,
        };
        worker.look_ahead();
        worker.meet();
        worker
    }

    /// Learns how far the warm-up goes, until it is known where the window starts.
    fn look_ahead(&mut self) {
        match self.horizon.get() {
            (start, true) => {
                self.window = self.window.starting(start);
                self.operations.source.settle(self.window);
                self.operations.tally.settle(self.window);
            }
            (horizon, false) => {
                self.operations.source.look_ahead(horizon);
                self.operations.tally.look_ahead();
            }
        }
    }

    /// Drives until all is done, drained, or `stop` is set.
    pub(crate) fn drive(mut self, stop: &AtomicBool) -> io::Result<W> {
        let mut events = Vec::with_capacity(512);
        loop {
            let now = clock::now();
            if !self.operations.source.is_settled() {
                self.look_ahead();
            }
            self.operations.tally.tick(
                now,
                self.ring.syscalls().total(),
                self.operations.slots.len(),
            );
            self.tell_health(now);
            if self.generation != self.roster.generation() {
                self.adopt_hosts(now);
            }
            if stop.load(Ordering::Relaxed) {
                self.stop(now);
            }
            self.issue(now);
            while let Some(index) = self.unsendable.pop() {
                self.operations.finish(index, now, Outcome::Error);
            }
            self.flush();
            self.expire(now);
            P::turn(&mut self, now);
            self.mend_connections(now);
            if self.over(now) {
                break;
            }
            self.wait(now, &mut events)?;
            for event in events.drain(..) {
                self.on_event(event);
            }
        }
        let now = clock::now();
        self.abandon(now);
        P::end(&mut self);
        self.operations.tally.usage.inserts = self.measured.inserts().max(self.warm.inserts());
        let own = std::iter::once(self.cpu).collect();
        self.operations.tally.usage.moved =
            units::cpus_of_current_thread().is_ok_and(|cpus: CpuSet| cpus != own);
        self.operations.tally.finish(clock::now(), self.ring.syscalls().total());
        Ok(self.operations.witness)
    }

    fn tell_health(&mut self, now: Nanos) {
        if now.since(self.told) >= SLEEP_MAX {
            self.told = now;
            self.health.ok_at(self.operations.tally.usage.last_ok);
        }
    }

    /// Begins what is due and can be sent.
    fn issue(&mut self, now: Nanos) {
        self.blocked = false;
        self.share_acknowledgements();
        while let Some(&Reverse((_, slot))) =
            self.operations.paused.peek().filter(|Reverse((at, _))| *at <= now)
        {
            self.operations.paused.pop();
            self.operations.resend.push_back(slot);
        }
        while let Some(&slot) = self.operations.resend.front() {
            let hint = self.operations.slots.get(slot).connection;
            let Some(connection) = P::usable(self, hint) else {
                self.blocked = true;
                return;
            };
            self.operations.resend.pop_front();
            P::send(self, slot, connection);
        }
        let mut burst = 0;
        while let Some(due) = self.operations.source.due(now) {
            let hint = due.connection.unwrap_or(self.turn);
            let connection =
                if self.operations.slots.available() { P::usable(self, hint) } else { None };
            let Some(connection) = connection else {
                self.blocked = true;
                self.count_full(due.measured);
                break;
            };
            if !self.begin(due, connection) {
                self.operations.source.end();
                break;
            }
            burst += 1;
            if burst == BURST_MAX {
                burst = 0;
                self.turn = self.turn.wrapping_add(1);
            }
        }
        if burst > 0 {
            self.turn = self.turn.wrapping_add(1);
        }
    }

    /// Counts which bound keeps an operation that is due from being sent, if one does.
    #[cold]
    fn count_full(&mut self, measured: bool) {
        let usage = &mut self.operations.tally.usage;
        let mut ready = self.connections.iter().filter(|c| c.state == State::Ready).peekable();
        if !measured || ready.peek().is_none() {
            return;
        }
        if !self.operations.slots.available() {
            usage.full_in_flight += 1;
        } else if ready.all(|c| !c.link.available()) {
            usage.full_streams += 1;
        }
    }

    /// Draws an operation and encodes its first frame. False when there is none left to draw.
    #[inline]
    fn begin(&mut self, due: Due, connection: u16) -> bool {
        let sampler = if due.measured { &mut self.measured } else { &mut self.warm };
        let Some(draw) = sampler.draw() else { return false };
        self.operations.source.take(&due);
        let slot = Slot::unsent(due.scheduled, draw, due.measured);
        let index = self.operations.slots.insert(slot);
        P::send(self, index, connection);
        true
    }

    /// Lets the samplers know which inserted keys exist by now.
    fn share_acknowledgements(&mut self) {
        if let Some(inserts) = &mut self.operations.inserts
            && let Some(last_key) = inserts.exchange()
        {
            self.warm.set_acknowledged(last_key);
            self.measured.set_acknowledged(last_key);
        }
        // The window's inserts go on behind those of the warm-up.
        if self.operations.inserts.is_some() && self.measured.inserts() < self.warm.inserts() {
            self.measured.skip_inserts(self.warm.inserts());
        }
    }

    /// Whether a connection takes an operation now: ready, with a free stream and room for a frame.
    #[inline]
    pub(crate) fn is_usable(&mut self, index: u16) -> bool {
        let connection = &mut self.connections[usize::from(index)];
        let space_left = connection.link.buffer(&mut self.ring, connection.id).space_left();
        connection.state == State::Ready
            && connection.link.available()
            && space_left >= self.frame_size_max
    }

    /// A connection that takes an operation now: the one hinted at, or the next one after it.
    #[inline]
    pub(crate) fn next_usable(&mut self, hint: u16) -> Option<u16> {
        let count = self.connections.len();
        if usize::from(hint) < count && self.is_usable(hint) {
            return Some(hint);
        }
        (0..count)
            .map(|offset| ((usize::from(hint) + offset) % count) as u16)
            .find(|&c| self.is_usable(c))
    }

    /// A connection to this host that takes an operation now.
    pub(crate) fn usable_of(&mut self, host: u16, hint: u16) -> Option<u16> {
        let count = self.connections_per_host;
        (0..count).map(|offset| host * count + (hint + offset) % count).find(|&c| self.is_usable(c))
    }

    /// Writes the frame of a slot's current step; its key is in `self.key`. The connection was
    /// found [`Protocol::usable`].
    #[inline]
    pub(crate) fn encode(&mut self, index: u32, connection_index: u16, key_size: usize) {
        let connection = &mut self.connections[usize::from(connection_index)];
        let Some(request) = connection.link.take(index) else { return };
        let slot = self.operations.slots.get_mut(index);
        let operation = &self.setup.operations[usize::from(slot.draw.operation)];
        let statement = operation.steps[usize::from(slot.step)].statement(&slot.draw);
        slot.connection = connection_index;
        slot.stream = request;
        slot.statement = statement as u16;
        slot.sent = Nanos::ZERO;
        let filling = connection.link.buffer(&mut self.ring, connection.id);
        let out = filling.space(self.frame_size_max);
        let key = &self.key[..key_size];
        match self.encoder.write(slot, key, &mut self.local, out) {
            Ok(size) => filling.commit(size),
            Err(why) => {
                connection.link.put_back(request);
                self.setup.first_error.get_or_init(|| why);
                return self.unsendable.push(index);
            }
        }
        connection.unoffered.push(index);
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push(connection_index);
        }
    }

    /// Offers what is encoded to the kernel. An operation counts as sent at a clock read just
    /// before the send that first offers its frame.
    fn flush(&mut self) {
        while let Some(index) = self.dirty.pop() {
            let connection = &mut self.connections[usize::from(index)];
            connection.dirty = false;
            connection.link.offer(&mut self.ring, connection.id);
            let at = clock::now();
            match self.ring.flush(connection.id) {
                Ok(Flush::Offered) => {
                    for &slot in &connection.unoffered {
                        self.operations.slots.sent(slot, at);
                    }
                    connection.unoffered.clear();
                }
                // The event `Writable` makes it dirty again.
                Ok(Flush::Waiting | Flush::Empty) => {}
                Err(_) => self.lost(index, at),
            }
        }
    }

    /// Ends the attempts whose answer is overdue.
    fn expire(&mut self, now: Nanos) {
        let limit = now.since(self.setup.timeout);
        let mut overdue = std::mem::take(&mut self.overdue);
        self.operations.slots.overdue(limit, &mut overdue);
        for &index in &overdue {
            // It may have been lost meanwhile, with the connection of one before it.
            if self.operations.slots.is_overdue(index, limit) {
                self.expire_one(index, now);
            }
        }
        self.overdue = overdue;
    }

    #[cold]
    fn expire_one(&mut self, index: u32, now: Nanos) {
        let slot = self.operations.slots.get(index);
        let (connection, stream) = (slot.connection, slot.stream);
        let is_spent = self.connections[usize::from(connection)].link.give_up(stream);
        self.operations.attempted(index, now, Outcome::ClientTimeout);
        if is_spent {
            self.replace(connection, now);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Received { connection, at } => {
                if let Some(index) = self.owner(connection) {
                    P::receive(self, index, at);
                }
            }
            Event::Writable { connection } => {
                if let Some(index) = self.owner(connection) {
                    self.mark_dirty(index);
                }
            }
            Event::Connected { connection } => {
                if let Some(index) = self.owner(connection) {
                    self.start(index);
                }
            }
            Event::Closed { connection, .. } => {
                if let Some(index) = self.owner(connection) {
                    self.lost(index, clock::now());
                }
            }
            Event::Accepted { .. } => {}
        }
    }

    /// None of a connection that an event before this one, of the same wait, has ended.
    fn owner(&self, id: ConnectionId) -> Option<u16> {
        self.owners.get(id.index()).copied().filter(|&owner| owner != NOBODY)
    }

    fn mark_dirty(&mut self, index: u16) {
        let connection = &mut self.connections[usize::from(index)];
        let pending = connection.link.has_pending();
        if !connection.dirty && (pending || self.ring.unsent(connection.id) > 0) {
            connection.dirty = true;
            self.dirty.push(index);
        }
    }

    /// Sleeps until something can be done, or polls when the next operation is due soon.
    fn wait(&mut self, now: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut until = (now + SLEEP_MAX).min(self.operations.tally.wake_at());
        if let Some(oldest) = self.operations.slots.oldest() {
            until = until.min(oldest + self.setup.timeout);
        }
        if self.is_unsettled {
            for at in self.connections.iter().filter_map(Connection::wake_at) {
                until = until.min(at);
            }
        }
        if self.operations.source.is_held() {
            until = until.min(now + HOLD);
        }
        let paused = self.operations.paused.peek().map(|&Reverse((at, _))| at);
        for at in self.deadline.into_iter().chain(paused) {
            until = until.min(at);
        }
        let due = if self.blocked {
            None
        } else {
            self.operations.source.next().map(|due| due.scheduled)
        };
        match (self.setup.wait, due) {
            (Wait::Spin, Some(due)) if due <= until => {
                if due > now + SPIN {
                    self.ring.wait(Some(due - SPIN), events)
                } else {
                    self.spin(now, due, events)
                }
            }
            (_, due) => self.ring.wait(Some(due.map_or(until, |due| due.min(until))), events),
        }
    }

    /// Polls until something has happened or `due` has come; what that takes is spin, not work. It
    /// is counted in time of the thread, because a busy host may take the cpu away meanwhile.
    fn spin(&mut self, now: Nanos, due: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let (cpu, syscalls) = (clock::thread_cpu(), self.ring.syscalls().total());
        let mut last = now;
        while last < due && events.is_empty() {
            self.ring.wait(Some(Nanos::ZERO), events)?;
            last = clock::now();
        }
        self.operations.tally.usage.spin += clock::thread_cpu().since(cpu);
        self.operations.tally.usage.spin_syscalls += self.ring.syscalls().total() - syscalls;
        Ok(())
    }
}
