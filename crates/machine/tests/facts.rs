//! Facts for the preflight check, from trees that the test writes and from this host.

#![allow(clippy::unwrap_used, clippy::panic)]

use machine::{Facts, IdleState, Limit, Nic, Tasks};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use units::NumaId;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    put(dir.path(), "sys/devices/system/cpu/online", "0-1\n");
    for cpu in 0..2 {
        fs::create_dir_all(dir.path().join(format!("sys/devices/system/cpu/cpu{cpu}"))).unwrap();
    }
    files.iter().for_each(|(path, text)| put(dir.path(), path, text));
    dir
}

#[test]
fn a_tree_without_anything_says_nothing() {
    let dir = tree(&[]);
    let facts = Facts::read(dir.path()).unwrap();
    assert_eq!(facts.power, machine::Power::default());
    assert_eq!(facts.sysctls, machine::Sysctls::default());
    assert!(facts.machine.disks.is_empty() && facts.machine.nics.is_empty());
    assert_eq!(facts.tasks, Tasks::default());
    assert_eq!((facts.limits, facts.microcode, facts.swap_used_bytes), (None, None, None));
    assert!(Facts::read(Path::new("/no/such/tree")).is_err());
}

#[test]
fn idle_states_are_merged_over_cpus() {
    let dir = tree(&[]);
    for cpu in 0..2 {
        for (state, name, latency) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 133)] {
            let at =
                |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/{file}");
            put(dir.path(), &at("name"), &format!("{name}\n"));
            put(dir.path(), &at("latency"), &format!("{latency}\n"));
            put(dir.path(), &at("disable"), if (cpu, state) == (1, 2) { "1\n" } else { "0\n" });
        }
        let bias = format!("sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias");
        put(dir.path(), &bias, &format!("{}\n", cpu * 6));
    }
    let power = Facts::read(dir.path()).unwrap().power;
    let state = |name: &str, exit_us, cpus: &str| IdleState {
        name: name.into(),
        exit_us,
        enabled: cpus.parse().unwrap(),
    };
    assert_eq!(power.idle, [state("POLL", 0, "0-1"), state("C1", 2, "0-1"), state("C6", 133, "0")]);
    let biases: Vec<_> = power.biases.iter().map(|(v, c)| (v.as_str(), c.to_string())).collect();
    assert_eq!(biases, [("0", "0".to_owned()), ("6", "1".to_owned())]);
}

#[test]
fn disks_for_data_are_told_from_others() {
    let dir = tree(&[
        ("sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline kyber\n"),
        ("sys/block/nvme0n1/queue/read_ahead_kb", "128\n"),
        ("sys/block/nvme0n1/queue/rotational", "0\n"),
        ("sys/block/nvme0n1/queue/nomerges", "0\n"),
        ("sys/block/nvme0n1/queue/write_cache", "write back\n"),
        ("sys/block/loop3/queue/read_ahead_kb", "128\n"),
        ("sys/block/zram0/queue/read_ahead_kb", "128\n"),
        ("sys/block/sdx/size", "0\n"),
        ("sys/block/sdb/size", "1000\n"),
        ("sys/block/srv-disk/size", "1000\n"),
    ]);
    let disks = Facts::read(dir.path()).unwrap().machine.disks;
    let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["nvme0n1", "sdb", "srv-disk"]);
    assert_eq!(disks[0].scheduler.as_deref(), Some("none"));
    assert_eq!((disks[0].read_ahead_kib, disks[0].rotational), (Some(128), Some(false)));
    assert_eq!((disks[0].nomerges, disks[0].write_cache.as_deref()), (Some(0), Some("write back")));
    assert_eq!((disks[1].scheduler.as_deref(), disks[1].read_ahead_kib), (None, None));
}

#[test]
fn interfaces_without_a_device_are_left_out() {
    let dir = tree(&[
        ("sys/class/net/lo/mtu", "65536\n"),
        ("sys/class/net/eth0/device/numa_node", "-1\n"),
        ("sys/class/net/eth0/speed", "-1\n"),
        ("sys/class/net/eth0/operstate", "unknown\n"),
        ("sys/class/net/eth0/queues/rx-0/x", ""),
        ("sys/class/net/eth0/queues/tx-0/x", ""),
        ("sys/class/net/eth0/queues/tx-1/x", ""),
        ("sys/class/net/ens1/device/numa_node", "3\n"),
        ("sys/class/net/ens1/speed", "100000\n"),
        ("sys/class/net/ens1/mtu", "9000\n"),
        ("sys/class/net/ens1/operstate", "up\n"),
    ]);
    let nics = Facts::read(dir.path()).unwrap().machine.nics;
    let ens1 = Nic {
        name: "ens1".into(),
        up: Some(true),
        speed_mbit_s: Some(100_000),
        mtu_bytes: Some(9000),
        numa: Some(NumaId(3)),
        rx_queues: 0,
        tx_queues: 0,
        driver: None,
        firmware: None,
        irqs: Vec::new(),
    };
    let eth0 = Nic {
        name: "eth0".into(),
        up: None,
        speed_mbit_s: None,
        mtu_bytes: None,
        numa: None,
        rx_queues: 1,
        tx_queues: 2,
        driver: None,
        firmware: None,
        irqs: Vec::new(),
    };
    assert_eq!(nics, [ens1, eth0]);
}

#[test]
fn the_kernels_numbers_are_read_in_bytes() {
    let swaps = "Filename Type Size Used Priority\n/dev/a partition 2048 12 -2\n/b file 1 1 -3\n";
    let dir = tree(&[
        ("proc/sys/vm/max_map_count", "65530\n"),
        ("proc/sys/vm/min_free_kbytes", "1024\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/swaps", swaps),
        ("proc/self/limits", "Max open files            1024    4096    files\n"),
        ("proc/stat", "cpu 1 2\nprocs_running 3\n"),
        ("proc/loadavg", "1.50 0.1 0.2 3/99 1\n"),
        ("proc/7/stat", "7 (chronyd) S 1 1 1 0 0 0 0 0 0 0 5 6 0 0\n"),
        ("run/systemd/timesync/synchronized", ""),
    ]);
    let facts = Facts::read(dir.path()).unwrap();
    assert_eq!(facts.sysctls.max_map_count, Some(65530));
    assert_eq!(facts.sysctls.min_free_bytes, Some(1 << 20));
    assert_eq!(facts.sysctls.tcp_rmem_max_bytes, Some(6 << 20));
    assert_eq!(facts.swap_used_bytes, Some(13 << 10));
    assert_eq!(facts.limits.unwrap().nofile, Some(Limit::AtMost(1024)));
    assert_eq!((facts.tasks.runnable, facts.tasks.load_1min), (Some(3), Some(1.5)));
    assert_eq!(facts.tasks.runs(&["ntpd", "chronyd"]).unwrap().pid, 7);
    assert_eq!(facts.tasks.runs(&["chrony"]), None);
    assert!(facts.tasks.timesync_done);
}

#[test]
fn this_host_is_read() {
    let facts = Facts::read(Path::new("/")).unwrap();
    let me = std::process::id();
    assert!(facts.tasks.processes.iter().any(|process| process.pid == me));
    assert!(facts.tasks.runnable.unwrap() >= 1, "the reader runs");
    assert!(facts.limits.unwrap().nofile.is_some());
    assert!(Tasks::runnable(Path::new("/")).is_some());
}
