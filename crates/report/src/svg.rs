//! Line charts as inline SVG: axes with units, linear or logarithmic ticks, data for the hover.
//!
//! Input: lines of points in their own units; output: an `<svg>` of 640 x 280 units that scales
//! with the page, and the JSON that `hover.js` reads. Colours are classes (`c0` to `c7`), so that
//! the style sheet decides on light and dark. Every text that comes from outside is escaped here.

use crate::number;
use serde::Serialize;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 42.0;
/// A label closer than this to the right edge ends at its tick, so that it is not cut off.
const EDGE: f64 = 14.0;
/// Colours in the style sheet; lines beyond share them.
pub(crate) const COLOURS: usize = 8;
/// Up to so many points a line shows each of them.
const DOTS_MAX: usize = 60;

/// How a value becomes a text, on axes and when hovering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Format {
    /// Microseconds, in the unit that fits.
    Latency,
    /// Per second.
    Rate,
    /// Seconds since the start.
    Seconds,
    /// Number of nines: the share of samples not above is `1 - 10^-x`.
    Nines,
    /// A plain number.
    Number,
}

impl Format {
    fn text(self, value: f64) -> String {
        match self {
            Self::Latency => number::latency(value),
            Self::Rate => format!("{}/s", number::significant(value)),
            Self::Seconds => format!("{} s", number::significant(value)),
            Self::Nines => nines(value),
            Self::Number => number::significant(value),
        }
    }

    fn tick(self, value: f64) -> String {
        match self {
            Self::Latency => number::latency_short(value),
            Self::Rate | Self::Seconds | Self::Number => number::short(value),
            Self::Nines => nines(value),
        }
    }
}

/// `99.9 %` for 3 nines; as many digits as tell it from 100 %.
fn nines(x: f64) -> String {
    let decimals = (x - 1.0).ceil().clamp(0.0, 9.0) as usize;
    let text = format!("{:.decimals$}", (1.0 - 10f64.powf(-x)) * 100.0);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// One axis: the range it spans and where its ticks are.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    label: &'static str,
    format: Format,
    log: bool,
    min: f64,
    max: f64,
    ticks: Vec<f64>,
}

impl Axis {
    /// From 0 (or the least value, when that is negative) to beyond the largest, with round steps.
    pub(crate) fn linear(format: Format, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > low.min(0.0) { high } else { low + 1.0 });
        let step = round_up((high - low) / 5.0);
        let (first, last) = ((low / step).floor(), (high / step - 1e-9).ceil());
        let ticks: Vec<f64> =
            (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        Self { label: "", format, log: false, min: first * step, max: last * step, ticks }
    }

    /// As [`Self::linear`], but ends where the data ends: for time.
    pub(crate) fn time(end_s: f64) -> Self {
        let mut axis = Self::linear(Format::Seconds, std::iter::once(end_s));
        axis.label = "seconds since start";
        axis.max = if end_s > 0.0 { end_s } else { 1.0 };
        axis.ticks.retain(|tick| *tick <= axis.max);
        axis
    }

    /// Powers of ten, with 2 and 5 between them when there are few. Values of 0 or
    /// less have no place.
    pub(crate) fn log(format: Format, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values.filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        let min = round_down(low);
        let mut max = round_up(high);
        if max <= min {
            max = round_up(min * 1.01);
        }
        let (first, last) = (min.log10().floor() as i32, max.log10().ceil() as i32);
        let factors: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = (first..=last).map(|power| 10f64.powi(power));
        let ticks = decades.flat_map(|decade| factors.iter().map(move |factor| factor * decade));
        let ticks = ticks.filter(|t| (min * 0.999..=max * 1.001).contains(t)).collect();
        Self { label: "", format, log: true, min, max, ticks }
    }

    /// The percentile axis: the median, then a tick for every nine.
    pub(crate) fn nines(x_max: f64) -> Self {
        let max = x_max.max(1.0);
        // With many nines there is no room for the median.
        let median = (max <= 3.0).then_some(2f64.log10());
        let ticks = std::iter::once(0.0).chain(median);
        let ticks = ticks.chain((1..=max.floor() as i32).map(f64::from)).collect();
        Self { label: "percentile", format: Format::Nines, log: false, min: 0.0, max, ticks }
    }

    /// Position from 0 to 1; None when the value has none.
    fn place(&self, value: f64) -> Option<f64> {
        let place = if self.log {
            (value / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| v.is_finite()).fold(None, |range, v| {
        let (low, high) = range.unwrap_or((v, v));
        Some((v.min(low), v.max(high)))
    })
}

/// The least of 1, 2, 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 5.0].into_iter().find(|f| f * decade >= value * (1.0 - 1e-9));
    factors.unwrap_or(10.0) * decade
}

/// The largest of 1, 2, 5 times a power of ten that is not above `value`.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let factors = [5.0, 2.0, 1.0].into_iter().find(|f| f * decade <= value * (1.0 + 1e-9));
    factors.unwrap_or(1.0) * decade
}

/// One line of a chart. A value of None breaks it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// A chart: what it shows and in which units.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
}

/// A chart as the template needs it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Drawn {
    title: String,
    note: String,
    svg: String,
    data: String,
    legend: Vec<Legend>,
}

#[derive(Debug, Clone, Serialize)]
struct Legend {
    name: String,
    colour: usize,
    dashed: bool,
}

/// What `hover.js` reads: for each line the places of its points and their texts.
#[derive(Debug, Serialize)]
struct HoverLine {
    name: String,
    colour: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    at: Vec<String>,
    value: Vec<String>,
}

impl Chart {
    /// Draws it.
    pub(crate) fn draw(&self) -> Drawn {
        let mut svg = String::new();
        let title = escape(&self.title);
        // Writing to a String cannot fail.
        let _ = write!(
            svg,
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{title}\">"
        );
        self.draw_axes(&mut svg);
        let mut hover = Vec::new();
        for line in &self.lines {
            hover.push(self.draw_line(&mut svg, line));
        }
        let _ = write!(
            svg,
            "<line class=\"cursor\" y1=\"{TOP}\" y2=\"{}\" visibility=\"hidden\"/></svg>",
            HEIGHT - BOTTOM
        );
        let legend = self.lines.iter().map(|line| Legend {
            name: line.name.clone(),
            colour: line.colour % COLOURS,
            dashed: line.dashed,
        });
        // `<` could end the script element that holds this.
        let data = serde_json::to_string(&hover).unwrap_or_default().replace('<', "\\u003c");
        let (title, note) = (self.title.clone(), self.note.clone());
        Drawn { title, note, svg, data, legend: legend.collect() }
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (i, tick) in self.y.ticks.iter().enumerate() {
            let Some(y) = self.y_at(*tick) else { continue };
            let minor = if i % 2 == 1 { " minor" } else { "" };
            let text = escape(&self.y.format.tick(*tick));
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick{minor}\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">\
                 {text}</text>",
                LEFT - 7.0,
                y + 4.0
            );
        }
        for (i, tick) in self.x.ticks.iter().enumerate() {
            let Some(x) = self.x_at(*tick) else { continue };
            let minor = if i % 2 == 1 { " minor" } else { "" };
            let text = escape(&self.x.format.tick(*tick));
            let anchor = if x > right - EDGE { "end" } else { "middle" };
            let _ = write!(
                svg,
                "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{}\"/>\
                 <text class=\"tick{minor}\" x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"{anchor}\">{text}</text>",
                bottom + 4.0,
                bottom + 18.0
            );
        }
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            HEIGHT - 6.0,
            self.x.label
        );
    }

    fn draw_line(&self, svg: &mut String, line: &Line) -> HoverLine {
        let colour = line.colour % COLOURS;
        let dashed = if line.dashed { " dashed" } else { "" };
        let mut hover = HoverLine {
            name: line.name.clone(),
            colour,
            x: Vec::new(),
            y: Vec::new(),
            at: Vec::new(),
            value: Vec::new(),
        };
        let (mut path, mut dots, mut pen) = (String::new(), String::new(), 'M');
        for (x_value, y_value) in &line.points {
            let place = y_value.and_then(|y| Some((self.x_at(*x_value)?, self.y_at(y)?, y)));
            let Some((x, y, value)) = place else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{x:.1} {y:.1}");
            let _ = write!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>");
            pen = 'L';
            hover.x.push((x * 10.0).round() / 10.0);
            hover.y.push((y * 10.0).round() / 10.0);
            hover.at.push(self.x.format.text(*x_value));
            hover.value.push(self.y.format.text(value));
        }
        let _ = write!(svg, "<path class=\"line c{colour}{dashed}\" d=\"{path}\"/>");
        if self.x.format == Format::Seconds && hover.x.len() <= DOTS_MAX {
            let _ = write!(svg, "<g class=\"dots c{colour}\">{dots}</g>");
        }
        hover
    }

    fn x_at(&self, value: f64) -> Option<f64> {
        Some(LEFT + self.x.place(value)? * (WIDTH - LEFT - RIGHT))
    }

    fn y_at(&self, value: f64) -> Option<f64> {
        Some(HEIGHT - BOTTOM - self.y.place(value)? * (HEIGHT - TOP - BOTTOM))
    }
}

/// Text for SVG content and attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(name: &str, points: &[(f64, Option<f64>)]) -> Drawn {
        let values = || points.iter().filter_map(|p| p.1);
        Chart {
            title: name.into(),
            note: String::new(),
            x: Axis::time(10.0),
            y: Axis::log(Format::Latency, values()),
            lines: vec![Line {
                name: name.into(),
                colour: 9,
                dashed: true,
                points: points.to_vec(),
            }],
        }
        .draw()
    }

    #[test]
    fn linear_axes_have_round_ticks_from_zero() {
        let axis = Axis::linear(Format::Rate, [37.0, 71_234.0].into_iter());
        assert_eq!(axis.ticks, [0.0, 20e3, 40e3, 60e3, 80e3]);
        assert_eq!((axis.min, axis.max), (0.0, 80e3));
        let flat = Axis::linear(Format::Rate, [0.0].into_iter());
        assert!(flat.max > flat.min && flat.ticks.len() < 12);
        let below = Axis::linear(Format::Number, [-3.0, 4.0].into_iter());
        assert!(below.min <= -3.0 && below.max >= 4.0);
    }

    #[test]
    fn log_axes_span_the_data_between_round_values() {
        let axis = Axis::log(Format::Latency, [130.0, 4_100.0].into_iter());
        assert_eq!((axis.min, axis.max), (100.0, 5000.0));
        assert_eq!(axis.ticks, [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        let wide = Axis::log(Format::Latency, [0.0, 3.0, 2e6].into_iter());
        assert_eq!(wide.min, 2.0);
        assert!(wide.ticks.iter().all(|t| (t.log10() - t.log10().round()).abs() < 1e-9));
        let one = Axis::log(Format::Latency, [100.0].into_iter());
        assert!(one.max > one.min);
    }

    #[test]
    fn nines_are_percentiles() {
        for (x, text) in [(0.0, "0 %"), (2f64.log10(), "50 %"), (1.0, "90 %"), (3.0, "99.9 %")] {
            assert_eq!(nines(x), text);
        }
        assert_eq!(nines(5.0), "99.999 %");
    }

    #[test]
    fn a_gap_breaks_the_line_and_has_no_hover() {
        let drawn = chart("p99", &[(1.0, Some(5.0)), (2.0, None), (3.0, Some(50.0))]);
        assert_eq!(drawn.svg.matches('M').count(), 2);
        assert!(drawn.svg.contains("class=\"line c1 dashed\""));
        let hover: serde_json::Value = serde_json::from_str(&drawn.data).unwrap();
        assert_eq!(hover[0]["value"], serde_json::json!(["5.00 µs", "50.0 µs"]));
    }

    #[test]
    fn names_of_users_do_not_become_markup() {
        let drawn = chart("</script><b onload='x'>\"&", &[(1.0, Some(5.0))]);
        assert!(!drawn.svg.contains("<b") && !drawn.data.contains('<'));
        assert!(drawn.svg.contains("&lt;/script&gt;"));
    }

    #[test]
    fn odd_values_are_left_out() {
        let drawn = chart("x", &[(f64::NAN, Some(1.0)), (1.0, Some(f64::INFINITY))]);
        assert!(!drawn.svg.contains("NaN") && !drawn.svg.contains("inf"));
    }
}
