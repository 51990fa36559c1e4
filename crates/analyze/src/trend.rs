//! One series of block values: how it moves, and how sure that is.
//!
//! In: values of blocks of equal length, as shares of their mean or as logarithms. Out: a [`Fit`].
//! Sources: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau" (1968), for
//! the slope, because a pause of the target in up to 29 % of the blocks does not move it, where
//! least squares follows each; Mann (1945) for its significance; Andrews, "Tests for parameter
//! instability and structural change with unknown change point" (1993) for a step; Sokal, "Monte
//! Carlo methods in statistical mechanics" (1997) for the autocorrelation time; White, Cobb and
//! Spratt, "A comparison of five steady-state truncation heuristics for simulation" (2000) for
//! MSER-5. Limits: at most [`VALUES_MAX`] values; pairs are looked at, so cost grows with their
//! square.

/// More values than this are put together, neighbours first.
pub(crate) const VALUES_MAX: usize = 240;
/// Blocks in a group whose median is a level, at least and at most: a pause is shorter.
const GROUP_MIN: usize = 3;
const GROUP_MAX: usize = 10;
/// Groups that a series is divided into, where it is long enough.
const GROUPS: usize = 6;
/// Values that are averaged before MSER looks at them.
const MSER_BATCH: usize = 5;

/// How a series moves. Shares or logarithms, as the values were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// Median slope times the length of the series.
    pub(crate) change: f64,
    /// Standard error of a change of independent values with this scatter.
    pub(crate) change_error: f64,
    /// The slope by Mann's test, in standard deviations.
    pub(crate) change_z: f64,
    /// Mean behind the most likely step less the mean before it.
    pub(crate) shift: f64,
    /// Values before that step.
    pub(crate) shift_at: usize,
    /// The step in standard errors.
    pub(crate) shift_t: f64,
    /// Standard deviation of the levels of groups of blocks.
    pub(crate) variation: f64,
    /// Values that it takes for one to say something new, at least 1.
    pub(crate) correlation: f64,
}

/// Neighbours put together until at most [`VALUES_MAX`] are left; the rest of a division is left
/// out at the front. Returns also how many became one.
pub(crate) fn thin(values: &[f64]) -> (Vec<f64>, usize) {
    let together = values.len().div_ceil(VALUES_MAX).max(1);
    let front = values.len() % together;
    (values[front..].chunks(together).map(mean).collect(), together)
}

/// Fits a series of at least two values.
pub(crate) fn fit(values: &[f64]) -> Fit {
    let n = values.len();
    let slope = median_slope(values);
    let (shift, shift_at) = step(values);
    let (residuals, parameters) = residuals(values, slope, shift, shift_at);
    let freedom = n.saturating_sub(parameters).max(1) as f64;
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / freedom;
    let correlation = correlation_time(&residuals);
    // What a mean of many of these values scatters with, per value.
    let sigma = (variance * correlation).sqrt().max(f64::MIN_POSITIVE);
    let (before, behind) = (shift_at as f64, (n - shift_at) as f64);
    Fit {
        change: slope * n as f64,
        change_error: sigma * (12.0 / n as f64).sqrt(),
        change_z: mann(values) / correlation.sqrt(),
        shift,
        shift_at,
        shift_t: shift.abs() * (before * behind / n as f64).sqrt() / sigma,
        variation: deviation(&levels(values)),
        correlation,
    }
}

/// The median of the slopes of all pairs, per value.
fn median_slope(values: &[f64]) -> f64 {
    let n = values.len();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let mut slopes: Vec<f64> =
        pairs.map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    median(&mut slopes)
}

/// Mann's statistic in standard deviations: pairs that rise less pairs that fall.
fn mann(values: &[f64]) -> f64 {
    let n = values.len();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let score: i64 = pairs.map(|(i, j)| values[j].total_cmp(&values[i]) as i64).sum();
    let n = n as f64;
    score as f64 / (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt()
}

/// The step that explains most of the scatter: its height, and the values before it. No nearer to
/// an end than a tenth of the series.
fn step(values: &[f64]) -> (f64, usize) {
    let n = values.len();
    let margin = (n / 10).max(GROUP_MIN).min(n / 2).max(1);
    let total: f64 = values.iter().sum();
    let mut sum: f64 = values[..margin].iter().sum();
    let mut best = (0.0, n / 2, -1.0);
    for (at, value) in (margin..).zip(&values[margin..n - margin]).chain([(n - margin, &0.0)]) {
        let (before, behind) = (at as f64, (n - at) as f64);
        let height = (total - sum) / behind - sum / before;
        let explained = height * height * before * behind;
        if explained > best.2 {
            best = (height, at, explained);
        }
        sum += value;
    }
    (best.0, best.1)
}

/// What is left of the series without its step or without its slope, whichever leaves less, and how
/// many parameters that took.
fn residuals(values: &[f64], slope: f64, shift: f64, shift_at: usize) -> (Vec<f64>, usize) {
    let centred = |without: &dyn Fn(usize) -> f64| {
        let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - without(i)).collect();
        let middle = mean(&rest);
        rest.into_iter().map(|r| r - middle).collect::<Vec<_>>()
    };
    let squares = |rest: &[f64]| rest.iter().map(|r| r * r).sum::<f64>();
    let straight = centred(&|i| slope * i as f64);
    let stepped = centred(&|i| if i >= shift_at { shift } else { 0.0 });
    if squares(&stepped) < squares(&straight) { (stepped, 3) } else { (straight, 2) }
}

/// The integrated autocorrelation time in values, at least 1: summed until the correlation is gone
/// or the lag is five times the sum, and no longer than a third of the series.
pub(crate) fn correlation_time(centred: &[f64]) -> f64 {
    let n = centred.len();
    let power: f64 = centred.iter().map(|r| r * r).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let mut time = 1.0;
    for lag in 1..n / 3 {
        let product: f64 = centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum();
        if product <= 0.0 || lag as f64 > 5.0 * time {
            break;
        }
        time += 2.0 * product / power;
    }
    time.min((n as f64 / 3.0).max(1.0))
}

/// Medians of groups of neighbours.
fn levels(values: &[f64]) -> Vec<f64> {
    let size = (values.len() / GROUPS).clamp(GROUP_MIN, GROUP_MAX);
    values.rchunks_exact(size).map(|group| median(&mut group.to_vec())).collect()
}

/// Where the mean of what follows is known best: MSER over batches of [`MSER_BATCH`] values, or
/// over single ones while there are fewer than ten batches. In the second half it means that there
/// is too little behind it to tell, says the source.
pub(crate) fn truncation(values: &[f64]) -> usize {
    let batch = if values.len() < 10 * MSER_BATCH { 1 } else { MSER_BATCH };
    let front = values.len() % batch;
    let means: Vec<f64> = values[front..].chunks(batch).map(mean).collect();
    let n = means.len();
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, n));
    // From the back, so that each step adds one value. A handful at the end agrees by chance.
    for (at, value) in means.iter().enumerate().rev() {
        let kept = (n - at) as f64;
        sum += value;
        squares += value * value;
        let error = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if n - at >= 5 && error <= best.0 {
            best = (error, at);
        }
    }
    if best.1 == 0 { 0 } else { front + best.1 * batch }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|v| (v - middle) * (v - middle)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// The middle one, or the mean of the two; 0 of none.
fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    values.sort_by(f64::total_cmp);
    match (n, n % 2) {
        (0, _) => 0.0,
        (_, 1) => values[n / 2],
        _ => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_its_slope_whatever_single_values_do() {
        let mut values: Vec<f64> = (0..40).map(|i| 1.0 + 0.01 * f64::from(i)).collect();
        for pause in [3, 11, 19, 30, 38] {
            values[pause] = 0.2;
        }
        let fit = fit(&values);
        assert!((fit.change - 0.4).abs() < 0.02, "{fit:?}");
        assert!(fit.change_z > 4.0, "{fit:?}");
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let values: Vec<f64> = (0..50).map(|i| if i < 20 { 1.0 } else { 1.1 }).collect();
        let fit = fit(&values);
        assert_eq!(fit.shift_at, 20);
        assert!((fit.shift - 0.1).abs() < 1e-9 && fit.shift_t > 100.0, "{fit:?}");
    }

    #[test]
    fn correlation_time_of_repeated_values_is_their_number() {
        // Blocks of four equal values, up and down without order.
        let signs = [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0];
        let repeated: Vec<f64> = signs.iter().flat_map(|s| [*s; 4]).collect();
        assert!((2.5..6.0).contains(&correlation_time(&repeated)));
        let alternating: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert_eq!(correlation_time(&alternating), 1.0);
        assert_eq!(correlation_time(&[0.0; 12]), 1.0);
    }

    #[test]
    fn the_start_of_a_curve_is_cut_off_and_an_endless_one_has_no_end() {
        let noise = |i: usize| ((i * 7919) % 13) as f64 / 1300.0;
        let curve = |tau: f64| {
            let value = |i: usize| 1.0 - (-(i as f64) / tau).exp() + noise(i);
            (0..100).map(value).collect::<Vec<_>>()
        };
        let cut = truncation(&curve(6.0));
        assert!((15..=45).contains(&cut), "{cut}");
        assert!(truncation(&(0..100).map(f64::from).collect::<Vec<_>>()) > 66);
        let flat = truncation(&(0..60).map(noise).collect::<Vec<_>>());
        assert!(flat <= 15, "{flat} of 60 flat values cut off");
    }

    #[test]
    fn long_series_are_thinned_evenly() {
        let (values, together) = thin(&(0..1001).map(f64::from).collect::<Vec<_>>());
        assert_eq!((values.len(), together), (200, 5));
        assert_eq!((values[0], values[199]), (3.0, 998.0));
    }
}
