//! A plot as data: lines with names, two axes, and the events that are marked in it.
//!
//! Input: points in the units of their axes; output: the drawing and the JSON that the script of
//! the page reads ([`Chart::draw`]), and the same values as CSV and JSON files ([`Chart::csv`],
//! [`Chart::json`]). Values are rounded to five digits, times to a millisecond: histograms have
//! three digits, and a page has to stay small.

use crate::axis::{Axis, Format};
use crate::svg;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Write;

/// Colours in the style sheet; lines beyond share them.
pub(crate) const COLOURS: usize = 8;

/// How the lines of a chart are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Style {
    /// Lines with a mark now and then.
    Lines,
    /// Areas on top of one another; all lines have the same places.
    Stack,
    /// Marks without a line.
    Dots,
    /// A bar from 0 at every place.
    Bars,
}

/// How a line is told from others of its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Dash {
    /// Without gaps.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Dash {
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => "dashed",
            Self::Dotted => "dotted",
        }
    }
}

impl Serialize for Dash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.class())
    }
}

/// One line of a chart. A value of None breaks it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// The term of the glossary that says what it is.
    pub(crate) term: &'static str,
    pub(crate) colour: usize,
    pub(crate) dash: Dash,
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// A stretch of time that is marked in plots over time.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Mark {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Its number in the list of events.
    pub(crate) number: usize,
    pub(crate) bad: bool,
    pub(crate) text: String,
}

/// A chart: what it shows and in which units.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// Of the file and the element: letters, digits and hyphens.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) note: String,
    /// Charts of one group share their range when one is zoomed; empty for none.
    pub(crate) group: String,
    pub(crate) style: Style,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    pub(crate) marks: Vec<Mark>,
}

/// A chart as the template needs it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Drawn {
    pub(crate) id: String,
    title: String,
    note: String,
    svg: String,
    data: String,
    legend: Vec<Legend>,
}

#[derive(Debug, Clone, Serialize)]
struct Legend {
    name: String,
    term: &'static str,
    swatch: String,
    /// The place of its line.
    at: usize,
}

/// What the script reads.
#[derive(Debug, Serialize)]
struct Data<'a> {
    id: &'a str,
    title: &'a str,
    group: &'a str,
    style: Style,
    x: &'a Axis,
    y: &'a Axis,
    /// The places that all lines share; null when each has its own.
    places: Option<Vec<f64>>,
    lines: Vec<DataLine<'a>>,
    marks: &'a [Mark],
}

#[derive(Debug, Serialize)]
struct DataLine<'a> {
    name: &'a str,
    colour: usize,
    dash: Dash,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<Vec<f64>>,
    y: Vec<Option<f64>>,
}

impl Chart {
    /// A chart of lines without marks.
    pub(crate) fn new(id: &str, title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self {
            id: slug(id),
            title: title.to_owned(),
            note: String::new(),
            group: String::new(),
            style: Style::Lines,
            x,
            y,
            lines,
            marks: Vec::new(),
        }
    }

    /// The drawing, its legend and its data.
    pub(crate) fn draw(&self) -> Drawn {
        // The ends of an interval come and go with their line, and the note says what they are.
        let listed = self.lines.iter().enumerate().filter(|(_, line)| !self.is_end(line));
        let legend = listed.map(|(at, line)| Legend {
            name: line.name.clone(),
            term: line.term,
            swatch: svg::swatch(self.style, line, self.attends(line)),
            at,
        });
        Drawn {
            id: self.id.clone(),
            title: self.title.clone(),
            note: self.note.clone(),
            svg: svg::draw(self),
            data: self.data(),
            legend: legend.collect(),
        }
    }

    /// Whether a line goes with a solid one of its colour: its interval, its law.
    pub(crate) fn attends(&self, line: &Line) -> bool {
        line.dash != Dash::Solid && self.leaders(line).next().is_some()
    }

    /// Whether it is an end of the interval of such a line, whose name its own begins with.
    fn is_end(&self, line: &Line) -> bool {
        let is_name_of = |leader: &Line| {
            let rest = line.name.strip_prefix(&leader.name);
            rest.is_some_and(|rest| [", least", ", most"].contains(&rest))
        };
        line.dash == Dash::Dotted && self.leaders(line).any(is_name_of)
    }

    fn leaders(&self, line: &Line) -> impl Iterator<Item = &Line> {
        let colour = line.colour;
        self.lines.iter().filter(move |l| l.dash == Dash::Solid && l.colour == colour)
    }

    fn data(&self) -> String {
        let grids: Vec<Vec<f64>> = self.lines.iter().map(|line| self.xs(line)).collect();
        let shared = grids.windows(2).all(|pair| pair[0] == pair[1]);
        let lines = self.lines.iter().zip(&grids).map(|(line, grid)| DataLine {
            name: &line.name,
            colour: line.colour % COLOURS,
            dash: line.dash,
            x: (!shared).then(|| grid.clone()),
            y: line.points.iter().map(|(_, y)| y.and_then(rounded)).collect(),
        });
        let data = Data {
            id: &self.id,
            title: &self.title,
            group: &self.group,
            style: self.style,
            x: &self.x,
            y: &self.y,
            places: grids.first().filter(|_| shared).cloned(),
            lines: lines.collect(),
            marks: &self.marks,
        };
        // `<` could end the script element that holds this.
        serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c")
    }

    fn xs(&self, line: &Line) -> Vec<f64> {
        line.points.iter().map(|(x, _)| place(*x)).collect()
    }

    /// Every point as `series,X,Y`, with the axes' names as the columns' names.
    pub(crate) fn csv(&self) -> String {
        let mut text = format!("series,{},{}\n", self.x.name, self.y.name);
        for line in &self.lines {
            let name = quoted(&line.name);
            for (x, y) in self.values(line) {
                let y = y.map_or_else(String::new, |y| y.to_string());
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name},{x},{y}");
            }
        }
        text
    }

    /// The same as JSON, with title, units and notes.
    pub(crate) fn json(&self) -> Value {
        let axis = |axis: &Axis| json!({"name": axis.name, "label": axis.label, "unit": axis.unit});
        let series = self.lines.iter().map(|line| {
            let points: Vec<Value> =
                self.values(line).into_iter().map(|(x, y)| json!([x, y])).collect();
            json!({"name": line.name, "points": points})
        });
        json!({
            "id": self.id, "title": self.title, "note": self.note,
            "x": axis(&self.x), "y": axis(&self.y),
            "series": series.collect::<Vec<_>>(), "events": self.marks,
        })
    }

    /// The points as in files: nines as quantiles.
    fn values(&self, line: &Line) -> Vec<(f64, Option<f64>)> {
        let nines = self.x.format == Format::Nines;
        let x = |x: f64| if nines { quantile(place(x)) } else { place(x) };
        line.points.iter().map(|(at, y)| (x(*at), y.and_then(rounded))).collect()
    }
}

/// From nines to the share of samples not above, without the noise of the last digits.
fn quantile(nines: f64) -> f64 {
    ((1.0 - 10f64.powf(-nines)) * 1e12).round() / 1e12
}

/// To a thousandth: milliseconds, or of a nine.
fn place(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

/// To five significant digits; None when it is no number.
fn rounded(value: f64) -> Option<f64> {
    value.is_finite().then(|| format!("{value:.4e}").parse().unwrap_or(value))
}

/// A name as a field of CSV.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A name as part of a file name and of an address in the page.
pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(12).collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, Option<f64>)]) -> Line {
        Line { name: name.into(), term: "ok", points: points.to_vec(), ..Line::default() }
    }

    fn chart(lines: Vec<Line>) -> Chart {
        let y = Axis::linear(Format::Rate, [5.0].into_iter());
        Chart::new("A plot, of <x>", "A plot", Axis::exact(Format::Seconds, 0.0, 9.0), y, lines)
    }

    #[test]
    fn data_are_the_points_with_shared_places_once() {
        let points = [(0.5, Some(12.345_678)), (1.5, None)];
        let drawn = chart(vec![line("a", &points), line("b", &points)]).draw();
        let data: Value = serde_json::from_str(&drawn.data).unwrap();
        assert_eq!(data["places"], json!([0.5, 1.5]));
        assert_eq!(data["lines"][1]["y"], json!([12.346, null]));
        assert_eq!(
            (data["x"]["format"].as_str(), data["id"].as_str()),
            (Some("seconds"), Some("a-plot-of-x"))
        );
        let apart = chart(vec![line("a", &points), line("b", &points[..1])]).draw();
        let data: Value = serde_json::from_str(&apart.data).unwrap();
        assert!(data["places"].is_null() && data["lines"][1]["x"] == json!([0.5]));
    }

    #[test]
    fn files_hold_the_same_values() {
        let chart = chart(vec![line("a,\"b\"", &[(0.5, Some(7.0)), (1.5, None)])]);
        assert_eq!(chart.csv(), "series,t_s,ops_s\n\"a,\"\"b\"\"\",0.5,7\n\"a,\"\"b\"\"\",1.5,\n");
        assert_eq!(chart.json()["series"][0]["points"], json!([[0.5, 7.0], [1.5, null]]));
        let nines = Chart { x: Axis::nines(3.0), ..chart };
        assert!(nines.csv().starts_with("series,quantile,ops_s\n"));
        assert_eq!((quantile(0.0), quantile(3.0)), (0.0, 0.999));
    }

    #[test]
    fn names_of_users_do_not_end_the_script_element() {
        let drawn = chart(vec![line("</script><b>", &[(1.0, Some(5.0))])]).draw();
        assert!(!drawn.data.contains('<'));
    }
}
