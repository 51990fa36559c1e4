//! Stream ids of one connection, and what each of them is in use for.
//!
//! A stream id whose request timed out is not given again before its late answer has come: the
//! answer would be taken for that of the next request.

/// Ids of protocol v4: 0 to 32767.
pub(crate) const STREAMS_MAX: usize = 1 << 15;

const FREE: u32 = u32::MAX;
const LATE: u32 = u32::MAX - 1;
/// Owners from here on are statements that are being prepared; slots are below.
const PREPARE: u32 = 1 << 31;

/// What an answer's stream id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// The operation in this slot.
    Slot(u32),
    /// A PREPARE of this statement.
    Prepare(usize),
    /// An operation that was given up before.
    Late,
    /// Nothing that was asked: the peer breaks the protocol.
    Stray,
}

#[derive(Debug)]
pub(crate) struct Streams {
    /// By stream id: slot, FREE or LATE. Ids at and above its length were never given.
    owners: Vec<u32>,
    /// Ids that were given back, last in first out, so that the table stays small and warm.
    vacant: Vec<u16>,
    late: usize,
}

impl Streams {
    /// Memory for all ids is set aside at once, so that nothing is allocated per operation;
    /// untouched pages of it cost nothing.
    pub(crate) fn new() -> Self {
        Self {
            owners: Vec::with_capacity(STREAMS_MAX),
            vacant: Vec::with_capacity(STREAMS_MAX),
            late: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.owners.clear();
        self.vacant.clear();
        self.late = 0;
    }

    #[inline]
    pub(crate) fn available(&self) -> bool {
        !self.vacant.is_empty() || self.owners.len() < STREAMS_MAX
    }

    /// None when all ids are in use or late.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> Option<i16> {
        if let Some(id) = self.vacant.pop() {
            self.owners[usize::from(id)] = slot;
            return Some(id as i16);
        }
        (self.owners.len() < STREAMS_MAX).then(|| {
            self.owners.push(slot);
            (self.owners.len() - 1) as i16
        })
    }

    /// An id for preparing a statement; None also while that statement is being prepared.
    pub(crate) fn take_for_prepare(&mut self, statement: usize) -> Option<i16> {
        let owner = PREPARE + statement as u32;
        if self.owners.contains(&owner) { None } else { self.take(owner) }
    }

    /// The slot of the operation that waits on `stream`, if one does.
    #[inline]
    pub(crate) fn slot(&self, stream: i16) -> Option<u32> {
        let owner = *self.owners.get(usize::try_from(stream).ok()?)?;
        (owner < PREPARE).then_some(owner)
    }

    /// The answer of `stream` has come: the id is free again.
    #[inline]
    pub(crate) fn answered(&mut self, stream: i16) -> Answered {
        let Some(owner) = usize::try_from(stream).ok().and_then(|id| self.owners.get_mut(id))
        else {
            return Answered::Stray;
        };
        let answered = match *owner {
            FREE => return Answered::Stray,
            LATE => {
                self.late -= 1;
                Answered::Late
            }
            owner if owner >= PREPARE => Answered::Prepare((owner - PREPARE) as usize),
            slot => Answered::Slot(slot),
        };
        *owner = FREE;
        self.vacant.push(stream as u16);
        answered
    }

    /// The request on `stream` is given up; its id stays taken until the late answer.
    pub(crate) fn give_up(&mut self, stream: i16) {
        if let Some(owner) = usize::try_from(stream).ok().and_then(|id| self.owners.get_mut(id)) {
            *owner = LATE;
            self.late += 1;
        }
    }

    /// Half of the ids wait for late answers: the connection is not worth keeping.
    pub(crate) fn mostly_late(&self) -> bool {
        self.late > STREAMS_MAX / 2
    }

    /// Slots of all requests that are in flight.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.owners.iter().copied().filter(|&owner| owner < PREPARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_given_again_only_after_its_answer() {
        let mut streams = Streams::new();
        let (a, b) = (streams.take(10).unwrap(), streams.take(11).unwrap());
        assert_eq!([a, b, -1, 999].map(|id| streams.slot(id)), [Some(10), Some(11), None, None]);
        streams.give_up(a);
        assert_eq!(streams.slot(a), None);
        assert_eq!(streams.answered(b), Answered::Slot(11));
        assert_eq!(streams.slot(b), None);
        assert_eq!(streams.take(12), Some(b));
        assert_ne!(streams.take(13), Some(a));
        assert_eq!(streams.answered(a), Answered::Late);
        assert_eq!(streams.answered(a), Answered::Stray);
        assert_eq!(streams.take(14), Some(a));
        assert_eq!(streams.answered(-1), Answered::Stray);
        assert_eq!(streams.answered(999), Answered::Stray);
    }

    #[test]
    fn a_statement_is_prepared_once_at_a_time() {
        let mut streams = Streams::new();
        let stream = streams.take_for_prepare(3).unwrap();
        assert_eq!(streams.take_for_prepare(3), None);
        assert!(streams.take_for_prepare(4).is_some());
        assert_eq!(streams.slots().count(), 0);
        assert_eq!(streams.answered(stream), Answered::Prepare(3));
        assert!(streams.take_for_prepare(3).is_some());
    }

    #[test]
    fn ids_end_at_32768_and_late_ones_count() {
        let mut streams = Streams::new();
        for slot in 0..STREAMS_MAX as u32 {
            assert!(streams.available());
            streams.take(slot).unwrap();
        }
        assert!(!streams.available());
        assert_eq!(streams.take(0), None);
        for stream in 0..=(STREAMS_MAX / 2) as i16 {
            assert!(!streams.mostly_late());
            streams.give_up(stream);
        }
        assert!(streams.mostly_late());
        assert_eq!(streams.slots().count(), STREAMS_MAX / 2 - 1);
    }
}
