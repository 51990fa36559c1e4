//! [`Experiment`] -> the trials that it is made of, in order, with their expected time.
//!
//! Trials are all combinations of the factors' levels but those excepted, times repetitions. A
//! block holds each combination once. Interleaved, blocks come in pairs: a drawn order, and the
//! same order backwards, so that what changes steadily on a host moves all combinations alike. The
//! same file gives the same order.

use super::error::{ExperimentError, Source};
use super::read::{Experiment, Order, Setting, TRIALS_MAX, Value, read};
use super::words::{self, DATABASES, OF_THE_LOAD, Use};
use serde::Serialize;
use std::path::Path;
use units::{Bytes, Count, Nanos, Rate, read_plain_text};

/// What a run takes for these when it is not told, as its flags say.
const RECORDS: u64 = 100_000;
const DURATION: Nanos = Nanos::from_secs(10);
const WARM: Nanos = Nanos::from_secs(3);
const WARM_MAX: Nanos = Nanos::from_secs(120);
const SETTLE: Nanos = Nanos::from_secs(60);

/// What a trial is expected to take, by its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Expected {
    /// Until the target answers.
    #[serde(serialize_with = "as_seconds", rename = "start_s")]
    pub start: Nanos,
    /// For its rows.
    #[serde(serialize_with = "as_seconds", rename = "load_s")]
    pub load: Nanos,
    /// At most.
    #[serde(serialize_with = "as_seconds", rename = "settle_s")]
    pub settle: Nanos,
    /// At most.
    #[serde(serialize_with = "as_seconds", rename = "warm_s")]
    pub warm: Nanos,
    /// The window.
    #[serde(serialize_with = "as_seconds", rename = "measure_s")]
    pub measure: Nanos,
}

fn as_seconds<S: serde::Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Expected {
    /// All parts.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.start + self.load + self.settle + self.warm + self.measure
    }
}

/// A trial that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its place in the order, from 1.
    pub number: u32,
    /// The repetition, from 1.
    pub block: u32,
    /// Factor and level, in the order of the file.
    pub factors: Vec<(String, String)>,
    /// All that is set.
    pub settings: Vec<Setting>,
    /// What it needs that is not built, by name.
    pub needs: Vec<String>,
    /// Whose data it works on, where they are kept: the first trial's that differs from it in the
    /// load alone.
    pub data_of: Option<u32>,
    /// Of its operations: the same for all trials of a block.
    pub seed: u64,
    /// What it is expected to take.
    pub expected: Expected,
}

/// An experiment is written by hand.
pub(super) const FILE_SIZE_MAX: Bytes = Bytes(1 << 20);

/// Reads an experiment's file and plans it.
///
/// # Errors
/// [`ExperimentError`], with line, column and cure where the text is wrong.
pub fn plan_file(path: &Path) -> Result<(Experiment, Vec<Planned>), ExperimentError> {
    let failed = |source| ExperimentError::Unreadable { path: path.to_owned(), source };
    let text = read_plain_text(path, FILE_SIZE_MAX).map_err(failed)?;
    plan_text(path, &text)
}

/// Plans the text of an experiment; `path` names it in errors.
///
/// # Errors
/// As [`plan_file`].
pub fn plan_text(path: &Path, text: &str) -> Result<(Experiment, Vec<Planned>), ExperimentError> {
    let source = Source { path, text };
    let experiment = read(source)?;
    let sizes = experiment.factors.iter().map(|factor| factor.levels.len());
    let combinations = sizes.fold(1usize, usize::saturating_mul);
    let trials = combinations.saturating_mul(experiment.repetitions as usize);
    if trials > TRIALS_MAX {
        let what = format!("{trials} trials are more than {TRIALS_MAX}");
        return Err(source.error(0, what, "take levels or repetitions out"));
    }
    let combinations = combinations_of(&experiment);
    if combinations.is_empty() {
        let what = "every combination is excepted";
        return Err(source.error(0, what, "leave an [[except]] out"));
    }
    for combination in &combinations {
        check(source, combination)?;
    }
    let trials = planned(&experiment, &combinations);
    Ok((experiment, trials))
}

/// One level of each factor, and what that sets.
#[derive(Debug, Clone)]
struct Combination {
    factors: Vec<(String, String)>,
    settings: Vec<Setting>,
    needs: Vec<String>,
}

impl Combination {
    fn meets(&self, levels: &[(String, String)]) -> bool {
        levels.iter().all(|level| self.factors.contains(level))
    }
}

fn combinations_of(experiment: &Experiment) -> Vec<Combination> {
    let mut all = vec![Combination {
        factors: Vec::new(),
        settings: experiment.settings.clone(),
        needs: experiment.needs.clone(),
    }];
    for factor in &experiment.factors {
        let with = |combination: &Combination| {
            let level = |level: &super::read::Level| {
                let mut with = combination.clone();
                with.factors.push((factor.name.clone(), level.name.clone()));
                merge(&mut with.settings, &level.settings);
                with.needs.extend(level.needs.iter().cloned());
                with
            };
            factor.levels.iter().map(level).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all.retain(|combination| !experiment.except.iter().any(|levels| combination.meets(levels)));
    for combination in &mut all {
        for when in &experiment.when {
            if combination.meets(&when.levels) {
                merge(&mut combination.settings, &when.settings);
            }
        }
        let of_settings = combination
            .settings
            .iter()
            .filter_map(|(name, value)| words::needs(name, &value.to_string()).map(str::to_owned));
        combination.needs.extend(of_settings.collect::<Vec<_>>());
        let is_running = combination.settings.iter().any(|(name, _)| name == "target");
        if is_running && text_of(&combination.settings, "data") == Some("wipe") {
            combination.needs.push("data".to_owned());
        }
        combination.needs.sort();
        combination.needs.dedup();
    }
    all
}

/// Later settings win; of tables the keys do.
fn merge(settings: &mut Vec<Setting>, more: &[Setting]) {
    for (name, value) in more {
        match (settings.iter_mut().find(|(known, _)| known == name), value) {
            (Some((_, Value::Table(known))), Value::Table(more)) => merge(known, more),
            (Some((_, known)), value) => *known = value.clone(),
            (None, value) => settings.push((name.clone(), value.clone())),
        }
    }
}

fn text_of<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().find_map(|(known, value)| match value {
        Value::Text(text) if known == name => Some(text.as_str()),
        _ => None,
    })
}

/// What no single setting shows.
fn check(source: Source<'_>, combination: &Combination) -> Result<(), ExperimentError> {
    let has = |name: &str| combination.settings.iter().any(|(known, _)| known == name);
    let of = || {
        let level = |(factor, level): &(String, String)| format!("{factor} = {level}");
        match combination.factors.is_empty() {
            true => "this experiment".to_owned(),
            false => combination.factors.iter().map(level).collect::<Vec<_>>().join(", "),
        }
    };
    if !has("workload") {
        let cure = "add workload = \"ycsb:a\" to [settings] or make it a factor";
        return Err(source.error(0, format!("{} has no workload", of()), cure));
    }
    for (one, other) in [
        ("ops", "duration"),
        ("rate", "throttle"),
        ("database", "target"),
        ("load", "skip-load"),
        ("cassandra-home", "version"),
        ("heap", "heap-total"),
    ] {
        if has(one) && has(other) {
            let what = format!("{} has both {one} and {other}", of());
            return Err(source.error(0, what, format!("leave {one} or {other} out")));
        }
    }
    keeps(source, &combination.settings, &of())
}

/// Whether data can be kept where that is asked.
fn keeps(source: Source<'_>, settings: &[Setting], of: &str) -> Result<(), ExperimentError> {
    let text = |name: &str| text_of(settings, name);
    let is_running = settings.iter().any(|(name, _)| name == "target");
    if text("data") != Some("keep") || is_running {
        return Ok(());
    }
    let refused = |why: &str, cure: &str| {
        Err(source.error(0, format!("{of} keeps its data, and {why}"), cure))
    };
    if text("database").is_none_or(|name| name == DATABASES[0]) {
        let why = "the reference target has them in memory: they end with it";
        return refused(why, "give data = \"wipe\", or another database");
    }
    if text("data-dir").is_some() {
        let why = "they are kept in the run directory, not in data-dir";
        return refused(why, "leave data-dir out, and give --out on the disk that is meant");
    }
    match text("load") {
        Some("true") => refused("load = true would write them anew", "leave one of them out"),
        _ => Ok(()),
    }
}

fn planned(experiment: &Experiment, combinations: &[Combination]) -> Vec<Planned> {
    let blocks = 0..experiment.repetitions;
    let order: Vec<(u32, usize)> = match experiment.order {
        Order::Listed => {
            let repeats = |c: usize| blocks.clone().map(move |block| (block, c));
            (0..combinations.len()).flat_map(repeats).collect()
        }
        Order::Interleaved => {
            let block = |block: u32| {
                let pair = experiment.seed.wrapping_add(u64::from(block / 2));
                let mut drawn = analyze::drawn_order(combinations.len(), pair);
                if block % 2 == 1 {
                    drawn.reverse();
                }
                drawn.into_iter().map(move |c| (block, c))
            };
            blocks.flat_map(block).collect()
        }
    };
    let trial = |(number, (block, at)): (u32, (u32, usize))| {
        let Combination { factors, settings, needs } = combinations[at].clone();
        let expected = expected(&settings);
        let seed = experiment.seed.wrapping_add(u64::from(block));
        Planned {
            number,
            block: block + 1,
            factors,
            settings,
            needs,
            data_of: None,
            seed,
            expected,
        }
    };
    let mut trials: Vec<Planned> = (1..).zip(order).map(trial).collect();
    share_data(&mut trials);
    trials
}

/// Which trials work on the same data.
fn share_data(trials: &mut [Planned]) {
    let mut known: Vec<(Vec<Setting>, u32)> = Vec::new();
    for trial in trials {
        let is_kept = text_of(&trial.settings, "data") == Some("keep");
        if !is_kept || trial.settings.iter().any(|(name, _)| name == "target") {
            continue;
        }
        let of_data = |(name, _): &&Setting| !OF_THE_LOAD.contains(&name.as_str());
        let mut of: Vec<Setting> = trial.settings.iter().filter(of_data).cloned().collect();
        of.sort_by(|a, b| a.0.cmp(&b.0));
        let first = known.iter().find(|(settings, _)| *settings == of).map(|(_, first)| *first);
        if first.is_none() {
            known.push((of, trial.number));
        }
        trial.data_of = Some(first.unwrap_or(trial.number));
    }
}

/// From the settings, and from what a run does without them.
fn expected(settings: &[Setting]) -> Expected {
    let text = |name: &str| text_of(settings, name);
    let time = |name: &str| text(name).and_then(|text| text.parse::<Nanos>().ok());
    let count = |name: &str| text(name).and_then(|text| text.parse::<Count>().ok());
    let rate = |name: &str| text(name).and_then(|text| text.parse::<Rate>().ok());
    let is_running = settings.iter().any(|(name, _)| name == "target");
    let is_reference = !is_running && text("database").is_none_or(|name| name == DATABASES[0]);
    let is_cassandra = text("database") == Some("cassandra");
    // What the machines of these tests reach; `expected-rate` says better.
    let ops_s = rate("expected-rate").map_or(if is_reference { 1e5 } else { 2e4 }, Rate::per_s);
    let at = |n: u64, per_s: f64| Nanos((n as f64 / per_s.max(1e-9) * 1e9) as u64);
    let skips = text("skip-load") == Some("true");
    let paced = rate("rate").or(rate("throttle")).map_or(ops_s, Rate::per_s);
    Expected {
        start: time("expected-start").unwrap_or(match (is_reference || is_running, is_cassandra) {
            (true, _) => Nanos::from_secs(1),
            (_, true) => Nanos::from_secs(25),
            _ => Nanos::from_secs(60),
        }),
        load: match skips {
            true => Nanos::ZERO,
            false => at(count("records").map_or(RECORDS, |n| n.0), ops_s),
        },
        settle: match is_reference {
            true => Nanos::ZERO,
            false => time("settle").unwrap_or(SETTLE),
        },
        warm: match text("warm") {
            Some("auto") => time("warm-max").unwrap_or(WARM_MAX),
            _ => time("warm").unwrap_or(WARM),
        },
        measure: match count("ops") {
            Some(ops) => at(ops.0, paced),
            None => time("duration").unwrap_or(DURATION),
        },
    }
}

impl Planned {
    /// The levels of its factors: `layout single, threads 64`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let level = |(factor, level): &(String, String)| format!("{factor} {level}");
        self.factors.iter().map(level).collect::<Vec<_>>().join(", ")
    }

    /// The words of `wideload run` for this trial, without the program's name. Settings of one
    /// database are left out of trials of another.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let database = text_of(&self.settings, "database").unwrap_or(DATABASES[0]);
        const OF_CASSANDRA: [&str; 9] = [
            "version",
            "cassandra-home",
            "java-home",
            "heap",
            "heap-total",
            "listen",
            "data-dir",
            "jvm",
            "cassandra",
        ];
        let mut words = Vec::new();
        let mut push = |flag: &str, value: &str| words.push(format!("{flag}={value}"));
        let mut workload = Vec::new();
        for (name, value) in &self.settings {
            if OF_CASSANDRA.contains(&name.as_str()) && database != "cassandra" {
                continue;
            }
            let usage = words::find(name).map_or(Use::Plan, |word| word.usage);
            match (usage, value) {
                (Use::Workload, value) => workload.push(value.to_string()),
                (Use::Target, Value::List(hosts)) => push("--target", &hosts.join(",")),
                (Use::Target, Value::Text(name)) if name == "cassandra" => push("--target", name),
                (Use::Flag, Value::Text(text)) if text == "true" => {
                    workload.push(format!("--{name}"));
                }
                (Use::Flag, Value::Text(text)) if text != "false" => {
                    push(&format!("--{name}"), text);
                }
                (Use::Called(flag), Value::Text(text)) => push(flag, text),
                (Use::Called(flag), Value::List(items)) => {
                    items.iter().for_each(|item| push(flag, item));
                }
                (Use::Called(flag), Value::Table(entries)) => {
                    let prefix = if name == "cassandra" { "cassandra." } else { "" };
                    flat(prefix, entries, &mut |key, value| push(flag, &format!("{key}={value}")));
                }
                _ => {}
            }
        }
        push("--seed", &self.seed.to_string());
        workload.into_iter().chain(words).collect()
    }
}

/// Nested keys, with dots between them.
fn flat(prefix: &str, entries: &[Setting], take: &mut dyn FnMut(&str, &str)) {
    for (key, value) in entries {
        match value {
            Value::Table(inner) => flat(&format!("{prefix}{key}."), inner, take),
            value => take(&format!("{prefix}{key}"), &value.to_string()),
        }
    }
}
