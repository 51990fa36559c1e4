//! Frames over rows whose number is known last, written in place: one row is an EXECUTE, several
//! are a BATCH of the same statement (sections 4.1.6 and 4.1.7).
//!
//! What does not change is built once. The rows are written where those of a batch begin; where it
//! stays at one row, its values are moved behind the head of an EXECUTE. Nothing is allocated.
//! Limits: 65535 rows, and the room that the caller gives.

use super::request::{BatchKind, PreparedRef, query_flags};
use super::{Consistency, HEADER_SIZE, Header, Opcode, VERSION_5, put};

/// Where a batch counts its statements: behind the header and the kind.
const COUNT_AT: usize = HEADER_SIZE + 1;

/// The constant parts of the frames.
#[derive(Debug, Clone)]
pub struct RowsTemplate {
    execute_head: Vec<u8>,
    execute_tail: Vec<u8>,
    /// None where there is one row at most.
    batch: Option<BatchParts>,
}

#[derive(Debug, Clone)]
struct BatchParts {
    head: Vec<u8>,
    /// Before the values of each row.
    row: Vec<u8>,
    tail: Vec<u8>,
}

impl RowsTemplate {
    /// For a prepared statement with `value_count` positional values a row; several rows are a
    /// batch of this kind, or None allows one row only. Rows of the answer come without metadata.
    #[must_use]
    pub fn new(
        version: u8,
        prepared: PreparedRef<'_>,
        levels: (Consistency, Option<Consistency>),
        value_count: u16,
        batch: Option<BatchKind>,
    ) -> Self {
        let (consistency, serial) = levels;
        let put_flags = |out: &mut Vec<u8>, flags: u32| match version {
            VERSION_5 => put::i32(out, flags as i32),
            _ => put::u8(out, flags as u8),
        };
        let mut head = Header::request(0, Opcode::Execute).at(version).encode().to_vec();
        put::short_bytes(&mut head, prepared.id);
        if version == VERSION_5 {
            put::short_bytes(&mut head, prepared.metadata_id);
        }
        put::consistency(&mut head, consistency);
        let serially = if serial.is_some() { query_flags::SERIAL_CONSISTENCY } else { 0 };
        put_flags(&mut head, query_flags::VALUES | query_flags::SKIP_METADATA | serially);
        put::u16(&mut head, value_count);
        let mut execute_tail = Vec::new();
        if let Some(serial) = serial {
            put::consistency(&mut execute_tail, serial);
        }
        let batch = batch.map(|kind| {
            let mut batch_head = Header::request(0, Opcode::Batch).at(version).encode().to_vec();
            put::u8(&mut batch_head, kind as u8);
            put::u16(&mut batch_head, 0);
            let mut row = vec![1];
            put::short_bytes(&mut row, prepared.id);
            put::u16(&mut row, value_count);
            let mut tail = Vec::new();
            put::consistency(&mut tail, consistency);
            put_flags(&mut tail, serially);
            tail.extend_from_slice(&execute_tail);
            BatchParts { head: batch_head, row, tail }
        });
        Self { execute_head: head, execute_tail, batch }
    }

    /// Bytes of a frame besides its rows, at most.
    #[must_use]
    pub fn overhead(&self) -> usize {
        let batch = self.batch.as_ref().map_or(0, |batch| batch.head.len() + batch.tail.len());
        batch.max(self.execute_head.len()) + self.execute_tail.len()
    }

    /// Bytes of a row besides its values.
    #[must_use]
    pub fn row_overhead(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.row.len())
    }

    /// Begins a frame at the start of `out`, which has room for [`Self::overhead`].
    #[inline]
    pub fn begin<'a>(&'a self, out: &'a mut [u8]) -> RowsWriter<'a> {
        let start = match &self.batch {
            Some(batch) => batch.head.len(),
            None => self.execute_head.len(),
        };
        let end = out.len().saturating_sub(self.overhead() - start);
        RowsWriter { template: self, out, at: start, end, rows: 0 }
    }
}

/// A frame being written.
#[derive(Debug)]
pub struct RowsWriter<'a> {
    template: &'a RowsTemplate,
    out: &'a mut [u8],
    at: usize,
    /// No row goes beyond.
    end: usize,
    rows: u16,
}

impl RowsWriter<'_> {
    /// Begins a row whose values take up to `size_max` bytes, their lengths among them. False when
    /// there is no room for it, or no number.
    #[inline]
    #[must_use]
    pub fn row(&mut self, size_max: usize) -> bool {
        let head: &[u8] = self.template.batch.as_ref().map_or(&[], |batch| &batch.row);
        let last = if self.template.batch.is_some() { u16::MAX } else { 1 };
        if self.rows == last || self.end - self.at < head.len() + size_max {
            return false;
        }
        self.out[self.at..self.at + head.len()].copy_from_slice(head);
        self.at += head.len();
        self.rows += 1;
        true
    }

    /// Appends a `[value]` to the row: `fill` is given the room that is left, writes the value to
    /// the front of it and says how long it is.
    #[inline]
    pub fn value(&mut self, fill: impl FnOnce(&mut [u8]) -> usize) {
        let (length, rest) = self.out[self.at..self.end].split_at_mut(4);
        let size = fill(rest);
        length.copy_from_slice(&(size as u32).to_be_bytes());
        self.at += 4 + size;
    }

    /// Appends a null.
    #[inline]
    pub fn null(&mut self) {
        self.out[self.at..self.at + 4].copy_from_slice(&(-1i32).to_be_bytes());
        self.at += 4;
    }

    /// Rows so far.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> u16 {
        self.rows
    }

    /// Sets stream id, number of rows and body length; returns the frame's size. A frame has a row.
    #[inline]
    pub fn finish(self, stream: i16) -> usize {
        let Self { template, out, at, rows, .. } = self;
        let RowsTemplate { execute_head, execute_tail, batch } = template;
        let (head, tail, end) = match batch {
            Some(batch) if rows > 1 => (&batch.head, &batch.tail, at),
            Some(batch) => {
                let start = batch.head.len() + batch.row.len();
                out.copy_within(start..at, execute_head.len());
                (execute_head, execute_tail, execute_head.len() + at - start)
            }
            None => (execute_head, execute_tail, at),
        };
        out[..head.len()].copy_from_slice(head);
        if rows > 1 {
            out[COUNT_AT..COUNT_AT + 2].copy_from_slice(&rows.to_be_bytes());
        }
        let size = end + tail.len();
        out[end..size].copy_from_slice(tail);
        out[2..4].copy_from_slice(&stream.to_be_bytes());
        out[5..HEADER_SIZE].copy_from_slice(&((size - HEADER_SIZE) as u32).to_be_bytes());
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cql::request::{Batch, BatchStatement, QueryParameters, Request};
    use crate::cql::{VERSION, Value};

    #[test]
    fn one_row_is_an_execute_and_several_are_a_batch() {
        let levels =
            [(Consistency::LocalOne, None), (Consistency::Quorum, Some(Consistency::LocalSerial))];
        for (version, (level, serial)) in
            [VERSION, VERSION_5].into_iter().flat_map(|v| levels.map(|levels| (v, levels)))
        {
            let prepared = PreparedRef { id: b"0123456789abcdef", metadata_id: b"metadata" };
            let kind = Some(BatchKind::Unlogged);
            for (rows, kind) in [(1, None), (1, kind), (2, kind), (300, kind)] {
                let template = RowsTemplate::new(version, prepared, (level, serial), 2, kind);
                let row = 4 + 3 + 4;
                let room = template.overhead() + rows * (template.row_overhead() + row);
                let mut out = vec![0; room];
                let mut writer = template.begin(&mut out);
                for _ in 0..rows {
                    assert!(writer.row(row));
                    writer.value(|out| {
                        out[..3].copy_from_slice(b"key");
                        3
                    });
                    writer.null();
                }
                assert!(!writer.row(row), "neither room nor, without a batch, leave");
                let size = writer.finish(513);

                let values = vec![Value::Bytes(b"key"), Value::Null];
                let mut expected = Vec::new();
                if rows == 1 {
                    let mut parameters = QueryParameters::plain(level);
                    parameters.values = values.into_iter().map(|v| (None, v)).collect();
                    parameters.skip_metadata = true;
                    parameters.serial_consistency = serial;
                    Request::Execute(prepared, parameters).encode_at(version, 513, &mut expected);
                } else {
                    let batch = Batch {
                        kind: BatchKind::Unlogged,
                        statements: vec![(BatchStatement::Id(prepared.id), values); rows],
                        consistency: level,
                        serial_consistency: serial,
                        timestamp_us: None,
                        keyspace: None,
                        now_s: None,
                    };
                    Request::Batch(batch).encode_at(version, 513, &mut expected);
                }
                assert_eq!(&out[..size], expected, "version {version}, {rows} rows");
            }
        }
    }
}
