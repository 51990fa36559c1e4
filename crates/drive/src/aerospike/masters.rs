//! Who is the master of each partition: which host an operation on a record goes to.

use wire::aerospike::{Digest, PARTITIONS, partition};

/// By partition, the index of the host that is its master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masters(Vec<u16>);

impl Masters {
    /// Of one host for each of the [`PARTITIONS`]; None when they are not as many.
    #[must_use]
    pub fn new(hosts: Vec<u16>) -> Option<Self> {
        (hosts.len() == PARTITIONS).then_some(Self(hosts))
    }

    /// The host of a record.
    #[must_use]
    #[inline]
    pub fn host(&self, digest: &Digest) -> u16 {
        self.0[partition(digest)]
    }

    /// Partitions whose master is another one in `other`.
    #[must_use]
    pub fn moved(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).filter(|(a, b)| a != b).count()
    }
}
