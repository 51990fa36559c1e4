//! One process at a time in a run directory.
//!
//! In: the directory. Out: a guard, or who has it. The file `.lock` in it is locked while its
//! holder lives, and says who that is: pid and start time, so that a later process of the same
//! number is nobody. A lock whose holder has died, killed or with its host, is taken over. Limits:
//! a file system without locks between its hosts shows the processes of this host alone.

use crate::error::LabError;
use record::run_dir::write_failed;
use stage::{Lock, ProcessId};
use std::fs;
use std::path::{Path, PathBuf};
use units::{Bytes, read_plain};

const LOCK: &str = ".lock";

/// A run directory that is in use.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    me: Option<ProcessId>,
    _lock: Lock,
}

impl RunLock {
    /// # Errors
    /// [`LabError::Busy`] when another process works there, or it cannot be written to.
    pub(crate) fn take(run_dir: &Path) -> Result<Self, LabError> {
        let path = run_dir.join(LOCK);
        let failed = |error| LabError::RunDir(write_failed(&path)(error));
        let me = ProcessId::of(std::process::id()).ok();
        let busy =
            || LabError::Busy { path: run_dir.to_owned(), pid: holder(&path).map(|p| p.pid) };
        let Some(lock) = Lock::try_exclusive(&path).map_err(failed)? else { return Err(busy()) };
        // The lock may be given to everybody where there are none.
        if holder(&path).is_some_and(|other| Some(other) != me && other.is_alive()) {
            return Err(busy());
        }
        let text = serde_json::to_vec(&me).unwrap_or_default();
        fs::write(&path, text).map_err(failed)?;
        Ok(Self { path, me, _lock: lock })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A directory that has taken the place has a lock of its own.
        if holder(&self.path) == self.me {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Of a lock: a number and a time.
const SIZE_MAX: Bytes = Bytes(4096);

fn holder(path: &Path) -> Option<ProcessId> {
    serde_json::from_slice(&read_plain(path, SIZE_MAX).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_second_one_is_refused_and_told_who_has_it() {
        let home = tempfile::tempdir().unwrap();
        let lock = RunLock::take(home.path()).unwrap();
        let error = RunLock::take(home.path()).unwrap_err();
        let pid = std::process::id().to_string();
        assert!(error.to_string().contains(&format!("process {pid}")), "{error}");
        assert_eq!(error.exit_status(), 3);
        drop(lock);
        assert!(!home.path().join(LOCK).exists());
        RunLock::take(home.path()).unwrap();
    }

    #[test]
    fn a_lock_of_the_dead_is_taken_over_and_one_of_the_living_is_not() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(LOCK);
        let write = |id: ProcessId| fs::write(&path, serde_json::to_vec(&id).unwrap()).unwrap();
        // Not locked, as on a file system that knows no locks.
        let mut other = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let id = ProcessId::of(other.id()).unwrap();
        write(id);
        assert!(matches!(RunLock::take(home.path()), Err(LabError::Busy { pid: Some(_), .. })));
        // The same number, and another process.
        write(ProcessId { start_ticks: id.start_ticks.wrapping_sub(1), ..id });
        drop(RunLock::take(home.path()).unwrap());
        write(id);
        other.kill().unwrap();
        other.wait().unwrap();
        let taken = RunLock::take(home.path()).unwrap();
        assert_eq!(holder(&path), taken.me);
        drop(taken);
        // What is no lock locks nothing.
        fs::write(&path, "garbage").unwrap();
        RunLock::take(home.path()).unwrap();
    }
}
