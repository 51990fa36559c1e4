//! Values of bins: a type of one byte and bytes.

use super::DecodeError;
use super::msgpack;

pub(super) const NULL: u8 = 0;
pub(super) const INTEGER: u8 = 1;
pub(super) const DOUBLE: u8 = 2;
pub(super) const STRING: u8 = 3;
pub(super) const BLOB: u8 = 4;
/// Blobs that clients in one language or another have serialized.
const LANGUAGES: std::ops::RangeInclusive<u8> = 7..=12;
const BOOL: u8 = 17;
const HLL: u8 = 18;
pub(super) const MAP: u8 = 19;
pub(super) const LIST: u8 = 20;
const GEOJSON: u8 = 23;
/// Flags and a number of cells stand before the text of a GeoJSON value.
const GEOJSON_HEAD: [u8; 3] = [0, 0, 0];

/// A value of a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Particle<'a> {
    /// No value: writing it deletes the bin.
    Null,
    /// A number of 64 bits.
    Integer(i64),
    /// A double.
    Double(f64),
    /// Text; servers do not look whether it is UTF-8.
    String(&'a [u8]),
    /// Bytes.
    Blob(&'a [u8]),
    /// Bytes that a client has serialized in its own way, and which: 7 to 12.
    Language(u8, &'a [u8]),
    /// Yes or no.
    Bool(bool),
    /// A sketch of a set (HyperLogLog), as bytes.
    Hll(&'a [u8]),
    /// A map, see [`msgpack`].
    Map(&'a [u8]),
    /// A list, see [`msgpack`].
    List(&'a [u8]),
    /// GeoJSON as text, without the cells that a server may send before it.
    GeoJson(&'a [u8]),
}

impl<'a> Particle<'a> {
    /// The type, as sent.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Null => NULL,
            Self::Integer(_) => INTEGER,
            Self::Double(_) => DOUBLE,
            Self::String(_) => STRING,
            Self::Blob(_) => BLOB,
            Self::Language(kind, _) => *kind,
            Self::Bool(_) => BOOL,
            Self::Hll(_) => HLL,
            Self::Map(_) => MAP,
            Self::List(_) => LIST,
            Self::GeoJson(_) => GEOJSON,
        }
    }

    /// A value of this type.
    ///
    /// # Errors
    /// [`DecodeError`] when the type is not known, its bytes have not its size, or are no list or
    /// map.
    pub fn decode(kind: u8, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let eight = |what| {
            let (value, max) = (bytes.len() as u64, 8);
            <[u8; 8]>::try_from(bytes).map_err(|_| DecodeError::Length { what, value, max })
        };
        match kind {
            NULL => Ok(Self::Null),
            INTEGER => eight("integer").map(|b| Self::Integer(i64::from_be_bytes(b))),
            DOUBLE => eight("double").map(|b| Self::Double(f64::from_be_bytes(b))),
            STRING => Ok(Self::String(bytes)),
            BLOB => Ok(Self::Blob(bytes)),
            kind if LANGUAGES.contains(&kind) => Ok(Self::Language(kind, bytes)),
            BOOL => match bytes {
                [byte] => Ok(Self::Bool(*byte != 0)),
                _ => {
                    let value = bytes.len() as u64;
                    Err(DecodeError::Length { what: "boolean", value, max: 1 })
                }
            },
            HLL => Ok(Self::Hll(bytes)),
            MAP => msgpack::check(bytes, msgpack::Shape::Map).map(|()| Self::Map(bytes)),
            LIST => msgpack::check(bytes, msgpack::Shape::List).map(|()| Self::List(bytes)),
            GEOJSON => {
                let truncated = DecodeError::Truncated { what: "GeoJSON", offset: 0 };
                let (head, rest) = bytes.split_first_chunk::<3>().ok_or(truncated.clone())?;
                let cells = usize::from(u16::from_be_bytes([head[1], head[2]]));
                rest.get(cells * 8..).map(Self::GeoJson).ok_or(truncated)
            }
            other => Err(DecodeError::Unknown { what: "particle type", value: u64::from(other) }),
        }
    }

    /// Bytes of the value as sent.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Integer(_) | Self::Double(_) => 8,
            Self::Bool(_) => 1,
            Self::String(bytes)
            | Self::Blob(bytes)
            | Self::Language(_, bytes)
            | Self::Hll(bytes)
            | Self::Map(bytes)
            | Self::List(bytes) => bytes.len(),
            Self::GeoJson(text) => GEOJSON_HEAD.len() + text.len(),
        }
    }

    /// Appends the value's bytes.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Integer(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Double(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Bool(value) => out.push(u8::from(*value)),
            Self::String(bytes)
            | Self::Blob(bytes)
            | Self::Language(_, bytes)
            | Self::Hll(bytes)
            | Self::Map(bytes)
            | Self::List(bytes) => out.extend_from_slice(bytes),
            Self::GeoJson(text) => {
                out.extend_from_slice(&GEOJSON_HEAD);
                out.extend_from_slice(text);
            }
        }
    }
}
