//! Messages on records: a header of 22 bytes, fields, and operations on bins. Answers have the same
//! form.

use super::particle::Particle;
use super::reader::{Reader, text};
use super::{DecodeError, Digest, ProtoKind, ResultCode, begin, finish};

/// Bytes of the header, which stand in its first byte too.
pub const MESSAGE_HEADER_SIZE: usize = 22;
/// Bytes that a bin's name may have at most.
pub const BIN_NAME_MAX: usize = 15;

/// Bits of the first byte of what is asked for.
pub mod info1 {
    /// Something is read.
    pub const READ: u8 = 1;
    /// All bins are.
    pub const GET_ALL: u8 = 1 << 1;
    /// Many records are asked for; see [`super::super::batch`].
    pub const BATCH: u8 = 1 << 3;
    /// No bins are, just generation and expiry.
    pub const NO_BIN_DATA: u8 = 1 << 5;
    /// All copies are to be asked.
    pub const READ_ALL: u8 = 1 << 6;
    /// The answer may come compressed.
    pub const COMPRESS_ANSWER: u8 = 1 << 7;
}

/// Bits of its second byte.
pub mod info2 {
    /// Something is written.
    pub const WRITE: u8 = 1;
    /// The record is deleted.
    pub const DELETE: u8 = 1 << 1;
    /// Only if it has the generation in the header.
    pub const GENERATION: u8 = 1 << 2;
    /// Only if the generation in the header is greater.
    pub const GENERATION_GREATER: u8 = 1 << 3;
    /// A deletion that is remembered; enterprise edition only.
    pub const DURABLE_DELETE: u8 = 1 << 4;
    /// Only if there is no such record.
    pub const CREATE_ONLY: u8 = 1 << 5;
    /// Each operation has its own result.
    pub const RESPOND_ALL: u8 = 1 << 7;
}

/// Bits of its third byte.
pub mod info3 {
    /// The last message of an answer in many.
    pub const LAST: u8 = 1;
    /// Acknowledged when the first copy is written.
    pub const COMMIT_MASTER: u8 = 1 << 1;
    /// Only if there is such a record.
    pub const UPDATE_ONLY: u8 = 1 << 3;
    /// Bins that are not written go.
    pub const CREATE_OR_REPLACE: u8 = 1 << 4;
    /// Both of these.
    pub const REPLACE_ONLY: u8 = 1 << 5;
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageHeader {
    /// See [`info1`].
    pub info1: u8,
    /// See [`info2`].
    pub info2: u8,
    /// See [`info3`].
    pub info3: u8,
    /// Transactions of many records.
    pub info4: u8,
    /// Of an answer; see [`ResultCode`].
    pub result: u8,
    /// Of the record; asked for, or as it is.
    pub generation: u32,
    /// Of a request: seconds to live, or one of three words (see [`super::Expiry`]). Of an answer:
    /// when it ends, in seconds since 2010-01-01 UTC; 0 for never.
    pub ttl_s: u32,
    /// Of a request: how long the server may take, ms; 0 for as long as it likes. Of an answer to
    /// a batch: which of its records it is about.
    pub timeout_ms: u32,
    /// Fields behind the header.
    pub fields: u16,
    /// Operations behind them.
    pub ops: u16,
}

impl MessageHeader {
    /// The 22 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; MESSAGE_HEADER_SIZE] {
        let mut bytes = [0; MESSAGE_HEADER_SIZE];
        let flags = [self.info1, self.info2, self.info3, self.info4];
        bytes[0] = MESSAGE_HEADER_SIZE as u8;
        bytes[1..5].copy_from_slice(&flags);
        bytes[5] = self.result;
        bytes[6..10].copy_from_slice(&self.generation.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.ttl_s.to_be_bytes());
        bytes[14..18].copy_from_slice(&self.timeout_ms.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.fields.to_be_bytes());
        bytes[20..22].copy_from_slice(&self.ops.to_be_bytes());
        bytes
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const WHAT: &str = "a message's header";
        let [size, info1, info2, info3, info4, result] = reader.array(WHAT)?;
        if usize::from(size) != MESSAGE_HEADER_SIZE {
            let what = "size of a message's header";
            return Err(DecodeError::Unknown { what, value: u64::from(size) });
        }
        Ok(Self {
            info1,
            info2,
            info3,
            info4,
            result,
            generation: reader.u32(WHAT)?,
            ttl_s: reader.u32(WHAT)?,
            timeout_ms: reader.u32(WHAT)?,
            fields: reader.u16(WHAT)?,
            ops: reader.u16(WHAT)?,
        })
    }
}

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldKind(pub u8);

impl FieldKind {
    /// The namespace, as text.
    pub const NAMESPACE: Self = Self(0);
    /// The set, as text.
    pub const SET: Self = Self(1);
    /// The user's key: its particle type, and its bytes.
    pub const KEY: Self = Self(2);
    /// The digest, 20 bytes.
    pub const DIGEST: Self = Self(4);
    /// The transaction of many records.
    pub const TRANSACTION: Self = Self(5);
    /// Records of a batch; see [`super::batch`].
    pub const BATCH: Self = Self(41);
}

/// A field, undecoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it is.
    pub kind: FieldKind,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Field<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (what, size) = ("a field", reader.u32("a field's size")?);
        let body = reader.take(size as usize, what)?;
        match body {
            [kind, bytes @ ..] => Ok(Self { kind: FieldKind(*kind), bytes }),
            [] => Err(DecodeError::Length { what, value: 0, max: 1 }),
        }
    }

    /// Appends a field.
    pub(super) fn put(out: &mut Vec<u8>, kind: FieldKind, bytes: &[u8]) {
        out.extend_from_slice(&(bytes.len() as u32 + 1).to_be_bytes());
        out.push(kind.0);
        out.extend_from_slice(bytes);
    }

    /// Text.
    ///
    /// # Errors
    /// [`DecodeError::NotUtf8`] when it is none.
    pub fn text(&self) -> Result<&'a str, DecodeError> {
        text(self.bytes, "a field")
    }

    /// A digest.
    ///
    /// # Errors
    /// [`DecodeError::Length`] when it has another size.
    pub fn digest(&self) -> Result<Digest, DecodeError> {
        let value = self.bytes.len() as u64;
        let max = super::DIGEST_SIZE as u64;
        self.bytes.try_into().map_err(|_| DecodeError::Length { what: "digest", value, max })
    }
}

/// What an operation does with its bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OpKind {
    /// Gives its value; of no name: of all bins.
    Read = 1,
    /// Sets it; to null: deletes the bin.
    Write = 2,
    /// Adds to a number.
    Increment = 5,
    /// Adds bytes at the end of text or a blob.
    Append = 9,
    /// Adds them at the start.
    Prepend = 10,
    /// Renews the record's expiry, and writes nothing.
    Touch = 11,
    /// Deletes the record.
    Delete = 14,
}

/// An operation on a bin. Answers come as operations too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Op<'a> {
    /// As sent: an [`OpKind`], or one that is not known here.
    pub kind: u8,
    /// The bin's name.
    pub name: &'a [u8],
    /// The particle's type as sent.
    pub particle: u8,
    /// Its bytes.
    pub value: &'a [u8],
}

impl<'a> Op<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let size = reader.u32("an operation's size")?;
        let mut op = Reader::new(reader.take(size as usize, "an operation")?);
        let [kind, particle, _, name_size] = op.array("an operation's head")?;
        let name = op.take(usize::from(name_size), "a bin's name")?;
        Ok(Self { kind, name, particle, value: op.rest() })
    }

    /// The kind; None for one that is not known here.
    #[must_use]
    pub fn kind(&self) -> Option<OpKind> {
        Some(match self.kind {
            1 => OpKind::Read,
            2 => OpKind::Write,
            5 => OpKind::Increment,
            9 => OpKind::Append,
            10 => OpKind::Prepend,
            11 => OpKind::Touch,
            14 => OpKind::Delete,
            _ => return None,
        })
    }

    /// The value.
    ///
    /// # Errors
    /// As [`Particle::decode`].
    pub fn particle(&self) -> Result<Particle<'a>, DecodeError> {
        Particle::decode(self.particle, self.value)
    }
}

/// Appends an operation. Names beyond 255 bytes are cut.
pub fn put_op(out: &mut Vec<u8>, kind: OpKind, name: &[u8], value: &Particle<'_>) {
    let name = &name[..name.len().min(usize::from(u8::MAX))];
    let size = 4 + name.len() + value.size();
    out.extend_from_slice(&(size as u32).to_be_bytes());
    out.extend_from_slice(&[kind as u8, value.kind(), 0, name.len() as u8]);
    out.extend_from_slice(name);
    value.put(out);
}

/// A message: fields and operations are as long as they claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message<'a> {
    /// Its header.
    pub header: MessageHeader,
    fields: &'a [u8],
    ops: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a body that is one message.
    ///
    /// # Errors
    /// [`DecodeError`] when it is none, or when bytes are left.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (message, rest) = Self::decode_first(body)?;
        match rest.len() as u64 {
            0 => Ok(message),
            value => Err(DecodeError::Length { what: "bytes behind a message", value, max: 0 }),
        }
    }

    /// Reads the first message of a body of many: it, and what follows.
    ///
    /// # Errors
    /// [`DecodeError`] when there is none.
    pub fn decode_first(body: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(body);
        let header = MessageHeader::read(&mut reader)?;
        let (fields, ops) = Self::split(&mut reader, header.fields, header.ops)?;
        Ok((Self { header, fields, ops }, reader.rest()))
    }

    /// The bytes of so many fields, and of so many operations behind them.
    pub(super) fn split(
        reader: &mut Reader<'a>,
        fields: u16,
        ops: u16,
    ) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
        let (start, rest) = (reader.offset(), reader.rest());
        for _ in 0..fields {
            Field::read(reader)?;
        }
        let middle = reader.offset() - start;
        for _ in 0..ops {
            Op::read(reader)?;
        }
        let (fields, rest) = rest.split_at(middle);
        Ok((fields, &rest[..reader.offset() - start - middle]))
    }

    /// Of a record in a batch.
    pub(super) fn of_parts(header: MessageHeader, fields: &'a [u8], ops: &'a [u8]) -> Self {
        Self { header, fields, ops }
    }

    /// Its fields.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut reader = Reader::new(self.fields);
        std::iter::from_fn(move || Field::read(&mut reader).ok())
    }

    /// Its operations.
    pub fn ops(&self) -> impl Iterator<Item = Op<'a>> + use<'a> {
        let mut reader = Reader::new(self.ops);
        std::iter::from_fn(move || Op::read(&mut reader).ok())
    }
}

/// What a server answers.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// What became of it.
    pub result: ResultCode,
    /// Of the record, as it is now.
    pub generation: u32,
    /// When it ends, seconds since 2010-01-01 UTC; 0 for never.
    pub void_time_s: u32,
    /// Operations in `ops`.
    pub count: u16,
    /// Bins, each as [`put_op`] writes it.
    pub ops: &'a [u8],
}

impl Answer<'_> {
    /// Without a record.
    #[must_use]
    pub fn of(result: ResultCode) -> Self {
        Self { result, generation: 0, void_time_s: 0, count: 0, ops: &[] }
    }

    /// Appends it without the eight bytes; `index` is its place in a batch.
    pub fn put(&self, index: u32, out: &mut Vec<u8>) {
        let header = MessageHeader {
            result: self.result.0,
            generation: self.generation,
            ttl_s: self.void_time_s,
            timeout_ms: index,
            ops: self.count,
            ..MessageHeader::default()
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(self.ops);
    }

    /// Appends it whole.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = begin(out);
        self.put(0, out);
        finish(out, start, ProtoKind::Message);
    }
}
