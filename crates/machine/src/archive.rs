//! Archives of recorded machines: tar, plain or with gzip or bzip2, told by the first bytes.
//!
//! Input: a file. Output: a [`Tree`] in memory; nothing is written to disk, so that no entry can
//! leave its place. Limits: those of [`Tree`], [`STREAM_BYTES_MAX`] unpacked, [`HEAD_BYTES_MAX`] of
//! an entry's names; of a file the first bytes that the reader would look at. Devices and pipes are
//! left out.

use crate::source::FILE_BYTES_MAX;
use crate::tree::{Entry, Tree, TreeError, components};
use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::path::Path;
use tar::EntryType;
use thiserror::Error;
use units::open_plain;

/// Unpacked, with the heads of the entries; a small file may claim to hold terabytes.
const STREAM_BYTES_MAX: u64 = 1 << 30;
/// What stands before an entry's content: its head and its long names, of 4096 bytes at most. They
/// are taken into memory whole.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// Why an archive is not read.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// It cannot be read, or ends too early.
    #[error("{0}; give a whole .tar, .tar.gz or .tar.bz2, as `wideload topo --record` makes them")]
    Io(#[from] io::Error),
    /// An entry has `..` in its path.
    #[error("its entry {entry} leads out of it; nothing of it is used")]
    Escape {
        /// The path as it stands in the archive.
        entry: String,
    },
    /// It is larger than any machine.
    #[error("{0}: no recorded machine is that large")]
    Tree(#[from] TreeError),
    /// A name without end.
    #[error("an entry's names are longer than {} KiB: no recorded machine has such",
        HEAD_BYTES_MAX >> 10)]
    Name,
    /// Unpacked it does not end.
    #[error("unpacked it is longer than {} MiB: no recorded machine is that large",
        STREAM_BYTES_MAX >> 20)]
    Long,
}

/// Unpacks a file into memory.
pub(crate) fn read(file: &Path) -> Result<Tree, ArchiveError> {
    unpack(BufReader::new(open_plain(file)?))
}

fn unpack(mut packed: impl Read) -> Result<Tree, ArchiveError> {
    let mut magic = Vec::new();
    packed.by_ref().take(3).read_to_end(&mut magic)?;
    let whole = magic.as_slice().chain(packed);
    match magic.as_slice() {
        [0x1f, 0x8b, ..] => entries(flate2::read::MultiGzDecoder::new(whole)),
        b"BZh" => entries(bzip2::read::MultiBzDecoder::new(whole)),
        _ => entries(whole),
    }
}

fn entries(stream: impl Read) -> Result<Tree, ArchiveError> {
    let mut bounded = stream.take(STREAM_BYTES_MAX);
    let left = Cell::new(HEAD_BYTES_MAX);
    let result = tree(Rationed { stream: &mut bounded, left: &left }, &left).and_then(|tree| {
        // Behind the last entry there are zeros, and the sum that a packed stream is held to.
        io::copy(&mut bounded, &mut io::sink())?;
        Ok(tree)
    });
    // A stream that was cut at a bound looks like one that ends too early.
    match (bounded.limit(), left.get()) {
        (0, _) => Err(ArchiveError::Long),
        (_, 0) => Err(ArchiveError::Name),
        _ => result,
    }
}

/// A stream that ends when what is left has been read.
struct Rationed<'a, R> {
    stream: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Rationed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.stream.read(&mut buffer[..room])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

/// `left` is what may be read of the stream.
fn tree(stream: impl Read, left: &Cell<u64>) -> Result<Tree, ArchiveError> {
    let mut tree = Tree::default();
    let mut archive = tar::Archive::new(stream);
    let mut entries = archive.entries()?;
    loop {
        left.set(HEAD_BYTES_MAX);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry?;
        left.set(u64::MAX);
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if components(&path).contains(&"..") {
            return Err(ArchiveError::Escape { entry: path });
        }
        let target = || {
            let target = entry.link_name_bytes()?;
            Some(String::from_utf8_lossy(&target).into_owned())
        };
        let content = match entry.header().entry_type() {
            EntryType::Directory => Some(Entry::Dir(Default::default())),
            EntryType::Symlink => target().map(Entry::Link),
            // The same file once more: it must have been there before.
            EntryType::Link => target().and_then(|target| {
                let names: Vec<_> = components(&target).into_iter().map(str::to_owned).collect();
                tree.get(&names).filter(|entry| matches!(entry, Entry::File(_))).cloned()
            }),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let mut bytes = Vec::new();
                entry.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
                Some(Entry::File(bytes))
            }
            _ => None,
        };
        if let Some(content) = content {
            tree.put(&path, content)?;
        }
        // Else the way to the next entry would lead through the rest of this one.
        io::copy(&mut entry, &mut io::sink())?;
    }
    Ok(tree.below_only_directory())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::BYTES_MAX;
    use proptest::prelude::*;

    fn packed(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, path, text) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            // Written as it is: the library refuses what a hostile archive has.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
            if is_link {
                header.set_link_name_literal(text).unwrap();
            }
            let content = if is_link { "" } else { *text };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn text(tree: Tree, path: &str) -> Option<String> {
        crate::source::Source::memory(tree).text(path)
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn links_stay_inside() {
        let tar = packed(&[
            (FILE, "m/sys/a/b/file", "there\n\0\0\0"),
            (EntryType::Symlink, "m/sys/relative", "a/../a/b"),
            (EntryType::Symlink, "m/absolute", "/sys/a/b/file"),
            (EntryType::Symlink, "m/above", "../../../../sys/a/b/file"),
            (EntryType::Symlink, "m/outside", "/etc/hostname"),
            (EntryType::Symlink, "m/round", "round"),
            (EntryType::Link, "m/hard", "m/sys/a/b/file"),
            (EntryType::Link, "m/hard-outside", "/etc/hostname"),
            (EntryType::Fifo, "m/pipe", ""),
        ]);
        let tree = unpack(tar.as_slice()).unwrap();
        for (path, found) in [
            ("sys/a/b/file", true),
            ("sys/relative/file", true),
            ("absolute", true),
            ("above", true),
            ("hard", true),
            ("outside", false),
            ("hard-outside", false),
            ("round", false),
            ("pipe", false),
            ("sys/a/b/file/x", false),
        ] {
            let expected = found.then(|| "there".to_owned());
            assert_eq!(text(tree.clone(), path), expected, "{path}");
        }
    }

    #[test]
    fn an_archive_that_leads_out_or_is_cut_is_refused() {
        let out = packed(&[(FILE, "sys/../../x", "y")]);
        let error = unpack(out.as_slice()).unwrap_err();
        assert!(matches!(&error, ArchiveError::Escape { entry } if entry == "sys/../../x"));
        let whole = packed(&[(FILE, "sys/x", &"y".repeat(2000))]);
        assert!(matches!(unpack(&whole[..1500]).unwrap_err(), ArchiveError::Io(_)));
        assert!(matches!(unpack(&b"no archive at all"[..]).unwrap_err(), ArchiveError::Io(_)));
        let deep = packed(&[(FILE, &"d/".repeat(49), "")]);
        assert!(matches!(unpack(deep.as_slice()), Err(ArchiveError::Tree(TreeError::Depth))));
    }

    #[test]
    fn a_packed_archive_is_held_to_its_sum() {
        use std::io::Write as _;
        let tar = packed(&[(FILE, "sys/x", "all of it")]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gzip.write_all(&tar).unwrap();
        let whole = gzip.finish().unwrap();
        assert!(unpack(whole.as_slice()).is_ok());
        for cut in 1..=9 {
            let cut = &whole[..whole.len() - cut];
            assert!(matches!(unpack(cut), Err(ArchiveError::Io(_))), "{}", cut.len());
        }
        let mut wrong = whole.clone();
        let at = wrong.windows(3).position(|bytes| bytes == b"all").unwrap();
        wrong[at] = b'b';
        assert!(matches!(unpack(wrong.as_slice()), Err(ArchiveError::Io(_))));
    }

    #[test]
    fn a_bomb_is_refused() {
        // A file of zeros packs a thousandfold; its entry says that it is larger than the bound.
        let mut header = tar::Header::new_gnu();
        header.set_path("zeros").unwrap();
        header.set_size(STREAM_BYTES_MAX * 2);
        header.set_cksum();
        let endless = header.as_bytes().chain(io::repeat(0));
        assert!(matches!(entries(endless), Err(ArchiveError::Long)));
    }

    #[test]
    fn a_name_is_bounded() {
        let named = |size: usize| {
            let mut head = tar::Header::new_gnu();
            head.set_entry_type(EntryType::GNULongName);
            head.set_path("././@LongLink").unwrap();
            head.set_size(size as u64);
            head.set_cksum();
            let name = "x/".repeat(size / 2) + &"\0".repeat(size.next_multiple_of(512) - size);
            [head.as_bytes().as_slice(), name.as_bytes(), &packed(&[(FILE, "cut", "y")])].concat()
        };
        let found = text(unpack(named(80).as_slice()).unwrap(), &"x/".repeat(39));
        assert_eq!(found.as_deref(), Some("y"), "below the only directory");
        let long = named(HEAD_BYTES_MAX as usize);
        assert!(matches!(unpack(long.as_slice()), Err(ArchiveError::Name)));
        // Said to be long, and a stream that has it all.
        let mut head = tar::Header::new_gnu();
        head.set_entry_type(EntryType::GNULongName);
        head.set_size(STREAM_BYTES_MAX / 2);
        head.set_cksum();
        let endless = head.as_bytes().chain(io::repeat(b'x'));
        assert!(matches!(entries(endless), Err(ArchiveError::Name)));
    }

    #[test]
    fn text_of_all_files_together_is_bounded() {
        let mut tree = Tree::default();
        let part = Entry::File(vec![b'x'; BYTES_MAX / 4]);
        for path in ["a", "b", "c", "d"] {
            tree.put(path, part.clone()).unwrap();
        }
        assert_eq!(tree.put("e", part), Err(TreeError::Bytes));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            at in 0usize..2048, value in any::<u8>(),
        ) {
            let _ = unpack(bytes.as_slice());
            for magic in [&b"BZh9"[..], &[0x1f, 0x8b, 8, 0]] {
                let _ = unpack(magic.chain(bytes.as_slice()));
            }
            let mut tar = packed(&[(FILE, "sys/x", "y"), (EntryType::Symlink, "sys/z", "x")]);
            if let Some(byte) = tar.get_mut(at) {
                *byte = value;
            }
            let _ = unpack(tar.as_slice());
        }
    }
}
