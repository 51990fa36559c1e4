//! Columns of `user` profiles: a seed -> the bytes of a value as CQL carries them, for every type
//! that the original generates.
//!
//! Source: cassandra-stress, `generate/values/*.java`, `PartitionIterator.seed`; the CQL binary
//! protocol v4, section 6, for the bytes. Differences: the original draws the sizes of lists and
//! sets from a generator that is seeded with the time, here they follow from the seed; elements of
//! a set stand in the order drawn, each once (the database sorts them). The same holds for the
//! number of values of a `timeuuid` among clustering columns.

use super::distribution::{Distribution, DrawState};
use super::predefined::{IDENTITIES, WORD, fold_bytes, salt};
use super::xorshift::Xorshift;
use std::cmp::Ordering;

/// Spread before the names of columns of profiles.
const PROFILE: &str = "seed for stress";
/// 50 years in ms: timestamps that are drawn by default.
const TIMESTAMPS_MS: i64 = 50 * 365 * 24 * 60 * 60 * 1000;
/// From the start of the calendar of version 1 UUIDs to 1970, in ms.
const UUID_EPOCH_MS: i64 = 12_219_292_800_000;
/// Bytes before a collection and before each of its elements.
const LENGTH: usize = 4;

/// A type of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ScalarType {
    Text,
    Bigint,
    Counter,
    Blob,
    Boolean,
    Decimal,
    Double,
    Float,
    Inet,
    Int,
    Varint,
    Timestamp,
    Uuid,
    Timeuuid,
    Tinyint,
    Smallint,
    Time,
    Date,
}

/// A type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// One value.
    Scalar(ScalarType),
    /// Values in order.
    List(ScalarType),
    /// Values, each once.
    Set(ScalarType),
}

impl ScalarType {
    /// The type of that CQL name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "ascii" | "text" | "varchar" => Self::Text,
            "bigint" => Self::Bigint,
            "counter" => Self::Counter,
            "blob" => Self::Blob,
            "boolean" => Self::Boolean,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "float" => Self::Float,
            "inet" => Self::Inet,
            "int" => Self::Int,
            "varint" => Self::Varint,
            "timestamp" => Self::Timestamp,
            "uuid" => Self::Uuid,
            "timeuuid" => Self::Timeuuid,
            "tinyint" => Self::Tinyint,
            "smallint" => Self::Smallint,
            "time" => Self::Time,
            "date" => Self::Date,
            _ => return None,
        })
    }

    /// Longest value in bytes, where the size distribution does not say it.
    fn size_max(self) -> usize {
        match self {
            Self::Text | Self::Blob => 0,
            Self::Boolean | Self::Tinyint => 1,
            Self::Smallint => 2,
            Self::Int | Self::Float | Self::Inet | Self::Date => 4,
            Self::Bigint | Self::Counter | Self::Double | Self::Timestamp | Self::Time => 8,
            Self::Varint => 8,
            Self::Decimal => 12,
            Self::Uuid | Self::Timeuuid => 16,
        }
    }
}

/// The three distributions that a profile gives a column; what it leaves open has its default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnSpec {
    /// Identities, and with them how many values there are: `uniform(1..100B)`, of timestamps 50
    /// years of ms.
    pub population: Option<Distribution>,
    /// Characters, bytes or elements: `uniform(4..8)`.
    pub size: Option<Distribution>,
    /// Values in a partition or below the column before, of a clustering column: `fixed(1)`.
    pub cluster: Option<Distribution>,
}

/// An order of serialised values.
pub(super) type Comparison = fn(&[u8], &[u8]) -> Ordering;

/// A column that values are drawn for.
#[derive(Debug, Clone)]
pub struct ColumnGenerator {
    /// Its type.
    pub column_type: ColumnType,
    salt: i64,
    population: Distribution,
    size: Distribution,
    cluster: Distribution,
}

impl ColumnGenerator {
    /// A column; `name` as the profile writes it, for the salt follows from it.
    #[must_use]
    pub fn new(name: &str, column_type: ColumnType, spec: ColumnSpec) -> Self {
        let last = match column_type.element() {
            ScalarType::Timestamp | ScalarType::Timeuuid => TIMESTAMPS_MS,
            _ => IDENTITIES.1,
        };
        let identities = Distribution::uniform(IDENTITIES.0, last);
        Self {
            column_type,
            salt: salt(&format!("{PROFILE}{name}")),
            population: spec.population.unwrap_or(identities),
            size: spec.size.unwrap_or(Distribution::uniform(4, 8)),
            cluster: spec.cluster.unwrap_or(Distribution::fixed(1)),
        }
    }

    /// How many values there are below one value of the column before.
    #[must_use]
    pub fn cluster(&self) -> &Distribution {
        &self.cluster
    }

    /// The number of values that a clustering column takes below a parent of that seed.
    #[must_use]
    #[inline]
    pub fn children(&self, parent_seed: i64) -> i64 {
        self.cluster.sample(&mut DrawState::seeded(parent_seed ^ !self.salt))
    }

    /// Where this column's draws start for a seed.
    #[must_use]
    #[inline]
    pub fn seeded(&self, seed: i64) -> ColumnDraws {
        let (identity, size) = match self.column_type {
            ColumnType::Scalar(_) => (seed ^ self.salt, 0),
            _ => (seed.wrapping_mul(31) ^ self.salt, seed ^ self.salt),
        };
        ColumnDraws { identity: DrawState::seeded(identity), size: DrawState::seeded(size) }
    }

    fn sizes_max(&self) -> usize {
        usize::try_from(self.size.max()).unwrap_or(0)
    }

    fn scalar_room(&self) -> usize {
        match self.column_type.element() {
            ScalarType::Text | ScalarType::Blob => {
                self.sizes_max().saturating_add(WORD - 1) / WORD * WORD
            }
            other => other.size_max(),
        }
    }

    /// Bytes that [`Self::write`] needs at most.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.column_type {
            ColumnType::Scalar(_) => self.scalar_room(),
            _ => {
                let each = self.scalar_room().saturating_add(LENGTH);
                LENGTH.saturating_add(self.sizes_max().saturating_mul(each))
            }
        }
    }

    /// Writes the next value to the front of `out`; returns its size in bytes. What stands behind
    /// it in the first [`Self::room`] bytes may be overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`Self::room`] and the value does not fit.
    pub fn write(&self, draws: &mut ColumnDraws, out: &mut [u8]) -> usize {
        let unique = match self.column_type {
            ColumnType::Scalar(scalar) => return self.write_scalar(scalar, draws, out),
            ColumnType::List(_) => false,
            ColumnType::Set(_) => true,
        };
        let count = self.size.sample(&mut draws.size).clamp(0, i64::from(i32::MAX));
        let (mut at, mut kept) = (LENGTH, 0u32);
        for _ in 0..count {
            let value = at + LENGTH;
            let size = self.write_scalar(self.column_type.element(), draws, &mut out[value..]);
            out[at..value].copy_from_slice(&(size as u32).to_be_bytes());
            if !(unique && holds(&out[LENGTH..at], &out[value..value + size])) {
                at = value + size;
                kept += 1;
            }
        }
        out[..LENGTH].copy_from_slice(&kept.to_be_bytes());
        at
    }

    fn write_scalar(&self, scalar: ScalarType, draws: &mut ColumnDraws, out: &mut [u8]) -> usize {
        let mut put = |bytes: &[u8]| {
            out[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        match scalar {
            ScalarType::Double => put(&self.real(draws).to_be_bytes()),
            ScalarType::Float => put(&(self.real(draws) as f32).to_be_bytes()),
            _ => {
                let id = self.population.sample(&mut draws.identity);
                match scalar {
                    ScalarType::Text => self.words(id, out, |word| {
                        const SEVEN: u64 = 0x7F7F_7F7F_7F7F_7F7F;
                        ((word & SEVEN) + 0x2020_2020_2020_2020) & SEVEN
                    }),
                    ScalarType::Blob => self.words(id, out, |word| word),
                    // Always true, as in the original.
                    ScalarType::Boolean => put(&[1]),
                    ScalarType::Decimal => {
                        out[..LENGTH].fill(0);
                        LENGTH + put_varint(id, &mut out[LENGTH..])
                    }
                    ScalarType::Varint => put_varint(id, out),
                    ScalarType::Inet | ScalarType::Int => put(&(id as i32).to_be_bytes()),
                    // Days from 1970 on, on the wire from 2^31 days before it.
                    ScalarType::Date => put(&(id as u32 ^ 1 << 31).to_be_bytes()),
                    ScalarType::Tinyint => put(&(id as i8).to_be_bytes()),
                    ScalarType::Smallint => put(&(id as i16).to_be_bytes()),
                    ScalarType::Uuid => put(&pair(id.cast_unsigned(), id.cast_unsigned())),
                    ScalarType::Timeuuid => put(&pair(uuid_time(id), self.salt.cast_unsigned())),
                    _ => put(&id.to_be_bytes()),
                }
            }
        }
    }

    fn real(&self, draws: &mut ColumnDraws) -> f64 {
        self.population.sample_f64(&mut draws.identity)
    }

    fn words(&self, id: i64, out: &mut [u8], shape: impl Fn(u64) -> u64) -> usize {
        let size = match self.size.constant() {
            Some(size) => size,
            None => self.size.sample(&mut DrawState::seeded(id)),
        };
        let size = usize::try_from(size).unwrap_or(0);
        let mut words = Xorshift::seeded(!id);
        let (blocks, _) = out[..size.next_multiple_of(WORD)].as_chunks_mut::<WORD>();
        for block in blocks {
            *block = shape(words.next_i64().cast_unsigned()).to_le_bytes();
        }
        size
    }

    /// The seed of what lies below a value of this column: of the partition's rows for its keys,
    /// of the next column's values for a clustering column.
    #[must_use]
    pub fn fold(&self, seed: i64, value: &[u8]) -> i64 {
        let ColumnType::Scalar(scalar) = self.column_type else { return fold_bytes(seed, value) };
        let number = match scalar {
            ScalarType::Text
            | ScalarType::Blob
            | ScalarType::Boolean
            | ScalarType::Inet
            | ScalarType::Timestamp => return fold_bytes(seed, value),
            ScalarType::Decimal => signed(value.get(LENGTH..).unwrap_or_default()),
            ScalarType::Double => real_64(value) as i64,
            ScalarType::Float => real_32(value) as i64,
            ScalarType::Date => i64::from(signed(value) as i32 ^ i32::MIN),
            ScalarType::Uuid | ScalarType::Timeuuid => {
                let (high, low) = halves(value);
                high ^ low
            }
            _ => signed(value),
        };
        seed.wrapping_mul(31).wrapping_add(number)
    }

    /// How the original orders values of this column; None where it does not.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        let ColumnType::Scalar(scalar) = self.column_type else { return None };
        Some(match scalar {
            ScalarType::Inet => return None,
            ScalarType::Text | ScalarType::Boolean | ScalarType::Date => |a, b| a.cmp(b),
            // Bytes are signed there.
            ScalarType::Blob => |a, b| {
                let left = a.iter().map(|byte| byte.cast_signed());
                left.cmp(b.iter().map(|byte| byte.cast_signed()))
            },
            ScalarType::Decimal => |a, b| signed(&a[LENGTH..]).cmp(&signed(&b[LENGTH..])),
            ScalarType::Double => |a, b| real_64(a).total_cmp(&real_64(b)),
            ScalarType::Float => |a, b| real_32(a).total_cmp(&real_32(b)),
            // Two signed halves.
            ScalarType::Uuid | ScalarType::Timeuuid => |a, b| halves(a).cmp(&halves(b)),
            _ => |a, b| signed(a).cmp(&signed(b)),
        })
    }
}

impl ColumnGenerator {
    /// How databases order two values; as their bytes where that is not known.
    pub(super) fn compare_stored(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ColumnType::Scalar(scalar) = self.column_type else { return a.cmp(b) };
        match scalar {
            ScalarType::Text
            | ScalarType::Blob
            | ScalarType::Boolean
            | ScalarType::Inet
            | ScalarType::Date => a.cmp(b),
            // By version; a drawn one is of version 1 by chance alone.
            ScalarType::Uuid => {
                let (left, right) = (uuid_rank(a), uuid_rank(b));
                left.cmp(&right).then_with(|| a.cmp(b))
            }
            // The time first, then signed bytes.
            ScalarType::Timeuuid => {
                let signed = |byte: &u8| byte.cast_signed();
                let bytes = || a.iter().map(signed).cmp(b.iter().map(signed));
                ticks_of(a).cmp(&ticks_of(b)).then_with(bytes)
            }
            _ => match self.comparison() {
                Some(compare) => compare(a, b),
                None => a.cmp(b),
            },
        }
    }

    /// Whether what was read is what was written: of sets in any order.
    pub(super) fn is_same(&self, written: &[u8], read: &[u8]) -> bool {
        match (self.column_type, written.get(LENGTH..), read.get(LENGTH..)) {
            (ColumnType::Set(_), Some(elements), Some(others)) => {
                // Neither has one twice.
                written[..LENGTH] == read[..LENGTH]
                    && elements.len() == others.len()
                    && each(elements).all(|element| holds(others, element))
            }
            _ => written == read,
        }
    }
}

impl ColumnType {
    fn element(self) -> ScalarType {
        match self {
            Self::Scalar(scalar) | Self::List(scalar) | Self::Set(scalar) => scalar,
        }
    }
}

/// Where a column is in its draws.
#[derive(Debug, Clone)]
pub struct ColumnDraws {
    identity: DrawState,
    /// Of collections; other sizes follow from the identity.
    size: DrawState,
}

/// Elements that stand behind their lengths.
fn each(mut elements: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = elements.split_first_chunk::<LENGTH>()?;
        let size = (u32::from_be_bytes(*length) as usize).min(rest.len());
        elements = &rest[size..];
        Some(&rest[..size])
    })
}

/// Whether one of the elements is `value`.
fn holds(elements: &[u8], value: &[u8]) -> bool {
    each(elements).any(|element| element == value)
}

/// The time of a version 1 UUID, in steps of 100 ns.
fn ticks_of(uuid: &[u8]) -> u64 {
    let high = halves(uuid).0.cast_unsigned();
    (high & 0x0FFF) << 48 | (high >> 16 & 0xFFFF) << 32 | high >> 32
}

/// What UUIDs are ordered by first: version, and time where that is 1.
fn uuid_rank(uuid: &[u8]) -> (u64, u64) {
    match halves(uuid).0.cast_unsigned() >> 12 & 0x0F {
        1 => (1, ticks_of(uuid)),
        version => (version, 0),
    }
}

/// The shortest two's complement.
fn put_varint(number: i64, out: &mut [u8]) -> usize {
    let bytes = number.to_be_bytes();
    let sign_bits = if number < 0 { number.leading_ones() } else { number.leading_zeros() };
    let skip = (sign_bits as usize - 1) / 8;
    out[..8 - skip].copy_from_slice(&bytes[skip..]);
    8 - skip
}

/// A big-endian two's complement of at most 8 bytes.
fn signed(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|byte| *byte > 0x7F) { -1 } else { 0 };
    bytes.iter().fold(sign, |number: i64, byte| number << 8 | i64::from(*byte))
}

fn real_64(bytes: &[u8]) -> f64 {
    f64::from_bits(signed(bytes).cast_unsigned())
}

fn real_32(bytes: &[u8]) -> f32 {
    f32::from_bits(signed(bytes) as u32)
}

/// The two halves of a UUID.
fn halves(bytes: &[u8]) -> (i64, i64) {
    let (high, low) = bytes.split_at(bytes.len() / 2);
    (signed(high), signed(low))
}

fn pair(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// The upper half of a version 1 UUID of a time in ms since 1970.
fn uuid_time(time_ms: i64) -> u64 {
    let ticks = time_ms.wrapping_add(UUID_EPOCH_MS).wrapping_mul(10_000).cast_unsigned();
    ticks << 32 | (ticks >> 16) & 0xFFFF_0000 | 0x1000 | (ticks >> 48) & 0x0FFF
}
