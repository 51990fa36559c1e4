//! Everything done to hosts; at present: processes on this host, each on its own cpus.
//!
//! Input: a [`Program`] (arguments, cpus, log file). Output: a [`Child`] that is verified to be
//! where it was put, is heard line by line, and does not outlive its parent.
//!
//! Source: prctl(2), sched_setaffinity(2), waitid(2), proc(5). Limits: Linux; cpus below 1024,
//! the size of the affinity mask in use; no transport to other hosts yet.

pub mod cassandra;
mod child;
pub mod dirs;
pub mod emit;
mod exec;
pub mod listener;
mod lock;
mod output;
mod process;
mod ready;
pub mod space;
pub mod state;
pub mod usage;
mod verify;

pub use child::{Child, TerminateError};
pub use exec::{MemoryPolicy, Place, Program, SpawnError, spawn, spawn_detached};
pub use lock::Lock;
pub use process::{ProcessId, SignalError};
pub use ready::{ReadyError, ensure_free};
pub use rustix::process::Signal;
pub use verify::{PAGES_SHARE_MIN, PagesPerNuma, VerifyError};
