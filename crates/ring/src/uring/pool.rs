//! Buffers that the kernel receives into: a ring of them, shared by all connections.
//!
//! A connection that waits for its peer holds none of them; the kernel takes the next one when
//! bytes have come. What it has filled is lent to a connection and read where it lies. Before each
//! buffer there is room for the rest of the buffer before it, so that a frame that is torn over
//! both is put together without moving the second one. Memory: a page for the ring and [`COUNT`]
//! buffers of [`SIZE_BYTES`], each behind [`REST_BYTES_MAX`].
//! Source: io_uring_register_buf_ring(3).

#![allow(unsafe_code)]

use io_uring::types::BufRingEntry;
use io_uring::{IoUring, cqueue};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Buffers, a power of two. Not more, because each is used in turn: all of them are in the caches,
/// or none.
const COUNT: u16 = 16;
/// Of each. A receive that finds more takes several, each with a call within the kernel: with
/// 1000 answers of 230 bytes on four connections 16 KiB cost 6 % more.
pub(super) const SIZE_BYTES: usize = 64 << 10;
/// So much of the buffer before finds room in front of one.
const REST_BYTES_MAX: usize = 4 << 10;
/// From one buffer to the next.
const STRIDE_BYTES: usize = REST_BYTES_MAX + SIZE_BYTES;
/// So much can arrive in one turn.
pub(super) const BYTES: usize = COUNT as usize * SIZE_BYTES;
/// The ring is page-aligned.
const PAGE_BYTES: usize = 4096;
/// The only group of buffers.
pub(super) const GROUP: u16 = 0;

/// Bytes in a buffer that the kernel has filled and has no right to until it is given back.
#[derive(Debug)]
pub(super) struct Lent {
    buffer: u16,
    /// Of its stride, from the first byte that is not consumed.
    start: usize,
    end: usize,
}

impl Lent {
    /// The first `size` bytes are done with.
    pub(super) fn consume(&mut self, size: usize) {
        self.start = (self.start + size).min(self.end);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// The buffers and their ring, in one block of memory: the ring has the first page.
#[derive(Debug)]
pub(super) struct Pool {
    memory: NonNull<u8>,
    /// Of the next buffer that is handed out, modulo 2^16.
    tail: u16,
}

// SAFETY: the memory belongs to this value alone; the kernel writes to it only within system calls
// of the thread that submits to the ring.
unsafe impl Send for Pool {}

impl Pool {
    fn layout() -> io::Result<Layout> {
        let size = PAGE_BYTES + usize::from(COUNT) * STRIDE_BYTES;
        Layout::from_size_align(size, PAGE_BYTES).map_err(io::Error::other)
    }

    /// Allocates the buffers and hands them to the kernel. The pool has to outlive `uring`.
    pub(super) fn register(uring: &IoUring) -> io::Result<Self> {
        let layout = Self::layout()?;
        // SAFETY: the layout has a size.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        let mut pool = Self { memory, tail: 0 };
        // SAFETY: the first page is zeroed, page-aligned, large enough for COUNT entries of 16
        // bytes, and is freed after the ring has been closed (see [`super::Uring`]).
        unsafe {
            let address = pool.memory.as_ptr() as u64;
            uring.submitter().register_buf_ring_with_flags(address, COUNT, GROUP, 0)?;
        }
        for buffer in 0..COUNT {
            pool.give(buffer);
        }
        Ok(pool)
    }

    /// Where the room before a buffer starts.
    fn stride_of(&self, buffer: u16) -> NonNull<u8> {
        let offset = PAGE_BYTES + usize::from(buffer % COUNT) * STRIDE_BYTES;
        // SAFETY: the offset is within the block.
        unsafe { self.memory.add(offset) }
    }

    /// Hands a buffer to the kernel.
    fn give(&mut self, buffer: u16) {
        let address = self.stride_of(buffer).as_ptr() as u64 + REST_BYTES_MAX as u64;
        let base = self.memory.cast::<BufRingEntry>();
        // SAFETY: the index is below COUNT, so the entry is within the first page; the kernel reads
        // it only after the tail has been stored.
        unsafe {
            let entry = base.add(usize::from(self.tail % COUNT)).as_mut();
            entry.set_addr(address);
            entry.set_len(SIZE_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is two bytes in the first entry that `set_*` leaves alone, aligned, and
        // lives as long as the block; the kernel only reads it.
        unsafe {
            let tail = BufRingEntry::tail(base.as_ptr()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }

    /// What a receive has put into a buffer; None when it has not.
    pub(super) fn take(&mut self, received: &cqueue::Entry) -> Option<Lent> {
        let buffer = cqueue::buffer_select(received.flags())?;
        let size = usize::try_from(received.result()).unwrap_or(0).min(SIZE_BYTES);
        let lent = Lent { buffer, start: REST_BYTES_MAX, end: REST_BYTES_MAX + size };
        if size == 0 {
            self.give_back(lent);
            return None;
        }
        Some(lent)
    }

    /// What is not consumed of a buffer.
    #[inline]
    pub(super) fn bytes(&self, lent: &Lent) -> &[u8] {
        // SAFETY: start and end are within the stride; what is between them the kernel or
        // [`Self::put_before`] has written, and the kernel has no right to it while it is lent.
        unsafe {
            let start = self.stride_of(lent.buffer).add(lent.start);
            std::slice::from_raw_parts(start.as_ptr(), lent.end - lent.start)
        }
    }

    /// The buffer is the kernel's again.
    pub(super) fn give_back(&mut self, lent: Lent) {
        self.give(lent.buffer);
    }

    /// Puts what is not consumed of a buffer in front of `next`; false when there is no room.
    pub(super) fn join(&mut self, rest: &Lent, next: &mut Lent) -> bool {
        // SAFETY: as in [`Self::bytes`]. The two are different buffers, as each is lent once, so
        // that what is written is no part of this.
        let rest = unsafe {
            let start = self.stride_of(rest.buffer).add(rest.start);
            std::slice::from_raw_parts(start.as_ptr(), rest.end - rest.start)
        };
        self.put_before(rest, next)
    }

    /// Puts bytes in front of `next`; false when there is no room for them.
    pub(super) fn put_before(&mut self, rest: &[u8], next: &mut Lent) -> bool {
        if rest.len() > next.start {
            return false;
        }
        next.start -= rest.len();
        // SAFETY: the range is within the stride, the kernel has no right to it, and who calls has
        // no reference to it, as `next` is borrowed for writing.
        unsafe {
            let to = self.stride_of(next.buffer).add(next.start);
            std::ptr::copy_nonoverlapping(rest.as_ptr(), to.as_ptr(), rest.len());
        }
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Ok(layout) = Self::layout() {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.memory.as_ptr(), layout) };
        }
    }
}
