//! The cores that may be used, each with its place.
//!
//! Input: a [`Machine`] and, if so asked, cpus to keep to. Output: [`Places`]: cores in the order
//! package, NUMA node, last-level cache, lowest cpu. Limits: where a machine shows no NUMA node all
//! of it counts as one, which memory is then not bound to.

use super::{LayoutError, Reason};
use crate::{Cpu, Machine};
use std::collections::BTreeSet;
use units::{Bytes, CpuId, CpuSet, NumaId, NumaSet};

/// A physical core, with those of its cpus that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Core {
    pub(super) package: u32,
    pub(super) numa: NumaId,
    /// The lowest cpu of its last-level cache.
    pub(super) llc: Option<u32>,
    /// Which physical core it is, also when it was split.
    pub(super) id: u32,
    pub(super) cpus: CpuSet,
}

/// A NUMA node as far as memory goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bank {
    pub(super) id: NumaId,
    pub(super) memory_bytes: Option<u64>,
    pub(super) has_cpus: bool,
    /// To all banks, in their order.
    pub(super) distances: Vec<u32>,
}

/// What can be laid out on.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) cores: Vec<Core>,
    pub(super) banks: Vec<Bank>,
    /// False where the machine shows no NUMA node.
    pub(super) numa_known: bool,
}

impl Places {
    pub(super) fn of(
        machine: &Machine,
        asked: Option<&CpuSet>,
        why: &mut Vec<Reason>,
    ) -> Result<Self, LayoutError> {
        let usable = usable(machine, asked, why)?;
        let numa_known = machine.numa.iter().any(|numa| !numa.cpus.is_empty());
        let mut cores: Vec<Core> = Vec::new();
        let mut seen: BTreeSet<CpuId> = BTreeSet::new();
        let known = |cpu: &&Cpu| !numa_known || cpu.numa.is_some();
        for cpu in machine.cpus.iter().filter(known).filter(|cpu| usable.contains(cpu.id)) {
            if seen.contains(&cpu.id) {
                continue;
            }
            // In a torn tree a sibling may not know of its siblings: each cpu counts once.
            let siblings = cpu.siblings.intersection(&usable);
            let new = siblings.iter().filter(|sibling| !seen.contains(sibling));
            let cpus: CpuSet = new.chain([cpu.id]).collect();
            seen.extend(cpus.iter());
            cores.push(Core {
                package: cpu.package.unwrap_or(0),
                numa: cpu.numa.filter(|_| numa_known).unwrap_or(NumaId(0)),
                llc: cpu.llc,
                id: cpu.siblings.iter().next().map_or(cpu.id.0, |lowest| lowest.0),
                cpus,
            });
        }
        cores.sort_by_key(|core| (core.package, core.numa, core.llc, core.id));
        let places = Self { cores, banks: banks(machine, numa_known), numa_known };
        let lost = usable.difference(&places.cpus());
        if !lost.is_empty() {
            let text = format!("of {lost} the NUMA node is not known: left out");
            why.push(Reason::caution("cpus", text));
        }
        places.explain(machine, why);
        Ok(places)
    }

    fn explain(&self, machine: &Machine, why: &mut Vec<Reason>) {
        if let (Some(limit), Some(all)) =
            (machine.memory_limit_bytes, machine.settings.memory_bytes)
        {
            let (limit, all) = (Bytes(limit), Bytes(all));
            let text = format!(
                "the cgroup allows {limit} of {all}: each NUMA node counts with its part of that"
            );
            why.push(Reason::caution("memory", text));
        }
        if !self.numa_known {
            let text = "the machine shows no NUMA node: it counts as one, memory is not bound";
            why.push(Reason::new("numa", text));
        }
        let no_cpus = |bank: &&Bank| !bank.has_cpus && bank.memory_bytes > Some(0);
        let no_cpus: NumaSet = self.banks.iter().filter(no_cpus).map(|bank| bank.id).collect();
        if !no_cpus.is_empty() {
            let text = format!(
                "memory without cpus is on {no_cpus}: taken only by instances without memory of \
                 their own"
            );
            why.push(Reason::new("numa", text));
        }
        let forbidden: Vec<_> = machine.numa.iter().filter(|numa| !numa.allowed).collect();
        if !forbidden.is_empty() {
            let numas: NumaSet = forbidden.iter().map(|numa| numa.id).collect();
            let text = format!("a cpuset forbids the memory of NUMA {numas}");
            why.push(Reason::caution("memory", text));
        }
        let cpus = self.cpus();
        let isolated = machine.isolated.intersection(&cpus);
        if !isolated.is_empty() {
            let text = format!(
                "{isolated} are isolated from the scheduler: threads of an instance there do not \
                 move between them; reserve them, or boot without isolcpus"
            );
            why.push(Reason::caution("cpus", text));
        }
        let kinds: Vec<_> = machine
            .kinds
            .iter()
            .filter(|kind| !kind.cpus.intersection(&cpus).is_empty())
            .map(|kind| format!("{} {}", kind.name, kind.cpus))
            .collect();
        if kinds.len() > 1 {
            let text =
                format!("cores are not alike ({}): keep to one kind with --cpus", kinds.join(", "));
            why.push(Reason::caution("cpus", text));
        }
        let unknown = machine.cpus.iter().filter(|cpu| cpu.package.is_none()).count();
        if unknown > 0 {
            let text = format!("of {unknown} cpus the package is not known: taken as package 0");
            why.push(Reason::caution("package", text));
        }
    }

    /// Those cores that hold none of `cpus`.
    pub(super) fn without(&self, cpus: &CpuSet) -> Self {
        self.filtered(|core| core.cpus.intersection(cpus).is_empty())
    }

    /// Those cores that are on one of `numas`.
    pub(super) fn only(&self, numas: &[NumaId]) -> Self {
        self.filtered(|core| numas.contains(&core.numa))
    }

    fn filtered(&self, keep: impl Fn(&Core) -> bool) -> Self {
        let cores = self.cores.iter().filter(|core| keep(core)).cloned().collect();
        Self { cores, banks: self.banks.clone(), numa_known: self.numa_known }
    }

    /// All their cpus.
    pub(super) fn cpus(&self) -> CpuSet {
        self.cores.iter().flat_map(|core| core.cpus.iter()).collect()
    }
}

/// NUMA nodes of cores, ascending.
pub(super) fn numas_of(cores: &[Core]) -> NumaSet {
    cores.iter().map(|core| core.numa).collect()
}

fn usable(
    machine: &Machine,
    asked: Option<&CpuSet>,
    why: &mut Vec<Reason>,
) -> Result<CpuSet, LayoutError> {
    let allowed = machine.allowed.intersection(&machine.online);
    if let Some(asked) = asked {
        let off = asked.difference(&machine.online);
        if !off.is_empty() {
            return Err(LayoutError::Absent { cpus: off, online: machine.online.clone() });
        }
        let forbidden = asked.difference(&allowed);
        if !forbidden.is_empty() {
            return Err(LayoutError::Forbidden { cpus: forbidden, allowed });
        }
        why.push(Reason::new("cpus", format!("only {asked}, as asked with --cpus")));
        return Ok(asked.clone());
    }
    let forbidden = machine.online.difference(&allowed);
    if !forbidden.is_empty() {
        let text = format!("{forbidden} are forbidden by affinity or cgroup and left out");
        why.push(Reason::caution("cpus", text));
    }
    if allowed.is_empty() {
        return Err(LayoutError::Forbidden { cpus: machine.online.clone(), allowed });
    }
    Ok(allowed)
}

fn banks(machine: &Machine, numa_known: bool) -> Vec<Bank> {
    if !numa_known {
        return vec![Bank {
            id: NumaId(0),
            memory_bytes: machine.usable_memory_bytes(),
            has_cpus: true,
            distances: vec![10],
        }];
    }
    let bank = |numa: &crate::Numa| Bank {
        id: numa.id,
        // What a cpuset forbids is as good as not there.
        memory_bytes: match numa.allowed {
            true => numa.memory_bytes.map(|bytes| machine.limited(bytes)),
            false => Some(0),
        },
        has_cpus: !numa.cpus.is_empty(),
        distances: numa.distances.clone(),
    };
    machine.numa.iter().map(bank).collect()
}
