//! From logs to lines: percentile curves of a whole window, figures per interval over time.
//!
//! Input: the tags of `total.hlog` and the entries of `latency.hlog`; output: microseconds and
//! operations per second. Intervals are put together by merging histograms, never by averaging
//! percentiles; seconds without any entry are seconds in which nothing was done. Beside the bins
//! that are drawn every interval is kept as a [`Moment`], for the events in it.

use record::hlog::{HlogReadError, HlogReader};
use record::{Latency, Outcome, Series, Tag};
use std::io::BufRead;

/// Points of a percentile curve for every nine.
const POINTS_PER_NINE: usize = 24;
/// Intervals that are kept; a day of seconds.
const MOMENTS_MAX: usize = 100_000;
/// A last interval of less than this share of its length is left out: the drain behind the window,
/// whose few operations would look like a collapse of the throughput.
pub(crate) const LAST_SHARE_MIN: f64 = 0.2;

/// Latency by percentile: number of nines (`-log10(1 - q)`) against microseconds, to the maximum.
pub(crate) fn percentile_curve(latency: &Latency) -> Vec<(f64, Option<f64>)> {
    if latency.is_empty() {
        return Vec::new();
    }
    let count = latency.count() as f64;
    // The largest sample stands for the last 1/n; there is nothing to tell beyond it.
    let x_max = count.log10();
    let steps = (x_max * POINTS_PER_NINE as f64).ceil() as usize;
    let mut buckets = latency.buckets();
    let (mut seen, mut high_ns) = (0u64, 0u64);
    let mut points = Vec::with_capacity(steps + 1);
    for step in 0..steps {
        let x = step as f64 / POINTS_PER_NINE as f64;
        let rank = (((1.0 - 10f64.powf(-x)) * count).ceil() as u64).max(1);
        while seen < rank {
            let Some(bucket) = buckets.next() else { break };
            seen = seen.saturating_add(bucket.count);
            high_ns = bucket.high.0;
        }
        points.push((x, Some(high_ns as f64 / 1e3)));
    }
    points.push((x_max, Some(latency.max().0 as f64 / 1e3)));
    points
}

/// The percentiles of a [`Bin`], in their order.
pub(crate) const PERCENTILES: [&str; 4] = ["p50", "p90", "p99", "max"];

/// What happened in one stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bin {
    /// Middle, in seconds since the start of the window.
    pub(crate) t_s: f64,
    /// Operations per second by outcome, in the order of [`Outcome::ALL`].
    pub(crate) outcomes_s: [f64; Outcome::COUNT],
    /// [`PERCENTILES`] of the service time in us, all operations merged.
    pub(crate) service_us: Option<[f64; 4]>,
    /// The same of the response time.
    pub(crate) response_us: Option<[f64; 4]>,
    /// The same of the lag.
    pub(crate) lag_us: Option<[f64; 4]>,
    /// Operations between send and outcome, on average, by Little's law.
    pub(crate) in_flight: f64,
}

impl Bin {
    /// Ok operations per second.
    pub(crate) fn ok_s(&self) -> f64 {
        self.outcomes_s[Outcome::Ok.index()]
    }

    /// Operations per second that did not end ok.
    pub(crate) fn errors_s(&self) -> f64 {
        self.outcomes_s.iter().sum::<f64>() - self.ok_s()
    }
}

/// One interval of the log, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Operations by outcome.
    pub(crate) outcomes: [u64; Outcome::COUNT],
    /// p99 of the service time in us; 0 without any.
    pub(crate) p99_us: f64,
}

impl Moment {
    /// Ok operations.
    pub(crate) fn ok(&self) -> u64 {
        self.outcomes[Outcome::Ok.index()]
    }

    /// Operations that did not end ok.
    pub(crate) fn errors(&self) -> u64 {
        self.outcomes.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)).saturating_sub(self.ok())
    }

    /// Ok operations per second.
    pub(crate) fn ok_s(&self) -> f64 {
        self.ok() as f64 / (self.to_s - self.from_s).max(1e-9)
    }
}

/// A run over time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    pub(crate) bins: Vec<Bin>,
    pub(crate) moments: Vec<Moment>,
    /// Length of a bin in seconds.
    pub(crate) width_s: f64,
    /// End of the last interval in seconds.
    pub(crate) end_s: f64,
    /// Length of a last interval that is too short to stand beside the others, and is left out.
    pub(crate) cut_s: Option<f64>,
}

/// The length of a bin and the end of a log, from a first pass over it; at most `bins_max` bins.
pub(crate) fn extent(
    mut reader: HlogReader<impl BufRead>,
    bins_max: usize,
) -> Result<(f64, f64), HlogReadError> {
    let (mut longest_s, mut end_s) = (0f64, 0f64);
    while let Some((start, length)) = reader.next_span()? {
        longest_s = longest_s.max(length.as_secs_f64());
        end_s = end_s.max((start + length).as_secs_f64());
    }
    let interval_s = nominal(longest_s);
    // A whole number of intervals, else bins would hold now one more, now one less.
    Ok((interval_s * (end_s / interval_s / bins_max as f64).ceil().max(1.0), end_s))
}

/// The length that was meant: an edge is taken some microseconds late, `--interval` has two digits.
fn nominal(length_s: f64) -> f64 {
    if length_s <= 0.0 {
        return 1.0;
    }
    let digit = 10f64.powf(length_s.log10().floor() - 1.0);
    (length_s / digit).round() * digit
}

/// Reads a log in bins of `width_s` up to `end_s`, both by [`extent`].
pub(crate) fn timeline(
    reader: HlogReader<impl BufRead>,
    (width_s, end_s): (f64, f64),
) -> Result<Timeline, HlogReadError> {
    let mut timeline = Timeline { width_s, end_s, ..Timeline::default() };
    let (mut open, mut interval) = (Open::default(), Open::default());
    let mut span = (0.0, 0.0);
    for entry in reader {
        let entry = entry?;
        let Some(tag) = Tag::parse(&entry.tag) else { continue };
        let from_s = entry.start.as_secs_f64();
        if from_s != span.0 {
            timeline.moment(&mut interval, &mut open, span);
        }
        span = (from_s, from_s + entry.length.as_secs_f64());
        interval.add(&tag.series, &entry.latency);
    }
    timeline.moment(&mut interval, &mut open, span);
    if !open.is_empty() {
        timeline.push(&mut open);
    }
    timeline.cut();
    Ok(timeline)
}

impl Timeline {
    /// Leaves out a last bin that is too short.
    fn cut(&mut self) {
        let length_s = self.end_s - self.width_s * self.bins.len().saturating_sub(1) as f64;
        if self.bins.len() > 1 && length_s < self.width_s * LAST_SHARE_MIN {
            self.bins.pop();
            self.cut_s = Some(length_s);
        }
    }

    /// Closes an interval and adds it to the bin in which it lies.
    fn moment(&mut self, interval: &mut Open, open: &mut Open, (from_s, to_s): (f64, f64)) {
        if interval.is_empty() {
            return;
        }
        // By its middle: an edge may be a few microseconds early.
        let index = ((from_s + to_s) / 2.0 / self.width_s) as usize;
        while self.bins.len() < index {
            self.push(open);
        }
        if self.moments.len() < MOMENTS_MAX {
            let p99_us = interval.service.quantile(0.99).0 as f64 / 1e3;
            let outcomes = interval.outcomes();
            self.moments.push(Moment { from_s, to_s, outcomes, p99_us });
        }
        open.take(interval);
    }

    fn push(&mut self, open: &mut Open) {
        let start_s = self.bins.len() as f64 * self.width_s;
        // The last one may be cut short by the end of the run.
        let length_s = self.width_s.min(self.end_s - start_s);
        let length_s = if length_s > 0.0 { length_s } else { self.width_s };
        self.bins.push(open.close(start_s, length_s));
    }
}

/// What is being put together: an interval, or a bin of several.
#[derive(Debug, Default)]
struct Open {
    service: Latency,
    response: Latency,
    lag: Latency,
    /// Operations by outcome, of those that have a class.
    classes: [u64; Outcome::COUNT],
    failed_service: u64,
    failed_response: u64,
    /// Sum of all service times.
    busy_s: f64,
}

impl Open {
    fn add(&mut self, series: &Series, latency: &Latency) {
        let count = latency.count();
        match series {
            Series::Service => self.service.merge(latency),
            Series::Response => self.response.merge(latency),
            Series::Lag => self.lag.merge(latency),
            Series::FailedService => {
                self.failed_service = self.failed_service.saturating_add(count)
            }
            // Holds also what was never sent, which has no service time.
            Series::FailedResponse => {
                self.failed_response = self.failed_response.saturating_add(count);
            }
            Series::Class(outcome) => {
                let class = &mut self.classes[outcome.index()];
                *class = class.saturating_add(count);
            }
            Series::Part(_) => {}
        }
        if matches!(series, Series::Service | Series::FailedService) {
            self.busy_s += latency.mean() * count as f64 / 1e9;
        }
    }

    /// Adds all of `other`, and empties it.
    fn take(&mut self, other: &mut Self) {
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
        self.classes.iter_mut().zip(other.classes).for_each(|(to, n)| *to = to.saturating_add(n));
        self.failed_service = self.failed_service.saturating_add(other.failed_service);
        self.failed_response = self.failed_response.saturating_add(other.failed_response);
        self.busy_s += other.busy_s;
        other.clear();
    }

    fn clear(&mut self) {
        self.service.clear();
        self.response.clear();
        self.lag.clear();
        self.classes = [0; Outcome::COUNT];
        (self.failed_service, self.failed_response, self.busy_s) = (0, 0, 0.0);
    }

    fn is_empty(&self) -> bool {
        self.service.is_empty() && self.failed_response == 0 && self.lag.is_empty()
    }

    fn outcomes(&self) -> [u64; Outcome::COUNT] {
        let mut outcomes = self.classes;
        let of = |outcome: Outcome| self.classes[outcome.index()];
        // The main histogram holds ok and the timeouts.
        let timeouts = of(Outcome::ClientTimeout).saturating_add(of(Outcome::ServerTimeout));
        outcomes[Outcome::Ok.index()] = self.service.count().saturating_sub(timeouts);
        outcomes[Outcome::NotSent.index()] =
            self.failed_response.saturating_sub(self.failed_service);
        outcomes
    }

    fn close(&mut self, start_s: f64, length_s: f64) -> Bin {
        let bin = Bin {
            t_s: start_s + length_s / 2.0,
            outcomes_s: self.outcomes().map(|count| count as f64 / length_s),
            service_us: percentiles(&self.service),
            response_us: percentiles(&self.response),
            lag_us: percentiles(&self.lag),
            in_flight: self.busy_s / length_s,
        };
        self.clear();
        bin
    }
}

fn percentiles(latency: &Latency) -> Option<[f64; 4]> {
    let quantiles = [0.5, 0.9, 0.99].map(|q| latency.quantile(q));
    let values = [quantiles[0], quantiles[1], quantiles[2], latency.max()];
    (!latency.is_empty()).then(|| values.map(|value| value.0 as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::hlog::HlogWriter;
    use record::{IntervalRecord, OpNames};
    use units::Nanos;

    /// A log of `read`: for each interval its start and length in ms and how many were ok.
    fn log(intervals: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut log = HlogWriter::new(Vec::new(), Nanos::ZERO).unwrap();
        for &(start_ms, length_ms, ok) in intervals {
            let mut interval = IntervalRecord::new(&[0]);
            interval.start = Nanos::from_millis(start_ms);
            interval.end = Nanos::from_millis(start_ms + length_ms);
            for _ in 0..ok {
                let service = Nanos::from_micros(start_ms + 1);
                interval.ops[0].record(Outcome::Ok, service, service, Nanos::ZERO);
            }
            for outcome in [Outcome::ClientTimeout, Outcome::NotSent] {
                interval.ops[0].record(outcome, Nanos(1), Nanos(1), Nanos::ZERO);
            }
            log.write_interval(&[OpNames::single("read")], &interval, Nanos::ZERO).unwrap();
        }
        log.finish().unwrap()
    }

    fn timeline_of(bytes: &[u8]) -> Timeline {
        let extent = extent(HlogReader::new(bytes), 600).unwrap();
        timeline(HlogReader::new(bytes), extent).unwrap()
    }

    #[test]
    fn a_silent_second_is_a_second_without_throughput() {
        let timeline = timeline_of(&log(&[(0, 1000, 10), (2000, 1000, 30), (3000, 500, 20)]));
        let ok: Vec<_> = timeline.bins.iter().map(Bin::ok_s).collect();
        assert_eq!(ok, [10.0, 0.0, 30.0, 40.0]);
        let errors: Vec<_> = timeline.bins.iter().map(Bin::errors_s).collect();
        assert_eq!(errors, [2.0, 0.0, 2.0, 4.0]);
        assert_eq!(timeline.bins[1].service_us, None);
        assert_eq!((timeline.bins[3].t_s, timeline.end_s), (3.25, 3.5));
    }

    #[test]
    fn a_short_rest_at_the_end_is_left_out_and_told() {
        let timeline = timeline_of(&log(&[(0, 1000, 10), (1000, 1000, 10), (2000, 150, 1)]));
        assert_eq!((timeline.bins.len(), timeline.moments.len()), (2, 3));
        assert!((timeline.cut_s.unwrap() - 0.15).abs() < 1e-9);
    }

    #[test]
    fn in_flight_is_the_time_that_operations_took_over_the_time_that_went_by() {
        // 20 operations that took 1.001 ms each, in half a second.
        let timeline = timeline_of(&log(&[(0, 500, 0), (1000, 500, 20)]));
        let bin = timeline.bins.last().unwrap();
        assert!((bin.in_flight - 20.0 * 0.001_001 / 0.5).abs() < 1e-4, "{}", bin.in_flight);
    }

    #[test]
    fn moments_keep_what_bins_merge() {
        let intervals: Vec<_> = (0..1500).map(|s| (s * 1000, 1000, 2)).collect();
        let timeline = timeline_of(&log(&intervals));
        assert_eq!(timeline.moments.len(), 1500);
        let last = timeline.moments.last().unwrap();
        assert_eq!((last.ok(), last.errors(), last.from_s, last.to_s), (2, 2, 1499.0, 1500.0));
        assert_eq!(last.outcomes[Outcome::NotSent.index()], 1);
    }

    #[test]
    fn long_runs_merge_whole_intervals() {
        let intervals: Vec<_> = (0..1500).map(|s| (s * 1000, 1000, 2)).collect();
        let timeline = timeline_of(&log(&intervals));
        assert_eq!((timeline.width_s, timeline.bins.len()), (3.0, 500));
        assert!(timeline.bins.iter().all(|bin| bin.ok_s() == 2.0));
    }

    #[test]
    fn longer_intervals_after_an_hour_leave_no_holes() {
        let mut intervals: Vec<_> = (0..20).map(|s| (s * 1000, 1000, 5)).collect();
        intervals.extend((2..6).map(|t| (t * 10_000, 10_000, 50)));
        let timeline = timeline_of(&log(&intervals));
        let ok: Vec<_> = timeline.bins.iter().map(Bin::ok_s).collect();
        assert_eq!(ok, [5.0; 6]);
    }

    #[test]
    fn late_edges_do_not_shift_the_bins() {
        let intervals: Vec<_> = (0..300).map(|s| (s * 1000, 1000 + s % 3, 7)).collect();
        let timeline = timeline_of(&log(&intervals));
        assert_eq!((timeline.width_s, timeline.bins.len()), (1.0, 300));
        assert!(timeline.bins.iter().all(|bin| (6.9..7.1).contains(&bin.ok_s())));
        assert!((nominal(0.2501) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_curve_ends_at_the_maximum() {
        let mut latency = Latency::new();
        (1..=1000).for_each(|us| latency.record(Nanos::from_micros(us)));
        let curve = percentile_curve(&latency);
        assert_eq!(curve.len(), 3 * POINTS_PER_NINE + 1);
        let at = |x: f64| curve.iter().find(|p| (p.0 - x).abs() < 1e-9).unwrap().1.unwrap();
        assert!((900.0..901.0).contains(&at(1.0)) && (990.0..991.0).contains(&at(2.0)));
        assert_eq!(at(3.0), latency.max().0 as f64 / 1e3);
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert!(percentile_curve(&Latency::new()).is_empty());
    }
}
