//! Random numbers for resampling: the same seed gives the same draws.
//!
//! In: a seed. Out: indices, and numbers of the normal distribution for the tests of what is
//! computed here. Source: xoshiro256++, Blackman and Vigna (2021).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The numbers below `count` in a drawn order: the same for the same seed.
#[must_use]
pub fn drawn_order(count: usize, seed: u64) -> Vec<usize> {
    Draws::new(seed).order(count)
}

/// A stream of draws.
#[derive(Debug)]
pub(crate) struct Draws(Xoshiro256PlusPlus);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// In [0, n): off uniform by at most n / 2^64.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// The numbers below `count` in an order in which each is as likely as any other (Fisher and
    /// Yates, 1938).
    pub(crate) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }

    /// Of the normal distribution with mean 0 and deviation 1, by Box and Muller (1958).
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        let mut unit = || ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (unit(), unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_is_drawn_as_often_as_any_other() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..6000 {
            *seen.entry(drawn_order(3, seed)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
        assert_eq!(drawn_order(5, 9), drawn_order(5, 9));
        assert!(drawn_order(0, 1).is_empty());
    }
}
