//! Where the target comes from: reference targets or Cassandras as children, each in its place, or
//! addresses of a running one.
//!
//! Several instances that were started are either one ring, or databases of their own, each with
//! all of the plan's keys and its share of the client's workers.

use crate::error::LabError;
use serde_json::{Value, json};
use stage::cassandra::{self, Cluster, Heap, HeapAsked, Options, Placement};
use stage::{Child, PagesPerNuma, Place, Program, Signal, VerifyError};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use units::{CpuSet, Nanos, clock};

/// Storage of the reference target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Rows in memory.
    Memory,
    /// Canned answers: a mock, for calibration.
    Null,
}

impl Storage {
    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Null => "null",
        }
    }
}

/// What is driven.
#[derive(Debug, Clone)]
pub enum TargetChoice {
    /// The reference target, one in each place, started for this trial and stopped afterwards.
    Reference {
        /// Its storage.
        storage: Storage,
        /// Each operation holds one lock of it for so long: a mock.
        serial: Option<Nanos>,
    },
    /// Cassandra, started for this trial and stopped afterwards.
    Cassandra {
        /// Which, and how it is set. As many instances as there are places form one ring; of one
        /// instance each place has its own.
        options: Box<Options>,
        /// Where its data go; in the trial's directory when None.
        data_dir: Option<PathBuf>,
    },
    /// Something that runs already: `HOST[:PORT]`, port 9042 by default, of records 3000.
    Running {
        /// As given.
        hosts: Vec<String>,
    },
}

/// The ports of CQL and of Aerospike's protocol.
const CQL_PORT: u16 = 9042;
const RECORDS_PORT: u16 = 3000;
/// How long the reference target may take to listen.
const START_MAX: Nanos = Nanos::from_secs(20);
/// How long it may take to end after SIGTERM.
const STOP_MAX: Nanos = Nanos::from_secs(3);

/// A target that answers at `addresses`; what was started is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Provisioned {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) children: Vec<Child>,
    pub(crate) clusters: Vec<Cluster>,
    /// Of what was started.
    pub(crate) version: Option<String>,
    /// What is known of a cluster, for the manifest.
    pub(crate) facts: Value,
}

impl Provisioned {
    /// Ends what was started.
    pub(crate) fn stop(mut self) -> Result<(), LabError> {
        for process in self.processes() {
            // All at once; whoever does not hear is killed below.
            let _ = process.signal(Signal::TERM);
        }
        for child in &mut self.children {
            child.terminate(STOP_MAX)?;
        }
        for cluster in self.clusters {
            cluster.stop()?;
        }
        Ok(())
    }

    /// So many databases these are, which know nothing of each other.
    pub(crate) fn databases(&self) -> usize {
        (self.children.len() + self.clusters.len()).max(1)
    }

    /// Of each instance that was started where its pages lie, or what of it is elsewhere than it
    /// was put: a thread, or too many pages.
    pub(crate) fn verify_pages(
        &self,
    ) -> impl Iterator<Item = Result<PagesPerNuma, VerifyError>> + '_ {
        let clusters = self.clusters.iter().flat_map(|cluster| cluster.instances());
        let children = self.children.iter().map(Child::verify_pages);
        children.chain(clusters.map(cassandra::Instance::verify_pages))
    }

    /// Likewise, None of an instance that has ended.
    pub(crate) fn verify_running(&self) -> Vec<Option<Result<PagesPerNuma, VerifyError>>> {
        let found = self.verify_pages().zip(self.processes());
        found.map(|(found, process)| process.is_alive().then_some(found)).collect()
    }

    /// The processes that answer; none of a target that is somebody else's.
    pub(crate) fn processes(&self) -> Vec<stage::ProcessId> {
        let clusters = self.clusters.iter().flat_map(|c| c.instances()).map(|i| i.process());
        self.children.iter().map(Child::id).chain(clusters).collect()
    }

    /// Lines of their output that are in no log.
    pub(crate) fn log_lines_lost(&self) -> u64 {
        let clusters = self.clusters.iter().flat_map(|cluster| cluster.instances());
        let children = self.children.iter().map(Child::log_lines_lost);
        children.chain(clusters.map(cassandra::Instance::log_lines_lost)).sum()
    }

    /// What took effect in the JVMs that were started, in their order.
    pub(crate) fn effects(&self) -> Vec<cassandra::Effect> {
        let instances = self.clusters.iter().flat_map(|cluster| cluster.instances());
        instances.map(cassandra::Instance::effect).collect()
    }

    /// Whether it was started for this trial.
    pub(crate) fn is_ours(&self) -> bool {
        !self.children.is_empty() || !self.clusters.is_empty()
    }
}

/// The command line of the reference target on `cpus`.
pub(crate) fn reference_argv(
    storage: Storage,
    serial: Option<Nanos>,
    cpus: &CpuSet,
    namespace: Option<&str>,
) -> Vec<OsString> {
    let program = std::env::current_exe().map_or_else(|_| "wideload".into(), OsString::from);
    let cpus = cpus.to_string();
    let words = ["serve", "--listen", "127.0.0.1:0", "--storage", storage.name(), "--cpus", &cpus];
    let serial = serial.map(|time| OsString::from(format!("--serial={time}")));
    let records = namespace.map(|name| ["--protocol", "aerospike", "--namespace", name]);
    let words = words.iter().copied().chain(records.into_iter().flatten()).map(OsString::from);
    std::iter::once(program).chain(words).chain(serial).collect()
}

/// Starts a reference target in each place and waits until all answer. `raw` is the directory for
/// their logs.
pub(crate) fn reference(
    storage: Storage,
    serial: Option<Nanos>,
    namespace: Option<&str>,
    places: &[Place],
    raw: &Path,
    stop: &AtomicBool,
) -> Result<Provisioned, LabError> {
    std::env::current_exe().map_err(LabError::Program)?;
    let start = |(index, place): (usize, &Place)| {
        let instance = numbered("reference", index, places.len());
        let program = Program {
            host: "local".to_owned(),
            argv: reference_argv(storage, serial, &place.cpus, namespace),
            cpus: place.cpus.clone(),
            memory: place.memory.clone(),
            log: raw.join(format!("{}.log", numbered("reference-target", index, places.len()))),
            instance,
        };
        stage::spawn(&program)
    };
    let children = places.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
    let deadline = clock::now() + START_MAX;
    let mut addresses = Vec::new();
    for child in &children {
        let address = listening(child, deadline, stop)?;
        child.wait_ready(address, START_MAX)?;
        child.verify()?;
        addresses.push(address);
    }
    let (clusters, version) = (Vec::new(), Some(env!("CARGO_PKG_VERSION").to_owned()));
    Ok(Provisioned { addresses, children, clusters, version, facts: Value::Null })
}

/// `name`, and which one where there are several.
fn numbered(name: &str, index: usize, of: usize) -> String {
    if of == 1 { name.to_owned() } else { format!("{name}-{}", index + 1) }
}

/// Where a reference target says that it listens.
fn listening(child: &Child, deadline: Nanos, stop: &AtomicBool) -> Result<SocketAddr, LabError> {
    loop {
        let announced = child.last_lines().iter().find_map(|line| announced(line));
        if let Some(address) = announced {
            return Ok(address);
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if !child.is_running() || clock::now() > deadline {
            return Err(LabError::Announce { last_lines: child.last_lines() });
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Where the data of a Cassandra go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DataDir<'a> {
    /// Into the trial's directory; they end with it.
    OfTrial,
    /// Likewise, into a directory of the user's.
    Below(&'a Path),
    /// There, where they may be already, and stay.
    Kept(&'a Path),
}

/// Starts Cassandra in its places and waits until it can be used: one ring when `options` say so,
/// else one by itself in each place. Logs and configuration go to `raw`. `said` hears what takes
/// time.
pub(crate) fn cassandra(
    options: &Options,
    data_dir: DataDir<'_>,
    places: &[Place],
    raw: &Path,
    said: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Provisioned, LabError> {
    let data = match data_dir {
        DataDir::Below(dir) => dir.join(format!("wideload-run-{}", std::process::id())),
        DataDir::OfTrial => raw.with_file_name("data"),
        DataDir::Kept(dir) => dir.to_owned(),
    };
    let alone = options.instances == 1 && places.len() > 1;
    let heap = alone.then(|| heap_of_each(options, places.len())).transpose()?;
    let size = heap.as_ref().map(|heap| HeapAsked::Each(heap.size));
    let (mut addresses, mut clusters) = (Vec::new(), Vec::new());
    let (mut version, mut facts) = (None, Value::Null);
    let groups: Vec<&[Place]> = if alone { places.chunks(1).collect() } else { vec![places] };
    for (index, &group) in groups.iter().enumerate() {
        let listen = Ipv4Addr::from(u32::from(options.listen).wrapping_add(index as u32));
        // Where the heap is decided, the flag that decided it is among its reasons no more.
        let jvm = options.jvm.iter().filter(|flag| size.is_none() || !flag.starts_with("-Xmx"));
        let jvm = jvm.cloned().collect();
        let own = Options { listen, heap: size.or(options.heap), jvm, ..options.clone() };
        let prepared = cassandra::prepare(&own, said, stop).map_err(cassandra::StartError::from)?;
        facts = json!({
            "java": prepared.java().version,
            "java_program": prepared.java().program,
            "heap_bytes": prepared.heap().size.0,
            "heap_reason": heap.as_ref().unwrap_or(prepared.heap()).why,
            "data": data,
        });
        let (release, size) = (prepared.version().to_string(), prepared.heap().size);
        for place in group {
            let cpus = &place.cpus;
            said(&format!("starting Cassandra {release} on cpus {cpus}, heap {size}"));
        }
        version = Some(release);
        addresses.extend(prepared.addresses());
        let placement = Placement {
            name: numbered("wideload-run", index, groups.len()),
            places: group.to_vec(),
            data: numbered_dir(&data, index, groups.len()),
            logs: match groups.len() {
                1 => raw.to_owned(),
                _ => raw.join(format!("instance-{}", index + 1)),
            },
            lasting: matches!(data_dir, DataDir::Kept(_)),
            detached: false,
        };
        clusters.push(Cluster::spawn(prepared, &placement)?);
    }
    for cluster in &clusters {
        cluster.wait(stop)?;
    }
    Ok(Provisioned { addresses, children: Vec::new(), clusters, version, facts })
}

/// The heap of each of so many that know nothing of each other, when all together fit.
fn heap_of_each(options: &Options, places: usize) -> Result<Heap, LabError> {
    let all = Options { instances: places as u32, ..options.clone() };
    let heap = cassandra::heap_of(&all).map_err(cassandra::PrepareError::from);
    Ok(heap.map_err(cassandra::StartError::from)?)
}

fn numbered_dir(dir: &Path, index: usize, of: usize) -> PathBuf {
    let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    dir.with_file_name(numbered(&name, index, of))
}

/// The address in `wideload serve`'s first line: `... on 127.0.0.1:9042 ...`.
fn announced(line: &str) -> Option<SocketAddr> {
    let words: Vec<_> = line.split_whitespace().collect();
    words
        .windows(2)
        .find(|pair| pair[0] == "on")
        .and_then(|pair| pair[1].trim_end_matches([',', ';', '.']).parse().ok())
}

/// Resolves the hosts of a running target: all addresses of a name count as one host, its first is
/// taken.
pub(crate) fn running(
    hosts: &[String],
    records: bool,
    stop: &AtomicBool,
) -> Result<Provisioned, LabError> {
    let port = if records { RECORDS_PORT } else { CQL_PORT };
    let addresses = hosts.iter().map(|host| address(host, port, stop)).collect::<Result<_, _>>()?;
    let (children, clusters, version) = (Vec::new(), Vec::new(), None);
    Ok(Provisioned { addresses, children, clusters, version, facts: Value::Null })
}

/// The address of a host, by a number or a name.
fn address(host: &str, port: u16, stop: &AtomicBool) -> Result<SocketAddr, LabError> {
    if let Ok(address) = host.parse() {
        return Ok(SocketAddr::new(address, port));
    }
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let failed = |source| LabError::Resolve { host: host.to_owned(), source };
    if cfg!(target_feature = "crt-static") {
        // The C library loads name services at run time, which a static program cannot.
        let source = std::io::Error::other("this static build looks no names up");
        return Err(failed(source));
    }
    // A name server may take its time, and nothing interrupts the C library: a thread that is left
    // behind waits for it.
    let (answer, answered) = std::sync::mpsc::sync_channel(1);
    let name = if has_port(host) { host.to_owned() } else { format!("{host}:{port}") };
    let look = move || drop(answer.send(name.to_socket_addrs()));
    let thread = std::thread::Builder::new().name("resolve".to_owned());
    thread.spawn(look).map_err(LabError::Thread)?;
    loop {
        match answered.recv_timeout(std::time::Duration::from_millis(50)) {
            Ok(resolved) => {
                let none = || std::io::Error::other("the name has no address");
                return resolved.and_then(|mut all| all.next().ok_or_else(none)).map_err(failed);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(std::io::Error::other("the look-up ended without an answer")));
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return Err(LabError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_port() {
        let hosts = ["127.0.0.1", "127.0.0.1:19042", "[::1]:9043", "::1"].map(str::to_owned);
        let stop = AtomicBool::new(false);
        let addresses = running(&hosts, false, &stop).unwrap().addresses;
        let expected = ["127.0.0.1:9042", "127.0.0.1:19042", "[::1]:9043", "[::1]:9042"];
        assert_eq!(addresses, expected.map(|a| a.parse().unwrap()));
        let error = running(&["no-such-host.invalid".to_owned()], false, &stop).unwrap_err();
        assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
        assert_eq!(error.exit_status(), 3);
    }

    #[test]
    fn the_announcement_of_the_target_is_found() {
        let line = "reference target (memory) on 127.0.0.1:41873, cpus 1";
        assert_eq!(announced(line), "127.0.0.1:41873".parse().ok());
        assert_eq!(announced("nothing here"), None);
    }
}
