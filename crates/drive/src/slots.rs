//! The operations of a worker that are under way: a fixed table, and a list of them in the order of
//! their deadlines.
//!
//! All requests have the same timeout, so the order of sending is the order of deadlines: a doubly
//! linked list through the table finds the next one due in O(1), whatever else has been answered in
//! between.

use units::Nanos;
use workload::Draw;

const NONE: u32 = u32::MAX;

/// One operation under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// When it was due.
    pub(crate) scheduled: Nanos,
    /// When its first frame was offered to the kernel; zero before that.
    pub(crate) first_sent: Nanos,
    /// When the frame of the current attempt and step was offered; zero before that.
    pub(crate) sent: Nanos,
    pub(crate) draw: Draw,
    pub(crate) connection: u16,
    pub(crate) stream: i16,
    /// Index of the current step of the operation.
    pub(crate) step: u8,
    /// Attempts of the current step that have failed.
    pub(crate) failures: u16,
    /// How often the host did not know its statement.
    pub(crate) unprepared: u8,
    /// Falls into the window.
    pub(crate) measured: bool,
    previous: u32,
    next: u32,
    listed: bool,
}

impl Slot {
    /// An operation of which nothing was sent yet.
    #[inline]
    pub(crate) fn unsent(scheduled: Nanos, draw: Draw, measured: bool) -> Self {
        Self {
            scheduled,
            first_sent: Nanos::ZERO,
            sent: Nanos::ZERO,
            draw,
            connection: 0,
            stream: 0,
            step: 0,
            failures: 0,
            unprepared: 0,
            measured,
            previous: NONE,
            next: NONE,
            listed: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Slots {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            slots: Vec::with_capacity(size),
            vacant: Vec::with_capacity(size),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Operations under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    #[inline]
    pub(crate) fn available(&self) -> bool {
        !self.vacant.is_empty() || self.slots.len() < self.slots.capacity()
    }

    /// Enters an operation. Call only while [`Self::available`].
    #[inline]
    pub(crate) fn insert(&mut self, scheduled: Nanos, draw: Draw, measured: bool) -> u32 {
        let slot = Slot::unsent(scheduled, draw, measured);
        match self.vacant.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The operation's frame was offered to the kernel: its timeout runs from now.
    #[inline]
    pub(crate) fn sent(&mut self, index: u32, at: Nanos) {
        self.unlist(index);
        let newest = self.newest;
        let slot = &mut self.slots[index as usize];
        if slot.first_sent == Nanos::ZERO {
            slot.first_sent = at;
        }
        slot.sent = at;
        (slot.previous, slot.next, slot.listed) = (newest, NONE, true);
        match newest {
            NONE => self.oldest = index,
            newest => self.slots[newest as usize].next = index,
        }
        self.newest = index;
    }

    /// The operation waits for no answer (any longer).
    #[inline]
    pub(crate) fn unlist(&mut self, index: u32) {
        let Slot { previous, next, listed, .. } = self.slots[index as usize];
        if !listed {
            return;
        }
        self.slots[index as usize].listed = false;
        match previous {
            NONE => self.oldest = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.slots[next as usize].previous = previous,
        }
    }

    /// The operation that has waited longest for its answer.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The operation is over.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        self.unlist(index);
        self.vacant.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DRAW: Draw = Draw { key: 0, value_seed: 0, scan_length: 0, operation: 0, column: 0 };

    proptest! {
        #[test]
        fn the_oldest_is_always_the_first_sent_of_those_waiting(
            steps in proptest::collection::vec((0u8..3, 0usize..8), 1..200),
        ) {
            let mut slots = Slots::new(8);
            let mut waiting: Vec<u32> = Vec::new();
            let mut idle: Vec<u32> = Vec::new();
            for (step, choice) in steps {
                match step {
                    0 if slots.available() => idle.push(slots.insert(Nanos(1), DRAW, true)),
                    1 if !idle.is_empty() => {
                        let index = idle.remove(choice % idle.len());
                        slots.sent(index, Nanos(9));
                        waiting.push(index);
                    }
                    2 if !waiting.is_empty() => {
                        let index = waiting.remove(choice % waiting.len());
                        slots.remove(index);
                    }
                    _ => {}
                }
                prop_assert_eq!(slots.oldest(), waiting.first().copied());
                prop_assert_eq!(slots.len(), waiting.len() + idle.len());
                prop_assert!(slots.available() == (slots.len() < 8));
            }
        }
    }
}
