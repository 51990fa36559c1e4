//! What has arrived on a connection: lent buffers, read where they lie, or memory of its own.
//!
//! The owner sees one stretch of bytes at a time. The rest of a buffer, a torn frame, goes in front
//! of the next one. What is left when the next wait begins is copied into memory of the connection,
//! so that a wait begins with all buffers at the kernel. What is copied of a stream of small frames
//! is the torn ones; a rest that finds no room in front of a buffer, of a large frame, has what
//! follows copied behind it until the owner has consumed all.

use super::pool::{BYTES, Lent, Pool, SIZE_BYTES};
use crate::BufferSizes;
use crate::buffer::ReceiveBuffer;
use std::collections::VecDeque;

/// Lent buffers for which a connection has room before memory for them grows.
const LENT_ROOM: usize = 16;

#[derive(Debug)]
pub(super) struct Arrivals {
    /// In order; empty while `own` holds anything.
    lent: VecDeque<Lent>,
    own: ReceiveBuffer,
}

impl Arrivals {
    pub(super) fn new(sizes: BufferSizes) -> Self {
        // Who asks for as much is not to see it grow: behind a torn frame all may come that can.
        let own = sizes.receive + if sizes.receive < SIZE_BYTES { 0 } else { BYTES };
        Self {
            lent: VecDeque::with_capacity(LENT_ROOM),
            own: ReceiveBuffer::new(own, sizes.receive_max),
        }
    }

    /// The stretch at the front.
    #[inline]
    pub(super) fn received<'a>(&'a self, pool: &'a Pool) -> &'a [u8] {
        self.lent.front().map_or(self.own.received(), |lent| pool.bytes(lent))
    }

    /// Bytes have come. True when these are the first that are lent: see [`Self::settle`].
    pub(super) fn push(&mut self, mut arrived: Lent, pool: &mut Pool) -> bool {
        let rest = self.own.received();
        if !pool.put_before(rest, &mut arrived) {
            self.keep(arrived, pool);
            return false;
        }
        self.own.consume(rest.len());
        self.lent.push_back(arrived);
        self.lent.len() == 1
    }

    /// Drops the first bytes of the stretch at the front; what is behind it joins it.
    #[inline]
    pub(super) fn consume(&mut self, size: usize, pool: &mut Pool) {
        let Some(front) = self.lent.front_mut() else { return self.own.consume(size) };
        front.consume(size);
        if !front.is_empty() && self.lent.len() == 1 {
            return;
        }
        let Some(rest) = self.lent.pop_front() else { return };
        if rest.is_empty() || self.lent.front_mut().is_some_and(|next| pool.join(&rest, next)) {
            return pool.give_back(rest);
        }
        self.keep(rest, pool);
        self.settle(pool);
    }

    fn keep(&mut self, arrived: Lent, pool: &mut Pool) {
        self.own.push(pool.bytes(&arrived));
        pool.give_back(arrived);
    }

    /// Lends nothing any more. True when the owner has not seen all of it.
    pub(super) fn settle(&mut self, pool: &mut Pool) -> bool {
        let unseen = self.lent.len() > 1;
        while let Some(lent) = self.lent.pop_front() {
            self.keep(lent, pool);
        }
        unseen
    }

    /// As much is waiting to be consumed as may be. Of what is lent nothing is known.
    pub(super) fn is_full(&self) -> bool {
        self.own.is_full()
    }

    /// Its owner wants nothing of it any more: nothing is lent.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        self.lent.drain(..).for_each(|lent| pool.give_back(lent));
    }
}
