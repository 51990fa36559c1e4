//! Reads a run directory, as far as it goes.
//!
//! A run that failed leaves fewer files; what is absent is left out of the report, what is damaged
//! is told in it. Only the manifest of the run must be there. Every file is bounded.

use crate::ReportError;
use crate::counters::Counters;
use crate::outcome::Outcome;
use crate::series::{self, Timeline};
use record::events::{Event, read_events};
use record::hlog::{self, HlogReader};
use record::run_dir::{
    COUNTERS_CSV, EVENTS_CSV, LATENCY_HLOG, MANIFEST, OUTCOME_JSON, SUMMARY, TOTAL_HLOG,
    TRIALS_CSV, trials,
};
use record::table::{TrialRow, each_counter, read_trials};
use record::{Latency, Manifest, Summary};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use units::{Bytes, open_plain, read_plain};

/// Largest manifest or summary.
const JSON_SIZE_MAX: Bytes = Bytes(16 << 20);
/// Rows of `counters.csv` that are read: 12 hours of 40 workers are a million.
const COUNTER_ROWS_MAX: usize = 4_000_000;
/// Of a table: a line without an end must not fill the memory.
const TABLE_BYTES_MAX: u64 = 256 << 20;
/// Rows of `trials.csv` that are read.
const TRIAL_ROWS_MAX: usize = 10_000;
/// Rows of `events.csv` that are read.
const EVENT_ROWS_MAX: usize = 10_000;
/// Trials with plots; the others are rows of the table of trials.
const DETAILED_MAX: usize = 6;
/// Points of all lines over time together; more trials get fewer each, so that the page stays
/// small.
const BINS_MAX: usize = 1200;

/// A run directory in memory.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) manifest: Manifest,
    pub(crate) trials: Vec<Trial>,
    /// Of an experiment.
    pub(crate) outcome: Option<Outcome>,
    /// The rows of `trials.csv`.
    pub(crate) table: Vec<TrialRow>,
    /// What of the run itself could not be read, and why.
    pub(crate) notes: Vec<String>,
}

impl Run {
    /// Trials that are shown with plots.
    pub(crate) fn detailed(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.detailed)
    }
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
    pub(crate) counters: Counters,
    /// What happened to the target.
    pub(crate) told: Vec<Event>,
    pub(crate) detailed: bool,
    /// What could not be read, and why.
    pub(crate) notes: Vec<String>,
}

/// The manifest of a run directory.
pub(crate) fn is_run(dir: &Path) -> Result<Manifest, ReportError> {
    let path = dir.join(MANIFEST);
    match json(&path) {
        Ok(Some(manifest)) => Ok(manifest),
        Ok(None) => Err(ReportError::NotARun { path: dir.to_owned() }),
        Err(why) => Err(ReportError::Damaged { path, why }),
    }
}

/// Reads the run in `dir`.
pub(crate) fn run(dir: &Path) -> Result<Run, ReportError> {
    let manifest = is_run(dir)?;
    let found =
        trials(dir).map_err(|e| ReportError::Damaged { path: dir.into(), why: e.to_string() })?;
    let bins_max = BINS_MAX / found.len().clamp(1, DETAILED_MAX);
    let trials = found.iter().enumerate().map(|(i, (number, path))| {
        let detailed = (i < DETAILED_MAX).then_some(bins_max);
        trial(*number, path, detailed)
    });
    let trials = trials.collect();
    let mut notes = Vec::new();
    let table = table(&dir.join(TRIALS_CSV));
    let table = noted(&mut notes, TRIALS_CSV, table).unwrap_or_default();
    let outcome = noted(&mut notes, OUTCOME_JSON, json(&dir.join(OUTCOME_JSON))).flatten();
    Ok(Run { manifest, trials, outcome, table, notes })
}

/// Reads a trial; with that many bins over time when it is shown in detail.
fn trial(number: u32, dir: &Path, detailed: Option<usize>) -> Trial {
    let mut notes = Vec::new();
    let mut trial = Trial {
        number,
        manifest: noted(&mut notes, MANIFEST, json(&dir.join(MANIFEST))).flatten(),
        summary: noted(&mut notes, SUMMARY, json(&dir.join(SUMMARY))).flatten(),
        totals: Vec::new(),
        timeline: Timeline::default(),
        counters: Counters::default(),
        told: Vec::new(),
        detailed: detailed.is_some(),
        notes: Vec::new(),
    };
    if let Some(bins_max) = detailed {
        let totals = hlog_of(&dir.join(TOTAL_HLOG), hlog::merged);
        trial.totals = noted(&mut notes, TOTAL_HLOG, totals).flatten().unwrap_or_default();
        let timeline = timeline(&dir.join(LATENCY_HLOG), bins_max);
        trial.timeline = noted(&mut notes, LATENCY_HLOG, timeline).flatten().unwrap_or_default();
        let counters = counters(&dir.join(COUNTERS_CSV), &mut notes);
        trial.counters = noted(&mut notes, COUNTERS_CSV, counters).unwrap_or_default();
        let told = told(&dir.join(EVENTS_CSV));
        trial.told = noted(&mut notes, EVENTS_CSV, told).unwrap_or_default();
    }
    trial.notes = notes;
    trial
}

/// The value, or None with a note about the file.
fn noted<T>(notes: &mut Vec<String>, file: &str, result: Result<T, String>) -> Option<T> {
    result.map_err(|why| notes.push(format!("{file} could not be read: {why}"))).ok()
}

/// None when the file does not exist.
fn found<T>(read: io::Result<T>) -> Result<Option<T>, String> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

fn open(path: &Path) -> Result<Option<File>, String> {
    found(open_plain(path))
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let Some(text) = found(read_plain(path, JSON_SIZE_MAX))? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|e| e.to_string())
}

fn hlog_of<T>(
    path: &Path,
    read: impl FnOnce(HlogReader<BufReader<File>>) -> Result<T, hlog::HlogReadError>,
) -> Result<Option<T>, String> {
    let Some(file) = open(path)? else { return Ok(None) };
    read(HlogReader::new(BufReader::new(file))).map(Some).map_err(|e| e.to_string())
}

fn timeline(path: &Path, bins_max: usize) -> Result<Option<Timeline>, String> {
    let extent = hlog_of(path, |reader| series::extent(reader, bins_max))?;
    let Some(extent) = extent else { return Ok(None) };
    hlog_of(path, |reader| series::timeline(reader, extent))
}

fn table(path: &Path) -> Result<Vec<TrialRow>, String> {
    let Some(file) = open(path)? else { return Ok(Vec::new()) };
    let file = BufReader::new(file.take(TABLE_BYTES_MAX));
    read_trials(file, TRIAL_ROWS_MAX).map(|(rows, _)| rows).map_err(|e| e.to_string())
}

fn told(path: &Path) -> Result<Vec<Event>, String> {
    let Some(file) = open(path)? else { return Ok(Vec::new()) };
    let file = BufReader::new(file.take(TABLE_BYTES_MAX));
    read_events(file, EVENT_ROWS_MAX).map_err(|e| e.to_string())
}

fn counters(path: &Path, notes: &mut Vec<String>) -> Result<Counters, String> {
    let mut counters = Counters::default();
    let Some(file) = open(path)? else { return Ok(counters) };
    let input = BufReader::new(file.take(TABLE_BYTES_MAX));
    let more = each_counter(input, COUNTER_ROWS_MAX, |row| counters.add(row));
    if more.map_err(|e| e.to_string())? {
        notes.push(format!("{COUNTERS_CSV}: only the first {COUNTER_ROWS_MAX} rows are shown"));
    }
    Ok(counters)
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
        assert_eq!(read.as_ref().err().map(String::as_str), Some("it is no regular file"));
        assert!(noted(&mut notes, COUNTERS_CSV, read).is_none());
        assert_eq!(notes, ["counters.csv could not be read: it is no regular file"]);
    }
}
