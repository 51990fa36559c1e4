//! Which of several arms is best, and how sure that is.
//!
//! In: arms with one value per block, where more is better; a block is a stretch of the experiment
//! in which each arm had its turn, so drift moves all of them. Out: a [`Comparison`]: the arm with
//! the greatest geometric mean, its ratio to each other arm, and a [`Verdict`].
//! From [`crate::ratio::PAIRS_MIN`] common blocks on a comparison is Student's test of the
//! logarithms of the blocks' ratios; below, the exact rank test of Mann and Whitney over all
//! values. With k arms each of the k - 1 comparisons with the best may err in a (k - 1)th of what
//! all of them may (Bonferroni): 1 % to win, 5 % to lead. A winner has to beat every other arm,
//! hence some arm wins by accident in at most k / (2 (k - 1)) of 1 % of all experiments, which is
//! never above 1 %.
//! Sources: Student (1908); Mann and Whitney (1947); Dunn, "Multiple comparisons among means"
//! (1961). Limits: blocks are taken for independent; 3 values against 3 cannot say more than
//! p = 0.1, whatever they are.

mod words;

use crate::ratio::ratio_of_logs;
use crate::ratio::{CONFIDENCE, IntervalKind, Ratio, log_ratios, logs, mean_and_error};
use crate::student;
use serde::Serialize;

/// How sure it has to be that an arm beats all others for it to win. At 95 % one of 20 experiments
/// with equal arms would have a winner.
const WINNER: f64 = 0.99;

/// What arms are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum By {
    /// Operations per second.
    #[serde(rename = "ops_s")]
    Throughput,
    /// The 99th percentile of the response time; less is better, so values are its inverse.
    #[serde(rename = "response_p99_us")]
    ResponseP99,
}

/// What was measured of one arm.
#[derive(Debug, Clone, Copy)]
pub struct Arm<'a> {
    /// As in the experiment: `per-numa`.
    pub name: &'a str,
    /// One per block, more is better; None where the trial failed.
    pub values: &'a [Option<f64>],
}

/// The best arm against another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Versus {
    /// The other's place among the arms given.
    pub arm: usize,
    /// Best over other. Its interval is wide enough for all comparisons of the experiment together.
    pub ratio: Ratio,
    /// How often two equal arms would differ by as much, in either direction, times the number of
    /// comparisons.
    pub p: f64,
    /// By which test.
    pub test: Test,
}

/// How two arms were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Student's, of pairs.
    Pairs,
    /// Ranks of all values, exactly.
    Ranks,
}

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The best arm beats each other one.
    Winner {
        /// 1 less the largest `p`; at least 0.99.
        certainty: f64,
    },
    /// It beats each other one at 95 % and not at 99 %, or each of its values is above all of each
    /// other arm, and there are too few to be sure.
    Leads {
        /// 1 less the largest `p`.
        certainty: f64,
    },
    /// Some arm cannot be told from the best.
    CannotTell {
        /// Of the best and an arm that it does not beat, the better one has at most so much more;
        /// None where one of these has too few values for a bound.
        difference_share_max: Option<f64>,
        /// How sure that bound is: the least sure of these arms.
        bound: IntervalKind,
    },
}

/// Arms side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The place of the arm with the greatest geometric mean.
    pub best: usize,
    /// Against each of the others, in their order.
    pub versus: Vec<Versus>,
    /// What that says.
    pub verdict: Verdict,
}

/// Compares arms; None of fewer than two that have values in a common block.
#[must_use]
pub fn compare(arms: &[Arm<'_>]) -> Option<Comparison> {
    let best = best(arms)?;
    let others: Vec<usize> = (0..arms.len())
        .filter(|i| *i != best && !log_ratios(arms[best].values, arms[*i].values).is_empty())
        .collect();
    let comparisons = others.len() as f64;
    let versus: Vec<Versus> = others
        .iter()
        .filter_map(|i| versus(*i, arms[best].values, arms[*i].values, comparisons))
        .collect();
    let verdict = verdict(arms, best, &versus)?;
    Some(Comparison { best, versus, verdict })
}

/// The arm with the greatest mean logarithm over the blocks in which every arm that was measured at
/// all has a value, else over its own.
fn best(arms: &[Arm<'_>]) -> Option<usize> {
    let measured: Vec<usize> =
        (0..arms.len()).filter(|i| !logs(arms[*i].values).is_empty()).collect();
    let value = |arm: usize, block: usize| -> Option<f64> {
        arms[arm].values.get(block).copied().flatten().filter(|v| *v > 0.0)
    };
    let blocks = measured.iter().map(|i| arms[*i].values.len()).min()?;
    let common: Vec<usize> =
        (0..blocks).filter(|b| measured.iter().all(|i| value(*i, *b).is_some())).collect();
    let mean = |arm: usize| match common.is_empty() {
        true => mean_and_error(&logs(arms[arm].values)).0,
        false => {
            let sum: f64 = common.iter().filter_map(|b| value(arm, *b)).map(f64::ln).sum();
            sum / common.len() as f64
        }
    };
    measured.into_iter().max_by(|a, b| mean(*a).total_cmp(&mean(*b)).then(b.cmp(a)))
}

/// `best` over `other`, as one of so many comparisons.
fn versus(
    arm: usize,
    best: &[Option<f64>],
    other: &[Option<f64>],
    comparisons: f64,
) -> Option<Versus> {
    let ratios = log_ratios(best, other);
    let ratio = ratio_of_logs(&ratios, (1.0 - CONFIDENCE) / comparisons)?;
    let (p, test) = match ratio.interval_kind {
        IntervalKind::Sure => (pair_test(&ratios), Test::Pairs),
        IntervalKind::Range | IntervalKind::Alone => {
            (rank_test(&logs(best), &logs(other)), Test::Ranks)
        }
    };
    Some(Versus { arm, ratio, p: (p * comparisons).min(1.0), test })
}

fn verdict(arms: &[Arm<'_>], best: usize, versus: &[Versus]) -> Option<Verdict> {
    let p = versus.iter().map(|v| v.p).reduce(f64::max)?;
    let ahead = versus.iter().all(|v| v.ratio.value > 1.0);
    let is_repeated = versus.iter().all(|v| v.ratio.pairs > 1);
    if ahead && is_repeated && p <= 1.0 - WINNER {
        return Some(Verdict::Winner { certainty: 1.0 - p });
    }
    let least = logs(arms[best].values).into_iter().fold(f64::INFINITY, f64::min);
    let above = |v: &Versus| {
        let few = v.ratio.interval_kind == IntervalKind::Range;
        few && logs(arms[v.arm].values).into_iter().all(|log| log < least)
    };
    if versus.iter().all(|v| v.is_beaten() || above(v)) {
        return Some(Verdict::Leads { certainty: 1.0 - p });
    }
    let rivals = || versus.iter().filter(|v| !v.is_beaten());
    let apart = |v: &Versus| match (v.ratio.interval_kind, v.ratio.interval) {
        (IntervalKind::Sure, Some((low, high))) => Some(high.max(1.0 / low) - 1.0),
        _ => None,
    };
    let difference_share_max =
        rivals().map(apart).try_fold(0.0, |most: f64, share| Some(most.max(share?)));
    let fewest = rivals().map(|v| v.ratio.pairs).min().unwrap_or(0);
    Some(Verdict::CannotTell { difference_share_max, bound: IntervalKind::of(fewest) })
}

impl Versus {
    /// At 95 %, all comparisons of the experiment together. One pair beats nobody.
    fn is_beaten(&self) -> bool {
        self.p <= 1.0 - CONFIDENCE && self.ratio.value > 1.0 && self.ratio.pairs > 1
    }
}

/// How often pairs of equal arms have a mean as far from 0: Student's test.
fn pair_test(logs: &[f64]) -> f64 {
    let (mean, error) = mean_and_error(logs);
    match (mean == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (_, true) => 0.0,
        _ => student::both_tails(mean / error, logs.len() - 1),
    }
}

/// How often ranks of equal arms are as uneven as these, in either direction: the exact test of
/// Mann and Whitney, equal values sharing the mean of their ranks.
///
/// Cost: grows with the square of the values and with those of the smaller arm.
#[must_use]
pub fn rank_test(one: &[f64], other: &[f64]) -> f64 {
    let mut all: Vec<f64> = one.iter().chain(other).copied().collect();
    all.sort_by(f64::total_cmp);
    // Twice the rank is whole, also where a rank is shared.
    let rank = |value: f64| {
        let below = all.partition_point(|v| *v < value);
        below + all.partition_point(|v| *v <= value) + 1
    };
    let ranks: Vec<usize> = all.iter().map(|v| rank(*v)).collect();
    let chosen = one.len();
    let most: usize = ranks.iter().sum();
    // ways[c][s]: choices of c values whose ranks sum to s.
    let mut ways = vec![vec![0.0f64; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in &ranks {
        for count in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            for sum in (*rank..=most).rev() {
                more[0][sum] += fewer[count - 1][sum - rank];
            }
        }
    }
    let total: f64 = ways[chosen].iter().sum();
    let sum: usize = one.iter().map(|v| rank(*v)).sum();
    // Twice the sum of as many mean ranks.
    let middle = chosen * (all.len() + 1);
    let far = sum.abs_diff(middle);
    let as_far: f64 =
        (0..=most).filter(|s| s.abs_diff(middle) >= far).map(|s| ways[chosen][s]).sum();
    (as_far / total).min(1.0)
}

#[cfg(test)]
#[path = "arms_tests.rs"]
mod tests;
