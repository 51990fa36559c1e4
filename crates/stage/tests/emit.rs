//! The files of a layout, read by who is to read them: bash, systemd, a JVM. Where one of these is
//! not installed its test says so and counts as skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use machine::Machine;
use machine::layout::{Addresses, Budget, Database, Device, Devices, Layout, Request, Smt, plan};
use stage::emit::{Asked, EmitError, Emitted, WriteError, files};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use units::{Bytes, NumaId};

/// Two AMD EPYC 7601.
const EPYC_7601: &str = "package:2 die:4 numa:1(memory=64GiB) llc:2 core:4 cpu:2";

fn request(database: Database, policy: &str) -> Request {
    Request { policy: policy.parse().unwrap(), database, ..Request::default() }
}

fn layout(request: &Request) -> Layout {
    plan(&Machine::synthetic(EPYC_7601).unwrap(), request).unwrap()
}

fn asked(root: &Path) -> Asked {
    Asked {
        root: root.to_owned(),
        version: None,
        java: None,
        settings: Vec::new(),
        jvm: Vec::new(),
        ring: false,
    }
}

fn with(set: &[&str], jvm: &[&str]) -> Asked {
    Asked {
        settings: set.iter().map(|text| text.parse().unwrap()).collect(),
        jvm: jvm.iter().map(ToString::to_string).collect(),
        ..asked(Path::new("/srv/lab"))
    }
}

fn text(emitted: &Emitted, path: &str) -> String {
    let file = emitted.files.iter().find(|file| file.path == Path::new(path));
    file.unwrap_or_else(|| panic!("no {path}")).text.clone()
}

fn notes(emitted: &Emitted) -> String {
    emitted.notes.iter().map(|note| note.line() + "\n").collect()
}

/// Whether a program is there to be asked.
fn installed(program: &str, flag: &str) -> bool {
    let there = Command::new(program).arg(flag).output().is_ok();
    if !there {
        println!("SKIP: {program} is not installed");
    }
    there
}

fn all_databases() -> [Database; 4] {
    [Database::Cassandra, Database::Scylla, Database::Aerospike, Database::Reference]
}

#[test]
fn bash_reads_every_script_also_in_a_directory_of_an_odd_name() {
    if !installed("bash", "--version") {
        return;
    }
    for database in all_databases() {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("a lab's $HOME");
        let emitted = files(&layout(&request(database, "per-numa")), &asked(&root)).unwrap();
        emitted.write(&root).unwrap();
        let scripts = emitted.files.iter().filter(|file| file.executable);
        for path in scripts.map(|file| root.join(&file.path)) {
            let output = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(output.status.success(), "{}: {output:?}", path.display());
        }
    }
}

/// A directory for PATH with a program that prints its arguments, one a line.
fn printing(dir: &Path, program: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = dir.join(program);
    fs::write(&path, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default())
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn numactl_gets_the_cpus_and_the_memory_of_the_instance() {
    if !installed("bash", "--version") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("it's here");
    let layout = layout(&request(Database::Scylla, "per-package"));
    files(&layout, &asked(&root)).unwrap().write(&root).unwrap();
    let path = printing(dir.path(), "numactl");
    for placement in &layout.placements {
        let run = root.join(format!("scylla-{}", placement.instance));
        let output = Command::new(run.join("numactl.sh")).env("PATH", &path).output().unwrap();
        let expected = [
            format!("--physcpubind={}", placement.cpus),
            format!("--membind={}", placement.memory_numas),
            "--".to_owned(),
            run.join("run.sh").display().to_string(),
        ];
        assert_eq!(lines(&output), expected);
    }
}

/// A program of this text.
fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_status_of_an_instance_that_failed_is_not_lost() {
    if !installed("bash", "--version") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("a lab");
    let emitted = files(&layout(&request(Database::Cassandra, "per-package")), &asked(&root));
    emitted.unwrap().write(&root).unwrap();
    // The last lives a little longer than the first, and ends well.
    for (run, text) in [("cassandra-1", "exit 7"), ("cassandra-2", "sleep 0.2")] {
        let path = root.join(run).join("run.sh");
        fs::remove_file(&path).unwrap();
        program(&path, &format!("#!/usr/bin/env bash\n{text}\n"));
    }
    let bash = Command::new("bash").args(["-c", "command -v bash"]).output().unwrap();
    let bash = String::from_utf8(bash.stdout).unwrap();
    // What the scripts need, and no numactl.
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(bash.trim(), bin.join("bash")).unwrap();
    let start = |path: &str| {
        let output = Command::new(root.join("start.sh")).env("PATH", path).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = start(bin.to_str().unwrap());
    assert_eq!((status, said.contains("numactl is not on PATH")), (Some(127), true), "{said}");
    let stub = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    program(&bin.join("numactl"), stub);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let (status, said) = start(&path);
    assert_eq!(status, Some(7), "{said}");
    assert!(said.contains("cassandra-1 has ended, with status 7"), "{said}");
    assert!(said.contains("cassandra-2 has ended, with status 0"), "{said}");
}

#[test]
fn systemd_reads_every_unit() {
    if !installed("systemd-analyze", "--version") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("100% lab");
    let layout = layout(&request(Database::Cassandra, "per-numa"));
    let emitted = files(&layout, &asked(&root)).unwrap();
    emitted.write(&root).unwrap();
    let units: Vec<_> = emitted
        .files
        .iter()
        .filter(|file| file.path.starts_with("systemd"))
        .map(|file| root.join(&file.path))
        .collect();
    assert_eq!(units.len(), 8);
    let analyze = |units: &[std::path::PathBuf]| {
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "--recursive-errors=no"]).args(units).output().unwrap()
    };
    let output = analyze(&units);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("wideload-cassandra"), "{said}");
    // It does look at what matters here.
    let broken = root.join("systemd/wideload-broken.service");
    let text = fs::read_to_string(&units[0]).unwrap();
    fs::write(&broken, text.replace("NUMAPolicy=bind", "NUMAPolicy=nonsense")).unwrap();
    let said = String::from_utf8_lossy(&analyze(&[broken]).stderr).into_owned();
    assert!(said.contains("NUMA"), "{said}");
    let unit = text_of_first(&emitted);
    for line in ["CPUAffinity=0-7,64-71", "NUMAPolicy=bind", "NUMAMask=0", "LimitMEMLOCK=infinity"]
    {
        assert!(unit.lines().any(|of| of == line), "{line}: {unit}");
    }
}

fn text_of_first(emitted: &Emitted) -> String {
    text(emitted, "systemd/wideload-cassandra-1.service")
}

#[test]
fn a_jvm_starts_with_the_options() {
    if !installed("java", "-version") {
        return;
    }
    let version = Command::new("java").arg("-version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stderr).into_owned();
    if !version.contains("\"17.") {
        println!("SKIP: the java on PATH is not 17");
        return;
    }
    for jvm in [&[][..], &["-XX:+UseParallelGC"]] {
        let dir = TempDir::new().unwrap();
        let heap = Some(Bytes(128 << 20));
        let request = Request { heap, ..request(Database::Cassandra, "per-package") };
        let asked =
            Asked { jvm: jvm.iter().map(ToString::to_string).collect(), ..asked(dir.path()) };
        files(&layout(&request), &asked).unwrap().write(dir.path()).unwrap();
        let options = fs::read_to_string(dir.path().join("cassandra-2/jvm.options")).unwrap();
        assert!(options.contains("-XX:+UseNUMA"), "{options}");
        let output = Command::new("java").args(options.lines()).arg("-version").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn cassandra_gets_its_addresses_heap_and_settings() {
    let layout = layout(&request(Database::Cassandra, "per-numa"));
    let alone = files(&layout, &with(&["cassandra.concurrent_writes=128"], &[])).unwrap();
    // One key a line, each value in the form of JSON, which YAML contains.
    let yaml = text(&alone, "cassandra-3/cassandra.yaml");
    let value = |key: &str| -> serde_json::Value {
        let line = yaml.lines().find_map(|line| line.strip_prefix(&format!("{key}: ")));
        serde_json::from_str(line.unwrap()).unwrap()
    };
    assert!(yaml.lines().all(|line| {
        let (_, value) = line.split_once(": ").unwrap();
        serde_json::from_str::<serde_json::Value>(value).is_ok()
    }));
    assert_eq!(value("listen_address"), "127.0.0.3");
    assert_eq!(value("concurrent_writes"), 128);
    assert_eq!(value("seed_provider")[0]["parameters"][0]["seeds"], "127.0.0.3:7000");
    assert_eq!(value("cluster_name"), "wideload-3");
    let options = text(&alone, "cassandra-3/jvm.options");
    assert!(options.lines().any(|line| line == "-Xmx8192m"), "{options}");
    assert!(options.lines().any(|line| line.ends_with("jmx.local.port=7399")), "{options}");
    assert!(!options.contains("UseNUMA"), "{options}");
    let told = notes(&alone);
    assert!(told.contains("! setting: cassandra.concurrent_writes=128, as asked"), "{told}");
    assert!(told.contains("concurrent_reads stay at 32 for each instance, 256 in all"), "{told}");
    let ring = Asked { ring: true, ..asked(Path::new("/srv/lab")) };
    let ring = text(&files(&layout, &ring).unwrap(), "cassandra-3/cassandra.yaml");
    assert!(ring.contains("127.0.0.1:7000,127.0.0.2:7000"), "{ring}");
}

#[test]
fn use_numa_is_given_where_it_does_something() {
    let given = |policy: &str, java: u32, version: &str, jvm: &[&str]| {
        let layout = layout(&request(Database::Cassandra, policy));
        let asked = Asked { java: Some(java), version: Some(version.to_owned()), ..with(&[], jvm) };
        let emitted = files(&layout, &asked).unwrap();
        let options = text(&emitted, "cassandra-1/jvm.options");
        (options.lines().filter(|l| *l == "-XX:+UseNUMA").count(), notes(&emitted))
    };
    let parallel = &["-XX:+UseParallelGC"][..];
    assert_eq!(given("single", 17, "5.0.5", &[]).0, 1);
    assert_eq!(given("per-package", 17, "5.0.5", &[]).0, 1);
    assert_eq!(given("per-numa", 17, "5.0.5", &[]).0, 0);
    assert_eq!(given("single", 11, "5.0.5", &[]).0, 0);
    assert_eq!(given("single", 11, "5.0.5", parallel).0, 1);
    assert_eq!(given("single", 8, "4.1.10", parallel).0, 0);
    let (count, told) = given("per-numa", 17, "5.0.5", &["-XX:+UseNUMA"]);
    assert_eq!(count, 1);
    assert!(told.contains("! jvm: -XX:+UseNUMA, as asked, where"), "{told}");
}

#[test]
fn scylla_has_a_shard_on_each_cpu_or_on_each_core() {
    let root = Path::new("/srv/lab");
    let script = |smt, set: &[&str]| {
        let request = Request { smt, ..request(Database::Scylla, "per-numa") };
        let emitted = files(&layout(&request), &with(set, &[])).unwrap();
        (text(&emitted, "scylla-2/run.sh"), notes(&emitted))
    };
    assert!(root.is_absolute());
    let (all, _) = script(Smt::All, &[]);
    for flag in ["--smp 16", "--cpuset 8-15,72-79", "--memory 58982M", "--rpc-address 127.0.0.2"] {
        assert!(all.contains(flag), "{flag}: {all}");
    }
    assert!(script(Smt::One, &[]).0.contains("--smp 8 "));
    let (own, told) = script(Smt::All, &["scylla.smp=4", "scylla.overprovisioned"]);
    assert!(own.contains("--smp 4 ") && own.contains("--overprovisioned"), "{own}");
    assert!(told.contains("scylla.smp=4, as asked, where --smp 16 is advised"), "{told}");
}

#[test]
fn aerospike_pins_itself_where_it_has_a_whole_numa_and_a_near_nic() {
    let device = |name: &str, numa| Device { name: name.into(), numa: Some(NumaId(numa)) };
    let devices = Devices { nics: vec![device("ens1", 0), device("ens8", 1)], disks: Vec::new() };
    let near = Request {
        devices,
        addresses: Addresses::Given(vec!["10.0.0.1".parse().unwrap()]),
        budget: Budget { numa_count: Some(2), ..Budget::default() },
        ..request(Database::Aerospike, "per-numa")
    };
    let emitted = files(&layout(&near), &asked(Path::new("/srv/lab"))).unwrap();
    let conf = text(&emitted, "aerospike-2/aerospike.conf");
    for line in ["auto-pin numa", "service-threads 16", "address ens8", "port 3100"] {
        assert!(conf.lines().any(|of| of.trim() == line), "{line}: {conf}");
    }
    assert!(text(&emitted, "aerospike-2/run.sh").contains("--instance 1"));
    let local = files(
        &layout(&request(Database::Aerospike, "per-numa")),
        &with(&["aerospike.service.proto-fd-max=20000", "aerospike.namespace.nsup-period=0"], &[]),
    )
    .unwrap();
    let conf = text(&local, "aerospike-8/aerospike.conf");
    for line in ["auto-pin none", "address 127.0.0.8", "data-size 46080M", "proto-fd-max 20000"] {
        assert!(conf.lines().any(|of| of.trim() == line), "{line}: {conf}");
    }
    assert_eq!(conf.matches('{').count(), conf.matches('}').count());
    assert!(conf.contains("    nsup-period 0\n"), "{conf}");
    assert!(notes(&local).contains("proto-fd-max=20000, as asked, where 15000 is advised"));
    let old = Asked { version: Some("6.4".into()), ..asked(Path::new("/srv/lab")) };
    let old = files(&layout(&request(Database::Aerospike, "per-numa")), &old).unwrap();
    let conf = text(&old, "aerospike-1/aerospike.conf");
    assert!(conf.contains("memory-size 61440M") && !conf.contains("data-size"), "{conf}");
}

#[test]
fn what_a_release_refuses_is_named_with_its_successor() {
    let refused = |database, asked: &Asked| {
        files(&layout(&request(database, "per-numa")), asked).unwrap_err().to_string()
    };
    for (set, cure) in [
        ("cassandra.start_rpc=true", "native_transport_port"),
        ("cassandra.concurrent_replicates=1", "leave it out"),
        ("cassandra.concurent_reads=1", "did you mean concurrent_reads?"),
    ] {
        let error = refused(Database::Cassandra, &with(&[set], &[]));
        assert!(error.contains(cure), "{error}");
    }
    let error = refused(Database::Cassandra, &with(&[], &["-XX:+UseConcMarkSweepGC"]));
    assert!(error.contains("Java 17") && error.contains("-XX:+UseG1GC"), "{error}");
    let java = Asked { java: Some(8), ..with(&[], &[]) };
    assert!(refused(Database::Cassandra, &java).contains("11 or 17"));
    for (set, cure) in [
        ("aerospike.namespace.memory-size=1G", "namespace.storage-engine.data-size"),
        ("aerospike.service.transaction-queues=4", "service.service-threads"),
        ("aerospike.namespace.storage-engine.write-block-size=128K", "flush-size"),
    ] {
        let error = refused(Database::Aerospike, &with(&[set], &[]));
        assert!(error.contains(cure) && error.contains("8.1"), "{error}");
    }
    let other = with(&["scylla.smp=1"], &[]);
    assert!(refused(Database::Cassandra, &other).contains("another database"));
    assert!(refused(Database::Scylla, &with(&[], &["-Xss1m"])).contains("--jvm"));
    let version = Asked { version: Some("6.0".into()), ..with(&[], &[]) };
    assert!(refused(Database::Scylla, &version).contains("leave it out"));
    let ring = Asked { ring: true, ..with(&[], &[]) };
    assert!(refused(Database::Reference, &ring).contains("--ring"));
    let newline = asked(Path::new("/a\nb"));
    assert!(matches!(
        files(&layout(&request(Database::Reference, "single")), &newline),
        Err(EmitError::Root { .. })
    ));
}

#[test]
fn old_names_that_are_still_read_are_told() {
    let old = with(&["cassandra.read_request_timeout_in_ms=5000"], &[]);
    let emitted = files(&layout(&request(Database::Cassandra, "single")), &old).unwrap();
    let told = notes(&emitted);
    assert!(told.contains("today it is read_request_timeout, with a unit such as ms"), "{told}");
    let yaml = text(&emitted, "cassandra-1/cassandra.yaml");
    assert!(yaml.contains("read_request_timeout_in_ms: 5000"), "{yaml}");
}

#[test]
fn nothing_is_written_over() {
    let dir = TempDir::new().unwrap();
    let emitted =
        files(&layout(&request(Database::Reference, "per-numa")), &asked(dir.path())).unwrap();
    emitted.write(dir.path()).unwrap();
    let error = emitted.write(dir.path()).unwrap_err();
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
}
