//! A worker's thread until it drives: pinned, its engine made, its connections established.
//!
//! In: what all workers share, and which one it is. Out: the witness of what it has driven. Each
//! thread says when it is ready, and begins when all are told the window.

use crate::encoding::Encoding;
use crate::exchange::WorkerEnd;
use crate::horizon::Horizon;
use crate::inserts::{Inserts, Published};
use crate::links::{LinkError, Links, establish};
use crate::load::share;
use crate::operations::Operations;
use crate::protocol::{Introduction, Protocol};
use crate::roster::Hosts;
use crate::run::{Drive, DriveError, Health, Setup};
use crate::source::{Source, Window};
use crate::tally::{Tally, Witness};
use crate::worker::{Parts, Worker};
use ring::tls::wire_size_max;
use ring::{BufferSizes, Engine, Epoll, Ring, Uring};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender};
use units::CpuId;
use workload::{Phase, Sampler};

/// What a worker's thread is started with.
pub(crate) struct Ramp<W> {
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    pub(crate) drive: Drive,
    /// As of the begin, and their generation.
    pub(crate) hosts: (u64, Arc<Hosts>),
    pub(crate) setup: Arc<Setup>,
    pub(crate) witness: W,
    pub(crate) end: WorkerEnd,
    pub(crate) published: Arc<[Published]>,
    pub(crate) health: Arc<Health>,
    pub(crate) horizon: Arc<Horizon>,
}

impl<W: Witness> Ramp<W> {
    /// The life of a worker's thread.
    pub(crate) fn work(
        self,
        ready: &SyncSender<Result<(), DriveError>>,
        start: &Receiver<Window>,
        halt: &AtomicBool,
    ) -> Result<W, DriveError> {
        let worker = self.worker;
        let cpu = self.drive.cpus[worker % self.drive.cpus.len()];
        let pinned = pin(cpu).map_err(|source| DriveError::Pin { cpu: cpu.0, source });
        if let Err(error) = pinned {
            drop(ready.send(Err(error)));
            return Err(DriveError::Worker { worker, reason: "it could not be pinned".into() });
        }
        match self.drive.encoder.clone() {
            Encoding::Cql(encoder) => self.work_in(encoder, ready, start, halt),
            Encoding::Aerospike(encoder) => self.work_in(encoder, ready, start, halt),
        }
    }

    fn work_in<P: Protocol>(
        self,
        encoder: Arc<P>,
        ready: &SyncSender<Result<(), DriveError>>,
        start: &Receiver<Window>,
        halt: &AtomicBool,
    ) -> Result<W, DriveError> {
        let sizes = self.buffer_sizes(&*encoder);
        let engine = self.drive.engine;
        let epoll = |sizes| Epoll::new(sizes).map_err(LinkError::Host);
        let uring = |sizes| Uring::new(sizes).map_err(LinkError::Engine);
        match (self.drive.access.tls.clone(), engine) {
            (None, Engine::Epoll) => self.work_on(encoder, epoll(sizes), ready, start, halt),
            (None, Engine::IoUring) => self.work_on(encoder, uring(sizes), ready, start, halt),
            (Some(tls), engine) => {
                let wired = BufferSizes { send: wire_size_max(sizes.send), ..sizes };
                match engine {
                    Engine::Epoll => {
                        let ring = epoll(wired).map(|ring| tls.over(ring, sizes));
                        self.work_on(encoder, ring, ready, start, halt)
                    }
                    Engine::IoUring => {
                        let ring = uring(wired).map(|ring| tls.over(ring, sizes));
                        self.work_on(encoder, ring, ready, start, halt)
                    }
                }
            }
        }
    }

    fn work_on<R: Ring, P: Protocol>(
        self,
        encoder: Arc<P>,
        ring: Result<R, LinkError>,
        ready: &SyncSender<Result<(), DriveError>>,
        start: &Receiver<Window>,
        halt: &AtomicBool,
    ) -> Result<W, DriveError> {
        let worker = self.worker;
        let established = ring.map_err(DriveError::from).and_then(|mut ring| {
            let links = self.establish(&*encoder, &mut ring, halt)?;
            Ok((ring, links))
        });
        let (ring, links) = match established {
            Ok(established) => established,
            Err(error) => {
                drop(ready.send(Err(error)));
                return Err(DriveError::Worker { worker, reason: "it could not connect".into() });
            }
        };
        drop(ready.send(Ok(())));
        // Another worker could not connect: there will be no run.
        let Ok(window) = start.recv() else { return Ok(self.witness) };
        let broken = |e: io::Error| DriveError::Worker { worker, reason: e.to_string() };
        self.into_worker(encoder, ring, links, window).drive(halt).map_err(broken)
    }

    /// Its place among the workers of its database, and how many these are.
    fn peer(&self) -> (usize, usize) {
        let databases = self.drive.databases.len();
        (self.worker / databases, self.workers / databases)
    }

    /// Of each connection.
    fn buffer_sizes<P: Protocol>(&self, encoder: &P) -> BufferSizes {
        let (own, hosts) = (self.connections_per_host::<P>(), &*self.hosts.1);
        let connections = own * hosts.left.iter().filter(|left| !**left).count();
        encoder.buffer_sizes(self.in_flight_max(), connections)
    }

    fn establish<R: Ring, P: Protocol>(
        &self,
        encoder: &P,
        ring: &mut R,
        halt: &AtomicBool,
    ) -> Result<Links<P::Link>, DriveError> {
        let (own, hosts) = (self.connections_per_host::<P>(), &*self.hosts.1);
        let (in_flight_max, timeout) = (self.in_flight_max(), self.drive.timeout);
        let who = Introduction { encoder, credentials: self.drive.access.credentials.as_ref() };
        let own = (own, self.first_place::<P>());
        Ok(establish(ring, hosts, own, in_flight_max, timeout, &who, halt)?)
    }

    fn in_flight_max(&self) -> usize {
        let all = self.drive.load.arrivals.in_flight_max() as u64;
        share(all, self.worker, self.workers) as usize
    }

    /// Workers that have fewer connections than there are shards begin at different ones.
    fn first_place<P: Protocol>(&self) -> usize {
        self.connections_per_host::<P>() * self.peer().0
    }

    fn connections_per_host<P: Protocol>(&self) -> usize {
        match P::connections_per_host(&self.hosts.1, self.workers) {
            Some(own) if self.drive.by_shard => own,
            _ => (self.drive.connections / self.peer().1).max(1),
        }
    }

    fn into_worker<R: Ring, P: Protocol>(
        self,
        encoder: Arc<P>,
        ring: R,
        links: Links<P::Link>,
        window: Window,
    ) -> Worker<R, W, P> {
        let in_flight_max = self.in_flight_max();
        let connections_per_host = self.connections_per_host::<P>() as u16;
        let first_place = self.first_place::<P>();
        let (peer, peers) = self.peer();
        let Self { worker, workers, drive, setup, witness, end, .. } = self;
        let (generation, hosts) = self.hosts;
        let plan = encoder.plan();
        let sampler = |phase| {
            let seed = drive.seed_of(worker % drive.databases.len());
            let mut sampler = Sampler::new(plan.clone(), phase, seed, peer, peers);
            sampler.skip_inserts(drive.inserted.get(worker).copied().unwrap_or_default());
            sampler
        };
        let samplers = match drive.load_keys {
            true => (sampler(Phase::Load), sampler(Phase::Load)),
            false => (sampler(Phase::Warm), sampler(Phase::Run)),
        };
        let first_new_key = plan.keys.first_new_key();
        let inserts = setup.inserts.contains(&true);
        let operations = Operations::new(
            setup.clone(),
            Source::new(&drive.load, window, drive.seed, worker, workers),
            Tally::new(worker, window, drive.intervals, end),
            witness,
            inserts.then(|| Inserts::new(first_new_key, peer, self.published)),
            in_flight_max,
        );
        let parts = Parts {
            cpu: drive.cpus[worker % drive.cpus.len()],
            operations,
            in_flight_max,
            window,
            horizon: self.horizon,
            samplers,
            connections_per_host,
            first_place,
            local: encoder.local(&hosts, worker, peers, in_flight_max),
            generation,
            roster: drive.databases[worker % drive.databases.len()].clone(),
            health: self.health,
            encoder,
        };
        Worker::new(setup, ring, links, parts)
    }
}

/// Pins the calling thread and asks for timers without slack, so that a sleep ends when it should.
pub(crate) fn pin(cpu: CpuId) -> io::Result<()> {
    units::pin_current_thread(&std::iter::once(cpu).collect())?;
    // Only costs precision where it is refused.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    Ok(())
}
