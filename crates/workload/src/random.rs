//! Random numbers: one xoshiro256++ stream per (seed, phase, worker, lane), and SplitMix64's mixer.
//!
//! Separation: the seed fills the state through SplitMix64; each phase lies one `long_jump`
//! (2^192 draws) further, each lane of each worker one `jump` (2^128 draws). Streams of one seed
//! therefore never meet. Source: Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators" (2021); Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
//! (OOPSLA 2014) for SplitMix64.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// SplitMix64's increment: 2^64 / golden ratio, odd.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Streams that one worker owns in one phase.
const LANES: usize = 2;

/// The output function of SplitMix64: a bijection of 64 bits without visible structure.
#[inline]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// 53 random bits as a number in [0, 1).
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A word scaled to [0, n): off uniform by at most n / 2^64. 0 for n = 0.
#[inline]
pub(crate) const fn scale(word: u64, n: u64) -> u64 {
    ((word as u128 * n as u128) >> 64) as u64
}

/// One stream of random words.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of one lane (0 or 1) of one worker in one phase.
    pub(crate) fn new(seed: u64, phase: usize, worker: usize, lane: usize) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..phase).for_each(|_| generator.long_jump());
        (0..worker * LANES + lane).for_each(|_| generator.jump());
        Self(generator)
    }

    /// 64 random bits.
    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1).
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.word())
    }

    /// An integer in [0, n).
    #[inline]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        scale(self.word(), n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |seed, phase, worker, lane| Stream::new(seed, phase, worker, lane).word();
        let mut seen = std::collections::BTreeSet::new();
        for (seed, phase) in [(1, 0), (1, 1), (1, 2), (2, 0)] {
            for (worker, lane) in [(0, 0), (0, 1), (1, 0), (1, 1), (40, 0)] {
                assert_eq!(first(seed, phase, worker, lane), first(seed, phase, worker, lane));
                assert!(seen.insert(first(seed, phase, worker, lane)), "stream met twice");
            }
        }
    }

    #[test]
    fn unit_and_scale_stay_inside() {
        assert_eq!(unit(0), 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert_eq!(scale(u64::MAX, 10), 9);
        assert_eq!(scale(u64::MAX, 0), 0);
        assert_eq!(scale(1 << 63, 3_000_000_001), 1_500_000_000);
    }
}
