//! A command of cassandra-stress as a trial.

use crate::data;
use crate::error::LabError;
use crate::live::Live;
use crate::provision::{self, TargetChoice};
use crate::scripted::{Rehearsal, Scripted};
use crate::trial::{LoadChoice, Trial};
use admin::Admin;
use drive::{Access, Amount, Arrivals, Engine, Growth, Load, RetryPause, TableName, Wait};
use machine::{Machine, client_and_target_cpus, one_per_core};
use record::Caveat;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, CpuSet, Nanos, Rate, read_plain_text};
use wire::cql::{Consistency, Protocol};
use workload::cassandra_stress::settings::{
    DelayPolicy, End, Hosts, Population, Rate as Asked, Settings, Truncate,
};

/// Clients of a warm-up at most.
const WARM_UP_THREADS: u32 = 100;
/// Operations of a warm-up on each host that is named, at most.
const WARM_UP_OPS: u64 = 50_000;
/// Client cpus for a target elsewhere, at most.
const REMOTE_CPUS_MAX: usize = 8;
/// A run in which nothing succeeds ends after so many timeouts, and not sooner than after the other
/// time: with no connection left there is nothing to retry on.
const GIVE_UP_TIMEOUTS: u64 = 3;
const GIVE_UP_MIN: Nanos = Nanos::from_secs(30);
const LOCAL: &str = "localhost";

/// What a command does not say: who carries it out.
#[derive(Debug, Clone)]
pub struct Client {
    /// One worker on each; None takes what suits the hosts.
    pub cpus: Option<CpuSet>,
    /// The run directory of a command of one run; under `runs/` when None.
    pub out: Option<PathBuf>,
    /// Of all random streams.
    pub seed: u64,
    /// For the manifest, without passwords.
    pub command_line: Vec<String>,
    /// Statements that prepare keyspace and table beforehand.
    pub ddl: Vec<String>,
}

impl Client {
    /// The trial of so many threads; `first` of several has the schema and the warm-up.
    pub(super) fn trial(
        &self,
        settings: &Settings,
        threads: u32,
        first: bool,
    ) -> Result<Trial, LabError> {
        let hosts = addresses(&settings.hosts, settings.mode.port)?;
        let machine = Machine::read(Path::new("/"))?;
        let (client_cpus, shared) = self.cpus(&hosts, &machine)?;
        let plan = settings.plan(threads as usize);
        let arrivals = arrivals(settings, threads);
        let workers = drive::workers(client_cpus.len(), &arrivals, 1);
        let wanted = settings.mode.connections_per_host as usize;
        // A connection has 32768 stream ids; half of them leave room for late answers.
        let needed = (threads as usize).div_ceil(16_384);
        let scripted = self.scripted(settings, hosts.len(), threads, first);
        let forewarned = caveats(settings);
        let name = plan.workload.replace(':', "-");
        // The grammar lets nothing else pass.
        let compression = settings.mode.compression.parse().unwrap_or_default();
        let protocol = Protocol::new(settings.mode.protocol_version, compression);
        let protocol = protocol.unwrap_or_default();
        Ok(Trial {
            table: TableName { keyspace: settings.keyspace(), table: settings.table() },
            replication: "1".to_owned(),
            target: TargetChoice::Running { hosts },
            access: Access { credentials: settings.mode.credentials.clone(), tls: None },
            fixed_hosts: settings.hosts.whitelist,
            datacenter: settings.hosts.datacenter.clone(),
            write_into_existing: true,
            places: Vec::new(),
            client_cpus,
            load: Load { arrivals, amount: amount(settings), limit: None, warm: Nanos::ZERO },
            warm_until_steady: false,
            settle: Nanos::ZERO,
            repeat: 1,
            connections_by_shard: false,
            connections: drive::connections(wanted.max(needed), workers),
            engine: Engine::Epoll,
            wait: if shared { Wait::Sleep } else { Wait::Spin },
            protocol,
            records: None,
            // The grammar lets no other word pass.
            consistency: settings.consistency.parse().unwrap_or(Consistency::LocalOne).into(),
            timeout: Nanos::from_millis(settings.mode.timeout_ms),
            retries: settings.errors.retries,
            load_retries: 0,
            load_retry_pause: Nanos::ZERO,
            retry_pause: retry_pause(settings),
            give_up: GIVE_UP_MIN
                .max(Nanos::from_millis(settings.mode.timeout_ms.saturating_mul(GIVE_UP_TIMEOUTS))),
            seed: self.seed,
            interval: Nanos::from_millis(settings.log.interval_ms),
            load_choice: LoadChoice::Skip,
            out: self.out.clone(),
            name: match settings.rate {
                Asked::Threads { .. } => name,
                Asked::Stepped { .. } => format!("{name}-{threads}-threads"),
            },
            command_line: self.command_line.clone(),
            settings: recorded(settings, threads),
            host: serde_json::to_value(&machine).unwrap_or(Value::Null),
            forewarned,
            kept: None,
            foreign: None,
            scripted: Some(scripted),
            plan: Arc::new(plan),
        })
    }

    /// Creates keyspace and tables, and does nothing else.
    pub(super) fn create(
        trial: &Trial,
        live: &mut dyn Live,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let TargetChoice::Running { hosts } = &trial.target else { return Ok(()) };
        let provisioned = provision::running(hosts, false, stop)?;
        let timeout = trial.timeout.max(data::CONTROL_TIMEOUT_MIN);
        let config = data::config(trial, &provisioned.addresses, timeout);
        let admin = Admin::connect_unless(&config, stop)?;
        let scripted = trial.scripted.clone().unwrap_or_default();
        scripted.create(trial, &admin, live)
    }

    fn scripted(&self, settings: &Settings, hosts: usize, threads: u32, first: bool) -> Scripted {
        let create = match first {
            true => settings.schema_statements(),
            false => Vec::new(),
        };
        let ddl = if first { self.ddl.clone() } else { Vec::new() };
        let truncates = match settings.truncate {
            Truncate::Never => false,
            Truncate::Once => first,
            Truncate::Always => true,
        };
        Scripted {
            ddl,
            create,
            creates_tables: first,
            truncate: if truncates { settings.tables() } else { Vec::new() },
            rehearsals: if first { rehearsals(settings, hosts, threads) } else { Vec::new() },
            first_failure_ends: !settings.errors.ignore,
            missing_is_fine: settings.errors.skip_validation,
        }
    }

    /// The client's cpus, and whether a target may be on them.
    fn cpus(&self, hosts: &[String], machine: &Machine) -> Result<(CpuSet, bool), LabError> {
        let allowed = &machine.allowed;
        let local = hosts.iter().all(|host| is_loopback(host));
        let cpus = match &self.cpus {
            Some(asked) if asked.is_empty() || !asked.difference(allowed).is_empty() => {
                let (asked, allowed) = (asked.clone(), allowed.clone());
                return Err(LabError::Cpus { flag: "--client-cpus", asked, allowed });
            }
            Some(asked) => asked.clone(),
            None if local => client_and_target_cpus(machine, allowed).client,
            None => one_per_core(machine, allowed, REMOTE_CPUS_MAX),
        };
        let all = !local || !allowed.difference(&cpus).is_empty();
        Ok((cpus, !all))
    }
}

/// Of a file with a host a line.
const HOSTS_SIZE_MAX: Bytes = Bytes(1 << 20);

/// Hosts with their port, from the list or the file that is named.
pub(super) fn addresses(hosts: &Hosts, port: u16) -> Result<Vec<String>, LabError> {
    let listed = match &hosts.file {
        None => hosts.listed.clone(),
        Some(file) => {
            let path = PathBuf::from(file);
            let text = read_plain_text(&path, HOSTS_SIZE_MAX).map_err(|source| {
                LabError::NamedFile { what: "read the hosts in", path: path.clone(), source }
            })?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        }
    };
    let with_port = |host: &String| match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        // Also in a static program, which looks no names up.
        _ if host == LOCAL => format!("127.0.0.1:{port}"),
        _ => format!("{host}:{port}"),
    };
    Ok(listed.iter().map(with_port).collect())
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Pauses before further attempts, as ScyllaDB's fork makes them.
fn retry_pause(settings: &Settings) -> RetryPause {
    let delay = settings.errors.delay;
    RetryPause {
        least: Nanos::from_millis(delay.least_ms),
        most: Nanos::from_millis(delay.most_ms),
        growth: match delay.policy {
            DelayPolicy::Constant => Growth::Constant,
            DelayPolicy::Linear => Growth::Linear,
            DelayPolicy::Exponential => Growth::Exponential,
        },
        overloaded_only: true,
        scattered: true,
    }
}

fn arrivals(settings: &Settings, threads: u32) -> Arrivals {
    let threads = threads as usize;
    match settings.rate {
        Asked::Threads { ops_per_s: per_s @ 1.., .. } => {
            // So many partitions: an operation may have several.
            let second = Nanos((1e9 * settings.partitions_mean()) as u64);
            match Rate::new(u64::from(per_s), second) {
                Some(rate) => Arrivals::Open { rate, poisson: false, in_flight_max: threads },
                None => Arrivals::Closed { threads, throttle: None },
            }
        }
        _ => Arrivals::Closed { threads, throttle: None },
    }
}

fn amount(settings: &Settings) -> Amount {
    match settings.end {
        End::Count(n) => Amount::Ops(operations(n, settings)),
        End::Time { amount, unit } => {
            Amount::Duration(Nanos::from_secs(amount.saturating_mul(unit.seconds())))
        }
        End::Uncertainty { .. } => Amount::EveryKey,
    }
}

/// Operations that have so many partitions together.
fn operations(partitions: u64, settings: &Settings) -> u64 {
    match settings.partitions_mean() {
        1.0 => partitions,
        mean => (partitions as f64 / mean).ceil() as u64,
    }
}

/// The warm-up: of each kind a quarter of the operations, at most 50 000, for each host named.
/// Writes come first, so that reads behind them find something.
fn rehearsals(settings: &Settings, hosts: usize, threads: u32) -> Vec<Rehearsal> {
    if !settings.warm_up {
        return Vec::new();
    }
    let each = match settings.end {
        End::Count(n) => (n / 4).min(WARM_UP_OPS),
        End::Time { .. } | End::Uncertainty { .. } => WARM_UP_OPS,
    };
    let ops = operations(each * hosts as u64, settings);
    let most = match settings.rate {
        Asked::Threads { .. } => threads,
        Asked::Stepped { threads_max, .. } => threads_max,
    };
    let threads = most.min(WARM_UP_THREADS) as usize;
    let kinds = settings.command.types();
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|index| !kinds[*index].writes);
    let rehearsal = |operation| Rehearsal { operation, ops, threads };
    if ops == 0 { Vec::new() } else { order.into_iter().map(rehearsal).collect() }
}

/// Where the lines follow the original in what is not so.
fn caveats(settings: &Settings) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if let Asked::Threads { ops_per_s: per_s @ 1.., fixed, .. } = settings.rate {
        if !fixed {
            let text = "The lines of throttle= show service times, as the original's do: they \
                        leave out how long operations waited for their turn.";
            let cure = "Read response times in the run directory, or give fixed=.";
            caveats.push(Caveat::new("stress-service-time", text).cure(cure));
        }
        let original = 1e9 / f64::from(1_000_000_000 / per_s);
        if (original / f64::from(per_s) - 1.0).abs() > 1e-6 {
            let text = format!(
                "The original's schedule has whole nanoseconds: of {per_s}/s it makes \
                 {original:.0}/s. Here it is {per_s}/s."
            );
            let cure = "Ask for a rate that divides 10^9 to compare with the original.";
            caveats.push(Caveat::new("stress-rate", text).cure(cure));
        }
    }
    if settings.mode.unprepared {
        let text = "Statements were prepared; the original would not have prepared them.";
        let cure = "Compare with runs of the original that give prepared.";
        caveats.push(Caveat::new("stress-prepared", text).cure(cure));
    }
    if settings.mode.credentials.is_some() {
        let text = "The password was on the command line, which ps shows to everybody.";
        caveats.push(Caveat::new("stress-password", text).cure("Change it after the run."));
    }
    if let Population::Sequence { first, last, .. } = &settings.population {
        let seeds = (last - first) as f64 + 1.0;
        // Two seeds may have the same key: 40 bits that come from 10^11 numbers.
        let same = seeds * seeds / 2e11;
        if settings.user().is_none() && settings.key_size <= 10 && same >= 1.0 {
            let text = format!(
                "About {same:.0} of {seeds:.0} seeds share their key with another, as in the \
                 original: so many rows are missing from a count."
            );
            let cure = "Give keysize=20 for keys of their own.";
            caveats.push(Caveat::new("stress-shared-keys", text).cure(cure));
        }
    }
    caveats
}

/// The settings, for the manifest.
fn recorded(settings: &Settings, threads: u32) -> Map<String, Value> {
    let dump = settings.dump();
    let lines: Vec<_> = dump.lines().skip(1).filter(|line| !line.is_empty()).collect();
    let value = json!({
        "workload": format!("cassandra-stress:{}", settings.command.name().to_lowercase()),
        "compat": settings.compat.to_string(),
        "threads": threads,
        "cassandra-stress": lines,
        "notices": settings.notices,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
