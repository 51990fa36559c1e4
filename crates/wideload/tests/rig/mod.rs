//! What the tests of the program stand on: the built program in a directory of its own, a
//! reference target beside it, and the certainty that nothing is left running.
//!
//! Every process that a test starts carries a mark in its environment, and so do its children,
//! whoever their parent becomes. What carries the mark of a [`Home`] is ended with it.

#![allow(dead_code, unused_imports)] // each test program uses its part

pub(crate) mod cassandra;
pub(crate) mod original;
mod process;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod stress;

pub(crate) use process::{Ended, Process};
#[allow(unused_imports)] // likewise
pub(crate) use serve::Serve;

use record::hlog::{HlogReader, merged};
use record::{Latency, Manifest, Summary};
use stage::{ProcessId, Signal};
use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The variable that marks a test's processes.
const MARK: &str = "WIDELOAD_TEST_HOME";

/// Tests of one program that need the machine for themselves take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has ended its processes; the next one may go on.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks `condition` until it holds; false after `patience`.
pub(crate) fn eventually(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
}

/// An empty directory, and all processes that were started in it.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    mark: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        Self { dir: tempfile::tempdir().unwrap(), mark }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A path in it, for `--out` and files.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Any program that works here.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env(MARK, &self.mark);
        // What a panic would print must not depend on the caller.
        command.env("RUST_BACKTRACE", "0");
        // A Cassandra of a test lives for seconds: its second compiler would take half of the
        // processors for what never pays. No test times the database.
        command.env("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1");
        command
    }

    /// The program with these arguments, not started.
    pub(crate) fn wideload(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_wideload"));
        command.args(arguments);
        command
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Process::start(self.wideload(arguments))
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).wait(Duration::from_secs(120))
    }

    /// Runs a `--json` run that must succeed; its summary.
    pub(crate) fn summary(&self, arguments: &[&str]) -> Summary {
        let ended = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
        ended.summary()
    }

    /// Processes that were started here and still run.
    pub(crate) fn left(&self) -> Vec<ProcessId> {
        let mark = format!("{MARK}={}", self.mark);
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            let Ok(id) = ProcessId::of(pid) else { continue };
            // Of a process that has ended, or is another user's, there is none to read.
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if id.is_alive() && environment.split(|b| *b == 0).any(|v| v == mark.as_bytes()) {
                left.push(id);
            }
        }
        left
    }

    /// Fails when anything that was started here still runs; the kernel gets a moment to end what
    /// it was told to.
    pub(crate) fn assert_nothing_left(&self) {
        let gone = eventually(Duration::from_secs(2), || self.left().is_empty());
        assert!(gone, "left running: {:?}", self.left());
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for id in self.left() {
            let _ = id.signal(Signal::KILL);
        }
    }
}

/// A run directory that was read back.
pub(crate) struct RunDir(pub(crate) PathBuf);

impl RunDir {
    pub(crate) fn manifest(&self) -> Manifest {
        self.json("manifest.json")
    }

    pub(crate) fn summary(&self) -> Summary {
        self.json("trial-0001/summary.json")
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self, file: &str) -> T {
        let path = self.0.join(file);
        let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The histograms of a log by tag, all intervals merged.
    pub(crate) fn histograms(&self, file: &str) -> Vec<(String, Latency)> {
        let path = self.0.join("trial-0001").join(file);
        let log = fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        merged(HlogReader::new(BufReader::new(log)))
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// All histograms of one series (`service`, `lag`, ...) in one, over the operations.
    pub(crate) fn series(&self, file: &str, series: &str) -> Latency {
        let mut all = Latency::new();
        for (tag, latency) in self.histograms(file) {
            if tag.rsplit_once('-').is_some_and(|(_, of)| of == series) {
                all.merge(&latency);
            }
        }
        all
    }

    /// Names of its files, relative, sorted; a directory ends with a slash.
    pub(crate) fn files(&self) -> Vec<String> {
        fn walk(root: &Path, dir: &Path, names: &mut Vec<String>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                if path.is_dir() && !path.is_symlink() {
                    names.push(name + "/");
                    walk(root, &path, names);
                } else {
                    names.push(name);
                }
            }
        }
        let mut names = Vec::new();
        walk(&self.0, &self.0, &mut names);
        names.sort();
        names
    }
}
