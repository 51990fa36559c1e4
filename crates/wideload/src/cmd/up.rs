//! `wideload up`: starts a database that goes on when this program has ended.

use crate::cmd::{cassandra::Flags, ps};
use crate::exit::Exit;
use crate::output;
use crate::signals;
use anyhow::anyhow;
use clap::ValueEnum;
use machine::Machine;
use stage::cassandra::{self, Cluster, Placement, Prepared, StartError};
use stage::state::{Deployed, Deployment, SCHEMA, States, boot_id};
use stage::{Place, dirs};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use units::{CpuSet, clock};

const EXAMPLES: &str = "\
Examples:
  wideload up cassandra                                 one instance on 127.0.0.1:9042
  wideload up cassandra --instances 3 --heap 1GiB       a ring on 127.0.0.1 to 127.0.0.3
  wideload up cassandra --set cassandra.concurrent_writes=64 --jvm -XX:ParallelGCThreads=4
  wideload run ycsb:a --target 127.0.0.1                then
  wideload down                                         at last

Keys of cassandra.yaml that are not set have Cassandra's built-in defaults, which for some keys are
not those of the cassandra.yaml in a package. It asks for no password: listen where nobody else is.
The reference target, which needs no Java and is no database, is started by `wideload serve`.

Exit status: 0 up; 2 usage, also when it is up already; 3 environment; 130 Ctrl-C.";

/// What can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Apache Cassandra
    Cassandra,
}

/// Start a database here; it goes on until `wideload down`.
///
/// Each instance is a JVM on its own address and cpus, a ring from two instances on. It returns
/// when all of them answer and know each other.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is started
    #[arg(value_enum, value_name = "DATABASE")]
    kind: Kind,
    /// Its name, for `wideload down` [default: cassandra]
    #[arg(long, default_value = "cassandra", hide_default_value = true)]
    name: String,
    /// Instances; from two on they form a ring
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(cassandra::INSTANCES_MAX))
    )]
    instances: u32,
    /// Cpus that all instances share, like 0-3,8; or given once for each instance, in order
    /// [default: all]
    #[arg(long, value_name = "CPUS")]
    cpus: Vec<CpuSet>,
    #[command(flatten)]
    cassandra: Flags,
    /// Print what is up as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let Kind::Cassandra = args.kind;
    let state = dirs::state().map_err(Exit::environment)?;
    let states = States::below(&state);
    states.ensure_free(&args.name)?;
    let cpus = cpus(args)?;
    let options = args.cassandra.options(args.instances).map_err(Exit::usage)?;
    let stop = signals::stop_flag(&signals::Current::default()).map_err(Exit::environment)?;
    let said = &mut |what: &str| say(what);
    let prepared = cassandra::prepare(&options, said, &stop).map_err(StartError::from)?;
    let data = args.cassandra.data_dir.clone().unwrap_or_else(|| state.join("data"));
    let placement = Placement {
        name: args.name.clone(),
        places: cpus.into_iter().map(|cpus| Place { cpus, ..Place::default() }).collect(),
        data: absolute(&data)?.join(&args.name),
        logs: state.join("logs").join(&args.name),
        lasting: false,
        detached: true,
    };
    let (version, heap) = (prepared.version().to_string(), prepared.heap().clone());
    say(&format!(
        "starting {} x Cassandra {version}, each with a heap of {} ({})",
        args.instances, heap.size, heap.why
    ));
    let deployment = start(prepared, &placement, &states, &stop)?;
    if args.json {
        output::data(&format!("{:#}\n", ps::as_json(&deployment)))?;
    } else {
        let table = ps::table(std::slice::from_ref(&deployment));
        let hosts: Vec<_> = deployment.instances.iter().map(|i| i.address.to_string()).collect();
        output::print(&format!(
            "{table}logs  {}\nnext  wideload run ycsb:a --target {}\nend   wideload down {}\n",
            deployment.logs.display(),
            hosts.join(","),
            deployment.name
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Remembers it before it is ready: whoever kills this program can still end what it has started.
fn start(
    prepared: Prepared,
    placement: &Placement,
    states: &States,
    stop: &AtomicBool,
) -> Result<Deployment, Exit> {
    let mut deployment = Deployment {
        schema: SCHEMA,
        name: placement.name.clone(),
        kind: "cassandra".to_owned(),
        version: prepared.version().to_string(),
        started: record::utc::rfc3339(clock::wall().0 / 1_000_000_000),
        ready: false,
        boot_id: boot_id(),
        software: prepared.dir().to_owned(),
        data: placement.data.clone(),
        logs: placement.logs.clone(),
        instances: Vec::new(),
    };
    states.claim(&deployment)?;
    // Of the one before, by this name: what is gone already need not be removed.
    let _ = std::fs::remove_dir_all(&placement.logs);
    let started = Cluster::spawn(prepared, placement).map_err(Exit::from).and_then(|cluster| {
        let deployed = |instance: &cassandra::Instance| Deployed {
            name: instance.name().to_owned(),
            process: instance.process(),
            address: instance.address(),
            cpus: instance.cpus().to_string(),
        };
        deployment.instances = cluster.instances().iter().map(deployed).collect();
        states.update(&deployment)?;
        cluster.wait(stop)?;
        deployment.ready = true;
        states.update(&deployment)?;
        cluster.leave();
        Ok(())
    });
    if let Err(error) = started {
        // What ran is ended by now.
        states.forget(&deployment.name)?;
        return Err(error);
    }
    Ok(deployment)
}

fn cpus(args: &Args) -> Result<Vec<CpuSet>, Exit> {
    let allowed = Machine::read(Path::new("/")).map_err(Exit::environment)?.allowed;
    for asked in &args.cpus {
        if asked.is_empty() || !asked.difference(&allowed).is_empty() {
            let message = "names cpus that this process may not use; allowed are";
            return Err(Exit::usage(anyhow!("--cpus {asked} {message} {allowed}")));
        }
    }
    Ok(if args.cpus.is_empty() { vec![allowed] } else { args.cpus.clone() })
}

/// `down` may be called from elsewhere.
fn absolute(path: &Path) -> Result<PathBuf, Exit> {
    std::path::absolute(path)
        .map_err(|e| Exit::usage(anyhow!("--data-dir {}: {e}; give another", path.display())))
}

/// On stderr, for people only.
fn say(what: &str) {
    if std::io::stderr().is_terminal() {
        output::tell(what);
    }
}
