//! What a trial would do, in words and statements, without doing it.

use crate::data::{PROBES, volume};
use crate::provision::{TargetChoice, reference_argv};
use crate::requests::Records;
use crate::scripted::{Rehearsal, Scripted};
use crate::trial::{Foreign, LoadChoice, Trial};
use drive::{Amount, Arrivals, Wait, create_keyspace, create_table, statement_texts};
use stage::cassandra::{Options, heap_of};
use std::fmt::Write as _;
use std::path::Path;
use units::{CpuSet, Nanos};
use wire::aerospike::RecordExists;
use workload::{Action, Creation, Operation, Tables};

/// Nobody waits so long: foreign commands without an end last longer.
const ENDLESS: Nanos = Nanos::from_secs(50 * 365 * 86_400);

/// The text of `--dry-run`.
#[must_use]
pub fn explain(trial: &Trial) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "{what:<12} {value}");
    };
    match &trial.target {
        TargetChoice::Reference { storage, serial } => {
            let namespace = trial.records.map(|_| trial.table.keyspace.as_str());
            for place in &trial.places {
                let argv = reference_argv(*storage, *serial, &place.cpus, namespace);
                let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
                line("start", words.join(" "));
            }
        }
        TargetChoice::Cassandra { options, data_dir } => {
            cassandra_in_words(options, data_dir.as_deref(), &trial.target_cpus(), &mut line);
        }
        TargetChoice::Running { hosts } => line("connect", hosts.join(", ")),
    }
    let plan = &trial.plan;
    if let Some(records) = trial.records {
        records_in_words(trial, records, &mut line);
    } else if let Some(scripted) = &trial.scripted {
        scripted_in_words(trial, scripted, &mut line);
    } else if let Some(tables) = &plan.tables {
        tables_in_words(tables, &mut line);
    } else if let Some(foreign) = trial.foreign {
        foreign_in_words(trial, foreign, &mut line);
    } else if trial.load_choice != LoadChoice::Skip {
        line("create", create_keyspace(&trial.table, &trial.replication));
        line("create", create_table(plan, &trial.table));
        let rows = plan.keys.loaded.saturating_mul(trial.databases() as u64);
        line("load", volume(plan, rows));
    }
    if trial.records.is_none() {
        for statement in statement_texts(plan, &trial.table) {
            line("prepare", statement);
        }
    }
    trial.operations().iter().for_each(|operation| line("operation", in_words(operation)));
    if trial.settle > Nanos::ZERO && !matches!(trial.target, TargetChoice::Reference { .. }) {
        line("settle", format!("at most {} before each trial, as far as it is ours", trial.settle));
    }
    line("drive", load_in_words(trial));
    if trial.repeat > 1 {
        line("repeat", format!("{} trials, seeds from {} on", trial.repeat, trial.seed));
    }
    line("client", client_in_words(trial));
    line("limits", limits_in_words(trial));
    line(
        "record",
        match &trial.out {
            Some(out) => out.display().to_string(),
            None => format!("runs/<utc>-{}", trial.name),
        },
    );
    text
}

fn client_in_words(trial: &Trial) -> String {
    let workers = drive::workers(trial.client_cpus.len(), &trial.load.arrivals, trial.databases());
    let connections = drive::connections(trial.connections, workers / trial.databases());
    // How many shards there are is known once they are asked.
    let by_shard = trial.records.is_none()
        && trial.connections_by_shard
        && matches!(trial.target, TargetChoice::Running { .. });
    format!(
        "{workers} {} on cpus {}, {connections} connections{}, --wait {}, seed {}",
        if workers == 1 { "worker" } else { "workers" },
        trial.client_cpus,
        if by_shard { " (of hosts with shards one to each shard, per worker)" } else { "" },
        if trial.wait == Wait::Spin { "spin" } else { "sleep" },
        trial.seed
    )
}

fn limits_in_words(trial: &Trial) -> String {
    let spoken = match trial.records {
        Some(_) => "Aerospike's protocol, one request at a time on a connection".to_owned(),
        None => format!("consistency {}, {}", trial.consistency, trial.protocol),
    };
    format!(
        "timeout {}, {} retries, give up after {} without success, {spoken}",
        trial.timeout, trial.retries, trial.give_up
    )
}

fn in_words(operation: &Operation) -> String {
    let steps: Vec<_> = operation.steps.iter().map(|step| step.name).collect();
    let steps = match steps[..] {
        [_, _, ..] => format!(": {}", steps.join(", then ")),
        _ => String::new(),
    };
    format!("{} {:.4} %{steps}", operation.name, operation.weight * 100.0)
}

/// Where records are, and how they are written.
fn records_in_words(trial: &Trial, records: Records, line: &mut dyn FnMut(&str, String)) {
    let (plan, loaded) = (&trial.plan, trial.plan.keys.loaded);
    line("records", format!("namespace {}, set {}", trial.table.keyspace, trial.table.table));
    match trial.foreign {
        Some(Foreign { loads: true, .. }) => {
            line("load", format!("{}, which is what is driven", volume(plan, loaded)));
        }
        Some(_) => line("look for", format!("{} of the {loaded} records", loaded.min(PROBES))),
        None if trial.load_choice == LoadChoice::Skip => {}
        None => line("load", volume(plan, loaded.saturating_mul(trial.databases() as u64))),
    }
    let word = |exists| match exists {
        RecordExists::Update => "creates the record, or changes the fields written",
        RecordExists::UpdateOnly => "changes the fields written of a record that is there",
        RecordExists::Replace => "creates the record, or replaces it",
        RecordExists::ReplaceOnly => "replaces a record that is there",
        RecordExists::CreateOnly => "creates a record that is not there",
    };
    for statement in &plan.statements {
        let columns = statement.columns.iter().map(|&column| plan.schema.columns[column].as_str());
        let columns = columns.collect::<Vec<_>>().join(", ");
        match statement.action {
            Action::Read | Action::Scan if statement.by_name => line("read", columns),
            Action::Read | Action::Scan => line("read", "all bins".to_owned()),
            Action::Update => line("update", format!("{columns}: {}", word(records.writes.update))),
            Action::Insert => line("insert", format!("{columns}: {}", word(records.writes.insert))),
        }
    }
}

/// What becomes of the table of another tool before it is driven.
fn foreign_in_words(trial: &Trial, foreign: Foreign, line: &mut dyn FnMut(&str, String)) {
    let table = create_table(&trial.plan, &trial.table);
    if foreign.creates {
        line("create", create_keyspace(&trial.table, &trial.replication));
        line("create", table);
    } else {
        line("expect", format!("{}, as by {table}", trial.table.quoted()));
    }
    let loaded = trial.plan.keys.loaded;
    match foreign.loads {
        true => line("load", format!("{}, which is what is driven", volume(&trial.plan, loaded))),
        false => line("look for", format!("{} of the {loaded} rows", loaded.min(PROBES))),
    }
}

/// How long several warm-ups may take that end when they are steady; None where none does.
#[must_use]
pub fn long_warm_up(trial: &Trial) -> Option<String> {
    let (count, each) = (u64::from(trial.repeat), trial.load.warm);
    (trial.warm_until_steady && count > 1).then(|| {
        let all = Nanos(each.0.saturating_mul(count));
        format!(
            "note: each of the {count} trials warms up until it is steady, for at most {each} \
             (--warm-max): {all} in all, if none of them is"
        )
    })
}

/// What a foreign command does before it is measured.
fn scripted_in_words(trial: &Trial, scripted: &Scripted, line: &mut dyn FnMut(&str, String)) {
    scripted.ddl.iter().for_each(|statement| line("ddl", statement.clone()));
    scripted.create.iter().for_each(|statement| line("create", statement.clone()));
    if let Some(tables) = trial.plan.tables.as_ref().filter(|_| scripted.creates_tables) {
        tables_in_words(tables, line);
    }
    for rehearsal in &scripted.rehearsals {
        let Rehearsal { operation, ops, threads } = *rehearsal;
        let name = trial.plan.run.get(operation).map_or("", |operation| &operation.name[..]);
        line("warm up", format!("{ops} operations {name} by {threads} threads"));
    }
    for table in &scripted.truncate {
        line("empty", format!("TRUNCATE {table}"));
    }
    if scripted.first_failure_ends {
        line("failures", "the first operation that fails for good ends the run".to_owned());
    }
}

/// What makes tables.
fn tables_in_words(tables: &Tables, line: &mut dyn FnMut(&str, String)) {
    for table in &tables.tables {
        let Creation { keyspace, table: definition, extra } = &table.creation;
        keyspace.iter().for_each(|statement| line("create", one_line(statement)));
        line("use", table.keyspace.clone());
        definition.iter().chain(extra).for_each(|statement| line("create", one_line(statement)));
    }
}

/// A statement without its line ends.
fn one_line(statement: &str) -> String {
    statement.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cassandra_in_words(
    options: &Options,
    data_dir: Option<&Path>,
    cpus: &CpuSet,
    line: &mut dyn FnMut(&str, String),
) {
    line("start", format!("{} on {}, cpus {cpus}", options.source, options.listen));
    let heap = heap_of(options).map(|heap| format!("{}: {}", heap.size, heap.why));
    line("heap", heap.unwrap_or_else(|error| error.to_string()));
    if let Some(dir) = data_dir {
        line("data", dir.display().to_string());
    }
    options.settings.iter().for_each(|setting| line("set", setting.to_string()));
    options.jvm.iter().for_each(|flag| line("jvm", flag.clone()));
}

fn load_in_words(trial: &Trial) -> String {
    let load = &trial.load;
    let arrivals = match load.arrivals {
        Arrivals::Closed { threads, throttle } => {
            let throttle = throttle.map_or(String::new(), |rate| format!(", at most {rate}"));
            format!("closed loop, {threads} threads{throttle}")
        }
        Arrivals::Open { rate, poisson, in_flight_max } => {
            let kind = if poisson { "poisson" } else { "constant" };
            format!("open loop, {kind} arrivals at {rate}, at most {in_flight_max} in flight")
        }
    };
    let amount = match load.amount {
        Amount::Ops(ops) => format!("{ops} operations"),
        Amount::Duration(duration) if duration >= ENDLESS => "without an end".to_owned(),
        Amount::Duration(duration) => format!("{duration}"),
        Amount::EveryKey => "every key once".to_owned(),
    };
    let warm = match trial.warm_until_steady {
        true => format!("until steady, at most {}", load.warm),
        false => load.warm.to_string(),
    };
    format!("{arrivals}; warm {warm}, then {amount}")
}
