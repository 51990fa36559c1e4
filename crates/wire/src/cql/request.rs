//! Requests, sections 4.1.1 to 4.1.8: encoded by clients, decoded by the reference target. What
//! version 5 adds is refused by none: in v4 it is left out.

use super::{Consistency, Cursor, DecodeError, Header, Opcode, VERSION, Value, put};

/// Flags of query parameters (section 4.1.4).
pub mod query_flags {
    /// Values follow.
    pub const VALUES: u32 = 0x01;
    /// The answer's rows need no metadata.
    pub const SKIP_METADATA: u32 = 0x02;
    /// A page size follows.
    pub const PAGE_SIZE: u32 = 0x04;
    /// A paging state follows.
    pub const PAGING_STATE: u32 = 0x08;
    /// A serial consistency follows.
    pub const SERIAL_CONSISTENCY: u32 = 0x10;
    /// A default timestamp in microseconds follows.
    pub const DEFAULT_TIMESTAMP: u32 = 0x20;
    /// Each value is preceded by its name.
    pub const VALUE_NAMES: u32 = 0x40;
    /// The keyspace of names without one follows (v5).
    pub const KEYSPACE: u32 = 0x80;
    /// The time by which cells expire follows (v5).
    pub const NOW: u32 = 0x100;
}

/// The flag of PREPARE in v5: a keyspace follows.
const PREPARE_KEYSPACE: i32 = 0x01;

/// Flags are a byte in v4 and an int in v5.
fn put_flags(out: &mut Vec<u8>, v5: bool, flags: u32) {
    match v5 {
        true => put::i32(out, flags as i32),
        false => put::u8(out, flags as u8),
    }
}

fn read_flags(cursor: &mut Cursor<'_>, v5: bool, what: &'static str) -> Result<u32, DecodeError> {
    match v5 {
        true => cursor.i32(what).map(|flags| flags as u32),
        // What v4 does not know it ignores.
        false => cursor.u8(what).map(|flags| u32::from(flags) & !query_flags::KEYSPACE),
    }
}

/// What stands behind the text or id of a QUERY or EXECUTE.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryParameters<'a> {
    /// Wanted level.
    pub consistency: Consistency,
    /// Values in the order of the placeholders; with names where the client gave them.
    pub values: Vec<(Option<&'a str>, Value<'a>)>,
    /// Rows come without metadata.
    pub skip_metadata: bool,
    /// Rows of a page; None is all.
    pub page_size: Option<i32>,
    /// Where the page before ended.
    pub paging_state: Option<&'a [u8]>,
    /// For conditional statements.
    pub serial_consistency: Option<Consistency>,
    /// Microseconds since 1970 for cells without `USING TIMESTAMP`.
    pub timestamp_us: Option<i64>,
    /// v5: of names without one, instead of the connection's.
    pub keyspace: Option<&'a str>,
    /// v5: seconds since 1970 by which cells expire, instead of the server's clock.
    pub now_s: Option<i32>,
}

impl QueryParameters<'_> {
    /// Without values, paging and timestamp.
    #[must_use]
    pub fn plain(consistency: Consistency) -> Self {
        Self {
            consistency,
            values: Vec::new(),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp_us: None,
            keyspace: None,
            now_s: None,
        }
    }

    fn encode(&self, v5: bool, out: &mut Vec<u8>) {
        put::consistency(out, self.consistency);
        let named = self.values.iter().any(|(name, _)| name.is_some());
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        put_flags(
            out,
            v5,
            flag(!self.values.is_empty(), query_flags::VALUES)
                | flag(self.skip_metadata, query_flags::SKIP_METADATA)
                | flag(self.page_size.is_some(), query_flags::PAGE_SIZE)
                | flag(self.paging_state.is_some(), query_flags::PAGING_STATE)
                | flag(self.serial_consistency.is_some(), query_flags::SERIAL_CONSISTENCY)
                | flag(self.timestamp_us.is_some(), query_flags::DEFAULT_TIMESTAMP)
                | flag(named, query_flags::VALUE_NAMES)
                | flag(v5 && self.keyspace.is_some(), query_flags::KEYSPACE)
                | flag(v5 && self.now_s.is_some(), query_flags::NOW),
        );
        if !self.values.is_empty() {
            put::u16(out, self.values.len() as u16);
            for (name, value) in &self.values {
                if named {
                    put::string(out, name.unwrap_or(""));
                }
                encode_value(out, *value);
            }
        }
        if let Some(size) = self.page_size {
            put::i32(out, size);
        }
        if let Some(state) = self.paging_state {
            put::bytes(out, Some(state));
        }
        if let Some(level) = self.serial_consistency {
            put::consistency(out, level);
        }
        if let Some(timestamp_us) = self.timestamp_us {
            put::i64(out, timestamp_us);
        }
        put_v5(out, v5, self.keyspace, self.now_s);
    }
}

/// What v5 has behind the parameters of v4.
fn put_v5(out: &mut Vec<u8>, v5: bool, keyspace: Option<&str>, now_s: Option<i32>) {
    if !v5 {
        return;
    }
    if let Some(keyspace) = keyspace {
        put::string(out, keyspace);
    }
    if let Some(now_s) = now_s {
        put::i32(out, now_s);
    }
}

fn read_keyspace<'a>(
    cursor: &mut Cursor<'a>,
    present: bool,
) -> Result<Option<&'a str>, DecodeError> {
    present.then(|| cursor.string("keyspace")).transpose()
}

fn read_now(cursor: &mut Cursor<'_>, present: bool) -> Result<Option<i32>, DecodeError> {
    present.then(|| cursor.i32("now in seconds")).transpose()
}

impl<'a> QueryParameters<'a> {
    fn decode(cursor: &mut Cursor<'a>, v5: bool) -> Result<Self, DecodeError> {
        let consistency = cursor.consistency()?;
        let flags = read_flags(cursor, v5, "query flags")?;
        let has = |bit: u32| flags & bit != 0;
        let values = if has(query_flags::VALUES) {
            decode_values(cursor, has(query_flags::VALUE_NAMES))?
        } else {
            Vec::new()
        };
        Ok(Self {
            consistency,
            values,
            skip_metadata: has(query_flags::SKIP_METADATA),
            page_size: has(query_flags::PAGE_SIZE).then(|| cursor.i32("page size")).transpose()?,
            paging_state: match has(query_flags::PAGING_STATE) {
                true => cursor.bytes("paging state")?,
                false => None,
            },
            serial_consistency: match has(query_flags::SERIAL_CONSISTENCY) {
                true => Some(cursor.consistency()?),
                false => None,
            },
            timestamp_us: match has(query_flags::DEFAULT_TIMESTAMP) {
                true => Some(cursor.i64("default timestamp")?),
                false => None,
            },
            keyspace: read_keyspace(cursor, has(query_flags::KEYSPACE))?,
            now_s: read_now(cursor, has(query_flags::NOW))?,
        })
    }
}

fn encode_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Bytes(bytes) => put::bytes(out, Some(bytes)),
        Value::Null => put::i32(out, -1),
        Value::Unset => put::i32(out, -2),
    }
}

fn decode_values<'a>(
    cursor: &mut Cursor<'a>,
    named: bool,
) -> Result<Vec<(Option<&'a str>, Value<'a>)>, DecodeError> {
    let count = cursor.u16("number of values")?;
    (0..count)
        .map(|_| {
            let name = if named { Some(cursor.string("value name")?) } else { None };
            Ok((name, cursor.value("bound value")?))
        })
        .collect()
}

/// The kind of a BATCH (section 4.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum BatchKind {
    Logged = 0,
    Unlogged = 1,
    Counter = 2,
}

/// Text or prepared id of one statement in a BATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchStatement<'a> {
    /// CQL text.
    Text(&'a str),
    /// A prepared id.
    Id(&'a [u8]),
}

/// A BATCH.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<'a> {
    /// Logged, unlogged or counter.
    pub kind: BatchKind,
    /// Statements with their values.
    pub statements: Vec<(BatchStatement<'a>, Vec<Value<'a>>)>,
    /// Wanted level.
    pub consistency: Consistency,
    /// For conditional statements.
    pub serial_consistency: Option<Consistency>,
    /// Microseconds since 1970 for cells without `USING TIMESTAMP`.
    pub timestamp_us: Option<i64>,
    /// v5: of names without one, instead of the connection's.
    pub keyspace: Option<&'a str>,
    /// v5: seconds since 1970 by which cells expire, instead of the server's clock.
    pub now_s: Option<i32>,
}

/// A prepared statement's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreparedRef<'a> {
    /// Of the statement.
    pub id: &'a [u8],
    /// v5: of the metadata of its rows, as the client has it. Empty in v4.
    pub metadata_id: &'a [u8],
}

impl<'a> PreparedRef<'a> {
    /// In v4 there is nothing but the id.
    #[must_use]
    pub fn v4(id: &'a [u8]) -> Self {
        Self { id, metadata_id: &[] }
    }
}

/// A request's body.
#[derive(Debug, Clone, PartialEq)]
pub enum Request<'a> {
    /// Options such as `CQL_VERSION`, `COMPRESSION`.
    Startup(Vec<(&'a str, &'a str)>),
    /// SASL token.
    AuthResponse(Option<&'a [u8]>),
    /// Asks for SUPPORTED.
    Options,
    /// CQL text with its parameters.
    Query(&'a str, QueryParameters<'a>),
    /// CQL text to prepare; v5: in this keyspace instead of the connection's.
    Prepare(&'a str, Option<&'a str>),
    /// A prepared statement with its parameters.
    Execute(PreparedRef<'a>, QueryParameters<'a>),
    /// Several statements.
    Batch(Batch<'a>),
    /// Event types to subscribe to.
    Register(Vec<&'a str>),
}

impl<'a> Request<'a> {
    /// Decodes the body of a request frame. `header.flags` may carry a custom payload, which is
    /// skipped.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is not a request of the header's version.
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, DecodeError> {
        let v5 = header.is_v5();
        let cursor = &mut Cursor::new(body);
        if header.flags & super::flags::CUSTOM_PAYLOAD != 0 {
            cursor.skip_bytes_map("custom payload")?;
        }
        let unknown = DecodeError::Unknown {
            what: "request opcode",
            value: u64::from(header.opcode),
            offset: 0,
        };
        Ok(match Opcode::from_u8(header.opcode).ok_or_else(|| unknown.clone())? {
            Opcode::Startup => Self::Startup(cursor.string_map("startup options")?),
            Opcode::AuthResponse => Self::AuthResponse(cursor.bytes("authentication token")?),
            Opcode::Options => Self::Options,
            Opcode::Query => {
                Self::Query(cursor.long_string("CQL text")?, QueryParameters::decode(cursor, v5)?)
            }
            Opcode::Prepare => {
                let text = cursor.long_string("CQL text")?;
                let flags = if v5 { cursor.i32("prepare flags")? } else { 0 };
                Self::Prepare(text, read_keyspace(cursor, flags & PREPARE_KEYSPACE != 0)?)
            }
            Opcode::Execute => {
                let id = cursor.short_bytes("prepared id")?;
                let metadata_id = if v5 { cursor.short_bytes("metadata id")? } else { &[] };
                let prepared = PreparedRef { id, metadata_id };
                Self::Execute(prepared, QueryParameters::decode(cursor, v5)?)
            }
            Opcode::Batch => Self::Batch(decode_batch(cursor, v5)?),
            Opcode::Register => Self::Register(cursor.string_list("event types")?),
            _ => return Err(unknown),
        })
    }

    /// Appends the whole frame, in v4.
    pub fn encode(&self, stream: i16, out: &mut Vec<u8>) {
        self.encode_at(VERSION, stream, out);
    }

    /// Appends the whole frame in this version of the protocol.
    pub fn encode_at(&self, version: u8, stream: i16, out: &mut Vec<u8>) {
        let header = Header::request(stream, self.opcode()).at(version);
        let v5 = header.is_v5();
        header.frame(out, |out| match self {
            Self::Startup(options) => put::string_map(out, options),
            Self::AuthResponse(token) => put::bytes(out, *token),
            Self::Options => {}
            Self::Query(text, parameters) => {
                put::long_string(out, text);
                parameters.encode(v5, out);
            }
            Self::Prepare(text, keyspace) => {
                put::long_string(out, text);
                if v5 {
                    put::i32(out, keyspace.map_or(0, |_| PREPARE_KEYSPACE));
                    put_v5(out, v5, *keyspace, None);
                }
            }
            Self::Execute(prepared, parameters) => {
                put::short_bytes(out, prepared.id);
                if v5 {
                    put::short_bytes(out, prepared.metadata_id);
                }
                parameters.encode(v5, out);
            }
            Self::Batch(batch) => encode_batch(batch, v5, out),
            Self::Register(events) => put::string_list(out, events),
        });
    }

    /// The opcode of this request.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Startup(_) => Opcode::Startup,
            Self::AuthResponse(_) => Opcode::AuthResponse,
            Self::Options => Opcode::Options,
            Self::Query(..) => Opcode::Query,
            Self::Prepare(..) => Opcode::Prepare,
            Self::Execute(..) => Opcode::Execute,
            Self::Batch(_) => Opcode::Batch,
            Self::Register(_) => Opcode::Register,
        }
    }
}

fn encode_batch(batch: &Batch<'_>, v5: bool, out: &mut Vec<u8>) {
    put::u8(out, batch.kind as u8);
    put::u16(out, batch.statements.len() as u16);
    for (statement, values) in &batch.statements {
        match statement {
            BatchStatement::Text(text) => {
                put::u8(out, 0);
                put::long_string(out, text);
            }
            BatchStatement::Id(id) => {
                put::u8(out, 1);
                put::short_bytes(out, id);
            }
        }
        put::u16(out, values.len() as u16);
        values.iter().for_each(|v| encode_value(out, *v));
    }
    put::consistency(out, batch.consistency);
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    put_flags(
        out,
        v5,
        flag(batch.serial_consistency.is_some(), query_flags::SERIAL_CONSISTENCY)
            | flag(batch.timestamp_us.is_some(), query_flags::DEFAULT_TIMESTAMP)
            | flag(v5 && batch.keyspace.is_some(), query_flags::KEYSPACE)
            | flag(v5 && batch.now_s.is_some(), query_flags::NOW),
    );
    if let Some(level) = batch.serial_consistency {
        put::consistency(out, level);
    }
    if let Some(timestamp_us) = batch.timestamp_us {
        put::i64(out, timestamp_us);
    }
    put_v5(out, v5, batch.keyspace, batch.now_s);
}

fn decode_batch<'a>(cursor: &mut Cursor<'a>, v5: bool) -> Result<Batch<'a>, DecodeError> {
    let offset = cursor.offset();
    let kind = match cursor.u8("batch kind")? {
        0 => BatchKind::Logged,
        1 => BatchKind::Unlogged,
        2 => BatchKind::Counter,
        value => {
            return Err(DecodeError::Unknown {
                what: "batch kind",
                value: u64::from(value),
                offset,
            });
        }
    };
    let count = cursor.u16("number of statements")?;
    let statements = (0..count)
        .map(|_| {
            let offset = cursor.offset();
            let statement = match cursor.u8("statement kind")? {
                0 => BatchStatement::Text(cursor.long_string("CQL text")?),
                1 => BatchStatement::Id(cursor.short_bytes("prepared id")?),
                value => {
                    let (what, value) = ("statement kind", u64::from(value));
                    return Err(DecodeError::Unknown { what, value, offset });
                }
            };
            let values =
                decode_values(cursor, false)?.into_iter().map(|(_, value)| value).collect();
            Ok((statement, values))
        })
        .collect::<Result<_, _>>()?;
    let consistency = cursor.consistency()?;
    let flags = read_flags(cursor, v5, "batch flags")?;
    let has = |bit: u32| flags & bit != 0;
    let serial = has(query_flags::SERIAL_CONSISTENCY);
    let timestamp = has(query_flags::DEFAULT_TIMESTAMP);
    Ok(Batch {
        kind,
        statements,
        consistency,
        serial_consistency: serial.then(|| cursor.consistency()).transpose()?,
        timestamp_us: timestamp.then(|| cursor.i64("default timestamp")).transpose()?,
        keyspace: read_keyspace(cursor, has(query_flags::KEYSPACE))?,
        now_s: read_now(cursor, has(query_flags::NOW))?,
    })
}
