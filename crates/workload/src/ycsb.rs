//! YCSB's core workloads: (workload a..f, properties) -> plan and settings of the load.
//!
//! Property names, defaults, generators and key texts are those of YCSB's CoreWorkload (sources:
//! CoreWorkload, Client and the package generator of YCSB at commit d9faaac). Every property is
//! honoured or refused; nothing is read and ignored. Limits: text keys and columns, one table.
//!
//! Divergences from YCSB:
//! - Key numbers have 64 bits (YCSB cuts them, and `operationcount` and the expected new keys, to
//!   32); `recordcount` goes up to 2^62.
//! - `recordcount` defaults to 100000 for every workload (the files say 1000); 0 is refused where
//!   YCSB takes it for 2147483647. `operationcount=0` means no limit, as there.
//! - Random draws come from seeded xoshiro256++ streams, one per phase and worker, and repeat. YCSB
//!   draws from unseeded thread-local generators.
//! - Uniform integers scale a word instead of |word| modulo n: off even by at most n / 2^64, in
//!   YCSB by n / 2^63.
//! - Random field bytes keep the marginals per position, not the correlation of neighbouring bytes
//!   that comes from reused bits. Fields written by the load follow from (seed, key).
//! - A zipfian rank never exceeds its maximum (in YCSB, u just below 1 can give one more).
//! - zeta(n) is an Euler-Maclaurin sum (relative error < 1e-12), not a loop over n terms; `latest`
//!   follows each acknowledged insert with it, eta keeping the first n as in YCSB. `latest` needs
//!   4 records, because YCSB's formula gives keys that do not exist below that.
//! - `zipfian` without a known number of operations (a run bounded by time) takes as many as there
//!   are records for its room of new keys; YCSB demands `operationcount`. Room for more than 100
//!   new keys per loaded one is refused: most draws would be of keys that do not exist yet.
//! - A key that does not exist yet is drawn again from a second stream, at most 10000 times;
//!   then an existing one is taken evenly. YCSB goes on for ever, in the one stream.
//! - `exponential` draws from the distribution truncated to existing keys, which is what YCSB's
//!   drawing again while negative amounts to. `exponential.frac` is a fraction: above 0, up to 1.
//! - `sequential` and inserts are interleaved over the workers instead of sharing a counter.
//! - Acknowledged inserts are followed per worker; the window is as large as the inserts in flight,
//!   not 2^20.
//! - `hotspot` fractions outside 0..1 are refused (YCSB warns and takes 0), and so is a hot or cold
//!   set without keys that is to be asked for (YCSB divides by zero).
//! - Booleans are `true` or `false` and `insertorder` is `hashed` or `ordered`; YCSB takes anything
//!   else for `false` and `ordered`.
//! - Histogram files need their buckets in order from 0; YCSB inserts them where the number says.
//! - Numbers are plain decimals; Java's other spellings (`0.5f`, hexadecimal) are refused. Limits
//!   that YCSB does not have: fieldcount 1..1000, field lengths up to 1 MiB, zeropadding up to 100,
//!   insertcount and minscanlength at least 1, exponential.percentile inside 0..100, proportions
//!   from 0 to 10^9, table and field names of ASCII letters, digits and underscores.
//! - The one hash of -2^63 reads 9223372036854775808; Java leaves its sign.
//! - `core_workload_insertion_keep_going_on_error=true` and workload classes other than
//!   CoreWorkload are refused.

mod binding;
mod compile;
mod job;
mod line;
mod measurement;
mod names;
mod properties;
mod reader;

pub use binding::{AerospikeBinding, BasicBinding, Binding, CqlBinding};
pub use job::{Job, JobError};
pub use line::{Command, Line, LineError, redacted};
pub use measurement::{Exporter, From, Kind, Measurement};
pub use properties::{Properties, PropertiesError};

use crate::lengths::HistogramError;
use crate::plan::Plan;
use std::path::PathBuf;
use thiserror::Error;

/// A plan, and what properties say about the load.
#[derive(Debug, Clone)]
pub struct YcsbPlan {
    /// What is done.
    pub plan: Plan,
    /// How long, how fast, by how many.
    pub settings: Settings,
    /// What of the properties is used otherwise than a reader may think: sentences.
    pub notices: Vec<String>,
}

/// Settings that properties give; a flag of the command line wins over each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Records in the table after the load phase.
    pub records: u64,
    /// First key number that the load phase writes (`insertstart`).
    pub insert_start: u64,
    /// Keys that the load phase writes (`insertcount`).
    pub insert_count: u64,
    /// Measured ops (`operationcount`); None when absent or 0 (no limit).
    pub operations: Option<u64>,
    /// Logical clients (`threadcount`).
    pub threads: Option<u32>,
    /// Total rate in ops/s (`target`); None when absent or 0 (no limit).
    pub rate_ops_s: Option<u64>,
    /// Longest run in seconds (`maxexecutiontime`); None when absent or 0 (no limit).
    pub duration_s: Option<u64>,
    /// Table (`table`), when a property gives it.
    pub table: Option<String>,
    /// Tries of a failed insert of the load after the first.
    pub insertion_retry_limit: u32,
    /// Mean pause before such a try, in seconds; each is drawn from 0.8 to 1.2 times it.
    pub insertion_retry_interval_s: u32,
    /// Over records, an update keeps the fields that it does not write, and creates what is not
    /// there (`as.update`, which is ours); None when absent.
    pub upserts: Option<bool>,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum YcsbError {
    /// No such workload.
    #[error("unknown YCSB workload '{name}'; choose one of a, b, c, d, e, f")]
    Workload {
        /// What was given.
        name: String,
    },
    /// No such binding here.
    #[error(
        "binding '{name}' is not driven here; choose cassandra-cql, scylla, aerospike or \
         basic, which prints operations"
    )]
    Binding {
        /// What was given.
        name: String,
    },
    /// A binding without hosts.
    #[error("binding {name} needs the property {property}; give -p {property}=HOST[,HOST...]")]
    Hosts {
        /// The binding.
        name: &'static str,
        /// Its property.
        property: &'static str,
    },
    /// Not a property of YCSB.
    #[error("unknown YCSB property '{name}'; {cure}")]
    Unknown {
        /// What was given.
        name: String,
        /// The nearest known name.
        cure: String,
    },
    /// A property of YCSB that does nothing here.
    #[error("YCSB property '{name}' has no effect in wideload; {cure}")]
    NoEffect {
        /// The property.
        name: String,
        /// What to use instead.
        cure: &'static str,
    },
    /// A value of the wrong form or out of range.
    #[error("YCSB property {name}='{value}' must be {wanted}")]
    Value {
        /// The property.
        name: String,
        /// Its value.
        value: String,
        /// Form and limits.
        wanted: String,
    },
    /// A lower bound above its upper bound.
    #[error(
        "YCSB property {low_name}={low} is above {high_name}={high}; lower it or raise the other"
    )]
    Bounds {
        /// Name of the lower bound.
        low_name: &'static str,
        /// Its value.
        low: u64,
        /// Name of the upper bound.
        high_name: &'static str,
        /// Its value.
        high: u64,
    },
    /// Nothing to do.
    #[error(
        "all proportions are zero; set at least one of readproportion, updateproportion, \
         insertproportion, scanproportion, readmodifywriteproportion above 0"
    )]
    NoOperation,
    /// A row that no server takes in one frame.
    #[error(
        "fieldcount={fields} with fields of up to {longest} bytes makes rows of {row_bytes} bytes, \
         beyond 15 MiB; lower fieldcount or fieldlength"
    )]
    RowSize {
        /// Fields of a row.
        fields: usize,
        /// Longest field in bytes.
        longest: usize,
        /// Their product.
        row_bytes: usize,
    },
    /// More keys to load than the table is said to hold.
    #[error(
        "insertstart={start} and insertcount={count} need recordcount of at least {needed}, it is \
         {records}; raise recordcount (or --records)"
    )]
    Keys {
        /// First key.
        start: u64,
        /// Number of keys, at least 1.
        count: u64,
        /// Least record count.
        needed: u64,
        /// Given record count.
        records: u64,
    },
    /// A verified value needs a known length.
    #[error(
        "dataintegrity=true needs fieldlengthdistribution=constant, it is '{distribution}'; change \
         one of them"
    )]
    Integrity {
        /// The distribution given.
        distribution: String,
    },
    /// A hot or cold set without keys.
    #[error(
        "hotspotdatafraction={data_fraction} of {keys} keys leaves no {set} key, but \
         hotspotopnfraction={operation_fraction} asks for some; change a fraction or load more keys"
    )]
    HotSet {
        /// `hot` or `cold`.
        set: &'static str,
        /// Share of the keys.
        data_fraction: f64,
        /// Share of the operations.
        operation_fraction: f64,
        /// Number of keys.
        keys: u64,
    },
    /// A run that inserts far more than it starts with.
    #[error(
        "a zipfian run of {operations} operations with insertproportion={proportion} makes room \
         for {expected} new keys, more than 100 per loaded key ({loaded}); raise recordcount to at \
         least {needed} or lower operationcount"
    )]
    NewKeys {
        /// Number of operations.
        operations: u64,
        /// Proportion of inserts.
        proportion: f64,
        /// New keys, as YCSB expects them.
        expected: f64,
        /// Keys that the load writes.
        loaded: u64,
        /// Least record count, when all records are loaded.
        needed: f64,
    },
    /// Too few records for `latest`.
    #[error(
        "requestdistribution=latest needs recordcount of at least 4, it is {records}; raise it"
    )]
    Latest {
        /// Given record count.
        records: u64,
    },
    /// The histogram file cannot be read.
    #[error(
        "cannot read fieldlengthhistogram '{path}': {source}; name a readable file",
        path = path.display()
    )]
    HistogramFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The histogram file cannot be used.
    #[error("fieldlengthhistogram '{path}': {source}", path = path.display())]
    Histogram {
        /// The file.
        path: PathBuf,
        /// Why.
        source: HistogramError,
    },
}

/// Compiles a core workload. `records` and `operations`, where given (flags), win over
/// `recordcount` and `operationcount`.
///
/// # Errors
/// When a name is unknown, or a property is unknown, without effect here, malformed, out of range
/// or in conflict with another; or when the histogram file cannot be used.
pub fn plan(
    name: &str,
    properties: &Properties,
    records: Option<u64>,
    operations: Option<u64>,
) -> Result<YcsbPlan, YcsbError> {
    let file =
        names::workload_file(name).ok_or_else(|| YcsbError::Workload { name: name.to_owned() })?;
    names::check(properties)?;
    let reader = reader::Reader::new(file, properties);
    let settings = compile::settings(&reader, records)?;
    let plan = compile::plan(name, &reader, &settings, operations)?;
    let notices = compile::notices(&reader)?;
    Ok(YcsbPlan { plan, settings, notices })
}

#[cfg(test)]
mod tests;
