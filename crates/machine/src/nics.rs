//! Network interfaces: speed, place, queues, driver, interrupts.
//!
//! Input: `sys/class/net`, `proc/irq`. Output: [`Nic`]s, by name; only those with a device behind
//! them, so no loopback, bridges or tunnels. Ring sizes, coalescing and RSS keys are behind ioctls:
//! not read; of the firmware's revision only what RDMA drivers show in sysfs.
//! Source: the kernel's Documentation/ABI/testing/sysfs-class-net, core-api/irq/irq-affinity.rst.

use crate::source::Source;
use crate::topology::as_numa_number;
use serde::{Serialize, Serializer};
use units::{CpuSet, NumaId};

/// A network interface with a device behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// As the kernel names it.
    pub name: String,
    /// Whether the link is up; `None` where the driver does not say.
    pub up: Option<bool>,
    /// Speed of the link in Mbit/s; virtual devices have none.
    pub speed_mbit_s: Option<u32>,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u32>,
    /// The NUMA node of its device; `None` where the firmware does not say (-1).
    #[serde(serialize_with = "as_numa_number")]
    pub numa: Option<NumaId>,
    /// Receive queues.
    pub rx_queues: usize,
    /// Transmit queues.
    pub tx_queues: usize,
    /// The kernel's driver: `mlx5_core`, `ice`, `virtio_net`.
    pub driver: Option<String>,
    /// Revision of its firmware.
    pub firmware: Option<String>,
    /// Its interrupts, ascending.
    #[serde(serialize_with = "as_map")]
    pub irqs: Vec<Irq>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irq {
    /// The kernel's number.
    pub number: u32,
    /// Cpus that may serve it; `None` where the tree does not say.
    pub cpus: Option<CpuSet>,
}

pub(crate) fn read(source: &Source) -> Vec<Nic> {
    let nic = |name: String| {
        let dir = format!("sys/class/net/{name}");
        let device = format!("{dir}/device");
        if !source.exists(&device) {
            return None;
        }
        let file = |what: &str| format!("{dir}/{what}");
        let queues = |prefix| source.numbered(&file("queues"), prefix).len();
        Some(Nic {
            up: match source.text(&file("operstate")).as_deref() {
                Some("up") => Some(true),
                Some("down" | "lowerlayerdown" | "notpresent") => Some(false),
                _ => None,
            },
            // -1 where there is no link, which is no u32.
            speed_mbit_s: source.number(&file("speed")).filter(|speed| *speed > 0),
            mtu_bytes: source.number(&file("mtu")),
            numa: source.numa_of_device(&device),
            rx_queues: queues("rx-"),
            tx_queues: queues("tx-"),
            driver: source.link_name(&format!("{device}/driver")),
            firmware: firmware(source, &device),
            irqs: irqs(source, &device),
            name,
        })
    };
    source.names("sys/class/net").into_iter().filter_map(nic).collect()
}

fn firmware(source: &Source, device: &str) -> Option<String> {
    let rdma = format!("{device}/infiniband");
    let revision = |name: String| source.text(&format!("{rdma}/{name}/fw_ver"));
    source.names(&rdma).into_iter().find_map(revision).filter(|text| !text.is_empty())
}

/// Message-signalled interrupts; those of a virtio device are at the PCI device above it.
fn irqs(source: &Source, device: &str) -> Vec<Irq> {
    let numbers = ["msi_irqs", "../msi_irqs"]
        .iter()
        .map(|dir| source.numbered(&format!("{device}/{dir}"), ""))
        .find(|numbers| !numbers.is_empty())
        .unwrap_or_default();
    let irq = |number: u32| Irq {
        number,
        cpus: source.cpus(
            &[&format!("proc/irq/{number}/smp_affinity_list")],
            &[&format!("proc/irq/{number}/smp_affinity")],
        ),
    };
    numbers.into_iter().map(irq).collect()
}

fn as_map<S: Serializer>(irqs: &[Irq], to: S) -> Result<S::Ok, S::Error> {
    let cpus = |irq: &Irq| irq.cpus.as_ref().map(CpuSet::to_string);
    to.collect_map(irqs.iter().map(|irq| (irq.number.to_string(), cpus(irq))))
}
