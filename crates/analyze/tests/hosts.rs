//! Preflight rules at hosts: recorded ones where they lie beside the project, and small ones that
//! the test writes.

#![allow(clippy::unwrap_used, clippy::panic)]

use analyze::check::{Finding, Host, Occupation, Space, Verdict, host};
use machine::{Facts, client_and_target_cpus};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use units::{Bytes, CpuSet};

fn findings(facts: &Facts) -> Vec<Finding> {
    let split = client_and_target_cpus(&facts.machine, &facts.machine.allowed);
    host(&Host {
        facts,
        client_cpus: &split.client,
        target_cpus: None,
        occupation: None,
        space: None,
        starts_target: false,
    })
}

/// The finding of that name; there must be one.
fn one<'a>(findings: &'a [Finding], id: &str, of: &str) -> &'a Finding {
    let mut found = findings.iter().filter(|f| f.id == id && f.of == of);
    let first = found.next().unwrap_or_else(|| panic!("no {id} {of} in {findings:#?}"));
    assert_eq!(found.next(), None, "{id} {of} twice");
    first
}

/// What holds of any finding, wherever it comes from.
fn assert_well_formed(findings: &[Finding]) {
    let mut seen = BTreeSet::new();
    for finding in findings {
        assert!(seen.insert((finding.id, finding.of.clone())), "twice: {finding:?}");
        assert!(!finding.what.is_empty() && !finding.value.is_empty(), "{finding:?}");
        assert!(!finding.limit.is_empty(), "{finding:?}");
        assert!(!finding.sources.is_empty(), "{finding:?}");
        let (why, mend) = (!finding.why.is_empty(), !finding.mend.is_empty());
        let wanted = match finding.verdict {
            Verdict::Ok => (false, false),
            Verdict::Unknown => (true, false),
            Verdict::Warn | Verdict::Fail => (true, true),
        };
        assert_eq!((why, mend), wanted, "a reason and a cure where there is one: {finding:?}");
    }
}

/// The recorded host `name`, unpacked; None where recordings are absent.
fn recorded(name: &str) -> Option<(TempDir, PathBuf)> {
    let shared = std::env::var_os("WIDELOAD_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let tarball = shared.join("machines").join(format!("{name}.tar.bz2"));
    if !tarball.exists() {
        println!("SKIP: {} is not there", tarball.display());
        return None;
    }
    let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let tar = Command::new("tar").arg("-xjf").arg(&tarball).arg("-C").arg(dir.path()).output();
    if !tar.as_ref().is_ok_and(|done| done.status.success()) {
        println!("SKIP: tar cannot unpack {}: {tar:?}", tarball.display());
        return None;
    }
    let top = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    Some((dir, top))
}

#[test]
fn a_small_arm_board_sleeps_deeply() {
    let Some((_dir, top)) = recorded("2arm-2c") else { return };
    let found = findings(&Facts::read(&top).unwrap());
    assert_well_formed(&found);
    let governor = one(&found, "cpu.governor", "");
    assert_eq!((governor.value.as_str(), governor.verdict), ("ondemand", Verdict::Warn));
    assert!(governor.mend.contains("cpupower"), "{governor:?}");
    let idle = one(&found, "cpu.idle", "");
    assert_eq!((idle.value.as_str(), idle.verdict), ("C5 takes 8800 us", Verdict::Warn));
    // C2 and C3 take 50 us, which is within the limit.
    assert!(idle.why.ends_with("C4, C6, C5"), "{idle:?}");
    for id in ["host.runnable", "disk.free", "host.irqbalance", "limits.nofile"] {
        assert_eq!(one(&found, id, "").verdict, Verdict::Unknown, "{id}: a recording has none");
    }
}

#[test]
fn an_old_xeon_has_a_scheduler_and_reads_ahead() {
    let Some((_dir, top)) = recorded("32em64t-2n8c+dax+nvme+mic+dimms") else { return };
    let found = findings(&Facts::read(&top).unwrap());
    assert_well_formed(&found);
    assert_eq!(one(&found, "cpu.governor", "").verdict, Verdict::Ok);
    let scheduler = one(&found, "disk.scheduler", "sda");
    assert_eq!((scheduler.value.as_str(), scheduler.verdict), ("cfq", Verdict::Warn));
    assert_eq!(scheduler.mend, "echo none > /sys/block/sda/queue/scheduler");
    assert!(one(&found, "disk.read_ahead", "sda").value.starts_with("128 KiB"));
    assert!(one(&found, "cpu.idle", "").value.ends_with("93 us"));
}

#[test]
fn every_recording_that_is_chosen_is_judged() {
    for name in ["32intel64-2p8co2t+8ve", "nvidia-dgx-gb10", "2ps3-2t"] {
        let Some((_dir, top)) = recorded(name) else { return };
        assert_well_formed(&findings(&Facts::read(&top).unwrap()));
    }
}

fn tree(files: &[(&str, &str)]) -> (TempDir, Facts) {
    let dir = TempDir::new().unwrap();
    let cpus = [
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
        ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
    ];
    for (path, text) in cpus.iter().chain(files) {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let facts = Facts::read(dir.path()).unwrap();
    (dir, facts)
}

/// The verdict on one file's text.
fn verdict(path: &str, text: &str, id: &str) -> Verdict {
    let (_dir, facts) = tree(&[(path, text)]);
    let found = findings(&facts);
    assert_well_formed(&found);
    found.iter().find(|finding| finding.id == id).unwrap().verdict
}

const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
const EPP: &str = "sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference";
const EPB: &str = "sys/devices/system/cpu/cpu0/power/energy_perf_bias";
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const MEMINFO: &str = "proc/meminfo";
const AHEAD: &str = "sys/block/sda/queue/read_ahead_kb";
const SCHEDULER: &str = "sys/block/sda/queue/scheduler";
const IRQBALANCE: &str = "5 (irqbalance) S 1 1 1 0 0 0 0 0 0 0 5 6 0";
const INIT: &str = "5 (init) S 1 1 1 0 0 0 0 0 0 0 5 6 0";
const CHRONYD: &str = "5 (chronyd) S 1 1 1 0 0 0 0 0 0 0 5 6 0";

/// Of each setting what is just good, and what is just bad.
const EDGES: [(&str, &str, &str, &str); 18] = [
    ("cpu.governor", GOVERNOR, "performance", "powersave"),
    ("cpu.epp", EPP, "performance", "balance_power"),
    ("cpu.epb", EPB, "0", "6"),
    ("memory.swap", MEMINFO, "SwapTotal: 0 kB", "SwapTotal: 8 kB"),
    ("memory.thp", THP, "always [madvise] never", "always madvise [never]"),
    ("memory.defrag", DEFRAG, "always defer [never]", "[always] never"),
    ("memory.swappiness", "proc/sys/vm/swappiness", "1", "2"),
    ("memory.max_map_count", "proc/sys/vm/max_map_count", "1048575", "1048574"),
    ("memory.zone_reclaim", "proc/sys/vm/zone_reclaim_mode", "0", "1"),
    ("kernel.clock", CLOCK, "tsc", "hpet"),
    ("kernel.clock", CLOCK, "kvm-clock", "acpi_pm"),
    ("net.somaxconn", "proc/sys/net/core/somaxconn", "4096", "4095"),
    ("net.rmem_max", "proc/sys/net/core/rmem_max", "16777216", "212992"),
    ("disk.read_ahead", AHEAD, "8", "16"),
    ("disk.scheduler", SCHEDULER, "[mq-deadline] none", "mq-deadline [bfq]"),
    ("limits.nofile", "proc/self/limits", "Max open files 4096 x", "Max open files 4095 x"),
    ("host.irqbalance", "proc/5/stat", INIT, IRQBALANCE),
    ("kernel.time_sync", "proc/5/stat", CHRONYD, INIT),
];

#[test]
fn each_limit_is_where_it_is_said_to_be() {
    for (id, path, good, bad) in EDGES {
        assert_eq!(verdict(path, good, id), Verdict::Ok, "{path}: {good}");
        assert_eq!(verdict(path, bad, id), Verdict::Warn, "{path}: {bad}");
        let (_dir, facts) = tree(&[]);
        let without = findings(&facts);
        let known = |f: &&Finding| f.id == id && f.verdict != Verdict::Unknown;
        assert_eq!(without.iter().find(known), None, "without {path}");
    }
    let swaps = "Filename Type Size Used Priority\n/dev/a partition 8 4 -2\n";
    let (_dir, facts) = tree(&[(MEMINFO, "SwapTotal: 8 kB"), ("proc/swaps", swaps)]);
    assert_eq!(one(&findings(&facts), "memory.swap", "").verdict, Verdict::Fail);
}

#[test]
fn numa_balancing_matters_where_there_are_several() {
    let balancing = ("proc/sys/kernel/numa_balancing", "1\n");
    let (_dir, facts) = tree(&[balancing, ("sys/devices/system/node/node0/cpulist", "0-3")]);
    assert_eq!(one(&findings(&facts), "memory.numa_balancing", "").verdict, Verdict::Ok);
    let (_dir, facts) = tree(&[
        balancing,
        ("sys/devices/system/node/node0/cpulist", "0,2"),
        ("sys/devices/system/node/node1/cpulist", "1,3"),
    ]);
    assert_eq!(one(&findings(&facts), "memory.numa_balancing", "").verdict, Verdict::Warn);
}

#[test]
fn a_disk_that_turns_reads_ahead_but_a_virtual_one_only_says_so() {
    let disk = |flags: &'static str| {
        tree(&[(AHEAD, "128"), ("sys/block/sda/queue/rotational", "1"), ("proc/cpuinfo", flags)])
    };
    for (flags, wanted) in [("flags : fpu", Verdict::Ok), ("flags : hypervisor", Verdict::Warn)] {
        let (_dir, facts) = disk(flags);
        assert_eq!(one(&findings(&facts), "disk.read_ahead", "sda").verdict, wanted, "{flags}");
    }
}

#[test]
fn disks_that_differ_are_told() {
    let disks = |ahead: &str| tree(&[(AHEAD, "8"), ("sys/block/sdb/queue/read_ahead_kb", ahead)]);
    assert_eq!(one(&findings(&disks("8").1), "disk.equal", "").verdict, Verdict::Ok);
    assert_eq!(one(&findings(&disks("4").1), "disk.equal", "").verdict, Verdict::Warn);
}

#[test]
fn more_queues_than_cpus_near_the_interface_are_told() {
    for (numa, wanted) in [("0", Verdict::Warn), ("1", Verdict::Ok), ("-1", Verdict::Ok)] {
        let (_dir, facts) = tree(&[
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node1/cpulist", "1-3"),
            ("sys/class/net/eth0/device/numa_node", numa),
            ("sys/class/net/eth0/queues/rx-0/x", ""),
            ("sys/class/net/eth0/queues/rx-1/x", ""),
        ]);
        assert_eq!(one(&findings(&facts), "net.queues", "eth0").verdict, wanted, "{numa}");
    }
}

/// A host with everything that only a live one has.
fn live(facts: &Facts, client: &str, target: &str, runnable: u32, free: u64) -> Vec<Finding> {
    let (client, target): (CpuSet, CpuSet) = (client.parse().unwrap(), target.parse().unwrap());
    let busiest = vec![("cc1".to_owned(), 77, 0.96)];
    let occupation = Occupation { runnable: Some(runnable), busiest };
    let space = Space { path: "/data".into(), free: Bytes(free), total: Bytes(1 << 40) };
    let found = host(&Host {
        facts,
        client_cpus: &client,
        target_cpus: Some(&target),
        occupation: Some(&occupation),
        space: Some(&space),
        starts_target: true,
    });
    assert_well_formed(&found);
    found
}

#[test]
fn shared_cores_other_tasks_and_little_room_are_told() {
    let limits = "Max open files 1048576 1048576 files\nMax locked memory unlimited x bytes\n\
                  Max processes 32767 32768 processes\nMax address space unlimited x bytes\n";
    let (_dir, facts) = tree(&[("proc/self/limits", limits)]);
    let found = live(&facts, "1,3", "0,2", 0, 1 << 35);
    for id in ["cpu.shared", "host.runnable", "limits.nofile", "limits.memlock"] {
        assert_eq!(one(&found, id, "").verdict, Verdict::Ok, "{id}");
    }
    assert_eq!(one(&found, "disk.free", "/data").verdict, Verdict::Ok);
    assert_eq!(one(&found, "limits.nproc", "").verdict, Verdict::Fail, "one below");
    // Cpu 2 is the sibling of 0.
    let found = live(&facts, "2", "0", 1, 1 << 30);
    let shared = one(&found, "cpu.shared", "");
    assert_eq!(shared.verdict, Verdict::Fail);
    assert!(shared.why.contains("cpus 0 are siblings"), "{shared:?}");
    // A quarter of two cores is none.
    let tasks = one(&found, "host.runnable", "");
    assert_eq!(tasks.verdict, Verdict::Warn);
    assert!(tasks.why.contains("cc1 (77) 96 %"), "{tasks:?}");
    assert_eq!(one(&found, "disk.free", "/data").verdict, Verdict::Warn);
    let same = live(&facts, "0-1", "1-2", 0, 1 << 35);
    assert!(one(&same, "cpu.shared", "").why.contains("take cpus 1 from each other"));
}
