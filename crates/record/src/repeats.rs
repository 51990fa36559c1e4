//! A load that was driven several times: the figures of each trial and their spread. In the summary
//! that a run prints, and in the run's manifest.

use crate::Verdict;
use serde::{Deserialize, Serialize};

/// All trials of a run that was repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// As many as were asked for; fewer were done when the run ended early.
    pub asked: u32,
    /// The trial whose figures stand for the run: the median by `ops_s` of those that ended ok, of
    /// an even number the lower of the two in the middle.
    pub median_trial: u32,
    /// Of the ok operations per second.
    pub ops_s: Spread,
    /// Of p99 over all operations, in us; null when a trial has none.
    pub service_us_p99: Option<Spread>,
    /// Likewise; null also when a trial missed its rate.
    pub response_us_p99: Option<Spread>,
    /// In their order.
    pub trials: Vec<Repeat>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Its number.
    pub trial: u32,
    /// The seed of its operations.
    pub seed: u64,
    /// How it ended.
    pub verdict: Verdict,
    /// Ok operations per second.
    pub ops_s: f64,
    /// p99 over all its operations, in us.
    pub service_us_p99: Option<f64>,
    /// Likewise; null also when the rate was missed.
    pub response_us_p99: Option<f64>,
    /// Codes of its caveats.
    pub caveats: Vec<String>,
}

/// One figure over the trials that ended ok.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The middle one, of an even number the lower of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// What `interval_kind` says.
    pub interval: (f64, f64),
    /// `95 % of the median` from 6 trials on, `min-max` below.
    pub interval_kind: String,
}
