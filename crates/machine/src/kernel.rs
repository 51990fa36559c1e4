//! The numbers below `/proc/sys` that databases give advice on.
//!
//! Input: `proc/sys` and `proc/swaps`. Output: [`Sysctls`] in the kernel's units, sizes in bytes.

use crate::source::Source;

/// Settings by their name under `/proc/sys`; `None` where the tree does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sysctls {
    /// `vm.max_map_count`.
    pub max_map_count: Option<u64>,
    /// `vm.min_free_kbytes`, in bytes.
    pub min_free_bytes: Option<u64>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.core.rmem_max`, in bytes.
    pub rmem_max_bytes: Option<u64>,
    /// `net.core.wmem_max`, in bytes.
    pub wmem_max_bytes: Option<u64>,
    /// The largest of `net.ipv4.tcp_rmem`, in bytes.
    pub tcp_rmem_max_bytes: Option<u64>,
    /// The largest of `net.ipv4.tcp_wmem`, in bytes.
    pub tcp_wmem_max_bytes: Option<u64>,
    /// `net.ipv4.tcp_keepalive_time`, in seconds.
    pub tcp_keepalive_s: Option<u64>,
}

pub(crate) fn read(source: &Source) -> Sysctls {
    let number = |name: &str| source.number(&format!("proc/sys/{name}"));
    let largest = |name: &str| -> Option<u64> {
        source.text(&format!("proc/sys/{name}"))?.split_whitespace().last()?.parse().ok()
    };
    let min_free_kib: Option<u64> = number("vm/min_free_kbytes");
    Sysctls {
        max_map_count: number("vm/max_map_count"),
        min_free_bytes: min_free_kib.and_then(|kib| kib.checked_mul(1024)),
        somaxconn: number("net/core/somaxconn"),
        rmem_max_bytes: number("net/core/rmem_max"),
        wmem_max_bytes: number("net/core/wmem_max"),
        tcp_rmem_max_bytes: largest("net/ipv4/tcp_rmem"),
        tcp_wmem_max_bytes: largest("net/ipv4/tcp_wmem"),
        tcp_keepalive_s: number("net/ipv4/tcp_keepalive_time"),
    }
}

/// Bytes of swap in use, from the table of `proc/swaps`: name, type, size and used in KiB.
pub(crate) fn swap_used(source: &Source) -> Option<u64> {
    let table = source.text("proc/swaps")?;
    let used = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3));
    used.map(|kib| kib.parse::<u64>().ok()?.checked_mul(1024))
        .try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))
}
