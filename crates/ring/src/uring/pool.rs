//! Buffers that the kernel receives into: a ring of them, shared by all connections.
//!
//! A connection that waits for its peer holds none of them; the kernel takes the next one when
//! bytes have come. Memory: a page for the ring and [`COUNT`] buffers of [`SIZE_BYTES`].
//! Source: io_uring_register_buf_ring(3).

#![allow(unsafe_code)]

use io_uring::types::BufRingEntry;
use io_uring::{IoUring, cqueue};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Buffers, a power of two. Few, so that they stay in the second-level cache: each is used in turn.
const COUNT: u16 = 16;
/// Of each. A receive that finds more takes several.
const SIZE_BYTES: usize = 16 << 10;
/// So much can arrive in one turn.
pub(super) const BYTES: usize = COUNT as usize * SIZE_BYTES;
/// The ring is page-aligned.
const PAGE_BYTES: usize = 4096;
/// The only group of buffers.
pub(super) const GROUP: u16 = 0;

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
        let size = PAGE_BYTES + BYTES;
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

    fn start_of(&self, buffer: u16) -> NonNull<u8> {
        let offset = PAGE_BYTES + usize::from(buffer % COUNT) * SIZE_BYTES;
        // SAFETY: the offset is within the block.
        unsafe { self.memory.add(offset) }
    }

    /// Hands a buffer to the kernel.
    fn give(&mut self, buffer: u16) {
        let address = self.start_of(buffer).as_ptr() as u64;
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

    /// Shows `use_bytes` what a receive has put into a buffer, and hands the buffer back.
    pub(super) fn take(&mut self, received: &cqueue::Entry, use_bytes: impl FnOnce(&[u8])) {
        let Some(buffer) = cqueue::buffer_select(received.flags()) else { return };
        let size = usize::try_from(received.result()).unwrap_or(0).min(SIZE_BYTES);
        // SAFETY: the kernel has filled so many bytes of this buffer, and has no right to it until
        // it is given back below.
        use_bytes(unsafe { std::slice::from_raw_parts(self.start_of(buffer).as_ptr(), size) });
        self.give(buffer);
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
