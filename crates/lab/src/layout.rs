//! Where the instances of a target on this host go: a policy becomes places.
//!
//! In: a machine, the cpus that a target may have, and a [`Policy`]. Out: a [`Place`] for each
//! instance, bound to its cpus and to the memory of their NUMA nodes, with the planner's reasons.
//! Beside the planner's policies there is `N-shared`: so many instances, none bound to a part, all
//! on all cpus of the budget. Against it shows whether it is the number of instances that counts,
//! or the binding. Source: Talreja et al., ICPE 2019 (several servers per host, each bound).

use machine::Machine;
use machine::layout::{self, Budget, LayoutError, Order, Request};
use stage::cassandra::HeapAsked;
use stage::{MemoryPolicy, Place};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use units::CpuSet;

pub use machine::layout::Database;

/// More instances than this are no experiment on one host.
const SHARED_MAX: u32 = 64;

/// How many instances, and along which borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policy {
    /// Each has its part of the budget.
    Parts(layout::Policy),
    /// So many on all of it.
    Shared(u32),
}

/// A policy that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}; or a number of instances that all run on all cpus, like 3-shared")]
pub struct PolicyError(String);

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let shared = text.strip_suffix("-shared").and_then(|count| count.parse::<u32>().ok());
        match shared {
            Some(count @ 1..=SHARED_MAX) => Ok(Self::Shared(count)),
            _ => text.parse().map(Self::Parts).map_err(|e: LayoutError| PolicyError(e.to_string())),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(policy) => write!(f, "{policy}"),
            Self::Shared(count) => write!(f, "{count}-shared"),
        }
    }
}

/// What is laid out.
#[derive(Debug, Clone)]
pub struct Asked {
    /// How.
    pub policy: Policy,
    /// On so many NUMA nodes; None is all of `cpus`.
    pub numa_count: Option<u32>,
    /// These from each package in turn, and not one package before the next.
    pub order: Option<Order>,
    /// The cpus that the target may have.
    pub cpus: CpuSet,
    /// What runs there.
    pub database: Database,
    /// Of a Cassandra: its heap is to fit into the memory of its NUMA nodes.
    pub heap: Option<HeapAsked>,
}

/// Lays instances out.
///
/// # Errors
/// [`LayoutError`], when the machine has no such places.
pub fn lay_out(
    machine: &Machine,
    asked: &Asked,
) -> Result<(Vec<Place>, layout::Layout), LayoutError> {
    let (policy, copies) = match &asked.policy {
        Policy::Parts(policy) => (policy.clone(), 1),
        Policy::Shared(count) => (layout::Policy::Single, *count as usize),
    };
    let cpus = Some(asked.cpus.clone());
    let mut request = Request {
        policy,
        budget: Budget { numa_count: asked.numa_count, order: asked.order, cpus },
        database: asked.database,
        ..Request::default()
    };
    let mut layout = layout::plan(machine, &request)?;
    if let (Some(heap), Database::Cassandra) = (asked.heap, asked.database) {
        // How many share a total is known only now.
        let instances = layout.placements.len() * copies;
        request.heap = Some(heap.each(u32::try_from(instances).unwrap_or(u32::MAX)));
        layout = layout::plan(machine, &request)?;
    }
    let place = |placement: &layout::Placement| {
        let numas = &placement.memory_numas;
        let memory = match numas.is_empty() {
            true => MemoryPolicy::Local,
            false => MemoryPolicy::Bind(numas.clone()),
        };
        Place { cpus: placement.cpus.clone(), memory }
    };
    let places: Vec<Place> = layout.placements.iter().map(place).collect();
    let places = places.iter().cycle().take(places.len() * copies).cloned().collect();
    Ok((places, layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use units::Bytes;

    fn places(policy: &str, numa_count: Option<u32>) -> Vec<String> {
        let machine = Machine::synthetic("package:2 die:2 numa:1 llc:1 core:2 cpu:2").unwrap();
        let asked = Asked {
            policy: policy.parse().unwrap(),
            numa_count,
            order: None,
            cpus: machine.online.clone(),
            database: Database::Reference,
            heap: None,
        };
        lay_out(&machine, &asked).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_heaps_of_an_arm_are_parts_of_one_total() {
        let machine = Machine::read(Path::new("/")).unwrap();
        let heaps = |policy: &str, heap| {
            let asked = Asked {
                policy: policy.parse().unwrap(),
                numa_count: None,
                order: None,
                cpus: machine.online.clone(),
                database: Database::Cassandra,
                heap: Some(heap),
            };
            let (places, layout) = lay_out(&machine, &asked)?;
            let each = layout.placements[0].heap_bytes;
            Ok::<_, LayoutError>((places.len(), each.unwrap() >> 20))
        };
        let total = |mib: u64| HeapAsked::Total(Bytes(mib << 20));
        assert_eq!(heaps("single", total(512)), Ok((1, 512)));
        assert_eq!(heaps("2-shared", total(512)), Ok((2, 256)));
        assert_eq!(heaps("2-shared", HeapAsked::Each(Bytes(512 << 20))), Ok((2, 512)));
        let error = heaps("single", HeapAsked::Total(Bytes(1 << 50))).unwrap_err().to_string();
        assert!(error.contains("heap"), "{error}");
    }

    #[test]
    fn parts_are_bound_and_shares_have_all_of_the_budget() {
        assert_eq!(places("single", None), ["0-15@0-3"]);
        assert_eq!(places("per-package", None), ["0-3,8-11@0-1", "4-7,12-15@2-3"]);
        assert_eq!(places("per-numa", Some(2)), ["0-1,8-9@0", "2-3,10-11@1"]);
        assert_eq!(places("2-shared", Some(1)), ["0-1,8-9@0", "0-1,8-9@0"]);
        for text in ["single", "4", "3-shared"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        for text in ["0-shared", "65-shared", "x-shared", "per-socket"] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains("3-shared") && error.contains("per-numa"), "{error}");
        }
    }
}
