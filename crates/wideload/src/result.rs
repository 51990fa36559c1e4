//! The result as text: one headline first, then what it rests on. A number never stands without its
//! caveats.

use lab::Finished;
use record::Verdict;
use record::repeats::{Repeats, Spread};
use record::summary::{Stats, Summary};
use std::fmt::Write as _;

/// The block that a run prints.
pub(crate) fn block(finished: &Finished) -> String {
    let summary = &finished.summary;
    let mut text = String::new();
    // Before any number: whose numbers these are not.
    let (stand_in, caveats): (Vec<_>, Vec<_>) =
        summary.caveats.iter().partition(|caveat| caveat.code == lab::STAND_IN);
    for caveat in stand_in {
        let _ = writeln!(text, "{}", caveat.text);
    }
    let _ = writeln!(text, "{}", headline(summary, finished.verdict));
    if let Some(failure) = &finished.failure {
        let _ = writeln!(text, "  ! {failure}");
    }
    for caveat in caveats {
        let _ = writeln!(text, "  ! {}", format!("{} {}", caveat.text, caveat.cure).trim_end());
    }
    let _ = writeln!(
        text,
        "\n{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "latency, us", "mean", "p50", "p90", "p99", "p99.9", "max"
    );
    for (name, op) in &summary.latency_us {
        row(&mut text, &format!("{name} service"), op.service);
        for (part, stats) in &op.parts {
            row(&mut text, &format!("  {part}"), *stats);
        }
        row(&mut text, &format!("{name} response"), op.response);
        row(&mut text, &format!("{name} lag"), op.lag);
    }
    let outcomes: Vec<_> = summary
        .outcomes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(outcome, count)| format!("{} {count}", outcome.name()))
        .collect();
    let _ = writeln!(text, "\noutcomes  {}", outcomes.join(", "));
    if let Some(repeats) = &summary.repeats {
        let _ = writeln!(text, "repeats   {}", repeated(repeats));
    }
    let _ = writeln!(text, "client    {}", client(summary));
    let _ = writeln!(text, "run       {}", finished.run_dir.display());
    let _ = writeln!(text, "report    {}", finished.report.display());
    text
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
    parts.join("\n          ")
}

fn row(text: &mut String, name: &str, stats: Option<Stats>) {
    let Some(s) = stats else {
        let _ = writeln!(text, "{name:<28}{:>10}", "-");
        return;
    };
    let _ = write!(text, "{name:<28}");
    for us in [s.mean, s.p50, s.p90, s.p99, s.p999, s.max] {
        let _ = write!(text, "{us:>10.1}");
    }
    text.push('\n');
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
    .collect::<Vec<_>>()
    .join(", ")
}
