//! The weighted average latency of a latency table, and how far its rounding lets it be relied on.
//!
//! In: the middles of columns (us) and what is above each limit (percent of all). Out: the sum of
//! shares times middles, and between which values it lies when every column was rounded for print.
//! The last column is open and counts at the middle that [`record::Columns::middles_us`] gives it.
//! What an average over columns is off by beyond that, values not lying at the middles, is not in
//! the bound: the mean of the values themselves tells it, where it is known.

/// An average with its rounding bound, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// From the columns as they are.
    pub mean_us: f64,
    /// At least, when every column was rounded.
    pub least_us: f64,
    /// At most.
    pub most_us: f64,
}

/// The average of columns at `middles_us`, of which `above_percent` are the shares of all that lie
/// above their limits (one fewer than there are columns), rounded to multiples of `step_percent`;
/// 0 where they were not.
///
/// By parts: the first middle, and for each limit the share above it times the way to the next
/// middle. Each share lies within half a step of its print, so that the bound is half a step times
/// the way from the first middle to the last, whatever the shares are: 0.4 us for steps of 0.1 %
/// from 20 to 820 us. That shares cannot be below 0 or above 100 would narrow it, where many are.
#[must_use]
pub fn weighted(middles_us: &[f64], above_percent: &[f64], step_percent: f64) -> Weighted {
    let first = middles_us.first().copied().unwrap_or(0.0);
    let last = middles_us.last().copied().unwrap_or(first);
    let ways = middles_us.windows(2).map(|pair| pair[1] - pair[0]);
    let mean_us =
        ways.zip(above_percent).fold(first, |sum, (way, above)| sum + way * above / 100.0);
    let bound_us = step_percent / 200.0 * (last - first);
    Weighted { mean_us, least_us: mean_us - bound_us, most_us: mean_us + bound_us }
}

impl Weighted {
    /// By how many percent this is less than another one: least, as computed, most.
    #[must_use]
    pub fn percent_less_than(self, other: Self) -> (f64, f64, f64) {
        let less = |ours: f64, theirs: f64| (1.0 - ours / theirs) * 100.0;
        (
            less(self.most_us, other.least_us),
            less(self.mean_us, other.mean_us),
            less(self.least_us, other.most_us),
        )
    }
}

/// A limit above which two rows of one table do not agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disagreement {
    /// Index of the limit.
    pub limit: usize,
    /// Above it by the cumulative row, in percent.
    pub cumulative: f64,
    /// Above it by the row of shares, added up.
    pub shares: f64,
}

/// Where a cumulative row and the shares of its columns by themselves (one more) differ by more
/// than rounding each of them to `step_percent` explains.
#[must_use]
pub fn disagreements(
    above_percent: &[f64],
    shares_percent: &[f64],
    step_percent: f64,
) -> Vec<Disagreement> {
    let compared = above_percent.iter().enumerate().filter_map(|(limit, &cumulative)| {
        let behind = shares_percent.get(limit + 1..)?;
        let shares: f64 = behind.iter().sum();
        let rounding = step_percent / 2.0 * (behind.len() + 1) as f64;
        let differs = (cumulative - shares).abs() > rounding + 1e-9;
        differs.then_some(Disagreement { limit, cumulative, shares })
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_is_the_sum_of_shares_at_their_middles() {
        // By hand: 50 % at 5, 30 % at 15, 20 % at 25.
        let found = weighted(&[5.0, 15.0, 25.0], &[50.0, 20.0], 1.0);
        assert!((found.mean_us - 12.0).abs() < 1e-9, "{found:?}");
        // Each column half a percent off, over 10 us.
        assert!((found.least_us - 11.9).abs() < 1e-9 && (found.most_us - 12.1).abs() < 1e-9);
    }

    #[test]
    fn rows_disagree_where_rounding_does_not_explain_it() {
        let shares = [50.0, 30.0, 20.0];
        assert_eq!(disagreements(&[50.4, 20.9], &shares, 1.0), []);
        let found = disagreements(&[50.0, 22.0], &shares, 1.0);
        assert_eq!(found, [Disagreement { limit: 1, cumulative: 22.0, shares: 20.0 }]);
    }
}
