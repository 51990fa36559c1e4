//! The two buffers of a connection.

/// One half of a send buffer: bytes to be sent, filled from the front.
///
/// A client fills in place ([`Self::space`], [`Self::commit`]): its memory stays as large as it was
/// made. A server appends ([`Self::append`]), and the buffer grows with its answers.
#[derive(Debug, Default)]
pub struct SendBuffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl SendBuffer {
    /// With room for `size` bytes before it grows.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { bytes: vec![0; size], filled: 0 }
    }

    /// At least `size` writable bytes behind what is filled. Grows when there are fewer.
    #[inline]
    pub fn space(&mut self, size: usize) -> &mut [u8] {
        if self.bytes.len() - self.filled < size {
            self.grow(size);
        }
        &mut self.bytes[self.filled..]
    }

    #[cold]
    fn grow(&mut self, size: usize) {
        self.bytes.resize(self.filled + size, 0);
    }

    /// Bytes that [`Self::space`] can give without growing.
    #[must_use]
    #[inline]
    pub fn space_left(&self) -> usize {
        // An append before may have cut the length; its memory is still there.
        self.bytes.capacity() - self.filled
    }

    /// The first `size` bytes of [`Self::space`] are filled.
    #[inline]
    pub fn commit(&mut self, size: usize) {
        self.filled = (self.filled + size).min(self.bytes.len());
    }

    /// Lets `write` append to what is filled. It must not shorten the vector.
    pub fn append<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.bytes.truncate(self.filled);
        let result = write(&mut self.bytes);
        self.filled = self.bytes.len();
        result
    }

    /// What is filled.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Forgets what is filled; the memory stays.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Forgets what is filled; gives memory beyond `size_max` back.
    pub(crate) fn shrink(&mut self, size_max: usize) {
        self.filled = 0;
        if self.bytes.capacity() > size_max {
            self.bytes = Vec::new();
        }
    }
}

/// Bytes received and not consumed, contiguous.
#[derive(Debug)]
pub struct ReceiveBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    size_max: usize,
}

impl ReceiveBuffer {
    /// Of `size` bytes, growing up to `size_max`.
    #[must_use]
    pub fn new(size: usize, size_max: usize) -> Self {
        Self { bytes: vec![0; size], start: 0, end: 0, size_max: size_max.max(size) }
    }

    /// Received and not consumed.
    #[must_use]
    #[inline]
    pub fn received(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Drops the first `size` received bytes.
    #[inline]
    pub fn consume(&mut self, size: usize) {
        self.start = (self.start + size).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Where the next bytes go: what is left of a torn frame moves to the front when the room
    /// behind it gets small. Empty when the buffer is full at its largest size.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.bytes.len() - self.end < self.bytes.len() / 2 && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() && self.bytes.len() < self.size_max {
            let size = (self.bytes.len() * 2).max(4096).min(self.size_max);
            self.bytes.resize(size, 0);
        }
        &mut self.bytes[self.end..]
    }

    pub(crate) fn commit(&mut self, size: usize) {
        self.end = (self.end + size).min(self.bytes.len());
    }

    /// Appends what has arrived elsewhere. It grows as needed; see [`Self::is_full`].
    pub(crate) fn push(&mut self, arrived: &[u8]) {
        if self.bytes.len() - self.end < arrived.len() {
            self.make_room(arrived.len());
        }
        self.bytes[self.end..self.end + arrived.len()].copy_from_slice(arrived);
        self.end += arrived.len();
    }

    #[cold]
    fn make_room(&mut self, size: usize) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let wanted = self.end + size;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted.max((self.bytes.len() * 2).min(self.size_max)), 0);
        }
    }

    /// As much is waiting to be consumed as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start >= self.size_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_receive_buffer_is_a_queue_of_bytes(
            chunks in proptest::collection::vec((0usize..50, 0usize..50), 1..60),
        ) {
            let mut buffer = ReceiveBuffer::new(16, 4096);
            let (mut sent, mut model) = (0u8, std::collections::VecDeque::new());
            for (arrive, consume) in chunks {
                let space = buffer.space();
                let arrive = arrive.min(space.len());
                for byte in &mut space[..arrive] {
                    *byte = sent;
                    model.push_back(sent);
                    sent = sent.wrapping_add(1);
                }
                buffer.commit(arrive);
                let consume = consume.min(model.len());
                model.drain(..consume);
                buffer.consume(consume);
                prop_assert!(buffer.received().iter().eq(model.iter()));
            }
        }
    }

    #[test]
    fn a_receive_buffer_stops_growing_at_its_limit() {
        let mut buffer = ReceiveBuffer::new(8, 32);
        for _ in 0..10 {
            let size = buffer.space().len();
            buffer.commit(size);
        }
        assert_eq!(buffer.received().len(), 32);
        assert!(buffer.space().is_empty());
    }

    #[test]
    fn an_append_takes_no_room_from_the_filling_in_place_after_it() {
        let mut buffer = SendBuffer::new(64);
        buffer.append(|out| out.push(1));
        buffer.shrink(1024);
        assert!(buffer.space_left() >= 64);
        assert!(buffer.space(64).len() >= 64);
    }

    #[test]
    fn a_send_buffer_takes_both_kinds_of_filling() {
        let mut buffer = SendBuffer::new(8);
        buffer.space(2)[..2].copy_from_slice(b"ab");
        buffer.commit(2);
        buffer.append(|out| out.extend_from_slice(b"cdefghijkl"));
        buffer.space(1)[0] = b'm';
        buffer.commit(1);
        assert_eq!(buffer.filled(), b"abcdefghijklm");
    }
}
