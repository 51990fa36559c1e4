//! Where each cpu sits: package, die, core, siblings, NUMA node, last-level cache; what kind of
//! core it is.
//!
//! Input: `sys/devices/system/cpu`, on hybrid x86 also `sys/devices/cpu_{core,atom,lowpower}`.
//! Output: [`Cpu`]s and [`CoreKind`]s. Source: the kernel's
//! Documentation/admin-guide/cputopology.rst.
//! Limits: a last-level cache is named by its lowest cpu, because the kernel's own ids are
//! missing before 4.11.

use crate::caches::Cache;
use crate::numa::Numa;
use crate::places::Place;
use crate::source::Source;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use units::{CpuId, CpuSet, NumaId};

pub(crate) const CPU_DIR: &str = "sys/devices/system/cpu";
/// No kernel numbers its cpus beyond this; a larger directory name is an accident.
const CPUS_MAX: u32 = 65_536;
/// Cpus of a core: POWER has eight, some firmware calls more than its core a core.
const SIBLINGS_MAX: usize = 256;

/// A logical cpu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The kernel's number.
    #[serde(serialize_with = "as_number")]
    pub id: CpuId,
    /// The socket.
    pub package: Option<u32>,
    /// The die in the package.
    pub die: Option<u32>,
    /// The physical core; unique only together with package and die.
    pub core: Option<u32>,
    /// All online cpus of its physical core, itself among them.
    #[serde(serialize_with = "as_list")]
    pub siblings: CpuSet,
    /// The NUMA node that lists it.
    #[serde(serialize_with = "as_numa_number")]
    pub numa: Option<NumaId>,
    /// The last-level cache: the lowest cpu that shares it.
    pub llc: Option<u32>,
}

impl Cpu {
    /// Where it sits.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { package: self.package, die: self.die, numa: self.numa, llc: self.llc }
    }
}

/// Cores that differ from others of the machine (hybrid designs).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoreKind {
    /// `performance`, `efficiency`, `low-power` on x86; numbers of maker and part on Arm
    /// (`0x41:0xd85`), else what the kernel calls them.
    pub name: String,
    /// The greatest of the kernel's relative capacities of its cpus, 1024 = the fastest cpu.
    pub capacity: Option<u32>,
    /// Its online cpus.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
}

/// The plugged-in and the scheduled cpus. Without sysfs, those of `/proc/cpuinfo`.
pub(crate) fn present_and_online(source: &Source) -> (CpuSet, CpuSet) {
    let listed: CpuSet =
        source.numbered(CPU_DIR, "cpu").into_iter().filter(|n| *n < CPUS_MAX).map(CpuId).collect();
    let listed = if listed.is_empty() { from_cpuinfo(source) } else { listed };
    // `possible` may be listed as directories too; `present` says which are real.
    let present = source
        .cpus(&[&format!("{CPU_DIR}/present")], &[])
        .map(|present| present.intersection(&listed))
        .filter(|present| !present.is_empty())
        .unwrap_or(listed);
    let all = source.cpus(&[&format!("{CPU_DIR}/online")], &[]);
    let online = present
        .iter()
        .filter(|cpu| all.as_ref().is_none_or(|all| all.contains(*cpu)))
        .filter(|cpu| source.flag(&format!("{CPU_DIR}/cpu{}/online", cpu.0)) != Some(false))
        .collect();
    (present, online)
}

fn from_cpuinfo(source: &Source) -> CpuSet {
    let text = source.text("proc/cpuinfo").unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == "processor")
        .filter_map(|(_, value)| value.trim().parse().ok())
        .filter(|n| *n < CPUS_MAX)
        .map(CpuId)
        .collect()
}

/// All of `present`, ascending.
pub(crate) fn cpus(source: &Source, present: &CpuSet, numa: &[Numa], caches: &[Cache]) -> Vec<Cpu> {
    let (numa, llcs) = (numa_by_cpu(numa), llc_by_cpu(caches));
    let mut cpus: Vec<Cpu> = present.iter().map(|id| cpu(source, id)).collect();
    for cpu in &mut cpus {
        cpu.numa = numa.get(&cpu.id).copied();
        cpu.llc = llcs.get(&cpu.id).map(|(_, first)| first.0);
    }
    number_packages(source, &mut cpus);
    cpus
}

/// The first NUMA node that lists each cpu.
fn numa_by_cpu(numa: &[Numa]) -> BTreeMap<CpuId, NumaId> {
    let listed = numa.iter().rev().flat_map(|numa| numa.cpus.iter().map(|cpu| (cpu, numa.id)));
    listed.collect()
}

/// The highest cache level of each cpu which holds data, and the lowest cpu that shares it.
fn llc_by_cpu(caches: &[Cache]) -> BTreeMap<CpuId, (u32, CpuId)> {
    let mut llcs: BTreeMap<CpuId, (u32, CpuId)> = BTreeMap::new();
    for cache in caches.iter().filter(|cache| cache.holds_data()) {
        let Some(first) = cache.cpus.iter().next() else { continue };
        for cpu in cache.cpus.iter() {
            let llc = llcs.entry(cpu).or_insert((cache.level, first));
            if llc.0 <= cache.level {
                *llc = (cache.level, first);
            }
        }
    }
    llcs
}

/// All but what NUMA nodes and caches say of it.
fn cpu(source: &Source, id: CpuId) -> Cpu {
    let dir = format!("{CPU_DIR}/cpu{}/topology", id.0);
    // Unknown is written as -1, which is no u32.
    let number = |name: &str| source.number(&format!("{dir}/{name}"));
    Cpu {
        id,
        package: number("physical_package_id"),
        die: number("die_id"),
        core: number("core_id"),
        siblings: siblings(source, id),
        numa: None,
        llc: None,
    }
}

/// The cpus of the core of `id`, itself among them.
pub(crate) fn siblings(source: &Source, id: CpuId) -> CpuSet {
    let path = |name: &str| format!("{CPU_DIR}/cpu{}/topology/{name}", id.0);
    source
        .cpus_with(
            id,
            &[&path("core_cpus_list"), &path("thread_siblings_list")],
            &[&path("core_cpus"), &path("thread_siblings")],
        )
        // What a thousand cpus share is no core, and a machine of such would fill the memory.
        .filter(|siblings| siblings.len() <= SIBLINGS_MAX)
        .unwrap_or_else(|| [id].into_iter().collect())
}

/// Where packages have no number (-1) but their cpus are told, the lowest of these is the number.
/// Kernels that know nothing of packages repeat the core there: then there is none.
fn number_packages(source: &Source, cpus: &mut [Cpu]) {
    let path = |cpu: &Cpu, name: &str| format!("{CPU_DIR}/cpu{}/topology/{name}", cpu.id.0);
    let together = |cpu: &Cpu| {
        source.number::<i32>(&path(cpu, "physical_package_id")).filter(|id| *id == -1)?;
        source.cpus_with(
            cpu.id,
            &[&path(cpu, "package_cpus_list"), &path(cpu, "core_siblings_list")],
            &[&path(cpu, "package_cpus"), &path(cpu, "core_siblings")],
        )
    };
    let packages: Vec<Option<CpuSet>> = cpus.iter().map(together).collect();
    let tells = |(cpu, package): (&Cpu, &Option<CpuSet>)| {
        package.as_ref().is_some_and(|package| *package != cpu.siblings)
    };
    if cpus.iter().zip(&packages).any(tells) {
        for (cpu, package) in cpus.iter_mut().zip(packages) {
            cpu.package = cpu.package.or_else(|| Some(package?.iter().next()?.0));
        }
    }
}

/// The kinds of cores, the fastest first; empty where all are alike or the kernel does not tell.
pub(crate) fn kinds(source: &Source, online: &CpuSet) -> Vec<CoreKind> {
    let capacity = |cpu: CpuId| source.number(&format!("{CPU_DIR}/cpu{}/cpu_capacity", cpu.0));
    let capacities: BTreeMap<CpuId, u32> =
        online.iter().filter_map(|cpu| Some((cpu, capacity(cpu)?))).collect();
    let found =
        [by_pmu(source), by_type(source), by_part(source, online), by_capacity(&capacities)];
    let mut kinds: Vec<CoreKind> = found
        .into_iter()
        .find(|kinds| kinds.len() > 1)
        .unwrap_or_default()
        .into_iter()
        .map(|(name, cpus)| {
            let cpus = cpus.intersection(online);
            let capacity = cpus.iter().filter_map(|cpu| capacities.get(&cpu)).max().copied();
            CoreKind { name, capacity, cpus }
        })
        .filter(|kind| !kind.cpus.is_empty())
        .collect();
    // Stable: where capacities are unknown the order in which they were found stays.
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.capacity));
    if kinds.len() > 1 { kinds } else { Vec::new() }
}

type Named = Vec<(String, CpuSet)>;

/// Hybrid x86 has one performance monitoring unit a kind.
fn by_pmu(source: &Source) -> Named {
    [("cpu_core", "performance"), ("cpu_atom", "efficiency"), ("cpu_lowpower", "low-power")]
        .into_iter()
        .filter_map(|(unit, name)| {
            let cpus = source.cpus(&[&format!("sys/devices/{unit}/cpus")], &[])?;
            Some((name.to_owned(), cpus))
        })
        .collect()
}

/// Proposed for Linux and shipped by some: `cpu/types/intel_core_0/{cpulist,cpumap}`.
fn by_type(source: &Source) -> Named {
    let dir = format!("{CPU_DIR}/types");
    let kind = |name: String| {
        let (list, mask) = (format!("{dir}/{name}/cpulist"), format!("{dir}/{name}/cpumap"));
        Some((name, source.cpus(&[&list], &[&mask])?))
    };
    source.names(&dir).into_iter().filter_map(kind).collect()
}

/// Arm's main id register names implementer, part and revision; part and implementer make a kind.
fn by_part(source: &Source, online: &CpuSet) -> Named {
    let mut parts: BTreeMap<(u64, u64), Vec<CpuId>> = BTreeMap::new();
    for cpu in online.iter() {
        let path = format!("{CPU_DIR}/cpu{}/regs/identification/midr_el1", cpu.0);
        let register = source
            .text(&path)
            .and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
        if let Some(midr) = register {
            parts.entry((midr >> 24 & 0xff, midr >> 4 & 0xfff)).or_default().push(cpu);
        }
    }
    let name = |(implementer, part)| format!("{implementer:#x}:{part:#x}");
    parts.into_iter().map(|(part, cpus)| (name(part), cpus.into_iter().collect())).collect()
}

fn by_capacity(capacities: &BTreeMap<CpuId, u32>) -> Named {
    let mut kinds: BTreeMap<u32, Vec<CpuId>> = BTreeMap::new();
    for (cpu, capacity) in capacities {
        kinds.entry(*capacity).or_default().push(*cpu);
    }
    let name = |capacity| format!("capacity {capacity}");
    kinds.into_iter().map(|(size, cpus)| (name(size), cpus.into_iter().collect())).collect()
}

/// In a manifest a cpu set is the kernel's list form: `0-3,8`.
pub(crate) fn as_list<S: Serializer>(cpus: &CpuSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cpus)
}

fn as_number<S: Serializer>(id: &CpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(id.0)
}

pub(crate) fn as_bare_numa_number<S: Serializer>(
    id: &NumaId,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(id.0)
}

pub(crate) fn as_numa_number<S: Serializer>(
    id: &Option<NumaId>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    id.map(|id| id.0).serialize(serializer)
}
