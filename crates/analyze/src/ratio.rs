//! How many times as much: the ratio of two figures that were measured side by side.
//!
//! In: values of two arms, one per block; a block is a stretch of the experiment in which every arm
//! had its turn once, so what drifts from block to block moves both and cancels. Out: a [`Ratio`]
//! with its interval. The ratio is that of geometric means over the blocks in which both have a
//! value; its interval is Student's for the mean of the logarithms of the blocks' ratios, from
//! [`PAIRS_MIN`] blocks on, and the least and the greatest of them below; a single block gives
//! none. Source: Fleming and Wallace, "How not to lie with statistics" (1986) for geometric means
//! of ratios; Student (1908).
//! Limits: values that are not above 0 are left out; blocks are taken for independent.

use crate::student;
use serde::Serialize;

/// Blocks from which on there is an interval.
pub const PAIRS_MIN: usize = 6;
/// How sure an interval is.
pub const CONFIDENCE: f64 = 0.95;

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum IntervalKind {
    /// The truth is in 95 of 100 such intervals.
    #[serde(rename = "95 %")]
    Sure,
    /// The least and the greatest that was seen: too few to say more.
    #[serde(rename = "min-max")]
    Range,
    /// There is none: one value says nothing of the next one.
    #[serde(rename = "one value")]
    Alone,
}

impl IntervalKind {
    /// As in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sure => "95 %",
            Self::Range => "min-max",
            Self::Alone => "one value",
        }
    }

    /// Of so many values.
    #[must_use]
    pub const fn of(count: usize) -> Self {
        match count {
            0 | 1 => Self::Alone,
            2..PAIRS_MIN => Self::Range,
            _ => Self::Sure,
        }
    }
}

/// One figure over another, 1 when they are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Of their geometric means.
    pub value: f64,
    /// From, to; None of a single pair.
    pub interval: Option<(f64, f64)>,
    /// What that says.
    pub interval_kind: IntervalKind,
    /// Blocks in which both were measured.
    pub pairs: usize,
}

impl Ratio {
    /// Times `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let interval = self.interval.map(|(low, high)| (low * factor, high * factor));
        Self { value: self.value * factor, interval, ..self }
    }
}

/// `over / under`, at 95 %; None without a block in which both have a value.
#[must_use]
pub fn ratio(over: &[Option<f64>], under: &[Option<f64>]) -> Option<Ratio> {
    ratio_of_logs(&log_ratios(over, under), 1.0 - CONFIDENCE)
}

/// The geometric mean of `values` with its interval, as a ratio to 1.
#[must_use]
pub fn level(values: &[Option<f64>]) -> Option<Ratio> {
    ratio_of_logs(&logs(values), 1.0 - CONFIDENCE)
}

/// Of the logarithms of ratios; `miss` is the probability that the interval may miss.
pub(crate) fn ratio_of_logs(logs: &[f64], miss: f64) -> Option<Ratio> {
    let pairs = logs.len();
    if pairs == 0 {
        return None;
    }
    let (mean, error) = mean_and_error(logs);
    let interval_kind = IntervalKind::of(pairs);
    let interval = match interval_kind {
        IntervalKind::Sure => {
            let half = student::quantile(miss, pairs - 1) * error;
            Some((mean - half, mean + half))
        }
        IntervalKind::Range => {
            let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
            Some((least, logs.iter().copied().fold(f64::NEG_INFINITY, f64::max)))
        }
        IntervalKind::Alone => None,
    };
    let interval = interval.map(|(low, high)| (low.exp(), high.exp()));
    Some(Ratio { value: mean.exp(), interval, interval_kind, pairs })
}

/// The mean, and its standard error: 0 of a single value.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// Logarithms of what is above 0.
pub(crate) fn logs(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().flatten().filter(|v| **v > 0.0).map(|v| v.ln()).collect()
}

/// Logarithms of the ratios of blocks in which both are above 0.
pub(crate) fn log_ratios(over: &[Option<f64>], under: &[Option<f64>]) -> Vec<f64> {
    let both = over.iter().zip(under).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    both.filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (a / b).ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Draws;

    #[test]
    fn an_interval_holds_the_truth_in_95_of_100_and_drift_does_not_widen_it() {
        let mut draws = Draws::new(11);
        let (mut held, mut width) = (0, 0.0);
        for _ in 0..1000 {
            let block = |i: usize| 1000.0 * (1.0 + 0.1 * i as f64);
            let mut arm = |factor: f64| {
                let value = |i| Some(block(i) * factor * (0.03 * draws.normal()).exp());
                (0..6).map(value).collect::<Vec<_>>()
            };
            let ratio = ratio(&arm(1.2), &arm(1.0)).unwrap();
            let (low, high) = ratio.interval.unwrap();
            held += u32::from((low..=high).contains(&1.2));
            width += (high - low) / 1000.0;
        }
        assert!((925..=975).contains(&held), "{held} of 1000 hold the truth");
        // 2.571 * 0.03 * sqrt(2 / 6) to either side of 1.2, times the bias of a deviation of 6.
        assert!((0.09..0.12).contains(&width), "{width}");
    }

    #[test]
    fn few_blocks_have_a_range_and_blocks_with_a_gap_are_left_out() {
        let over = [Some(2.0), None, Some(8.0), Some(4.0)];
        let under = [Some(1.0), Some(1.0), Some(2.0), Some(0.0)];
        let ratio = ratio(&over, &under).unwrap();
        assert_eq!((ratio.pairs, ratio.interval_kind), (2, IntervalKind::Range));
        assert!((ratio.value - 8f64.sqrt()).abs() < 1e-12);
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 2.0).abs() < 1e-12 && (high - 4.0).abs() < 1e-12);
        assert_eq!(super::ratio(&over, &[None; 4]), None);
        // One pair is a ratio, and says nothing of the next one.
        let one = super::ratio(&over[..1], &under[..1]).unwrap();
        assert_eq!((one.value, one.interval), (2.0, None));
        assert_eq!(one.interval_kind, IntervalKind::Alone);
        assert_eq!(IntervalKind::of(6).name(), "95 %");
    }
}
