//! The directory of a cluster's data: made empty, marked as ours, removed with the cluster.
//!
//! Input: a path that is not there yet. Output: [`Data`]; dropped, it removes the directory,
//! unless it was to be kept. Limits: what settings put elsewhere is not known here and stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// In every directory that may be removed.
const MARKER: &str = ".wideload-data";

/// Why there is no directory, or why it stays. Each text names it and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum DataError {
    #[error("{} is there already: remove it, or give another --data-dir or --name", path.display())]
    Exists { path: PathBuf },
    #[error("cannot make {}: {cause}; give a writable --data-dir", path.display())]
    Make { path: PathBuf, cause: io::Error },
    #[error("{} is not marked as data of wideload and stays: remove it by hand", path.display())]
    NotOurs { path: PathBuf },
    #[error("cannot remove {}: {cause}; remove it by hand", path.display())]
    Remove { path: PathBuf, cause: io::Error },
}

/// A directory for data.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) path: PathBuf,
    kept: bool,
    /// Also when its cluster has ended in good order.
    lasting: bool,
}

impl Data {
    pub(crate) fn make(path: &Path) -> Result<Self, DataError> {
        let make = |cause| DataError::Make { path: path.to_owned(), cause };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(make)?;
        }
        fs::create_dir(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => DataError::Exists { path: path.to_owned() },
            _ => make(cause),
        })?;
        let data = Self { path: path.to_owned(), kept: false, lasting: false };
        fs::write(path.join(MARKER), "").map_err(make)?;
        Ok(data)
    }

    /// One that stays whatever happens: it is used where it is there, and made where it is not.
    pub(crate) fn lasting(path: &Path) -> Result<Self, DataError> {
        if path.exists() && !path.join(MARKER).is_file() {
            return Err(DataError::NotOurs { path: path.to_owned() });
        }
        let mut data = match path.exists() {
            true => Self { path: path.to_owned(), kept: true, lasting: true },
            false => Self::make(path)?,
        };
        (data.kept, data.lasting) = (true, true);
        Ok(data)
    }

    /// Lets it stay.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Removes it now, unless it lasts.
    pub(crate) fn remove(mut self) -> Result<(), DataError> {
        self.kept = true;
        match self.lasting {
            true => Ok(()),
            false => remove(&self.path),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        if !self.kept {
            // Somebody who wants to know calls `remove`.
            let _ = remove(&self.path);
        }
    }
}

/// Removes a directory that wideload has made; one that is gone is no error.
///
/// # Errors
/// When it does not carry the mark, or cannot be removed.
pub fn remove(path: &Path) -> Result<(), DataError> {
    if !path.exists() {
        return Ok(());
    }
    if !path.join(MARKER).is_file() {
        return Err(DataError::NotOurs { path: path.to_owned() });
    }
    fs::remove_dir_all(path).map_err(|cause| DataError::Remove { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_is_removed() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("a/data");
        let data = Data::make(&path).unwrap();
        assert!(matches!(Data::make(&path), Err(DataError::Exists { .. })));
        drop(data);
        assert!(!path.exists());

        let mut kept = Data::make(&path).unwrap();
        kept.keep();
        drop(kept);
        assert!(path.exists());
        remove(&path).unwrap();
        remove(&path).unwrap();

        fs::create_dir(&path).unwrap();
        assert!(matches!(remove(&path), Err(DataError::NotOurs { .. })));
        assert!(matches!(Data::lasting(&path), Err(DataError::NotOurs { .. })));
        assert!(path.exists());
    }

    #[test]
    fn what_is_to_last_is_there_for_the_next_one() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("a/data");
        let first = Data::lasting(&path).unwrap();
        fs::write(path.join("rows"), "1").unwrap();
        first.remove().unwrap();
        drop(Data::lasting(&path).unwrap());
        assert_eq!(fs::read_to_string(path.join("rows")).unwrap(), "1");
    }
}
