//! What else uses the host, interrupts, and room for data.

use super::Source::{Own, Perftune, Samyama, ScyllaTips};
use super::{Finding, Group, Host};
use units::Bytes;

/// Share of the cores that others may use.
const RUNNABLE_SHARE_MAX: f64 = 0.25;
/// Less room than this fills up during a load of some millions of rows.
const FREE_BYTES_MIN: u64 = 10 << 30;

/// What ran on a live host over a while.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Occupation {
    /// Tasks that ran or wanted to, the reader apart: the median of several looks.
    pub runnable: Option<u32>,
    /// Who used the cpus meanwhile: name, number, share of one cpu; most first.
    pub busiest: Vec<(String, u32, f64)>,
}

/// Room in a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// A place in it.
    pub path: String,
    /// Free for this user.
    pub free: Bytes,
    /// All of it.
    pub total: Bytes,
}

pub(super) fn findings(host: &Host<'_>) -> Vec<Finding> {
    vec![runnable(host), irqbalance(host), space(host)]
}

fn runnable(host: &Host<'_>) -> Finding {
    let cores = machine::one_per_core(&host.facts.machine, &host.facts.machine.online, usize::MAX);
    let max = (cores.len() as f64 * RUNNABLE_SHARE_MAX).floor() as u32;
    let limit = match (max, cores.len()) {
        (0, count) => format!("none: a quarter of {count} cores is less than one"),
        (max, count) => format!("at most {max}, a quarter of {count} cores"),
    };
    let finding =
        Finding::new(Group::Occupation, "host.runnable", "other tasks", limit, &[Samyama, Own]);
    let Some(occupation) = host.occupation else {
        return finding.unknown("a recorded host shows one moment only");
    };
    let Some(runnable) = occupation.runnable else {
        return finding.unknown("procs_running is not in proc/stat");
    };
    let finding = finding.value(format!("{runnable} runnable"));
    if runnable <= max {
        return finding;
    }
    let name = |(name, pid, share): &(String, u32, f64)| {
        format!("{name} ({pid}) {:.0} % of a cpu", share * 100.0)
    };
    let busiest: Vec<_> = occupation.busiest.iter().take(3).map(name).collect();
    let who = match busiest.is_empty() {
        true => "who it is cannot be seen".to_owned(),
        false => busiest.join(", "),
    };
    finding.warn(
        format!("others take cpu time from client or target: {who}"),
        "end them, or keep them off these cpus (taskset, cpusets)",
    )
}

fn irqbalance(host: &Host<'_>) -> Finding {
    let limit = "off when interrupts are placed";
    let finding =
        Finding::new(Group::Occupation, "host.irqbalance", "irqbalance", limit, &[Perftune]);
    let activity = &host.facts.tasks;
    if activity.processes.is_empty() {
        return finding.unknown("no process can be seen in this tree");
    }
    match activity.runs(&["irqbalance"]) {
        None => finding.value("does not run"),
        Some(_) => finding.value("runs").warn(
            "it moves interrupts between cpus during a run, also to the client's and the target's",
            "systemctl stop irqbalance",
        ),
    }
}

fn space(host: &Host<'_>) -> Finding {
    let limit = format!("twice the data; at least {}", Bytes(FREE_BYTES_MIN));
    let finding = Finding::new(Group::Disk, "disk.free", "room", limit, &[ScyllaTips, Own]);
    let Some(space) = host.space else {
        return finding.unknown("a recorded tree does not say");
    };
    let finding = finding.of(&space.path).value(format!("{} free of {}", space.free, space.total));
    match space.free < Bytes(FREE_BYTES_MIN) {
        false => finding,
        true => finding.warn(
            "compaction needs as much room as the data; a full disk ends the run",
            "free space, or give --data-dir and --out on another disk",
        ),
    }
}
