//! The result as text: one headline first, then what it rests on. A number never stands without its
//! caveats.
//!
//! Input: a finished trial. Output: lines of at most 80 columns; only paths are longer, so that
//! they can be copied. Times are microseconds, or milliseconds in the whole table when one of them
//! is too long.

use crate::style::Style;
use crate::text::{COLUMNS, TIE, wrap};
use lab::Finished;
use record::repeats::{Repeats, Spread};
use record::summary::{ShardBalance, Stats, Summary};
use record::{Caveat, Verdict};
use std::fmt::Write as _;

/// Width of a number of the table, the space before it included.
const CELL: usize = 9;
/// From here on microseconds do not fit their column.
const MICROSECONDS_MAX: f64 = 1e6;

/// The block that a run prints.
pub(crate) fn block(finished: &Finished, style: Style) -> String {
    let summary = &finished.summary;
    let mut text = String::new();
    // Before any number: whose numbers these are not.
    let (stand_in, caveats): (Vec<_>, Vec<_>) =
        summary.caveats.iter().partition(|caveat| caveat.code == lab::STAND_IN);
    for caveat in stand_in {
        push(&mut text, &wrap(&caveat.text, "", ""));
    }
    for line in wrap(&headline(summary, finished.verdict), "", "  ").lines() {
        let line = match finished.verdict {
            Verdict::Ok => style.bold(line),
            _ => style.red(line),
        };
        push(&mut text, &line);
    }
    if let Some(failure) = &finished.failure {
        push(&mut text, &style.red(&wrap(failure, "  ! ", "    ")));
    }
    for caveat in caveats {
        push(&mut text, &told(caveat, style));
    }
    text.push('\n');
    table(&mut text, summary);
    text.push('\n');
    push(&mut text, &wrap(&outcomes(summary), "outcomes  ", "          "));
    if let Some(shards) = &summary.shards {
        push(&mut text, &wrap(&balance(shards), "shards    ", "          "));
    }
    if let Some(repeats) = &summary.repeats {
        push(&mut text, &wrap(&repeated(repeats), "repeats   ", "          "));
    }
    push(&mut text, &wrap(&client(summary), "client    ", "          "));
    if let Some(why) = &finished.too_short {
        push(&mut text, &wrap(why, "steady    ", "          "));
    }
    let _ = writeln!(text, "run       {}", finished.run_dir.display());
    let _ = writeln!(text, "report    {}", finished.report.display());
    text
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn headline(summary: &Summary, verdict: Verdict) -> String {
    let state = match verdict {
        Verdict::Ok => "",
        Verdict::Failed => "FAILED: ",
        Verdict::Interrupted => "INTERRUPTED: ",
        Verdict::Running => "UNFINISHED: ",
    };
    let rate =
        summary.scheduled_rate_s.map_or(String::new(), |rate| format!(" of {rate:.0} scheduled"));
    format!(
        "{state}{} at {}: {:.0} op/s{rate}, {} operations in {:.2} s, {} errors",
        summary.workload,
        summary.target.kind,
        summary.ops_s,
        summary.ops,
        summary.duration_s,
        summary.errors
    )
}

/// The spread over trials; the rest of the block is of the median one.
fn repeated(repeats: &Repeats) -> String {
    let spread = |what: &str, spread: &Spread, digits: usize| {
        let Spread { median, interval: (from, to), interval_kind, .. } = spread;
        format!("{what} {median:.digits$} ({interval_kind} {from:.digits$} to {to:.digits$})")
    };
    let Repeats { asked, trials, median_trial, .. } = repeats;
    let mut parts = vec![
        format!("{} of {asked} trials, all else is of trial {median_trial}", trials.len()),
        spread("op/s", &repeats.ops_s, 0),
    ];
    for (what, of) in
        [("service p99 us", &repeats.service_us_p99), ("response p99 us", &repeats.response_us_p99)]
    {
        parts.extend(of.as_ref().map(|of| spread(what, of, 1)));
    }
    parts.join("; ")
}

/// What is so, the evidence, what to do.
fn told(caveat: &Caveat, style: Style) -> String {
    let mut lines = style.yellow(&wrap(&caveat.text, "  ! ", "    "));
    for (head, more) in [("    evidence: ", &caveat.evidence), ("    cure: ", &caveat.cure)] {
        if !more.is_empty() {
            lines.push('\n');
            lines.push_str(&wrap(more, head, "      "));
        }
    }
    lines
}

fn table(text: &mut String, summary: &Summary) {
    let mut rows: Vec<(String, Option<Stats>)> = Vec::new();
    for (name, op) in &summary.latency_us {
        rows.push((format!("{name} service"), op.service));
        rows.extend(op.parts.iter().map(|(part, stats)| (format!("  {part}"), *stats)));
        rows.push((format!("{name} response"), op.response));
        rows.push((format!("{name} lag"), op.lag));
    }
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = longest.max(COLUMNS - 6 * CELL);
    let max_us = rows.iter().filter_map(|(_, stats)| stats.map(|s| s.max)).fold(0.0, f64::max);
    let in_ms = max_us >= MICROSECONDS_MAX;
    let head = if in_ms { "latency, ms" } else { "latency, us" };
    let _ = write!(text, "{head:<width$}");
    for column in ["mean", "p50", "p90", "p99", "p99.9", "max"] {
        let _ = write!(text, "{column:>CELL$}");
    }
    text.push('\n');
    for (name, stats) in rows {
        let _ = write!(text, "{name:<width$}");
        match stats {
            Some(s) => {
                for us in [s.mean, s.p50, s.p90, s.p99, s.p999, s.max] {
                    let _ = write!(text, "{:>CELL$}", if in_ms { ms(us) } else { decimal(us) });
                }
            }
            None => {
                let _ = write!(text, "{:>CELL$}", "-");
            }
        }
        text.push('\n');
    }
}

fn decimal(us: f64) -> String {
    format!("{us:.1}")
}

/// Up to an hour, the longest that is recorded, in at most 8 characters.
fn ms(us: f64) -> String {
    match us / 1e3 {
        ms if ms < 9_999.0 => format!("{ms:.3}"),
        ms if ms < 99_999.0 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

fn outcomes(summary: &Summary) -> String {
    let seen = summary.outcomes.iter().filter(|(_, count)| *count > 0);
    let seen: Vec<_> =
        seen.map(|(outcome, count)| format!("{}{TIE}{count}", outcome.name())).collect();
    seen.join(", ")
}

/// How evenly the requests lay on the shards.
fn balance(shards: &ShardBalance) -> String {
    let share = |requests: u64| 100.0 * requests as f64 / shards.requests.max(1) as f64;
    let (least, most) = (share(shards.least), share(shards.most));
    let ShardBalance { count, astray, .. } = shards;
    format!("{count}, each with {least:.2} to {most:.2} % of the requests; {astray} astray")
}

fn client(summary: &Summary) -> String {
    let c = &summary.client;
    let shown = |value: Option<f64>, unit: &str| value.map(|v| format!("{v:.2} {unit}"));
    let percent =
        |value: Option<f64>, what: &str| value.map(|v| format!("{what} {:.0} %", v * 100.0));
    [
        shown(c.cpu_us_per_op, "us cpu/op"),
        shown(c.syscalls_per_op, "system calls/op"),
        percent(c.busy_max, "busiest thread"),
        percent(c.spin_share.filter(|share| *share > 0.0), "polling"),
        shown(c.rss_mib_max, "MiB"),
    ]
    .into_iter()
    .flatten()
    .map(|item| item.replace(' ', &TIE.to_string()))
    .collect::<Vec<_>>()
    .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::summary::{ClientCost, OpSummary, Outcomes, Target};
    use std::collections::BTreeMap;

    fn finished(max_us: f64) -> Finished {
        let stats = |f: f64| {
            let (mean, p50, p90, p99) = (0.1 * f, 0.08 * f, 0.2 * f, 0.5 * f);
            Some(Stats { mean, p50, p90, p99, p999: 0.9 * f, max: f })
        };
        let op = OpSummary {
            ops: 7,
            errors: 0,
            service: stats(max_us),
            response: None,
            lag: stats(max_us / 1e6),
            parts: BTreeMap::from([("read".to_owned(), stats(max_us / 2.0))]),
        };
        let caveat = Caveat::new("client-busy", "A client thread was busy. ".repeat(6))
            .evidence("thread 0 worked 95 % of the window, which is what /proc tells of its time")
            .cure("wideload run ycsb:f --client-cpus 0-3");
        let summary = Summary {
            schema: 1,
            workload: "ycsb:f".into(),
            target: Target { kind: "cassandra".into(), version: None, protocol: Some(4) },
            ops: 123_456_789,
            ops_s: 1_234_567.8,
            duration_s: 3600.0,
            errors: 0,
            outcomes: Outcomes([123_456_789; record::Outcome::COUNT]),
            scheduled_rate_s: Some(2e6),
            latency_us: BTreeMap::from([("read-modify-write".to_owned(), op)]),
            client: ClientCost { cpu_us_per_op: Some(1.0), ..ClientCost::default() },
            caveats: vec![caveat],
            shards: None,
            repeats: None,
            run: "runs/x".into(),
        };
        Finished {
            summary,
            verdict: Verdict::Failed,
            failure: Some("nothing succeeded for 30s (--give-up); ".repeat(4)),
            too_short: Some("too short to tell: the window has 3 blocks, 10 are needed".into()),
            run_dir: "runs/x".into(),
            report: "runs/x/report.html".into(),
        }
    }

    #[test]
    fn every_line_fits_and_columns_stay_apart() {
        for (max_us, unit) in [(250.0, "us"), (999_999.9, "us"), (1e6, "ms"), (3.6e9, "ms")] {
            let text = block(&finished(max_us), Style::plain());
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{} columns: {line}", line.len());
            }
            assert!(text.contains(&format!("latency, {unit}")), "{text}");
            let row = text.lines().find(|l| l.starts_with("read-modify-write service")).unwrap();
            let cells: Vec<_> = row["read-modify-write service".len()..].split(' ').collect();
            let cells: Vec<f64> =
                cells.iter().filter(|c| !c.is_empty()).map(|c| c.parse().unwrap()).collect();
            let shown = if unit == "ms" { max_us / 1e3 } else { max_us };
            assert_eq!((cells.len(), cells[5]), (6, shown), "{row}");
        }
    }

    #[test]
    fn a_caveat_comes_with_its_evidence_and_the_cure() {
        let text = block(&finished(250.0), Style::plain());
        assert!(text.starts_with("FAILED: ycsb:f at cassandra: 1234568 op/s of 2000000 scheduled"));
        let table = text.find("latency, us").unwrap();
        for part in ["  ! A client", "    evidence: thread 0", "    cure: wideload run ycsb:f"] {
            assert!(text.find(part).is_some_and(|at| at < table), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'));
        let coloured = block(&finished(250.0), Style::coloured());
        assert!(coloured.contains("\u{1b}[31mFAILED") && coloured.contains("\u{1b}[33m  ! A"));
    }
}
