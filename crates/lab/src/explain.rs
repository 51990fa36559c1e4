//! What a trial would do, in words and statements, without doing it.

use crate::data::volume;
use crate::provision::{TargetChoice, reference_argv};
use crate::scripted::{Rehearsal, Scripted};
use crate::trial::{LoadChoice, Trial};
use drive::{Amount, Arrivals, Wait, create_keyspace, create_table, statement_texts};
use stage::cassandra::{Options, heap_of};
use std::fmt::Write as _;
use std::path::Path;
use units::{CpuSet, Nanos};

/// The text of `--dry-run`.
#[must_use]
pub fn explain(trial: &Trial) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "{what:<12} {value}");
    };
    match &trial.target {
        TargetChoice::Reference { storage, serial } => {
            for place in &trial.places {
                let argv = reference_argv(*storage, *serial, &place.cpus);
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
    if let Some(scripted) = &trial.scripted {
        scripted_in_words(trial, scripted, &mut line);
    } else if trial.load_choice != LoadChoice::Skip {
        line("create", create_keyspace(&trial.table, &trial.replication));
        line("create", create_table(plan, &trial.table));
        let rows = plan.keys.loaded.saturating_mul(trial.databases() as u64);
        line("load", volume(plan, rows));
    }
    for statement in statement_texts(plan, &trial.table) {
        line("prepare", statement);
    }
    for operation in trial.operations() {
        line("operation", format!("{} {:.4} %", operation.name, operation.weight * 100.0));
    }
    if trial.settle > Nanos::ZERO && !matches!(trial.target, TargetChoice::Reference { .. }) {
        line("settle", format!("at most {} before each trial, as far as it is ours", trial.settle));
    }
    line("drive", load_in_words(trial));
    if trial.repeat > 1 {
        line("repeat", format!("{} trials, seeds from {} on", trial.repeat, trial.seed));
    }
    let workers = drive::workers(trial.client_cpus.len(), &trial.load.arrivals, trial.databases());
    let connections = drive::connections(trial.connections, workers / trial.databases());
    line(
        "client",
        format!(
            "{workers} {} on cpus {}, {connections} connections, --wait {}, seed {}",
            if workers == 1 { "worker" } else { "workers" },
            trial.client_cpus,
            if trial.wait == Wait::Spin { "spin" } else { "sleep" },
            trial.seed
        ),
    );
    line(
        "limits",
        format!(
            "timeout {}, {} retries, give up after {} without success, consistency {}, {}",
            trial.timeout, trial.retries, trial.give_up, trial.consistency, trial.protocol
        ),
    );
    line(
        "record",
        match &trial.out {
            Some(out) => out.display().to_string(),
            None => format!("runs/<utc>-{}", trial.name),
        },
    );
    text
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
    for rehearsal in &scripted.rehearsals {
        let Rehearsal { operation, ops, threads } = *rehearsal;
        let name = trial.plan.run.get(operation).map_or("", |operation| operation.name);
        line("warm up", format!("{ops} operations {name} by {threads} threads"));
    }
    if scripted.truncate {
        line("empty", format!("TRUNCATE {}", trial.table.quoted()));
    }
    if scripted.first_failure_ends {
        line("failures", "the first operation that fails for good ends the run".to_owned());
    }
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
        Amount::Duration(duration) => format!("{duration}"),
        Amount::EveryKey => "every key once".to_owned(),
    };
    let warm = match trial.warm_until_steady {
        true => format!("until steady, at most {}", load.warm),
        false => load.warm.to_string(),
    };
    format!("{arrivals}; warm {warm}, then {amount}")
}
