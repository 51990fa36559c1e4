//! Emitted files on disk: all of them, or none.
//!
//! In: files with their paths below a root. Out: the files. They are written into a directory
//! beside their place first, which needs the disk's space, and renamed from there, which needs
//! none; what fails on the way is taken back. Limits: a process that is killed leaves the directory
//! beside it, `.NAME.part-PID`.

use super::{Emitted, File};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why files were not written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// Nothing is written over.
    #[error("{} is there already: give another directory to --emit, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The kernel's answer.
    #[error("cannot write {}: {cause}; free space, or give another directory to --emit",
        path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl Emitted {
    /// Writes all files below `root`, which is made; writes over none.
    ///
    /// # Errors
    /// [`WriteError`]; nothing is left of what was written before.
    pub fn write(&self, root: &Path) -> Result<(), WriteError> {
        let present = |path: &PathBuf| path.symlink_metadata().is_ok();
        if let Some(path) = self.files.iter().map(|file| root.join(&file.path)).find(present) {
            return Err(WriteError::Exists { path });
        }
        let beside = beside(root);
        let written = self.fill(&beside, root).and_then(|()| self.publish(&beside, root));
        // Empty, or what could not be used.
        let _ = fs::remove_dir_all(&beside);
        written
    }

    fn fill(&self, beside: &Path, root: &Path) -> Result<(), WriteError> {
        for file in &self.files {
            let io = |cause| WriteError::Io { path: root.join(&file.path), cause };
            create(&beside.join(&file.path), file).map_err(io)?;
        }
        Ok(())
    }

    /// Moves everything to its place.
    fn publish(&self, beside: &Path, root: &Path) -> Result<(), WriteError> {
        if !root.exists() {
            let io = |cause| WriteError::Io { path: root.to_owned(), cause };
            return fs::rename(beside, root).map_err(io);
        }
        let mut moved: Vec<PathBuf> = Vec::new();
        for file in &self.files {
            let path = root.join(&file.path);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all);
            if let Err(cause) = made.and_then(|()| fs::rename(beside.join(&file.path), &path)) {
                for path in &moved {
                    // It was put there a moment ago.
                    let _ = fs::remove_file(path);
                }
                return Err(WriteError::Io { path, cause });
            }
            moved.push(path);
        }
        Ok(())
    }
}

/// On the same file system as `root`.
fn beside(root: &Path) -> PathBuf {
    let pid = std::process::id();
    match (root.file_name(), root.exists()) {
        (Some(name), false) => {
            root.with_file_name(format!(".{}.part-{pid}", name.to_string_lossy()))
        }
        // It may be where another file system is mounted.
        _ => root.join(format!(".part-{pid}")),
    }
}

fn create(path: &Path, file: &File) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let mode = if file.executable { 0o755 } else { 0o644 };
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    opened.write_all(file.text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_write_that_fails_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = |path: &str| File { path: path.into(), text: "x".into(), executable: false };
        // No file system takes such a name.
        let broken = Emitted { files: vec![file("a/b"), file(&"x".repeat(300))], notes: vec![] };
        let names = || -> Vec<_> {
            let entries = fs::read_dir(home.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        for root in [home.path().join("new"), home.path().to_owned()] {
            let error = broken.write(&root).unwrap_err();
            assert!(matches!(error, WriteError::Io { .. }), "{error}");
            assert!(names().is_empty(), "{:?}", names());
        }
        let whole = Emitted { files: vec![file("a/b"), file("c")], notes: vec![] };
        whole.write(&home.path().join("new")).unwrap();
        assert_eq!(names(), ["new"]);
        whole.write(home.path()).unwrap();
        let mut found = names();
        found.sort();
        assert_eq!(found, ["a", "c", "new"]);
        let error = whole.write(home.path()).unwrap_err();
        assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    }
}
