//! Lists and maps: MessagePack, with the type of a particle before the bytes of text and blobs.
//!
//! Written are the shortest forms of MessagePack, as Aerospike's clients write them; blobs are
//! text of another type. Read is any well-formed value; the order of maps stands in an extension
//! at the place of their first key, and counts as an entry.

use super::DecodeError;
use super::particle::{BLOB, STRING};
use super::reader::Reader;

/// Lists in lists: deeper ones are refused, so that hostile bytes cost no stack or time.
pub const DEPTH_MAX: usize = 32;

/// What the outermost value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An array.
    List,
    /// A map.
    Map,
}

/// One step through a value: containers say how many values follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// Nothing.
    Nil,
    /// Yes or no.
    Bool(bool),
    /// A number; those beyond `i64::MAX` are [`Item::Unsigned`].
    Integer(i64),
    /// A number beyond `i64::MAX`.
    Unsigned(u64),
    /// A number with a fraction.
    Double(f64),
    /// Text, a blob, or GeoJSON: the type of the particle is the first byte.
    Bytes(&'a [u8]),
    /// A list of so many values.
    List(usize),
    /// A map of so many keys, each followed by its value.
    Map(usize),
    /// An extension: its type and bytes. Orders of maps and wildcards are such.
    Extension(u8, &'a [u8]),
}

/// Steps through a value.
#[derive(Debug, Clone)]
pub struct Items<'a>(Reader<'a>);

impl<'a> Items<'a> {
    /// At the start of a value.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    /// Whether nothing follows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&mut self, size: usize) -> Result<Item<'a>, DecodeError> {
        self.0.take(size, "text in a list or map").map(Item::Bytes)
    }

    /// A container of `count` values of at least a byte each.
    fn container(
        &self,
        count: usize,
        values: usize,
        item: Item<'a>,
    ) -> Result<Item<'a>, DecodeError> {
        let (value, max) = (count as u64, (self.0.rest().len() / values) as u64);
        if value <= max {
            return Ok(item);
        }
        Err(DecodeError::Length { what: "a list or map", value, max })
    }

    fn extension(&mut self, size: usize) -> Result<Item<'a>, DecodeError> {
        let kind = self.0.u8("an extension")?;
        Ok(Item::Extension(kind, self.0.take(size, "an extension")?))
    }

    fn unsigned(value: u64) -> Item<'a> {
        i64::try_from(value).map_or(Item::Unsigned(value), Item::Integer)
    }

    /// The next step.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes end, or are no MessagePack.
    pub fn step(&mut self) -> Result<Item<'a>, DecodeError> {
        const WHAT: &str = "a value in a list or map";
        let marker = self.0.u8(WHAT)?;
        let low = |bits: u8| usize::from(marker & bits);
        Ok(match marker {
            0x00..=0x7F => Item::Integer(i64::from(marker)),
            0x80..=0x8F => return self.container(low(0x0F), 2, Item::Map(low(0x0F))),
            0x90..=0x9F => return self.container(low(0x0F), 1, Item::List(low(0x0F))),
            0xA0..=0xBF => return self.bytes(low(0x1F)),
            0xC0 => Item::Nil,
            0xC2 | 0xC3 => Item::Bool(marker == 0xC3),
            0xC4 | 0xD9 => {
                let size = self.0.u8(WHAT)?;
                return self.bytes(usize::from(size));
            }
            0xC5 | 0xDA => {
                let size = self.0.u16(WHAT)?;
                return self.bytes(usize::from(size));
            }
            0xC6 | 0xDB => {
                let size = self.0.u32(WHAT)?;
                return self.bytes(size as usize);
            }
            0xC7 => {
                let size = self.0.u8(WHAT)?;
                return self.extension(usize::from(size));
            }
            0xC8 => {
                let size = self.0.u16(WHAT)?;
                return self.extension(usize::from(size));
            }
            0xC9 => {
                let size = self.0.u32(WHAT)?;
                return self.extension(size as usize);
            }
            0xCA => Item::Double(f64::from(f32::from_be_bytes(self.0.array(WHAT)?))),
            0xCB => Item::Double(f64::from_be_bytes(self.0.array(WHAT)?)),
            0xCC => Item::Integer(i64::from(self.0.u8(WHAT)?)),
            0xCD => Item::Integer(i64::from(self.0.u16(WHAT)?)),
            0xCE => Item::Integer(i64::from(self.0.u32(WHAT)?)),
            0xCF => Self::unsigned(u64::from_be_bytes(self.0.array(WHAT)?)),
            0xD0 => Item::Integer(i64::from(i8::from_be_bytes(self.0.array(WHAT)?))),
            0xD1 => Item::Integer(i64::from(i16::from_be_bytes(self.0.array(WHAT)?))),
            0xD2 => Item::Integer(i64::from(i32::from_be_bytes(self.0.array(WHAT)?))),
            0xD3 => Item::Integer(i64::from_be_bytes(self.0.array(WHAT)?)),
            0xD4..=0xD8 => return self.extension(1 << (marker - 0xD4)),
            0xDC => {
                let count = usize::from(self.0.u16(WHAT)?);
                return self.container(count, 1, Item::List(count));
            }
            0xDD => {
                let count = self.0.u32(WHAT)? as usize;
                return self.container(count, 1, Item::List(count));
            }
            0xDE => {
                let count = usize::from(self.0.u16(WHAT)?);
                return self.container(count, 2, Item::Map(count));
            }
            0xDF => {
                let count = self.0.u32(WHAT)? as usize;
                return self.container(count, 2, Item::Map(count));
            }
            0xE0..=0xFF => Item::Integer(i64::from(marker as i8)),
            0xC1 => {
                return Err(DecodeError::Unknown { what: WHAT, value: u64::from(marker) });
            }
        })
    }
}

/// Whether bytes are one whole list or map, and nothing more.
///
/// # Errors
/// [`DecodeError`] when they are not, or it is deeper than [`DEPTH_MAX`].
pub fn check(bytes: &[u8], shape: Shape) -> Result<(), DecodeError> {
    let mut items = Items::new(bytes);
    // How many values each open container still wants.
    let mut open = [0_usize; DEPTH_MAX];
    let mut depth = 0;
    loop {
        let item = items.step()?;
        let inside = match item {
            Item::List(count) => Some(count),
            Item::Map(count) => Some(2 * count),
            _ => None,
        };
        let fits =
            matches!((shape, item), (Shape::List, Item::List(_)) | (Shape::Map, Item::Map(_)));
        if depth == 0 && !fits {
            let value = bytes.first().copied().map_or(0, u64::from);
            return Err(DecodeError::Unknown { what: "the first byte of a list or map", value });
        }
        // Counted with its first byte; what it contains is counted in it.
        if depth > 0 {
            open[depth - 1] -= 1;
        }
        match (inside, open.get_mut(depth)) {
            (Some(count), Some(place)) => {
                *place = count;
                depth += 1;
            }
            (Some(_), None) => {
                let (value, max) = (depth as u64 + 1, DEPTH_MAX as u64);
                return Err(DecodeError::Length { what: "nested lists or maps", value, max });
            }
            (None, _) => {}
        }
        while depth > 0 && open[depth - 1] == 0 {
            depth -= 1;
        }
        if depth == 0 {
            break;
        }
    }
    match items.0.rest().len() as u64 {
        0 => Ok(()),
        value => Err(DecodeError::Length { what: "bytes behind a list or map", value, max: 0 }),
    }
}

/// Appends the head of a list of so many values.
pub fn put_list(out: &mut Vec<u8>, count: usize) {
    match (u8::try_from(count), u16::try_from(count)) {
        (Ok(count @ 0..=15), _) => out.push(0x90 | count),
        (_, Ok(count)) => put_sized(out, 0xDC, &count.to_be_bytes()),
        _ => put_sized(out, 0xDD, &(count as u32).to_be_bytes()),
    }
}

/// Appends the head of a map of so many keys, each to be followed by its value.
pub fn put_map(out: &mut Vec<u8>, count: usize) {
    match (u8::try_from(count), u16::try_from(count)) {
        (Ok(count @ 0..=15), _) => out.push(0x80 | count),
        (_, Ok(count)) => put_sized(out, 0xDE, &count.to_be_bytes()),
        _ => put_sized(out, 0xDF, &(count as u32).to_be_bytes()),
    }
}

/// Appends a number.
pub fn put_integer(out: &mut Vec<u8>, value: i64) {
    match value {
        -32..=127 => out.push(value as u8),
        128..=0xFF => put_sized(out, 0xCC, &[value as u8]),
        0x100..=0xFFFF => put_sized(out, 0xCD, &(value as u16).to_be_bytes()),
        0x1_0000..=0xFFFF_FFFF => put_sized(out, 0xCE, &(value as u32).to_be_bytes()),
        0x1_0000_0000.. => put_sized(out, 0xCF, &value.to_be_bytes()),
        -0x80..=-33 => put_sized(out, 0xD0, &[value as u8]),
        -0x8000..=-0x81 => put_sized(out, 0xD1, &(value as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => put_sized(out, 0xD2, &(value as i32).to_be_bytes()),
        _ => put_sized(out, 0xD3, &value.to_be_bytes()),
    }
}

/// Appends a double.
pub fn put_double(out: &mut Vec<u8>, value: f64) {
    put_sized(out, 0xCB, &value.to_be_bytes());
}

/// Appends nothing, as a value.
pub fn put_nil(out: &mut Vec<u8>) {
    out.push(0xC0);
}

/// Appends yes or no.
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xC3 } else { 0xC2 });
}

/// Appends text.
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    put_raw(out, STRING, text.as_bytes());
}

/// Appends a blob.
pub fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_raw(out, BLOB, bytes);
}

fn put_raw(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    let size = bytes.len() + 1;
    match (u8::try_from(size), u16::try_from(size)) {
        (Ok(size @ 0..=31), _) => out.push(0xA0 | size),
        (Ok(size), _) => put_sized(out, 0xD9, &[size]),
        (_, Ok(size)) => put_sized(out, 0xDA, &size.to_be_bytes()),
        _ => put_sized(out, 0xDB, &(size as u32).to_be_bytes()),
    }
    put_sized(out, kind, bytes);
}

fn put_sized(out: &mut Vec<u8>, marker: u8, bytes: &[u8]) {
    out.push(marker);
    out.extend_from_slice(bytes);
}
