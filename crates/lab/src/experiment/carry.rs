//! Carries an experiment out: one run directory, a trial after the other, and on from where it was
//! when it was interrupted.
//!
//! In: an experiment's file or a run directory that was begun, and what makes a [`Trial`] of a
//! [`Planned`] one. Out: `experiment.toml`, `trial-NNNN/` and a row in `trials.csv` per trial,
//! `outcome.json`, the report. A trial that fails is told and kept; [`FAILURES_MAX`] one after the
//! other end the experiment, for what is wrong is not the trial.

use super::outcome::{Outcome, counts};
use super::plan::{FILE_SIZE_MAX, Planned, plan_file, plan_text};
use super::read::{Experiment, LEVEL, Order};
use super::shown::in_words;
use crate::caveats::STAND_IN;
use crate::error::{LabError, table_failed};
use crate::live::Live;
use crate::run_lock::RunLock;
use crate::trial::{Measured, Trial, run_one};
use record::manifest::{Manifest, Verdict};
use record::run_dir::{
    EXPERIMENT_TOML, MANIFEST, OUTCOME_JSON, SUMMARY, TRIALS_CSV, trial_dir_name, trials,
    write_failed,
};
use record::summary::Summary;
use record::table::{TrialRow, TrialsWriter, is_own_column, read_trials};
use record::{Caveat, RunDir};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Nanos, clock, open_plain, read_plain_text};
use workload::{Action, Plan};

/// Data that stay from one trial to the next, while the experiment is not over.
const DATA: &str = "data";
/// Trials that may fail one after the other.
const FAILURES_MAX: u32 = 3;
/// Of the summary of a trial.
const SUMMARY_BYTES_MAX: Bytes = Bytes(16 << 20);
/// Of `trials.csv`: a line without an end must not fill the memory.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// An experiment with its run directory.
#[derive(Debug)]
pub struct Begun {
    experiment: Experiment,
    planned: Vec<Planned>,
    run_dir: RunDir,
    _lock: RunLock,
    /// Of trials that are done.
    rows: Vec<TrialRow>,
    /// This host's facts.
    host: serde_json::Value,
    /// When it began, if it goes on.
    started: Option<String>,
}

/// An experiment that is over, for now.
#[derive(Debug)]
pub struct Carried {
    /// Its figures.
    pub outcome: Outcome,
    /// `interrupted` when somebody stopped it, `failed` when a trial failed.
    pub verdict: Verdict,
    /// What failed.
    pub failure: Option<String>,
    /// The run directory.
    pub run_dir: PathBuf,
    /// The report in it, or why there is none: the figures are told all the same.
    pub report: Result<PathBuf, String>,
}

impl Begun {
    /// Begins the experiment of a file in a new run directory. `make` is asked for one trial of
    /// each combination first, so that what it refuses is told before anything is begun.
    ///
    /// # Errors
    /// [`LabError`] when the file is wrong, needs what is not built, `make` refuses a trial, or no
    /// directory can be made.
    pub fn new(path: &Path, out: Option<&Path>, make: &mut Make<'_>) -> Result<Self, LabError> {
        let (experiment, planned) = plan_file(path)?;
        let host = check(&experiment, &planned, make)?;
        let run_dir = RunDir::create(out, &experiment.name)?;
        let lock = RunLock::take(run_dir.path())?;
        Self::begin(experiment, planned, host, run_dir, lock)
    }

    /// Begins the experiment that `text` describes in a run directory that is there.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub(crate) fn of_text(
        text: &str,
        run_dir: RunDir,
        lock: RunLock,
        make: &mut Make<'_>,
    ) -> Result<Self, LabError> {
        let (experiment, planned) = plan_text(&run_dir.path().join(EXPERIMENT_TOML), text)?;
        let host = check(&experiment, &planned, make)?;
        Self::begin(experiment, planned, host, run_dir, lock)
    }

    fn begin(
        experiment: Experiment,
        planned: Vec<Planned>,
        host: serde_json::Value,
        run_dir: RunDir,
        lock: RunLock,
    ) -> Result<Self, LabError> {
        run_dir.write(EXPERIMENT_TOML, filled_in(&experiment).as_bytes())?;
        let (rows, started) = (Vec::new(), None);
        Ok(Self { experiment, planned, run_dir, _lock: lock, rows, host, started })
    }

    /// Goes on with the experiment of a run directory: trials that ended ok stay, others are made
    /// anew.
    ///
    /// # Errors
    /// [`LabError`] when it is no directory of an experiment, or as in [`Self::new`].
    pub fn resume(path: &Path, make: &mut Make<'_>) -> Result<Self, LabError> {
        let file = path.join(EXPERIMENT_TOML);
        let text = read_plain_text(&file, FILE_SIZE_MAX).map_err(|source| {
            let path = path.to_owned();
            LabError::NoExperiment { path, source }
        })?;
        let (experiment, planned) = plan_text(&file, &text)?;
        let host = check(&experiment, &planned, make)?;
        let run_dir = RunDir::reopen(path)?;
        // Before anything is read: it may still change.
        let lock = RunLock::take(path)?;
        let dirs = trials(path)?;
        let table = path.join(TRIALS_CSV);
        let mut rows = match open_plain(&table) {
            Ok(file) => {
                read_trials(file.take(TABLE_BYTES_MAX), planned.len().max(dirs.len()))
                    .map_err(table_failed(&table))?
                    .0
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(write_failed(&table)(error).into()),
        };
        let is_ok = |dir: &Path| {
            Manifest::read(&dir.join(MANIFEST))
                .is_ok_and(|manifest| manifest.verdict == Verdict::Ok)
        };
        let is_whole = |row: &TrialRow| {
            let dir = dirs.iter().find(|(number, _)| *number == row.trial);
            let planned = planned.iter().find(|p| p.number == row.trial);
            counts(row)
                && dir.is_some_and(|(_, dir)| is_ok(dir))
                && planned.is_some_and(|planned| columns(planned) == row.factors)
        };
        unchanged(&rows, &dirs, &planned, make)?;
        let refused: Vec<u32> = rows.iter().filter(|r| !counts(r)).map(|r| r.trial).collect();
        rows.retain(is_whole);
        let is_planned = |number: u32| planned.iter().any(|p| p.number == number);
        let is_kept = |number: u32| rows.iter().any(|row| row.trial == number);
        let again: Vec<_> = dirs.iter().filter(|(n, _)| is_planned(*n) && !is_kept(*n)).collect();
        // One may have been killed between its manifest and its row; more have lost their table.
        let is_lost = |number: &u32, dir: &Path| !refused.contains(number) && is_ok(dir);
        let lost = again.iter().filter(|(number, dir)| is_lost(number, dir)).count();
        if lost > 1 {
            return Err(LabError::RowsLost { table, lost });
        }
        for (_, dir) in again {
            fs::remove_dir_all(dir).map_err(write_failed(dir))?;
        }
        let started = Manifest::read(&path.join(MANIFEST)).ok().map(|earlier| earlier.started);
        Ok(Self { experiment, planned, run_dir, _lock: lock, rows, host, started })
    }

    /// All of its trials.
    pub(crate) fn planned(&self) -> &[Planned] {
        &self.planned
    }

    pub(crate) fn run_dir(&self) -> &RunDir {
        &self.run_dir
    }

    /// The trials that are still to be done.
    fn left(&self) -> impl Iterator<Item = &Planned> {
        self.planned.iter().filter(|p| self.rows.iter().all(|row| row.trial != p.number))
    }

    /// Those of the trials that are done, each once.
    fn caveats(&self) -> Vec<Caveat> {
        let mut all = Vec::new();
        for number in self.rows.iter().map(|row| row.trial) {
            let path = self.run_dir.path().join(trial_dir_name(number)).join(SUMMARY);
            // One that cannot be read any more has its codes in the table.
            let summary = read_plain_text(&path, SUMMARY_BYTES_MAX).ok();
            let summary = summary.and_then(|text| serde_json::from_str::<Summary>(&text).ok());
            collect(&mut all, number, &summary.map_or_else(Vec::new, |summary| summary.caveats));
        }
        all
    }

    /// Where the data are that a trial keeps.
    fn data_of(&self, planned: &Planned) -> Option<PathBuf> {
        let first = planned.data_of?;
        Some(self.run_dir.path().join(DATA).join(format!("of-{first:04}")))
    }

    /// When all is measured nobody works on them any more.
    fn remove_data(&self) -> Result<(), LabError> {
        let data = self.run_dir.path().join(DATA);
        match data.is_dir() && self.left().next().is_none() {
            true => Ok(fs::remove_dir_all(&data).map_err(write_failed(&data))?),
            false => Ok(()),
        }
    }

    fn write_rows(&self) -> Result<(), LabError> {
        let path = self.run_dir.path().join(TRIALS_CSV);
        let mut bytes = Vec::new();
        let mut table = TrialsWriter::new(&mut bytes);
        for row in &self.rows {
            table.row(row).map_err(table_failed(&path))?;
        }
        drop(table);
        Ok(self.run_dir.write(TRIALS_CSV, &bytes)?)
    }
}

/// That the trials that stay were made as the file says now: one arm has one setting.
fn unchanged(
    rows: &[TrialRow],
    dirs: &[(u32, PathBuf)],
    planned: &[Planned],
    make: &mut Make<'_>,
) -> Result<(), LabError> {
    for row in rows.iter().filter(|row| counts(row)) {
        let number = row.trial;
        let changed = |what: String| LabError::Changed { number, what };
        let Some((_, dir)) = dirs.iter().find(|(n, _)| *n == number) else { continue };
        let Some(planned) = planned.iter().find(|p| p.number == number) else {
            return Err(changed("the file has no such trial any more".to_owned()));
        };
        let factors = columns(planned);
        if factors != row.factors {
            return Err(changed(format!("it was {}", levels(&row.factors))));
        }
        let Ok(manifest) = Manifest::read(&dir.join(MANIFEST)) else { continue };
        let trial = make(planned)?;
        // A setting that only one of them knows is one of another release.
        let other = |(name, was): &(&String, &serde_json::Value)| {
            let is_of_file = !OF_THE_HOST.contains(&name.as_str());
            is_of_file && trial.settings.get(*name).is_some_and(|is| is != *was)
        };
        if let Some((name, was)) = manifest.settings.iter().find(other) {
            let is = &trial.settings[name];
            return Err(changed(format!("its {name} was {was} and would be {is}")));
        }
    }
    Ok(())
}

fn levels(factors: &[(String, String)]) -> String {
    let level = |(factor, level): &(String, String)| format!("{factor} {level}");
    factors.iter().map(level).collect::<Vec<_>>().join(", ")
}

/// That everything is built and every combination makes a trial; this host's facts.
fn check(
    experiment: &Experiment,
    planned: &[Planned],
    make: &mut Make<'_>,
) -> Result<serde_json::Value, LabError> {
    let mut needs: Vec<&str> = planned.iter().flat_map(|p| &p.needs).map(String::as_str).collect();
    needs.sort_unstable();
    needs.dedup();
    if !needs.is_empty() {
        let (name, needs) = (experiment.name.clone(), needs.join(", "));
        return Err(LabError::NotBuilt { name, needs });
    }
    let mut host = serde_json::Value::Null;
    for planned in planned.iter().filter(|planned| planned.block == 1) {
        let trial = make(planned)?;
        if planned.data_of.is_some() && inserts(&trial.plan) {
            let why = "its workload inserts rows, and on data that are kept every trial would \
                       write those of the one before again: give data = \"wipe\"";
            let (number, factors) = (planned.number, planned.in_words());
            return Err(LabError::Refused { number, factors, why: why.to_owned() });
        }
        host = trial.host;
    }
    Ok(host)
}

/// Settings that are resolved on the host where nothing is asked.
const OF_THE_HOST: [&str; 4] = ["client-cpus", "target-cpus", "workers", "connections"];

fn inserts(plan: &Plan) -> bool {
    let steps = plan.run.iter().flat_map(|operation| &operation.steps);
    let statements =
        steps.flat_map(|step| plan.statements.iter().skip(step.first_statement).take(step.choices));
    statements.into_iter().any(|statement| statement.action == Action::Insert)
}

/// The text as given, and behind it what was taken where it says nothing.
fn filled_in(experiment: &Experiment) -> String {
    let order = match experiment.order {
        Order::Interleaved => "interleaved",
        Order::Listed => "listed",
    };
    // As in JSON: a name may hold whatever a text may.
    let compare = serde_json::Value::from(experiment.compared().unwrap_or("none"));
    format!(
        "{}\n# Taken: order = \"{order}\", repetitions = {}, seed = {}, compare = {compare}\n",
        experiment.text.trim_end(),
        experiment.repetitions,
        experiment.seed,
    )
}

/// Makes a trial of a planned one.
pub type Make<'a> = dyn FnMut(&Planned) -> Result<Trial, LabError> + 'a;

/// Carries out what is left of an experiment.
///
/// # Errors
/// [`LabError`] of what concerns no single trial; the run directory says why in its manifest.
pub fn carry_out(
    begun: &mut Begun,
    command_line: Vec<String>,
    make: &mut Make<'_>,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Carried, LabError> {
    let mut manifest =
        Manifest::starting(&begun.experiment.name, command_line.clone(), clock::wall());
    manifest.settings = begun.experiment.facts();
    manifest.seeds.insert("experiment".to_owned(), begun.experiment.seed);
    manifest.host = begun.host.clone();
    if let Some(started) = begun.started.take() {
        manifest.started = started;
    }
    manifest.caveats = begun.caveats();
    let left: Vec<Planned> = begun.left().cloned().collect();
    begun.run_dir.write_json(MANIFEST, &manifest)?;
    live.begun(begun.run_dir.path());
    let mut carrying = Carrying { begun, command_line, live, stop, failures: Vec::new(), row: 0 };
    let ended = carrying.all(&left, make, &mut manifest.caveats);
    let (verdict, failure) = match (&ended, carrying.failures.first()) {
        (Err(error), _) if error.verdict() == Verdict::Interrupted => {
            let done = carrying.begun.rows.iter().filter(|row| counts(row)).count();
            let why =
                format!("by the user, after {done} of {} trials", carrying.begun.planned.len());
            (Verdict::Interrupted, Some(why))
        }
        (Err(error), _) => (error.verdict(), Some(error.to_string())),
        (Ok(()), Some(first)) => (Verdict::Failed, Some(first.clone())),
        (Ok(()), None) => (Verdict::Ok, None),
    };
    begun.remove_data()?;
    manifest.end(verdict, failure.clone(), clock::wall());
    let run_dir = begun.run_dir.path().to_owned();
    let outcome =
        Outcome::of(&begun.experiment, &begun.planned, &begun.rows, &manifest.caveats, &run_dir);
    begun.run_dir.write_json(OUTCOME_JSON, &outcome)?;
    begun.run_dir.write_json(MANIFEST, &manifest)?;
    let report = report::build(&run_dir).map_err(|error| error.to_string());
    match ended {
        Err(error) if verdict != Verdict::Interrupted => Err(error),
        _ => Ok(Carried { outcome, verdict, failure, run_dir, report }),
    }
}

struct Carrying<'a> {
    begun: &'a mut Begun,
    command_line: Vec<String>,
    live: &'a mut dyn Live,
    stop: &'a Arc<AtomicBool>,
    /// A sentence per trial that failed.
    failures: Vec<String>,
    /// So many failed one after the other.
    row: u32,
}

impl Carrying<'_> {
    fn all(
        &mut self,
        left: &[Planned],
        make: &mut Make<'_>,
        caveats: &mut Vec<Caveat>,
    ) -> Result<(), LabError> {
        for (done, planned) in left.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            self.tell(planned, &left[done..]);
            let mut trial = make(planned)?;
            trial.command_line.clone_from(&self.command_line);
            trial.name.clone_from(&self.begun.experiment.name);
            trial.kept = self.begun.data_of(planned);
            let (run_dir, number) = (&self.begun.run_dir, planned.number);
            match run_one(&trial, run_dir, number, self.live, self.stop) {
                Ok(measured) => {
                    collect(caveats, number, &measured.caveats);
                    self.keep(planned, measured)?;
                }
                Err(error) if error.verdict() == Verdict::Interrupted => return Err(error),
                // Of what is wrong with the command line or the host, the next trial knows too.
                Err(error) if self.begun.rows.is_empty() => return Err(error),
                Err(error) => self.failed(number, &error.to_string())?,
            }
        }
        Ok(())
    }

    fn tell(&mut self, planned: &Planned, left: &[Planned]) {
        let (number, of) = (planned.number, self.begun.planned.len());
        let time = left.iter().map(|p| p.expected.total()).fold(Nanos::ZERO, |sum, t| sum + t);
        self.live.notice(&format!(
            "trial {number} of {of}: {}; about {} left",
            planned.in_words(),
            in_words(time)
        ));
    }

    fn keep(&mut self, planned: &Planned, measured: Measured) -> Result<(), LabError> {
        let is_interrupted = measured.row.verdict == Verdict::Interrupted.name();
        let is_ok = measured.is_ok();
        let Measured { row, failure, .. } = measured;
        self.begun.rows.push(TrialRow { factors: columns(planned), ..row });
        self.begun.rows.sort_by_key(|row| row.trial);
        self.begun.write_rows()?;
        match (is_ok, is_interrupted) {
            (true, _) => self.row = 0,
            (_, true) => return Err(LabError::Interrupted),
            _ => self.failed(planned.number, &failure.unwrap_or_default())?,
        }
        Ok(())
    }

    fn failed(&mut self, number: u32, why: &str) -> Result<(), LabError> {
        let sentence = format!("trial {number}: {why}");
        self.live.notice(&sentence);
        self.failures.push(sentence.clone());
        self.row += 1;
        match self.row >= FAILURES_MAX {
            true => Err(LabError::TrialsFail { count: self.row, last: sentence }),
            false => Ok(()),
        }
    }
}

/// The columns of a trial's factors. The table has some names of its own.
fn columns(planned: &Planned) -> Vec<(String, String)> {
    let column = |(factor, level): &(String, String)| match is_own_column(factor) {
        true => (format!("{factor}{LEVEL}"), level.clone()),
        false => (factor.clone(), level.clone()),
    };
    planned.factors.iter().map(column).collect()
}

/// Each code once, with the trial that has it first.
fn collect(all: &mut Vec<Caveat>, number: u32, caveats: &[Caveat]) {
    for caveat in caveats {
        if all.iter().all(|known| known.code != caveat.code) {
            // What the target is, it is in all of them.
            let text = match caveat.code.as_str() {
                STAND_IN => caveat.text.clone(),
                _ => format!("First in trial {number}: {}", caveat.text),
            };
            all.push(Caveat { text, ..caveat.clone() });
        }
    }
}
