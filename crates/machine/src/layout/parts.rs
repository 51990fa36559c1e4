//! Cores of a budget into one part for each instance.
//!
//! Input: the policy and the free cores of the budget. Output: parts that do not overlap. `N`
//! instances get runs of neighbouring cores whose lengths differ by one at most.

use super::places::{Core, Places, numas_of};
use super::{LayoutError, Placement, Policy, Reason, Request, Smt};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuSet, NumaId, NumaSet};

pub(super) fn split(
    request: &Request,
    budget: &Places,
    why: &mut Vec<Reason>,
) -> Result<Vec<Vec<Core>>, LayoutError> {
    let cores = match request.split_cores {
        true => threads(&budget.cores),
        false => budget.cores.clone(),
    };
    let (parts, text) = match &request.policy {
        Policy::Single => (vec![cores], "one instance over the whole budget".to_owned()),
        Policy::PerPackage => {
            (grouped(cores, |core| core.package), "one on each package of the budget".into())
        }
        Policy::PerNuma => {
            (grouped(cores, |core| core.numa.0), "one on each NUMA node of the budget".into())
        }
        Policy::PerLlc => {
            if cores.iter().any(|core| core.llc.is_none()) {
                return Err(LayoutError::NoLlc);
            }
            // A cache can be shared over the border of a NUMA node; an instance then is not.
            let parts = grouped(cores, |core| (core.numa, core.llc));
            (parts, "one on each last-level cache of the budget".to_owned())
        }
        Policy::Count(count) => {
            let text = format!("{count} instances on runs of neighbouring cores");
            (runs(cores, *count)?, text)
        }
        Policy::Custom(sets) => (custom(sets, budget, request.split_cores)?, "as given".into()),
    };
    why.push(Reason::new("policy", format!("{}: {text}", request.policy)));
    match (&request.policy, request.smt) {
        (Policy::Custom(_), _) => {}
        (_, Smt::All) if parts.iter().flatten().any(|core| core.cpus.len() > 1) => {
            why.push(Reason::new("smt", "all cpus of each core"));
        }
        (_, Smt::All) => {}
        (_, Smt::One) => why.push(Reason::new("smt", "the lowest cpu of each core, as asked")),
    }
    if no_core_twice(&parts, budget).is_err() {
        let text = "instances share physical cores, as asked: they slow each other";
        why.push(Reason::caution("cpus", text));
    }
    Ok(parts)
}

/// The cpus that an instance gets of its part.
pub(super) fn cpus(part: &[Core], request: &Request) -> CpuSet {
    let limit = match (&request.policy, request.smt) {
        (Policy::Custom(_), _) | (_, Smt::All) => usize::MAX,
        (_, Smt::One) => 1,
    };
    part.iter().flat_map(|core| core.cpus.iter().take(limit)).collect()
}

pub(super) fn physical_cores(part: &[Core]) -> u32 {
    part.iter().map(|core| core.id).collect::<BTreeSet<_>>().len() as u32
}

/// Each cpu as a core of its own.
fn threads(cores: &[Core]) -> Vec<Core> {
    let one = |core: &Core, cpu| Core { cpus: [cpu].into_iter().collect(), ..core.clone() };
    cores.iter().flat_map(|core| core.cpus.iter().map(|cpu| one(core, cpu))).collect()
}

/// In the order of the cores, which is that of the keys.
fn grouped<K: PartialEq>(cores: Vec<Core>, key: impl Fn(&Core) -> K) -> Vec<Vec<Core>> {
    let mut groups: Vec<(K, Vec<Core>)> = Vec::new();
    for core in cores {
        let of = key(&core);
        match groups.iter_mut().find(|(known, _)| *known == of) {
            Some((_, group)) => group.push(core),
            None => groups.push((of, vec![core])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn runs(cores: Vec<Core>, count: u32) -> Result<Vec<Vec<Core>>, LayoutError> {
    let (have, count) = (cores.len(), count as usize);
    if count > have {
        return Err(LayoutError::Instances { asked: count, cores: have });
    }
    let mut rest = cores.into_iter();
    let run = |i: usize| have / count + usize::from(i < have % count);
    Ok((0..count).map(|i| rest.by_ref().take(run(i)).collect()).collect())
}

fn custom(
    sets: &[CpuSet],
    budget: &Places,
    split_cores: bool,
) -> Result<Vec<Vec<Core>>, LayoutError> {
    let inside = budget.cpus();
    for (index, cpus) in sets.iter().enumerate() {
        let outside = cpus.difference(&inside);
        if !outside.is_empty() {
            return Err(LayoutError::Outside { instance: index + 1, cpus: outside, inside });
        }
        for (other, earlier) in sets.iter().enumerate().take(index) {
            let both = cpus.intersection(earlier);
            if !both.is_empty() {
                return Err(LayoutError::Overlap {
                    first: other + 1,
                    second: index + 1,
                    cpus: both,
                });
            }
        }
    }
    let part = |cpus: &CpuSet| -> Vec<Core> {
        let keep = |core: &Core| Core { cpus: core.cpus.intersection(cpus), ..core.clone() };
        budget.cores.iter().map(keep).filter(|core| !core.cpus.is_empty()).collect()
    };
    let parts: Vec<_> = sets.iter().map(part).collect();
    if !split_cores {
        no_core_twice(&parts, budget)?;
    }
    Ok(parts)
}

fn no_core_twice(parts: &[Vec<Core>], budget: &Places) -> Result<(), LayoutError> {
    let mut users: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (index, core) in
        parts.iter().enumerate().flat_map(|(i, part)| part.iter().map(move |c| (i, c)))
    {
        users.entry(core.id).or_default().insert(index + 1);
    }
    for core in &budget.cores {
        let mut users = users.get(&core.id).into_iter().flatten().copied();
        if let (Some(first), Some(second)) = (users.next(), users.next()) {
            let cpus = core.cpus.clone();
            return Err(LayoutError::SharedCore { first, second, cpus });
        }
    }
    Ok(())
}

/// What differs between instances, and which of them are spread over NUMA nodes.
pub(super) fn compare(placements: &[Placement], why: &mut Vec<Reason>) {
    let sizes: BTreeSet<_> = placements.iter().map(|placement| placement.cores).collect();
    if let (Some(least), Some(most)) = (sizes.first(), sizes.last())
        && least < most
    {
        let text = format!("instances differ in size: {least} to {most} cores");
        why.push(Reason::caution("cpus", text));
    }
    for placement in placements.iter().filter(|placement| placement.cpu_numas.len() > 1) {
        let text = format!(
            "instance {} spans NUMA nodes {}: part of its memory is remote to each of its cpus",
            placement.instance, placement.cpu_numas
        );
        why.push(Reason::new("numa", text));
    }
    let numas: Vec<&NumaSet> = placements.iter().map(|p| &p.cpu_numas).collect();
    let shared = |numa: &NumaId| numas.iter().filter(|of| of.contains(*numa)).count() > 1;
    let all: NumaSet = numas.iter().flat_map(|of| of.iter()).collect();
    let shared: NumaSet = all.iter().filter(shared).collect();
    if !shared.is_empty() {
        let text = format!(
            "on NUMA nodes {} instances share memory channels: its memory is divided by cores",
            shared
        );
        why.push(Reason::new("numa", text));
    }
}

/// The NUMA nodes that an instance's cores are on, with how many of them.
pub(super) fn cores_by_numa(part: &[Core]) -> Vec<(NumaId, u64)> {
    let count = |numa| part.iter().filter(|core| core.numa == numa).count() as u64;
    numas_of(part).iter().map(|numa| (numa, count(numa))).collect()
}
