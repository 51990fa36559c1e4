//! The flags of `wideload run`.

use crate::cmd::times;
use clap::ValueEnum;
use drive::Engine;
use lab::layout::Policy;
use stage::Place;
use std::path::PathBuf;
use std::str::FromStr;
use units::{Count, CpuSet, Nanos, Rate};
use wire::cql::{Compression, Consistency};

const EXAMPLES: &str = "\
Workloads, YCSB's core ones; keys are zipfian, and -p changes every part of them:
  ycsb:a  update heavy: half reads, half updates
  ycsb:b  read mostly: 95 % reads, 5 % updates
  ycsb:c  read only
  ycsb:d  read latest: 95 % reads of mostly the newest rows, 5 % inserts
  ycsb:e  short ranges: 95 % scans of up to 100 rows, 5 % inserts
  ycsb:f  read-modify-write: half reads, half reads followed by an update of the same row

Examples:
  wideload run ycsb:a                                  # 64 threads, at the reference target
  wideload run ycsb:b --rate 20k/s --duration 30s      # open loop: latency at a load
  wideload run ycsb:c --records 1M --ops 5M --threads 256
  wideload run ycsb:a -p readproportion=0 -p updateproportion=1 -p writeallfields=true
  wideload run ycsb:a --target cassandra               # Cassandra 5.0.5, started and stopped
  wideload run ycsb:a --target cassandra --warm auto --duration 60s --repeat 3
  wideload run ycsb:a --target-cpus 0 --target-cpus 1  # two instances, each on its own cpu
  wideload run ycsb:a --protocol aerospike             # records instead of rows
  wideload run ycsb:a --dry-run                        # what would be done

Exit status:
  0 done (see the caveats); 1 ended early or more than 1 % errors, with --strict also any
  caveat; 2 usage; 3 environment; 130 Ctrl-C";

/// Time before the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarmUp {
    /// So long.
    For(Nanos),
    /// Until it is steady.
    Auto,
}

impl FromStr for WarmUp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            time => {
                times::of_run(time).map(Self::For).map_err(|e| format!("{e}, or the word auto"))
            }
        }
    }
}

/// What is spoken with the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// This version of CQL's protocol.
    Cql(u8),
    /// Aerospike's protocol, over records.
    Aerospike,
}

impl FromStr for Spoken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "4" => Ok(Self::Cql(4)),
            "5" => Ok(Self::Cql(5)),
            "aerospike" => Ok(Self::Aerospike),
            _ => Err("give 4 or 5, which are versions of CQL's, or aerospike".to_owned()),
        }
    }
}

/// How operations of an open loop arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalKind {
    /// Equal gaps
    Constant,
    /// Exponential gaps, as of many independent users
    Poisson,
}

/// How a client thread waits for the next due operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitKind {
    /// Sleep until 100 us before it is due, then poll
    Spin,
    /// Sleep until it is due
    Sleep,
}

/// Storage of the reference target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StorageKind {
    /// Rows in memory
    Memory,
    /// Canned answers: a mock that measures the client alone
    Null,
}

/// Run one workload against one target, and measure it.
///
/// Service time is first send to answer, response time is scheduled to answer, lag is scheduled to
/// first send: all three are recorded of every operation. Without --target the reference target is
/// started on cpus of its own, with --target cassandra an Apache Cassandra; both are stopped
/// afterwards.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is driven: ycsb:a to ycsb:f, or cassandra-stress:COMMAND with words like -pop and -col
    /// behind it, in quotes
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,

    /// A database that runs already: HOST[:PORT], several with commas; or the word cassandra, to
    /// start one [default: the reference target]
    #[arg(
        long,
        value_name = "HOST[:PORT],...|cassandra",
        value_delimiter = ',',
        help_heading = "Target"
    )]
    pub(crate) target: Vec<String>,
    /// Who to log in as, where the database asks; the password comes from --password-file or the
    /// environment variable WIDELOAD_PASSWORD
    #[arg(long, value_name = "NAME", requires = "target", help_heading = "Target")]
    pub(crate) user: Option<String>,
    /// A file whose first line is the password of --user; for its owner's eyes only
    #[arg(long, value_name = "FILE", requires = "user", help_heading = "Target")]
    pub(crate) password_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: crate::cmd::tls::Flags,
    /// Use only the hosts of --target, under these addresses (NAT, containers) [default: all hosts
    /// of the datacenter, at the addresses that the cluster tells]
    #[arg(long, requires = "target", help_heading = "Target")]
    pub(crate) fixed_hosts: bool,
    /// Drive the hosts of this datacenter [default: that of the first host that answers]
    #[arg(long, value_name = "NAME", requires = "target", help_heading = "Target")]
    pub(crate) datacenter: Option<String>,
    /// Write also to a table that wideload has not made
    #[arg(long, requires = "target", help_heading = "Target")]
    pub(crate) write_into_existing: bool,
    /// Storage of the reference target
    #[arg(
        long,
        value_enum,
        default_value = "memory",
        conflicts_with = "target",
        help_heading = "Target"
    )]
    pub(crate) storage: StorageKind,
    /// A mock: every operation holds one lock of its reference target for so long, which bounds
    /// what an instance can do
    #[arg(
        long,
        value_name = "TIME",
        value_parser = times::serial,
        conflicts_with = "target",
        help_heading = "Target"
    )]
    pub(crate) serial: Option<Nanos>,
    /// Cpus of a target that is started, like 0-3,8, or with memory of NUMA node 0 only, like
    /// 0-7@0; given several times, so many instances are started, databases of their own that share
    /// the rows and the load evenly [default: half of the cores]
    #[arg(long, value_name = "CPUS[@NUMA]", help_heading = "Target")]
    pub(crate) target_cpus: Vec<Place>,
    /// Lay the instances of a target that is started out on its cpus: single, per-package,
    /// per-numa, per-llc, a number of instances, or 3-shared for so many that all run on all of
    /// them. Memory comes from their NUMA nodes only
    #[arg(long, value_name = "POLICY", conflicts_with = "target_cpus", help_heading = "Target")]
    pub(crate) layout: Option<Policy>,
    /// Lay out on so many NUMA nodes: one package before the next, or from each in turn where each
    /// package has its instance [default: all]
    #[arg(long, value_name = "N", requires = "layout", help_heading = "Target")]
    pub(crate) numa_count: Option<u32>,
    /// Take the NUMA nodes from each package in turn
    #[arg(long, requires = "numa_count", help_heading = "Target")]
    pub(crate) spread: bool,
    /// Keyspace; created where it is missing [default: ycsb]
    #[arg(long, value_parser = name, help_heading = "Target")]
    pub(crate) keyspace: Option<String>,
    /// Table, or set of --protocol aerospike; created where it is missing [default: usertable]
    #[arg(long, value_parser = name, help_heading = "Target")]
    pub(crate) table: Option<String>,
    /// Namespace of --protocol aerospike, which the servers have to have [default: test]
    #[arg(long, value_name = "NAME", value_parser = namespace, help_heading = "Target")]
    pub(crate) namespace: Option<String>,
    /// Replication of a keyspace that has to be created: a factor, or a map {'class': ...}
    /// [default: 1]
    #[arg(long, value_parser = replication, help_heading = "Target")]
    pub(crate) replication: Option<String>,
    /// Consistency level of every statement [default: LOCAL_ONE]
    #[arg(long, help_heading = "Target")]
    pub(crate) consistency: Option<Consistency>,
    /// What is spoken: CQL in version 4, or in 5 with its checksummed segments; or aerospike
    #[arg(long, value_name = "PROTOCOL", default_value = "4", help_heading = "Target")]
    pub(crate) protocol: Spoken,
    /// Compress what goes to the target and back: none, lz4, or in protocol 4 snappy
    #[arg(long, value_name = "HOW", default_value = "none", help_heading = "Target")]
    pub(crate) compression: Compression,
    /// How the client talks to the kernel: epoll, or io-uring from Linux 6.0 on
    #[arg(long, value_name = "ENGINE", default_value = "epoll", help_heading = "Client")]
    pub(crate) engine: Engine,

    #[command(flatten)]
    pub(crate) cassandra: crate::cmd::cassandra::Flags,

    /// Rows in the table, like 100k or 10M [default: 100k]
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) records: Option<Count>,
    /// Load the rows first, also where they are [default: where they are not, or not all]
    #[arg(long, conflicts_with = "skip_load", help_heading = "Data")]
    pub(crate) load: bool,
    /// Use the rows that are there
    #[arg(long, help_heading = "Data")]
    pub(crate) skip_load: bool,
    /// A property of the workload; wins over -P
    #[arg(short = 'p', value_name = "KEY=VALUE", help_heading = "Data")]
    pub(crate) property: Vec<String>,
    /// A file of properties, as YCSB's own workload files
    #[arg(short = 'P', value_name = "FILE", help_heading = "Data")]
    pub(crate) property_file: Vec<PathBuf>,

    /// Measured operations of any outcome, like 5M
    #[arg(long, value_name = "N", conflicts_with = "duration", help_heading = "Load")]
    pub(crate) ops: Option<Count>,
    /// Measured time, like 30s [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = times::of_run, help_heading = "Load")]
    pub(crate) duration: Option<Nanos>,
    /// Time before the measured window; auto: until throughput and latency are steady
    #[arg(long, value_name = "TIME|auto", default_value = "3s", help_heading = "Load")]
    pub(crate) warm: WarmUp,
    /// With --warm auto: measure after so long, steady or not [default: 4m]
    #[arg(long, value_name = "TIME", value_parser = times::of_run, help_heading = "Load")]
    pub(crate) warm_max: Option<Nanos>,
    /// Wait at most so long until a database has nothing left to do for its load, before each
    /// trial; one that was started for the run is flushed first. 0s does neither [default: 1m]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = times::of_run,
        requires = "target",
        help_heading = "Load"
    )]
    pub(crate) settle: Option<Nanos>,
    /// Trials on the same rows, with seeds that count up; the median one by op/s is the result
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "Load"
    )]
    pub(crate) repeat: u32,
    /// Logical clients, one operation each in flight; with --rate the bound of operations in
    /// flight [default: 64]
    #[arg(
        long,
        value_name = "N",
        value_parser = clients,
        help_heading = "Load"
    )]
    pub(crate) threads: Option<u32>,
    /// Open loop: operations fall due by this schedule, whatever the target does; like 5000/s or
    /// 20k/s
    #[arg(long, value_name = "RATE", help_heading = "Load")]
    pub(crate) rate: Option<Rate>,
    /// How operations of an open loop arrive
    #[arg(long, value_enum, default_value = "constant", help_heading = "Load")]
    pub(crate) arrivals: ArrivalKind,
    /// Closed loop, capped at this rate; what a stall keeps from being sent is not made up for
    #[arg(long, value_name = "RATE", conflicts_with = "rate", help_heading = "Load")]
    pub(crate) throttle: Option<Rate>,
    /// Open loop: operations in flight at most; what is due beyond waits, and shows in lag and
    /// response time [default: 4096]
    #[arg(
        long,
        value_name = "N",
        value_parser = clients,
        conflicts_with = "threads",
        help_heading = "Load"
    )]
    pub(crate) in_flight_max: Option<u32>,
    /// An attempt without an answer for so long has failed
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        value_parser = times::of_operation,
        help_heading = "Load"
    )]
    pub(crate) timeout: Nanos,
    /// Further attempts at an operation that failed; service time runs from the first
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        value_parser = clap::value_parser!(u32).range(..=1000),
        help_heading = "Load"
    )]
    pub(crate) retries: u32,
    /// End the run after so long without any success
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30s",
        value_parser = times::of_run,
        help_heading = "Load"
    )]
    pub(crate) give_up: Nanos,
    /// Of all random choices: the same seed, plan and workers give the same operations
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Load")]
    pub(crate) seed: u64,

    /// Connections to each host over all workers, rounded up to a multiple of them [default: the
    /// smallest multiple >= 8, more beyond 130k in flight; of --protocol aerospike, where a
    /// connection has one request at a time, as many as operations may be in flight, at most 1024]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=16_384),
        help_heading = "Client"
    )]
    pub(crate) connections: Option<u32>,
    /// One worker thread is pinned to each of these [default: half of the cores, or one per core
    /// for a remote target]
    #[arg(long, value_name = "CPUS", help_heading = "Client")]
    pub(crate) client_cpus: Option<CpuSet>,
    /// How workers wait [default: spin; sleep on cpus shared with the target]
    #[arg(long, value_enum, help_heading = "Client")]
    pub(crate) wait: Option<WaitKind>,

    /// The run directory: new or empty [default: runs/<utc>-<name>]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Name of the run [default: the workload's]
    #[arg(long, help_heading = "Output")]
    pub(crate) name: Option<String>,
    /// Length of the recorded intervals; ten times that after the first hour
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = times::of_operation,
        help_heading = "Output"
    )]
    pub(crate) interval: Nanos,
    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Exit with status 1 when the result has a caveat, other than that a reference target is no
    /// database
    #[arg(long, conflicts_with = "dry_run", help_heading = "Output")]
    pub(crate) strict: bool,
    /// Print what would be done, and do nothing
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) dry_run: bool,
}

/// Logical clients: no threads and no sockets, but a place in a table and a stream id each. What
/// they take is memory (see `resolve`); ten million are more than any cluster is asked to serve.
const CLIENTS_MAX: u64 = 10_000_000;

fn clients(text: &str) -> Result<u32, String> {
    let count: Count = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    match count.0 {
        n @ 1..=CLIENTS_MAX => Ok(n as u32),
        _ => Err(format!("give 1 to {}", Count(CLIENTS_MAX))),
    }
}

/// A namespace's name, as servers take it.
fn namespace(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    match text.chars().all(is_plain) && (1..32).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err("give 1 to 31 letters, digits, '_', '-' or '$', like test".to_owned()),
    }
}

/// A keyspace's or table's name: Cassandra takes letters, digits and underscores, 48 at most.
fn name(text: &str) -> Result<String, String> {
    let fits = (1..=48).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fits {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 48 letters, digits and underscores".to_owned())
    }
}

fn replication(text: &str) -> Result<String, String> {
    let map = text.trim().starts_with('{') && text.trim().ends_with('}');
    let factor = text.trim().parse::<u32>().is_ok_and(|factor| factor > 0);
    if map || factor {
        Ok(text.to_owned())
    } else {
        Err("give a factor above 0, or a map like {'class': 'NetworkTopologyStrategy', 'dc1': 3}"
            .to_owned())
    }
}
