//! Bounded reads below a root: of this host, of a recorded directory, of a tree in memory.
//!
//! Input: paths relative to the root. Output: trimmed text, numbers and cpu sets, `None` for
//! all that is missing, unreadable, not a plain file or not of the form. In everything but the
//! live `/` links are followed inside the tree only: an absolute one starts at its top.

use crate::parse;
use crate::tree::{Entry, LINKS_MAX, Tree, components};
use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{CpuId, CpuSet, NumaId, open_plain};

/// `/proc/cpuinfo` of 1024 cpus stays below this.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;

/// A tree with `sys` and `proc` in it.
#[derive(Debug)]
pub(crate) struct Source {
    place: Place,
    /// Where all that was found is copied to.
    copy: Option<RefCell<Tree>>,
}

#[derive(Debug)]
enum Place {
    /// The root of this host; the kernel follows the links.
    Live,
    Dir(PathBuf),
    Memory(Tree),
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dir,
    File,
}

impl Source {
    /// Of the host itself for `/`, else of a recorded directory.
    pub(crate) fn new(root: &Path) -> Self {
        let place = match root == Path::new("/") {
            true => Place::Live,
            false => Place::Dir(root.to_owned()),
        };
        Self { place, copy: None }
    }

    pub(crate) fn memory(tree: Tree) -> Self {
        Self { place: Place::Memory(tree), copy: None }
    }

    /// The same, and what is read is also kept, for [`Self::into_copy`].
    pub(crate) fn copying(self) -> Self {
        let place = match self.place {
            // Each link on the way has to be seen.
            Place::Live => Place::Dir(PathBuf::from("/")),
            place => place,
        };
        Self { place, copy: Some(RefCell::new(Tree::default())) }
    }

    /// Whether what is read is also kept.
    pub(crate) fn is_copying(&self) -> bool {
        self.copy.is_some()
    }

    /// All that was read: a tree that reads the same.
    pub(crate) fn into_copy(self) -> Tree {
        self.copy.map(RefCell::into_inner).unwrap_or_default()
    }

    /// The text of a file without the white space around it; bytes that are no UTF-8 are
    /// replaced.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = match &self.place {
            Place::Live => bounded(&Path::new("/").join(path)),
            Place::Dir(root) => bounded(&below(root, &self.walk(path)?.0)),
            Place::Memory(tree) => match tree.get(&self.walk(path)?.0)? {
                Entry::File(bytes) => Some(bytes.clone()),
                Entry::Dir(_) | Entry::Link(_) => None,
            },
        }?;
        // Sysfs says 4096 bytes of every file; tar fills up what it does not get with zeros.
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[..end]).trim().to_owned();
        self.keep(path, |_| Some(Entry::File(bytes)));
        Some(text)
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

    /// As [`Self::cpus`], of the first file that has `cpu` in it; some are stale or empty.
    pub(crate) fn cpus_with(&self, cpu: CpuId, lists: &[&str], masks: &[&str]) -> Option<CpuSet> {
        let has = |cpus: &CpuSet| cpus.contains(cpu);
        let list = |path: &&str| self.text(path)?.parse().ok().filter(has);
        let mask = |path: &&str| parse::mask(&self.text(path)?).filter(has);
        lists.iter().find_map(list).or_else(|| masks.iter().find_map(mask))
    }

    /// Whether there is such a file or directory.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let found = match &self.place {
            Place::Live => Path::new("/").join(path).exists(),
            Place::Dir(_) | Place::Memory(_) => self.walk(path).is_some(),
        };
        if found {
            self.keep(path, |kind| (kind == Kind::Dir).then(|| Entry::Dir(Default::default())));
        }
        found
    }

    /// What a symbolic link says, as it stands there.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        match &self.place {
            Place::Live => read_link(&Path::new("/").join(path)),
            Place::Dir(_) | Place::Memory(_) => {
                let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
                let mut at = self.walk(above)?.0;
                at.push(name.to_owned());
                let target = self.link_at(&at)?;
                self.keep_link(&at, &target);
                Some(target)
            }
        }
    }

    /// The last name of what a link points at: a device's driver.
    pub(crate) fn link_name(&self, path: &str) -> Option<String> {
        self.link(path)?.rsplit('/').next().map(str::to_owned)
    }

    /// The NUMA node of a device: that of its directory, or of the first one above it that has
    /// one. -1 means that the firmware does not say.
    pub(crate) fn numa_of_device(&self, path: &str) -> Option<NumaId> {
        let mut at = self.real(path)?;
        while at.len() > 1 && at.last().is_some_and(|name| name != "devices") {
            let dir = at.join("/");
            if let Some(text) = self.text(&format!("{dir}/numa_node")) {
                return text.parse().ok().map(NumaId);
            }
            at.pop();
        }
        None
    }

    /// The numbers N of the entries `<prefix>N` of a directory, ascending.
    pub(crate) fn numbered(&self, dir: &str, prefix: &str) -> Vec<u32> {
        let names = self.names(dir);
        let number = |name: &String| -> Option<u32> {
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            self.keep_file_name(dir, name);
            Some(number)
        };
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The entries of a directory, sorted.
    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        let listed = |path: &Path| {
            let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
            entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect()
        };
        let mut names: Vec<String> = match &self.place {
            Place::Live => listed(&Path::new("/").join(dir)),
            Place::Dir(root) => {
                self.walk(dir).map_or_else(Vec::new, |(at, _)| listed(&below(root, &at)))
            }
            Place::Memory(tree) => self
                .walk(dir)
                .and_then(|(at, _)| Some(tree.dir(&at)?.keys().cloned().collect()))
                .unwrap_or_default(),
        };
        names.sort_unstable();
        self.keep_names(dir, &names);
        names
    }

    /// Where a path leads when all links are followed, below the root.
    fn real(&self, path: &str) -> Option<Vec<String>> {
        match &self.place {
            Place::Live => {
                let path = fs::canonicalize(Path::new("/").join(path)).ok()?;
                Some(components(path.to_str()?).into_iter().map(str::to_owned).collect())
            }
            Place::Dir(_) | Place::Memory(_) => self.walk(path).map(|(at, _)| at),
        }
    }

    /// Follows a path and its links inside the tree.
    fn walk(&self, path: &str) -> Option<(Vec<String>, Kind)> {
        let mut at: Vec<String> = Vec::new();
        let mut ahead: Vec<String> =
            components(path).into_iter().rev().map(str::to_owned).collect();
        let (mut links, mut kind) = (0, Kind::Dir);
        while let Some(name) = ahead.pop() {
            if name == ".." {
                // The top is its own parent, as in every file system.
                at.pop();
                kind = Kind::Dir;
                continue;
            }
            at.push(name);
            if let Some(target) = self.link_at(&at) {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                self.keep_link(&at, &target);
                at.pop();
                if target.starts_with('/') {
                    at.clear();
                }
                ahead.extend(components(&target).into_iter().rev().map(str::to_owned));
                continue;
            }
            kind = self.kind_at(&at)?;
        }
        Some((at, kind))
    }

    fn link_at(&self, at: &[String]) -> Option<String> {
        match &self.place {
            Place::Live => None,
            Place::Dir(root) => read_link(&below(root, at)),
            Place::Memory(tree) => match tree.get(at)? {
                Entry::Link(target) => Some(target.clone()),
                Entry::Dir(_) | Entry::File(_) => None,
            },
        }
    }

    fn kind_at(&self, at: &[String]) -> Option<Kind> {
        match &self.place {
            Place::Live => None,
            Place::Dir(root) => {
                let kind = fs::symlink_metadata(below(root, at)).ok()?;
                Some(if kind.is_dir() { Kind::Dir } else { Kind::File })
            }
            Place::Memory(tree) => match tree.get(at)? {
                Entry::Dir(_) => Some(Kind::Dir),
                Entry::File(_) | Entry::Link(_) => Some(Kind::File),
            },
        }
    }

    /// Copies what stands at a path. A copy that grows beyond the bounds of a tree stays as it is.
    fn keep(&self, path: &str, entry: impl FnOnce(Kind) -> Option<Entry>) {
        let Some(copy) = &self.copy else { return };
        if let Some((at, kind)) = self.walk(path)
            && let Some(entry) = entry(kind)
        {
            let _ = copy.borrow_mut().put(&at.join("/"), entry);
        }
    }

    fn keep_link(&self, at: &[String], target: &str) {
        if let Some(copy) = &self.copy {
            let _ = copy.borrow_mut().put(&at.join("/"), Entry::Link(target.to_owned()));
        }
    }

    /// Copies a file without its text, which its name stands for.
    fn keep_file_name(&self, dir: &str, name: &str) {
        let Some(copy) = &self.copy else { return };
        if let Some((at, Kind::File)) = self.walk(&format!("{dir}/{name}"))
            && copy.borrow().get(&at).is_none()
        {
            let _ = copy.borrow_mut().put(&at.join("/"), Entry::File(Vec::new()));
        }
    }

    /// Copies a directory and which directories and links are in it; files only when they are read.
    fn keep_names(&self, dir: &str, names: &[String]) {
        if self.copy.is_none() {
            return;
        }
        let Some((mut at, Kind::Dir)) = self.walk(dir) else { return };
        self.keep(dir, |_| Some(Entry::Dir(Default::default())));
        for name in names {
            at.push(name.clone());
            match (self.link_at(&at), self.kind_at(&at)) {
                (Some(target), _) => self.keep_link(&at, &target),
                (None, Some(Kind::Dir)) => {
                    self.keep(&at.join("/"), |_| Some(Entry::Dir(Default::default())));
                }
                (None, _) => {}
            }
            at.pop();
        }
    }
}

fn below(root: &Path, at: &[String]) -> PathBuf {
    let mut path = root.to_owned();
    path.extend(at);
    path
}

fn bounded(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read_link(path: &Path) -> Option<String> {
    fs::read_link(path).ok()?.into_os_string().into_string().ok()
}
