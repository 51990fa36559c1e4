//! What of a run goes to disk while it runs: the interval log and the client's counters, once per
//! interval, and what the host does, once a second.

use crate::capture::Capture;
use crate::error::{LabError, log_failed, table_failed};
use crate::live::{Live, LiveInterval};
use crate::ring_watch::{News, RingWatch};
use crate::series::{Series, WINDOW_BLOCK, headline};
use crate::sharded;
use crate::whole_lines::WholeLines;
use analyze::steady;
use drive::{Interval, Observer, ShardLoad, WARM_BLOCK, Window, WorkerUsage};
use record::events::{Event, EventsWriter};
use record::hlog::HlogWriter;
use record::run_dir::{COUNTERS_CSV, EVENTS_CSV, LATENCY_HLOG};
use record::table::{Counter, CountersWriter, TableError};
use record::{Latency, OpNames, OpRecord, TrialDir};
use std::io;
use std::path::PathBuf;
use units::{Nanos, clock};

/// Blocks of a warm-up between looks at it: a second.
const LOOK_BLOCKS: usize = 4;

/// The series of a run that is over.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// From the begin of the warm-up on.
    pub(crate) warm: Series,
    /// From the start of the window on.
    pub(crate) window: Series,
    /// The warm-up was found to be over; None where it was not asked.
    pub(crate) became_steady: Option<bool>,
    /// What happened to the target meanwhile.
    pub(crate) news: Vec<News>,
}

/// Writes intervals and shows them.
pub(crate) struct Recording<'a> {
    names: &'a [OpNames],
    live: &'a mut dyn Live,
    trial: TrialDir,
    counters: CountersWriter<WholeLines>,
    counters_path: PathBuf,
    file: Option<WholeLines>,
    hlog: Option<HlogWriter<WholeLines>>,
    hlog_path: PathBuf,
    window_start: Nanos,
    /// The end of the latest interval.
    window_end: Nanos,
    before: Vec<WorkerUsage>,
    open_loop: bool,
    /// Of the interval at hand; kept for its memory.
    latency: Latency,
    series: Recorded,
    capture: Capture,
    watch: Option<&'a RingWatch>,
    /// From the first event on.
    events: Option<EventsWriter<WholeLines>>,
    /// Of a tick, which cannot return it; the next interval does.
    failure: Option<TableError>,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(
        trial: &TrialDir,
        names: &'a [OpNames],
        open_loop: bool,
        until_steady: bool,
        capture: Capture,
        watch: Option<&'a RingWatch>,
        live: &'a mut dyn Live,
    ) -> Result<Self, LabError> {
        let series = Recorded {
            warm: Series::new(WARM_BLOCK),
            window: Series::new(WINDOW_BLOCK),
            became_steady: until_steady.then_some(false),
            news: Vec::new(),
        };
        let counters_path = trial.path().join(COUNTERS_CSV);
        let counters = CountersWriter::new(WholeLines::new(trial.append(COUNTERS_CSV)?));
        Ok(Self {
            names,
            live,
            trial: trial.clone(),
            counters: counters.map_err(table_failed(&counters_path))?,
            counters_path,
            file: Some(WholeLines::new(trial.append(LATENCY_HLOG)?)),
            hlog: None,
            hlog_path: trial.path().join(LATENCY_HLOG),
            window_start: Nanos::ZERO,
            window_end: Nanos::ZERO,
            before: Vec::new(),
            open_loop,
            latency: Latency::new(),
            series,
            capture,
            watch,
            events: None,
            failure: None,
        })
    }

    /// Writes what is left; the series, and what the host did: None of a run that ended in its
    /// warm-up.
    pub(crate) fn finish(
        mut self,
        shards: &[ShardLoad],
    ) -> Result<(Recorded, Option<analyze::Course>), LabError> {
        if self.hlog.is_some() {
            self.write_events()?;
        }
        let (rows, course) = self.capture.finish();
        let at = self.window_end.since(self.window_start);
        rows.iter()
            .chain(&sharded::counters(shards, at))
            .try_for_each(|row| self.counters.write(row))
            .and_then(|()| self.counters.flush())
            .map_err(table_failed(&self.counters_path))?;
        if let Some(hlog) = self.hlog {
            hlog.finish().map_err(log_failed(&self.hlog_path))?;
        }
        Ok((self.series, course))
    }

    fn write(&mut self, interval: &Interval<'_>) -> Result<(), LabError> {
        // What goes into a file without a name is lost: better to know now than at the end.
        self.trial.check()?;
        if let Some(file) = self.file.take() {
            // The log's base is the wall clock time at which the window began.
            self.window_start = interval.record.start;
            let base = clock::wall() - (clock::now() - self.window_start);
            let hlog = HlogWriter::new(file, base);
            self.hlog = Some(hlog.map_err(log_failed(&self.hlog_path))?);
        }
        if let Some(hlog) = &mut self.hlog {
            hlog.write_interval(self.names, interval.record, self.window_start)
                // A run that is killed keeps every interval that was over.
                .and_then(|()| hlog.flush())
                .map_err(log_failed(&self.hlog_path))?;
        }
        self.window_end = interval.record.end;
        self.write_events()?;
        self.write_counters(interval)
            .and_then(|()| self.counters.flush())
            .map_err(table_failed(&self.counters_path))
    }

    /// What has happened to the target since the last look, once it is known when the window began.
    fn write_events(&mut self) -> Result<(), LabError> {
        for news in self.watch.map(RingWatch::take_news).unwrap_or_default() {
            self.live.notice(&format!("{}.", news.text));
            let path = self.trial.path().join(EVENTS_CSV);
            let out = match &mut self.events {
                Some(out) => out,
                none => {
                    let file = WholeLines::new(self.trial.append(EVENTS_CSV)?);
                    none.insert(EventsWriter::new(file).map_err(table_failed(&path))?)
                }
            };
            let before = self.window_start.since(news.at).as_secs_f64();
            let t_s = news.at.since(self.window_start).as_secs_f64() - before;
            let event = Event { t_s, kind: news.kind, text: news.text.clone() };
            out.write(&event).map_err(table_failed(&path))?;
            self.series.news.push(news);
        }
        Ok(())
    }

    fn write_counters(&mut self, interval: &Interval<'_>) -> Result<(), TableError> {
        let t_s = interval.record.end.since(self.window_start).as_secs_f64();
        let length = interval.record.end.since(interval.record.start).as_secs_f64();
        self.before.resize(interval.usage.len(), WorkerUsage::default());
        for (worker, (now, before)) in interval.usage.iter().zip(&self.before).enumerate() {
            let busy = now.cpu.since(now.spin).since(before.cpu.since(before.spin)).as_secs_f64();
            let values = [
                ("busy", busy / length.max(1e-9), "share"),
                ("in_flight", now.in_flight as f64, "ops"),
                ("late", (now.late - before.late) as f64, "answers"),
                (
                    "connections_lost",
                    (now.connections_lost - before.connections_lost) as f64,
                    "connections",
                ),
            ];
            for (metric, value, unit) in values {
                self.counters.write(&Counter {
                    t_s,
                    host: "local".to_owned(),
                    source: format!("client-{worker}"),
                    metric: metric.to_owned(),
                    value,
                    unit: unit.to_owned(),
                })?;
            }
        }
        self.before.copy_from_slice(interval.usage);
        Ok(())
    }
}

impl Observer for Recording<'_> {
    fn tick(&mut self, now: Nanos, window: &Window) {
        self.live.running(now, window);
        for row in self.capture.tick(now, window.start) {
            if let Err(error) = self.counters.write(&row) {
                self.failure.get_or_insert(error);
            }
        }
    }

    fn ends_warm_up(&self) -> bool {
        self.series.became_steady.is_some()
    }

    fn warm(&mut self, interval: Interval<'_>) -> bool {
        let ok = headline(interval.record, self.open_loop, &mut self.latency);
        let finished = self.series.warm.add(interval.record, &self.latency, ok);
        let blocks = self.series.warm.blocks();
        // Not at each block: the look takes some milliseconds.
        let look = finished && blocks.len().is_multiple_of(LOOK_BLOCKS);
        if look && self.series.became_steady == Some(false) {
            let warm = steady::is_warm(blocks);
            self.series.became_steady = Some(warm);
            self.live.warming(warm);
        }
        self.series.became_steady == Some(true)
    }

    fn enough(&self) -> bool {
        self.live.enough()
    }

    fn interval(&mut self, interval: Interval<'_>) -> Result<(), io::Error> {
        if let Some(error) = self.failure.take() {
            return Err(io::Error::other(error));
        }
        let ok = headline(interval.record, self.open_loop, &mut self.latency);
        let errors = interval.record.ops.iter().map(OpRecord::ops).sum::<u64>() - ok;
        self.series.window.add(interval.record, &self.latency, ok);
        let length = interval.record.end.since(interval.record.start);
        self.live.interval(&LiveInterval {
            latency: &self.latency,
            is_response: self.open_loop,
            ok,
            errors,
            length,
            in_flight: interval.usage.iter().map(|u| u.in_flight).sum(),
            names: self.names,
            record: interval.record,
        });
        self.write(&interval).map_err(io::Error::other)
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
