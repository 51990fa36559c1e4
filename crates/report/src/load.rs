//! Reads a run directory, as far as it goes.
//!
//! A run that failed leaves fewer files; what is absent is left out of the report, what is damaged
//! is told in it. Only the manifest of the run must be there. Every file is bounded.

use crate::ReportError;
use crate::series::{self, Timeline};
use record::hlog::{self, HlogReader};
use record::run_dir::{COUNTERS_CSV, LATENCY_HLOG, MANIFEST, SUMMARY, TOTAL_HLOG, trials};
use record::table::{Counter, read_counters};
use record::{Latency, Manifest, Summary};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Largest manifest or summary.
const JSON_BYTES_MAX: u64 = 16 << 20;
/// Rows of `counters.csv` that are read.
const COUNTER_ROWS_MAX: usize = 200_000;
/// Of the same file: a line without an end must not fill the memory.
const COUNTER_BYTES_MAX: u64 = 32 << 20;
/// Trials with plots; the others are rows of the table of trials.
const DETAILED_MAX: usize = 6;

/// A run directory in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) manifest: Manifest,
    pub(crate) trials: Vec<Trial>,
}

/// One trial of it.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) number: u32,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) summary: Option<Summary>,
    /// Histograms by tag; empty beyond the detailed trials.
    pub(crate) totals: Vec<(String, Latency)>,
    pub(crate) timeline: Timeline,
    pub(crate) counters: Vec<Counter>,
    pub(crate) detailed: bool,
    /// What could not be read, and why.
    pub(crate) notes: Vec<String>,
}

/// Reads the run in `dir`.
pub(crate) fn run(dir: &Path) -> Result<Run, ReportError> {
    let path = dir.join(MANIFEST);
    let manifest = match json(&path) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Err(ReportError::NotARun { path: dir.to_owned() }),
        Err(why) => return Err(ReportError::Damaged { path, why }),
    };
    let found =
        trials(dir).map_err(|e| ReportError::Damaged { path: dir.into(), why: e.to_string() })?;
    let trials = found.iter().enumerate();
    let trials = trials.map(|(i, (number, path))| trial(*number, path, i < DETAILED_MAX));
    Ok(Run { manifest, trials: trials.collect() })
}

fn trial(number: u32, dir: &Path, detailed: bool) -> Trial {
    let mut notes = Vec::new();
    let mut trial = Trial {
        number,
        manifest: noted(&mut notes, MANIFEST, json(&dir.join(MANIFEST))).flatten(),
        summary: noted(&mut notes, SUMMARY, json(&dir.join(SUMMARY))).flatten(),
        totals: Vec::new(),
        timeline: Timeline::default(),
        counters: Vec::new(),
        detailed,
        notes: Vec::new(),
    };
    if detailed {
        let totals = hlog_of(&dir.join(TOTAL_HLOG), hlog::merged);
        trial.totals = noted(&mut notes, TOTAL_HLOG, totals).flatten().unwrap_or_default();
        let timeline = timeline(&dir.join(LATENCY_HLOG));
        trial.timeline = noted(&mut notes, LATENCY_HLOG, timeline).flatten().unwrap_or_default();
        let counters = counters(&dir.join(COUNTERS_CSV), &mut notes);
        trial.counters = noted(&mut notes, COUNTERS_CSV, counters).unwrap_or_default();
    }
    trial.notes = notes;
    trial
}

/// The value, or None with a note about the file.
fn noted<T>(notes: &mut Vec<String>, file: &str, result: Result<T, String>) -> Option<T> {
    result.map_err(|why| notes.push(format!("{file} could not be read: {why}"))).ok()
}

/// The file, None when it does not exist. A pipe would be waited for and a device has no end: only
/// regular files are read.
fn open(path: &Path) -> Result<Option<File>, String> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err("it is no regular file".into());
    }
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut text = Vec::new();
    file.take(JSON_BYTES_MAX + 1).read_to_end(&mut text).map_err(|e| e.to_string())?;
    if text.len() as u64 > JSON_BYTES_MAX {
        return Err("it is larger than 16 MiB".into());
    }
    serde_json::from_slice(&text).map(Some).map_err(|e| e.to_string())
}

fn hlog_of<T>(
    path: &Path,
    read: impl FnOnce(HlogReader<BufReader<File>>) -> Result<T, hlog::HlogReadError>,
) -> Result<Option<T>, String> {
    let Some(file) = open(path)? else { return Ok(None) };
    read(HlogReader::new(BufReader::new(file))).map(Some).map_err(|e| e.to_string())
}

fn timeline(path: &Path) -> Result<Option<Timeline>, String> {
    let Some(extent) = hlog_of(path, series::extent)? else { return Ok(None) };
    hlog_of(path, |reader| series::timeline(reader, extent))
}

fn counters(path: &Path, notes: &mut Vec<String>) -> Result<Vec<Counter>, String> {
    let Some(file) = open(path)? else { return Ok(Vec::new()) };
    let read = read_counters(BufReader::new(file.take(COUNTER_BYTES_MAX)), COUNTER_ROWS_MAX);
    let (rows, more) = read.map_err(|e| e.to_string())?;
    if more {
        notes.push(format!("{COUNTERS_CSV}: only the first {COUNTER_ROWS_MAX} rows are shown"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(COUNTERS_CSV);
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let mut notes = Vec::new();
        let read = counters(&path, &mut notes);
        assert_eq!(read, Err("it is no regular file".to_owned()));
        assert!(noted(&mut notes, COUNTERS_CSV, read).is_none());
        assert_eq!(notes, ["counters.csv could not be read: it is no regular file"]);
    }
}
