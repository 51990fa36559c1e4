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
        let base = self.eta * u - self.eta + 1.0;
        let rank = rank_by_products(self.items, base);
        rank.unwrap_or_else(|| rank_by_power(self.items, base)).min(self.items.saturating_sub(1))
    }
}

/// 1 / (1 - theta), which is 100 but for the rounding of theta: 100 - 9e-14.
const ALPHA: f64 = 1.0 / (1.0 - THETA);

/// What [`rank_by_products`] may be wrong by, of the rank. From an ulp of 2.2e-16: 99 roundings of
/// half an ulp in a power that is put together of products, 1.1e-14; base^(100 - ALPHA), 6.3e-14
/// for a base of a half or more; an ulp of the C library's power, and a rounding of either product
/// with the number of items, 5e-16.
const PRODUCTS_ERROR: f64 = 1e-13;

/// By the closed form.
#[cold]
fn rank_by_power(items: u64, base: f64) -> u64 {
    (items as f64 * base.powf(ALPHA)) as u64
}

/// The same in a third of the time; None where rounding could make it another one: of 10^10 items
/// once in some 10 000 draws.
#[inline]
fn rank_by_products(items: u64, base: f64) -> Option<u64> {
    let square = |x: f64| x * x;
    let power_4 = square(square(base));
    let power_32 = square(square(square(power_4)));
    let rank = items as f64 * (power_4 * power_32 * square(power_32));
    // So that a fraction is left to tell by; NaN is not either.
    let sure = (0.5..=1.0).contains(&base) && rank < RANK_MAX;
    let (whole, error) = (rank as i64, rank * PRODUCTS_ERROR);
    let fraction = rank - whole as f64;
    (sure && error < fraction && fraction < 1.0 - error).then_some(whole.cast_unsigned())
}

/// Of larger ranks the error is a whole one.
const RANK_MAX: f64 = 0.5 / PRODUCTS_ERROR;

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
    fn products_give_the_rank_of_the_power_or_none() {
        let mut state = 0u64;
        for items in [2, 3, 10, 1000, 123_456_789, SCRAMBLED_ITEMS, 1 << 40, 1 << 62] {
            let zipfian = Zipfian::new(items);
            let (mut told, draws) = (0, 100_000);
            for _ in 0..draws {
                state = crate::random::mix(state.wrapping_add(1));
                let base = zipfian.eta * crate::random::unit(state) - zipfian.eta + 1.0;
                if let Some(rank) = rank_by_products(items, base) {
                    assert_eq!(rank, rank_by_power(items, base), "{base:?} of {items} items");
                    told += 1;
                }
            }
            let few_left = told > draws - 100;
            assert!(few_left || !(3..1 << 40).contains(&items), "{told} of {items} items");
        }
        for base in [f64::NAN, -1.0, 0.0, 0.4999, 1.0 + f64::EPSILON, f64::INFINITY] {
            assert_eq!(rank_by_products(1000, base), None);
        }
    }

    #[test]
    fn what_lies_next_to_a_whole_rank_is_left_to_the_power() {
        for items in [1000, SCRAMBLED_ITEMS] {
            for rank in (2..1000).chain([items - 1]) {
                let base = (rank as f64 / items as f64).powf(0.01);
                // Some twenty ulp to either side: a few of them are inside the error.
                let mut left = 0;
                for ulp in -20i64..=20 {
                    let near = f64::from_bits(base.to_bits().wrapping_add_signed(ulp));
                    match rank_by_products(items, near) {
                        Some(told) => assert_eq!(told, rank_by_power(items, near)),
                        None => left += 1,
                    }
                }
                assert!(left > 0, "rank {rank} of {items}");
            }
        }
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
