//! The spread of a figure over trials, without a belief about its distribution.
//!
//! In: values of at least one trial. Out: a [`Spread`] with an interval for the median from order
//! statistics: with n trials the i-th smallest and the i-th largest hold the median between them
//! with probability 1 - 2 P(B(n, 1/2) < i). From 6 trials on that is 95 % or more for some i.
//! Source: H. A. David and H. N. Nagaraja, "Order Statistics" (2003), section 7.1. Limits: trials
//! must be independent of each other.

use record::repeats::Spread;

/// How [`Spread::interval_kind`] names an interval that is one.
const INTERVAL: &str = "95 % of the median";
/// And one that is not.
const RANGE: &str = "min-max";

/// The index of the median in values sorted upwards: of an even number the lower of the two.
#[must_use]
pub fn median_index(count: usize) -> usize {
    count.saturating_sub(1) / 2
}

/// The spread of `values`; None of none.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let (left_out, kind) = match ranks_left_out(sorted.len()) {
        Some(left_out) => (left_out, INTERVAL),
        None => (0, RANGE),
    };
    Some(Spread {
        median: sorted[median_index(sorted.len())],
        min,
        max,
        interval: (sorted[left_out], sorted[sorted.len() - 1 - left_out]),
        interval_kind: kind.to_owned(),
    })
}

/// How many values may be left out at either end of `count` so that what is left holds the median
/// with at least 95 %; None when even all of them do not.
fn ranks_left_out(count: usize) -> Option<usize> {
    let (mut tail, mut probability) = (0.0, 0.5f64.powi(i32::try_from(count).ok()?));
    let mut left_out = None;
    for rank in 0..count / 2 {
        tail += probability;
        if 2.0 * tail > 0.05 {
            break;
        }
        left_out = Some(rank);
        probability *= (count - rank) as f64 / (rank + 1) as f64;
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_needs_six_trials() {
        // From the table of the sign test at 5 %, two-sided.
        let expected = [
            (1, None),
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (11, Some(1)),
            (12, Some(2)),
            (20, Some(5)),
            (25, Some(7)),
        ];
        for (count, left_out) in expected {
            assert_eq!(ranks_left_out(count), left_out, "{count} trials");
        }
    }

    #[test]
    fn the_spread_is_of_the_values_themselves() {
        let few = spread(&[3.0, 1.0, 2.0, 9.0]).unwrap();
        assert_eq!((few.median, few.min, few.max), (2.0, 1.0, 9.0));
        assert_eq!((few.interval, few.interval_kind.as_str()), ((1.0, 9.0), "min-max"));
        let nine: Vec<f64> = (0..9).map(f64::from).collect();
        let many = spread(&nine).unwrap();
        assert_eq!((many.median, many.interval), (4.0, (1.0, 7.0)));
        assert_eq!(many.interval_kind, "95 % of the median");
        assert_eq!(spread(&[]), None);
    }
}
