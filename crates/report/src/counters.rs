//! Counters over time: lines by metric, and how evenly the load lay on workers and hosts.
//!
//! Input: the rows of `counters.csv`; output: charts, one for each metric and unit, whatever they
//! are, and a [`Balance`]. A last interval of less than a fifth of its length is left out, counts
//! are divided by the length of their interval, and a chart of more sources than can be told
//! apart shows their extremes and their middle.
//!
//! Limits: `in_flight` is one moment of a closed loop, in which the clients may just have been
//! answered; the mean from the interval log is drawn instead. Values of the warm-up are not drawn.

use crate::axis::{Axis, Format};
use crate::chart::{Chart, Dash, Line, Style, slug};
use crate::events::median;
use crate::glossary;
use crate::number::{percent, significant};
use crate::series::LAST_SHARE_MIN;
use record::table::Counter;
use serde::Serialize;

/// Metrics that are drawn; more are in the file only.
const METRICS_MAX: usize = 40;
/// Lines of a chart; of more sources the extremes and the middle are drawn.
const LINES_MAX: usize = 6;
/// Bars of a chart.
const BARS_MAX: usize = 256;
/// Metrics beyond those drawn that are told apart.
const LEFT_OUT_MAX: usize = 1000;
/// Drawn from the interval log instead.
const NOT_DRAWN: &str = "in_flight";

/// One value over time.
#[derive(Debug, Clone, PartialEq)]
struct Source {
    host: String,
    source: String,
    points: Vec<(f64, f64)>,
}

/// All that counted the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    metric: String,
    unit: String,
    sources: Vec<Source>,
}

/// The counters of a trial as they were written, by metric and source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    /// In the order in which they appear, up to [`METRICS_MAX`].
    pub(crate) metrics: Vec<Metric>,
    left_out: Vec<(String, String)>,
    /// Where the last row went: rows come in turns, the next one goes mostly one further.
    last: (usize, usize),
}

/// How evenly something lay on those that counted it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Balance {
    metric: String,
    term: &'static str,
    count: usize,
    least: String,
    least_of: String,
    middle: String,
    most: String,
    most_of: String,
    ratio: String,
}

impl Counters {
    /// Adds a row; rows of the warm-up and what is not drawn are left out.
    pub(crate) fn add(&mut self, row: Counter) {
        if row.t_s < 0.0 || row.metric == NOT_DRAWN {
            return;
        }
        let same = |m: &Metric| m.metric == row.metric && m.unit == row.unit;
        let near = [self.last.0 + 1, self.last.0, 0];
        let near = near.into_iter().find(|i| self.metrics.get(*i).is_some_and(same));
        let Some(at) = near.or_else(|| self.metrics.iter().position(same)) else {
            return self.add_metric(row);
        };
        let sources = &mut self.metrics[at].sources;
        let same = |s: &Source| s.source == row.source && s.host == row.host;
        let near = [self.last.1, self.last.1 + 1, 0];
        let near = near.into_iter().find(|i| sources.get(*i).is_some_and(same));
        let found = near.or_else(|| sources.iter().position(same));
        let source = found.unwrap_or_else(|| {
            let (host, source) = (row.host.clone(), row.source.clone());
            sources.push(Source { host, source, points: Vec::new() });
            sources.len() - 1
        });
        sources[source].points.push((row.t_s, row.value));
        self.last = (at, source);
    }

    fn add_metric(&mut self, row: Counter) {
        if self.metrics.len() < METRICS_MAX {
            let points = vec![(row.t_s, row.value)];
            let sources = vec![Source { host: row.host, source: row.source, points }];
            self.metrics.push(Metric { metric: row.metric, unit: row.unit, sources });
            return;
        }
        let name = (row.metric, row.unit);
        if self.left_out.len() < LEFT_OUT_MAX && !self.left_out.contains(&name) {
            self.left_out.push(name);
        }
    }

    /// How many metrics there were beyond [`METRICS_MAX`].
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// The metrics as they are drawn: without short ends, counts as rates.
    pub(crate) fn scaled(&self) -> Vec<Metric> {
        let mut metrics = self.metrics.clone();
        metrics.iter_mut().for_each(Metric::scale);
        metrics
    }
}

impl Metric {
    /// Drops short ends, and turns counts into rates.
    fn scale(&mut self) {
        let counted = ["answers", "connections"].contains(&self.unit.as_str());
        for source in &mut self.sources {
            source.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let before = std::iter::once(0.0).chain(source.points.iter().map(|p| p.0));
            let lengths: Vec<f64> =
                before.zip(&source.points).map(|(before, p)| p.0 - before).collect();
            let usual = median(lengths.iter().copied());
            let mut kept = source.points.iter().zip(&lengths).collect::<Vec<_>>();
            if kept.len() > 1 && lengths.last().is_some_and(|l| *l < usual * LAST_SHARE_MIN) {
                kept.pop();
            }
            let value = |value: f64, length: f64| {
                if counted && length > 0.0 { value / length } else { value }
            };
            source.points =
                kept.into_iter().map(|((t_s, v), length)| (*t_s, value(*v, *length))).collect();
        }
        if counted {
            self.unit.push_str("/s");
        }
    }

    /// Its name, as in the file.
    pub(crate) fn name(&self) -> &str {
        &self.metric
    }

    /// Its unit, as in the file.
    pub(crate) fn unit_name(&self) -> &str {
        &self.unit
    }

    /// Time and value of all sources, in the order of time.
    pub(crate) fn values(&self) -> Vec<(f64, f64)> {
        let mut values: Vec<(f64, f64)> =
            self.sources.iter().flat_map(|source| source.points.iter().copied()).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values
    }

    fn is_zero(&self) -> bool {
        self.sources.iter().flat_map(|source| &source.points).all(|point| point.1 == 0.0)
    }

    /// `busy`, `late (answers/s)`.
    fn title(&self) -> String {
        let name = self.metric.replace('_', " ");
        match self.format() {
            Format::Number if !self.unit.is_empty() => format!("{name} ({})", self.unit),
            _ => name,
        }
    }

    /// Its term in the glossary, or that of any counter.
    fn term(&self) -> &'static str {
        glossary::find(&self.metric.replace('_', " ")).unwrap_or("counter")
    }

    fn format(&self) -> Format {
        match self.unit.as_str() {
            "share" => Format::Share,
            "bytes" => Format::Bytes,
            _ => Format::Number,
        }
    }

    fn text(&self, value: f64) -> String {
        match self.format() {
            Format::Share => percent(value),
            Format::Bytes => crate::number::bytes(value),
            _ => format!("{} {}", significant(value), self.unit),
        }
    }

    fn points(&self) -> usize {
        self.sources.iter().map(|source| source.points.len()).max().unwrap_or(0)
    }

    /// Lines of at most `points_max` points each; longer ones are means of consecutive values.
    fn lines(&self, points_max: usize) -> Vec<Line> {
        let every = self.points().div_ceil(points_max.max(1)).max(1);
        if self.sources.len() > LINES_MAX {
            return self.extremes(every);
        }
        let hosts = self.sources.iter().any(|s| s.host != self.sources[0].host);
        let lines = self.sources.iter().enumerate().map(|(colour, source)| Line {
            name: source.name(hosts),
            term: glossary::source_term(&source.source),
            colour,
            dash: Dash::Solid,
            points: means(&source.points, every),
        });
        lines.collect()
    }

    /// The only source's values, under the name of the metric.
    fn one_line(&self, colour: usize, every: usize) -> Line {
        Line {
            name: self.metric.replace('_', " "),
            term: self.term(),
            colour,
            dash: Dash::Solid,
            points: means(&self.sources[0].points, every),
        }
    }

    /// The largest, the middle and the least value of all sources at each moment.
    fn extremes(&self, every: usize) -> Vec<Line> {
        let mut rows: Vec<(f64, f64)> =
            self.sources.iter().flat_map(|source| means_of(&source.points, every)).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Times are written with milliseconds; the sources of a moment have the same.
        let moments: Vec<&[(f64, f64)]> = rows.chunk_by(|a, b| b.0 - a.0 < 1e-6).collect();
        let line = |colour, term, value: fn(&[(f64, f64)]) -> f64| Line {
            name: format!("{term} of {}", self.sources.len()),
            term,
            colour,
            dash: if term == "median" { Dash::Solid } else { Dash::Dotted },
            points: moments.iter().map(|m| (m[0].0, Some(value(m)))).collect(),
        };
        let largest = |m: &[(f64, f64)]| m.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
        let least = |m: &[(f64, f64)]| m.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let middle = |m: &[(f64, f64)]| median(m.iter().map(|p| p.1));
        vec![line(1, "max", largest), line(0, "median", middle), line(2, "min", least)]
    }

    /// Up to the first `_`: `cpu` of `cpu_user`.
    fn family(&self) -> &str {
        self.metric.split('_').next().unwrap_or(&self.metric)
    }

    /// The mean over time of each source, with its name.
    fn source_means(&self) -> Vec<(String, f64)> {
        let hosts = self.sources.iter().any(|s| s.host != self.sources[0].host);
        let mean = |source: &Source| {
            let sum: f64 = source.points.iter().map(|p| p.1).sum();
            (source.name(hosts), sum / source.points.len().max(1) as f64)
        };
        self.sources.iter().map(mean).collect()
    }

    fn balance(&self) -> Option<Balance> {
        let means = self.source_means();
        let least = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let most = means.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (means.len() > 1).then(|| Balance {
            metric: self.metric.replace('_', " "),
            term: self.term(),
            count: means.len(),
            least: self.text(least.1),
            least_of: least.0.clone(),
            middle: self.text(median(means.iter().map(|m| m.1))),
            most: self.text(most.1),
            most_of: most.0.clone(),
            ratio: match most.1 / least.1 {
                ratio if ratio.is_finite() => significant(ratio),
                _ => "–".to_owned(),
            },
        })
    }
}

impl Source {
    fn name(&self, with_host: bool) -> String {
        if with_host { format!("{} {}", self.host, self.source) } else { self.source.clone() }
    }
}

/// Charts of what is not zero throughout, and the names of what is. Metrics of one family and
/// unit that a single source counted, like `cpu_user` and `cpu_system`, share a chart.
pub(crate) fn charts(
    metrics: &[Metric],
    prefix: &str,
    points_max: usize,
) -> (Vec<Chart>, Vec<String>) {
    let (zero, drawn): (Vec<&Metric>, Vec<&Metric>) = metrics.iter().partition(|m| m.is_zero());
    let mut groups: Vec<Vec<&Metric>> = Vec::new();
    for metric in drawn {
        let related = |group: &&mut Vec<&Metric>| {
            let first = group[0];
            let alone = first.sources.len() == 1 && metric.sources.len() == 1;
            alone
                && first.unit == metric.unit
                && first.family() == metric.family()
                && first.sources[0].source == metric.sources[0].source
                && first.sources[0].host == metric.sources[0].host
        };
        match groups.iter_mut().find(related) {
            Some(group) => group.push(metric),
            None => groups.push(vec![metric]),
        }
    }
    let charts = groups.iter().map(|group| chart(group, prefix, points_max)).collect();
    (charts, zero.into_iter().map(Metric::title).collect())
}

/// The chart of one metric by its sources, or of several by their names.
fn chart(group: &[&Metric], prefix: &str, points_max: usize) -> Chart {
    let first = group[0];
    let every = first.points().div_ceil(points_max.max(1)).max(1);
    let (name, title, lines) = match group {
        [one] => (one.metric.as_str(), one.title(), one.lines(points_max)),
        _ => {
            let name = first.family();
            let title = Metric { metric: name.to_owned(), ..first.clone() }.title();
            (name, title, group.iter().enumerate().map(|(i, m)| m.one_line(i, every)).collect())
        }
    };
    let values = lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1);
    let label = if first.unit.is_empty() { name } else { &first.unit };
    let column = slug(label).replace('-', "_");
    let y = Axis::linear(first.format(), values).called(&column, label);
    let y = if first.format() == Format::Number { y.unit(&first.unit) } else { y };
    let times = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let x = Axis::exact(Format::Seconds, 0.0, times.fold(0.0, f64::max));
    let id = format!("{prefix} counter {name} {}", first.unit);
    let mut chart = Chart::new(&id, &title, x, y, lines);
    if every > 1 {
        chart.note = format!("Each point is the mean of {every} values.");
    }
    chart
}

/// How evenly each metric that several counted lay on them.
pub(crate) fn balance(metrics: &[Metric]) -> Vec<Balance> {
    metrics.iter().filter(|metric| !metric.is_zero()).filter_map(Metric::balance).collect()
}

/// Bars of how busy each worker was, when there are enough to compare.
pub(crate) fn workers(metrics: &[Metric], prefix: &str) -> Option<Chart> {
    let busy = metrics.iter().find(|metric| metric.metric == "busy" && metric.unit == "share")?;
    let means = busy.source_means();
    let count = means.len().min(BARS_MAX);
    let points = means.iter().take(count).enumerate();
    let points: Vec<_> = points.map(|(i, (_, mean))| (i as f64, Some(*mean))).collect();
    let y = Axis::linear(Format::Share, points.iter().filter_map(|p| p.1));
    let y = y.called("busy_share", "share of the time, mean over the window");
    let x = Axis::exact(Format::Number, -0.5, count as f64 - 0.5);
    let x = x.called("worker", "worker of the client");
    let line = Line { name: "busy".into(), term: "busy", points, ..Line::default() };
    let mut chart = Chart::new(&format!("{prefix} workers"), "Busy, by worker", x, y, vec![line]);
    chart.style = Style::Bars;
    (means.len() > 2).then_some(chart)
}

fn means(points: &[(f64, f64)], every: usize) -> Vec<(f64, Option<f64>)> {
    means_of(points, every).map(|(t_s, mean)| (t_s, Some(mean))).collect()
}

/// Means of `every` consecutive values, at the mean of their times.
fn means_of(points: &[(f64, f64)], every: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    points.chunks(every).map(|chunk| {
        let n = chunk.len() as f64;
        (chunk.iter().map(|p| p.0).sum::<f64>() / n, chunk.iter().map(|p| p.1).sum::<f64>() / n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t_s: f64, source: &str, metric: &str, value: f64, unit: &str) -> Counter {
        Counter {
            t_s,
            host: "local".into(),
            source: source.into(),
            metric: metric.into(),
            value,
            unit: unit.into(),
        }
    }

    fn metrics(rows: &[Counter]) -> Vec<Metric> {
        let mut counters = Counters::default();
        rows.iter().for_each(|row| counters.add(row.clone()));
        counters.scaled()
    }

    #[test]
    fn short_ends_are_dropped_and_counts_become_rates() {
        let mut rows: Vec<_> =
            (1..=4).map(|i| row(f64::from(i) * 2.0, "client-0", "late", 6.0, "answers")).collect();
        rows.push(row(8.003, "client-0", "late", 1.0, "answers"));
        rows.push(row(-1.0, "client-0", "late", 9.0, "answers"));
        let metrics = metrics(&rows);
        assert_eq!(metrics[0].sources[0].points, [(2.0, 3.0), (4.0, 3.0), (6.0, 3.0), (8.0, 3.0)]);
        assert_eq!(metrics[0].title(), "late (answers/s)");
    }

    #[test]
    fn moments_in_flight_and_zeros_are_not_drawn() {
        let rows = [
            row(1.0, "client-0", "in_flight", 64.0, "ops"),
            row(1.0, "client-0", "late", 0.0, "answers"),
            row(1.0, "client-0", "busy", 0.5, "share"),
            row(1.0, "procfs", "procs_running", 3.0, "tasks"),
        ];
        let metrics = metrics(&rows);
        let (charts, zero) = charts(&metrics, "t", 100);
        let titles: Vec<_> = charts.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, ["busy", "procs running (tasks)"]);
        assert_eq!(zero, ["late (answers/s)"]);
        assert_eq!(
            (charts[0].id.as_str(), charts[1].y.name.as_str()),
            ("t-counter-busy-share", "tasks")
        );
    }

    #[test]
    fn many_workers_are_shown_by_their_extremes() {
        let mut rows = Vec::new();
        for second in 1..=100 {
            for worker in 0..40 {
                let value = f64::from(worker) / 40.0;
                rows.push(row(
                    f64::from(second),
                    &format!("client-{worker}"),
                    "busy",
                    value,
                    "share",
                ));
            }
        }
        let metrics = metrics(&rows);
        let chart = &charts(&metrics, "t", 50).0[0];
        let first: Vec<_> = chart.lines.iter().map(|l| (l.name.as_str(), l.points[0])).collect();
        let expected = [
            ("max of 40", (1.5, Some(0.975))),
            ("median of 40", (1.5, Some(0.4875))),
            ("min of 40", (1.5, Some(0.0))),
        ];
        assert_eq!(first, expected);
        assert_eq!(
            (chart.lines[0].points.len(), chart.note.as_str()),
            (50, "Each point is the mean of 2 values.")
        );
        let balance = &balance(&metrics)[0];
        assert_eq!(
            (balance.count, balance.most.as_str(), balance.most_of.as_str()),
            (40, "97.5 %", "client-39")
        );
        assert_eq!(balance.ratio, "–");
        assert_eq!(workers(&metrics, "t").unwrap().lines[0].points.len(), 40);
    }

    #[test]
    fn metrics_of_a_family_share_a_chart() {
        let rows = [
            row(1.0, "procfs", "cpu_user", 0.5, "share"),
            row(1.0, "procfs", "cpu_system", 0.2, "share"),
            row(1.0, "procfs", "cpu_steal", 0.0, "share"),
            row(1.0, "procfs", "target_cpu", 1.5, "cpus"),
            row(1.0, "procfs", "target_rss", 300.0, "MiB"),
        ];
        let (charts, zero) = charts(&metrics(&rows), "t", 100);
        let titles: Vec<_> = charts.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles, ["cpu", "target cpu (cpus)", "target rss (MiB)"]);
        let names: Vec<_> = charts[0].lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!((names, zero), (vec!["cpu user", "cpu system"], vec!["cpu steal".to_owned()]));
    }

    #[test]
    fn more_metrics_than_fit_are_counted() {
        let rows: Vec<_> =
            (0..50).map(|i| row(1.0, "procfs", &format!("m{i}"), 1.0, "x")).collect();
        let mut counters = Counters::default();
        rows.into_iter().for_each(|row| counters.add(row));
        assert_eq!((counters.metrics.len(), counters.left_out()), (METRICS_MAX, 10));
    }
}
