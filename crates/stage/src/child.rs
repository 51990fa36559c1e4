//! A running program: asked, awaited, ended.
//!
//! Input: the process that [`crate::spawn`] made. Output: its state, its last lines, its exit.
//!
//! The process is reaped only by [`Child::terminate`] and on drop, after its group has been
//! signalled: until then the kernel cannot give its pid to another process, so that no signal
//! goes astray. Limits: what the program itself has moved to another group is not ended.

use crate::exec::{MemoryPolicy, Program};
use crate::output::Output;
use crate::process::ProcessId;
use crate::ready::{self, ReadyError};
use crate::usage::{self, Usage};
use crate::verify::{self, PagesPerNuma, VerifyError};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use std::io;
use std::net::SocketAddr;
use std::process::{Child as OsChild, ExitStatus};
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;
use units::{CpuSet, Nanos, clock};

/// How often a state is asked for while waiting for it.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// A program that this process has started. Dropping it kills it and its process group, unless
/// it was left to itself.
#[derive(Debug)]
pub struct Child {
    os: OsChild,
    id: ProcessId,
    name: String,
    cpus: CpuSet,
    memory: MemoryPolicy,
    output: Output,
    exit: Option<ExitStatus>,
    left: bool,
}

/// A process could not be reaped.
#[derive(Debug, Error)]
#[error("cannot await the end of '{program}' (pid {pid}): {cause}; end it by hand")]
pub struct TerminateError {
    /// The program.
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// The kernel's answer.
    pub cause: io::Error,
}

impl Child {
    pub(crate) fn new(mut os: OsChild, program: &Program, output: Output) -> io::Result<Self> {
        match ProcessId::of(os.id()) {
            Ok(id) => Ok(Self {
                os,
                id,
                name: program.name(),
                cpus: program.cpus.clone(),
                memory: program.memory.clone(),
                output,
                exit: None,
                left: false,
            }),
            Err(cause) => {
                os.kill()?;
                os.wait()?;
                Err(cause)
            }
        }
    }

    /// The process, in the form that may be kept in a file.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// The process number, which is also that of its group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.id.pid
    }

    /// The program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the program has not ended yet.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.exit.is_none() && self.ended().is_none()
    }

    /// How it ended, in words; `None` while it runs.
    #[must_use]
    pub fn exit_text(&self) -> Option<String> {
        if let Some(exit) = self.exit {
            return Some(exit.to_string());
        }
        let ended = self.ended()?;
        Some(match (ended.exit_status(), ended.terminating_signal()) {
            (Some(code), _) => format!("exit status: {code}"),
            (None, Some(signal)) => format!("signal: {signal}"),
            (None, None) => "an unknown end".to_owned(),
        })
    }

    /// The last lines of its output, oldest first, without the prefix of the log.
    #[must_use]
    pub fn last_lines(&self) -> Vec<String> {
        self.output.last_lines()
    }

    /// Lines that are not in the log because it was full or could not be written.
    #[must_use]
    pub fn log_lines_lost(&self) -> u64 {
        self.output.lines_lost()
    }

    /// Waits until something accepts TCP connections at `addr` and the program still runs.
    /// Another program's listener would be taken for this one's: see [`crate::ensure_free`].
    ///
    /// # Errors
    /// When the program ends or `timeout` passes before; with its last lines of output.
    pub fn wait_ready(&self, addr: SocketAddr, timeout: Nanos) -> Result<(), ReadyError> {
        ready::wait(self, addr, timeout)
    }

    /// Checks that every thread may run on exactly the cpus that were asked for, and has the memory
    /// policy that was asked for.
    ///
    /// # Errors
    /// Names the first thread that may not, or says that the process is gone.
    pub fn verify(&self) -> Result<(), VerifyError> {
        verify::threads(self.pid(), &self.cpus, &self.memory)
    }

    /// Checks also that its pages lie where its memory policy says, at least
    /// [`crate::PAGES_SHARE_MIN`] of them; and tells where they lie. Its memory is to be in use by
    /// then.
    ///
    /// # Errors
    /// As for [`Self::verify`], and the share that lies elsewhere.
    pub fn verify_pages(&self) -> Result<PagesPerNuma, VerifyError> {
        self.verify()?;
        verify::pages(self.pid(), &self.memory)
    }

    /// What it has used up to now; `None` once it has ended.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        if self.is_running() { usage::of(self.pid()) } else { None }
    }

    /// Ends the program: SIGTERM to its group, after `grace` SIGKILL, and to whatever of the
    /// group is left. Returns how it ended; a second call returns the same.
    ///
    /// # Errors
    /// When the kernel has no such child any more.
    pub fn terminate(&mut self, grace: Nanos) -> Result<ExitStatus, TerminateError> {
        if self.exit.is_none() && self.is_running() {
            self.signal_group(Signal::TERM);
            // A stopped process takes SIGTERM only when it goes on.
            self.signal_group(Signal::CONT);
            let deadline = clock::now() + grace;
            while self.is_running() && clock::now() < deadline {
                sleep(POLL);
            }
        }
        self.kill()
    }

    /// Lets the program go on without this process; meant for [`crate::spawn_detached`], for a
    /// program that is tied to this process still ends with it. Returns who it is.
    #[must_use]
    pub fn leave(mut self) -> ProcessId {
        self.left = true;
        self.id
    }

    /// Kills the group and reaps the program.
    fn kill(&mut self) -> Result<ExitStatus, TerminateError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.signal_group(Signal::KILL);
        let exit = self.os.wait().map_err(|cause| TerminateError {
            program: self.name.clone(),
            pid: self.pid(),
            cause,
        })?;
        self.exit = Some(exit);
        self.output.settle();
        Ok(exit)
    }

    /// Lets the output of a program that has ended arrive.
    pub(crate) fn settle_output(&self) {
        self.output.settle();
    }

    fn signal_group(&self, signal: Signal) {
        // No such group is no failure: then all of it has ended.
        if let Some(group) = self.as_pid() {
            let _ = kill_process_group(group, signal);
        }
    }

    /// The state of a process that has ended, without reaping it.
    fn ended(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.as_pid()?), options).ok()?
    }

    fn as_pid(&self) -> Option<Pid> {
        self.id.as_pid()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        // Nothing can be done about a child that the kernel does not know.
        let _ = self.kill();
    }
}
