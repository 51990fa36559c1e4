//! `FasterRandom`, the source of value bytes: xorshift with arithmetic shifts, reseeded by
//! [`JavaRandom`] from its own state at every 32nd word.
//!
//! Source: cassandra-stress, `generate/FasterRandom.java`; Vigna, "An experimental exploration of
//! Marsaglia's xorshift generators" (2016) for the multiplier.

use super::java_random::JavaRandom;

const MULTIPLIER: i64 = 2_685_821_657_736_338_717;
/// Words from one reseeding to the next, the word that reseeds included.
const PERIOD: u32 = 32;

/// The generator.
#[derive(Debug, Clone)]
pub struct Xorshift {
    state: i64,
    /// Words since the last reseeding.
    words: u32,
}

impl Xorshift {
    /// As `setSeed(seed)`.
    #[must_use]
    #[inline]
    pub fn seeded(seed: i64) -> Self {
        Self { state: JavaRandom::seeded(seed).next_i64(), words: 0 }
    }

    /// `nextLong`.
    #[inline]
    pub fn next_i64(&mut self) -> i64 {
        self.words += 1;
        if self.words == PERIOD {
            *self = Self::seeded(self.state);
        }
        let mut state = self.state;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.state = state;
        state.wrapping_mul(MULTIPLIER)
    }
}
