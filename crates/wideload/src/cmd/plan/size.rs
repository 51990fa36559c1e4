//! `wideload plan --size`: how large an instance is to be, and how many fit on the machine.

use crate::exit::Exit;
use crate::output;
use machine::Machine;
use machine::layout::sizing::{DISK_PER_MEMORY, Fit, Host, disk_for, fit, table};
use serde_json::json;
use std::fmt::Write as _;
use std::process::ExitCode;
use units::Bytes;

/// What is asked of sizes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sizes")]
pub(crate) struct Flags {
    /// Print the sizes of a published study instead, and how many instances fit on the machine
    #[arg(
        long,
        conflicts_with_all = [
            "database", "policy", "smt", "numa_count", "spread", "compact", "cpus", "reserve_os",
            "reserve_irq", "reserve_client", "split_cores", "memory", "memory_total", "heap",
            "address", "ring", "version", "java", "set", "jvm", "emit",
        ]
    )]
    pub(super) size: bool,
    /// Physical cores of an instance
    #[arg(long, value_name = "N", requires = "size", requires = "instance_memory")]
    instance_cores: Option<u32>,
    /// Memory of an instance
    #[arg(long, value_name = "SIZE", requires = "size", requires = "instance_cores")]
    instance_memory: Option<Bytes>,
    /// Disk of an instance [default: 30 x its memory]
    #[arg(long, value_name = "SIZE", requires = "instance_cores")]
    instance_disk: Option<Bytes>,
    /// Disk of the machine [default: all its disks]
    #[arg(long, value_name = "SIZE", requires = "instance_cores")]
    disk: Option<Bytes>,
}

pub(super) fn main(flags: &Flags, machine: &Machine, as_json: bool) -> Result<ExitCode, Exit> {
    let host = Host::of(machine, flags.disk);
    let asked = match (flags.instance_cores, flags.instance_memory) {
        (Some(cores), Some(memory)) => {
            let fit = fit(&host, cores, memory, flags.instance_disk).map_err(Exit::usage)?;
            let disk = flags.instance_disk.unwrap_or(Bytes(disk_for(memory.0)));
            Some((cores, memory, disk, fit))
        }
        _ => None,
    };
    if as_json {
        let instance = asked.as_ref().map(|(cores, memory, disk, fit)| {
            json!({ "cores": cores, "memory_bytes": memory.0, "disk_bytes": disk.0, "fit": fit })
        });
        let value = json!({ "schema": 1, "sizes": table(), "host": host, "instance": instance });
        let text = serde_json::to_string_pretty(&value).map_err(Exit::environment)?;
        output::data(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = sizes();
    if let Some((cores, memory, disk, fit)) = &asked {
        text.push_str(&fitting(&host, (*cores, *memory, *disk), fit));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn sizes() -> String {
    let mut text =
        format!("{:<22} {:>5} {:>10} {:>10}  in the study\n", "size", "cores", "memory", "disk");
    for size in table() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<22} {:>5} {:>10} {:>10}  {}, {}",
            size.name,
            size.cores,
            Bytes(size.memory_bytes).to_string(),
            Bytes(size.disk_bytes).to_string(),
            size.disk_in_text,
            size.network
        );
    }
    let _ = writeln!(
        text,
        "Scylla on IBM POWER9, table 3: disk = {DISK_PER_MEMORY} x memory; its text cuts a digit"
    );
    text
}

fn fitting(host: &Host, (cores, memory, disk): (u32, Bytes, Bytes), fit: &Fit) -> String {
    let known = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |b| Bytes(b).to_string());
    let alone = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
    format!(
        "\n{} instances of {cores} cores, {memory} memory and {disk} disk fit, by {}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n",
        fit.instances,
        fit.ended_by.join(" and "),
        "",
        "the host",
        "an instance",
        "fit alone",
        "cores",
        host.cores,
        cores,
        fit.by_cores,
        "memory",
        known(host.memory_bytes),
        memory.to_string(),
        alone(fit.by_memory),
        "disk",
        known(host.disk_bytes),
        disk.to_string(),
        alone(fit.by_disk),
    )
}
