//! A stage of asbench as a trial.

use crate::dialect::Dialect;
use crate::error::LabError;
use crate::provision::TargetChoice;
use crate::requests::Records;
use crate::stress::client_cpus;
use crate::trial::{Foreign, LoadChoice, Trial};
use drive::{Access, Amount, Arrivals, Engine, Load, RetryPause, TableName, Wait, Writes};
use machine::Machine;
use record::Caveat;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{CpuSet, Nanos, Rate};
use wire::aerospike::RecordExists;
use wire::cql::{Consistency, Protocol};
use workload::asbench::{Kind, Settings, Stage};

/// A run in which nothing succeeds ends after so many timeouts, and not sooner than after the other
/// time.
const GIVE_UP_TIMEOUTS: u64 = 3;
const GIVE_UP_MIN: Nanos = Nanos::from_secs(30);
/// A stage without an end lasts until somebody ends it; this is longer than anybody waits.
const ENDLESS: Nanos = Nanos::from_secs(100 * 365 * 86_400);
/// Connections to each host at least, and operations in flight on each at most.
const CONNECTIONS_MIN: usize = 8;
const IN_FLIGHT_PER_CONNECTION: usize = 16_384;
/// Connections to each server at most; each has one command under way.
const RECORD_CONNECTIONS_MAX: usize = 4096;

/// What a line does not say: who carries it out.
#[derive(Debug, Clone)]
pub struct Client {
    /// One worker on each; None takes what suits the hosts.
    pub cpus: Option<CpuSet>,
    /// The run directory of a line of one stage; under `runs/` when None.
    pub out: Option<PathBuf>,
    /// Of all random streams.
    pub seed: u64,
    /// For the manifest.
    pub command_line: Vec<String>,
}

impl Client {
    /// The trial of a stage, by its index.
    pub(super) fn trial(&self, settings: &Settings, number: usize) -> Result<Trial, LabError> {
        let stage = settings.stages.get(number).ok_or(LabError::Stages { stages: number })?;
        if self.out.is_some() && settings.stages.len() > 1 {
            return Err(LabError::Stages { stages: settings.stages.len() });
        }
        let hosts: Vec<String> = settings.hosts.iter().map(|host| numeric(host)).collect();
        let machine = Machine::read(Path::new("/"))?;
        let (cpus, shared) = client_cpus(self.cpus.as_ref(), &hosts, &machine)?;
        let cpus = match stage.asynchronous {
            true => cpus.iter().take(settings.event_loops as usize).collect(),
            false => cpus,
        };
        let arrivals = arrivals(settings, stage);
        let workers = drive::workers(cpus.len(), &arrivals, 1);
        let over_cql = settings.own.protocol.as_deref() == Some("cql");
        let commands = arrivals.in_flight_max();
        let connections = match over_cql {
            true => CONNECTIONS_MIN.max(commands.div_ceil(IN_FLIGHT_PER_CONNECTION)),
            false => commands.min(RECORD_CONNECTIONS_MAX),
        };
        let plan = settings.plan(stage);
        let timeout = Nanos::from_millis(settings.timeout_ms);
        Ok(Trial {
            table: TableName { keyspace: settings.namespace.clone(), table: settings.set.clone() },
            replication: "1".to_owned(),
            target: TargetChoice::Running { hosts },
            access: Access { credentials: None, tls: None },
            fixed_hosts: false,
            datacenter: None,
            write_into_existing: true,
            places: Vec::new(),
            client_cpus: cpus,
            load: Load { arrivals, amount: amount(stage), limit: None, warm: Nanos::ZERO },
            warm_until_steady: false,
            settle: Nanos::ZERO,
            repeat: 1,
            connections_by_shard: false,
            connections: drive::connections(connections, workers),
            engine: Engine::Epoll,
            wait: if shared { Wait::Sleep } else { Wait::Spin },
            protocol: Protocol::default(),
            records: (!over_cql).then(|| records(settings, stage)),
            consistency: Consistency::LocalOne.into(),
            timeout,
            retries: settings.retries,
            load_retries: 0,
            load_retry_pause: Nanos::ZERO,
            retry_pause: RetryPause::constant(Nanos::ZERO),
            give_up: GIVE_UP_MIN.max(Nanos(timeout.0.saturating_mul(GIVE_UP_TIMEOUTS))),
            seed: self.seed,
            interval: Nanos::from_secs(1),
            load_choice: LoadChoice::Skip,
            out: self.out.clone(),
            name: plan.workload.replace([':', ','], "-"),
            command_line: self.command_line.clone(),
            settings: recorded(settings, stage, number),
            host: serde_json::to_value(&machine).unwrap_or(Value::Null),
            forewarned: caveats(settings, stage),
            kept: None,
            scripted: None,
            foreign: Some(Foreign {
                loads: !stage.workload.is_random(),
                creates: settings.own.create,
                keeps: 0,
                dialect: Dialect::Asbench,
            }),
            plan: Arc::new(plan),
        })
    }
}

/// How records are written: created or changed, or replaced by `RR`.
fn records(settings: &Settings, stage: &Stage) -> Records {
    let exists = match stage.workload.kind {
        Kind::Insert | Kind::ReadUpdate => RecordExists::Update,
        Kind::ReadReplace => RecordExists::Replace,
    };
    let server_timeout_ms = u32::try_from(settings.timeout_ms).unwrap_or(u32::MAX);
    let master_commits = settings.master_commits;
    Records { writes: Writes { insert: exists, update: exists, master_commits, server_timeout_ms } }
}

/// A host that a static program finds, too.
fn numeric(host: &str) -> String {
    match host.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => host.to_owned(),
    }
}

/// Operations in flight: its commands with `-a`, else its threads.
fn clients(settings: &Settings, stage: &Stage) -> usize {
    if stage.asynchronous { settings.commands as usize } else { settings.threads as usize }
}

fn arrivals(settings: &Settings, stage: &Stage) -> Arrivals {
    let clients = clients(settings, stage);
    match Rate::new(u64::from(stage.ops_per_s), Nanos::from_secs(1)) {
        Some(rate) if stage.ops_per_s > 0 => {
            Arrivals::Open { rate, poisson: false, in_flight_max: clients }
        }
        _ => Arrivals::Closed { threads: clients, throttle: None },
    }
}

fn amount(stage: &Stage) -> Amount {
    match (stage.workload.is_random(), stage.ops, stage.duration_s) {
        (false, ..) => Amount::EveryKey,
        (true, Some(ops), _) => Amount::Ops(ops),
        (true, None, None | Some(0)) => Amount::Duration(ENDLESS),
        (true, None, Some(seconds)) => Amount::Duration(Nanos::from_secs(seconds)),
    }
}

/// Where numbers are not what the original's would be.
fn caveats(settings: &Settings, stage: &Stage) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if stage.ops_per_s > 0 {
        let text = "-g is a schedule here: what is due and cannot be sent waits, and the latencies \
                    that are printed count from when it was due. The original holds its threads \
                    back and counts from when it sends.";
        let cure = "Compare service times in the run directory with the original's latencies.";
        caveats.push(Caveat::new("asbench-schedule", text).cure(cure));
    }
    if settings.own.protocol.as_deref() == Some("cql") {
        let text = "The line was carried out over CQL, with the namespace as keyspace, the set as \
                    table and bins as columns: it says nothing about Aerospike.";
        let cure = "Leave --protocol cql out to drive Aerospike.";
        caveats.push(Caveat::new("asbench-over-cql", text).cure(cure));
    }
    caveats
}

/// The settings, for the manifest.
fn recorded(settings: &Settings, stage: &Stage, number: usize) -> Map<String, Value> {
    let value = json!({
        "workload": format!("asbench:{}", stage.workload),
        "compat": settings.generation.to_string(),
        "compat_told_by": settings.told_by,
        "stage": number + 1,
        "stages": settings.stages.len(),
        "description": stage.description,
        "keys": stage.keys,
        "start_key": stage.key_start,
        "threads": clients(settings, stage),
        "async": stage.asynchronous,
        "event_loops": settings.event_loops,
        "rate": stage.ops_per_s,
        "timeout_ms": settings.timeout_ms,
        "retries": settings.retries,
        "master_commits": settings.master_commits,
        "random_values": stage.random,
        "protocol": settings.own.protocol.as_deref().unwrap_or("aerospike"),
        "notices": settings.notices,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
