//! Student's distribution for whole degrees of freedom.
//!
//! In: degrees of freedom, a value or a probability. Out: probabilities of both tails, quantiles.
//! Source: Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.7.3 and 26.7.4:
//! finite sums, exact but for rounding. Limits: quantiles up to 10^9; no degrees of freedom are
//! taken for one.

/// The quantile of the normal distribution for an interval of 95 %.
pub(crate) const NORMAL_95: f64 = 1.959_963_985;

/// The probability that `|T| > |t|`.
pub(crate) fn both_tails(t: f64, freedom: usize) -> f64 {
    let freedom = freedom.max(1);
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // Terms of the sum: each is the one before times cos^2 and a fraction of neighbours.
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut below = if odd { 3 } else { 2 };
    while below < freedom {
        term *= cos * cos * (below - 1) as f64 / below as f64;
        sum += term;
        below += 2;
    }
    let inside = match odd {
        true => (angle + sin * sum) / std::f64::consts::FRAC_PI_2,
        false => sin * sum,
    };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// The `t` with `both_tails(t) = probability`.
pub(crate) fn quantile(probability: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while both_tails(high, freedom) > probability && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        match both_tails(middle, freedom) > probability {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_table() {
        // Table of critical values of t, two-sided 5 %; the last is two-sided 1 %.
        for (freedom, probability, expected) in [
            (1, 0.05, 12.706),
            (2, 0.05, 4.303),
            (3, 0.05, 3.182),
            (4, 0.05, 2.776),
            (5, 0.05, 2.571),
            (10, 0.05, 2.228),
            (29, 0.05, 2.045),
            (1000, 0.05, 1.962),
            (7, 0.01, 3.499),
        ] {
            let t = quantile(probability, freedom);
            assert!((t - expected).abs() < 6e-4, "{freedom}: {t}, not {expected}");
            assert!((both_tails(t, freedom) - probability).abs() < 1e-9);
        }
        assert_eq!(both_tails(0.0, 4), 1.0);
        assert!((quantile(0.05, 100_000) - NORMAL_95).abs() < 1e-4);
    }
}
