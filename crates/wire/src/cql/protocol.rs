//! Which version of the protocol a connection speaks, and how its frames are compressed.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The version that is spoken unless another one is asked for.
pub const VERSION: u8 = 4;
/// The version whose frames travel in checksummed segments.
pub const VERSION_5: u8 = 5;

/// How bodies (v4) or segments (v5) are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // the names are the specification's
pub enum Compression {
    #[default]
    None,
    Lz4,
    Snappy,
}

impl Compression {
    /// As it stands in options and in STARTUP; `none` is left out there.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::None, Self::Lz4, Self::Snappy]
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("'{text}' is not a compression; one of none, lz4, snappy"))
    }
}

/// What a protocol cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Neither 4 nor 5.
    #[error("protocol version {0} is not supported; it is 4 or 5")]
    Version(u8),
    /// Version 5 has LZ4 only.
    #[error("protocol v5 does not know snappy; take lz4, or snappy with protocol version 4")]
    Snappy,
}

/// Version and compression of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol {
    version: u8,
    compression: Compression,
}

impl Default for Protocol {
    /// v4 without compression.
    fn default() -> Self {
        Self { version: VERSION, compression: Compression::None }
    }
}

impl Protocol {
    /// # Errors
    /// [`ProtocolError`] for what the protocol does not know.
    pub fn new(version: u8, compression: Compression) -> Result<Self, ProtocolError> {
        match (version, compression) {
            (VERSION_5, Compression::Snappy) => Err(ProtocolError::Snappy),
            (VERSION | VERSION_5, _) => Ok(Self { version, compression }),
            _ => Err(ProtocolError::Version(version)),
        }
    }

    /// 4 or 5.
    #[must_use]
    pub fn version(self) -> u8 {
        self.version
    }

    /// How frames are compressed.
    #[must_use]
    pub fn compression(self) -> Compression {
        self.compression
    }

    /// Whether frames stand on the wire as they are, after the handshake as before it.
    #[must_use]
    pub fn is_bare(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.compression {
            Compression::None => write!(f, "protocol v{}", self.version),
            compression => write!(f, "protocol v{} with {compression}", self.version),
        }
    }
}
