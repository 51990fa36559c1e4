//! From which NUMA nodes a process takes its memory: asked for before it executes.
//!
//! Input: a [`MemoryPolicy`]. Output: the policy of the calling thread, which every process that it
//! forks inherits. No `numactl` is wrapped around anything.
//!
//! Source: set_mempolicy(2), the kernel's
//! Documentation/admin-guide/mm/numa_memory_policy.rst. Limits: 1024 NUMA nodes; pages that a
//! process shares with others (its program's text, files) lie where who read them first was.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::str::FromStr;
use units::{CpuSet, NumaSet, ParseError};

const MODE_DEFAULT: libc::c_int = 0;
const MODE_BIND: libc::c_int = 2;
const MODE_INTERLEAVE: libc::c_int = 3;
const WORD_BITS: u32 = u64::BITS;
const WORDS: usize = 1024 / WORD_BITS as usize;

/// Where the memory of a process comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MemoryPolicy {
    /// The NUMA node of the cpu that touches a page first, others when that is full.
    #[default]
    Local,
    /// Only these; when they are full the process fails.
    Bind(NumaSet),
    /// Page by page from one after the other.
    Interleave(NumaSet),
}

impl MemoryPolicy {
    /// Where pages are to be; None when anywhere is right.
    #[must_use]
    pub fn numas(&self) -> Option<&NumaSet> {
        match self {
            Self::Local => None,
            Self::Bind(numas) | Self::Interleave(numas) => Some(numas),
        }
    }

    /// In the form of the system call.
    pub(crate) fn request(&self) -> Request {
        let (mode, numas) = match self {
            Self::Local => return Request { mode: MODE_DEFAULT, mask: [0; WORDS] },
            Self::Bind(numas) => (MODE_BIND, numas),
            Self::Interleave(numas) => (MODE_INTERLEAVE, numas),
        };
        let mut mask = [0; WORDS];
        for numa in numas.iter() {
            if let Some(word) = mask.get_mut((numa.0 / WORD_BITS) as usize) {
                *word |= 1 << (numa.0 % WORD_BITS);
            }
        }
        Request { mode, mask }
    }
}

impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Bind(numas) => write!(f, "bind:{numas}"),
            Self::Interleave(numas) => write!(f, "interleave:{numas}"),
        }
    }
}

/// Where a process is put.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The cpus that all its threads stay on.
    pub cpus: CpuSet,
    /// Where its memory comes from.
    pub memory: MemoryPolicy,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.memory {
            MemoryPolicy::Local => write!(f, "{}", self.cpus),
            MemoryPolicy::Bind(numas) => write!(f, "{}@{numas}", self.cpus),
            MemoryPolicy::Interleave(numas) => write!(f, "{}@interleave:{numas}", self.cpus),
        }
    }
}

impl FromStr for Place {
    type Err = ParseError;

    /// `0-7`, `0-7@0` with memory of NUMA node 0 only, `0-15@interleave:0-1`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (cpus, memory) = match text.split_once('@') {
            None => (text, MemoryPolicy::Local),
            Some((cpus, numas)) => match numas.split_once("interleave:") {
                Some(("", numas)) => (cpus, MemoryPolicy::Interleave(numas.parse()?)),
                _ => (cpus, MemoryPolicy::Bind(numas.parse()?)),
            },
        };
        let numas_empty = memory.numas().is_some_and(NumaSet::is_empty);
        let place = Self { cpus: cpus.parse()?, memory };
        if place.cpus.is_empty() || numas_empty {
            let wanted = "cpus like 0-7, or cpus and NUMA nodes like 0-7@0";
            return Err(ParseError::Form { input: text.to_owned(), wanted });
        }
        Ok(place)
    }
}

/// What set_mempolicy(2) is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    mode: libc::c_int,
    mask: [u64; WORDS],
}

impl Request {
    /// Calls `forks` with this as the policy of the calling thread.
    ///
    /// # Errors
    /// When the kernel does not take it; then nothing was called.
    pub(crate) fn during<T>(&self, forks: impl FnOnce() -> T) -> io::Result<T> {
        if self.mode == MODE_DEFAULT {
            // It is the thread's already, and a container may forbid the call.
            return Ok(forks());
        }
        self.apply()?;
        let forked = forks();
        // What it took before, it takes again.
        let _ = MemoryPolicy::Local.request().apply();
        Ok(forked)
    }

    fn apply(&self) -> io::Result<()> {
        let (mask, bits) = match self.mode {
            MODE_DEFAULT => (std::ptr::null(), 0),
            // The kernel reads one bit less than it is told.
            _ => (self.mask.as_ptr(), WORDS as u64 * u64::from(WORD_BITS) + 1),
        };
        // SAFETY: the kernel reads `bits - 1` bits behind `mask`, which lives on until the call
        // returns, and writes nothing.
        let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, mask, bits) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_in_words_and_in_bits() {
        let numas: NumaSet = "0,3,65".parse().unwrap();
        let bind = MemoryPolicy::Bind(numas.clone());
        assert_eq!(bind.to_string(), "bind:0,3,65");
        assert_eq!(bind.request().mask[..3], [0b1001, 0b10, 0]);
        assert_eq!(bind.request().mode, 2);
        assert_eq!(MemoryPolicy::Interleave(numas.clone()).request().mode, 3);
        assert_eq!(MemoryPolicy::Local.request(), Request { mode: 0, mask: [0; WORDS] });
        for text in ["0-7", "0-7@0,3", "0@interleave:0-1"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for bad in ["", "@0", "0@", "0@interleave:", "0@x", "0@0@0", "0@xinterleave:0"] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
        assert_eq!((bind.numas(), MemoryPolicy::Local.numas()), (Some(&numas), None));
    }
}
