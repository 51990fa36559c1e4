//! The normal distribution's quantiles: probability -> standard deviations from the mean.
//!
//! Only averages of GAUSSIAN need them. Bisection of the distribution function, which is computed
//! by its series (Abramowitz and Stegun 26.2.10) near the mean and by its continued fraction
//! (26.2.14) in the tails; exact to some 1e-12, and run a few times when a profile is read.

/// Beyond this many deviations the distribution function is 0 or 1 in double precision.
const FAR: f64 = 40.0;

/// The value with this probability (0 to 1) below it, in standard deviations; infinite at 0 and 1.
pub(super) fn quantile(probability: f64) -> f64 {
    if probability <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if probability >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (-FAR, FAR);
    while high - low > 1e-13 * (1.0 + low.abs()) {
        let middle = f64::midpoint(low, high);
        if cumulative(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// P(X < x).
fn cumulative(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x.abs() < 4.0 {
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term.abs() > 1e-18 {
            odd += 2.0;
            term *= x * x / odd;
            sum += term;
        }
        return 0.5 + density * sum;
    }
    let fraction = (1..=60).rev().fold(x.abs(), |below, n| x.abs() + f64::from(n) / below);
    let tail = density / fraction;
    if x < 0.0 { tail } else { 1.0 - tail }
}
