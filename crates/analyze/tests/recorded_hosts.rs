//! Hosts as directories: each setting that deserves a caveat, read from text and judged; and the
//! recordings of real machines, where they lie beside the project.

#![allow(clippy::unwrap_used, clippy::panic)]

use analyze::{Course, Reading, Surroundings, surroundings};
use machine::{ActivityReader, Machine};
use record::Caveat;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use units::{CpuSet, Nanos};

/// Two cpus, set as they should be.
const GOOD: [(&str, &str); 9] = [
    ("sys/devices/system/cpu/cpu0/online", "1"),
    ("sys/devices/system/cpu/cpu1/online", "1"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
    ("sys/kernel/mm/transparent_hugepage/defrag", "always defer madvise [never]"),
    ("proc/cpuinfo", "processor : 0\nflags : fpu sse\n"),
    ("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
];

struct Host(TempDir);

impl Host {
    fn with(files: &[(&str, &str)]) -> Self {
        let host = Self(TempDir::new().unwrap());
        GOOD.iter().chain(files).for_each(|(path, text)| host.put(path, text));
        host
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(&self) -> Machine {
        Machine::read(self.0.path()).unwrap()
    }

    /// Caveats of its settings for a client and a Cassandra on both cpus.
    fn caveats(&self) -> Vec<Caveat> {
        of(&self.machine(), "0-1", true)
    }
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn of(machine: &Machine, cpus: &str, cassandra_here: bool) -> Vec<Caveat> {
    surroundings(&Surroundings { machine, cpus: &set(cpus), cassandra_here })
}

fn codes(caveats: &[Caveat]) -> Vec<&str> {
    caveats.iter().map(|c| c.code.as_str()).collect()
}

/// Every caveat says what was found and what to do.
fn assert_whole(caveats: &[Caveat]) {
    for c in caveats {
        assert!(c.text.ends_with('.') && c.cure.ends_with('.'), "{c:?}");
        assert!(!c.evidence.is_empty(), "{c:?}");
    }
}

#[test]
fn a_host_as_it_should_be_has_none() {
    assert_eq!(Host::with(&[]).caveats(), []);
}

#[test]
fn a_governor_counts_on_the_cpus_in_use() {
    let host = Host::with(&[("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")]);
    let caveats = host.caveats();
    assert_eq!(codes(&caveats), ["governor"]);
    assert!(caveats[0].evidence.starts_with("powersave on cpus 1 "), "{caveats:?}");
    assert_whole(&caveats);
    assert_eq!(of(&host.machine(), "0", true), []);
}

#[test]
fn huge_pages_count_where_a_cassandra_is() {
    let thp = |file: &str| format!("sys/kernel/mm/transparent_hugepage/{file}");
    for (enabled, defrag, is) in [
        ("[always] madvise never", "always defer defer+madvise [madvise] never", true),
        ("[always] madvise never", "[always] defer defer+madvise madvise never", true),
        ("[always] madvise never", "always defer defer+madvise madvise [never]", false),
        // A JVM that does not ask for them gets none.
        ("always [madvise] never", "[always] defer defer+madvise madvise never", false),
    ] {
        let host = Host::with(&[(&thp("enabled"), enabled), (&thp("defrag"), defrag)]);
        let caveats = host.caveats();
        assert_eq!(codes(&caveats), if is { &["thp"][..] } else { &[] }, "{enabled}, {defrag}");
        assert_whole(&caveats);
        assert_eq!(of(&host.machine(), "0-1", false), [], "no Cassandra on this host");
    }
}

#[test]
fn a_clock_source_depends_on_what_the_machine_is() {
    const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let guest = ("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor\n");
    let metal = ("proc/cpuinfo", "processor : 0\nflags : fpu\n");
    for (source, kind, is) in [
        ("tsc", guest, false),
        ("kvm-clock", guest, false),
        ("kvm-clock", metal, true),
        ("hpet", metal, true),
        ("acpi_pm", guest, true),
        ("arch_sys_counter", ("proc/cpuinfo", "processor : 0\n"), false),
    ] {
        let caveats = Host::with(&[(SOURCE, source), kind]).caveats();
        assert_eq!(codes(&caveats), if is { &["clock-source"][..] } else { &[] }, "{source}");
        assert!(caveats.iter().all(|c| c.text.contains(source)), "{caveats:?}");
        assert_whole(&caveats);
    }
}

/// What a host did between two states of its files, 10 s apart.
fn course(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<Caveat> {
    let host = Host::with(before);
    let reader = ActivityReader::new(host.0.path(), &set("0-1"));
    let reading = |at: u64| Reading {
        at: Nanos::from_secs(at),
        activity: reader.read(),
        ours: Some(Nanos::from_secs(at)),
    };
    let mut course = Course::begin(&set("0-1"), reading(0));
    after.iter().for_each(|(path, text)| host.put(path, text));
    course.add(reading(10));
    let caveats = course.caveats();
    assert_whole(&caveats);
    caveats
}

const STAT: &str = "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n";

#[test]
fn what_a_host_did_is_read_from_its_files() {
    let calm = "cpu  900 0 100 1000 0 0 0 0\ncpu0 0 0 0 1000 0 0 0 0\ncpu1 900 0 100 0 0 0 0 0\n";
    assert_eq!(course(&[("proc/stat", STAT)], &[("proc/stat", calm)]), []);
    let stolen = "cpu  900 0 0 1000 0 0 0 100\ncpu0 0 0 0 1000\ncpu1 900 0 0 0 0 0 0 100\n";
    assert_eq!(codes(&course(&[("proc/stat", STAT)], &[("proc/stat", stolen)])), ["steal"]);
    let busy = "cpu  2000 0 0 0 0 0 0 0\ncpu0 1000 0 0 0\ncpu1 1000 0 0 0\nprocs_running 4\n";
    assert_eq!(codes(&course(&[("proc/stat", STAT)], &[("proc/stat", busy)])), ["busy-host"]);

    let in_use = ("proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 500 kB\nSwapFree: 300 kB\n");
    let caveats = course(&[in_use], &[]);
    assert_eq!(codes(&caveats), ["swap"]);
    assert!(caveats[0].evidence.starts_with("200.0 KiB of swap in use, 0 pages"), "{caveats:?}");
    let (none, some) = ("pswpin 5\npswpout 7\n", "pswpin 5\npswpout 9\n");
    let caveats = course(&[("proc/vmstat", none)], &[("proc/vmstat", some)]);
    assert!(caveats[0].evidence.ends_with("0 pages in and 2 out in the window"), "{caveats:?}");

    let throttle = "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count";
    let caveats = course(&[(throttle, "11")], &[(throttle, "12")]);
    assert_eq!(codes(&caveats), ["throttled-cpu"]);
    assert_eq!(course(&[(throttle, "11")], &[]), []);
}

fn recordings() -> Result<Vec<PathBuf>, String> {
    let shared = std::env::var_os("WIDELOAD_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let dir = shared.join("machines");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".tar.bz2"));
    paths.sort();
    if paths.is_empty() { Err(format!("{}: no *.tar.bz2", dir.display())) } else { Ok(paths) }
}

/// The few files of a recording that are judged here.
fn unpack(tarball: &Path) -> Option<(TempDir, PathBuf)> {
    let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let only = ["*/proc/stat", "*/proc/meminfo", "*/proc/cpuinfo", "*/scaling_*", "*/cpu*/online"];
    let clock = ["*/current_clocksource", "*throttle_count"];
    let mut tar = Command::new("tar");
    tar.arg("-xjf").arg(tarball).arg("-C").arg(dir.path());
    // A pattern that fits nothing makes tar complain and unpack the rest.
    tar.arg("--wildcards").args(only).args(clock).output().ok()?;
    let root = fs::read_dir(dir.path()).ok()?.next()?.ok()?.path();
    Some((dir, root))
}

#[test]
fn recorded_machines_are_judged() {
    let tarballs = match recordings() {
        Ok(tarballs) => tarballs,
        Err(reason) => return eprintln!("SKIP: no recorded machines: {reason}"),
    };
    let (mut judged, mut governed) = (0, 0);
    for tarball in tarballs {
        let Some((_dir, root)) = unpack(&tarball) else { continue };
        let Ok(machine) = Machine::read(&root) else { continue };
        let cpus = machine.online.clone();
        let of = Surroundings { machine: &machine, cpus: &cpus, cassandra_here: true };
        let caveats = surroundings(&of);
        assert_whole(&caveats);
        let other = machine.settings.governors.keys().any(|name| name != "performance");
        assert_eq!(codes(&caveats).contains(&"governor"), other, "{}", tarball.display());
        let activity = ActivityReader::new(&root, &cpus).read();
        // One moment alone: nothing moved, only swap may be in use.
        let first = Reading { at: Nanos::ZERO, activity, ours: Some(Nanos::ZERO) };
        let mut course = Course::begin(&cpus, first.clone());
        course.add(Reading { at: Nanos::from_secs(1), ..first });
        assert!(course.caveats().iter().all(|c| c.code == "swap"), "{}", tarball.display());
        judged += 1;
        governed += usize::from(other);
    }
    println!("{judged} machines, {governed} with a governor other than performance");
    assert!(judged > 0, "none of the recordings could be read");
}
