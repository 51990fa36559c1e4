//! The operations of a worker that are under way: a fixed table, a cache line for each.
//!
//! All requests have the same timeout, so the request that was sent first is the first to be
//! overdue. It is not looked up per operation: a time is kept before which nothing that waits was
//! sent, and only when that time is overdue the table is searched, and the time set anew. Where
//! answers come, that is once per timeout.

use units::Nanos;
use workload::Draw;

/// One operation under way.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
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
    /// Rows that a statement over tables has written, or has got back.
    pub(crate) rows: u32,
    /// What the current step executes.
    pub(crate) statement: u16,
    /// Attempts of the current step that have failed.
    pub(crate) failures: u16,
    /// Index of the current step of the operation.
    pub(crate) step: u8,
    /// How often the host did not know its statement.
    pub(crate) unprepared: u8,
    /// Falls into the window.
    pub(crate) measured: bool,
    /// For the answer to what was sent.
    waiting: bool,
}

const _: () = assert!(size_of::<Slot>() == 64);

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
            rows: 0,
            statement: 0,
            failures: 0,
            step: 0,
            unprepared: 0,
            measured,
            waiting: false,
        }
    }

    /// Whether it waits for the answer to what was sent at `limit` or before.
    #[inline]
    fn is_overdue(&self, limit: Nanos) -> bool {
        self.waiting && self.sent <= limit
    }
}

#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    /// Nothing that waits was sent before.
    oldest: Nanos,
}

impl Slots {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            slots: Vec::with_capacity(size),
            vacant: Vec::with_capacity(size),
            oldest: Nanos::MAX,
        }
    }

    /// Operations under way.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// How many may be under way at once.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    #[inline]
    pub(crate) fn available(&self) -> bool {
        !self.vacant.is_empty() || self.slots.len() < self.slots.capacity()
    }

    /// Enters an operation. Call only while [`Self::available`].
    #[inline]
    pub(crate) fn insert(&mut self, slot: Slot) -> u32 {
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

    /// Loads the operation's cache line, and waits for nothing.
    #[inline]
    pub(crate) fn touch(&self, index: u32) {
        std::hint::black_box(self.slots.get(index as usize).map(|slot| slot.statement));
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// The operation's frame was offered to the kernel: its timeout runs from now.
    #[inline]
    pub(crate) fn sent(&mut self, index: u32, at: Nanos) {
        let slot = &mut self.slots[index as usize];
        if slot.first_sent == Nanos::ZERO {
            slot.first_sent = at;
        }
        (slot.sent, slot.waiting) = (at, true);
        self.oldest = self.oldest.min(at);
    }

    /// The operation waits for no answer (any longer).
    #[inline]
    pub(crate) fn answered(&mut self, index: u32) -> &mut Slot {
        let slot = &mut self.slots[index as usize];
        slot.waiting = false;
        slot
    }

    /// Nothing that waits for its answer was sent before; None when nothing waits.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        (self.oldest != Nanos::MAX).then_some(self.oldest)
    }

    /// Puts those that wait for the answer to what was sent at `limit` or before into `overdue`,
    /// the first sent first.
    #[inline]
    pub(crate) fn overdue(&mut self, limit: Nanos, overdue: &mut Vec<u32>) {
        overdue.clear();
        if self.oldest <= limit {
            self.search(limit, overdue);
        }
    }

    #[cold]
    fn search(&mut self, limit: Nanos, overdue: &mut Vec<u32>) {
        self.oldest = Nanos::MAX;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.is_overdue(limit) {
                overdue.push(index as u32);
            } else if slot.waiting {
                self.oldest = self.oldest.min(slot.sent);
            }
        }
        overdue.sort_unstable_by_key(|&index| self.slots[index as usize].sent);
    }

    /// Whether an operation waits for the answer to what was sent at `limit` or before.
    pub(crate) fn is_overdue(&self, index: u32, limit: Nanos) -> bool {
        self.slots[index as usize].is_overdue(limit)
    }

    /// The operation is over.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        self.slots[index as usize].waiting = false;
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
        fn the_overdue_are_those_of_the_waiting_that_were_sent_first(
            steps in proptest::collection::vec((0u8..4, 0usize..8), 1..200),
        ) {
            let (mut slots, mut overdue) = (Slots::new(8), Vec::new());
            let mut waiting: Vec<(Nanos, u32)> = Vec::new();
            let mut idle: Vec<u32> = Vec::new();
            for (now, (step, choice)) in (1..).map(Nanos).zip(steps) {
                match step {
                    0 if slots.available() => {
                        idle.push(slots.insert(Slot::unsent(Nanos(1), DRAW, true)));
                    }
                    1 if !idle.is_empty() => {
                        let index = idle.remove(choice % idle.len());
                        slots.sent(index, now);
                        waiting.push((now, index));
                    }
                    2 if !waiting.is_empty() => {
                        let (_, index) = waiting.remove(choice % waiting.len());
                        slots.remove(index);
                    }
                    3 if !waiting.is_empty() => {
                        let (_, index) = waiting.remove(choice % waiting.len());
                        slots.answered(index);
                        idle.push(index);
                    }
                    _ => {}
                }
                let limit = now.since(Nanos(choice as u64));
                slots.overdue(limit, &mut overdue);
                let first: Vec<u32> =
                    waiting.iter().filter(|(sent, _)| *sent <= limit).map(|w| w.1).collect();
                prop_assert_eq!(&overdue, &first);
                // They are dealt with, as a worker does.
                for &index in &overdue {
                    prop_assert!(slots.is_overdue(index, limit));
                    slots.remove(index);
                }
                waiting.retain(|(sent, _)| *sent > limit);
                prop_assert!(slots.oldest() <= waiting.first().map(|w| w.0) || waiting.is_empty());
                prop_assert!(waiting.is_empty() || slots.oldest().is_some());
                prop_assert_eq!(slots.len(), waiting.len() + idle.len());
                prop_assert!(slots.available() == (slots.len() < 8));
            }
        }
    }
}
