//! The outcome of an experiment on its page: the verdict in sentences, tables, and plots against
//! the budget.
//!
//! Input: `outcome.json` as `docs/FORMAT.md` describes it; output: texts, rows and charts. Nothing
//! is computed here but the course of a fitted law between the budgets.

use crate::axis::{Axis, Format};
use crate::chart::{Chart, Dash, Line};
use crate::number::significant;
use crate::resources::{CpuRow, CpuUse, Matrix, PagePlacement};
use serde::{Deserialize, Serialize};

/// Sentences above everything else; the tables have all.
const SENTENCES_MAX: usize = 6;
/// The budget that is no resource.
const INSTANCES: &str = "instances";
const SAME_CPUS: &str = "More instances have no more cpus here: they share those that one has \
                         alone. An efficiency below 100 % is what that leads one to expect, and no \
                         loss; compare op/s.";
/// Points of a fitted law.
const LAW_POINTS: u32 = 60;

type Levels = Vec<(String, String)>;

/// What of `outcome.json` is shown.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    planned: usize,
    done: usize,
    #[serde(default)]
    misplaced: usize,
    compare: Option<String>,
    cells: Vec<Cell>,
    budget: Option<String>,
    scaled: Vec<Scaled>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    factors: Levels,
    arms: Vec<Arm>,
    sentence: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Arm {
    name: String,
    ops_s_mean: Option<Figure>,
    #[serde(default)]
    cpu: Option<CpuUse>,
    #[serde(default)]
    pages: Option<PagePlacement>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Deserialize)]
struct Figure {
    value: f64,
    interval: (f64, f64),
    interval_kind: String,
}

#[derive(Debug, Deserialize)]
struct Scaled {
    factors: Levels,
    steps: Vec<Step>,
    usl: Usl,
}

#[derive(Debug, Deserialize)]
struct Step {
    budget: u32,
    level: Option<Figure>,
    speedup: Option<Figure>,
    efficiency: Option<Figure>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Usl {
    Fitted(Fit),
    NotFitted { reason: String },
}

#[derive(Debug, Deserialize)]
struct Fit {
    law: Law,
    sigma_interval: (f64, f64),
    kappa_interval: (f64, f64),
}

#[derive(Debug, Deserialize)]
struct Law {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

/// Budget, cpus used, cpus given.
type Cpus = (f64, f64, f64);

/// As the template needs it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    sentences: Vec<String>,
    more: usize,
    compare: String,
    cells: Vec<ShownCell>,
    budget: String,
    scaled: Vec<ShownScaled>,
}

#[derive(Debug, Serialize)]
struct ShownCell {
    heading: String,
    sentence: String,
    rows: Vec<[String; 3]>,
    cpu: Vec<CpuRow>,
    matrices: Vec<Matrix>,
    /// All pages of all arms are on one NUMA node, and so are the cpus.
    one_numa: bool,
}

#[derive(Debug, Serialize)]
struct ShownScaled {
    heading: String,
    /// Contention and crosstalk with their intervals.
    law: Option<[String; 2]>,
    /// Why there is no law.
    lawless: Option<String>,
    /// What an efficiency below 100 % means here.
    note: Option<&'static str>,
    rows: Vec<[String; 5]>,
}

fn heading(factors: &[(String, String)]) -> String {
    let level = |(factor, level): &(String, String)| format!("{factor} {level}");
    match factors.is_empty() {
        true => "all trials".to_owned(),
        false => factors.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

impl Figure {
    fn range(&self, times: f64) -> String {
        let (low, high) = (self.interval.0 * times, self.interval.1 * times);
        format!("{} to {}, {}", significant(low), significant(high), self.interval_kind)
    }
}

impl Outcome {
    /// Texts and tables.
    pub(crate) fn shown(&self) -> Shown {
        let told: Vec<String> = self
            .cells
            .iter()
            .filter_map(|cell| Some((cell, cell.sentence.as_ref()?)))
            .map(|(cell, sentence)| match cell.factors.is_empty() {
                true => format!("{sentence}."),
                false => format!("{}: {sentence}.", heading(&cell.factors)),
            })
            .collect();
        let more = told.len().saturating_sub(SENTENCES_MAX);
        let mut sentences: Vec<String> = told.into_iter().take(SENTENCES_MAX).collect();
        if self.done < self.planned {
            sentences.push(format!("{} of {} trials ended ok.", self.done, self.planned));
        }
        if self.misplaced > 0 {
            let all = "ended with instances that were not where they were put, and do not count.";
            sentences.push(format!("{} of the others {all}", self.misplaced));
        }
        let budget = self.budget.as_deref().unwrap_or_default();
        Shown {
            sentences,
            more,
            compare: self.compare.clone().unwrap_or_else(|| "experiment".to_owned()),
            cells: self.cells.iter().map(Cell::shown).collect(),
            budget: budget.to_owned(),
            scaled: self.scaled.iter().map(|scaled| scaled.shown(budget)).collect(),
        }
    }

    /// Throughput and efficiency against the budget.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let Some(budget) = &self.budget else { return Vec::new() };
        let steps = || self.scaled.iter().flat_map(|scaled| &scaled.steps);
        let most = steps().map(|step| step.budget).max().unwrap_or(1);
        let least = steps().map(|step| step.budget).min().unwrap_or(1);
        let x =
            Axis::exact(Format::Number, f64::from(least), f64::from(most)).called("budget", budget);
        let throughput = self.lines(|step| step.level.as_ref(), true);
        let efficiency = self.lines(|step| step.efficiency.as_ref(), false);
        let values = |lines: &[Line]| {
            let points = lines.iter().flat_map(|line| &line.points);
            points.filter_map(|point| point.1).collect::<Vec<_>>()
        };
        let rates = Axis::linear(Format::Rate, values(&throughput).into_iter());
        let shares = Axis::linear(Format::Share, values(&efficiency).into_iter().chain([1.0]));
        let title = format!("Throughput, by {budget}");
        let mut charts = vec![
            Chart::new("outcome throughput", &title, x.clone(), rates, throughput),
            Chart::new(
                "outcome efficiency",
                &format!("Efficiency, by {budget}"),
                x,
                shares,
                efficiency,
            ),
        ];
        for chart in &mut charts {
            chart.group = "outcome".into();
            chart.note = "Circles were measured, dotted lines are their intervals.".to_owned();
        }
        charts[0].note.push_str(" A dashed line is the scalability law, where it could be fitted.");
        charts.extend(self.cpu_chart(budget));
        charts
    }

    /// Cpus that the instances use and may use, against the budget.
    fn cpu_chart(&self, budget: &str) -> Option<Chart> {
        let mut courses: Vec<(String, Vec<Cpus>)> = Vec::new();
        for (cell, arm) in
            self.cells.iter().flat_map(|cell| cell.arms.iter().map(move |a| (cell, a)))
        {
            let Some((used, given)) = arm.cpu.as_ref().and_then(CpuUse::of_target) else {
                continue;
            };
            let mut levels = cell.factors.clone();
            levels.extend(self.compare.iter().map(|factor| (factor.clone(), arm.name.clone())));
            let at = levels.iter().find(|(factor, _)| factor == budget);
            let Some(at) = at.and_then(|(_, level)| level.parse::<f64>().ok()) else { continue };
            levels.retain(|(factor, _)| factor != budget);
            let name = heading(&levels);
            match courses.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push((at, used, given)),
                None => courses.push((name, vec![(at, used, given)])),
            }
        }
        let mut lines = Vec::new();
        for (colour, (name, points)) in courses.iter_mut().enumerate() {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let used = points.iter().map(|(at, used, _)| (*at, Some(*used))).collect();
            let given = points.iter().map(|(at, _, given)| (*at, Some(*given))).collect();
            let term = "cpu of the instances";
            lines.push(Line { name: name.clone(), term, colour, dash: Dash::Solid, points: used });
            let name = format!("{name}, given");
            lines.push(Line { name, term, colour, dash: Dash::Dotted, points: given });
        }
        let all = || lines.iter().flat_map(|line| &line.points);
        let least = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let most = all().map(|point| point.0).fold(0.0, f64::max);
        let y = Axis::linear(Format::Number, all().filter_map(|point| point.1));
        let x = Axis::exact(Format::Number, least, most).called("budget", budget);
        let title = format!("Cpus used by the instances, by {budget}");
        (all().count() > 0).then(|| {
            let y = y.called("cpus", "cpus").unit("cpus");
            let mut chart = Chart::new("outcome cpu", &title, x, y, lines);
            chart.group = "outcome".into();
            chart.note = "Dotted lines are the cpus that they may use.".to_owned();
            chart
        })
    }

    /// A line per combination, the ends of its intervals, and its law.
    fn lines(&self, figure: impl Fn(&Step) -> Option<&Figure>, with_law: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        for (colour, scaled) in self.scaled.iter().enumerate() {
            let name = heading(&scaled.factors);
            let points = |value: &dyn Fn(&Figure) -> f64| {
                let point = |s: &Step| (f64::from(s.budget), figure(s).map(value));
                scaled.steps.iter().map(point).collect::<Vec<_>>()
            };
            let mut add = |name: String, dash, points| {
                lines.push(Line { name, term: "throughput", colour, dash, points });
            };
            add(name.clone(), Dash::Solid, points(&|f| f.value));
            add(format!("{name}, least"), Dash::Dotted, points(&|f| f.interval.0));
            add(format!("{name}, most"), Dash::Dotted, points(&|f| f.interval.1));
            if let (Usl::Fitted(fit), true) = (&scaled.usl, with_law) {
                add(format!("{name}, law"), Dash::Dashed, scaled.course(&fit.law));
            }
        }
        lines
    }
}

impl Cell {
    fn shown(&self) -> ShownCell {
        let row = |arm: &Arm| match &arm.ops_s_mean {
            Some(mean) => [arm.name.clone(), significant(mean.value), mean.range(1.0)],
            None => [arm.name.clone(), "–".to_owned(), "nothing measured".to_owned()],
        };
        let pages = || self.arms.iter().filter_map(|arm| Some((arm, arm.pages.as_ref()?)));
        let one_numa = pages().next().is_some() && pages().all(|(_, pages)| pages.is_one());
        let matrices = pages().filter(|_| !one_numa);
        ShownCell {
            heading: heading(&self.factors),
            sentence: self.sentence.clone().unwrap_or_default(),
            rows: self.arms.iter().map(row).collect(),
            cpu: self.arms.iter().filter_map(|a| Some(a.cpu.as_ref()?.row(&a.name))).collect(),
            matrices: matrices.map(|(arm, pages)| pages.matrix(&arm.name)).collect(),
            one_numa,
        }
    }
}

impl Scaled {
    fn shown(&self, budget: &str) -> ShownScaled {
        let value = |figure: Option<&Figure>, times: f64| {
            figure.map_or("–".to_owned(), |figure| significant(figure.value * times))
        };
        let row = |step: &Step| {
            let efficiency = step.efficiency.as_ref();
            [
                step.budget.to_string(),
                value(step.level.as_ref(), 1.0),
                value(step.speedup.as_ref(), 1.0),
                value(efficiency, 100.0),
                efficiency.map_or(String::new(), |figure| figure.range(100.0)),
            ]
        };
        let within = |value: f64, (low, high): (f64, f64)| {
            format!("{} ({} to {})", significant(value), significant(low), significant(high))
        };
        let (law, lawless) = match &self.usl {
            Usl::Fitted(Fit { law, sigma_interval, kappa_interval }) => {
                let law = [within(law.sigma, *sigma_interval), within(law.kappa, *kappa_interval)];
                (Some(law), None)
            }
            Usl::NotFitted { reason } => (None, Some(reason.clone())),
        };
        ShownScaled {
            heading: heading(&self.factors),
            law,
            lawless,
            note: (budget == INSTANCES).then_some(SAME_CPUS),
            rows: self.steps.iter().map(row).collect(),
        }
    }

    /// The law between the least and the greatest budget.
    fn course(&self, law: &Law) -> Vec<(f64, Option<f64>)> {
        let budgets = || self.steps.iter().map(|step| f64::from(step.budget));
        let (low, high) = (budgets().fold(f64::INFINITY, f64::min), budgets().fold(0.0, f64::max));
        let point = |i: u32| {
            let n = low + (high - low) * f64::from(i) / f64::from(LAW_POINTS);
            let cost = 1.0 + law.sigma * (n - 1.0) + law.kappa * n * (n - 1.0);
            (n, Some(law.lambda * n / cost))
        };
        (0..=LAW_POINTS).map(point).collect()
    }
}
