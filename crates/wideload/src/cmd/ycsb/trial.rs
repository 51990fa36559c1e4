//! From a job to a trial: what YCSB's client would do, in wideload's terms.

use crate::cmd::run::{self, forewarned};
use crate::exit::Exit;
use anyhow::{Context as _, anyhow, bail};
use clap::Parser as _;
use drive::{Amount, Arrivals, Levels, Load, Wait};
use lab::{Foreign, Trial};
use record::Caveat;
use serde_json::{Value, json};
use units::{Credentials, Nanos, Rate, Secret};
use wire::cql::Consistency;
use workload::ycsb::{
    AerospikeBinding, Command, CqlBinding, Job, Kind, Line, Settings, YcsbPlan, redacted,
};

/// Operations in flight on a connection, as for `run`.
const IN_FLIGHT_PER_CONNECTION: u32 = 16_384;
/// A run without an end lasts until somebody ends it; this is longer than anybody waits.
const ENDLESS: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// The flags of `wideload run`.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct Native {
    #[command(flatten)]
    run: run::Args,
}

/// A binding that is driven.
pub(super) trait Driven {
    /// As a launcher names it.
    fn name(&self) -> &'static str;

    /// The flags of `wideload run` that say where and in what it is driven.
    fn words(&self, job: &Job) -> Vec<String>;

    /// What no flag says.
    fn finish(&self, trial: &mut Trial) -> anyhow::Result<()>;

    /// Who logs in.
    fn user(&self) -> Option<&str> {
        None
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

impl Driven for CqlBinding {
    fn name(&self) -> &'static str {
        self.name
    }

    fn words(&self, job: &Job) -> Vec<String> {
        let connections = self.connections.max(job.threads.div_ceil(IN_FLIGHT_PER_CONNECTION));
        let mut all = words(&[
            "--target",
            &self.hosts.join(","),
            "--keyspace",
            &self.keyspace,
            "--timeout",
            &format!("{}ms", self.timeout_ms),
            "--settle",
            "0s",
            "--connections",
            &connections.to_string(),
        ]);
        if let Some(datacenter) = &self.datacenter {
            all.extend(words(&["--datacenter", datacenter]));
        }
        all
    }

    fn finish(&self, trial: &mut Trial) -> anyhow::Result<()> {
        trial.consistency = levels(self)?;
        trial.access.credentials = self.credentials.as_ref().map(|(user, password)| Credentials {
            user: user.clone(),
            password: Secret::new(password.as_str()),
        });
        let consistency = trial.consistency.to_string();
        trial.settings.insert("consistency".to_owned(), json!(consistency));
        Ok(())
    }

    fn user(&self) -> Option<&str> {
        self.credentials.as_ref().map(|(user, _)| user.as_str())
    }
}

impl Driven for AerospikeBinding {
    fn name(&self) -> &'static str {
        "aerospike"
    }

    fn words(&self, _: &Job) -> Vec<String> {
        words(&[
            "--protocol",
            "aerospike",
            "--target",
            &self.host,
            "--namespace",
            &self.namespace,
            "--timeout",
            &format!("{}ms", self.timeout_ms),
        ])
    }

    fn finish(&self, trial: &mut Trial) -> anyhow::Result<()> {
        if trial.foreign.is_some_and(|foreign| foreign.creates) {
            bail!("--create is for CQL: a set comes to be with its first record, leave it out");
        }
        Ok(())
    }
}

pub(super) fn trial(line: &Line, job: &Job, binding: &impl Driven) -> Result<Trial, Exit> {
    let words = native(line, job, binding);
    let native = Native::try_parse_from(&words).map_err(|error| {
        let text = error.to_string();
        let first = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
        Exit::usage(anyhow!("the line cannot be carried out: {first}"))
    })?;
    // Amount and rate are set below.
    let settings = &job.workload.settings;
    let open =
        Settings { operations: None, duration_s: None, rate_ops_s: None, ..settings.clone() };
    let plan = YcsbPlan { settings: open, notices: Vec::new(), ..job.workload.clone() };
    let mut trial = run::trial_of(&native.run, |_| Ok(plan))?;
    trial.load = load(job).map_err(Exit::usage)?;
    let keeps = if job.measurement.keeps_operations() { job.operations } else { None };
    trial.foreign = Some(Foreign {
        loads: job.command == Command::Load,
        creates: line.create,
        keeps: keeps.unwrap_or(0),
    });
    binding.finish(&mut trial).map_err(Exit::usage)?;
    if job.measurement.kind == Kind::Series {
        trial.interval = Nanos::from_millis(u64::from(job.measurement.granularity_ms));
    }
    if job.spin {
        trial.wait = Wait::Spin;
    }
    trial.command_line = trial.command_line.iter().map(|word| redacted(word)).collect();
    record(&mut trial, job, binding);
    trial.forewarned = forewarned(&trial);
    if job.password {
        let text = "A password stood on the command line or in a property file: on the line, \
                    whoever lists processes on this host could read it.";
        let cure = "Keep it in a file that only its owner reads, given with -P.";
        trial.forewarned.push(Caveat::new("password-shown", text).cure(cure));
    }
    Ok(trial)
}

/// The words of `wideload run` that are the same there.
fn native(line: &Line, job: &Job, binding: &impl Driven) -> Vec<String> {
    let mut all = words(&["ycsb"]);
    all.extend(binding.words(job));
    all.extend(words(&[
        "--name",
        &format!("ycsb-{}", job.command.name()),
        "--warm",
        "0s",
        "--threads",
        &job.threads.to_string(),
        "--write-into-existing",
    ]));
    if let Some(out) = &line.out {
        all.extend(words(&["--out", &out.display().to_string()]));
    }
    all
}

fn load(job: &Job) -> anyhow::Result<Load> {
    let settings = &job.workload.settings;
    let threads = job.threads as usize;
    let arrivals = match settings.rate_ops_s {
        Some(per_s) => Arrivals::Open {
            rate: Rate::new(per_s, Nanos::from_secs(1)).context("target must be above 0")?,
            poisson: false,
            in_flight_max: threads,
        },
        None => Arrivals::Closed { threads, throttle: None },
    };
    let most = settings.duration_s.map(Nanos::from_secs);
    let (amount, limit) = match (job.command, job.operations) {
        (Command::Load, _) => (Amount::EveryKey, most),
        (Command::Run, Some(operations)) => (Amount::Ops(operations), most),
        (Command::Run, None) => (Amount::Duration(most.unwrap_or(ENDLESS)), None),
    };
    Ok(Load { arrivals, amount, warm: Nanos::ZERO, limit })
}

fn levels(cql: &CqlBinding) -> anyhow::Result<Levels> {
    let level = |text: &str| text.parse::<Consistency>().map_err(|e| anyhow!("{e}"));
    Ok(Levels { read: level(&cql.read_level)?, write: level(&cql.write_level)? })
}

/// For the manifest: what was asked for, and what of the flags became of it.
fn record(trial: &mut Trial, job: &Job, binding: &impl Driven) {
    let properties: serde_json::Map<_, _> = job
        .properties
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let rate = match trial.load.arrivals {
        Arrivals::Open { rate, .. } => Some(rate.to_string()),
        Arrivals::Closed { .. } => None,
    };
    for (name, value) in [
        (
            "ycsb",
            json!({
                "command": job.command.name(),
                "binding": binding.name(),
                "properties": properties,
            }),
        ),
        ("user", json!(binding.user())),
        ("ops", json!(job.operations)),
        ("duration", json!(job.workload.settings.duration_s.map(|s| format!("{s}s")))),
        ("rate", json!(rate)),
        ("interval", json!(trial.interval.to_string())),
        ("load", json!(if job.command == Command::Load { "measured" } else { "no" })),
    ] {
        trial.settings.insert(name.to_owned(), value);
    }
}
