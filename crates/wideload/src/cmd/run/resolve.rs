//! From flags and properties to a trial: defaults filled in, contradictions refused.

use super::args::{Args, ArrivalKind, Spoken, StorageKind, WaitKind, WarmUp};
use super::password;
use super::recorded::recorded;
use super::records;
use crate::exit::Exit;
use crate::output;
use anyhow::{Context as _, anyhow, bail};
use drive::{Access, Amount, Arrivals, Load, TableName, Wait};
use lab::layout::{Asked, Database, lay_out};
use lab::stress::Reachable;
use lab::{LabError, LoadChoice, Storage, TargetChoice, Trial};
use machine::layout::Order;
use machine::{Machine, client_and_target_cpus, one_per_core};
use serde_json::{Map, Value};
use stage::Place;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use units::{Bytes, CpuSet, Nanos, NumaSet, Rate};
use wire::cql::{Consistency, Protocol};
use workload::Plan;
use workload::cassandra_stress::{self, Sources as _};
use workload::ycsb::{self, Properties, YcsbPlan};

/// Native defaults (design section 7).
const THREADS: u32 = 64;
const RECORDS: u64 = 100_000;
const IN_FLIGHT_MAX: u32 = 4096;
const DURATION: Nanos = Nanos::from_secs(10);
const WARM_MAX: Nanos = Nanos::from_secs(240);
const SETTLE: Nanos = Nanos::from_secs(60);
const CONNECTIONS_MIN: usize = 8;
/// A connection has 32768 stream ids; so many operations in flight on each leave room for late
/// answers.
const IN_FLIGHT_PER_CONNECTION: usize = 16_384;
/// Memory of an operation in flight, bytes: its place in the tables and its share of the buffers,
/// rounded up.
const CLIENT_BYTES: u64 = 512;
const REMOTE_CPUS_MAX: usize = 8;

/// Limits below which a flag's value makes no sense.
const INTERVAL_MIN: Nanos = Nanos::from_millis(10);
const TIMEOUT_MIN: Nanos = Nanos::from_millis(1);
/// Nothing is called steady sooner.
const WARM_MAX_MIN: Nanos = Nanos::from_secs(10);

pub(crate) fn trial(args: &Args) -> Result<Trial, Exit> {
    trial_of(args, |databases| plan(args, databases))
}

/// As [`trial`], of a plan that is made elsewhere, for so many databases.
pub(crate) fn trial_of(
    args: &Args,
    plan: impl FnOnce(usize) -> anyhow::Result<YcsbPlan>,
) -> Result<Trial, Exit> {
    check(args).map_err(Exit::usage)?;
    let machine = Machine::read(Path::new("/")).map_err(LabError::from)?;
    let cpus = cpus(args, &machine)?;
    let databases = cpus.places.len().max(1);
    let YcsbPlan { plan, settings, notices } = plan(databases).map_err(Exit::usage)?;
    for notice in &notices {
        output::tell(&format!("notice: {notice}"));
    }
    let load = load(args, &settings).map_err(Exit::usage)?;
    let wait = match (args.wait, cpus.shared) {
        (Some(WaitKind::Spin), _) | (None, false) => Wait::Spin,
        (Some(WaitKind::Sleep), _) | (None, true) => Wait::Sleep,
    };
    let workers = drive::workers(cpus.client.len(), &load.arrivals, databases);
    let in_flight_max = load.arrivals.in_flight_max();
    check_in_flight(in_flight_max, databases, machine.usable_memory_bytes())
        .map_err(Exit::usage)?;
    let wanted = connections(args, in_flight_max);
    let records = records::records(args, &plan, &settings).map_err(Exit::usage)?;
    let table = table_of(args, &settings, &plan);
    let mut trial = Trial {
        plan: Arc::new(plan),
        table,
        replication: args.replication.clone().unwrap_or_else(|| "1".to_owned()),
        target: target(args).map_err(Exit::usage)?,
        access: access(args)?,
        fixed_hosts: args.fixed_hosts,
        datacenter: args.datacenter.clone(),
        write_into_existing: args.write_into_existing,
        places: cpus.places,
        client_cpus: cpus.client,
        load,
        warm_until_steady: args.warm == WarmUp::Auto,
        settle: args.settle.unwrap_or(SETTLE),
        repeat: args.repeat,
        connections_by_shard: args.connections.is_none(),
        connections: drive::connections(wanted, workers / databases),
        wait,
        engine: args.engine,
        consistency: args.consistency.unwrap_or(Consistency::LocalOne).into(),
        protocol: protocol(args).map_err(Exit::usage)?,
        records,
        timeout: args.timeout,
        retries: args.retries,
        load_retries: args.retries.max(settings.insertion_retry_limit),
        load_retry_pause: load_retry_pause(&settings),
        retry_pause: drive::RetryPause::NONE,
        give_up: args.give_up,
        seed: args.seed,
        interval: args.interval,
        load_choice: load_choice(args),
        out: args.out.clone(),
        name: args.name.clone().unwrap_or_else(|| name_of(&args.workload)),
        command_line: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        settings: Map::new(),
        host: serde_json::to_value(&machine).unwrap_or(Value::Null),
        kept: None,
        forewarned: Vec::new(),
        scripted: None,
        foreign: None,
    };
    trial.settings = recorded(args, &trial);
    Ok(trial)
}

/// Of CQL; where something else is spoken, any.
fn protocol(args: &Args) -> anyhow::Result<Protocol> {
    Ok(match args.protocol {
        Spoken::Cql(version) => Protocol::new(version, args.compression)?,
        Spoken::Aerospike => Protocol::default(),
    })
}

/// To each host, over all workers.
fn connections(args: &Args, in_flight_max: usize) -> usize {
    let usual = match args.protocol {
        Spoken::Cql(_) => CONNECTIONS_MIN.max(in_flight_max.div_ceil(IN_FLIGHT_PER_CONNECTION)),
        Spoken::Aerospike => in_flight_max.min(records::CONNECTIONS_MAX),
    };
    args.connections.map_or(usual, |n| n as usize)
}

/// How the target lets us in. Warns on stderr of files of secrets that others may read.
fn access(args: &Args) -> Result<Access, Exit> {
    let credentials = password::credentials(args.user.as_ref(), args.password_file.as_deref());
    Ok(Access { credentials: credentials.map_err(Exit::usage)?, tls: args.tls.client()? })
}

fn load_choice(args: &Args) -> LoadChoice {
    match (args.load, args.skip_load) {
        (true, _) => LoadChoice::Load,
        (_, true) => LoadChoice::Skip,
        _ => LoadChoice::Undecided,
    }
}

/// Where the rows are; a profile says that itself.
fn table_of(args: &Args, settings: &ycsb::Settings, plan: &Plan) -> TableName {
    match plan.tables.as_ref().and_then(|tables| tables.tables.first()) {
        Some(first) => {
            let (keyspace, table) = first.stored_names();
            TableName { keyspace, table }
        }
        None => {
            let (keyspace, usual) = match args.protocol {
                Spoken::Cql(_) => (&args.keyspace, "ycsb"),
                Spoken::Aerospike => (&args.namespace, "test"),
            };
            let named = args.table.clone().or(settings.table.clone());
            let table = named.unwrap_or_else(|| plan.schema.table.clone());
            let keyspace = keyspace.clone().unwrap_or_else(|| usual.to_owned());
            TableName { keyspace, table }
        }
    }
}

/// Of a run of this workload: of a line of cassandra-stress its command.
fn name_of(workload: &str) -> String {
    workload.split(' ').next().unwrap_or_default().replace(':', "-")
}

fn load_retry_pause(settings: &ycsb::Settings) -> Nanos {
    match settings.insertion_retry_limit {
        0 => Nanos::ZERO,
        _ => Nanos::from_secs(u64::from(settings.insertion_retry_interval_s)),
    }
}

fn check(args: &Args) -> anyhow::Result<()> {
    let at_least = |flag: &str, value: Nanos, min: Nanos| {
        if value < min {
            Err(anyhow!("{flag} {value} is too short: give at least {min}"))
        } else {
            Ok(())
        }
    };
    at_least("--interval", args.interval, INTERVAL_MIN)?;
    at_least("--timeout", args.timeout, TIMEOUT_MIN)?;
    at_least("--give-up", args.give_up, TIMEOUT_MIN)?;
    at_least("--duration", args.duration.unwrap_or(DURATION), TIMEOUT_MIN)?;
    match (args.warm, args.warm_max) {
        (WarmUp::For(_), Some(_)) => bail!("--warm-max bounds --warm auto: give that, or leave it"),
        (_, Some(max)) => at_least("--warm-max", max, WARM_MAX_MIN)?,
        _ => {}
    }
    if args.ops.is_some_and(|ops| ops.0 == 0) {
        bail!("--ops 0 measures nothing: give at least 1");
    }
    if args.arrivals == ArrivalKind::Poisson && args.rate.is_none() {
        bail!("--arrivals poisson needs a schedule: give --rate");
    }
    let given = args.cassandra.given();
    if !starts_cassandra(args) && !given.is_empty() {
        bail!("{} is of use with --target cassandra only", given.join(", "));
    }
    if args.serial == Some(Nanos::ZERO) {
        bail!("--serial 0s holds nothing: leave it out, or give a time like 500us");
    }
    if args.tls.asked() && is_started(args) {
        bail!("--tls is for a database that runs already: leave it out, or give --target HOST");
    }
    if args.layout.is_some() && !is_started(args) {
        bail!("--layout is for a target that is started: leave it out, or leave out --target");
    }
    if !args.target_cpus.is_empty() && !is_started(args) {
        bail!("--target-cpus is for a target that is started: leave it out, or leave out --target");
    }
    records::check(args)?;
    args.target.iter().try_for_each(|host| check_host(host))
}

/// Enough operations in flight for all databases, and no more than there is memory for.
fn check_in_flight(max: usize, databases: usize, memory_bytes: Option<u64>) -> anyhow::Result<()> {
    if max < databases {
        let hint = "give --threads (or --in-flight-max) of one for each at least";
        bail!("{max} operations in flight for {databases} instances: {hint}");
    }
    check_memory(max, memory_bytes)
}

/// Operations in flight take memory and nothing else: half of the host's is the bound.
fn check_memory(in_flight_max: usize, memory_bytes: Option<u64>) -> anyhow::Result<()> {
    let needed = in_flight_max as u64 * CLIENT_BYTES;
    match memory_bytes {
        Some(memory) if needed > memory / 2 => bail!(
            "{in_flight_max} operations in flight take about {}, more than half of this host's {}: \
             give fewer --threads or --in-flight-max",
            Bytes(needed),
            Bytes(memory)
        ),
        _ => Ok(()),
    }
}

/// `HOST`, `HOST:PORT`, an IPv6 address, or one in brackets with a port.
pub(crate) fn check_host(host: &str) -> anyhow::Result<()> {
    if host.trim().is_empty() {
        bail!("--target has an empty host: give HOST[:PORT], several with commas");
    }
    if host.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    match host.rsplit_once(':') {
        Some((_, port)) if !port.parse::<u16>().is_ok_and(|port| port > 0) => {
            bail!("--target {host}: '{port}' is no port; give HOST or HOST:PORT, 1 to 65535")
        }
        _ => Ok(()),
    }
}

/// That there is such a workload.
pub(crate) fn workload(args: &Args) -> anyhow::Result<()> {
    plan(args, 1).map(drop)
}

fn plan(args: &Args, databases: usize) -> anyhow::Result<YcsbPlan> {
    if let Some(line) = args.workload.strip_prefix("cassandra-stress:") {
        return stress_plan(args, line, databases);
    }
    let Some(name) = args.workload.strip_prefix("ycsb:") else {
        bail!(
            "unknown workload '{}'; choose one of ycsb:a, ycsb:b, ycsb:c, ycsb:d, ycsb:e, ycsb:f, \
             cassandra-stress:write, :read, :mixed, :counter_write, :counter_read, :user",
            args.workload
        );
    };
    let properties = Properties::load(&args.property_file, &args.property)?;
    if args.records.is_some_and(|records| records.0 == 0) {
        bail!("--records 0 leaves nothing to ask for: give at least 1");
    }
    let (records, ops) = (args.records.map(|n| n.0), args.ops.map(|n| n.0));
    let whole = ycsb::plan(name, &properties, records, ops)?;
    let databases = databases as u64;
    if databases == 1 {
        return Ok(whole);
    }
    // So many that share no rows: each holds its part of them, with keys of its own.
    let records = whole.plan.keys.records.div_ceil(databases);
    Ok(ycsb::plan(name, &properties, Some(records), ops.map(|n| n.div_ceil(databases)))?)
}

/// A plan of cassandra-stress, driven as wideload drives its own: `line` is a command with its
/// words and the groups that say what is done, not how hard or at what.
fn stress_plan(args: &Args, line: &str, databases: usize) -> anyhow::Result<YcsbPlan> {
    if !args.property.is_empty() || !args.property_file.is_empty() {
        bail!("-p and -P are YCSB's: write words of cassandra-stress behind its command");
    }
    let records = args.records.map_or(RECORDS, |records| records.0).div_ceil(databases as u64);
    let threads = args.threads.unwrap_or(THREADS) as usize;
    // Where it is driven is not known yet: its tables are those that profiles define.
    let file = |path: &str| Reachable.text(path);
    let (plan, notices) = cassandra_stress::native(line, records, threads, &file)?;
    if plan.tables.is_some() && (args.table.is_some() || args.load) {
        bail!("--table and --load are not for profiles, which name their tables and write rows");
    }
    Ok(YcsbPlan { plan, settings: ycsb::Settings::default(), notices })
}

fn load(args: &Args, settings: &ycsb::Settings) -> anyhow::Result<Load> {
    let threads = args.threads.or(settings.threads);
    // A property's rate is YCSB's -target: its schedule, with as many in flight as there are
    // threads.
    let rate = match (args.rate, args.throttle, settings.rate_ops_s) {
        (None, None, Some(per_s)) => {
            Some(Rate::new(per_s, Nanos::from_secs(1)).context("property target must be above 0")?)
        }
        (rate, _, _) => rate,
    };
    let arrivals = match rate {
        Some(rate) => Arrivals::Open {
            rate,
            poisson: args.arrivals == ArrivalKind::Poisson,
            in_flight_max: args.in_flight_max.or(threads).unwrap_or(IN_FLIGHT_MAX) as usize,
        },
        None if args.in_flight_max.is_some() => {
            bail!("--in-flight-max bounds an open loop: give --rate, or --threads instead")
        }
        None => Arrivals::Closed {
            threads: threads.unwrap_or(THREADS) as usize,
            throttle: args.throttle,
        },
    };
    let property_duration = settings.duration_s.map(Nanos::from_secs);
    let amount = match (args.ops, args.duration, settings.operations, property_duration) {
        (Some(ops), _, _, _) => Amount::Ops(ops.0),
        (None, Some(duration), _, _) => Amount::Duration(duration),
        (None, None, Some(_), Some(_)) => bail!(
            "properties operationcount and maxexecutiontime both bound the run: give one of them, \
             or --ops or --duration"
        ),
        (None, None, Some(ops), None) => Amount::Ops(ops),
        (None, None, None, duration) => Amount::Duration(duration.unwrap_or(DURATION)),
    };
    let warm = match args.warm {
        WarmUp::For(time) => time,
        WarmUp::Auto => args.warm_max.unwrap_or(WARM_MAX),
    };
    Ok(Load { arrivals, amount, warm, limit: None })
}

/// The word for --target that is no host.
pub(crate) const CASSANDRA: &str = "cassandra";

pub(super) fn starts_cassandra(args: &Args) -> bool {
    args.target == [CASSANDRA]
}

/// Whether the target is started for this run.
pub(super) fn is_started(args: &Args) -> bool {
    args.target.is_empty() || starts_cassandra(args)
}

fn target(args: &Args) -> anyhow::Result<TargetChoice> {
    Ok(if starts_cassandra(args) {
        TargetChoice::Cassandra {
            options: Box::new(args.cassandra.options(1)?),
            data_dir: args.cassandra.data_dir.clone(),
        }
    } else if args.target.is_empty() {
        let storage = match args.storage {
            StorageKind::Memory => Storage::Memory,
            StorageKind::Null => Storage::Null,
        };
        TargetChoice::Reference { storage, serial: args.serial }
    } else {
        TargetChoice::Running { hosts: args.target.clone() }
    })
}

struct Cpus {
    client: CpuSet,
    places: Vec<Place>,
    shared: bool,
}

fn cpus(args: &Args, machine: &Machine) -> Result<Cpus, Exit> {
    let allowed = &machine.allowed;
    let asked_client = args.client_cpus.iter().map(|cpus| ("--client-cpus", cpus));
    let asked_target = args.target_cpus.iter().map(|place| ("--target-cpus", &place.cpus));
    for (flag, asked) in asked_client.chain(asked_target) {
        if asked.is_empty() || !asked.difference(allowed).is_empty() {
            let (asked, allowed) = (asked.clone(), allowed.clone());
            return Err(LabError::Cpus { flag, asked, allowed }.into());
        }
    }
    check_memory_of(&args.target_cpus, machine)?;
    let local = is_started(args) || args.target.iter().all(|host| is_loopback(host));
    let split = client_and_target_cpus(machine, allowed);
    let placed = union(&args.target_cpus);
    let client = match &args.client_cpus {
        Some(client) => client.clone(),
        None if local && !placed.is_empty() => {
            let rest = allowed.difference(&placed);
            one_per_core(machine, if rest.is_empty() { allowed } else { &rest }, usize::MAX)
        }
        _ if local => split.client,
        _ => one_per_core(machine, allowed, REMOTE_CPUS_MAX),
    };
    let anywhere = |cpus| vec![Place { cpus, ..Place::default() }];
    let places = match &args.client_cpus {
        _ if !args.target_cpus.is_empty() => args.target_cpus.clone(),
        None => anywhere(split.target),
        Some(client) => {
            let rest = allowed.difference(client);
            anywhere(if rest.is_empty() { allowed.clone() } else { rest })
        }
    };
    // Where a running local target has its threads is not known here; its host's other half is its
    // own affair.
    let places = match &args.layout {
        None => places,
        Some(policy) => {
            let asked = Asked {
                policy: policy.clone(),
                numa_count: args.numa_count,
                order: args.spread.then_some(Order::Spread),
                cpus: union(&places),
                database: match starts_cassandra(args) {
                    true => Database::Cassandra,
                    false => Database::Reference,
                },
                heap: args.cassandra.heap_asked(),
            };
            lay_out(machine, &asked).map_err(|e| Exit::usage(anyhow!("--layout {policy}: {e}")))?.0
        }
    };
    let shared = is_started(args) && !client.intersection(&union(&places)).is_empty();
    Ok(Cpus { client, places, shared })
}

/// That this machine has the NUMA nodes, with memory that this process may use.
fn check_memory_of(places: &[Place], machine: &Machine) -> Result<(), Exit> {
    let usable: NumaSet = machine
        .numa
        .iter()
        .filter(|numa| numa.allowed && numa.memory_bytes != Some(0))
        .map(|numa| numa.id)
        .collect();
    for place in places {
        let lacking = place.memory.numas().map(|numas| numas.difference(&usable));
        if let Some(lacking) = lacking.filter(|lacking| !lacking.is_empty()) {
            let there = match usable.is_empty() {
                true => "this host shows none: leave out what is behind the @".to_owned(),
                false => format!("there is memory of {usable}"),
            };
            return Err(Exit::usage(anyhow!(
                "--target-cpus {place}: no memory of NUMA node {lacking} can be used; {there}"
            )));
        }
    }
    Ok(())
}

/// The cpus of all places.
fn union(places: &[Place]) -> CpuSet {
    places.iter().fold(CpuSet::default(), |all, place| all.union(&place.cpus))
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| match port.parse::<u16>() {
        Ok(_) => name,
        Err(_) => host,
    });
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_in_flight_are_bounded_by_memory() {
        let gib = 1 << 30;
        for (in_flight, memory, fits) in [
            (100_000, Some(gib), true),
            (1_000_000, Some(gib), true),
            (10_000_000, Some(gib), false),
            (10_000_000, Some(16 * gib), true),
            (10_000_000, None, true),
        ] {
            let checked = check_memory(in_flight, memory);
            assert_eq!(checked.is_ok(), fits, "{in_flight} {memory:?}");
            assert!(checked.is_ok() || checked.unwrap_err().to_string().contains("--threads"));
        }
    }
}
