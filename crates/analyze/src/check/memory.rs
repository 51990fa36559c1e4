//! Memory, swap, huge pages, NUMA.

use super::Source::{AeroBp, DsSet, DsThp, IntelC, Kernel, Pkb};
use super::{Finding, Group, Host, absent};
use units::Bytes;

const MAX_MAP_COUNT_MIN: u64 = 1_048_575;
/// What Aerospike wants; for others only to be known.
const MIN_FREE_BYTES: u64 = 1_100_000 << 10;

pub(super) fn findings(host: &Host<'_>) -> Vec<Finding> {
    vec![
        size(host),
        group_limit(host),
        swap(host),
        swappiness(host),
        thp_enabled(host),
        thp_defrag(host),
        max_map_count(host),
        zone_reclaim(host),
        numa_balancing(host),
        min_free(host),
    ]
}

fn size(host: &Host<'_>) -> Finding {
    let limit = "recorded; data and memory decide what is cached";
    let finding = Finding::new(Group::Memory, "memory.size", "memory", limit, &[IntelC]);
    let numa = host.facts.machine.numa.iter().filter(|n| n.memory_bytes != Some(0)).count();
    match host.facts.machine.settings.memory_bytes {
        Some(bytes) => finding.value(format!("{} on {} NUMA", Bytes(bytes), numa.max(1))),
        None => finding.unknown(absent("MemTotal in proc/meminfo")),
    }
}

fn group_limit(host: &Host<'_>) -> Finding {
    let finding =
        Finding::new(Group::Memory, "memory.cgroup", "memory of the cgroup", "none", &[Kernel]);
    match host.facts.machine.memory_limit_bytes {
        None => finding.value("no limit below the memory"),
        Some(limit) => finding.value(Bytes(limit)).warn(
            "what is started from here gets no more, its page cache included; beyond it the kernel \
             drops cache, then kills",
            "raise memory.max of the cgroup (systemd: MemoryMax=), or start from outside it",
        ),
    }
}

fn swap(host: &Host<'_>) -> Finding {
    let finding = Finding::new(Group::Memory, "memory.swap", "swap", "none", &[DsSet]);
    let Some(size) = host.facts.machine.settings.swap_bytes else {
        return finding.unknown(absent("SwapTotal in proc/meminfo"));
    };
    let used = host.facts.swap_used_bytes.unwrap_or(0);
    match (size, used) {
        (0, _) => finding.value("none"),
        (size, 0) => finding.value(format!("{}, none used", Bytes(size))).warn(
            "pages of the database may be swapped out: pauses of milliseconds to seconds",
            "swapoff --all",
        ),
        (size, used) => finding.value(format!("{} of {} used", Bytes(used), Bytes(size))).fail(
            "memory is short and pages are on disk: latencies are those of the swap device",
            "end what fills the memory, then swapoff --all",
        ),
    }
}

fn swappiness(host: &Host<'_>) -> Finding {
    let finding =
        Finding::new(Group::Memory, "memory.swappiness", "swappiness", "0 or 1", &[AeroBp, DsSet]);
    match host.facts.machine.settings.swappiness {
        None => finding.unknown(absent("vm/swappiness")),
        Some(value) if value <= 1 => finding.value(value),
        // Nothing to swap to.
        Some(value) if host.facts.machine.settings.swap_bytes == Some(0) => {
            finding.value(format!("{value}, without swap"))
        }
        Some(value) => finding
            .value(value)
            .warn("the kernel swaps to keep its page cache", "sysctl -w vm.swappiness=1"),
    }
}

fn thp_enabled(host: &Host<'_>) -> Finding {
    let limit = "always or madvise (Cassandra)";
    let sources = &[IntelC, DsThp, AeroBp];
    let finding = Finding::new(Group::Memory, "memory.thp", "huge pages", limit, sources);
    match host.facts.machine.settings.thp_enabled.as_deref() {
        None => finding.unknown(absent("transparent_hugepage/enabled")),
        Some(value @ "never") => finding.value(value).warn(
            "a heap of small pages costs address translation; Aerospike alone wants never",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(value) => finding.value(value),
    }
}

fn thp_defrag(host: &Host<'_>) -> Finding {
    let sources = &[DsThp, IntelC];
    let finding = Finding::new(Group::Memory, "memory.defrag", "defragmentation", "never", sources);
    match host.facts.machine.settings.thp_defrag.as_deref() {
        None => finding.unknown(absent("transparent_hugepage/defrag")),
        Some(value @ "never") => finding.value(value),
        Some(value) => finding.value(value).warn(
            "page faults may stop to compact memory: pauses that look like the database's",
            "echo never > /sys/kernel/mm/transparent_hugepage/defrag",
        ),
    }
}

fn max_map_count(host: &Host<'_>) -> Finding {
    let limit = format!("at least {MAX_MAP_COUNT_MIN}");
    let finding =
        Finding::new(Group::Memory, "memory.max_map_count", "max_map_count", limit, &[DsSet]);
    match host.facts.sysctls.max_map_count {
        None => finding.unknown(absent("vm/max_map_count")),
        Some(value) if value >= MAX_MAP_COUNT_MIN => finding.value(value),
        Some(value) => finding.value(value).warn(
            "Cassandra maps its tables into memory and fails when it may map no more",
            format!("sysctl -w vm.max_map_count={MAX_MAP_COUNT_MIN}"),
        ),
    }
}

fn zone_reclaim(host: &Host<'_>) -> Finding {
    let sources = &[DsSet, AeroBp];
    let finding =
        Finding::new(Group::Memory, "memory.zone_reclaim", "zone_reclaim_mode", "0", sources);
    match host.facts.machine.settings.zone_reclaim_mode {
        None => finding.unknown(absent("vm/zone_reclaim_mode")),
        Some(0) => finding.value(0),
        Some(value) => finding.value(value).warn(
            "the kernel empties its cache rather than use the next NUMA node's memory",
            "sysctl -w vm.zone_reclaim_mode=0",
        ),
    }
}

fn numa_balancing(host: &Host<'_>) -> Finding {
    let finding =
        Finding::new(Group::Memory, "memory.numa_balancing", "numa_balancing", "0", &[Pkb]);
    let several = host.facts.machine.numa.len() > 1;
    match host.facts.machine.settings.numa_balancing {
        // The file is there only on kernels that can do it.
        None if !several => finding.value("one NUMA node"),
        None => finding.unknown(absent("kernel/numa_balancing")),
        Some(0) => finding.value(0),
        Some(value) if !several => finding.value(format!("{value}, one NUMA node")),
        Some(value) => finding.value(value).warn(
            "the kernel moves pages of what was pinned on purpose",
            "sysctl -w kernel.numa_balancing=0",
        ),
    }
}

fn min_free(host: &Host<'_>) -> Finding {
    let limit = format!("recorded; Aerospike: {}", Bytes(MIN_FREE_BYTES));
    let finding = Finding::new(Group::Memory, "memory.min_free", "min_free", limit, &[AeroBp]);
    match host.facts.sysctls.min_free_bytes {
        Some(bytes) => finding.value(Bytes(bytes)),
        None => finding.unknown(absent("vm/min_free_kbytes")),
    }
}
