//! The planner: which instances of a database go where on a machine, and why.
//!
//! Input: a [`Machine`] and a [`Request`]. Output: a [`Layout`]: for each instance its cpus, memory
//! nodes, memory in bytes, NIC, disk, address and ports, with a reason for each choice; or why that
//! cannot be. Pure: the same input gives the same output, and nothing is read or changed.
//!
//! A layout never overlaps, never leaves its budget, and never splits a physical core unless asked.
//! In compact order a larger budget keeps the cpus of a smaller one.
//!
//! Source: Talreja et al., "Performance Scaling of Cassandra on High-Thread Count Servers", ICPE
//! 2019 (one instance, one per socket, one per NUMA node over 1, 2, 4, 8 dies). Limits: one host;
//! memory-only NUMA nodes are left alone and said so.

mod addresses;
mod advice;
mod budget;
mod devices;
mod error;
mod explain;
mod memory;
mod parts;
mod places;
mod policy;
mod reserve;
pub mod sizing;

pub use addresses::{Addresses, Port};
pub use advice::{Database, aerospike_data_bytes};
pub use budget::{Budget, Order};
pub use devices::{Device, Devices};
pub use error::LayoutError;
pub use memory::MemoryAsked;
pub use policy::Policy;
pub use reserve::{Amount, Reserve};

use crate::Machine;
use places::Places;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use units::{Bytes, CpuSet, IdSet, NumaSet};

/// Which cpus of a core an instance gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smt {
    /// All of them.
    #[default]
    All,
    /// The lowest one.
    One,
}

impl FromStr for Smt {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        match text {
            "all" => Ok(Self::All),
            "one" => Ok(Self::One),
            _ => Err(LayoutError::Smt { given: text.to_owned() }),
        }
    }
}

/// What is asked for. The default is one instance over the whole machine.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// How many instances, and along which borders.
    pub policy: Policy,
    /// What they may take together.
    pub budget: Budget,
    /// What they may not.
    pub reserve: Reserve,
    /// Whole cores or one cpu of each.
    pub smt: Smt,
    /// Two instances may share a physical core.
    pub split_cores: bool,
    /// Memory of an instance.
    pub memory: MemoryAsked,
    /// Heap of an instance, where it has one.
    pub heap: Option<Bytes>,
    /// What runs there.
    pub database: Database,
    /// Where instances listen.
    pub addresses: Addresses,
    /// NICs and disks to choose from.
    pub devices: Devices,
}

/// Where one instance goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Its number, from 1.
    pub instance: u32,
    /// Its cpus.
    #[serde(serialize_with = "as_list")]
    pub cpus: CpuSet,
    /// Physical cores that these are on.
    pub cores: u32,
    /// NUMA nodes that these are on.
    #[serde(serialize_with = "as_list")]
    pub cpu_numas: NumaSet,
    /// NUMA nodes that its memory comes from; empty where the machine shows none: then memory is
    /// not bound.
    #[serde(serialize_with = "as_list")]
    pub memory_numas: NumaSet,
    /// What it may take in all; `None` where the machine's memory is not known.
    pub memory_bytes: Option<u64>,
    /// Its Java heap, for Cassandra.
    pub heap_bytes: Option<u64>,
    /// The position, among the NUMA nodes that have cpus, of the one whose online cpus it has all
    /// and no others.
    pub whole_numa: Option<u32>,
    /// The NIC that is nearest, when it listens on an address of the network.
    pub nic: Option<String>,
    /// It is on a NUMA node of the instance.
    pub nic_is_near: bool,
    /// The disk that is nearest.
    pub disk: Option<String>,
    /// Where it listens.
    pub address: IpAddr,
    /// On which ports.
    pub ports: Vec<Port>,
}

impl Placement {
    /// The number of the port of this name; the names are those of [`Database::ports`].
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u16> {
        self.ports.iter().find(|port| port.name == name).map(|port| port.number)
    }
}

/// Why something is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What it is about: `policy`, `budget`, `reserve`, `cpus`, `memory`, `heap`, ...
    pub about: &'static str,
    /// One or two sentences.
    pub text: String,
    /// It lowers the worth of a result.
    pub caution: bool,
}

impl Reason {
    /// An ordinary one.
    pub fn new(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), caution: false }
    }

    /// One that lowers the worth of a result.
    pub fn caution(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), caution: true }
    }
}

/// All instances, and why they are where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// The policy, as text.
    pub policy: String,
    /// What runs there.
    pub database: Database,
    /// NUMA nodes of the budget; empty where the machine shows none.
    #[serde(serialize_with = "as_list")]
    pub budget_numas: NumaSet,
    /// Ascending by instance.
    pub placements: Vec<Placement>,
    /// Cpus kept for others.
    #[serde(serialize_with = "as_list")]
    pub reserved: CpuSet,
    /// Cpus kept for a local client; part of `reserved`.
    #[serde(serialize_with = "as_list")]
    pub client: CpuSet,
    /// Each choice.
    pub why: Vec<Reason>,
}

impl Layout {
    /// All cpus of all instances.
    #[must_use]
    pub fn cpus(&self) -> CpuSet {
        self.placements.iter().flat_map(|placement| placement.cpus.iter()).collect()
    }
}

/// Lays instances out.
///
/// # Errors
/// [`LayoutError`], which names the thing that cannot be and the cure.
pub fn plan(machine: &Machine, request: &Request) -> Result<Layout, LayoutError> {
    let mut why = Vec::new();
    let places = Places::of(machine, request.budget.cpus.as_ref(), &mut why)?;
    let near_nic = request.devices.first_nic_numa();
    let taken = reserve::take(&request.reserve, &places, near_nic, &mut why)?;
    let free = places.without(&taken.all);
    if free.cores.is_empty() {
        return Err(LayoutError::NothingLeft { reserved: taken.all });
    }
    let numas = budget::choose(&request.budget, &request.policy, &free, &mut why)?;
    let budget = free.only(&numas);
    let parts = parts::split(request, &budget, &mut why)?;
    let memory = memory::share(request, &places, &parts, &mut why)?;
    let mut placements = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let cpu_numas = places::numas_of(part);
        let memory_numas = match places.numa_known {
            true => memory.numas[index].clone(),
            false => NumaSet::default(),
        };
        placements.push(Placement {
            instance: index as u32 + 1,
            cpus: parts::cpus(part, request),
            cores: parts::physical_cores(part),
            cpu_numas,
            memory_numas,
            memory_bytes: memory.each_bytes,
            heap_bytes: memory.heap_bytes,
            whole_numa: None,
            nic: None,
            nic_is_near: false,
            disk: None,
            address: IpAddr::from([127, 0, 0, 1]),
            ports: Vec::new(),
        });
    }
    for placement in &mut placements {
        let mut with_cpus = machine.numa.iter().filter(|numa| !numa.cpus.is_empty());
        let whole = with_cpus.position(|numa| numa.cpus == placement.cpus);
        placement.whole_numa = whole.map(|position| position as u32);
    }
    parts::compare(&placements, &mut why);
    devices::choose(request, &mut placements, &mut why);
    addresses::give(request, &mut placements, &mut why)?;
    Ok(Layout {
        policy: request.policy.to_string(),
        database: request.database,
        budget_numas: numas.into_iter().filter(|_| places.numa_known).collect(),
        placements,
        reserved: taken.all,
        client: taken.client,
        why,
    })
}

/// As the kernel lists cpus and NUMA nodes: `0-3,8`.
fn as_list<I, S: Serializer>(ids: &IdSet<I>, serializer: S) -> Result<S::Ok, S::Error>
where
    IdSet<I>: fmt::Display,
{
    serializer.collect_str(ids)
}
