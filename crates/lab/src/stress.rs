//! A command of cassandra-stress, carried out: settings, schema, warm-up, one run or several with
//! more and more threads, results, `END` or `FAILURE`.
//!
//! In: settings, this client. Out: the lines of the original, its histograms, and beside them a run
//! directory for each run, which tells the truth where the lines follow the original in saying
//! something else. Source: `StressAction.java`. Differences are in `docs/METHODOLOGY.md`.

mod console;
mod ddl;
mod figures;
mod sources;
mod text;
mod trial;

pub(crate) use console::Sink;
pub use ddl::statements;
pub use sources::Reachable;
pub use trial::Client;
pub(crate) use trial::client_cpus;

use self::console::{Console, HdrFile, Measured};
use self::figures::Printed;
use self::text::{At, Layout};
use crate::error::LabError;
use crate::trial::Trial;
use drive::Ended;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use workload::cassandra_stress::Compat;
use workload::cassandra_stress::settings::{End, Rate, Settings};

/// Between runs that write.
const PAUSE_S: u64 = 15;

/// What became of a command.
#[derive(Debug)]
pub struct Done {
    /// It ended with `END`.
    pub success: bool,
    /// A signal ended it.
    pub interrupted: bool,
    /// One for each run.
    pub run_dirs: Vec<PathBuf>,
    /// What speaks against the numbers, each once.
    pub caveats: Vec<record::Caveat>,
}

/// Carries a command out. `out` is the terminal, `begun` hears of each run directory.
///
/// # Errors
/// [`LabError`] when it could not begin or go on; nothing is left running.
pub fn run(
    settings: &Settings,
    client: &Client,
    out: &mut dyn Write,
    begun: &mut dyn FnMut(&Path),
    stop: &Arc<AtomicBool>,
) -> Result<Done, LabError> {
    let mut file = match &settings.log.file {
        Some(path) => Some(BufWriter::new(created(Path::new(path))?)),
        None => None,
    };
    // Told before anything is measured for it.
    if let Some(graph) = &settings.graph {
        units::create_unwaiting(Path::new(&graph.file)).map_err(graph_failed(&graph.file))?;
    }
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => out,
    };
    let mut sink = Sink::new(out);
    let mut hdr = match &settings.log.hdr_file {
        Some(path) => Some(HdrFile::create(Path::new(path))?),
        None => None,
    };
    if settings.log.settings {
        sink.line(settings.dump().trim_end_matches('\n'));
        sink.line("");
    }
    let done = Command { settings, client, stop }.run(&mut sink, hdr.as_mut(), begun);
    if let Some(error) = hdr.as_mut().and_then(HdrFile::failure) {
        return Err(error);
    }
    match (sink.failure(), &settings.log.file) {
        (Some(source), Some(path)) => {
            let path = PathBuf::from(path);
            Err(LabError::NamedFile { what: "write the log into", path, source })
        }
        (Some(source), None) => {
            let path = PathBuf::from("/dev/stdout");
            Err(LabError::NamedFile { what: "write to", path, source })
        }
        (None, _) => done,
    }
}

/// What a command would do, statement by statement.
///
/// # Errors
/// When its hosts are in a file that cannot be read.
pub fn explain(settings: &Settings, client: &Client) -> Result<String, LabError> {
    let steps = threads_of(settings.rate);
    let first = client.trial(settings, steps[0], true)?;
    let mut text = crate::explain(&first);
    if let [_, .., last] = steps[..] {
        let list: Vec<_> = steps.iter().map(ToString::to_string).collect();
        let how = match settings.rate {
            Rate::Stepped { auto: true, .. } => "until more do no more",
            _ => "one after the other",
        };
        text += &format!("{:<12} {} threads, {how}, {last} at most\n", "runs", list.join(", "));
    }
    for notice in &settings.notices {
        text += &format!("{:<12} {notice}\n", "notice");
    }
    Ok(text)
}

fn created(path: &Path) -> Result<File, LabError> {
    units::create_unwaiting(path).map_err(|source| LabError::NamedFile {
        what: "write the log into",
        path: path.to_owned(),
        source,
    })
}

/// Numbers of threads of the runs, as the original steps.
fn threads_of(rate: Rate) -> Vec<u32> {
    let (min, max) = match rate {
        Rate::Threads { threads, .. } => return vec![threads],
        Rate::Stepped { threads_min, threads_max, .. } => (threads_min, threads_max),
    };
    let mut all = vec![min];
    let mut next = min;
    loop {
        next = match next {
            n if n < 500 => n + 100,
            n if n < 1500 => (f64::from(n) * 1.2) as u32,
            n => (f64::from(n) * 1.1) as u32,
        };
        if next > max {
            return all;
        }
        all.push(next);
    }
}

/// The mean improvement of the rate over the last `count` steps.
fn improvement(rates: &[f64], count: usize) -> f64 {
    let steps = rates.windows(2).rev().take(count);
    steps.map(|pair| (pair[1] - pair[0]) / pair[0]).sum::<f64>() / count as f64
}

/// Whether the last `count` steps have brought at least `least`, or there were not that many.
fn improves(rates: &[f64], count: usize, least: f64) -> bool {
    rates.len() < count + 1 || improvement(rates, count) >= least
}

/// A command that goes on.
struct Command<'a> {
    settings: &'a Settings,
    client: &'a Client,
    stop: &'a Arc<AtomicBool>,
}

impl Command<'_> {
    fn layout(&self) -> Layout {
        let printed = match self.settings.rate {
            Rate::Threads { ops_per_s, fixed: true, .. } if ops_per_s > 0 => Printed::Response,
            _ => Printed::Service,
        };
        let width = if self.settings.compat == Compat::Apache5 { 50 } else { 10 };
        Layout { width, printed }
    }

    fn run(
        &self,
        sink: &mut Sink<'_>,
        mut hdr: Option<&mut HdrFile>,
        begun: &mut dyn FnMut(&Path),
    ) -> Result<Done, LabError> {
        let mut done =
            Done { success: true, interrupted: false, run_dirs: Vec::new(), caveats: Vec::new() };
        if self.settings.end == End::Count(0) {
            let trial = self.client.trial(self.settings, 1, true)?;
            let (layout, plan) = (self.layout(), trial.plan.clone());
            let mut console =
                Console::new(self.settings, &plan, layout, 1, false, (sink, None), begun);
            Client::create(&trial, &mut console, self.stop)?;
            sink.line("N=0: SCHEMA CREATED, NOTHING ELSE DONE.");
            return Ok(done);
        }
        let stepped = matches!(self.settings.rate, Rate::Stepped { .. });
        let steps = threads_of(self.settings.rate);
        let mut results: Vec<(u32, Measured)> = Vec::new();
        for (index, threads) in steps.iter().copied().enumerate() {
            let trial = self.client.trial(self.settings, threads, index == 0)?;
            if stepped {
                if index == 0 {
                    sink.line("Thread count was not specified");
                    if matches!(self.settings.end, End::Uncertainty { .. }) {
                        sink.line(UNEVEN);
                    }
                }
                sink.line("");
                sink.line(&format!("Running with {threads} threadCount"));
            }
            let measured = self.one(&trial, threads, sink, hdr.as_deref_mut(), begun, &mut done)?;
            let Some(measured) = measured.filter(|_| done.success) else { break };
            results.push((threads, measured));
            if stepped && !self.goes_on(&results, &steps, sink) {
                // In the pause no trial was there to be interrupted.
                let stopped = self.stop.load(Ordering::Relaxed) && results.len() < steps.len();
                done.interrupted |= stopped;
                done.success &= !stopped;
                break;
            }
        }
        if stepped && done.success {
            self.table(&results, sink);
        }
        sink.line(if done.success { "END" } else { "FAILURE" });
        if !done.success {
            // As the original ends; a closed stderr changes nothing.
            let text = "java.lang.RuntimeException: Failed to execute stress action";
            let _ = writeln!(io::stderr(), "{text}");
        }
        Ok(done)
    }

    /// One run; None where it was interrupted.
    fn one(
        &self,
        trial: &Trial,
        threads: u32,
        sink: &mut Sink<'_>,
        hdr: Option<&mut HdrFile>,
        begun: &mut dyn FnMut(&Path),
        done: &mut Done,
    ) -> Result<Option<Measured>, LabError> {
        let rated = matches!(self.settings.rate, Rate::Threads { ops_per_s: 1.., .. });
        let (layout, plan) = (self.layout(), trial.plan.clone());
        let mut console =
            Console::new(self.settings, &plan, layout, threads, rated, (sink, hdr), begun);
        let finished = crate::trial::run(trial, &mut console, self.stop);
        let measured = console.measured.take();
        let finished = match finished {
            Err(error @ LabError::Rehearsal { .. }) => {
                let _ = writeln!(io::stderr(), "{error}");
                done.success = false;
                return Ok(None);
            }
            other => other?,
        };
        self.graph(&finished.report)?;
        done.run_dirs.push(finished.run_dir);
        for caveat in finished.summary.caveats {
            if done.caveats.iter().all(|c| c.code != caveat.code) {
                done.caveats.push(caveat);
            }
        }
        done.interrupted |= self.stop.load(Ordering::Relaxed);
        done.success &= measured.as_ref().is_some_and(|m| m.ended == Ended::Completed);
        Ok(measured)
    }

    /// What is said between runs; whether there is another.
    fn goes_on(&self, results: &[(u32, Measured)], steps: &[u32], sink: &mut Sink<'_>) -> bool {
        let rates: Vec<f64> = results.iter().map(|(_, measured)| measured.ops_s).collect();
        if let [.., (before, _), _] = results {
            let percent = 100.0 * improvement(&rates, 1);
            sink.line(&format!("Improvement over {before} threadCount: {percent:.0}%"));
        }
        if results.len() == steps.len() || self.stop.load(Ordering::Relaxed) {
            return false;
        }
        if self.settings.command.types().iter().any(|kind| kind.writes) {
            sink.line(&format!("Sleeping for {PAUSE_S}s"));
            for _ in 0..PAUSE_S * 10 {
                if self.stop.load(Ordering::Relaxed) {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        let target = match self.settings.end {
            End::Uncertainty { target, .. } => target,
            End::Count(_) | End::Time { .. } => -1.0,
        };
        let auto = matches!(self.settings.rate, Rate::Stepped { auto: true, .. });
        !auto || improves(&rates, 3, 0.0) && improves(&rates, 5, target)
    }

    /// All runs, a row each, with the number of threads before it.
    fn table(&self, results: &[(u32, Measured)], sink: &mut Sink<'_>) {
        let ids: Vec<_> = results.iter().map(|(n, _)| format!("{n} threadCount")).collect();
        let width = ids.iter().map(String::len).max().unwrap_or(0);
        let layout = self.layout();
        sink.line(&format!("{:>width$}, {}", "id", layout.header()));
        for (id, (_, measured)) in ids.iter().zip(results) {
            let (time, uncertainty) = (measured.time, measured.uncertainty.value());
            let at = At { length: time, time, uncertainty };
            for (kind, counted) in &measured.all.kinds {
                let row = layout.row(&kind.name, counted.ops(), counted, &at);
                sink.line(&format!("{id:>width$}, {row}"));
            }
            let total = &measured.all.total;
            let row = layout.row("total", total.ops(), total, &at);
            sink.line(&format!("{id:>width$}, {row}"));
        }
    }

    /// A copy of the report where `-graph file=` wants one.
    fn graph(&self, report: &Path) -> Result<(), LabError> {
        let Some(graph) = &self.settings.graph else { return Ok(()) };
        let copy = || {
            let mut report = File::open(report)?;
            io::copy(&mut report, &mut units::create_unwaiting(Path::new(&graph.file))?).map(drop)
        };
        copy().map_err(graph_failed(&graph.file))
    }
}

fn graph_failed(path: &str) -> impl FnOnce(io::Error) -> LabError + '_ {
    move |source| LabError::NamedFile {
        what: "write the report into",
        path: PathBuf::from(path),
        source,
    }
}

/// What the original says of runs that end when their rate is known.
const UNEVEN: &str = "WARNING: uncertainty mode (err<) results in uneven workload between thread \
                      runs, so should be used for high level analysis only";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_step_as_in_the_original() {
        let stepped =
            |min, max| threads_of(Rate::Stepped { auto: true, threads_min: min, threads_max: max });
        assert_eq!(stepped(4, 1000), [4, 104, 204, 304, 404, 504, 604, 724, 868]);
        assert_eq!(stepped(4, 3), [4]);
        assert_eq!(stepped(1500, 1700), [1500, 1650]);
    }

    #[test]
    fn it_ends_when_three_or_five_steps_bring_nothing() {
        assert!(improves(&[1.0, 0.5, 0.4], 3, 0.0), "too few to tell");
        assert!(improves(&[1.0, 2.0, 1.9, 1.9], 3, 0.0));
        assert!(!improves(&[1.0, 2.0, 1.9, 1.9, 1.8], 3, 0.0));
        assert!((improvement(&[1.0, 2.0, 3.0], 1) - 0.5).abs() < 1e-12);
    }
}
