//! What the page says: from a loaded run to the values of the template.
//!
//! Texts that come from users (names, paths, flags, hosts) are escaped by the template engine; only
//! the drawings of `svg` go in as they are.

use crate::load::{Run, Trial};
use crate::number::{fixed, grouped, latency, percent, significant};
use crate::plots::{self, response_given};
use crate::svg::Drawn;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use record::summary::{OpSummary, Stats, Target};
use record::{Caveat, Manifest, Outcome, Series, Summary, Tag, Verdict};
use serde::Serialize;
use serde_json::Value;

/// Rows of a table of settings or host facts; a machine of 1000 cpus has more facts than readers.
const FACTS_MAX: usize = 250;
/// From this on a table of latencies is in milliseconds.
const MILLISECONDS_FROM_US: f64 = 100_000.0;
/// Samples that must lie above a percentile for it to be shown without a mark.
const SAMPLES_ABOVE_MIN: u64 = 10;

#[derive(Debug, Serialize)]
struct Page {
    title: String,
    stand_in: Option<String>,
    verdict: &'static str,
    verdict_text: String,
    failure: Option<String>,
    started: String,
    ended: Option<String>,
    version: String,
    command: String,
    caveats: Vec<Caveat>,
    trials: Vec<Row>,
    details: Vec<Detail>,
    settings: Facts,
    host: Facts,
    target: Facts,
}

/// A trial in the table of trials.
#[derive(Debug, Serialize)]
struct Row {
    number: u32,
    verdict: &'static str,
    ops_s: String,
    errors: String,
    ops: Vec<(String, String, String)>,
    caveats: Vec<String>,
    detailed: bool,
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
    outcomes: Vec<(String, String, String)>,
    cost: Vec<(&'static str, String)>,
    charts: Vec<Drawn>,
    seeds: String,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Tile {
    name: String,
    value: String,
    note: String,
}

/// One line of the table of latencies: mean, p50, p90, p99, p99.9, max.
#[derive(Debug, Serialize)]
struct LatencyRow {
    op: String,
    kind: String,
    first: bool,
    count: String,
    values: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    text: String,
    thin: bool,
}

#[derive(Debug, Default, Serialize)]
struct Facts {
    rows: Vec<(String, String)>,
    left_out: usize,
}

/// The page of a run.
pub(crate) fn render(run: &Run) -> Result<String, minijinja::Error> {
    let mut templates = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    templates.set_syntax(syntax);
    templates.add_template("report.html", include_str!("../assets/report.html"))?;
    templates.get_template("report.html")?.render(context! {
        page => Serde(page(run)),
        style => include_str!("../assets/report.css"),
        script => include_str!("../assets/hover.js"),
    })
}

fn page(run: &Run) -> Page {
    let manifest = &run.manifest;
    let summary = run.trials.iter().find_map(|trial| trial.summary.as_ref());
    let title = match summary {
        Some(s) => format!("{} on {}", s.workload, target_text(&s.target)),
        None => manifest.name.clone(),
    };
    let detailed = run.trials.iter().filter(|trial| trial.detailed);
    Page {
        title,
        stand_in: summary.and_then(|s| stand_in(&s.target)),
        verdict: match (manifest.verdict, caveat_count(run)) {
            (Verdict::Ok, 1..) => "noted",
            (verdict, _) => verdict.name(),
        },
        verdict_text: verdict_text(manifest, caveat_count(run)),
        failure: manifest.failure.clone(),
        started: manifest.started.clone(),
        ended: manifest.ended.clone(),
        version: format!("{} {}", manifest.tool.name, manifest.tool.version),
        command: shell_line(&manifest.command_line),
        caveats: manifest.caveats.clone(),
        trials: run.trials.iter().map(row).collect(),
        details: detailed.map(|trial| detail(trial, manifest)).collect(),
        settings: facts(&Value::Object(manifest.settings.clone())),
        host: facts(&manifest.host),
        target: facts(&manifest.target),
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

/// The first line of a page whose target is no database.
fn stand_in(target: &Target) -> Option<String> {
    let what = match target.kind.as_str() {
        Target::REFERENCE => "the reference target embedded in wideload",
        Target::NULL_MOCK => "a mock that gives canned answers and stores nothing",
        _ => return None,
    };
    Some(format!(
        "This result says nothing about Cassandra, or about any other database: what was driven is \
         {what}."
    ))
}

/// Caveats of the run and its trials; one that is in both counts once.
fn caveat_count(run: &Run) -> usize {
    let mut all: Vec<&Caveat> = run.manifest.caveats.iter().collect();
    for caveat in run.trials.iter().filter_map(|t| t.summary.as_ref()).flat_map(|s| &s.caveats) {
        if !all.contains(&caveat) {
            all.push(caveat);
        }
    }
    all.len()
}

fn verdict_text(manifest: &Manifest, caveats: usize) -> String {
    match (manifest.verdict, caveats) {
        (Verdict::Ok, 0) => "Complete, without caveats".into(),
        (Verdict::Ok, 1) => "Complete, with 1 caveat".into(),
        (Verdict::Ok, n) => format!("Complete, with {n} caveats"),
        (Verdict::Failed, _) => "Failed".into(),
        (Verdict::Interrupted, _) => "Interrupted: what was measured until then".into(),
        (Verdict::Running, _) => "Not ended: still running, or crashed".into(),
    }
}

fn row(trial: &Trial) -> Row {
    let verdict = trial.manifest.as_ref().map_or("unknown", |m| m.verdict.name());
    let summary = trial.summary.as_ref();
    let p99 = |stats: Option<Stats>| stats.map_or_else(|| "–".into(), |s| latency(s.p99));
    let ops = summary.into_iter().flat_map(|s| &s.latency_us);
    Row {
        number: trial.number,
        verdict,
        ops_s: summary.map_or_else(|| "–".into(), |s| significant(s.ops_s)),
        errors: summary.map_or_else(|| "–".into(), |s| grouped(s.errors)),
        ops: ops.map(|(name, op)| (name.clone(), p99(op.service), p99(op.response))).collect(),
        caveats: summary.into_iter().flat_map(|s| &s.caveats).map(|c| c.code.clone()).collect(),
        detailed: trial.detailed,
    }
}

fn detail(trial: &Trial, run: &Manifest) -> Detail {
    let summary = trial.summary.as_ref();
    let manifest = trial.manifest.as_ref();
    // What the run's head says already is not said again.
    let own = summary.into_iter().flat_map(|s| &s.caveats).filter(|c| !run.caveats.contains(c));
    let failure =
        manifest.and_then(|m| m.failure.clone()).filter(|f| run.failure.as_ref() != Some(f));
    let (unit, latencies) = summary.map(|s| latencies(s, trial)).unwrap_or(("µs", Vec::new()));
    Detail {
        number: trial.number,
        headline: summary.map(headline).unwrap_or_default(),
        caveats: own.cloned().collect(),
        failure,
        unit,
        thin: latencies.iter().flat_map(|row| &row.values).any(|cell| cell.thin),
        latencies,
        rate_missed: summary.is_some_and(|s| !response_given(s)),
        outcomes: summary.map(outcomes).unwrap_or_default(),
        cost: summary.map(cost).unwrap_or_default(),
        charts: plots::of(trial),
        seeds: manifest.map(seeds).unwrap_or_default(),
        notes: trial.notes.clone(),
    }
}

/// The figures that a reader looks for first.
fn headline(summary: &Summary) -> Vec<Tile> {
    let scheduled = summary.scheduled_rate_s;
    let mut tiles = vec![Tile {
        name: "throughput".into(),
        value: format!("{} op/s", significant(summary.ops_s)),
        note: match scheduled {
            Some(rate) => format!("ok operations; scheduled {}/s", significant(rate)),
            None => "ok operations, closed loop".into(),
        },
    }];
    for (name, op) in summary.latency_us.iter().take(3) {
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

/// The unit of the table and its rows.
fn latencies(summary: &Summary, trial: &Trial) -> (&'static str, Vec<LatencyRow>) {
    let all = summary.latency_us.values();
    let all = all.flat_map(|op| [op.service, op.response, op.lag]).flatten();
    let in_ms = all.map(|stats| stats.max).fold(0.0, f64::max) >= MILLISECONDS_FROM_US;
    let mut rows = Vec::new();
    for (name, op) in &summary.latency_us {
        rows.extend(op_rows(name, op, trial, in_ms));
    }
    (if in_ms { "ms" } else { "µs" }, rows)
}

fn op_rows(name: &str, op: &OpSummary, trial: &Trial, in_ms: bool) -> Vec<LatencyRow> {
    let mut kinds = vec![
        ("service".to_owned(), Series::Service, op.service),
        ("response".to_owned(), Series::Response, op.response),
        ("lag".to_owned(), Series::Lag, op.lag),
    ];
    for (step, stats) in &op.parts {
        kinds.push((format!("step {step}, service"), Series::Part(step.clone()), *stats));
    }
    let rows = kinds.into_iter().enumerate().map(|(i, (kind, series, stats))| {
        let tag = Tag { op: name.to_owned(), series }.to_string();
        let total = trial.totals.iter().find(|(found, _)| *found == tag);
        // Without the histogram the count of the operation stands in, an upper bound.
        let count = total.map_or(op.ops, |(_, latency)| latency.count());
        LatencyRow {
            op: name.to_owned(),
            kind,
            first: i == 0,
            count: if stats.is_some() { grouped(count) } else { "–".into() },
            values: cells(stats, count, in_ms),
        }
    });
    rows.collect()
}

fn cells(stats: Option<Stats>, count: u64, in_ms: bool) -> Vec<Cell> {
    let Some(s) = stats else {
        return (0..6).map(|_| Cell { text: "–".into(), thin: false }).collect();
    };
    // Of the percentiles one sample in so many lies above; mean and maximum need none.
    [(s.mean, 0), (s.p50, 2), (s.p90, 10), (s.p99, 100), (s.p999, 1000), (s.max, 0)]
        .into_iter()
        .map(|(us, one_in)| Cell {
            text: if in_ms { fixed(us / 1e3, 3) } else { fixed(us, 1) },
            thin: one_in > 0 && count / one_in < SAMPLES_ABOVE_MIN,
        })
        .collect()
}

fn outcomes(summary: &Summary) -> Vec<(String, String, String)> {
    let total = summary.ops.max(1) as f64;
    let shown = summary.outcomes.iter().filter(|&(outcome, n)| n > 0 || outcome == Outcome::Ok);
    shown
        .map(|(outcome, n)| {
            (outcome.name().replace('_', " "), grouped(n), percent(n as f64 / total))
        })
        .collect()
}

fn cost(summary: &Summary) -> Vec<(&'static str, String)> {
    let client = &summary.client;
    let with = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(|| "not measured".into(), text)
    };
    vec![
        (
            "CPU time per operation",
            with(client.cpu_us_per_op, |v| format!("{} µs", significant(v))),
        ),
        ("system calls per operation", with(client.syscalls_per_op, significant)),
        ("busiest worker", with(client.busy_max, percent)),
        ("spinning for precise timing", with(client.spin_share, percent)),
        ("largest resident set", with(client.rss_mib_max, |v| format!("{} MiB", significant(v)))),
    ]
}

fn seeds(manifest: &Manifest) -> String {
    let seeds: Vec<_> =
        manifest.seeds.iter().map(|(part, seed)| format!("{part} {seed}")).collect();
    seeds.join(", ")
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

/// A JSON value as rows of dotted path and text.
fn facts(value: &Value) -> Facts {
    let mut facts = Facts::default();
    flatten("", value, &mut facts);
    facts
}

fn flatten(path: &str, value: &Value, facts: &mut Facts) {
    let below = |key: &str| if path.is_empty() { key.into() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&below(k), v, facts)),
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(i, item)| flatten(&below(&i.to_string()), item, facts));
        }
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().map(scalar).collect();
            add(facts, path, texts.join(", "));
        }
        Value::Null => {}
        other => add(facts, path, scalar(other)),
    }
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn add(facts: &mut Facts, path: &str, text: String) {
    if facts.rows.len() < FACTS_MAX {
        facts.rows.push((path.to_owned(), text));
    } else {
        facts.left_out += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_command_can_be_pasted() {
        let line = ["wideload", "run", "ycsb:a", "-p", "a b", "--name", "it's", ""];
        let line = shell_line(&line.map(String::from));
        assert_eq!(line, r"wideload run ycsb:a -p 'a b' --name 'it'\''s' ''");
    }

    #[test]
    fn facts_are_flat_and_bounded() {
        let value =
            json!({"cpu": {"model": "x", "ids": [1, 2]}, "swap": null, "nics": [{"a": true}]});
        let rows = facts(&value).rows;
        let expected = [("cpu.model", "x"), ("cpu.ids", "1, 2"), ("nics.0.a", "true")];
        assert_eq!(rows, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let many: Vec<_> = (0..300).map(|i| json!({ "i": i })).collect();
        let facts = facts(&Value::Array(many));
        assert_eq!((facts.rows.len(), facts.left_out), (FACTS_MAX, 50));
    }

    #[test]
    fn percentiles_without_samples_above_are_marked() {
        let s = Stats { mean: 1.0, p50: 1.0, p90: 1.0, p99: 1.0, p999: 1234.5, max: 2.0 };
        let thin = |count| cells(Some(s), count, false).iter().map(|c| c.thin).collect::<Vec<_>>();
        assert_eq!(thin(9_999), [false, false, false, false, true, false]);
        assert_eq!(thin(10_000), [false; 6]);
        assert_eq!(cells(Some(s), 1, true)[4].text, "1.234");
    }
}
