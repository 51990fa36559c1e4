//! A machine by its parts: packages, dies, last-level caches, cores, each with its cpus.
//!
//! Input: a [`Machine`]. Output: views with online cpus only, in the order package, die, NUMA node,
//! cache, lowest cpu, so that neighbours in a list are neighbours on the machine. Pure.

use crate::{Cache, Machine, Numa};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, CpuSet, NumaId};

/// Where a part sits; what the kernel does not say is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// The socket.
    pub package: Option<u32>,
    /// The die in the package.
    pub die: Option<u32>,
    /// The NUMA node.
    pub numa: Option<NumaId>,
    /// The last-level cache: the lowest cpu that shares it.
    pub llc: Option<u32>,
}

/// A socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The kernel's number; `None` where the kernel does not say, then it is the whole machine.
    pub id: Option<u32>,
    /// Its online cpus.
    pub cpus: CpuSet,
    /// NUMA nodes with a cpu of it, ascending.
    pub numa: Vec<NumaId>,
}

/// A die of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Die {
    /// Its package.
    pub package: Option<u32>,
    /// Its number in the package; `None` where the kernel does not say, then it is all of it.
    pub id: Option<u32>,
    /// Its online cpus.
    pub cpus: CpuSet,
}

/// A last-level cache and the cpus that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Llc {
    /// The lowest cpu that shares it; `None` where the kernel shows no caches.
    pub id: Option<u32>,
    /// Where its lowest cpu sits.
    pub place: Place,
    /// Its online cpus.
    pub cpus: CpuSet,
    /// Its level, 3 mostly.
    pub level: Option<u32>,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
}

/// A physical core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// Where it sits.
    pub place: Place,
    /// Its online cpus: SMT siblings.
    pub cpus: CpuSet,
    /// Index into [`Machine::kinds`], on hybrid machines.
    pub kind: Option<usize>,
}

impl Machine {
    /// The sockets with an online cpu.
    #[must_use]
    pub fn packages(&self) -> Vec<Package> {
        self.grouped(|place| place.package)
            .into_iter()
            .map(|(place, cpus)| Package { id: place.package, numa: self.numa_of(&cpus), cpus })
            .collect()
    }

    /// The dies with an online cpu; a package whose dies are not told is one.
    #[must_use]
    pub fn dies(&self) -> Vec<Die> {
        self.grouped(|place| (place.package, place.die))
            .into_iter()
            .map(|(place, cpus)| Die { package: place.package, id: place.die, cpus })
            .collect()
    }

    /// The last-level caches. Where the kernel shows none, the cpus of a NUMA node count as one.
    #[must_use]
    pub fn llcs(&self) -> Vec<Llc> {
        let key = |place: &Place| (place.llc, place.llc.is_none().then_some(place.numa));
        // By level, so that of those with the same lowest cpu the last one is the highest.
        let holding = self.caches.iter().filter(|cache| cache.holds_data());
        let by_first: BTreeMap<u32, &Cache> =
            holding.filter_map(|cache| Some((cache.cpus.iter().next()?.0, cache))).collect();
        let llc = |(place, cpus): (Place, CpuSet)| {
            let cache = place.llc.and_then(|first| by_first.get(&first));
            Llc {
                id: place.llc,
                place,
                cpus,
                level: cache.map(|cache| cache.level),
                size_bytes: cache.and_then(|cache| cache.size_bytes),
            }
        };
        self.grouped(key).into_iter().map(llc).collect()
    }

    /// The physical cores with an online cpu.
    #[must_use]
    pub fn cores(&self) -> Vec<Core> {
        let mut cores: Vec<Core> = self
            .cpus
            .iter()
            .filter(|cpu| self.online.contains(cpu.id))
            .filter_map(|cpu| {
                let cpus = cpu.siblings.intersection(&self.online);
                let first = cpus.iter().next()?;
                // Each core once: for its lowest cpu.
                (first == cpu.id).then(|| Core {
                    place: cpu.place(),
                    kind: self.kinds.iter().position(|kind| kind.cpus.contains(cpu.id)),
                    cpus,
                })
            })
            .collect();
        cores.sort_by_key(|core| (core.place, core.cpus.iter().next()));
        cores
    }

    /// The NUMA node of that number.
    #[must_use]
    pub fn numa(&self, id: NumaId) -> Option<&Numa> {
        self.numa.binary_search_by_key(&id, |numa| numa.id).ok().map(|i| &self.numa[i])
    }

    /// Distance from one NUMA node to another as the firmware gives it, 10 = local.
    #[must_use]
    pub fn distance(&self, from: NumaId, to: NumaId) -> Option<u32> {
        let column = self.numa.binary_search_by_key(&to, |numa| numa.id).ok()?;
        self.numa(from)?.distances.get(column).copied()
    }

    /// NUMA nodes to which these cpus belong, ascending.
    #[must_use]
    pub fn numa_of(&self, cpus: &CpuSet) -> Vec<NumaId> {
        let numa: BTreeSet<NumaId> =
            cpus.iter().filter_map(|cpu| self.cpu(cpu)).filter_map(|cpu| cpu.numa).collect();
        numa.into_iter().collect()
    }

    /// Online cpus by a part of their place, with the place of the lowest one of each group.
    fn grouped<K: Ord>(&self, key: impl Fn(&Place) -> K) -> Vec<(Place, CpuSet)> {
        let mut cpus: Vec<_> = self
            .cpus
            .iter()
            .filter(|cpu| self.online.contains(cpu.id))
            .map(|cpu| (cpu.place(), cpu.id))
            .collect();
        cpus.sort_unstable();
        let mut groups: Vec<(Place, Vec<CpuId>)> = Vec::new();
        let mut known: BTreeMap<K, usize> = BTreeMap::new();
        for (place, cpu) in cpus {
            // A cache may span NUMA nodes, a NUMA node packages: equal keys need not be neighbours.
            let group = *known.entry(key(&place)).or_insert(groups.len());
            match groups.get_mut(group) {
                Some((_, members)) => members.push(cpu),
                None => groups.push((place, vec![cpu])),
            }
        }
        groups.into_iter().map(|(place, cpus)| (place, cpus.into_iter().collect())).collect()
    }
}
