//! Zipfian ranks: a number u in [0, 1) -> a rank in [0, n), rank 0 the most popular; theta 0.99.
//!
//! Source: Gray et al. (SIGMOD 1994) as YCSB's ZipfianGenerator uses it: ranks 0 and 1 have their
//! exact share, the rest comes from a closed form. A growing n extends zeta(n), but eta keeps the
//! n of the start, as there. Limits: u a few ulp below 1 can give rank n in YCSB; it is n - 1 here.

use crate::zeta::Zeta;

/// YCSB's exponent.
const THETA: f64 = 0.99;
/// Items behind the scrambled distribution, whatever the number of records.
const SCRAMBLED_ITEMS: u64 = 10_000_000_001;
/// zeta(10^10, 0.99) as published in YCSB.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// The state of a zipfian distribution.
#[derive(Debug, Clone)]
pub struct Zipfian {
    zeta: Zeta,
    items: u64,
    zeta_items: f64,
    zeta_2: f64,
    /// 1 - (2 / n)^(1 - theta), with the n of the start.
    numerator: f64,
    eta: f64,
}

impl Zipfian {
    /// Over `items` ranks.
    pub(crate) fn new(items: u64) -> Self {
        let zeta = Zeta::new(THETA);
        let zeta_items = zeta.sum(items);
        Self::with(zeta, items, zeta_items)
    }

    /// Ranks of the scrambled distribution: always 10^10 + 1 items, so that the skew does not
    /// depend on the number of records; the hottest rank has 1 / 26.469 of all draws.
    pub(crate) fn scrambled() -> Self {
        Self::with(Zeta::new(THETA), SCRAMBLED_ITEMS, SCRAMBLED_ZETA)
    }

    fn with(zeta: Zeta, items: u64, zeta_items: f64) -> Self {
        let zeta_2 = zeta.sum(2);
        let numerator = 1.0 - (2.0 / items as f64).powf(1.0 - THETA);
        let eta = numerator / (1.0 - zeta_2 / zeta_items);
        Self { zeta, items, zeta_items, zeta_2, numerator, eta }
    }

    /// Follows a growing number of items in constant time; never shrinks.
    #[inline]
    pub(crate) fn grow(&mut self, items: u64) {
        if items > self.items {
            self.items = items;
            self.zeta_items = self.zeta.sum(items);
            self.eta = self.numerator / (1.0 - self.zeta_2 / self.zeta_items);
        }
    }

    /// The rank at `u`.
    #[inline]
    pub(crate) fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zeta_items;
        if uz < 1.0 {
            return 0;
        }
        // zeta(2) is 1 + 0.5^theta, the end of rank 1's share.
        if uz < self.zeta_2 {
            return 1;
        }
        let alpha = 1.0 / (1.0 - THETA);
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(alpha);
        (rank as u64).min(self.items.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_constants_and_ranks_of_1000_items() {
        let zipfian = Zipfian::new(1000);
        assert!((zipfian.zeta_2 - 1.503_477_775_028_359_4).abs() < 1e-15);
        assert!((zipfian.zeta_items - 7.728_953_217_284_729).abs() < 1e-13);
        assert!((zipfian.eta - 0.074_806_086_706_898_05).abs() < 1e-15);
        let golden = [
            (0.0, 0),
            (0.1, 0),
            (0.13, 1),
            (0.2, 2),
            (0.25, 3),
            (0.3, 4),
            (0.5, 22),
            (0.75, 151),
            (0.9, 471),
            (0.99, 927),
            (0.999_999, 999),
        ];
        for (u, rank) in golden {
            assert_eq!(zipfian.rank(u), rank, "u = {u}");
        }
    }

    #[test]
    fn scrambled_constants() {
        let zipfian = Zipfian::scrambled();
        assert!((zipfian.eta - 0.212_200_033_808_826_07).abs() < 1e-11);
        assert_eq!(zipfian.rank(0.037_77), 0);
        assert_eq!(zipfian.rank(0.037_79), 1);
    }

    #[test]
    fn the_last_rank_is_the_limit_and_few_items_work() {
        let below_one = 1.0 - f64::EPSILON / 2.0;
        for items in [1, 2, 3, 10, 1000, 1 << 40] {
            let zipfian = Zipfian::new(items);
            assert_eq!(zipfian.rank(0.0), 0);
            assert_eq!(zipfian.rank(below_one), items - 1, "{items} items");
        }
        assert_eq!(Zipfian::new(0).rank(0.7), 0);
    }

    #[test]
    fn growth_extends_zeta_and_keeps_the_first_n_in_eta() {
        let mut grown = Zipfian::new(1000);
        for items in 1001..=1500 {
            grown.grow(items);
        }
        grown.grow(1200);
        let fresh = Zipfian::new(1500);
        assert_eq!(grown.zeta_items, fresh.zeta_items);
        let eta = (1.0 - (2.0f64 / 1000.0).powf(0.01)) / (1.0 - grown.zeta_2 / grown.zeta_items);
        assert!((grown.eta - eta).abs() < 1e-12 && (grown.eta - fresh.eta).abs() > 1e-4);
    }
}
