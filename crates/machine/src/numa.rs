//! NUMA nodes: their cpus, memory, distances, tier and initiators.
//!
//! Input: `sys/devices/system/node`, `sys/devices/virtual/memory_tiering`. Output: [`Numa`]s, sizes
//! in bytes, bandwidth in MB/s, latency in nanoseconds. Source: the kernel's
//! Documentation/ABI/stable/sysfs-devices-node and admin-guide/mm/numaperf.rst.
//! Limits: only NUMA nodes that are online; distances are the firmware's word, not measured.

use crate::parse;
use crate::source::Source;
use crate::topology::{as_bare_numa_number, as_list};
use serde::{Serialize, Serializer};
use units::{CpuSet, NumaId};

pub(crate) const NUMA_DIR: &str = "sys/devices/system/node";
const TIERS_DIR: &str = "sys/devices/virtual/memory_tiering";

/// A NUMA node: some have cpus and no memory, some memory and no cpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Numa {
    /// The kernel's number; may be sparse.
    #[serde(serialize_with = "as_bare_numa_number")]
    pub id: NumaId,
    /// Its online cpus.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
    /// Its memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The part of it that is free, at this moment.
    pub memory_free_bytes: Option<u64>,
    /// Whether this process may take memory from it (cpuset).
    pub allowed: bool,
    /// Huge pages that are set aside there.
    pub huge_pages: Vec<HugePages>,
    /// Distances to the NUMA nodes in ascending order, 10 = local (ACPI SLIT).
    #[serde(serialize_with = "as_words")]
    pub distances: Vec<u32>,
    /// Memory tier, where the kernel makes tiers: the lower the faster.
    pub tier: Option<u32>,
    /// NUMA nodes from which its memory is reached fastest (ACPI HMAT); empty where unknown.
    #[serde(serialize_with = "as_numbers")]
    pub initiators: Vec<NumaId>,
    /// What these reach.
    pub access: Option<Access>,
    /// Cache in front of the memory (HBM in cache mode), in bytes.
    pub memory_side_cache_bytes: Option<u64>,
}

/// Performance of a NUMA node's memory as the firmware gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Read bandwidth in MB/s.
    pub read_mb_s: Option<u64>,
    /// Write bandwidth in MB/s.
    pub write_mb_s: Option<u64>,
    /// Read latency in nanoseconds.
    pub read_ns: Option<u64>,
    /// Write latency in nanoseconds.
    pub write_ns: Option<u64>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HugePages {
    /// Of one page.
    pub size_bytes: u64,
    /// Set aside.
    pub total: u64,
    /// Not in use.
    pub free: u64,
}

impl Numa {
    /// Whether it has memory and no cpu: an expander, or HBM in flat mode.
    #[must_use]
    pub fn is_memory_only(&self) -> bool {
        self.cpus.is_empty() && self.memory_bytes.is_some_and(|bytes| bytes > 0)
    }
}

/// All of them, ascending; `online` and `allowed` where the tree tells.
pub(crate) fn read(source: &Source, online: &CpuSet, allowed: Option<&[NumaId]>) -> Vec<Numa> {
    let tiers = tiers(source);
    let numa = |n: u32| {
        let dir = format!("{NUMA_DIR}/node{n}");
        let (list, mask) = (format!("{dir}/cpulist"), format!("{dir}/cpumap"));
        let meminfo = source.text(&format!("{dir}/meminfo")).unwrap_or_default();
        let distances = source.text(&format!("{dir}/distance")).unwrap_or_default();
        let (initiators, access) = initiators(source, &dir);
        Numa {
            id: NumaId(n),
            cpus: source.cpus(&[&list], &[&mask]).unwrap_or_default().intersection(online),
            memory_bytes: parse::kib(&meminfo, "MemTotal"),
            memory_free_bytes: parse::kib(&meminfo, "MemFree"),
            allowed: allowed.is_none_or(|allowed| allowed.contains(&NumaId(n))),
            huge_pages: huge_pages(source, &format!("{dir}/hugepages")),
            distances: distances.split_whitespace().filter_map(|d| d.parse().ok()).collect(),
            tier: tiers.iter().find(|(_, members)| members.contains(&n)).map(|(tier, _)| *tier),
            initiators,
            access,
            memory_side_cache_bytes: source.number(&format!("{dir}/memory_side_cache/index1/size")),
        }
    };
    source.numbered(NUMA_DIR, "node").into_iter().map(numa).collect()
}

/// Huge pages of each size below `dir`, small ones first.
pub(crate) fn huge_pages(source: &Source, dir: &str) -> Vec<HugePages> {
    let of_size = |name: String| {
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        let count = |what: &str| source.number(&format!("{dir}/{name}/{what}"));
        Some(HugePages {
            size_bytes: kib.checked_mul(1024)?,
            total: count("nr_hugepages")?,
            free: count("free_hugepages").unwrap_or(0),
        })
    };
    let mut sizes: Vec<_> = source.names(dir).into_iter().filter_map(of_size).collect();
    sizes.sort_unstable_by_key(|pages| pages.size_bytes);
    sizes
}

/// Tier -> numbers of its NUMA nodes.
fn tiers(source: &Source) -> Vec<(u32, Vec<u32>)> {
    let tier = |n: u32| {
        let text = source.text(&format!("{TIERS_DIR}/memory_tier{n}/nodelist"))?;
        Some((n, numbers(&text)?))
    };
    source.numbered(TIERS_DIR, "memory_tier").into_iter().filter_map(tier).collect()
}

/// A list of NUMA nodes has the form of one of cpus.
pub(crate) fn numbers(text: &str) -> Option<Vec<u32>> {
    Some(text.parse::<CpuSet>().ok()?.iter().map(|id| id.0).collect())
}

/// Class 1 counts initiators with cpus only, class 0 (since 5.2) also other devices.
fn initiators(source: &Source, dir: &str) -> (Vec<NumaId>, Option<Access>) {
    let class = ["access1", "access0"].iter().find_map(|class| {
        let dir = format!("{dir}/{class}/initiators");
        let found = source.numbered(&dir, "node");
        (!found.is_empty()).then_some((dir, found))
    });
    let Some((dir, found)) = class else { return (Vec::new(), None) };
    // Unknown is written as 0.
    let number = |name: &str| source.number(&format!("{dir}/{name}")).filter(|n: &u64| *n > 0);
    let access = Access {
        read_mb_s: number("read_bandwidth"),
        write_mb_s: number("write_bandwidth"),
        read_ns: number("read_latency"),
        write_ns: number("write_latency"),
    };
    let known = [access.read_mb_s, access.write_mb_s, access.read_ns, access.write_ns];
    let access = known.iter().any(Option::is_some).then_some(access);
    (found.into_iter().map(NumaId).collect(), access)
}

/// As the kernel prints them; one line of a manifest instead of one a number.
fn as_words<S: Serializer>(distances: &[u32], to: S) -> Result<S::Ok, S::Error> {
    let words: Vec<_> = distances.iter().map(u32::to_string).collect();
    to.serialize_str(&words.join(" "))
}

fn as_numbers<S: Serializer>(ids: &[NumaId], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ids.iter().map(|id| id.0))
}
