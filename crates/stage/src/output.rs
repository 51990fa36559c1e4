//! What a program prints: into its log, line by line, with the last lines kept.
//!
//! Input: two pipes. Output: a file of `<host> <instance> <ms since start> <line>`, and the last
//! [`LINES_KEPT`] lines for messages.
//!
//! Limits: lines beyond 16 KiB are broken, a log ends at 256 MiB with a line that says so;
//! lines lost by that are counted. One thread a pipe, so neither can stall the program. Of a
//! program that writes to its log itself, the last [`TAIL_BYTES`] are read when asked for.

use crate::child::POLL;
use crate::exec::Program;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use units::{Nanos, clock};

/// Lines kept for error messages.
pub(crate) const LINES_KEPT: usize = 20;
const LINE_BYTES_MAX: u64 = 16 << 10;
const LOG_BYTES_MAX: u64 = 256 << 20;
/// How long the output of a program that has ended may take to arrive. A grandchild that lives
/// on holds the pipe open, so there must be an end to waiting.
const SETTLE_MAX: Nanos = Nanos::from_millis(500);
/// So much of a log's end is looked at for its last lines.
const TAIL_BYTES: u64 = 64 << 10;

/// The listening side of a program's output.
#[derive(Debug)]
pub(crate) enum Output {
    /// Through pipes, by threads of this process.
    Heard { log: Arc<Mutex<Log>>, readers: Vec<JoinHandle<()>> },
    /// The program writes to this file itself.
    Unheard { path: PathBuf },
}

impl Output {
    /// Opens the log of `program`, which starts at `started`.
    pub(crate) fn create(program: &Program, started: Nanos) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&program.log)?;
        let log = Log {
            file,
            prefix: format!("{} {} ", program.host, program.instance),
            started,
            room_bytes: LOG_BYTES_MAX,
            full: false,
            last: VecDeque::new(),
            lost: 0,
        };
        Ok(Self::Heard { log: Arc::new(Mutex::new(log)), readers: Vec::new() })
    }

    /// Opens the log of `program` for the program itself.
    pub(crate) fn unheard(program: &Program) -> io::Result<(Self, File)> {
        let file = OpenOptions::new().create(true).append(true).open(&program.log)?;
        Ok((Self::Unheard { path: program.log.clone() }, file))
    }

    /// Starts to read the pipes.
    pub(crate) fn listen(
        &mut self,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
    ) -> io::Result<()> {
        let Self::Heard { log, readers } = self else { return Ok(()) };
        let stdout = stdout.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        let stderr = stderr.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        for pipe in [stdout, stderr].into_iter().flatten() {
            let log = Arc::clone(log);
            let reader = Builder::new().name("stage-output".into());
            readers.push(reader.spawn(move || copy_lines(pipe, &log))?);
        }
        Ok(())
    }

    pub(crate) fn last_lines(&self) -> Vec<String> {
        match self {
            Self::Heard { log, .. } => lock(log).last.iter().cloned().collect(),
            Self::Unheard { path } => last_lines(path),
        }
    }

    pub(crate) fn lines_lost(&self) -> u64 {
        match self {
            Self::Heard { log, .. } => lock(log).lost,
            Self::Unheard { .. } => 0,
        }
    }

    /// Waits until both pipes are at their end, or [`SETTLE_MAX`].
    pub(crate) fn settle(&self) {
        let Self::Heard { readers, .. } = self else { return };
        let deadline = clock::now() + SETTLE_MAX;
        while readers.iter().any(|r| !r.is_finished()) && clock::now() < deadline {
            sleep(POLL);
        }
    }
}

/// The last lines of a file, oldest first; none when it cannot be read.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    let tail = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = tail().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LINES_KEPT);
    lines[skipped..].iter().map(|line| (*line).to_owned()).collect()
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends with the pipe; a pipe that cannot be read is at its end.
fn copy_lines(pipe: impl Read, log: &Mutex<Log>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(1..) = pipe.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        let text = String::from_utf8_lossy(&line);
        lock(log).put(text.trim_end_matches(['\n', '\r']));
        line.clear();
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    prefix: String,
    started: Nanos,
    room_bytes: u64,
    full: bool,
    last: VecDeque<String>,
    lost: u64,
}

impl Log {
    fn put(&mut self, line: &str) {
        if self.last.len() == LINES_KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        let ms = clock::now().since(self.started).0 / 1_000_000;
        let mut text = self.prefix.clone();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{ms} {line}");
        let length = text.len() as u64;
        if self.full || length > self.room_bytes {
            if !self.full {
                self.full = true;
                text = format!("{}{ms} [the log is full: no further lines]\n", self.prefix);
                let _ = self.file.write_all(text.as_bytes());
            }
            self.lost += 1;
        } else if self.file.write_all(text.as_bytes()).is_ok() {
            self.room_bytes -= length;
        } else {
            self.lost += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(room_bytes: u64) -> (tempfile::TempDir, Mutex<Log>) {
        let dir = tempfile::TempDir::new().unwrap();
        let file = File::create(dir.path().join("log")).unwrap();
        let log = Log {
            file,
            prefix: "h i ".into(),
            started: Nanos::MAX,
            room_bytes,
            full: false,
            last: VecDeque::new(),
            lost: 0,
        };
        (dir, Mutex::new(log))
    }

    fn text(dir: &tempfile::TempDir) -> String {
        std::fs::read_to_string(dir.path().join("log")).unwrap()
    }

    #[test]
    fn lines_get_their_prefix_and_the_last_are_kept() {
        let (dir, log) = log(LOG_BYTES_MAX);
        let input: String = (0..30).map(|n| format!("line {n}\r\n")).collect();
        copy_lines((input + "no end of line").as_bytes(), &log);
        let text = text(&dir);
        assert_eq!(text.lines().next(), Some("h i 0 line 0"));
        assert_eq!(text.lines().last(), Some("h i 0 no end of line"));
        let log = log.lock().unwrap();
        assert_eq!((log.last.len(), log.lost), (LINES_KEPT, 0));
        assert_eq!(log.last.back().unwrap(), "no end of line");
    }

    #[test]
    fn the_end_of_a_file_is_its_last_lines() {
        let (dir, log) = log(LOG_BYTES_MAX);
        let line = "x".repeat(4 << 10);
        let input: String = (0..30).map(|n| format!("{n} {line}\n")).collect();
        copy_lines(input.as_bytes(), &log);
        let last = last_lines(&dir.path().join("log"));
        assert!((1..=LINES_KEPT).contains(&last.len()), "{}", last.len());
        assert!(last.last().unwrap().contains(" 29 x"), "{last:?}");
        assert!(last_lines(&dir.path().join("no such file")).is_empty());
    }

    #[test]
    fn endless_lines_and_bytes_that_are_no_text_are_bounded() {
        let (dir, log) = log(LOG_BYTES_MAX);
        copy_lines(&vec![0xff; 3 * LINE_BYTES_MAX as usize][..], &log);
        assert_eq!(text(&dir).lines().count(), 3);
    }

    #[test]
    fn a_full_log_says_so_once_and_counts() {
        let (dir, log) = log(20);
        copy_lines(&b"one\ntwo\nthree\nfour\n"[..], &log);
        assert_eq!(text(&dir), "h i 0 one\nh i 0 two\nh i 0 [the log is full: no further lines]\n");
        assert_eq!(log.lock().unwrap().lost, 2);
    }
}
