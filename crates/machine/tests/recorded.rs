//! Trees of real machines, where they lie beside the project: each is read, and makes sense.

#![allow(clippy::unwrap_used, clippy::panic)]

use machine::{Machine, client_and_target_cpus, one_per_core};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use units::{CpuId, CpuSet};

fn tarballs() -> Result<Vec<PathBuf>, String> {
    let shared = std::env::var_os("WIDELOAD_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let dir = shared.join("machines");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".tar.bz2"));
    paths.sort();
    if paths.is_empty() { Err(format!("{}: no *.tar.bz2", dir.display())) } else { Ok(paths) }
}

/// Most files of a recording are of no interest here, and making files is what takes the time.
const NOT_READ: [&str; 18] = [
    "*/sys/bus",
    "*/sys/class",
    "*/sys/firmware",
    "*/sys/devices/pci*",
    "*/proc/device-tree",
    "*/power",
    "*/cpufreq",
    "*/cpuidle",
    "*/hotplug",
    "*/hugepages*",
    "*/core_siblings*",
    "*/package_cpus*",
    "*/die_cpus*",
    "*/cluster_*",
    "*/ways_of_associativity",
    "*/number_of_sets",
    "*/size",
    "*/*line*size*",
];

fn unpack(tarball: &Path) -> Result<TempDir, String> {
    // In memory where there is such a place: on a busy disk this is ten times as fast.
    let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let tar = Command::new("tar")
        .args(NOT_READ.map(|glob| format!("--exclude={glob}")))
        .args([OsStr::new("-xjf"), tarball.as_os_str(), OsStr::new("-C"), dir.path().as_os_str()])
        .output();
    match tar {
        Ok(output) if output.status.success() => Ok(dir),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("tar: {error}")),
    }
}

fn check(machine: &Machine, name: &str) {
    assert!(!machine.online.is_empty(), "{name}");
    for cpu in &machine.cpus {
        assert!(cpu.siblings.contains(cpu.id), "{name}: cpu {}", cpu.id.0);
        let by_numa = machine.numa.iter().find(|numa| numa.cpus.contains(cpu.id));
        assert_eq!(cpu.numa, by_numa.map(|numa| numa.id), "{name}: cpu {}", cpu.id.0);
    }
    let split = client_and_target_cpus(machine, &machine.online);
    assert!(!split.client.is_empty() && !split.target.is_empty(), "{name}");
    for cpu in split.client.iter().filter(|_| !split.shared) {
        let core = &machine.cpu(cpu).unwrap().siblings;
        assert!(core.intersection(&split.target).is_empty(), "{name}: core of cpu {}", cpu.0);
        assert_eq!(core.intersection(&split.client).len(), 1, "{name}: core of cpu {}", cpu.0);
    }
    assert!(one_per_core(machine, &machine.online, 8).len() <= 8, "{name}");
}

/// Recordings in which a cpuset hides cpus from lstopo; the cpuset is not read here.
const CONFINED: [&str; 3] = ["16amd64-4n4c-cgroup", "16em64t-4s2ca2c-cpuset", "4fake-4gr1nu1pu"];

/// lstopo's own reading of the same files: the same cpus, in as many cores.
fn compare_with_lstopo(machine: &Machine, console: &str, name: &str) {
    let cpus: CpuSet = console
        .split("PU L#")
        .skip(1)
        .map(|pu| {
            let (_, rest) = pu.split_once("(P#").unwrap();
            CpuId(rest.split([')', ' ']).next().unwrap().parse().unwrap())
        })
        .collect();
    assert_eq!(machine.online, cpus, "{name}: cpus");
    let cores = console.matches("Core L#").count();
    if cores > 0 {
        let found = one_per_core(machine, &machine.online, usize::MAX).len();
        assert_eq!(found, cores, "{name}: cores");
    }
}

#[test]
fn all_recorded_machines_are_read() {
    let tarballs = match tarballs() {
        Ok(tarballs) => tarballs,
        Err(reason) => return eprintln!("SKIP: no recorded machines: {reason}"),
    };
    let mut compared = 0;
    for tarball in tarballs {
        let name = tarball.display().to_string();
        let dir = match unpack(&tarball) {
            Ok(dir) => dir,
            Err(reason) => return eprintln!("SKIP: cannot unpack {name}: {reason}"),
        };
        for entry in fs::read_dir(dir.path()).unwrap() {
            let root = entry.unwrap().path();
            let machine = Machine::read(&root).unwrap_or_else(|e| panic!("{name}: {e}"));
            check(&machine, &name);
            let console = name.replace(".tar.bz2", ".console");
            if let Ok(console) = fs::read_to_string(console)
                && !CONFINED.iter().any(|confined| name.contains(confined))
            {
                compare_with_lstopo(&machine, &console, &name);
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "lstopo's reading lies beside none of the recordings");
}
