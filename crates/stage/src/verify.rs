//! Whether a process is where it was put.
//!
//! Input: `/proc/PID/task/*/status` (proc(5)). Output: nothing, or the thread that is not.

use std::fs;
use std::io;
use thiserror::Error;
use units::CpuSet;

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
}

/// Checks `Cpus_allowed_list` of all threads of `pid`.
pub(crate) fn verify(pid: u32, asked: &CpuSet) -> Result<(), VerifyError> {
    let unreadable = |cause| VerifyError::Unreadable { pid, cause };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(unreadable)?;
    let mut seen = 0;
    for thread in threads {
        let path = thread.map_err(unreadable)?.path().join("status");
        // A thread may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(path) else { continue };
        let field = |key| field(&status, key).unwrap_or_default();
        let found = field("Cpus_allowed_list");
        seen += 1;
        if found.parse().as_ref() != Ok(asked) {
            return Err(VerifyError::Differs {
                pid,
                tid: field("Pid").parse().unwrap_or(pid),
                name: field("Name").to_owned(),
                asked: asked.clone(),
                found: found.to_owned(),
            });
        }
    }
    if seen == 0 { Err(unreadable(io::ErrorKind::NotFound.into())) } else { Ok(()) }
}

/// The value of `key:` in a status file.
pub(crate) fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == key).then(|| value.trim())
    })
}
