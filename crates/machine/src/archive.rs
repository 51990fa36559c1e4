//! Archives of recorded machines: tar, plain or with gzip or bzip2, told by the first bytes.
//!
//! Input: a file. Output: a [`Tree`] in memory; nothing is written to disk, so that no entry can
//! leave its place. Limits: those of [`Tree`], [`STREAM_BYTES_MAX`] unpacked; of a file the first
//! bytes that the reader would look at. Devices and pipes are left out.

use crate::source::FILE_BYTES_MAX;
use crate::tree::{Entry, Tree, TreeError, components};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use tar::EntryType;
use thiserror::Error;

/// Unpacked, with the heads of the entries; a small file may claim to hold terabytes.
const STREAM_BYTES_MAX: u64 = 1 << 30;

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
    /// Unpacked it does not end.
    #[error("unpacked it is longer than {} MiB: no recorded machine is that large",
        STREAM_BYTES_MAX >> 20)]
    Long,
}

/// Unpacks a file into memory.
pub(crate) fn read(file: &Path) -> Result<Tree, ArchiveError> {
    if !file.metadata()?.is_file() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "it is neither a directory nor a plain file").into());
    }
    unpack(BufReader::new(File::open(file)?))
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
    let result = tree(&mut bounded);
    // A stream that was cut at the bound looks like one that ends too early.
    if bounded.limit() == 0 { Err(ArchiveError::Long) } else { result }
}

fn tree(stream: impl Read) -> Result<Tree, ArchiveError> {
    let mut tree = Tree::default();
    let mut archive = tar::Archive::new(stream);
    for entry in archive.entries()? {
        let mut entry = entry?;
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
