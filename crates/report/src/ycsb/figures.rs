//! Figures: series -> `[METRIC], measurement, value`, in YCSB's order and with its names.

use super::series::Series;
use record::Latency;
use units::Nanos;
use workload::ycsb::{Kind, Measurement};

/// A value of a figure: Java tells whole numbers from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// `int` or `long`.
    Whole(i64),
    /// `double`.
    Double(f64),
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// `OVERALL`, `READ`.
    pub metric: String,
    /// `Throughput(ops/sec)`.
    pub measurement: String,
    /// Its value.
    pub value: Number,
}

impl Figure {
    /// A figure that is a whole number.
    #[must_use]
    pub fn whole(metric: &str, measurement: &str, value: u64) -> Self {
        let value = Number::Whole(i64::try_from(value).unwrap_or(i64::MAX));
        Self { metric: metric.to_owned(), measurement: measurement.to_owned(), value }
    }

    /// Any other.
    #[must_use]
    pub fn double(metric: &str, measurement: &str, value: f64) -> Self {
        let value = Number::Double(value);
        Self { metric: metric.to_owned(), measurement: measurement.to_owned(), value }
    }
}

/// The averages of a series over time: from when in ms, and in us.
pub(super) type Averages = Vec<(u64, f64)>;

/// The same values in microseconds, cut as Java's division does, in the buckets that a histogram of
/// microseconds has.
pub(super) fn in_us(latency: &Latency) -> Latency {
    let mut us = Latency::new();
    for bucket in latency.buckets() {
        let middle = bucket.low.0 + (bucket.high.0 - bucket.low.0) / 2;
        us.record_n(Nanos(middle / 1000), bucket.count);
    }
    us
}

/// The figures before all others. There is no collector, so that it ran 0 times for 0 ms.
pub(super) fn overall(runtime_ms: u64, operations: u64) -> Vec<Figure> {
    let throughput = 1000.0 * operations as f64 / runtime_ms as f64;
    vec![
        Figure::whole("OVERALL", "RunTime(ms)", runtime_ms),
        Figure::double("OVERALL", "Throughput(ops/sec)", throughput),
        Figure::whole("TOTAL_GCs", "Count", 0),
        Figure::whole("TOTAL_GC_TIME", "Time(ms)", 0),
        Figure::double("TOTAL_GC_TIME_%", "Time(%)", 0.0),
    ]
}

/// The figures of one series, by what is kept of it. `averages` are those over time; of single
/// operations there is a summary only.
pub(super) fn of(measurement: &Measurement, series: &Series, averages: &Averages) -> Vec<Figure> {
    let name = &series.name;
    match measurement.kind {
        Kind::Hdr => hdr(measurement, name, series, true),
        Kind::Buckets => buckets(measurement, name, series, true),
        Kind::HdrAndBuckets => {
            let mut both = hdr(measurement, &format!("Hdr{name}"), series, true);
            both.extend(buckets(measurement, &format!("Bucket{name}"), series, false));
            both
        }
        Kind::Series => over_time(name, series, averages),
        Kind::Raw => raw(measurement, name, series, true),
        Kind::HdrAndRaw => {
            let mut both = hdr(measurement, &format!("Hdr{name}"), series, true);
            both.extend(raw(measurement, &format!("Raw{name}"), series, false));
            both
        }
    }
}

fn returns(name: &str, series: &Series, told: bool) -> impl Iterator<Item = Figure> {
    let told: Vec<_> = if told { series.returns.clone() } else { Vec::new() };
    let name = name.to_owned();
    told.into_iter().map(move |(status, n)| Figure::whole(&name, &format!("Return={status}"), n))
}

/// What was counted of a series without latencies.
fn counted(name: &str, series: &Series) -> Vec<Figure> {
    let all = series.returns.iter().map(|(_, n)| n).sum();
    let mut figures = vec![Figure::whole(name, "Operations", all)];
    figures.extend(returns(name, series, true));
    figures
}

fn hdr(measurement: &Measurement, name: &str, series: &Series, told: bool) -> Vec<Figure> {
    let Some(latency) = &series.latency else { return counted(name, series) };
    let us = in_us(latency);
    let mut figures = vec![
        Figure::whole(name, "Operations", us.count()),
        Figure::double(name, "AverageLatency(us)", latency.mean() / 1e3),
        Figure::whole(name, "MinLatency(us)", us.min().0),
        Figure::whole(name, "MaxLatency(us)", us.max().0),
    ];
    for percentile in &measurement.percentiles {
        let what = format!("{}PercentileLatency(us)", ordinal(*percentile));
        figures.push(Figure::whole(name, &what, us.quantile(percentile / 100.0).0));
    }
    figures.extend(returns(name, series, told));
    if measurement.verbose {
        let bucket = |b: record::Bucket| {
            Figure::double(name, &b.high.0.min(i32::MAX as u64).to_string(), b.count as f64)
        };
        figures.extend(us.buckets().map(bucket));
    }
    figures
}

/// `1st`, `50th`, `99.9`.
fn ordinal(percentile: f64) -> String {
    if percentile.fract() != 0.0 {
        return super::java::double(percentile);
    }
    let number = percentile as u64;
    let suffix = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

fn buckets(measurement: &Measurement, name: &str, series: &Series, told: bool) -> Vec<Figure> {
    let Some(latency) = &series.latency else { return counted(name, series) };
    let us = in_us(latency);
    let mut counts = vec![0u64; measurement.buckets as usize];
    let (mut beyond, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for bucket in us.buckets() {
        let middle = bucket.low.0 + (bucket.high.0 - bucket.low.0) / 2;
        sum += middle as f64 * bucket.count as f64;
        squares += (middle as f64).powi(2) * bucket.count as f64;
        match counts.get_mut((middle / 1000) as usize) {
            Some(count) => *count += bucket.count,
            None => beyond += bucket.count,
        }
    }
    let all = us.count() as f64;
    let mean = sum / all;
    let (min, max) = match us.is_empty() {
        true => (Number::Whole(-1), Number::Whole(-1)),
        false => (Number::Whole(us.min().0 as i64), Number::Whole(us.max().0 as i64)),
    };
    let of = |measurement: &str, value| Figure {
        metric: name.to_owned(),
        measurement: measurement.to_owned(),
        value,
    };
    let mut figures = vec![
        Figure::whole(name, "Operations", us.count()),
        Figure::double(name, "AverageLatency(us)", mean),
        Figure::double(name, "LatencyVariance(us)", (squares / all - mean * mean).max(0.0)),
        of("MinLatency(us)", min),
        of("MaxLatency(us)", max),
    ];
    let (mut seen, mut told_95) = (0u64, false);
    for (ms, count) in counts.iter().enumerate() {
        seen += count;
        let share = seen as f64 / all;
        if !told_95 && share >= 0.95 {
            figures.push(Figure::whole(name, "95thPercentileLatency(us)", ms as u64 * 1000));
            told_95 = true;
        }
        if share >= 0.99 {
            figures.push(Figure::whole(name, "99thPercentileLatency(us)", ms as u64 * 1000));
            break;
        }
    }
    figures.extend(returns(name, series, told));
    if measurement.verbose {
        let bucket = |(ms, count): (usize, &u64)| Figure::whole(name, &ms.to_string(), *count);
        figures.extend(counts.iter().enumerate().map(bucket));
        figures.push(Figure::whole(name, &format!(">{}", measurement.buckets), beyond));
    }
    figures
}

fn over_time(name: &str, series: &Series, averages: &Averages) -> Vec<Figure> {
    let Some(latency) = &series.latency else { return counted(name, series) };
    let us = in_us(latency);
    let mut figures = vec![
        Figure::whole(name, "Operations", us.count()),
        Figure::double(name, "AverageLatency(us)", latency.mean() / 1e3),
        Figure::whole(name, "MinLatency(us)", us.min().0),
        Figure::whole(name, "MaxLatency(us)", us.max().0),
    ];
    figures.extend(returns(name, series, true));
    let average = |(from_ms, us): &(u64, f64)| Figure::double(name, &from_ms.to_string(), *us);
    figures.extend(averages.iter().map(average));
    figures
}

/// The summary of single operations: the value at a rank, counted from 0.
fn raw(measurement: &Measurement, name: &str, series: &Series, told: bool) -> Vec<Figure> {
    let Some(latency) = &series.latency else { return counted(name, series) };
    let us = in_us(latency);
    let all = us.count();
    let mut figures = vec![Figure::whole(name, "Total Operations", all)];
    if all > 0 && measurement.raw_summary {
        figures.push(Figure {
            metric: name.to_owned(),
            measurement: "Below is a summary of latency in microseconds:".to_owned(),
            value: Number::Whole(-1),
        });
        figures.push(Figure::double(name, "Average", latency.mean() / 1e3));
        figures.push(Figure::whole(name, "Min", us.min().0));
        figures.push(Figure::whole(name, "Max", us.max().0));
        for (what, share) in [
            ("p1", 0.01),
            ("p5", 0.05),
            ("p50", 0.5),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p99.9", 0.999),
            ("p99.99", 0.9999),
        ] {
            let rank = (all as f64 * share) as u64;
            let at = us.quantile((rank as f64 + 0.5) / all as f64).0;
            figures.push(Figure::whole(name, what, at));
        }
    }
    figures.extend(returns(name, series, told));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_as_in_the_original() {
        let names = [1.0, 2.0, 3.0, 4.0, 11.0, 50.0, 95.0, 99.0, 99.9, 99.99, 100.0].map(ordinal);
        assert_eq!(names.join(" "), "1st 2nd 3rd 4th 11th 50th 95th 99th 99.9 99.99 100th");
    }

    #[test]
    fn microseconds_are_cut() {
        let mut latency = Latency::new();
        [999, 1000, 1999, 250_700].iter().for_each(|&ns| latency.record(Nanos(ns)));
        let us = in_us(&latency);
        let seen: Vec<_> = us.buckets().map(|b| (b.low.0, b.count)).collect();
        assert_eq!(seen, [(0, 1), (1, 2), (250, 1)]);
    }
}
