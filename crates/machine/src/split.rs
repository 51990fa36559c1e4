//! Which cpus the client uses, and which the target.
//!
//! Input: a [`Machine`] and the cpus that may be used. Output: cpu sets. Pure. A load generator
//! that shares a core with the server measures itself, so whole physical cores are given away.

use crate::Machine;
use units::{CpuId, CpuSet};

/// The cpus of a local client and a local target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// One cpu of each core of the client.
    pub client: CpuSet,
    /// All usable cpus of the target's cores.
    pub target: CpuSet,
    /// Both are on the same core, because there is only one; this deserves a caveat.
    pub shared: bool,
}

/// Halves the physical cores with a usable cpu: the lower half, rounded up, to the target, the
/// upper half to the client. Cores are ordered by package, NUMA node and last-level cache, so
/// that a half is as compact as it can be; cpu 0, which takes most of the kernel's own work, is
/// not the client's. Both sets are empty when nothing usable is online.
#[must_use]
pub fn client_and_target_cpus(machine: &Machine, allowed: &CpuSet) -> Split {
    let cores = cores(machine, allowed);
    let (target, client) = match cores.as_slice() {
        [] | [_] => (cores.as_slice(), cores.as_slice()),
        many => many.split_at(many.len().div_ceil(2)),
    };
    Split {
        client: client.iter().filter_map(|core| core.iter().next()).collect(),
        target: target.iter().flat_map(CpuSet::iter).collect(),
        shared: cores.len() == 1,
    }
}

/// One cpu of each physical core with a usable cpu, at most `limit`: the client's cpus when the
/// target is elsewhere.
#[must_use]
pub fn one_per_core(machine: &Machine, allowed: &CpuSet, limit: usize) -> CpuSet {
    cores(machine, allowed).iter().filter_map(|core| core.iter().next()).take(limit).collect()
}

/// The usable cpus of each physical core, neighbours together.
fn cores(machine: &Machine, allowed: &CpuSet) -> Vec<CpuSet> {
    let usable = allowed.intersection(&machine.online);
    let mut cores: Vec<_> = machine
        .cpus
        .iter()
        .filter_map(|cpu| {
            let core = cpu.siblings.intersection(&usable);
            let first: CpuId = core.iter().next()?;
            // Each core once: for its lowest usable cpu.
            (first == cpu.id).then_some(((cpu.package, cpu.numa, cpu.llc, first), core))
        })
        .collect();
    cores.sort_unstable_by_key(|(place, _)| *place);
    cores.into_iter().map(|(_, core)| core).collect()
}
