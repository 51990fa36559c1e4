//! What becomes of one operation, drawn.

use super::{Delay, Fault, FaultPlan, Share};
use std::f64::consts::TAU;
use std::sync::Arc;
use units::Nanos;

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Stream `number` of a seed.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        let mut random = Self(seed);
        let base = random.bits();
        Self(base ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 (included) to 1 (excluded).
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to `max`, both included.
    pub(crate) fn up_to(&mut self, max: usize) -> usize {
        (self.unit() * (max as f64 + 1.0)) as usize
    }
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fate {
    pub(crate) fault: Option<Fault>,
    /// From the end of the operation to its answer.
    pub(crate) delay: Nanos,
    /// Whether a write that times out is carried out.
    pub(crate) is_done: bool,
}

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

impl Delay {
    /// One delay, of two draws.
    fn draw(self, random: &mut Random) -> Nanos {
        // The first is never 0, of which there is no logarithm.
        let (first, second) = (1.0 - random.unit(), random.unit());
        let of = |ns: f64| Nanos(ns as u64);
        match self {
            Self::Constant(time) => time,
            Self::Uniform(from, to) => of(from.0 as f64 + second * to.since(from).0 as f64),
            Self::Exponential(mean) => of(-first.ln() * mean.0 as f64),
            Self::Lognormal(median, p99) => {
                // Box and Muller, 1958.
                let normal = (-2.0 * first.ln()).sqrt() * (TAU * second).cos();
                let sigma = (p99.0 as f64 / median.0 as f64).ln() / NORMAL_P99;
                of(median.0 as f64 * (sigma * normal).exp())
            }
        }
    }
}

/// Whether a fault can meet such an operation.
fn meets(fault: Fault, access: Access) -> bool {
    match fault {
        Fault::ReadTimeout => access == Access::Read,
        Fault::WriteTimeout => access == Access::Write,
        _ => true,
    }
}

/// The fates of the operations of a connection.
#[derive(Debug)]
pub(crate) struct Fates {
    plan: Arc<FaultPlan>,
    random: Random,
    /// Of the operation that was carried out last.
    pub(crate) last: Fate,
}

impl Fates {
    /// Of one more connection.
    pub(crate) fn new(plan: &Arc<FaultPlan>) -> Self {
        let random = Random::stream(plan.faults.seed, plan.next_connection());
        Self { plan: Arc::clone(plan), random, last: Fate::default() }
    }

    /// The fate of the next operation.
    pub(crate) fn next(&mut self, access: Access) -> Fate {
        self.last = match self.plan.operation() {
            true => self.draw(access),
            false => Fate::default(),
        };
        self.last
    }

    /// The same number of draws for every operation, whatever it meets.
    fn draw(&mut self, access: Access) -> Fate {
        let faults = &self.plan.faults;
        let (mut left, is_done) = (self.random.unit(), self.random.unit() < 0.5);
        let mut delay = faults.delay.map_or(Nanos::ZERO, |delay| delay.draw(&mut self.random));
        let met = faults.shares.iter().filter(|s| meets(s.fault, access)).find(|s| {
            left -= s.share;
            left < 0.0
        });
        let fault = met.map(|Share { fault, .. }| *fault);
        if let Some(Fault::Late(time)) = fault {
            delay = Nanos(delay.0.saturating_add(time.0));
        }
        Fate { fault, delay, is_done }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Faults;
    use super::*;

    fn fates(plan: &Arc<FaultPlan>, count: usize) -> Vec<Fate> {
        let mut fates = Fates::new(plan);
        (0..count).map(|_| fates.next(Access::Read)).collect()
    }

    fn plan(faults: Faults) -> Arc<FaultPlan> {
        Arc::new(FaultPlan::new(faults))
    }

    #[test]
    fn shares_are_kept_and_follow_from_the_seed() {
        let shares = vec![
            Share { fault: Fault::WriteTimeout, share: 0.9 },
            Share { fault: Fault::Overloaded, share: 0.2 },
            Share { fault: Fault::ReadTimeout, share: 0.1 },
        ];
        let faults = Faults { shares, seed: 5, ..Faults::default() };
        let (a, b) = (plan(faults.clone()), plan(faults));
        let found = fates(&a, 100_000);
        let share = |fault| {
            found.iter().filter(|f| f.fault == Some(fault)).count() as f64 / found.len() as f64
        };
        // Standard deviation 0.0013.
        assert!((share(Fault::Overloaded) - 0.2).abs() < 0.01);
        assert!((share(Fault::ReadTimeout) - 0.1).abs() < 0.01);
        assert_eq!(share(Fault::WriteTimeout), 0.0, "these were reads");
        assert_eq!(found, fates(&b, 100_000), "the first connection of the same seed");
        assert_ne!(found, fates(&b, 100_000), "another connection");
    }

    #[test]
    fn delays_have_their_distribution() {
        let ms = Nanos::from_millis;
        let quantiles = |delay: Delay| {
            let faults = Faults { delay: Some(delay), seed: 1, ..Faults::default() };
            let mut found: Vec<_> =
                fates(&plan(faults), 100_000).iter().map(|f| f.delay.0 as f64 / 1e6).collect();
            found.sort_by(f64::total_cmp);
            [found[0], found[50_000], found[99_000]]
        };
        let near = |found: [f64; 3], expected: [f64; 3]| {
            let close = |(f, e): (&f64, &f64)| (f - e).abs() <= 0.05 * e + 0.01;
            assert!(found.iter().zip(&expected).all(close), "{found:?}, expected {expected:?}");
        };
        near(quantiles(Delay::Constant(ms(7))), [7.0, 7.0, 7.0]);
        near(quantiles(Delay::Uniform(ms(10), ms(30))), [10.0, 20.0, 29.8]);
        // Median ln 2, 99th percentile ln 100.
        near(quantiles(Delay::Exponential(ms(10))), [0.0, 6.93, 46.05]);
        let [_, median, p99] = quantiles(Delay::Lognormal(ms(10), ms(100)));
        near([0.0, median, p99], [0.0, 10.0, 100.0]);
    }
}
