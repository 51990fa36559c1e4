//! Many records in one message: a field with their digests, and what is asked of each.
//!
//! A record that asks for the same as the one before it says so in one byte. Answers are messages,
//! each with the record's place in the batch, and a last one.

use super::command::Command;
use super::message::{FieldKind, Message, MessageHeader, info1, info2, info3};
use super::proto::{ProtoKind, begin, finish};
use super::reader::Reader;
use super::{DecodeError, Digest, ResultCode};

/// Asks for the same as the record before.
const REPEAT: u8 = 1;
/// Three bytes of what is asked for follow.
const INFO: u8 = 1 << 1;
/// A generation follows, 16 bits.
const GENERATION: u8 = 1 << 2;
/// A time to live follows.
const TTL: u8 = 1 << 3;
/// A fourth byte of what is asked for follows the three.
const INFO4: u8 = 1 << 4;
/// What is known of these bits.
const KNOWN: u8 = REPEAT | INFO | GENERATION | TTL | INFO4;
/// Place, digest, and a byte.
const ROW_SIZE_MIN: usize = 4 + super::DIGEST_SIZE + 1;

/// Bits of a batch as a whole.
pub mod flags {
    /// Small ones may be carried out where they are received.
    pub const INLINE: u8 = 1;
    /// Those in memory or not.
    pub const INLINE_SSD: u8 = 1 << 1;
    /// An error of one record does not keep the others from being tried.
    pub const RESPOND_ALL: u8 = 1 << 2;
    /// Clients of 2026 set this one always; it is not documented.
    pub const ALWAYS: u8 = 1 << 3;
}

/// Appends a message of many commands.
pub fn encode(commands: &[Command<'_>], flags: u8, timeout_ms: u32, out: &mut Vec<u8>) {
    let start = begin(out);
    let header =
        MessageHeader { info1: info1::BATCH, timeout_ms, fields: 1, ..MessageHeader::default() };
    out.extend_from_slice(&header.encode());
    let field = out.len();
    super::Field::put(out, FieldKind::BATCH, &[]);
    out.extend_from_slice(&(commands.len() as u32).to_be_bytes());
    out.push(flags);
    let mut previous: Option<&Command<'_>> = None;
    for (index, command) in commands.iter().enumerate() {
        out.extend_from_slice(&(index as u32).to_be_bytes());
        out.extend_from_slice(&command.key.digest);
        match previous.is_some_and(|previous| is_same(previous, command)) {
            true => out.push(REPEAT),
            false => put_asked(command, out),
        }
        previous = Some(command);
    }
    let size = (out.len() - field - 4) as u32;
    out[field..field + 4].copy_from_slice(&size.to_be_bytes());
    finish(out, start, ProtoKind::Message);
}

fn is_same(a: &Command<'_>, b: &Command<'_>) -> bool {
    let place = |c: &Command<'_>| (c.header, c.send_key);
    let is_one = a.key.namespace == b.key.namespace && a.key.set == b.key.set;
    is_one && !a.send_key && place(a) == place(b) && a.ops == b.ops
}

/// What is asked of a record.
fn put_asked(command: &Command<'_>, out: &mut Vec<u8>) {
    let header = &command.header;
    let writes = header.info2 & info2::WRITE != 0;
    let (generation, respond) = if writes { (GENERATION, info2::RESPOND_ALL) } else { (0, 0) };
    out.push(INFO | generation | TTL);
    out.extend_from_slice(&[header.info1, header.info2 | respond, header.info3]);
    if writes {
        out.extend_from_slice(&(header.generation as u16).to_be_bytes());
    }
    out.extend_from_slice(&header.ttl_s.to_be_bytes());
    let is_header = header.info1 & info1::NO_BIN_DATA != 0 && !writes;
    let count = if is_header { 0 } else { command.ops.count() };
    let fields = 2 + u16::from(command.send_key);
    out.extend_from_slice(&fields.to_be_bytes());
    out.extend_from_slice(&(count as u16).to_be_bytes());
    super::Field::put(out, FieldKind::NAMESPACE, command.key.namespace.as_bytes());
    super::Field::put(out, FieldKind::SET, command.key.set.as_bytes());
    if command.send_key {
        command.put_key(out);
    }
    if !is_header {
        command.ops.put(out);
    }
}

/// What is asked of one record of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// Its place in the client's batch.
    pub index: u32,
    /// Which record.
    pub digest: Digest,
    /// What is asked: a message without a digest.
    pub message: Message<'a>,
}

/// The records of a batch.
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    reader: Reader<'a>,
    /// Not read yet.
    left: u32,
    previous: Option<Message<'a>>,
}

impl<'a> Rows<'a> {
    /// Of the bytes of a batch's field.
    ///
    /// # Errors
    /// [`DecodeError`] when they claim more records than they could hold.
    pub fn decode(field: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(field);
        let left = reader.u32("the number of records of a batch")?;
        // No bit changes what is answered here.
        reader.u8("flags of a batch")?;
        let max = (reader.rest().len() / ROW_SIZE_MIN) as u64;
        match u64::from(left) {
            value if value > max => Err(DecodeError::Length { what: "a batch", value, max }),
            _ => Ok(Self { reader, left, previous: None }),
        }
    }

    fn row(&mut self) -> Result<Row<'a>, DecodeError> {
        let index = self.reader.u32("a record's place in a batch")?;
        let digest = self.reader.array("a digest in a batch")?;
        let bits = self.reader.u8("what is asked of a record in a batch")?;
        let message = match (bits & REPEAT != 0, self.previous) {
            (true, Some(message)) => message,
            _ if bits & !KNOWN != 0 || bits & REPEAT != 0 => {
                let what = "what is asked of a record in a batch";
                return Err(DecodeError::Unknown { what, value: u64::from(bits) });
            }
            _ => self.asked(bits)?,
        };
        self.previous = Some(message);
        Ok(Row { index, digest, message })
    }

    fn asked(&mut self, bits: u8) -> Result<Message<'a>, DecodeError> {
        const WHAT: &str = "what is asked of a record in a batch";
        let reader = &mut self.reader;
        // Before servers took writes in batches just the first byte was sent.
        let mut header = MessageHeader { info1: reader.u8(WHAT)?, ..MessageHeader::default() };
        if bits & INFO != 0 {
            [header.info2, header.info3] = reader.array(WHAT)?;
        }
        if bits & INFO4 != 0 {
            header.info4 = reader.u8(WHAT)?;
        }
        if bits & GENERATION != 0 {
            header.generation = u32::from(reader.u16(WHAT)?);
        }
        if bits & TTL != 0 {
            header.ttl_s = reader.u32(WHAT)?;
        }
        (header.fields, header.ops) = (reader.u16(WHAT)?, reader.u16(WHAT)?);
        let (fields, ops) = Message::split(reader, header.fields, header.ops)?;
        Ok(Message::of_parts(header, fields, ops))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let row = self.row();
        if row.is_err() {
            self.left = 0;
        }
        Some(row)
    }
}

/// Appends the message behind the answers of a batch.
pub fn put_last(result: ResultCode, out: &mut Vec<u8>) {
    let header = MessageHeader { info3: info3::LAST, result: result.0, ..MessageHeader::default() };
    out.extend_from_slice(&header.encode());
}
