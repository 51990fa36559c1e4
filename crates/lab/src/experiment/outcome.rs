//! What an experiment says: figures per combination, which level of the compared factor is best,
//! and how the figure grows with the budget.
//!
//! In: planned trials and the rows of those that are done; only rows that ended ok count, and of
//! these not one whose instances were moved away from its layout. Out: an [`Outcome`], as
//! `outcome.json` and in words. The statistics are those of `analyze`. Arms are compared block by
//! block: in a closed loop by operations per second, at a rate, which decides these, by the p99 of
//! the response time.

use super::compared::cells;
use super::notes::Notes;
use super::plan::Planned;
use super::read::Experiment;
use super::resources::{CpuUse, PagePlacement};
use super::shown::value_as_json;
use crate::places::MISPLACED;
use analyze::arms::{By, Comparison};
use analyze::ratio::Ratio;
use analyze::scaling::{Level as Budget, Step, scaling};
use analyze::usl::{Usl, usl};
use record::repeats::Spread;
use record::run_dir::trial_dir_name;
use record::table::TrialRow;
use record::{Caveat, Verdict};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::path::{Path, PathBuf};

/// The budget that is no resource: more instances share the cpus that one has alone, and what each
/// of them does of that is no efficiency.
pub(super) const INSTANCES: &str = "instances";
/// Of the intervals of the scalability law.
const SEED: u64 = 1;

/// The figures of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Version of these keys.
    pub schema: u32,
    /// Of the experiment.
    pub name: String,
    /// All of its trials.
    pub planned: usize,
    /// Those that ended ok, and count.
    pub done: usize,
    /// Those without figures: not done yet, failed, or misplaced.
    pub missing: usize,
    /// Those that ended ok with instances that were not where they were put.
    pub misplaced: usize,
    /// The factor whose levels are compared.
    pub compare: Option<String>,
    /// The arms, for each combination of the other factors.
    pub cells: Vec<Cell>,
    /// The factor that counts resources.
    pub budget: Option<String>,
    /// How the figure grows with it, for each combination of the other factors.
    pub scaled: Vec<Scaled>,
    /// Reasons to trust the figures less, each with the first trial that has it; `trials.csv` has
    /// those of each.
    pub caveats: Vec<Caveat>,
    /// How a layout study came to its arms and loads, and what it recommends.
    pub study: Option<Notes>,
    /// The run directory.
    pub run: String,
}

/// The arms of a comparison, all else being equal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The levels of the other factors.
    pub factors: Vec<(String, String)>,
    /// In the order of the file.
    pub arms: Vec<Figures>,
    /// What the comparison is made by.
    pub by: By,
    /// None of fewer than two arms with figures that can be compared.
    pub comparison: Option<Comparison>,
    /// The verdict in a sentence, or why there is none.
    pub sentence: Option<String>,
    /// How sure it is, likewise.
    pub surely: Option<String>,
}

/// What was measured of one combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The level of the compared factor.
    pub name: String,
    /// By block; null where the trial is not done or failed.
    pub ops_s: Vec<Option<f64>>,
    /// Their geometric mean with its interval.
    pub ops_s_mean: Option<Ratio>,
    /// The p99 of all its operations' response times, by block; null also where the rate was
    /// missed.
    pub response_p99_us: Vec<Option<f64>>,
    /// The median of these, which is one of them, and their spread.
    pub response_p99_us_spread: Option<Spread>,
    /// Trials that ended ok and missed their rate.
    pub rate_missed: usize,
    /// What its trials used.
    pub cpu: Option<CpuUse>,
    /// Where the memory of its instances was found.
    pub pages: Option<PagePlacement>,
}

/// Growth with the budget, all else being equal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scaled {
    /// The levels of the other factors.
    pub factors: Vec<(String, String)>,
    /// Upwards; the first one is the base.
    pub steps: Vec<Step>,
    /// The scalability law, or why there is none.
    pub usl: Usl,
}

impl Experiment {
    /// The factor whose levels are compared: the one named, else the first.
    #[must_use]
    pub fn compared(&self) -> Option<&str> {
        let first = || self.factors.first().map(|factor| factor.name.as_str());
        self.compare.as_deref().or_else(first)
    }

    /// For the manifest.
    pub(crate) fn facts(&self) -> Map<String, Json> {
        let mut facts = Map::new();
        let mut put = |key: &str, value: Json| drop(facts.insert(key.to_owned(), value));
        put("experiment", self.name.clone().into());
        put("about", self.about.clone().into());
        put("repetitions", self.repetitions.into());
        put("seed", self.seed.into());
        for (name, value) in &self.settings {
            put(name, value_as_json(value));
        }
        for factor in &self.factors {
            let levels = factor.levels.iter().map(|level| level.name.clone());
            put(&factor.name, levels.collect::<Vec<_>>().into());
        }
        facts
    }
}

/// Whether a row is a figure of its arm: the trial ended ok, on the layout that it was to measure.
pub(super) fn counts(row: &TrialRow) -> bool {
    row.verdict == Verdict::Ok.name() && !is_misplaced(row)
}

fn is_misplaced(row: &TrialRow) -> bool {
    row.caveats.iter().any(|code| code == MISPLACED)
}

/// Rows of the trials of one combination that count, by block.
pub(super) fn by_block<'a>(
    planned: &[Planned],
    rows: &'a [TrialRow],
    repetitions: u32,
    is_of: impl Fn(&Planned) -> bool,
) -> Vec<Option<&'a TrialRow>> {
    let mut values = vec![None; repetitions as usize];
    for trial in planned.iter().filter(|trial| is_of(trial)) {
        let row = rows.iter().find(|row| row.trial == trial.number);
        let row = row.filter(|row| counts(row) && row.ops_s > 0.0);
        if let (Some(row), Some(place)) = (row, values.get_mut(trial.block as usize - 1)) {
            *place = Some(row);
        }
    }
    values
}

/// Operations per second of such rows.
pub(super) fn ops_s(rows: &[Option<&TrialRow>]) -> Vec<Option<f64>> {
    rows.iter().map(|row| row.map(|row| row.ops_s)).collect()
}

/// The directories of the trials of one combination that count.
pub(super) fn good_dirs(
    planned: &[Planned],
    rows: &[TrialRow],
    run_dir: &Path,
    is_of: impl Fn(&Planned) -> bool,
) -> Vec<PathBuf> {
    let is_good = |trial: &&Planned| {
        let row = rows.iter().find(|row| row.trial == trial.number);
        is_of(trial) && row.is_some_and(counts)
    };
    let good = planned.iter().filter(is_good);
    good.map(|trial| run_dir.join(trial_dir_name(trial.number))).collect()
}

/// The levels of all factors but one, each combination once, in the order of the file.
pub(super) fn others(
    experiment: &Experiment,
    planned: &[Planned],
    but: &str,
) -> Vec<Vec<(String, String)>> {
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    for trial in planned {
        let rest: Vec<_> = trial.factors.iter().filter(|(f, _)| f != but).cloned().collect();
        if !all.contains(&rest) {
            all.push(rest);
        }
    }
    let place = |(factor, name): &(String, String)| {
        let factor = experiment.factors.iter().find(|f| f.name == *factor);
        factor.and_then(|factor| factor.levels.iter().position(|level| level.name == *name))
    };
    all.sort_by_key(|levels| levels.iter().map(place).collect::<Vec<_>>());
    all
}

impl Outcome {
    pub(crate) fn of(
        experiment: &Experiment,
        planned: &[Planned],
        rows: &[TrialRow],
        caveats: &[Caveat],
        run_dir: &Path,
    ) -> Self {
        let done = rows.iter().filter(|row| counts(row)).count();
        let ended_ok = rows.iter().filter(|row| row.verdict == Verdict::Ok.name());
        let compare = experiment.compared().map(str::to_owned);
        Self {
            schema: record::manifest::SCHEMA,
            name: experiment.name.clone(),
            planned: planned.len(),
            done,
            missing: planned.len() - done,
            misplaced: ended_ok.filter(|row| is_misplaced(row)).count(),
            cells: cells(
                experiment,
                planned,
                rows,
                run_dir,
                compare.as_deref().unwrap_or_default(),
            ),
            compare,
            scaled: experiment
                .budget
                .as_deref()
                .map_or_else(Vec::new, |budget| scaled(experiment, planned, rows, budget)),
            budget: experiment.budget.clone(),
            study: Notes::read(run_dir),
            caveats: caveats.to_vec(),
            run: run_dir.display().to_string(),
        }
    }
}

fn scaled(
    experiment: &Experiment,
    planned: &[Planned],
    rows: &[TrialRow],
    factor: &str,
) -> Vec<Scaled> {
    let budget_of = |trial: &Planned| {
        let level = trial.factors.iter().find(|(name, _)| name == factor);
        level.and_then(|(_, level)| level.parse::<u32>().ok())
    };
    let one = |factors: Vec<(String, String)>| {
        let is_of = |trial: &Planned| factors.iter().all(|wanted| trial.factors.contains(wanted));
        let mut budgets: Vec<u32> =
            planned.iter().filter(|trial| is_of(trial)).filter_map(budget_of).collect();
        budgets.sort_unstable();
        budgets.dedup();
        let of = |budget: &u32| {
            let is_level = |trial: &Planned| is_of(trial) && budget_of(trial) == Some(*budget);
            (*budget, by_block(planned, rows, experiment.repetitions, is_level))
        };
        let measured: Vec<_> = budgets.iter().map(of).collect();
        let all = || measured.iter().flat_map(|(_, rows)| rows).flatten();
        // At a rate op/s grows with the schedule and with nothing else.
        if all().any(|row| row.scheduled_rate_s.is_some()) {
            return None;
        }
        let measured = measured.iter().map(|(budget, rows)| (*budget, ops_s(rows)));
        let measured: Vec<(u32, Vec<Option<f64>>)> = measured.collect();
        let levels: Vec<Budget<'_>> =
            measured.iter().map(|(budget, values)| Budget { budget: *budget, values }).collect();
        let mut steps = levels.first().map_or_else(Vec::new, |base| scaling(*base, &levels));
        if factor == INSTANCES {
            steps.iter_mut().for_each(|step| step.efficiency = None);
        }
        let points = measured.iter().flat_map(|(budget, values)| {
            values.iter().flatten().map(|value| (f64::from(*budget), *value))
        });
        let usl = usl(&points.collect::<Vec<_>>(), SEED);
        Some(Scaled { factors, steps, usl })
    };
    others(experiment, planned, factor).into_iter().filter_map(one).collect()
}
