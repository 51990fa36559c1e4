//! One latency histogram: nanoseconds in, counts per bucket out.
//!
//! The buckets are HdrHistogram's (lowest value 1 ns, highest 1 h, 3 or 2 significant digits), so
//! that a histogram goes into the interval log and comes out of the Java and Python libraries
//! bucket by bucket; `hlog` uses the `hdrhistogram` crate for that. The counts are an array of our
//! own for two reasons that the crate does not give: it is allocated zeroed, so that the 270 KB of
//! a histogram which nobody fills stay unmapped (an operation has five of them, a worker two sets),
//! and merge and clear touch only the span between the least and the largest value.
//!
//! Source: the index arithmetic of HdrHistogram with unit magnitude 0 (G. Tene, hdrhistogram.org);
//! the tests hold it to the crate. Limits: values above 1 h count as 1 h and are counted in
//! [`Latency::clamped`].

use units::Nanos;

/// The largest value that a histogram tells apart: 1 h. Longer ones are recorded as this and
/// counted.
pub const LATENCY_MAX: Nanos = Nanos(3_600_000_000_000);

/// Base-2 logarithm of half of a bucket's sub-buckets: 2048 sub-buckets give 3 digits, 256 give 2.
const MAGNITUDE_FINE: u32 = 10;
const MAGNITUDE_COARSE: u32 = 7;

/// Counts that are allocated at least. From 128 KiB on, the C library asks the kernel for pages
/// that are zero and appear when touched; smaller ones it clears itself, which touches them all.
const COUNTS_MIN: usize = 16 * 1024 + 64;

/// A histogram of durations. Allocates when made and never again. Beside the counts it is one cache
/// line, because every operation touches three of them.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Latency {
    counts: Box<[u64]>,
    /// Of the values as recorded, not of their buckets; exact, so that the mean is.
    sum_ns: u128,
    count: u64,
    clamped: u64,
    /// Index of the least bucket that holds something; `u32::MAX` when none does.
    least: u32,
    /// Index of the largest one; 0 when none does.
    largest: u32,
    magnitude: u32,
}

const _: () = assert!(size_of::<Latency>() == 64);

/// A bucket that holds something: the values from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Least value of the bucket.
    pub low: Nanos,
    /// Largest value of the bucket; what a percentile that falls in here reports.
    pub high: Nanos,
    /// Values recorded in it.
    pub count: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// Empty, with 3 significant digits: a percentile is at most 0.1 % above the value that was
    /// measured.
    #[must_use]
    pub fn new() -> Self {
        Self::with_magnitude(MAGNITUDE_FINE)
    }

    /// Empty, with 2 significant digits, in an eighth of the buckets: for classes of failures.
    #[must_use]
    pub fn coarse() -> Self {
        Self::with_magnitude(MAGNITUDE_COARSE)
    }

    fn with_magnitude(magnitude: u32) -> Self {
        let len = (index_of(LATENCY_MAX.0, magnitude) + 1).max(COUNTS_MIN);
        Self {
            counts: vec![0; len].into_boxed_slice(),
            sum_ns: 0,
            count: 0,
            clamped: 0,
            least: u32::MAX,
            largest: 0,
            magnitude,
        }
    }

    /// Significant decimal digits that the buckets keep: 3 or 2.
    #[must_use]
    pub const fn digits(&self) -> u8 {
        if self.magnitude == MAGNITUDE_FINE { 3 } else { 2 }
    }

    /// Adds one value. Above [`LATENCY_MAX`] it counts as that, and in [`Self::clamped`].
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let index = index_of(value.0, self.magnitude);
        // Beyond the last bucket only for values above the limit. Counters of 64 bits do not
        // overflow one by one.
        match self.counts.get_mut(index) {
            Some(count) if value <= LATENCY_MAX => *count = count.wrapping_add(1),
            _ => return self.record_n(value, 1),
        }
        self.count = self.count.wrapping_add(1);
        self.sum_ns = self.sum_ns.wrapping_add(u128::from(value.0));
        self.least = self.least.min(index as u32);
        self.largest = self.largest.max(index as u32);
    }

    /// Adds one value `n` times.
    #[cold]
    pub fn record_n(&mut self, value: Nanos, n: u64) {
        if n == 0 {
            return;
        }
        let ns = value.0.min(LATENCY_MAX.0);
        let index = index_of(ns, self.magnitude);
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.saturating_add(n);
        }
        self.count = self.count.saturating_add(n);
        self.sum_ns = self.sum_ns.saturating_add(u128::from(ns) * u128::from(n));
        self.least = self.least.min(index as u32);
        self.largest = self.largest.max(index as u32);
        self.clamped = self.clamped.saturating_add(if value > LATENCY_MAX { n } else { 0 });
    }

    /// Adds `n` values at the middle of the bucket with that index; false when there is none.
    pub(crate) fn record_bucket(&mut self, index: usize, n: u64) -> bool {
        if index > index_of(LATENCY_MAX.0, self.magnitude) {
            return false;
        }
        let (low, high) = range_of(index, self.magnitude);
        // The last bucket reaches beyond the limit; its middle counts as the limit, not as clamped.
        self.record_n(Nanos((low + (high - low) / 2).min(LATENCY_MAX.0)), n);
        true
    }

    /// Adds all values of `other`; the same as recording them here. From a histogram of other
    /// digits the middles of its buckets are recorded.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.magnitude != other.magnitude {
            for bucket in other.buckets() {
                let middle = bucket.low.0 + (bucket.high.0 - bucket.low.0) / 2;
                self.record_n(Nanos(middle.min(LATENCY_MAX.0)), bucket.count);
            }
            self.clamped = self.clamped.saturating_add(other.clamped);
            return;
        }
        let span = other.span();
        let (ours, theirs) = (self.counts.get_mut(span.clone()), other.counts.get(span));
        for (our, their) in ours.into_iter().flatten().zip(theirs.into_iter().flatten()) {
            *our = our.saturating_add(*their);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.least = self.least.min(other.least);
        self.largest = self.largest.max(other.largest);
        self.clamped = self.clamped.saturating_add(other.clamped);
    }

    /// What is left without the values of `other`, which has the same digits and is a part of
    /// this: the same as never having recorded them here. What `other` has beyond counts as 0.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Self::with_magnitude(self.magnitude);
        let indices = self.span();
        for index in indices {
            let of = |latency: &Self| latency.counts.get(index).copied().unwrap_or_default();
            let left = of(self).saturating_sub(of(other));
            if left > 0
                && let Some(count) = rest.counts.get_mut(index)
            {
                *count = left;
                rest.count = rest.count.saturating_add(left);
                rest.least = rest.least.min(index as u32);
                rest.largest = rest.largest.max(index as u32);
            }
        }
        rest.sum_ns = self.sum_ns.saturating_sub(other.sum_ns);
        rest.clamped = self.clamped.saturating_sub(other.clamped);
        rest
    }

    /// Makes it empty again. Touches only what was filled: nothing when it is empty.
    pub fn clear(&mut self) {
        let span = self.span();
        if let Some(filled) = self.counts.get_mut(span) {
            filled.fill(0);
        }
        self.count = 0;
        self.sum_ns = 0;
        self.least = u32::MAX;
        self.largest = 0;
        self.clamped = 0;
    }

    /// Values recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Without any value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Values that were longer than [`LATENCY_MAX`]. Above zero, maximum and mean are lower bounds.
    #[must_use]
    pub const fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Mean in nanoseconds, 0 when empty. Exact for what was recorded here; after a way through a
    /// file the sum is that of the buckets' middles, within half a bucket (0.05 %).
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Least value, rounded down to its bucket, as HdrHistogram gives it; 0 when empty.
    #[must_use]
    pub fn min(&self) -> Nanos {
        if self.count == 0 {
            return Nanos::ZERO;
        }
        Nanos(range_of(self.least as usize, self.magnitude).0)
    }

    /// Largest value, rounded up to its bucket, as HdrHistogram gives it, so that no percentile
    /// exceeds it; 0 when empty.
    #[must_use]
    pub fn max(&self) -> Nanos {
        if self.count == 0 {
            return Nanos::ZERO;
        }
        Nanos(range_of(self.largest as usize, self.magnitude).1)
    }

    /// The value that the share `q` (0 to 1) of all values does not exceed, rounded up to its
    /// bucket; 0 when empty. At `q` = 0 the minimum. The same rule as HdrHistogram: the value at
    /// rank `ceil(q * count)`, at least 1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Nanos {
        if q <= 0.0 {
            return self.min();
        }
        let rank = ((q.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        for bucket in self.buckets() {
            seen = seen.saturating_add(bucket.count);
            if seen >= rank {
                return bucket.high;
            }
        }
        self.max()
    }

    /// How many values are larger than the bucket of `value`.
    #[must_use]
    pub fn count_above(&self, value: Nanos) -> u64 {
        self.buckets().filter(|b| b.low > value).fold(0, |n, b| n.saturating_add(b.count))
    }

    /// The buckets that hold something, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let (start, magnitude) = (self.span().start, self.magnitude);
        let filled = self.counts.get(self.span()).unwrap_or_default();
        filled.iter().enumerate().filter(|&(_, &count)| count > 0).map(move |(offset, &count)| {
            let (low, high) = range_of(start + offset, magnitude);
            Bucket { low: Nanos(low), high: Nanos(high), count }
        })
    }

    /// The indices from the least to the largest value; empty when nothing was recorded.
    fn span(&self) -> std::ops::Range<usize> {
        if self.count == 0 {
            return 0..0;
        }
        self.least as usize..self.largest as usize + 1
    }
}

/// The bucket of a value: linear below `2^(magnitude + 1)`, then `2^magnitude` buckets for every
/// power of two.
#[inline]
const fn index_of(ns: u64, magnitude: u32) -> usize {
    let mask = (1u64 << (magnitude + 1)) - 1;
    let shift = 63 - magnitude - (ns | mask).leading_zeros();
    ((shift as usize) << magnitude) + (ns >> shift) as usize
}

/// Least and largest value of a bucket, the inverse of [`index_of`].
const fn range_of(index: usize, magnitude: u32) -> (u64, u64) {
    let shift = (index >> magnitude).saturating_sub(1);
    let low = ((index - (shift << magnitude)) as u64) << shift;
    (low, low + (1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values.iter().for_each(|&v| latency.record(Nanos(v)));
        latency
    }

    fn state(l: &Latency) -> (Vec<Bucket>, u64, u128, u64, Nanos, Nanos) {
        (l.buckets().collect(), l.count, l.sum_ns, l.clamped, l.min(), l.max())
    }

    /// Values over all magnitudes, with the edges of buckets among them.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..44, any::<u64>()).prop_map(|(bits, v)| match v % 8 {
            0 => (1 << bits) - 1,
            1 => 1 << bits,
            _ => v >> (63 - bits),
        });
        prop::collection::vec(value, 0..200)
    }

    #[test]
    fn a_hand_made_example() {
        let latency = of(&[1, 2, 3, 4, 1_000_000]);
        assert_eq!(latency.count(), 5);
        assert_eq!(latency.mean(), 200_002.0);
        assert_eq!(latency.quantile(0.0), Nanos(1));
        assert_eq!(latency.quantile(0.5), Nanos(3));
        assert_eq!(latency.quantile(0.8), Nanos(4));
        // 1,000,000 lies between 2^19 and 2^20: buckets of 512 ns.
        assert_eq!(latency.quantile(0.9), Nanos(1_000_447));
        assert_eq!(latency.max(), Nanos(1_000_447));
        assert_eq!(latency.count_above(Nanos(3)), 2);
        assert_eq!(latency.count_above(Nanos(1_000_000)), 0);
    }

    #[test]
    fn an_empty_one_says_zero() {
        let latency = Latency::coarse();
        assert_eq!((latency.count(), latency.mean()), (0, 0.0));
        assert_eq!((latency.min(), latency.max(), latency.quantile(0.99)), Default::default());
        assert_eq!(latency.buckets().count(), 0);
    }

    #[test]
    fn longer_than_an_hour_is_an_hour_and_counted() {
        let mut latency = Latency::new();
        latency.record(Nanos::MAX);
        latency.record(LATENCY_MAX);
        assert_eq!((latency.count(), latency.clamped()), (2, 1));
        assert_eq!(latency.mean(), LATENCY_MAX.0 as f64);
        assert!(latency.max() >= LATENCY_MAX);
    }

    #[test]
    fn zero_is_a_value() {
        let latency = of(&[0, 0, 5]);
        assert_eq!(
            (latency.count(), latency.min(), latency.quantile(0.5)),
            (3, Nanos(0), Nanos(0))
        );
    }

    proptest! {
        #[test]
        fn buckets_and_quantiles_are_hdrhistogram_s(values in values(), coarse in any::<bool>()) {
            let mut ours = if coarse { Latency::coarse() } else { Latency::new() };
            let mut hdr =
                Histogram::<u64>::new_with_bounds(1, LATENCY_MAX.0, ours.digits()).unwrap();
            for value in &values {
                ours.record(Nanos(*value));
                hdr.record((*value).min(LATENCY_MAX.0)).unwrap();
            }
            prop_assert_eq!(ours.count(), hdr.len());
            prop_assert_eq!(ours.min().0, hdr.min());
            prop_assert_eq!(ours.max().0, hdr.max());
            for q in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
                prop_assert_eq!(ours.quantile(q).0, hdr.value_at_quantile(q), "q = {}", q);
            }
            let buckets: Vec<_> = ours.buckets().map(|b| (b.high.0, b.count)).collect();
            let theirs: Vec<_> =
                hdr.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
            prop_assert_eq!(buckets, theirs);
        }

        #[test]
        fn merging_is_recording_into_one(a in values(), b in values(), c in values()) {
            let all = of(&[a.clone(), b.clone(), c.clone()].concat());
            let mut left = of(&a);
            left.merge(&of(&b));
            left.merge(&of(&c));
            let mut right = of(&b);
            right.merge(&of(&c));
            let mut outer = of(&a);
            outer.merge(&right);
            prop_assert_eq!(state(&left), state(&all));
            prop_assert_eq!(state(&outer), state(&all));
        }

        #[test]
        fn cleared_is_as_new(a in values(), b in values()) {
            let mut latency = of(&a);
            latency.clear();
            prop_assert_eq!(state(&latency), state(&Latency::new()));
            b.iter().for_each(|&v| latency.record(Nanos(v)));
            prop_assert_eq!(state(&latency), state(&of(&b)));
        }

        #[test]
        fn what_is_taken_out_was_never_there(a in values(), b in values()) {
            let all = of(&[a.clone(), b.clone()].concat());
            prop_assert_eq!(state(&all.without(&of(&b))), state(&of(&a)));
            prop_assert_eq!(state(&all.without(&all)), state(&Latency::new()));
        }

        #[test]
        fn other_digits_merge_without_losing_a_value(a in values(), b in values()) {
            let (mut coarse, mut fine) = (Latency::coarse(), of(&b));
            coarse.merge(&of(&a));
            fine.merge(&coarse);
            for merged in [coarse, fine.clone()] {
                prop_assert_eq!(merged.buckets().map(|b| b.count).sum::<u64>(), merged.count());
            }
            prop_assert_eq!(fine.count() as usize, a.len() + b.len());
        }
    }
}
