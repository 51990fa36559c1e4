//! Trees that the test writes, with the odd shapes that kernels really show.

#![allow(clippy::unwrap_used, clippy::panic)]

use machine::{Machine, ReadError, client_and_target_cpus, one_per_core};
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use units::{CpuId, CpuSet, NumaId};

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        put(dir.path(), path, text);
    }
    dir
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Two packages x two cores x two threads, siblings are n and n+4, one NUMA node a package.
fn eight_cpus() -> TempDir {
    let dir = tree(&[
        ("sys/devices/system/cpu/present", "0-7\n"),
        ("sys/devices/system/cpu/online", "0-7\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1024 kB\n"),
        ("sys/devices/system/node/node0/distance", "10 21\n"),
        ("sys/devices/system/node/node3/cpumap", "000000cc\n"),
        ("sys/devices/system/node/node3/distance", "21 10\n"),
    ]);
    for cpu in 0..8u32 {
        let (core, package) = (cpu % 2, cpu % 4 / 2);
        let at = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
        let mask = 0x11 << (cpu % 4);
        put(dir.path(), &at("topology/physical_package_id"), &format!("{package}\n"));
        put(dir.path(), &at("topology/core_id"), &format!("{core}\n"));
        put(dir.path(), &at("topology/die_id"), "-1\n");
        put(dir.path(), &at("topology/thread_siblings"), &format!("00000000,{mask:08x}\n"));
        for (index, level, kind, mask) in [
            (0, 1, "Data", mask),
            (1, 1, "Instruction", mask),
            (2, 3, "Unified", 0x33 << (2 * package)),
        ] {
            let at = |name: &str| at(&format!("cache/index{index}/{name}"));
            put(dir.path(), &at("level"), &format!("{level}\n"));
            put(dir.path(), &at("type"), &format!("{kind}\n"));
            put(dir.path(), &at("shared_cpu_map"), &format!("{mask:08x}\n"));
        }
    }
    dir
}

#[test]
fn topology_is_read_from_lists_and_from_masks() {
    let dir = eight_cpus();
    let machine = Machine::read(dir.path()).unwrap();
    assert_eq!(machine.online, set("0-7"));
    assert_eq!(machine.offline, set(""));
    assert_eq!(machine.allowed, set("0-7"));
    let cpu = machine.cpu(CpuId(7)).unwrap();
    assert_eq!((cpu.package, cpu.die, cpu.core), (Some(1), None, Some(1)));
    assert_eq!(cpu.siblings, set("3,7"));
    assert_eq!((cpu.numa, cpu.llc), (Some(NumaId(3)), Some(2)));
    assert_eq!(machine.cpu(CpuId(8)), None);
    let [first, second] = machine.numa.as_slice() else { panic!("{:?}", machine.numa) };
    assert_eq!((first.id, &first.cpus), (NumaId(0), &set("0-1,4-5")));
    assert_eq!((first.memory_bytes, first.distances.as_slice()), (Some(1 << 20), &[10, 21][..]));
    assert_eq!((second.id, &second.cpus, second.memory_bytes), (NumaId(3), &set("2-3,6-7"), None));
}

#[test]
fn cpus_that_are_off_are_present_and_not_used() {
    let dir = eight_cpus();
    put(dir.path(), "sys/devices/system/cpu/online", "0-6\n");
    put(dir.path(), "sys/devices/system/cpu/cpu2/online", "0\n");
    put(dir.path(), "proc/self/status", "Name:\tcat\nCpus_allowed_list:\t2-5\n");
    let machine = Machine::read(dir.path()).unwrap();
    assert_eq!(machine.present, set("0-7"));
    assert_eq!(machine.online, set("0-1,3-6"));
    assert_eq!(machine.offline, set("2,7"));
    assert_eq!(machine.allowed, set("3-5"));
}

#[test]
fn settings_are_read() {
    let dir = tree(&[
        ("proc/cpuinfo", "processor : 0\nmodel name : Seven 7\nflags : fpu hypervisor sse\n"),
        ("proc/meminfo", "MemTotal: 2048 kB\nSwapTotal: 0 kB\n"),
        ("proc/version", "Linux version 6.1.0-9 (a@b) #1 SMP\n"),
        ("proc/cmdline", "quiet mitigations=off\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/sys/kernel/numa_balancing", "1\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/smt/active", "0\n"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ]);
    let settings = Machine::read(dir.path()).unwrap().settings;
    assert_eq!(settings.cpu_model.as_deref(), Some("Seven 7"));
    assert_eq!(settings.kernel_release.as_deref(), Some("6.1.0-9"));
    assert_eq!(settings.kernel_command_line.as_deref(), Some("quiet mitigations=off"));
    assert_eq!((settings.memory_bytes, settings.swap_bytes), (Some(2 << 20), Some(0)));
    assert_eq!((settings.swappiness, settings.numa_balancing), (Some(60), Some(1)));
    assert_eq!(settings.governors.get("powersave"), Some(&set("0")));
    assert_eq!((settings.boost, settings.smt), (Some(false), Some(false)));
    assert_eq!(settings.mitigations["meltdown"], "Mitigation: PTI");
    assert_eq!(settings.clock_source.as_deref(), Some("hpet"));
    assert_eq!((settings.thp_enabled.as_deref(), settings.thp_defrag), (Some("madvise"), None));
    assert_eq!(settings.virtualisation.hypervisor_flag, Some(true));
    assert_eq!(settings.virtualisation.sys_vendor.as_deref(), Some("QEMU"));
}

#[test]
fn a_tree_with_garbage_in_it_is_read_as_far_as_it_goes() {
    let dir = eight_cpus();
    for (path, text) in [
        ("sys/devices/system/cpu/cpu1/topology/thread_siblings", "nonsense"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "99999999999999"),
        ("sys/devices/system/cpu/cpu1/cache/index2/level", "\u{0}"),
        ("sys/devices/system/cpu/online", "7-0"),
        ("sys/devices/system/cpu/cpu4294967295/online", "1"),
        ("sys/devices/system/node/node3/cpumap", ",,,"),
        ("sys/devices/system/node/node3/distance", "ten -1 10"),
        ("proc/meminfo", "MemTotal: lots kB"),
    ] {
        put(dir.path(), path, text);
    }
    let machine = Machine::read(dir.path()).unwrap();
    let cpu = machine.cpu(CpuId(1)).unwrap();
    // Of its cache another cpu tells.
    assert_eq!((cpu.core, &cpu.siblings, cpu.llc), (None, &set("1"), Some(0)));
    assert_eq!(machine.online, set("0-7"));
    assert_eq!(machine.numa[1].distances, [10]);
    assert_eq!(machine.settings.memory_bytes, None);
}

#[test]
fn without_sysfs_the_cpus_are_those_of_cpuinfo() {
    let dir = tree(&[("proc/cpuinfo", "processor\t: 0\ncpu : P9\n\nprocessor\t: 1\n")]);
    let machine = Machine::read(dir.path()).unwrap();
    assert_eq!(machine.online, set("0-1"));
    assert_eq!(machine.settings.cpu_model.as_deref(), Some("P9"));
}

#[test]
fn what_is_no_machine_is_refused_by_its_path() {
    let dir = tree(&[("proc/meminfo", "MemTotal: 1 kB")]);
    let error = Machine::read(dir.path()).unwrap_err();
    assert!(matches!(error, ReadError::NoCpu { .. }));
    let missing = dir.path().join("missing");
    let error = Machine::read(&missing).unwrap_err();
    assert!(matches!(error, ReadError::Root { .. }));
    assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
}

#[test]
fn client_and_target_never_share_a_core() {
    let dir = eight_cpus();
    let machine = Machine::read(dir.path()).unwrap();
    for (allowed, client, target, shared) in [
        ("0-7", "2-3", "0-1,4-5", false),
        ("0-3", "2-3", "0-1", false),
        ("4-7", "6-7", "4-5", false),
        ("0-2,4-6", "2", "0-1,4-5", false),
        ("0,4", "0", "0,4", true),
        ("5", "5", "5", true),
        ("", "", "", false),
        ("100-200", "", "", false),
    ] {
        let split = client_and_target_cpus(&machine, &set(allowed));
        assert_eq!(split.client, set(client), "client of {allowed}");
        assert_eq!(split.target, set(target), "target of {allowed}");
        assert_eq!(split.shared, shared, "{allowed}");
    }
}

#[test]
fn remote_targets_get_one_cpu_of_each_core() {
    let dir = eight_cpus();
    let machine = Machine::read(dir.path()).unwrap();
    for (allowed, limit, cpus) in
        [("0-7", 8, "0-3"), ("0-7", 3, "0-2"), ("1,5-7", 8, "1,6-7"), ("0-7", 0, ""), ("", 8, "")]
    {
        assert_eq!(one_per_core(&machine, &set(allowed), limit), set(cpus), "{allowed} {limit}");
    }
}

#[test]
fn a_manifest_shows_cpus_as_lists() {
    let dir = eight_cpus();
    put(dir.path(), "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
    let json = serde_json::to_value(Machine::read(dir.path()).unwrap()).unwrap();
    assert_eq!(json["online"], "0-7");
    assert_eq!(json["cpus"][7]["siblings"], "3,7");
    assert_eq!(json["cpus"][7]["numa"], 3);
    assert_eq!(json["numa"][1]["cpus"], "2-3,6-7");
    assert_eq!(json["settings"]["governors"]["performance"], "0");
}

#[test]
fn this_machine_is_read() {
    let machine = Machine::read(Path::new("/")).unwrap();
    assert!(!machine.allowed.is_empty());
    assert!(machine.settings.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    assert!(machine.settings.kernel_release.is_some());
}
