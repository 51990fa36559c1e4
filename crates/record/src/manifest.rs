//! Manifests: what ran, where, with which settings and seeds, and how it ended.
//!
//! One for the run, one for each trial; the same shape. They are written when a run starts, with
//! the verdict [`Verdict::Running`], and again when it ends, so that a crash leaves a readable
//! directory.

use crate::repeats::Repeats;
use crate::{Caveat, utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use units::{Bytes, Nanos, read_plain};

/// The version of the keys.
pub const SCHEMA: u32 = 1;
/// No manifest is larger, that of a thousand trials with all their caveats neither.
const FILE_SIZE_MAX: Bytes = Bytes(16 << 20);

/// How a run or trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not ended; if the process is gone, it crashed.
    Running,
    /// To its end, with at most 1 % errors. There may be caveats.
    Ok,
    /// Ended early or with too many errors; `failure` says why.
    Failed,
    /// Stopped by the user; what was recorded until then is there.
    Interrupted,
}

impl Verdict {
    /// The name in JSON, CSV and the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The program that wrote a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `wideload`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, where the build said so (`WIDELOAD_COMMIT`).
    #[serde(default)]
    pub commit: Option<String>,
}

/// The manifest of a run or of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The command line, one element per argument, passwords redacted.
    pub command_line: Vec<String>,
    /// Name of the run, as given or derived from the workload.
    pub name: String,
    /// Number of the trial from 1; null for the run.
    pub trial: Option<u32>,
    /// Every flag as it was resolved, defaults included: flag without dashes -> value with unit.
    pub settings: Map<String, Value>,
    /// Seeds by the part that draws from them.
    pub seeds: BTreeMap<String, u64>,
    /// What was driven: kind, version, address, cpus; for the reference target its own settings.
    pub target: Value,
    /// Facts of the hosts: cpus, memory, kernel, governor.
    pub host: Value,
    /// Start, UTC, RFC 3339.
    pub started: String,
    /// End, likewise; null while it runs.
    pub ended: Option<String>,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed; null when it did not.
    pub failure: Option<String>,
    /// Reasons to trust the numbers less.
    pub caveats: Vec<Caveat>,
    /// What a trial's time was spent on, by phase: `settle`, `warm`, `window`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub phases: Map<String, Value>,
    /// The figures of all trials of a run that was repeated; absent from one that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

impl Manifest {
    /// The manifest of something that starts now: `wall` since 1970. The version is the
    /// workspace's.
    #[must_use]
    pub fn starting(name: &str, command_line: Vec<String>, wall: Nanos) -> Self {
        Self {
            schema: SCHEMA,
            tool: Tool {
                name: "wideload".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                commit: option_env!("WIDELOAD_COMMIT").map(str::to_owned),
            },
            command_line,
            name: name.to_owned(),
            trial: None,
            settings: Map::new(),
            seeds: BTreeMap::new(),
            target: Value::Null,
            host: Value::Null,
            started: utc::rfc3339(wall.0 / 1_000_000_000),
            ended: None,
            verdict: Verdict::Running,
            failure: None,
            caveats: Vec::new(),
            phases: Map::new(),
            repeats: None,
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidData`] where it is no manifest, others where
    /// it is no plain file of at most 16 MiB.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&read_plain(path, FILE_SIZE_MAX)?)?)
    }

    /// The same for trial `number` of this run.
    #[must_use]
    pub fn for_trial(&self, number: u32) -> Self {
        Self { trial: Some(number), ..self.clone() }
    }

    /// Notes the end: `wall` since 1970, and the reason when it failed.
    pub fn end(&mut self, verdict: Verdict, failure: Option<String>, wall: Nanos) {
        self.verdict = verdict;
        self.failure = failure;
        self.ended = Some(utc::rfc3339(wall.0 / 1_000_000_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_says_how_it_ended() {
        let mut run = Manifest::starting("a", vec!["wideload".into()], Nanos::from_secs(86_400));
        assert_eq!((run.verdict, run.ended.clone()), (Verdict::Running, None));
        run.settings.insert("threads".into(), 64.into());
        let mut trial = run.for_trial(3);
        trial.end(Verdict::Failed, Some("the target went away".into()), Nanos::from_secs(86_461));
        let text = serde_json::to_string(&trial).unwrap();
        let back: Manifest = serde_json::from_str(&text).unwrap();
        assert_eq!(back, trial);
        assert_eq!(back.ended.as_deref(), Some("1970-01-02T00:01:01Z"));
        assert_eq!((back.trial, back.settings["threads"].as_u64()), (Some(3), Some(64)));
        assert!(text.contains("\"verdict\":\"failed\""));
    }

    #[test]
    fn verdicts_are_named_as_they_are_written() {
        for verdict in [Verdict::Running, Verdict::Ok, Verdict::Failed, Verdict::Interrupted] {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }
}
