//! Whole files: written beside their place and renamed, so that a reader sees the old or the new
//! one.
//!
//! Input: a path and all bytes of the file. Output: the file, or an error and nothing beside it.
//! All of a process's whole files are written one after the other, under one lock: a process that
//! is to end at once ([`interrupt`]) waits for the file under way, so that no half of one is left.

use crate::manifest::{Manifest, Verdict};
use crate::run_dir::{MANIFEST, RunDirError, trials, write_failed};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use units::{Nanos, clock};

/// Room for what a manifest gains until its end: target, failure, caveats.
const END_BYTES_MAX: usize = 64 << 10;
/// How long the end of a process may wait for a file under way: a disk may hang.
const TURN_MAX: Nanos = Nanos::from_millis(500);

static TURN: Mutex<()> = Mutex::new(());

/// Keeps this process's other threads from writing whole files.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a whole file beside its place and renames it there. A link that somebody put beside it
/// is replaced, never followed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RunDirError> {
    let _turn = turn();
    write_beside(path, bytes)
}

fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), RunDirError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    // What a crash left, or a link to a file of somebody else.
    let _ = fs::remove_file(&beside);
    let mut file = File::create_new(&beside).map_err(write_failed(&beside))?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&beside, path));
    written.map_err(|e| {
        // Half a file helps nobody, and on a full disk its space does.
        let _ = fs::remove_file(&beside);
        write_failed(path)(e)
    })
}

/// Writes a manifest. One that says `running` takes room for its end, as blanks behind the JSON;
/// when the disk is full at the end, that is written into this room, since a directory that says
/// `running` for ever would be untrue.
pub(crate) fn write_manifest(
    path: &Path,
    mut bytes: Vec<u8>,
    running: bool,
) -> Result<(), RunDirError> {
    let _turn = turn();
    if running {
        bytes.resize(bytes.len() + END_BYTES_MAX, b' ');
        return write_beside(path, &bytes);
    }
    write_end(path, &bytes)
}

fn write_end(path: &Path, bytes: &[u8]) -> Result<(), RunDirError> {
    let room = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
    let fits = room.is_some_and(|room| bytes.len() as u64 <= room.len());
    match write_beside(path, bytes) {
        Err(RunDirError::Full { .. }) if fits => {
            write_in_place(path, bytes).map_err(write_failed(path))
        }
        written => written,
    }
}

/// Overwrites the start of a file that is at least as long, and cuts off the rest.
fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Holds back what this process would still write. Keep it until the process has ended.
#[must_use = "when it is dropped, other threads write on"]
pub struct Silence(#[allow(dead_code)] Option<MutexGuard<'static, ()>>); // held, not read

/// The last act of a process that is ended at once: the manifests of its run that still say
/// `running` get the verdict `interrupted` and the end `wall`, time since 1970. Best effort, within
/// half a second: what cannot be read or written stays as it is.
pub fn interrupt(run: Option<&Path>, wall: Nanos) -> Silence {
    let deadline = clock::now() + TURN_MAX;
    let turn = loop {
        match TURN.try_lock() {
            Ok(turn) => break Some(turn),
            Err(TryLockError::Poisoned(turn)) => break Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if clock::now() > deadline => break None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if let (Some(_), Some(run)) = (&turn, run) {
        let trials = trials(run).unwrap_or_default();
        for dir in trials.iter().map(|(_, dir)| dir.as_path()).chain([run]) {
            // The process ends now; there is nobody to tell.
            let _ = interrupt_one(&dir.join(MANIFEST), wall);
        }
    }
    Silence(turn)
}

fn interrupt_one(path: &Path, wall: Nanos) -> Option<()> {
    // A link may lead to a file of somebody else.
    let regular = fs::symlink_metadata(path).ok()?.is_file();
    let mut manifest = regular.then(|| Manifest::read(path).ok()).flatten()?;
    if manifest.verdict == Verdict::Running {
        let why = "interrupted by the user, who did not wait for the end";
        manifest.end(Verdict::Interrupted, Some(why.to_owned()), wall);
        let mut bytes = serde_json::to_vec_pretty(&manifest).ok()?;
        bytes.push(b'\n');
        write_end(path, &bytes).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunDir;

    const WALL: Nanos = Nanos::from_secs(951_782_399);

    #[test]
    fn what_runs_is_interrupted_and_what_has_ended_stays() {
        let home = tempfile::tempdir().unwrap();
        let run = RunDir::create(Some(&home.path().join("run")), "a").unwrap();
        let mut manifest = Manifest::starting("a", Vec::new(), WALL);
        run.write_json(MANIFEST, &manifest).unwrap();
        run.trial(2).unwrap().write_json(MANIFEST, &manifest.for_trial(2)).unwrap();
        manifest.end(Verdict::Ok, None, WALL);
        run.trial(1).unwrap().write_json(MANIFEST, &manifest.for_trial(1)).unwrap();
        drop(interrupt(Some(run.path()), WALL));
        let read = |dir: &str| -> Manifest {
            serde_json::from_slice(&fs::read(run.path().join(dir).join(MANIFEST)).unwrap()).unwrap()
        };
        assert_eq!(read("").verdict, Verdict::Interrupted);
        assert!(read("").failure.unwrap().contains("interrupted") && read("").ended.is_some());
        assert_eq!(read("trial-0001"), manifest.for_trial(1));
        assert_eq!(read("trial-0002").verdict, Verdict::Interrupted);
    }

    #[test]
    fn a_file_under_way_is_waited_for_but_not_for_ever() {
        let other = turn();
        let begun = clock::now();
        assert!(interrupt(None, WALL).0.is_none());
        assert!(clock::now().since(begun) >= TURN_MAX);
        drop(other);
    }
}
