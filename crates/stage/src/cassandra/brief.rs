//! Programs that are run for what they say, and end by themselves.
//!
//! Input: a command line and how long it may take. Output: its last lines, or why there are none.
//! Limits: only the last lines are kept; what is interrupted or endless is killed.

use crate::{MemoryPolicy, Program, SpawnError, spawn};
use rustix::thread::{CpuSet as Mask, sched_getaffinity};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use units::{CpuId, CpuSet, Nanos, clock};

/// How often it is asked whether it has ended.
const POLL: Duration = Duration::from_millis(10);

/// Why a program has not said what was wanted.
#[derive(Debug)]
pub(crate) enum BriefError {
    /// It did not start.
    Spawn(SpawnError),
    /// It did not end in time.
    Endless,
    /// It ended badly.
    Failed { exit: String, last_lines: Vec<String> },
    /// The user does not want to wait.
    Interrupted,
}

/// Runs a program; its last lines, standard error included.
pub(crate) fn run(argv: &[OsString], limit: Nanos) -> Result<Vec<String>, BriefError> {
    run_into(argv, Path::new("/dev/null"), limit, &AtomicBool::new(false))
}

/// The same, with all that it says in `log`, until `stop` is set.
pub(crate) fn run_into(
    argv: &[OsString],
    log: &Path,
    limit: Nanos,
    stop: &AtomicBool,
) -> Result<Vec<String>, BriefError> {
    let program = Program {
        host: "local".to_owned(),
        instance: "set-up".to_owned(),
        argv: argv.to_owned(),
        cpus: allowed_cpus(),
        memory: MemoryPolicy::Local,
        log: log.to_owned(),
    };
    let mut child = spawn(&program).map_err(BriefError::Spawn)?;
    let deadline = clock::now() + limit;
    while child.is_running() {
        if stop.load(Ordering::Relaxed) {
            return Err(BriefError::Interrupted);
        }
        if clock::now() >= deadline {
            return Err(BriefError::Endless);
        }
        sleep(POLL);
    }
    let exit = child
        .terminate(Nanos::ZERO)
        .map_err(|error| BriefError::Failed { exit: error.to_string(), last_lines: Vec::new() })?;
    let last_lines = child.last_lines();
    match exit.success() {
        true => Ok(last_lines),
        false => Err(BriefError::Failed { exit: exit.to_string(), last_lines }),
    }
}

/// The program of this name in the directories of `path`, as a shell would find it.
pub(crate) fn on_path(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let may_run = |program: &PathBuf| {
        let metadata = program.metadata().ok();
        metadata.is_some_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path?).map(|dir| dir.join(name)).find(may_run)
}

/// The cpus that this process may use.
fn allowed_cpus() -> CpuSet {
    // A kernel whose mask is larger than ours does not say: then cpu 0 has to do.
    let mask = sched_getaffinity(None).unwrap_or_else(|_| {
        let mut first = Mask::new();
        first.set(0);
        first
    });
    (0..Mask::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).map(|cpu| CpuId(cpu as u32)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Writes a program that a shell runs.
    pub(crate) fn script(path: &Path, body: &str) {
        std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn sh(body: &str, limit: Nanos, stop: bool) -> Result<Vec<String>, BriefError> {
        let argv = ["sh", "-c", body].map(OsString::from);
        run_into(&argv, Path::new("/dev/null"), limit, &AtomicBool::new(stop))
    }

    #[test]
    fn a_program_says_what_it_says_or_why_not() {
        let long = Nanos::from_secs(60);
        assert_eq!(sh("echo a; echo b >&2", long, false).unwrap().len(), 2);
        let failed = sh("echo no; exit 4", long, false).unwrap_err();
        let BriefError::Failed { exit, last_lines } = failed else { panic!("{failed:?}") };
        assert_eq!((exit.as_str(), last_lines.as_slice()), ("exit status: 4", &["no".into()][..]));
        let endless = sh("sleep 600", Nanos::from_millis(20), false).unwrap_err();
        assert!(matches!(endless, BriefError::Endless));
        assert!(matches!(sh("sleep 600", long, true).unwrap_err(), BriefError::Interrupted));
    }

    #[test]
    fn only_programs_are_found_on_the_path() {
        let (a, b) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        std::fs::write(a.path().join("x"), "no program").unwrap();
        script(&b.path().join("x"), "");
        let path = std::env::join_paths([a.path(), b.path()]).unwrap();
        assert_eq!(on_path("x", Some(&path)), Some(b.path().join("x")));
        assert_eq!(on_path("y", Some(&path)), None);
        assert_eq!(on_path("x", None), None);
    }
}
