//! Column types as they stand in metadata: `[option]` of section 4.2.5.2.

use super::{Cursor, DecodeError, put};

/// A column's type. Nesting is bounded when read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are CQL's
pub enum ColumnType {
    Custom(String),
    Ascii,
    Bigint,
    Blob,
    Boolean,
    Counter,
    Decimal,
    Double,
    Float,
    Int,
    Timestamp,
    Uuid,
    Varchar,
    Varint,
    Timeuuid,
    Inet,
    Date,
    Time,
    Smallint,
    Tinyint,
    Duration,
    List(Box<ColumnType>),
    Map(Box<ColumnType>, Box<ColumnType>),
    Set(Box<ColumnType>),
    Udt { keyspace: String, name: String, fields: Vec<(String, ColumnType)> },
    Tuple(Vec<ColumnType>),
}

/// Deeper types do not occur; a frame that nests further is hostile.
const DEPTH_MAX: usize = 32;

/// Types without parameters and their option ids; duration came with Cassandra 3.10.
const SIMPLE: [(u16, ColumnType); 20] = [
    (0x01, ColumnType::Ascii),
    (0x02, ColumnType::Bigint),
    (0x03, ColumnType::Blob),
    (0x04, ColumnType::Boolean),
    (0x05, ColumnType::Counter),
    (0x06, ColumnType::Decimal),
    (0x07, ColumnType::Double),
    (0x08, ColumnType::Float),
    (0x09, ColumnType::Int),
    (0x0B, ColumnType::Timestamp),
    (0x0C, ColumnType::Uuid),
    (0x0D, ColumnType::Varchar),
    (0x0E, ColumnType::Varint),
    (0x0F, ColumnType::Timeuuid),
    (0x10, ColumnType::Inet),
    (0x11, ColumnType::Date),
    (0x12, ColumnType::Time),
    (0x13, ColumnType::Smallint),
    (0x14, ColumnType::Tinyint),
    (0x15, ColumnType::Duration),
];

impl ColumnType {
    pub(super) fn decode(cursor: &mut Cursor<'_>, depth: usize) -> Result<Self, DecodeError> {
        let (what, offset) = ("column type", cursor.offset());
        let id = cursor.u16(what)?;
        let unknown = DecodeError::Unknown { what, value: u64::from(id), offset };
        if depth >= DEPTH_MAX {
            return Err(unknown);
        }
        let inner = |cursor: &mut Cursor<'_>| Self::decode(cursor, depth + 1);
        Ok(match id {
            0x00 => Self::Custom(cursor.string(what)?.to_owned()),
            0x20 => Self::List(Box::new(inner(cursor)?)),
            0x21 => Self::Map(Box::new(inner(cursor)?), Box::new(inner(cursor)?)),
            0x22 => Self::Set(Box::new(inner(cursor)?)),
            0x30 => {
                let (keyspace, name) =
                    (cursor.string(what)?.to_owned(), cursor.string(what)?.to_owned());
                let count = cursor.u16(what)?;
                let fields = (0..count)
                    .map(|_| Ok((cursor.string(what)?.to_owned(), inner(cursor)?)))
                    .collect::<Result<_, DecodeError>>()?;
                Self::Udt { keyspace, name, fields }
            }
            0x31 => {
                let count = cursor.u16(what)?;
                Self::Tuple((0..count).map(|_| inner(cursor)).collect::<Result<_, DecodeError>>()?)
            }
            _ => SIMPLE.iter().find(|(i, _)| *i == id).map(|(_, t)| t.clone()).ok_or(unknown)?,
        })
    }

    /// Appends the option.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Custom(class) => {
                put::u16(out, 0x00);
                put::string(out, class);
            }
            Self::List(element) => {
                put::u16(out, 0x20);
                element.encode(out);
            }
            Self::Map(key, value) => {
                put::u16(out, 0x21);
                key.encode(out);
                value.encode(out);
            }
            Self::Set(element) => {
                put::u16(out, 0x22);
                element.encode(out);
            }
            Self::Udt { keyspace, name, fields } => {
                put::u16(out, 0x30);
                put::string(out, keyspace);
                put::string(out, name);
                put::u16(out, fields.len() as u16);
                for (name, kind) in fields {
                    put::string(out, name);
                    kind.encode(out);
                }
            }
            Self::Tuple(elements) => {
                put::u16(out, 0x31);
                put::u16(out, elements.len() as u16);
                elements.iter().for_each(|e| e.encode(out));
            }
            simple => {
                let id = SIMPLE.iter().find(|(_, t)| t == simple).map_or(0, |(id, _)| *id);
                put::u16(out, id);
            }
        }
    }
}
