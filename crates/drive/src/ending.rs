//! How a worker ends: by its window, by what it was to do, or because somebody asks for it.
//!
//! In: a time. Out: whether it is over; and every operation that is left gets an outcome, so that
//! what was due adds up.

use crate::protocol::{Link, Protocol};
use crate::slots::Slot;
use crate::tally::Witness;
use crate::worker::{SLEEP_MAX, Worker};
use record::Outcome;
use ring::Ring;
use std::cmp::Reverse;
use units::Nanos;

/// After a request to stop, answers are waited for no longer than this.
const STOP_DRAIN_MAX: Nanos = Nanos::from_secs(2);

impl<R: Ring, W: Witness, P: Protocol> Worker<R, W, P> {
    /// Nothing begins any more; what is in flight gets a moment.
    pub(crate) fn stop(&mut self, now: Nanos) {
        if self.deadline.is_none_or(|deadline| deadline > now + STOP_DRAIN_MAX) {
            self.operations.source.cut(now);
            self.cut_off = true;
            self.deadline = Some(now + STOP_DRAIN_MAX.min(self.setup.timeout));
        }
    }

    /// Whether the worker is done: nothing left to begin and nothing in flight, or its time is
    /// over.
    pub(crate) fn over(&mut self, now: Nanos) -> bool {
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
        self.operations.slots.len() == 0
            && self.operations.source.next().is_none()
            && !self.operations.source.is_held()
    }

    /// Gives up what is in flight, of a run that was stopped.
    pub(crate) fn abandon(&mut self, now: Nanos) {
        for index in 0..self.connections.len() {
            let slots: Vec<u32> = self.connections[index].link.slots().collect();
            slots.into_iter().for_each(|slot| self.abandon_one(slot, now));
        }
        self.abandon_unsent(now);
    }

    /// Counts what was due and never sent, and what waits for its next attempt.
    fn abandon_unsent(&mut self, now: Nanos) {
        P::unsent(self);
        self.operations
            .resend
            .extend(self.operations.paused.drain().map(|Reverse((_, slot))| slot));
        while let Some(slot) = self.operations.resend.pop_front() {
            self.abandon_one(slot, now);
        }
        if !self.operations.source.is_open() {
            return;
        }
        while let Some(due) = self.operations.source.due(now) {
            let sampler = if due.measured { &mut self.measured } else { &mut self.warm };
            let Some(draw) = sampler.draw() else { return };
            self.operations.source.take(&due);
            self.operations.conclude(
                &Slot::unsent(due.scheduled, draw, due.measured),
                now,
                Outcome::NotSent,
            );
        }
    }

    fn abandon_one(&mut self, slot: u32, now: Nanos) {
        let outcome = match self.operations.slots.get(slot).first_sent {
            Nanos::ZERO => Outcome::NotSent,
            _ => Outcome::ClientTimeout,
        };
        self.operations.finish(slot, now, outcome);
    }
}
