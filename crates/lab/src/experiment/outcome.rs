//! What an experiment says: figures per combination, which level of the compared factor is best,
//! and how the figure grows with the budget.
//!
//! In: planned trials and the rows of those that are done; only rows that ended ok count, and of
//! these not one whose instances were moved away from its layout. Out: an [`Outcome`], as
//! `outcome.json` and in words. The statistics are those of `analyze`; operations per second are
//! compared, block by block.

use super::plan::Planned;
use super::read::Experiment;
use super::resources::{CpuUse, PagePlacement, used};
use super::shown::value_as_json;
use crate::caveats::STAND_IN;
use crate::places::MISPLACED;
use analyze::arms::{Arm, Comparison, compare};
use analyze::ratio::{Ratio, level};
use analyze::scaling::{Level as Budget, Step, scaling};
use analyze::usl::{Usl, usl};
use record::run_dir::trial_dir_name;
use record::table::TrialRow;
use record::{Caveat, Verdict};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The budget that is no resource.
const INSTANCES: &str = "instances";
const SAME_CPUS: &str = "more instances share the cpus of one here: an efficiency below 100 % is \
                         no loss, compare op/s";
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
    /// None of fewer than two arms with figures.
    pub comparison: Option<Comparison>,
    /// The verdict in a sentence.
    pub sentence: Option<String>,
}

/// Operations per second of one combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The level of the compared factor.
    pub name: String,
    /// By block; null where the trial is not done or failed.
    pub ops_s: Vec<Option<f64>>,
    /// Their geometric mean with its interval.
    pub ops_s_mean: Option<Ratio>,
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

/// Operations per second of the trials of one combination, by block.
fn values(
    planned: &[Planned],
    rows: &[TrialRow],
    repetitions: u32,
    is_of: impl Fn(&Planned) -> bool,
) -> Vec<Option<f64>> {
    let mut values = vec![None; repetitions as usize];
    for trial in planned.iter().filter(|trial| is_of(trial)) {
        let row = rows.iter().find(|row| row.trial == trial.number);
        let row = row.filter(|row| counts(row) && row.ops_s > 0.0);
        if let (Some(row), Some(place)) = (row, values.get_mut(trial.block as usize - 1)) {
            *place = Some(row.ops_s);
        }
    }
    values
}

/// The directories of the trials of one combination that count.
fn good_dirs(
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
fn others(experiment: &Experiment, planned: &[Planned], but: &str) -> Vec<Vec<(String, String)>> {
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
            caveats: caveats.to_vec(),
            run: run_dir.display().to_string(),
        }
    }

    /// For people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        // What is no database is told before anything else.
        let (first, others): (Vec<&Caveat>, Vec<&Caveat>) =
            self.caveats.iter().partition(|caveat| caveat.code == STAND_IN);
        for caveat in first {
            let _ = writeln!(text, "{}", caveat.text);
        }
        let (name, done, planned) = (&self.name, self.done, self.planned);
        let _ = writeln!(text, "{name}: {done} of {planned} trials ok, in {}", self.run);
        if self.misplaced > 0 {
            let _ = writeln!(text, "  {} misplaced, not counted", self.misplaced);
        }
        for caveat in others {
            let Caveat { code, text: what, cure, .. } = caveat;
            let _ = writeln!(text, "  ! {code}. {what} {cure}");
        }
        for cell in &self.cells {
            let _ = writeln!(text, "\n{}", heading(&cell.factors));
            let width = cell.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0);
            for arm in &cell.arms {
                let figures = arm.ops_s_mean.map_or("nothing measured".to_owned(), |mean| {
                    let (low, high) = mean.interval;
                    let kind = mean.interval_kind.name();
                    format!("{:>10.0} op/s  ({low:.0} to {high:.0}, {kind})", mean.value)
                });
                let _ = writeln!(text, "  {:<width$}  {figures}", arm.name);
                if let Some(cpu) = &arm.cpu {
                    let _ = writeln!(text, "  {:<width$}    cpu    {}", "", cpu.in_words());
                }
                if let Some(pages) = arm.pages.as_ref().filter(|pages| !pages.is_one()) {
                    let _ = writeln!(text, "  {:<width$}    pages  {}", "", pages.in_words());
                }
            }
            if let Some(sentence) = &cell.sentence {
                let _ = writeln!(text, "  {sentence}");
            }
        }
        for scaled in &self.scaled {
            let budget = self.budget.as_deref().unwrap_or("budget");
            let _ = writeln!(text, "\n{}, by {budget}", heading(&scaled.factors));
            scaled.write(&mut text);
            if budget == INSTANCES {
                let _ = writeln!(text, "  {SAME_CPUS}");
            }
        }
        text
    }
}

fn heading(factors: &[(String, String)]) -> String {
    let level = |(factor, level): &(String, String)| format!("{factor} {level}");
    match factors.is_empty() {
        true => "all trials".to_owned(),
        false => factors.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

impl Scaled {
    fn write(&self, text: &mut String) {
        for Step { budget, level, speedup, efficiency } in &self.steps {
            let (Some(level), Some(speedup), Some(efficiency)) = (level, speedup, efficiency)
            else {
                let _ = writeln!(text, "  {budget:>4}  nothing measured");
                continue;
            };
            let (low, high) = efficiency.interval;
            let _ = writeln!(
                text,
                "  {budget:>4}  {:>10.0} op/s  x {:.2}  {:.1} % ({:.1} to {:.1}, {})",
                level.value,
                speedup.value,
                efficiency.value * 100.0,
                low * 100.0,
                high * 100.0,
                efficiency.interval_kind.name()
            );
        }
        let _ = match &self.usl {
            Usl::Fitted(fit) => {
                let (sigma, kappa) = (fit.sigma_interval, fit.kappa_interval);
                writeln!(
                    text,
                    "  contention {:.4} ({:.4} to {:.4}), crosstalk {:.5} ({:.5} to {:.5}), 95 %",
                    fit.law.sigma, sigma.0, sigma.1, fit.law.kappa, kappa.0, kappa.1
                )
            }
            Usl::NotFitted { reason } => writeln!(text, "  no scalability law: {reason}"),
        };
    }
}

fn cells(
    experiment: &Experiment,
    planned: &[Planned],
    rows: &[TrialRow],
    run_dir: &Path,
    factor: &str,
) -> Vec<Cell> {
    let levels = experiment.factors.iter().find(|f| f.name == factor);
    let names = levels.map_or_else(
        || vec![experiment.name.clone()],
        |factor| factor.levels.iter().map(|level| level.name.clone()).collect(),
    );
    let cell = |factors: Vec<(String, String)>| {
        let figures = |name: &String| {
            let is_of = |trial: &Planned| {
                let has = |wanted: &(String, String)| trial.factors.contains(wanted);
                factors.iter().all(has)
                    && (levels.is_none() || has(&(factor.to_owned(), name.clone())))
            };
            // An arm may be excepted here.
            planned.iter().any(&is_of).then(|| {
                let ops_s = values(planned, rows, experiment.repetitions, is_of);
                let (cpu, pages) = used(&good_dirs(planned, rows, run_dir, is_of));
                Figures { name: name.clone(), ops_s_mean: level(&ops_s), ops_s, cpu, pages }
            })
        };
        let figures: Vec<Figures> = names.iter().filter_map(figures).collect();
        // "1 is 1.6 x 2" would be read as a sum.
        let named = |arm: &Figures| match arm.name.parse::<f64>() {
            Ok(_) => format!("{factor} {}", arm.name),
            Err(_) => arm.name.clone(),
        };
        let names: Vec<String> = figures.iter().map(named).collect();
        let arms: Vec<Arm<'_>> = figures
            .iter()
            .zip(&names)
            .map(|(arm, name)| Arm { name, values: &arm.ops_s })
            .collect();
        let comparison = compare(&arms);
        let sentence = comparison.as_ref().map(|comparison| comparison.sentence(&arms));
        Cell { factors, arms: figures, comparison, sentence }
    };
    others(experiment, planned, factor).into_iter().map(cell).collect()
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
            (*budget, values(planned, rows, experiment.repetitions, is_level))
        };
        let measured: Vec<(u32, Vec<Option<f64>>)> = budgets.iter().map(of).collect();
        let levels: Vec<Budget<'_>> =
            measured.iter().map(|(budget, values)| Budget { budget: *budget, values }).collect();
        let steps = levels.first().map_or_else(Vec::new, |base| scaling(*base, &levels));
        let points = measured.iter().flat_map(|(budget, values)| {
            values.iter().flatten().map(|value| (f64::from(*budget), *value))
        });
        let usl = usl(&points.collect::<Vec<_>>(), SEED);
        Scaled { factors, steps, usl }
    };
    others(experiment, planned, factor).into_iter().map(one).collect()
}
