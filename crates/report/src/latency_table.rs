//! Latency tables of run directories: how many operations lie above each of some limits.
//!
//! In: run directories, columns, and which of them belong together: the run itself with other
//! clients of the same run, whose counts are added up, and runs to compare with. The trials of an
//! experiment are arms by their factors; repetitions of one load are added up. Out: a table as
//! text, one as CSV with every interval (cumulative counts, which add up), and a section of the
//! page with the arms overlaid. Averages over columns stand beside the mean of the values.

use crate::ReportError;
use crate::axis::{Axis, Format};
use crate::chart::{Chart, Dash, Drawn, Line, quoted};
use crate::load::{self, Run};
use crate::number::{fixed, grouped};
use analyze::weighted::weighted;
use record::hlog::HlogReader;
use record::run_dir::{LATENCY_HLOG, TOTAL_HLOG, trials};
use record::{ColumnCounts, Columns, Series, Tag};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use units::open_plain;

/// Decimals of a share that is printed, and their step in percent.
const DECIMALS: usize = 1;
const STEP_PERCENT: f64 = 0.1;

/// What a latency table is made of.
#[derive(Debug, Clone)]
pub struct TableAsked {
    /// Its columns.
    pub columns: Columns,
    /// Other clients of the run, which count with it.
    pub clients: Vec<PathBuf>,
    /// Runs to compare with; all of them together are one arm.
    pub against: Vec<PathBuf>,
}

/// One row of the table: an operation of an arm, timed one way.
#[derive(Debug)]
struct Row {
    arm: String,
    op: String,
    /// `service` or `response`.
    kind: &'static str,
    counts: ColumnCounts,
}

/// The tables of a report.
#[derive(Debug)]
pub(crate) struct LatencyTables {
    columns: Columns,
    rows: Vec<Row>,
    csv: String,
    charts: Vec<Chart>,
}

/// What the template needs.
#[derive(Debug, Serialize)]
pub(crate) struct Section {
    headings: Vec<String>,
    rows: Vec<ShownRow>,
    charts: Vec<Drawn>,
    note: String,
}

#[derive(Debug, Serialize)]
struct ShownRow {
    arm: String,
    op: String,
    kind: &'static str,
    samples: String,
    shares: Vec<String>,
    weighted: String,
    mean: String,
}

impl LatencyTables {
    /// Reads the histograms that a table is made of.
    pub(crate) fn read(dir: &Path, run: &Run, asked: &TableAsked) -> Result<Self, ReportError> {
        named_once(dir, asked)?;
        let columns = &asked.columns;
        let fields: Vec<_> = (0..columns.len()).map(|column| columns.field(column)).collect();
        let csv = format!("arm,run,trial,t_s,length_s,op,time,samples,{}\n", fields.join(","));
        let mut tables =
            Self { columns: columns.clone(), rows: Vec::new(), csv, charts: Vec::new() };
        tables.take(dir, |number| arm_of(run, number))?;
        let alone = run.manifest.name.clone();
        for client in &asked.clients {
            load::is_run(client)?;
            tables.take(client, |_| alone.clone())?;
        }
        if let Some(first) = asked.against.first() {
            let other = load::is_run(first)?.name;
            let name = if other == alone { format!("{other} (compared)") } else { other };
            for compared in &asked.against {
                load::is_run(compared)?;
                tables.take(compared, |_| name.clone())?;
            }
        }
        tables.draw();
        Ok(tables)
    }

    /// Counts the trials of a run directory in, each for its arm.
    fn take(&mut self, dir: &Path, arm: impl Fn(u32) -> String) -> Result<(), ReportError> {
        let damaged = |path: &Path, why: String| ReportError::Damaged { path: path.into(), why };
        for (number, trial) in trials(dir).map_err(|e| damaged(dir, e.to_string()))? {
            // A run that was ended at once has its intervals alone, and they are all of it.
            let whole = trial.join(TOTAL_HLOG).exists();
            for (file, total) in [(TOTAL_HLOG, true), (LATENCY_HLOG, false)] {
                let path = trial.join(file);
                // A trial that failed early has none.
                let Ok(file) = open_plain(&path) else { continue };
                for entry in HlogReader::new(BufReader::new(file)) {
                    let entry = entry.map_err(|e| damaged(&path, e.to_string()))?;
                    let Some((op, kind)) = timed(&entry.tag) else { continue };
                    let mut counts = self.columns.counts();
                    counts.add(&self.columns, &entry.latency);
                    let arm = arm(number);
                    let times = match total {
                        true => ",".to_owned(),
                        false => {
                            let seconds = (entry.start.as_secs_f64(), entry.length.as_secs_f64());
                            format!("{:.3},{:.3}", seconds.0, seconds.1)
                        }
                    };
                    let run = quoted(&dir.display().to_string());
                    let whose = format!("{},{run},{number}", quoted(&arm));
                    self.note(&format!("{whose},{times},{op},{kind}"), &counts);
                    if total == whole {
                        self.count(arm, op, kind, &counts);
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, what: &str, counts: &ColumnCounts) {
        let cumulative = counts.cumulative();
        let above: Vec<_> = cumulative.iter().map(u64::to_string).collect();
        let _ = writeln!(self.csv, "{what},{},{}", counts.samples(), above.join(","));
    }

    fn count(&mut self, arm: String, op: String, kind: &'static str, counts: &ColumnCounts) {
        let same = |row: &&mut Row| row.arm == arm && row.op == op && row.kind == kind;
        match self.rows.iter_mut().find(same) {
            Some(row) => row.counts.merge(counts),
            None => self.rows.push(Row { arm, op, kind, counts: counts.clone() }),
        }
    }

    /// Every interval and every total, as cumulative counts.
    pub(crate) fn csv(&self) -> &str {
        &self.csv
    }

    fn shares(&self, row: &Row) -> Vec<String> {
        let all = row.counts.samples().max(1) as f64;
        let share = |above: u64| format!("{:.DECIMALS$}", above as f64 / all * 100.0);
        row.counts.cumulative().into_iter().map(share).collect()
    }

    /// The weighted average of a row in us, its rounding bound in print.
    fn weighted_text(&self, row: &Row) -> String {
        let all = row.counts.samples().max(1) as f64;
        let above = row.counts.cumulative().into_iter().skip(1);
        let above: Vec<f64> = above.map(|n| n as f64 / all * 100.0).collect();
        let found = weighted(&self.columns.middles_us(), &above, STEP_PERCENT);
        let bound = (found.most_us - found.least_us) / 2.0;
        format!("{} ± {}", fixed(found.mean_us, 1), fixed(bound, 1))
    }

    fn convention(&self) -> String {
        let last = self.columns.len() - 1;
        let middle = self.columns.middles_us()[last];
        format!(
            "Shares are of all operations that ended ok or timed out, in percent; those above a \
             limit hold all that is longer. The weighted average takes every column at its \
             middle, the open last one at {middle} µs; ± is what rounding the columns to \
             {STEP_PERCENT} % leaves open. Beside it stands the mean of the values themselves."
        )
    }

    /// The table for a terminal.
    pub(crate) fn text(&self) -> String {
        let headings = (0..self.columns.len()).map(|column| self.columns.heading(column));
        let head = ["arm", "operation", "samples"].map(str::to_owned).into_iter().chain(headings);
        let head = head.chain(["weighted us", "mean us"].map(str::to_owned));
        let mut table: Vec<Vec<String>> = vec![head.collect()];
        for row in &self.rows {
            let op = format!("{} {}", row.op, row.kind);
            let mut cells = vec![row.arm.clone(), op, grouped(row.counts.samples())];
            cells.extend(self.shares(row));
            cells.extend([self.weighted_text(row), fixed(row.counts.mean_us(), 1)]);
            table.push(cells);
        }
        let widths: Vec<usize> = (0..table[0].len())
            .map(|at| table.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &table {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match at {
                    0 => write!(text, "{cell:<width$}"),
                    1 => write!(text, "  {cell:<width$}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            text.push('\n');
        }
        text + &self.convention() + "\n"
    }

    /// The plots.
    pub(crate) fn charts(&self) -> &[Chart] {
        &self.charts
    }

    /// Of each operation the shares of its columns by themselves, arms overlaid.
    fn draw(&mut self) {
        let mut ops: Vec<(&str, &'static str)> = Vec::new();
        for row in &self.rows {
            if !ops.contains(&(&row.op, row.kind)) {
                ops.push((&row.op, row.kind));
            }
        }
        self.charts = ops.into_iter().map(|(op, kind)| self.chart(op, kind)).collect();
    }

    fn chart(&self, op: &str, kind: &'static str) -> Chart {
        let middles = self.columns.middles_us();
        let of_op = self.rows.iter().filter(|row| row.op == op && row.kind == kind);
        let lines = of_op.enumerate().map(|(colour, row)| {
            let all = row.counts.samples().max(1) as f64;
            let shares = row.counts.apart().into_iter().map(|n| Some(n as f64 / all));
            let points = middles.iter().copied().zip(shares).collect();
            Line { name: row.arm.clone(), term: "latency table", colour, dash: Dash::Solid, points }
        });
        let lines: Vec<Line> = lines.collect();
        let (least, most) = (middles[0], middles[middles.len() - 1]);
        let values = lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1);
        let share = Axis::linear(Format::Share, values);
        let x = match self.columns.is_linear() {
            true => Axis::exact(Format::Latency, 0.0, most).called("latency_us", "latency"),
            false => Axis::log(Format::Latency, [least, most].into_iter()),
        };
        let share = share.called("share", "share of all operations");
        let id = format!("latency table {op} {kind}");
        let mut chart =
            Chart::new(&id, &format!("{op}, {kind}: shares by latency"), x, share, lines);
        chart.note = "Each column at its middle; the last holds all that is longer.".into();
        chart
    }

    /// For the page.
    pub(crate) fn section(&self) -> Section {
        let rows = self.rows.iter().map(|row| ShownRow {
            arm: row.arm.clone(),
            op: row.op.clone(),
            kind: row.kind,
            samples: grouped(row.counts.samples()),
            shares: self.shares(row),
            weighted: self.weighted_text(row),
            mean: fixed(row.counts.mean_us(), 1),
        });
        Section {
            headings: (0..self.columns.len()).map(|at| self.columns.heading(at)).collect(),
            rows: rows.collect(),
            charts: self.charts.iter().map(Chart::draw).collect(),
            note: self.convention(),
        }
    }
}

/// Refuses a run that would be counted twice.
fn named_once(dir: &Path, asked: &TableAsked) -> Result<(), ReportError> {
    let mut seen = Vec::new();
    for path in [&dir.to_owned()].into_iter().chain(&asked.clients).chain(&asked.against) {
        // What is not there is told when it is read.
        let Ok(real) = path.canonicalize() else { continue };
        if seen.contains(&real) {
            return Err(ReportError::Twice { path: path.clone() });
        }
        seen.push(real);
    }
    Ok(())
}

/// What a tag is of, where it is of whole operations that were answered or timed out.
fn timed(tag: &str) -> Option<(String, &'static str)> {
    let tag = Tag::parse(tag)?;
    match tag.series {
        Series::Service => Some((tag.op, "service")),
        Series::Response => Some((tag.op, "response")),
        _ => None,
    }
}

/// The arm of a trial: its factors, repetitions apart; of a run without any the run's name.
fn arm_of(run: &Run, number: u32) -> String {
    let row = run.table.iter().find(|row| row.trial == number);
    let factors = row.map_or(&[][..], |row| &row.factors).iter();
    let varied = factors.filter(|(name, _)| !crate::trials::is_repetition(name));
    let levels: Vec<_> = varied.map(|(_, level)| level.clone()).collect();
    if levels.is_empty() { run.manifest.name.clone() } else { levels.join(", ") }
}
