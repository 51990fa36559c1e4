//! Responses, sections 4.2.1 to 4.2.8: decoded by clients, encoded by the reference target.
//!
//! The data plane needs little of a response ([`classify`]: which outcome, how many rows); the
//! control connection decodes the whole ([`Response`]).

use super::{ColumnType, Cursor, DecodeError, ErrorCode, Header, Opcode, VERSION_5, flags, put};

/// Kinds of RESULT (section 4.2.5).
pub mod result_kind {
    /// Nothing to say.
    pub const VOID: i32 = 1;
    /// Rows.
    pub const ROWS: i32 = 2;
    /// USE has worked.
    pub const SET_KEYSPACE: i32 = 3;
    /// The answer to PREPARE.
    pub const PREPARED: i32 = 4;
    /// DDL has worked.
    pub const SCHEMA_CHANGE: i32 = 5;
}

/// Flags of rows metadata (section 4.2.5.2).
pub mod rows_flags {
    /// Keyspace and table stand once, before the columns.
    pub const GLOBAL_TABLE: i32 = 0x01;
    /// A paging state follows: there are more pages.
    pub const HAS_MORE_PAGES: i32 = 0x02;
    /// Only the number of columns is given.
    pub const NO_METADATA: i32 = 0x04;
    /// The metadata is not what the client has; its new id follows (v5).
    pub const METADATA_CHANGED: i32 = 0x08;
}

/// A column in metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Keyspace it belongs to.
    pub keyspace: String,
    /// Table it belongs to.
    pub table: String,
    /// Its name, or the placeholder's.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
}

/// Metadata of rows, or of a prepared statement's values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Number of columns; [`Self::columns`] is empty when the server left them out.
    pub column_count: usize,
    /// The columns.
    pub columns: Vec<Column>,
    /// Where the next page begins; None after the last.
    pub paging_state: Option<Vec<u8>>,
}

impl Metadata {
    /// Appends rows metadata; with `skip` only the number of columns.
    pub fn encode(&self, skip: bool, out: &mut Vec<u8>) {
        let skip = skip || self.columns.is_empty();
        let global = !skip && same_table(&self.columns);
        let flag = |set: bool, bit: i32| if set { bit } else { 0 };
        put::i32(
            out,
            flag(global, rows_flags::GLOBAL_TABLE)
                | flag(self.paging_state.is_some(), rows_flags::HAS_MORE_PAGES)
                | flag(skip, rows_flags::NO_METADATA),
        );
        put::i32(out, self.column_count as i32);
        if let Some(state) = &self.paging_state {
            put::bytes(out, Some(state));
        }
        if !skip {
            encode_columns(&self.columns, global, out);
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let flags = cursor.i32("metadata flags")?;
        let offset = cursor.offset();
        let count = cursor.i32("number of columns")?;
        let paging_state = match flags & rows_flags::HAS_MORE_PAGES != 0 {
            true => cursor.bytes("paging state")?.map(<[u8]>::to_vec),
            false => None,
        };
        let column_count = usize::try_from(count).ok().filter(|&n| n <= usize::from(u16::MAX));
        let column_count = column_count.ok_or(DecodeError::Length {
            what: "number of columns",
            value: i64::from(count),
            offset,
        })?;
        // Never set in v4. Statements that name their columns have no use for the id.
        if flags & rows_flags::METADATA_CHANGED != 0 {
            cursor.short_bytes("new metadata id")?;
        }
        let columns = match flags & rows_flags::NO_METADATA != 0 {
            true => Vec::new(),
            false => {
                let global = flags & rows_flags::GLOBAL_TABLE != 0;
                decode_columns(cursor, column_count, global)?
            }
        };
        Ok(Self { column_count, columns, paging_state })
    }
}

fn same_table(columns: &[Column]) -> bool {
    columns.windows(2).all(|w| w[0].keyspace == w[1].keyspace && w[0].table == w[1].table)
}

fn encode_columns(columns: &[Column], global: bool, out: &mut Vec<u8>) {
    if let (true, Some(first)) = (global, columns.first()) {
        put::string(out, &first.keyspace);
        put::string(out, &first.table);
    }
    for column in columns {
        if !global {
            put::string(out, &column.keyspace);
            put::string(out, &column.table);
        }
        put::string(out, &column.name);
        column.kind.encode(out);
    }
}

fn decode_columns(
    cursor: &mut Cursor<'_>,
    count: usize,
    global: bool,
) -> Result<Vec<Column>, DecodeError> {
    let table = |cursor: &mut Cursor<'_>| {
        Ok((cursor.string("keyspace")?.to_owned(), cursor.string("table")?.to_owned()))
    };
    let shared = if global { Some(table(cursor)?) } else { None };
    (0..count)
        .map(|_| {
            let (keyspace, table) = match &shared {
                Some(shared) => shared.clone(),
                None => table(cursor)?,
            };
            let name = cursor.string("column name")?.to_owned();
            Ok(Column { keyspace, table, name, kind: cursor.column_type()? })
        })
        .collect()
}

/// The answer to PREPARE.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prepared {
    /// To be sent with EXECUTE.
    pub id: Vec<u8>,
    /// v5: of the rows' metadata, to be sent with EXECUTE too. Empty in v4.
    pub metadata_id: Vec<u8>,
    /// Which of the values make up the partition key, in its order; empty when not all are bound.
    pub partition_key: Vec<u16>,
    /// The values.
    pub values: Metadata,
    /// The rows that it will answer; empty when it answers none.
    pub rows: Metadata,
}

/// A schema change, as a RESULT or as an EVENT (section 4.2.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaChange {
    /// `CREATED`, `UPDATED` or `DROPPED`.
    pub change: &'static str,
    /// Keyspace concerned.
    pub keyspace: String,
    /// Table or type concerned; None when the keyspace itself is.
    pub object: Option<(&'static str, String)>,
}

impl SchemaChange {
    /// Appends the change.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put::string(out, self.change);
        match &self.object {
            None => {
                put::string(out, "KEYSPACE");
                put::string(out, &self.keyspace);
            }
            Some((kind, name)) => {
                put::string(out, kind);
                put::string(out, &self.keyspace);
                put::string(out, name);
            }
        }
    }
}

/// Appends an ERROR body's code and message; some codes want more behind it (section 9).
pub fn put_error(out: &mut Vec<u8>, code: ErrorCode, message: &str) {
    put::i32(out, code.0);
    put::string(out, message);
}

/// Appends a PREPARED result's body in this version of the protocol, its kind included.
pub fn put_prepared(out: &mut Vec<u8>, version: u8, prepared: &Prepared) {
    put::i32(out, result_kind::PREPARED);
    put::short_bytes(out, &prepared.id);
    if version == VERSION_5 {
        put::short_bytes(out, &prepared.metadata_id);
    }
    let columns = &prepared.values.columns;
    let global = !columns.is_empty() && same_table(columns);
    put::i32(out, if global { rows_flags::GLOBAL_TABLE } else { 0 });
    put::i32(out, columns.len() as i32);
    put::i32(out, prepared.partition_key.len() as i32);
    prepared.partition_key.iter().for_each(|index| put::u16(out, *index));
    encode_columns(columns, global, out);
    prepared.rows.encode(false, out);
}

/// Rows of a result: `column_count` cells each, to be read with [`Cursor::bytes`].
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    /// Their metadata.
    pub metadata: Metadata,
    /// Number of rows.
    pub count: usize,
    /// At the first cell.
    pub cells: Cursor<'a>,
}

impl<'a> Rows<'a> {
    /// All rows, each a vector of cells; for the control connection and tests.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when cells are missing.
    pub fn collect(mut self) -> Result<Vec<Vec<Option<&'a [u8]>>>, DecodeError> {
        let columns = self.metadata.column_count;
        (0..self.count).map(|_| (0..columns).map(|_| self.cells.bytes("cell")).collect()).collect()
    }
}

/// A response's body.
#[derive(Debug, Clone)]
pub enum Response<'a> {
    /// Something went wrong; the cursor stands behind the message.
    Error {
        /// What.
        code: ErrorCode,
        /// In the server's words.
        message: &'a str,
        /// What some codes add, such as the unknown id.
        details: Cursor<'a>,
    },
    /// The connection is open for requests.
    Ready,
    /// Credentials are wanted, by this class.
    Authenticate(&'a str),
    /// SASL goes on.
    AuthChallenge(Option<&'a [u8]>),
    /// SASL has ended well.
    AuthSuccess,
    /// What the server offers.
    Supported(Vec<(&'a str, Vec<&'a str>)>),
    /// A result without content.
    Void,
    /// Rows.
    Rows(Rows<'a>),
    /// The keyspace that USE chose.
    SetKeyspace(&'a str),
    /// A prepared statement.
    Prepared(Prepared),
    /// DDL has worked.
    SchemaChange,
    /// Something happened; the cursor stands behind the event's type.
    Event(&'a str, Cursor<'a>),
}

/// Skips what may precede a response's body: tracing id, warnings, custom payload (section 2.2).
fn skip_prefix(header: &Header, cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
    if header.flags & flags::TRACING != 0 {
        cursor.uuid("tracing id")?;
    }
    if header.flags & flags::WARNING != 0 {
        cursor.string_list("warnings")?;
    }
    if header.flags & flags::CUSTOM_PAYLOAD != 0 {
        cursor.skip_bytes_map("custom payload")?;
    }
    Ok(())
}

impl<'a> Response<'a> {
    /// Decodes the body of a response frame.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that is not a response of the header's version.
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        skip_prefix(header, &mut cursor)?;
        let unknown = DecodeError::Unknown {
            what: "response opcode",
            value: u64::from(header.opcode),
            offset: 0,
        };
        Ok(match Opcode::from_u8(header.opcode).ok_or_else(|| unknown.clone())? {
            Opcode::Error => {
                let code = ErrorCode(cursor.i32("error code")?);
                Self::Error { code, message: cursor.string("error message")?, details: cursor }
            }
            Opcode::Ready => Self::Ready,
            Opcode::Authenticate => Self::Authenticate(cursor.string("authenticator")?),
            Opcode::AuthChallenge => Self::AuthChallenge(cursor.bytes("challenge")?),
            Opcode::AuthSuccess => Self::AuthSuccess,
            Opcode::Supported => Self::Supported(cursor.string_multimap("supported options")?),
            Opcode::Result => Self::decode_result(cursor, header.is_v5())?,
            Opcode::Event => Self::Event(cursor.string("event type")?, cursor),
            _ => return Err(unknown),
        })
    }

    fn decode_result(mut cursor: Cursor<'a>, v5: bool) -> Result<Self, DecodeError> {
        let offset = cursor.offset();
        Ok(match cursor.i32("result kind")? {
            result_kind::VOID => Self::Void,
            result_kind::ROWS => {
                let metadata = Metadata::decode(&mut cursor)?;
                let count = cursor.count((4 * metadata.column_count).max(1), "number of rows")?;
                Self::Rows(Rows { metadata, count, cells: cursor })
            }
            result_kind::SET_KEYSPACE => Self::SetKeyspace(cursor.string("keyspace")?),
            result_kind::PREPARED => Self::Prepared(decode_prepared(&mut cursor, v5)?),
            result_kind::SCHEMA_CHANGE => Self::SchemaChange,
            kind => {
                let value = u64::from(kind as u32);
                return Err(DecodeError::Unknown { what: "result kind", value, offset });
            }
        })
    }
}

fn decode_prepared(cursor: &mut Cursor<'_>, v5: bool) -> Result<Prepared, DecodeError> {
    let id = cursor.short_bytes("prepared id")?.to_vec();
    let metadata_id = match v5 {
        true => cursor.short_bytes("metadata id")?.to_vec(),
        false => Vec::new(),
    };
    let flags = cursor.i32("metadata flags")?;
    let column_count = cursor.count(0, "number of values")?;
    let key_count = cursor.count(2, "number of key values")?;
    let partition_key =
        (0..key_count).map(|_| cursor.u16("key index")).collect::<Result<_, _>>()?;
    let columns = decode_columns(cursor, column_count, flags & rows_flags::GLOBAL_TABLE != 0)?;
    let values = Metadata { column_count, columns, paging_state: None };
    Ok(Prepared { id, metadata_id, partition_key, values, rows: Metadata::decode(cursor)? })
}

/// What the data plane needs to know of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A write's answer, or any result without rows.
    Void,
    /// A read's answer.
    Rows {
        /// Number of rows.
        count: usize,
        /// Where the cells begin in the body.
        cells_offset: usize,
        /// Cells of a row.
        column_count: usize,
    },
    /// The server refused or failed.
    Error(ErrorCode),
}

/// The body of a result without content.
const VOID: [u8; 4] = result_kind::VOID.to_be_bytes();

/// Reads as much of a response as an operation's outcome needs: opcode, kind, number of rows or
/// error code.
///
/// # Errors
/// [`DecodeError`] when the frame is neither RESULT nor ERROR, or is torn.
#[inline]
pub fn classify(header: &Header, body: &[u8]) -> Result<Reply, DecodeError> {
    // Nearly every answer to a write.
    if header.opcode == Opcode::Result as u8 && header.flags == 0 && body == VOID {
        return Ok(Reply::Void);
    }
    let mut cursor = Cursor::new(body);
    if header.flags != 0 {
        skip_prefix(header, &mut cursor)?;
    }
    if header.opcode == Opcode::Error as u8 {
        return Ok(Reply::Error(ErrorCode(cursor.i32("error code")?)));
    }
    if header.opcode != Opcode::Result as u8 {
        let value = u64::from(header.opcode);
        return Err(DecodeError::Unknown { what: "response opcode", value, offset: 0 });
    }
    if cursor.i32("result kind")? != result_kind::ROWS {
        return Ok(Reply::Void);
    }
    let flags = cursor.i32("metadata flags")?;
    let bare = rows_flags::NO_METADATA;
    if flags & (bare | rows_flags::METADATA_CHANGED) != bare {
        return classify_with_metadata(header, body);
    }
    let column_count = cursor.count(0, "number of columns")?;
    if flags & rows_flags::HAS_MORE_PAGES != 0 {
        cursor.bytes("paging state")?;
    }
    let count = cursor.count(4usize.saturating_mul(column_count).max(1), "number of rows")?;
    Ok(Reply::Rows { count, cells_offset: cursor.offset(), column_count })
}

/// Where a page of rows has ended, to ask for the next one with; None behind the last page.
///
/// # Errors
/// [`DecodeError`] when the frame is torn.
pub fn paging_state<'a>(header: &Header, body: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
    let mut cursor = Cursor::new(body);
    skip_prefix(header, &mut cursor)?;
    if cursor.i32("result kind")? != result_kind::ROWS {
        return Ok(None);
    }
    let flags = cursor.i32("metadata flags")?;
    cursor.i32("number of columns")?;
    match flags & rows_flags::HAS_MORE_PAGES {
        0 => Ok(None),
        _ => cursor.bytes("paging state"),
    }
}

/// A server may send metadata although it was asked not to.
#[cold]
fn classify_with_metadata(header: &Header, body: &[u8]) -> Result<Reply, DecodeError> {
    match Response::decode(header, body)? {
        Response::Rows(rows) => Ok(Reply::Rows {
            count: rows.count,
            cells_offset: rows.cells.offset(),
            column_count: rows.metadata.column_count,
        }),
        _ => Ok(Reply::Void),
    }
}
