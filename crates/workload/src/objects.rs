//! Objects: what the fields of a record hold, a kind each, and their bytes.
//!
//! In: the values that an object specification of asbench describes (see
//! [`crate::asbench::object`]), a seed. Out: bytes, written in place without allocating: integers,
//! doubles and booleans as big-endian numbers of 8, 8 and 1 bytes, text and blobs as they are,
//! lists and maps in MessagePack with the leading type byte that Aerospike gives texts (3) and
//! blobs (4) inside of them. Source: asbench's object specifications; MessagePack's
//! specification. Ranges are inclusive; texts are of `0-9a-z`.

use crate::random::{GOLDEN, mix, scale};

/// What a value is, whatever the database calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A signed number of 8 bytes.
    Integer,
    /// A number of IEEE 754.
    Double,
    /// True or false, a byte.
    Boolean,
    /// UTF-8.
    Text,
    /// Bytes.
    Blob,
    /// A list of MessagePack.
    List,
    /// A map of MessagePack.
    Map,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Drawn from a range; a constant where both ends are equal.
    Integer {
        /// Least.
        least: i64,
        /// Most.
        most: i64,
    },
    /// A number from 0 to 1.
    Double,
    /// Always this one.
    DoubleOf(f64),
    /// Either.
    Boolean,
    /// Always this one.
    BooleanOf(bool),
    /// Of `0-9a-z`, so many bytes.
    Text(u32),
    /// Always this one.
    TextOf(String),
    /// So many bytes.
    Blob(u32),
    /// Of values.
    List(Vec<Value>),
    /// Of keys and values.
    Map(Vec<(Value, Value)>),
}

/// Of MessagePack, by the families that are written here.
const FIXED_MAP: u8 = 0x80;
const FIXED_LIST: u8 = 0x90;
const LIST_16: u8 = 0xdc;
const MAP_16: u8 = 0xde;
const FALSE: u8 = 0xc2;
const DOUBLE: u8 = 0xcb;
const SIGNED_64: u8 = 0xd3;
const UNSIGNED_64: u8 = 0xcf;
const TEXT_32: u8 = 0xdb;
const BLOB_32: u8 = 0xc6;
/// What Aerospike puts before texts and blobs in lists and maps.
const TEXT_TYPE: u8 = 3;
const BLOB_TYPE: u8 = 4;
/// Head of a number, text or blob inside a list or map, at most; of its length as well.
const HEAD: usize = 9;

/// Characters of texts.
const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

impl Value {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Integer { .. } => ValueKind::Integer,
            Self::Double | Self::DoubleOf(_) => ValueKind::Double,
            Self::Boolean | Self::BooleanOf(_) => ValueKind::Boolean,
            Self::Text(_) | Self::TextOf(_) => ValueKind::Text,
            Self::Blob(_) => ValueKind::Blob,
            Self::List(_) => ValueKind::List,
            Self::Map(_) => ValueKind::Map,
        }
    }

    /// Most bytes of it as a field of a record.
    #[must_use]
    pub fn size_max(&self) -> usize {
        match self {
            Self::Integer { .. } | Self::Double | Self::DoubleOf(_) => 8,
            Self::Boolean | Self::BooleanOf(_) => 1,
            Self::Text(size) | Self::Blob(size) => *size as usize,
            Self::TextOf(text) => text.len(),
            Self::List(values) => HEAD + values.iter().map(Self::packed_max).sum::<usize>(),
            Self::Map(pairs) => {
                let pair = |(key, value): &(Self, Self)| key.packed_max() + value.packed_max();
                HEAD + pairs.iter().map(pair).sum::<usize>()
            }
        }
    }

    fn packed_max(&self) -> usize {
        HEAD + self.size_max()
    }

    /// Writes it to the front of `out`; returns its size in bytes.
    ///
    /// # Panics
    /// When `out` is shorter than [`Self::size_max`].
    pub(crate) fn write(&self, seed: u64, out: &mut [u8]) -> usize {
        let mut words = Words(seed);
        match self {
            Self::List(_) | Self::Map(_) => {
                let mut to = Packer { out, at: 0 };
                self.pack(&mut words, &mut to);
                to.at
            }
            _ => self.plain(&mut words, out),
        }
    }

    /// A value by itself.
    fn plain(&self, words: &mut Words, out: &mut [u8]) -> usize {
        let number = |out: &mut [u8], bytes: [u8; 8]| {
            out[..8].copy_from_slice(&bytes);
            8
        };
        match self {
            Self::Integer { least, most } => {
                number(out, words.between(*least, *most).to_be_bytes())
            }
            Self::Double => number(out, words.unit().to_be_bytes()),
            Self::DoubleOf(value) => number(out, value.to_be_bytes()),
            Self::Boolean => {
                out[0] = u8::from(words.next() >> 63 == 1);
                1
            }
            Self::BooleanOf(value) => {
                out[0] = u8::from(*value);
                1
            }
            Self::Text(size) => {
                let out = &mut out[..*size as usize];
                for letters in out.chunks_mut(8) {
                    // The word is a fraction; each letter is the whole part of 36 times what the
                    // letter before has left.
                    let mut word = words.next();
                    for letter in letters {
                        let wide = u128::from(word) * LETTERS.len() as u128;
                        *letter = LETTERS[(wide >> 64) as usize];
                        word = wide as u64;
                    }
                }
                out.len()
            }
            Self::TextOf(text) => {
                out[..text.len()].copy_from_slice(text.as_bytes());
                text.len()
            }
            Self::Blob(size) => {
                let out = &mut out[..*size as usize];
                for part in out.chunks_mut(8) {
                    part.copy_from_slice(&words.next().to_le_bytes()[..part.len()]);
                }
                out.len()
            }
            Self::List(_) | Self::Map(_) => 0,
        }
    }

    /// A value inside a list or map.
    fn pack(&self, words: &mut Words, to: &mut Packer<'_>) {
        match self {
            Self::Integer { least, most } => to.integer(words.between(*least, *most)),
            Self::Double | Self::DoubleOf(_) => {
                to.byte(DOUBLE);
                to.at += self.plain(words, &mut to.out[to.at..]);
            }
            Self::Boolean => to.byte(FALSE + u8::from(words.next() >> 63 == 1)),
            Self::BooleanOf(value) => to.byte(FALSE + u8::from(*value)),
            Self::Text(_) | Self::TextOf(_) => to.sized(self, TEXT_32, TEXT_TYPE, words),
            Self::Blob(_) => to.sized(self, BLOB_32, BLOB_TYPE, words),
            Self::List(values) => {
                to.count(values.len(), FIXED_LIST, LIST_16);
                values.iter().for_each(|value| value.pack(words, to));
            }
            Self::Map(pairs) => {
                to.count(pairs.len(), FIXED_MAP, MAP_16);
                for (key, value) in pairs {
                    key.pack(words, to);
                    value.pack(words, to);
                }
            }
        }
    }
}

/// The random words of one value.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        let wide = most.wrapping_sub(least).cast_unsigned();
        match wide.checked_add(1) {
            Some(count) => least.wrapping_add(scale(self.next(), count).cast_signed()),
            None => self.next().cast_signed(),
        }
    }
}

/// Where a list or map is written to.
struct Packer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Packer<'_> {
    fn byte(&mut self, byte: u8) {
        self.out[self.at] = byte;
        self.at += 1;
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn integer(&mut self, value: i64) {
        match value {
            0..=0x7f => self.byte(value as u8),
            _ => {
                self.byte(if value < 0 { SIGNED_64 } else { UNSIGNED_64 });
                self.bytes(&value.to_be_bytes());
            }
        }
    }

    fn count(&mut self, count: usize, fixed: u8, wide: u8) {
        match count {
            0..=15 => self.byte(fixed | count as u8),
            _ => {
                self.byte(wide);
                self.bytes(&(count as u16).to_be_bytes());
            }
        }
    }

    /// A text or blob behind its length and its type byte, which counts.
    fn sized(&mut self, value: &Value, head: u8, type_byte: u8, words: &mut Words) {
        self.byte(head);
        let length_at = self.at;
        self.bytes(&[0; 4]);
        self.byte(type_byte);
        let size = value.plain(words, &mut self.out[self.at..]);
        self.at += size;
        let length = (size as u32 + 1).to_be_bytes();
        self.out[length_at..length_at + 4].copy_from_slice(&length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &Value, seed: u64) -> Vec<u8> {
        let mut out = vec![0; value.size_max()];
        let size = value.write(seed, &mut out);
        out.truncate(size);
        out
    }

    #[test]
    fn values_stay_within_their_ranges() {
        let (least, most) = (256, 65_535);
        let values: Vec<i64> = (0..2000)
            .map(|seed| written(&Value::Integer { least, most }, seed))
            .map(|bytes| i64::from_be_bytes(bytes.try_into().unwrap()))
            .collect();
        assert!(values.iter().all(|value| (least..=most).contains(value)));
        // The ends of the range are reached within a fiftieth of it.
        let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        assert!(*low < least + 1300 && *high > most - 1300, "{low} {high}");
        let whole = Value::Integer { least: i64::MIN, most: i64::MAX };
        assert_ne!(written(&whole, 1), written(&whole, 2));
        let text = written(&Value::Text(37), 5);
        assert_eq!(text.len(), 37);
        assert!(text.iter().all(|c| LETTERS.contains(c)));
        assert_eq!(written(&Value::Blob(11), 3).len(), 11);
        let unit = |seed| f64::from_be_bytes(written(&Value::Double, seed).try_into().unwrap());
        assert!((0..100).all(|seed| (0.0..1.0).contains(&unit(seed))));
        assert_eq!(written(&Value::BooleanOf(true), 9), [1]);
        let both: Vec<_> = (0..50).map(|seed| written(&Value::Boolean, seed)[0]).collect();
        assert!(both.contains(&0) && both.contains(&1) && both.iter().all(|b| *b < 2));
    }

    #[test]
    fn lists_and_maps_are_messagepack_with_type_bytes() {
        let list = Value::List(vec![
            Value::Integer { least: 5, most: 5 },
            Value::TextOf("ab".to_owned()),
            Value::BooleanOf(false),
            Value::Integer { least: -2, most: -2 },
        ]);
        let bytes = [
            &[0x94, 5, TEXT_32, 0, 0, 0, 3, TEXT_TYPE, b'a', b'b', FALSE, SIGNED_64][..],
            &(-2i64).to_be_bytes(),
        ]
        .concat();
        assert_eq!(written(&list, 1), bytes);
        let pair = (Value::TextOf("k".to_owned()), Value::Integer { least: 300, most: 300 });
        let map = Value::Map(vec![pair]);
        let bytes =
            [&[0x81, TEXT_32, 0, 0, 0, 2, TEXT_TYPE, b'k', UNSIGNED_64][..], &300u64.to_be_bytes()]
                .concat();
        assert_eq!(written(&map, 1), bytes);
        let long = Value::List(vec![Value::Boolean; 300]);
        assert_eq!(written(&long, 1)[..3], [LIST_16, 1, 44]);
        assert_eq!(written(&long, 1).len(), 303);
    }
}
