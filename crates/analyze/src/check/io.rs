//! Disks, network, and the limits of processes.

use super::Source::{AeroBp, Arm, DsSet, IntelC, Kernel, Own, Perftune};
use super::{Finding, Group, Host, absent};
use machine::{Disk, Limit, Limits, Nic};
use units::Bytes;

const READ_AHEAD_KIB: u32 = 8;
const AHEAD: &str = "8 KiB (SSD, NVMe)";
const SOMAXCONN_MIN: u64 = 4096;
const TCP_BUFFER_BYTES_MIN: u64 = 16 << 20;
const KEEPALIVE_S_MAX: u64 = 7200;
const NOFILE_MIN: u64 = 1_048_576;
const NPROC_MIN: u64 = 32_768;
/// Enough for a client with thousands of connections.
const CLIENT_NOFILE_MIN: u64 = 4096;

pub(super) fn findings(host: &Host<'_>) -> Vec<Finding> {
    let disks = &host.facts.machine.disks;
    let guest = host.facts.machine.settings.virtualisation.hypervisor_flag == Some(true);
    let mut findings: Vec<_> = disks.iter().flat_map(|one| disk(one, guest)).collect();
    if disks.is_empty() {
        let finding = Finding::new(Group::Disk, "disk.read_ahead", "readahead", AHEAD, &[IntelC]);
        findings.push(finding.unknown("sys/block shows no disk that could hold data"));
    }
    findings.push(equal_schedulers(disks));
    findings.extend(network(host));
    findings.extend(limits(host));
    findings
}

fn disk(disk: &Disk, guest: bool) -> [Finding; 4] {
    let new = |id, what, limit: &str, sources| {
        Finding::new(Group::Disk, id, what, limit, sources).of(&disk.name)
    };
    let queue = |file: &str| format!("/sys/block/{}/queue/{file}", disk.name);
    // Virtual disks say that they turn, whatever is behind them.
    let turns = disk.rotational == Some(true) && !guest;
    let ahead = new("disk.read_ahead", "readahead", AHEAD, &[IntelC, DsSet]);
    let ahead = match disk.read_ahead_kib {
        None => ahead.unknown(absent(&queue("read_ahead_kb"))),
        Some(kib) if kib <= READ_AHEAD_KIB => ahead.value(format!("{kib} KiB")),
        Some(kib) if turns => ahead.value(format!("{kib} KiB, a disk that turns")),
        Some(kib) => ahead.value(format!("{kib} KiB")).warn(
            "random reads fetch more than they ask for, and fill the page cache with it",
            format!("echo {READ_AHEAD_KIB} > {}", queue("read_ahead_kb")),
        ),
    };
    let scheduler = new("disk.scheduler", "scheduler", "none or mq-deadline", &[IntelC, Perftune]);
    let scheduler = match disk.scheduler.as_deref() {
        None => scheduler.unknown(absent(&queue("scheduler"))),
        Some(name @ ("none" | "noop" | "mq-deadline" | "deadline")) => scheduler.value(name),
        Some(name) => scheduler.value(name).warn(
            "the scheduler holds requests back to be fair",
            format!("echo none > {}", queue("scheduler")),
        ),
    };
    let merges = new("disk.nomerges", "nomerges", "recorded; Scylla: 2", &[Perftune]);
    let merges = match disk.nomerges {
        Some(value) => merges.value(value),
        None => merges.unknown(absent(&queue("nomerges"))),
    };
    let cache = new("disk.write_cache", "write cache", "recorded; equal on all disks", &[Perftune]);
    let cache = match &disk.write_cache {
        Some(value) => cache.value(value),
        None => cache.unknown(absent(&queue("write_cache"))),
    };
    [ahead, scheduler, merges, cache]
}

/// Disks of one instance that are driven differently make its latencies bimodal.
fn equal_schedulers(disks: &[Disk]) -> Finding {
    let finding =
        Finding::new(Group::Disk, "disk.equal", "settings", "equal on all disks", &[IntelC]);
    let settings = |disk: &Disk| (disk.scheduler.clone(), disk.read_ahead_kib, disk.nomerges);
    match disks.split_first() {
        None => finding.unknown("no disk was seen"),
        Some((_, [])) => finding.value("one disk"),
        Some((first, rest)) if rest.iter().all(|disk| settings(disk) == settings(first)) => {
            finding.value(format!("equal on {} disks", disks.len()))
        }
        Some(_) => finding.value(format!("they differ between {} disks", disks.len())).warn(
            "data on several of them is served at several speeds",
            "set the scheduler, read_ahead_kb and nomerges of all data disks alike",
        ),
    }
}

fn network(host: &Host<'_>) -> Vec<Finding> {
    let new =
        |id, what, limit: String, sources| Finding::new(Group::Network, id, what, limit, sources);
    let at_least =
        |finding: Finding, value: Option<u64>, min, name: &str, shown: fn(u64) -> String| {
            match value {
                None => finding.unknown(absent(&name.replace('.', "/"))),
                Some(value) if value >= min => finding.value(shown(value)),
                Some(value) => finding.value(shown(value)).warn(
                    "connections or data in flight are capped below what a fast link carries",
                    format!("sysctl -w {name}={min}"),
                ),
            }
        };
    let sysctls = &host.facts.sysctls;
    let mut findings: Vec<_> =
        host.facts.machine.nics.iter().flat_map(|nic| interface(nic, host)).collect();
    let limit = format!("at least {SOMAXCONN_MIN}");
    findings.push(at_least(
        new("net.somaxconn", "somaxconn", limit, &[Perftune]),
        sysctls.somaxconn,
        SOMAXCONN_MIN,
        "net.core.somaxconn",
        |value| value.to_string(),
    ));
    for (id, what, value, name) in [
        ("net.rmem_max", "rmem_max", sysctls.rmem_max_bytes, "net.core.rmem_max"),
        ("net.wmem_max", "wmem_max", sysctls.wmem_max_bytes, "net.core.wmem_max"),
    ] {
        let limit = format!("at least {}", Bytes(TCP_BUFFER_BYTES_MIN));
        let finding = new(id, what, limit, &[DsSet, AeroBp]);
        let shown = |bytes| Bytes(bytes).to_string();
        findings.push(at_least(finding, value, TCP_BUFFER_BYTES_MIN, name, shown));
    }
    let buffers = new(
        "net.tcp_buffers",
        "tcp buffers",
        format!("recorded; DataStax: {}", Bytes(TCP_BUFFER_BYTES_MIN)),
        &[DsSet],
    );
    findings.push(match (sysctls.tcp_rmem_max_bytes, sysctls.tcp_wmem_max_bytes) {
        (Some(read), Some(write)) => {
            buffers.value(format!("read {}, write {}", Bytes(read), Bytes(write)))
        }
        _ => buffers.unknown(absent("net/ipv4/tcp_rmem, tcp_wmem")),
    });
    let limit = format!("recorded; kernel: {KEEPALIVE_S_MAX} s");
    let keepalive = new("net.keepalive", "keepalive", limit, &[DsSet]);
    findings.push(match sysctls.tcp_keepalive_s {
        Some(seconds) => keepalive.value(format!("{seconds} s")),
        None => keepalive.unknown(absent("net/ipv4/tcp_keepalive_time")),
    });
    findings
}

fn interface(nic: &Nic, host: &Host<'_>) -> [Finding; 2] {
    let new = |id, what, limit, sources| {
        Finding::new(Group::Network, id, what, limit, sources).of(&nic.name)
    };
    let link = new("net.link", "link", "up; equal MTU on the path", &[Own]);
    let speed = nic.speed_mbit_s.map_or("speed not told".to_owned(), |s| format!("{s} Mbit/s"));
    let mtu = nic.mtu_bytes.map_or(String::new(), |mtu| format!(", MTU {mtu}"));
    let numa = match nic.numa {
        Some(numa) => format!(", NUMA {}", numa.0),
        None => ", NUMA not told".to_owned(),
    };
    let link = match nic.up {
        // An interface that is down carries no load; it is only to be known.
        Some(false) => link.value("down"),
        _ => link.value(format!("{speed}{mtu}{numa}")),
    };
    let machine = &host.facts.machine;
    let near = machine.numa.iter().find(|numa| Some(numa.id) == nic.numa);
    let cpus = near.map_or(&machine.online, |numa| &numa.cpus).len();
    let queues = new("net.queues", "queues", "at most the cpus of its NUMA node", &[Arm, Perftune]);
    let queues = match (nic.rx_queues, nic.tx_queues) {
        (0, 0) => queues.unknown(absent("queues/rx-*")),
        (rx, tx) => {
            let queues = queues.value(format!("{rx} receive, {tx} send, {cpus} cpus"));
            match rx > cpus.max(1) && nic.up != Some(false) {
                false => queues,
                true => queues.warn(
                    "interrupts land on cpus of other NUMA nodes",
                    format!("ethtool -L {} combined {cpus}", nic.name),
                ),
            }
        }
    };
    [link, queues]
}

fn limits(host: &Host<'_>) -> Vec<Finding> {
    let Some(limits) = &host.facts.limits else {
        let limit = format!("at least {CLIENT_NOFILE_MIN} (client)");
        let finding = Finding::new(Group::Limits, "limits.nofile", "open files", limit, &[Own]);
        return vec![finding.unknown("a recorded tree has no process of its own")];
    };
    if host.starts_target {
        return of_database(limits, "");
    }
    let limit = format!("at least {CLIENT_NOFILE_MIN} (client)");
    let finding = Finding::new(Group::Limits, "limits.nofile", "open files", limit, &[Own]);
    vec![match limits.nofile {
        None => finding.unknown(absent("Max open files in limits")),
        Some(value) if value >= Limit::AtMost(CLIENT_NOFILE_MIN) => finding.value(value),
        Some(value) => finding.value(value).warn(
            "a client with many connections cannot open them",
            format!("ulimit -n {CLIENT_NOFILE_MIN}"),
        ),
    }]
}

/// The limits that a database runs with.
pub(super) fn of_database(limits: &Limits, of: &str) -> Vec<Finding> {
    let checks: [(_, _, _, _, &'static [super::Source], _); 4] = [
        (
            "limits.nofile",
            "open files",
            limits.nofile,
            Limit::AtMost(NOFILE_MIN),
            &[IntelC, DsSet],
            "ulimit -n 1048576, or LimitNOFILE= of its unit",
        ),
        (
            "limits.memlock",
            "locked memory",
            limits.memlock,
            Limit::Unlimited,
            &[IntelC, DsSet],
            "ulimit -l unlimited, or LimitMEMLOCK= of its unit",
        ),
        (
            "limits.nproc",
            "processes",
            limits.nproc,
            Limit::AtMost(NPROC_MIN),
            &[IntelC, DsSet],
            "ulimit -u 32768, or LimitNPROC= of its unit",
        ),
        (
            "limits.address_space",
            "address space",
            limits.address_space,
            Limit::Unlimited,
            &[DsSet, Kernel],
            "ulimit -v unlimited, or LimitAS= of its unit",
        ),
    ];
    checks
        .into_iter()
        .map(|(id, what, value, min, sources, mend)| {
            let limit = match min {
                Limit::Unlimited => "unlimited (database)".to_owned(),
                Limit::AtMost(n) => format!("at least {n} (database)"),
            };
            let finding = Finding::new(Group::Limits, id, what, limit, sources).of(of);
            match value {
                None => finding.unknown("its limits cannot be read"),
                Some(value) if value >= min => finding.value(value),
                Some(value) => finding.value(value).fail(
                    "the database runs into it under load, or starts with a smaller design",
                    mend,
                ),
            }
        })
        .collect()
}
