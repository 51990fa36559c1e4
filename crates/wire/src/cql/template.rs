//! EXECUTE frames written in place: what stays the same is copied, what differs is patched (section
//! 4.1.6).
//!
//! The data plane writes one frame per operation. The head of an EXECUTE (header, id, consistency,
//! flags, number of values) is the same for each use of a statement, so it is built once; per
//! operation a frame is one copy of that head, the values, and two patches: stream id and body
//! length. Nothing is allocated.

use super::request::{PreparedRef, query_flags};
use super::{Consistency, HEADER_SIZE, Header, Opcode, VERSION_5, put};

/// The constant head of an EXECUTE frame.
#[derive(Debug, Clone)]
pub struct ExecuteTemplate {
    head: Vec<u8>,
}

impl ExecuteTemplate {
    /// For a prepared statement with `value_count` positional values; rows are asked for without
    /// metadata.
    #[must_use]
    pub fn new(
        version: u8,
        prepared: PreparedRef<'_>,
        consistency: Consistency,
        value_count: u16,
    ) -> Self {
        let mut head = Vec::new();
        head.extend_from_slice(&Header::request(0, Opcode::Execute).at(version).encode());
        put::short_bytes(&mut head, prepared.id);
        let flags = query_flags::VALUES | query_flags::SKIP_METADATA;
        if version == VERSION_5 {
            put::short_bytes(&mut head, prepared.metadata_id);
            put::consistency(&mut head, consistency);
            put::i32(&mut head, flags as i32);
        } else {
            put::consistency(&mut head, consistency);
            put::u8(&mut head, flags as u8);
        }
        put::u16(&mut head, value_count);
        Self { head }
    }

    /// Bytes of a frame whose values (each with its four length bytes) take `values_size`.
    #[must_use]
    pub fn frame_size(&self, values_size: usize) -> usize {
        self.head.len() + values_size
    }

    /// Begins a frame at the start of `out`; `out` must have room for the whole frame.
    #[inline]
    pub fn begin<'a>(&self, out: &'a mut [u8]) -> FrameWriter<'a> {
        let room = out.len();
        let (head, rest) = out.split_at_mut(self.head.len());
        head.copy_from_slice(&self.head);
        FrameWriter { head, rest, room }
    }
}

/// A frame being written.
#[derive(Debug)]
pub struct FrameWriter<'a> {
    head: &'a mut [u8],
    /// Behind what is written.
    rest: &'a mut [u8],
    /// Bytes of all that can be written, the head among them.
    room: usize,
}

impl FrameWriter<'_> {
    /// Appends a `[value]`: `fill` is given all the room that is left, writes the value to the
    /// front of it and says how long it is. What it writes behind that is overwritten.
    #[inline]
    pub fn value(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        let (length, rest) = std::mem::take(&mut self.rest).split_at_mut(4);
        let written = fill(rest);
        length.copy_from_slice(&(written as u32).to_be_bytes());
        self.rest = &mut rest[written..];
    }

    /// Bytes written so far.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        self.room - self.rest.len()
    }

    /// Sets stream id and body length; returns the frame's size.
    #[inline]
    pub fn finish(self, stream: i16) -> usize {
        let size = self.size();
        let body_size = (size - HEADER_SIZE) as u32;
        self.head[2..4].copy_from_slice(&stream.to_be_bytes());
        self.head[5..HEADER_SIZE].copy_from_slice(&body_size.to_be_bytes());
        size
    }
}

/// The constant parts of EXECUTE frames that ask for a range of tokens, page by page.
#[derive(Debug, Clone)]
pub struct PageTemplate {
    /// Of the first page, up to the values.
    first: Vec<u8>,
    /// Of the others.
    next: Vec<u8>,
    page_rows: u32,
    serial: Option<Consistency>,
}

/// Two tokens with their lengths.
const BOUNDS_SIZE: usize = 2 * (4 + 8);

impl PageTemplate {
    /// For a prepared statement with two values; so many rows are asked for at once, without
    /// metadata.
    #[must_use]
    pub fn new(
        version: u8,
        prepared: PreparedRef<'_>,
        (consistency, serial): (Consistency, Option<Consistency>),
        page_rows: u32,
    ) -> Self {
        let head = |further: u32| {
            let mut head = Header::request(0, Opcode::Execute).at(version).encode().to_vec();
            put::short_bytes(&mut head, prepared.id);
            if version == VERSION_5 {
                put::short_bytes(&mut head, prepared.metadata_id);
            }
            put::consistency(&mut head, consistency);
            let serially = if serial.is_some() { query_flags::SERIAL_CONSISTENCY } else { 0 };
            let asked =
                query_flags::VALUES | query_flags::SKIP_METADATA | query_flags::PAGE_SIZE | further;
            match version {
                VERSION_5 => put::i32(&mut head, (asked | serially) as i32),
                _ => put::u8(&mut head, (asked | serially) as u8),
            }
            put::u16(&mut head, 2);
            head
        };
        Self { first: head(0), next: head(query_flags::PAGING_STATE), page_rows, serial }
    }

    /// Bytes of a frame besides its paging state.
    #[must_use]
    pub fn overhead(&self) -> usize {
        self.next.len() + BOUNDS_SIZE + 4 + 4 + 2
    }

    /// Writes a frame to the front of `out`, which has room for [`Self::overhead`] and the state in
    /// which the page before has left the range, if there was one; returns its size.
    ///
    /// # Panics
    /// When there is not that much room.
    pub fn write(
        &self,
        stream: i16,
        bounds: (i64, i64),
        state: Option<&[u8]>,
        out: &mut [u8],
    ) -> usize {
        let mut at = 0;
        let mut append = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        append(if state.is_some() { &self.next } else { &self.first });
        for bound in [bounds.0, bounds.1] {
            append(&8u32.to_be_bytes());
            append(&bound.to_be_bytes());
        }
        append(&self.page_rows.to_be_bytes());
        if let Some(state) = state {
            append(&(state.len() as u32).to_be_bytes());
            append(state);
        }
        if let Some(serial) = self.serial {
            append(&(serial as u16).to_be_bytes());
        }
        let size = at;
        out[2..4].copy_from_slice(&stream.to_be_bytes());
        out[5..HEADER_SIZE].copy_from_slice(&((size - HEADER_SIZE) as u32).to_be_bytes());
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cql::request::{QueryParameters, Request};
    use crate::cql::{VERSION, Value};

    #[test]
    fn pages_are_asked_for_as_by_the_general_encoder() {
        let levels =
            [(Consistency::LocalOne, None), (Consistency::Quorum, Some(Consistency::LocalSerial))];
        for (version, (level, serial)) in
            [VERSION, VERSION_5].into_iter().flat_map(|v| levels.map(|levels| (v, levels)))
        {
            let prepared = PreparedRef { id: b"0123456789abcdef", metadata_id: b"metadata" };
            let template = PageTemplate::new(version, prepared, (level, serial), 5000);
            for state in [None, Some(&b"where it ended"[..])] {
                let mut out = vec![0; template.overhead() + state.map_or(0, <[u8]>::len)];
                let size = template.write(513, (-7, i64::MAX), state, &mut out);
                let (from, to) = ((-7i64).to_be_bytes(), i64::MAX.to_be_bytes());
                let mut parameters = QueryParameters::plain(level);
                parameters.values = vec![(None, Value::Bytes(&from)), (None, Value::Bytes(&to))];
                parameters.skip_metadata = true;
                parameters.page_size = Some(5000);
                parameters.paging_state = state;
                parameters.serial_consistency = serial;
                let mut expected = Vec::new();
                Request::Execute(prepared, parameters).encode_at(version, 513, &mut expected);
                assert_eq!(&out[..size], expected, "version {version}, {state:?}");
            }
        }
    }

    #[test]
    fn a_template_gives_the_bytes_of_the_general_encoder() {
        for version in [VERSION, VERSION_5] {
            let prepared = PreparedRef { id: b"0123456789abcdef", metadata_id: b"metadata" };
            let template = ExecuteTemplate::new(version, prepared, Consistency::LocalOne, 2);
            let mut out = [0u8; 200];
            let mut writer = template.begin(&mut out);
            writer.value(|out| {
                out[..3].copy_from_slice(b"key");
                3
            });
            writer.value(|_| 0);
            let size = writer.finish(513);

            let mut parameters = QueryParameters::plain(Consistency::LocalOne);
            parameters.values = vec![(None, Value::Bytes(b"key")), (None, Value::Bytes(b""))];
            parameters.skip_metadata = true;
            let mut expected = Vec::new();
            Request::Execute(prepared, parameters).encode_at(version, 513, &mut expected);
            assert_eq!(&out[..size], expected);
            assert_eq!(template.frame_size(3 + 4 + 4), expected.len());
        }
    }
}
