//! Where each cpu sits: package, die, core, siblings, NUMA node, last-level cache.
//!
//! Input: `sys/devices/system/{cpu,node}`. Output: [`Cpu`] and [`Numa`].
//! Limits: a last-level cache is named by its lowest cpu, because the kernel's own ids are
//! missing before 4.11; caches behind the memory side are not seen.

use crate::parse;
use crate::source::Source;
use serde::{Serialize, Serializer};
use units::{CpuId, CpuSet, NumaId};

const CPU_DIR: &str = "sys/devices/system/cpu";
const NUMA_DIR: &str = "sys/devices/system/node";
/// No kernel numbers its cpus beyond this; a larger directory name is an accident.
const CPUS_MAX: u32 = 65_536;

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
    /// Distances to the NUMA nodes in ascending order, 10 = local (ACPI SLIT).
    pub distances: Vec<u32>,
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

pub(crate) fn numa(source: &Source) -> Vec<Numa> {
    source
        .numbered(NUMA_DIR, "node")
        .into_iter()
        .map(|n| {
            let dir = format!("{NUMA_DIR}/node{n}");
            let (list, mask) = (format!("{dir}/cpulist"), format!("{dir}/cpumap"));
            let memory = source.text(&format!("{dir}/meminfo"));
            let distances = source.text(&format!("{dir}/distance")).unwrap_or_default();
            Numa {
                id: NumaId(n),
                cpus: source.cpus(&[&list], &[&mask]).unwrap_or_default(),
                memory_bytes: memory.and_then(|text| parse::kib(&text, "MemTotal")),
                distances: distances.split_whitespace().filter_map(|d| d.parse().ok()).collect(),
            }
        })
        .collect()
}

pub(crate) fn cpu(source: &Source, id: CpuId, numa: &[Numa]) -> Cpu {
    let dir = format!("{CPU_DIR}/cpu{}/topology", id.0);
    // Unknown is written as -1, which is no u32.
    let number = |name: &str| source.number(&format!("{dir}/{name}"));
    let path = |name: &str| format!("{dir}/{name}");
    let siblings = source
        .cpus(
            &[&path("core_cpus_list"), &path("thread_siblings_list")],
            &[&path("core_cpus"), &path("thread_siblings")],
        )
        .filter(|cpus| cpus.contains(id))
        .unwrap_or_else(|| [id].into_iter().collect());
    Cpu {
        id,
        package: number("physical_package_id"),
        die: number("die_id"),
        core: number("core_id"),
        siblings,
        numa: numa.iter().find(|numa| numa.cpus.contains(id)).map(|numa| numa.id),
        llc: llc(source, id),
    }
}

/// The lowest cpu that shares the highest cache level of `id` which holds data.
fn llc(source: &Source, id: CpuId) -> Option<u32> {
    let dir = format!("{CPU_DIR}/cpu{}/cache", id.0);
    source
        .numbered(&dir, "index")
        .into_iter()
        .filter_map(|n| {
            let file = |name: &str| format!("{dir}/index{n}/{name}");
            if source.text(&file("type")).is_some_and(|kind| kind == "Instruction") {
                return None;
            }
            let level: u32 = source.number(&file("level"))?;
            let cpus = source.cpus(&[&file("shared_cpu_list")], &[&file("shared_cpu_map")])?;
            Some((level, cpus.iter().next()?.0))
        })
        .max_by_key(|(level, _)| *level)
        .map(|(_, cpu)| cpu)
}

/// In a manifest a cpu set is the kernel's list form: `0-3,8`.
pub(crate) fn as_list<S: Serializer>(cpus: &CpuSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(cpus)
}

fn as_number<S: Serializer>(id: &CpuId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(id.0)
}

fn as_bare_numa_number<S: Serializer>(id: &NumaId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(id.0)
}

fn as_numa_number<S: Serializer>(id: &Option<NumaId>, serializer: S) -> Result<S::Ok, S::Error> {
    id.map(|id| id.0).serialize(serializer)
}
