//! A machine as parts within parts: what is drawn.
//!
//! Input: a [`Machine`]. Output: [`Part`]s nested by their cpus, whatever contains what on this
//! machine (a NUMA node in a cache, caches in a NUMA node). Pure. Limits: online cpus only; of two
//! parts that overlap without one containing the other the larger stays; no real machine has them.

use crate::{Machine, Numa};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, CpuSet, NumaId};

/// What a part is, from the outside in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Machine,
    Package,
    Die,
    Numa,
    Llc,
    Core,
}

/// A part and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    /// The kernel's number, where it has one for people to see.
    pub(crate) id: Option<u32>,
    /// Online cpus.
    pub(crate) cpus: CpuSet,
    /// Memory of the machine or a NUMA node, size of a cache.
    pub(crate) bytes: Option<u64>,
    /// Level of a cache, tier of memory, index of a kind of core.
    pub(crate) rank: Option<u32>,
    pub(crate) parts: Vec<Part>,
}

impl Part {
    fn new(kind: Kind, id: Option<u32>, cpus: CpuSet) -> Self {
        Self { kind, id, cpus, bytes: None, rank: None, parts: Vec::new() }
    }

    /// Whether it looks the same as `other` but for its numbers. NUMA nodes always differ by what
    /// the firmware keeps for itself.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let bytes = |part: &Self| part.bytes.unwrap_or(0);
        let alike = bytes(self).abs_diff(bytes(other)) <= bytes(self) / 16;
        let same_size = if self.kind == Kind::Numa { alike } else { self.bytes == other.bytes };
        self.kind == other.kind
            && same_size
            && self.rank == other.rank
            && self.cpus.len() == other.cpus.len()
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(|(one, another)| one.is_like(another))
    }

    fn contains(&self, cpus: &CpuSet) -> bool {
        cpus.iter().all(|cpu| self.cpus.contains(cpu))
    }

    /// Puts memory without cpus next to the package or die of `near`.
    fn insert_memory(&mut self, part: Part, near: &CpuSet) {
        let is_holder = |inner: &&mut Part| {
            matches!(inner.kind, Kind::Package | Kind::Die)
                && !near.is_empty()
                && inner.contains(near)
        };
        match self.parts.iter_mut().find(is_holder) {
            Some(inner) => inner.insert_memory(part, near),
            None => self.parts.push(part),
        }
    }

    fn sort(&mut self) {
        self.parts.sort_by_key(|part| {
            (part.cpus.is_empty(), part.cpus.iter().next(), part.kind, part.id)
        });
        self.parts.iter_mut().for_each(Self::sort);
    }
}

/// A part while it is filled: which of its parts has each cpu.
struct Filled {
    part: Part,
    parts: Vec<Filled>,
    holder: BTreeMap<CpuId, usize>,
}

impl Filled {
    fn new(part: Part) -> Self {
        Self { part, parts: Vec::new(), holder: BTreeMap::new() }
    }

    /// Puts a part into the innermost one that contains it.
    fn insert(&mut self, part: Part) {
        let holders: BTreeSet<Option<usize>> =
            part.cpus.iter().map(|cpu| self.holder.get(&cpu).copied()).collect();
        // With several holders it overlaps with one and is not in it.
        match (holders.len(), holders.first().copied().flatten()) {
            (2.., _) => {}
            (_, Some(index)) => self.parts[index].insert(part),
            (_, None) => {
                self.holder.extend(part.cpus.iter().map(|cpu| (cpu, self.parts.len())));
                self.parts.push(Self::new(part));
            }
        }
    }

    fn done(self) -> Part {
        Part { parts: self.parts.into_iter().map(Self::done).collect(), ..self.part }
    }
}

/// The whole machine.
pub(crate) fn outline(machine: &Machine) -> Part {
    let mut whole = Part::new(Kind::Machine, None, machine.online.clone());
    whole.bytes = machine.settings.memory_bytes;
    let mut parts: Vec<Part> = Vec::new();
    let packages = machine.packages();
    let whole_packages: BTreeSet<&CpuSet> = packages.iter().map(|package| &package.cpus).collect();
    for package in packages.iter().filter(|package| package.id.is_some()) {
        parts.push(Part::new(Kind::Package, package.id, package.cpus.clone()));
    }
    // A die that is all of its package says nothing.
    for die in machine.dies() {
        if !whole_packages.contains(&die.cpus) {
            parts.push(Part::new(Kind::Die, die.id, die.cpus));
        }
    }
    for numa in machine.numa.iter().filter(|numa| !numa.cpus.is_empty()) {
        let part = Part::new(Kind::Numa, Some(numa.id.0), numa.cpus.clone());
        parts.push(Part { bytes: numa.memory_bytes, rank: tier(machine, numa), ..part });
    }
    for llc in machine.llcs().into_iter().filter(|llc| llc.id.is_some()) {
        let part = Part::new(Kind::Llc, None, llc.cpus);
        parts.push(Part { bytes: llc.size_bytes, rank: llc.level, ..part });
    }
    for core in machine.cores() {
        let rank = core.kind.and_then(|kind| u32::try_from(kind).ok());
        parts.push(Part { rank, ..Part::new(Kind::Core, None, core.cpus) });
    }
    parts.sort_by_key(|part| (std::cmp::Reverse(part.cpus.len()), part.kind));
    let mut filled = Filled::new(whole);
    parts.into_iter().for_each(|part| filled.insert(part));
    let mut whole = filled.done();
    for numa in machine.numa.iter().filter(|numa| numa.cpus.is_empty()) {
        let part = Part::new(Kind::Numa, Some(numa.id.0), CpuSet::default());
        let part = Part { bytes: numa.memory_bytes, rank: tier(machine, numa), ..part };
        let near = nearest(machine, numa.id);
        let near = near.iter().filter_map(|id| machine.numa(*id)).flat_map(|n| n.cpus.iter());
        whole.insert_memory(part, &near.collect());
    }
    whole.sort();
    whole
}

/// Where all memory is of one tier, it is not worth a word.
fn tier(machine: &Machine, numa: &Numa) -> Option<u32> {
    let differ = machine.numa.iter().any(|other| other.tier != numa.tier);
    numa.tier.filter(|_| differ)
}

/// The NUMA nodes with cpus from which memory is reached best: by the firmware's word, else those
/// at the least distance.
pub(crate) fn nearest(machine: &Machine, id: NumaId) -> Vec<NumaId> {
    let has_cpus = |id: &NumaId| machine.numa(*id).is_some_and(|numa| !numa.cpus.is_empty());
    let initiators = machine.numa(id).map(|numa| numa.initiators.clone()).unwrap_or_default();
    if !initiators.is_empty() && initiators.iter().all(has_cpus) {
        return initiators;
    }
    let with_cpus = machine.numa.iter().map(|numa| numa.id).filter(has_cpus);
    let near: Vec<_> =
        with_cpus.filter_map(|from| Some((machine.distance(from, id)?, from))).collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    near.into_iter().filter(|(distance, _)| Some(*distance) == least).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(part: &Part, depth: usize, out: &mut Vec<String>) {
        out.push(format!("{depth} {:?} {:?} {}", part.kind, part.id, part.cpus));
        part.parts.iter().for_each(|inner| names(inner, depth + 1, out));
    }

    #[test]
    fn parts_are_nested_as_the_machine_has_them() {
        for (text, expected) in [
            (
                "package:1 numa:2 llc:1 core:1 cpu:2",
                &[
                    "0 Machine None 0-3",
                    "1 Package Some(0) 0-3",
                    "2 Numa Some(0) 0,2",
                    "3 Llc None 0,2",
                    "4 Core None 0,2",
                    "2 Numa Some(1) 1,3",
                    "3 Llc None 1,3",
                    "4 Core None 1,3",
                ][..],
            ),
            (
                "numa:1 package:2 core:1",
                &[
                    "0 Machine None 0-1",
                    "1 Numa Some(0) 0-1",
                    "2 Package Some(0) 0",
                    "3 Llc None 0",
                    "4 Core None 0",
                    "2 Package Some(1) 1",
                    "3 Llc None 1",
                    "4 Core None 1",
                ],
            ),
            (
                "package:1 llc:1 numa:2 core:1",
                &[
                    "0 Machine None 0-1",
                    "1 Package Some(0) 0-1",
                    "2 Llc None 0-1",
                    "3 Numa Some(0) 0",
                    "4 Core None 0",
                    "3 Numa Some(1) 1",
                    "4 Core None 1",
                ],
            ),
        ] {
            let mut found = Vec::new();
            names(&outline(&Machine::synthetic(text).unwrap()), 0, &mut found);
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn parts_are_alike_but_for_their_numbers() {
        let whole = outline(&Machine::synthetic("package:2 llc:2(size=1MiB) core:2").unwrap());
        let [one, other] = whole.parts.as_slice() else { panic!("{whole:?}") };
        assert!(one.is_like(other) && !one.is_like(&one.parts[0]) && !whole.is_like(one));
        let mut changed = other.clone();
        changed.parts[0].parts[1].bytes = Some(2 << 20);
        assert!(!one.is_like(&changed), "{changed:?}");
    }
}
