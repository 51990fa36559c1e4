//! Which way of talking to the kernel is asked for.

use crate::uring::{Unavailable, Uring};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// An implementation of [`crate::Ring`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// [`crate::Epoll`]: on every kernel.
    #[default]
    Epoll,
    /// [`crate::Uring`]: from Linux 6.0 on, where nobody has switched it off.
    IoUring,
}

/// A name of none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown engine {0:?}: epoll or io-uring")]
pub struct EngineError(String);

impl Engine {
    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io-uring",
        }
    }
}

impl Engine {
    /// Whether this machine has it, before anything depends on it.
    ///
    /// # Errors
    /// [`Unavailable`], which says why not.
    pub fn check(self) -> Result<(), Unavailable> {
        match self {
            Self::Epoll => Ok(()),
            Self::IoUring => Uring::check(),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        match text {
            "epoll" => Ok(Self::Epoll),
            "io-uring" => Ok(Self::IoUring),
            _ => Err(EngineError(text.to_owned())),
        }
    }
}
