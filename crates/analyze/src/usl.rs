//! The Universal Scalability Law, fitted to measured throughput.
//!
//! X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)): lambda is the throughput of one, sigma
//! the share that is done one after the other (contention), kappa what it costs that each has to
//! agree with each other (crosstalk).
//! In: points (N, operations per second), repetitions as further points. Out: a [`Fit`] with
//! intervals and residuals, or the reason why there is none. Noise of throughput is a share of it,
//! so logarithms are fitted: by Levenberg and Marquardt's method, from the least squares of the
//! law's linear form. The figures are never negative; their intervals come from fits without that
//! bound to residuals drawn again, and are cut at 0 afterwards, for a bound would distort them.
//! Sources: Gunther, "Guerrilla Capacity Planning" (2007), chapters 4 to 6; More, "The
//! Levenberg-Marquardt algorithm" (1978); Efron and Tibshirani, "An Introduction to the Bootstrap"
//! (1993), section 9.4.
//! Limits: at least [`DISTINCT_MIN`] distinct N; N in the hundreds of thousands at most.

use crate::draws::Draws;
use crate::student;
use serde::Serialize;

/// Distinct N that it takes.
pub const DISTINCT_MIN: usize = 6;
/// Series that are drawn again for the intervals.
const RESAMPLES: usize = 999;
/// What an interval may miss.
const MISS: f64 = 0.05;
const STEPS_MAX: usize = 100;

/// The law with figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Law {
    /// Throughput of one, in units of the points.
    pub lambda: f64,
    /// Contention, at least 0.
    pub sigma: f64,
    /// Crosstalk, at least 0.
    pub kappa: f64,
}

impl Law {
    /// The throughput of `n`.
    #[must_use]
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / self.cost(n)
    }

    fn cost(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    /// The N beyond which more of it gives less; None where there is no such N.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The law itself.
    pub law: Law,
    /// 95 % interval of lambda.
    pub lambda_interval: (f64, f64),
    /// Of sigma.
    pub sigma_interval: (f64, f64),
    /// Of kappa.
    pub kappa_interval: (f64, f64),
    /// Measured over fitted, less 1, per point as given.
    pub residual_shares: Vec<f64>,
    /// Their standard deviation over what the degrees of freedom leave.
    pub residual_share_deviation: f64,
}

/// What became of a fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usl {
    /// The law.
    Fitted(Fit),
    /// None.
    NotFitted {
        /// Why, as a sentence that ends without a full stop.
        reason: String,
    },
}

/// Fits points (N, throughput); the same seed gives the same intervals.
#[must_use]
pub fn usl(points: &[(f64, f64)], seed: u64) -> Usl {
    if let Some(reason) = unfit(points) {
        return Usl::NotFitted { reason };
    }
    let (Some(law), Some(free)) =
        (bounded(points), solve(points, Free { sigma: true, kappa: true }))
    else {
        let reason = "the points follow no such law: least squares does not converge".to_owned();
        return Usl::NotFitted { reason };
    };
    let residuals: Vec<f64> = points.iter().map(|(n, x)| (x / law.at(*n)).ln()).collect();
    let freedom = points.len() - 3;
    let deviation = (residuals.iter().map(|r| r * r).sum::<f64>() / freedom as f64).sqrt();
    let [lambda_interval, sigma_interval, kappa_interval] = intervals(points, &free, &law, seed);
    Usl::Fitted(Fit {
        law,
        lambda_interval,
        sigma_interval,
        kappa_interval,
        residual_shares: residuals.iter().map(|r| r.exp() - 1.0).collect(),
        residual_share_deviation: deviation,
    })
}

/// Why points cannot be fitted.
fn unfit(points: &[(f64, f64)]) -> Option<String> {
    let bad =
        points.iter().find(|(n, x)| !(n.is_finite() && x.is_finite() && *n >= 1.0 && *x > 0.0));
    if let Some((n, x)) = bad {
        return Some(format!("the point of N = {n} with {x} is none: both have to be above 0"));
    }
    let mut distinct: Vec<f64> = points.iter().map(|(n, _)| *n).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    (distinct.len() < DISTINCT_MIN).then(|| {
        format!(
            "{} distinct N were measured, and three figures need {DISTINCT_MIN} to be told apart: \
             measure more of them",
            distinct.len()
        )
    })
}

/// Which figures are fitted; the others are 0. Lambda always is.
#[derive(Debug, Clone, Copy)]
struct Free {
    sigma: bool,
    kappa: bool,
}

/// The best law without a negative figure: that without bounds, or the best on a bound.
fn bounded(points: &[(f64, f64)]) -> Option<Law> {
    let choices = [(true, true), (true, false), (false, true), (false, false)];
    let laws = choices.iter().filter_map(|&(sigma, kappa)| solve(points, Free { sigma, kappa }));
    laws.filter(|law| law.sigma >= 0.0 && law.kappa >= 0.0)
        .min_by(|a, b| squares(points, a).total_cmp(&squares(points, b)))
}

/// The sum of squares of what is left of the logarithms; infinite where the law has no logarithm.
fn squares(points: &[(f64, f64)], law: &Law) -> f64 {
    let square = |(n, x): &(f64, f64)| {
        let fitted = law.at(*n);
        if fitted > 0.0 && fitted.is_finite() { (x / fitted).ln().powi(2) } else { f64::INFINITY }
    };
    points.iter().map(square).sum()
}

/// Least squares without bounds; figures that are not free are 0.
fn solve(points: &[(f64, f64)], free: Free) -> Option<Law> {
    let mut law = linear(points, free).unwrap_or_else(|| flat(points));
    let mut left = squares(points, &law);
    if !left.is_finite() {
        law = flat(points);
        left = squares(points, &law);
    }
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let Some(next) = step(points, &law, free, damping) else {
            damping *= 10.0;
            if damping > 1e9 {
                break;
            }
            continue;
        };
        let next_left = squares(points, &next);
        if next_left <= left {
            let done = left - next_left <= 1e-14 * left;
            (law, left, damping) = (next, next_left, damping / 10.0);
            if done {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e9 {
                break;
            }
        }
    }
    (left.is_finite() && law.lambda > 0.0).then_some(law)
}

/// Linear scaling through the points.
fn flat(points: &[(f64, f64)]) -> Law {
    let logs: f64 = points.iter().map(|(n, x)| (x / n).ln()).sum();
    Law { lambda: (logs / points.len() as f64).exp(), sigma: 0.0, kappa: 0.0 }
}

/// The law's linear form, N / X = (1 + sigma (N - 1) + kappa N (N - 1)) / lambda, weighted so that
/// shares of N / X count.
fn linear(points: &[(f64, f64)], free: Free) -> Option<Law> {
    let mut normal = Normal::new(free);
    for (n, x) in points {
        let weight = x / n;
        normal.add([weight, weight * (n - 1.0), weight * n * (n - 1.0)], 1.0);
    }
    let [inverse, sigma, kappa] = normal.solve(0.0)?;
    (inverse > 0.0).then(|| Law {
        lambda: 1.0 / inverse,
        sigma: sigma / inverse,
        kappa: kappa / inverse,
    })
}

/// One damped Gauss-Newton step on (ln lambda, sigma, kappa).
fn step(points: &[(f64, f64)], law: &Law, free: Free, damping: f64) -> Option<Law> {
    let mut normal = Normal::new(free);
    for (n, x) in points {
        let cost = law.cost(*n);
        let slopes = [1.0, -(n - 1.0) / cost, -n * (n - 1.0) / cost];
        normal.add(slopes, (x / law.at(*n)).ln());
    }
    let [log_lambda, sigma, kappa] = normal.solve(damping)?;
    let next = Law {
        lambda: law.lambda * log_lambda.exp(),
        sigma: law.sigma + sigma,
        kappa: law.kappa + kappa,
    };
    squares(points, &next).is_finite().then_some(next)
}

/// Normal equations of at most three figures.
struct Normal {
    matrix: [[f64; 3]; 3],
    right: [f64; 3],
    free: [bool; 3],
}

impl Normal {
    const fn new(free: Free) -> Self {
        Self { matrix: [[0.0; 3]; 3], right: [0.0; 3], free: [true, free.sigma, free.kappa] }
    }

    fn add(&mut self, slopes: [f64; 3], value: f64) {
        for row in 0..3 {
            for column in 0..3 {
                self.matrix[row][column] += slopes[row] * slopes[column];
            }
            self.right[row] += slopes[row] * value;
        }
    }

    /// By elimination, with Marquardt's damping of the diagonal; None when it is singular.
    fn solve(&self, damping: f64) -> Option<[f64; 3]> {
        let used: Vec<usize> = (0..3).filter(|i| self.free[*i]).collect();
        // Scaled to a diagonal of 1: the columns differ by orders of magnitude.
        let scale: Vec<f64> = used.iter().map(|i| self.matrix[*i][*i].sqrt()).collect();
        if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
            return None;
        }
        let size = used.len();
        let mut rows = [[0.0; 4]; 3];
        for (a, i) in used.iter().enumerate() {
            for (b, j) in used.iter().enumerate() {
                rows[a][b] = self.matrix[*i][*j] / (scale[a] * scale[b]);
            }
            rows[a][a] += damping;
            rows[a][3] = self.right[*i] / scale[a];
        }
        let solved = eliminate(rows, size)?;
        let mut result = [0.0; 3];
        for (a, i) in used.iter().enumerate() {
            result[*i] = solved[a] / scale[a];
        }
        Some(result)
    }
}

/// The first `size` rows, with the right-hand side in the last column.
fn eliminate(mut rows: [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    for at in 0..size {
        let by_size = |a: &usize, b: &usize| rows[*a][at].abs().total_cmp(&rows[*b][at].abs());
        let pivot = (at..size).max_by(by_size)?;
        rows.swap(at, pivot);
        let head = rows[at];
        if head[at].abs() < 1e-12 {
            return None;
        }
        for (other, row) in rows.iter_mut().enumerate().take(size) {
            if other != at {
                let factor = row[at] / head[at];
                row.iter_mut().zip(head).for_each(|(cell, h)| *cell -= factor * h);
            }
        }
    }
    let mut solved = [0.0; 3];
    (0..size).for_each(|i| solved[i] = rows[i][3] / rows[i][i]);
    Some(solved)
}

/// 95 % intervals of lambda, sigma and kappa, holding the law's own figures.
fn intervals(points: &[(f64, f64)], free: &Law, law: &Law, seed: u64) -> [(f64, f64); 3] {
    let n = points.len();
    let residuals: Vec<f64> = points.iter().map(|(n, x)| (x / free.at(*n)).ln()).collect();
    // A fit of three figures takes scatter out of its residuals, and what is left of few points is
    // itself not sure: both widen the interval.
    let freedom = n - 3;
    let widen =
        (n as f64 / freedom as f64).sqrt() * student::quantile(MISS, freedom) / student::NORMAL_95;
    let mut draws = Draws::new(seed);
    let mut figures: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(RESAMPLES));
    for _ in 0..RESAMPLES {
        let again = |(n, _): &(f64, f64)| {
            (*n, free.at(*n) * (widen * residuals[draws.below(residuals.len())]).exp())
        };
        let again: Vec<_> = points.iter().map(again).collect();
        let Some(fit) = solve(&again, Free { sigma: true, kappa: true }) else { continue };
        let of_fit = [fit.lambda, fit.sigma, fit.kappa];
        figures.iter_mut().zip(of_fit).for_each(|(all, figure)| all.push(figure));
    }
    let found = [law.lambda, law.sigma, law.kappa];
    let mut result = [(0.0, 0.0); 3];
    for ((all, found), interval) in figures.iter_mut().zip(found).zip(&mut result) {
        all.sort_by(f64::total_cmp);
        let cut = (MISS / 2.0 * all.len() as f64) as usize;
        let at = |index: usize| all.get(index).map_or(found, |v| v.max(0.0));
        let (low, high) = (at(cut), at(all.len().saturating_sub(cut + 1)));
        *interval = (low.min(found), high.max(found));
    }
    result
}

#[cfg(test)]
#[path = "usl_tests.rs"]
mod tests;
