//! Real children: they are where they should be, are heard, and never stay behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use machine::Machine;
use stage::{
    Child, MemoryPolicy, ProcessId, Program, ReadyError, Signal, SpawnError, VerifyError, spawn,
};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use units::{CpuId, CpuSet, Nanos, NumaId, NumaSet, clock};

const GRACE: Nanos = Nanos::from_secs(10);

fn allowed() -> CpuSet {
    Machine::read(Path::new("/")).unwrap().allowed
}

fn program(dir: &TempDir, argv: &[&str]) -> Program {
    Program {
        host: "local".into(),
        instance: "test-1".into(),
        argv: argv.iter().map(Into::into).collect(),
        cpus: allowed().iter().take(1).collect(),
        memory: MemoryPolicy::Local,
        log: dir.path().join("child.log"),
    }
}

fn sh(dir: &TempDir, script: &str) -> Child {
    spawn(&program(dir, &["sh", "-c", script])).unwrap()
}

/// Waits for what must come; the limit only turns a hang into a failure.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + Nanos::from_secs(30);
    while !holds() {
        assert!(clock::now() < deadline, "never: {what}");
        sleep(Duration::from_millis(5));
    }
}

fn unused_addr() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_child_is_confined_to_its_cpus() {
    let dir = TempDir::new().unwrap();
    for cpu in allowed().iter() {
        let cpus: CpuSet = [cpu].into_iter().collect();
        let mut sleeper = program(&dir, &["sleep", "600"]);
        sleeper.cpus = cpus.clone();
        let child = spawn(&sleeper).unwrap();
        child.verify().unwrap();
        // A thread that was moved is found.
        let elsewhere = allowed().iter().find(|other| *other != cpu);
        let Some(elsewhere) = elsewhere else { return };
        let moved = Command::new("taskset")
            .args(["-cp", &elsewhere.0.to_string(), &child.pid().to_string()])
            .output();
        if moved.is_ok_and(|output| output.status.success()) {
            let error = child.verify().unwrap_err();
            assert!(matches!(error, VerifyError::Differs { .. }), "{error}");
            assert!(error.to_string().contains("sleep"), "{error}");
        }
    }
}

#[test]
fn a_child_has_no_descriptor_but_its_output() {
    let dir = TempDir::new().unwrap();
    let lock = std::fs::File::create(dir.path().join("lock")).unwrap();
    // As one that this process was started with.
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty()).unwrap();
    let child = sh(&dir, "ls -l /proc/$$/fd; echo done; sleep 60");
    eventually("its list", || child.last_lines().iter().any(|line| line == "done"));
    let lines = child.last_lines();
    assert!(lines.iter().any(|line| line.contains("/dev/null")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("lock")), "{lines:?}");
}

#[test]
fn a_dropped_child_is_gone_with_its_group() {
    let dir = TempDir::new().unwrap();
    let child = sh(&dir, "sleep 600 & echo $!; wait");
    eventually("the pid of the grandchild", || !child.last_lines().is_empty());
    let grandchild = ProcessId::of(child.last_lines()[0].parse().unwrap()).unwrap();
    let id = child.id();
    assert!(id.is_alive() && grandchild.is_alive());
    drop(child);
    assert!(!id.is_alive());
    eventually("the end of the grandchild", || !grandchild.is_alive());
}

#[test]
fn a_child_that_obeys_is_not_killed() {
    let dir = TempDir::new().unwrap();
    let mut child = sh(&dir, "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done");
    eventually("its first line", || !child.last_lines().is_empty());
    assert_eq!(child.terminate(GRACE).unwrap().code(), Some(7));
    assert_eq!(child.terminate(GRACE).unwrap().code(), Some(7));
    assert!(!child.is_running());
    // The shell may say on stderr that its `sleep` was terminated too.
    assert!(child.last_lines().contains(&"bye".to_owned()), "{:?}", child.last_lines());
}

#[test]
fn a_stopped_child_can_still_obey() {
    let dir = TempDir::new().unwrap();
    let mut child = sh(&dir, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
    eventually("its first line", || !child.last_lines().is_empty());
    assert!(child.id().signal(Signal::STOP).unwrap());
    assert!(child.is_running());
    assert_eq!(child.terminate(GRACE).unwrap().code(), Some(7));
}

#[test]
fn a_child_that_ignores_term_is_killed() {
    let dir = TempDir::new().unwrap();
    let mut child = sh(&dir, "trap '' TERM; echo up; while :; do sleep 0.01; done");
    eventually("its first line", || !child.last_lines().is_empty());
    let exit = child.terminate(Nanos::from_millis(50)).unwrap();
    assert_eq!(exit.signal(), Some(Signal::KILL.as_raw()));
    assert!(!child.id().signal(Signal::TERM).unwrap(), "a signal to the dead");
}

#[test]
fn output_is_logged_with_host_instance_and_time() {
    let dir = TempDir::new().unwrap();
    let child = sh(&dir, "echo one; echo two >&2; cat; exit 3");
    // `cat` ends at once: there is no standard input.
    eventually("its end", || !child.is_running());
    assert_eq!(child.exit_text().as_deref(), Some("exit status: 3"));
    drop(child);
    let log = std::fs::read_to_string(dir.path().join("child.log")).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_by_key(|line| line.ends_with("two"));
    for (line, said) in lines.iter().zip(["one", "two"]) {
        let words: Vec<&str> = line.split(' ').collect();
        let [host, instance, ms, text] = words[..] else { panic!("{line}") };
        assert_eq!((host, instance, text), ("local", "test-1", said));
        assert!(ms.parse::<u64>().unwrap() < 60_000, "{line}");
    }
    assert_eq!(lines.len(), 2, "{log}");
}

#[test]
fn readiness_is_a_connection_and_a_living_child() {
    let dir = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    sh(&dir, "sleep 600").wait_ready(addr, GRACE).unwrap();

    let error = sh(&dir, "echo no such option; exit 2").wait_ready(unused_addr(), GRACE);
    let error = error.unwrap_err();
    assert!(matches!(error, ReadyError::Ended { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("exit status: 2") && text.contains("no such option"), "{text}");

    let mute = sh(&dir, "echo starting; sleep 600");
    eventually("its first line", || !mute.last_lines().is_empty());
    let error = mute.wait_ready(unused_addr(), Nanos::from_millis(50)).unwrap_err();
    assert!(matches!(error, ReadyError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("starting"), "{error}");

    let error = stage::ensure_free(addr).unwrap_err();
    assert!(error.to_string().contains(&addr.to_string()), "{error}");
    drop(listener);
    // A child of another test holds a copy of the listener between its fork and its exec.
    eventually("a free address", || stage::ensure_free(addr).is_ok());
}

#[test]
fn usage_grows_with_work() {
    let dir = TempDir::new().unwrap();
    let child = sh(&dir, "while :; do :; done");
    eventually("cpu time", || {
        let usage = child.usage().unwrap();
        usage.cpu_user + usage.cpu_system >= Nanos::from_millis(50) && usage.rss_max.0 > 0
    });
}

#[test]
fn a_child_takes_its_memory_from_where_it_was_told() {
    let machine = Machine::read(Path::new("/")).unwrap();
    let Some(numa) = machine.numa.iter().find(|numa| numa.memory_bytes > Some(0)) else {
        println!("SKIP: this kernel shows no NUMA node with memory");
        return;
    };
    let dir = TempDir::new().unwrap();
    let numas: NumaSet = [numa.id].into_iter().collect();
    for memory in [MemoryPolicy::Bind(numas.clone()), MemoryPolicy::Interleave(numas.clone())] {
        let child = spawn(&Program { memory, ..program(&dir, &["sleep", "600"]) }).unwrap();
        let pages = child.verify_pages().unwrap();
        assert_eq!(pages.share_on(&numas), Some(1.0), "{pages}");
    }
    // The thread that forks has its own policy back.
    let child = spawn(&program(&dir, &["sleep", "600"])).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/numa_maps", child.pid())).unwrap();
    assert!(maps.lines().all(|line| line.split(' ').nth(1) == Some("default")), "{maps}");
}

#[test]
fn what_cannot_start_says_why() {
    let dir = TempDir::new().unwrap();
    let good = program(&dir, &["sleep", "600"]);
    let offline: CpuSet = [CpuId(1023)].into_iter().collect();
    let cases = [
        (Program { argv: vec![], ..good.clone() }, "no program"),
        (Program { argv: vec!["/no/such/file".into()], ..good.clone() }, "/no/such/file"),
        (Program { cpus: CpuSet::default(), ..good.clone() }, "at least one"),
        (Program { cpus: [CpuId(5000)].into_iter().collect(), ..good.clone() }, "5000"),
        (Program { cpus: offline, ..good.clone() }, "Cpus_allowed_list"),
        (
            Program {
                memory: MemoryPolicy::Bind(std::iter::once(NumaId(900)).collect()),
                ..good.clone()
            },
            "bind:900",
        ),
        (Program { log: dir.path().join("no/dir/log"), ..good }, "no/dir/log"),
    ];
    for (program, said) in cases {
        let error: SpawnError = spawn(&program).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_child_that_is_left_goes_on_in_its_own_session() {
    let dir = TempDir::new().unwrap();
    let script = "echo here; exec sleep 600";
    let child = stage::spawn_detached(&program(&dir, &["sh", "-c", script])).unwrap();
    eventually("its first line", || child.last_lines() == ["here"]);
    child.verify().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap();
    assert_eq!(session, child.pid().to_string());
    let id = child.leave();
    assert!(id.is_alive());
    assert!(id.signal(Signal::KILL).unwrap());
    eventually("its end", || !id.is_alive());

    let dropped = stage::spawn_detached(&program(&dir, &["sleep", "600"])).unwrap();
    let id = dropped.id();
    drop(dropped);
    assert!(!id.is_alive());
}

/// The environment variable by which the next test runs itself as the parent to be killed.
const AS_PARENT: &str = "STAGE_TEST_LOG_DIR";

#[test]
fn a_child_does_not_outlive_its_parent() {
    if std::env::var_os(AS_PARENT).is_some() {
        let dir = TempDir::new().unwrap();
        // Started from a thread that ends: the child must survive that.
        let sleeper = program(&dir, &["sleep", "600"]);
        let child = std::thread::scope(|scope| scope.spawn(|| spawn(&sleeper)).join());
        let child = child.unwrap().unwrap();
        sleep(Duration::from_millis(100));
        println!("child {} {}", child.pid(), child.is_running());
        sleep(Duration::from_secs(600));
    }
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_child_does_not_outlive_its_parent", "--nocapture"])
        .env(AS_PARENT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    // The test harness begins the line with the test's name.
    let line = lines.find(|line| line.as_ref().unwrap().contains("child ")).unwrap().unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., "child", pid, running] = words[..] else { panic!("{line}") };
    assert_eq!(running, "true", "the child ended with the thread that asked for it");
    let child = ProcessId::of(pid.parse().unwrap()).unwrap();
    assert!(child.is_alive());
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the end of the child", || !child.is_alive());
}
