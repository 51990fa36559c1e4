//! Recordings of real machines, where they lie beside the project: each is read, and says what
//! lstopo's reading beside it says, or the table of differences says why not.

#![allow(clippy::unwrap_used, clippy::panic)]

mod lstopo;

use lstopo::Lstopo;
use machine::{Machine, client_and_target_cpus, one_per_core};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use units::{CpuSet, NumaId};

/// Recording, what differs, and why ours is as it is.
const DIFFERENCES: [(&str, &str, &str); 13] = [
    ("16amd64-4n4c-cgroup-distance-merge", "cores", MERGED),
    (
        "16ia64-8n2s",
        "packages",
        "its firmware gives two sockets one number; lstopo goes by who shares a socket, where \
         the numbers are those that people see",
    ),
    ("20s390-2g6s4c", "numa", NO_NUMA),
    ("20s390-2g6s4c", "memory", NO_NUMA),
    ("256ppc-8n8s4t", "packages", NO_PACKAGES),
    ("2arm-2c", "numa", NO_NUMA),
    ("2arm-2c", "memory", NO_NUMA),
    ("2ps3-2t", "packages", NO_PACKAGES),
    ("2ps3-2t", "numa", NO_NUMA),
    ("2ps3-2t", "memory", NO_NUMA),
    ("40intel64-4n10c+pci-conflicts", "packages", CONFLICTS),
    ("40intel64-4n10c+pci-conflicts", "llcs", CONFLICTS),
    ("4fake-4gr1nu1pu", "cores", MERGED),
];
const MERGED: &str = "lstopo leaves out levels that add nothing, here cores of one cpu";
const NO_NUMA: &str = "a kernel without NUMA shows no node; lstopo makes one of the whole memory";
const NO_PACKAGES: &str = "the kernel knows no packages and repeats the core there; the machine \
                           counts as one, lstopo takes each core for a package or has none";
const CONFLICTS: &str = "lstopo was given PCI localities that conflict, and drops a package and \
                         a cache that the files name";

fn shared() -> PathBuf {
    std::env::var_os("WIDELOAD_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    )
}

fn tarballs() -> Result<Vec<PathBuf>, String> {
    let dir = shared().join("machines");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".tar.bz2"));
    paths.sort();
    if paths.is_empty() { Err(format!("{}: no *.tar.bz2", dir.display())) } else { Ok(paths) }
}

fn check(machine: &Machine, name: &str) {
    assert!(!machine.online.is_empty(), "{name}");
    for cpu in &machine.cpus {
        assert!(cpu.siblings.contains(cpu.id), "{name}: cpu {}", cpu.id.0);
        let by_numa = machine.numa.iter().find(|numa| numa.cpus.contains(cpu.id));
        assert_eq!(cpu.numa, by_numa.map(|numa| numa.id), "{name}: cpu {}", cpu.id.0);
    }
    let parts = [
        ("packages", machine.packages().into_iter().map(|part| part.cpus).collect::<Vec<_>>()),
        ("dies", machine.dies().into_iter().map(|part| part.cpus).collect()),
        ("llcs", machine.llcs().into_iter().map(|part| part.cpus).collect()),
        ("cores", machine.cores().into_iter().map(|part| part.cpus).collect()),
    ];
    for (what, sets) in parts {
        let all: CpuSet = sets.iter().flat_map(CpuSet::iter).collect();
        assert_eq!(all, machine.online, "{name}: {what} cover the online cpus");
        let sum: usize = sets.iter().map(CpuSet::len).sum();
        assert_eq!(sum, all.len(), "{name}: {what} do not overlap");
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

/// Sets of allowed cpus, without empty ones, in any order.
fn allowed(machine: &Machine, sets: impl IntoIterator<Item = CpuSet>) -> BTreeSet<CpuSet> {
    let allowed = sets.into_iter().map(|set| set.intersection(&machine.allowed));
    allowed.filter(|set| !set.is_empty()).collect()
}

fn distances(machine: &Machine) -> BTreeSet<(u32, u32, u32)> {
    let ids: Vec<NumaId> = machine.numa.iter().filter(|n| n.allowed).map(|n| n.id).collect();
    let pair = |from: NumaId, to: NumaId| Some((from.0, to.0, machine.distance(from, to)?));
    ids.iter().flat_map(|from| ids.iter().filter_map(move |to| pair(*from, *to))).collect()
}

/// What differs, with both readings.
fn differences(machine: &Machine, lstopo: &Lstopo) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut compare = |what, ours: String, theirs: String| {
        if ours != theirs {
            found.push((what, format!("ours {ours}\nlstopo {theirs}")));
        }
    };
    let sets = |sets: &BTreeSet<CpuSet>| {
        let lists: Vec<_> = sets.iter().map(CpuSet::to_string).collect();
        format!("{} [{}]", lists.len(), lists.join(" "))
    };
    compare("cpus", machine.allowed.to_string(), lstopo.cpus.to_string());
    let packages = allowed(machine, machine.packages().into_iter().map(|part| part.cpus));
    compare("packages", sets(&packages), sets(&lstopo.packages));
    let llcs = machine.llcs().into_iter().filter(|llc| llc.id.is_some());
    let llcs = allowed(machine, llcs.map(|part| part.cpus));
    compare("llcs", sets(&llcs), sets(&lstopo.llcs));
    let cores = allowed(machine, machine.cores().into_iter().map(|part| part.cpus));
    compare("cores", sets(&cores), sets(&lstopo.cores));
    let numa = machine.numa.iter().filter(|numa| numa.allowed);
    let numa: Vec<_> = numa
        .map(|numa| (numa.id.0, numa.memory_bytes.filter(|b| *b > 0).map(lstopo::memory)))
        .collect();
    let ids = |numa: &[(u32, Option<String>)]| {
        format!("{:?}", numa.iter().map(|n| n.0).collect::<Vec<_>>())
    };
    compare("numa", ids(&numa), ids(&lstopo.numa));
    compare("memory", format!("{numa:?}"), format!("{:?}", lstopo.numa));
    // lstopo prints no matrix of one.
    if numa.len() > 1 {
        compare(
            "distances",
            format!("{:?}", distances(machine)),
            format!("{:?}", lstopo.distances),
        );
    }
    found
}

#[test]
fn recorded_machines_are_read_as_lstopo_reads_them() {
    let tarballs = match tarballs() {
        Ok(tarballs) => tarballs,
        Err(reason) => return eprintln!("SKIP: no recorded machines: {reason}"),
    };
    let (mut unexplained, mut seen, mut compared) = (Vec::new(), BTreeSet::new(), 0);
    for tarball in tarballs {
        let name = tarball.file_name().unwrap().to_str().unwrap().replace(".tar.bz2", "");
        let machine = Machine::read(&tarball).unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&machine, &name);
        let console = tarball.with_file_name(format!("{name}.console"));
        let Ok(console) = fs::read_to_string(console) else { continue };
        compared += 1;
        for (what, readings) in differences(&machine, &Lstopo::parse(&console)) {
            seen.insert((name.clone(), what));
            if !DIFFERENCES.iter().any(|(file, of, _)| *file == name && *of == what) {
                unexplained.push(format!("{name}: {what} differ\n{readings}"));
            }
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n\n"));
    for (name, what, _) in DIFFERENCES {
        assert!(seen.contains(&(name.to_owned(), what)), "{name}: {what} do not differ any more");
    }
    assert!(compared > 0, "lstopo's reading lies beside none of the recordings");
}

#[test]
fn the_guest_with_eight_numa_is_read() {
    let file = shared().join("rigs/eight-numa-sysfs.tgz");
    if !file.exists() {
        return eprintln!("SKIP: no recording of a guest: {}", file.display());
    }
    let machine = Machine::read(&file).unwrap();
    check(&machine, "eight");
    let count = (machine.packages().len(), machine.numa.len(), machine.cores().len());
    assert_eq!(count, (2, 8, 16));
    assert_eq!(machine.online, "0-15".parse().unwrap());
    for from in 0..8 {
        for to in 0..8 {
            let expected = if from == to {
                10
            } else if from / 4 == to / 4 {
                16
            } else {
                32
            };
            assert_eq!(machine.distance(NumaId(from), NumaId(to)), Some(expected), "{from} {to}");
        }
    }
    for numa in &machine.numa {
        assert_eq!(numa.cpus.len(), 2, "NUMA node {}", numa.id.0);
        assert!(numa.memory_bytes.is_some_and(|bytes| bytes > 16 << 20), "{numa:?}");
    }
}

/// A recording by the beginning of its name, where there is one.
fn recording(name: &str) -> Option<Machine> {
    let found = tarballs().ok()?.into_iter().find(|path| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    })?;
    Some(Machine::read(&found).unwrap_or_else(|e| panic!("{name}: {e}")))
}

#[test]
fn cgroups_kinds_tiers_and_devices_of_recordings_are_read() {
    let names = ["32amd64-4s2n4c-cgroup2", "nvidia", "fakeheteromemtiers", "32em64t-2n8c+dax"];
    let machines: Option<Vec<Machine>> = names.iter().map(|name| recording(name)).collect();
    let Some(Ok([confined, hybrid, tiers, devices])) = machines.map(<[Machine; 4]>::try_from)
    else {
        return eprintln!("SKIP: not all of {names:?} are beside the project");
    };
    // cpuset.cpus.effective and cpuset.mems.effective of a batch system's step.
    assert!(!confined.allowed.is_empty() && confined.allowed != confined.online);
    assert!(confined.numa.iter().any(|numa| !numa.allowed));
    let with_cpus = confined.numa_of(&confined.allowed);
    assert!(with_cpus.iter().all(|id| confined.numa(*id).unwrap().allowed));

    let kinds: Vec<_> = hybrid.kinds.iter().map(|kind| kind.cpus.to_string()).collect();
    assert_eq!(kinds, ["5-9,15-19", "0-4,10-14"], "the Cortex-X first");
    assert_eq!(hybrid.kinds[0].capacity, Some(1024));

    let memory_only: Vec<_> = tiers.numa.iter().filter(|n| n.is_memory_only()).collect();
    assert_eq!(memory_only.iter().map(|numa| numa.id.0).collect::<Vec<_>>(), [4, 6, 8, 9]);
    let near: Vec<_> = memory_only.iter().flat_map(|numa| &numa.initiators).collect();
    assert_eq!(near, [&NumaId(1), &NumaId(1), &NumaId(0), &NumaId(2)]);

    let nic = |name: &str| devices.nics.iter().find(|nic| nic.name == name).unwrap();
    assert_eq!((nic("ib0").numa, nic("ib0").irqs.len()), (Some(NumaId(1)), 128));
    assert_eq!(nic("ib0").firmware.as_deref(), Some("2.11.500"));
    assert_eq!((nic("eth0").numa, nic("eth0").speed_mbit_s), (Some(NumaId(0)), Some(1000)));
    let dax: Vec<_> = devices.pmem.iter().map(|p| (p.name.as_str(), p.numa)).collect();
    let [zero, one] = [0, 1].map(|id| Some(NumaId(id)));
    assert_eq!(dax, [("dax0.0", zero), ("dax1.3", one), ("dax1.4", one)]);
}
