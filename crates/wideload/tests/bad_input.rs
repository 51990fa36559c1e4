//! Bad input: one sentence that names the thing and the cure, exit 2 (usage) or 3 (environment),
//! nothing left running, no run directory without its reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Verdict;
use rig::{Ended, Home, RunDir, Serve};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::Duration;

const USAGE: i32 = 2;
const ENVIRONMENT: i32 = 3;

/// Runs the program and holds its refusal to the rules; gives back what it printed.
fn refused(home: &Home, arguments: &[&str], status: i32, says: &[&str]) -> Ended {
    let ended = home.run(arguments);
    let shown = format!("{arguments:?}: {ended:?}");
    assert_eq!(ended.status, Some(status), "{shown}");
    assert_eq!(ended.stdout, "", "stdout is for results: {shown}");
    assert!(!ended.stderr.contains("panicked"), "{shown}");
    // One sentence; the command line's own errors have the usage behind it.
    let mut lines = ended.stderr.lines();
    let sentence = lines.next().unwrap_or_default();
    assert!(sentence.starts_with("error: "), "{shown}");
    let rest: String = lines.collect();
    assert!(rest.is_empty() || rest.contains("Usage: ") || rest.contains("--help"), "{shown}");
    for word in says {
        assert!(ended.stderr.contains(word), "'{word}' is not in it: {shown}");
    }
    home.assert_nothing_left();
    assert_run_directories_have_their_reason(home);
    ended
}

/// What was begun says how it ended.
fn assert_run_directories_have_their_reason(home: &Home) {
    let Ok(runs) = fs::read_dir(home.at("runs")) else { return };
    for run in runs.flatten().filter(|run| run.file_name() != "latest") {
        let manifest = RunDir(run.path()).manifest();
        assert_eq!(manifest.verdict, Verdict::Failed, "{}", run.path().display());
        assert!(manifest.failure.is_some() && manifest.ended.is_some(), "{manifest:?}");
        assert!(run.path().join("report.html").exists());
    }
}

/// Refused before anything is begun: there is not even a directory of runs.
fn usage(arguments: &[&str], says: &[&str]) {
    let home = Home::new();
    refused(&home, &[&["run"], arguments].concat(), USAGE, says);
    assert!(RunDir(home.path().to_owned()).files().is_empty(), "{arguments:?} left something");
}

#[test]
fn unknown_words() {
    let home = Home::new();
    refused(&home, &["walk"], USAGE, &["'walk'", "--help"]);
    usage(&["ycsb:g"], &["'g'", "a, b, c, d, e, f"]);
    usage(&["tpcc"], &["'tpcc'", "ycsb:a"]);
    usage(&[], &["<WORKLOAD>", "--help"]);
    usage(&["ycsb:a", "--speed", "9"], &["'--speed'", "--help"]);
    usage(&["ycsb:a", "-p", "readporportion=1"], &["'readporportion'", "'readproportion'"]);
    usage(&["ycsb:a", "-p", "readproportion"], &["'readproportion'", "key=value"]);
    usage(&["ycsb:a", "--storage", "disk"], &["'disk'", "memory", "null"]);
    usage(&["ycsb:a", "--wait", "yield"], &["'yield'", "spin", "sleep"]);
    usage(&["ycsb:a", "--consistency", "MOST"], &["'MOST'", "LOCAL_ONE"]);
    usage(&["ycsb:a", "--protocol", "3"], &["'3'", "give 4 or 5"]);
    usage(&["ycsb:a", "--compression", "zstd"], &["'zstd'", "lz4", "snappy"]);
    let snappy = ["ycsb:a", "--protocol", "5", "--compression", "snappy"];
    usage(&snappy, &["does not know snappy", "lz4", "protocol version 4"]);
}

#[test]
fn a_protocol_that_the_target_does_not_speak() {
    let home = Home::new();
    let target = Serve::start(&home, &["--protocol-max", "4"]);
    let at = ["run", "ycsb:a", "--target", &target.target(), "--records", "100"];
    let words = [&at[..], &["--protocol", "5"]].concat();
    let ended = home.run(&words);
    assert_eq!(ended.status, Some(USAGE), "{ended:?}");
    for said in ["does not take protocol v5", "--protocol 4 --compression none"] {
        assert!(ended.stderr.contains(said), "{ended:?}");
    }
    assert_eq!(ended.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1);
}

#[test]
fn values_out_of_range() {
    for rate in ["0", "0/s", "-5", "2G/s", "fast"] {
        usage(&["ycsb:a", &format!("--rate={rate}")], &["--rate", rate]);
    }
    usage(&["ycsb:a", "--throttle", "0"], &["--throttle", "above 0"]);
    usage(&["ycsb:a", "--threads", "0"], &["--threads", "give 1 to 10M"]);
    usage(&["ycsb:a", "--threads", "10000001"], &["--threads", "give 1 to 10M"]);
    usage(&["ycsb:a", "--threads", "many"], &["--threads", "'many'", "100k"]);
    usage(&["ycsb:a", "--in-flight-max", "0"], &["--in-flight-max", "give 1 to 10M"]);
    usage(&["ycsb:a", "--in-flight-max", "9"], &["--in-flight-max", "--rate"]);
    for (flag, max) in [
        ("--serial", "10s"),
        ("--duration", "720h"),
        ("--warm", "720h"),
        ("--timeout", "1h"),
        ("--give-up", "720h"),
        ("--interval", "1h"),
    ] {
        let max = format!("at most {}", max.parse::<units::Nanos>().unwrap());
        usage(&["ycsb:a", flag, "1000h"], &[flag, "'1000h' is too long", &max]);
    }
    usage(&["ycsb:a", "--connections", "0"], &["--connections", "1..=16384"]);
    usage(&["ycsb:a", "--retries", "1001"], &["--retries", "1000"]);
    usage(&["ycsb:a", "--records", "0"], &["--records 0", "at least 1"]);
    usage(&["ycsb:a", "--ops", "0"], &["--ops 0", "at least 1"]);
    usage(&["ycsb:a", "--duration", "0s"], &["--duration 0s", "at least 1ms"]);
    usage(&["ycsb:a", "--duration", "10"], &["--duration", "'10'"]);
    usage(&["ycsb:a", "--timeout", "0s"], &["--timeout 0s", "at least"]);
    usage(&["ycsb:a", "--give-up", "0s"], &["--give-up 0s", "at least"]);
    usage(&["ycsb:a", "--interval", "1ms"], &["--interval 1ms", "at least 10ms"]);
    usage(&["ycsb:a", "--replication", "0"], &["--replication", "above 0"]);
    usage(&["ycsb:a", "--keyspace", "no-hyphens"], &["--keyspace", "letters, digits"]);
    usage(&["ycsb:a", "--table", ""], &["--table"]);
}

#[test]
fn properties_out_of_range() {
    usage(&["ycsb:a", "-p", "readproportion=-1"], &["readproportion='-1'", "from 0 to"]);
    usage(&["ycsb:a", "-p", "fieldcount=0"], &["fieldcount='0'", "from 1 to"]);
    usage(&["ycsb:a", "-p", "fieldlength=long"], &["fieldlength='long'", "whole number"]);
    usage(&["ycsb:a", "-p", "requestdistribution=round"], &["requestdistribution", "zipfian"]);
    usage(&["ycsb:a", "-p", "threadcount=0"], &["threadcount='0'"]);
    usage(&["ycsb:a", "-p", "recordcount=0"], &["recordcount"]);
    usage(&["ycsb:a", "-P", "absent.properties"], &["absent.properties", "readable"]);
    let home = Home::new();
    fs::write(home.at("w.properties"), "recordcount=10\ntable=\\uD8zz\n").unwrap();
    refused(&home, &["run", "ycsb:a", "-P", "w.properties"], USAGE, &["w.properties', line 2"]);
}

#[test]
fn contradictions() {
    usage(&["ycsb:a", "--ops", "5", "--duration", "1s"], &["--ops", "--duration"]);
    usage(&["ycsb:a", "--load", "--skip-load"], &["--load", "--skip-load"]);
    usage(&["ycsb:a", "--rate", "5/s", "--throttle", "5/s"], &["--rate", "--throttle"]);
    let bounds = ["ycsb:a", "--rate", "5/s", "--threads", "5", "--in-flight-max", "5"];
    usage(&bounds, &["--threads", "--in-flight-max"]);
    usage(&["ycsb:a", "--arrivals", "poisson"], &["--arrivals poisson", "--rate"]);
    let storage = ["ycsb:a", "--storage", "null", "--target", "127.0.0.1"];
    usage(&storage, &["--storage", "--target"]);
    usage(&["ycsb:a", "--target-cpus", "0", "--target", "127.0.0.1"], &["--target-cpus"]);
    let both = ["ycsb:a", "-p", "operationcount=9", "-p", "maxexecutiontime=9"];
    usage(&both, &["operationcount", "maxexecutiontime", "--ops"]);
}

#[test]
fn cpus_that_are_none() {
    usage(&["ycsb:a", "--client-cpus", "all"], &["--client-cpus", "'all'", "0-3,8"]);
    usage(&["ycsb:a", "--client-cpus", "3-1"], &["--client-cpus", "'3-1'"]);
    usage(&["ycsb:a", "--client-cpus", "1000"], &["--client-cpus 1000", "allowed are"]);
    usage(&["ycsb:a", "--target-cpus", "1000"], &["--target-cpus 1000", "allowed are"]);
    usage(&["ycsb:a", "--target-cpus", "0@99"], &["--target-cpus 0@99", "NUMA node 99"]);
    let home = Home::new();
    refused(&home, &["serve", "--serial", "1000h"], USAGE, &["--serial", "at most 10s"]);
    let scale = |flag: &str, value: &str, says: &[&str]| {
        refused(&home, &["scale", flag, value], USAGE, &[&[flag], says].concat());
    };
    scale("--instances", "1,1", &["names 1 twice"]);
    scale("--numa-count", "1,1", &["names 1 twice"]);
    scale("--seed", "18446744073709551615", &["9223372036854775807"]);
    scale("--duration", "1000h", &["at most"]);
    let unknown = refused(&home, &["scale", "--workload", "ycsb:z"], USAGE, &["'z'", "a, b, c"]);
    assert!(!unknown.stderr.contains("layout"), "{unknown:?}");
    refused(&home, &["serve", "--cpus", "1000"], USAGE, &["--cpus 1000", "allowed are"]);
    refused(&home, &["serve", "--cpus", "0,1000"], USAGE, &["--cpus 0,1000", "allowed are"]);
    refused(&home, &["serve", "--cpus", ""], USAGE, &["--cpus"]);
    refused(&home, &["serve", "--memory-max", "0"], USAGE, &["--memory-max 0", "4GiB"]);
}

#[test]
fn hosts_that_are_none() {
    usage(&["ycsb:a", "--target", ","], &["--target", "HOST[:PORT]"]);
    for port in ["0", "99999", "", "cql"] {
        usage(&["ycsb:a", "--target", &format!("127.0.0.1:{port}")], &["--target", "65535"]);
    }
    let home = Home::new();
    let name = ["run", "ycsb:a", "--target", "no-such-host.invalid"];
    refused(&home, &name, ENVIRONMENT, &["'no-such-host.invalid'", "give an address"]);
    let listen = ["serve", "--listen", "here:9042"];
    refused(&home, &listen, USAGE, &["--listen", "'here:9042'", "127.0.0.1:9042"]);
    let port = ["serve", "--listen", "9143"];
    refused(&home, &port, USAGE, &["--listen", "'9143'", "127.0.0.1:9143"]);
    // An address for documentation (RFC 5737) is nobody's.
    let foreign = ["serve", "--listen", "203.0.113.7:9042"];
    refused(&home, &foreign, ENVIRONMENT, &["203.0.113.7:9042", "address of this host"]);
}

#[test]
fn a_host_where_nobody_listens() {
    let home = Home::new();
    // Bound and released: nobody listens on it now.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let arguments = ["run", "ycsb:a", "--target", &free];
    let ended = refused(&home, &arguments, ENVIRONMENT, &[&free, "is the database up"]);
    assert!(ended.after < Duration::from_secs(5), "{ended:?}");
}

/// A server that answers every connection with `answer`, and with nothing when that is empty.
struct Strange {
    address: String,
    over: Arc<AtomicBool>,
}

impl Strange {
    fn start(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        spawn(move || {
            let mut held = Vec::new();
            for connection in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let mut connection = connection.unwrap();
                if !answer.is_empty() {
                    let _ = connection.read(&mut [0; 64]);
                    let _ = connection.write_all(answer);
                }
                held.push(connection);
            }
        });
        Self { address, over }
    }
}

impl Drop for Strange {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = std::net::TcpStream::connect(&self.address);
    }
}

#[test]
fn a_mute_host_is_not_waited_for_without_end() {
    let home = Home::new();
    let mute = Strange::start(b"");
    let arguments = ["run", "ycsb:a", "--target", &mute.address, "--timeout", "1s"];
    let ended = refused(&home, &arguments, ENVIRONMENT, &[&mute.address, "--timeout"]);
    assert!(ended.after < Duration::from_secs(10), "{ended:?}");
}

#[test]
fn a_host_of_another_protocol_is_named() {
    let home = Home::new();
    // The second is an alert of TLS.
    for (answer, status, what) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], ENVIRONMENT, "CQL"),
        (b"\x15\x03\x01\x00\x02\x02\x46\x00\x00", USAGE, "speaks TLS: add --tls"),
        (b"-ERR \r\n-ERR", ENVIRONMENT, "CQL"),
    ] {
        let strange = Strange::start(answer);
        let arguments = ["run", "ycsb:a", "--target", &strange.address, "--timeout", "1s"];
        refused(&home, &arguments, status, &[&strange.address, what]);
    }
}

#[test]
fn a_port_in_use() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let listen = serve.target();
    let ended = home.run(&["serve", "--listen", &listen]);
    assert_eq!(ended.status, Some(ENVIRONMENT), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for word in [&listen, "in use", "--listen"] {
        assert!(ended.stderr.contains(word), "{ended:?}");
    }
    assert_eq!(home.left(), [serve.process.id()], "the first one goes on");
    serve.control().query("SELECT key FROM system.local").unwrap();
}

#[test]
fn a_place_that_cannot_be_written() {
    let home = Home::new();
    fs::write(home.at("file"), "mine").unwrap();
    fs::create_dir(home.at("full")).unwrap();
    fs::write(home.at("full/mine"), "mine").unwrap();
    let cases = [
        ("file", USAGE, "'file' is not a directory"),
        ("file/below", USAGE, "is not a directory"),
        ("full", USAGE, "'full' is not empty"),
        // procfs takes no files, whoever asks.
        ("/proc/wideload", ENVIRONMENT, "'/proc/wideload'"),
    ];
    for (out, status, says) in cases {
        refused(&home, &["run", "ycsb:a", "--out", out], status, &[says, "--out"]);
    }
    assert_eq!(RunDir(home.path().to_owned()).files(), ["file", "full/", "full/mine"]);
    fs::write(home.at("runs"), "mine").unwrap();
    refused(&home, &["run", "ycsb:a"], USAGE, &["'runs", "is not a directory", "--out"]);
}

/// A file system of its own, unmounted on every way out.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    /// None where this user may not mount.
    fn tmpfs(at: &'a Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "wideload-test"]).arg(at);
        let mounted = mount.output().is_ok_and(|done| done.status.success());
        mounted.then_some(Self(at))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_read_only_or_full() {
    let home = Home::new();
    for (name, options) in [("ro", "ro,size=64k"), ("full", "size=64k")] {
        let at = home.at(name);
        fs::create_dir(&at).unwrap();
        let Some(mount) = Mount::tmpfs(&at, options) else {
            println!("SKIP: this user may not mount a tmpfs");
            return;
        };
        let out = format!("{name}/run");
        // Ten times the intervals make the log outgrow the file system in time.
        let load = ["--records", "1k", "--warm", "0s", "--duration", "20s", "--interval", "100ms"];
        let arguments = [&["run", "ycsb:a", "--out", &out], &load[..]].concat();
        let ended = refused(&home, &arguments, ENVIRONMENT, &[name, "--out"]);
        assert!(ended.after < Duration::from_secs(15), "ended at once: {ended:?}");
        drop(mount);
    }
}

#[test]
fn tables_that_are_not_as_said() {
    let home = Home::new();
    let own = ["run", "ycsb:a", "--skip-load"];
    refused(&home, &own, USAGE, &["ycsb.usertable", "leave out --skip-load"]);

    let serve = Serve::start(&home, &[]);
    let target = serve.target();
    let small = ["--records", "100", "--ops", "100", "--warm", "0s"];
    let run = [&["run", "ycsb:a", "--target", &target][..], &small].concat();
    let fresh = home.run(&[&run[..], &["--skip-load"]].concat());
    assert_eq!(fresh.status, Some(USAGE), "{fresh:?}");
    assert!(fresh.stderr.contains("leave out --skip-load"), "{fresh:?}");

    assert_eq!(home.run(&run).status, Some(0), "the first run creates and loads the table");
    let again = home.run(&run);
    assert_eq!((again.status, again.stderr.as_str()), (Some(0), ""), "its rows are there");
    let other = home.run(&[&run[..], &["-p", "fieldlength=7"]].concat());
    assert_eq!(other.status, Some(USAGE), "{other:?}");
    for word in ["ycsb.usertable", "of 100 bytes", "of 7 bytes", "--table"] {
        assert!(other.stderr.contains(word), "{other:?}");
    }
    assert_eq!(other.stderr.lines().count(), 1, "{other:?}");
    for choice in ["--skip-load", "--load"] {
        let ended = home.run(&[&run[..], &[choice]].concat());
        assert_eq!(ended.status, Some(0), "{choice}: {ended:?}");
    }
    // A table of other columns, and nobody's leave to touch it.
    serve.control().query("CREATE TABLE ycsb.other (k int PRIMARY KEY)").unwrap();
    let other = home.run(&[&run[..], &["--skip-load", "--table", "other"]].concat());
    assert_eq!(other.status, Some(USAGE), "{other:?}");
    assert!(other.stderr.contains("ycsb.other"), "{other:?}");
    assert_eq!(home.left(), [serve.process.id()]);
}

#[test]
fn a_directory_that_is_no_run() {
    let home = Home::new();
    fs::create_dir(home.at("empty")).unwrap();
    fs::write(home.at("file"), "mine").unwrap();
    for run in ["absent", "empty", "file"] {
        refused(&home, &["report", run], ENVIRONMENT, &[run]);
    }
    fs::write(home.at("empty/manifest.json"), "{").unwrap();
    refused(&home, &["report", "empty"], ENVIRONMENT, &["empty/manifest.json"]);
}
