//! One thread of the data plane: generate -> encode -> send -> match -> record, for its share of
//! the load.
//!
//! In: an [`Encoder`](crate::Encoder) over prepared statements, a [`Source`] of due operations, a
//! [`Ring`]. Out: interval records. After the ramp-up a turn of the loop allocates nothing, takes
//! no lock and writes nothing that another thread reads (but, in plans that insert, one counter per
//! turn). Per turn: a clock read, a wait, and per connection that has something a receive with a
//! clock read behind it and a send with a clock read before it.

use crate::Wait;
use crate::connection::{Connection, State};
use crate::horizon::Horizon;
use crate::inserts::Inserts;
use crate::links::Links;
use crate::router::Router;
use crate::run::{Health, Setup};
use crate::slots::{Slot, Slots};
use crate::source::{Due, Source, Window};
use crate::tally::{Tally, Witness};
use record::Outcome;
use ring::{ConnectionId, Event, Flush, Ring};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};
use workload::Sampler;

/// Operations that go out on one connection before the next one is taken, in an open loop.
const BURST_MAX: u32 = 16;
/// How long before an operation is due a worker stops sleeping and polls.
const SPIN: Nanos = Nanos::from_micros(100);
/// No sleep is longer, so that a request to stop is seen.
const SLEEP_MAX: Nanos = Nanos::from_millis(100);
/// Between looks at a horizon that keeps what is due from being begun.
const HOLD: Nanos = Nanos::from_millis(1);
/// After a request to stop, answers are waited for no longer than this.
const STOP_DRAIN_MAX: Nanos = Nanos::from_secs(2);

pub(crate) struct Worker<R: Ring, W: Witness> {
    pub(crate) setup: Arc<Setup>,
    pub(crate) ring: R,
    pub(crate) witness: W,
    /// Host by host, equally many to each.
    pub(crate) connections: Vec<Connection>,
    pub(crate) connections_per_host: u16,
    /// By host: how many of its connections are ready.
    pub(crate) ready_per_host: Vec<u16>,
    /// None when there is only one host, or none is known to hold a key.
    router: Option<Router>,
    /// By [`ConnectionId::index`]: index into `connections`.
    pub(crate) owners: Vec<u16>,
    pub(crate) slots: Slots,
    pub(crate) source: Source,
    pub(crate) tally: Tally,
    pub(crate) window: Window,
    /// Tells where the window starts.
    horizon: Arc<Horizon>,
    warm: Sampler,
    measured: Sampler,
    pub(crate) inserts: Option<Inserts>,
    /// Operations whose next frame found no connection: retries, next steps, frames lost before
    /// they were offered.
    pub(crate) resend: VecDeque<u32>,
    /// Operations whose next attempt waits for its pause to end. All pauses are equal, so the
    /// first is due first.
    pub(crate) paused: VecDeque<(Nanos, u32)>,
    pub(crate) key: Vec<u8>,
    /// The connection for the next operation of an open loop.
    turn: u16,
    /// Something is due that cannot be sent before something else happens.
    blocked: bool,
    /// Indices of connections that have something to flush.
    pub(crate) dirty: Vec<u16>,
    health: Arc<Health>,
    /// When `health` was told last.
    told: Nanos,
    /// Nothing is sent any more.
    cut_off: bool,
    /// From when on nothing is waited for any more; set when no operation is left to begin.
    deadline: Option<Nanos>,
}

/// Whether a connection takes an operation now: ready, with a free stream and room for a frame.
#[inline]
fn is_usable<R: Ring>(setup: &Setup, connections: &[Connection], ring: &mut R, index: u16) -> bool {
    let connection = &connections[usize::from(index)];
    connection.state == State::Ready
        && connection.streams.available()
        && ring.filling(connection.id).space_left() >= setup.encoder.frame_size_max()
}

/// What a worker is made of, beside its ring.
pub(crate) struct Parts<W: Witness> {
    pub(crate) witness: W,
    pub(crate) source: Source,
    pub(crate) tally: Tally,
    pub(crate) window: Window,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) samplers: (Sampler, Sampler),
    pub(crate) inserts: Option<Inserts>,
    pub(crate) in_flight_max: usize,
    pub(crate) connections_per_host: u16,
    pub(crate) router: Option<Router>,
    pub(crate) health: Arc<Health>,
}

impl<R: Ring, W: Witness> Worker<R, W> {
    pub(crate) fn new(setup: Arc<Setup>, ring: R, links: Links, parts: Parts<W>) -> Self {
        let (connections, owners) = links;
        let key = vec![0; setup.encoder.plan().key_size_max()];
        let mut worker = Self {
            ring,
            witness: parts.witness,
            dirty: Vec::with_capacity(connections.len()),
            connections_per_host: parts.connections_per_host,
            // All are: the run begins when they have been established.
            ready_per_host: vec![
                parts.connections_per_host;
                connections.len() / usize::from(parts.connections_per_host.max(1))
            ],
            router: parts.router,
            connections,
            owners,
            slots: Slots::new(parts.in_flight_max),
            source: parts.source,
            tally: parts.tally,
            window: parts.window,
            horizon: parts.horizon,
            warm: parts.samplers.0,
            measured: parts.samplers.1,
            inserts: parts.inserts,
            resend: VecDeque::with_capacity(parts.in_flight_max),
            paused: VecDeque::with_capacity(parts.in_flight_max),
            key,
            turn: 0,
            blocked: false,
            health: parts.health,
            told: Nanos::ZERO,
            cut_off: false,
            deadline: None,
            setup,
        };
        worker.look_ahead();
        worker
    }

    /// Learns how far the warm-up goes, until it is known where the window starts.
    fn look_ahead(&mut self) {
        match self.horizon.get() {
            (start, true) => {
                self.window = self.window.starting(start);
                self.source.settle(self.window);
                self.tally.settle(self.window);
            }
            (horizon, false) => {
                self.source.look_ahead(horizon);
                self.tally.look_ahead();
            }
        }
    }

    /// Drives until all is done, drained, or `stop` is set.
    pub(crate) fn drive(mut self, stop: &AtomicBool) -> io::Result<W> {
        let mut events = Vec::with_capacity(512);
        loop {
            let now = clock::now();
            if !self.source.is_settled() {
                self.look_ahead();
            }
            self.tally.tick(now, self.ring.syscalls().total(), self.slots.len());
            self.tell_health(now);
            if stop.load(Ordering::Relaxed) {
                self.stop(now);
            }
            self.issue(now);
            self.flush();
            self.expire(now);
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
        self.tally.usage.inserts = self.measured.inserts().max(self.warm.inserts());
        self.tally.finish(clock::now(), self.ring.syscalls().total());
        Ok(self.witness)
    }

    fn tell_health(&mut self, now: Nanos) {
        if now.since(self.told) >= SLEEP_MAX {
            self.told = now;
            self.health.ok_at(self.tally.usage.last_ok);
        }
    }

    /// Begins what is due and can be sent.
    fn issue(&mut self, now: Nanos) {
        self.blocked = false;
        self.share_acknowledgements();
        while let Some(&(_, slot)) = self.paused.front().filter(|(at, _)| *at <= now) {
            self.paused.pop_front();
            self.resend.push_back(slot);
        }
        while let Some(&slot) = self.resend.front() {
            let Some(connection) = self.usable(self.slots.get(slot).connection) else {
                self.blocked = true;
                return;
            };
            self.resend.pop_front();
            self.send(slot, connection);
        }
        let mut burst = 0;
        while let Some(due) = self.source.due(now) {
            let hint = due.connection.unwrap_or(self.turn);
            let connection = if self.slots.available() { self.usable(hint) } else { None };
            let Some(connection) = connection else {
                self.blocked = true;
                self.count_full(due.measured);
                break;
            };
            if !self.begin(due, connection) {
                self.source.end();
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
        let usage = &mut self.tally.usage;
        let mut ready = self.connections.iter().filter(|c| c.state == State::Ready).peekable();
        if !measured || ready.peek().is_none() {
            return;
        }
        if !self.slots.available() {
            usage.full_in_flight += 1;
        } else if ready.all(|c| !c.streams.available()) {
            usage.full_streams += 1;
        }
    }

    /// Draws an operation and encodes its first frame. False when there is none left to draw.
    #[inline]
    fn begin(&mut self, due: Due, connection: u16) -> bool {
        let sampler = if due.measured { &mut self.measured } else { &mut self.warm };
        let Some(draw) = sampler.draw() else { return false };
        self.source.take();
        let slot = self.slots.insert(due.scheduled, draw, due.measured);
        self.send(slot, connection);
        true
    }

    /// Sends the current step of an operation to a host that holds its key, or by `any`, a
    /// connection that was found [`Self::usable`], when there is one host only or none of them can
    /// be asked.
    #[inline]
    fn send(&mut self, index: u32, any: u16) {
        let key_size =
            self.setup.encoder.plan().write_key(self.slots.get(index).draw.key, &mut self.key);
        let ready = &self.ready_per_host;
        let host = match &mut self.router {
            Some(router) => router.host(&self.key[..key_size], |h| ready[usize::from(h)] > 0),
            None => None,
        };
        let connection = host.and_then(|host| self.usable_of(host, any)).unwrap_or(any);
        self.encode(index, connection, key_size);
    }

    /// Lets the samplers know which inserted keys exist by now.
    fn share_acknowledgements(&mut self) {
        if let Some(inserts) = &mut self.inserts
            && let Some(last_key) = inserts.exchange()
        {
            self.warm.set_acknowledged(last_key);
            self.measured.set_acknowledged(last_key);
        }
        // The window's inserts go on behind those of the warm-up.
        if self.inserts.is_some() && self.measured.inserts() < self.warm.inserts() {
            self.measured.skip_inserts(self.warm.inserts());
        }
    }

    /// A connection that takes an operation now: the one hinted at, or the next one after it.
    #[inline]
    pub(crate) fn usable(&mut self, hint: u16) -> Option<u16> {
        let count = self.connections.len();
        (0..count)
            .map(|offset| ((usize::from(hint) + offset) % count) as u16)
            .find(|&c| is_usable(&self.setup, &self.connections, &mut self.ring, c))
    }

    /// A connection to this host that takes an operation now.
    fn usable_of(&mut self, host: u16, hint: u16) -> Option<u16> {
        let count = self.connections_per_host;
        (0..count)
            .map(|offset| host * count + (hint + offset) % count)
            .find(|&c| is_usable(&self.setup, &self.connections, &mut self.ring, c))
    }

    /// Writes the frame of a slot's current step; its key is in `self.key`. The connection was
    /// found [`Self::usable`].
    #[inline]
    fn encode(&mut self, index: u32, connection_index: u16, key_size: usize) {
        let connection = &mut self.connections[usize::from(connection_index)];
        let Some(stream) = connection.streams.take(index) else { return };
        let slot = self.slots.get_mut(index);
        slot.connection = connection_index;
        slot.stream = stream;
        slot.sent = Nanos::ZERO;
        let encoder = &self.setup.encoder;
        let step =
            &self.setup.operations[usize::from(slot.draw.operation)].steps[usize::from(slot.step)];
        let filling = self.ring.filling(connection.id);
        let out = filling.space(encoder.frame_size_max());
        let key = &self.key[..key_size];
        let size = encoder.encode(step.statement(&slot.draw), &slot.draw, key, stream, out);
        filling.commit(size);
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
            let at = clock::now();
            match self.ring.flush(connection.id) {
                Ok(Flush::Offered) => {
                    for &slot in &connection.unoffered {
                        self.slots.sent(slot, at);
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
        while let Some(index) = self.slots.oldest() {
            let slot = self.slots.get(index);
            if slot.sent + self.setup.timeout > now {
                return;
            }
            let (connection, stream) = (slot.connection, slot.stream);
            let streams = &mut self.connections[usize::from(connection)].streams;
            streams.give_up(stream);
            let replace = streams.mostly_late();
            self.attempted(index, now, Outcome::ClientTimeout);
            if replace {
                self.lost(connection, now);
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        let index = |id: ConnectionId, owners: &[u16]| owners.get(id.index()).copied();
        match event {
            Event::Received { connection, at } => {
                if let Some(index) = index(connection, &self.owners) {
                    self.receive(index, at);
                }
            }
            Event::Writable { connection } => {
                if let Some(index) = index(connection, &self.owners) {
                    self.mark_dirty(index);
                }
            }
            Event::Connected { connection } => {
                if let Some(index) = index(connection, &self.owners) {
                    self.start(index);
                }
            }
            Event::Closed { connection, .. } => {
                if let Some(index) = index(connection, &self.owners) {
                    self.lost(index, clock::now());
                }
            }
            Event::Accepted { .. } => {}
        }
    }

    fn mark_dirty(&mut self, index: u16) {
        let connection = &mut self.connections[usize::from(index)];
        if !connection.dirty && self.ring.unsent(connection.id) > 0 {
            connection.dirty = true;
            self.dirty.push(index);
        }
    }

    /// Sleeps until something can be done, or polls when the next operation is due soon.
    fn wait(&mut self, now: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut until = (now + SLEEP_MAX).min(self.tally.wake_at());
        if let Some(oldest) = self.slots.oldest() {
            until = until.min(self.slots.get(oldest).sent + self.setup.timeout);
        }
        for at in self.connections.iter().filter_map(Connection::wake_at) {
            until = until.min(at);
        }
        if self.source.is_held() {
            until = until.min(now + HOLD);
        }
        let paused = self.paused.front().map(|&(at, _)| at);
        for at in self.deadline.into_iter().chain(paused) {
            until = until.min(at);
        }
        let due = if self.blocked { None } else { self.source.next().map(|due| due.scheduled) };
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
        self.tally.usage.spin += clock::thread_cpu().since(cpu);
        self.tally.usage.spin_syscalls += self.ring.syscalls().total() - syscalls;
        Ok(())
    }

    /// Nothing begins any more; what is in flight gets a moment.
    fn stop(&mut self, now: Nanos) {
        if self.deadline.is_none_or(|deadline| deadline > now + STOP_DRAIN_MAX) {
            self.source.cut(now);
            self.cut_off = true;
            self.deadline = Some(now + STOP_DRAIN_MAX.min(self.setup.timeout));
        }
    }

    /// Whether the worker is done: nothing left to begin and nothing in flight, or its time is
    /// over.
    fn over(&mut self, now: Nanos) -> bool {
        if self.deadline.is_none() {
            // What is due and unsent gets the length of the timeout behind the end of the window.
            match self.window.end {
                Some(end) if now >= end => self.deadline = Some(end + self.setup.timeout),
                _ => {}
            }
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            if self.cut_off {
                return true;
            }
            // What was sent in the drain has its own timeout still to wait for.
            self.cut_off = true;
            self.deadline = Some(now + self.setup.timeout + SLEEP_MAX);
            self.abandon_unsent(now);
        }
        self.slots.len() == 0 && self.source.next().is_none() && !self.source.is_held()
    }

    /// Gives up what is in flight, of a run that was stopped.
    fn abandon(&mut self, now: Nanos) {
        for index in 0..self.connections.len() {
            let slots: Vec<u32> = self.connections[index].streams.slots().collect();
            slots.into_iter().for_each(|slot| self.abandon_one(slot, now));
        }
        self.abandon_unsent(now);
    }

    /// Counts what was due and never sent, and what waits for its next attempt.
    fn abandon_unsent(&mut self, now: Nanos) {
        self.resend.extend(self.paused.drain(..).map(|(_, slot)| slot));
        while let Some(slot) = self.resend.pop_front() {
            self.abandon_one(slot, now);
        }
        if !self.source.is_open() {
            return;
        }
        while let Some(due) = self.source.due(now) {
            let sampler = if due.measured { &mut self.measured } else { &mut self.warm };
            let Some(draw) = sampler.draw() else { return };
            self.source.take();
            self.conclude(&Slot::unsent(due.scheduled, draw, due.measured), now, Outcome::NotSent);
        }
    }

    fn abandon_one(&mut self, slot: u32, now: Nanos) {
        let outcome = match self.slots.get(slot).first_sent {
            Nanos::ZERO => Outcome::NotSent,
            _ => Outcome::ClientTimeout,
        };
        self.finish(slot, now, outcome);
    }
}
