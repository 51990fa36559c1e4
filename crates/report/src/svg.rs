//! Charts as inline SVG: what is seen before the script runs, and where none may run.
//!
//! Input: a [`Chart`]; output: an `<svg>` of 720 x 308 units that scales with the page. The script
//! draws it again at the size it has. Colours are classes (`c0` to `c7`), so that the style sheet
//! decides on light and dark; a mark per colour and dashes tell lines apart without colours. Every
//! text that comes from outside is escaped here.

use crate::chart::{COLOURS, Chart, Line, Style};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 308.0;
/// Room for the labels of ticks, at least.
const LEFT_MIN: f64 = 70.0;
/// Of a digit of 12 units, as wide as in any common font, and of the gap between groups of them.
const DIGIT_WIDTH: f64 = 7.7;
const GAP_WIDTH: f64 = 4.0;
const GAP: char = '\u{202f}';
const RIGHT: f64 = 14.0;
/// Room for the label of the vertical axis and the numbers of events.
const TOP: f64 = 34.0;
const BOTTOM: f64 = 42.0;
/// A label closer than this to the right edge ends at its tick, so that it is not cut off.
const EDGE: f64 = 16.0;
/// Distance of the marks on a line.
const MARK_EVERY: f64 = 80.0;
/// Lines of so many points have a mark on each.
const MARKED_MAX: usize = 16;
/// Numbers of events closer than this are not written.
const NUMBER_EVERY: f64 = 15.0;

/// Where the plot begins: behind the longest label of a tick.
fn left(chart: &Chart) -> f64 {
    let width = |text: String| {
        text.chars().map(|c| if c == GAP { GAP_WIDTH } else { DIGIT_WIDTH }).sum::<f64>()
    };
    let labels = chart.y.ticks.iter().map(|tick| width(chart.y.tick(*tick)));
    labels.fold(LEFT_MIN, |most, label| most.max(label + 9.0))
}

/// Draws a chart.
pub(crate) fn draw(chart: &Chart) -> String {
    let mut svg = String::new();
    let title = escape(&chart.title);
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" tabindex=\"0\" \
         aria-label=\"{title}\">"
    );
    draw_marks(chart, &mut svg);
    draw_axes(chart, &mut svg);
    if chart.style == Style::Stack {
        draw_stack(chart, &mut svg);
    } else {
        chart.lines.iter().for_each(|line| draw_line(chart, line, &mut svg));
    }
    svg.push_str("</svg>");
    svg
}

/// The sample of a line in the legend.
pub(crate) fn swatch(style: Style, line: &Line, attends: bool) -> String {
    let colour = line.colour % COLOURS;
    let inside = match style {
        Style::Lines => {
            let class = line.dash.class();
            let glyph = match attends {
                true => String::new(),
                false => {
                    let path = glyph(colour, 15.0, 6.0, 3.4);
                    format!("<path class=\"glyph c{colour}\" d=\"{path}\"/>")
                }
            };
            format!("<path class=\"line c{colour} {class}\" d=\"M0 6H30\"/>{glyph}")
        }
        Style::Dots => {
            format!("<path class=\"glyph c{colour}\" d=\"{}\"/>", glyph(colour, 15.0, 6.0, 3.4))
        }
        Style::Stack | Style::Bars => {
            format!("<path class=\"area c{colour}\" d=\"M4 1H26V11H4Z\"/>")
        }
    };
    format!("<svg width=\"30\" height=\"12\" aria-hidden=\"true\">{inside}</svg>")
}

fn draw_marks(chart: &Chart, svg: &mut String) {
    let bottom = HEIGHT - BOTTOM;
    let mut last = f64::NEG_INFINITY;
    for mark in &chart.marks {
        let (Some(from), Some(to)) = (x_at(chart, mark.from), x_at(chart, mark.to)) else {
            continue;
        };
        let class = if mark.bad { "event bad" } else { "event" };
        let width = (to - from).max(2.0);
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
             height=\"{}\"><title>{}</title></rect>",
            bottom - TOP,
            escape(&mark.text)
        );
        let middle = from + width / 2.0;
        if middle - last >= NUMBER_EVERY {
            last = middle;
            let _ = write!(
                svg,
                "<text class=\"{class}\" x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}\
                 </text>",
                TOP - 4.0,
                mark.number
            );
        }
    }
}

fn draw_axes(chart: &Chart, svg: &mut String) {
    let (left, right, bottom) = (left(chart), WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in &chart.y.ticks {
        let Some(y) = y_at(chart, *tick) else { continue };
        let text = escape(&chart.y.tick(*tick));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick y\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 7.0,
            y + 4.0
        );
    }
    let mut last = f64::NEG_INFINITY;
    for tick in &chart.x.ticks {
        let Some(x) = x_at(chart, *tick) else { continue };
        let text = escape(&chart.x.tick(*tick));
        let anchor = if x > right - EDGE { "end" } else { "middle" };
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{}\"/>",
            bottom + 4.0
        );
        // A label that would touch the one before is left out.
        if x - last < 8.0 * text.chars().count() as f64 {
            continue;
        }
        last = x;
        let _ = write!(
            svg,
            "<text class=\"tick x\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
            bottom + 18.0
        );
    }
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\
         <text class=\"label\" x=\"2\" y=\"11\">{}</text>",
        HEIGHT - 6.0,
        escape(&chart.x.label),
        escape(&chart.y.label)
    );
}

fn draw_line(chart: &Chart, line: &Line, svg: &mut String) {
    let colour = line.colour % COLOURS;
    let (mut path, mut glyphs) = (String::new(), String::new());
    let (mut pen_down, mut last) = (false, f64::NEG_INFINITY);
    let bar = bar_width(chart, line.points.len());
    // Few points are measurements, of which each has its mark.
    let few = chart.style == Style::Dots || line.points.len() <= MARKED_MAX;
    let every = if few { 0.0 } else { MARK_EVERY };
    let attends = chart.attends(line);
    for (x_value, y_value) in &line.points {
        let place = y_value.and_then(|y| Some((x_at(chart, *x_value)?, y_at(chart, y)?)));
        let Some((x, y)) = place else {
            pen_down = false;
            continue;
        };
        if chart.style == Style::Bars {
            let (left, foot) = (x - bar / 2.0, HEIGHT - BOTTOM);
            let _ = write!(path, "M{left:.1} {foot}V{y:.1}h{bar:.1}V{foot}Z");
            continue;
        }
        // Without a letter the coordinates go on with the line.
        let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { ' ' } else { 'M' });
        if !attends && (!pen_down || x - last >= every) {
            glyphs.push_str(&glyph(colour, x, y, 3.2));
            last = x;
        }
        pen_down = true;
    }
    let class = line.dash.class();
    let _ = match chart.style {
        Style::Bars => write!(svg, "<path class=\"area c{colour}\" d=\"{path}\"/>"),
        Style::Dots => write!(svg, "<path class=\"glyph c{colour}\" d=\"{glyphs}\"/>"),
        Style::Lines | Style::Stack => write!(
            svg,
            "<path class=\"line c{colour} {class}\" d=\"{path}\"/>\
             <path class=\"glyph c{colour}\" d=\"{glyphs}\"/>"
        ),
    };
}

fn draw_stack(chart: &Chart, svg: &mut String) {
    let mut below: Vec<f64> = Vec::new();
    for line in &chart.lines {
        below.resize(line.points.len(), 0.0);
        let above = line.points.iter().zip(&below).map(|((_, y), b)| b + y.unwrap_or(0.0));
        let above: Vec<f64> = above.collect();
        let mut path = String::new();
        let edge = |values: &[f64], i: usize| {
            Some((x_at(chart, line.points[i].0)?, y_at(chart, values[i])?))
        };
        let there = (0..line.points.len()).filter_map(|i| edge(&above, i));
        let back = (0..line.points.len()).rev().filter_map(|i| edge(&below, i));
        for (i, (x, y)) in there.chain(back).enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { ' ' });
        }
        let _ = write!(svg, "<path class=\"area c{}\" d=\"{path}\"/>", line.colour % COLOURS);
        below = above;
    }
}

fn bar_width(chart: &Chart, count: usize) -> f64 {
    ((WIDTH - left(chart) - RIGHT) / count.max(1) as f64 * 0.7).clamp(1.0, 40.0)
}

/// The mark of a colour around a point, as a path: circle, square, triangle, diamond, triangle
/// upside down, cross, bar, hourglass.
fn glyph(colour: usize, x: f64, y: f64, r: f64) -> String {
    let d = 2.0 * r;
    match colour {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0", x - r),
        1 => format!("M{:.1} {:.1}h{d}v{d}h-{d}z", x - r, y - r),
        2 => format!("M{x:.1} {:.1}l{r} {d}h-{d}z", y - r),
        3 => format!("M{x:.1} {:.1}l{r} {r}l-{r} {r}l-{r} -{r}z", y - r),
        4 => format!("M{x:.1} {:.1}l{r} -{d}h-{d}z", y + r),
        5 => format!("M{:.1} {y:.1}h{d}h-{r}v-{r}v{d}h1v-{d}z", x - r),
        6 => format!("M{:.1} {:.1}h{d}v{r}h-{d}z", x - r, y - r / 2.0),
        _ => format!("M{:.1} {:.1}h{d}l-{d} {d}h{d}z", x - r, y - r),
    }
}

fn x_at(chart: &Chart, value: f64) -> Option<f64> {
    let left = left(chart);
    Some(left + chart.x.place(value)? * (WIDTH - left - RIGHT))
}

fn y_at(chart: &Chart, value: f64) -> Option<f64> {
    Some(HEIGHT - BOTTOM - chart.y.place(value)? * (HEIGHT - TOP - BOTTOM))
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
    use crate::axis::{Axis, Format};
    use crate::chart::{Dash, Mark};

    fn chart(name: &str, points: &[(f64, Option<f64>)]) -> Chart {
        let y = Axis::log(Format::Latency, points.iter().filter_map(|p| p.1));
        let line = Line {
            name: name.into(),
            term: "p99",
            colour: 9,
            dash: Dash::Dashed,
            points: points.to_vec(),
        };
        Chart::new(name, name, Axis::exact(Format::Seconds, 0.0, 10.0), y, vec![line])
    }

    fn lines_of(svg: &str) -> Vec<&str> {
        let paths = svg.split("<path class=\"line").skip(1);
        paths.filter_map(|p| p.split("d=\"").nth(1)?.split('"').next()).collect()
    }

    #[test]
    fn a_gap_breaks_the_line() {
        let drawn = draw(&chart("p99", &[(1.0, Some(5.0)), (2.0, None), (3.0, Some(50.0))]));
        assert_eq!(lines_of(&drawn)[0].matches('M').count(), 2);
        assert!(drawn.contains("class=\"line c1 dashed\""));
    }

    #[test]
    fn the_longest_label_has_room() {
        let mut chart = chart("x", &[(0.0, Some(1.0))]);
        assert_eq!(left(&chart), LEFT_MIN);
        chart.y = Axis::linear(Format::Rate, [15e6].into_iter());
        // Ten digits and gaps end 7 units left of the axis, and begin inside the picture.
        assert!(left(&chart) > LEFT_MIN, "{}", left(&chart));
    }

    #[test]
    fn names_of_users_do_not_become_markup() {
        let mut chart = chart("</script><b onload='x'>\"&", &[(1.0, Some(5.0))]);
        let text = "<i>".to_owned();
        chart.marks = vec![Mark { from: 1.0, to: 2.0, number: 1, bad: true, text }];
        let drawn = draw(&chart);
        assert!(!drawn.contains("<b") && !drawn.contains("<i>"));
        assert!(drawn.contains("&lt;/script&gt;"));
    }

    #[test]
    fn odd_values_are_left_out() {
        let drawn = draw(&chart("x", &[(f64::NAN, Some(1.0)), (1.0, Some(f64::INFINITY))]));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
    }

    #[test]
    fn areas_stand_on_one_another() {
        let mut chart = chart("x", &[(0.0, Some(1.0)), (10.0, Some(1.0))]);
        chart.y = Axis::linear(Format::Rate, [2.0].into_iter());
        chart.lines.push(chart.lines[0].clone());
        chart.style = Style::Stack;
        let drawn = draw(&chart);
        let (middle, top) = (y_at(&chart, 1.0).unwrap(), y_at(&chart, 2.0).unwrap());
        let second = drawn.rsplit("d=\"").next().unwrap();
        assert!(second.starts_with(&format!("M{LEFT_MIN:.1} {top:.1}")), "{second}");
        assert!(second.contains(&format!("{middle:.1}\"")), "{second}");
    }

    #[test]
    fn bars_are_as_many_as_points() {
        let mut chart = chart("x", &[(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, Some(3.0))]);
        chart.style = Style::Bars;
        assert_eq!(draw(&chart).rsplit("d=\"").next().unwrap().matches('M').count(), 3);
    }
}
