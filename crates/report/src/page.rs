//! What the page says: from a loaded run to the values of the template.
//!
//! Texts that come from users (names, paths, flags, hosts) are escaped by the template engine; only
//! the drawings of `svg`, the data of `chart` and the links of `glossary` go in as they are, which
//! escape for themselves.

use crate::chart::{Chart, Drawn};
use crate::counters::Balance;
use crate::events::{Event, median};
use crate::facts::{self, Group};
use crate::glossary::Used;
use crate::latency_table::{LatencyTables, Section};
use crate::load::{Run, Trial};
use crate::number::{grouped, latency, percent, short, significant};
use crate::outcome::{Outcome, Shown};
use crate::plots::{self, Plots, response_given};
use crate::series::{LAST_SHARE_MIN, Moment};
use crate::tables::{self, LatencyRow};
use crate::trials::{self, Trials};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use record::summary::Target;
use record::{Caveat, Manifest, Summary, Verdict};
use serde::Serialize;

/// Code of the caveat that the banner stands for.
const STAND_IN: &str = "stand-in";
/// Intervals that a statement about their spread needs.
const INTERVALS_MIN: usize = 10;
/// The plots' answers to pointer and keys, in one scope.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../assets/plot/text.js"),
    include_str!("../assets/plot/axes.js"),
    include_str!("../assets/plot/drawing.js"),
    include_str!("../assets/plot/pointer.js"),
    "})();",
);
/// Operations with a tile of their own.
const TILES_MAX: usize = 3;

#[derive(Debug, Serialize)]
struct Page {
    title: String,
    /// Why the run has not ended as it should.
    broken: Option<String>,
    stand_in: Option<String>,
    stand_in_term: &'static str,
    verdict: &'static str,
    verdict_text: String,
    lead: Option<String>,
    surely: Vec<String>,
    started: String,
    ended: Option<String>,
    version: String,
    command: String,
    /// The same with the seed, when the command leaves it to chance.
    seeded: Option<String>,
    run: String,
    caveats: Vec<Caveat>,
    outcome: Option<Shown>,
    outcome_charts: Vec<Drawn>,
    trials: Option<Trials>,
    trial_charts: Vec<Drawn>,
    latency_table: Option<Section>,
    details: Vec<Detail>,
    settings: Vec<Group>,
    host: Vec<Group>,
    target: Vec<Group>,
    notes: Vec<String>,
    files: Vec<String>,
}

/// A trial with all its figures.
#[derive(Debug, Serialize)]
struct Detail {
    number: u32,
    headline: Vec<Tile>,
    caveats: Vec<Caveat>,
    failure: Option<String>,
    unit: &'static str,
    latencies: Vec<LatencyRow>,
    thin: bool,
    rate_missed: bool,
    outcomes: Vec<tables::Row>,
    cost: Vec<tables::Row>,
    percentiles: Vec<Drawn>,
    course: Vec<Drawn>,
    workers: Vec<Drawn>,
    counters: Vec<Drawn>,
    balance: Vec<Balance>,
    zero: Vec<String>,
    left_out: usize,
    events: Vec<Listed>,
    events_more: usize,
    seeds: String,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Tile {
    name: String,
    value: String,
    note: String,
}

/// An event in the list.
#[derive(Debug, Serialize)]
struct Listed {
    when: String,
    term: &'static str,
    bad: bool,
    text: String,
}

/// A run with its plots.
pub(crate) struct Report<'a> {
    run: &'a Run,
    outcome: Vec<Chart>,
    trials: Vec<Chart>,
    plots: Vec<(&'a Trial, Plots)>,
    /// Asked for.
    pub(crate) table: Option<LatencyTables>,
}

impl<'a> Report<'a> {
    /// Prepares all plots.
    pub(crate) fn new(run: &'a Run) -> Self {
        let detailed = run.detailed().count();
        let plots = run.detailed().map(|trial| (trial, plots::of(trial, detailed))).collect();
        let outcome = run.outcome.as_ref().map_or_else(Vec::new, Outcome::charts);
        Self { run, outcome, trials: plots::of_trials(run), plots, table: None }
    }

    /// Every plot of the page.
    pub(crate) fn charts(&self) -> impl Iterator<Item = &Chart> {
        let of_table = self.table.iter().flat_map(LatencyTables::charts);
        let of_trials = self.outcome.iter().chain(&self.trials).chain(of_table);
        of_trials.chain(self.plots.iter().flat_map(|(_, plots)| plots.charts()))
    }

    /// The page.
    pub(crate) fn render(&self) -> Result<String, minijinja::Error> {
        let mut templates = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        templates.set_syntax(syntax);
        let used = Used::default();
        let linked = used.clone();
        templates.add_function("term", move |term: String, text: Option<String>| {
            Value::from_safe_string(linked.link(&term, text.as_deref().unwrap_or(&term)))
        });
        templates.add_function("glossary", move || Value::from(Serde(used.list())));
        templates.add_template("parts.html", include_str!("../assets/parts.html"))?;
        templates.add_template("report.html", include_str!("../assets/report.html"))?;
        templates.get_template("report.html")?.render(context! {
            page => Serde(self.page()),
            style => include_str!("../assets/report.css"),
            script => SCRIPT,
        })
    }

    fn page(&self) -> Page {
        let (run, manifest) = (self.run, &self.run.manifest);
        let summary = run.trials.iter().find_map(|trial| trial.summary.as_ref());
        let title = match summary {
            Some(s) if run.outcome.is_some() => {
                format!("{} on {}", manifest.name, target_text(&s.target))
            }
            Some(s) => format!("{} on {}", s.workload, target_text(&s.target)),
            None => manifest.name.clone(),
        };
        let draw = |charts: &[Chart]| charts.iter().map(Chart::draw).collect::<Vec<_>>();
        let several = run.trials.len() > 1;
        let is_stand_in = summary.is_some_and(|summary| stand_in(summary).is_some());
        Page {
            title,
            broken: broken(manifest),
            stand_in: summary.and_then(stand_in),
            stand_in_term: match summary.map(|s| s.target.kind.as_str()) {
                Some(Target::NULL_MOCK) => "mock",
                _ => "reference target",
            },
            verdict: match (manifest.verdict, caveat_count(run), is_stand_in) {
                (Verdict::Ok, 1.., _) | (Verdict::Ok, _, true) => "noted",
                (verdict, ..) => verdict.name(),
            },
            verdict_text: verdict_text(manifest, caveat_count(run), is_stand_in),
            lead: self.lead(summary),
            surely: self.surely(summary),
            started: manifest.started.clone(),
            ended: manifest.ended.clone(),
            version: format!("{} {}", manifest.tool.name, manifest.tool.version),
            command: shell_line(&manifest.command_line),
            seeded: seeded(manifest),
            run: shell_line(&[summary.map_or("RUN", |s| s.run.as_str()).to_owned()]),
            caveats: manifest.caveats.iter().filter(|c| is_listed(c)).cloned().collect(),
            outcome: run.outcome.as_ref().map(Outcome::shown),
            outcome_charts: draw(&self.outcome),
            trials: several.then(|| trials::table(run)),
            trial_charts: draw(&self.trials),
            latency_table: self.table.as_ref().map(LatencyTables::section),
            details: self.plots.iter().map(|(trial, p)| detail(trial, p, manifest)).collect(),
            settings: facts::settings(&manifest.settings),
            host: facts::host(&manifest.host),
            target: facts::target(&manifest.target),
            notes: run.notes.clone(),
            files: self.charts().map(|chart| chart.id.clone()).collect(),
        }
    }

    /// The result in one sentence: of the only trial, or of the median one of a load that was
    /// repeated.
    fn lead(&self, first: Option<&Summary>) -> Option<String> {
        let (run, manifest) = (self.run, &self.run.manifest);
        if let Some(repeats) = &manifest.repeats {
            let median = run.trials.iter().find(|t| t.number == repeats.median_trial)?;
            let sentence = lead(median.summary.as_ref()?, manifest);
            return Some(format!("Median trial, number {}: {sentence}", repeats.median_trial));
        }
        first.filter(|_| run.trials.len() == 1).map(|summary| lead(summary, manifest))
    }

    /// How far the headline can be relied on.
    fn surely(&self, summary: Option<&Summary>) -> Vec<String> {
        let mut sentences = Vec::new();
        if summary.is_some() {
            sentences.extend(trials::spread(self.run));
        }
        let first = self.plots.first().filter(|_| self.run.trials.len() == 1);
        sentences.extend(first.and_then(|(trial, _)| within(&trial.timeline.moments)));
        sentences.extend(first.and_then(|(trial, _)| too_short(trial.manifest.as_ref()?)));
        sentences
    }
}

/// That nothing is said about steadiness, and why.
fn too_short(manifest: &Manifest) -> Option<String> {
    let window = manifest.phases.get("window")?;
    let (blocks, needed) = (window["blocks"].as_u64()?, window["blocks_needed"].as_u64()?);
    (window["state"] == "too-short-to-tell").then(|| {
        format!(
            "Whether it was steady cannot be told: the window has {blocks} blocks, {needed} are \
             needed."
        )
    })
}

/// The banner says what the target is; the caveat of it would say it once more.
fn is_listed(caveat: &Caveat) -> bool {
    caveat.code != STAND_IN
}

/// How the throughput varied from interval to interval.
fn within(moments: &[Moment]) -> Option<String> {
    let length_s = median(moments.iter().map(|m| m.to_s - m.from_s));
    let whole = moments.iter().filter(|m| m.to_s - m.from_s >= length_s * LAST_SHARE_MIN);
    let mut rates: Vec<f64> = whole.map(Moment::ok_s).collect();
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| rates.get((share * (rates.len() - 1) as f64).round() as usize).copied();
    if rates.len() < INTERVALS_MIN {
        return None;
    }
    let (low, high) = (at(0.05)?, at(0.95)?);
    Some(format!(
        "Within the trial 9 of 10 intervals of {} s were between {} and {} op/s.",
        short(length_s),
        significant(low),
        significant(high)
    ))
}

/// The result in one sentence.
fn lead(summary: &Summary, manifest: &Manifest) -> String {
    let threads = manifest.settings.get("threads").and_then(serde_json::Value::as_u64);
    let load = match (summary.scheduled_rate_s, threads) {
        (Some(rate), _) => format!("open loop at {} op/s", significant(rate)),
        (None, Some(threads)) => format!("{} clients in a closed loop", grouped(threads)),
        (None, None) => "closed loop".to_owned(),
    };
    let p99 = summary.latency_us.iter().take(TILES_MAX).filter_map(|(name, op)| {
        let (kind, stats) = op.response.map_or(("service", op.service), |s| ("response", Some(s)));
        Some(format!("{name} {} ({kind})", latency(stats?.p99)))
    });
    let p99 = p99.collect::<Vec<_>>().join(", ");
    let p99 = if p99.is_empty() { p99 } else { format!("; p99: {p99}") };
    format!(
        "{} op/s over {} s, {load}{p99}.",
        significant(summary.ops_s),
        significant(summary.duration_s)
    )
}

/// What stands before everything on the page of a run that did not end as it should.
fn broken(manifest: &Manifest) -> Option<String> {
    let why = manifest.failure.as_ref().map_or(".".to_owned(), |why| format!(": {why}"));
    match manifest.verdict {
        Verdict::Ok => None,
        Verdict::Failed => Some(format!("This run failed{why}")),
        Verdict::Interrupted => {
            Some(format!("This run was interrupted; below is what was measured until then{why}"))
        }
        Verdict::Running => Some(
            "How this run ended is not known: it is still running, it crashed, or its end could \
             not be written. Below is what was measured until then."
                .to_owned(),
        ),
    }
}

fn target_text(target: &Target) -> String {
    let kind = match target.kind.as_str() {
        Target::REFERENCE => "the reference target",
        Target::NULL_MOCK => "the null mock",
        kind => kind,
    };
    let version = target.version.as_ref().filter(|_| !target.is_stand_in());
    version.map_or_else(|| kind.to_owned(), |version| format!("{kind} {version}"))
}

/// The first line of a page whose target is no database: its caveat, or the same for a run that
/// has none.
fn stand_in(summary: &Summary) -> Option<String> {
    if let Some(caveat) = summary.caveats.iter().find(|caveat| !is_listed(caveat)) {
        return Some(caveat.text.clone());
    }
    let what = match summary.target.kind.as_str() {
        Target::REFERENCE => "the reference target embedded in wideload",
        Target::NULL_MOCK => "a mock that gives canned answers and stores nothing",
        _ => return None,
    };
    Some(format!(
        "This result says nothing about Cassandra, or about any other database: what was driven is \
         {what}."
    ))
}

/// Caveats of the run and its trials; one that several have counts once, whatever its evidence. The
/// run of an experiment has each that a trial of it has.
fn caveat_count(run: &Run) -> usize {
    if run.outcome.is_some() {
        return run.manifest.caveats.iter().filter(|c| is_listed(c)).count();
    }
    let mut all: Vec<&Caveat> = run.manifest.caveats.iter().filter(|c| is_listed(c)).collect();
    let of_trials = run.trials.iter().filter_map(|t| t.summary.as_ref()).flat_map(|s| &s.caveats);
    for caveat in of_trials.filter(|c| is_listed(c)) {
        if all.iter().all(|known| known.code != caveat.code) {
            all.push(caveat);
        }
    }
    all.len()
}

/// What a stand-in's banner says counts as a caveat.
fn verdict_text(manifest: &Manifest, caveats: usize, is_stand_in: bool) -> String {
    match (manifest.verdict, caveats, is_stand_in) {
        (Verdict::Ok, 0, false) => "Complete, without caveats".into(),
        (Verdict::Ok, 0, true) => "Complete; the caveat is what the target is".into(),
        (Verdict::Ok, 1, false) => "Complete, with 1 caveat".into(),
        (Verdict::Ok, n, false) => format!("Complete, with {n} caveats"),
        (Verdict::Ok, n, true) => format!("Complete, with {n} more caveat{}", plural(n)),
        (Verdict::Failed, ..) => "Failed".into(),
        (Verdict::Interrupted, ..) => "Interrupted: what was measured until then".into(),
        (Verdict::Running, ..) => "End unknown: still running, crashed, or not written".into(),
    }
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn detail(trial: &Trial, plots: &Plots, run: &Manifest) -> Detail {
    let summary = trial.summary.as_ref();
    let manifest = trial.manifest.as_ref();
    // What the run's head says already is not said again.
    let own = summary.into_iter().flat_map(|s| &s.caveats);
    let own = own.filter(|c| is_listed(c) && !run.caveats.contains(c));
    let failure =
        manifest.and_then(|m| m.failure.clone()).filter(|f| run.failure.as_ref() != Some(f));
    let (unit, latencies) =
        summary.map(|s| tables::latencies(s, trial)).unwrap_or(("µs", Vec::new()));
    let draw = |charts: &[Chart]| charts.iter().map(Chart::draw).collect::<Vec<_>>();
    Detail {
        number: trial.number,
        headline: summary.map(headline).unwrap_or_default(),
        caveats: own.cloned().collect(),
        failure,
        unit,
        thin: latencies.iter().any(LatencyRow::is_thin),
        latencies,
        rate_missed: summary.is_some_and(|s| !response_given(s)),
        outcomes: summary.map(tables::outcomes).unwrap_or_default(),
        cost: summary.map(tables::cost).unwrap_or_default(),
        percentiles: draw(&plots.percentiles),
        course: draw(&plots.course),
        workers: draw(&plots.workers),
        counters: draw(&plots.counters),
        balance: plots.balance.clone(),
        zero: plots.zero.clone(),
        left_out: plots.left_out,
        events: plots.events.iter().map(listed).collect(),
        events_more: plots.events_more,
        seeds: manifest.map(seeds).unwrap_or_default(),
        notes: trial.notes.clone(),
    }
}

fn listed(event: &Event) -> Listed {
    Listed {
        when: format!("{}–{} s", short(event.from_s), short(event.to_s)),
        term: event.kind.term(),
        bad: event.kind.is_bad(),
        text: event.text.clone(),
    }
}

/// The figures that a reader looks for first.
fn headline(summary: &Summary) -> Vec<Tile> {
    let mut tiles = vec![Tile {
        name: "throughput".into(),
        value: format!("{} op/s", significant(summary.ops_s)),
        note: match summary.scheduled_rate_s {
            Some(rate) => format!("ok operations; scheduled {}/s", significant(rate)),
            None => "ok operations, closed loop".into(),
        },
    }];
    for (name, op) in summary.latency_us.iter().take(TILES_MAX) {
        let (kind, stats) = match op.response {
            Some(stats) => ("response", Some(stats)),
            None => ("service", op.service),
        };
        if let Some(stats) = stats {
            tiles.push(Tile {
                name: format!("{name}, p99 {kind}"),
                value: latency(stats.p99),
                note: format!("median {}, max {}", latency(stats.p50), latency(stats.max)),
            });
        }
    }
    let total = summary.ops.max(1) as f64;
    tiles.push(Tile {
        name: "errors".into(),
        value: grouped(summary.errors),
        note: format!(
            "{} of {} operations in {} s",
            percent(summary.errors as f64 / total),
            grouped(summary.ops),
            significant(summary.duration_s)
        ),
    });
    tiles
}

fn seeds(manifest: &Manifest) -> String {
    let seeds: Vec<_> =
        manifest.seeds.iter().map(|(part, seed)| format!("{part} {seed}")).collect();
    seeds.join(", ")
}

/// The command with the seed that was drawn, when it names none.
fn seeded(manifest: &Manifest) -> Option<String> {
    let seed = manifest.settings.get("seed")?.as_u64()?;
    let named = |argument: &String| argument == "--seed" || argument.starts_with("--seed=");
    if manifest.command_line.iter().any(named) {
        return None;
    }
    Some(format!("{} --seed {seed}", shell_line(&manifest.command_line)))
}

/// The arguments as one line that a shell takes.
fn shell_line(arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = arguments.iter().map(|argument| {
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted() {
        let line = ["wideload", "run", "ycsb:a", "-p", "a b", "--name", "it's", ""];
        let line = shell_line(&line.map(String::from));
        assert_eq!(line, r"wideload run ycsb:a -p 'a b' --name 'it'\''s' ''");
    }

    #[test]
    fn a_command_without_a_seed_gets_the_one_that_was_drawn() {
        let line = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
            let mut manifest = Manifest::starting("x", arguments, units::Nanos::ZERO);
            manifest.settings.insert("seed".into(), 7.into());
            seeded(&manifest)
        };
        assert_eq!(line(&["wideload", "run"]).unwrap(), "wideload run --seed 7");
        assert_eq!(line(&["wideload", "run", "--seed", "7"]), None);
    }

    #[test]
    fn the_spread_needs_intervals_and_leaves_out_the_short_rest() {
        let moment = |second: u64, length_s: f64, ok: u64| {
            let mut outcomes = [0; record::Outcome::COUNT];
            outcomes[0] = ok;
            let from_s = second as f64;
            Moment { from_s, to_s: from_s + length_s, outcomes, p99_us: 1.0 }
        };
        let mut moments: Vec<_> = (0..20).map(|s| moment(s, 1.0, 1000 + s)).collect();
        moments.push(moment(20, 0.01, 1));
        let said = within(&moments).unwrap();
        let range = format!("between {} and {} op/s", grouped(1001), grouped(1018));
        assert!(said.contains(&range), "{said}");
        assert_eq!(within(&moments[..5]), None);
    }
}
