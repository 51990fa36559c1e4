//! One trial: provision -> create -> load -> warm -> run -> drain -> collect.

use crate::capture::Capture;
use crate::caveats;
use crate::compactions;
use crate::course::Course;
use crate::data::{self, Prepared};
use crate::data_size::DataSize;
use crate::driven::{analyzed_load, client_cost, op_names, verdict, write_total};
use crate::error::{LabError, table_failed};
use crate::filling::{Filling, Pour};
use crate::live::Live;
use crate::local_target::LocalTarget;
use crate::provision::{self, Provisioned, Storage, TargetChoice};
use crate::recording::{Recorded, Recording};
use crate::repeats::{self, Done};
use crate::settle::{self, Gate};
use crate::stand_in;
use crate::watchdog::Watchdog;
use analyze::figures;
use drive::{Arrivals, Drive, Driven, Encoder, Ended, Load, TableName, Unwitnessed, Wait};
use machine::Machine;
use record::hlog::Intervals;
use record::manifest::{Manifest, Verdict};
use record::run_dir::{BLOCKS_CSV, RAW, TRIALS_CSV};
use record::summary::{Summary, Target};
use record::table::{TrialRow, TrialsWriter};
use record::{Caveat, OpNames, RunDir, TrialDir, utc};
use serde_json::{Map, Value};
use std::fs::File;
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
    /// How hard, how long.
    pub load: Load,
    /// The warm-up ends when it is steady, and after `load.warm` at the latest.
    pub warm_until_steady: bool,
    /// So long is waited at most until a database has nothing left to do for its load; zero does
    /// not wait, and flushes nothing.
    pub settle: Nanos,
    /// So many trials, on the same rows.
    pub repeat: u32,
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
    /// Reasons to trust its numbers less that are known before it begins.
    pub forewarned: Vec<Caveat>,
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
    let (run_dir, rows, number, ended) = (&run_dir, None, 1, false);
    let mut running = Running { trial, run_dir, manifest, rows, number, ended, live, stop };
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
    /// `trials.csv`, from the first row on.
    rows: Option<TrialsWriter<File>>,
    /// The trial that goes on.
    number: u32,
    /// It has said how it ended.
    ended: bool,
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
    local: LocalTarget,
    machine: Machine,
    caveats: Vec<Caveat>,
}

/// A trial whose operations are done.
#[derive(Clone, Copy)]
struct Parts<'a> {
    ready: &'a Ready,
    trial_dir: &'a TrialDir,
    names: &'a [OpNames],
    driven: &'a Driven,
}

impl Running<'_> {
    /// Leaves the reason in the run directory; the error itself is shown by the caller.
    fn fail(&mut self, error: &LabError) {
        self.manifest.end(error.verdict(), Some(error.to_string()), clock::wall());
        if self.run_dir.check().is_err() {
            return;
        }
        // The disk may be what failed.
        if !self.ended {
            let _ = self.run_dir.trial(self.number).map(|dir| self.write_trial_manifest(&dir));
        }
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
        let fills = ready.filling.is_some();
        if let Some(filling) = ready.filling.take() {
            let loaded = self.load(&ready, &filling, watchdog.halt());
            if watchdog.died() {
                return Err(died());
            }
            loaded?;
        }
        let gate = settle::gate(self.trial, &provisioned, &ready.target, &ready.addresses, fills);
        let mut done: Vec<Done> = Vec::new();
        let mut failure = None;
        for number in 1..=self.trial.repeat {
            (self.number, self.ended) = (number, false);
            let inserted = done.last().map(|done| done.inserted.clone()).unwrap_or_default();
            let one = self.one(&ready, gate.as_ref(), inserted, watchdog.halt(), &|| {
                watchdog.died().then(|| died().to_string())
            });
            match one {
                Ok(one) => done.push(one),
                // What was measured before stays.
                Err(error) if !done.is_empty() => failure = Some(error),
                Err(error) => return Err(error),
            }
            if failure.is_some() || done.last().is_some_and(|d| d.verdict != Verdict::Ok) {
                break;
            }
        }
        drop(watchdog);
        provisioned.stop()?;
        self.conclude(done, failure)
    }

    /// One trial of as many as there are, on rows that are there.
    fn one(
        &mut self,
        ready: &Ready,
        gate: Option<&Gate<'_>>,
        inserted: Vec<u64>,
        halt: &Arc<AtomicBool>,
        death: &dyn Fn() -> Option<String>,
    ) -> Result<Done, LabError> {
        let trial_dir = self.run_dir.trial(self.number)?;
        let mut manifest = self.trial_manifest();
        if self.number > 1 {
            manifest.started = utc::rfc3339(clock::wall().0 / 1_000_000_000);
            trial_dir.write_json("manifest.json", &manifest)?;
        }
        let settled = gate.map(|gate| gate.pass(self.live, halt));
        if let Some(settled) = &settled {
            manifest.phases.insert("settle".to_owned(), settled.phase());
        }
        let names = op_names(&self.trial.plan.run);
        let driven = self.drive(ready, &trial_dir, &names, inserted, halt);
        let (driven, recorded, host) = match driven {
            Ok(driven) => driven,
            Err(error) => {
                let verdict = error.verdict();
                manifest.end(verdict, Some(error.to_string()), clock::wall());
                // The disk may be what failed.
                let _ = trial_dir.write_json("manifest.json", &manifest);
                return Err(error);
            }
        };
        let course = Course::of(&recorded, &driven);
        course.notice().iter().for_each(|notice| self.live.notice(notice));
        manifest.phases.extend(course.phases().map(|(name, value)| (name.to_owned(), value)));
        trial_dir.write(BLOCKS_CSV, course.csv.as_bytes())?;
        let death = death();
        let mut more = caveats::of_host(
            self.trial,
            &ready.target,
            &ready.local,
            &ready.machine,
            host.as_ref(),
        );
        if driven.ended == Ended::Completed && death.is_none() {
            more.extend(self.ask_for_compactions(ready, &mut manifest));
        }
        more.extend(settled.iter().filter_map(|s| s.caveat()).chain(course.caveats()));
        let parts = Parts { ready, trial_dir: &trial_dir, names: &names, driven: &driven };
        self.collect(&parts, manifest, death, more)
    }

    fn seed(&self) -> u64 {
        repeats::seed(self.trial.seed, self.number)
    }

    /// The run's manifest for the trial that goes on.
    fn trial_manifest(&self) -> Manifest {
        let mut manifest = self.manifest.for_trial(self.number);
        manifest.seeds.insert("workload".to_owned(), self.seed());
        manifest
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
        let prepared = data::prepare(trial, provisioned, self.live, self.stop)?;
        let Prepared { ids, filling, version, addresses, ring, mut caveats } = prepared;
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
        let local = LocalTarget::of(trial, provisioned, &addresses);
        let machine = Machine::read(Path::new("/"))?;
        let data = DataSize::of(&trial.plan, &target, &local, &machine);
        caveats.extend(data.caveat(&trial.plan, &target));
        self.manifest.target = serde_json::json!({
            "kind": target.kind,
            "version": target.version,
            "protocol": target.protocol,
            "addresses": listed,
            "cpus": (!local.cpus.is_empty()).then(|| local.cpus.to_string()),
            "data": data.facts(),
            "started": provisioned.facts,
        });
        Ok(Ready { addresses, target, encoder, ids, ring, filling, local, machine, caveats })
    }

    /// After the window, so that the control plane is silent within it.
    fn ask_for_compactions(&self, ready: &Ready, manifest: &mut Manifest) -> Option<Caveat> {
        if !compactions::is_cassandra(&ready.target) {
            return None;
        }
        let credentials = self.trial.credentials.as_ref();
        let tasks = compactions::under_way(&ready.addresses, credentials);
        if let Value::Object(facts) = &mut manifest.target {
            facts.insert("compactions_at_end".to_owned(), tasks.as_ref().map(Vec::len).into());
        }
        compactions::caveat(&tasks.unwrap_or_default())
    }

    fn write_trial_manifest(&self, trial_dir: &TrialDir) -> Result<(), LabError> {
        Ok(trial_dir.write_json("manifest.json", &self.trial_manifest())?)
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
            seed: self.seed(),
            inserted: Vec::new(),
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
        inserted: Vec<u64>,
        halt: &Arc<AtomicBool>,
    ) -> Result<(Driven, Recorded, Option<analyze::Course>), LabError> {
        let drive = Drive { inserted, ..self.drive_of(ready) };
        let workers = drive::workers(drive.cpus.len(), &drive.load.arrivals);
        let of = match self.trial.repeat {
            1 => String::new(),
            all => format!(", trial {} of {all}", self.number),
        };
        self.live.stage(&format!("driving {}{of}", self.trial.plan.workload));
        let open_loop = matches!(drive.load.arrivals, Arrivals::Open { .. });
        let until_steady = self.trial.warm_until_steady;
        let local = &ready.local;
        let watched = caveats::watched(self.trial, local);
        let capture = Capture::new(watched, local.processes.clone(), !local.unknown.is_empty());
        let mut recording =
            Recording::new(trial_dir, names, open_loop, until_steady, capture, self.live)?;
        let driven = drive::run(&drive, vec![Unwitnessed; workers], &mut recording, halt);
        let (recorded, host) = recording.finish()?;
        Ok((driven?.0, recorded, host))
    }

    fn collect(
        &mut self,
        parts: &Parts<'_>,
        mut manifest: Manifest,
        death: Option<String>,
        more: Vec<Caveat>,
    ) -> Result<Done, LabError> {
        let Parts { ready, trial_dir, names, driven } = *parts;
        let first = driven.usage.iter().map(|u| u.first_scheduled).min().unwrap_or_default();
        let last = driven.usage.iter().map(|u| u.last_done).max().unwrap_or_default();
        let window = analyze::Window {
            names,
            ops: &driven.total.ops,
            duration: last.since(first),
            load: analyzed_load(&self.trial.load, driven),
        };
        let figures = figures(&window);
        let caveats: Vec<Caveat> = caveats::of(self.trial, &ready.target, driven, &window)
            .into_iter()
            // Nobody interrupted a run whose target died.
            .filter(|caveat| death.is_none() || caveat.code != "interrupted")
            .chain(death.iter().map(|why| Caveat::new("target-died", why.as_str())))
            .chain(self.trial.forewarned.iter().chain(&ready.caveats).cloned())
            .chain(figures.caveats)
            .chain(more)
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
            repeats: None,
            run: self.run_dir.path().display().to_string(),
        };
        let (verdict, failure) = match death {
            Some(death) => (Verdict::Failed, Some(death)),
            None => verdict(&summary, driven, self.trial.give_up),
        };
        trial_dir.write_json("summary.json", &summary)?;
        write_total(trial_dir, names, driven)?;
        let overall = analyze::overall(&window);
        self.write_row(&summary, &overall, verdict)?;
        manifest.caveats = summary.caveats.clone();
        manifest.end(verdict, failure.clone(), clock::wall());
        trial_dir.write_json("manifest.json", &manifest)?;
        self.ended = true;
        let inserted = driven.usage.iter().map(|u| u.inserts).collect();
        let (number, seed) = (self.number, self.seed());
        Ok(Done { number, seed, summary, overall, verdict, failure, inserted })
    }

    /// The run's own figures and its end.
    fn conclude(
        &mut self,
        done: Vec<Done>,
        failure: Option<LabError>,
    ) -> Result<Finished, LabError> {
        let ended = failure.map(|error| (error.verdict(), error.to_string()));
        let run = repeats::conclude(done, self.trial.repeat, ended).ok_or(LabError::Interrupted)?;
        let repeats::Run { summary, verdict, failure } = run;
        self.manifest.caveats = summary.caveats.clone();
        self.manifest.repeats = summary.repeats.clone();
        self.manifest.end(verdict, failure.clone(), clock::wall());
        self.run_dir.write_json("manifest.json", &self.manifest)?;
        let run_dir = self.run_dir.path().to_owned();
        let report = report::build(&run_dir)?;
        Ok(Finished { summary, verdict, failure, run_dir, report })
    }

    fn write_row(
        &mut self,
        summary: &Summary,
        overall: &analyze::Overall,
        verdict: Verdict,
    ) -> Result<(), LabError> {
        let table = match &mut self.rows {
            Some(table) => table,
            rows => rows.insert(TrialsWriter::new(self.run_dir.append(TRIALS_CSV)?)),
        };
        let row = TrialRow {
            trial: self.number,
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
