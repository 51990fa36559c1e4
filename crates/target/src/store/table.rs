//! A table's partitions, sharded by token.
//!
//! The top bits of the token choose the shard, so the shards in order are the ring in order: a scan
//! locks one shard at a time and needs no merge, a point access locks one of a thousand and
//! searches a small map. With a table on disk the shards hold nothing, and their locks keep two
//! writes of a partition apart.

use super::lsm::LsmTable;
use super::{Partition, Row};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Approximate bytes of all tables.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    used_bytes: AtomicI64,
}

impl Memory {
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    fn grow(&self, bytes: i64) {
        if bytes != 0 {
            self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// A partition's place on the ring, and its serialized key.
type PartitionKey = (i64, Box<[u8]>);

type Shard = BTreeMap<PartitionKey, Partition>;

/// Where a scan begins: at a token, or right behind a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position<'a> {
    pub(crate) token: i64,
    /// None: at the token's first partition.
    pub(crate) key: Option<&'a [u8]>,
}

/// The partitions of a table.
#[derive(Debug)]
pub(crate) struct TableStore {
    shards: Box<[Mutex<Shard>]>,
    /// 63 less the bits that choose the shard.
    shift: u32,
    /// Where the rows are when they are not in memory.
    lsm: Option<Box<LsmTable>>,
    clustered: bool,
    memory: Arc<Memory>,
    bytes: AtomicI64,
}

impl TableStore {
    /// An empty table of `1 << shard_bits` shards, counted in `memory`.
    pub(crate) fn new(clustered: bool, shard_bits: u32, memory: Arc<Memory>) -> Self {
        let shards = (0..1usize << shard_bits).map(|_| Mutex::default()).collect();
        let (lsm, bytes) = (None, AtomicI64::new(0));
        Self { shards, shift: 63 - shard_bits, lsm, clustered, memory, bytes }
    }

    /// The same, with its rows on disk.
    pub(crate) fn on_disk(mut self, lsm: LsmTable) -> Self {
        self.lsm = Some(Box::new(lsm));
        self
    }

    /// The table on disk.
    pub(crate) fn lsm(&self) -> Option<&LsmTable> {
        self.lsm.as_deref()
    }

    fn shard_index(&self, token: i64) -> usize {
        let from_start = (token as u64) ^ (1 << 63);
        // In two steps, because one shard takes no bit.
        ((from_start >> 1) >> self.shift) as usize
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        // A shard is never left half-written by a panic: there is none in this module's callers.
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows `read` the partition of a key, if there is one.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        token: i64,
        key: &[u8],
        read: impl FnOnce(Option<&Partition>) -> R,
    ) -> R {
        if let Some(lsm) = &self.lsm {
            return read(lsm.get(token, key, self.clustered).as_ref());
        }
        let shard = self.lock(self.shard_index(token));
        let from: PartitionKey = (token, Box::default());
        let found = shard
            .range(from..)
            .take_while(|((t, _), _)| *t == token)
            .find(|((_, k), _)| k[..] == *key);
        read(found.map(|(_, partition)| partition))
    }

    /// Gives `write` the partition of a key, made when there is none; `write` returns the growth in
    /// bytes.
    #[inline]
    pub(crate) fn write(&self, token: i64, key: &[u8], write: impl FnOnce(&mut Partition) -> i64) {
        let mut shard = self.lock(self.shard_index(token));
        if let Some(lsm) = &self.lsm {
            let found = lsm.get(token, key, self.clustered);
            let mut partition = found.unwrap_or_else(|| Partition::new(self.clustered));
            write(&mut partition);
            return lsm.put(token, key, &partition);
        }
        let from: PartitionKey = (token, Box::default());
        let found = shard
            .range_mut(from..)
            .take_while(|((t, _), _)| *t == token)
            .find(|((_, k), _)| k[..] == *key);
        let growth = match found {
            Some((_, partition)) => write(partition),
            None => {
                let mut partition = Partition::new(self.clustered);
                let base = size_of::<Partition>() - size_of::<Option<Row>>() + 48 + key.len();
                let growth = write(&mut partition) + base as i64;
                shard.insert((token, key.into()), partition);
                growth
            }
        };
        drop(shard);
        self.bytes.fetch_add(growth, Ordering::Relaxed);
        self.memory.grow(growth);
    }

    /// Visits the partitions from `from` on up to `last_token` (included), in the ring's order.
    pub(crate) fn scan(
        &self,
        from: Position<'_>,
        last_token: i64,
        mut visit: impl FnMut(i64, &[u8], &Partition) -> ControlFlow<()>,
    ) {
        if let Some(lsm) = &self.lsm {
            return lsm.scan(from, last_token, self.clustered, visit);
        }
        let first = self.shard_index(from.token);
        for index in first..=self.shard_index(last_token).max(first) {
            let shard = self.lock(index);
            let start: PartitionKey = match index == first {
                true => (from.token, Box::default()),
                false => (i64::MIN, Box::default()),
            };
            for ((token, key), partition) in shard.range(start..) {
                let behind = from.key.is_none_or(|k| (*token, &key[..]) > (from.token, k));
                if *token > last_token {
                    return;
                }
                if behind && visit(*token, key, partition).is_break() {
                    return;
                }
            }
        }
    }

    /// Empties the table.
    pub(crate) fn truncate(&self) {
        if let Some(lsm) = &self.lsm {
            return lsm.truncate();
        }
        for index in 0..self.shards.len() {
            self.lock(index).clear();
        }
        self.memory.grow(-self.bytes.swap(0, Ordering::Relaxed));
    }
}

impl Drop for TableStore {
    fn drop(&mut self) {
        self.memory.grow(-self.bytes.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::Write;
    use super::super::{Expiry, KeyRange};
    use super::*;
    use proptest::prelude::*;
    use wire::murmur3;

    fn at(timestamp_us: i64) -> Write {
        Write { timestamp_us, expiry: Expiry::default(), now_s: 0 }
    }

    fn store(clustered: bool, shard_bits: u32) -> (TableStore, Arc<Memory>) {
        let memory = Arc::new(Memory::default());
        (TableStore::new(clustered, shard_bits, Arc::clone(&memory)), memory)
    }

    fn put(store: &TableStore, key: &[u8], clustering: &[u8], value: &[u8], timestamp_us: i64) {
        store.write(murmur3::token(key), key, |partition| {
            partition.write_row(clustering, clustering, |row| {
                row.mark(at(timestamp_us));
                row.write(0, Some(value), at(timestamp_us))
            })
        });
    }

    fn rows(store: &TableStore, key: &[u8]) -> Vec<Vec<u8>> {
        store.read(murmur3::token(key), key, |partition| {
            let range = KeyRange::default();
            let rows = partition.into_iter().flat_map(|p| p.rows(&range));
            rows.filter(|(_, r)| r.is_live(0)).map(|(k, _)| k.to_vec()).collect()
        })
    }

    #[test]
    fn memory_is_counted_and_given_back() {
        let (store, memory) = store(true, 4);
        put(&store, b"a", b"1", &[0; 1000], 1);
        put(&store, b"a", b"2", &[0; 1000], 1);
        let used = memory.used_bytes();
        assert!((2000..3000).contains(&used), "{used}");
        put(&store, b"a", b"2", &[0; 500], 2);
        assert_eq!(memory.used_bytes(), used - 500);
        store.truncate();
        assert_eq!((memory.used_bytes(), rows(&store, b"a").len()), (0, 0));
        put(&store, b"a", b"1", &[0; 1000], 1);
        drop(store);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn late_writes_stay_under_deletions() {
        let (store, _) = store(true, 0);
        let token = murmur3::token(b"k");
        for c in [b"a", b"b", b"c"] {
            put(&store, b"k", c, b"x", 10);
        }
        let range = KeyRange { from: b"b".to_vec(), to: Some(b"c".to_vec()) };
        store.write(token, b"k", |p| p.delete_range(range, 20));
        assert_eq!(rows(&store, b"k"), [b"a", b"c"]);
        put(&store, b"k", b"b", b"late", 15);
        put(&store, b"k", b"bb", b"late", 20);
        assert_eq!(rows(&store, b"k"), [b"a", b"c"]);
        put(&store, b"k", b"b", b"later", 21);
        assert_eq!(rows(&store, b"k"), [b"a", b"b", b"c"]);
        store.write(token, b"k", |p| p.delete(30));
        put(&store, b"k", b"z", b"late", 30);
        assert!(rows(&store, b"k").is_empty());
        put(&store, b"k", b"z", b"later", 31);
        assert_eq!(rows(&store, b"k"), [b"z"]);
        store.write(token, b"k", |p| p.write_row(b"z", b"z", |r| r.delete(40)));
        put(&store, b"k", b"z", b"late", 35);
        assert!(rows(&store, b"k").is_empty());
    }

    proptest! {
        /// A scan in steps meets every partition once, in the order of tokens, whatever the number
        /// of shards.
        #[test]
        fn scans_cover_the_ring(
            keys in proptest::collection::btree_set(any::<u32>(), 0..80),
            shard_bits in 0u32..6,
            step in 1usize..10,
            split: i64,
        ) {
            let (store, _) = store(false, shard_bits);
            for key in &keys {
                put(&store, &key.to_be_bytes(), b"", b"x", 1);
            }
            let mut seen: Vec<(i64, Vec<u8>)> = Vec::new();
            for (first, last) in [(i64::MIN, split), (split.saturating_add(1), i64::MAX)] {
                if split == i64::MAX && first == i64::MAX {
                    continue;
                }
                let mut behind: Option<(i64, Vec<u8>)> = None;
                loop {
                    let mut left = step;
                    let before = seen.len();
                    let from = match &behind {
                        Some((token, key)) => Position { token: *token, key: Some(key) },
                        None => Position { token: first, key: None },
                    };
                    store.scan(from, last, |token, key, _| {
                        seen.push((token, key.to_vec()));
                        left -= 1;
                        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    });
                    if seen.len() == before {
                        break;
                    }
                    behind = seen.last().cloned();
                }
            }
            prop_assert!(seen.windows(2).all(|w| w[0] < w[1]));
            prop_assert_eq!(seen.len(), keys.len());
        }
    }
}
