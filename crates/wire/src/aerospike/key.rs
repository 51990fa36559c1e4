//! Keys, their digests, and the partitions that these fall into.
//!
//! A record is known by the RIPEMD-160 of its set, the type of its key and the key; the namespace
//! is not part of it. The first twelve bits of the digest, little-endian, are the partition.

use super::particle;
use ripemd::{Digest as _, Ripemd160};

/// Bytes of a digest.
pub const DIGEST_SIZE: usize = 20;
/// Partitions of a namespace.
pub const PARTITIONS: usize = 4096;

/// What a record is known by.
pub type Digest = [u8; DIGEST_SIZE];

/// The key of a record, as its user gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserKey<'a> {
    /// A number.
    Integer(i64),
    /// Text.
    String(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl UserKey<'_> {
    /// The particle type, and the bytes that are hashed and sent.
    fn with_bytes<T>(&self, then: impl FnOnce(u8, &[u8]) -> T) -> T {
        match self {
            Self::Integer(value) => then(particle::INTEGER, &value.to_be_bytes()),
            Self::String(text) => then(particle::STRING, text.as_bytes()),
            Self::Blob(bytes) => then(particle::BLOB, bytes),
        }
    }

    /// Appends the type and the bytes.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.with_bytes(|kind, bytes| {
            out.push(kind);
            out.extend_from_slice(bytes);
        });
    }
}

/// The digest of a key in a set; a set of no name is the empty text.
#[must_use]
pub fn digest(set: &str, key: &UserKey<'_>) -> Digest {
    let mut hash = Ripemd160::new();
    hash.update(set.as_bytes());
    key.with_bytes(|kind, bytes| {
        hash.update([kind]);
        hash.update(bytes);
    });
    hash.finalize().into()
}

/// The partition of a digest, below [`PARTITIONS`].
#[must_use]
#[inline]
pub fn partition(digest: &Digest) -> usize {
    usize::from(u16::from_le_bytes([digest[0], digest[1]])) % PARTITIONS
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its set; empty for none.
    pub set: &'a str,
    /// What it is known by.
    pub digest: Digest,
    /// Sent along with writes that want the server to keep it.
    pub user_key: UserKey<'a>,
}

impl<'a> Key<'a> {
    /// A key with its digest.
    #[must_use]
    pub fn new(namespace: &'a str, set: &'a str, user_key: UserKey<'a>) -> Self {
        Self { namespace, set, digest: digest(set, &user_key), user_key }
    }
}
