//! Axes: the range that a plot spans, where its ticks are, and how a value becomes a text.
//!
//! Input: values in their own units (microseconds, seconds, per second, shares, bytes); output:
//! places from 0 to 1 and short texts. The script of the page draws the same axes again when
//! it is zoomed, by the rules written here; a test in a browser compares the texts.

use crate::number;
use serde::Serialize;

/// How a value becomes a text, on axes and when hovering.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Microseconds, in the unit that fits.
    Latency,
    /// Per second.
    Rate,
    /// Seconds since the start.
    Seconds,
    /// Number of nines: the share of samples not above is `1 - 10^-x`.
    Nines,
    /// 0 to 1, shown as a percentage.
    Share,
    /// Bytes, in the unit that fits.
    Bytes,
    /// A plain number, followed by the unit of its axis.
    Number,
}

impl Format {
    fn tick(self, value: f64) -> String {
        match self {
            Self::Latency => number::latency_short(value),
            Self::Rate | Self::Number => number::short(value),
            Self::Seconds => format!("{} s", number::short(value)),
            Self::Nines => nines(value),
            Self::Share => format!("{} %", number::short(value * 100.0)),
            Self::Bytes => number::bytes(value),
        }
    }
}

/// `99.9 %` for 3 nines; as many digits as tell it from 100 %.
fn nines(x: f64) -> String {
    let decimals = (x - 1.0).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", (1.0 - 10f64.powf(-x)) * 100.0);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// How values are placed on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scale {
    /// From 0 to a round value.
    Linear,
    /// Between round values; 0 and less have no place.
    Log,
    /// From where the data begins to where it ends.
    Exact,
    /// As `Exact`, with a tick for every nine.
    Nines,
}

/// One axis: what it shows, the range it spans and where its ticks are.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Axis {
    /// The column of the data files: `t_s`, `latency_us`.
    pub(crate) name: String,
    /// What people read beside it.
    pub(crate) label: String,
    pub(crate) format: Format,
    /// Behind a plain number; empty when the format has it.
    pub(crate) unit: String,
    scale: Scale,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) ticks: Vec<f64>,
}

impl Axis {
    fn new(format: Format, scale: Scale, (min, max): (f64, f64), ticks: Vec<f64>) -> Self {
        let (name, label) = match format {
            Format::Latency => ("latency_us", "latency, log scale"),
            Format::Rate => ("ops_s", "operations per second"),
            Format::Seconds => ("t_s", "time since the start of the window"),
            Format::Nines => ("quantile", "percentile: a step to the right is one more nine"),
            Format::Share => ("share", "share"),
            Format::Bytes => ("bytes", "bytes"),
            Format::Number => ("value", ""),
        };
        let (name, label) = (name.to_owned(), label.to_owned());
        Self { name, label, format, unit: String::new(), scale, min, max, ticks }
    }

    /// The same with another text beside it and another name in data files.
    #[must_use]
    pub(crate) fn called(mut self, name: &str, label: &str) -> Self {
        (self.name, self.label) = (name.to_owned(), label.to_owned());
        self
    }

    /// The same with a unit behind its numbers.
    #[must_use]
    pub(crate) fn unit(mut self, unit: &str) -> Self {
        self.unit = unit.to_owned();
        self
    }

    /// From 0 (or the least value, when that is negative) to beyond the largest, with round steps.
    pub(crate) fn linear(format: Format, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > low.min(0.0) { high } else { low + 1.0 });
        let step = match format {
            Format::Bytes => byte_step((high - low) / 5.0),
            _ => round_up((high - low) / 5.0),
        };
        let (first, mut last) = ((low / step).floor(), (high / step - 1e-9).ceil());
        // A line on the upper edge is hard to see; of shares 100 % is the edge.
        if format != Format::Share && high > step * (last - (last - first) * 0.04) {
            last += 1.0;
        }
        let ticks: Vec<f64> =
            (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        Self::new(format, Scale::Linear, (first * step, last * step), ticks)
    }

    /// Ends where the data ends, with round steps between: for time and numbers of things.
    pub(crate) fn exact(format: Format, min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        let step = match format {
            Format::Seconds => time_step((max - min) / 6.0),
            // Things are counted; a third of a worker is none.
            _ => round_up((max - min) / 6.0).max(1.0),
        };
        let (first, last) = ((min / step).ceil() as i64, (max / step).floor() as i64);
        let ticks = (first..=last).map(|i| i as f64 * step).collect();
        Self::new(format, Scale::Exact, (min, max), ticks)
    }

    /// Powers of ten, with 2 and 5 between them when there are few. Values of 0 or
    /// less have no place.
    pub(crate) fn log(format: Format, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values.filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        let min = round_down(low);
        let mut max = round_up(high);
        if max <= min {
            max = round_up(min * 1.01);
        }
        let (first, last) = (min.log10().floor() as i32, max.log10().ceil() as i32);
        let factors: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = (first..=last).map(|power| 10f64.powi(power));
        let ticks = decades.flat_map(|decade| factors.iter().map(move |factor| factor * decade));
        let ticks = ticks.filter(|t| (min * 0.999..=max * 1.001).contains(t)).collect();
        Self::new(format, Scale::Log, (min, max), ticks)
    }

    /// The percentile axis: the median, then a tick for every nine.
    pub(crate) fn nines(x_max: f64) -> Self {
        let max = x_max.max(1.0);
        let ticks = [0.0, 2f64.log10()].into_iter();
        let ticks = ticks.chain((1..=max.floor() as i32).map(f64::from)).collect();
        Self::new(Format::Nines, Scale::Nines, (0.0, max), ticks)
    }

    /// Position from 0 to 1; None when the value has none.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.scale == Scale::Log {
            (value / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }

    /// What stands at a tick.
    pub(crate) fn tick(&self, value: f64) -> String {
        let step = self.ticks.get(1).zip(self.ticks.first()).map_or(0.0, |(b, a)| b - a);
        match self.format {
            Format::Seconds if step >= 3600.0 => format!("{} h", number::short(value / 3600.0)),
            Format::Seconds if step >= 60.0 => format!("{} min", number::short(value / 60.0)),
            format => format.tick(value),
        }
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| v.is_finite()).fold(None, |range, v| {
        let (low, high) = range.unwrap_or((v, v));
        Some((v.min(low), v.max(high)))
    })
}

/// Round steps of time above a few seconds: halves and quarters of minutes, hours and days.
const TIME_STEPS_S: [f64; 14] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 21_600.0,
    43_200.0, 86_400.0,
];

/// Of 1, 2, 5 times ten in the unit of bytes that fits.
fn byte_step(least: f64) -> f64 {
    let unit = 1024f64.powf((least.max(1.0).ln() / 1024f64.ln() + 1e-9).floor());
    round_up(least / unit) * unit
}

fn time_step(least_s: f64) -> f64 {
    let round = TIME_STEPS_S.into_iter().find(|step| *step >= least_s * (1.0 - 1e-9));
    round.filter(|_| least_s > 10.0).unwrap_or_else(|| round_up(least_s))
}

/// The least of 1, 2, 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 5.0].into_iter().find(|f| f * decade >= value * (1.0 - 1e-9));
    factors.unwrap_or(10.0) * decade
}

/// The largest of 1, 2, 5 times a power of ten that is not above `value`.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factors = [5.0, 2.0, 1.0].into_iter().find(|f| f * decade <= value * (1.0 + 1e-9));
    factors.unwrap_or(1.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_have_round_ticks_from_zero() {
        let axis = Axis::linear(Format::Rate, [37.0, 71_234.0].into_iter());
        assert_eq!(axis.ticks, [0.0, 20e3, 40e3, 60e3, 80e3]);
        assert_eq!((axis.min, axis.max), (0.0, 80e3));
        let flat = Axis::linear(Format::Rate, [0.0].into_iter());
        assert!(flat.max > flat.min && flat.ticks.len() < 12);
        // Not on the edge, but for shares.
        assert_eq!(Axis::linear(Format::Rate, [5000.0].into_iter()).max, 6000.0);
        assert_eq!(Axis::linear(Format::Share, [1.0].into_iter()).max, 1.0);
        let memory = Axis::linear(Format::Bytes, [1.8 * 1024f64.powi(3)].into_iter());
        assert_eq!(memory.tick(memory.ticks[1]), "500 MiB");
        let below = Axis::linear(Format::Number, [-3.0, 4.0].into_iter());
        assert!(below.min <= -3.0 && below.max >= 4.0);
    }

    #[test]
    fn exact_axes_end_where_the_data_ends() {
        let axis = Axis::exact(Format::Seconds, 0.0, 30.4);
        assert_eq!((axis.min, axis.max), (0.0, 30.4));
        assert_eq!(axis.ticks, [0.0, 10.0, 20.0, 30.0]);
        let warm = Axis::exact(Format::Seconds, -3.0, 4.0);
        assert_eq!(warm.ticks, [-2.0, 0.0, 2.0, 4.0]);
        let hours = Axis::exact(Format::Seconds, 0.0, 43_200.0);
        let texts: Vec<_> = hours.ticks.iter().map(|t| hours.tick(*t)).collect();
        assert_eq!(texts, ["0 h", "2 h", "4 h", "6 h", "8 h", "10 h", "12 h"]);
        let minutes = Axis::exact(Format::Seconds, 0.0, 300.0);
        assert_eq!(minutes.tick(minutes.ticks[1]), "1 min");
        // Two workers: no tick at a half.
        assert_eq!(Axis::exact(Format::Number, 0.0, 1.0).ticks, [0.0, 1.0]);
    }

    #[test]
    fn log_axes_span_the_data_between_round_values() {
        let axis = Axis::log(Format::Latency, [130.0, 4_100.0].into_iter());
        assert_eq!((axis.min, axis.max), (100.0, 5000.0));
        assert_eq!(axis.ticks, [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        let wide = Axis::log(Format::Latency, [0.0, 3.0, 2e6].into_iter());
        assert_eq!(wide.min, 2.0);
        assert!(wide.ticks.iter().all(|t| (t.log10() - t.log10().round()).abs() < 1e-9));
        let one = Axis::log(Format::Latency, [100.0].into_iter());
        assert!(one.max > one.min);
    }

    #[test]
    fn nines_are_percentiles() {
        for (x, text) in [(0.0, "0 %"), (2f64.log10(), "50 %"), (1.0, "90 %"), (3.0, "99.9 %")] {
            assert_eq!(nines(x), text);
        }
        assert_eq!(nines(5.0), "99.999 %");
        assert_eq!(Axis::nines(2.7).ticks, [0.0, 2f64.log10(), 1.0, 2.0]);
    }

    #[test]
    fn values_have_places_in_the_range_or_none() {
        let axis = Axis::log(Format::Latency, [1.0, 100.0].into_iter());
        assert_eq!(axis.place(10.0), Some(0.5));
        assert_eq!((axis.place(-1.0), axis.place(f64::NAN)), (None, None));
        assert_eq!(Axis::linear(Format::Share, [0.5].into_iter()).tick(0.25), "25 %");
    }
}
