//! Every flag of `run` as it was resolved, for the manifest.

use super::args::{Args, ArrivalKind, WarmUp};
use super::resolve::{CASSANDRA, is_started, starts_cassandra};
use drive::{Amount, Arrivals, Wait};
use lab::{LoadChoice, TargetChoice, Trial};
use serde_json::{Map, Value, json};
use stage::Place;
use wire::aerospike::RecordExists;

/// In the form of `--target-cpus`, with blanks between.
fn places_text(places: &[Place]) -> String {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn choice_text(choice: LoadChoice) -> &'static str {
    match choice {
        LoadChoice::Load => "yes",
        LoadChoice::Skip => "no",
        LoadChoice::Undecided => "where the rows are not there",
    }
}

/// What of them depends on what is spoken.
fn of_protocol(trial: &Trial) -> Value {
    match trial.records {
        Some(records) => json!({
            "protocol": "aerospike",
            "namespace": trial.table.keyspace,
            "set": trial.table.table,
            "insert": exists_text(records.writes.insert),
            "update": exists_text(records.writes.update),
        }),
        None => json!({
            "protocol": trial.protocol.version(),
            "keyspace": trial.table.keyspace,
            "table": trial.table.table,
            "replication": trial.replication,
            "consistency": trial.consistency.to_string(),
            "compression": trial.protocol.compression().name(),
        }),
    }
}

fn exists_text(exists: RecordExists) -> &'static str {
    match exists {
        RecordExists::Update => "upsert",
        RecordExists::UpdateOnly => "update-only",
        RecordExists::Replace => "replace",
        RecordExists::ReplaceOnly => "replace-only",
        RecordExists::CreateOnly => "create-only",
    }
}

/// Every flag as it was resolved, for the manifest.
pub(super) fn recorded(args: &Args, trial: &Trial) -> Map<String, Value> {
    let entries = |value| match value {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let parts = [of_target(args, trial), of_protocol(trial), of_load(args, trial)];
    parts.into_iter().flat_map(entries).collect()
}

fn of_target(args: &Args, trial: &Trial) -> Value {
    json!({
        "workload": args.workload,
        "target": match &trial.target {
            TargetChoice::Reference { storage, .. } => format!("reference ({})", storage.name()),
            TargetChoice::Cassandra { .. } => CASSANDRA.to_owned(),
            TargetChoice::Running { hosts } => hosts.join(","),
        },
        "cassandra": starts_cassandra(args).then(|| args.cassandra.recorded()),
        "target-cpus": is_started(args).then(|| places_text(&trial.places)),
        "layout": args.layout.as_ref().map(ToString::to_string),
        "numa-count": args.numa_count,
        "spread": args.layout.as_ref().map(|_| args.spread),
        "serial": args.serial.map(|time| time.to_string()),
        "user": args.user,
        "password-file": args.password_file.as_ref().map(|file| file.display().to_string()),
        "tls": args.tls.recorded(),
        "fixed-hosts": trial.fixed_hosts,
        "datacenter": trial.datacenter,
        "write-into-existing": trial.write_into_existing,
        "engine": trial.engine.name(),
    })
}

fn of_load(args: &Args, trial: &Trial) -> Value {
    let (ops, duration) = match trial.load.amount {
        Amount::Ops(ops) => (Some(ops), None),
        Amount::Duration(duration) => (None, Some(duration.to_string())),
        Amount::EveryKey => (None, None),
    };
    let (threads, throttle, rate, in_flight_max) = match trial.load.arrivals {
        Arrivals::Closed { threads, throttle } => (Some(threads), throttle, None, None),
        Arrivals::Open { rate, in_flight_max, .. } => (None, None, Some(rate), Some(in_flight_max)),
    };
    let arrivals = match args.arrivals {
        ArrivalKind::Poisson => "poisson",
        ArrivalKind::Constant => "constant",
    };
    let warm = match args.warm {
        WarmUp::For(time) => time.to_string(),
        WarmUp::Auto => "auto".to_owned(),
    };
    let files: Vec<_> = args.property_file.iter().map(|p| p.display().to_string()).collect();
    json!({
        "records": trial.plan.keys.records,
        "load": choice_text(trial.load_choice),
        "properties": args.property,
        "property-files": files,
        "ops": ops,
        "duration": duration,
        "warm": warm,
        "warm-max": trial.warm_until_steady.then(|| trial.load.warm.to_string()),
        "settle": trial.settle.to_string(),
        "repeat": trial.repeat,
        "threads": threads,
        "rate": rate.map(|r| r.to_string()),
        "arrivals": rate.map(|_| arrivals),
        "throttle": throttle.map(|r| r.to_string()),
        "in-flight-max": in_flight_max,
        "timeout": trial.timeout.to_string(),
        "retries": trial.retries,
        "give-up": trial.give_up.to_string(),
        "seed": trial.seed,
        "connections": trial.connections,
        "client-cpus": trial.client_cpus.to_string(),
        "workers": drive::workers(trial.client_cpus.len(), &trial.load.arrivals, trial.databases()),
        "wait": if trial.wait == Wait::Spin { "spin" } else { "sleep" },
        "interval": trial.interval.to_string(),
        "strict": args.strict,
    })
}
