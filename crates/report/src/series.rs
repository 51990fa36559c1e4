//! From logs to lines: percentile curves of a whole window, figures per interval over time.
//!
//! Input: the tags of `total.hlog` and the entries of `latency.hlog`; output: microseconds and
//! operations per second. Intervals are put together by merging histograms, never by averaging
//! percentiles; seconds without any entry are seconds in which nothing was done.

use record::hlog::{HlogReadError, HlogReader};
use record::{Latency, Outcome, Series, Tag};
use std::io::BufRead;

/// Points of a line over time; longer runs merge intervals until they fit.
const BINS_MAX: f64 = 600.0;
/// Points of a percentile curve for every nine.
const POINTS_PER_NINE: usize = 24;

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

/// What happened in one stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bin {
    /// Middle, in seconds since the start of the window.
    pub(crate) t_s: f64,
    /// Ok operations per second.
    pub(crate) ok_s: f64,
    /// Operations per second that did not end ok.
    pub(crate) errors_s: f64,
    /// p50, p99 and maximum of the service time in us, all operations merged.
    pub(crate) service_us: Option<[f64; 3]>,
    /// The same of the response time.
    pub(crate) response_us: Option<[f64; 3]>,
}

/// A run over time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    pub(crate) bins: Vec<Bin>,
    /// Length of a bin in seconds.
    pub(crate) width_s: f64,
    /// End of the last interval in seconds.
    pub(crate) end_s: f64,
    /// Length of a last interval that is too short to stand beside the others, and is left out.
    pub(crate) cut_s: Option<f64>,
}

/// The length of a bin and the end of a log, from a first pass over it.
pub(crate) fn extent(reader: HlogReader<impl BufRead>) -> Result<(f64, f64), HlogReadError> {
    let (mut longest_s, mut end_s) = (0f64, 0f64);
    for entry in reader {
        let entry = entry?;
        longest_s = longest_s.max(entry.length.as_secs_f64());
        end_s = end_s.max((entry.start + entry.length).as_secs_f64());
    }
    let interval_s = nominal(longest_s);
    // A whole number of intervals, else bins would hold now one more, now one less.
    Ok((interval_s * (end_s / interval_s / BINS_MAX).ceil().max(1.0), end_s))
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
    let mut timeline = Timeline { bins: Vec::new(), width_s, end_s, cut_s: None };
    let mut open = OpenBin::default();
    for entry in reader {
        let entry = entry?;
        let Some(tag) = Tag::parse(&entry.tag) else { continue };
        // By its middle: an edge may be a few microseconds early.
        let middle_s = entry.start.as_secs_f64() + entry.length.as_secs_f64() / 2.0;
        let index = (middle_s / width_s) as usize;
        while timeline.bins.len() < index {
            timeline.push(&mut open);
        }
        open.add(&tag.series, &entry.latency);
    }
    if !open.is_empty() {
        timeline.push(&mut open);
    }
    timeline.cut();
    Ok(timeline)
}

impl Timeline {
    /// Leaves out a last bin of less than half the width: the drain behind the window, whose few
    /// operations would look like a collapse of the throughput.
    fn cut(&mut self) {
        let length_s = self.end_s - self.width_s * self.bins.len().saturating_sub(1) as f64;
        if self.bins.len() > 1 && length_s < self.width_s / 2.0 {
            self.bins.pop();
            self.cut_s = Some(length_s);
        }
    }

    fn push(&mut self, open: &mut OpenBin) {
        let start_s = self.bins.len() as f64 * self.width_s;
        // The last one may be cut short by the end of the run.
        let length_s = self.width_s.min(self.end_s - start_s);
        let length_s = if length_s > 0.0 { length_s } else { self.width_s };
        self.bins.push(open.close(start_s, length_s));
    }
}

/// The bin that is being filled.
#[derive(Debug, Default)]
struct OpenBin {
    service: Latency,
    response: Latency,
    timeouts: u64,
    failed: u64,
}

impl OpenBin {
    fn add(&mut self, series: &Series, latency: &Latency) {
        match series {
            Series::Service => self.service.merge(latency),
            Series::Response => self.response.merge(latency),
            // Holds also what was never sent, which has no service time.
            Series::FailedResponse => self.failed += latency.count(),
            Series::Class(Outcome::ClientTimeout | Outcome::ServerTimeout) => {
                self.timeouts += latency.count();
            }
            Series::Lag | Series::FailedService | Series::Class(_) | Series::Part(_) => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.service.is_empty() && self.failed == 0
    }

    fn close(&mut self, start_s: f64, length_s: f64) -> Bin {
        let ok = self.service.count().saturating_sub(self.timeouts);
        let bin = Bin {
            t_s: start_s + length_s / 2.0,
            ok_s: ok as f64 / length_s,
            errors_s: self.failed.saturating_add(self.timeouts) as f64 / length_s,
            service_us: three(&self.service),
            response_us: three(&self.response),
        };
        self.service.clear();
        self.response.clear();
        (self.timeouts, self.failed) = (0, 0);
        bin
    }
}

fn three(latency: &Latency) -> Option<[f64; 3]> {
    let values = [latency.quantile(0.5), latency.quantile(0.99), latency.max()];
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
        let extent = extent(HlogReader::new(bytes)).unwrap();
        timeline(HlogReader::new(bytes), extent).unwrap()
    }

    #[test]
    fn a_silent_second_is_a_second_without_throughput() {
        let timeline = timeline_of(&log(&[(0, 1000, 10), (2000, 1000, 30), (3000, 500, 20)]));
        let ok: Vec<_> = timeline.bins.iter().map(|b| b.ok_s).collect();
        assert_eq!(ok, [10.0, 0.0, 30.0, 40.0]);
        let errors: Vec<_> = timeline.bins.iter().map(|b| b.errors_s).collect();
        assert_eq!(errors, [2.0, 0.0, 2.0, 4.0]);
        assert_eq!(timeline.bins[1].service_us, None);
        assert_eq!((timeline.bins[3].t_s, timeline.end_s), (3.25, 3.5));
    }

    #[test]
    fn long_runs_merge_whole_intervals() {
        let intervals: Vec<_> = (0..1500).map(|s| (s * 1000, 1000, 2)).collect();
        let timeline = timeline_of(&log(&intervals));
        assert_eq!((timeline.width_s, timeline.bins.len()), (3.0, 500));
        assert!(timeline.bins.iter().all(|bin| bin.ok_s == 2.0));
    }

    #[test]
    fn longer_intervals_after_an_hour_leave_no_holes() {
        let mut intervals: Vec<_> = (0..20).map(|s| (s * 1000, 1000, 5)).collect();
        intervals.extend((2..6).map(|t| (t * 10_000, 10_000, 50)));
        let timeline = timeline_of(&log(&intervals));
        let ok: Vec<_> = timeline.bins.iter().map(|b| b.ok_s).collect();
        assert_eq!(ok, [5.0; 6]);
    }

    #[test]
    fn late_edges_do_not_shift_the_bins() {
        let intervals: Vec<_> = (0..300).map(|s| (s * 1000, 1000 + s % 3, 7)).collect();
        let timeline = timeline_of(&log(&intervals));
        assert_eq!((timeline.width_s, timeline.bins.len()), (1.0, 300));
        assert!(timeline.bins.iter().all(|bin| (6.9..7.1).contains(&bin.ok_s)));
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
