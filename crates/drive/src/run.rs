//! Runs a load: starts the workers, collects their intervals, ends them.
//!
//! The caller's thread is the recorder; the data plane shares nothing with it but the exchange of
//! full histograms once per interval, and a stop flag that workers only read.

use crate::access::Access;
use crate::encoding::Encoding;
use crate::exchange::{WorkerInterval, WorkerUsage, exchange};
use crate::horizon::{Horizon, LEAD, NOTICE};
use crate::inserts::Inserts;
use crate::links::LinkError;
use crate::load::{Amount, Arrivals, Load, Wait};
use crate::ramp::Ramp;
use crate::recorder::{Interval, Recorder};
use crate::retry_pause::RetryPause;
use crate::roster::Roster;
use crate::sharded::ShardLoad;
use crate::source::Window;
use crate::tally::Witness;
use record::hlog::Intervals;
use record::{IntervalRecord, Outcome};
use ring::Engine;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use thiserror::Error;
use units::{CpuId, Credentials, Nanos, clock};
use workload::Operation;

/// Everything that a load needs to be driven.
#[derive(Debug, Clone)]
pub struct Drive {
    /// A plan in a protocol's requests.
    pub encoder: Encoding,
    /// Load the plan's keys, or run its mix.
    pub load_keys: bool,
    /// How hard, how long.
    pub load: Load,
    /// The hosts of each database, and which of them hold which keys; they may change while the
    /// load is driven. Each database holds all of the plan's keys and has workers of its own, as if
    /// so many clients ran side by side.
    pub databases: Vec<Arc<Roster>>,
    /// How the connections are let in.
    pub access: Access,
    /// Connections to each instance over all workers; a multiple of the workers (see
    /// [`connections`]).
    pub connections: usize,
    /// Where hosts have shards, each worker has one connection to each of them instead, while all
    /// are at most 4096.
    pub by_shard: bool,
    /// One worker is pinned to each. At most as many as may be in flight are used.
    pub cpus: Vec<CpuId>,
    /// Of all random streams.
    pub seed: u64,
    /// Of a load that continues earlier ones on the same rows: by worker, the inserts that they
    /// began ([`WorkerUsage::inserts`]). Empty for the first.
    pub inserted: Vec<u64>,
    /// Lengths of the recorded intervals.
    pub intervals: Intervals,
    /// An attempt without an answer for so long has failed.
    pub timeout: Nanos,
    /// Further attempts at a step that failed.
    pub retries: u32,
    /// Before each of them.
    pub retry_pause: RetryPause,
    /// So long without any success ends the run.
    pub give_up: Nanos,
    /// The first operation that fails for good ends the run.
    pub first_failure_ends: bool,
    /// A read that finds no row has not failed.
    pub missing_is_fine: bool,
    /// How workers wait.
    pub wait: Wait,
    /// How workers talk to the kernel.
    pub engine: Engine,
}

impl Drive {
    /// Of the random streams of a database's workers.
    pub(crate) fn seed_of(&self, database: usize) -> u64 {
        self.seed ^ (database as u64).wrapping_mul(DATABASE_SALT)
    }

    /// By each of a database's workers, the inserts of the loads that this one continues.
    fn inserted_in(&self, database: usize, workers: usize) -> Vec<u64> {
        let of = (database..workers).step_by(self.databases.len());
        of.map(|worker| self.inserted.get(worker).copied().unwrap_or_default()).collect()
    }
}

/// Tells the random streams of databases apart; the first one's are those of a single one.
const DATABASE_SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// How often the caller's thread looks after the run.
const TICK: Nanos = Nanos::from_millis(50);

/// Workers that a load on so many databases is split over: never more than operations in flight,
/// and as many for one database as for the other.
#[must_use]
pub fn workers(cpus: usize, arrivals: &Arrivals, databases: usize) -> usize {
    cpus.min(arrivals.in_flight_max()).max(1).next_multiple_of(databases.max(1))
}

/// `wanted` connections rounded up to a multiple of `workers`.
#[must_use]
pub fn connections(wanted: usize, workers: usize) -> usize {
    wanted.max(1).next_multiple_of(workers.max(1))
}

/// What the workers share and only read.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Of the phase that is driven.
    pub(crate) operations: Vec<Operation>,
    /// By operation: inserts a key that reads may then ask for.
    pub(crate) inserts: Vec<bool>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) timeout: Nanos,
    pub(crate) retries: u32,
    pub(crate) retry_pause: RetryPause,
    pub(crate) wait: Wait,
    /// What the target said first of an operation that failed; written once.
    pub(crate) first_error: OnceLock<String>,
    pub(crate) missing_is_fine: bool,
    /// What went to each shard; written by each worker at its end.
    pub(crate) loads: Mutex<Vec<ShardLoad>>,
    /// The first operation that failed for good; written once.
    pub(crate) first_failure: OnceLock<Failure>,
}

/// An operation that failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Index of the operation in its phase of the plan.
    pub operation: u16,
    /// Key number.
    pub key: u64,
    /// How its last attempt ended.
    pub outcome: Outcome,
    /// Attempts at it.
    pub attempts: u32,
}

/// Watches a run. All methods are called on the thread that called [`run`].
pub trait Observer {
    /// About 20 times a second. Until the end of the warm-up is decided, `window` is the latest one
    /// possible.
    fn tick(&mut self, _now: Nanos, _window: &Window) {}
    /// Whether [`Self::warm`] decides when the warm-up is over. Else it takes as long as the load
    /// says.
    fn ends_warm_up(&self) -> bool {
        false
    }
    /// Once per interval of the warm-up ([`crate::WARM_BLOCK`]; the last one may be shorter), in
    /// order: whether it may end.
    fn warm(&mut self, _interval: Interval<'_>) -> bool {
        false
    }
    /// Whether enough was measured: nothing begins any more.
    fn enough(&self) -> bool {
        false
    }
    /// Once per interval of the window, in order.
    ///
    /// # Errors
    /// An error (a full disk) ends the run; it is given back by [`run`].
    fn interval(&mut self, interval: Interval<'_>) -> Result<(), io::Error>;
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All of it was driven and drained.
    Completed,
    /// The stop flag was set.
    Stopped,
    /// Nothing succeeded for as long as `give_up`.
    GaveUp,
    /// An operation failed, and that was to end it.
    Failed,
}

/// What a run has measured.
#[derive(Debug)]
pub struct Driven {
    /// All operations of the window.
    pub total: IntervalRecord,
    /// When it was.
    pub window: Window,
    /// Each worker's counters at its end.
    pub usage: Vec<WorkerUsage>,
    /// User and system time of this process from the start of the window to the end of the drain.
    pub process_cpu: Nanos,
    /// From the start of the window to the end of the drain.
    pub elapsed: Nanos,
    /// How it ended.
    pub ended: Ended,
    /// What went to each shard of hosts that have such, over all workers.
    pub shards: Vec<ShardLoad>,
    /// What the target said first of an operation that failed.
    pub first_error: Option<String>,
    /// The first operation that failed for good.
    pub first_failure: Option<Failure>,
}

/// Why a load could not be driven.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Connections could not be set up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A worker could not be pinned.
    #[error(
        "cannot run on cpu {cpu}: {source}; --client-cpus must name cpus that this process may use"
    )]
    Pin {
        /// The cpu.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// No thread, or a thread died.
    #[error("worker {worker} failed: {reason}")]
    Worker {
        /// Its index.
        worker: usize,
        /// Why.
        reason: String,
    },
    /// The observer failed.
    #[error("recording failed: {0}")]
    Record(#[source] io::Error),
}

/// How workers tell that they live: the time of their last success, about ten times a second.
#[derive(Debug, Default)]
pub(crate) struct Health(AtomicU64);

impl Health {
    pub(crate) fn ok_at(&self, at: Nanos) {
        self.0.fetch_max(at.0, Ordering::Relaxed);
    }
}

/// Drives a load and records it. `witnesses` has one witness for each of [`workers`]; they come
/// back in order.
///
/// # Errors
/// [`DriveError`] when the run could not be started or recorded. Failures of operations are
/// outcomes, not errors.
pub fn run<W: Witness + 'static>(
    drive: &Drive,
    witnesses: Vec<W>,
    observer: &mut dyn Observer,
    stop: &Arc<AtomicBool>,
) -> Result<(Driven, Vec<W>), DriveError> {
    let workers = witnesses.len();
    let setup = Arc::new(setup(drive));
    let parts = parts(&setup.operations);
    let (worker_ends, recorder_ends, intervals) = exchange(workers, &parts);
    let published: Vec<_> = (0..drive.databases.len())
        .map(|one| Inserts::shared(&drive.inserted_in(one, workers)))
        .collect();
    let health = Arc::new(Health::default());
    // Its own flag, so that giving up does not look like the caller's wish.
    let halt = Arc::new(AtomicBool::new(false));
    // Fixed before any worker begins.
    let horizon = Arc::new(Horizon::open(Nanos::ZERO));
    let hosts: Vec<_> = drive.databases.iter().map(|roster| roster.current()).collect();
    let (ready_in, ready) = sync_channel(workers);
    let mut threads = Vec::new();
    let mut starters = Vec::new();
    for (worker, (witness, end)) in witnesses.into_iter().zip(worker_ends).enumerate() {
        let (start_in, start) = sync_channel(1);
        starters.push(start_in);
        let ramp = Ramp {
            worker,
            workers,
            drive: drive.clone(),
            hosts: hosts[worker % hosts.len()].clone(),
            setup: setup.clone(),
            witness,
            end,
            published: published[worker % published.len()].clone(),
            health: health.clone(),
            horizon: horizon.clone(),
        };
        let (ready, halt) = (ready_in.clone(), halt.clone());
        let thread = std::thread::Builder::new()
            .name(format!("drive-{worker}"))
            .spawn(move || ramp.work(&ready, &start, &halt))
            .map_err(|e| DriveError::Worker { worker, reason: e.to_string() })?;
        threads.push(thread);
    }
    drop(ready_in);
    await_ready(&ready, workers, stop, &halt)?;
    // Soon enough not to be noticed, late enough for every worker to be awake before.
    let window = Window::of(&drive.load, clock::now() + Nanos::from_millis(2));
    let steering = observer.ends_warm_up() && drive.load.warm > LEAD;
    if steering {
        horizon.extend(window.begin + LEAD);
    } else {
        horizon.fix(window.start);
    }
    for start in &starters {
        // A worker that is gone is found by the join below.
        let _ = start.send(window);
    }
    let recorder = Recorder::new(recorder_ends, drive.intervals, &window, &parts);
    let steering = steering.then_some(horizon);
    let stop = stop.clone();
    let loads = setup.clone();
    let watch = Watch { drive, setup, window, steering, recorder, health, halt, stop };
    let driven = watch.collect(&intervals, observer);
    let witnesses = join(threads)?;
    let mut driven = driven?;
    driven.shards = merged(&loads);
    Ok((driven, witnesses))
}

/// By operation: the steps that are recorded apart; none of an operation that has one.
fn parts(operations: &[Operation]) -> Vec<usize> {
    operations.iter().map(|o| if o.steps.len() > 1 { o.steps.len() } else { 0 }).collect()
}

/// Waits until every worker is connected; passes the caller's wish to stop on to them meanwhile.
fn await_ready(
    ready: &Receiver<Result<(), DriveError>>,
    workers: usize,
    stop: &AtomicBool,
    halt: &AtomicBool,
) -> Result<(), DriveError> {
    let mut connected = 0;
    while connected < workers {
        halt.store(stop.load(Ordering::Relaxed), Ordering::Relaxed);
        match ready.recv_timeout(TICK.to_duration()) {
            Ok(Ok(())) => connected += 1,
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => {}
            // A worker that died before it has told is found by the join.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
    Ok(())
}

fn setup(drive: &Drive) -> Setup {
    let plan = drive.encoder.plan();
    let operations = if drive.load_keys { plan.load.clone() } else { plan.run.clone() };
    Setup {
        inserts: operations.iter().map(|o| !drive.load_keys && plan.inserts(o)).collect(),
        operations,
        credentials: drive.access.credentials.clone(),
        timeout: drive.timeout,
        retries: drive.retries,
        retry_pause: drive.retry_pause,
        wait: drive.wait,
        first_error: OnceLock::new(),
        missing_is_fine: drive.missing_is_fine,
        loads: Mutex::default(),
        first_failure: OnceLock::new(),
    }
}

/// What went to each shard, over all workers; databases have one host each, and no shards.
fn merged(setup: &Setup) -> Vec<ShardLoad> {
    let mut sums: Vec<ShardLoad> = Vec::new();
    for load in setup.loads.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        match sums.iter_mut().find(|sum| (sum.host, sum.shard) == (load.host, load.shard)) {
            Some(sum) => {
                sum.requests += load.requests;
                sum.astray += load.astray;
            }
            None => sums.push(*load),
        }
    }
    sums
}

fn join<W>(threads: Vec<JoinHandle<Result<W, DriveError>>>) -> Result<Vec<W>, DriveError> {
    let died = |worker| DriveError::Worker { worker, reason: "its thread panicked".to_owned() };
    let results: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    results.into_iter().enumerate().map(|(worker, r)| r.map_err(|_| died(worker))?).collect()
}

/// The caller's side of a run under way.
struct Watch<'a> {
    drive: &'a Drive,
    setup: Arc<Setup>,
    window: Window,
    /// Until it is decided where the window starts.
    steering: Option<Arc<Horizon>>,
    recorder: Recorder,
    health: Arc<Health>,
    halt: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Watch<'_> {
    fn collect(
        mut self,
        intervals: &Receiver<WorkerInterval>,
        observer: &mut dyn Observer,
    ) -> Result<Driven, DriveError> {
        let (mut ended, mut failure) = (Ended::Completed, None);
        let mut cpu_start = None;
        let tick = TICK.min(self.recorder.interval());
        while !self.recorder.complete() {
            let now = clock::now();
            let mut patience = tick;
            match cpu_start {
                None if now >= self.window.start => cpu_start = Some(clock::process_cpu()),
                None => patience = patience.min(self.window.start.since(now)),
                Some(_) => {}
            }
            match intervals.recv_timeout(patience.to_duration()) {
                Ok(interval) => self.recorder.add(interval),
                Err(RecvTimeoutError::Timeout) => {}
                // Every worker is gone; the join tells why.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let mut warm = false;
            self.recorder.emit_warm(|interval| warm |= observer.warm(interval));
            self.steer(clock::now(), warm);
            self.recorder.emit(|interval| {
                if let Err(error) = observer.interval(interval) {
                    failure.get_or_insert(error);
                }
            });
            observer.tick(clock::now(), &self.window);
            if ended == Ended::Completed {
                ended = self.verdict(now);
            }
            let enough = ended != Ended::Completed || observer.enough();
            if enough || failure.is_some() {
                self.halt.store(true, Ordering::Relaxed);
            }
        }
        if let Some(error) = failure {
            return Err(DriveError::Record(error));
        }
        let end = clock::now();
        Ok(Driven {
            total: self.recorder.total,
            usage: self.recorder.usage,
            window: self.window,
            process_cpu: clock::process_cpu().since(cpu_start.unwrap_or_else(clock::process_cpu)),
            elapsed: end.since(self.window.start),
            ended,
            shards: Vec::new(),
            first_error: self.setup.first_error.get().cloned(),
            first_failure: self.setup.first_failure.get().copied(),
        })
    }

    /// Keeps the horizon ahead of the workers, or fixes it: when `warm`, or as late as may be.
    fn steer(&mut self, now: Nanos, warm: bool) {
        let Some(horizon) = &self.steering else { return };
        let ahead = now + LEAD;
        let start = match warm {
            true => horizon.fix((now + NOTICE).min(self.window.start)),
            false if ahead >= self.window.start => horizon.fix(self.window.start),
            false => return horizon.extend(ahead),
        };
        self.window = self.window.starting(start);
        self.recorder.open(start);
        self.steering = None;
    }

    fn verdict(&self, now: Nanos) -> Ended {
        let last_ok = Nanos(self.health.0.load(Ordering::Relaxed)).max(self.window.begin);
        if self.stop.load(Ordering::Relaxed) {
            Ended::Stopped
        } else if self.drive.first_failure_ends && self.setup.first_failure.get().is_some() {
            Ended::Failed
        } else if now.since(last_ok) > self.drive.give_up {
            Ended::GaveUp
        } else {
            Ended::Completed
        }
    }
}

impl Load {
    /// The load that fills a table: every key once, as fast as `threads` clients can.
    #[must_use]
    pub fn every_key(threads: usize) -> Self {
        let arrivals = Arrivals::Closed { threads, throttle: None };
        Self { arrivals, amount: Amount::EveryKey, warm: Nanos::ZERO, limit: None }
    }
}
