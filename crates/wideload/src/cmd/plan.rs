//! `wideload plan`: where instances of a database go on a machine, why, and the files for it.

mod size;
mod table;

use crate::exit::Exit;
use crate::output;
use lab::{MachineSource, Plan, PlanAsked, assumed_of, machine_of, plans};
use machine::Machine;
use machine::layout::{
    Addresses, Amount, Budget, Database, MemoryAsked, Order, Policy, Request, Reserve, Smt,
};
use serde_json::{Value, json};
use stage::emit::Set;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use units::{Bytes, CpuSet};

const EXAMPLES: &str = "\
Examples:
  wideload plan                                      # Cassandra, one on each NUMA node of this host
  wideload plan --policy per-package --heap 1GiB --emit layout
  wideload plan --synthetic 'package:2 die:4 numa:1(memory=64GiB) llc:2 core:4 cpu:2' \\
      --policy per-package --numa-count 1,2,4,8      # tuning-1 of a published study
  wideload plan --machine recorded/host-7.tar.gz --database scylla --smt one --json
  wideload plan --size --instance-cores 16 --instance-memory 64GiB

It changes nothing but the directory of --emit. Exit status 2 when the layout cannot be.";

/// Lay instances of a database out on a machine, explain it, and write the files for it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A recorded machine: a directory with sys and proc in it, or a tar of one
    #[arg(long, value_name = "SOURCE", default_value = "/", conflicts_with = "synthetic")]
    machine: PathBuf,
    /// A machine that is only described, from the outside in, like
    /// 'package:2 numa:1(memory=64GiB) llc:2 core:4 cpu:2'; without memory 32 GiB a NUMA node
    #[arg(long, value_name = "PARTS")]
    synthetic: Option<String>,
    /// cassandra, scylla, aerospike or reference
    #[arg(long, value_name = "NAME", default_value = "cassandra")]
    database: Database,
    /// single, per-package, per-numa, per-llc, a number of instances, or cpus for each like
    /// '0-7;8-15'
    #[arg(long, value_name = "POLICY", default_value = "per-numa")]
    policy: Policy,
    /// Only so many NUMA nodes; several numbers make several layouts [default: all]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    numa_count: Vec<u32>,
    /// Take NUMA nodes from each package in turn [default with per-package]
    #[arg(long)]
    spread: bool,
    /// Take all NUMA nodes of a package before the next [default with all other policies]
    #[arg(long, conflicts_with = "spread")]
    compact: bool,
    /// No other cpus than these, like 0-31 [default: all that this process may use]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Cores that no instance gets, for the operating system: a number, or cpus like 0-1
    #[arg(long, value_name = "CORES|CPUS")]
    reserve_os: Option<Amount>,
    /// Likewise for interrupts; a number takes cores near the NIC
    #[arg(long, value_name = "CORES|CPUS")]
    reserve_irq: Option<Amount>,
    /// Likewise for a client on this host; a number takes the last cores
    #[arg(long, value_name = "CORES|CPUS")]
    reserve_client: Option<Amount>,
    /// All cpus of each core, or one
    #[arg(long, value_name = "all|one", default_value = "all")]
    smt: Smt,
    /// Let two instances share a physical core
    #[arg(long)]
    split_cores: bool,
    /// Memory of an instance [default: its share of its NUMA nodes]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Memory of all instances together, for arms that are to be equal
    #[arg(long, value_name = "SIZE", conflicts_with = "memory")]
    memory_total: Option<Bytes>,
    /// Java heap of an instance [default: half of its memory up to 1 GiB, or a quarter up to 8 GiB]
    #[arg(long, value_name = "SIZE")]
    heap: Option<Bytes>,
    /// Addresses to listen on, in turn [default: 127.0.0.1 and up]
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',')]
    address: Vec<IpAddr>,
    /// One ring or cluster of all instances [default: each is its own]
    #[arg(long)]
    ring: bool,
    /// Release of the database, of Cassandra or Aerospike
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Major version of the JVM [default: the newest that the release is made for]
    #[arg(long, value_name = "MAJOR")]
    java: Option<u32>,
    /// A key or a flag of the database, like cassandra.concurrent_reads=64, scylla.overprovisioned
    /// or aerospike.service.proto-fd-max=20000; it wins over advice; repeat for more
    #[arg(long, value_name = "DATABASE.KEY=VALUE")]
    set: Vec<Set>,
    /// A flag of the JVM, after all others; repeat for more
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    jvm: Vec<String>,
    /// Write scripts, units and configurations into this directory
    #[arg(long, value_name = "DIR")]
    emit: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    size: size::Flags,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let source = match &args.synthetic {
        Some(text) => MachineSource::Synthetic(text.clone()),
        None => MachineSource::Recorded(args.machine.clone()),
    };
    let machine = machine_of(&source)?;
    if args.size.size {
        return size::main(args, &machine, assumed_of(&source));
    }
    let plans = plans(&machine, &asked(args, assumed_of(&source)))?;
    if args.json {
        let json =
            serde_json::to_string_pretty(&as_json(&machine, &plans)).map_err(Exit::environment)?;
        output::data(&format!("{json}\n"))?;
    } else {
        output::print(&table::text(&machine, &plans))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn asked(args: &Args, assumed: Option<String>) -> PlanAsked {
    let order = match (args.spread, args.compact) {
        (true, _) => Some(Order::Spread),
        (_, true) => Some(Order::Compact),
        _ => None,
    };
    let memory = match (args.memory, args.memory_total) {
        (Some(each), _) => MemoryAsked::Each(each),
        (_, Some(total)) => MemoryAsked::Total(total),
        _ => MemoryAsked::Fitting,
    };
    let addresses = match args.address.is_empty() {
        true => Addresses::Loopback,
        false => Addresses::Given(args.address.clone()),
    };
    let request = Request {
        policy: args.policy.clone(),
        budget: Budget { numa_count: None, order, cpus: args.cpus.clone() },
        reserve: Reserve {
            os: args.reserve_os.clone(),
            irq: args.reserve_irq.clone(),
            client: args.reserve_client.clone(),
        },
        smt: args.smt,
        split_cores: args.split_cores,
        memory,
        heap: args.heap,
        database: args.database,
        addresses,
        ..Request::default()
    };
    PlanAsked {
        request,
        numa_counts: args.numa_count.clone(),
        emit: args.emit.clone(),
        version: args.version.clone(),
        java: args.java,
        settings: args.set.clone(),
        jvm: args.jvm.clone(),
        ring: args.ring,
        assumed,
    }
}

/// Stable keys; described in docs/LAYOUT.md.
fn as_json(machine: &Machine, plans: &[Plan]) -> Value {
    let one = |plan: &Plan| {
        let files: Vec<_> = plan.files.iter().map(|path| path.display().to_string()).collect();
        json!({ "layout": plan.layout, "notes": plan.notes, "files": files })
    };
    json!({
        "schema": 1,
        "machine": {
            "cpu_model": machine.settings.cpu_model,
            "cpus": machine.online.to_string(),
            "numa": machine.numa.len(),
        },
        "plans": plans.iter().map(one).collect::<Vec<_>>(),
    })
}
