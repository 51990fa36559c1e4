//! One request at a time.

use crate::protocol::Link;

/// What is under way on a connection: nothing, or the request of one operation.
#[derive(Debug, Default)]
pub(crate) struct RecordLink {
    slot: Option<u32>,
}

impl RecordLink {
    /// The answer has come: whose it is.
    #[inline]
    pub(super) fn answered(&mut self) -> Option<u32> {
        self.slot.take()
    }
}

impl Link for RecordLink {
    fn clear(&mut self) {
        self.slot = None;
    }

    #[inline]
    fn available(&self) -> bool {
        self.slot.is_none()
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<i16> {
        self.available().then(|| {
            self.slot = Some(slot);
            0
        })
    }

    fn put_back(&mut self, _: i16) {
        self.slot = None;
    }

    fn give_up(&mut self, _: i16) -> bool {
        self.slot = None;
        true
    }

    fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slot.into_iter()
    }
}
