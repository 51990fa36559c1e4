//! One connection of a worker: its state, what its protocol knows of it, and what is encoded but
//! not yet offered.

use crate::protocol::Link;
use ring::{ConnectionId, Ring};
use std::io;
use std::net::SocketAddr;
use units::Nanos;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Waiting for the socket to connect, until then.
    Connecting(Nanos),
    /// The first thing is said; waiting for it to be let in, until then.
    Starting(Nanos),
    /// Takes operations.
    Ready,
    /// Lost; tried again then.
    Down(Nanos),
    /// Its host is no part of the ring any more: what is in flight is waited for.
    Leaving,
    /// Closed for good, unless its host comes back.
    Gone,
}

#[derive(Debug)]
pub(crate) struct Connection<L> {
    pub(crate) address: SocketAddr,
    /// Meaningless while [`State::Down`].
    pub(crate) id: ConnectionId,
    pub(crate) state: State,
    pub(crate) link: L,
    /// Slots whose frames are in the filled half, in order.
    pub(crate) unoffered: Vec<u32>,
    /// Has something to flush.
    pub(crate) dirty: bool,
    /// Attempts to connect that failed since it was last ready.
    failures: u32,
}

/// The first and the longest pause between attempts to connect.
const BACK_OFF_MIN: Nanos = Nanos::from_millis(100);
const BACK_OFF_MAX: Nanos = Nanos::from_secs(5);

impl<L: Link> Connection<L> {
    pub(crate) fn new(address: SocketAddr, in_flight_max: usize, link: L) -> Self {
        Self {
            address,
            id: ConnectionId(u32::MAX),
            state: State::Down(Nanos::ZERO),
            link,
            unoffered: Vec::with_capacity(in_flight_max),
            dirty: false,
            failures: 0,
        }
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// What the kernel says at once.
    pub(crate) fn dial<R: Ring>(&mut self, ring: &mut R) -> io::Result<()> {
        self.id = self.link.dial(ring, self.address)?;
        Ok(())
    }

    pub(crate) fn ready(&mut self) {
        self.state = State::Ready;
        self.failures = 0;
    }

    /// Not usable any more: when it is to be tried again doubles with every failure, from 100 ms to
    /// 5 s; never, when its host has left.
    pub(crate) fn down(&mut self, now: Nanos) {
        let pause = Nanos(BACK_OFF_MIN.0 << self.failures.min(10)).min(BACK_OFF_MAX);
        self.state = match self.state {
            State::Leaving => State::Gone,
            _ => State::Down(now + pause),
        };
        self.failures += 1;
        self.link.clear();
        self.unoffered.clear();
        self.dirty = false;
    }

    /// To be connected to at once: its host has joined or come back, or it was closed on purpose.
    pub(crate) fn wanted(&mut self) {
        (self.state, self.failures) = (State::Down(Nanos::ZERO), 0);
    }

    /// When something must be done although nothing arrives.
    pub(crate) fn wake_at(&self) -> Option<Nanos> {
        match self.state {
            State::Connecting(at) | State::Starting(at) | State::Down(at) => Some(at),
            State::Ready | State::Leaving | State::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aerospike::RecordLink;

    #[test]
    fn the_back_off_doubles_up_to_five_seconds_and_starts_again() {
        let mut connection =
            Connection::new("127.0.0.1:1".parse().unwrap(), 1, RecordLink::default());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            connection.down(Nanos::ZERO);
            pauses.push(connection.wake_at().unwrap().0 / 1_000_000);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        connection.ready();
        connection.down(Nanos::ZERO);
        assert_eq!(connection.state, State::Down(BACK_OFF_MIN));
        connection.state = State::Leaving;
        connection.down(Nanos::ZERO);
        assert_eq!((connection.state, connection.wake_at()), (State::Gone, None));
        connection.wanted();
        assert_eq!(connection.wake_at(), Some(Nanos::ZERO));
    }
}
