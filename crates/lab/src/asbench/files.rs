//! Files of asbench: counts of latencies each period (`--output-file`), and histograms at the end
//! (`--hdr-hist`).
//!
//! In: histograms of nanoseconds. Out: text. The buckets of a period are 100 us wide up to 4 ms,
//! 1 ms up to 64 ms, 4 ms up to 128 ms; what is below is `0:`, what is above `128000:`. Histograms
//! are of microseconds: `NAME_<utc>.hdrhist` (V2, deflated, base64) and a table of percentiles
//! beside it. Differences: values above 1 s, which the original leaves out, are in both.

use crate::error::{LabError, log_failed};
use record::hlog::encoded;
use record::{Latency, utc};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use units::{Nanos, clock};

/// Where buckets of a period begin, in microseconds, and how wide they are.
const STEPS_US: [(u64, u64); 3] = [(100, 100), (4_000, 1_000), (64_000, 4_000)];
const END_US: u64 = 128_000;
/// Steps of the table of percentiles for each halving of what is left.
const TICKS: f64 = 5.0;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> LabError + '_ {
    move |source| LabError::NamedFile { what: "write into", path: path.to_owned(), source }
}

/// The file of periods. It is appended to.
pub(super) struct Periods {
    path: PathBuf,
    file: File,
    failure: Option<LabError>,
}

impl Periods {
    pub(super) fn create(path: &str) -> Result<Self, LabError> {
        let path = PathBuf::from(path);
        let file =
            OpenOptions::new().append(true).create(true).open(&path).map_err(failed(&path))?;
        Ok(Self { path, file, failure: None })
    }

    /// A line of a period of so many seconds.
    pub(super) fn write(&mut self, name: &str, seconds: u64, latency: &Latency, wall: Nanos) {
        let line = period(name, seconds, latency, wall);
        if let Err(error) = writeln!(self.file, "{line}") {
            self.failure.get_or_insert(failed(&self.path)(error));
        }
    }

    /// What went wrong first.
    pub(super) fn failure(self) -> Option<LabError> {
        self.failure
    }
}

/// The bucket of a time, by its lower end in microseconds.
fn bucket_of(us: u64) -> u64 {
    if us >= END_US {
        return END_US;
    }
    let step = STEPS_US.iter().rev().find(|(from, _)| us >= *from);
    step.map_or(0, |(from, width)| from + (us - from) / width * width)
}

fn period(name: &str, seconds: u64, latency: &Latency, wall: Nanos) -> String {
    let mut line = format!(
        "{name}_hist {}, {seconds}s, {}",
        utc::rfc3339(wall.0 / 1_000_000_000),
        latency.count()
    );
    let mut open: Option<(u64, u64)> = None;
    for bucket in latency.buckets() {
        let at = bucket_of(bucket.low.0 / 1000);
        match &mut open {
            Some((low, count)) if *low == at => *count += bucket.count,
            _ => {
                if let Some((low, count)) = open.replace((at, bucket.count)) {
                    let _ = write!(line, ", {low}:{count}");
                }
            }
        }
    }
    if let Some((low, count)) = open {
        let _ = write!(line, ", {low}:{count}");
    }
    line
}

/// The directory of `--hdr-hist`, and what is to go there.
pub(super) struct HdrDir {
    dir: PathBuf,
    started: Nanos,
    all: [(&'static str, Latency); 2],
}

impl HdrDir {
    pub(super) fn create(dir: &str) -> Result<Self, LabError> {
        let dir = PathBuf::from(dir);
        fs::create_dir_all(&dir).map_err(failed(&dir))?;
        let all = ["write", "read"].map(|name| (name, Latency::new()));
        Ok(Self { dir, started: clock::wall(), all })
    }

    /// Counts what a stage has measured in.
    pub(super) fn add(&mut self, name: &str, latency: &Latency) {
        for (_, all) in self.all.iter_mut().filter(|(known, _)| *known == name) {
            all.merge(latency);
        }
    }

    /// Writes what holds something.
    pub(super) fn finish(self) -> Result<(), LabError> {
        let stamp = utc::compact(self.started.0 / 1_000_000_000);
        for (name, latency) in self.all.iter().filter(|(_, latency)| !latency.is_empty()) {
            let micros = in_micros(latency);
            let path = self.dir.join(format!("{name}_{stamp}.hdrhist"));
            let text = encoded(&micros).map_err(log_failed(&path))?;
            fs::write(&path, text + "\n").map_err(failed(&path))?;
            let path = self.dir.join(format!("{name}_{stamp}.txt"));
            fs::write(&path, by_percentile(&micros)).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// The same values, a microsecond for each nanosecond.
fn in_micros(latency: &Latency) -> Latency {
    let mut micros = Latency::new();
    for bucket in latency.buckets() {
        let middle = bucket.low.0 + (bucket.high.0 - bucket.low.0) / 2;
        micros.record_n(Nanos(middle / 1000), bucket.count);
    }
    micros
}

/// A table of percentiles, ever finer towards the maximum.
fn by_percentile(latency: &Latency) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut percentile = 0.0f64;
    loop {
        let value = latency.quantile(percentile / 100.0);
        let below = latency.count() - latency.count_above(value);
        let share = percentile / 100.0;
        let whole = below >= latency.count();
        let inverse = if whole { f64::INFINITY } else { 1.0 / (1.0 - share) };
        let share = if whole { 1.0 } else { share };
        let _ = writeln!(text, "{:12.3} {share:14.12} {below:10} {inverse:14.2}", value.0 as f64);
        if whole {
            break;
        }
        let halvings = (100.0 / (100.0 - percentile)).log2().floor() + 1.0;
        percentile += 100.0 / (TICKS * halvings.exp2());
    }
    let _ = writeln!(
        text,
        "#[Mean = {:.3}, Max = {}, Total count = {}]",
        latency.mean(),
        latency.max().0,
        latency.count()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: &[u64]) -> Latency {
        let mut latency = Latency::new();
        us.iter().for_each(|us| latency.record(Nanos::from_micros(*us)));
        latency
    }

    #[test]
    fn a_period_has_its_buckets_by_their_lower_ends() {
        for (us, low) in [
            (0, 0),
            (99, 0),
            (100, 100),
            (199, 100),
            (3999, 3900),
            (4000, 4000),
            (4999, 4000),
            (63_999, 63_000),
            (64_000, 64_000),
            (127_999, 124_000),
            (128_000, 128_000),
            (9_000_000, 128_000),
        ] {
            assert_eq!(bucket_of(us), low, "{us}");
        }
        let latency = of(&[50, 120, 130, 5500, 5_000_000]);
        assert_eq!(
            period("read", 2, &latency, Nanos::from_secs(1_612_958_400)),
            "read_hist 2021-02-10T12:00:00Z, 2s, 5, 0:1, 100:2, 5000:1, 128000:1"
        );
    }

    #[test]
    fn histograms_hold_what_is_longer_than_a_second() {
        let dir = tempfile::tempdir().unwrap();
        let mut hdr = HdrDir::create(&dir.path().join("hists").display().to_string()).unwrap();
        hdr.add("read", &of(&[100, 200, 3_000_000]));
        hdr.finish().unwrap();
        let files = fs::read_dir(dir.path().join("hists")).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        names.sort();
        let [encoded, table] = &names[..] else { panic!("{names:?}") };
        assert!(encoded.extension().is_some_and(|end| end == "hdrhist"));
        let text = fs::read_to_string(table).unwrap();
        let last = text.lines().rev().nth(1).unwrap();
        let value: f64 = last.split_whitespace().next().unwrap().parse().unwrap();
        assert!((3_000_000.0..3_010_000.0).contains(&value), "{text}");
        assert!(last.ends_with("inf"), "{last}");
    }
}
