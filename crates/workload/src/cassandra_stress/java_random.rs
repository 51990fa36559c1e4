//! `java.util.Random`: a 64-bit seed -> the same numbers that Java draws from it.
//!
//! A linear congruential generator modulo 2^48 whose top bits are handed out. The state is kept
//! shifted left by 16 bits: the modulus is then the one that 64-bit arithmetic has anyway, and what
//! is handed out takes one shift. Draws of two numbers step twice from the same state, so that
//! the multiplications do not wait for each other.
//!
//! Source: the documentation of `java.util.Random` (Java SE 17), which fixes the algorithm;
//! Gaussians: Marsaglia's polar method with the logarithm of fdlibm ([`super::logarithm`]).

use super::logarithm;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB << 16;
/// One step twice.
const MULTIPLIER_2: u64 = MULTIPLIER.wrapping_mul(MULTIPLIER);
const INCREMENT_2: u64 = INCREMENT.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
/// 2^-53.
const UNIT: f64 = 1.0 / (1u64 << 53) as f64;

/// The generator.
#[derive(Debug, Clone)]
pub struct JavaRandom {
    /// Java's state in the upper 48 bits.
    state: u64,
    /// The second of a pair of Gaussians; NaN when there is none.
    gaussian: f64,
}

impl JavaRandom {
    /// As `new Random(seed)`.
    #[must_use]
    #[inline]
    pub fn seeded(seed: i64) -> Self {
        Self { state: (seed.cast_unsigned() ^ MULTIPLIER) << 16, gaussian: f64::NAN }
    }

    /// The state after one and after two steps; the generator moves to the second.
    #[inline]
    fn two_steps(&mut self) -> (u64, u64) {
        let first = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.state = self.state.wrapping_mul(MULTIPLIER_2).wrapping_add(INCREMENT_2);
        (first, self.state)
    }

    /// Passes over a number of two steps, as [`Self::next_f64`] without its value.
    #[inline]
    pub(crate) fn skip_f64(&mut self) {
        self.two_steps();
    }

    /// `nextLong`.
    #[inline]
    pub fn next_i64(&mut self) -> i64 {
        let (high, low) = self.two_steps();
        // The lower half is added as a signed number.
        let low = i64::from((low.cast_signed() >> 32) as i32);
        (high & 0xFFFF_FFFF_0000_0000).cast_signed().wrapping_add(low)
    }

    /// `nextDouble`: in [0, 1).
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        let (high, low) = self.two_steps();
        // 26 bits and 27 bits behind them.
        let bits = ((high >> 38) << 27) + (low >> 37);
        // Signed: one instruction converts it.
        bits.cast_signed() as f64 * UNIT
    }

    /// `nextGaussian`: mean 0, standard deviation 1.
    pub fn next_gaussian(&mut self) -> f64 {
        let kept = std::mem::replace(&mut self.gaussian, f64::NAN);
        if !kept.is_nan() {
            return kept;
        }
        loop {
            let x = 2.0 * self.next_f64() - 1.0;
            let y = 2.0 * self.next_f64() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * logarithm::natural(square) / square).sqrt();
                self.gaussian = y * factor;
                return x * factor;
            }
        }
    }
}
