//! The operations of a worker: where they come from, those under way, and what becomes of them:
//! outcome -> histograms -> next.

use crate::inserts::Inserts;
use crate::outcome;
use crate::run::{Failure, Setup};
use crate::slots::{Slot, Slots};
use crate::source::Source;
use crate::tally::{Tally, Witness};
use record::Outcome;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use units::Nanos;
use workload::Draw;

/// Spreads the bits of what chooses the length of a pause.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// All that an operation needs beside a connection.
pub(crate) struct Operations<W: Witness> {
    pub(crate) setup: Arc<Setup>,
    pub(crate) source: Source,
    pub(crate) slots: Slots,
    pub(crate) tally: Tally,
    pub(crate) witness: W,
    pub(crate) inserts: Option<Inserts>,
    /// Operations whose next frame found no connection: retries, next steps, frames lost before
    /// they were offered.
    pub(crate) resend: VecDeque<u32>,
    /// Operations whose next attempt waits for its pause to end, and when that is; the
    /// first is due first.
    pub(crate) paused: BinaryHeap<Reverse<(Nanos, u32)>>,
}

impl<W: Witness> Operations<W> {
    /// None under way yet; there may be `in_flight_max` of them.
    pub(crate) fn new(
        setup: Arc<Setup>,
        source: Source,
        tally: Tally,
        witness: W,
        inserts: Option<Inserts>,
        in_flight_max: usize,
    ) -> Self {
        Self {
            setup,
            source,
            slots: Slots::new(in_flight_max),
            tally,
            witness,
            inserts,
            resend: VecDeque::with_capacity(in_flight_max),
            paused: BinaryHeap::with_capacity(in_flight_max),
        }
    }

    /// One attempt at the current step of an operation has ended: next step, next attempt, or the
    /// end.
    #[inline]
    pub(crate) fn attempted(&mut self, index: u32, at: Nanos, outcome: Outcome) {
        let slot = self.slots.answered(index);
        let operation = &self.setup.operations[usize::from(slot.draw.operation)];
        let steps = operation.steps.len();
        if steps > 1 && slot.measured && outcome == Outcome::Ok {
            let service = at.since(slot.sent);
            self.tally.part(slot.draw.operation, slot.step, service);
        }
        if outcome == Outcome::Ok && usize::from(slot.step) + 1 < steps {
            slot.step += 1;
            slot.failures = 0;
            self.resend.push_back(index);
        } else if u32::from(slot.failures) < self.setup.retries && outcome::worth_a_retry(outcome) {
            slot.failures += 1;
            let attempts = self.setup.retries + 1;
            let random = (slot.draw.value_seed ^ at.0).wrapping_mul(SCATTER);
            let failures = u32::from(slot.failures);
            match self.setup.retry_pause.after(outcome, failures, attempts, random) {
                Nanos::ZERO => self.resend.push_back(index),
                pause => self.paused.push(Reverse((at + pause, index))),
            }
        } else {
            self.finish(index, at, outcome);
        }
    }

    /// The operation in a slot is over.
    #[inline]
    pub(crate) fn finish(&mut self, index: u32, at: Nanos, outcome: Outcome) {
        let slot = *self.slots.get(index);
        self.conclude(&slot, at, outcome);
        self.source.done(at, slot.connection);
        self.slots.remove(index);
    }

    /// Counts an operation that is over.
    #[inline(always)]
    pub(crate) fn conclude(&mut self, slot: &Slot, at: Nanos, outcome: Outcome) {
        if outcome == Outcome::Ok {
            self.tally.usage.last_ok = at;
        } else {
            self.note_failure(slot, outcome);
        }
        if slot.measured {
            self.tally.op(slot, at, outcome, &mut self.witness);
        } else {
            self.tally.warm_op(slot, at, outcome);
        }
        if let Some(inserts) = &mut self.inserts
            && self.setup.inserts[usize::from(slot.draw.operation)]
            && !inserts.acknowledge(slot.draw.key)
        {
            self.tally.usage.acknowledgements_lost += 1;
        }
    }

    /// Keeps the first operation that failed for good.
    #[cold]
    fn note_failure(&mut self, slot: &Slot, outcome: Outcome) {
        let fine = self.setup.missing_is_fine && outcome == Outcome::NotFound;
        // What was never sent was not tried.
        if !fine && outcome != Outcome::NotSent {
            let attempts = u32::from(slot.failures) + 1;
            let Draw { operation, key, .. } = slot.draw;
            let failure = Failure { operation, key, outcome, attempts };
            self.setup.first_failure.get_or_init(|| failure);
        }
    }
}
