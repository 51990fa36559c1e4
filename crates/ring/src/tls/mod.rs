//! TLS between the sockets of a ring and whoever drives it.
//!
//! In: files of certificates and keys. Out: a [`Client`] or a [`Server`], and from it a ring of
//! which every connection is inside TLS ([`Client::over`]), or one [`Session`] for a socket that is
//! not in a ring. Versions 1.2 and 1.3; the server's certificate is verified, against the name or
//! address that is connected to. Without the feature `tls` all of this says that it is not there.
//!
//! Cost: one allocation a record (16 KiB at most) in either direction, which rustls makes; a flush
//! is as few records as it can be. A ring without TLS is another type, and pays nothing.

mod error;
mod files;

#[cfg(feature = "tls")]
mod roles;
#[cfg(feature = "tls")]
mod secured;
#[cfg(feature = "tls")]
mod session;
#[cfg(feature = "tls")]
mod spoken;
#[cfg(feature = "tls")]
mod verify;

#[cfg(not(feature = "tls"))]
mod absent;

pub use error::{Failure, TlsError};
pub use files::{ClientFiles, Identity, ServerFiles};

#[cfg(feature = "tls")]
pub use roles::{Client, Server};
#[cfg(feature = "tls")]
pub use secured::Secured;
#[cfg(feature = "tls")]
pub use session::Session;
#[cfg(feature = "tls")]
pub use spoken::is_spoken_at;

#[cfg(not(feature = "tls"))]
pub use absent::{Client, Secured, Server, Session, is_spoken_at};

/// Bytes that a record adds to its plaintext, at most (RFC 8446, section 5.2, and RFC 5246, section
/// 6.2.3, with the ciphers that rustls has).
const RECORD_OVERHEAD: usize = 64;

/// Bytes of plaintext in a record, at most (RFC 8446, section 5.1).
const RECORD_SIZE_MAX: usize = 16 << 10;

/// What `size` bytes of plaintext that are flushed together take on the wire, at most.
#[must_use]
pub fn wire_size_max(size: usize) -> usize {
    size + (size / RECORD_SIZE_MAX + 2) * RECORD_OVERHEAD
}
