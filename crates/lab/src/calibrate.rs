//! `wideload calibrate`: what this client drives at most, how fast it can be at best, and how late
//! this machine is by itself.
//!
//! Input: a machine, cpus. Output: a [`Calibration`]. Four measurements of some seconds: the
//! reference target with canned answers at many operations in flight (ceiling), at one (floor),
//! then a thread on each client cpu that sleeps until moments, and one that polls for them. What
//! the trials write goes to a directory that is removed. Cost: some 12 s.
//! Limits: the target runs on this machine; delivering over loopback is in the client's time.

use crate::calibration::{Calibration, Identity, Limit, SCHEMA, Spread};
use crate::error::LabError;
use crate::live::{Live, LiveInterval};
use crate::provision::{Storage, TargetChoice};
use crate::trial::{Finished, LoadChoice, Trial, run};
use drive::{Access, Amount, Arrivals, Engine, Load, TableName, Wait, Window, jitter};
use machine::Machine;
use record::summary::Stats;
use record::{Caveat, Latency, Verdict, utc};
use serde_json::{Map, Value};
use stage::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{CpuSet, Nanos, clock};
use wire::cql::{Consistency, Protocol};
use workload::Plan;
use workload::ycsb::{self, Properties};

const WORKLOAD: &str = "a";
const RECORDS: u64 = 1000;
const IN_FLIGHT_PER_WORKER: usize = 256;
const CEILING_LENGTH: Nanos = Nanos::from_secs(3);
const FLOOR_LENGTH: Nanos = Nanos::from_secs(2);
const JITTER_LENGTH: Nanos = Nanos::from_secs(2);
const WARM: Nanos = Nanos::from_millis(500);
/// As far apart as operations of one worker at 1 k/s.
const SLEEP_GAP: Nanos = Nanos::from_millis(1);
/// As far apart as operations of one worker at 10 k/s.
const POLL_GAP: Nanos = Nanos::from_micros(100);
/// A worker that is this busy has nothing left to give.
const BUSY_MIN: f64 = 0.9;

/// Caveats of a run that hold for the machine as well, while it was calibrated.
const OF_THE_HOST: [&str; 5] = ["busy-host", "steal", "swap", "throttled-cpu", "frequency"];

/// Where it is measured.
#[derive(Debug)]
pub struct Bench {
    /// This machine.
    pub machine: Machine,
    /// One worker on each.
    pub client_cpus: CpuSet,
    /// Cpus of the reference target.
    pub target_cpus: CpuSet,
}

/// Measures. `said` hears what is done.
///
/// # Errors
/// [`LabError`], also when it was interrupted; nothing is left.
pub fn calibrate(
    bench: &Bench,
    said: &mut dyn FnMut(&str),
    stop: &Arc<AtomicBool>,
) -> Result<Calibration, LabError> {
    let scratch = Scratch::new()?;
    let plan = Arc::new(ycsb::plan(WORKLOAD, &Properties::new(), Some(RECORDS), None)?.plan);
    let workers = bench.client_cpus.len();
    let in_flight = IN_FLIGHT_PER_WORKER * workers;
    said(&format!("ceiling: {in_flight} operations in flight at canned answers"));
    let out = scratch.0.join("ceiling");
    let ceiling = measured(&trial(bench, &plan, in_flight, CEILING_LENGTH, out), stop)?;
    said("floor: one operation in flight");
    let out = scratch.0.join("floor");
    let floor = measured(&trial(bench, &plan, 1, FLOOR_LENGTH, out), stop)?;
    said("timers: sleeping until moments on every client cpu");
    let sleep = late(&bench.client_cpus, Wait::Sleep, SLEEP_GAP, stop)?;
    said("polling: reading the clock on every client cpu");
    let poll = late(&bench.client_cpus, Wait::Spin, POLL_GAP, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::CalibrationInterrupted);
    }
    let client = &ceiling.summary.client;
    let nothing = || LabError::CalibrationEmpty;
    let cpu_us = client.cpu_us_per_op.filter(|us| *us > 0.0).ok_or_else(nothing)?;
    let busy = client.busy_max.unwrap_or(0.0);
    let limit = if busy >= BUSY_MIN { Limit::Client } else { Limit::Target };
    let shared = !bench.client_cpus.intersection(&bench.target_cpus).is_empty();
    Ok(Calibration {
        schema: SCHEMA,
        identity: Identity::of(&bench.machine),
        made: utc::rfc3339(clock::wall().0 / 1_000_000_000),
        target: format!("{} on cpus {}", ceiling.summary.target.kind, bench.target_cpus),
        workload: ceiling.summary.workload.clone(),
        client_cpus: bench.client_cpus.to_string(),
        workers,
        shared_cpus: shared,
        in_flight,
        ops_per_cpu_s: 1e6 / cpu_us,
        ops_s: ceiling.summary.ops_s,
        client_busy: busy,
        limit,
        floor_us: floor_of(&floor).ok_or_else(nothing)?,
        sleep_late_us: spread(&sleep),
        poll_late_us: spread(&poll),
        caveats: [caveats(bench, shared, limit), of_host(&[&ceiling, &floor])].concat(),
    })
}

fn caveats(bench: &Bench, shared: bool, limit: Limit) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if shared {
        let text = "Client and target shared cpus: what was driven is less than the client alone \
                    can do, and every latency holds the other's turns.";
        let evidence = format!("client on {}, target on {}", bench.client_cpus, bench.target_cpus);
        let cure = "Calibrate with --client-cpus that leave whole cores to the target.";
        caveats.push(Caveat::new("shared-cpus", text).evidence(evidence).cure(cure));
    }
    if limit == Limit::Target && !shared {
        let text = "The target with canned answers was the limit, not the client: the ceiling per \
                    core is computed from the client's cpu time.";
        let cure = "Calibrate with fewer --client-cpus, so that the target has more.";
        caveats.push(Caveat::new("target-limited", text).cure(cure));
    }
    caveats
}

/// What the host did meanwhile that speaks against the figures, each once.
fn of_host(runs: &[&Finished]) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    for caveat in runs.iter().flat_map(|run| &run.summary.caveats) {
        let known = caveats.iter().any(|known| known.code == caveat.code);
        if OF_THE_HOST.contains(&caveat.code.as_str()) && !known {
            caveats.push(caveat.clone());
        }
    }
    caveats
}

fn trial(bench: &Bench, plan: &Arc<Plan>, threads: usize, length: Nanos, out: PathBuf) -> Trial {
    let arrivals = Arrivals::Closed { threads, throttle: None };
    let workers = drive::workers(bench.client_cpus.len(), &arrivals, 1);
    Trial {
        plan: plan.clone(),
        table: TableName { keyspace: "calibrate".to_owned(), table: "usertable".to_owned() },
        replication: "1".to_owned(),
        target: TargetChoice::Reference { storage: Storage::Null, serial: None },
        access: Access::default(),
        fixed_hosts: false,
        datacenter: None,
        write_into_existing: false,
        places: vec![Place { cpus: bench.target_cpus.clone(), ..Place::default() }],
        client_cpus: bench.client_cpus.clone(),
        warm_until_steady: false,
        settle: Nanos::ZERO,
        repeat: 1,
        load: Load { arrivals, amount: Amount::Duration(length), warm: WARM, limit: None },
        connections_by_shard: false,
        connections: drive::connections(workers, workers),
        wait: Wait::Spin,
        engine: Engine::Epoll,
        consistency: Consistency::LocalOne.into(),
        protocol: Protocol::default(),
        records: None,
        timeout: Nanos::from_secs(5),
        retries: 0,
        load_retries: 0,
        load_retry_pause: Nanos::ZERO,
        retry_pause: drive::RetryPause::NONE,
        give_up: Nanos::from_secs(5),
        seed: 1,
        interval: Nanos::from_secs(1),
        load_choice: LoadChoice::Undecided,
        out: Some(out),
        name: "calibrate".to_owned(),
        command_line: Vec::new(),
        settings: Map::new(),
        host: Value::Null,
        kept: None,
        forewarned: Vec::new(),
        scripted: None,
        foreign: None,
    }
}

fn measured(trial: &Trial, stop: &Arc<AtomicBool>) -> Result<Finished, LabError> {
    let finished = run(trial, &mut Unseen, stop)?;
    match (finished.verdict, finished.failure.clone()) {
        (Verdict::Ok, _) => Ok(finished),
        (Verdict::Interrupted, _) => Err(LabError::CalibrationInterrupted),
        (_, why) => Err(LabError::CalibrationFailed { why: why.unwrap_or_default() }),
    }
}

/// The slower of the two operations of the workload: what is at the bottom of every latency.
fn floor_of(finished: &Finished) -> Option<Spread> {
    let services = finished.summary.latency_us.values().filter_map(|op| op.service);
    let slower = |a: Stats, b: Stats| if b.p50 > a.p50 { b } else { a };
    let Stats { p50, p99, p999, max, .. } = services.reduce(slower)?;
    Some(Spread { p50, p99, p999, max })
}

/// The lateness of all client cpus at once, as workers have it.
fn late(cpus: &CpuSet, wait: Wait, gap: Nanos, stop: &AtomicBool) -> Result<Latency, LabError> {
    let mut all = Latency::new();
    let each: Vec<_> = std::thread::scope(|scope| {
        let measure = |cpu| scope.spawn(move || jitter(cpu, wait, gap, JITTER_LENGTH, stop));
        let threads: Vec<_> = cpus.iter().map(measure).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for one in each {
        let panicked = |_| LabError::Thread(std::io::Error::other("it panicked"));
        all.merge(&one.map_err(panicked)?.map_err(LabError::Thread)?);
    }
    Ok(all)
}

fn spread(latency: &Latency) -> Spread {
    let us = |nanos: Nanos| nanos.0 as f64 / 1e3;
    let at = |q| us(latency.quantile(q));
    Spread { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: us(latency.max()) }
}

/// Its trials are not for people to watch.
struct Unseen;

impl Live for Unseen {
    fn stage(&mut self, _what: &str) {}
    fn notice(&mut self, _what: &str) {}
    fn loading(&mut self, _done: u64, _total: u64) {}
    fn running(&mut self, _now: Nanos, _window: &Window) {}
    fn interval(&mut self, _interval: &LiveInterval<'_>) {}
}

/// A directory that goes with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, LabError> {
        let name = format!("wideload-calibrate-{}-{}", std::process::id(), clock::now().0);
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|source| scratch_failed(&path, source))?;
        Ok(Self(path))
    }
}

fn scratch_failed(path: &Path, source: std::io::Error) -> LabError {
    LabError::Scratch { path: path.to_owned(), source }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever has removed it before did the same.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
