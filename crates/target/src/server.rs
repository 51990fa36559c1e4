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
use crate::engine::{Clock, Engine, EngineConfig, EngineError, Storage};
use crate::faults::Faults;
use crate::serial::Serial;
use crate::service::Service;
use crate::worker::{Worker, buffer_sizes};
use ring::{BufferSizes, Epoll, Ring, Unavailable, Uring};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use thiserror::Error;
use units::{Bytes, Nanos, clock};
use wire::cql::VERSION_5;

/// What is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Protocol {
    /// CQL, over tables.
    #[default]
    Cql,
    /// Aerospike's, over records; always in memory.
    Aerospike {
        /// Names of the namespaces that there are.
        namespaces: Vec<String>,
    },
}

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// What is spoken.
    pub protocol: Protocol,
    /// What becomes of rows.
    pub storage: Storage,
    /// Threads, each with its own event loop.
    pub threads: usize,
    /// Writes that add are refused when the rows take more, approximately.
    pub memory_max: Bytes,
    /// Longest body of a frame or message, bytes; at most 256 MiB.
    pub frame_size_max: usize,
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Prepared statements kept; the oldest is forgotten for one more.
    pub prepared_max: usize,
    /// Bytes waiting to be sent on a connection, beyond which it is not read from.
    pub backlog_max: usize,
    /// Where the time of TTLs and default timestamps comes from.
    pub clock: Clock,
    /// Each operation holds one lock of the server for so long: a mock of known capacity.
    pub serial: Option<Nanos>,
    /// Greatest version of CQL's protocol that is spoken: 4 or 5.
    pub protocol_max: u8,
    /// How its threads talk to the kernel.
    pub io: ring::Engine,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

impl Config {
    /// Storage in memory up to 4 GiB, one thread, frames up to 16 MiB, 10 000 connections and
    /// prepared statements, a backlog of 4 MiB.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            protocol: Protocol::Cql,
            storage: Storage::Memory,
            threads: 1,
            memory_max: Bytes(4 << 30),
            frame_size_max: 16 << 20,
            connections_max: 10_000,
            prepared_max: 10_000,
            backlog_max: 4 << 20,
            clock: Clock::System,
            serial: None,
            protocol_max: VERSION_5,
            io: ring::Engine::Epoll,
            faults: Faults::default(),
        }
    }
}

/// Why the target does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", bind_cure(source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There is no such way of talking to the kernel here.
    #[error(transparent)]
    Io(#[from] Unavailable),
    /// There is no engine to serve.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What is written cannot be kept.
    #[error(
        "{0}: nothing has been acknowledged since; see whether the disk is full or broken, and \
         start again"
    )]
    Store(String),
    /// A thread or its event loop cannot be made, or has failed.
    #[error(
        "the event loop on {address} failed: {source}; check the limits on threads and \
         open files (ulimit -n)"
    )]
    Loop {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

fn bind_cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop what listens there, or choose another port with --listen",
        io::ErrorKind::AddrNotAvailable => "choose an address of this host with --listen",
        io::ErrorKind::PermissionDenied => "choose a port above 1023 with --listen",
        _ => "choose another address with --listen",
    }
}

/// A target that listens and does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    address: SocketAddr,
    listener: TcpListener,
    served: Served,
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
                })?;
                Served::Tables(Arc::new(engine))
            }
            Protocol::Aerospike { namespaces } => {
                let records = Records::new(&RecordsConfig {
                    namespaces: namespaces.clone(),
                    memory_max: config.memory_max,
                    clock: config.clock.clone(),
                    address,
                    faults: config.faults.clone(),
                });
                Served::Records(Arc::new(records))
            }
        };
        Ok(Self { config, address, listener, served })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
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
        match self.config.io {
            ring::Engine::Epoll => {
                self.run_on(service, stop, |sizes| Epoll::new(sizes).map_err(failed))
            }
            ring::Engine::IoUring => self.run_on(service, stop, |sizes| Ok(Uring::new(sizes)?)),
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
            let listener = self.listener.try_clone().map_err(failed)?;
            first.ring.listen(listener).map_err(failed)?;
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
