//! A machine's text as a file, to be read elsewhere: `wideload topo --record`.
//!
//! Input: a root, as for [`Machine::read`]. Output: a tar with gzip that reads the same: the files
//! that the reader read, the links on the way to them, and which directories there are. Limits:
//! what other programs may want of sysfs is not in it; no processes, no serial numbers.

use crate::tree::{Entry, Tree};
use crate::{Machine, ReadError, kernel, power};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};
use thiserror::Error;

/// A machine, and the text that it was read from.
#[derive(Debug)]
pub struct Recording {
    /// What was read.
    pub machine: Machine,
    tree: Tree,
}

/// Why a recording is not written.
#[derive(Debug, Error)]
#[error("cannot write the recording {}: {cause}", file.display())]
pub struct RecordError {
    /// Where it should go.
    file: PathBuf,
    cause: io::Error,
}

impl Recording {
    /// Reads the machine below `root`, its energy settings and its sysctls.
    ///
    /// # Errors
    /// As [`Machine::read`].
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        let source = crate::open(root)?.copying();
        let machine = Machine::of(&source, root)?;
        // What `wideload check` asks of a recorded machine beside it.
        let _ = (power::read(&source, &machine.online), kernel::read(&source));
        let _ = source.text("proc/cpuinfo");
        Ok(Self { machine, tree: source.into_copy() })
    }

    /// Files and links in it.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.tree.leaves().len()
    }

    /// Writes it as a tar with gzip; a file that is there already is replaced.
    ///
    /// # Errors
    /// When the file cannot be written; what was there before stays then.
    pub fn write(&self, file: &Path) -> Result<(), RecordError> {
        let failed = |cause| RecordError { file: file.to_owned(), cause };
        replace(file, |out| self.pack(out)).map_err(failed)
    }

    fn pack(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut builder = Builder::new(GzEncoder::new(out, Compression::default()));
        for (path, entry) in self.tree.leaves() {
            let mut header = Header::new_gnu();
            header.set_mode(if matches!(entry, Entry::Dir(_)) { 0o755 } else { 0o644 });
            match entry {
                Entry::File(bytes) => {
                    header.set_size(bytes.len() as u64);
                    builder.append_data(&mut header, path, bytes.as_slice())?;
                }
                Entry::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_size(0);
                    builder.append_link(&mut header, path, target)?;
                }
                Entry::Dir(_) => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_size(0);
                    builder.append_data(&mut header, path, io::empty())?;
                }
            }
        }
        builder.into_inner()?.finish()?.flush()
    }
}
/// Puts a file that `fill` writes in the place of `file`, when all of it is written. Nothing but a
/// plain file is replaced.
///
/// # Errors
/// The system's, or that a device, a pipe or a directory is there; what was there before stays.
pub fn replace(file: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    match std::fs::metadata(file) {
        Ok(found) if !found.is_file() => return Err(io::Error::other("it is no plain file")),
        _ => {}
    }
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let mut out = BufWriter::new(File::create_new(part)?);
    let written = fill(&mut out).and_then(|()| out.flush());
    written.and_then(|()| std::fs::rename(part, file)).inspect_err(|_| {
        // Half of a file helps nobody; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(part);
    })
}
