//! What YCSB's client would say of a run: status lines while it goes on, figures at its end.
//!
//! In: intervals in their order, then the whole. Out: text; histogram logs are written by the way.

use super::figures::{self, Averages, Figure};
use super::logs::{LogError, Logs};
use super::series::{self, Series, View};
use super::status::{self, Progress};
use record::{IntervalRecord, Latency, OpNames};
use std::collections::BTreeMap;
use units::Nanos;
use workload::ycsb::{Kind, Measurement};

/// How a run ended.
#[derive(Debug)]
pub struct Ending<'a> {
    /// All that was recorded.
    pub total: &'a IntervalRecord,
    /// From the begin to the last answer.
    pub runtime: Nanos,
    /// From there to the end of the workers.
    pub cleanup: Nanos,
    /// Now, since 1970.
    pub wall: Nanos,
}

/// A run as YCSB tells it.
pub struct Console {
    measurement: Measurement,
    scheduled: bool,
    verifies: bool,
    /// Operations that are to be done, where that is known.
    operations: Option<u64>,
    so_far: IntervalRecord,
    /// Since the last status line.
    recent: IntervalRecord,
    /// The begin, on the clock of the intervals and since 1970.
    begin: Option<(Nanos, Nanos)>,
    /// Of the last status line, since the begin.
    told: Nanos,
    averages: BTreeMap<String, Averages>,
    logs: Option<Logs>,
}

impl Console {
    /// Nothing told yet. `scheduled`: operations fall due by a schedule; `verifies`: cells are
    /// compared with what was written.
    #[must_use]
    pub fn new(
        measurement: Measurement,
        scheduled: bool,
        verifies: bool,
        operations: Option<u64>,
    ) -> Self {
        let hdr = matches!(measurement.kind, Kind::Hdr | Kind::HdrAndBuckets | Kind::HdrAndRaw);
        let prefix = measurement.hdr_prefix.clone().filter(|_| hdr);
        Self {
            measurement,
            scheduled,
            verifies,
            operations,
            so_far: IntervalRecord::new(&[]),
            recent: IntervalRecord::new(&[]),
            begin: None,
            told: Nanos::ZERO,
            averages: BTreeMap::new(),
            logs: prefix.map(Logs::new),
        }
    }

    /// The line at the begin of a run, where lines are asked for.
    #[must_use]
    pub fn begin(&self, wall: Nanos) -> Option<String> {
        self.measurement.status_s.map(|_| self.line(wall, Nanos::ZERO, &[]))
    }

    /// Takes an interval; a line when one is due. `wall` is now, since 1970.
    ///
    /// # Errors
    /// When a histogram log cannot be written.
    pub fn interval(
        &mut self,
        names: &[OpNames],
        record: &IntervalRecord,
        wall: Nanos,
    ) -> Result<Option<String>, LogError> {
        let length = record.end.since(record.start);
        let begin = self.begin.get_or_insert((record.start, wall - length)).0;
        self.so_far.merge(record);
        self.recent.merge(record);
        if self.measurement.kind == Kind::Series {
            self.average(names, record, record.start.since(begin));
        }
        let elapsed = record.end.since(begin);
        let due = self.measurement.status_s.is_some_and(|seconds| {
            elapsed.since(self.told) >= Nanos::from_secs(u64::from(seconds))
        });
        if due { self.tell(names, elapsed, wall) } else { Ok(None) }
    }

    fn view(&self) -> View<'_> {
        let Self { measurement, scheduled, verifies, .. } = self;
        View { measurement, scheduled: *scheduled, verifies: *verifies }
    }

    fn average(&mut self, names: &[OpNames], record: &IntervalRecord, from: Nanos) {
        for series in series::all(&self.view(), names, &record.ops, None) {
            if let Some(latency) = series.latency.filter(|latency| !latency.is_empty()) {
                let of = self.averages.entry(series.name).or_default();
                of.push((from.0 / 1_000_000, latency.mean() / 1e3));
            }
        }
    }

    /// A status line, and the interval of the histogram logs that ends with it.
    fn tell(
        &mut self,
        names: &[OpNames],
        elapsed: Nanos,
        wall: Nanos,
    ) -> Result<Option<String>, LogError> {
        let series = self.recently(names);
        let line = self.line(wall, elapsed, &series);
        self.log(elapsed, &series)?;
        self.recent.clear();
        self.told = elapsed;
        Ok(Some(line))
    }

    /// Every series that there is so far, with what it recorded since the last line.
    fn recently(&self, names: &[OpNames]) -> Vec<Series> {
        let mut recent = series::all(&self.view(), names, &self.recent.ops, None);
        let mut all = series::all(&self.view(), names, &self.so_far.ops, None);
        for series in &mut all {
            let latency = recent
                .iter_mut()
                .find(|recent| recent.name == series.name)
                .and_then(|recent| recent.latency.take());
            if series.latency.is_some() {
                series.latency = Some(latency.unwrap_or_default());
            }
        }
        all
    }

    fn log(&mut self, elapsed: Nanos, series: &[Series]) -> Result<(), LogError> {
        let base = self.begin.map_or(Nanos::ZERO, |(_, wall)| wall);
        let (start, length) = (self.told, elapsed.since(self.told));
        self.logs.as_mut().map_or(Ok(()), |logs| logs.write(base, start, length, series))
    }

    fn line(&self, wall: Nanos, elapsed: Nanos, series: &[Series]) -> String {
        let count = |record: &IntervalRecord| record.ops.iter().map(series::begun).sum::<u64>();
        let operations = count(&self.so_far);
        let progress = Progress {
            label: &self.measurement.label,
            wall,
            elapsed,
            interval: elapsed.since(self.told),
            operations,
            current: count(&self.recent),
            left: self.operations.map_or(0, |all| all.saturating_sub(operations)),
        };
        status::line(&progress, &status::summary(self.measurement.kind, series))
    }

    /// The run is over: the last status line, where lines are asked for, and all figures.
    ///
    /// # Errors
    /// When a histogram log cannot be written.
    pub fn end(
        &mut self,
        names: &[OpNames],
        ending: &Ending<'_>,
    ) -> Result<(Option<String>, Vec<Figure>), LogError> {
        let mut cleanup = Latency::new();
        cleanup.record(ending.cleanup);
        let line = match self.measurement.status_s {
            Some(_) => self.tell(names, ending.runtime.max(self.told), ending.wall)?,
            None => {
                let series = self.recently(names);
                self.log(ending.runtime, &series)?;
                None
            }
        };
        let all = series::all(&self.view(), names, &ending.total.ops, Some(&cleanup));
        let done: Vec<_> = all.iter().filter(|series| series.name == "CLEANUP").cloned().collect();
        self.told = ending.runtime.max(self.told);
        self.log(self.told + ending.cleanup, &done)?;
        let operations = ending.total.ops.iter().map(series::begun).sum();
        let runtime_ms = (ending.runtime.0 / 1_000_000).max(1);
        let mut figures = figures::overall(runtime_ms, operations);
        for series in &all {
            let averages = self.averages.remove(&series.name).unwrap_or_default();
            figures.extend(figures::of(&self.measurement, series, &averages));
        }
        Ok((line, figures))
    }
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
