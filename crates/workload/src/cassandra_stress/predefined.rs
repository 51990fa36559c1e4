//! The data of the commands that bring their own table (`write`, `read`, `mixed`, `counter_*`):
//! a seed -> the bytes of the key, and from the key those of each column.
//!
//! A generator is told a seed, mixes its salt in, and draws an identity from 1 to 100 billion; all
//! bytes follow from identities. Keys are hexadecimal digits of further identities (the digits
//! above 9 are `K` to `P`, for a letter's code is 'A' plus the whole digit); values are words of
//! [`Xorshift`]. Columns are seeded with a fold of the key's bytes. Everything is written into the
//! caller's buffer, bytes of values in whole words of 8.
//!
//! Source: cassandra-stress, `generate/values/{Generator,HexBytes,Bytes}.java`,
//! `generate/PartitionIterator.java`. Two seeds share a key now and then: ten digits of a number
//! below 10^11 leave some N^2 / (2 * 10^11) collisions among N seeds.

use super::distribution::{Distribution, DrawState};
use super::java_random::JavaRandom;
use super::xorshift::Xorshift;
use units::murmur3;

/// What every generator draws first.
pub(super) const IDENTITIES: (i64, i64) = (1, 100_000_000_000);
/// Bytes of a word, the part that values are written in.
pub(super) const WORD: usize = 8;
/// Digits of one identity.
const DIGITS: usize = 16;
/// Spread before the names of generators of the predefined commands.
const PREDEFINED: &str = "randomstr";

/// What keeps generators apart: the first half of Murmur3 over a name.
#[must_use]
pub fn salt(name: &str) -> i64 {
    murmur3::hash(name.as_bytes(), 0).0.cast_signed()
}

/// An identity: uniform from 1 to 100 billion.
#[inline]
pub(super) fn identity(random: &mut JavaRandom) -> i64 {
    const LOW: f64 = IDENTITIES.0 as f64;
    const HIGH: f64 = (IDENTITIES.1 + 1) as f64;
    let unit = random.next_f64();
    // Cannot be below the least; rounding can bring it to HIGH.
    ((unit * HIGH + (1.0 - unit) * LOW) as i64).min(IDENTITIES.1)
}

/// The keys of the predefined commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGenerator {
    salt: i64,
    size: usize,
}

impl KeyGenerator {
    /// Keys of `size` bytes (`keysize=`, 10 by default).
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { salt: salt(&format!("{PREDEFINED}key")), size }
    }

    /// Length of a key in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes that [`Self::write`] needs: the key in whole identities, so that no copy depends on
    /// its length.
    #[must_use]
    pub fn room(&self) -> usize {
        self.size.next_multiple_of(DIGITS)
    }

    /// Writes the key of a seed to the front of `out`; returns its size in bytes. What stands
    /// behind it in the first [`Self::room`] bytes is overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`Self::room`].
    #[inline]
    pub fn write(&self, seed: i64, out: &mut [u8]) -> usize {
        let mut random = JavaRandom::seeded(seed ^ self.salt);
        // The identity that would seed a varying size.
        random.skip_f64();
        let (blocks, _) = out[..self.room()].as_chunks_mut::<DIGITS>();
        for block in blocks {
            *block = digits(identity(&mut random).cast_unsigned());
        }
        self.size
    }
}

/// The 16 hexadecimal digits of a number, the lowest first, digits above 9 as `K` to `P`.
#[inline]
pub(super) fn digits(number: u64) -> [u8; DIGITS] {
    let mut out = [0; DIGITS];
    out[..WORD].copy_from_slice(&eight_digits(number & 0xFFFF_FFFF));
    out[WORD..].copy_from_slice(&eight_digits(number >> 32));
    out
}

/// Spreads 32 bits to a digit in each byte, all at once.
#[inline]
fn eight_digits(number: u64) -> [u8; WORD] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let number = (number | number << 16) & 0x0000_FFFF_0000_FFFF;
    let number = (number | number << 8) & 0x00FF_00FF_00FF_00FF;
    let number = (number | number << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    let above_9 = (number + 0x76 * EACH) >> 7 & EACH;
    let letters = above_9 * u64::from(b'A' - b'0');
    (number + u64::from(b'0') * EACH + letters).to_le_bytes()
}

/// The seed of a partition's columns: a fold of its key, to be started at 0 and carried over all
/// components of a composite key.
#[must_use]
#[inline]
pub fn fold_bytes(seed: i64, bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .fold(seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(i64::from(byte.cast_signed())))
}

/// A column of random bytes.
#[derive(Debug, Clone)]
pub struct BlobGenerator {
    salt: i64,
    size: Distribution,
}

impl BlobGenerator {
    /// The column of that name of the predefined commands, its size in bytes (`-col size=`,
    /// FIXED(34) by default). Sizes below 0 count as 0.
    #[must_use]
    pub fn new(column_name: &str, size: Distribution) -> Self {
        Self { salt: salt(&format!("{PREDEFINED}{column_name}")), size }
    }

    /// Longest value in bytes.
    #[must_use]
    pub fn size_max(&self) -> usize {
        usize::try_from(self.size.max()).unwrap_or(0)
    }

    /// Bytes that [`Self::write`] needs.
    #[must_use]
    pub fn room(&self) -> usize {
        self.size_max().next_multiple_of(WORD)
    }

    /// Writes the value of a partition to the front of `out`; returns its size in bytes. What
    /// stands behind it in the first [`Self::room`] bytes may be overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`Self::room`] and the value does not fit.
    #[inline]
    pub fn write(&self, partition_seed: i64, out: &mut [u8]) -> usize {
        let (mut words, size) = self.start(partition_seed);
        let (blocks, _) = out[..size.next_multiple_of(WORD)].as_chunks_mut::<WORD>();
        for block in blocks {
            *block = words.next_i64().to_le_bytes();
        }
        size
    }

    /// Whether `value` is the value of a partition.
    #[must_use]
    pub fn verify(&self, partition_seed: i64, value: &[u8]) -> bool {
        let (mut words, size) = self.start(partition_seed);
        if value.len() != size {
            return false;
        }
        let (blocks, rest) = value.as_chunks::<WORD>();
        blocks.iter().all(|block| *block == words.next_i64().to_le_bytes())
            && (rest.is_empty() || words.next_i64().to_le_bytes().starts_with(rest))
    }

    #[inline]
    fn start(&self, partition_seed: i64) -> (Xorshift, usize) {
        let seed = identity(&mut JavaRandom::seeded(partition_seed ^ self.salt));
        let size = match self.size.constant() {
            Some(size) => size,
            None => self.size.sample(&mut DrawState::seeded(seed)),
        };
        (Xorshift::seeded(!seed), usize::try_from(size).unwrap_or(0))
    }
}

/// Names of the columns that `-col n=` asks for, in the order of the table: `C10` before `C2`.
#[must_use]
pub fn column_names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|column| format!("C{column}")).collect();
    names.sort_unstable();
    names
}
