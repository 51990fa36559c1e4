//! Answers on their way out that do not go at once: those that wait for their moment, and those
//! that go in pieces.
//!
//! In: answers of operations, each with the moment until which it is held back: by the lock of a
//! mock (see `serial`) or by a fault (see `faults`). Out: them, in the order of their moments;
//! those of one connection that are due together go in one send. An event loop sleeps until
//! [`Delivery::wake`]. A server without either has none of this.
//! Limit: pieces go out about every 20 us, so that a client sees them apart; that is slow.

use crate::faults::{Fate, FaultPlan, Random};
use crate::serial::Serial;
use ring::{ConnectionId, Ring};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Nanos, clock};

/// What an answer that is held back costs beyond its bytes, for the bound of a backlog.
const HELD_BYTES: usize = 64;
/// From one piece to the next.
const PIECE_GAP: Nanos = Nanos::from_micros(20);

/// An answer that is held back. Ordered by what comes first in time, then by connection.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    until: Nanos,
    /// To whom it goes.
    pub(crate) connection: ConnectionId,
    sequence: u64,
    /// Whole frames.
    pub(crate) bytes: Vec<u8>,
}

/// What waits for one connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    held_bytes: usize,
    /// What goes out in pieces.
    rest: VecDeque<u8>,
}

impl Outbox {
    /// Bytes that wait.
    pub(crate) fn size(&self) -> usize {
        self.held_bytes + self.rest.len()
    }
}

/// The answers of one thread's connections that wait.
#[derive(Debug)]
pub(crate) struct Delivery<'a> {
    serial: Option<&'a Serial>,
    faults: Option<&'a FaultPlan>,
    held: BinaryHeap<Reverse<Held>>,
    sequence: u64,
    /// Connections with a rest.
    in_pieces: Vec<ConnectionId>,
    next_piece: Nanos,
    random: Random,
}

impl<'a> Delivery<'a> {
    /// None for a server that answers at once.
    pub(crate) fn new(serial: Option<&'a Serial>, faults: Option<&'a FaultPlan>) -> Option<Self> {
        (serial.is_some() || faults.is_some()).then(|| Self {
            serial,
            faults,
            held: BinaryHeap::new(),
            sequence: 0,
            in_pieces: Vec::new(),
            next_piece: Nanos::ZERO,
            random: Random::stream(faults.map_or(0, |f| f.faults.seed), u64::MAX),
        })
    }

    /// When there is something to send; None while nothing waits.
    pub(crate) fn wake(&self) -> Option<Nanos> {
        let held = self.held.peek().map(|Reverse(held)| held.until);
        let piece = (!self.in_pieces.is_empty()).then_some(self.next_piece);
        held.into_iter().chain(piece).min()
    }

    /// Holds the answer of an operation back until its moment.
    pub(crate) fn hold(
        &mut self,
        connection: ConnectionId,
        outbox: &mut Outbox,
        bytes: &[u8],
        fate: Fate,
    ) {
        let now = clock::now();
        let served = self.serial.map_or(now, |serial| serial.queue(now));
        let due = Nanos(served.0.saturating_add(fate.delay.0));
        let until = self.faults.map_or(due, |faults| faults.gathered(due));
        outbox.held_bytes += bytes.len() + HELD_BYTES;
        self.sequence += 1;
        let (sequence, bytes) = (self.sequence, bytes.to_vec());
        self.held.push(Reverse(Held { until, connection, sequence, bytes }));
    }

    /// The next answer whose moment has come.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Held> {
        let is_due = self.held.peek().is_some_and(|Reverse(held)| held.until <= now);
        if is_due { self.held.pop().map(|Reverse(held)| held) } else { None }
    }

    /// Whether the next answer that is due goes to this connection too.
    pub(crate) fn goes_on(&self, connection: ConnectionId, now: Nanos) -> bool {
        let next = self.held.peek();
        next.is_some_and(|Reverse(held)| held.connection == connection && held.until <= now)
    }

    /// An answer is held back no more.
    pub(crate) fn let_go(outbox: &mut Outbox, held: &Held) {
        outbox.held_bytes = outbox.held_bytes.saturating_sub(held.bytes.len() + HELD_BYTES);
    }

    /// Puts bytes into a connection's send buffer, or where its pieces are taken from.
    pub(crate) fn put(
        &mut self,
        ring: &mut impl Ring,
        connection: ConnectionId,
        outbox: &mut Outbox,
        bytes: &[u8],
    ) {
        if self.faults.and_then(|faults| faults.faults.pieces_max).is_none() {
            return ring.filling(connection).append(|buffer| buffer.extend_from_slice(bytes));
        }
        if outbox.rest.is_empty() && !bytes.is_empty() {
            self.in_pieces.push(connection);
        }
        outbox.rest.extend(bytes);
    }

    /// Connections of which a piece is to go out now; give each to [`Self::piece`].
    pub(crate) fn pieces_due(&mut self, now: Nanos) -> Vec<ConnectionId> {
        if self.in_pieces.is_empty() || now < self.next_piece {
            return Vec::new();
        }
        self.next_piece = Nanos(now.0 + PIECE_GAP.0);
        std::mem::take(&mut self.in_pieces)
    }

    /// Puts the next piece of a connection's rest into its send buffer.
    pub(crate) fn piece(
        &mut self,
        ring: &mut impl Ring,
        connection: ConnectionId,
        outbox: &mut Outbox,
    ) {
        let max = self.faults.and_then(|faults| faults.faults.pieces_max).unwrap_or(1).max(1);
        let size = (1 + self.random.up_to(max - 1)).min(outbox.rest.len());
        ring.filling(connection).append(|buffer| buffer.extend(outbox.rest.drain(..size)));
        if !outbox.rest.is_empty() {
            self.in_pieces.push(connection);
        }
    }

    /// So many of `size` bytes of an answer reach a client whose connection ends in their midst.
    pub(crate) fn torn(&mut self, size: usize) -> usize {
        self.random.up_to(size.saturating_sub(1))
    }

    /// Drops what waits for a connection, whose id may be given again.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        self.held.retain(|Reverse(held)| held.connection != connection);
        self.in_pieces.retain(|id| *id != connection);
    }
}
