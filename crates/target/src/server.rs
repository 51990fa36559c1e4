//! The target's sockets: one thread per cpu asked for, each with its own event loop. The first one
//! listens, and gives each new connection to the thread that has the fewest.
//!
//! A thread wakes at least every 50 ms to see whether it shall stop and whether other threads have
//! changed the schema. Bounded: connections, the size of a frame, and what waits to be sent: a peer
//! that does not read is not read from. A connection that has broken the protocol gets its error,
//! and what it still sends is dropped for up to two seconds, so that the error is not lost to a
//! reset.
//!
//! With a serial part or faults answers wait for their moment (see `delivery`); the loop sleeps
//! until the first one's, and a peer's waiting answers count as its backlog.
//!
//! Limit: a connection stays with its thread, however unevenly clients use theirs.

use crate::aerospike::{Records, RecordsConfig};
use crate::config::{Config, Protocol, ServeError};
use crate::engine::{Engine, EngineConfig};
use crate::serial::Serial;
use crate::service::Service;
use crate::shards::{self, Scylla};
use crate::worker::{Worker, buffer_sizes};
use ring::{BufferSizes, Epoll, Ring, Uring};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use units::clock;

/// A target that listens and does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    address: SocketAddr,
    listener: TcpListener,
    /// Of further servers of records.
    more: Vec<TcpListener>,
    /// Where the client's port chooses the shard.
    shard_listener: Option<TcpListener>,
    served: Served,
}

/// Listens where a client's port chooses the shard, and notes the port.
fn listen_for_shards(config: &Config, scylla: &mut Scylla) -> Result<TcpListener, ServeError> {
    let address = SocketAddr::new(config.listen.ip(), scylla.port);
    let failed = |source| ServeError::BindShards { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    scylla.port = listener.local_addr().map_err(failed)?.port();
    Ok(listener)
}

/// Listens at the port behind that of a listener; where any was asked for, at any.
fn listen_beside(before: &TcpListener) -> Result<TcpListener, ServeError> {
    let unbound = SocketAddr::from(([127, 0, 0, 1], 0));
    let before = before.local_addr();
    let before = before.map_err(|source| ServeError::Bind { address: unbound, source })?;
    let next = before.port().checked_add(1).unwrap_or(0);
    let address = SocketAddr::new(before.ip(), next);
    // The next port may be taken where nobody chose the first one.
    let any = || TcpListener::bind(SocketAddr::new(before.ip(), 0));
    TcpListener::bind(address)
        .or_else(|_| any())
        .map_err(|source| ServeError::Bind { address, source })
}

/// What is behind the sockets.
#[derive(Debug)]
enum Served {
    Tables(Arc<Engine>),
    Records(Arc<Records>),
}

/// A target that serves on threads of its own. Dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Server {
    /// Listens; clients can connect from now on and are served by [`Self::run`].
    ///
    /// # Errors
    /// [`ServeError::Bind`] when the address is taken or not of this host.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut scylla = config.scylla.clone();
        let mut more = Vec::new();
        let shard_listener = scylla.as_mut().map(|scylla| listen_for_shards(&config, scylla));
        let shard_listener = shard_listener.transpose()?;
        let served = match &config.protocol {
            Protocol::Cql => {
                let engine = Engine::new(EngineConfig {
                    storage: config.storage.clone(),
                    memory_max: config.memory_max,
                    prepared_max: config.prepared_max,
                    clock: config.clock.clone(),
                    address,
                    protocol_max: config.protocol_max,
                    faults: config.faults.clone(),
                    is_tls: config.tls.is_some(),
                    scylla,
                })?;
                Served::Tables(Arc::new(engine))
            }
            Protocol::Aerospike { namespaces, instances } => {
                for _ in 1..instances.count {
                    more.push(listen_beside(more.last().unwrap_or(&listener))?);
                }
                let ours = std::iter::once(&listener).chain(&more);
                let addresses = ours.map(TcpListener::local_addr).collect::<io::Result<_>>();
                let records = Records::new(&RecordsConfig {
                    namespaces: namespaces.clone(),
                    memory_max: config.memory_max,
                    clock: config.clock.clone(),
                    addresses: addresses.map_err(failed)?,
                    instances: instances.clone(),
                    faults: config.faults.clone(),
                });
                Served::Records(Arc::new(records))
            }
        };
        Ok(Self { config, address, listener, more, shard_listener, served })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        std::iter::once(&self.listener).chain(&self.more).chain(&self.shard_listener)
    }

    /// Where further servers of records listen.
    pub fn more_addrs(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.more.iter().filter_map(|listener| listener.local_addr().ok())
    }

    /// Tells the faults that operations have met, while it serves and after that; None when there
    /// are none on purpose.
    pub fn faults_met(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let (tables, records) = match &self.served {
            Served::Tables(engine) => (Some(Arc::clone(engine)), None),
            Served::Records(records) => (None, Some(Arc::clone(records))),
        };
        move || {
            let now = clock::now();
            let of_tables = tables.as_ref().and_then(|engine| engine.faults_met(now));
            of_tables.or_else(|| records.as_ref().and_then(|records| records.faults_met(now)))
        }
    }

    /// Tells the requests that have come to each shard, while it serves and after that; None
    /// without shards.
    pub fn shards_met(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let tables = match &self.served {
            Served::Tables(engine) => Some(Arc::clone(engine)),
            Served::Records(_) => None,
        };
        move || tables.as_ref().and_then(|engine| shards::told(engine))
    }

    /// The port where a client's port chooses the shard.
    #[must_use]
    pub fn shard_aware_port(&self) -> Option<u16> {
        let port = |listener: &TcpListener| listener.local_addr().ok().map(|local| local.port());
        self.shard_listener.as_ref().and_then(port)
    }

    /// Serves until `stop` is set, which is noticed within 50 ms.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when an event loop cannot be made or fails; the other threads are
    /// stopped then.
    pub fn run(self, stop: &AtomicBool) -> Result<(), ServeError> {
        match &self.served {
            Served::Tables(engine) => self.run_service(engine, stop),
            Served::Records(records) => self.run_service(records, stop),
        }
    }

    fn run_service<S: Service>(
        &self,
        service: &Arc<S>,
        stop: &AtomicBool,
    ) -> Result<(), ServeError> {
        let failed = |source| ServeError::Loop { address: self.address, source };
        let epoll = |sizes| Epoll::new(sizes).map_err(failed);
        let uring = |sizes| Ok(Uring::new(sizes)?);
        match (&self.config.tls, self.config.io) {
            (None, ring::Engine::Epoll) => self.run_on(service, stop, epoll),
            (None, ring::Engine::IoUring) => self.run_on(service, stop, uring),
            (Some(tls), ring::Engine::Epoll) => {
                self.run_on(service, stop, |s| Ok(tls.over(epoll(s)?, s)))
            }
            (Some(tls), ring::Engine::IoUring) => {
                self.run_on(service, stop, |s| Ok(tls.over(uring(s)?, s)))
            }
        }
    }

    fn run_on<R: Ring + Send, S: Service>(
        &self,
        service: &Arc<S>,
        stop: &AtomicBool,
        ring: impl Fn(BufferSizes) -> Result<R, ServeError>,
    ) -> Result<(), ServeError> {
        let failed = |source| ServeError::Loop { address: self.address, source };
        let connections = AtomicUsize::new(0);
        let serial = self.config.serial.map(Serial::new);
        let mut workers = Vec::new();
        for _ in 0..self.config.threads.max(1) {
            let ring = ring(buffer_sizes::<S>(&self.config))?;
            let serial = serial.as_ref();
            workers.push(Worker::new(ring, &self.config, service, &connections, serial));
        }
        let rings = workers.iter_mut().map(|worker| worker.ring.mailbox());
        let rings = rings.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        if let Some(first) = workers.first_mut() {
            first.ring.share(rings);
            for listener in self.listeners() {
                let listener = listener.try_clone().map_err(failed)?;
                first.ring.listen(listener).map_err(failed)?;
            }
        }
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (n, mut worker) in workers.into_iter().enumerate() {
                let name = format!("target-{n}");
                let serve = move || {
                    let result = worker.serve(stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                };
                let thread = std::thread::Builder::new().name(name).spawn_scoped(scope, serve);
                if thread.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                threads.push(thread);
            }
            let mut outcome = Ok(());
            for thread in threads {
                let died = |_| Err(io::Error::other("a thread has panicked"));
                let result = thread.and_then(|t| t.join().unwrap_or_else(died));
                outcome = outcome.and(result.map_err(failed));
            }
            let broken = service.disk().and_then(|disk| disk.failure());
            broken.map_or(outcome, |why| Err(ServeError::Store(why.to_owned())))
        })
    }

    /// Serves on threads of its own.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when no thread can be made.
    pub fn start(self) -> Result<Handle, ServeError> {
        let address = self.address;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("target".to_owned())
            .spawn(move || self.run(&stopped))
            .map_err(|source| ServeError::Loop { address, source })?;
        Ok(Handle { address, stop, thread: Some(thread) })
    }
}

impl Handle {
    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Asks it to stop; [`Self::join`] waits for it.
    pub fn shutdown(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops it and waits until its threads have ended.
    ///
    /// # Errors
    /// [`ServeError::Loop`] when an event loop had failed.
    pub fn join(mut self) -> Result<(), ServeError> {
        self.shutdown();
        let address = self.address;
        let died = |_| {
            Err(ServeError::Loop { address, source: io::Error::other("a thread has panicked") })
        };
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(died))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shutdown();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended calls `join`.
            let _ = thread.join();
        }
    }
}
