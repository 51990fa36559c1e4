//! What cassandra-stress shows while it runs, and the histograms that it logs.
//!
//! In: what a trial tells while it goes on. Out: lines on the terminal or in the file of
//! `-log file=`, and the interval log of `-log hdrfile=`. A file that cannot be written ends in an
//! error behind the run.

use super::figures::{All, Uncertainty};
use super::text::{At, Layout};
use crate::driven::failure_text;
use crate::error::LabError;
use crate::live::{Live, LiveInterval, Total};
use crate::scripted::{Prelude, Rehearsal};
use drive::{Driven, Ended, Failure, Window};
use record::hlog::{HlogWriteError, HlogWriter};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Nanos, clock, harmless};
use workload::Plan;
use workload::cassandra_stress::settings::{End, Level, OperationType, Settings, TimeUnit};

/// Where lines go, and what went wrong with that first.
pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    failure: Option<io::Error>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, failure: None }
    }

    /// A line. A reader that has gone away has seen what it wanted.
    pub(crate) fn line(&mut self, text: &str) {
        // Names in it are from profiles.
        let written = writeln!(self.out, "{}", harmless(text)).and_then(|()| self.out.flush());
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failure.get_or_insert(error);
        }
    }

    /// What went wrong first.
    pub(crate) fn failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// The interval log of `-log hdrfile=`.
pub(crate) struct HdrFile {
    hlog: HlogWriter<BufWriter<File>>,
    path: PathBuf,
    /// Wall clock time, whole seconds, that its times count from.
    base: Nanos,
    failure: Option<LabError>,
}

/// That file is the user's own, and no part of a run directory.
fn histograms_failed(path: &Path) -> impl FnOnce(HlogWriteError) -> LabError {
    let path = path.to_owned();
    move |error| match error {
        HlogWriteError::Io(source) => {
            LabError::NamedFile { what: "write the histograms into", path, source }
        }
        error => LabError::Hlog(error),
    }
}

impl HdrFile {
    pub(crate) fn create(path: &Path) -> Result<Self, LabError> {
        let file = units::create_unwaiting(path)
            .map_err(HlogWriteError::Io)
            .map_err(histograms_failed(path))?;
        let base = Nanos::from_secs(clock::wall().0 / 1_000_000_000);
        let comment = "#Logging op latencies for Cassandra Stress";
        let hlog = HlogWriter::with_comment(BufWriter::new(file), comment, base)
            .map_err(histograms_failed(path))?;
        Ok(Self { hlog, path: path.to_owned(), base, failure: None })
    }

    /// An interval of a run; response and wait times only where there is a rate.
    fn write(&mut self, all: &All, start: Nanos, end: Nanos, rated: bool) {
        // Times of the interval on the wall clock.
        let since = clock::wall() - (clock::now() - start);
        let (start, length) = (since.since(self.base), end.since(start));
        for (kind, counted) in &all.kinds {
            let rated = if rated { 3 } else { 1 };
            let series =
                [("st", &counted.service), ("rt", &counted.response), ("wt", &counted.wait)];
            for (series, latency) in series.iter().take(rated) {
                let tag = format!("{}-{series}", kind.name);
                if let Err(error) = self.hlog.write_tagged(&tag, start, length, latency) {
                    self.failure.get_or_insert(histograms_failed(&self.path)(error));
                }
            }
        }
        if let Err(error) = self.hlog.flush() {
            self.failure.get_or_insert(histograms_failed(&self.path)(error));
        }
    }

    /// What went wrong first.
    pub(crate) fn failure(&mut self) -> Option<LabError> {
        self.failure.take()
    }
}

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) all: All,
    pub(crate) uncertainty: Uncertainty,
    /// From its start to the end of its last operation.
    pub(crate) time: Nanos,
    pub(crate) ended: Ended,
    /// Operations per second of any outcome.
    pub(crate) ops_s: f64,
}

/// Shows one run.
pub(crate) struct Console<'a, 'b> {
    settings: &'a Settings,
    plan: Arc<Plan>,
    layout: Layout,
    sink: &'a mut Sink<'b>,
    hdr: Option<&'a mut HdrFile>,
    threads: u32,
    rated: bool,
    kinds: Vec<OperationType>,
    so_far: All,
    uncertainty: Uncertainty,
    start: Option<Nanos>,
    begun: &'a mut dyn FnMut(&Path),
    pub(crate) measured: Option<Measured>,
}

impl<'a, 'b> Console<'a, 'b> {
    pub(crate) fn new(
        settings: &'a Settings,
        plan: &Arc<Plan>,
        layout: Layout,
        threads: u32,
        rated: bool,
        (sink, hdr): (&'a mut Sink<'b>, Option<&'a mut HdrFile>),
        begun: &'a mut dyn FnMut(&Path),
    ) -> Self {
        let kinds = settings.command.types();
        Self {
            settings,
            plan: plan.clone(),
            layout,
            sink,
            hdr,
            threads,
            rated,
            so_far: All::none(&kinds),
            kinds,
            uncertainty: Uncertainty::default(),
            start: None,
            begun,
            measured: None,
        }
    }

    fn missing_is_fine(&self) -> bool {
        self.settings.errors.skip_validation
    }

    /// `Running WRITE with 64 threads for 100000 iteration`, and the header.
    fn running(&mut self) {
        let until = match self.settings.end {
            End::Count(n) => format!("for {n} iteration"),
            End::Time { amount, unit } => {
                format!("{amount} {}", TimeUnit::name(unit).to_lowercase())
            }
            End::Uncertainty { target, .. } => format!("until stderr of mean < {target}"),
        };
        let (what, threads) = (self.settings.command.running(), self.threads);
        self.sink.line(&format!("Running {what} with {threads} threads {until}"));
        self.sink.line(&self.layout.header());
    }

    fn tell(&self, failure: &Failure, driven: &Driven) {
        if self.settings.log.level == Level::Minimal && self.settings.errors.ignore {
            return;
        }
        let mut text = failure_text(&self.plan, driven);
        if self.settings.log.level == Level::Verbose {
            text += &format!(" ({}, seed {})", failure.outcome.name(), failure.key);
        }
        // A closed stderr is no reason to stop.
        let _ = writeln!(io::stderr(), "{}", harmless(&text));
    }
}

impl Live for Console<'_, '_> {
    fn stage(&mut self, _what: &str) {}

    fn begun(&mut self, run_dir: &Path) {
        (self.begun)(run_dir);
    }

    fn notice(&mut self, what: &str) {
        // A closed stderr is no reason to stop.
        let _ = writeln!(io::stderr(), "{}", harmless(what));
    }

    fn loading(&mut self, _done: u64, _total: u64) {}

    fn running(&mut self, _now: Nanos, _window: &Window) {}

    fn prelude(&mut self, what: Prelude<'_>) {
        match what {
            // Agreement on the schema was awaited, so that nothing is to be slept for.
            Prelude::Created => self.sink.line("Created keyspaces. Sleeping 0s for propagation."),
            Prelude::Defined => self.sink.line("Created schema. Sleeping 0s for propagation."),
            Prelude::Extended => {
                self.sink.line("Created extra schema. Sleeping 0s for propagation.");
            }
            Prelude::Rehearsing(Rehearsal { operation, ops, .. }) => {
                let kind = self.kinds.get(operation).map_or("", |kind| &kind.name[..]);
                self.sink.line(&format!("Warming up {kind} with {ops} iterations..."));
            }
            Prelude::Truncated { table } => {
                self.sink.line(&format!("Truncated {table}. Sleeping 0s for propagation."));
            }
            Prelude::Running => Console::running(self),
        }
    }

    fn interval(&mut self, interval: &LiveInterval<'_>) {
        let record = interval.record;
        let start = *self.start.get_or_insert(record.start);
        let all = All::of(&self.kinds, record, self.missing_is_fine());
        self.so_far.merge(&all);
        let longest = all.total.latency(self.layout.printed).max();
        self.uncertainty.update(all.total.rows, interval.length, longest);
        if all.total.ops() == 0 {
            return;
        }
        let uncertainty = self.uncertainty.value();
        let at = At { length: interval.length, time: record.end.since(start), uncertainty };
        if all.kinds.len() > 1 {
            for ((kind, counted), (_, so_far)) in all.kinds.iter().zip(&self.so_far.kinds) {
                let row = self.layout.row(&kind.name, so_far.ops(), counted, &at);
                self.sink.line(&row);
            }
        }
        let row = self.layout.row("total", self.so_far.total.ops(), &all.total, &at);
        self.sink.line(&row);
        if let Some(hdr) = &mut self.hdr {
            hdr.write(&all, record.start, record.end, self.rated);
        }
    }

    fn enough(&self) -> bool {
        match self.settings.end {
            End::Uncertainty { target, intervals_min, intervals_max } => {
                self.uncertainty.is_enough(target, intervals_min, intervals_max)
            }
            End::Count(_) | End::Time { .. } => false,
        }
    }

    fn total(&mut self, total: &Total<'_>) {
        let driven = total.driven;
        if let Some(failure) = &driven.first_failure {
            self.tell(failure, driven);
        }
        let all = All::of(&self.kinds, &driven.total, self.missing_is_fine());
        let last = driven.usage.iter().map(|usage| usage.last_done).max().unwrap_or_default();
        let time = last.since(driven.window.start);
        let ops_s = all.total.ops() as f64 / time.as_secs_f64().max(1e-9);
        if driven.ended == Ended::Completed && self.settings.log.summary {
            self.sink.line(&self.layout.summary(&all, time));
        }
        let (uncertainty, ended) = (self.uncertainty, driven.ended);
        self.measured = Some(Measured { all, uncertainty, time, ended, ops_s });
    }
}
