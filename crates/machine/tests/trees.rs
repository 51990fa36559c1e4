//! Odd trees: confined processes, hybrid cores, memory without cpus, devices, torn recordings.

#![allow(clippy::unwrap_used, clippy::panic)]

use flate2::read::GzDecoder;
use machine::{Machine, ReadError, Recording};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use units::{CpuId, CpuSet, NumaId};

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    files.iter().for_each(|(path, text)| put(dir.path(), path, text));
    dir
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Equal, or the parts that are not.
fn same(one: &Machine, other: &Machine) {
    let parts = |machine| serde_json::to_value(machine).unwrap();
    let (one_parts, other_parts) = (parts(one), parts(other));
    for (key, value) in one_parts.as_object().unwrap() {
        assert_eq!(value, &other_parts[key], "{key}");
    }
    assert_eq!(one, other);
}

/// Eight cpus, four NUMA nodes; number 7 has memory only.
fn eight_cpus() -> TempDir {
    let dir = tree(&[
        ("sys/devices/system/cpu/present", "0-7"),
        ("sys/devices/system/cpu/online", "0-7"),
        ("sys/devices/system/cpu/isolated", "6-7\n"),
        ("sys/devices/system/cpu/nohz_full", "  (null)\n"),
        ("sys/devices/system/node/node7/cpulist", "\n"),
        ("sys/devices/system/node/node7/meminfo", "Node 7 MemTotal: 4096 kB\n"),
        ("sys/devices/system/node/node7/distance", "20 20 20 10\n"),
        ("sys/devices/system/node/node0/access0/initiators/node9/x", ""),
        ("sys/devices/system/node/node0/access1/initiators/node0/x", ""),
        ("sys/devices/system/node/node0/access1/initiators/read_bandwidth", "0\n"),
        ("sys/devices/system/node/node7/access1/initiators/node1/x", ""),
        ("sys/devices/system/node/node7/access1/initiators/read_bandwidth", "78644\n"),
        ("sys/devices/system/node/node7/access1/initiators/read_latency", "77\n"),
        ("sys/devices/system/node/node7/memory_side_cache/index1/size", "1024\n"),
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "12\n"),
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "5\n"),
        ("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-2\n"),
        ("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "7\n"),
    ]);
    for cpu in 0..8 {
        put(dir.path(), &format!("sys/devices/system/cpu/cpu{cpu}/online"), "1");
    }
    for numa in 0..3 {
        let at = |name: &str| format!("sys/devices/system/node/node{numa}/{name}");
        let cpus = ["0-1", "2-3", "4-7"][numa];
        put(dir.path(), &at("cpulist"), cpus);
        put(dir.path(), &at("meminfo"), &format!("Node {numa} MemTotal: 1024 kB\n"));
        put(dir.path(), &at("distance"), ["10 16 32 20", "16 10 32 20", "32 32 10 20"][numa]);
    }
    dir
}

#[test]
fn memory_without_cpus_is_told() {
    let machine = Machine::read(eight_cpus().path()).unwrap();
    let far = machine.numa(NumaId(7)).unwrap();
    assert!(far.is_memory_only() && !machine.numa(NumaId(0)).unwrap().is_memory_only());
    assert_eq!((far.tier, machine.numa(NumaId(2)).unwrap().tier), (Some(22), Some(4)));
    assert_eq!(
        (far.initiators.as_slice(), far.memory_side_cache_bytes),
        (&[NumaId(1)][..], Some(1024))
    );
    let access = far.access.unwrap();
    assert_eq!((access.read_mb_s, access.read_ns, access.write_ns), (Some(78_644), Some(77), None));
    let near = machine.numa(NumaId(0)).unwrap();
    assert_eq!((near.initiators.as_slice(), near.access), (&[NumaId(0)][..], None));
    let pages = near.huge_pages[0];
    assert_eq!((pages.size_bytes, pages.total, pages.free), (2 << 20, 12, 5));
    assert_eq!(machine.distance(NumaId(7), NumaId(2)), Some(20));
    assert_eq!(machine.distance(NumaId(7), NumaId(3)), None);
    assert_eq!((machine.isolated, machine.nohz_full), (set("6-7"), set("")));
}

#[test]
fn the_memory_of_a_cgroup_is_the_least_limit_on_the_way_up() {
    let mounts = "none /sys/fs/cgroup cgroup2 rw 0 0\nnone /sys/fs/memory cgroup rw,memory 0 0\n";
    let limits = |files: &[(&str, &str)]| {
        let dir = eight_cpus();
        put(dir.path(), "proc/meminfo", "MemTotal: 4096 kB\n");
        put(dir.path(), "proc/self/mounts", mounts);
        put(dir.path(), "proc/self/cgroup", "4:memory:/old\n0::/db/one\n");
        for (file, text) in files {
            put(dir.path(), &format!("sys/fs/{file}"), text);
        }
        Machine::read(dir.path()).unwrap().memory_limit_bytes
    };
    assert_eq!(limits(&[]), None);
    assert_eq!(limits(&[("cgroup/db/one/memory.max", "max\n")]), None);
    let both = [("cgroup/db/one/memory.max", "3000000\n"), ("cgroup/db/memory.max", "2000000\n")];
    assert_eq!(limits(&both), Some(2_000_000));
    assert_eq!(limits(&[("memory/old/memory.limit_in_bytes", "9223372036854771712\n")]), None);
    // In a container only the mount point is there.
    assert_eq!(limits(&[("memory/memory.limit_in_bytes", "1000000\n")]), Some(1_000_000));
    assert_eq!(limits(&[("memory/memory.limit_in_bytes", "4194304\n")]), None, "all there is");
}

#[test]
fn what_a_cgroup_forbids_is_not_allowed() {
    let mounts =
        |kind: &str, options: &str| format!("none /sys/fs/cgroup/a\\040b {kind} {options} 0 0\n");
    let status = "Cpus_allowed_list:\t0-5\nMems_allowed_list:\t0-7\n";
    let at = |file: &str| format!("sys/fs/cgroup/a b/{file}");
    for (name, groups, mounts, files, cpus, numa) in [
        ("affinity", "", String::new(), vec![], "0-5", vec![0, 1, 2, 7]),
        (
            "version 2",
            "0::/db/one\n",
            mounts("cgroup2", "rw"),
            vec![("db/one/cpuset.cpus.effective", "4-7"), ("db/one/cpuset.mems.effective", "2")],
            "4-5",
            vec![2],
        ),
        (
            "version 2, told above",
            "0::/db/one\n",
            mounts("cgroup2", "rw"),
            vec![("db/cpuset.cpus.effective", "2-3"), ("db/one/cpuset.cpus.effective", "\n")],
            "2-3",
            vec![0, 1, 2, 7],
        ),
        (
            "version 1",
            "3:cpu:/other\n4:cpuset,x:/db\n0::/unrelated\n",
            mounts("cgroup", "rw,cpuset"),
            vec![("db/cpuset.cpus", "0,7"), ("db/cpuset.mems", "0,7")],
            "0",
            vec![0, 7],
        ),
        (
            "version 1 without prefix",
            "4:cpuset:/db\n",
            mounts("cpuset", "rw"),
            vec![("db/cpus", "1")],
            "1",
            vec![0, 1, 2, 7],
        ),
    ] {
        let dir = eight_cpus();
        put(dir.path(), "proc/self/status", status);
        put(dir.path(), "proc/self/cgroup", groups);
        put(dir.path(), "proc/self/mounts", &mounts);
        files.iter().for_each(|(file, text)| put(dir.path(), &at(file), text));
        let machine = Machine::read(dir.path()).unwrap();
        assert_eq!(machine.online, set("0-7"), "{name}");
        assert_eq!(machine.allowed, set(cpus), "{name}");
        let allowed = machine.numa.iter().filter(|of| of.allowed).map(|of| of.id.0);
        assert_eq!(allowed.collect::<Vec<_>>(), numa, "{name}");
    }
}

#[test]
fn kinds_of_cores_are_told_from_each_other() {
    let of = |files: &[(&str, &str)]| {
        let dir = eight_cpus();
        files.iter().for_each(|(path, text)| put(dir.path(), path, text));
        let machine = Machine::read(dir.path()).unwrap();
        let last = machine.cores().iter().find(|core| core.cpus == set("7")).unwrap().kind;
        let kinds = machine.kinds.into_iter().map(|k| (k.name, k.capacity, k.cpus.to_string()));
        (kinds.collect::<Vec<_>>(), last)
    };
    assert_eq!(of(&[]), (vec![], None));
    let (kinds, last) =
        of(&[("sys/devices/cpu_core/cpus", "0-3"), ("sys/devices/cpu_atom/cpus", "4-9")]);
    assert_eq!(
        kinds,
        [
            ("performance".to_owned(), None, "0-3".to_owned()),
            ("efficiency".to_owned(), None, "4-7".to_owned()),
        ]
    );
    assert_eq!(last, Some(1));
    let capacity = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
    let capacities: Vec<_> =
        (0..8).map(|cpu| (capacity(cpu), ["512", "1024"][cpu as usize / 4])).collect();
    let files: Vec<_> = capacities.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let (kinds, last) = of(&files);
    assert_eq!(
        kinds,
        [
            ("capacity 1024".to_owned(), Some(1024), "4-7".to_owned()),
            ("capacity 512".to_owned(), Some(512), "0-3".to_owned()),
        ]
    );
    assert_eq!(last, Some(0));
}

#[test]
fn devices_are_read_with_their_place() {
    let dir = eight_cpus();
    let root = dir.path();
    let pci = "sys/devices/pci0000:40/0000:40:01.0";
    for (path, text) in [
        (format!("{pci}/numa_node"), "2"),
        (format!("{pci}/msi_irqs/31"), "msix"),
        (format!("{pci}/msi_irqs/30"), "msix"),
        (format!("{pci}/virtio3/net/eth5/speed"), "25000"),
        (format!("{pci}/nvme/nvme0/nvme0n1/size"), "2048"),
        (format!("{pci}/nvme/nvme0/model"), "Fast Disk 3  "),
        ("proc/irq/30/smp_affinity_list".to_owned(), "4-7"),
        ("sys/bus/virtio/drivers/virtio_net/x".to_owned(), ""),
        ("sys/devices/nd/region0/size".to_owned(), "4096"),
        ("sys/devices/nd/region0/numa_node".to_owned(), "1"),
        ("sys/devices/nd/region0/pmem0/size".to_owned(), "8"),
        (
            "proc/self/mounts".to_owned(),
            "/dev/pmem0 /mnt/a\\040b xfs rw,dax=always 0 0\n/dev/vda / ext4 rw 0 0\n",
        ),
    ] {
        put(root, &path, text);
    }
    for (link, target) in [
        ("sys/class/net/eth5", "../../devices/pci0000:40/0000:40:01.0/virtio3/net/eth5"),
        ("sys/devices/pci0000:40/0000:40:01.0/virtio3/net/eth5/device", "../../../virtio3"),
        (
            "sys/devices/pci0000:40/0000:40:01.0/virtio3/driver",
            "../../../../bus/virtio/drivers/virtio_net",
        ),
        ("sys/block/nvme0n1", "../devices/pci0000:40/0000:40:01.0/nvme/nvme0/nvme0n1"),
        ("sys/devices/pci0000:40/0000:40:01.0/nvme/nvme0/nvme0n1/device", "../../nvme0"),
        ("sys/block/pmem0", "../devices/nd/region0/pmem0"),
        ("sys/bus/nd/devices/region0", "../../../devices/nd/region0"),
        // Out of the recording: this host's, which is none of its business.
        ("proc/cmdline", "/proc/cmdline"),
        ("proc/version", "../../../../../../../../../proc/version"),
    ] {
        fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
        symlink(target, root.join(link)).unwrap();
    }
    let machine = Machine::read(root).unwrap();
    let [nic] = machine.nics.as_slice() else { panic!("{:?}", machine.nics) };
    assert_eq!((nic.name.as_str(), nic.numa), ("eth5", Some(NumaId(2))));
    assert_eq!((nic.speed_mbit_s, nic.driver.as_deref()), (Some(25_000), Some("virtio_net")));
    let irqs: Vec<_> = nic.irqs.iter().map(|irq| (irq.number, irq.cpus.clone())).collect();
    assert_eq!(irqs, [(30, Some(set("4-7"))), (31, None)]);
    let disk = machine.disks.iter().find(|disk| disk.name == "nvme0n1").unwrap();
    assert_eq!((disk.numa, disk.model.as_deref()), (Some(NumaId(2)), Some("Fast Disk 3")));
    assert_eq!(disk.size_bytes, Some(1 << 20));
    let [region] = machine.pmem.as_slice() else { panic!("{:?}", machine.pmem) };
    assert_eq!((region.size_bytes, region.numa), (Some(4096), Some(NumaId(1))));
    let [mount] = machine.dax_mounts.as_slice() else { panic!("{:?}", machine.dax_mounts) };
    assert_eq!((mount.path.as_str(), mount.numa), ("/mnt/a b", Some(NumaId(1))));
    assert_eq!(machine.settings.kernel_command_line, None);
    assert_eq!(machine.settings.kernel_release, None);

    // What is recorded of it reads the same, and so does a recording of the recording.
    let file = root.join("one.tar.gz");
    Recording::read(root).unwrap().write(&file).unwrap();
    same(&Machine::read(&file).unwrap(), &machine);
    let again = root.join("two.tar.gz");
    Recording::read(&file).unwrap().write(&again).unwrap();
    assert_eq!(fs::read(file).unwrap(), fs::read(again).unwrap());
}

#[test]
fn this_host_is_recorded_and_reads_the_same() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("host.tar.gz");
    let recording = Recording::read(Path::new("/")).unwrap();
    recording.write(&file).unwrap();
    same(&Machine::read(&file).unwrap(), &recording.machine);
    assert!(recording.entries() > 10);
    let missing = dir.path().join("missing/host.tar.gz");
    let error = recording.write(&missing).unwrap_err().to_string();
    assert!(error.contains("missing/host.tar.gz"), "{error}");
}

#[test]
fn what_is_no_archive_is_refused_by_its_path() {
    let dir = tree(&[("text", "no archive"), ("empty", "")]);
    for name in ["text", "empty"] {
        let error = Machine::read(&dir.path().join(name)).unwrap_err();
        let told = matches!(error, ReadError::Archive { .. } | ReadError::NoCpu { .. });
        assert!(told && error.to_string().contains(name), "{error}");
    }
}

/// Entries of a recording: path -> text.
fn entries(file: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(GzDecoder::new(fs::File::open(file).unwrap()));
    let entry = |entry: std::io::Result<tar::Entry<_>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (path, text)
    };
    archive.entries().unwrap().map(entry).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn torn_trees_are_read_as_far_as_they_go(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, any::<u8>()), 30),
    ) {
        let dir = eight_cpus();
        put(dir.path(), "proc/self/status", "Cpus_allowed_list:\t0-5\n");
        put(dir.path(), "sys/class/net/eth0/device/numa_node", "-1");
        let file = dir.path().join("whole.tar.gz");
        Recording::read(dir.path()).unwrap().write(&file).unwrap();
        let whole = entries(&file);
        let torn = TempDir::new().unwrap();
        put(torn.path(), "proc/cpuinfo", "processor : 0\n");
        for (path, text) in &whole {
            if !path.ends_with('/') {
                put(torn.path(), path, text);
            }
        }
        let paths: Vec<_> = whole.keys().filter(|path| !path.ends_with('/')).collect();
        for (which, length, byte) in cuts {
            let path = torn.path().join(which.get(&paths));
            match byte {
                // Missing, cut, or with a wrong byte at the end.
                0..60 => drop(fs::remove_file(path)),
                60..150 => {
                    let text = fs::read(&path).unwrap_or_default();
                    fs::write(&path, &text[..length.min(text.len())]).unwrap();
                }
                _ => {
                    let mut text = fs::read(&path).unwrap_or_default();
                    text.truncate(length);
                    text.push(byte);
                    fs::write(&path, text).unwrap();
                }
            }
        }
        if let Ok(machine) = Machine::read(torn.path()) {
            let cores = machine.cores();
            let cores: CpuSet = cores.iter().flat_map(|core| core.cpus.iter()).collect();
            prop_assert_eq!(&cores, &machine.online);
            prop_assert!(machine.cpu(CpuId(0)).is_some() || !machine.present.contains(CpuId(0)));
            let _ = (machine.packages(), machine.llcs(), machine.distance(NumaId(0), NumaId(7)));
        }
    }
}
