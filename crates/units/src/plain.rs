//! Files that people name, or that stand in a directory of theirs: plain ones of bounded size.
//!
//! In: a path and the most bytes that are read. Out: a [`File`], its bytes or its text. A pipe
//! would be waited for, a device has no end, a file of a terabyte fills the memory: all three are
//! refused before anything is read of them. Source: open(2), `O_NONBLOCK`. Limits: a file that
//! grows while it is read ends at the bound, with the error of one that is too large.

use crate::Bytes;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a plain file to be read.
///
/// # Errors
/// What the system says; [`io::ErrorKind::InvalidInput`] where it is no plain file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    // Without the flag opening a pipe waits for a writer, which may never come; between a look at
    // the path and the opening of it another file may take its place.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Makes or empties a file to be written, or opens what else is at `path`: a device, or a pipe that
/// somebody reads from.
///
/// # Errors
/// What the system says; a pipe that nobody reads from is not waited for.
pub fn create_unwaiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(flags);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
            io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe that nobody reads from")
        }
        _ => error,
    })?;
    // What is written later may wait for its reader.
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// The bytes of a plain file of at most `size_max`.
///
/// # Errors
/// As [`open_plain`]; [`io::ErrorKind::FileTooLarge`] where it holds more.
pub fn read_plain(path: &Path, size_max: Bytes) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(size_max.0.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= size_max.0 {
        true => Ok(bytes),
        false => {
            let what = format!("it is larger than {size_max}");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, what))
        }
    }
}

/// The text of a plain file of at most `size_max`.
///
/// # Errors
/// As [`read_plain`]; [`io::ErrorKind::InvalidData`] where it is no UTF-8.
pub fn read_plain_text(path: &Path, size_max: Bytes) -> io::Result<String> {
    String::from_utf8(read_plain(path, size_max)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::path::PathBuf;

    #[test]
    fn what_is_no_plain_file_of_moderate_size_is_refused_at_once() {
        let path = std::env::temp_dir().join(format!("wideload-plain-{}", std::process::id()));
        let read = |path: &PathBuf, size_max| {
            read_plain_text(path, Bytes(size_max)).map_err(|error| error.kind())
        };
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read(&path, 10), Err(io::ErrorKind::InvalidInput), "nobody writes to the pipe");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path, 10), Err(io::ErrorKind::NotFound));
        for endless in ["/dev/zero", "/"] {
            let refused = read(&PathBuf::from(endless), 10);
            assert_eq!(refused, Err(io::ErrorKind::InvalidInput), "{endless}");
        }
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10), Ok("0123456789".to_owned()));
        assert_eq!(read(&path, 9), Err(io::ErrorKind::FileTooLarge));
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path, 9), Err(io::ErrorKind::InvalidData));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_written_is_made_or_emptied_and_a_pipe_without_a_reader_is_not_waited_for() {
        let name = |what| format!("wideload-create-{what}-{}", std::process::id());
        let [file, pipe] = ["file", "pipe"].map(|what| std::env::temp_dir().join(name(what)));
        std::fs::write(&file, "before").unwrap();
        drop(create_unwaiting(&file).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let error = create_unwaiting(&pipe).unwrap_err().to_string();
        assert!(error.contains("nobody reads"), "{error}");
        let _reader = open_pipe(&pipe);
        create_unwaiting(&pipe).unwrap();
        create_unwaiting(Path::new("/dev/null")).unwrap();
        assert!(create_unwaiting(&std::env::temp_dir()).is_err());
        [file, pipe].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    fn open_pipe(path: &Path) -> File {
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
    }
}
