//! Arrival schedules: when operation k of a worker falls due.
//!
//! Constant: operation `k` of all workers together is due at `k * per / events` after the epoch;
//! worker `w` of `W` has the operations `k = w, w + W, ...`. Times are exact fractions, advanced by
//! a quotient and a remainder, so that no rounding accumulates: the number of arrivals in a window
//! is that of the rate, to one operation, at any rate.
//!
//! Poisson: each worker draws exponential gaps of mean `W / rate` from a stream of its own; a
//! superposition of `W` independent Poisson processes of rate `r / W` is one of rate `r`.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use units::{Nanos, Rate};

/// Due times of one worker, from an epoch on.
#[derive(Debug, Clone)]
pub struct Pacer {
    next: Nanos,
    gaps: Gaps,
}

#[derive(Debug, Clone)]
enum Gaps {
    /// In units of `1 / events` ns: the due time is `next + remainder / events`.
    Constant { step_ns: u64, step_remainder: u64, remainder: u64, events: u64 },
    /// `exact_ns` past the epoch; a double holds 2^53 ns, 104 days, to the nanosecond.
    Poisson { epoch: Nanos, exact_ns: f64, mean_ns: f64, random: Box<Xoshiro256PlusPlus> },
}

impl Pacer {
    /// Equal gaps. The first arrival of worker 0 is due at `epoch`.
    #[must_use]
    pub fn constant(rate: Rate, epoch: Nanos, worker: usize, workers: usize) -> Self {
        let events = u128::from(rate.events());
        let exact = |arrivals: usize| arrivals as u128 * u128::from(rate.per_ns());
        let (first, step) = (exact(worker), exact(workers));
        let whole = |ns: u128| u64::try_from(ns).unwrap_or(u64::MAX);
        Self {
            next: epoch + Nanos(whole(first / events)),
            gaps: Gaps::Constant {
                step_ns: whole(step / events),
                step_remainder: (step % events) as u64,
                remainder: (first % events) as u64,
                events: rate.events(),
            },
        }
    }

    /// Exponential gaps, the first one before the first arrival.
    #[must_use]
    pub fn poisson(rate: Rate, epoch: Nanos, worker: usize, workers: usize, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..worker {
            random.jump();
        }
        let mean_ns = rate.per_ns() as f64 / rate.events() as f64 * workers as f64;
        let gaps = Gaps::Poisson { epoch, exact_ns: 0.0, mean_ns, random: Box::new(random) };
        let mut pacer = Self { next: epoch, gaps };
        pacer.advance();
        pacer
    }

    /// The same schedule from epoch `to` on, of one that has its epoch at `from`.
    pub(crate) fn rebase(&mut self, from: Nanos, to: Nanos) {
        self.next = to + self.next.since(from);
        if let Gaps::Poisson { epoch, .. } = &mut self.gaps {
            *epoch = to;
        }
    }

    /// When the next operation is due.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Goes on to the operation after it.
    #[inline]
    pub fn advance(&mut self) {
        match &mut self.gaps {
            Gaps::Constant { step_ns, step_remainder, remainder, events } => {
                // Both are below `events`, which is at most 10^9 * 10^9 / 1: no overflow below
                // 2^63.
                *remainder += *step_remainder;
                let carry = u64::from(*remainder >= *events);
                *remainder -= carry * *events;
                self.next += Nanos(*step_ns + carry);
            }
            Gaps::Poisson { epoch, exact_ns, mean_ns, random } => {
                // 53 bits in (0, 1], so that the logarithm is finite.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                *exact_ns -= *mean_ns * uniform.ln();
                self.next = *epoch + Nanos(*exact_ns as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(rate: &str, workers: usize, window: Nanos) -> Vec<Nanos> {
        let rate: Rate = rate.parse().unwrap();
        let mut due = Vec::new();
        for worker in 0..workers {
            let mut pacer = Pacer::constant(rate, Nanos(500), worker, workers);
            while pacer.next() < Nanos(500) + window {
                due.push(pacer.next());
                pacer.advance();
            }
        }
        due.sort();
        due
    }

    #[test]
    fn constant_arrivals_are_exact_for_any_number_of_workers() {
        for (rate, count) in
            [("1k/s", 3000), ("99999/s", 299_997), ("1M/s", 3_000_000), ("0.7/s", 3), ("333/m", 17)]
        {
            for workers in [1, 3, 7] {
                let due = due(rate, workers, Nanos::from_secs(3));
                assert_eq!(due.len(), count, "{rate} over {workers} workers");
                let parsed: Rate = rate.parse().unwrap();
                for (k, at) in due.iter().enumerate() {
                    let exact =
                        k as u128 * u128::from(parsed.per_ns()) / u128::from(parsed.events());
                    assert_eq!(u128::from(at.0 - 500), exact, "{rate}: operation {k}");
                }
            }
        }
    }

    /// Kolmogorov-Smirnov: sup |F_n(x) - (1 - exp(-x / mean))| * sqrt(n) below 1.63 keeps a true
    /// exponential with probability 0.99; the seed is fixed, so the test is too.
    fn ks_statistic(gaps: &mut [f64], mean: f64) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().map(|(i, x)| {
            let cdf = 1.0 - (-x / mean).exp();
            (cdf - i as f64 / n).abs().max((cdf - (i + 1) as f64 / n).abs())
        });
        distance.fold(0.0, f64::max) * n.sqrt()
    }

    #[test]
    fn poisson_gaps_are_exponential_alone_and_superposed() {
        let rate: Rate = "10k/s".parse().unwrap();
        for workers in [1usize, 4] {
            let mut due = Vec::new();
            for worker in 0..workers {
                let mut pacer = Pacer::poisson(rate, Nanos::ZERO, worker, workers, 42);
                let mut own = Vec::new();
                while pacer.next() < Nanos::from_secs(10) {
                    own.push(pacer.next());
                    pacer.advance();
                }
                due.extend(own);
            }
            due.sort();
            // 100,000 expected; five standard deviations of a Poisson count are 1581.
            assert!((98_419..=101_581).contains(&due.len()), "{}", due.len());
            let mut gaps: Vec<f64> = due.windows(2).map(|w| (w[1].0 - w[0].0) as f64).collect();
            assert!(ks_statistic(&mut gaps, 100_000.0) < 1.63);
            // The test can fail: a mean that is 2 % off is rejected.
            assert!(ks_statistic(&mut gaps, 102_000.0) > 1.63);
        }
    }
}
