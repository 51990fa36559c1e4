//! A lock between processes, on a file that may be removed while it is held.
//!
//! Input: a path. Output: a guard; it is released when dropped or when its process dies.
//! Source: flock(2). Limits: advisory; on network file systems as good as their flock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it if nobody else holds it.
    ///
    /// # Errors
    /// When the file cannot be made, or its file system knows no locks.
    pub fn try_exclusive(path: &Path) -> io::Result<Option<Self>> {
        Self::take(path, |file| taken(file.try_lock()))
    }

    /// Takes it together with others that share it; None while somebody has it alone.
    pub(crate) fn try_shared(path: &Path) -> io::Result<Option<Self>> {
        Self::take(path, |file| taken(file.try_lock_shared()))
    }

    fn take(path: &Path, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            let file = options.create(true).truncate(false).write(true).read(true).open(path)?;
            if !lock(&file)? {
                return Ok(None);
            }
            // Whoever had it before may have removed the file: then this lock locks nothing.
            let here = fs::metadata(path).map(|now| now.ino());
            if here.is_ok_and(|inode| file.metadata().is_ok_and(|ours| ours.ino() == inode)) {
                return Ok(Some(Self { _file: file }));
            }
        }
    }
}

fn taken(result: Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_alone_or_many_share_it() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("lock");
        let alone = Lock::try_exclusive(&path).unwrap();
        assert!(alone.is_some());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        assert!(Lock::try_shared(&path).unwrap().is_none());
        drop(alone);
        let one = Lock::try_shared(&path).unwrap();
        let other = Lock::try_shared(&path).unwrap();
        assert!(one.is_some() && other.is_some());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        drop((one, other));
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
    }

    #[test]
    fn a_removed_file_is_no_lock() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("lock");
        // The file goes between opening and locking, as when its holder removes it.
        let removed = std::cell::Cell::new(false);
        let lock = Lock::take(&path, |file| {
            if !removed.replace(true) {
                fs::remove_file(&path)?;
            }
            taken(file.try_lock())
        });
        let lock = lock.unwrap();
        assert!(lock.is_some() && path.exists());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
    }
}
