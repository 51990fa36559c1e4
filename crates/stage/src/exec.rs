//! Starting a program on its cpus, tied to the life of this process or made to outlive it.
//!
//! Input: [`Program`]. Output: [`Child`], already confined to its cpus and its memory when its
//! first instruction runs, in its own process group, with no standard input, its output going to
//! its log, and no other descriptor: what goes on after this process must not hold a lock of
//! whoever started that.
//!
//! Source: prctl(2) PR_SET_PDEATHSIG, setsid(2), sched_setaffinity(2). The kernel sends the death
//! signal when the *thread* that forked ends, so all forks are done by one thread that never does.
//! Limits: when this process is killed outright, the death signal reaches the program itself and
//! not the processes that the program has started; every other end takes the whole group along.
#![allow(unsafe_code)]

mod memory;

pub use memory::{MemoryPolicy, Place};

use crate::child::Child;
use crate::output::Output;
use crate::verify::field;
use memory::Request;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setsid};
use rustix::thread::{CpuSet as Mask, sched_setaffinity};
use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child as OsChild, Command, Stdio};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use thiserror::Error;
use units::{CpuSet, clock};

/// What to start, and where.
#[derive(Debug, Clone)]
pub struct Program {
    /// The host's name, first word of each line in the log.
    pub host: String,
    /// The instance's name, second word of each line in the log.
    pub instance: String,
    /// The program and its arguments; no shell reads them.
    pub argv: Vec<OsString>,
    /// The cpus that all its threads stay on.
    pub cpus: CpuSet,
    /// Where its memory comes from.
    pub memory: MemoryPolicy,
    /// The file that its output is appended to, with host, instance and ms since the start
    /// before each line; as it is when the program is to outlive this one.
    pub log: PathBuf,
}

/// How a program's life hangs on that of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It gets SIGKILL when this process dies.
    Tied,
    /// It has a session of its own, and writes to its log itself: nobody has to listen.
    Free,
}

impl Program {
    /// The program's name for messages.
    pub(crate) fn name(&self) -> String {
        self.argv.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Why a program was not started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// No argument at all.
    #[error("instance {instance} has no program to start; give at least one argument")]
    NoProgram {
        /// Which instance.
        instance: String,
    },
    /// No cpu, or one that does not fit the mask.
    #[error(
        "cannot put '{program}' on cpus '{cpus}': give at least one, all below {}",
        Mask::MAX_CPU
    )]
    Cpus {
        /// The program.
        program: String,
        /// What was asked.
        cpus: CpuSet,
    },
    /// None of the cpus may be used by this process.
    #[error(
        "cannot put '{program}' on cpus {cpus}: none of them is online and allowed here; \
         see Cpus_allowed_list in /proc/self/status"
    )]
    CpusRefused {
        /// The program.
        program: String,
        /// What was asked.
        cpus: CpuSet,
    },
    /// The kernel does not take the memory policy.
    #[error(
        "cannot give '{program}' memory by the policy {policy}: {cause}; this process may use the \
         NUMA nodes {allowed} (Mems_allowed_list in /proc/self/status), and a container may forbid \
         set_mempolicy(2)"
    )]
    MemoryRefused {
        /// The program.
        program: String,
        /// What was asked.
        policy: MemoryPolicy,
        /// Mems_allowed_list.
        allowed: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The log file cannot be written.
    #[error(
        "cannot write the log {} of '{program}': {cause}; give a writable directory",
        path.display()
    )]
    Log {
        /// The program.
        program: String,
        /// The log file.
        path: PathBuf,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The program cannot be executed.
    #[error("cannot start '{program}': {cause}; check that it exists and may be executed")]
    Exec {
        /// The program.
        program: String,
        /// The kernel's answer.
        cause: io::Error,
    },
}

/// Starts `program`. The child gets SIGKILL when this process dies, however it dies.
///
/// # Errors
/// See [`SpawnError`]; nothing is left running then.
pub fn spawn(program: &Program) -> Result<Child, SpawnError> {
    start(program, Life::Tied)
}

/// Starts `program` in a session of its own: neither a closed terminal nor the end of this
/// process ends it, once [`Child::leave`] has been called. Until then dropping the child kills it.
///
/// # Errors
/// See [`SpawnError`]; nothing is left running then.
pub fn spawn_detached(program: &Program) -> Result<Child, SpawnError> {
    start(program, Life::Free)
}

fn start(program: &Program, life: Life) -> Result<Child, SpawnError> {
    keep_descriptors();
    let name = program.name();
    let Some((file, arguments)) = program.argv.split_first() else {
        return Err(SpawnError::NoProgram { instance: program.instance.clone() });
    };
    let mask = mask(&program.cpus)
        .ok_or_else(|| SpawnError::Cpus { program: name.clone(), cpus: program.cpus.clone() })?;
    let started = clock::now();
    let log = |cause| SpawnError::Log { program: name.clone(), path: program.log.clone(), cause };
    let mut command = Command::new(file);
    command.args(arguments).stdin(Stdio::null());
    // Whoever may look at the program's environment need not know the password of a cluster.
    command.env_remove(PASSWORD);
    let mut output = match life {
        Life::Tied => {
            command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
            Output::create(program, started).map_err(log)?
        }
        Life::Free => {
            let (output, file) = Output::unheard(program).map_err(log)?;
            command.stdout(file.try_clone().map_err(log)?).stderr(file);
            output
        }
    };
    confine(&mut command, mask, life);
    let failed = |cause: io::Error| match cause.raw_os_error() {
        Some(code) if code == rustix::io::Errno::INVAL.raw_os_error() => {
            SpawnError::CpusRefused { program: name.clone(), cpus: program.cpus.clone() }
        }
        _ => SpawnError::Exec { program: name.clone(), cause },
    };
    let forked = fork_and_exec(command, program.memory.request());
    let mut os = forked.map_err(|failure| match failure {
        Failure::Exec(cause) => failed(cause),
        Failure::Memory(cause) => SpawnError::MemoryRefused {
            program: name.clone(),
            policy: program.memory.clone(),
            allowed: allowed_numas(),
            cause,
        },
    })?;
    let heard = output.listen(os.stdout.take(), os.stderr.take());
    // From here on dropping the child kills it.
    let child = Child::new(os, program, output).map_err(failed)?;
    heard.map_err(|cause| SpawnError::Exec { program: name.clone(), cause })?;
    Ok(child)
}

/// Lets no program that is started have what this process was given by its own parent. What it has
/// opened itself is not passed on anyway.
fn keep_descriptors() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<RawFd>().ok();
    let open: Vec<_> = entries.flatten().filter_map(number).collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // SAFETY: the descriptor is not kept, read or closed. Should another thread have closed it
        // meanwhile, the kernel refuses; should it have opened another one by that number, that one
        // is already closed on exec, as all that the standard library opens.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

fn mask(cpus: &CpuSet) -> Option<Mask> {
    let mut mask = Mask::new();
    for cpu in cpus.iter() {
        let index = usize::try_from(cpu.0).ok().filter(|index| *index < Mask::MAX_CPU)?;
        mask.set(index);
    }
    (!cpus.is_empty()).then_some(mask)
}

/// Makes the new process confine itself before it executes, and ask for its parent's death or
/// leave its session.
fn confine(command: &mut Command, mask: Mask, life: Life) {
    let parent: Pid = getpid();
    let before_exec = move || {
        match life {
            Life::Tied => {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the request; then no signal will come.
                if getppid() != Some(parent) {
                    return Err(rustix::io::Errno::SRCH.into());
                }
            }
            Life::Free => {
                setsid()?;
            }
        }
        sched_setaffinity(None, &mask)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes
    // at most three system calls on values that it owns, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(before_exec) };
}

/// The variable that `wideload run` takes a password from.
const PASSWORD: &str = "WIDELOAD_PASSWORD";

/// The NUMA nodes that this process may take memory from, in words.
fn allowed_numas() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "Mems_allowed_list").unwrap_or("(unknown)").to_owned()
}

/// Why nothing was forked.
enum Failure {
    Memory(io::Error),
    Exec(io::Error),
}

struct Job {
    command: Command,
    memory: Request,
    answer: SyncSender<Result<OsChild, Failure>>,
}

impl Job {
    /// The memory policy is that of this thread meanwhile, because a child inherits it and an error
    /// is told apart from those of the child itself.
    fn carry_out(mut self) {
        let forked = self.memory.during(|| self.command.spawn().map_err(Failure::Exec));
        let forked = forked.map_err(Failure::Memory).flatten();
        // Whoever asked is waiting for this.
        let _ = self.answer.send(forked);
    }
}

/// Forks on the one thread that lives as long as the process; see the head of this module.
fn fork_and_exec(command: Command, memory: Request) -> Result<OsChild, Failure> {
    static FORKER: Mutex<Option<Sender<Job>>> = Mutex::new(None);
    let gone = || Failure::Exec(io::Error::other("the thread that starts programs has ended"));
    let (answer, answered) = sync_channel(1);
    {
        let mut forker = FORKER.lock().unwrap_or_else(PoisonError::into_inner);
        if forker.is_none() {
            let (sender, jobs) = channel::<Job>();
            let thread = std::thread::Builder::new().name("stage-fork".into());
            thread
                .spawn(move || jobs.into_iter().for_each(Job::carry_out))
                .map_err(Failure::Exec)?;
            *forker = Some(sender);
        }
        let sender = forker.as_ref().ok_or_else(gone)?;
        sender.send(Job { command, memory, answer }).map_err(|_| gone())?;
    }
    answered.recv().map_err(|_| gone())?
}
