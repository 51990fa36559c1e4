//! The summary of a trial: what `--json` prints and `summary.json` holds.
//!
//! The keys are stable (design section 4) and held to `schema/summary.schema.json` by a test. Times
//! are microseconds and seconds as decimals; what does not exist is null, never 0.

use crate::repeats::Repeats;
use crate::{Caveat, Outcome};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The version of the keys; it grows when one changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// The JSON schema of a summary, draft 2020-12.
pub const JSON_SCHEMA: &str = include_str!("../schema/summary.schema.json");

/// One trial in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The workload as asked for: `ycsb:a`.
    pub workload: String,
    /// What was driven.
    pub target: Target,
    /// Measured operations of any outcome; the sum of `outcomes`.
    pub ops: u64,
    /// Ok operations per second of `duration_s`.
    pub ops_s: f64,
    /// First scheduled to last done.
    pub duration_s: f64,
    /// Operations that did not end ok.
    pub errors: u64,
    /// Operations by outcome; every outcome is there.
    pub outcomes: Outcomes,
    /// The scheduled rate of an open loop; null in a closed one.
    pub scheduled_rate_s: Option<f64>,
    /// Latencies by operation, in microseconds.
    pub latency_us: BTreeMap<String, OpSummary>,
    /// What the measuring itself cost.
    pub client: ClientCost,
    /// Reasons to trust these numbers less.
    pub caveats: Vec<Caveat>,
    /// Of hosts with shards: how the requests lay on these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardBalance>,
    /// Of a run that was repeated: all its trials; the figures above are those of its median one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// The run directory.
    pub run: String,
}

/// How requests lay on the shards of hosts that have such (ScyllaDB), over all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardBalance {
    /// Shards of all hosts.
    pub count: u64,
    /// Requests of the window, further attempts and steps included.
    pub requests: u64,
    /// Those of the shard that had the fewest.
    pub least: u64,
    /// Those of the shard that had the most.
    pub most: u64,
    /// Requests that went out on a connection to another shard than the one that has the key.
    pub astray: u64,
    /// Tablets that the hosts told of, because they had moved or were not known.
    pub tablets_told: u64,
}

/// What a trial drove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `cassandra`, `scylla`, `aerospike`; [`Self::REFERENCE`] or [`Self::NULL_MOCK`] for our own.
    pub kind: String,
    /// As the target reports it; null when it does not.
    pub version: Option<String>,
    /// Version of the wire protocol that was spoken.
    pub protocol: Option<u8>,
}

impl Target {
    /// The embedded reference target.
    pub const REFERENCE: &'static str = "reference";
    /// The reference target with canned answers.
    pub const NULL_MOCK: &'static str = "null-mock";

    /// Whether this is no database but our own stand-in, whose numbers say nothing about one.
    #[must_use]
    pub fn is_stand_in(&self) -> bool {
        self.kind == Self::REFERENCE || self.kind == Self::NULL_MOCK
    }
}

/// Operations by outcome, in the order of [`Outcome::ALL`]. In JSON an object with every name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes(pub [u64; Outcome::COUNT]);

impl Outcomes {
    /// Operations of any outcome.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Operations of one outcome.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome.index()]
    }

    /// Operations that did not end ok.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.total().saturating_sub(self.of(Outcome::Ok))
    }

    /// Each outcome with its count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> {
        Outcome::ALL.into_iter().zip(self.0)
    }
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Outcome::COUNT))?;
        for (outcome, count) in self.iter() {
            map.serialize_entry(outcome.name(), &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut outcomes = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let outcome = Outcome::from_name(&name)
                .ok_or_else(|| D::Error::custom(format!("unknown outcome '{name}'")))?;
            outcomes.0[outcome.index()] = count;
        }
        Ok(outcomes)
    }
}

/// One operation of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpSummary {
    /// Measured operations of any outcome.
    pub ops: u64,
    /// Those that did not end ok.
    pub errors: u64,
    /// First send to final outcome, of ok and timeouts; null when there are none.
    pub service: Option<Stats>,
    /// Scheduled to final outcome, of ok and timeouts; null also when the rate was missed.
    pub response: Option<Stats>,
    /// Scheduled to sent.
    pub lag: Option<Stats>,
    /// Service time by step, of an operation with several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Option<Stats>>,
}

/// A distribution in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

/// What the client itself cost; null where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCost {
    /// User and system time of the process in the window, over operations, in us; without spinning.
    pub cpu_us_per_op: Option<f64>,
    /// System calls of the workers over operations.
    pub syscalls_per_op: Option<f64>,
    /// Largest resident set of the process in MiB.
    pub rss_mib_max: Option<f64>,
    /// Share of the window that the busiest worker worked, 0 to 1; without spinning.
    pub busy_max: Option<f64>,
    /// Share of the window that the workers spun while waiting for the next operation, 0 to 1.
    pub spin_share: Option<f64>,
}
