//! A started program: heard, signalled, awaited, and ended with the test.

use record::Summary;
use stage::{ProcessId, Signal};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None when a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Since its start.
    pub(crate) after: Duration,
}

impl Ended {
    /// What `--json` printed.
    pub(crate) fn summary(&self) -> Summary {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e} in {self:?}"))
    }
}

/// A running program.
pub(crate) struct Process {
    child: Child,
    id: ProcessId,
    started: Instant,
    stdout: Heard,
    stderr: Heard,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            id: ProcessId::of(child.id()).unwrap(),
            started: Instant::now(),
            stdout: Heard::new(child.stdout.take().unwrap()),
            stderr: Heard::new(child.stderr.take().unwrap()),
            child,
        }
    }

    pub(crate) fn id(&self) -> ProcessId {
        self.id
    }

    /// Sends a signal; false when the process has ended.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.id.signal(signal).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// What it has printed so far.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// Waits for its end; after `patience` it is killed and the test fails.
    pub(crate) fn wait(mut self, patience: Duration) -> Ended {
        let mut status = None;
        let ended = super::eventually(patience, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let after = self.started.elapsed();
        if !ended {
            let said = (self.stdout.so_far(), self.stderr.so_far());
            panic!("still runs after {patience:?}, having said {said:?}");
        }
        let status = status.unwrap();
        Ended {
            status: status.code(),
            signal: status.signal(),
            stdout: self.stdout.all(),
            stderr: self.stderr.all(),
            after,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The standard library signals only a child that it has not reaped yet.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a pipe, read by a thread so that the program is never stalled.
struct Heard {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Heard {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let into = text.clone();
        let reader = spawn(move || {
            let mut part = [0; 4096];
            while let Ok(size @ 1..) = pipe.read(&mut part) {
                into.lock().unwrap().extend_from_slice(&part[..size]);
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    /// All of it; the program has ended, so the pipe ends, unless a child of it holds it open.
    fn all(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let closed = super::eventually(Duration::from_secs(5), || reader.is_finished());
            assert!(closed, "a process that was left behind holds the pipe open");
        }
        self.so_far()
    }
}
