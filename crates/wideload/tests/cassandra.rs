//! A real Cassandra, and what is not one: `up`, `ps`, `down`, `clean`, `run --target cassandra`.
//!
//! Needs a JDK that fits and Maven with its network or repository; where one is missing the tests
//! that need it say so and count as skipped. One cluster at a time, on addresses of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::cassandra::{cache, is_lacking};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const RELEASE: &str = "5.0.5";
const HEAP: [&str; 2] = ["--heap", "1GiB"];

/// Two JVMs at once would make each other slow.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A user with a state of its own, and the cache that all tests share.
struct User {
    dir: TempDir,
    cache: PathBuf,
}

impl User {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap(), cache: cache() }
    }

    fn without_cache() -> Self {
        let dir = TempDir::new().unwrap();
        let cache = dir.path().join("cache");
        Self { dir, cache }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wideload"));
        command.args(words).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.env("XDG_CACHE_HOME", &self.cache);
        // As in the rig of the other tests: it lives too shortly for the second compiler.
        command.env("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1");
        command
    }

    fn does(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.does(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Exits so, and says all of that.
    fn refused(&self, words: &[&str], status: i32, said: &[&str]) {
        let output = self.does(words);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {text}");
        for part in said {
            assert!(text.contains(part), "{words:?} does not say '{part}': {text}");
        }
    }

    /// The JVMs whose data or logs are this user's.
    fn jvms(&self) -> Vec<u32> {
        let ours = self.dir.path().to_str().unwrap();
        let is_ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("CassandraDaemon") && line.contains(ours)
        };
        let entries = fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        pids.filter(is_ours).collect()
    }

    /// Starts a verb, and returns when its JVM is there; None where there can be none.
    fn until_a_jvm_runs(&self, words: &[&str]) -> Option<Child> {
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        while self.jvms().is_empty() {
            if child.try_wait().unwrap().is_some() {
                let output = child.wait_with_output().unwrap();
                assert!(skipped(&output), "{words:?}: {}", stderr(&output));
                return None;
            }
            sleep(Duration::from_millis(20));
        }
        Some(child)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // A test that failed may have left something.
        for pid in self.jvms() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this machine has not what a real Cassandra needs; says so.
fn skipped(output: &Output) -> bool {
    is_lacking(output.status.code(), &stderr(output))
}

/// Waits for what must come; the limit only turns a hang into a failure.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Asks OPTIONS in protocol v4; true when SUPPORTED comes back.
fn answers_cql(address: &str) -> bool {
    let ask = || -> std::io::Result<u8> {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(&[4, 0, 0, 0, 5, 0, 0, 0, 0])?;
        let mut head = [0; 9];
        socket.read_exact(&mut head)?;
        Ok(head[4])
    };
    ask().is_ok_and(|opcode| opcode == 6)
}

/// A JDK that only says which it is.
fn fake_jdk(dir: &Path, version: &str) -> String {
    let program = dir.join("bin/java");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, format!("#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    dir.to_str().unwrap().to_owned()
}

#[test]
fn what_cannot_be_is_named_before_anything_starts() {
    let user = User::without_cache();
    let new = fake_jdk(&user.dir.path().join("new"), "25.0.3");
    let good = fake_jdk(&user.dir.path().join("good"), "17.0.1");
    let up = |words: &[&'static str]| -> Vec<&'static str> {
        [&["up", "cassandra", "--listen", "127.71.0.1"][..], &HEAP, words].concat()
    };
    let with_java = |home: &str, version: &str, status, said: &[&str]| {
        let words = up(&[]);
        let java = ["--java-home", home, "--cassandra-version", version];
        user.refused(&[words.as_slice(), &java].concat(), status, said);
    };
    with_java("no/such/jdk", RELEASE, 2, &["no/such/jdk", "bin/java", "11 or 17"]);
    with_java(&new, RELEASE, 3, &["25.0.3", "11 or 17", "--java-home"]);
    with_java(&good, "4.1.10", 3, &["17.0.1", "8 or 11"]);
    with_java(&good, "3.11.19", 2, &["4.1.x or 5.0.x"]);
    user.refused(&up(&["--cassandra-home", "no/such/dir"]), 2, &["no/such/dir", "tarball"]);
    user.refused(&up(&["--set", "concurrent_writes=64"]), 2, &["cassandra.concurrent_writes"]);
    user.refused(&up(&["--set", "cassandra.rpc_address=::"]), 2, &["--listen"]);
    user.refused(&up(&["--jvm", "-Xmx2g"]), 2, &["--heap", "-Xmx2g"]);
    user.refused(&up(&["--instances", "0"]), 2, &["--instances"]);
    user.refused(&up(&["--name", "a/b"]), 2, &["a/b"]);
    user.refused(&["up", "cassandra", "--heap", "999TiB"], 3, &["no memory", "--heap"]);
    user.refused(&["up", "cassandra", "--listen", "0.0.0.0"], 2, &["0.0.0.0"]);
    user.refused(&["run", "ycsb:a", "--heap", "1GiB"], 2, &["--target cassandra"]);
    user.refused(&["down", "nothing"], 2, &["nothing"]);

    let mut no_maven = user.command(&up(&[]));
    let output = no_maven.args(["--java-home", &good]).env("PATH", user.dir.path());
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("install Maven"), "{}", stderr(&output));
    assert_eq!(user.json(&["ps", "--json"]), Value::Array(Vec::new()));
    assert_eq!(user.json(&["down", "--json"]), Value::Array(Vec::new()));
    assert_eq!(user.json(&["clean", "--json"])["freed_bytes"], 0);
    assert_eq!(fs::read_dir(user.cache.join("wideload")).unwrap().count(), 0);
}

#[test]
fn a_ring_outlives_the_program_and_is_taken_down() {
    let _alone = alone();
    let user = User::new();
    let jar = user.cache.join("wideload/cassandra-5.0.5/cassandra-all-5.0.5.jar");
    // As a full disk would have left it.
    fs::create_dir_all(jar.parent().unwrap()).unwrap();
    fs::write(&jar, "half").unwrap();
    let words = ["up", "cassandra", "--instances", "2", "--listen", "127.71.1.1", "--json"];
    let small = ["--heap", "512MiB", "--cassandra-version", RELEASE];
    let output = user.does(&[&words[..], &small].concat());
    if skipped(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(jar.metadata().unwrap().len() > 1_000_000, "not made anew");
    let up: Value = serde_json::from_slice(&output.stdout).unwrap();
    let data = PathBuf::from(up["data"].as_str().unwrap());
    let addresses = ["127.71.1.1:9042", "127.71.1.2:9042"];
    for (instance, address) in up["instances"].as_array().unwrap().iter().zip(addresses) {
        assert_eq!((&instance["address"], &instance["state"]), (&address.into(), &"up".into()));
        assert!(answers_cql(address));
    }
    assert_eq!(user.json(&["ps", "--json"]), Value::Array(vec![up]));
    assert_eq!(user.jvms().len(), 2);
    assert!(data.is_dir());

    user.refused(&["up", "cassandra"], 2, &["wideload down cassandra"]);
    let other = ["up", "cassandra", "--name", "b", "--listen", "127.71.1.2", HEAP[0], HEAP[1]];
    user.refused(&other, 3, &["127.71.1.2:9042", "--listen"]);
    user.refused(&["clean"], 2, &["wideload down cassandra"]);

    let victim = user.jvms()[0];
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    eventually("its death is seen", || {
        let text = user.json(&["ps", "--json"]).to_string();
        text.contains("\"dead\"") && text.contains("\"up\"")
    });
    let down = user.json(&["down", "--json"]);
    assert_eq!((&down[0]["name"], &down[0]["stopped"]), (&"cassandra".into(), &1.into()));
    assert!(user.jvms().is_empty());
    assert!(!data.exists());
    for address in addresses {
        TcpListener::bind(address.parse::<SocketAddr>().unwrap()).unwrap();
    }
    assert_eq!(user.json(&["ps", "--json"]), Value::Array(Vec::new()));
    let logs = PathBuf::from(down[0]["logs"].as_str().unwrap());
    for log in ["cassandra-1-system.log", "cassandra-2-gc.log", "cassandra-1.yaml"] {
        assert!(logs.join(log).metadata().unwrap().len() > 0, "{log}");
    }
}

#[test]
fn a_run_starts_and_stops_its_own() {
    let _alone = alone();
    let user = User::new();
    let words = ["run", "ycsb:a", "--target", "cassandra", "--listen", "127.71.2.1", "--json"];
    let small = ["--records", "1k", "--ops", "5k", "--warm", "0s", "--threads", "8"];
    let own = ["--set", "cassandra.concurrent_writes=16", "--jvm", "-Dx.y=z"];
    let output = user.does(&[&words[..], &small, &own, &HEAP].concat());
    if skipped(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["target"]["kind"], "cassandra");
    assert_eq!(summary["target"]["version"], RELEASE);
    assert_eq!(summary["outcomes"]["ok"], 5000);
    assert!(user.jvms().is_empty());
    let trial = user.dir.path().join(summary["run"].as_str().unwrap()).join("trial-0001");
    assert!(!trial.join("data").exists());
    let raw = |name: &str| fs::read_to_string(trial.join("raw").join(name)).unwrap();
    assert!(raw("cassandra-1.yaml").contains("\nconcurrent_writes: 16\n"));
    assert!(raw("cassandra-1-command.txt").contains("\n-Dx.y=z\n"));
    assert!(raw("cassandra-1-system.log").contains("Starting listening for CQL clients"));
    let manifest = fs::read(trial.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["target"]["started"]["heap_bytes"], 1 << 30);
}

#[test]
fn what_cassandra_refuses_is_quoted() {
    let _alone = alone();
    let user = User::new();
    let words = ["up", "cassandra", "--listen", "127.71.3.1", "--set", "cassandra.no_such_key=1"];
    let output = user.does(&[&words[..], &HEAP].concat());
    if skipped(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("no_such_key"), "{}", stderr(&output));
    assert!(user.jvms().is_empty());
    assert_eq!(user.json(&["ps", "--json"]), Value::Array(Vec::new()));
    assert_eq!(fs::read_dir(user.dir.path().join("state/wideload/data")).unwrap().count(), 0);
}

#[test]
fn who_is_interrupted_or_killed_leaves_no_jvm() {
    let _alone = alone();
    let user = User::new();
    let up = ["up", "cassandra", "--listen", "127.71.4.1", HEAP[0], HEAP[1]];
    let Some(mut interrupted) = user.until_a_jvm_runs(&up) else { return };
    let pid = interrupted.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert!(user.jvms().is_empty());
    assert_eq!(user.json(&["ps", "--json"]), Value::Array(Vec::new()));

    // Whoever kills `up` outright can still end what it has started.
    let Some(mut killed) = user.until_a_jvm_runs(&up) else { return };
    eventually("it is remembered", || user.json(&["ps", "--json"]).to_string().contains("pid"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(user.json(&["ps", "--json"])[0]["instances"][0]["state"], "starting");
    assert_eq!(user.json(&["down", "--json"])[0]["stopped"], 1);
    assert!(user.jvms().is_empty());

    let words = ["run", "ycsb:a", "--target", "cassandra", "--listen", "127.71.4.1"];
    let Some(mut run) = user.until_a_jvm_runs(&[&words[..], &HEAP].concat()) else { return };
    run.kill().unwrap();
    run.wait().unwrap();
    eventually("the end of its JVM", || user.jvms().is_empty());
}
