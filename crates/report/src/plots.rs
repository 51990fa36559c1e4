//! Which charts a trial gets: latency by percentile, what happened over time, workers, counters.
//!
//! Input: a loaded trial; output: charts in their order, with the events of the trial marked in
//! those over time, which share their range when one is zoomed.

use crate::axis::{Axis, Format};
use crate::chart::{Chart, Dash, Line, Mark, Style};
use crate::counters::{self, Balance};
use crate::events::{self, Event};
use crate::load::{Run, Trial};
use crate::number::short;
use crate::series::{Bin, PERCENTILES, Timeline, percentile_curve};
use record::{Outcome, Series, Summary, Tag};

/// Points of all lines of counters on a page.
const COUNTER_POINTS: usize = 30_000;
/// Of one line, at most and at least.
const COUNTER_LINE_POINTS: (usize, usize) = (40, 600);

/// What is drawn of a trial.
#[derive(Debug, Default)]
pub(crate) struct Plots {
    /// Latency by percentile.
    pub(crate) percentiles: Vec<Chart>,
    /// Over time: throughput, latencies, failures.
    pub(crate) course: Vec<Chart>,
    /// One bar for each worker.
    pub(crate) workers: Vec<Chart>,
    /// Counters over time.
    pub(crate) counters: Vec<Chart>,
    pub(crate) balance: Vec<Balance>,
    /// Counters that were zero throughout.
    pub(crate) zero: Vec<String>,
    /// Counters that are in the file only.
    pub(crate) left_out: usize,
    pub(crate) events: Vec<Event>,
    /// Events that are not listed.
    pub(crate) events_more: usize,
}

impl Plots {
    /// All charts.
    pub(crate) fn charts(&self) -> impl Iterator<Item = &Chart> {
        let all = [&self.percentiles, &self.course, &self.workers, &self.counters];
        all.into_iter().flatten()
    }
}

/// The charts of a trial; `detailed` of them share the page.
pub(crate) fn of(trial: &Trial, detailed: usize) -> Plots {
    let prefix = format!("trial-{:04}", trial.number);
    let rate_kept = trial.summary.as_ref().is_none_or(response_given);
    let (events, events_more) =
        events::find(&trial.timeline.moments, &trial.counters.metrics, &trial.told);
    let metrics = trial.counters.scaled();
    let lines = 3 * metrics.len().max(1) * detailed.max(1);
    let points = (COUNTER_POINTS / lines).clamp(COUNTER_LINE_POINTS.0, COUNTER_LINE_POINTS.1);
    let (mut counter_charts, zero) = counters::charts(&metrics, &prefix, points);
    let mut course = course(trial, &prefix, rate_kept);
    let charts = course.iter().chain(&counter_charts);
    let end_s = charts.map(|chart| chart.x.max).fold(0.0, f64::max);
    let marks: Vec<Mark> = events.iter().zip(1..).map(mark).collect();
    for chart in course.iter_mut().chain(&mut counter_charts) {
        chart.group = format!("{prefix}-time");
        chart.marks.clone_from(&marks);
        chart.x = Axis::exact(Format::Seconds, 0.0, end_s);
    }
    Plots {
        percentiles: by_percentile(trial, &prefix, rate_kept).into_iter().collect(),
        course,
        workers: counters::workers(&metrics, &prefix).into_iter().collect(),
        counters: counter_charts,
        balance: counters::balance(&metrics),
        zero,
        left_out: trial.counters.left_out(),
        events,
        events_more,
    }
}

fn mark((event, number): (&Event, usize)) -> Mark {
    Mark {
        from: event.from_s,
        to: event.to_s,
        number,
        bad: event.kind.is_bad(),
        text: event.text.clone(),
    }
}

/// Whether the summary gives response times, or took them away since the rate was missed.
pub(crate) fn response_given(summary: &Summary) -> bool {
    !summary.caveats.iter().any(|caveat| caveat.code == "rate-missed")
}

fn by_percentile(trial: &Trial, prefix: &str, rate_kept: bool) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    let mut ops: Vec<String> = Vec::new();
    for (text, latency) in &trial.totals {
        let Some(tag) = Tag::parse(text) else { continue };
        let (term, dash) = match tag.series {
            Series::Service => ("service", Dash::Dashed),
            Series::Response if rate_kept => ("response", Dash::Solid),
            Series::Lag => ("lag", Dash::Dotted),
            _ => continue,
        };
        let colour = ops.iter().position(|op| *op == tag.op).unwrap_or_else(|| {
            ops.push(tag.op.clone());
            ops.len() - 1
        });
        let name = format!("{} {term}", tag.op);
        lines.push(Line { name, term, colour, dash, points: percentile_curve(latency) });
    }
    let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point.0);
    let x = Axis::nines(last.fold(0.0, f64::max));
    let y = Axis::log(Format::Latency, values(&lines));
    let id = format!("{prefix} latency by percentile");
    let mut chart = Chart::new(&id, "Latency by percentile", x, y, lines);
    chart.note =
        "Both axes are logarithmic, the horizontal one in 1/(1-q). Each curve ends at its \
                  largest sample."
            .into();
    (!chart.lines.is_empty()).then_some(chart)
}

/// What happened over time.
fn course(trial: &Trial, prefix: &str, rate_kept: bool) -> Vec<Chart> {
    if trial.timeline.bins.is_empty() {
        return Vec::new();
    }
    let mut charts = vec![throughput(trial, prefix)];
    charts.extend(failures(trial, prefix));
    let latency = |name: &str, value| over_time(trial, prefix, name, value);
    if rate_kept {
        charts.extend(latency("Response time", |bin| bin.response_us));
    }
    charts.extend(latency("Service time", |bin| bin.service_us));
    charts.extend(latency("Lag", |bin| bin.lag_us));
    charts.push(in_flight(trial, prefix));
    charts
}

fn line(name: &str, term: &'static str, colour: usize, points: Vec<(f64, Option<f64>)>) -> Line {
    Line { name: name.to_owned(), term, colour, dash: Dash::Solid, points }
}

fn throughput(trial: &Trial, prefix: &str) -> Chart {
    let bins = &trial.timeline.bins;
    let points = |value: fn(&Bin) -> f64| bins.iter().map(|b| (b.t_s, Some(value(b)))).collect();
    let mut lines = vec![line("ok", "ok", 0, points(Bin::ok_s))];
    if bins.iter().any(|bin| bin.errors_s() > 0.0) {
        lines.push(line("errors", "errors", 1, points(Bin::errors_s)));
    }
    if let Some(rate) = trial.summary.as_ref().and_then(|s| s.scheduled_rate_s) {
        let points = bins.iter().map(|bin| (bin.t_s, Some(rate))).collect();
        let scheduled = line("scheduled", "scheduled rate", 6, points);
        lines.push(Line { dash: Dash::Dotted, ..scheduled });
    }
    let y = Axis::linear(Format::Rate, values(&lines));
    let id = format!("{prefix} throughput");
    let mut chart = Chart::new(&id, "Throughput", time(trial), y, lines);
    chart.note = interval_note(trial);
    chart
}

/// What did not end ok, by outcome, on top of one another.
fn failures(trial: &Trial, prefix: &str) -> Option<Chart> {
    let bins = &trial.timeline.bins;
    let lines = Outcome::ALL.into_iter().skip(1).filter_map(|outcome| {
        let value = |bin: &Bin| bin.outcomes_s[outcome.index()];
        let name = outcome.name().replace('_', " ");
        let term = crate::glossary::find(&name)?;
        let points = bins.iter().map(|bin| (bin.t_s, Some(value(bin)))).collect();
        bins.iter().any(|bin| value(bin) > 0.0).then(|| line(&name, term, outcome.index(), points))
    });
    let lines: Vec<Line> = lines.collect();
    let y = Axis::linear(Format::Rate, bins.iter().map(Bin::errors_s));
    let title = "Operations that did not end ok";
    let mut chart = Chart::new(&format!("{prefix} failures"), title, time(trial), y, lines);
    chart.style = Style::Stack;
    chart.note = format!("By outcome, on top of one another. {}", interval_note(trial));
    (!chart.lines.is_empty()).then_some(chart)
}

fn over_time(
    trial: &Trial,
    prefix: &str,
    name: &str,
    value: fn(&Bin) -> Option<[f64; 4]>,
) -> Option<Chart> {
    let bins = &trial.timeline.bins;
    let lines = PERCENTILES.into_iter().enumerate().map(|(i, term)| {
        let points = bins.iter().map(|bin| (bin.t_s, value(bin).map(|four| four[i])));
        line(term, term, i, points.collect())
    });
    let lines: Vec<Line> = lines.collect();
    values(&lines).next()?;
    let y = Axis::log(Format::Latency, values(&lines));
    let id = format!("{prefix} {name} over time");
    let mut chart = Chart::new(&id, &format!("{name} over time"), time(trial), y, lines);
    chart.note = format!("All operations merged. {}", interval_note(trial));
    Some(chart)
}

/// The mean number of operations under way, from the time that they took.
fn in_flight(trial: &Trial, prefix: &str) -> Chart {
    let points = trial.timeline.bins.iter().map(|bin| (bin.t_s, Some(bin.in_flight))).collect();
    let lines = vec![line("in flight", "in flight", 0, points)];
    let y = Axis::linear(Format::Number, values(&lines));
    let y = y.called("operations", "operations sent and not answered");
    let id = format!("{prefix} in flight");
    let mut chart = Chart::new(&id, "Operations in flight", time(trial), y, lines);
    chart.note =
        "Mean, by Little's law: the sum of the service times that ended in an interval over its \
         length."
            .into();
    chart
}

/// Throughput and p99 of every trial, when there are several.
pub(crate) fn of_trials(run: &Run) -> Vec<Chart> {
    let points = |value: &dyn Fn(&Summary) -> Option<f64>| {
        let numbered = run.trials.iter().filter_map(|t| Some((t.number, t.summary.as_ref()?)));
        let points = numbered.map(|(number, summary)| (f64::from(number), value(summary)));
        points.collect::<Vec<_>>()
    };
    let rates = points(&|summary| Some(summary.ops_s));
    if rates.len() < 2 {
        return Vec::new();
    }
    let (first, last) = (rates[0].0, rates[rates.len() - 1].0);
    let x = Axis::exact(Format::Number, first - 0.5, last + 0.5).called("trial", "trial");
    let mut ops: Vec<String> = run
        .trials
        .iter()
        .filter_map(|t| t.summary.as_ref())
        .flat_map(|s| s.latency_us.keys().cloned())
        .collect();
    ops.sort();
    ops.dedup();
    let p99 = ops.iter().enumerate().map(|(colour, op)| {
        let value = |s: &Summary| Some(s.latency_us.get(op)?.service?.p99);
        line(&format!("{op} service"), "service", colour, points(&value))
    });
    let p99: Vec<Line> = p99.collect();
    let rates = vec![line("op/s", "op/s", 0, rates)];
    let y = Axis::linear(Format::Rate, values(&rates));
    let throughput = Chart::new("trials throughput", "Throughput, by trial", x.clone(), y, rates);
    let y = Axis::log(Format::Latency, values(&p99));
    let latency = Chart::new("trials p99", "p99 of the service time, by trial", x, y, p99);
    let mut charts = vec![throughput, latency];
    charts.iter_mut().for_each(|chart| {
        chart.style = Style::Dots;
        chart.group = "trials".into();
    });
    charts
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1)
}

fn time(trial: &Trial) -> Axis {
    Axis::exact(Format::Seconds, 0.0, trial.timeline.end_s)
}

fn interval_note(trial: &Trial) -> String {
    let Timeline { width_s, cut_s, .. } = &trial.timeline;
    // What is less than a hundredth of an interval is nobody's loss.
    let cut = cut_s
        .filter(|cut_s| *cut_s >= width_s * 0.01)
        .map_or(String::new(), |s| format!(" The last {} s, cut short, are not drawn.", short(s)));
    format!("Intervals of {} s.{cut}", short(*width_s))
}
