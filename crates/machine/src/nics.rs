//! Network interfaces: speed, place, queues.
//!
//! Input: `sys/class/net`. Output: [`Nic`]s, by name; only those with a device behind them, so no
//! loopback, bridges or tunnels. Ring sizes, coalescing and RSS keys are behind ioctls: not read.
//! Source: the kernel's Documentation/ABI/testing/sysfs-class-net.

use crate::source::Source;
use units::NumaId;

/// A network interface with a device behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub numa: Option<NumaId>,
    /// Receive queues.
    pub rx_queues: usize,
    /// Transmit queues.
    pub tx_queues: usize,
}

pub(crate) fn read(source: &Source) -> Vec<Nic> {
    let nic = |name: String| {
        let dir = format!("sys/class/net/{name}");
        if source.names(&format!("{dir}/device")).is_empty() {
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
            numa: source.number(&file("device/numa_node")).map(NumaId),
            rx_queues: queues("rx-"),
            tx_queues: queues("tx-"),
            name,
        })
    };
    source.names("sys/class/net").into_iter().filter_map(nic).collect()
}
