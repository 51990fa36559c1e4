//! How frames lie on the wire once a connection has begun: in segments (v5), with compressed bodies
//! (v4), or as they are.
//!
//! [`Outgoing`] packs whole frames, as many as are ready at a time. [`Incoming`] checks and unpacks
//! what has arrived; frames of a segment that is not compressed are read where they lie, others
//! from a buffer of its own, which holds one segment or one long frame. The handshake is not
//! framed: a connection takes both up behind the answer to STARTUP (v5, section 2.3.1).
//!
//! Limits: a frame is held to the size that its reader allows before memory is had for it.

use super::compression::{Packer, unpack_lz4, unpack_snappy};
use super::segment::{
    PAYLOAD_SIZE_MAX, SegmentHeader, TRAILER_SIZE, check_payload, header_size, put_segment,
};
use super::{Compression, DecodeError, HEADER_SIZE, Header, Protocol, VERSION_5, flags};
use thiserror::Error;

/// Bytes that are not frames on this connection. It is of no further use: where the next frame
/// begins is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum FramingError {
    /// The header of a segment came to harm.
    #[error("a segment's header has CRC-24 {stated:#08x}, and {computed:#08x} is computed")]
    HeaderChecksum { stated: u32, computed: u32 },
    /// Its payload did.
    #[error("a segment's payload has CRC-32 {stated:#010x}, and {computed:#010x} is computed")]
    PayloadChecksum { stated: u32, computed: u32 },
    /// A frame goes on behind the segment that is said to hold the whole of it.
    #[error("a self-contained segment ends inside a frame")]
    Torn,
    /// A segment of its own stands among the parts of a frame.
    #[error("a self-contained segment in the middle of a frame of several segments")]
    Interleaved,
    /// The last part of a frame holds more than its rest.
    #[error("a frame of {size} bytes is followed by more in the segment that ends it")]
    Overfull { size: usize },
    /// A frame beyond what is taken.
    #[error("a frame's body of {size} bytes is longer than the maximum of {size_max}")]
    TooLong { stream: i16, size: usize, size_max: usize },
    /// A block does not unpack to what it should.
    #[error("{packed} bytes are no {algorithm} block of {plain} bytes")]
    Block { algorithm: &'static str, packed: usize, plain: usize },
    /// A frame's header is none.
    #[error(transparent)]
    Frame(#[from] DecodeError),
}

/// Packs frames for the wire.
#[derive(Debug)]
pub struct Outgoing {
    protocol: Protocol,
    packer: Packer,
}

impl Outgoing {
    /// For one connection.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, packer: Packer::new(protocol.compression()) }
    }

    /// Sets memory aside for all that [`Self::encode`] may be given later, up to `size` bytes.
    pub fn reserve(&mut self, size: usize) {
        self.packer.reserve(size.min(PAYLOAD_SIZE_MAX));
    }

    /// [`Self::encode`] makes no more bytes than this of `size` bytes of frames.
    #[must_use]
    pub fn size_max(size: usize) -> usize {
        // A frame over several segments ends in a short one, and so may the run before it.
        let segments = 3 * (size / PAYLOAD_SIZE_MAX + 1);
        size + segments * (header_size(Compression::Lz4) + TRAILER_SIZE)
    }

    /// Appends `frames`, whole frames of this version, as they go on the wire.
    pub fn encode(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        match (self.protocol.version(), self.protocol.compression()) {
            (VERSION_5, _) => self.encode_segments(frames, out),
            (_, Compression::None) => out.extend_from_slice(frames),
            _ => self.encode_bodies(frames, out),
        }
    }

    /// As many frames in a segment as fit; one that does not fit is spread over several.
    fn encode_segments(&mut self, frames: &[u8], out: &mut Vec<u8>) {
        let (mut start, mut end) = (0, 0);
        while start < frames.len() {
            let next = end + frame_size(&frames[end..]);
            if next > end && next - start <= PAYLOAD_SIZE_MAX {
                end = next;
            } else if end > start {
                self.encode_segment(&frames[start..end], true, out);
                start = end;
            } else {
                for part in frames[start..next].chunks(PAYLOAD_SIZE_MAX) {
                    self.encode_segment(part, false, out);
                }
                (start, end) = (next, next);
            }
        }
    }

    fn encode_segment(&mut self, payload: &[u8], self_contained: bool, out: &mut Vec<u8>) {
        let compression = self.protocol.compression();
        let packed = self.packer.pack(payload, 0);
        let plain_size = packed.map(|_| payload.len());
        let wired = packed.unwrap_or(payload);
        put_segment(compression, wired, plain_size, self_contained, out);
    }

    /// Each body for itself, where that makes it shorter.
    fn encode_bodies(&mut self, mut frames: &[u8], out: &mut Vec<u8>) {
        let lz4 = self.protocol.compression() == Compression::Lz4;
        // A block of LZ4 has its size before compression in front of it.
        let extra = if lz4 { 4 } else { 0 };
        while !frames.is_empty() {
            let (frame, rest) = frames.split_at(frame_size(frames));
            frames = rest;
            let (head, body) = frame.split_at(HEADER_SIZE.min(frame.len()));
            let Some(packed) = self.packer.pack(body, extra) else {
                out.extend_from_slice(frame);
                continue;
            };
            let start = out.len();
            out.extend_from_slice(head);
            out[start + 1] |= flags::COMPRESSION;
            out[start + 5..].copy_from_slice(&((packed.len() + extra) as u32).to_be_bytes());
            if lz4 {
                out.extend_from_slice(&(body.len() as u32).to_be_bytes());
            }
            out.extend_from_slice(packed);
        }
    }
}

/// Bytes of the first of some whole frames; all of them where it is none.
fn frame_size(frames: &[u8]) -> usize {
    match Header::decode(frames) {
        Ok(Some(header)) => (HEADER_SIZE + header.body_size).min(frames.len()),
        _ => frames.len(),
    }
}

/// Checks and unpacks what has arrived.
#[derive(Debug)]
pub struct Incoming {
    protocol: Protocol,
    body_size_max: usize,
    /// Bytes at the start of what has arrived that are whole frames as they lie.
    in_place: usize,
    /// Bytes behind these that belong to no frame.
    trailer: usize,
    /// Frames that do not lie on the wire in one piece, or the begin of one.
    apart: Vec<u8>,
    /// How much of that is taken.
    taken: usize,
    /// How much of it is whole frames.
    whole: usize,
}

impl Incoming {
    /// For one connection, whose frames may have bodies of `body_size_max` bytes.
    #[must_use]
    pub fn new(protocol: Protocol, body_size_max: usize) -> Self {
        Self {
            protocol,
            body_size_max,
            in_place: 0,
            trailer: 0,
            apart: Vec::new(),
            taken: 0,
            whole: 0,
        }
    }

    /// Sets memory aside for a segment, or for a frame of v4 as long as one.
    pub fn reserve(&mut self) {
        self.apart.reserve(PAYLOAD_SIZE_MAX);
    }

    /// Whole frames that were not taken yet; `received` is what has arrived and was not consumed.
    #[must_use]
    #[inline]
    pub fn frames<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        match self.in_place {
            0 => &self.apart[self.taken..self.whole],
            size => received.get(..size).unwrap_or_default(),
        }
    }

    /// The first `size` bytes of [`Self::frames`] are done with; returns how many of what has
    /// arrived are to be consumed.
    #[inline]
    #[must_use]
    pub fn take(&mut self, size: usize) -> usize {
        if self.in_place == 0 {
            self.taken = (self.taken + size).min(self.whole);
            return 0;
        }
        let size = size.min(self.in_place);
        self.in_place -= size;
        match self.in_place {
            0 => size + std::mem::take(&mut self.trailer),
            _ => size,
        }
    }

    /// Whether there are whole frames that were not taken.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        self.in_place > 0 || self.taken < self.whole
    }

    /// Sees to it that [`Self::frames`] has something, if enough has arrived; returns how many
    /// bytes of it are to be consumed first. Does nothing while there are frames to take.
    ///
    /// # Errors
    /// [`FramingError`]; the connection is of no further use then.
    pub fn advance(&mut self, received: &[u8]) -> Result<usize, FramingError> {
        if self.has_frames() {
            return Ok(0);
        }
        if self.whole > 0 {
            (self.taken, self.whole) = (0, 0);
            self.apart.clear();
        }
        match self.protocol.version() {
            VERSION_5 => self.advance_segments(received),
            _ => self.advance_bodies(received),
        }
    }

    fn advance_segments(&mut self, received: &[u8]) -> Result<usize, FramingError> {
        let compression = self.protocol.compression();
        let mut consumed = 0;
        while !self.has_frames() {
            let rest = &received[consumed..];
            let Some(header) = SegmentHeader::decode(rest, compression)? else { break };
            let start = header_size(compression);
            let end = start + header.payload_size;
            let Some(trailer) = rest.get(end..end + TRAILER_SIZE) else { break };
            let payload = &rest[start..end];
            check_payload(payload, trailer)?;
            if header.self_contained && !self.apart.is_empty() {
                return Err(FramingError::Interleaved);
            }
            if let (true, None, false) =
                (header.self_contained, header.plain_size, payload.is_empty())
            {
                self.check_frames(payload)?;
                (self.in_place, self.trailer) = (payload.len(), TRAILER_SIZE);
                return Ok(consumed + start);
            }
            match header.plain_size {
                Some(plain_size) => unpack_lz4(payload, plain_size, &mut self.apart)?,
                None => self.apart.extend_from_slice(payload),
            }
            consumed += end + TRAILER_SIZE;
            if header.self_contained {
                self.check_frames(&self.apart)?;
                self.whole = self.apart.len();
            } else {
                self.join_parts()?;
            }
        }
        Ok(consumed)
    }

    /// Whether the parts in hand are a whole frame by now.
    fn join_parts(&mut self) -> Result<(), FramingError> {
        let Some(header) = Header::decode(&self.apart)? else { return Ok(()) };
        let size = HEADER_SIZE + self.checked_body(&header)?;
        if self.apart.len() > size {
            return Err(FramingError::Overfull { size });
        }
        if self.apart.len() == size {
            self.whole = size;
        }
        Ok(())
    }

    /// Whether these bytes are nothing but whole frames.
    fn check_frames(&self, mut frames: &[u8]) -> Result<(), FramingError> {
        while !frames.is_empty() {
            let header = Header::decode(frames)?.ok_or(FramingError::Torn)?;
            let size = HEADER_SIZE + self.checked_body(&header)?;
            frames = frames.get(size..).ok_or(FramingError::Torn)?;
        }
        Ok(())
    }

    fn checked_body(&self, header: &Header) -> Result<usize, FramingError> {
        let (size, size_max) = (header.body_size, self.body_size_max);
        match size <= size_max {
            true => Ok(size),
            false => Err(FramingError::TooLong { stream: header.stream, size, size_max }),
        }
    }

    /// v4: frame by frame; only the body is compressed, and not each of them.
    fn advance_bodies(&mut self, received: &[u8]) -> Result<usize, FramingError> {
        let Some(header) = Header::decode(received)? else { return Ok(0) };
        let size = HEADER_SIZE + self.checked_body(&header)?;
        let Some(body) = received.get(HEADER_SIZE..size) else { return Ok(0) };
        if header.flags & flags::COMPRESSION == 0 {
            self.in_place = size;
            return Ok(0);
        }
        self.apart.extend_from_slice(&[0; HEADER_SIZE]);
        match self.protocol.compression() {
            Compression::Lz4 => {
                let torn = DecodeError::Truncated { what: "size before compression", offset: 0 };
                let (plain_size, block) = body.split_first_chunk().ok_or(torn)?;
                let plain_size = u32::from_be_bytes(*plain_size) as usize;
                self.checked_body(&Header { body_size: plain_size, ..header })?;
                unpack_lz4(block, plain_size, &mut self.apart)?;
            }
            Compression::Snappy => unpack_snappy(body, self.body_size_max, &mut self.apart)?,
            Compression::None => {
                let what = "flag of compression on a connection without it, header flags";
                let value = u64::from(header.flags);
                return Err(DecodeError::Unknown { what, value, offset: 1 }.into());
            }
        }
        let body_size = self.apart.len() - HEADER_SIZE;
        let plain = Header { flags: header.flags & !flags::COMPRESSION, body_size, ..header };
        self.apart[..HEADER_SIZE].copy_from_slice(&plain.encode());
        self.whole = self.apart.len();
        Ok(size)
    }
}
