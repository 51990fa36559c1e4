//! What a command line is read into.

use super::shown::Shown;
use super::user::{User, UserAction, UserOperation};
use crate::cassandra_stress::distribution::Distribution;
use crate::cassandra_stress::profile::Insert;
use crate::cassandra_stress::rows::Order;
use crate::cassandra_stress::table;
use crate::revisits::Visits;
use std::fmt;
use std::str::FromStr;
use units::Credentials;

/// The generation of the original that is followed where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// Apache Cassandra 3.11.
    #[default]
    Apache3,
    /// Apache Cassandra 5.
    Apache5,
    /// ScyllaDB's fork.
    Scylla,
}

impl Compat {
    const NAMES: [(Self, &str); 3] =
        [(Self::Apache3, "apache-3.11"), (Self::Apache5, "apache-5"), (Self::Scylla, "scylla")];
}

impl fmt::Display for Compat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(one, _)| one == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Compat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text).map(|(one, _)| *one);
        found.ok_or_else(|| "give apache-3.11, apache-5 or scylla".to_owned())
    }
}

/// What a command does with one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads a row and compares it with what was written.
    Read,
    /// Writes all columns of a row.
    Write,
    /// Adds to all counters of a row.
    CounterWrite,
    /// Reads the counters of a row.
    CounterRead,
}

impl Kind {
    /// As the original prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::CounterWrite => "COUNTER_WRITE",
            Self::CounterRead => "COUNTER_READ",
        }
    }

    /// Whether it changes rows.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::CounterWrite)
    }

    /// Whether it is about the table of counters.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::CounterWrite | Self::CounterRead)
    }
}

/// The command.
#[derive(Debug, Clone)]
pub enum Command {
    /// One kind of operation.
    Single(Kind),
    /// Several, by weight, in runs of one kind.
    Mixed {
        /// Kinds with their weights, in the order of their names.
        ratios: Vec<(Kind, f64)>,
        /// Operations of a kind in a row, on each thread.
        clustering: Drawn,
    },
    /// Statements of profiles.
    User(Box<User>),
}

/// A kind of operation, as lines and tags show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationType {
    /// `WRITE`, or the name that a profile gives.
    pub name: String,
    /// Whether it changes rows.
    pub writes: bool,
    /// Its rows are counted one by one; else it has one.
    pub counts_rows: bool,
}

impl Command {
    /// Its kinds; none of a profile's.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        let (one, several) = match self {
            Self::Single(kind) => (Some(*kind), &[][..]),
            Self::Mixed { ratios, .. } => (None, &ratios[..]),
            Self::User(_) => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().map(|(kind, _)| *kind))
    }

    /// As the original prints its type: `WRITE`, `MIXED`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Single(kind) => kind.name(),
            Self::Mixed { .. } => "MIXED",
            Self::User(_) => "USER",
        }
    }

    /// What it does, in the order of its plan.
    #[must_use]
    pub fn types(&self) -> Vec<OperationType> {
        let known = |kind: Kind| OperationType {
            name: kind.name().to_owned(),
            writes: kind.writes(),
            counts_rows: false,
        };
        match self {
            Self::Single(_) | Self::Mixed { .. } => self.kinds().map(known).collect(),
            Self::User(user) => {
                let of = |operation: &UserOperation| OperationType {
                    name: operation.name.clone(),
                    writes: operation.action == UserAction::Insert,
                    counts_rows: true,
                };
                user.operations.iter().map(of).collect()
            }
        }
    }

    /// Whether it both reads and writes.
    #[must_use]
    pub fn mixes(&self) -> bool {
        match self {
            Self::Single(_) => false,
            Self::Mixed { .. } => true,
            Self::User(user) => user.operations.len() > 1,
        }
    }

    /// Whether nothing but writes of rows is done: keys come in turn then.
    #[must_use]
    pub fn only_writes(&self) -> bool {
        match self {
            Self::Single(kind) => kind.writes(),
            Self::Mixed { .. } => false,
            Self::User(user) => user.only_inserts(),
        }
    }

    /// As it names what runs: `WRITE`, `[READ, WRITE]`.
    #[must_use]
    pub fn running(&self) -> String {
        match self {
            Self::Single(kind) => kind.name().to_owned(),
            Self::Mixed { .. } => {
                let names: Vec<_> = self.kinds().map(Kind::name).collect();
                format!("[{}]", names.join(", "))
            }
            Self::User(user) => {
                let names: Vec<_> = user.operations.iter().map(|o| &o.name[..]).collect();
                format!("[{}]", names.join(", "))
            }
        }
    }
}

/// A distribution, and how it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// As written.
    pub text: String,
    /// What it means.
    pub distribution: Distribution,
}

/// When a run is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// After so many partitions; 0 creates the schema alone.
    Count(u64),
    /// After so much time.
    Time {
        /// So many of `unit`.
        amount: u64,
        /// Its unit.
        unit: TimeUnit,
    },
    /// When the rate is known well enough.
    Uncertainty {
        /// Standard error of the mean over the mean.
        target: f64,
        /// At least so many intervals.
        intervals_min: u64,
        /// At most so many.
        intervals_max: u64,
    },
}

/// A unit of `duration=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// s
    Seconds,
    /// m
    Minutes,
    /// h
    Hours,
}

impl TimeUnit {
    /// As the original names it, in capitals.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "SECONDS",
            Self::Minutes => "MINUTES",
            Self::Hours => "HOURS",
        }
    }

    /// Its length.
    #[must_use]
    pub fn seconds(self) -> u64 {
        match self {
            Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3600,
        }
    }
}

/// When tables are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncate {
    /// Never.
    Never,
    /// Before the run.
    Once,
    /// Before each run of several.
    Always,
}

/// How many threads, how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// So many.
    Threads {
        /// Clients with one operation each.
        threads: u32,
        /// Operations per second over all of them; 0 is no bound.
        ops_per_s: u32,
        /// Response time is shown, of the schedule.
        fixed: bool,
    },
    /// More and more.
    Stepped {
        /// End when more do no more.
        auto: bool,
        /// The first number.
        threads_min: u32,
        /// The last number.
        threads_max: u32,
    },
}

/// Which seeds are visited.
#[derive(Debug, Clone, PartialEq)]
pub enum Population {
    /// Each of a range in turn.
    Sequence {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
        /// Begin again behind the last.
        wrap: bool,
        /// Reads lag behind the writes by so much.
        lookback: Option<Drawn>,
    },
    /// Drawn.
    Drawn(Drawn),
}

/// Columns of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// In the order of the table.
    pub names: Vec<String>,
    /// Their number, as written; None where they were named.
    pub count: Option<Drawn>,
    /// Bytes of each.
    pub size: Drawn,
    /// Reads select all instead of naming them.
    pub slice: bool,
    /// Microseconds since 1970 that everything is written with.
    pub timestamp_us: Option<u64>,
    /// Of no effect in CQL.
    pub comparator: String,
}

/// Keyspace and table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Name of the keyspace.
    pub keyspace: String,
    /// Class of the replication strategy, in full.
    pub strategy: String,
    /// Its options, in the order of the statement.
    pub strategy_options: Vec<(String, String)>,
    /// Options of the keyspace's storage, with its type first.
    pub storage: Vec<(String, String)>,
    /// Class of the compaction strategy.
    pub compaction: Option<String>,
    /// Its options.
    pub compaction_options: Vec<(String, String)>,
    /// Class of the table's compression.
    pub compression: Option<String>,
}

/// The hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// As listed, where no file names them.
    pub listed: Vec<String>,
    /// A file of hosts, one a line.
    pub file: Option<String>,
    /// Only these.
    pub whitelist: bool,
    /// Those of one datacenter.
    pub datacenter: Option<String>,
}

/// How it connects.
#[derive(Debug, Clone)]
pub struct Mode {
    /// Who we are.
    pub credentials: Option<Credentials>,
    /// Of the native protocol: 4 or 5.
    pub protocol_version: u8,
    /// Of frames: none, lz4 or snappy; not snappy in version 5.
    pub compression: String,
    /// To each host.
    pub connections_per_host: u32,
    /// Of an attempt.
    pub timeout_ms: u64,
    /// Of the native protocol.
    pub port: u16,
    /// The original would not prepare its statements.
    pub unprepared: bool,
}

/// What happens when an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errors {
    /// Further attempts.
    pub retries: u32,
    /// Go on behind the last.
    pub ignore: bool,
    /// What is read is not looked at.
    pub skip_validation: bool,
    /// Before a further attempt at what found an overloaded host.
    pub delay: Delay,
}

/// Pauses before further attempts; the fork of ScyllaDB has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// How they grow.
    pub policy: DelayPolicy,
    /// None is shorter.
    pub least_ms: u64,
    /// None is longer.
    pub most_ms: u64,
}

/// How pauses grow from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DelayPolicy {
    Constant,
    Linear,
    Exponential,
}

/// How much is said of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Minimal,
    /// A line each.
    Normal,
    /// More.
    Verbose,
}

/// How ranges of tokens are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRange {
    /// All are read again when each was.
    pub wraps: bool,
    /// Each range of the ring is read in so many parts.
    pub parts: u32,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Length of an interval.
    pub interval_ms: u64,
    /// Instead of the terminal.
    pub file: Option<String>,
    /// Histograms of each interval.
    pub hdr_file: Option<String>,
    /// Of failures.
    pub level: Level,
    /// Results at the end.
    pub summary: bool,
    /// Settings at the start.
    pub settings: bool,
}

/// Where a copy of the report goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// An HTML file.
    pub file: String,
    /// Of the configuration.
    pub revision: String,
    /// As written.
    pub title: Option<String>,
    /// As written.
    pub operation: Option<String>,
}

/// Everything that a command line asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The generation that is followed.
    pub compat: Compat,
    /// What is done.
    pub command: Command,
    /// When it is over.
    pub end: End,
    /// Operations that are not measured come first.
    pub warm_up: bool,
    /// When tables are emptied.
    pub truncate: Truncate,
    /// In capitals: `LOCAL_ONE`.
    pub consistency: String,
    /// In capitals; nothing here is a transaction.
    pub serial_consistency: String,
    /// Bytes of a key.
    pub key_size: usize,
    /// What counters grow by.
    pub add: Drawn,
    /// How many threads, how fast.
    pub rate: Rate,
    /// Which seeds.
    pub population: Population,
    /// In which order the rows of a partition come.
    pub order: Order,
    /// How profiles write.
    pub insert: Insert,
    /// In how many visits they write a partition; None writes each at once.
    pub visits: Option<Visits>,
    /// How they read ranges of tokens.
    pub token_range: TokenRange,
    /// Of the table.
    pub columns: Columns,
    /// Keyspace and table.
    pub schema: Schema,
    /// The hosts.
    pub hosts: Hosts,
    /// How it connects.
    pub mode: Mode,
    /// What happens when an operation fails.
    pub errors: Errors,
    /// What is shown.
    pub log: Log,
    /// A copy of the report.
    pub graph: Option<Graph>,
    /// What is only shown.
    pub shown: Shown,
    /// What is understood and has no effect, a sentence each.
    pub notices: Vec<String>,
}

/// A consistency level in capitals; None of what is none.
#[must_use]
pub(super) fn consistency_named(name: &str) -> Option<String> {
    let name = name.trim().to_uppercase();
    table::CONSISTENCIES.contains(&&name[..]).then_some(name)
}
