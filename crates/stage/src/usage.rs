//! What a process has used: memory at its highest, cpu time.
//!
//! Input: `/proc/PID/{stat,status}` (proc(5)). Output: [`Usage`].
//! Limits: cpu time counts in clock ticks, mostly of 10 ms; for this process
//! [`units::clock::process_cpu`] is finer.

use crate::process::Stat;
use crate::verify::field;
use rustix::param::clock_ticks_per_second;
use std::fs;
use units::{Bytes, Nanos};

/// What a process has used since its start, all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory now (VmRSS).
    pub rss: Bytes,
    /// Resident memory at its highest (VmHWM).
    pub rss_max: Bytes,
    /// Time in user mode.
    pub cpu_user: Nanos,
    /// Time in the kernel.
    pub cpu_system: Nanos,
}

/// What process `pid` has used; `None` when there is no such process.
#[must_use]
pub fn of(pid: u32) -> Option<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let stat = Stat::read(pid).ok()?;
    // Kernel threads and zombies have no such lines.
    let size = |key| Bytes(field(&status, key).and_then(kib).unwrap_or(0));
    Some(Usage {
        rss: size("VmRSS"),
        rss_max: size("VmHWM"),
        cpu_user: ticks(stat.user_ticks, clock_ticks_per_second()),
        cpu_system: ticks(stat.system_ticks, clock_ticks_per_second()),
    })
}

/// What this process has used.
#[must_use]
pub fn of_self() -> Option<Usage> {
    of(std::process::id())
}

/// The bytes of `1234 kB`.
fn kib(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn ticks(ticks: u64, per_s: u64) -> Nanos {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(per_s.max(1));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_bytes_and_nanoseconds() {
        assert_eq!(kib("2048 kB"), Some(2 << 20));
        assert_eq!(kib("2048"), None);
        assert_eq!(kib("18446744073709551615 kB"), None);
        assert_eq!(ticks(150, 100), Nanos::from_millis(1500));
        assert_eq!(ticks(u64::MAX, 0), Nanos::MAX);
    }

    #[test]
    fn this_process_has_used_memory() {
        let usage = of_self().unwrap();
        assert!(usage.rss_max > Bytes(100 << 10), "{usage:?}");
        assert!(usage.rss > Bytes(100 << 10), "{usage:?}");
        assert_eq!(of(u32::MAX), None);
    }
}
