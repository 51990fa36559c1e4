//! What a ScyllaDB host has and a Cassandra has not: shards, a port that chooses one, tablets.
//!
//! Emulated, so that a client can be seen to route: a shard is a label of connections, and any
//! thread of the server does any shard's work. A connection to the shard-aware port has the shard
//! that its source port chooses, one to the other port that which has the fewest. Requests whose
//! key the client knows (an EXECUTE that binds the whole partition key) are counted by shard, and
//! as misrouted when another shard has the key; then clients that said `TABLETS_ROUTING_V1` are
//! told the tablet. Source: ScyllaDB's `docs/dev/protocol-extensions.md`.
//!
//! Limits: one host, so a tablet has one replica; batches and texts are not counted; tablets do not
//! split and do not move by themselves, but as often as they are told to.

use crate::catalog::Table;
use crate::counters::Counters;
use crate::engine::Engine;
use crate::error::CqlError;
use crate::keys::append_partition_key;
use crate::options::quoted;
use crate::plan::Compiled;
use crate::service::SessionLimits;
use crate::session::Session;
use crate::system_tables::{KEYSPACES, uuid_text};
use crate::{execute, execute::Answer};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use units::Nanos;
use wire::cql::request::Request;
use wire::cql::{Header, Opcode, Value, flags};
use wire::murmur3;
use wire::shards::{ALGORITHM, Sharding, keys};
use wire::tablets::{Tablet, TabletMap};

/// How a target is like a ScyllaDB host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scylla {
    /// Its shards.
    pub sharding: Sharding,
    /// Where a client's port chooses the shard; 0 is any free one.
    pub port: u16,
    /// So often a tablet of every table moves to the next shard.
    pub move_every: Option<Nanos>,
}

/// Tablets of a table at most.
pub(crate) const TABLETS_MAX: u32 = 1 << 14;

/// What has come to a shard.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Traffic {
    /// Open ones.
    connections: AtomicU64,
    requests: AtomicU64,
    misrouted: AtomicU64,
}

/// A table that lies in tablets.
#[derive(Debug)]
struct Tablets {
    keyspace: String,
    table: String,
    map: TabletMap,
    /// The one that moves next.
    turn: usize,
}

/// The shards of a target.
#[derive(Debug)]
pub(crate) struct Shards {
    pub(crate) sharding: Sharding,
    /// Where a client's port chooses the shard.
    pub(crate) port: u16,
    /// Which of the keys names that port.
    port_key: &'static str,
    pub(crate) host_id: [u8; 16],
    traffic: Vec<Traffic>,
    /// By the id of the table.
    tablets: RwLock<HashMap<[u8; 16], Tablets>>,
    move_every: Option<Nanos>,
    /// When tablets move next, ns; 0 before it is known.
    move_at: AtomicU64,
}

impl Shards {
    pub(crate) fn new(scylla: &Scylla, is_tls: bool, host_id: [u8; 16]) -> Self {
        let shards = scylla.sharding.shards();
        Self {
            sharding: scylla.sharding,
            port: scylla.port,
            port_key: if is_tls { keys::PORT_TLS } else { keys::PORT },
            host_id,
            traffic: (0..shards).map(|_| Traffic::default()).collect(),
            tablets: RwLock::default(),
            move_every: scylla.move_every,
            move_at: AtomicU64::new(0),
        }
    }

    /// Tablets of a table, where the keyspace does not say.
    pub(crate) fn tablets_per_table(&self) -> u32 {
        (2 * u32::from(self.sharding.shards())).next_power_of_two().min(TABLETS_MAX)
    }

    /// The shard that a connection comes to; it counts from now on.
    fn seat(self: &Arc<Self>, shard: Option<u16>) -> Seat {
        let load = |one: &u16| self.traffic[usize::from(*one)].connections.load(Ordering::Relaxed);
        let fewest = || (0..self.sharding.shards()).min_by_key(load).unwrap_or_default();
        let shard = shard.unwrap_or_else(fewest);
        self.traffic[usize::from(shard)].connections.fetch_add(1, Ordering::Relaxed);
        Seat { shards: Arc::clone(self), shard, wants_tablets: false }
    }

    /// For each shard its open connections, its requests, and those of them that were misrouted.
    fn counts(&self) -> impl Iterator<Item = [u64; 3]> + '_ {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.traffic.iter().map(move |t| [&t.connections, &t.requests, &t.misrouted].map(load))
    }

    /// The shard that has a token of a table, and its tablet if it lies in these.
    fn owner(&self, table: &Table, token: i64) -> (u16, Option<Tablet>) {
        let tablets = self.tablets.read().unwrap_or_else(PoisonError::into_inner);
        let tablet = tablets.get(&table.id).and_then(|tablets| tablets.map.of(token));
        match tablet.and_then(|tablet| Some((tablet.replicas.first()?.1, tablet.clone()))) {
            Some((shard, tablet)) => (shard, Some(tablet)),
            None => (self.sharding.shard_of(token), None),
        }
    }
}

/// The place of a connection; it is free again with this.
#[derive(Debug)]
pub(crate) struct Seat {
    shards: Arc<Shards>,
    shard: u16,
    /// The client has said that it understands what it is told of tablets.
    wants_tablets: bool,
}

impl Seat {
    /// One by load, of a target that has shards.
    pub(crate) fn by_load(engine: &Engine) -> Option<Box<Self>> {
        engine.shards.as_ref().map(|shards| Box::new(shards.seat(None)))
    }

    /// Takes what STARTUP says.
    pub(crate) fn startup(&mut self, options: &[(&str, &str)]) {
        self.wants_tablets = options.iter().any(|(key, _)| *key == keys::TABLETS);
    }

    /// What SUPPORTED says of it: keys with their values.
    pub(crate) fn supported(&self) -> Vec<(&'static str, String)> {
        let sharding = self.shards.sharding;
        vec![
            (keys::SHARD, self.shard.to_string()),
            (keys::SHARDS, sharding.shards().to_string()),
            (keys::ALGORITHM, ALGORITHM.to_owned()),
            (keys::IGNORE_MSB, sharding.ignore_msb().to_string()),
            (keys::PARTITIONER, crate::system_tables::PARTITIONER.to_owned()),
            (self.shards.port_key, self.shards.port.to_string()),
            (keys::TABLETS, String::new()),
        ]
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let traffic = &self.shards.traffic[usize::from(self.shard)];
        traffic.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The token of the partition that an execution binds; None when it does not bind all of the key.
fn token(compiled: &Compiled, values: Vec<(Option<&str>, Value<'_>)>) -> Option<i64> {
    let indexes = compiled.key_indexes();
    let values = execute::match_values(values, &compiled.markers).ok()?;
    let parts = indexes.iter().map(|index| match values.get(usize::from(*index)) {
        Some(Value::Bytes(bytes)) => Some(Cow::Borrowed(*bytes)),
        _ => None,
    });
    let mut key = Vec::new();
    append_partition_key(&parts.collect::<Option<Vec<_>>>()?, &mut key).ok()?;
    Some(murmur3::token(&key))
}

impl Session {
    /// A new connection to the shard-aware port, from this port of the client's.
    pub(crate) fn at_shard(
        engine: Arc<Engine>,
        counters: Arc<Counters>,
        limits: SessionLimits,
        client_port: u16,
    ) -> Self {
        let shard = |shards: &Arc<Shards>| {
            Box::new(shards.seat(Some(shards.sharding.shard_of_port(client_port))))
        };
        let seat = engine.shards.as_ref().map(shard);
        Self::seated(engine, counters, limits, seat)
    }

    /// Answers a request that has come to a shard.
    #[inline(never)]
    pub(crate) fn answer_sharded(
        &mut self,
        header: &Header,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Answer, CqlError> {
        let told = match header.opcode == Opcode::Execute as u8 {
            true => self.look_where(header, body),
            false => None,
        };
        if let Some(tablet) = &told {
            tablet.put_payload(out);
        }
        let mut answer = self.answer_faultless(header, body, out)?;
        answer.flags |= if told.is_some() { flags::CUSTOM_PAYLOAD } else { 0 };
        Ok(answer)
    }

    /// Counts a request; the tablet that its client is to be told of.
    fn look_where(&mut self, header: &Header, body: &[u8]) -> Option<Tablet> {
        let Ok(Request::Execute(prepared, parameters)) = Request::decode(header, body) else {
            return None;
        };
        let compiled = self.prepared(prepared.id).ok()?;
        let table = compiled.tables().next().filter(|table| !is_system(&table.keyspace))?;
        let token = token(&compiled, parameters.values)?;
        let seat = self.seat.as_deref()?;
        let (owner, tablet) = seat.shards.owner(table, token);
        let traffic = &seat.shards.traffic[usize::from(seat.shard)];
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        if owner == seat.shard {
            return None;
        }
        traffic.misrouted.fetch_add(1, Ordering::Relaxed);
        tablet.filter(|_| seat.wants_tablets)
    }
}

fn is_system(keyspace: &str) -> bool {
    KEYSPACES.contains(&keyspace)
}

/// Lays a new table out in tablets, if its keyspace has such: equal parts of the ring, which go
/// round the shards.
pub(crate) fn lay_out(engine: &Engine, table: &Table) -> Result<(), CqlError> {
    let Some(shards) = &engine.shards else { return Ok(()) };
    let Some(count) = engine.schema().keyspaces.get(&table.keyspace).and_then(|k| k.tablets) else {
        return Ok(());
    };
    let replicas =
        |i: u32| vec![(shards.host_id, (i % u32::from(shards.sharding.shards())) as u16)];
    // The last tablet ends with the last token.
    let last = |i: u32| {
        let end = (1u128 << 64) * u128::from(i + 1) / u128::from(count);
        (end.wrapping_sub(1) as u64).wrapping_sub(1 << 63) as i64
    };
    let map = TabletMap::of_all((0..count).map(|i| (last(i), replicas(i))).collect());
    let (keyspace, name) = (table.keyspace.clone(), table.name.clone());
    {
        let mut all = shards.tablets.write().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(&table.id) {
            return Ok(());
        }
        let tablets = Tablets { keyspace, table: name, map: map.clone(), turn: 0 };
        all.insert(table.id, tablets);
    }
    engine.run(&format!(
        "INSERT INTO system.tablets (table_id, keyspace_name, table_name, tablet_count) \
         VALUES ({}, {}, {}, {count})",
        uuid_text(&table.id),
        quoted(&table.keyspace),
        quoted(&table.name),
    ))?;
    map.tablets().iter().try_for_each(|tablet| put_tablet(engine, &table.id, tablet))
}

fn put_tablet(engine: &Engine, table: &[u8; 16], tablet: &Tablet) -> Result<(), CqlError> {
    let replicas = tablet.replicas.iter();
    let replicas = replicas.map(|(host, shard)| format!("({}, {shard})", uuid_text(host)));
    engine.run(&format!(
        "INSERT INTO system.tablets (table_id, last_token, replicas) VALUES ({}, {}, [{}])",
        uuid_text(table),
        tablet.last,
        replicas.collect::<Vec<_>>().join(", "),
    ))
}

/// Forgets the tablets of a table, or of all tables of a keyspace.
pub(crate) fn forget(engine: &Engine, keyspace: &str, table: Option<&str>) -> Result<(), CqlError> {
    let Some(shards) = &engine.shards else { return Ok(()) };
    let gone: Vec<_> = {
        let mut all = shards.tablets.write().unwrap_or_else(PoisonError::into_inner);
        let of = |t: &Tablets| t.keyspace == keyspace && table.is_none_or(|name| t.table == name);
        all.extract_if(|_, tablets| of(tablets)).map(|(id, _)| id).collect()
    };
    gone.iter().try_for_each(|id| {
        engine.run(&format!("DELETE FROM system.tablets WHERE table_id = {}", uuid_text(id)))
    })
}

/// Moves tablets when it is time.
pub(crate) fn move_when_due(engine: &Engine, now: Nanos) -> Result<(), CqlError> {
    let Some(shards) = &engine.shards else { return Ok(()) };
    let Some(every) = shards.move_every else { return Ok(()) };
    let at = shards.move_at.load(Ordering::Relaxed);
    if now.0 < at {
        return Ok(());
    }
    let next = now.0 + every.0;
    let taken = shards.move_at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    // The first look only begins to count.
    if taken.is_err() || at == 0 { Ok(()) } else { move_one(engine, shards) }
}

/// Of every table, moves the tablet whose turn it is to the next shard.
fn move_one(engine: &Engine, shards: &Shards) -> Result<(), CqlError> {
    let count = shards.sharding.shards();
    let moved: Vec<_> = {
        let mut all = shards.tablets.write().unwrap_or_else(PoisonError::into_inner);
        let step = |(id, tablets): (&[u8; 16], &mut Tablets)| {
            let known = tablets.map.tablets();
            let mut tablet = known.get(tablets.turn % known.len().max(1))?.clone();
            tablets.turn += 1;
            tablet.replicas.iter_mut().for_each(|(_, shard)| *shard = (*shard + 1) % count);
            tablets.map.learn(tablet.clone());
            Some((*id, tablet))
        };
        all.iter_mut().filter_map(step).collect()
    };
    moved.iter().try_for_each(|(id, tablet)| put_tablet(engine, id, tablet))
}

/// Writes the counts of the shards into their table.
pub(crate) fn put_counts(engine: &Engine) -> Result<(), CqlError> {
    let Some(shards) = &engine.shards else { return Ok(()) };
    for (shard, [connections, requests, misrouted]) in shards.counts().enumerate() {
        engine.run(&format!(
            "INSERT INTO system_wideload.shards (shard, connections, requests, misrouted) VALUES \
             ({shard}, {connections}, {requests}, {misrouted})"
        ))?;
    }
    Ok(())
}

/// In words: the requests that came to each shard, and how many of them to the wrong one.
#[must_use]
pub(crate) fn told(engine: &Engine) -> Option<String> {
    let shards = engine.shards.as_ref()?;
    let mut text = "requests by shard:".to_owned();
    for (shard, [_, requests, misrouted]) in shards.counts().enumerate() {
        let comma = if shard > 0 { "," } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma} {requests} ({misrouted} misrouted)");
    }
    Some(text)
}
