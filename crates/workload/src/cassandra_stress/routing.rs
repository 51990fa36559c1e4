//! Keys of partitions as the cluster hashes them: a seed -> the bytes that its token follows from.
//!
//! A key of one column is that value; one of several is each value behind its length in two bytes
//! and before a zero. Source: Cassandra's `CompositeType`.

use super::rows::PartitionGenerator;

/// Bytes around a component of several.
const AROUND: usize = 3;

impl PartitionGenerator {
    /// Bytes that [`Self::write_routing_key`] needs.
    #[must_use]
    pub fn routing_room(&self) -> usize {
        self.partition_key.iter().map(|column| column.room() + AROUND).sum()
    }

    /// Bytes that a component of the partition key needs at most.
    #[must_use]
    pub fn key_room(&self, column: usize) -> usize {
        self.partition_key[column].room()
    }

    /// Bytes that a clustering column needs at most.
    #[must_use]
    pub fn clustering_room(&self, column: usize) -> usize {
        self.clustering[column].room()
    }

    /// Writes the key of a seed's partition to the front of `out`; returns its size in bytes. What
    /// stands behind it in the first [`Self::routing_room`] bytes may be overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than that and the key does not fit.
    pub fn write_routing_key(&self, seed: i64, out: &mut [u8]) -> usize {
        if let [column] = &self.partition_key[..] {
            return column.write(&mut column.seeded(seed), out);
        }
        let mut at = 0;
        for column in &self.partition_key {
            let size = column.write(&mut column.seeded(seed), &mut out[at + 2..]);
            out[at..at + 2].copy_from_slice(&(size as u16).to_be_bytes());
            at += 2 + size;
            out[at] = 0;
            at += 1;
        }
        at
    }
}
