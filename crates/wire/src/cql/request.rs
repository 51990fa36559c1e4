//! Requests, sections 4.1.1 to 4.1.8: encoded by clients, decoded by the reference target.

use super::{Consistency, Cursor, DecodeError, Header, Opcode, Value, put};

/// Flags of query parameters (section 4.1.4).
pub mod query_flags {
    /// Values follow.
    pub const VALUES: u8 = 0x01;
    /// The answer's rows need no metadata.
    pub const SKIP_METADATA: u8 = 0x02;
    /// A page size follows.
    pub const PAGE_SIZE: u8 = 0x04;
    /// A paging state follows.
    pub const PAGING_STATE: u8 = 0x08;
    /// A serial consistency follows.
    pub const SERIAL_CONSISTENCY: u8 = 0x10;
    /// A default timestamp in microseconds follows.
    pub const DEFAULT_TIMESTAMP: u8 = 0x20;
    /// Each value is preceded by its name.
    pub const VALUE_NAMES: u8 = 0x40;
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
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put::consistency(out, self.consistency);
        let named = self.values.iter().any(|(name, _)| name.is_some());
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        put::u8(
            out,
            flag(!self.values.is_empty(), query_flags::VALUES)
                | flag(self.skip_metadata, query_flags::SKIP_METADATA)
                | flag(self.page_size.is_some(), query_flags::PAGE_SIZE)
                | flag(self.paging_state.is_some(), query_flags::PAGING_STATE)
                | flag(self.serial_consistency.is_some(), query_flags::SERIAL_CONSISTENCY)
                | flag(self.timestamp_us.is_some(), query_flags::DEFAULT_TIMESTAMP)
                | flag(named, query_flags::VALUE_NAMES),
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
    }
}

impl<'a> QueryParameters<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let consistency = cursor.consistency()?;
        let flags = cursor.u8("query flags")?;
        let has = |bit: u8| flags & bit != 0;
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
    /// CQL text to prepare.
    Prepare(&'a str),
    /// A prepared id with its parameters.
    Execute(&'a [u8], QueryParameters<'a>),
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
    /// [`DecodeError`] for anything that is not a request of protocol v4.
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, DecodeError> {
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
                Self::Query(cursor.long_string("CQL text")?, QueryParameters::decode(cursor)?)
            }
            Opcode::Prepare => Self::Prepare(cursor.long_string("CQL text")?),
            Opcode::Execute => {
                Self::Execute(cursor.short_bytes("prepared id")?, QueryParameters::decode(cursor)?)
            }
            Opcode::Batch => Self::Batch(decode_batch(cursor)?),
            Opcode::Register => Self::Register(cursor.string_list("event types")?),
            _ => return Err(unknown),
        })
    }

    /// Appends the whole frame.
    pub fn encode(&self, stream: i16, out: &mut Vec<u8>) {
        Header::request(stream, self.opcode()).frame(out, |out| match self {
            Self::Startup(options) => put::string_map(out, options),
            Self::AuthResponse(token) => put::bytes(out, *token),
            Self::Options => {}
            Self::Query(text, parameters) => {
                put::long_string(out, text);
                parameters.encode(out);
            }
            Self::Prepare(text) => put::long_string(out, text),
            Self::Execute(id, parameters) => {
                put::short_bytes(out, id);
                parameters.encode(out);
            }
            Self::Batch(batch) => encode_batch(batch, out),
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
            Self::Prepare(_) => Opcode::Prepare,
            Self::Execute(..) => Opcode::Execute,
            Self::Batch(_) => Opcode::Batch,
            Self::Register(_) => Opcode::Register,
        }
    }
}

fn encode_batch(batch: &Batch<'_>, out: &mut Vec<u8>) {
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
    let serial = batch.serial_consistency.map_or(0, |_| query_flags::SERIAL_CONSISTENCY);
    put::u8(out, serial | batch.timestamp_us.map_or(0, |_| query_flags::DEFAULT_TIMESTAMP));
    if let Some(level) = batch.serial_consistency {
        put::consistency(out, level);
    }
    if let Some(timestamp_us) = batch.timestamp_us {
        put::i64(out, timestamp_us);
    }
}

fn decode_batch<'a>(cursor: &mut Cursor<'a>) -> Result<Batch<'a>, DecodeError> {
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
    let flags = cursor.u8("batch flags")?;
    let serial = flags & query_flags::SERIAL_CONSISTENCY != 0;
    let timestamp = flags & query_flags::DEFAULT_TIMESTAMP != 0;
    Ok(Batch {
        kind,
        statements,
        consistency,
        serial_consistency: serial.then(|| cursor.consistency()).transpose()?,
        timestamp_us: timestamp.then(|| cursor.i64("default timestamp")).transpose()?,
    })
}
