//! A tree of files in memory: an unpacked recording, or a machine that was only described.
//!
//! Input: paths relative to the top, with their text. Output: what a file system would answer,
//! links followed inside the tree only. Limits: [`BYTES_MAX`] of text, [`ENTRIES_MAX`] entries,
//! [`DEPTH_MAX`] directories deep; more is refused, never cut.

use std::collections::BTreeMap;

/// Text of all files together; a recording of 1024 cpus has some 10 MiB.
pub(crate) const BYTES_MAX: usize = 256 << 20;
/// Files, links and directories.
pub(crate) const ENTRIES_MAX: usize = 500_000;
/// Directories above a file; PCI paths have some 20.
pub(crate) const DEPTH_MAX: usize = 48;
/// Links on the way to one file, as in the kernel.
pub(crate) const LINKS_MAX: usize = 40;

/// The entries of a directory, by name.
pub(crate) type Dir = BTreeMap<String, Entry>;

/// A directory, a file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Dir(Dir),
    File(Vec<u8>),
    Link(String),
}

/// Why an entry does not go into a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// More text than any machine shows.
    #[error("its files hold more than {} MiB", BYTES_MAX >> 20)]
    Bytes,
    /// More entries than any machine shows.
    #[error("it has more than {ENTRIES_MAX} entries")]
    Entries,
    /// Deeper than any machine's tree.
    #[error("its directories are more than {DEPTH_MAX} deep")]
    Depth,
}

/// Directories, files and links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    top: Dir,
    bytes: usize,
    entries: usize,
}

impl Tree {
    /// Puts an entry at `path`, with the directories above it. What is there already gives way,
    /// as with tar; of two directories the first one stays.
    pub(crate) fn put(&mut self, path: &str, entry: Entry) -> Result<(), TreeError> {
        let names = components(path);
        let Some((name, above)) = names.split_last() else { return Ok(()) };
        if names.len() > DEPTH_MAX {
            return Err(TreeError::Depth);
        }
        self.entries += 1;
        if let Entry::File(bytes) = &entry {
            self.bytes = self.bytes.saturating_add(bytes.len());
        }
        let mut dir = &mut self.top;
        for name in above {
            if !matches!(dir.get(*name), Some(Entry::Dir(_))) {
                self.entries += 1;
                dir.insert((*name).to_owned(), Entry::Dir(Dir::new()));
            }
            let Some(Entry::Dir(inner)) = dir.get_mut(*name) else { return Ok(()) };
            dir = inner;
        }
        if self.bytes > BYTES_MAX {
            return Err(TreeError::Bytes);
        }
        if self.entries > ENTRIES_MAX {
            return Err(TreeError::Entries);
        }
        let both_dirs = matches!((&entry, dir.get(*name)), (Entry::Dir(_), Some(Entry::Dir(_))));
        if !both_dirs {
            dir.insert((*name).to_owned(), entry);
        }
        Ok(())
    }

    /// All entries but the directories above others, in the order of their paths.
    pub(crate) fn leaves(&self) -> Vec<(String, &Entry)> {
        let mut leaves = Vec::new();
        collect(&self.top, "", &mut leaves);
        leaves
    }

    /// Puts the text of a file.
    pub(crate) fn put_text(&mut self, path: &str, text: String) -> Result<(), TreeError> {
        self.put(path, Entry::File(text.into_bytes()))
    }

    /// The directory at `path`; no link is followed.
    pub(crate) fn dir(&self, path: &[String]) -> Option<&Dir> {
        path.iter().try_fold(&self.top, |dir, name| match dir.get(name)? {
            Entry::Dir(inner) => Some(inner),
            Entry::File(_) | Entry::Link(_) => None,
        })
    }

    /// The entry at `path` as it stands there; no link is followed. The top itself has none.
    pub(crate) fn get(&self, path: &[String]) -> Option<&Entry> {
        let (name, above) = path.split_last()?;
        self.dir(above)?.get(name)
    }

    /// The tree below the only directory at the top, where there is no `sys` or `proc`: that is how
    /// most archives are made.
    pub(crate) fn below_only_directory(mut self) -> Self {
        let has_root = ["sys", "proc"].iter().any(|name| self.top.contains_key(*name));
        if !has_root
            && self.top.len() == 1
            && let Some((_, Entry::Dir(inner))) = self.top.pop_first()
        {
            self.top = inner;
        }
        self
    }
}

fn collect<'a>(dir: &'a Dir, above: &str, leaves: &mut Vec<(String, &'a Entry)>) {
    for (name, entry) in dir {
        let path = format!("{above}{name}");
        match entry {
            Entry::Dir(inner) if !inner.is_empty() => {
                collect(inner, &format!("{path}/"), leaves);
            }
            Entry::Dir(_) | Entry::File(_) | Entry::Link(_) => leaves.push((path, entry)),
        }
    }
}

/// The names of a path, `.` and empty ones left out, `..` kept.
pub(crate) fn components(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".").collect()
}
