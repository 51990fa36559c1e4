//! The arms of an experiment side by side.
//!
//! In: planned trials and the rows of those that are done. Out: a [`Cell`] for each combination of
//! the other factors: figures of each arm, and which is best. In a closed loop arms are compared by
//! operations per second. A rate decides these: arms with one are compared by the p99 of the
//! response time, and one that missed its rate in any trial is named and not compared, for what
//! its other trials say would flatter it.

use super::outcome::{Cell, Figures, by_block, good_dirs, ops_s, others};
use super::plan::Planned;
use super::read::Experiment;
use super::resources::used;
use analyze::arms::{Arm, By, Comparison, compare};
use analyze::ratio::level;
use analyze::repeats::spread;
use record::table::TrialRow;
use std::path::{Path, PathBuf};

/// An arm with what its trials are.
struct Measured {
    figures: Figures,
    /// Trials that count.
    trials: usize,
    /// Of these, trials with a rate.
    with_rate: usize,
}

pub(super) fn cells(
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
        let of = |name: &String| {
            let is_of = |trial: &Planned| {
                let has = |wanted: &(String, String)| trial.factors.contains(wanted);
                factors.iter().all(has)
                    && (levels.is_none() || has(&(factor.to_owned(), name.clone())))
            };
            // An arm may be excepted here.
            planned.iter().any(&is_of).then(|| {
                let blocks = by_block(planned, rows, experiment.repetitions, is_of);
                measured_of(name, &blocks, &good_dirs(planned, rows, run_dir, is_of))
            })
        };
        let measured: Vec<Measured> = names.iter().filter_map(of).collect();
        let names: Vec<String> =
            measured.iter().map(|arm| arm_name(factor, &arm.figures.name)).collect();
        let (by, comparison, sentence) = told(&measured, &names);
        let surely = comparison.as_ref().map(Comparison::surely);
        let arms = measured.into_iter().map(|arm| arm.figures).collect();
        Cell { factors, arms, by, comparison, sentence: Some(sentence), surely }
    };
    others(experiment, planned, factor).into_iter().map(cell).collect()
}

fn measured_of(name: &str, blocks: &[Option<&TrialRow>], dirs: &[PathBuf]) -> Measured {
    let rows = || blocks.iter().flatten();
    let response = |row: &TrialRow| row.response.map(|stats| stats.p99);
    let p99: Vec<Option<f64>> = blocks.iter().map(|row| row.and_then(response)).collect();
    let with_rate = rows().filter(|row| row.scheduled_rate_s.is_some()).count();
    let is_missed = |row: &&&TrialRow| row.scheduled_rate_s.is_some() && row.response.is_none();
    let rate_missed = rows().filter(is_missed).count();
    let ops_s = ops_s(blocks);
    let (cpu, pages) = used(dirs);
    let figures = Figures {
        name: name.to_owned(),
        ops_s_mean: level(&ops_s),
        ops_s,
        response_p99_us_spread: spread(&p99.iter().flatten().copied().collect::<Vec<_>>()),
        response_p99_us: p99,
        rate_missed,
        cpu,
        pages,
    };
    Measured { figures, trials: rows().count(), with_rate }
}

/// By what arms are compared, how, and a sentence.
fn told(measured: &[Measured], names: &[String]) -> (By, Option<Comparison>, String) {
    let trials: usize = measured.iter().map(|arm| arm.trials).sum();
    let with_rate: usize = measured.iter().map(|arm| arm.with_rate).sum();
    let by = if with_rate == 0 { By::Throughput } else { By::ResponseP99 };
    let is_fit = |arm: &Measured| arm.trials > 0 && arm.figures.rate_missed == 0;
    let fit: Vec<&String> =
        measured.iter().zip(names).filter(|(arm, _)| is_fit(arm)).map(|(_, name)| name).collect();
    if trials == 0 {
        return (by, None, "nothing was measured".to_owned());
    }
    if with_rate > 0 && with_rate < trials {
        let why = "not compared: op/s of arms with a rate is their schedule, and arms without one \
                   have as many as they can";
        return (by, None, why.to_owned());
    }
    let missed = missed(measured, names);
    let values: Vec<Vec<Option<f64>>> = measured
        .iter()
        .map(|arm| match (by, is_fit(arm)) {
            (By::Throughput, _) => arm.figures.ops_s.clone(),
            // Less is better.
            (By::ResponseP99, true) => {
                arm.figures.response_p99_us.iter().map(|us| us.map(|us| 1.0 / us)).collect()
            }
            (By::ResponseP99, false) => Vec::new(),
        })
        .collect();
    let arms: Vec<Arm<'_>> =
        names.iter().zip(&values).map(|(name, values)| Arm { name, values }).collect();
    let comparison = compare(&arms);
    let sentence = match (&comparison, fit.as_slice(), missed.is_empty()) {
        (Some(comparison), ..) => comparison.sentence(&arms, by) + &missed,
        (None, [], false) => format!("no arm kept its rate in every trial{missed}"),
        (None, [only], false) => format!("only {only} kept its rate in every trial{missed}"),
        (None, [only], true) => format!("nothing to compare: {only} is the only arm with figures"),
        (None, ..) => format!("not compared: no two arms have figures of one block{missed}"),
    };
    (by, comparison, sentence)
}

/// Arms that are not compared, as the end of a sentence.
fn missed(measured: &[Measured], names: &[String]) -> String {
    let missed = measured.iter().zip(names).filter(|(arm, _)| arm.figures.rate_missed > 0);
    let one = |(arm, name): (&Measured, &String)| {
        format!("{name} missed its rate in {} of {} trials", arm.figures.rate_missed, arm.trials)
    };
    let all: Vec<String> = missed.map(one).collect();
    if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
}

/// A level as people say it: a bare number would be read as a figure.
pub(crate) fn arm_name(factor: &str, level: &str) -> String {
    match (level.parse::<f64>(), factor.strip_suffix('s')) {
        (Err(_), _) => level.to_owned(),
        (Ok(_), Some(one)) if level == "1" => format!("1 {one}"),
        (Ok(_), Some(_)) => format!("{level} {factor}"),
        (Ok(_), None) => format!("{factor} {level}"),
    }
}
