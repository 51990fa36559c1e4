//! Whether a server can be talked to.
//!
//! Input: an address. Output: accepted, or why not, with the program's last words.

use crate::child::{Child, POLL};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use thiserror::Error;
use units::{Nanos, clock};

/// A connection attempt that gets no answer is repeated after this.
const ATTEMPT_MAX: Nanos = Nanos::from_millis(250);

/// Why a server does not listen.
#[derive(Debug, Error)]
pub enum ReadyError {
    /// It ended first.
    #[error("'{program}' ended ({exit}) before it listened on {addr}{}", quoted(last_lines))]
    Ended {
        /// The program.
        program: String,
        /// Where it should listen.
        addr: SocketAddr,
        /// How it ended.
        exit: String,
        /// Its last output, oldest first.
        last_lines: Vec<String>,
    },
    /// It runs, and does not listen.
    #[error(
        "'{program}' does not listen on {addr} after {timeout}; give it more time or see its \
         log{}",
        quoted(last_lines)
    )]
    Timeout {
        /// The program.
        program: String,
        /// Where it should listen.
        addr: SocketAddr,
        /// How long it was waited for.
        timeout: Nanos,
        /// Its last output, oldest first.
        last_lines: Vec<String>,
    },
    /// Somebody else is there.
    #[error("cannot listen on {addr}: {cause}; end what listens there or choose another port")]
    NotFree {
        /// The address.
        addr: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
}

fn quoted(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

/// Whether a server can listen on `addr` now. Ask before it is started: afterwards a connection
/// to somebody else's server cannot be told from one to ours.
///
/// # Errors
/// When the address is in use, is not of this host or may not be used.
pub fn ensure_free(addr: SocketAddr) -> Result<(), ReadyError> {
    TcpListener::bind(addr).map(drop).map_err(|cause| ReadyError::NotFree { addr, cause })
}

pub(crate) fn wait(child: &Child, addr: SocketAddr, timeout: Nanos) -> Result<(), ReadyError> {
    let deadline = clock::now() + timeout;
    loop {
        let left = deadline.since(clock::now());
        let attempt = ATTEMPT_MAX.min(left).max(Nanos::from_millis(1));
        let accepted = TcpStream::connect_timeout(&addr, attempt.to_duration()).is_ok();
        if let Some(exit) = child.exit_text() {
            child.settle_output();
            let (program, last_lines) = (child.name().to_owned(), child.last_lines());
            return Err(ReadyError::Ended { program, addr, exit, last_lines });
        }
        if accepted {
            return Ok(());
        }
        if left == Nanos::ZERO {
            let (program, last_lines) = (child.name().to_owned(), child.last_lines());
            return Err(ReadyError::Timeout { program, addr, timeout, last_lines });
        }
        sleep(POLL);
    }
}
