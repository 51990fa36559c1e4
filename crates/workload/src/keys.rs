//! Keys: key number -> key text, and the description of which keys exist.
//!
//! Text is `user` and the zero-padded decimal of the number (ordered) or of its 64-bit FNV-1a hash
//! (hashed). Source: YCSB CoreWorkload.buildKeyName, Utils.fnvhash64. Limits: key numbers below
//! 2^62; padding up to 100 digits.

use crate::cassandra_stress::{self, KeyGenerator};
use crate::digits::{self, Digits};

/// How a key number becomes a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrder {
    /// The text holds the hash of the number.
    Hashed,
    /// The text holds the number.
    Ordered,
    /// The number is a seed of cassandra-stress, from which the key's bytes follow.
    Seeded(KeyGenerator),
    /// The number itself, 8 bytes, the highest first.
    Integer,
}

/// Which keys the run phase asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// All loaded keys alike.
    Uniform,
    /// Scrambled zipfian: popular keys lie scattered.
    Zipfian,
    /// Zipfian from the newest key backwards; grows with inserts.
    Latest,
    /// A share of operations goes to the first keys.
    Hotspot {
        /// Keys that are hot, from the first on.
        hot_keys: u64,
        /// Share of the operations that go to hot keys, 0..=1.
        operation_fraction: f64,
    },
    /// Exponential decay from the newest key backwards.
    Exponential {
        /// This percentage (0..100) of the operations ...
        percentile: f64,
        /// ... goes to this newest fraction of the records.
        fraction: f64,
    },
    /// One key after the other, interleaved over the workers, round and round.
    Sequential,
    /// One key after the other, interleaved over the workers; ends behind the last.
    Once,
    /// A distribution of cassandra-stress.
    Drawn(cassandra_stress::Distribution),
    /// Writes take one key after the other, reads one so far behind the newest that is
    /// acknowledged with all before it.
    Behind {
        /// How far; 1 is the newest.
        lookback: cassandra_stress::Distribution,
        /// Writes begin again behind the last key, or end.
        wrap: bool,
    },
}

/// Which keys exist, how they read, and which are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct KeySpace {
    /// First key number that the load phase writes.
    pub start: u64,
    /// Keys that the load phase writes.
    pub loaded: u64,
    /// Records in the table when the run phase starts; the first inserted key has this number.
    pub records: u64,
    /// Inserts that a zipfian run leaves room for.
    pub expected_new: u64,
    /// Order of the texts.
    pub order: KeyOrder,
    /// Least number of digits in a key text.
    pub zero_padding: usize,
    /// Which keys the run phase asks for.
    pub distribution: Distribution,
}

const PREFIX: &[u8] = b"user";

impl KeySpace {
    /// The key that the run phase inserts first.
    #[must_use]
    pub fn first_new_key(&self) -> u64 {
        self.records
    }

    /// The keys that the load phase gives to worker `worker` of `workers` (at least 1): a
    /// contiguous share.
    #[must_use]
    pub fn load_share(&self, worker: usize, workers: usize) -> std::ops::Range<u64> {
        let first = |worker: usize| {
            let keys = u128::from(self.loaded) * worker as u128 / workers as u128;
            self.start + keys as u64
        };
        first(worker)..first(worker + 1)
    }

    /// Longest key text in bytes.
    #[must_use]
    pub fn key_size_max(&self) -> usize {
        match &self.order {
            KeyOrder::Hashed | KeyOrder::Ordered => {
                PREFIX.len() + self.zero_padding.max(digits::COUNT_MAX)
            }
            KeyOrder::Seeded(keys) => keys.size(),
            KeyOrder::Integer => size_of::<u64>(),
        }
    }

    /// Bytes that [`KeySpace::write_key`] needs.
    #[must_use]
    pub fn key_room(&self) -> usize {
        match &self.order {
            KeyOrder::Hashed | KeyOrder::Ordered | KeyOrder::Integer => self.key_size_max(),
            KeyOrder::Seeded(keys) => keys.room(),
        }
    }

    /// Writes the text of a key number to the front of `out`; returns its size in bytes. Numbers of
    /// seeds behind the last begin again with the first.
    ///
    /// # Panics
    /// When the text does not fit; [`KeySpace::key_room`] bytes always do.
    #[inline]
    pub fn write_key(&self, key: u64, out: &mut [u8]) -> usize {
        let number = match &self.order {
            KeyOrder::Hashed => fnv_hash(key),
            KeyOrder::Ordered => key,
            KeyOrder::Seeded(keys) => return keys.write(self.seed_of(key), out),
            KeyOrder::Integer => {
                out[..size_of::<u64>()].copy_from_slice(&key.to_be_bytes());
                return size_of::<u64>();
            }
        };
        let digits = Digits::of(number);
        let (prefix, out) = out.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        let padded = digits.padded(self.zero_padding);
        let zeros = self.zero_padding.saturating_sub(padded.len());
        if zeros > 0 {
            out[..zeros].fill(b'0');
        }
        out[zeros..zeros + padded.len()].copy_from_slice(padded);
        PREFIX.len() + zeros + padded.len()
    }

    /// The seed that a key number stands for.
    #[must_use]
    #[inline]
    pub fn seed_of(&self, key: u64) -> i64 {
        let behind = key.wrapping_sub(self.start);
        let seed = if behind < self.loaded || key < self.start || self.loaded == 0 {
            key
        } else {
            self.start + behind % self.loaded
        };
        seed.cast_signed()
    }
}

/// Of FNV-1a with 64 bits.
const FNV_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 1_099_511_628_211;

/// FNV-1a over the eight bytes of `number`, lowest first, as an absolute signed value.
#[inline]
pub(crate) fn fnv_hash(number: u64) -> u64 {
    // Each multiplication waits for the one before. The upper four bytes of most numbers are zero,
    // and a zero byte only multiplies.
    const FOUR_ZEROS: u64 = FNV_PRIME.wrapping_pow(4);
    let take = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    let [lower, upper] = [number as u32, (number >> 32) as u32].map(u32::to_le_bytes);
    let hash = lower.into_iter().fold(FNV_BASIS, take);
    let hash = match upper {
        [0, 0, 0, 0] => hash.wrapping_mul(FOUR_ZEROS),
        upper => upper.into_iter().fold(hash, take),
    };
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(order: KeyOrder, zero_padding: usize) -> KeySpace {
        KeySpace {
            start: 0,
            loaded: 1,
            records: 1,
            expected_new: 0,
            order,
            zero_padding,
            distribution: Distribution::Uniform,
        }
    }

    fn text(space: &KeySpace, key: u64) -> String {
        let mut out = vec![0; space.key_size_max()];
        let size = space.write_key(key, &mut out);
        String::from_utf8(out[..size].to_vec()).unwrap()
    }

    #[test]
    fn golden_hashed_keys() {
        let space = keys(KeyOrder::Hashed, 1);
        for (key, wanted) in [
            (0, "user6284781860667377211"),
            (1, "user8517097267634966620"),
            (2, "user1820151046732198393"),
            (3, "user4052466453699787802"),
            (999, "user2071219101098386137"),
            (1000, "user5952875239596136740"),
            (9_999_999, "user5174843297794066704"),
        ] {
            assert_eq!(text(&space, key), wanted, "key {key}");
        }
    }

    #[test]
    fn ordered_keys_are_padded_and_never_cut() {
        let space = keys(KeyOrder::Ordered, 8);
        assert_eq!(text(&space, 5), "user00000005");
        assert_eq!(text(&space, 3_000_000_000), "user3000000000");
        assert_eq!(text(&keys(KeyOrder::Ordered, 0), 0), "user0");
        assert_eq!(text(&keys(KeyOrder::Ordered, 100), 7).len(), 104);
    }

    proptest! {
        #[test]
        fn the_hash_is_fnv_1a_of_all_eight_bytes(number: u64, shift in 0u32..64) {
            let number = number >> shift;
            let take = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
            let hash = number.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325, take);
            prop_assert_eq!(fnv_hash(number), hash.cast_signed().unsigned_abs());
        }

        #[test]
        fn ordered_text_is_the_formatted_number(key: u64, padding in 0usize..=100) {
            let space = keys(KeyOrder::Ordered, padding);
            prop_assert_eq!(text(&space, key), format!("user{key:0padding$}"));
        }
    }
}
