//! The stages of a line, and the file of `--workload-stages` that has several.
//!
//! In: YAML, a list of stages with the keys of asbench. Out: stages, what one leaves out taken from
//! the line. Bounded: 1 MiB of text, 1000 stages. A key that is not known is an error.

use super::generation::Generation;
use super::line::LineError;
use super::object;
use super::workload::Workload;
use crate::objects::Value;
use serde::Deserialize;

const TEXT_SIZE_BYTES_MAX: usize = 1 << 20;
const STAGES_MAX: usize = 1000;

/// One thing that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// In the user's words; empty without.
    pub description: String,
    /// What.
    pub workload: Workload,
    /// For so long; None is until its keys are written, or without an end. A stage that writes
    /// each key goes on until they are written in any case.
    pub duration_s: Option<u64>,
    /// So many operations.
    pub ops: Option<u64>,
    /// A schedule of so many operations a second; 0 is as fast as they go.
    pub ops_per_s: u32,
    /// First key.
    pub key_start: u64,
    /// Keys.
    pub keys: u64,
    /// What bins hold, in order.
    pub objects: Vec<Value>,
    /// Bins that a read asks for, by index.
    pub read_bins: Vec<usize>,
    /// Bins that a write sets.
    pub write_bins: Vec<usize>,
    /// Before it begins.
    pub pause_s: u64,
    /// Each write has values of its own.
    pub random: bool,
    /// So many commands under way, instead of so many clients.
    pub asynchronous: bool,
}

impl Stage {
    /// Whether its keys have numbers.
    pub(super) fn check(&self) -> Result<(), LineError> {
        match self.key_start.checked_add(self.keys) {
            Some(end) if end <= 1 << 62 => Ok(()),
            _ => Err(LineError::new(
                format!("keys {} from {} on", self.keys, self.key_start),
                "the last is beyond 2^62: give fewer, or begin earlier",
            )),
        }
    }

    /// Keys that are written by a stage that writes each.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        match self.workload.insert {
            100.0 => self.keys,
            percent => ((self.keys as f64 * percent / 100.0) as u64).max(1),
        }
    }
}

/// A stage as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    stage: Option<u64>,
    desc: Option<String>,
    duration: Option<u64>,
    workload: Option<String>,
    tps: Option<u32>,
    object_spec: Option<String>,
    key_start: Option<u64>,
    key_end: Option<u64>,
    read_bins: Option<String>,
    write_bins: Option<String>,
    pause: Option<u64>,
    #[serde(rename = "async")]
    asynchronous: Option<bool>,
    random: Option<bool>,
    batch_size: Option<u64>,
    batch_read_size: Option<u64>,
    batch_write_size: Option<u64>,
    batch_delete_size: Option<u64>,
    expiration_time: Option<i64>,
}

/// Reads the stages of a file; what they leave out is as in `usual`.
pub(super) fn parse(text: &str, usual: &Stage) -> Result<Vec<Stage>, LineError> {
    let unread = |why: String| LineError::new("the stages cannot be read", why);
    if text.len() > TEXT_SIZE_BYTES_MAX {
        return Err(unread("the file is larger than 1 MiB".to_owned()));
    }
    let budget = serde_saphyr::budget! { max_depth: 8, max_events: 200_000, max_aliases: 100 };
    let options = serde_saphyr::options! { budget: budget };
    let written: Vec<Written> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| unread(error.to_string()))?;
    if !(1..=STAGES_MAX).contains(&written.len()) {
        return Err(unread(format!("there are {} stages, not 1 to {STAGES_MAX}", written.len())));
    }
    let stages = written.iter().zip(1u64..).map(|(written, number)| {
        let in_it = |error: LineError| {
            LineError::new(format!("stage {number}: {}", error.what), error.cure)
        };
        written.stage(number, usual).map_err(in_it)
    });
    stages.collect()
}

impl Written {
    fn stage(&self, number: u64, usual: &Stage) -> Result<Stage, LineError> {
        if self.stage.is_some_and(|stage| stage != number) {
            let what = format!("it is called stage {}", self.stage.unwrap_or(0));
            return Err(LineError::new(what, "stages are numbered in their order, from 1 on"));
        }
        let batches =
            [self.batch_size, self.batch_read_size, self.batch_write_size, self.batch_delete_size];
        if batches.iter().flatten().any(|size| *size > 1) {
            return Err(LineError::new("batches are not built", "leave batch-size out"));
        }
        if self.expiration_time.is_some_and(|seconds| seconds != 0) {
            return Err(LineError::new("expiry is not built", "leave expiration-time out"));
        }
        let objects = match &self.object_spec {
            None => usual.objects.clone(),
            Some(text) => object::fields(text)
                .map_err(|error| LineError::new(error.to_string(), "see --help"))?,
        };
        let workload = match &self.workload {
            None => usual.workload,
            Some(text) => Workload::parse(text, Generation::Two)?,
        };
        let listed = |list: &Option<String>, usual: &[usize]| match list {
            Some(text) => bins(text, objects.len()),
            None if self.object_spec.is_some() => Ok((0..objects.len()).collect()),
            None => Ok(usual.to_vec()),
        };
        let key_start = self.key_start.unwrap_or(usual.key_start);
        let keys = match self.key_end {
            None => usual.keys,
            Some(end) if end > key_start => end - key_start,
            Some(end) => {
                let what = format!("key-end {end} is not above key-start {key_start}");
                return Err(LineError::new(what, "it is the key behind the last"));
            }
        };
        let stage = Stage {
            description: self.desc.clone().unwrap_or_default(),
            workload,
            duration_s: self.duration.or(workload.is_random().then_some(10)),
            ops: None,
            ops_per_s: self.tps.unwrap_or(usual.ops_per_s),
            key_start,
            keys,
            read_bins: listed(&self.read_bins, &usual.read_bins)?,
            write_bins: listed(&self.write_bins, &usual.write_bins)?,
            objects,
            pause_s: self.pause.unwrap_or(0).min(86_400),
            random: self.random.unwrap_or(usual.random),
            asynchronous: self.asynchronous.unwrap_or(usual.asynchronous),
        };
        stage.check().map(|()| stage)
    }
}

/// A list of bins by number, from 1 on.
pub(super) fn bins(text: &str, count: usize) -> Result<Vec<usize>, LineError> {
    let bin =
        |text: &str| text.trim().parse::<usize>().ok().filter(|bin| (1..=count).contains(bin));
    let bins: Option<Vec<usize>> = text.split(',').map(bin).collect();
    match bins {
        Some(mut bins) => {
            bins.sort_unstable();
            bins.dedup();
            Ok(bins.into_iter().map(|bin| bin - 1).collect())
        }
        None => Err(LineError::new(
            format!("'{text}' is no list of bins"),
            format!("write numbers from 1 to {count} with commas between"),
        )),
    }
}
