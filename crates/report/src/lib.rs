//! Run directory to a self-contained HTML page, and to the data of its plots.
//!
//! Input: a run directory and nothing else (`docs/FORMAT.md`); output: `report.html` in it, one
//! file below 1.5 MB that opens offline: text, tables, inline SVG, one style sheet, one script of
//! its own. It is built from what is there: a failed run gets a report with its reason. On request
//! every plot is also written as CSV and JSON.
//!
//! Limits: plots for the first 6 trials, all others in the table of trials; up to 1200 points for
//! a line over time, in which intervals are merged as histograms.

mod axis;
mod chart;
mod counters;
mod events;
mod facts;
mod glossary;
mod latency_table;
mod load;
mod number;
mod outcome;
mod page;
mod plots;
mod resources;
mod series;
mod svg;
mod tables;
mod trials;
pub mod ycsb;

pub use latency_table::TableAsked;

use latency_table::LatencyTables;
use page::Report;
use record::run_dir::{MANIFEST, REPORT_HTML};
use record::write_whole;
use std::path::{Path, PathBuf};
use std::{fs, io};
use thiserror::Error;

/// Why a report could not be built.
#[derive(Debug, Error)]
pub enum ReportError {
    /// No manifest.
    #[error(
        "'{}' is no run directory, it has no {MANIFEST}: give one of the directories in runs/",
        path.display()
    )]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// The manifest, or the directory itself, cannot be read.
    #[error("cannot read '{}': {why}; is it of this version of wideload?", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Its operations would count twice.
    #[error("'{}' is named twice: name each run once, or copy it", path.display())]
    Twice {
        /// The run directory, as it was given.
        path: PathBuf,
    },
    /// The page could not be put together.
    #[error("cannot build the report of '{}': {source}", path.display())]
    Template {
        /// The run directory.
        path: PathBuf,
        /// What the template engine says.
        source: minijinja::Error,
    },
    /// The directory of the plots' data could not be made.
    #[error("cannot make '{}': {source}; is the run directory writable?", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The page could not be written.
    #[error(transparent)]
    Write(#[from] record::RunDirError),
}

/// The directory of the plots' data, in the run directory.
pub const REPORT_DATA: &str = "report-data";

/// Builds `report.html` in a run directory, from its files. Returns the path of the page.
pub fn build(run_dir: &Path) -> Result<PathBuf, ReportError> {
    let run = load::run(run_dir)?;
    write_page(run_dir, &Report::new(&run))
}

/// As [`build`], and writes the data of every plot to `report-data/NAME.csv` and `NAME.json`, of
/// which it returns the paths after that of the page.
pub fn build_with_data(run_dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    build_as(run_dir, None, true).map(|built| built.paths)
}

/// What was built.
#[derive(Debug)]
pub struct Built {
    /// The page, and the data of its plots.
    pub paths: Vec<PathBuf>,
    /// The latency table, where one was asked for.
    pub table: Option<String>,
}

/// The file of a latency table, in [`REPORT_DATA`].
pub const LATENCY_TABLE_CSV: &str = "latency-table.csv";

/// As [`build`], with a latency table in the page, and with the data of plots and table.
///
/// # Errors
/// As [`build`], and when a run of the table cannot be read.
pub fn build_as(
    run_dir: &Path,
    table: Option<&TableAsked>,
    data: bool,
) -> Result<Built, ReportError> {
    let run = load::run(run_dir)?;
    let table = table.map(|asked| LatencyTables::read(run_dir, &run, asked)).transpose()?;
    let text = table.as_ref().map(LatencyTables::text);
    let mut report = Report::new(&run);
    report.table = table;
    let mut paths = vec![write_page(run_dir, &report)?];
    if data {
        paths.extend(write_data(run_dir, &report)?);
    }
    Ok(Built { paths, table: text })
}

fn write_data(run_dir: &Path, report: &Report<'_>) -> Result<Vec<PathBuf>, ReportError> {
    let mut paths = Vec::new();
    let dir = run_dir.join(REPORT_DATA);
    fs::create_dir_all(&dir)
        .map_err(|source| ReportError::Directory { path: dir.clone(), source })?;
    for chart in report.charts() {
        let csv = dir.join(format!("{}.csv", chart.id));
        write_whole(&csv, chart.csv().as_bytes())?;
        let json = dir.join(format!("{}.json", chart.id));
        write_whole(&json, format!("{:#}\n", chart.json()).as_bytes())?;
        paths.extend([csv, json]);
    }
    if let Some(table) = &report.table {
        let path = dir.join(LATENCY_TABLE_CSV);
        write_whole(&path, table.csv().as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}

fn write_page(run_dir: &Path, report: &Report<'_>) -> Result<PathBuf, ReportError> {
    let html = report
        .render()
        .map_err(|source| ReportError::Template { path: run_dir.to_owned(), source })?;
    let path = run_dir.join(REPORT_HTML);
    write_whole(&path, html.as_bytes())?;
    Ok(path)
}
