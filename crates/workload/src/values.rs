//! Values: (seed of an op, column) -> bytes of a field, written in place.
//!
//! Random text follows the marginals of YCSB's RandomByteIterator: at each position
//! `(bits & mask) + ' '`, the masks 31, 63, 95 taking turns. Eight bytes come out of each 64-bit
//! word, one of three mask words at a time. Not reproduced: the original cuts six bytes out of 30
//! bits of one int with overlaps, so its neighbouring bytes are correlated; here they are
//! independent. Verified text follows CoreWorkload.buildDeterministicValue: key, `:`, field name,
//! then `:` and Java's String.hashCode of all before it, repeated and cut at the length.

use crate::cassandra_stress::{self, BlobGenerator, DrawState, fold_bytes};
use crate::digits::Digits;
use crate::lengths::Lengths;
use crate::objects::{Value, ValueKind};
use crate::random::{GOLDEN, mix};

/// Where the bytes of a value come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// Random printable text of a drawn length.
    Random(Lengths),
    /// Text that follows from key and field name, of this length in bytes.
    Verified {
        /// Length in bytes.
        size: u32,
    },
    /// Blobs of cassandra-stress, which follow from the key.
    Blobs {
        /// By column.
        columns: Vec<BlobGenerator>,
        /// What is read is compared.
        verify: bool,
    },
    /// What counters grow by, 8 bytes each.
    Increments(cassandra_stress::Distribution),
    /// Of a kind each.
    Objects {
        /// By column.
        values: Vec<Value>,
        /// All records hold the same.
        fixed: bool,
    },
}

/// What fields hold.
#[derive(Debug, Clone)]
pub struct Values {
    /// Where the bytes come from.
    pub content: Content,
}

/// Bytes of a word, the part that random text is written in.
const WORD: usize = 8;
/// Masks of as many successive positions; words take turns over a pattern of 24 positions.
const MASKS: [u64; 3] = [
    u64::from_le_bytes([31, 63, 95, 31, 63, 95, 31, 63]),
    u64::from_le_bytes([95, 31, 63, 95, 31, 63, 95, 31]),
    u64::from_le_bytes([63, 95, 31, 63, 95, 31, 63, 95]),
];
/// A space at each position; adding it to a masked byte never carries.
const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
/// Keeps the word of a length apart from the words of the bytes.
const LENGTH_SALT: u64 = 0x6C65_6E67_7468_0001;

impl Values {
    /// Longest value of one column in bytes.
    #[must_use]
    pub fn value_size_max(&self) -> usize {
        match &self.content {
            Content::Random(lengths) => lengths.max() as usize,
            Content::Verified { size } => *size as usize,
            Content::Blobs { columns, .. } => {
                columns.iter().map(BlobGenerator::size_max).max().unwrap_or(0)
            }
            Content::Increments(_) => size_of::<i64>(),
            Content::Objects { values, .. } => {
                values.iter().map(Value::size_max).max().unwrap_or(0)
            }
        }
    }

    /// What a column holds, where each has a kind of its own.
    #[must_use]
    pub(crate) fn kind(&self, column: usize) -> Option<ValueKind> {
        match &self.content {
            Content::Objects { values, .. } => values.get(column).map(Value::kind),
            _ => None,
        }
    }

    /// Bytes that [`Values::write_value`] needs: random text is written in whole words, so that no
    /// copy depends on its length.
    #[must_use]
    pub fn value_room(&self) -> usize {
        match &self.content {
            Content::Random(lengths) => (lengths.max() as usize).next_multiple_of(WORD),
            Content::Verified { size } => *size as usize,
            Content::Blobs { columns, .. } => {
                columns.iter().map(BlobGenerator::room).max().unwrap_or(0)
            }
            Content::Increments(_) | Content::Objects { .. } => self.value_size_max(),
        }
    }

    /// The blobs of the row with this key, where values are blobs that follow from it.
    #[must_use]
    #[inline]
    pub fn blobs_of(&self, key: &[u8]) -> Option<Blobs<'_>> {
        match &self.content {
            Content::Blobs { columns, .. } => Some(Blobs { columns, seed: fold_bytes(0, key) }),
            _ => None,
        }
    }

    /// The size of all values in bytes, where they are random text of one length: what
    /// [`Random::write`] is for.
    #[must_use]
    #[inline]
    pub fn random(&self) -> Option<Random> {
        match &self.content {
            Content::Random(Lengths::Constant(size)) => Some(Random::of(*size as usize)),
            _ => None,
        }
    }

    /// Whether values read back can be checked.
    #[must_use]
    pub fn verifies(&self) -> bool {
        matches!(self.content, Content::Verified { .. } | Content::Blobs { verify: true, .. })
    }

    /// Writes one value to the front of `out`; returns its size in bytes. What stands behind it in
    /// the first [`Values::value_room`] bytes may be overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`Values::value_room`] and the value does not fit, or a verified
    /// column has no name.
    #[inline]
    pub fn write_value(
        &self,
        value_seed: u64,
        key_text: &[u8],
        column: usize,
        column_names: &[String],
        out: &mut [u8],
    ) -> usize {
        match &self.content {
            Content::Random(lengths) => {
                let size = match lengths {
                    Lengths::Constant(size) => *size,
                    drawn => drawn.at(mix(seed_of(value_seed, column) ^ LENGTH_SALT)),
                };
                Random::of(size as usize).write(value_seed, column, out)
            }
            Content::Verified { size } => {
                let out = &mut out[..*size as usize];
                let column_name = column_names[column].as_bytes();
                verified(key_text, column_name, out.len(), |at, part| {
                    out[at..at + part.len()].copy_from_slice(part);
                    true
                });
                out.len()
            }
            Content::Blobs { columns, .. } => columns[column].write(fold_bytes(0, key_text), out),
            Content::Increments(by) => {
                let seed = || seed_of(value_seed, column).cast_signed();
                let by = by.constant().unwrap_or_else(|| by.sample(&mut DrawState::seeded(seed())));
                out[..size_of::<i64>()].copy_from_slice(&by.to_be_bytes());
                size_of::<i64>()
            }
            Content::Objects { values, fixed } => {
                let seed = if *fixed { 0 } else { value_seed };
                values[column].write(seed_of(seed, column), out)
            }
        }
    }

    /// Whether `value` is that of the key and column; true when nothing is verified.
    #[must_use]
    pub fn verify(
        &self,
        key_text: &[u8],
        column: usize,
        column_names: &[String],
        value: &[u8],
    ) -> bool {
        match &self.content {
            Content::Random(_) | Content::Increments(_) | Content::Objects { .. } => true,
            Content::Blobs { verify: false, .. } => true,
            Content::Blobs { columns, .. } => {
                columns[column].verify(fold_bytes(0, key_text), value)
            }
            Content::Verified { size } => {
                let column_name = column_names[column].as_bytes();
                value.len() == *size as usize
                    && verified(key_text, column_name, value.len(), |at, part| {
                        value[at..].starts_with(part)
                    })
            }
        }
    }
}

/// The blobs of one row. Its seed is taken from the key once for all columns.
#[derive(Debug, Clone, Copy)]
pub struct Blobs<'a> {
    columns: &'a [BlobGenerator],
    seed: i64,
}

impl Blobs<'_> {
    /// As [`Values::write_value`].
    ///
    /// # Panics
    /// As that, and when there is no such column.
    #[inline]
    pub fn write(&self, column: usize, out: &mut [u8]) -> usize {
        self.columns[column].write(self.seed, out)
    }

    /// Whether `value` is that of the column.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn verify(&self, column: usize, value: &[u8]) -> bool {
        self.columns[column].verify(self.seed, value)
    }
}

/// Odd constants of [`Random`]'s generator, from the digits of pi.
const STEP: u64 = 0x2438_D319_13A1_985B;
const CROSS: u64 = 0x8A2E_0370_7344_A409;

/// What the bytes of one value follow from.
#[inline]
fn seed_of(value_seed: u64, column: usize) -> u64 {
    mix(value_seed.wrapping_add((column as u64).wrapping_mul(GOLDEN)))
}

/// Random text of one length. Kept apart, so that a loop over the columns of an operation decides
/// once how its values are made.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    size: usize,
    /// The size in whole words.
    room: usize,
}

impl Random {
    #[inline]
    fn of(size: usize) -> Self {
        Self { size, room: size.next_multiple_of(WORD) }
    }

    /// As [`Values::write_value`]. A stream of its own for each value, a word at a time: one wide
    /// multiplication each, as in wyrand (Wang Yi, wyhash), because five fields of 34 bytes take
    /// 25 words.
    ///
    /// # Panics
    /// When `out` is shorter than [`Values::value_room`] and the value does not fit.
    #[inline]
    pub fn write(&self, value_seed: u64, column: usize, out: &mut [u8]) -> usize {
        let mut state = seed_of(value_seed, column);
        let mut rest = &mut out[..self.room];
        'all: loop {
            for mask in MASKS {
                let Some((word, behind)) = rest.split_first_chunk_mut() else { break 'all };
                state = state.wrapping_add(STEP);
                let wide = u128::from(state) * u128::from(state ^ CROSS);
                let bits = (wide >> 64) as u64 ^ wide as u64;
                *word = ((bits & mask) + SPACES).to_le_bytes();
                rest = behind;
            }
        }
        self.size
    }
}

/// Hands the verified text to `put` in parts with their offsets, cut at `size` bytes, until `put`
/// refuses one; whether it took all.
fn verified(
    key_text: &[u8],
    column_name: &[u8],
    size: usize,
    mut put: impl FnMut(usize, &[u8]) -> bool,
) -> bool {
    let (mut at, mut hash) = (0usize, 0i32);
    let mut append = |part: &[u8], hash: &mut i32| {
        for byte in part {
            *hash = hash.wrapping_mul(31).wrapping_add(i32::from(*byte));
        }
        let part = &part[..part.len().min(size - at)];
        let took = put(at, part);
        at += part.len();
        (took, at == size)
    };
    for part in [key_text, b":", column_name] {
        if let (false, _) = append(part, &mut hash) {
            return false;
        }
    }
    loop {
        let sign: &[u8] = if hash < 0 { b":-" } else { b":" };
        let digits = Digits::of(u64::from(hash.unsigned_abs()));
        for part in [sign, digits.text()] {
            match append(part, &mut hash) {
                (false, _) => return false,
                (true, true) => return true,
                (true, false) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(values: &Values, seed: u64, column: usize) -> Vec<u8> {
        let names = ["field0".to_owned()];
        let mut out = vec![0; values.value_room()];
        let size = values.write_value(seed, b"user1", column, &names, &mut out);
        out.truncate(size);
        out
    }

    fn random(size: u32) -> Values {
        Values { content: Content::Random(Lengths::Constant(size)) }
    }

    #[test]
    fn verified_text_is_the_original_one() {
        let text = |size: usize| {
            let mut out = vec![0; size];
            verified(b"ab", b"f", size, |at, part| {
                out[at..at + part.len()].copy_from_slice(part);
                true
            });
            String::from_utf8(out).unwrap()
        };
        let by_definition = |size: usize| {
            let mut text = String::from("ab:f");
            while text.len() < size {
                let hash =
                    text.bytes().fold(0i64, |h, b| (31 * h + i64::from(b)) & 0xFFFF_FFFF) as u32;
                text = format!("{text}:{}", hash.cast_signed());
            }
            text.truncate(size);
            text
        };
        assert_eq!(text(12), "ab:f:2985805");
        for size in [0, 1, 2, 3, 4, 5, 11, 12, 13, 40, 100, 1000] {
            assert_eq!(text(size), by_definition(size), "size {size}");
        }
        assert!(text(1000).contains(":-"), "negative hashes must have been met");
    }

    #[test]
    fn verification_accepts_its_own_text_only() {
        let values = Values { content: Content::Verified { size: 100 } };
        let good = value(&values, 1, 0);
        assert_eq!(good, value(&values, 2, 0));
        let names = ["field0", "field1"].map(str::to_owned);
        assert!(values.verify(b"user1", 0, &names, &good));
        assert!(!values.verify(b"user1", 1, &names, &good));
        assert!(!values.verify(b"user2", 0, &names, &good));
        assert!(!values.verify(b"user1", 0, &names, &good[..99]));
        assert!(!values.verify(b"user1", 0, &names, b""));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(!values.verify(b"user1", 0, &names, &bad), "byte {at}");
        }
    }

    #[test]
    fn random_text_has_the_marginals_of_the_original() {
        // Position i: (bits & mask) + 32 with masks 31, 63, 95; each value alike.
        let mut counts = vec![[0u32; 256]; 100];
        let values = random(100);
        let rounds = 64_000u32;
        for seed in 0..u64::from(rounds) {
            for (count, byte) in counts.iter_mut().zip(value(&values, seed, 3)) {
                count[usize::from(byte)] += 1;
            }
        }
        for (position, count) in counts.iter().enumerate() {
            let mask = [31usize, 63, 95][position % 3];
            let allowed = |byte: usize| byte >= 32 && (byte - 32) & mask == byte - 32;
            let kinds = (0..256).filter(|byte| allowed(*byte)).count();
            assert_eq!(kinds, if mask == 31 { 32 } else { 64 });
            let expected = f64::from(rounds) / kinds as f64;
            let mut chi_square = 0.0;
            for (byte, seen) in count.iter().enumerate() {
                if allowed(byte) {
                    chi_square += (f64::from(*seen) - expected).powi(2) / expected;
                } else {
                    assert_eq!(*seen, 0, "byte {byte} at position {position}");
                }
            }
            // 63 degrees of freedom: 130 is beyond p = 1e-6; 100 positions are tested.
            assert!(chi_square < 130.0, "position {position}: {chi_square}");
        }
    }

    #[test]
    fn values_differ_by_seed_and_column_and_repeat() {
        let values = random(34);
        assert_eq!(value(&values, 7, 1), value(&values, 7, 1));
        assert_ne!(value(&values, 7, 1), value(&values, 7, 2));
        assert_ne!(value(&values, 7, 1), value(&values, 8, 1));
    }

    proptest! {
        #[test]
        fn a_shorter_value_is_a_prefix_of_a_longer_one(seed: u64, long in 0u32..200) {
            let whole = value(&random(long), seed, 0);
            prop_assert_eq!(whole.len(), long as usize);
            for size in 0..long {
                let part = value(&random(size), seed, 0);
                prop_assert_eq!(&part[..], &whole[..size as usize]);
            }
        }

        #[test]
        fn drawn_lengths_are_inside(seed: u64, column in 0usize..1000) {
            let values =
                Values { content: Content::Random(Lengths::Uniform { min: 5, max: 20 }) };
            prop_assert!((5..=20).contains(&value(&values, seed, column).len()));
        }
    }
}
