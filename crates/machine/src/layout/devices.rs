//! The NIC and the disk nearest to each instance.
//!
//! Input: NICs and disks with their NUMA node, where known. Output: names in the placements. An
//! instance gets one on a NUMA node of its own; several near ones are given in turn; where none is
//! near, or the firmware does not say where they are, all are given in turn and a reason says so.

use super::{Addresses, Placement, Reason, Request};
use crate::Machine;
use units::NumaId;

/// A NIC or a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// As the kernel names it.
    pub name: String,
    /// Its NUMA node; `None` where the firmware does not say (-1).
    pub numa: Option<NumaId>,
}

/// What can be chosen from, in order of preference. Empty lists choose nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Devices {
    /// NICs whose link is up.
    pub nics: Vec<Device>,
    /// Disks that may hold data.
    pub disks: Vec<Device>,
}

impl Devices {
    /// Those of a machine: NICs that are not known to be down, the fastest first; disks that do
    /// not turn before those that do.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let mut nics: Vec<_> = machine.nics.iter().filter(|nic| nic.up != Some(false)).collect();
        nics.sort_by_key(|nic| std::cmp::Reverse(nic.speed_mbit_s));
        let mut disks: Vec<_> = machine.disks.iter().collect();
        disks.sort_by_key(|disk| disk.rotational.unwrap_or(true));
        let device = |name: &String, numa| Device { name: name.clone(), numa };
        Self {
            nics: nics.into_iter().map(|nic| device(&nic.name, nic.numa)).collect(),
            disks: disks.into_iter().map(|disk| device(&disk.name, disk.numa)).collect(),
        }
    }

    pub(super) fn first_nic_numa(&self) -> Option<NumaId> {
        self.nics.first().and_then(|nic| nic.numa)
    }
}

pub(super) fn choose(request: &Request, placements: &mut [Placement], why: &mut Vec<Reason>) {
    // Loopback has no NIC.
    if request.addresses != Addresses::Loopback {
        let names = assign("nic", &request.devices.nics, placements, why);
        for (placement, name) in placements.iter_mut().zip(names) {
            let near = |numa: NumaId| placement.cpu_numas.contains(numa);
            let of = request.devices.nics.iter().find(|nic| Some(&nic.name) == name.as_ref());
            placement.nic_is_near = of.and_then(|nic| nic.numa).is_some_and(near);
            placement.nic = name;
        }
    }
    let names = assign("disk", &request.devices.disks, placements, why);
    for (placement, name) in placements.iter_mut().zip(names) {
        placement.disk = name;
    }
}

fn assign(
    about: &'static str,
    devices: &[Device],
    placements: &[Placement],
    why: &mut Vec<Reason>,
) -> Vec<Option<String>> {
    let mut given = vec![0_u32; devices.len()];
    let mut names = Vec::new();
    for placement in placements {
        let near = |device: &Device| device.numa.is_some_and(|n| placement.cpu_numas.contains(n));
        // Near before far, then who has the fewest, then as listed.
        let best = (0..devices.len()).min_by_key(|&i| (!near(&devices[i]), given[i], i));
        let Some(best) = best else {
            names.push(None);
            continue;
        };
        given[best] += 1;
        let device = &devices[best];
        let (instance, name) = (placement.instance, &device.name);
        let reason = match device.numa {
            Some(numa) if near(device) => Reason::new(
                about,
                format!("instance {instance}: {name}, on its NUMA node {}", numa.0),
            ),
            Some(numa) => Reason::caution(
                about,
                format!("instance {instance}: {name} is on NUMA node {}, none is nearer", numa.0),
            ),
            None => Reason::new(
                about,
                format!("instance {instance}: {name}; the firmware does not say where it is"),
            ),
        };
        why.push(reason);
        names.push(Some(name.clone()));
    }
    names
}
