//! Run directory to a self-contained HTML page.
//!
//! Input: a run directory and nothing else (`docs/FORMAT.md`); output: `report.html` in it, one
//! file below 1.5 MB that opens offline: text, tables, inline SVG, one style sheet, one small
//! script. It is built from what is there: a failed run gets a report with its reason.
//!
//! Limits: plots for the first 6 trials, all others in the table of trials.

mod load;
mod number;
mod page;
mod plots;
mod series;
mod svg;

use record::run_dir::{MANIFEST, REPORT_HTML};
use record::write_whole;
use std::path::{Path, PathBuf};
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
    /// The page could not be put together.
    #[error("cannot build the report of '{}': {source}", path.display())]
    Template {
        /// The run directory.
        path: PathBuf,
        /// What the template engine says.
        source: minijinja::Error,
    },
    /// The page could not be written.
    #[error(transparent)]
    Write(#[from] record::RunDirError),
}

/// Builds `report.html` in a run directory, from its files. Returns the path of the page.
pub fn build(run_dir: &Path) -> Result<PathBuf, ReportError> {
    let run = load::run(run_dir)?;
    let html = page::render(&run)
        .map_err(|source| ReportError::Template { path: run_dir.to_owned(), source })?;
    let path = run_dir.join(REPORT_HTML);
    write_whole(&path, html.as_bytes())?;
    Ok(path)
}
