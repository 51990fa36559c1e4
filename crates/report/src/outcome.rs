//! The outcome of an experiment on its page: the verdict in sentences, tables, and plots against
//! the budget.
//!
//! Input: `outcome.json` as `docs/FORMAT.md` describes it; output: texts, rows and charts. Nothing
//! is computed here but the course of a fitted law between the budgets.

use crate::axis::{Axis, Format};
use crate::chart::{Chart, Dash, Line};
use crate::number::{latency, significant};
use crate::resources::{CpuRow, CpuUse, Matrix, PagePlacement};
use serde::{Deserialize, Serialize};

/// Sentences above everything else; the tables have all.
const SENTENCES_MAX: usize = 6;
/// The budget that is no resource.
const INSTANCES: &str = "instances";
const SAME_CPUS: &str = "All instances share the cpus that one has alone: op/s are compared, and \
                         there is no efficiency.";
/// What a comparison by latency is called.
const BY_RESPONSE: &str = "response_p99_us";
const MEASURED: &str = "Marks were measured, dotted lines are their intervals.";
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
    #[serde(default)]
    study: Option<Study>,
}

/// What a layout study says beside figures.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Study {
    arms: Vec<String>,
    clients: Vec<String>,
    left_out: Vec<String>,
    recommended: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    factors: Levels,
    arms: Vec<Arm>,
    /// `ops_s` or `response_p99_us`.
    #[serde(default)]
    by: String,
    #[serde(default)]
    comparison: Option<Comparison>,
    sentence: Option<String>,
    #[serde(default)]
    surely: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    best: usize,
    versus: Vec<Versus>,
}

#[derive(Debug, Deserialize)]
struct Versus {
    arm: usize,
    ratio: Figure,
}

/// The median of trials, and their least and largest.
#[derive(Debug, Deserialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

#[derive(Debug, Deserialize)]
struct Arm {
    name: String,
    ops_s_mean: Option<Figure>,
    #[serde(default)]
    response_p99_us_spread: Option<Spread>,
    #[serde(default)]
    cpu: Option<CpuUse>,
    #[serde(default)]
    pages: Option<PagePlacement>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Deserialize)]
struct Figure {
    value: f64,
    /// None of a single value.
    interval: Option<(f64, f64)>,
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

/// As the template needs it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    sentences: Vec<Told>,
    /// How many trials are missing.
    missing: Vec<String>,
    more: usize,
    compare: String,
    cells: Vec<ShownCell>,
    budget: String,
    /// The budget is no resource.
    shares_cpus: Option<&'static str>,
    scaled: Vec<ShownScaled>,
    study: Option<Study>,
}

/// A verdict, and how sure it is.
#[derive(Debug, Serialize)]
struct Told {
    sentence: String,
    surely: String,
    /// p99 by arm; empty where the verdict is about it.
    beside: String,
}

#[derive(Debug, Serialize)]
struct ShownCell {
    heading: String,
    /// op/s is what was asked for.
    is_scheduled: bool,
    rows: Vec<[String; 5]>,
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
    /// Budget, op/s, speed-up, efficiency, its interval.
    rows: Vec<[String; 5]>,
}

fn heading(factors: &[(String, String)]) -> String {
    let level = |(factor, level): &(String, String)| format!("{factor} {level}");
    match factors.is_empty() {
        true => "all trials".to_owned(),
        false => factors.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

/// What must not be broken over two lines stays together.
fn tied(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// With a capital letter and a full stop.
fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), tied(letters.as_str()))
}

impl Figure {
    fn range(&self, times: f64) -> String {
        let kind = tied(&self.interval_kind);
        let ends = self.interval.map(|(low, high)| (low * times, high * times));
        ends.map_or_else(
            || kind.clone(),
            |(low, high)| format!("{} to {}, {kind}", significant(low), significant(high)),
        )
    }
}

impl Outcome {
    /// Texts and tables.
    pub(crate) fn shown(&self) -> Shown {
        let compare = self.compare.as_deref();
        let told: Vec<Told> = self.cells.iter().filter_map(|cell| cell.told(compare)).collect();
        let mut missing = Vec::new();
        if self.done < self.planned {
            missing.push(format!("{} of {} trials ended ok.", self.done, self.planned));
        }
        if self.misplaced > 0 {
            let all = "ended with instances that were not where they were put, and do not count.";
            missing.push(format!("{} of the others {all}", self.misplaced));
        }
        let budget = self.budget.as_deref().unwrap_or_default();
        Shown {
            more: told.len().saturating_sub(SENTENCES_MAX),
            sentences: told.into_iter().take(SENTENCES_MAX).collect(),
            missing,
            compare: self.compare.clone().unwrap_or_else(|| "experiment".to_owned()),
            cells: self.cells.iter().map(Cell::shown).collect(),
            budget: budget.to_owned(),
            shares_cpus: (budget == INSTANCES).then_some(SAME_CPUS),
            scaled: self.scaled.iter().map(Scaled::shown).collect(),
            study: self.study.clone(),
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
        let mut charts = Vec::new();
        if !throughput.is_empty() {
            let mut chart = Chart::new("outcome throughput", &title, x.clone(), rates, throughput);
            let law = " A dashed line is the scalability law, where it could be fitted.";
            chart.note = format!("{MEASURED}{law}");
            charts.push(chart);
        }
        charts.extend(self.wait_chart(budget));
        if values(&efficiency).is_empty() {
            // Of what is no resource.
        } else {
            let title = format!("Efficiency, by {budget}");
            let mut chart = Chart::new("outcome efficiency", &title, x, shares, efficiency);
            chart.note = MEASURED.to_owned();
            charts.push(chart);
        }
        charts.extend(self.cpu_chart(budget));
        charts.iter_mut().for_each(|chart| chart.group = "outcome".into());
        charts
    }

    /// The p99 of the response time, against the budget.
    fn wait_chart(&self, budget: &str) -> Option<Chart> {
        let of = |arm: &Arm| {
            let spread = arm.response_p99_us_spread.as_ref()?;
            Some([spread.median, spread.min, spread.max])
        };
        let mut lines = Vec::new();
        for (colour, (name, points)) in self.by_budget(budget, of).into_iter().enumerate() {
            let term = "response";
            let column = |i: usize| points.iter().map(|(at, of)| (*at, Some(of[i]))).collect();
            let mut add = |name: String, dash, points| {
                lines.push(Line { name, term, colour, dash, points });
            };
            add(name.clone(), Dash::Solid, column(0));
            add(format!("{name}, least"), Dash::Dotted, column(1));
            add(format!("{name}, most"), Dash::Dotted, column(2));
        }
        let (x, values) = axis_of(&lines, budget)?;
        let y = Axis::log(Format::Latency, values.into_iter());
        let title = format!("p99 of the response time, by {budget}");
        let mut chart = Chart::new("outcome response", &title, x, y, lines);
        chart.note =
            "The median of the trials; dotted lines are the least and the largest.".to_owned();
        Some(chart)
    }

    /// A figure of each arm against the budget, a course for each combination of the other
    /// factors.
    fn by_budget<T>(
        &self,
        budget: &str,
        figure: impl Fn(&Arm) -> Option<T>,
    ) -> Vec<(String, Vec<(f64, T)>)> {
        let mut courses: Vec<(String, Vec<(f64, T)>)> = Vec::new();
        let arms = self.cells.iter().flat_map(|cell| cell.arms.iter().map(move |a| (cell, a)));
        for (cell, arm) in arms {
            let Some(of) = figure(arm) else { continue };
            let mut levels = cell.factors.clone();
            levels.extend(self.compare.iter().map(|factor| (factor.clone(), arm.name.clone())));
            let at = levels.iter().find(|(factor, _)| factor == budget);
            let Some(at) = at.and_then(|(_, level)| level.parse::<f64>().ok()) else { continue };
            levels.retain(|(factor, _)| factor != budget);
            let name = heading(&levels);
            match courses.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push((at, of)),
                None => courses.push((name, vec![(at, of)])),
            }
        }
        for (_, points) in &mut courses {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        courses
    }

    /// Cpus that the instances use and may use, against the budget.
    fn cpu_chart(&self, budget: &str) -> Option<Chart> {
        let mut lines = Vec::new();
        let of = |arm: &Arm| arm.cpu.as_ref().and_then(CpuUse::of_target);
        for (colour, (name, points)) in self.by_budget(budget, of).into_iter().enumerate() {
            let used = points.iter().map(|(at, (used, _))| (*at, Some(*used))).collect();
            let given = points.iter().map(|(at, (_, given))| (*at, Some(*given))).collect();
            let term = "cpu of the instances";
            lines.push(Line { name: name.clone(), term, colour, dash: Dash::Solid, points: used });
            let name = format!("{name}, given");
            lines.push(Line { name, term, colour, dash: Dash::Dotted, points: given });
        }
        let (x, values) = axis_of(&lines, budget)?;
        let y = Axis::linear(Format::Number, values.into_iter()).called("cpus", "cpus");
        let title = format!("Cpus used by the instances, by {budget}");
        let mut chart = Chart::new("outcome cpu", &title, x, y.unit("cpus"), lines);
        chart.note = "Dotted lines are the cpus that they may use.".to_owned();
        Some(chart)
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
            let end = |high: bool| {
                move |f: &Figure| match (f.interval, high) {
                    (Some((_, end)), true) | (Some((end, _)), false) => end,
                    (None, _) => f.value,
                }
            };
            add(format!("{name}, least"), Dash::Dotted, points(&end(false)));
            add(format!("{name}, most"), Dash::Dotted, points(&end(true)));
            if let (Usl::Fitted(fit), true) = (&scaled.usl, with_law) {
                add(format!("{name}, law"), Dash::Dashed, scaled.course(&fit.law));
            }
        }
        lines
    }
}

/// The axis of a budget, and all values against it; None without any.
fn axis_of(lines: &[Line], budget: &str) -> Option<(Axis, Vec<f64>)> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let least = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let most = all().map(|point| point.0).fold(0.0, f64::max);
    let values: Vec<f64> = all().filter_map(|point| point.1).collect();
    let x = || Axis::exact(Format::Number, least, most).called("budget", budget);
    (!values.is_empty()).then(|| (x(), values))
}

impl Cell {
    fn told(&self, compare: Option<&str>) -> Option<Told> {
        let sentence = self.sentence.as_ref()?;
        // A bare number would be read as a figure.
        let named = |arm: &Arm| match (arm.name.parse::<f64>(), compare) {
            (Ok(_), Some(factor)) => format!("{factor} {}", arm.name),
            _ => arm.name.clone(),
        };
        let sentence = match self.factors.is_empty() {
            true => as_sentence(sentence),
            false => format!("{}: {}.", heading(&self.factors), tied(sentence)),
        };
        let waits = |arm: &Arm| {
            let spread = arm.response_p99_us_spread.as_ref()?;
            Some(format!("{}: {}", named(arm), latency(spread.median)))
        };
        let waits: Vec<String> = self.arms.iter().filter_map(waits).collect();
        let beside = match (self.is_scheduled(), waits.is_empty()) {
            (true, _) => "Op/s is the schedule here, and says nothing of the arms.".to_owned(),
            (_, true) => String::new(),
            _ => format!("p99 of the response time meanwhile, {}.", waits.join(", ")),
        };
        let surely = self.surely.as_deref().map(as_sentence).unwrap_or_default();
        Some(Told { sentence, surely, beside })
    }

    fn is_scheduled(&self) -> bool {
        self.by == BY_RESPONSE
    }

    /// The best arm over each, as far as they were compared.
    fn best_over(&self, arm: usize) -> String {
        let Some(comparison) = &self.comparison else { return String::new() };
        if comparison.best == arm {
            return "the best".to_owned();
        }
        let versus = comparison.versus.iter().find(|versus| versus.arm == arm);
        versus.map_or_else(
            || "not compared".to_owned(),
            |of| format!("{} ({})", significant(of.ratio.value), of.ratio.range(1.0)),
        )
    }

    fn shown(&self) -> ShownCell {
        let row = |(place, arm): (usize, &Arm)| {
            let (ops_s, range) = match &arm.ops_s_mean {
                Some(mean) => (significant(mean.value), mean.range(1.0)),
                None => ("–".to_owned(), "nothing measured".to_owned()),
            };
            let waits = arm.response_p99_us_spread.as_ref().map_or("–".to_owned(), |of| {
                let (least, middle, most) = (latency(of.min), latency(of.median), latency(of.max));
                match of.min < of.max {
                    true => format!("{middle} ({least} to {most})"),
                    false => middle,
                }
            });
            [arm.name.clone(), ops_s, range, waits, self.best_over(place)]
        };
        let pages = || self.arms.iter().filter_map(|arm| Some((arm, arm.pages.as_ref()?)));
        let one_numa = pages().next().is_some() && pages().all(|(_, pages)| pages.is_one());
        let matrices = pages().filter(|_| !one_numa);
        ShownCell {
            heading: heading(&self.factors),
            is_scheduled: self.is_scheduled(),
            rows: self.arms.iter().enumerate().map(row).collect(),
            cpu: self.arms.iter().filter_map(|a| Some(a.cpu.as_ref()?.row(&a.name))).collect(),
            matrices: matrices.map(|(arm, pages)| pages.matrix(&arm.name)).collect(),
            one_numa,
        }
    }
}

impl Scaled {
    fn shown(&self) -> ShownScaled {
        let value = |figure: Option<&Figure>, times: f64| {
            figure.map_or("–".to_owned(), |figure| significant(figure.value * times))
        };
        let row = |(at, step): (usize, &Step)| {
            let efficiency = step.efficiency.as_ref();
            let range = |figure: &Figure| match at {
                0 => "the base".to_owned(),
                _ => figure.range(100.0),
            };
            [
                step.budget.to_string(),
                value(step.level.as_ref(), 1.0),
                value(step.speedup.as_ref(), 1.0),
                value(efficiency, 100.0),
                efficiency.map_or(String::new(), range),
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
            rows: self.steps.iter().enumerate().map(row).collect(),
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
