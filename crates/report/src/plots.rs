//! Which charts a trial gets: latency by percentile, throughput and latency over time, counters.

use crate::load::Trial;
use crate::series::{Bin, Timeline, percentile_curve};
use crate::svg::{Axis, Chart, Drawn, Format, Line};
use record::table::Counter;
use record::{Series, Summary, Tag};

/// Charts of counters; more metrics are in the file only.
const COUNTER_CHARTS_MAX: usize = 8;
/// Lines of a chart of counters.
const COUNTER_LINES_MAX: usize = 8;
/// Points of a line of counters; of longer series every n-th value is drawn.
const COUNTER_POINTS_MAX: usize = 600;

/// The charts of a trial, in their order.
pub(crate) fn of(trial: &Trial) -> Vec<Drawn> {
    let rate_kept = trial.summary.as_ref().is_none_or(response_given);
    let mut charts = Vec::new();
    charts.extend(by_percentile(trial, rate_kept));
    charts.extend(throughput(trial));
    if rate_kept {
        let title = "Response time over time";
        charts.extend(over_time(trial, title, |bin| bin.response_us));
    }
    charts.extend(over_time(trial, "Service time over time", |bin| bin.service_us));
    charts.extend(counters(&trial.counters));
    charts.iter().map(Chart::draw).collect()
}

/// Whether the summary gives response times, or took them away since the rate was missed.
pub(crate) fn response_given(summary: &Summary) -> bool {
    !summary.caveats.iter().any(|caveat| caveat.code == "rate-missed")
}

fn by_percentile(trial: &Trial, rate_kept: bool) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    let mut ops: Vec<String> = Vec::new();
    for (text, latency) in &trial.totals {
        let Some(tag) = Tag::parse(text) else { continue };
        let (kind, dashed) = match tag.series {
            Series::Service => ("service", true),
            Series::Response if rate_kept => ("response", false),
            _ => continue,
        };
        let colour = ops.iter().position(|op| *op == tag.op).unwrap_or_else(|| {
            ops.push(tag.op.clone());
            ops.len() - 1
        });
        let name = format!("{} {kind}", tag.op);
        lines.push(Line { name, colour, dashed, points: percentile_curve(latency) });
    }
    let last = lines.iter().filter_map(|line| line.points.last()).map(|point| point.0);
    let x = Axis::nines(last.fold(0.0, f64::max));
    let y = Axis::log(Format::Latency, values(&lines));
    let title = "Latency by percentile".into();
    let note = "Each curve ends at its largest sample.".into();
    (!lines.is_empty()).then_some(Chart { title, note, x, y, lines })
}

fn throughput(trial: &Trial) -> Option<Chart> {
    let bins = &trial.timeline.bins;
    if bins.is_empty() {
        return None;
    }
    let line = |name: &str, colour, value: fn(&Bin) -> f64| Line {
        name: name.into(),
        colour,
        dashed: false,
        points: bins.iter().map(|bin| (bin.t_s, Some(value(bin)))).collect(),
    };
    let mut lines = vec![line("ok", 0, |bin| bin.ok_s)];
    if bins.iter().any(|bin| bin.errors_s > 0.0) {
        lines.push(line("not ok", 1, |bin| bin.errors_s));
    }
    let y = Axis::linear(Format::Rate, values(&lines));
    let note = format!("Operations per second. {}", interval_note(trial));
    Some(Chart { title: "Throughput".into(), note, x: time(trial), y, lines })
}

fn over_time(trial: &Trial, title: &str, value: fn(&Bin) -> Option<[f64; 3]>) -> Option<Chart> {
    let bins = &trial.timeline.bins;
    let line = |(i, name): (usize, &&str)| Line {
        name: (*name).into(),
        colour: i,
        dashed: false,
        points: bins.iter().map(|bin| (bin.t_s, value(bin).map(|three| three[i]))).collect(),
    };
    let lines: Vec<Line> = ["p50", "p99", "max"].iter().enumerate().map(line).collect();
    values(&lines).next()?;
    let y = Axis::log(Format::Latency, values(&lines));
    let note = format!("All operations merged. {}", interval_note(trial));
    Some(Chart { title: title.into(), note, x: time(trial), y, lines })
}

/// One chart per metric and unit, one line per host and source.
fn counters(counters: &[Counter]) -> Vec<Chart> {
    let mut charts: Vec<(String, Vec<Line>)> = Vec::new();
    for counter in counters {
        let title = format!("{} ({})", counter.metric, counter.unit);
        let chart = match charts.iter().position(|(name, _)| *name == title) {
            Some(i) => &mut charts[i],
            None if charts.len() == COUNTER_CHARTS_MAX => continue,
            None => {
                charts.push((title, Vec::new()));
                let last = charts.len() - 1;
                &mut charts[last]
            }
        };
        let (name, lines) = (format!("{} {}", counter.host, counter.source), &mut chart.1);
        let point = (counter.t_s, Some(counter.value));
        if let Some(line) = lines.iter_mut().find(|line| line.name == name) {
            line.points.push(point);
        } else if lines.len() < COUNTER_LINES_MAX {
            let colour = lines.len();
            lines.push(Line { name, colour, dashed: false, points: vec![point] });
        }
    }
    charts.into_iter().map(|(title, lines)| counter_chart(title, lines)).collect()
}

fn counter_chart(title: String, mut lines: Vec<Line>) -> Chart {
    for line in &mut lines {
        let every = line.points.len().div_ceil(COUNTER_POINTS_MAX).max(1);
        line.points = line.points.iter().copied().step_by(every).collect();
    }
    let times = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let x = Axis::time(times.fold(0.0, f64::max));
    let y = Axis::linear(Format::Number, values(&lines));
    Chart { title, note: String::new(), x, y, lines }
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1)
}

fn time(trial: &Trial) -> Axis {
    Axis::time(trial.timeline.end_s)
}

fn interval_note(trial: &Trial) -> String {
    let Timeline { width_s, cut_s, .. } = &trial.timeline;
    let cut = cut_s.map_or(String::new(), |s| {
        format!(" The last {} s, cut short, are not drawn.", crate::number::short(s))
    });
    format!("Intervals of {} s.{cut}", crate::number::short(*width_s))
}
