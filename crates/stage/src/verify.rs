//! Whether a process is where it was put: its threads on their cpus, its pages on their NUMA nodes.
//!
//! Input: `/proc/PID/task/*/status` and `numa_maps` (proc(5)). Output: where its pages lie, or the
//! thread, the policy or the share of pages that is not where it should be. Limits: only anonymous
//! pages are judged, for files are shared with others and stay where they were read first; the
//! kernel walks all pages of a process to tell, some ms per GiB, with its memory map held: not
//! for a measured window.

mod numa_maps;

pub use numa_maps::PagesPerNuma;

use crate::exec::MemoryPolicy;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use thiserror::Error;
use units::CpuSet;

/// Of the anonymous pages of a bound process, so many are to lie where it is bound to. The others
/// are those that the kernel had put down before, or moved.
pub const PAGES_SHARE_MIN: f64 = 0.95;

/// Why a placement does not hold.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The process cannot be looked at.
    #[error("cannot read the threads of process {pid}: {cause}; has it ended?")]
    Unreadable {
        /// The process.
        pid: u32,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// Nobody may see where its memory is.
    #[error(
        "cannot read where the memory of process {pid} lies: {cause}; /proc/PID/numa_maps wants \
         the same user and a kernel with CONFIG_NUMA"
    )]
    NoMaps {
        /// The process.
        pid: u32,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// A thread may run elsewhere, or not everywhere.
    #[error(
        "thread {tid} ('{name}') of process {pid} may run on cpus {found}, not on {asked}; \
         a cgroup or the program itself has changed it"
    )]
    Differs {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The thread's name.
        name: String,
        /// What was asked.
        asked: CpuSet,
        /// What the kernel says; as text, because that is what it is.
        found: String,
    },
    /// A thread takes its memory from elsewhere.
    #[error(
        "thread {tid} ('{name}') of process {pid} takes its memory by the policy {found}, not \
         {asked}; a cpuset has moved it, or the program itself has changed it (numactl in a start \
         script, a flag of the JVM)"
    )]
    Policy {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The thread's name.
        name: String,
        /// What was asked.
        asked: MemoryPolicy,
        /// What the kernel says.
        found: String,
    },
    /// Pages lie elsewhere.
    #[error(
        "{:.1} % of the anonymous pages of process {pid} lie on the NUMA nodes of its policy \
         {asked}, at least {:.0} % should; they lie on {pages}: was it started there, or moved?",
        share * 100.0, PAGES_SHARE_MIN * 100.0
    )]
    Misplaced {
        /// The process.
        pid: u32,
        /// What was asked.
        asked: MemoryPolicy,
        /// Of its anonymous pages.
        share: f64,
        /// Where they lie.
        pages: PagesPerNuma,
    },
}

/// Checks `Cpus_allowed_list` and the memory policy of all threads of `pid`.
pub(crate) fn threads(pid: u32, cpus: &CpuSet, memory: &MemoryPolicy) -> Result<(), VerifyError> {
    let unreadable = |cause| VerifyError::Unreadable { pid, cause };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(unreadable)?;
    let mut seen = 0;
    for thread in threads {
        let dir = thread.map_err(unreadable)?.path();
        // A thread may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(dir.join("status")) else { continue };
        let field = |key| field(&status, key).unwrap_or_default();
        let found = field("Cpus_allowed_list");
        let who = || (field("Pid").parse().unwrap_or(pid), field("Name").to_owned());
        seen += 1;
        if found.parse().as_ref() != Ok(cpus) {
            let ((tid, name), found) = (who(), found.to_owned());
            return Err(VerifyError::Differs { pid, tid, name, asked: cpus.clone(), found });
        }
        if memory.numas().is_none() {
            continue;
        }
        let Some(found) = policy(&dir, pid)? else { continue };
        if found != memory.to_string() {
            let ((tid, name), asked) = (who(), memory.clone());
            return Err(VerifyError::Policy { pid, tid, name, asked, found });
        }
    }
    if seen == 0 { Err(unreadable(io::ErrorKind::NotFound.into())) } else { Ok(()) }
}

/// The policy of a thread, as its first mapping shows it: that of the program's text, which nobody
/// binds apart. None when the thread has ended.
fn policy(dir: &Path, pid: u32) -> Result<Option<String>, VerifyError> {
    let mut first = String::new();
    let read = fs::File::open(dir.join("numa_maps"))
        .and_then(|file| BufReader::new(file).read_line(&mut first));
    match read {
        Ok(0) => Ok(None),
        Ok(_) => Ok(first.split_whitespace().nth(1).map(str::to_owned)),
        Err(_) if !dir.exists() => Ok(None),
        Err(cause) => Err(VerifyError::NoMaps { pid, cause }),
    }
}

/// Where the anonymous pages of `pid` lie; an error when that is not where `memory` says.
pub(crate) fn pages(pid: u32, memory: &MemoryPolicy) -> Result<PagesPerNuma, VerifyError> {
    let text = match (fs::read_to_string(format!("/proc/{pid}/numa_maps")), memory.numas()) {
        (Ok(text), _) => text,
        (Err(cause), Some(_)) => return Err(VerifyError::NoMaps { pid, cause }),
        // Nothing was asked for; a kernel without NUMA has nothing to tell.
        (Err(_), None) => String::new(),
    };
    let pages = PagesPerNuma::parse(&text);
    if let Some(share) = memory.numas().and_then(|numas| pages.share_on(numas))
        && share < PAGES_SHARE_MIN
    {
        return Err(VerifyError::Misplaced { pid, asked: memory.clone(), share, pages });
    }
    Ok(pages)
}

/// The value of `key:` in a status file.
pub(crate) fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == key).then(|| value.trim())
    })
}
