//! The trials of an experiment as a table for people, and as JSON.

use super::plan::Planned;
use super::read::{Experiment, Order, Value};
use super::words::NEEDS;
use serde_json::json;
use std::fmt::Write as _;
use units::Nanos;

/// The text of `--plan` for several: a line each, then what each is. Of one that cannot run here
/// trials are not listed: they would be its whole text, and are in its own plan.
#[must_use]
pub fn plans_in_words(plans: &[(Experiment, Vec<Planned>)]) -> String {
    if let [(experiment, trials)] = plans {
        return plan_in_words(experiment, trials);
    }
    let mut text = String::new();
    let width = plans.iter().map(|(e, _)| e.name.chars().count()).max().unwrap_or(0);
    for (experiment, trials) in plans {
        let (name, count) = (&experiment.name, trials.len());
        let state = match runs_here(trials) {
            true => "runs here",
            false => "cannot run: see what is not built",
        };
        let time = in_words(time_of(trials));
        let _ = writeln!(text, "{name:<width$}  {count:>4} trials  {time:<12}  {state}");
    }
    for (experiment, trials) in plans {
        text.push('\n');
        match runs_here(trials) {
            true => text.push_str(&plan_in_words(experiment, trials)),
            false => {
                text.push_str(&introduction(experiment, trials));
                text.push_str("  its trials: give this file alone\n");
            }
        }
    }
    text
}

fn runs_here(trials: &[Planned]) -> bool {
    trials.iter().all(|trial| trial.needs.is_empty())
}

fn time_of(trials: &[Planned]) -> Nanos {
    trials.iter().map(|t| t.expected.total()).fold(Nanos::ZERO, |sum, t| sum + t)
}

/// The text of `--plan`: what the experiment is, what of it is not built, and a line per trial.
#[must_use]
pub fn plan_in_words(experiment: &Experiment, trials: &[Planned]) -> String {
    let mut text = introduction(experiment, trials);
    table(&mut text, trials);
    text
}

fn introduction(experiment: &Experiment, trials: &[Planned]) -> String {
    let mut text = String::new();
    let total = time_of(trials);
    let order = match experiment.order {
        Order::Interleaved => "interleaved",
        Order::Listed => "as listed",
    };
    let (name, count, blocks) = (&experiment.name, trials.len(), experiment.repetitions);
    let _ = writeln!(
        text,
        "{name}: {count} trials, {blocks} of each combination, {order}, about {}",
        in_words(total)
    );
    for line in experiment.about.lines() {
        let _ = writeln!(text, "  {}", line.trim());
    }
    let needed = |need: &str| trials.iter().filter(|t| t.needs.iter().any(|n| n == need)).count();
    for (need, meaning) in NEEDS {
        match needed(need) {
            0 => {}
            all if all == count => {
                let _ = writeln!(text, "not built: {need} ({meaning})");
            }
            some => {
                let _ = writeln!(text, "not built, for {some} of them: {need} ({meaning})");
            }
        }
    }
    text
}

fn table(text: &mut String, trials: &[Planned]) {
    let Some(first) = trials.first() else { return };
    let names: Vec<&str> = first.factors.iter().map(|(name, _)| name.as_str()).collect();
    let mut rows =
        vec![["trial", "block"].into_iter().chain(names).map(str::to_owned).collect::<Vec<_>>()];
    // What all of them need is said above.
    let is_told = trials.iter().all(|trial| trial.needs == first.needs);
    rows[0].extend(["expected".to_owned()]);
    rows[0].extend((!is_told).then(|| "not built".to_owned()));
    for trial in trials {
        let mut row = vec![trial.number.to_string(), trial.block.to_string()];
        row.extend(trial.factors.iter().map(|(_, level)| level.clone()));
        row.extend([in_words(trial.expected.total())]);
        row.extend((!is_told).then(|| trial.needs.join(", ")));
        rows.push(row);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let cell = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
        let line = row.iter().zip(&widths).map(cell).collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "  {}", line.trim_end());
    }
}

/// A time for people, to two units.
pub(crate) fn in_words(time: Nanos) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// The same as JSON, one object per experiment.
#[must_use]
pub fn plan_as_json(experiment: &Experiment, trials: &[Planned]) -> serde_json::Value {
    let total: f64 = trials.iter().map(|t| t.expected.total().as_secs_f64()).sum();
    json!({
        "schema": record::manifest::SCHEMA,
        "name": experiment.name,
        "about": experiment.about,
        "repetitions": experiment.repetitions,
        "seed": experiment.seed,
        "expected_s": total,
        "trials": trials.iter().map(trial_as_json).collect::<Vec<_>>(),
    })
}

fn trial_as_json(trial: &Planned) -> serde_json::Value {
    let factors = trial.factors.iter().map(|(name, level)| (name.clone(), level.clone().into()));
    let settings = trial.settings.iter().map(|(name, value)| (name.clone(), value_as_json(value)));
    json!({
        "trial": trial.number,
        "block": trial.block,
        "factors": factors.collect::<serde_json::Map<_, _>>(),
        "settings": settings.collect::<serde_json::Map<_, _>>(),
        "not_built": trial.needs,
        "seed": trial.seed,
        "expected_s": trial.expected.total().as_secs_f64(),
        "expected": trial.expected,
    })
}

pub(crate) fn value_as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.clone().into(),
        Value::List(items) => items.clone().into(),
        Value::Table(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), value_as_json(value))).collect()
        }
    }
}
