//! What instances may take together: NUMA nodes, in an order.
//!
//! Input: how many, in which order. Output: NUMA nodes in the order in which they are taken. In
//! either order a larger budget keeps the nodes of a smaller one. Source: the dies of the ICPE 2019
//! study: its base and tuning-2 fill one socket first, its tuning-1 takes them from both in turn.

use super::places::Places;
use super::{LayoutError, Policy, Reason};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuSet, NumaId, NumaSet};

/// In which order NUMA nodes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All of a package before the next one.
    Compact,
    /// From each package in turn.
    Spread,
}

/// What instances may take together. The default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Budget {
    /// So many NUMA nodes that have cpus.
    pub numa_count: Option<u32>,
    /// Which ones; by default spread for one instance per package, else compact.
    pub order: Option<Order>,
    /// No other cpus than these.
    pub cpus: Option<CpuSet>,
}

pub(super) fn choose(
    budget: &Budget,
    policy: &Policy,
    free: &Places,
    why: &mut Vec<Reason>,
) -> Result<Vec<NumaId>, LayoutError> {
    let order = budget.order.unwrap_or(match policy {
        Policy::PerPackage => Order::Spread,
        _ => Order::Compact,
    });
    let all = match order {
        Order::Compact => compact(free),
        Order::Spread => spread(free),
    };
    let count = budget.numa_count.map_or(all.len(), |count| count as usize);
    if count == 0 || count > all.len() {
        return Err(LayoutError::NumaCount { asked: count, have: all.len() });
    }
    let chosen = all[..count].to_vec();
    if !free.numa_known {
        return Ok(chosen);
    }
    let how = match (order, budget.order, count == all.len()) {
        (_, _, true) => "which is all",
        (Order::Compact, _, _) => "one package before the next",
        (Order::Spread, Some(_), _) => "from each package in turn",
        (Order::Spread, None, _) if count >= packages(free) => {
            "from each package in turn, so that every package can have its instance"
        }
        (Order::Spread, None, _) => "from each package in turn, too few for every package",
    };
    let ascending: NumaSet = chosen.iter().copied().collect();
    let text = match all.len() {
        1 => format!("the one NUMA node with free cores: {ascending}"),
        all => format!("{count} of {all} NUMA nodes with free cores: {ascending}, {how}"),
    };
    why.push(Reason::new("budget", text));
    Ok(chosen)
}

/// Packages that have free cores.
fn packages(free: &Places) -> usize {
    free.cores.iter().map(|core| core.package).collect::<BTreeSet<_>>().len()
}

/// As the cores are ordered.
fn compact(free: &Places) -> Vec<NumaId> {
    let mut numas = Vec::new();
    for core in &free.cores {
        if !numas.contains(&core.numa) {
            numas.push(core.numa);
        }
    }
    numas
}

/// The first of each package, then the second of each.
fn spread(free: &Places) -> Vec<NumaId> {
    let mut of_package: BTreeMap<u32, Vec<NumaId>> = BTreeMap::new();
    let mut seen = Vec::new();
    for core in &free.cores {
        // A NUMA node over several packages counts with the lowest.
        if !seen.contains(&core.numa) {
            seen.push(core.numa);
            of_package.entry(core.package).or_default().push(core.numa);
        }
    }
    let rounds = of_package.values().map(Vec::len).max().unwrap_or(0);
    (0..rounds)
        .flat_map(|round| of_package.values().filter_map(move |numas| numas.get(round).copied()))
        .collect()
}
