//! Lines of Aerospike's benchmarks.
//!
//! In: counts and histograms of an interval. Out: lines as those of each generation. Source: the
//! C client's `latency.c`, asbench's `coordinator.c` and `latency_output.c`. Times are UTC.

use crate::error::LabError;
use record::{ColumnCounts, Columns, Latency, LimitUnit, OpRecord, Outcome, utc};
use std::fmt::Write as _;
use units::Nanos;
use workload::asbench::{Generation, LatencyShown, Limits, Settings, Table};

/// What became of the operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) hit: u64,
    pub(super) miss: u64,
    pub(super) timeouts: u64,
    pub(super) errors: u64,
}

impl Counts {
    pub(super) fn add(&mut self, op: &OpRecord) {
        let timeouts = op.count(Outcome::ClientTimeout) + op.count(Outcome::ServerTimeout);
        let (hit, miss) = (op.count(Outcome::Ok), op.count(Outcome::NotFound));
        self.hit += hit;
        self.miss += miss;
        self.timeouts += timeouts;
        self.errors += op.ops() - hit - miss - timeouts - op.count(Outcome::NotSent);
    }

    fn plus(self, other: Self) -> Self {
        Self {
            hit: self.hit + other.hit,
            miss: self.miss + other.miss,
            timeouts: self.timeouts + other.timeouts,
            errors: self.errors + other.errors,
        }
    }

    /// Each over so many seconds.
    fn per(self, seconds: f64) -> Self {
        let per = |count: u64| (count as f64 / seconds).round() as u64;
        Self {
            hit: per(self.hit),
            miss: per(self.miss),
            timeouts: per(self.timeouts),
            errors: per(self.errors),
        }
    }

    fn text(self, generation: Generation) -> String {
        let Self { hit, miss, timeouts, errors } = self;
        let tps = hit + miss;
        match generation {
            Generation::Two => {
                format!("(tps={tps} (hit={hit} miss={miss}) timeouts={timeouts} errors={errors})")
            }
            _ => format!("(tps={tps} timeouts={timeouts} errors={errors})"),
        }
    }
}

/// The line of a second. An interval that is longer is told by the second; what is shorter, the
/// last, as it is. Misses, which only asbench's own lines have a place for, stand at the end of the
/// others where there are any.
pub(super) fn second(
    generation: Generation,
    (write, read): (Counts, Counts),
    length: Nanos,
    wall: Nanos,
) -> String {
    let seconds = length.as_secs_f64().max(1.0);
    let (write, read) = (write.per(seconds), read.per(seconds));
    let date = utc::rfc3339(wall.0 / 1_000_000_000).replace('T', " ").replace('Z', "");
    let total = write.plus(read);
    let text = |counts: Counts| counts.text(generation);
    let mut line =
        format!("{date} INFO write{} read{} total{}", text(write), text(read), text(total));
    if generation != Generation::Two && total.miss > 0 {
        let _ = write!(line, " misses={}", total.miss);
    }
    line
}

/// The columns of a table.
pub(super) fn columns(table: &Table) -> Result<Columns, LabError> {
    let count = table.columns as usize;
    Ok(match table.limits {
        Limits::Linear { width_us } => {
            Columns::linear(count, Nanos::from_micros(u64::from(width_us)))?
        }
        Limits::Shifted { shift, micros } => {
            let unit = if micros { LimitUnit::Micros } else { LimitUnit::Millis };
            Columns::shifted(count, shift, unit)?
        }
    })
}

/// What is shown of latencies, for people.
pub(super) fn latency_in_words(settings: &Settings) -> Result<Option<String>, LabError> {
    Ok(match settings.latency {
        LatencyShown::Nothing => None,
        LatencyShown::Percentiles => Some("percentiles since the start, each second".to_owned()),
        LatencyShown::Table(table) => {
            let decimals = if table.decimals == 0 { "no decimals" } else { "a decimal" };
            Some(format!("a table each second: {}, shares with {decimals}", columns(&table)?))
        }
    })
}

/// The heading of a table: column 0, and each limit.
pub(super) fn heading(columns: &Columns) -> String {
    let names: Vec<_> = (0..columns.len()).map(|column| columns.heading(column)).collect();
    format!("{:6}{}", "", names.join(" "))
}

/// A row of it: shares of all operations, each as wide as its heading.
pub(super) fn row(name: &str, columns: &Columns, counts: &ColumnCounts, decimals: usize) -> String {
    let all = counts.samples().max(1) as f64;
    let mut line = format!("{name:<6}");
    for (column, above) in counts.cumulative().into_iter().enumerate() {
        // A blank before each but the first, and the sign behind.
        let width = columns.heading(column).len() - usize::from(column == 0);
        let share = above as f64 * 100.0 / all;
        // Halves are rounded up, where there are no decimals.
        let share = if decimals == 0 { (share + 0.5).floor() } else { share };
        let _ = write!(line, "{share:width$.decimals$}%");
    }
    line
}

/// asbench's line of percentiles since the start, in microseconds.
pub(super) fn percentiles(
    name: &str,
    latency: &Latency,
    percentiles: &[f64],
    (elapsed, wall): (Nanos, Nanos),
) -> String {
    let us = |ns: Nanos| ns.0 / 1000;
    let mut line = format!(
        "hdr: {name:<5} {} {}, {}, {}, {}",
        utc::rfc3339(wall.0 / 1_000_000_000),
        elapsed.0 / 1_000_000_000,
        latency.count(),
        us(latency.min()),
        us(latency.max())
    );
    for percentile in percentiles {
        let _ = write!(line, ", {}", us(latency.quantile(percentile / 100.0)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_told_as_each_generation_tells_it() {
        let write = Counts { hit: 10, miss: 0, timeouts: 1, errors: 2 };
        let read = Counts { hit: 5, miss: 3, timeouts: 0, errors: 0 };
        let (second_long, wall) = (Nanos::from_secs(1), Nanos::from_secs(1_612_958_400));
        let line = |generation| second(generation, (write, read), second_long, wall);
        assert_eq!(
            line(Generation::Two),
            "2021-02-10 12:00:00 INFO write(tps=10 (hit=10 miss=0) timeouts=1 errors=2) \
             read(tps=8 (hit=5 miss=3) timeouts=0 errors=0) \
             total(tps=18 (hit=15 miss=3) timeouts=1 errors=2)"
        );
        assert_eq!(
            line(Generation::Legacy),
            "2021-02-10 12:00:00 INFO write(tps=10 timeouts=1 errors=2) \
             read(tps=8 timeouts=0 errors=0) total(tps=18 timeouts=1 errors=2) misses=3"
        );
        let long = second(Generation::Legacy, (write, read), Nanos::from_secs(10), wall);
        assert!(long.contains("write(tps=1 timeouts=0 errors=0)"), "{long}");
    }

    #[test]
    fn tables_line_up_under_their_headings() {
        let mut latency = Latency::new();
        for us in [100, 900, 1100, 5000] {
            latency.record(Nanos::from_micros(us));
        }
        let table = |columns: u32, limits, decimals| {
            let columns =
                self::columns(&Table { columns, limits, decimals, summary: false }).unwrap();
            let mut counts = columns.counts();
            counts.add(&columns, &latency);
            [heading(&columns), row("write", &columns, &counts, decimals)]
        };
        let shifted = |shift| Limits::Shifted { shift, micros: false };
        assert_eq!(
            table(7, shifted(1), 0),
            [
                "      <=1ms >1ms >2ms >4ms >8ms >16ms >32ms",
                "write   50%  50%  25%  25%   0%    0%    0%",
            ]
        );
        assert_eq!(
            table(4, shifted(3), 0),
            ["      <=1ms >1ms >8ms >64ms", "write   50%  50%   0%    0%"]
        );
        let [heading, row] = table(21, Limits::Linear { width_us: 40 }, 1);
        assert!(heading.starts_with("      <=40us >40us >80us >120us"), "{heading}");
        assert!(heading.ends_with(" >760us >800us"), "{heading}");
        assert!(row.starts_with("write   0.0%100.0%100.0%  75.0%"), "{row}");
        assert_eq!(heading.len(), row.len());
        // What the study's script cuts a row by gives a field to each share.
        let fields = row.split([' ', '%']).filter(|field| !field.is_empty()).count();
        assert_eq!(fields, 22);
    }

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut latency = Latency::new();
        (1..=100).for_each(|us| latency.record(Nanos::from_micros(us)));
        let at = (Nanos::from_secs(7), Nanos::from_secs(1_612_958_400));
        assert_eq!(
            percentiles("write", &latency, &[50.0, 99.9], at),
            "hdr: write 2021-02-10T12:00:00Z 7, 100, 1, 100, 50, 100"
        );
    }
}
