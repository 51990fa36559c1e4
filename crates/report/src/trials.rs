//! The table of trials: one row each, and what they say together.
//!
//! Input: `trials.csv`, and the summaries and manifests of trials that have no row there; output:
//! rows of texts, and over trials of equal factors that ended ok the median, the least and the
//! largest value. Figures of different factors are not put together.

use crate::load::{Run, Trial};
use crate::number::{grouped, latency, significant};
use record::Verdict;
use record::summary::Stats;
use record::table::{TrialRow, is_own_column};
use serde::Serialize;

/// Rows that are shown; `trials.csv` has all.
const ROWS_MAX: usize = 1500;
/// Which repetition a trial is says nothing about its load.
const REPETITION: [&str; 4] = ["repeat", "repetition", "repeats", "round"];

/// The table of trials.
#[derive(Debug, Serialize)]
pub(crate) struct Trials {
    /// What is varied.
    pub(crate) factors: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// Median, min and max over all trials, when their factors are equal.
    pub(crate) together: Vec<Together>,
    /// Rows that are in the file only.
    pub(crate) left_out: usize,
}

/// One trial.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    number: u32,
    verdict: String,
    factors: Vec<String>,
    values: Vec<String>,
    caveats: Vec<String>,
    detailed: bool,
}

/// A figure of all trials.
#[derive(Debug, Serialize)]
pub(crate) struct Together {
    term: &'static str,
    values: Vec<String>,
}

/// What a row shows: ok operations per second, errors, p50 and p99 of service, p99 of response.
type Figures = [Option<f64>; 5];

/// The table of a run.
pub(crate) fn table(run: &Run) -> Trials {
    let factors = run.table.first().map_or(&[][..], |row| &row.factors);
    let factors: Vec<String> = factors.iter().map(|(name, _)| factor_name(name)).collect();
    let all = run.trials.iter().map(|trial| (trial, row_of(run, trial.number)));
    let all: Vec<(&Trial, Option<&TrialRow>)> = all.collect();
    let figures: Vec<Figures> = all.iter().map(|(trial, row)| figures(trial, *row)).collect();
    let rows = all.iter().zip(&figures).take(ROWS_MAX);
    let good = all.iter().zip(&figures).filter(|((trial, row), _)| is_ok(trial, *row));
    let good: Vec<Figures> = good.map(|(_, figures)| *figures).collect();
    Trials {
        rows: rows.map(|((trial, row), values)| text_row(trial, *row, values)).collect(),
        together: if is_repeated(run) { together(&good) } else { Vec::new() },
        left_out: run.trials.len().saturating_sub(ROWS_MAX),
        factors,
    }
}

/// The factor behind a column: where the table has a column of that name itself, the factor's has
/// `_level` behind it.
fn factor_name(column: &str) -> String {
    let named = column.strip_suffix("_level").filter(|name| is_own_column(name));
    named.unwrap_or(column).to_owned()
}

fn is_ok(trial: &Trial, row: Option<&TrialRow>) -> bool {
    match &trial.manifest {
        Some(manifest) => manifest.verdict == Verdict::Ok,
        None => row.is_some_and(|row| row.verdict == Verdict::Ok.name()),
    }
}

/// The middle value, of an even number the lower of the two in the middle: that of a trial.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}

fn row_of(run: &Run, number: u32) -> Option<&TrialRow> {
    // Mostly the rows are in the order of their numbers.
    let guess = run.table.get((number as usize).saturating_sub(1));
    let guess = guess.filter(|row| row.trial == number);
    guess.or_else(|| run.table.iter().find(|row| row.trial == number))
}

/// Whether all trials are the same but for their repetition.
/// Whether a factor tells repetitions of one load apart.
pub(crate) fn is_repetition(factor: &str) -> bool {
    REPETITION.contains(&factor)
}

fn is_repeated(run: &Run) -> bool {
    let loads = |row: &TrialRow| {
        let varied = row.factors.iter().filter(|(name, _)| !is_repetition(name));
        varied.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    run.trials.len() > 1
        && run
            .table
            .windows(2)
            .all(|pair| pair[0].workload == pair[1].workload && loads(&pair[0]) == loads(&pair[1]))
}

fn figures(trial: &Trial, row: Option<&TrialRow>) -> Figures {
    if let Some(row) = row {
        let of = |stats: Option<Stats>, value: fn(Stats) -> f64| stats.map(value);
        return [
            Some(row.ops_s),
            Some(row.errors as f64),
            of(row.service, |s| s.p50),
            of(row.service, |s| s.p99),
            of(row.response, |s| s.p99),
        ];
    }
    // A summary has no latency over all operations, and percentiles cannot be put together.
    let Some(summary) = &trial.summary else { return [None; 5] };
    [Some(summary.ops_s), Some(summary.errors as f64), None, None, None]
}

fn texts(figures: &Figures) -> Vec<String> {
    let text = |(i, value): (usize, &Option<f64>)| match (i, *value) {
        (_, None) => "–".to_owned(),
        (0, Some(value)) => significant(value),
        (1, Some(value)) => grouped(value as u64),
        (_, Some(value)) => latency(value),
    };
    figures.iter().enumerate().map(text).collect()
}

fn text_row(trial: &Trial, row: Option<&TrialRow>, values: &Figures) -> Row {
    let verdict = trial.manifest.as_ref().map(|m| m.verdict.name().to_owned());
    let verdict = verdict.or_else(|| row.map(|row| row.verdict.clone()));
    let codes = trial.summary.iter().flat_map(|s| &s.caveats).map(|c| c.code.clone()).collect();
    Row {
        number: trial.number,
        verdict: verdict.unwrap_or_else(|| "unknown".to_owned()),
        factors: row.map_or_else(Vec::new, |r| r.factors.iter().map(|f| f.1.clone()).collect()),
        values: texts(values),
        caveats: row.map_or(codes, |row| row.caveats.clone()),
        detailed: trial.detailed,
    }
}

fn together(figures: &[Figures]) -> Vec<Together> {
    let column = |i: usize| figures.iter().filter_map(move |row| row[i]);
    let row = |term, value: &dyn Fn(Vec<f64>) -> f64| {
        let of = |i| {
            let values: Vec<f64> = column(i).collect();
            (!values.is_empty()).then(|| value(values))
        };
        Together { term, values: texts(&std::array::from_fn(of)) }
    };
    vec![
        row("median", &median),
        row("min", &|values| values.into_iter().fold(f64::INFINITY, f64::min)),
        row("max", &|values| values.into_iter().fold(f64::NEG_INFINITY, f64::max)),
    ]
}

/// How sure the throughput is, in a sentence: by its trials when they repeat one another.
pub(crate) fn spread(run: &Run) -> Option<String> {
    if run.trials.len() < 2 {
        return Some(
            "One trial: how far it differs from the next one is not known; repeat it to know."
                .to_owned(),
        );
    }
    let good = run.trials.iter().filter(|trial| is_ok(trial, row_of(run, trial.number)));
    let rates: Vec<f64> = good.filter_map(|t| Some(t.summary.as_ref()?.ops_s)).collect();
    if !is_repeated(run) || rates.len() < 2 {
        return None;
    }
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    let middle = median(rates.clone());
    Some(format!(
        "{} trials that ended ok: median {} op/s, min {}, max {}, {} % of the median apart.",
        rates.len(),
        significant(middle),
        significant(low),
        significant(high),
        significant((high - low) / middle.max(1e-9) * 100.0)
    ))
}
