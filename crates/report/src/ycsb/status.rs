//! The status line: how far a run is, and what it did since the line before.

use super::figures::in_us;
use super::java::two_decimals;
use super::series::Series;
use units::Nanos;
use workload::ycsb::Kind;

/// How far a run is.
pub(super) struct Progress<'a> {
    pub(super) label: &'a str,
    /// Now, since 1970.
    pub(super) wall: Nanos,
    /// Since the begin of the run.
    pub(super) elapsed: Nanos,
    /// Since the line before.
    pub(super) interval: Nanos,
    /// Operations since the begin.
    pub(super) operations: u64,
    /// Operations since the line before.
    pub(super) current: u64,
    /// Operations left, 0 where they are not counted.
    pub(super) left: u64,
}

/// The line, without its end.
pub(super) fn line(progress: &Progress<'_>, summary: &str) -> String {
    let ms = |time: Nanos| (time.0 / 1_000_000) as f64;
    let throughput = 1000.0 * (progress.operations as f64 / ms(progress.elapsed));
    let current = 1000.0 * (progress.current as f64 / ms(progress.interval));
    let date = record::utc::rfc3339(progress.wall.0 / 1_000_000_000);
    let mut text = format!(
        "{}{} {}:{:03} {} sec: {} operations; ",
        progress.label,
        date.get(..10).unwrap_or_default(),
        date.get(11..19).unwrap_or_default(),
        progress.wall.0 / 1_000_000 % 1000,
        progress.elapsed.0 / 1_000_000_000,
        progress.operations
    );
    if progress.operations != 0 {
        text.push_str(&format!("{} current ops/sec; ", two_decimals(current)));
    }
    if progress.left != 0 {
        // As Java casts: nothing of nothing is 0, without an end is the largest number.
        let seconds = (progress.left as f64 / throughput).ceil() as i64;
        text.push_str(&format!("est completion in {}", remaining(seconds.unsigned_abs())));
    }
    text + summary
}

/// Days and hours, or hours and minutes, or seconds; the plural begins where a number has two
/// digits.
fn remaining(mut seconds: u64) -> String {
    let mut text = String::new();
    let mut unit = |count: u64, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        text.push_str(&format!("{count} {one}{plural} "));
    };
    let days = seconds / 86_400;
    if days > 0 {
        unit(days, "day");
        seconds -= days * 86_400;
    }
    let hours = seconds / 3600;
    if hours > 0 {
        unit(hours, "hour");
        seconds -= hours * 3600;
    }
    let minutes = seconds / 60;
    if days < 1 && minutes > 0 {
        unit(minutes, "minute");
    }
    if text.is_empty() {
        text = match seconds {
            0..=9 => format!("{seconds} second "),
            _ => format!("{seconds} seconds "),
        };
    }
    text
}

/// What every series did since the line before.
pub(super) fn summary(kind: Kind, series: &[Series]) -> String {
    series.iter().map(|series| one(kind, series) + " ").collect()
}

fn one(kind: Kind, series: &Series) -> String {
    let name = &series.name;
    match kind {
        Kind::Hdr => histogram(name, series),
        Kind::Buckets | Kind::Series => average(name, series),
        Kind::Raw => counted(name, series),
        Kind::HdrAndBuckets => {
            let (hdr, buckets) = (format!("Hdr{name}"), format!("Bucket{name}"));
            format!("{}\n{}", histogram(&hdr, series), average(&buckets, series))
        }
        Kind::HdrAndRaw => {
            let (hdr, raw) = (format!("Hdr{name}"), format!("Raw{name}"));
            format!("{}\n{}", histogram(&hdr, series), counted(&raw, series))
        }
    }
}

fn histogram(name: &str, series: &Series) -> String {
    let Some(latency) = &series.latency else { return format!("[{name}]") };
    let us = in_us(latency);
    let at = |percent: f64| us.quantile(percent / 100.0).0;
    format!(
        "[{name}: Count={}, Max={}, Min={}, Avg={}, 50={}, 90={}, 99={}, 99.9={}, 99.99={}]",
        us.count(),
        us.max().0,
        us.min().0,
        two_decimals(latency.mean() / 1e3),
        at(50.0),
        at(90.0),
        at(99.0),
        at(99.9),
        at(99.99)
    )
}

fn average(name: &str, series: &Series) -> String {
    match series.latency.as_ref().filter(|latency| !latency.is_empty()) {
        Some(latency) => {
            format!("[{name} AverageLatency(us)={}]", two_decimals(latency.mean() / 1e3))
        }
        None => String::new(),
    }
}

fn counted(name: &str, series: &Series) -> String {
    match series.latency.as_ref().filter(|latency| !latency.is_empty()) {
        Some(latency) => {
            let mean_us = latency.mean() / 1e3;
            format!("{name} count: {}, average latency(us): {mean_us:.2}", latency.count())
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Latency;

    #[test]
    fn what_is_left_reads_as_in_the_original() {
        for (seconds, text) in [
            (0, "0 second "),
            (9, "9 second "),
            (10, "10 seconds "),
            (61, "1 minute "),
            (3600, "1 hour "),
            (7320, "2 hours 2 minutes "),
            (90_000, "1 day 1 hour "),
            (i64::MAX as u64, "106751991167300 days 15 hours "),
        ] {
            assert_eq!(remaining(seconds), text);
        }
    }

    #[test]
    fn a_line_of_the_middle_and_of_the_begin() {
        let mut latency = Latency::new();
        [100_500, 300_500].iter().for_each(|&ns| latency.record(Nanos(ns)));
        let series =
            [Series { name: "READ".to_owned(), latency: Some(latency), returns: Vec::new() }];
        let progress = Progress {
            label: "x ",
            wall: Nanos(1_767_225_599_042_000_000),
            elapsed: Nanos::from_secs(20),
            interval: Nanos::from_secs(10),
            operations: 2000,
            current: 500,
            left: 4000,
        };
        let read = "[READ: Count=2, Max=300, Min=100, Avg=200.5, 50=100, 90=300, 99=300, 99.9=300, \
                    99.99=300] ";
        assert_eq!(
            line(&progress, &summary(Kind::Hdr, &series)),
            format!(
                "x 2025-12-31 23:59:59:042 20 sec: 2000 operations; 50 current ops/sec; est \
                 completion in 40 seconds {read}"
            )
        );
        assert_eq!(summary(Kind::Buckets, &series), "[READ AverageLatency(us)=200.5] ");
        assert_eq!(summary(Kind::Raw, &series), "READ count: 2, average latency(us): 200.50 ");
        let begin = Progress {
            label: "",
            elapsed: Nanos::ZERO,
            interval: Nanos::ZERO,
            operations: 0,
            current: 0,
            ..progress
        };
        let text = "2025-12-31 23:59:59:042 0 sec: 0 operations; est completion in 0 second ";
        assert_eq!(line(&begin, ""), text);
    }
}
