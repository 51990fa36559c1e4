//! One trial: provision -> create -> load -> warm -> run -> drain -> collect.

mod one;
mod pilot;
mod set_up;

pub(crate) use one::{Measured, run_one};
pub(crate) use pilot::{Point, enough, pilot, search_takes};

pub(crate) use self::set_up::Ready;
use self::set_up::SetUp;
use crate::capture::Capture;
use crate::caveats;
use crate::compactions;
use crate::course::Course;
use crate::dialect::Dialect;
use crate::driven::{analyzed_load, client_cost, op_names, verdict, write_total};
use crate::error::LabError;
use crate::kept::Kept;
use crate::live::{Live, Total};
use crate::provision::{Provisioned, TargetChoice};
use crate::recording::{Recorded, Recording};
use crate::repeats::{self, Done};
use crate::requests::Records;
use crate::ring_watch;
use crate::scripted::Scripted;
use crate::settle::{self, Gate};
use crate::sharded;
use analyze::figures;
use drive::{
    Access, Arrivals, Drive, DriveError, Driven, Ended, Engine, Levels, Load, RetryPause,
    TableName, Unwitnessed, Wait,
};
use record::hlog::Intervals;
use record::manifest::{Manifest, Verdict};
use record::run_dir::BLOCKS_CSV;
use record::summary::Summary;
use record::table::{TrialRow, TrialsWriter};
use record::{Caveat, OpNames, RunDir, TrialDir, utc};
use serde_json::{Map, Value};
use stage::Place;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{CpuSet, Nanos, clock};
use wire::cql::Protocol;
use workload::{Operation, Plan};

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
    /// How the target lets us in.
    pub access: Access,
    /// Only the hosts given are used, under the addresses given.
    pub fixed_hosts: bool,
    /// Whose hosts are driven; None is that of the first host that answers.
    pub datacenter: Option<String>,
    /// Tables without wideload's marker may be written to.
    pub write_into_existing: bool,
    /// Of a target that is started, one for each of its instances.
    pub places: Vec<Place>,
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
    /// Where hosts have shards, one to each of them for each worker instead.
    pub connections_by_shard: bool,
    /// How workers wait.
    pub wait: Wait,
    /// How workers talk to the kernel.
    pub engine: Engine,
    /// Of every statement.
    pub consistency: Levels,
    /// Of the load's connections.
    pub protocol: Protocol,
    /// Records over Aerospike's protocol are driven: the keyspace is a namespace, the table a set,
    /// and what is said of CQL is of no account.
    pub records: Option<Records>,
    /// Of an attempt.
    pub timeout: Nanos,
    /// Further attempts.
    pub retries: u32,
    /// Further attempts at an insert of the load phase.
    pub load_retries: u32,
    /// Before each of them.
    pub load_retry_pause: Nanos,
    /// Before each further attempt of a run.
    pub retry_pause: RetryPause,
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
    /// Of a Cassandra that is started: its data are there or made there, and stay.
    pub kept: Option<PathBuf>,
    /// Reasons to trust its numbers less that are known before it begins.
    pub forewarned: Vec<Caveat>,
    /// What a foreign command line says of schema, warm-up and failures; wideload's own marker and
    /// load play no part then.
    pub scripted: Option<Scripted>,
    /// It is driven as another tool does it, on that tool's table.
    pub foreign: Option<Foreign>,
}

/// What is different where another tool's table is driven: it has no marker and gets none, and
/// nothing is loaded before the load that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The load phase is what is measured.
    pub loads: bool,
    /// Keyspace and table are created where they are missing; else they have to be there.
    pub creates: bool,
    /// So many operations are kept one by one; 0 keeps none.
    pub keeps: u64,
}

impl Trial {
    /// The cpus of a target that is started.
    #[must_use]
    pub fn target_cpus(&self) -> CpuSet {
        self.places.iter().fold(CpuSet::default(), |all, place| all.union(&place.cpus))
    }

    /// The operations that are measured.
    #[must_use]
    pub fn operations(&self) -> &[Operation] {
        if self.loads() { &self.plan.load } else { &self.plan.run }
    }

    /// Whether the load phase is what is measured.
    #[must_use]
    pub fn loads(&self) -> bool {
        self.foreign.is_some_and(|foreign| foreign.loads)
    }

    /// So many databases the target is, which know nothing of each other.
    #[must_use]
    pub fn databases(&self) -> usize {
        match &self.target {
            TargetChoice::Reference { .. } => self.places.len().max(1),
            TargetChoice::Cassandra { options, .. } if options.instances == 1 => {
                self.places.len().max(1)
            }
            TargetChoice::Cassandra { .. } | TargetChoice::Running { .. } => 1,
        }
    }
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
    /// Why nothing is said about its steadiness; None where something is.
    pub too_short: Option<String>,
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
    let mut running = Running::new(trial, &run_dir, 1, live, stop);
    run_dir.write_json("manifest.json", &running.manifest)?;
    running.live.begun(run_dir.path());
    match running.run() {
        Ok(finished) => Ok(finished),
        Err(error) => {
            running.fail(&error);
            Err(error)
        }
    }
}

pub(crate) struct Running<'a> {
    pub(crate) trial: &'a Trial,
    run_dir: &'a RunDir,
    manifest: Manifest,
    /// `trials.csv`, from the first row on.
    rows: Option<TrialsWriter<File>>,
    /// The row of a trial of an experiment, which keeps that table itself.
    row: Option<TrialRow>,
    /// The number of the first trial.
    first: u32,
    of_experiment: bool,
    /// The trial that goes on.
    number: u32,
    /// It has said how it ended.
    ended: bool,
    /// Single operations of the trial that goes on, where they are wanted.
    kept: Vec<Kept>,
    /// Why nothing is said about the last trial's steadiness.
    too_short: Option<String>,
    pub(crate) live: &'a mut dyn Live,
    stop: &'a Arc<AtomicBool>,
}

/// A trial whose operations are done.
#[derive(Clone, Copy)]
struct Parts<'a> {
    ready: &'a Ready,
    trial_dir: &'a TrialDir,
    names: &'a [OpNames],
    driven: &'a Driven,
}

impl<'a> Running<'a> {
    fn new(
        trial: &'a Trial,
        run_dir: &'a RunDir,
        first: u32,
        live: &'a mut dyn Live,
        stop: &'a Arc<AtomicBool>,
    ) -> Self {
        let (name, line) = (&trial.name, trial.command_line.clone());
        let mut manifest = Manifest::starting(name, line, clock::wall());
        manifest.settings = trial.settings.clone();
        manifest.seeds.insert("workload".to_owned(), trial.seed);
        manifest.host = trial.host.clone();
        let (rows, row, number, ended) = (None, None, first, false);
        let of_experiment = false;
        Self {
            trial,
            run_dir,
            manifest,
            rows,
            row,
            first,
            of_experiment,
            number,
            ended,
            kept: Vec::new(),
            too_short: None,
            live,
            stop,
        }
    }

    /// Leaves the reason in the run directory; the error itself is shown by the caller.
    fn fail(&mut self, error: &LabError) {
        self.manifest.end(error.verdict(), Some(error.to_string()), clock::wall());
        if self.run_dir.check().is_err() {
            return;
        }
        // The disk may be what failed.
        let of_trial = match self.ended {
            true => Ok(()),
            false => match self.run_dir.trial(self.number) {
                Ok(dir) => self.write_trial_manifest(&dir),
                Err(error) => Err(error.into()),
            },
        };
        let of_run = self.run_dir.write_json("manifest.json", &self.manifest).map_err(Into::into);
        let unwritten: Option<LabError> = of_trial.and(of_run).err();
        if let Some(why) = unwritten {
            self.live.notice(&format!("how this run ended could not be noted in it: {why}"));
        }
        let _ = report::build(self.run_dir.path());
    }

    fn run(&mut self) -> Result<Finished, LabError> {
        let (done, failure) = self.measure()?;
        self.conclude(done, failure)
    }

    /// All trials, and why there are no more where some are missing.
    fn measure(&mut self) -> Result<(Vec<Done>, Option<LabError>), LabError> {
        let trial_dir = self.run_dir.trial(self.first)?;
        self.write_trial_manifest(&trial_dir)?;
        // Before a target is started for nothing.
        self.trial.engine.check().map_err(|why| DriveError::Link(why.into()))?;
        let SetUp { provisioned, ready, watchdog, fills } = self.set_up(&trial_dir)?;
        let hosts = ready.addresses();
        let gate = settle::gate(self.trial, &provisioned, &ready.target, &hosts, fills);
        let mut done: Vec<Done> = Vec::new();
        let mut failure = None;
        for number in self.first..self.first + self.trial.repeat {
            (self.number, self.ended) = (number, false);
            let inserted = done.last().map(|done| done.inserted.clone()).unwrap_or_default();
            let target = (&provisioned, &ready);
            let one = self.one(target, gate.as_ref(), inserted, watchdog.halt(), &|| {
                watchdog.died().then(|| LabError::target_died(&trial_dir).to_string())
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
        Ok((done, failure))
    }

    /// One trial of as many as there are, on rows that are there.
    fn one(
        &mut self,
        (provisioned, ready): (&Provisioned, &Ready),
        gate: Option<&Gate<'_>>,
        inserted: Vec<u64>,
        halt: &Arc<AtomicBool>,
        death: &dyn Fn() -> Option<String>,
    ) -> Result<Done, LabError> {
        let trial_dir = self.run_dir.trial(self.number)?;
        let mut manifest = self.trial_manifest();
        if self.number > self.first {
            manifest.started = utc::rfc3339(clock::wall().0 / 1_000_000_000);
            trial_dir.write_json("manifest.json", &manifest)?;
        }
        let settled = gate.map(|gate| gate.pass(self.live, halt));
        if let Some(settled) = &settled {
            manifest.phases.insert("settle".to_owned(), settled.phase());
        }
        let names = op_names(self.trial.operations());
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
        self.too_short = course.too_short();
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
            &driven,
        );
        if death.is_none() {
            more.extend(self.verify_places_at_end(provisioned, &mut manifest));
        }
        more.extend(Self::logs_cut(provisioned, &mut manifest));
        if driven.ended == Ended::Completed && death.is_none() {
            more.extend(self.ask_for_compactions(ready, &mut manifest));
        }
        let (from, to) = (driven.window.start, driven.window.start + driven.elapsed);
        more.extend(ring_watch::caveats(&recorded.news, from, to));
        more.extend(settled.iter().filter_map(|s| s.caveat()).chain(course.caveats()));
        let parts = Parts { ready, trial_dir: &trial_dir, names: &names, driven: &driven };
        self.collect(&parts, manifest, death, more)
    }

    fn seed(&self) -> u64 {
        repeats::seed(self.trial.seed, 1 + self.number - self.first)
    }

    /// The run's manifest for the trial that goes on.
    fn trial_manifest(&self) -> Manifest {
        let mut manifest = self.manifest.for_trial(self.number);
        manifest.seeds.insert("workload".to_owned(), self.seed());
        manifest
    }

    /// After the window, so that the control plane is silent within it.
    fn ask_for_compactions(&self, ready: &Ready, manifest: &mut Manifest) -> Option<Caveat> {
        if !compactions::is_cassandra(&ready.target) {
            return None;
        }
        let tasks = compactions::under_way(&ready.addresses(), &self.trial.access);
        if let Value::Object(facts) = &mut manifest.target {
            facts.insert("compactions_at_end".to_owned(), tasks.as_ref().map(Vec::len).into());
        }
        compactions::caveat(&tasks.unwrap_or_default())
    }

    fn write_trial_manifest(&self, trial_dir: &TrialDir) -> Result<(), LabError> {
        Ok(trial_dir.write_json("manifest.json", &self.trial_manifest())?)
    }

    pub(crate) fn drive_of(&self, ready: &Ready) -> Drive {
        let trial = self.trial;
        let cpus: Vec<_> = trial.client_cpus.iter().collect();
        let workers = drive::workers(cpus.len(), &trial.load.arrivals, trial.databases());
        Drive {
            encoder: ready.encoder.clone(),
            load_keys: trial.loads(),
            load: trial.load,
            databases: ready.databases.clone(),
            access: trial.access.clone(),
            by_shard: trial.connections_by_shard,
            connections: drive::connections(trial.connections, workers / trial.databases()),
            cpus,
            seed: self.seed(),
            inserted: Vec::new(),
            intervals: Intervals::of(trial.interval),
            timeout: trial.timeout,
            retries: if trial.loads() { trial.load_retries } else { trial.retries },
            retry_pause: match trial.loads() {
                true => RetryPause::constant(trial.load_retry_pause),
                false => trial.retry_pause,
            },
            give_up: trial.give_up,
            first_failure_ends: trial.scripted.as_ref().is_some_and(|f| f.first_failure_ends),
            missing_is_fine: trial.scripted.as_ref().is_some_and(|f| f.missing_is_fine),
            wait: trial.wait,
            engine: trial.engine,
        }
    }

    fn drive(
        &mut self,
        ready: &Ready,
        trial_dir: &TrialDir,
        names: &[OpNames],
        inserted: Vec<u64>,
        halt: &Arc<AtomicBool>,
    ) -> Result<(Driven, Recorded, Option<analyze::Course>), LabError> {
        self.rehearse(ready, halt)?;
        let drive = Drive { inserted, ..self.drive_of(ready) };
        let workers = drive::workers(drive.cpus.len(), &drive.load.arrivals, drive.databases.len());
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
        let watch = ready.watch.as_ref();
        let mut recording =
            Recording::new(trial_dir, names, open_loop, until_steady, capture, watch, self.live)?;
        let driven = match self.trial.foreign.map_or(0, |foreign| foreign.keeps) {
            0 => drive::run(&drive, vec![Unwitnessed; workers], &mut recording, halt)
                .map(|(driven, _)| (driven, Vec::new())),
            all => drive::run(&drive, Kept::of(all, workers), &mut recording, halt),
        };
        let shards = driven.as_ref().map_or(&[][..], |(driven, _)| &driven.shards);
        let (recorded, host) = recording.finish(shards)?;
        let (driven, kept) = driven?;
        self.kept = kept;
        Ok((driven, recorded, host))
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
        let single: Vec<_> = self.kept.iter().flat_map(|kept| &kept.0).copied().collect();
        self.kept.clear();
        self.live.total(&Total { names, driven, single: &single });
        let figures = figures(&window);
        let caveats: Vec<Caveat> = caveats::of(self.trial, &ready.target, driven, &window)
            .into_iter()
            // Nobody interrupted a run whose target died.
            .filter(|caveat| death.is_none() || caveat.code != "interrupted")
            .chain(death.iter().map(|why| Caveat::new("target-died", why.as_str())))
            .chain(self.trial.forewarned.iter().chain(&ready.caveats).cloned())
            .chain(figures.caveats)
            .chain(more)
            .map(|caveat| Dialect::of(self.trial).caveat(caveat))
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
            shards: sharded::balance(driven),
            repeats: None,
            run: self.run_dir.path().display().to_string(),
        };
        let (verdict, failure) = match death {
            Some(death) => (Verdict::Failed, Some(death)),
            None => verdict(&summary, driven, self.trial.give_up),
        };
        let failure = failure.map(|why| Dialect::of(self.trial).told(&why));
        trial_dir.write_json("summary.json", &summary)?;
        write_total(trial_dir, names, driven)?;
        let overall = analyze::overall(&window);
        let times = [overall.service, overall.response, overall.lag];
        self.keep_row(TrialRow::of(self.number, &summary, times, verdict))?;
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
        let dialect = Dialect::of(self.trial);
        let ended = failure.map(|error| (error.verdict(), dialect.told(&error.to_string())));
        let run = repeats::conclude(done, self.trial.repeat, ended).ok_or(LabError::Interrupted)?;
        let repeats::Run { summary, verdict, failure } = run;
        self.manifest.caveats = summary.caveats.clone();
        self.manifest.repeats = summary.repeats.clone();
        self.manifest.end(verdict, failure.clone(), clock::wall());
        self.run_dir.write_json("manifest.json", &self.manifest)?;
        let run_dir = self.run_dir.path().to_owned();
        let report = report::build(&run_dir)?;
        let too_short = self.too_short.take();
        Ok(Finished { summary, verdict, failure, too_short, run_dir, report })
    }
}
