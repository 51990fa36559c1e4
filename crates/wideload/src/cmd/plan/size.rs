//! `wideload plan --size`: how large an instance is to be, and how many fit on the machine.

use super::Args;
use crate::exit::Exit;
use crate::output;
use crate::text::wrap;
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
            "policy", "smt", "numa_count", "spread", "compact", "cpus", "reserve_os",
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

pub(super) fn main(
    args: &Args,
    machine: &Machine,
    assumed: Option<String>,
) -> Result<ExitCode, Exit> {
    let flags = &args.size;
    let host = Host::of(machine, args.database, flags.disk);
    let asked = match (flags.instance_cores, flags.instance_memory) {
        (Some(cores), Some(memory)) => {
            let fit = fit(&host, cores, memory, flags.instance_disk).map_err(Exit::usage)?;
            let disk = flags.instance_disk.unwrap_or(Bytes(disk_for(memory.0)));
            Some((cores, memory, disk, fit))
        }
        _ => None,
    };
    if args.json {
        let instance = asked.as_ref().map(|(cores, memory, disk, fit)| {
            json!({ "cores": cores, "memory_bytes": memory.0, "disk_bytes": disk.0, "fit": fit })
        });
        let value = json!({
            "schema": 1, "sizes": table(), "host": host, "assumed": assumed, "instance": instance,
        });
        let text = serde_json::to_string_pretty(&value).map_err(Exit::environment)?;
        output::data(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = sizes();
    if let Some((cores, memory, disk, fit)) = &asked {
        text.push_str(&fitting(&host, (*cores, *memory, *disk), fit));
        text.extend(assumed.map(|text| format!("{}\n", wrap(&text, "! memory: ", "  "))));
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

/// What ends it, and what does not only because it is not known.
fn ended_by(fit: &Fit) -> String {
    let each = [("memory", fit.by_memory), ("disk", fit.by_disk)];
    let unknown = each.iter().filter(|(_, count)| count.is_none()).map(|(name, _)| *name);
    let unknown: Vec<_> = unknown.collect();
    let but = match unknown.is_empty() {
        true => String::new(),
        false => format!("; the host's {} is not known", unknown.join(" and ")),
    };
    format!("{}{but}", fit.ended_by.join(" and "))
}

fn fitting(host: &Host, (cores, memory, disk): (u32, Bytes, Bytes), fit: &Fit) -> String {
    let known = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |b| Bytes(b).to_string());
    let alone = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
    let mut text = format!(
        "\n{} instances of {cores} cores, {memory} memory and {disk} disk fit, by {}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n\
         {:<8} {:>12} {:>12} {:>10}\n",
        fit.instances,
        ended_by(fit),
        "",
        "the host",
        "an instance",
        "fit alone",
        "cores",
        host.cores,
        cores,
        fit.by_cores,
        "memory",
        known(host.usable_memory_bytes),
        memory.to_string(),
        alone(fit.by_memory),
        "disk",
        known(host.disk_bytes),
        disk.to_string(),
        alone(fit.by_disk),
    );
    if let (Some(all), Some(usable)) = (host.memory_bytes, host.usable_memory_bytes) {
        // Writing to a String cannot fail.
        let left = Bytes(all.saturating_sub(usable));
        let _ = writeln!(text, "of {} memory {left} are left to the kernel", Bytes(all));
    }
    text
}
