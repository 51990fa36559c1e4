//! What of a run goes to disk while it runs: the interval log and the client's counters, once per
//! interval.

use crate::error::{LabError, log_failed, table_failed};
use crate::trial::{Live, LiveInterval};
use crate::whole_lines::WholeLines;
use drive::{Interval, Observer, Window, WorkerUsage};
use record::hlog::HlogWriter;
use record::run_dir::{COUNTERS_CSV, LATENCY_HLOG};
use record::table::{Counter, CountersWriter, TableError};
use record::{Latency, OpNames, Outcome, TrialDir};
use std::io;
use std::path::PathBuf;
use units::{Nanos, clock};

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
    before: Vec<WorkerUsage>,
    open_loop: bool,
}

impl<'a> Recording<'a> {
    pub(crate) fn new(
        trial: &TrialDir,
        names: &'a [OpNames],
        open_loop: bool,
        live: &'a mut dyn Live,
    ) -> Result<Self, LabError> {
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
            before: Vec::new(),
            open_loop,
        })
    }

    /// Writes what is buffered.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.counters.flush().map_err(table_failed(&self.counters_path))?;
        if let Some(hlog) = self.hlog {
            hlog.finish().map_err(log_failed(&self.hlog_path))?;
        }
        Ok(())
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
        self.write_counters(interval)
            .and_then(|()| self.counters.flush())
            .map_err(table_failed(&self.counters_path))
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
    }

    fn interval(&mut self, interval: Interval<'_>) -> Result<(), io::Error> {
        let (mut latency, mut ok, mut errors) = (Latency::new(), 0, 0);
        for op in &interval.record.ops {
            latency.merge(if self.open_loop { &op.response } else { &op.service });
            ok += op.count(Outcome::Ok);
            errors += op.ops() - op.count(Outcome::Ok);
        }
        let length = interval.record.end.since(interval.record.start);
        self.live.interval(&LiveInterval {
            latency: &latency,
            ok,
            errors,
            length,
            in_flight: interval.usage.iter().map(|u| u.in_flight).sum(),
        });
        self.write(&interval).map_err(io::Error::other)
    }
}
