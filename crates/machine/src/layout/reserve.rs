//! Cores that no instance gets: for the operating system, for interrupts, for a local client.
//!
//! Input: counts of cores, or lists of cpus. Output: cpus. Lists are taken first. A count for the
//! operating system takes the lowest cores, where the kernel does most of its own work; one for
//! interrupts the lowest that are left on the NIC's NUMA node; one for the client the last cores of
//! the machine, which a small budget in compact order does not touch, so that the client is the
//! same for every budget. Whole cores always.

use super::places::Places;
use super::{LayoutError, Reason};
use std::str::FromStr;
use units::{CpuId, CpuSet, NumaId};

/// So many cores, or the cores of these cpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amount {
    /// A number alone.
    Cores(u32),
    /// A list: `0-1` or `0,64`; a single cpu is `5-5`.
    Cpus(CpuSet),
}

impl FromStr for Amount {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        if let Ok(cores) = text.parse() {
            return Ok(Self::Cores(cores));
        }
        let cpus: Option<CpuSet> = text.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty());
        cpus.map(Self::Cpus).ok_or_else(|| LayoutError::Amount { given: text.to_owned() })
    }
}

/// What is kept for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reserve {
    /// The operating system.
    pub os: Option<Amount>,
    /// Interrupts.
    pub irq: Option<Amount>,
    /// A client on this host.
    pub client: Option<Amount>,
}

/// What was taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    pub(super) all: CpuSet,
    pub(super) client: CpuSet,
}

pub(super) fn take(
    reserve: &Reserve,
    places: &Places,
    nic_numa: Option<NumaId>,
    why: &mut Vec<Reason>,
) -> Result<Taken, LayoutError> {
    let asked = [
        ("the operating system", &reserve.os, Where::First),
        ("interrupts", &reserve.irq, nic_numa.map_or(Where::First, Where::On)),
        ("a local client", &reserve.client, Where::Last),
    ];
    let mut all = CpuSet::default();
    let mut client = CpuSet::default();
    // Lists before counts: a count goes around them.
    for lists in [true, false] {
        for (whom, amount, place) in &asked {
            let cpus = match amount {
                Some(Amount::Cpus(list)) if lists => whole_cores(places, list, &all)?,
                Some(Amount::Cores(count)) if !lists => counted(places, *count, *place, &all)?,
                _ => continue,
            };
            if *place == Where::Last {
                client = cpus.clone();
            }
            why.push(Reason::new("reserve", format!("{cpus} for {whom}{}", place.text())));
            all = all.iter().chain(cpus.iter()).collect();
        }
    }
    Ok(Taken { all, client })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    First,
    On(NumaId),
    Last,
}

impl Where {
    fn text(self) -> String {
        match self {
            Self::First => ": the lowest cores".to_owned(),
            Self::On(numa) => format!(": on NUMA node {}, where the NIC is", numa.0),
            Self::Last => ": the last cores, the same for every budget in compact order".to_owned(),
        }
    }
}

/// All usable cpus of the cores that `list` touches.
fn whole_cores(places: &Places, list: &CpuSet, taken: &CpuSet) -> Result<CpuSet, LayoutError> {
    let absent = list.difference(&places.cpus());
    if !absent.is_empty() {
        return Err(LayoutError::ReserveAbsent { cpus: absent, usable: places.cpus() });
    }
    let touched = places.cores.iter().filter(|core| !core.cpus.intersection(list).is_empty());
    let cpus: CpuSet = touched.flat_map(|core| core.cpus.iter()).collect();
    let twice = cpus.intersection(taken);
    if !twice.is_empty() {
        return Err(LayoutError::ReservedTwice { cpus: twice });
    }
    Ok(cpus)
}

fn counted(
    places: &Places,
    count: u32,
    place: Where,
    taken: &CpuSet,
) -> Result<CpuSet, LayoutError> {
    let mut free: Vec<_> = places.without(taken).cores;
    match place {
        Where::First => free.sort_by_key(|core| core.id),
        // The NIC's own first, then the others in order.
        Where::On(numa) => free.sort_by_key(|core| (core.numa != numa, core.id)),
        Where::Last => free.reverse(),
    }
    if free.len() < count as usize {
        return Err(LayoutError::ReserveTooMany { asked: count, free: free.len() });
    }
    let cpus: Vec<CpuId> =
        free.iter().take(count as usize).flat_map(|core| core.cpus.iter()).collect();
    Ok(cpus.into_iter().collect())
}
