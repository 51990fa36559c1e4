//! The end of a run directory that has nothing to say.
//!
//! Input: the directory of a run that was begun and measured nothing. Output: it is gone, and
//! `runs/latest` points at the newest run that is left. Limits: a directory that cannot itself be
//! removed, as where a disk is mounted, stays and is empty.

use crate::run_dir::{MANIFEST, RUNS, RunDir, RunDirError, point_latest, write_failed};
use std::fs;
use std::path::{Path, PathBuf};

/// Removes the directory of a run with all that is in it.
///
/// # Errors
/// [`RunDirError`] when it is not the run's own any more, or something in it cannot be removed.
pub fn discard(run_dir: &RunDir) -> Result<(), RunDirError> {
    run_dir.check()?;
    let path = run_dir.path();
    for entry in fs::read_dir(path).map_err(write_failed(path))? {
        let entry = entry.map_err(write_failed(path))?.path();
        let is_dir = fs::symlink_metadata(&entry).is_ok_and(|found| found.is_dir());
        let removed = if is_dir { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        removed.map_err(write_failed(&entry))?;
    }
    // Empty it says nothing either.
    let _ = fs::remove_dir(path);
    leave_latest(path)
}

/// `latest` beside it points elsewhere, or goes.
fn leave_latest(gone: &Path) -> Result<(), RunDirError> {
    let (Some(runs), Some(name)) = (gone.parent(), gone.file_name()) else { return Ok(()) };
    let latest = runs.join("latest");
    if fs::read_link(&latest).ok().as_deref() != Some(Path::new(name)) {
        return Ok(());
    }
    let entries = fs::read_dir(runs).map_err(write_failed(runs))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_run = |path: &PathBuf| *path != latest && path.join(MANIFEST).is_file();
    // Their names begin with the time.
    match paths.filter(is_run).max() {
        Some(newest) => point_latest(&latest, &newest),
        None => {
            fs::remove_file(&latest).map_err(write_failed(&latest))?;
            if runs.file_name().is_some_and(|name| name == RUNS) {
                // Unless something else is there.
                let _ = fs::remove_dir(runs);
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_latest_is_the_run_before() {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join(RUNS);
        let latest = runs.join("latest");
        let begin = |name: &str| {
            let run = RunDir::create(Some(&runs.join(name)), "a").unwrap();
            run.write(MANIFEST, b"{}").unwrap();
            fs::create_dir_all(run.path().join("pilots/single")).unwrap();
            point_latest(&latest, run.path()).unwrap();
            run
        };
        let (first, second) = (begin("20260101T000000Z-a"), begin("20260102T000000Z-a"));
        discard(&second).unwrap();
        assert!(!second.path().exists());
        assert_eq!(fs::read_link(&latest).unwrap(), Path::new("20260101T000000Z-a"));
        discard(&first).unwrap();
        assert!(!runs.exists());
    }

    #[test]
    fn what_has_taken_its_place_stays() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("out");
        let run = RunDir::create(Some(&out), "a").unwrap();
        fs::rename(&out, home.path().join("moved")).unwrap();
        fs::create_dir(&out).unwrap();
        fs::write(out.join("mine"), "").unwrap();
        assert!(matches!(discard(&run), Err(RunDirError::Gone { .. })));
        assert!(out.join("mine").exists());
    }
}
