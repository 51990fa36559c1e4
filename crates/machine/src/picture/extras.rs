//! What stands below the tree: distances, what may not be used, devices, settings.

use super::{list, size};
use crate::{Disk, Machine, Nic, Settings};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use units::CpuSet;

/// A larger matrix of distances does not fit a terminal.
const MATRIX_MAX: usize = 16;
/// More devices of a kind are counted, not listed.
const DEVICES_MAX: usize = 12;

/// Blocks of lines, each with a blank one before it.
pub(super) fn text(machine: &Machine) -> String {
    let mut text = String::new();
    let blocks = [
        distances(machine),
        limits(machine),
        listed("nic", machine.nics.iter().map(|nic| (nic.name.clone(), of_nic(nic))).collect()),
        listed("disk", machine.disks.iter().map(|d| (d.name.clone(), of_disk(d))).collect()),
        listed("pmem", persistent(machine)),
        settings(machine),
    ];
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        text.push('\n');
        for line in block {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// `what  value`, in two columns.
fn row(what: &str, value: &str) -> String {
    format!("{what:<14}{value}")
}

fn distances(machine: &Machine) -> Vec<String> {
    let numa = &machine.numa;
    if numa.len() < 2 || numa.iter().all(|numa| numa.distances.is_empty()) {
        return Vec::new();
    }
    if let Some(brief) = distances_by_package(machine) {
        return vec![row("distances", &brief)];
    }
    if numa.len() > MATRIX_MAX {
        let mut all: Vec<u32> = numa.iter().flat_map(|numa| numa.distances.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let all: Vec<_> = all.iter().map(u32::to_string).collect();
        return vec![row("distances", &format!("{} (all of them: --json)", all.join(", ")))];
    }
    let cell = |text: String| format!("{text:>5}");
    let head: String = numa.iter().map(|numa| cell(numa.id.0.to_string())).collect();
    let mut lines = vec![format!("distances{head}")];
    for from in numa {
        let cells: String = numa
            .iter()
            .map(|to| machine.distance(from.id, to.id).map_or("-".to_owned(), |d| d.to_string()))
            .map(cell)
            .collect();
        lines.push(format!("{:>9}{cells}", from.id.0));
    }
    lines
}

/// Where a distance follows from whether it is the same NUMA node, the same package or another.
fn distances_by_package(machine: &Machine) -> Option<String> {
    let packages = machine.packages();
    let package = |id| packages.iter().position(|package| package.numa.contains(&id));
    let mut classes: BTreeMap<usize, u32> = BTreeMap::new();
    for from in &machine.numa {
        for to in &machine.numa {
            let class = match (package(from.id)?, package(to.id)?) {
                _ if from.id == to.id => 0,
                (one, other) if one == other => 1,
                _ => 2,
            };
            let distance = machine.distance(from.id, to.id)?;
            if *classes.entry(class).or_insert(distance) != distance {
                return None;
            }
        }
    }
    let words = ["within a NUMA node", "within a package", "between packages"];
    let part = |(class, distance): (usize, u32)| format!("{distance} {}", words[class]);
    Some(classes.into_iter().map(part).collect::<Vec<_>>().join(", "))
}

/// Cpus and memory that are there and cannot or should not be used.
fn limits(machine: &Machine) -> Vec<String> {
    let forbidden = machine.online.difference(&machine.allowed);
    let cpus = [
        ("offline", &machine.offline, ""),
        ("forbidden", &forbidden, "  (affinity or cgroup of this process)"),
        ("isolated", &machine.isolated, "  (isolcpus=)"),
        ("nohz_full", &machine.nohz_full, ""),
    ];
    let mut lines: Vec<String> = cpus
        .into_iter()
        .filter(|(_, cpus, _)| !cpus.is_empty())
        .map(|(what, cpus, why)| row(what, &format!("cpus {}{why}", list(cpus))))
        .collect();
    let numa = machine.numa.iter().filter(|numa| !numa.allowed).map(|numa| units::CpuId(numa.id.0));
    let numa: CpuSet = numa.collect();
    if !numa.is_empty() {
        lines.push(row(
            "forbidden",
            &format!("memory of numa {}  (cgroup of this process)", list(&numa)),
        ));
    }
    lines
}

fn listed(what: &str, devices: Vec<(String, String)>) -> Vec<String> {
    let width = devices.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, said): &(String, String)| row(what, &format!("{name:<width$}  {said}"));
    let mut lines: Vec<_> = devices.iter().take(DEVICES_MAX).map(line).collect();
    if devices.len() > DEVICES_MAX {
        lines.push(row(what, &format!("and {} more: --json", devices.len() - DEVICES_MAX)));
    }
    lines
}

pub(super) fn of_nic(nic: &Nic) -> String {
    let speed = |mbit_s: u32| match mbit_s % 1000 {
        0 => format!("{} Gbit/s", mbit_s / 1000),
        _ => format!("{mbit_s} Mbit/s"),
    };
    let cpus: Vec<_> = nic.irqs.iter().filter_map(|irq| irq.cpus.as_ref()).collect();
    let served: CpuSet = cpus.iter().flat_map(|cpus| cpus.iter()).collect();
    let irqs = match (nic.irqs.len(), served.is_empty()) {
        (0, _) => None,
        (n, true) => Some(format!("{n} irqs")),
        (n, false) => Some(format!("{n} irqs on cpus {}", list(&served))),
    };
    let words = [
        nic.numa.map(|numa| format!("numa {}", numa.0)),
        nic.speed_mbit_s.map(speed),
        nic.up.map(|up| if up { "up" } else { "down" }.to_owned()),
        nic.driver.clone(),
        nic.firmware.as_ref().map(|firmware| format!("firmware {firmware}")),
        Some(format!("{} rx and {} tx queues", nic.rx_queues, nic.tx_queues)),
        irqs,
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(super) fn of_disk(disk: &Disk) -> String {
    let words = [
        disk.numa.map(|numa| format!("numa {}", numa.0)),
        disk.size_bytes.map(size),
        disk.model.clone(),
        disk.rotational.map(|turns| if turns { "rotating" } else { "flash" }.to_owned()),
        disk.scheduler.as_ref().map(|name| format!("scheduler {name}")),
        disk.read_ahead_kib.map(|kib| format!("read-ahead {kib} KiB")),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn persistent(machine: &Machine) -> Vec<(String, String)> {
    let place = |numa: Option<units::NumaId>| numa.map(|numa| format!("numa {}", numa.0));
    let region = |of: &crate::Pmem| {
        let words = [place(of.numa), of.size_bytes.map(size), of.driver.clone()];
        (of.name.clone(), words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    };
    let mount = |of: &crate::DaxMount| {
        let words = [Some(format!("dax on {}", of.device)), place(of.numa)];
        (of.path.clone(), words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    };
    machine.pmem.iter().map(region).chain(machine.dax_mounts.iter().map(mount)).collect()
}

fn settings(machine: &Machine) -> Vec<String> {
    let settings: &Settings = &machine.settings;
    let on = |on: bool| if on { "on" } else { "off" };
    let governors: Vec<_> = settings.governors.keys().cloned().collect();
    let power = [
        (!governors.is_empty()).then(|| format!("governor {}", governors.join(", "))),
        settings.boost.map(|boost| format!("boost {}", on(boost))),
        settings.smt.map(|smt| format!("SMT {}", on(smt))),
        settings.frequency_mhz_max.map(|mhz| format!("up to {mhz} MHz")),
        settings.clock_source.as_ref().map(|source| format!("clock {source}")),
    ];
    let set_aside = settings.huge_pages.iter().filter(|pages| pages.total > 0);
    let huge: Vec<_> = set_aside
        .map(|pages| format!("{} pages of {}", pages.total, size(pages.size_bytes)))
        .collect();
    let memory = [
        numa_mode(machine),
        settings.thp_enabled.as_ref().map(|thp| format!("THP {thp}")),
        (!huge.is_empty()).then(|| huge.join(", ")),
        settings.swap_bytes.map(|bytes| format!("swap {}", size(bytes))),
        settings.swappiness.map(|value| format!("swappiness {value}")),
        settings.numa_balancing.map(|value| format!("numa_balancing {value}")),
        settings.zone_reclaim_mode.map(|value| format!("zone_reclaim {value}")),
    ];
    let virtualisation = &settings.virtualisation;
    let vendor = [&virtualisation.sys_vendor, &virtualisation.product_name, &virtualisation.bios];
    let hardware = vendor.map(|text| text.clone().filter(|text| !text.is_empty()));
    let kinds = machine
        .kinds
        .iter()
        .map(|kind| Some(format!("{} on cpus {}", kind.name, list(&kind.cpus))));
    let rows = [
        ("hardware", hardware.to_vec()),
        ("cores", kinds.collect()),
        ("power", power.to_vec()),
        ("memory", memory.to_vec()),
    ];
    rows.into_iter()
        .map(|(what, words)| (what, words.into_iter().flatten().collect::<Vec<_>>()))
        .filter(|(_, words)| !words.is_empty())
        .map(|(what, words)| row(what, &words.join(", ")))
        .collect()
}

/// How the firmware divides packages, as far as it shows: AMD calls it NPS, Intel SNC.
fn numa_mode(machine: &Machine) -> Option<String> {
    let packages: Vec<_> = machine.packages().into_iter().filter(|p| p.id.is_some()).collect();
    let per_package = packages.first()?.numa.len();
    if packages.iter().any(|package| package.numa.len() != per_package) || per_package == 0 {
        return None;
    }
    let spans = |id| packages.iter().filter(|package| package.numa.contains(&id)).count();
    let widest = packages.iter().flat_map(|p| p.numa.iter()).map(|id| spans(*id)).max()?;
    Some(match (widest, per_package) {
        (1, 1) => "1 NUMA node a package".to_owned(),
        (1, n) => format!("{n} NUMA nodes a package (NPS{n}, SNC{n})"),
        (packages, _) => format!("a NUMA node over {packages} packages"),
    })
}
