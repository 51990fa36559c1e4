//! One trial: provision -> create -> load -> warm -> run -> drain -> collect.

use crate::caveats;
use crate::data::{self, Prepared};
use crate::error::{LabError, log_failed, table_failed};
use crate::filling::{Filling, Pour, outcomes};
use crate::provision::{self, Provisioned, Storage, TargetChoice};
use crate::recording::Recording;
use crate::stand_in;
use crate::watchdog::Watchdog;
use analyze::figures;
use drive::{
    Amount, Arrivals, Drive, Driven, Encoder, Ended, Load, TableName, Unwitnessed, Wait, Window,
};
use record::hlog::{HlogWriter, Intervals};
use record::manifest::{Manifest, Verdict};
use record::run_dir::{RAW, TOTAL_HLOG, TRIALS_CSV};
use record::summary::{ClientCost, Summary, Target};
use record::table::{TrialRow, TrialsWriter};
use record::{Caveat, Latency, OpNames, RunDir, TrialDir};
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{CpuSet, Credentials, Nanos, clock};
use wire::cql::Consistency;
use wire::routing::Ring;
use workload::Plan;

/// Whether the table is filled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadChoice {
    /// Where the rows are not there: by the marker, and by looking for some keys.
    Undecided,
    /// Yes, also over rows that are there.
    Load,
    /// No: its rows are used.
    Skip,
}

/// Everything that makes a trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What is done.
    pub plan: Arc<Plan>,
    /// To which table.
    pub table: TableName,
    /// Of a keyspace that has to be created: a factor, or a map literal.
    pub replication: String,
    /// On what.
    pub target: TargetChoice,
    /// Who we are, where the target wants to know.
    pub credentials: Option<Credentials>,
    /// Only the hosts given are used, under the addresses given.
    pub fixed_hosts: bool,
    /// Whose hosts are driven; None is that of the first host that answers.
    pub datacenter: Option<String>,
    /// Tables without wideload's marker may be written to.
    pub write_into_existing: bool,
    /// Cpus of a target that is started.
    pub target_cpus: CpuSet,
    /// One worker on each.
    pub client_cpus: CpuSet,
    /// Client and target are on the same cpus.
    pub cpus_shared: bool,
    /// How hard, how long.
    pub load: Load,
    /// Connections over all workers; rounded up by [`drive::connections`].
    pub connections: usize,
    /// How workers wait.
    pub wait: Wait,
    /// Of every statement.
    pub consistency: Consistency,
    /// Of an attempt.
    pub timeout: Nanos,
    /// Further attempts.
    pub retries: u32,
    /// Further attempts at an insert of the load phase.
    pub load_retries: u32,
    /// Before each of them.
    pub load_retry_pause: Nanos,
    /// So long without a success ends the run.
    pub give_up: Nanos,
    /// Of all random streams.
    pub seed: u64,
    /// Length of the recorded intervals.
    pub interval: Nanos,
    /// Whether the table is filled first.
    pub load_choice: LoadChoice,
    /// The run directory; under `runs/` when None.
    pub out: Option<PathBuf>,
    /// Of the run.
    pub name: String,
    /// For the manifest.
    pub command_line: Vec<String>,
    /// Every flag as resolved, for the manifest.
    pub settings: Map<String, Value>,
    /// This host's facts, for the manifest.
    pub host: Value,
}

/// One interval, for the live line.
#[derive(Debug)]
pub struct LiveInterval<'a> {
    /// Response time in an open loop, service time in a closed one; ok and timeouts.
    pub latency: &'a Latency,
    /// Operations that ended ok.
    pub ok: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// Its length.
    pub length: Nanos,
    /// Operations in flight at its end.
    pub in_flight: usize,
}

/// Shows people what goes on. All calls come from the thread that called [`run`].
pub trait Live {
    /// Something begins: a sentence without a full stop.
    fn stage(&mut self, what: &str);
    /// The run directory is there: whoever ends this process at once can say so in it, by
    /// [`record::interrupt`].
    fn begun(&mut self, _run_dir: &Path) {}
    /// Something that people should know whether or not they watch: a sentence.
    fn notice(&mut self, what: &str);
    /// So many of so many rows are loaded.
    fn loading(&mut self, done: u64, total: u64);
    /// The run goes on; some 20 times a second.
    fn running(&mut self, now: Nanos, window: &Window);
    /// An interval is over.
    fn interval(&mut self, interval: &LiveInterval<'_>);
}

/// A trial that is over.
#[derive(Debug)]
pub struct Finished {
    /// Its figures, with their caveats.
    pub summary: Summary,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed.
    pub failure: Option<String>,
    /// Its run directory.
    pub run_dir: PathBuf,
    /// The report in it.
    pub report: PathBuf,
}

/// Carries out a trial.
///
/// # Errors
/// [`LabError`]; a run directory that was begun says why in its manifest. Nothing is left running.
pub fn run(
    trial: &Trial,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Finished, LabError> {
    let run_dir = RunDir::create(trial.out.as_deref(), &trial.name)?;
    let mut manifest = Manifest::starting(&trial.name, trial.command_line.clone(), clock::wall());
    manifest.settings = trial.settings.clone();
    manifest.seeds.insert("workload".to_owned(), trial.seed);
    manifest.host = trial.host.clone();
    run_dir.write_json("manifest.json", &manifest)?;
    live.begun(run_dir.path());
    let mut running = Running { trial, run_dir: &run_dir, manifest, live, stop };
    match running.run() {
        Ok(finished) => Ok(finished),
        Err(error) => {
            running.fail(&error);
            Err(error)
        }
    }
}

struct Running<'a> {
    trial: &'a Trial,
    run_dir: &'a RunDir,
    manifest: Manifest,
    live: &'a mut dyn Live,
    stop: &'a Arc<AtomicBool>,
}

/// What is known once the target answers.
struct Ready {
    addresses: Vec<SocketAddr>,
    target: Target,
    encoder: Arc<Encoder>,
    ids: Vec<Vec<u8>>,
    ring: Option<Arc<Ring>>,
    filling: Option<Filling>,
    caveats: Vec<Caveat>,
}

impl Running<'_> {
    /// Leaves the reason in the run directory; the error itself is shown by the caller.
    fn fail(&mut self, error: &LabError) {
        let verdict = match error.exit_status() {
            130 => Verdict::Interrupted,
            _ => Verdict::Failed,
        };
        self.manifest.end(verdict, Some(error.to_string()), clock::wall());
        if self.run_dir.check().is_err() {
            return;
        }
        // The disk may be what failed.
        let _ = self.run_dir.trial(1).map(|dir| self.write_trial_manifest(&dir));
        let _ = self.run_dir.write_json("manifest.json", &self.manifest);
        let _ = report::build(self.run_dir.path());
    }

    fn run(&mut self) -> Result<Finished, LabError> {
        let trial_dir = self.run_dir.trial(1)?;
        self.write_trial_manifest(&trial_dir)?;
        let provisioned = self.provision(&trial_dir)?;
        let mut ready = self.prepare(&provisioned).map_err(|error| {
            // Whatever was not waited for: this is why.
            if self.stop.load(Ordering::Relaxed) { LabError::Interrupted } else { error }
        })?;
        self.write_trial_manifest(&trial_dir)?;
        let watchdog = Watchdog::start(provisioned.processes(), self.stop.clone());
        let watchdog = watchdog.map_err(LabError::Thread)?;
        let died = || LabError::TargetDied { raw: trial_dir.path().join(RAW) };
        if let Some(filling) = ready.filling.take() {
            let loaded = self.load(&ready, &filling, watchdog.halt());
            if watchdog.died() {
                return Err(died());
            }
            loaded?;
        }
        let names = op_names(&self.trial.plan.run);
        let driven = self.drive(&ready, &trial_dir, &names, watchdog.halt())?;
        let death = watchdog.died().then(|| died().to_string());
        drop(watchdog);
        provisioned.stop()?;
        self.collect(&ready, &trial_dir, &names, &driven, death)
    }

    fn provision(&mut self, trial_dir: &TrialDir) -> Result<Provisioned, LabError> {
        match &self.trial.target {
            TargetChoice::Reference { storage } => {
                let cpus = &self.trial.target_cpus;
                self.live.stage(&format!(
                    "starting the reference target ({}) on cpus {cpus}",
                    storage.name()
                ));
                provision::reference(*storage, cpus, &trial_dir.raw()?, self.stop)
            }
            TargetChoice::Cassandra { options, data_dir } => {
                let (cpus, data_dir) = (&self.trial.target_cpus, data_dir.as_deref());
                let said = &mut |what: &str| self.live.stage(what);
                provision::cassandra(options, data_dir, cpus, &trial_dir.raw()?, said, self.stop)
            }
            TargetChoice::Running { hosts } => provision::running(hosts, self.stop),
        }
    }

    fn prepare(&mut self, provisioned: &Provisioned) -> Result<Ready, LabError> {
        let trial = self.trial;
        self.live.stage(&format!("preparing {}", trial.table.quoted()));
        let ours = provisioned.is_ours();
        let prepared = data::prepare(trial, provisioned, self.live, self.stop)?;
        let Prepared { ids, filling, version, addresses, ring, caveats } = prepared;
        let encoder =
            Arc::new(Encoder::new(trial.plan.clone(), &trial.table, &ids, trial.consistency));
        let kind = match &trial.target {
            TargetChoice::Reference { storage: Storage::Memory } => Target::REFERENCE,
            TargetChoice::Reference { storage: Storage::Null } => Target::NULL_MOCK,
            TargetChoice::Cassandra { .. } => "cassandra",
            TargetChoice::Running { .. } => {
                let (release, who) = (version.as_deref(), trial.credentials.as_ref());
                stand_in::kind(addresses[0], release, trial.timeout, who, self.stop)?
            }
        };
        let version = match provisioned.child.is_some() {
            true => Some(env!("CARGO_PKG_VERSION").to_owned()),
            false => version,
        };
        let target = Target { kind: kind.to_owned(), version, protocol: Some(wire::cql::VERSION) };
        let listed: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        self.manifest.target = serde_json::json!({
            "kind": target.kind,
            "version": target.version,
            "protocol": target.protocol,
            "addresses": listed,
            "cpus": if ours { Some(trial.target_cpus.to_string()) } else { None },
            "started": provisioned.facts,
        });
        Ok(Ready { addresses, target, encoder, ids, ring, filling, caveats })
    }

    fn write_trial_manifest(&self, trial_dir: &TrialDir) -> Result<(), LabError> {
        Ok(trial_dir.write_json("manifest.json", &self.manifest.for_trial(1))?)
    }

    fn drive_of(&self, ready: &Ready) -> Drive {
        let trial = self.trial;
        let cpus: Vec<_> = trial.client_cpus.iter().collect();
        let workers = drive::workers(cpus.len(), &trial.load.arrivals);
        Drive {
            encoder: ready.encoder.clone(),
            load_keys: false,
            load: trial.load,
            addresses: ready.addresses.clone(),
            ring: ready.ring.clone(),
            credentials: trial.credentials.clone(),
            connections: drive::connections(trial.connections, workers),
            cpus,
            seed: trial.seed,
            intervals: Intervals::of(trial.interval),
            timeout: trial.timeout,
            retries: trial.retries,
            retry_pause: Nanos::ZERO,
            give_up: trial.give_up,
            wait: trial.wait,
        }
    }

    fn load(
        &mut self,
        ready: &Ready,
        filling: &Filling,
        halt: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let trial = self.trial;
        let load = Load::every_key(trial.load.arrivals.in_flight_max().clamp(64, 1024));
        let workers = drive::workers(trial.client_cpus.len(), &load.arrivals);
        let drive = Drive {
            load,
            connections: drive::connections(trial.connections, workers),
            retries: trial.load_retries,
            retry_pause: trial.load_retry_pause,
            ..self.drive_of(ready)
        };
        self.live.stage(&format!("loading {} rows into {}", filling.rows(), trial.table.quoted()));
        filling.pour(&Pour { trial, ids: &ready.ids, drive, workers }, self.live, halt)
    }

    fn drive(
        &mut self,
        ready: &Ready,
        trial_dir: &TrialDir,
        names: &[OpNames],
        halt: &Arc<AtomicBool>,
    ) -> Result<Driven, LabError> {
        let drive = self.drive_of(ready);
        let workers = drive::workers(drive.cpus.len(), &drive.load.arrivals);
        self.live.stage(&format!("driving {}", self.trial.plan.workload));
        let open_loop = matches!(drive.load.arrivals, Arrivals::Open { .. });
        let mut recording = Recording::new(trial_dir, names, open_loop, self.live)?;
        let driven = drive::run(&drive, vec![Unwitnessed; workers], &mut recording, halt);
        recording.finish()?;
        Ok(driven?.0)
    }

    fn collect(
        &mut self,
        ready: &Ready,
        trial_dir: &TrialDir,
        names: &[OpNames],
        driven: &Driven,
        death: Option<String>,
    ) -> Result<Finished, LabError> {
        let first = driven.usage.iter().map(|u| u.first_scheduled).min().unwrap_or_default();
        let last = driven.usage.iter().map(|u| u.last_done).max().unwrap_or_default();
        let window = analyze::Window {
            names,
            ops: &driven.total.ops,
            duration: last.since(first),
            load: analyzed_load(&self.trial.load, driven),
        };
        let figures = figures(&window);
        let caveats: Vec<Caveat> = caveats::of(self.trial, &ready.target, driven)
            .into_iter()
            // Nobody interrupted a run whose target died.
            .filter(|caveat| death.is_none() || caveat.code != "interrupted")
            .chain(death.iter().map(|why| Caveat::new("target-died", why.as_str())))
            .chain(ready.caveats.iter().cloned())
            .chain(figures.caveats)
            .collect();
        let summary = Summary {
            schema: record::manifest::SCHEMA,
            workload: self.trial.plan.workload.clone(),
            target: ready.target.clone(),
            ops: figures.ops,
            ops_s: figures.ops_s,
            duration_s: figures.duration_s,
            errors: figures.errors,
            outcomes: figures.outcomes,
            scheduled_rate_s: figures.scheduled_rate_s,
            latency_us: figures.latency_us,
            client: client_cost(driven, figures.ops),
            caveats,
            run: self.run_dir.path().display().to_string(),
        };
        let (verdict, failure) = match death {
            Some(death) => (Verdict::Failed, Some(death)),
            None => verdict(&summary, driven, self.trial.give_up),
        };
        trial_dir.write_json("summary.json", &summary)?;
        write_total(trial_dir, names, driven)?;
        self.write_row(&summary, &analyze::overall(&window), verdict)?;
        self.manifest.caveats = summary.caveats.clone();
        self.manifest.end(verdict, failure.clone(), clock::wall());
        self.write_trial_manifest(trial_dir)?;
        self.run_dir.write_json("manifest.json", &self.manifest)?;
        let run_dir = self.run_dir.path().to_owned();
        let report = report::build(&run_dir)?;
        Ok(Finished { summary, verdict, failure, run_dir, report })
    }

    fn write_row(
        &self,
        summary: &Summary,
        overall: &analyze::Overall,
        verdict: Verdict,
    ) -> Result<(), LabError> {
        let mut table = TrialsWriter::new(self.run_dir.append(TRIALS_CSV)?);
        let row = TrialRow {
            trial: 1,
            workload: summary.workload.clone(),
            target: summary.target.kind.clone(),
            factors: Vec::new(),
            ops: summary.ops,
            ops_s: summary.ops_s,
            duration_s: summary.duration_s,
            errors: summary.errors,
            scheduled_rate_s: summary.scheduled_rate_s,
            service: overall.service,
            response: overall.response,
            lag: overall.lag,
            verdict: verdict.name().to_owned(),
            caveats: summary.caveats.iter().map(|c| c.code.clone()).collect(),
        };
        table.row(&row).map_err(table_failed(&self.run_dir.path().join(TRIALS_CSV)))
    }
}

fn op_names(operations: &[workload::Operation]) -> Vec<OpNames> {
    let parts = |o: &workload::Operation| match o.steps.len() {
        1 => Vec::new(),
        _ => o.steps.iter().map(|s| s.name.to_owned()).collect(),
    };
    operations.iter().map(|o| OpNames { name: o.name.to_owned(), parts: parts(o) }).collect()
}

fn analyzed_load(load: &Load, driven: &Driven) -> analyze::Load {
    match load.arrivals {
        Arrivals::Closed { throttle: Some(_), .. } => analyze::Load::Throttled,
        Arrivals::Closed { threads, .. } => analyze::Load::Closed { threads: threads as u64 },
        Arrivals::Open { rate, .. } => analyze::Load::Open {
            rate_s: rate.per_s(),
            scheduled: match (driven.ended, load.amount) {
                (Ended::Completed, Amount::Ops(ops)) => ops,
                _ => outcomes(driven).total(),
            },
            done_in_window: driven.usage.iter().map(|u| u.done_in_window).sum(),
        },
    }
}

/// What the client cost. Polling is left out of the time per operation and told apart.
fn client_cost(driven: &Driven, ops: u64) -> ClientCost {
    let spin: Nanos = driven.usage.iter().fold(Nanos::ZERO, |sum, u| sum + u.spin);
    let workers_s = driven.elapsed.as_secs_f64() * driven.usage.len() as f64;
    let per_op = |total: f64| (ops > 0).then(|| total / ops as f64);
    let busy = caveats::busy_shares(driven).fold(0.0, f64::max);
    let syscalls: u64 = driven.usage.iter().map(|u| u.syscalls).sum();
    ClientCost {
        cpu_us_per_op: per_op(driven.process_cpu.since(spin).0 as f64 / 1e3),
        syscalls_per_op: per_op(syscalls as f64),
        rss_mib_max: stage::usage::of_self().map(|u| u.rss_max.0 as f64 / f64::from(1 << 20)),
        busy_max: Some(busy),
        spin_share: (workers_s > 0.0).then(|| spin.as_secs_f64() / workers_s),
    }
}

fn verdict(summary: &Summary, driven: &Driven, give_up: Nanos) -> (Verdict, Option<String>) {
    let share = summary.errors as f64 / summary.ops.max(1) as f64;
    let said = driven.first_error.as_ref();
    let said = said.map_or(String::new(), |first| format!("; the first error was: {first}"));
    let failed = |why: String| (Verdict::Failed, Some(why + &said));
    match driven.ended {
        Ended::Stopped => (Verdict::Interrupted, Some("interrupted by the user".to_owned())),
        Ended::GaveUp => failed(format!("nothing succeeded for {give_up} (--give-up)")),
        Ended::Completed if summary.ops == 0 => failed(
            "no operation fell due in the window: the target or the client stood still".into(),
        ),
        Ended::Completed if share > analyze::ERRORS_SHARE_MAX => {
            failed(format!("{:.2} % of the operations failed", share * 100.0))
        }
        Ended::Completed => (Verdict::Ok, None),
    }
}

fn write_total(trial_dir: &TrialDir, names: &[OpNames], driven: &Driven) -> Result<(), LabError> {
    let base = clock::wall() - (clock::now() - driven.total.start);
    let file = trial_dir.append(TOTAL_HLOG)?;
    HlogWriter::new(std::io::BufWriter::new(file), base)
        .and_then(|mut hlog| {
            hlog.write_interval(names, &driven.total, driven.total.start)?;
            hlog.finish()
        })
        .map_err(log_failed(&trial_dir.path().join(TOTAL_HLOG)))?;
    Ok(())
}
