//! Steady or not: is what was measured one thing, or a change from one thing to another?
//!
//! In: a series of [`Block`]s of at least a second, each with its throughput and percentiles. Out:
//! a [`Steadiness`]: for throughput, median and p99 how much they changed over the window, how much
//! levels vary, how many blocks are independent of each other, and since when all of them are
//! steady. Pauses that come again (collections, flushes) are steady; ramps, steps and drift are
//! not. The parts are in `trend`; `docs/METHODOLOGY.md` says how they are judged and why.
//! Limits: fewer than [`BLOCKS_MIN`] blocks say nothing; what changes by less than its own scatter
//! is taken for steady.

use crate::trend::{self, Fit, fit};
use record::Caveat;

/// Blocks below which nothing is said.
pub const BLOCKS_MIN: usize = 10;
/// Largest change of the throughput over the window, as slope times length or as a step.
pub const CHANGE_SHARE_MAX: f64 = 0.02;
/// Largest standard deviation of the throughput's levels over their mean.
pub const VARIATION_SHARE_MAX: f64 = 0.05;
/// The same for the median: an interval's median scatters by some percent by itself.
const P50_LIMITS: Limits = Limits { change: 0.1, variation: 0.15 };
/// The same for p99, which a single pause moves.
const P99_LIMITS: Limits = Limits { change: 0.3, variation: 0.6 };
const THROUGHPUT_LIMITS: Limits =
    Limits { change: CHANGE_SHARE_MAX, variation: VARIATION_SHARE_MAX };
/// Standard deviations of Mann's test that are no accident: one in 400 of either sign.
const CHANGE_Z_MIN: f64 = 3.0;
/// Standard errors of a step, of which the largest over all places was taken: 1 % by Andrews's
/// table is 3.6, and short series have their scatter estimated from few values.
const SHIFT_T_MIN: f64 = 3.6;
const SHIFT_T_SHORT: f64 = 8.0;
/// The change that may be left in the second half of a warm-up, with its standard error: later it
/// is less, because warm-ups flatten, and the window is judged by itself.
const WARM_CHANGE_MAX: f64 = 0.05;
/// The same for the median, which alone tells at a rate.
const WARM_P50_CHANGE_MAX: f64 = 0.08;

/// What may be.
#[derive(Debug, Clone, Copy)]
struct Limits {
    change: f64,
    variation: f64,
}

/// What was done in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Since the start of the window.
    pub start_s: f64,
    /// At least a second in a window; equal for all.
    pub length_s: f64,
    /// Operations that ended ok, per second.
    pub ops_s: f64,
    /// Median latency in us; None when nothing was done.
    pub p50_us: Option<f64>,
    /// 99th percentile in us; likewise.
    pub p99_us: Option<f64>,
}

/// Whether a window was steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing speaks against it.
    Steady,
    /// It changed, or varied too much.
    NotSteady,
    /// Fewer than [`BLOCKS_MIN`] blocks.
    TooShortToTell,
}

impl State {
    /// As in the manifest.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::NotSteady => "not-steady",
            Self::TooShortToTell => "too-short-to-tell",
        }
    }
}

/// How one figure of the blocks moved. Shares: 0.02 is 2 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Movement {
    /// `throughput`, `p50`, `p99`.
    pub name: &'static str,
    /// Median slope times the length of the window.
    pub change_share: f64,
    /// The most likely step: level behind it over level before it, less 1.
    pub step_share: f64,
    /// When that was, since the start of the window.
    pub step_at_s: f64,
    /// Standard deviation of levels over their mean.
    pub variation_share: f64,
    /// Autocorrelation time.
    pub correlation_s: f64,
    /// As many independent blocks would say as much.
    pub blocks_effective: f64,
    /// Within its limits, or not surely outside.
    pub steady: bool,
}

/// The judgement of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// The verdict.
    pub state: State,
    /// Blocks that it rests on.
    pub blocks: usize,
    /// Their length together.
    pub length_s: f64,
    /// Of each figure; empty when too short.
    pub movements: Vec<Movement>,
    /// From when on it was steady, in s since the start of the window: 0 when all of it was, None
    /// when less than its second half was.
    pub since_s: Option<f64>,
}

/// Judges a window by its blocks.
#[must_use]
pub fn steadiness(blocks: &[Block]) -> Steadiness {
    let length_s: f64 = blocks.iter().map(|block| block.length_s).sum();
    let movements = movements(blocks);
    let state = match (blocks.len() < BLOCKS_MIN, movements.iter().all(|m| m.steady)) {
        (true, _) => State::TooShortToTell,
        (false, true) => State::Steady,
        (false, false) => State::NotSteady,
    };
    let since_s = match state {
        State::Steady => Some(0.0),
        State::NotSteady => since(blocks),
        State::TooShortToTell => None,
    };
    Steadiness { state, blocks: blocks.len(), length_s, movements, since_s }
}

/// The first of some twenty moments in the first half behind which all is steady.
fn since(blocks: &[Block]) -> Option<f64> {
    let stride = (blocks.len() / 20).max(1);
    let starts = (1..=blocks.len() / 2).step_by(stride);
    let mut tails = starts.map(|from| &blocks[from..]).filter(|tail| tail.len() >= BLOCKS_MIN);
    let first = tails.find(|tail| movements(tail).iter().all(|m| m.steady))?;
    first.first().map(|block| block.start_s)
}

fn movements(blocks: &[Block]) -> Vec<Movement> {
    let block_s = blocks.first().map_or(0.0, |block| block.length_s);
    let throughput: Vec<f64> = blocks.iter().map(|b| b.ops_s).collect();
    let mean = trend::mean(&throughput);
    let shares: Vec<f64> = throughput.iter().map(|ops_s| ops_s / mean.max(1e-9)).collect();
    let logarithms = |of: fn(&Block) -> Option<f64>| -> Vec<f64> {
        blocks.iter().filter_map(of).map(|us| us.max(1e-3).ln()).collect()
    };
    [
        ("throughput", shares, THROUGHPUT_LIMITS),
        ("p50", logarithms(|b| b.p50_us), P50_LIMITS),
        ("p99", logarithms(|b| b.p99_us), P99_LIMITS),
    ]
    .into_iter()
    .filter(|(_, values, _)| values.len() >= BLOCKS_MIN)
    .map(|(name, values, limits)| movement(name, &values, limits, block_s))
    .collect()
}

fn movement(name: &'static str, values: &[f64], limits: Limits, block_s: f64) -> Movement {
    let (values, together) = trend::thin(values);
    let fit = fit(&values);
    // Differences of logarithms are ratios; those of shares are shares of the mean already.
    let share = |difference: f64| match name {
        "throughput" => difference,
        _ => difference.exp_m1(),
    };
    let value_s = block_s * together as f64;
    Movement {
        name,
        change_share: share(fit.change),
        step_share: share(fit.shift),
        step_at_s: fit.shift_at as f64 * value_s,
        variation_share: fit.variation,
        correlation_s: fit.correlation * value_s,
        blocks_effective: values.len() as f64 * together as f64 / fit.correlation,
        steady: is_steady(&fit, values.len(), limits),
    }
}

/// Outside its limits and surely so: by its slope, by a step, or by the scatter of its levels.
fn is_steady(fit: &Fit, values: usize, limits: Limits) -> bool {
    let slopes = fit.change.abs() > limits.change && fit.change_z.abs() > CHANGE_Z_MIN;
    let step_t_min = SHIFT_T_MIN + SHIFT_T_SHORT / values as f64;
    let steps = fit.shift.abs() > limits.change && fit.shift_t > step_t_min;
    !(slopes || steps || fit.variation > limits.variation)
}

/// Whether a warm-up is over: its second half is steady, surely enough, and MSER does not cut into
/// it. `blocks` are of equal length, from its begin on. Less than a half would end earlier, and a
/// slow rise in noise too early: in one of six of the series of the tests, with a third.
#[must_use]
pub fn is_warm(blocks: &[Block]) -> bool {
    let from = blocks.len() / 2;
    let tail = &blocks[from..];
    if tail.len() < BLOCKS_MIN {
        return false;
    }
    let throughput: Vec<f64> = blocks.iter().map(|b| b.ops_s).collect();
    if trend::truncation(&throughput) > from {
        return false;
    }
    let mean = trend::mean(&throughput[from..]).max(1e-9);
    let shares: Vec<f64> = tail.iter().map(|b| b.ops_s / mean).collect();
    let p50: Vec<f64> = tail.iter().filter_map(|b| b.p50_us).map(|us| us.max(1e-3).ln()).collect();
    // A pause may take a block; a target that stands still is not warm.
    if p50.len() * 10 < tail.len() * 9 {
        return false;
    }
    most_change(&shares) < WARM_CHANGE_MAX
        && most_change(&p50) < WARM_P50_CHANGE_MAX
        && movements(tail).iter().all(|m| m.steady)
}

/// By how much the throughput may have changed in the second half of a warm-up, as a share: the
/// change with its standard error. None where there are too few blocks to tell.
#[must_use]
pub fn change_left(blocks: &[Block]) -> Option<f64> {
    let tail = &blocks[blocks.len() / 2..];
    let throughput: Vec<f64> = tail.iter().map(|b| b.ops_s).collect();
    let mean = trend::mean(&throughput);
    if tail.len() < BLOCKS_MIN || mean <= 0.0 {
        return None;
    }
    Some(most_change(&throughput.iter().map(|ops_s| ops_s / mean).collect::<Vec<_>>()))
}

/// The change over all values, with its standard error.
fn most_change(values: &[f64]) -> f64 {
    let fit = fit(&trend::thin(values).0);
    fit.change.abs() + fit.change_error
}

/// What is to be said of a window that was not steady.
#[must_use]
pub fn not_steady(steadiness: &Steadiness) -> Option<Caveat> {
    if steadiness.state != State::NotSteady {
        return None;
    }
    let moved: Vec<_> = steadiness.movements.iter().filter(|m| !m.steady).map(|m| m.name).collect();
    let text = format!(
        "What was measured was not steady ({}): the figures are a mean over states that differ.",
        moved.join(", ")
    );
    let cure = match steadiness.since_s {
        Some(since_s) => format!(
            "It was steady from {since_s:.0} s on: warm up that much longer with --warm, or until \
             it is steady with --warm auto."
        ),
        None => "Measure longer with --duration, after a longer --warm or --warm auto; what runs \
                 beside it may be the cause."
            .to_owned(),
    };
    Some(Caveat::new("not-steady", text).evidence(evidence(steadiness)).cure(cure))
}

/// The numbers of a judgement in words.
#[must_use]
pub fn evidence(steadiness: &Steadiness) -> String {
    let Steadiness { blocks, length_s, .. } = *steadiness;
    if steadiness.state == State::TooShortToTell {
        return format!(
            "too short to tell: {blocks} blocks of {:.1} s, {BLOCKS_MIN} are needed",
            if blocks == 0 { 0.0 } else { length_s / blocks as f64 }
        );
    }
    let mut parts = vec![format!("{blocks} blocks over {length_s:.0} s")];
    for m in &steadiness.movements {
        parts.push(format!(
            "{}: {:+.1} % over the window by its slope, {:+.1} % at {:.0} s as a step, levels vary \
             by {:.1} %, autocorrelation {:.1} s",
            m.name,
            m.change_share * 100.0,
            m.step_share * 100.0,
            m.step_at_s,
            m.variation_share * 100.0,
            m.correlation_s,
        ));
    }
    parts.push(match steadiness.since_s {
        Some(since_s) => format!("steady since {since_s:.0} s"),
        None => "not steady in its second half either".to_owned(),
    });
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(ops_s: impl Fn(usize) -> f64, count: usize) -> Vec<Block> {
        let block = |i: usize| Block {
            start_s: i as f64,
            length_s: 1.0,
            ops_s: ops_s(i),
            p50_us: Some(64.0 / ops_s(i) * 1e6),
            p99_us: Some(300.0 / ops_s(i) * 1e6),
        };
        (0..count).map(block).collect()
    }

    fn ripple(i: usize) -> f64 {
        1.0 + ((i * 7919) % 17) as f64 / 1700.0
    }

    #[test]
    fn few_blocks_say_nothing() {
        let short = steadiness(&blocks(|i| 1000.0 + 500.0 * i as f64, 9));
        assert_eq!((short.state, short.since_s), (State::TooShortToTell, None));
        assert!(short.movements.is_empty() && not_steady(&short).is_none());
        assert_eq!(evidence(&short), "too short to tell: 9 blocks of 1.0 s, 10 are needed");
        assert_eq!(steadiness(&[]).state, State::TooShortToTell);
    }

    #[test]
    fn a_window_that_becomes_steady_says_since_when() {
        let warm = |i: usize| 10_000.0 * ripple(i) * (1.0 - 0.5 * (-(i as f64) / 5.0).exp());
        let judged = steadiness(&blocks(warm, 60));
        assert_eq!(judged.state, State::NotSteady);
        let since_s = judged.since_s.unwrap();
        assert!((5.0..30.0).contains(&since_s), "{since_s}");
        let caveat = not_steady(&judged).unwrap();
        assert_eq!(caveat.code, "not-steady");
        assert!(caveat.evidence.contains("60 blocks over 60 s"), "{}", caveat.evidence);
        assert!(caveat.cure.contains("--warm auto"), "{}", caveat.cure);
    }

    #[test]
    fn a_steady_window_has_no_caveat() {
        let judged = steadiness(&blocks(|i| 10_000.0 * ripple(i), 60));
        assert_eq!((judged.state, judged.since_s), (State::Steady, Some(0.0)));
        assert_eq!(judged.movements.len(), 3);
        assert_eq!(not_steady(&judged), None);
    }

    #[test]
    fn at_a_rate_the_latency_tells() {
        let mut blocks = blocks(|i| 5000.0 * (1.0 + ripple(i) / 100.0), 40);
        for (i, block) in blocks.iter_mut().enumerate() {
            block.p50_us = Some(400.0 * ripple(i) * (1.0 + (-(i as f64) / 12.0).exp()));
        }
        let judged = steadiness(&blocks);
        assert_eq!(judged.state, State::NotSteady);
        let moved: Vec<_> = judged.movements.iter().filter(|m| !m.steady).map(|m| m.name).collect();
        assert_eq!(moved, ["p50"]);
        for (i, block) in blocks.iter_mut().enumerate() {
            block.p50_us = Some(400.0 * ripple(i) * (1.0 + (-(i as f64) / 20.0).exp()));
        }
        assert!(!is_warm(&blocks));
        blocks.iter_mut().for_each(|block| block.p50_us = Some(400.0));
        assert!(is_warm(&blocks));
        blocks[39].p50_us = None;
        assert!(is_warm(&blocks));
        (blocks[35].p50_us, blocks[32].p50_us) = (None, None);
        assert!(!is_warm(&blocks), "nothing was done in three of twenty blocks");
    }

    #[test]
    fn a_warm_up_ends_when_its_second_half_is_flat() {
        let curve = |tau: f64| {
            move |i: usize| 10_000.0 * ripple(i) * (1.0 - 0.6 * (-(i as f64) / tau).exp())
        };
        for tau in [3.0, 10.0, 25.0] {
            let all = blocks(curve(tau), 400);
            let end = (1..=400).find(|&n| is_warm(&all[..n])).unwrap();
            let left = 0.6 * (-(end as f64) / tau).exp();
            assert!(left < 0.02, "tau {tau}: {left} of it is still to come after {end} blocks");
            assert!(end as f64 <= 20.0 + 12.0 * tau, "tau {tau}: {end} blocks");
        }
        let rising = blocks(|i| 1000.0 + 50.0 * i as f64, 200);
        assert!(!is_warm(&rising));
        // From 6000 to 11000.
        let left = change_left(&rising).unwrap();
        assert!((0.55..0.65).contains(&left), "{left}");
        assert!(!is_warm(&[]));
        assert_eq!(change_left(&rising[..10]), None);
    }
}
