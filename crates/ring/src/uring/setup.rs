//! Making an io_uring, or saying why there is none.

use super::pool::Pool;
use io_uring::{IoUring, Probe, opcode};
use std::io;
use thiserror::Error;

/// Requests that are queued between two system calls; more wait in a list.
const ENTRIES: u32 = 512;
/// Completions that find room; the kernel keeps more in a list of its own.
const COMPLETIONS: u32 = 4096;

/// This machine gives no io_uring that serves.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("io_uring cannot be used here: {why}; --engine epoll can")]
pub struct Unavailable {
    /// In words.
    pub why: String,
}

/// An io_uring with its buffers. It is still disabled: the thread that enables it is the one that
/// submits.
pub(super) fn set_up() -> Result<(IoUring, Pool), Unavailable> {
    let uring = made().map_err(|error| Unavailable { why: why_not_made(&error) })?;
    let mut probe = Probe::new();
    let known = uring.submitter().register_probe(&mut probe);
    // Receives that stay armed came in the same release as this.
    if known.is_err() || !probe.is_supported(opcode::SendZc::CODE) {
        return Err(too_old());
    }
    let pool = Pool::register(&uring).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => too_old(),
        _ => Unavailable { why: format!("the kernel takes no buffers for receiving: {error}") },
    })?;
    Ok((uring, pool))
}

/// With task work deferred to our own system calls where the kernel can (6.1).
fn made() -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_r_disabled().setup_submit_all().setup_cqsize(COMPLETIONS).setup_single_issuer();
    let mut deferred = builder.clone();
    match deferred.setup_defer_taskrun().setup_taskrun_flag().build(ENTRIES) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            builder.setup_coop_taskrun().setup_taskrun_flag().build(ENTRIES)
        }
        made => made,
    }
}

fn too_old() -> Unavailable {
    Unavailable { why: "it needs Linux 6.0 or later".to_owned() }
}

fn why_not_made(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EINVAL) => "it needs Linux 6.0 or later".to_owned(),
        Some(libc::EPERM | libc::EACCES) => "it is switched off (sysctl kernel.io_uring_disabled, \
                                             or the seccomp filter of a container)"
            .to_owned(),
        Some(libc::ENOMEM) => "the memory that may be locked is used up (ulimit -l)".to_owned(),
        Some(libc::EMFILE | libc::ENFILE) => "no descriptor is left (ulimit -n)".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_cure() {
        for (code, part) in [
            (libc::ENOSYS, "Linux 6.0"),
            (libc::EPERM, "kernel.io_uring_disabled"),
            (libc::ENOMEM, "ulimit -l"),
            (libc::EMFILE, "ulimit -n"),
        ] {
            let why = why_not_made(&io::Error::from_raw_os_error(code));
            let text = Unavailable { why }.to_string();
            assert!(text.contains(part) && text.contains("--engine epoll"), "{text}");
        }
    }
}
