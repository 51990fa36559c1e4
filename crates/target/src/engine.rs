//! What all connections share: the schema, the rows, prepared statements, clock, counters, events.

use crate::catalog::Schema;
use crate::counters::{CounterBlocks, Counters};
use crate::cql::{self, ast::Statement};
use crate::error::{CqlError, invalid};
use crate::events::EventLog;
use crate::expr::Context;
use crate::faults::{self, FaultPlan, Faults};
use crate::plan::{Compiled, Plan, PreparedId, compile, prepared_id};
use crate::read::Form;
use crate::schema_file;
use crate::service::{Service, SessionLimits};
use crate::session::Session;
use crate::shards::{self, Scylla, Shards};
use crate::store::{Disk, LsmOptions, Memory, StoreError};
use crate::system_tables;
use crate::uuid::Generator;
use crate::write::seconds;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use thiserror::Error;
use units::{Bytes, Nanos};
use wire::cql::HEADER_SIZE;
use wire::cql::framing::Outgoing;

/// What becomes of rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Storage {
    /// Rows are kept in memory.
    #[default]
    Memory,
    /// A mock: writes are answered without being done, reads by a canned row.
    Null,
    /// Rows are kept on disk: what was acknowledged is there again after a restart.
    Lsm(LsmOptions),
}

impl Storage {
    /// As on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Null => "null",
            Self::Lsm(_) => "lsm",
        }
    }
}

/// Why there is no engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The system tables cannot be made.
    #[error("cannot make the system tables: {0}; this is a defect of the reference target")]
    SystemTables(#[from] CqlError),
    /// The directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The host's `CLOCK_REALTIME`.
    #[default]
    System,
    /// Microseconds since 1970, set by a test.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Microseconds since 1970.
    #[inline]
    pub(crate) fn now_us(&self) -> i64 {
        match self {
            Self::System => (units::clock::wall().0 / 1000) as i64,
            Self::Manual(now_us) => now_us.load(Ordering::Relaxed),
        }
    }
}

/// How an engine behaves.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// What becomes of rows.
    pub storage: Storage,
    /// Writes that add are refused when the rows take more, approximately.
    pub memory_max: Bytes,
    /// Prepared statements kept; the oldest is forgotten for one more.
    pub prepared_max: usize,
    /// Where the time comes from.
    pub clock: Clock,
    /// What `system.local` says of the instance.
    pub address: SocketAddr,
    /// Greatest version of the protocol that is spoken: 4 or 5.
    pub protocol_max: u8,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Its sockets are inside TLS, which hosts with shards have a port of their own for.
    pub is_tls: bool,
    /// It is like a ScyllaDB host; None: like a Cassandra.
    pub scylla: Option<Scylla>,
}

/// State shared by all connections.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    schema: RwLock<Schema>,
    /// Held while the schema changes.
    changing: Mutex<()>,
    prepared: RwLock<PreparedStatements>,
    pub(crate) memory: Arc<Memory>,
    /// None when rows are not on disk.
    pub(crate) disk: Option<Arc<Disk>>,
    pub(crate) generator: Generator,
    pub(crate) list_sequence: AtomicI64,
    last_timestamp_us: AtomicI64,
    pub(crate) counters: CounterBlocks,
    pub(crate) events: EventLog,
    /// None when nothing goes wrong on purpose.
    pub(crate) faults: Option<Arc<FaultPlan>>,
    /// None without shards.
    pub(crate) shards: Option<Arc<Shards>>,
}

#[derive(Debug, Default)]
struct PreparedStatements {
    by_id: HashMap<PreparedId, Arc<Compiled>>,
    /// In the order of their preparation.
    ids: VecDeque<PreparedId>,
}

impl Engine {
    /// An engine with its system tables, and with what its directory holds.
    ///
    /// # Errors
    /// [`EngineError`] when the directory cannot be used, or the system tables cannot be made,
    /// which is a defect.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let faults = config.faults.are_any().then(|| config.faults.clone());
        let disk = match &config.storage {
            Storage::Lsm(options) => Some(Disk::open(options)?),
            Storage::Memory | Storage::Null => None,
        };
        let generator = Generator::unpredictable();
        let shards = config
            .scylla
            .as_ref()
            .map(|s| Arc::new(Shards::new(s, config.is_tls, generator.random())));
        let engine = Self {
            config,
            schema: RwLock::default(),
            changing: Mutex::default(),
            prepared: RwLock::default(),
            memory: Arc::default(),
            disk: disk.map(Arc::new),
            generator,
            list_sequence: AtomicI64::new(1),
            last_timestamp_us: AtomicI64::new(i64::MIN),
            counters: CounterBlocks::default(),
            events: EventLog::default(),
            faults: faults.map(|faults| Arc::new(FaultPlan::new(faults))),
            shards,
        };
        system_tables::create(&engine)?;
        schema_file::restore(&engine)?;
        Ok(engine)
    }

    /// A block of counters for one more thread.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.block()
    }

    /// Tells the faults that operations have met; None when there are none on purpose.
    pub(crate) fn faults_met(&self, now: Nanos) -> Option<String> {
        let plan = self.faults.as_deref()?;
        Some(faults::told(plan, &self.counters, now))
    }

    /// Approximate bytes of all rows.
    #[must_use]
    pub fn memory_used(&self) -> Bytes {
        Bytes(self.memory.used_bytes())
    }

    pub(crate) fn schema(&self) -> RwLockReadGuard<'_, Schema> {
        self.schema.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn schema_mut(&self) -> RwLockWriteGuard<'_, Schema> {
        self.schema.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Excludes other changes of the schema.
    pub(crate) fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since 1970.
    #[inline]
    pub(crate) fn now_us(&self) -> i64 {
        self.config.clock.now_us()
    }

    /// A write timestamp later than all that were given out.
    pub(crate) fn next_timestamp_us(&self, now_us: i64) -> i64 {
        let last = self.last_timestamp_us.fetch_max(now_us, Ordering::Relaxed);
        match last < now_us {
            true => now_us,
            false => self.last_timestamp_us.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Refuses writes beyond the memory bound. Deletes leave tombstones but may free more, so they
    /// have an eighth on top.
    #[inline]
    pub(crate) fn check_memory(&self, is_delete: bool) -> Result<(), CqlError> {
        let (used_bytes, max_bytes) = (self.memory.used_bytes(), self.config.memory_max.0);
        let margin = if is_delete { max_bytes / 8 } else { 0 };
        match used_bytes > max_bytes.saturating_add(margin) {
            true => Err(CqlError::Overloaded { used_bytes, max_bytes }),
            false => Ok(()),
        }
    }

    /// Parses and compiles a text.
    pub(crate) fn compile(&self, text: &str, keyspace: Option<&str>) -> Result<Compiled, CqlError> {
        let parsed = cql::parse(text)?;
        if let (Statement::Select(select), None) = (&parsed.statement, &self.shards)
            && select.has_timeout
        {
            return Err(CqlError::Syntax(
                "USING TIMEOUT is ScyllaDB's: `wideload serve --scylla` takes it".to_owned(),
            ));
        }
        compile(&self.schema(), parsed, keyspace)
    }

    /// Prepares a text.
    pub(crate) fn prepare(
        &self,
        text: &str,
        keyspace: Option<&str>,
    ) -> Result<(PreparedId, Arc<Compiled>), CqlError> {
        let id = prepared_id(keyspace, text);
        if let Some(compiled) = self.prepared(&id) {
            return Ok((id, compiled));
        }
        let compiled = Arc::new(self.compile(text, keyspace)?);
        let mut prepared = self.prepared.write().unwrap_or_else(PoisonError::into_inner);
        if prepared.by_id.insert(id, Arc::clone(&compiled)).is_none() {
            prepared.ids.push_back(id);
        }
        while prepared.ids.len() > self.config.prepared_max.max(1) {
            if let Some(oldest) = prepared.ids.pop_front() {
                prepared.by_id.remove(&oldest);
            }
        }
        Ok((id, compiled))
    }

    /// The prepared statement of an id, unless its table has changed.
    pub(crate) fn prepared(&self, id: &PreparedId) -> Option<Arc<Compiled>> {
        let prepared = self.prepared.read().unwrap_or_else(PoisonError::into_inner);
        prepared.by_id.get(id).filter(|c| !c.is_out_of_date()).map(Arc::clone)
    }

    /// Executes a text of the engine's own, on its system tables.
    pub(crate) fn run(&self, text: &str) -> Result<(), CqlError> {
        let compiled = self.compile(text, None)?;
        let now_us = self.now_us();
        let context = Context { values: &[], generator: &self.generator, now_us };
        match &compiled.plan {
            Plan::Write(plan) => {
                plan.bind(&context, self.next_timestamp_us(now_us))?.apply(&self.list_sequence);
                Ok(())
            }
            Plan::Select(plan) => {
                let (mut scratch, mut out) = (Vec::new(), Vec::new());
                let now_s = seconds(now_us);
                plan.execute(&context, Form::default(), now_s, &mut scratch, &mut out).map(|_| ())
            }
            _ => Err(invalid("only rows of system tables are written this way")),
        }
    }
}

impl Service for Engine {
    type Session = Session;

    fn session(
        self: &Arc<Self>,
        counters: &Arc<Counters>,
        limits: SessionLimits,
        peer: SocketAddr,
        port: u16,
    ) -> Session {
        let (engine, counters) = (Arc::clone(self), Arc::clone(counters));
        match engine.shards.as_ref().is_some_and(|shards| shards.port == port) {
            true => Session::at_shard(engine, counters, limits, peer.port()),
            false => Session::new(engine, counters, limits),
        }
    }

    fn after_a_turn(&self) {
        if self.shards.is_some() {
            // What does not work here was refused when the table was made.
            let _ = shards::move_when_due(self, units::clock::now());
        }
    }

    fn counters(&self) -> Arc<Counters> {
        Engine::counters(self)
    }

    // A frame, or the segments in which it comes.
    fn receive_max(frame_size_max: usize) -> usize {
        Outgoing::size_max(frame_size_max + HEADER_SIZE)
    }

    fn faults(&self) -> Option<&FaultPlan> {
        self.faults.as_deref()
    }

    fn disk(&self) -> Option<&Disk> {
        self.disk.as_deref()
    }

    fn events(&self) -> Option<&EventLog> {
        Some(&self.events)
    }
}
