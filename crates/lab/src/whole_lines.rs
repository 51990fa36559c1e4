//! A file that grows by whole pieces: what a full disk cuts off is taken back.
//!
//! In: bytes, and [`Write::flush`] at the end of a piece (an interval's lines). Out: a file that
//! ends with the last piece that the disk took whole, so that it can be read up to there. A piece
//! is held in memory until it is flushed.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};

/// Pieces beyond this are written in parts, bytes.
const PIECE_BYTES_MAX: usize = 8 << 20;

/// The file, and what is not in it yet.
#[derive(Debug)]
pub(crate) struct WholeLines {
    file: File,
    /// The end of the last whole piece.
    length: u64,
    piece: Vec<u8>,
}

impl WholeLines {
    /// A file without content.
    pub(crate) fn new(file: File) -> Self {
        Self { file, length: 0, piece: Vec::new() }
    }
}

impl Write for WholeLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() > PIECE_BYTES_MAX {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.piece);
        if written.is_ok() {
            self.length += self.piece.len() as u64;
        } else {
            // The error of the write is the one to tell.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
        }
        self.piece.clear();
        written
    }
}

impl Drop for WholeLines {
    fn drop(&mut self) {
        // Whoever wants to know whether it went well has flushed before.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_appear_when_they_are_whole() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("log");
        let mut lines = WholeLines::new(File::create(&path).unwrap());
        let read = || std::fs::read_to_string(&path).unwrap();
        lines.write_all(b"one\n").unwrap();
        assert_eq!(read(), "");
        lines.write_all(b"two\n").unwrap();
        lines.flush().unwrap();
        assert_eq!(read(), "one\ntwo\n");
        lines.write_all(b"three\n").unwrap();
        drop(lines);
        assert_eq!(read(), "one\ntwo\nthree\n");
    }

    #[test]
    fn a_piece_that_does_not_fit_leaves_nothing() {
        // A file that takes no bytes at all stands in for a disk without space.
        let mut lines = WholeLines::new(File::options().write(true).open("/dev/full").unwrap());
        lines.write_all(b"one\n").unwrap();
        let error = lines.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(lines.piece.is_empty() && lines.length == 0);
    }
}
