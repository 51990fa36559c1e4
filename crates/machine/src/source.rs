//! Bounded reads below a root directory.
//!
//! Input: paths relative to the root. Output: trimmed text, numbers and cpu sets, `None` for
//! all that is missing, unreadable, not a plain file or not of the form.

use crate::parse;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::CpuSet;

/// `/proc/cpuinfo` of 1024 cpus stays below this.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A tree with `sys` and `proc` in it.
#[derive(Debug)]
pub(crate) struct Source {
    root: PathBuf,
}

impl Source {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The text of a file without the white space around it; bytes that are no UTF-8 are
    /// replaced.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let path = self.root.join(path);
        // A pipe in a recorded tree would block the read for ever.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// A file that is `0` or `1`.
    pub(crate) fn flag(&self, path: &str) -> Option<bool> {
        match self.text(path)?.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    /// A cpu set from the first file that has one; older kernels have only the mask.
    pub(crate) fn cpus(&self, lists: &[&str], masks: &[&str]) -> Option<CpuSet> {
        lists
            .iter()
            .find_map(|path| self.text(path)?.parse().ok())
            .or_else(|| masks.iter().find_map(|path| parse::mask(&self.text(path)?)))
    }

    /// Whether there is such a file or directory.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// What a symbolic link says, as it stands there.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.root.join(path)).ok()?.into_os_string().into_string().ok()
    }

    /// The numbers N of the entries `<prefix>N` of a directory, ascending.
    pub(crate) fn numbered(&self, dir: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .names(dir)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The entries of a directory, sorted.
    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(dir)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}
