//! A run as YCSB shows it: status lines on stderr, figures kept for its end.

use super::say;
use crate::exit::Exit;
use crate::output;
use crate::signals::Current;
use anyhow::{Context as _, anyhow};
use drive::{Driven, OpDone, Window};
use lab::basic::Over;
use lab::{Finished, Live, LiveInterval, Total};
use record::{IntervalRecord, OpNames};
use report::ycsb::{Console, Ending, Figure, LogError, Single, write_single};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use units::{Nanos, clock};
use workload::ycsb::{From, Job, Kind, Measurement};

/// Code of the caveat that the schedule was not kept.
const RATE_MISSED: &str = "rate-missed";

/// Lines on stderr, and on stdout too where the averages over time are wanted.
pub(super) struct Screen {
    console: Console,
    begun: bool,
    on_stdout: bool,
    figures: Option<Vec<Figure>>,
    /// The first file that could not be written.
    failure: Option<Exit>,
    max_s: Option<u64>,
    measurement: Measurement,
    scheduled: bool,
    current: Current,
}

impl Screen {
    pub(super) fn new(job: &Job, current: Current) -> Self {
        let settings = &job.workload.settings;
        let scheduled = settings.rate_ops_s.is_some();
        let verifies = job.workload.plan.verifies();
        Self {
            console: Console::new(job.measurement.clone(), scheduled, verifies, job.operations),
            begun: false,
            on_stdout: job.measurement.kind == Kind::Series,
            figures: None,
            failure: None,
            max_s: settings.duration_s,
            measurement: job.measurement.clone(),
            scheduled,
            current,
        }
    }

    /// The first operations are about to begin.
    pub(super) fn starts(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        say("Starting test.");
        if self.measurement.keeps_operations() {
            let to = match &self.measurement.raw_file {
                Some(path) => format!("to result file: {}", path.display()),
                None => "to stdout.".to_owned(),
            };
            let line = format!("Raw data measurement: will output {to}");
            // A reader that has gone away has seen what it wanted.
            let _ = writeln!(std::io::stdout(), "{}", output::tame_all(&line));
        }
        if let Some(seconds) = self.max_s {
            say(&format!("Maximum execution time specified as: {seconds} secs"));
        }
        let line = self.console.begin(clock::wall());
        self.show(line);
    }

    fn show(&self, line: Option<String>) {
        let Some(line) = line else { return };
        say(&line);
        if self.on_stdout {
            // A reader that has gone away has seen what it wanted.
            let _ = writeln!(std::io::stdout(), "{}", output::tame_all(&line));
        }
    }

    fn keep(&mut self, line: Result<Option<String>, LogError>) {
        match line {
            Ok(line) => self.show(line),
            Err(error) => {
                self.failure.get_or_insert(Exit::environment(error));
            }
        }
    }

    /// What wideload has to say of the run, to people.
    pub(super) fn conclude(&self, finished: &Finished) {
        if let Some(why) = &finished.failure {
            say(&format!("wideload: {}: {why}", finished.verdict.name()));
        }
        for caveat in &finished.summary.caveats {
            say(&format!("wideload: caveat {}: {}", caveat.code, caveat.text));
            if caveat.code == RATE_MISSED && self.measurement.from != From::Sent {
                say("wideload: the lines [Intended-...] count from the schedule all the same, as \
                     YCSB's do: the longer the run, the larger they are");
            }
        }
        say(&format!("wideload: run directory {}", finished.run_dir.display()));
    }

    /// The figures of the run.
    pub(super) fn figures(self) -> Result<Vec<Figure>, Exit> {
        match (self.failure, self.figures) {
            (Some(exit), _) => Err(exit),
            (None, Some(figures)) => Ok(figures),
            (None, None) => Err(Exit::environment(anyhow!("the run ended before it measured"))),
        }
    }
}

/// First operation to last answer, and from there to the end of the workers.
fn times(driven: &Driven) -> (Nanos, Nanos) {
    let start = driven.window.start;
    let last = driven.usage.iter().map(|u| u.last_done).max().unwrap_or(start);
    (last.since(start), driven.elapsed.since(last.since(start)))
}

impl Live for Screen {
    fn stage(&mut self, what: &str) {
        match what.starts_with("driving") {
            true => self.starts(),
            false => say(what),
        }
    }

    fn begun(&mut self, run_dir: &Path) {
        self.current.set(run_dir.to_owned());
    }

    fn notice(&mut self, what: &str) {
        say(what);
    }

    fn loading(&mut self, _done: u64, _total: u64) {}

    fn running(&mut self, _now: Nanos, _window: &Window) {}

    fn interval(&mut self, interval: &LiveInterval<'_>) {
        let line = self.console.interval(interval.names, interval.record, clock::wall());
        self.keep(line);
    }

    fn total(&mut self, total: &Total<'_>) {
        let (runtime, cleanup) = times(total.driven);
        let over = Over { total: &total.driven.total, runtime, cleanup, single: total.single };
        self.end(total.names, &over);
    }
}

impl Screen {
    fn end(&mut self, names: &[OpNames], over: &Over<'_>) {
        if self.measurement.keeps_operations()
            && let Err(error) = self.tell_single(names, over.single)
        {
            self.failure.get_or_insert(Exit::environment(error));
        }
        let &Over { total, runtime, cleanup, .. } = over;
        let ending = Ending { total, runtime, cleanup, wall: clock::wall() };
        match self.console.end(names, &ending) {
            Ok((line, figures)) => {
                self.show(line);
                self.figures = Some(figures);
            }
            Err(error) => {
                self.failure.get_or_insert(Exit::environment(error));
            }
        }
    }

    /// Every single operation, to the file or stdout.
    fn tell_single(&self, names: &[OpNames], single: &[OpDone]) -> anyhow::Result<()> {
        let since_1970 = clock::wall() - clock::now();
        let all: Vec<_> = single
            .iter()
            .map(|op| Single {
                operation: op.operation,
                done: op.done + since_1970,
                service: op.done.since(op.sent.unwrap_or(op.done)),
                response: op.done.since(op.scheduled),
                outcome: op.outcome,
            })
            .collect();
        let file = self.measurement.raw_file.as_ref();
        let mut out: Box<dyn Write> = match file {
            Some(path) => {
                let opened = File::options().append(true).create(true).open(path);
                let unwritable = || {
                    let path = path.display();
                    format!("cannot open '{path}': name a writable measurement.raw.output_file")
                };
                Box::new(BufWriter::new(opened.with_context(unwritable)?))
            }
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        write_single(&mut out, &self.measurement, self.scheduled, names, &all)
            .and_then(|()| out.flush())
            .context("cannot write single operations")
    }
}

impl lab::basic::Watcher for Screen {
    fn interval(&mut self, names: &[OpNames], record: &IntervalRecord) {
        let line = self.console.interval(names, record, clock::wall());
        self.keep(line);
    }

    fn total(&mut self, names: &[OpNames], over: &Over<'_>) {
        self.end(names, over);
    }
}
