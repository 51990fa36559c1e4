//! `wideload scale`: which layout of instances is best on this machine.

use super::cassandra::Flags;
use super::lab::{self as experiment, show_carried};
use super::run::{self, CASSANDRA};
use super::times;
use crate::exit::Exit;
use crate::output;
use crate::screen::Screen;
use crate::signals::{self, Current};
use ::lab::experiment::Value;
use ::lab::layout::{Database, Policy};
use ::lab::scale::{Compared, Study, foresee, scale};
use ::lab::{MachineSource, machine_of};
use anyhow::anyhow;
use stage::cassandra::{PrepareError, StartError};
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use units::{Bytes, Count, CpuSet, Nanos};

const EXAMPLES: &str = "\
Examples:
  wideload scale                                       # on the reference target
  wideload scale --target cassandra                    # some minutes for each trial
  wideload scale --target cassandra --heap-total 2GiB --instances 1,2 --warm 20s
  wideload scale --layouts single,per-package,per-numa --numa-count 1,2,4,8
  wideload scale --synthetic 'package:2 numa:4 core:8 cpu:2'   # what would be compared there
  wideload scale --instances 1,2,3,4,6,8 --serial 500us   # a known truth

Exit status: 0 also when it cannot tell; 1 a trial failed; 2 usage; 3 environment; 130 Ctrl-C";

/// Find the best layout of instances on this machine, by how much, and how surely.
///
/// Every arm has the same cpus, heap and rows in all, and is driven from the same cpus. Each trial
/// starts its instances anew, verifies where their threads and pages are, loads, warms up and
/// measures; repetitions are interleaved. With how many clients (operations in flight) an arm does
/// most is looked for first, for each arm by itself. Arms are compared by throughput; their
/// response times stand beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is laid out: reference or cassandra
    #[arg(
        long,
        alias = "database",
        value_parser = ["reference", CASSANDRA],
        default_value = "reference"
    )]
    target: String,
    /// Layouts to compare: single, per-package, per-numa, per-llc, a number of instances, 3-shared
    /// [default: those that differ on this machine]
    #[arg(long, value_name = "POLICY,...", value_delimiter = ',', conflicts_with = "instances")]
    layouts: Vec<Policy>,
    /// Numbers of instances to compare, on the same cpus; six and more give the scalability law
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    instances: Vec<u32>,
    /// Budgets in NUMA nodes, for each layout [default: all of the target's]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    numa_count: Vec<u32>,
    /// Workloads
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "ycsb:a")]
    workload: Vec<String>,
    /// Of each arm; six and more give 95 % intervals
    #[arg(
        long,
        value_name = "N",
        default_value = "6",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    repetitions: u32,
    /// Rows of all instances together [default: 20k; of Cassandras 100k]
    #[arg(long, value_name = "N")]
    records: Option<Count>,
    /// Measured time of a trial [default: 1500ms; of Cassandras 20s]
    #[arg(long, value_name = "TIME", value_parser = times::of_run)]
    duration: Option<Nanos>,
    /// Time before it, or auto [default: 500ms; of Cassandras auto]
    #[arg(long, value_name = "TIME|auto", value_parser = warm_up)]
    warm: Option<String>,
    /// Clients of every arm [default: looked for: the least that give an arm its most op/s]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threads: Option<u32>,
    /// A mock: every operation holds one lock of its instance for so long
    #[arg(long, value_name = "TIME", value_parser = times::serial)]
    serial: Option<Nanos>,
    #[command(flatten)]
    cassandra: Flags,
    /// Refused, with the reason
    #[arg(long, hide = true)]
    tls: bool,
    /// The client's cpus [default: half of the cores]
    #[arg(long, value_name = "CPUS")]
    client_cpus: Option<CpuSet>,
    /// Of all random choices
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        // What a file of an experiment can hold.
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64)
    )]
    seed: u64,
    /// Tell only what would be compared on a recorded machine: a directory with sys and proc in it,
    /// or a tar of one
    #[arg(long, value_name = "MACHINE", conflicts_with = "out")]
    from: Option<PathBuf>,
    /// Likewise on a machine that is only described, like 'package:2 numa:4 core:8 cpu:2'
    #[arg(long, value_name = "PARTS", conflicts_with_all = ["from", "out"])]
    synthetic: Option<String>,
    /// The run directory: new or empty [default: runs/<utc>-scale]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the outcome, or what would be compared, as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    if args.tls {
        return Err(Exit::usage(anyhow!(
            "--tls is for a database that runs already, and what is compared here is started for \
             it: leave it out; `wideload run --tls --target HOST` drives one"
        )));
    }
    let heap_total = heap_total(args)?;
    once("--instances", &args.instances)?;
    once("--numa-count", &args.numa_count)?;
    once("--layouts", &args.layouts)?;
    once("--workload", &args.workload)?;
    args.workload.iter().try_for_each(|name| experiment::workload(name))?;
    let source = args.from.clone().map(MachineSource::Recorded);
    if let Some(source) = source.or(args.synthetic.clone().map(MachineSource::Synthetic)) {
        let machine = machine_of(&source)?;
        let database = match is_cassandra(args) {
            true => Database::Cassandra,
            false => Database::Reference,
        };
        let study = Study { heap_total: args.cassandra.heap_total, ..study(args, None) };
        let foreseen = foresee(&study, &machine, database);
        if args.json {
            let json = serde_json::to_string_pretty(&foreseen).map_err(Exit::environment)?;
            output::data(&format!("{json}\n"))?;
        } else {
            output::print(&foreseen.to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let line = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let mut screen = Screen::of_experiment(current);
    let (study, make) = (study(args, heap_total), &mut experiment::trial);
    let carried = scale(&study, args.out.as_deref(), line, make, &mut screen, &stop);
    screen.close();
    let carried = carried?;
    show_carried(args.json, &carried)?;
    Ok(experiment::status(&carried))
}

/// A time or the word, as `run` takes it.
fn warm_up(text: &str) -> Result<String, String> {
    text.parse::<run::WarmUp>().map(|_| text.to_owned())
}

/// What is compared with itself says nothing.
fn once<T: PartialEq + Display>(flag: &str, values: &[T]) -> Result<(), Exit> {
    let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
    match twice {
        Some((_, value)) => {
            Err(Exit::usage(anyhow!("{flag} names {value} twice: give each value once")))
        }
        None => Ok(()),
    }
}

fn is_cassandra(args: &Args) -> bool {
    args.target == CASSANDRA
}

/// The heaps of an arm together: as asked, else what one instance on all of this host would have.
/// That is the least that any number of them would have together.
fn heap_total(args: &Args) -> Result<Option<Bytes>, Exit> {
    let given = args.cassandra.given();
    if !is_cassandra(args) {
        return match given.first() {
            Some(flag) => {
                Err(Exit::usage(anyhow!("{flag} is of use with --target cassandra only")))
            }
            None => Ok(None),
        };
    }
    if args.serial.is_some() {
        return Err(Exit::usage(anyhow!("--serial is of use with --target reference only")));
    }
    let options = args.cassandra.options(1).map_err(Exit::usage)?;
    let of_each = options.jvm.iter().find(|flag| flag.starts_with("-Xmx")).map(String::as_str);
    if let Some(flag) = of_each.or(given.into_iter().find(|flag| *flag == "--heap")) {
        return Err(Exit::usage(anyhow!(
            "{flag} is of each instance, and arms of more instances would have more memory: give \
             --heap-total"
        )));
    }
    let heap = stage::cassandra::heap_of(&options).map_err(PrepareError::from);
    Ok(Some(heap.map_err(StartError::from)?.size))
}

fn study(args: &Args, heap_total: Option<Bytes>) -> Study {
    let (records, duration, warm) = match is_cassandra(args) {
        true => (Count(100_000), Nanos::from_secs(20), "auto"),
        false => (Count(20_000), Nanos::from_millis(1500), "500ms"),
    };
    let mut settings = Vec::new();
    let mut set = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), Value::Text(value))));
    };
    set("database", Some(args.target.clone()));
    set("records", Some(args.records.unwrap_or(records).0.to_string()));
    set("duration", Some(args.duration.unwrap_or(duration).to_string()));
    set("warm", Some(args.warm.clone().unwrap_or_else(|| warm.to_owned())));
    set("serial", args.serial.map(|time| time.to_string()));
    set("client-cpus", args.client_cpus.as_ref().map(ToString::to_string));
    let of_cassandra = args.cassandra.settings().into_iter();
    settings.extend(of_cassandra.filter(|(name, _)| name != "heap-total"));
    let compared = match (args.layouts.is_empty(), args.instances.is_empty()) {
        (false, _) => Some(Compared::Layouts(args.layouts.clone())),
        (_, false) => Some(Compared::Instances(args.instances.clone())),
        _ => None,
    };
    Study {
        compared,
        numa_counts: args.numa_count.clone(),
        workloads: args.workload.clone(),
        repetitions: args.repetitions,
        seed: args.seed,
        threads: args.threads,
        heap_total,
        settings,
    }
}
