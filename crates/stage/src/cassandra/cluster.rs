//! Instances that run: started together, awaited, stopped, or left to themselves.
//!
//! Input: a [`Prepared`] and a [`Placement`]. Output: [`Cluster`]. It is up when every instance
//! answers CQL, has seen all others join, and has all its threads on its cpus. Dropped, it kills
//! its instances and removes their data, unless these are to last.
//!
//! Source: a ring whose instances are all seeds, have their tokens and do not bootstrap can be
//! started at once; they need some seconds to hear of each other. Measured on 2 cpus that were busy
//! with other work, heaps of 1 GiB: one instance 10 s, three 77 s. Limits: what is
//! stopped within [`STOP_MAX`] may end
//! in its own way.

use super::data::{Data, DataError};
use super::effect::{self, Effect};
use super::flush::{self, Jmx};
use super::java::Java;
use super::jvm::{self, Files};
use super::yaml::{self, SettingError};
use super::{PrepareError, Prepared, ensure_ports_free, probe};
use crate::output::last_lines;
use crate::{
    Child, PagesPerNuma, Place, ProcessId, Program, Signal, SpawnError, TerminateError,
    VerifyError, spawn, spawn_detached,
};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;
use units::{CpuSet, Nanos, clock};

/// How often an instance is asked.
const POLL: Duration = Duration::from_millis(100);
/// How long the first instance may take, and each further one more.
const START_MAX: Nanos = Nanos::from_secs(120);
const START_MAX_MORE: Nanos = Nanos::from_secs(60);
/// How long instances may take to end by themselves.
const STOP_MAX: Nanos = Nanos::from_secs(30);
/// How long an instance listens for others before it joins: none, if there is no other.
const RING_DELAY: Nanos = Nanos::from_secs(5);

/// Where a cluster goes.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The cluster's name.
    pub name: String,
    /// Of each instance; one place is shared by all.
    pub places: Vec<Place>,
    /// A directory that is not there yet, unless it is lasting.
    pub data: PathBuf,
    /// Its data may be there, of a cluster of the same places before it, and stay.
    pub lasting: bool,
    /// The directory for logs and configuration, which stay.
    pub logs: PathBuf,
    /// Whether it is to outlive this process.
    pub detached: bool,
}

/// Why a cluster is not up. Each text names the instance and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum StartError {
    #[error(transparent)]
    Prepare(Box<PrepareError>),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error("{places} places for {instances} instances: give one for all, or one for each")]
    Places { places: usize, instances: usize },
    #[error("cannot write {}: {cause}; free space, or choose another place", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    NotUp(Box<NotUp>),
    #[error("interrupted while starting Cassandra")]
    Interrupted,
}

impl From<PrepareError> for StartError {
    fn from(error: PrepareError) -> Self {
        Self::Prepare(Box::new(error))
    }
}

impl From<SettingError> for StartError {
    fn from(error: SettingError) -> Self {
        PrepareError::from(error).into()
    }
}

/// An instance has ended, or does not come up.
#[derive(Debug, Error)]
#[error("{instance} on {address} {what}; its log is {}{}", log.display(), quoted(last_lines))]
pub struct NotUp {
    /// Its name.
    pub instance: String,
    /// Where it should answer.
    pub address: SocketAddr,
    /// What is the matter with it.
    pub what: String,
    /// Its log.
    pub log: PathBuf,
    /// Its last words, oldest first.
    pub last_lines: Vec<String>,
}

impl StartError {
    /// Whether the command line is wrong, and not the host.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Prepare(error) => error.is_usage(),
            Self::Data(error) => matches!(error, DataError::Exists { .. }),
            _ => matches!(self, Self::Places { .. }),
        }
    }

    /// Whether the user did not want to wait.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        match self {
            Self::Prepare(error) => error.is_interrupted(),
            _ => matches!(self, Self::Interrupted),
        }
    }
}

fn quoted(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

/// Why something is left of a cluster.
#[derive(Debug, Error)]
pub enum StopError {
    /// A process.
    #[error(transparent)]
    Terminate(#[from] TerminateError),
    /// Data.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// A process of a cluster.
#[derive(Debug)]
pub struct Instance {
    name: String,
    address: SocketAddr,
    cpus: CpuSet,
    system_log: PathBuf,
    gc_log: PathBuf,
    /// What its arguments ask for.
    asked: Effect,
    jmx: Option<Jmx>,
    child: Child,
}

impl Instance {
    /// Its name, as in the names of its logs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it answers CQL.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The cpus that it stays on.
    #[must_use]
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.child.id()
    }

    /// Where its pages lie; see [`Child::verify_pages`].
    ///
    /// # Errors
    /// When a thread or too many pages are elsewhere than they were put.
    pub fn verify_pages(&self) -> Result<PagesPerNuma, VerifyError> {
        self.child.verify_pages()
    }

    /// Lines of its output that are not in the log because it was full or could not be written.
    #[must_use]
    pub fn log_lines_lost(&self) -> u64 {
        self.child.log_lines_lost()
    }

    /// What took effect of what its JVM was asked for, as far as that says.
    #[must_use]
    pub fn effect(&self) -> Effect {
        // Without its log nothing is known, which shows.
        self.asked.clone().seen_in(&fs::read_to_string(&self.gc_log).unwrap_or_default())
    }

    pub(crate) fn jmx(&self) -> Option<&Jmx> {
        self.jmx.as_ref()
    }

    fn not_up(&self, what: String, last_lines: Vec<String>) -> StartError {
        StartError::NotUp(Box::new(NotUp {
            instance: self.name.clone(),
            address: self.address,
            what,
            log: self.system_log.clone(),
            last_lines,
        }))
    }
}

/// Instances that run.
#[derive(Debug)]
pub struct Cluster {
    // Before `data`: processes are to end before their files go.
    instances: Vec<Instance>,
    data: Data,
    prepared: Prepared,
}

impl Cluster {
    /// Starts the processes; [`Self::wait`] tells when they can be used.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then, and no data.
    pub fn spawn(prepared: Prepared, placement: &Placement) -> Result<Self, StartError> {
        let (places, instances) = (placement.places.len(), prepared.ring.addresses.len());
        if places != 1 && places != instances {
            return Err(StartError::Places { places, instances });
        }
        ensure_ports_free(&prepared.ring)?;
        let data = match placement.lasting {
            true => Data::lasting(&placement.data)?,
            false => Data::make(&placement.data)?,
        };
        make_dir(&placement.logs)?;
        let mut cluster = Self { instances: Vec::new(), data, prepared };
        for index in 0..instances {
            let instance = cluster.start(placement, index)?;
            cluster.instances.push(instance);
        }
        Ok(cluster)
    }

    fn start(&self, placement: &Placement, index: usize) -> Result<Instance, StartError> {
        let prepared = &self.prepared;
        let name = format!("cassandra-{}", index + 1);
        let absolute = |path: &Path| {
            let file = |cause| StartError::File { path: path.to_owned(), cause };
            fs::canonicalize(path).map_err(file)
        };
        let logs = absolute(&placement.logs)?;
        let files = Files {
            yaml: logs.join(format!("{name}.yaml")),
            logback: logs.join(format!("{name}-logback.xml")),
            storage: absolute(&self.data.path)?.join(&name),
            logs: logs.clone(),
            name: name.clone(),
        };
        make_dir(&files.storage.join("tmp"))?;
        let text = yaml::text(&placement.name, &prepared.ring, index, &prepared.settings)?;
        write(&files.yaml, &text)?;
        write(&files.logback, &jvm::logback(&files))?;
        let ring_delay = match prepared.ring.addresses.len() {
            1 => Nanos::ZERO,
            _ => RING_DELAY,
        };
        // Nobody flushes what has outlived this process.
        let port = if placement.detached { None } else { flush::free_port(&prepared.jvm) };
        let jmx = port.map(|port| Jmx {
            port,
            home: files.storage.join("tmp"),
            log: logs.join(format!("{name}-flush.log")),
        });
        let own: Vec<_> = port.map(flush::flag).into_iter().chain(prepared.jvm.clone()).collect();
        let argv =
            jvm::argv(&prepared.install, &prepared.java, &prepared.heap, ring_delay, &files, &own);
        write(&logs.join(format!("{name}-command.txt")), &in_lines(&argv))?;
        let place = placement.places.get(index).or(placement.places.first());
        let Place { cpus, memory } = place.cloned().unwrap_or_default();
        let bound = match cpus.len() {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            bound => bound,
        };
        let bound = u32::try_from(bound).unwrap_or(u32::MAX);
        let asked = effect::asked(&name, &argv, bound, prepared.heap.size);
        let program = Program {
            host: "local".to_owned(),
            instance: name.clone(),
            argv,
            cpus: cpus.clone(),
            memory,
            log: logs.join(format!("{name}-output.log")),
        };
        let child = match placement.detached {
            true => spawn_detached(&program)?,
            false => spawn(&program)?,
        };
        let address = SocketAddr::V4(prepared.ring.cql(index));
        let system_log = logs.join(format!("{name}-system.log"));
        let gc_log = files.gc_log();
        Ok(Instance { name, address, cpus, system_log, gc_log, asked, jmx, child })
    }

    /// Waits until every instance answers and knows all others.
    ///
    /// # Errors
    /// [`StartError`], with the last lines of whoever ended or is late. What runs goes on until
    /// this is dropped.
    pub fn wait(&self, stop: &AtomicBool) -> Result<(), StartError> {
        let others = self.instances.len() - 1;
        let more = START_MAX_MORE.0.saturating_mul(others as u64);
        let waited = START_MAX + Nanos(more);
        let deadline = clock::now() + waited;
        for instance in &self.instances {
            let missing = loop {
                let missing = match up(instance.address, others) {
                    Ok(()) => break None,
                    Err(missing) => missing,
                };
                self.nobody_has_ended()?;
                if stop.load(Ordering::Relaxed) {
                    return Err(StartError::Interrupted);
                }
                if clock::now() >= deadline {
                    break Some(missing);
                }
                sleep(POLL);
            };
            if let Some(missing) = missing {
                let what = format!("is not up after {waited}: {missing}");
                return Err(instance.not_up(what, last_lines(&instance.system_log)));
            }
        }
        // Somebody else's database might have answered.
        self.nobody_has_ended()?;
        for instance in &self.instances {
            instance.child.verify()?;
        }
        Ok(())
    }

    fn nobody_has_ended(&self) -> Result<(), StartError> {
        for instance in &self.instances {
            let Some(exit) = instance.child.exit_text() else { continue };
            instance.child.settle_output();
            let what = format!("ended ({exit}) before it answered");
            return Err(instance.not_up(what, instance.child.last_lines()));
        }
        Ok(())
    }

    /// The JVM and the jars that tools are run with.
    pub(crate) fn tools(&self) -> (&Java, OsString) {
        (&self.prepared.java, jvm::class_path(&self.prepared.install))
    }

    /// Its instances.
    #[must_use]
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// The directory of its data.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data.path
    }

    /// Ends all instances, SIGTERM first, and removes their data, unless these are to last.
    ///
    /// # Errors
    /// [`StopError`], naming what is left.
    pub fn stop(mut self) -> Result<(), StopError> {
        for instance in &self.instances {
            // All at once: each takes seconds. Whoever does not hear is killed below.
            let _ = instance.child.id().signal(Signal::TERM);
        }
        for instance in &mut self.instances {
            instance.child.terminate(STOP_MAX)?;
        }
        Ok(self.data.remove()?)
    }

    /// Lets a detached cluster go on without this process.
    pub fn leave(mut self) {
        self.data.keep();
        for instance in self.instances.drain(..) {
            // Whoever needs its identity has asked before.
            let _ = instance.child.leave();
        }
    }
}

/// What is still missing.
fn up(address: SocketAddr, others: usize) -> Result<(), String> {
    probe::speaks_cql(address).map_err(|error| format!("it does not answer CQL: {error}"))?;
    if others == 0 {
        return Ok(());
    }
    match probe::peers(address) {
        Ok(peers) if peers >= others => Ok(()),
        Ok(peers) => Err(format!("it knows {peers} of {others} others")),
        Err(error) => Err(format!("it does not say whom it knows: {error}")),
    }
}

fn in_lines(argv: &[OsString]) -> String {
    argv.iter().map(|word| format!("{}\n", word.to_string_lossy())).collect()
}

fn make_dir(path: &Path) -> Result<(), StartError> {
    fs::create_dir_all(path).map_err(|cause| StartError::File { path: path.to_owned(), cause })
}

fn write(path: &Path, text: &str) -> Result<(), StartError> {
    fs::write(path, text).map_err(|cause| StartError::File { path: path.to_owned(), cause })
}
