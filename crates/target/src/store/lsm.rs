//! Tables on disk: log-structured merge trees of the crate fjall, with its write-ahead log.
//!
//! In: partitions, each written as a whole behind the partition's place on the ring. Out: them. A
//! directory holds one database for each shard, a contiguous part of the ring; there are as many as
//! the server had threads when the directory was made. Compaction runs on threads of its own and
//! keeps the last version of a partition; tombstones and expired cells stay in it, as in memory.
//!
//! What has been acknowledged is with the kernel, so it survives the end of the process by whatever
//! signal. It is not on the disk yet: a host that loses its power loses the last seconds, unless
//! [`LsmOptions::fsync`] has every answer wait for the disk, once for all that were received
//! together. A log whose end is torn is taken up to there.
//!
//! Source of the engine's guarantees: fjall 3.1, `PersistMode`. A failure of the disk is the end of
//! the server ([`Disk::failure`]): what it could not keep is never acknowledged. Limits: a write
//! costs the size of its partition; a batch over several partitions may be kept in part when the
//! process ends in the midst of it, and is not acknowledged then.

use super::{Partition, Position};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use thiserror::Error;
use units::Bytes;
use wire::murmur3;

/// Of what lies in a directory: its files and `encoding`.
const FORMAT: u32 = 1;
/// Says what a directory is; there before anything else.
const ABOUT: &str = "wideload-target";
const LOCK: &str = "lock";
const SCHEMA: &str = "schema";
/// The logs of a shard that are kept before their rows are written out: what is read at a start.
const LOG_BYTES_MAX: u64 = 128 << 20;
/// Of a partition key in a key on disk, which has 65,535 bytes at most. What is longer has a hash
/// behind so much of it, and stands before its value in full.
const KEY_BYTES_MAX: usize = 65_000;

/// Where rows go, and how safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LsmOptions {
    /// The directory; made when it is not there.
    pub dir: PathBuf,
    /// Answers wait until the disk has what they acknowledge.
    pub fsync: bool,
    /// Databases of a new directory; one that is there keeps its number.
    pub shards: usize,
    /// Of all shards, for blocks that were read.
    pub cache: Bytes,
}

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It cannot be made, read or written.
    #[error(
        "cannot use {}: {source}; give a directory that this user may write with --dir",
        .path.display()
    )]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else.
    #[error(
        "{} is not empty, and holds no data of the reference target: give another directory with \
         --dir",
        .0.display()
    )]
    Foreign(PathBuf),
    /// It was written in another way.
    #[error(
        "{} was written by another version of the reference target ({found}; this one writes \
         format {FORMAT}): give another directory with --dir, or use the program that wrote it",
        .path.display()
    )]
    Version {
        /// The directory.
        path: PathBuf,
        /// What it says of itself.
        found: String,
    },
    /// It is in use.
    #[error(
        "another target uses {}: stop it, or give another directory with --dir",
        .0.display()
    )]
    InUse(PathBuf),
    /// Its content is not what it should be.
    #[error(
        "the data in {} cannot be read: {why}; take a copy of the directory, and give an empty one \
         with --dir",
        .path.display()
    )]
    Corrupt {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The databases of a server.
#[derive(Debug)]
pub(crate) struct Disk {
    dir: PathBuf,
    shards: Vec<Shard>,
    fsync: bool,
    next_number: AtomicU64,
    failure: OnceLock<String>,
    /// Held as long as the directory is in use.
    _lock: File,
}

struct Shard {
    database: Database,
    /// Whether anything was written since the last sync, which goes on under the lock.
    written: AtomicBool,
    syncing: Mutex<()>,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Writes a file whole or not at all, also when the host ends.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("new");
    let mut file = File::create(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// Whether a directory holds something, and says not that it is ours.
fn is_foreign(dir: &Path) -> io::Result<bool> {
    if dir.join(ABOUT).exists() {
        return Ok(false);
    }
    let part = Path::new(ABOUT).with_extension("new");
    for entry in fs::read_dir(dir)? {
        // One that was interrupted in its first moment has these.
        let name = entry?.file_name();
        if name != LOCK && name != part.as_os_str() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of shards of a directory, which is new or says so.
fn about(options: &LsmOptions) -> Result<usize, StoreError> {
    let dir = &options.dir;
    let path = dir.join(ABOUT);
    let failed = |source| StoreError::Io { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) => {
            let shards = text
                .strip_prefix(&format!("format {FORMAT}\nshards "))
                .and_then(|rest| rest.trim_end().parse().ok());
            let found = || text.lines().next().unwrap_or("nothing").chars().take(40).collect();
            shards
                .filter(|shards| (1..=4096).contains(shards))
                .ok_or_else(|| StoreError::Version { path: dir.clone(), found: found() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let shards = options.shards.clamp(1, 4096);
            replace(&path, &format!("format {FORMAT}\nshards {shards}\n")).map_err(failed)?;
            Ok(shards)
        }
        Err(error) => Err(failed(error)),
    }
}

impl Disk {
    /// Opens a directory, or makes it.
    pub(crate) fn open(options: &LsmOptions) -> Result<Self, StoreError> {
        let dir = options.dir.clone();
        fs::create_dir_all(&dir).map_err(|source| StoreError::Io { path: dir.clone(), source })?;
        let foreign = is_foreign(&dir);
        if foreign.map_err(|source| StoreError::Io { path: dir.clone(), source })? {
            return Err(StoreError::Foreign(dir));
        }
        let path = dir.join(LOCK);
        let failed = |source| StoreError::Io { path: path.clone(), source };
        let lock = File::create(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(dir)),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let count = about(options)?;
        let open = |index: usize| {
            let database = Database::builder(dir.join(format!("shard-{index}")))
                .worker_threads(1)
                .cache_size(options.cache.0 / count as u64)
                .max_journaling_size(LOG_BYTES_MAX)
                .open()
                .map_err(|error| unusable(&dir, error))?;
            Ok(Shard { database, written: AtomicBool::new(false), syncing: Mutex::default() })
        };
        let shards = (0..count).map(open).collect::<Result<Vec<_>, _>>()?;
        let numbers = shards.iter().flat_map(|s| s.database.list_keyspace_names());
        let last = numbers.filter_map(|name| number(&name)).max().unwrap_or(0);
        Ok(Self {
            dir,
            shards,
            fsync: options.fsync,
            next_number: AtomicU64::new(last + 1),
            failure: OnceLock::new(),
            _lock: lock,
        })
    }

    /// The schema as it was saved; None in a new directory.
    pub(crate) fn schema(&self) -> Result<Option<String>, StoreError> {
        let path = self.dir.join(SCHEMA);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { path, source }),
        }
    }

    /// Saves the schema; on the disk when this returns.
    pub(crate) fn save_schema(&self, text: &str) {
        if let Err(error) = replace(&self.dir.join(SCHEMA), text) {
            self.fail("the schema cannot be saved", &error);
        }
    }

    /// A directory whose content is not what it should be.
    pub(crate) fn corrupt(&self, why: String) -> StoreError {
        StoreError::Corrupt { path: self.dir.clone(), why }
    }

    /// A number that no table has had.
    pub(crate) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// The table of a number, made when there is none. A failure is the end of the server.
    pub(crate) fn table(self: &Arc<Self>, number: u64) -> LsmTable {
        let name = name(number);
        let open = |shard: &Shard| shard.database.keyspace(&name, KeyspaceCreateOptions::default);
        let trees = self.shards.iter().map(open).collect::<Result<Vec<_>, _>>();
        let trees = trees.unwrap_or_else(|error| {
            self.fail("a table cannot be opened", &error);
            Vec::new()
        });
        LsmTable { disk: Arc::clone(self), trees, number }
    }

    /// Deletes the tables that are not among `numbers`: what a change of the schema left that did
    /// not come to its end.
    pub(crate) fn keep_only(&self, numbers: &[u64]) {
        for shard in &self.shards {
            for name in shard.database.list_keyspace_names() {
                if number(&name).is_none_or(|number| !numbers.contains(&number)) {
                    let tree = shard.database.keyspace(&name, KeyspaceCreateOptions::default);
                    if let Err(error) = tree.and_then(|tree| shard.database.delete_keyspace(tree)) {
                        self.fail("a dropped table cannot be deleted", &error);
                    }
                }
            }
        }
    }

    fn fail(&self, what: &str, error: &(dyn std::error::Error + 'static)) {
        let error = match error.downcast_ref::<fjall::Error>() {
            // In the words of the system, which people know.
            Some(fjall::Error::Io(source)) => source,
            _ => error,
        };
        let why = format!("{what} in {}: {error}", self.dir.display());
        self.failure.get_or_init(|| why);
    }

    /// Why nothing can be kept any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Makes what was written as durable as it is to be before it is acknowledged. False when that
    /// failed: nothing may be acknowledged any more.
    pub(crate) fn settle(&self) -> bool {
        if self.fsync {
            for shard in &self.shards {
                // Who waits here has its writes synced by the one before, or syncs them now.
                let _syncing = shard.syncing.lock().unwrap_or_else(PoisonError::into_inner);
                if shard.written.swap(false, Ordering::AcqRel)
                    && let Err(error) = shard.database.persist(PersistMode::SyncData)
                {
                    self.fail("what was written cannot be synced", &error);
                }
            }
        }
        self.failure().is_none()
    }

    fn shard_index(&self, token: i64) -> usize {
        let from_start = (token as u64) ^ (1 << 63);
        ((u128::from(from_start) * self.shards.len() as u128) >> 64) as usize
    }
}

fn name(number: u64) -> String {
    format!("table-{number}")
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix("table-")?.parse().ok()
}

fn unusable(dir: &Path, error: fjall::Error) -> StoreError {
    let path = dir.to_owned();
    match error {
        fjall::Error::Locked => StoreError::InUse(path),
        fjall::Error::InvalidVersion(version) => {
            StoreError::Version { path, found: format!("its engine's is {version:?}") }
        }
        fjall::Error::Io(source) => StoreError::Io { path, source },
        other => StoreError::Corrupt { path, why: other.to_string() },
    }
}

/// A table on disk.
pub(crate) struct LsmTable {
    disk: Arc<Disk>,
    /// By shard; none when they could not be opened, and the server ends.
    trees: Vec<Keyspace>,
    pub(crate) number: u64,
}

impl std::fmt::Debug for LsmTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LsmTable").field("number", &self.number).finish_non_exhaustive()
    }
}

/// In the order of the ring.
fn place(token: i64) -> [u8; 8] {
    ((token as u64) ^ (1 << 63)).to_be_bytes()
}

fn disk_key(token: i64, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + key.len().min(KEY_BYTES_MAX) + 16);
    bytes.extend_from_slice(&place(token));
    bytes.extend_from_slice(&key[..key.len().min(KEY_BYTES_MAX)]);
    if key.len() > KEY_BYTES_MAX {
        let (high, low) = murmur3::hash(key, 0);
        bytes.extend_from_slice(&high.to_be_bytes());
        bytes.extend_from_slice(&low.to_be_bytes());
    }
    bytes
}

/// The partition key and the partition of an entry.
fn entry<'a>(on_disk: &'a [u8], value: &'a [u8]) -> Option<(i64, &'a [u8], &'a [u8])> {
    let (place, key) = on_disk.split_first_chunk::<8>()?;
    let token = (u64::from_be_bytes(*place) ^ (1 << 63)) as i64;
    if key.len() <= KEY_BYTES_MAX {
        return Some((token, key, value));
    }
    let (size, rest) = value.split_first_chunk::<4>()?;
    let (key, partition) = rest.split_at_checked(u32::from_be_bytes(*size) as usize)?;
    Some((token, key, partition))
}

impl LsmTable {
    fn tree(&self, token: i64) -> Option<&Keyspace> {
        self.trees.get(self.disk.shard_index(token))
    }

    fn decode(&self, partition: &[u8], clustered: bool) -> Option<Partition> {
        let decoded = Partition::decode(partition, clustered);
        if decoded.is_none() {
            let why = io::Error::other("its bytes are not those of a partition");
            self.disk.fail("a partition cannot be read", &why);
        }
        decoded
    }

    /// The partition of a key.
    pub(super) fn get(&self, token: i64, key: &[u8], clustered: bool) -> Option<Partition> {
        let on_disk = disk_key(token, key);
        match self.tree(token)?.get(&on_disk) {
            Ok(value) => {
                let value = value?;
                let (_, _, partition) = entry(&on_disk, &value)?;
                self.decode(partition, clustered)
            }
            Err(error) => {
                self.disk.fail("a partition cannot be read", &error);
                None
            }
        }
    }

    /// Writes a partition.
    pub(super) fn put(&self, token: i64, key: &[u8], partition: &Partition) {
        let Some(tree) = self.tree(token) else { return };
        let mut value = Vec::with_capacity(256);
        if key.len() > KEY_BYTES_MAX {
            value.extend_from_slice(&(key.len() as u32).to_be_bytes());
            value.extend_from_slice(key);
        }
        partition.encode(&mut value);
        match tree.insert(disk_key(token, key), value) {
            Ok(()) => {
                let shard = &self.disk.shards[self.disk.shard_index(token)];
                shard.written.store(true, Ordering::Release);
            }
            // A prepared statement may outlive its table, and what it writes is gone with it.
            Err(fjall::Error::KeyspaceDeleted) => {}
            Err(error) => self.disk.fail("a partition cannot be written", &error),
        }
    }

    /// Visits the partitions from `from` on up to `last_token` (included), in the ring's order.
    pub(super) fn scan(
        &self,
        from: Position<'_>,
        last_token: i64,
        clustered: bool,
        mut visit: impl FnMut(i64, &[u8], &Partition) -> ControlFlow<()>,
    ) {
        let first = match from.key {
            Some(key) => Bound::Excluded(disk_key(from.token, key)),
            None => Bound::Included(place(from.token).to_vec()),
        };
        let begin = self.disk.shard_index(from.token);
        for tree in self.trees.iter().skip(begin) {
            for guard in tree.range::<Vec<u8>, _>((first.clone(), Bound::Unbounded)) {
                let (on_disk, value) = match guard.into_inner() {
                    Ok(pair) => pair,
                    Err(error) => return self.disk.fail("partitions cannot be read", &error),
                };
                let Some((token, key, partition)) = entry(&on_disk, &value) else { continue };
                if token > last_token {
                    return;
                }
                let Some(partition) = self.decode(partition, clustered) else { return };
                if visit(token, key, &partition).is_break() {
                    return;
                }
            }
        }
    }

    /// Empties the table.
    pub(super) fn truncate(&self) {
        for (tree, shard) in self.trees.iter().zip(&self.disk.shards) {
            if let Err(error) = tree.clear() {
                self.disk.fail("a table cannot be emptied", &error);
            }
            shard.written.store(true, Ordering::Release);
        }
    }

    /// Deletes the table, whose number no schema has any more.
    pub(crate) fn delete(&self) {
        for (tree, shard) in self.trees.iter().zip(&self.disk.shards) {
            if let Err(error) = shard.database.delete_keyspace(tree.clone()) {
                self.disk.fail("a dropped table cannot be deleted", &error);
            }
        }
    }
}
