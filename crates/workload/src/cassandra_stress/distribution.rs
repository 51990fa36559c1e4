//! The distributions of cassandra-stress: a specification such as `GAUSSIAN(1..10M)` and a seeded
//! state -> the numbers that the original draws after `setSeed`.
//!
//! Source: cassandra-stress, `settings/OptionDistribution.java` and `generate/Distribution*.java`;
//! Apache Commons Math 3.2, which it samples with. EXP is Ahrens and Dieter's algorithm SA
//! ("Computer methods for sampling from the exponential and normal distributions", 1972), EXTREME
//! an inverted Weibull distribution, GAUSSIAN the polar method; all are truncated towards zero
//! and clamped to their bounds, so that mass gathers there.
//!
//! Differences: QEXTREME draws its place inside a step from an unseeded generator there, here
//! from one that follows from the seed; and its lowest value, with which the original ends in an
//! exception, belongs to the first step. EXTREME takes logarithm and power from the platform, so
//! a value may differ by one where the original's lies within 2^-50 of a whole number.

use super::java_random::JavaRandom;
use crate::random::{GOLDEN, mix};

mod grammar;
mod ratio;

pub use grammar::{DistributionError, DistributionProblem};
pub use ratio::Ratio;

/// A distribution over whole numbers. Cheap to copy for all but QEXTREME; sampling does not
/// allocate.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    shape: Shape,
    /// Largest becomes smallest: `~`.
    inverted: bool,
}

/// What values follow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Fixed(i64),
    Uniform(Bounds),
    Gaussian {
        bounds: Bounds,
        mean: f64,
        deviation: f64,
    },
    Exponential {
        bounds: Bounds,
        mean: f64,
    },
    Extreme {
        bounds: Bounds,
        shape: f64,
        scale: f64,
    },
    /// EXTREME cut into steps that are uniform inside; `edges[i]..edges[i + 1]` is step i.
    Quantized {
        bounds: Bounds,
        shape: f64,
        scale: f64,
        edges: Vec<i64>,
    },
    Sequence(Bounds),
}

/// Least and greatest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i64,
    pub(super) max: i64,
}

/// Where a distribution is in its stream of draws: what `setSeed` sets.
#[derive(Debug, Clone)]
pub struct DrawState {
    random: JavaRandom,
    /// For the place inside a step of QEXTREME.
    inside: JavaRandom,
    /// Next position of SEQ.
    position: i64,
}

impl DrawState {
    /// As after `setSeed(seed)`.
    #[must_use]
    #[inline]
    pub fn seeded(seed: i64) -> Self {
        Self { random: JavaRandom::seeded(seed), inside: JavaRandom::seeded(!seed), position: seed }
    }

    /// A stream of one worker's own. The original draws populations from one generator, seeded
    /// with the time; here they repeat with the seed of the run.
    #[must_use]
    pub fn for_worker(run_seed: u64, worker: usize) -> Self {
        let step = GOLDEN.wrapping_mul(worker as u64 + 1);
        Self::seeded(mix(run_seed.wrapping_add(step)).cast_signed())
    }
}

/// `(ln 2)^1/1! + ... + (ln 2)^i/i!` for i from 1 on: the table of algorithm SA, summed as the
/// original sums it, until it is 1.
const EXPONENTIAL: [f64; 16] = {
    let (mut table, mut sum, mut power, mut factorial) = ([0.0; 16], 0.0, 1.0, 1.0);
    let mut i = 0;
    while i < table.len() {
        power *= std::f64::consts::LN_2;
        factorial *= (i + 1) as f64;
        sum += power / factorial;
        table[i] = sum;
        i += 1;
    }
    table
};

impl Bounds {
    #[inline]
    fn clamp(self, value: f64) -> i64 {
        (value as i64).clamp(self.min, self.max)
    }

    #[inline]
    fn clamp_f64(self, value: f64) -> f64 {
        value.max(self.min as f64).min(self.max as f64)
    }

    /// The value at a distance from the least, which may be far beyond the greatest.
    #[inline]
    fn offset(self, distance: f64) -> i64 {
        self.min + (distance as i64).clamp(0, self.max - self.min)
    }

    fn offset_f64(self, distance: f64) -> f64 {
        self.min as f64 + distance.max(0.0).min((self.max - self.min) as f64)
    }

    /// Uniform over both bounds: a real number below max + 1.
    #[inline]
    pub(super) fn uniform(self, random: &mut JavaRandom) -> f64 {
        let unit = random.next_f64();
        unit * self.max.wrapping_add(1) as f64 + (1.0 - unit) * self.min as f64
    }

    /// The next of a sequence from `min` to `max` and round again. Negative positions, which only
    /// seeds of columns reach, count downwards from `min`, as in the original.
    #[inline]
    fn step(self, state: &mut DrawState) -> i64 {
        let position = state.position;
        state.position = position.wrapping_add(1);
        self.min.wrapping_add(position % (self.max - self.min + 1))
    }
}

impl Distribution {
    pub(super) fn new(shape: Shape, inverted: bool) -> Self {
        Self { shape, inverted }
    }

    /// Always `value`.
    #[must_use]
    pub const fn fixed(value: i64) -> Self {
        Self { shape: Shape::Fixed(value), inverted: false }
    }

    /// Each of `min..=max` alike. `min` must not be above `max`.
    #[must_use]
    pub const fn uniform(min: i64, max: i64) -> Self {
        Self { shape: Shape::Uniform(Bounds { min, max }), inverted: false }
    }

    /// The value that is always drawn, where it is one.
    #[must_use]
    #[inline]
    pub fn constant(&self) -> Option<i64> {
        match self.shape {
            Shape::Fixed(value) => Some(value),
            _ => None,
        }
    }

    /// Least value.
    #[must_use]
    pub fn min(&self) -> i64 {
        self.bounds().min
    }

    /// Greatest value.
    #[must_use]
    pub fn max(&self) -> i64 {
        self.bounds().max
    }

    fn bounds(&self) -> Bounds {
        match &self.shape {
            Shape::Fixed(value) => Bounds { min: *value, max: *value },
            Shape::Uniform(bounds)
            | Shape::Gaussian { bounds, .. }
            | Shape::Exponential { bounds, .. }
            | Shape::Extreme { bounds, .. }
            | Shape::Quantized { bounds, .. }
            | Shape::Sequence(bounds) => *bounds,
        }
    }

    /// The next value: `next()`.
    #[inline]
    pub fn sample(&self, state: &mut DrawState) -> i64 {
        let value = match &self.shape {
            Shape::Fixed(value) => *value,
            Shape::Uniform(bounds) => bounds.clamp(bounds.uniform(&mut state.random)),
            other => other.sample(state),
        };
        self.turn(value)
    }

    /// The next value as a real number: `nextDouble()`, not truncated. QEXTREME, which has none
    /// there, gives its whole numbers.
    pub fn sample_f64(&self, state: &mut DrawState) -> f64 {
        let value = self.shape.sample_f64(state);
        if self.inverted {
            let Bounds { min, max } = self.bounds();
            max as f64 - (value - min as f64)
        } else {
            value
        }
    }

    /// The value that a share `probability` (0 to 1) of the draws lies at or below.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> i64 {
        self.turn(self.shape.quantile(probability))
    }

    /// The mean as the original takes it: over 51 quantiles, truncated.
    #[must_use]
    pub fn average(&self) -> i64 {
        let (mut sum, mut count, mut probability) = (0.0, 0.0, 0f32);
        while probability <= 1.0 {
            sum += self.quantile(f64::from(probability)) as f64;
            count += 1.0;
            // The step is added in double precision and rounded to single, as in the original.
            probability = (f64::from(probability) + 0.02) as f32;
        }
        (sum / count) as i64
    }

    #[inline]
    fn turn(&self, value: i64) -> i64 {
        if self.inverted {
            let Bounds { min, max } = self.bounds();
            max.wrapping_sub(value.wrapping_sub(min))
        } else {
            value
        }
    }
}

impl Shape {
    fn sample(&self, state: &mut DrawState) -> i64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform(bounds) => bounds.clamp(bounds.uniform(&mut state.random)),
            Self::Gaussian { bounds, mean, deviation } => {
                bounds.clamp(deviation * state.random.next_gaussian() + mean)
            }
            Self::Exponential { bounds, mean } => {
                bounds.offset(exponential(*mean, &mut state.random))
            }
            Self::Extreme { bounds, shape, scale } => {
                bounds.offset(weibull(*shape, *scale, state.random.next_f64()))
            }
            Self::Quantized { bounds, shape, scale, edges } => {
                let value = bounds.offset(weibull(*shape, *scale, state.random.next_f64()));
                let unit = state.inside.next_f64();
                let step = step_of(edges, value);
                inside(edges, step, unit)
            }
            Self::Sequence(bounds) => bounds.step(state),
        }
    }

    fn sample_f64(&self, state: &mut DrawState) -> f64 {
        match self {
            Self::Uniform(bounds) => bounds.clamp_f64(bounds.uniform(&mut state.random)),
            Self::Gaussian { bounds, mean, deviation } => {
                bounds.clamp_f64(deviation * state.random.next_gaussian() + mean)
            }
            Self::Exponential { bounds, mean } => {
                bounds.offset_f64(exponential(*mean, &mut state.random))
            }
            Self::Extreme { bounds, shape, scale } => {
                bounds.offset_f64(weibull(*shape, *scale, state.random.next_f64()))
            }
            Self::Fixed(_) | Self::Quantized { .. } | Self::Sequence(_) => {
                self.sample(state) as f64
            }
        }
    }

    fn quantile(&self, probability: f64) -> i64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform(bounds) => {
                let (low, high) = (bounds.min as f64, bounds.max.wrapping_add(1) as f64);
                bounds.clamp(probability * (high - low) + low)
            }
            Self::Gaussian { bounds, mean, deviation } => {
                bounds.clamp(mean + deviation * super::normal::quantile(probability))
            }
            Self::Exponential { bounds, mean } => bounds.offset(-mean * (1.0 - probability).ln()),
            Self::Extreme { bounds, shape, scale } => {
                bounds.offset(weibull(*shape, *scale, probability))
            }
            Self::Quantized { bounds, shape, scale, edges } => {
                let value = bounds.offset(weibull(*shape, *scale, probability));
                let (step, steps) = (step_of(edges, value), (edges.len() - 1) as f64);
                inside(edges, step, ((probability - step as f64 / steps) * steps).clamp(0.0, 1.0))
            }
            Self::Sequence(bounds) => {
                bounds.min + ((bounds.max - bounds.min) as f64 * probability) as i64
            }
        }
    }
}

/// Ahrens and Dieter's algorithm SA.
fn exponential(mean: f64, random: &mut JavaRandom) -> f64 {
    let (mut whole, mut unit) = (0.0, random.next_f64());
    // A zero would be doubled for ever; the original does so, at one draw in 2^53.
    while unit < 0.5 && unit > 0.0 {
        whole += EXPONENTIAL[0];
        unit *= 2.0;
    }
    unit += unit - 1.0;
    if unit <= EXPONENTIAL[0] {
        return mean * (whole + unit);
    }
    let mut least = random.next_f64();
    for bound in &EXPONENTIAL[1..] {
        least = least.min(random.next_f64());
        if unit <= *bound {
            break;
        }
    }
    mean * (whole + least * EXPONENTIAL[0])
}

/// The inverse of Weibull's distribution function.
pub(super) fn weibull(shape: f64, scale: f64, probability: f64) -> f64 {
    if probability >= 1.0 {
        f64::INFINITY
    } else if probability <= 0.0 {
        0.0
    } else {
        scale * (-(1.0 - probability).ln()).powf(1.0 / shape)
    }
}

/// The step that a value of the underlying distribution falls into: an edge belongs to the step
/// below it.
fn step_of(edges: &[i64], value: i64) -> usize {
    let below = edges.partition_point(|edge| *edge < value);
    below.saturating_sub(1).min(edges.len().saturating_sub(2))
}

/// A value inside a step; the last one below its end.
fn inside(edges: &[i64], step: usize, unit: f64) -> i64 {
    let (low, high) = (edges[step], edges[step + 1]);
    let width = (high - low) as f64;
    low + ((unit * width) as i64).min((high - low - 1).max(0))
}
