//! Why a trial could not be carried out, and whose turn it is.

use admin::aerospike;
use admin::{ConnectError, QueryError, ReplicationError, RingError, SchemaError};
use drive::{ControlError, DriveError, Unrecordable};
use record::Verdict;
use record::hlog::HlogWriteError;
use record::run_dir::{RunDirError, write_failed};
use record::table::TableError;
use stage::cassandra::{StartError, StopError};
use stage::{ReadyError, SpawnError, TerminateError, VerifyError};
use std::path::{Path, PathBuf};
use thiserror::Error;
use units::CpuSet;

/// Why a trial could not be carried out. Every text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum LabError {
    /// The run directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// A histogram that no log can hold.
    #[error(transparent)]
    Hlog(HlogWriteError),
    /// A table in it.
    #[error(transparent)]
    Table(TableError),
    /// The report.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// An experiment's file.
    #[error(transparent)]
    Experiment(#[from] crate::experiment::ExperimentError),
    /// No directory of an experiment.
    #[error(
        "'{}' holds no experiment that could go on: {source}; give the run directory of one, with \
         experiment.toml in it. A `scale` that was ended before its first trial has none yet: run \
         it anew, with another --out",
        path.display()
    )]
    NoExperiment { path: PathBuf, source: std::io::Error },
    /// A foreign command's warm-up.
    #[error("Failed to execute warmup of {name}: {said}; mend that, or give no-warmup")]
    Rehearsal { name: String, said: String },
    /// A file that a foreign command names.
    #[error("cannot {what} '{}': {source}; is the directory there, and yours?", path.display())]
    NamedFile { what: &'static str, path: PathBuf, source: std::io::Error },
    /// Two would write over each other.
    #[error(
        "'{}' is in use by {}: wait until it has ended, or end it", path.display(),
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Busy { path: PathBuf, pid: Option<u32> },
    /// It asks for what this version has not.
    #[error(
        "{name} needs what experiments do not have yet: {needs}; wideload lab --plan shows which \
         trials and what each of these is, take them out of the file"
    )]
    NotBuilt { name: String, needs: String },
    /// What was measured would be measured again.
    #[error(
        "{} lacks {lost} trials that ended ok: put the table back, or remove the directories of \
         the trials that are to be measured again", table.display()
    )]
    RowsLost { table: PathBuf, lost: usize },
    /// Trials that are done, and the file of their experiment, say different things.
    #[error(
        "trial {number} was measured by another experiment.toml: {what}; take the change back, or \
         begin anew with wideload lab FILE.toml"
    )]
    Changed { number: u32, what: String },
    /// A trial's settings are refused.
    #[error("trial {number} ({factors}) cannot be made: {why}")]
    Refused { number: u32, factors: String, why: String },
    /// Not a single trial is what is wrong.
    #[error(
        "{count} trials failed one after the other, the last: {last}; mend that, and go on with \
         wideload lab --resume"
    )]
    TrialsFail { count: u32, last: String },
    /// This host's facts.
    #[error(transparent)]
    Machine(#[from] machine::ReadError),
    /// The reference target did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The reference target did not listen.
    #[error(transparent)]
    Ready(#[from] ReadyError),
    /// The reference target did not end.
    #[error(transparent)]
    Terminate(#[from] TerminateError),
    /// Cassandra is not up.
    #[error(transparent)]
    Cassandra(Box<StartError>),
    /// Cassandra did not end, or left something.
    #[error(transparent)]
    CassandraStop(#[from] StopError),
    /// It is not where it was put.
    #[error(transparent)]
    Placement(#[from] VerifyError),
    /// The reference target is started and does not say where it listens.
    #[error("the reference target did not say where it listens{}", quoted(last_lines))]
    Announce { last_lines: Vec<String> },
    /// Its own program cannot be found.
    #[error("cannot find the running program to start the reference target with: {0}")]
    Program(std::io::Error),
    /// The target cannot be talked to.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A target's name.
    #[error("cannot resolve '{host}': {source}; give an address or a name that this host knows")]
    Resolve { host: String, source: std::io::Error },
    /// A cpu list.
    #[error("{flag} {asked} names cpus that this process may not use; allowed are {allowed}")]
    Cpus { flag: &'static str, asked: CpuSet, allowed: CpuSet },
    /// The cluster cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The schema cannot be changed.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The control plane has no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The cluster's ring is not known.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// More replicas than the cluster can hold.
    #[error(transparent)]
    Replication(#[from] ReplicationError),
    /// Hosts that the cluster tells of and that cannot be reached.
    #[error(
        "none of the cluster's hosts can be connected to ({hosts}); --fixed-hosts uses only the \
         addresses given, where the cluster tells others that cannot be reached from here"
    )]
    NoHostUp { hosts: String },
    /// Somebody else's table, which would be written to.
    #[error(
        "{table} exists on this cluster without a marker that it is wideload's to write to, as \
         `wideload run` leaves one where it creates a table: choose another --table or --keyspace, \
         or allow it with --write-into-existing"
    )]
    ForeignTable { table: String },
    /// Somebody else's table, without the rows.
    #[error(
        "{table} exists on this cluster without a marker that it is wideload's to write to, and \
         lacks {lacking} of {probed} keys looked for: choose another --table, or allow to load \
         into it with --write-into-existing; --skip-load reads it as it is"
    )]
    ForeignRows { table: String, lacking: usize, probed: usize },
    /// A table of somebody else that has the name of ours for markers.
    #[error(
        "{markers} exists on this cluster and is not as wideload makes it, so that nothing can be \
         noted beside {table}: choose another --keyspace"
    )]
    ForeignMarkers { table: String, markers: String },
    /// Where no table of ours belongs.
    #[error("the keyspace {keyspace} is the database's own: choose another --keyspace")]
    SystemKeyspace { keyspace: String },
    /// Our own table with other rows.
    #[error(
        "{table} holds other rows than this workload's: it was loaded with {theirs}; this is \
         {ours}. Choose another --table, or give the options that it was loaded with, or drop it \
         yourself"
    )]
    OtherShape { table: String, theirs: String, ours: String },
    /// Our own table with rows gone.
    #[error(
        "{table} was loaded completely, and yet {lacking} of {probed} keys looked for are not \
         there: --load writes all rows again, --skip-load uses what is there"
    )]
    RowsMissing { table: String, lacking: usize, probed: usize },
    /// The table has other columns.
    #[error(
        "{table} exists and is not as this workload needs it: {wrong}; choose another --table, or \
         make it with {create}"
    )]
    TableShape { table: String, wrong: String, create: String },
    /// A marker that is not as this program writes it.
    #[error(
        "the marker of {table} cannot be read; was it written by a newer version? DELETE FROM \
         {markers} WHERE table_name = {name} makes the table one without a marker"
    )]
    Marker { table: String, markers: String, name: String },
    /// Nothing to read.
    #[error("{table} does not exist on this target: leave out --skip-load to create and load it")]
    TableMissing { table: String },
    /// Another tool's table is not there, and it would not make it either.
    #[error(
        "{table} does not exist on this target; make it with --create, or by yourself: {create}"
    )]
    ForeignMissing { table: String, create: String },
    /// Hosts of a target give different ids for a statement.
    #[error(
        "the hosts of --target prepare '{statement}' under different ids; are they one cluster of \
         one version?"
    )]
    Ids { statement: String },
    /// A profile's statement wants a value that no column gives.
    #[error(
        "'{statement}' has a value for '{value}', which is no column of the table ({columns}): \
         write a number in its place"
    )]
    NoColumn { statement: String, value: String, columns: String },
    /// The load phase did not write all rows.
    #[error(
        "loading failed: {failed} of {total} inserts ended as {outcomes} ({said}); the table is \
         incomplete"
    )]
    Load { failed: u64, total: u64, outcomes: String, said: String },
    /// The target that was started for the trial has ended by itself.
    #[error(
        "the target that was started for this run has ended; its last words are in {}",
        raw.display()
    )]
    TargetDied { raw: PathBuf },
    /// Nothing succeeded while loading.
    #[error("loading was given up: nothing succeeded for {give_up} (--give-up)")]
    LoadGaveUp { give_up: units::Nanos },
    /// The user's wish.
    #[error("interrupted by the user before anything was measured")]
    Interrupted,
    /// This host gives no thread.
    #[error("cannot start a thread: {0}; `ulimit -u` tells how many there may be")]
    Thread(std::io::Error),
    /// The data plane could not be started or its results not recorded.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The workload of the calibration.
    #[error(transparent)]
    Workload(#[from] workload::ycsb::YcsbError),
    /// The user's wish.
    #[error("interrupted while calibrating; nothing is kept")]
    CalibrationInterrupted,
    /// A run of the calibration did not end well.
    #[error("calibrating failed: {why}; is this host too busy, or short of memory?")]
    CalibrationFailed { why: String },
    /// It measured nothing.
    #[error("calibrating measured no operation; is this host too busy? Try again when it is idle")]
    CalibrationEmpty,
    /// The servers of records.
    #[error(transparent)]
    Cluster(#[from] aerospike::Error),
    /// A plan that is none over records.
    #[error(transparent)]
    Unrecordable(#[from] Unrecordable),
    /// A set of records that wideload has not made.
    #[error(
        "{set} has records that wideload has not written: name another set with --table, or add \
         --write-into-existing to write into this one"
    )]
    ForeignSet { set: String },
    /// Where calibrating writes.
    #[error("cannot use '{}': {source}; set TMPDIR to a writable place", path.display())]
    Scratch { path: PathBuf, source: std::io::Error },
}

/// A table that could not be written, by its path.
pub(crate) fn table_failed(path: &Path) -> impl FnOnce(TableError) -> LabError {
    move |error| match error.into_io() {
        Ok(source) => LabError::RunDir(write_failed(path)(source)),
        Err(error) => LabError::Table(error),
    }
}

/// A log that could not be written, by its path where the system is why.
pub(crate) fn log_failed(path: &Path) -> impl FnOnce(HlogWriteError) -> LabError {
    move |error| match error {
        HlogWriteError::Io(source) => LabError::RunDir(write_failed(path)(source)),
        error => LabError::Hlog(error),
    }
}

fn quoted(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

impl From<StartError> for LabError {
    fn from(error: StartError) -> Self {
        Self::Cassandra(Box::new(error))
    }
}

impl LabError {
    /// How a run ends because of it.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.exit_status() {
            130 => Verdict::Interrupted,
            _ => Verdict::Failed,
        }
    }

    /// A trial's target has ended by itself, or one of the databases that it is.
    pub(crate) fn target_died(trial_dir: &record::TrialDir) -> Self {
        Self::TargetDied { raw: trial_dir.path().join(record::run_dir::RAW) }
    }

    /// Exit status of the program: 1 ended early, 2 usage, 3 environment, 130 interrupted (design
    /// section 7).
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Interrupted | Self::CalibrationInterrupted => 130,
            Self::Cassandra(error) if error.is_interrupted() => 130,
            Self::Cassandra(error) if error.is_usage() => 2,
            Self::Load { .. }
            | Self::Rehearsal { .. }
            | Self::LoadGaveUp { .. }
            | Self::TargetDied { .. }
            | Self::TrialsFail { .. } => 1,
            Self::Connect(ConnectError::Interrupted)
            | Self::Cluster(aerospike::Error::Interrupted { .. })
            | Self::Control(ControlError::Interrupted { .. })
            | Self::Drive(DriveError::Link(drive::LinkError::Interrupted)) => 130,
            Self::Cpus { .. }
            | Self::Experiment(_)
            | Self::NoExperiment { .. }
            | Self::NotBuilt { .. }
            | Self::RowsLost { .. }
            | Self::Changed { .. }
            | Self::Refused { .. }
            | Self::ForeignTable { .. }
            | Self::ForeignRows { .. }
            | Self::ForeignSet { .. }
            | Self::Unrecordable(_)
            | Self::Cluster(
                aerospike::Error::Namespace { .. } | aerospike::Error::Secured { .. },
            )
            | Self::ForeignMarkers { .. }
            | Self::SystemKeyspace { .. }
            | Self::OtherShape { .. }
            | Self::RowsMissing { .. }
            | Self::TableShape { .. }
            | Self::Marker { .. }
            | Self::Replication(_)
            | Self::Schema(SchemaError::Refused { .. } | SchemaError::Exists { .. })
            | Self::Query(QueryError::Refused { .. })
            | Self::Connect(
                ConnectError::CredentialsMissing { .. }
                | ConnectError::CredentialsRefused { .. }
                | ConnectError::Tls { .. }
                | ConnectError::WantsTls { .. }
                | ConnectError::Datacenter { .. },
            )
            | Self::TableMissing { .. }
            | Self::ForeignMissing { .. }
            | Self::Ids { .. }
            | Self::NoColumn { .. }
            | Self::RunDir(RunDirError::NotEmpty { .. } | RunDirError::NotDirectory { .. })
            | Self::Control(
                ControlError::Refused { .. }
                | ControlError::NotLetIn { .. }
                | ControlError::Tls { .. }
                | ControlError::WantsTls { .. },
            ) => 2,
            _ => 3,
        }
    }
}
