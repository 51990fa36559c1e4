//! Block devices and how the kernel talks to them.
//!
//! Input: `sys/block`. Output: [`Disk`]s, by name. Loop, RAM and optical devices and those without
//! a medium are left out: no database keeps its data there.
//! Source: the kernel's Documentation/ABI/stable/sysfs-block.

use crate::parse::choice;
use crate::source::Source;
use crate::topology::as_numa_number;
use serde::Serialize;
use units::NumaId;

/// A block device that can hold data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// As the kernel names it: `nvme0n1`.
    pub name: String,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// What is read ahead, in KiB.
    pub read_ahead_kib: Option<u32>,
    /// The I/O scheduler in use: `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// 0 merges neighbouring requests, 1 only simple ones, 2 none.
    pub nomerges: Option<u32>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// As the maker calls it.
    pub model: Option<String>,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// The NUMA node of its device; `None` where the firmware does not say (-1).
    #[serde(serialize_with = "as_numa_number")]
    pub numa: Option<NumaId>,
}

/// Sysfs counts in these, whatever the device's own sectors are.
const SECTOR_BYTES: u64 = 512;

const NOT_FOR_DATA: [&str; 5] = ["loop", "ram", "zram", "sr", "fd"];

pub(crate) fn read(source: &Source) -> Vec<Disk> {
    let for_data = |name: &String| {
        !NOT_FOR_DATA.iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
        }) && source.number::<u64>(&format!("sys/block/{name}/size")) != Some(0)
    };
    let disk = |name: String| {
        let file = |what: &str| format!("sys/block/{name}/queue/{what}");
        Disk {
            rotational: source.flag(&file("rotational")),
            read_ahead_kib: source.number(&file("read_ahead_kb")),
            scheduler: source
                .text(&file("scheduler"))
                .and_then(|text| choice(&text).map(str::to_owned)),
            nomerges: source.number(&file("nomerges")),
            write_cache: source.text(&file("write_cache")),
            model: source
                .text(&format!("sys/block/{name}/device/model"))
                .filter(|model| !model.is_empty()),
            size_bytes: source
                .number::<u64>(&format!("sys/block/{name}/size"))
                .and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
            numa: source.numa_of_device(&format!("sys/block/{name}")),
            name,
        }
    };
    source.names("sys/block").into_iter().filter(for_data).map(disk).collect()
}
