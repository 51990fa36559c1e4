//! Records of all namespaces, and what is asked of one: bytes of a message in, an answer out.

use super::members::{Instances, Members};
use super::operate::{self, Existing};
use crate::counters::{Counter, CounterBlocks, Counters};
use crate::engine::Clock;
use crate::faults::{self, FaultPlan, Faults};
use crate::session::IdHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use units::{Bytes, Nanos};
use wire::aerospike::{
    BIN_NAME_MAX, Digest, FieldKind, Message, OpKind, ResultCode, info1, info2, info3,
};

/// Parts of a namespace, each with a lock.
const SHARDS: usize = 256;
/// What a record takes beyond its bins, bytes: its place in a table that is half full.
const RECORD_OVERHEAD: u64 = 128;
/// From 1970 to 2010, seconds: when the protocol's time begins.
const EPOCH_S: i64 = 1_262_304_000;
/// Bits of the fourth byte of what is asked for that change no record: how errors are told.
const INFO4_HARMLESS: u8 = 0x60;

/// How records are kept.
#[derive(Debug, Clone)]
pub struct RecordsConfig {
    /// Names of the namespaces.
    pub namespaces: Vec<String>,
    /// Writes are refused when records take more, approximately.
    pub memory_max: Bytes,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where the servers listen, one at least.
    pub addresses: Vec<SocketAddr>,
    /// What becomes of them.
    pub instances: Instances,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// A record.
#[derive(Debug)]
pub(super) struct Record {
    /// Counts its writes from 1; 0 is left out when it begins again.
    pub(super) generation: u16,
    /// When it ends, seconds since 2010; 0 for never.
    pub(super) void_time_s: u32,
    /// Index of its set among those of the namespace.
    pub(super) set: u16,
    pub(super) count: u16,
    /// See [`super::bins`].
    pub(super) ops: Box<[u8]>,
}

impl Record {
    fn is_over(&self, now_s: u32) -> bool {
        self.void_time_s != 0 && self.void_time_s <= now_s
    }

    fn size_bytes(&self) -> u64 {
        RECORD_OVERHEAD + self.ops.len() as u64
    }
}

type Shard = HashMap<Digest, Record, BuildHasherDefault<IdHasher>>;

/// A namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) name: String,
    shards: Vec<Mutex<Shard>>,
    /// By name, in order of their first records: how many there are.
    sets: RwLock<Vec<(String, AtomicU64)>>,
}

/// Sets of a namespace; records of more are counted with the last one.
const SETS_MAX: usize = 1023;

impl Namespace {
    fn shard(&self, digest: &Digest) -> MutexGuard<'_, Shard> {
        // The hash of a shard's table is made of other bytes.
        let index = usize::from(digest[digest.len() - 1]) % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records, with those that have ended and not been asked for since.
    pub(super) fn records(&self) -> usize {
        let size = |s: &Mutex<Shard>| s.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(size).sum()
    }

    /// Its sets, and how many records each has.
    pub(super) fn sets(&self) -> Vec<(String, u64)> {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.iter().map(|(name, count)| (name.clone(), count.load(Ordering::Relaxed))).collect()
    }

    /// The index of a set, which is made where it is missing.
    fn set_of(&self, message: &Message<'_>) -> u16 {
        let name = message.fields().find(|field| field.kind == FieldKind::SET);
        let name = name.and_then(|field| field.text().ok()).unwrap_or_default();
        let known = |sets: &[(String, AtomicU64)]| sets.iter().position(|(set, _)| set == name);
        if let Some(index) = known(&self.sets.read().unwrap_or_else(PoisonError::into_inner)) {
            return index as u16;
        }
        let mut sets = self.sets.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = known(&sets) {
            return index as u16;
        }
        if sets.len() < SETS_MAX {
            sets.push((name.to_owned(), AtomicU64::new(0)));
        }
        (sets.len() - 1) as u16
    }

    fn count(&self, set: u16, then: impl FnOnce(&AtomicU64)) {
        let sets = self.sets.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, count)) = sets.get(usize::from(set)) {
            then(count);
        }
    }
}

/// What became of a record, beside the operations of the answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) generation: u16,
    pub(super) void_time_s: u32,
    /// Operations of the answer.
    pub(super) count: u16,
}

/// All namespaces.
#[derive(Debug)]
pub struct Records {
    pub(super) namespaces: Vec<Namespace>,
    pub(super) memory_max: Bytes,
    clock: Clock,
    pub(super) members: Members,
    used_bytes: AtomicU64,
    /// When records that have ended were last looked for everywhere, seconds since 2010.
    swept_s: AtomicI64,
    pub(super) counters: CounterBlocks,
    pub(super) faults: Option<Arc<FaultPlan>>,
}

/// Where a message's record is.
struct Place<'a> {
    namespace: &'a Namespace,
    digest: Digest,
}

impl Records {
    /// Empty namespaces.
    #[must_use]
    pub fn new(config: &RecordsConfig) -> Self {
        let namespace = |name: &String| Namespace {
            name: name.clone(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            sets: RwLock::default(),
        };
        let faults = config.faults.are_any().then(|| config.faults.clone());
        Self {
            namespaces: config.namespaces.iter().map(namespace).collect(),
            memory_max: config.memory_max,
            clock: config.clock.clone(),
            members: Members::new(config.addresses.clone(), config.instances.clone()),
            used_bytes: AtomicU64::new(0),
            swept_s: AtomicI64::new(0),
            counters: CounterBlocks::default(),
            faults: faults.map(|faults| Arc::new(FaultPlan::new(faults))),
        }
    }

    /// Tells the faults that operations have met; None when there are none on purpose.
    pub(crate) fn faults_met(&self, now: Nanos) -> Option<String> {
        let plan = self.faults.as_deref()?;
        Some(faults::told(plan, &self.counters, now))
    }

    /// Approximate bytes of all records.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Seconds since 2010; 0 for what was before.
    fn now_s(&self) -> u32 {
        u32::try_from(self.clock.now_us() / 1_000_000 - EPOCH_S).unwrap_or(0)
    }

    fn place(
        &self,
        message: &Message<'_>,
        digest: Option<&Digest>,
    ) -> Result<Place<'_>, ResultCode> {
        let (mut namespace, mut digest) = (None, digest.copied());
        for field in message.fields() {
            match field.kind {
                FieldKind::NAMESPACE => namespace = field.text().ok(),
                FieldKind::DIGEST => {
                    digest = Some(field.digest().map_err(|_| ResultCode::PARAMETER)?);
                }
                FieldKind::SET | FieldKind::KEY => {}
                FieldKind::TRANSACTION => return Err(ResultCode::ENTERPRISE_ONLY),
                _ => return Err(ResultCode::UNSUPPORTED),
            }
        }
        if message.header.info4 & !INFO4_HARMLESS != 0 {
            return Err(ResultCode::ENTERPRISE_ONLY);
        }
        let name = namespace.ok_or(ResultCode::PARAMETER)?;
        let namespace = self.namespaces.iter().find(|n| n.name == name);
        let namespace = namespace.ok_or(ResultCode::NAMESPACE)?;
        // Who names no record wants many of them.
        Ok(Place { namespace, digest: digest.ok_or(ResultCode::UNSUPPORTED)? })
    }

    /// Does what a message asks of one record, and appends the operations of the answer.
    ///
    /// # Errors
    /// The result code of the answer; what was appended is to be cut off then.
    pub(super) fn carry_out(
        &self,
        message: &Message<'_>,
        (member, digest): (usize, Option<&Digest>),
        counters: &Counters,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, ResultCode> {
        let place = self.place(message, digest)?;
        if !self.members.holds(member, &place.digest) {
            counters.add(Counter::Misrouted, 1);
            return Err(ResultCode::UNAVAILABLE);
        }
        let (writes, deletes) =
            (message.header.info2 & info2::WRITE != 0, message.header.info2 & info2::DELETE != 0);
        if !writes {
            counters.add(Counter::RecordRead, 1);
            return self.read(&place, message, out);
        }
        if message.header.info2 & info2::DURABLE_DELETE != 0 {
            return Err(ResultCode::ENTERPRISE_ONLY);
        }
        if deletes {
            counters.add(Counter::RecordDelete, 1);
            return self.delete(&place, message);
        }
        counters.add(Counter::RecordWrite, 1);
        self.write(&place, message, out)
    }

    fn read(
        &self,
        place: &Place<'_>,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, ResultCode> {
        let header = &message.header;
        if header.info1 & info1::READ == 0 {
            return Err(ResultCode::PARAMETER);
        }
        if header.ttl_s != 0 && header.ttl_s != u32::MAX {
            return Err(ResultCode::UNSUPPORTED);
        }
        let mut shard = place.namespace.shard(&place.digest);
        self.forget_if_over(place, &mut shard, self.now_s());
        let record = shard.get(&place.digest).ok_or(ResultCode::NOT_FOUND)?;
        let count = operate::read(record, message, out)?;
        Ok(Outcome { generation: record.generation, void_time_s: record.void_time_s, count })
    }

    fn delete(&self, place: &Place<'_>, message: &Message<'_>) -> Result<Outcome, ResultCode> {
        let mut shard = place.namespace.shard(&place.digest);
        self.forget_if_over(place, &mut shard, self.now_s());
        let record = shard.get(&place.digest).ok_or(ResultCode::NOT_FOUND)?;
        check_generation(message, record.generation)?;
        self.remove(place, &mut shard);
        Ok(Outcome::default())
    }

    fn write(
        &self,
        place: &Place<'_>,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, ResultCode> {
        check_ops(message)?;
        let now_s = self.now_s();
        self.check_memory(now_s)?;
        let mut shard = place.namespace.shard(&place.digest);
        self.forget_if_over(place, &mut shard, now_s);
        let existing = shard.get(&place.digest);
        check_existence(message, existing.is_some())?;
        check_generation(message, existing.map_or(0, |record| record.generation))?;
        let set = existing.map_or_else(|| place.namespace.set_of(message), |record| record.set);
        let existing = Existing::of(existing, set, message);
        let generation = existing.generation;
        let (record, count) = operate::write(existing, message, now_s, out)?;
        let Some(record) = record else {
            // No bin is left: there is no such record any more.
            self.remove(place, &mut shard);
            return Ok(Outcome { generation, void_time_s: 0, count });
        };
        let (generation, void_time_s) = (record.generation, record.void_time_s);
        self.used_bytes.fetch_add(record.size_bytes(), Ordering::Relaxed);
        match shard.insert(place.digest, record) {
            Some(before) => {
                self.used_bytes.fetch_sub(before.size_bytes(), Ordering::Relaxed);
            }
            None => place.namespace.count(set, |count| {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        }
        Ok(Outcome { generation, void_time_s, count })
    }

    fn remove(&self, place: &Place<'_>, shard: &mut Shard) {
        if let Some(record) = shard.remove(&place.digest) {
            self.is_gone(place.namespace, &record);
        }
    }

    fn is_gone(&self, namespace: &Namespace, record: &Record) {
        self.used_bytes.fetch_sub(record.size_bytes(), Ordering::Relaxed);
        namespace.count(record.set, |count| {
            count.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn forget_if_over(&self, place: &Place<'_>, shard: &mut Shard, now_s: u32) {
        if shard.get(&place.digest).is_some_and(|record| record.is_over(now_s)) {
            self.remove(place, shard);
        }
    }

    fn check_memory(&self, now_s: u32) -> Result<(), ResultCode> {
        if self.used_bytes() <= self.memory_max.0 {
            return Ok(());
        }
        if self.swept_s.swap(i64::from(now_s), Ordering::Relaxed) != i64::from(now_s) {
            self.sweep(now_s);
        }
        let is_full = self.used_bytes() > self.memory_max.0;
        if is_full { Err(ResultCode::OUT_OF_SPACE) } else { Ok(()) }
    }

    /// Forgets all records that have ended.
    fn sweep(&self, now_s: u32) {
        for namespace in &self.namespaces {
            for shard in &namespace.shards {
                let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                shard.retain(|_, record| {
                    let is_over = record.is_over(now_s);
                    if is_over {
                        self.is_gone(namespace, record);
                    }
                    !is_over
                });
            }
        }
    }
}

/// Whether a record has the generation that a write asks for; 0 for none.
fn check_generation(message: &Message<'_>, generation: u16) -> Result<(), ResultCode> {
    let (header, generation) = (&message.header, u32::from(generation));
    let differs = header.info2 & info2::GENERATION != 0 && header.generation != generation;
    let is_old = header.info2 & info2::GENERATION_GREATER != 0 && header.generation <= generation;
    if differs || is_old { Err(ResultCode::GENERATION) } else { Ok(()) }
}

/// Whether there is a record where one must be, and none where none may be.
fn check_existence(message: &Message<'_>, exists: bool) -> Result<(), ResultCode> {
    let header = &message.header;
    let only_there = header.info3 & (info3::UPDATE_ONLY | info3::REPLACE_ONLY) != 0;
    let touches = message.ops().any(|op| op.kind() == Some(OpKind::Touch));
    if !exists && (only_there || touches) {
        return Err(ResultCode::NOT_FOUND);
    }
    if exists && header.info2 & info2::CREATE_ONLY != 0 {
        return Err(ResultCode::EXISTS);
    }
    Ok(())
}

/// Whether the operations of a write are known, and have names and values that bins may have.
fn check_ops(message: &Message<'_>) -> Result<(), ResultCode> {
    for op in message.ops() {
        let kind = op.kind().ok_or(ResultCode::UNSUPPORTED)?;
        if op.name.len() > BIN_NAME_MAX {
            return Err(ResultCode::BIN_NAME);
        }
        let is_of_record = matches!(kind, OpKind::Read | OpKind::Touch | OpKind::Delete);
        if !is_of_record && (op.name.is_empty() || op.particle().is_err()) {
            return Err(ResultCode::PARAMETER);
        }
    }
    Ok(())
}
