//! How large an instance is to be, and how many fit on a host.
//!
//! Input: sizes in cores and bytes. Output: the sizing table of a published study, and [`Fit`]: how
//! many instances of a size fit, and what ends it. Source: "Scylla on IBM POWER9" (table 3 and the
//! text below it): disk = 30 x memory. Its text gives 1.8, 3.7 and 7.5 TB for 64, 128 and 256 GB,
//! which is 30 x memory / 1024, cut off; the exact products stand beside it. Limits: a rule for
//! Scylla's data on disk, not for the working set.

use super::{Database, LayoutError};
use crate::Machine;
use serde::Serialize;
use units::Bytes;

/// Disk over memory.
pub const DISK_PER_MEMORY: u64 = 30;

const GIB: u64 = 1 << 30;

/// A row of the study's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Size {
    /// What for.
    pub name: &'static str,
    /// Physical cores.
    pub cores: u32,
    /// Memory; the study's GB are read as GiB, as memory is sold.
    pub memory_bytes: u64,
    /// [`DISK_PER_MEMORY`] x memory.
    pub disk_bytes: u64,
    /// Disk as the study's text says it.
    pub disk_in_text: &'static str,
    /// Network as the study's table says it.
    pub network: &'static str,
}

/// The study's three sizes.
#[must_use]
pub fn table() -> Vec<Size> {
    [
        ("test, minimal", 16, 64, "1.8TB", "1 Gbps"),
        ("production", 22, 128, "3.7TB", "10 Gbps"),
        ("analytics, heavy duty", 44, 256, "7.5TB", "10-40 Gbps"),
    ]
    .map(|(name, cores, memory_gib, disk_in_text, network)| Size {
        name,
        cores,
        memory_bytes: memory_gib * GIB,
        disk_bytes: disk_for(memory_gib * GIB),
        disk_in_text,
        network,
    })
    .into()
}

/// Disk for so much memory, in bytes.
#[must_use]
pub fn disk_for(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_mul(DISK_PER_MEMORY)
}

/// What a host has; `None` is not known and limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Physical cores that may be used.
    pub cores: u64,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// What of it instances may take: a margin of each NUMA node is left to the kernel.
    pub usable_memory_bytes: Option<u64>,
    /// Disk.
    pub disk_bytes: Option<u64>,
}

impl Host {
    /// Cores and memory of a machine, and its disks together, unless `disk` is given. The memory
    /// that instances may take is what a layout of `database` leaves to them.
    #[must_use]
    pub fn of(machine: &Machine, database: Database, disk: Option<Bytes>) -> Self {
        let usable = machine.allowed.intersection(&machine.online);
        let cores = crate::one_per_core(machine, &usable, usize::MAX).len() as u64;
        let whole = || machine.usable_memory_bytes().map(|bytes| vec![bytes]);
        let by_numa: Option<Vec<u64>> = match machine.numa.is_empty() {
            true => None,
            false => {
                let limited = |numa: &crate::Numa| Some(machine.limited(numa.memory_bytes?));
                machine.numa.iter().map(limited).collect()
            }
        };
        let banks = by_numa.or_else(whole);
        let usable = |banks: &Vec<u64>| banks.iter().map(|&bank| database.usable_bytes(bank)).sum();
        let disks: Option<u64> = match machine.disks.is_empty() {
            true => None,
            false => machine.disks.iter().map(|disk| disk.size_bytes).sum(),
        };
        Self {
            cores,
            memory_bytes: banks.as_ref().map(|banks| banks.iter().sum()),
            usable_memory_bytes: banks.as_ref().map(usable),
            disk_bytes: disk.map(|disk| disk.0).or(disks),
        }
    }
}

/// How many instances fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// So many.
    pub instances: u64,
    /// What the next one would not get: `cores`, `memory`, `disk`; several at once are all named.
    pub ended_by: Vec<&'static str>,
    /// By cores alone.
    pub by_cores: u64,
    /// By memory alone.
    pub by_memory: Option<u64>,
    /// By disk alone.
    pub by_disk: Option<u64>,
}

/// Instances of `cores`, `memory` and `disk` (else 30 x memory) on `host`.
///
/// # Errors
/// When an instance has no cores or no memory.
pub fn fit(
    host: &Host,
    cores: u32,
    memory: Bytes,
    disk: Option<Bytes>,
) -> Result<Fit, LayoutError> {
    if cores == 0 {
        return Err(LayoutError::Size { what: "cores" });
    }
    let disk = disk.map_or(disk_for(memory.0), |disk| disk.0);
    if memory.0 == 0 || disk == 0 {
        return Err(LayoutError::Size { what: "memory or disk" });
    }
    let by_cores = host.cores / u64::from(cores);
    let by_memory = host.usable_memory_bytes.map(|bytes| bytes / memory.0);
    let by_disk = host.disk_bytes.map(|bytes| bytes / disk);
    let each = [("cores", Some(by_cores)), ("memory", by_memory), ("disk", by_disk)];
    let instances = each.iter().filter_map(|(_, count)| *count).min().unwrap_or(0);
    let ended_by = each.iter().filter(|(_, count)| *count == Some(instances));
    Ok(Fit {
        instances,
        ended_by: ended_by.map(|(name, _)| *name).collect(),
        by_cores,
        by_memory,
        by_disk,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_study() {
        let sizes = table();
        // The text: 1.8, 3.7 and 7.5 TB, in units of 1024 GB and cut off.
        let tenths: Vec<u64> = sizes.iter().map(|size| size.disk_bytes * 10 / (1 << 40)).collect();
        assert_eq!(tenths, [18, 37, 75]);
        for (size, tenths) in sizes.iter().zip(tenths) {
            assert_eq!(size.disk_in_text, format!("{}.{}TB", tenths / 10, tenths % 10));
        }
        assert_eq!(sizes.iter().map(|size| size.cores).collect::<Vec<_>>(), [16, 22, 44]);
    }

    #[test]
    fn what_ends_it_is_named() {
        let host = |cores, memory_gib: u64, disk_tib: Option<u64>| Host {
            cores,
            memory_bytes: Some(memory_gib * GIB),
            usable_memory_bytes: Some(memory_gib * GIB),
            disk_bytes: disk_tib.map(|tib| tib << 40),
        };
        let fit = |host: Host| fit(&host, 16, Bytes(64 * GIB), None).unwrap();
        let by = |host| (fit(host).instances, fit(host).ended_by);
        assert_eq!(by(host(64, 512, None)), (4, vec!["cores"]));
        assert_eq!(by(host(64, 128, None)), (2, vec!["memory"]));
        assert_eq!(by(host(64, 512, Some(2))), (1, vec!["disk"]));
        assert_eq!(by(host(32, 128, Some(100))), (2, vec!["cores", "memory"]));
        assert_eq!(by(host(8, 512, None)), (0, vec!["cores"]));
        assert!(super::fit(&host(8, 8, None), 0, Bytes(GIB), None).is_err());
        assert!(super::fit(&host(8, 8, None), 1, Bytes(0), None).is_err());
    }
}
