//! Where the target comes from: the reference target or Cassandra as a child on its own cpus, or
//! addresses of a running one.

use crate::error::LabError;
use serde_json::{Value, json};
use stage::cassandra::{self, Cluster, Options, Placement};
use stage::{Child, Program};
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
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
    /// The reference target, started for this trial and stopped afterwards.
    Reference {
        /// Its storage.
        storage: Storage,
    },
    /// Cassandra, started for this trial and stopped afterwards.
    Cassandra {
        /// Which, and how it is set.
        options: Box<Options>,
        /// Where its data go; in the trial's directory when None.
        data_dir: Option<PathBuf>,
    },
    /// Something that runs already: `HOST[:PORT]`, port 9042 by default.
    Running {
        /// As given.
        hosts: Vec<String>,
    },
}

/// The port of CQL.
const CQL_PORT: u16 = 9042;
/// How long the reference target may take to listen.
const START_MAX: Nanos = Nanos::from_secs(20);
/// How long it may take to end after SIGTERM.
const STOP_MAX: Nanos = Nanos::from_secs(3);

/// A target that answers at `addresses`; a child is stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct Provisioned {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) child: Option<Child>,
    pub(crate) cluster: Option<Cluster>,
    /// What is known of a cluster, for the manifest.
    pub(crate) facts: Value,
}

impl Provisioned {
    /// Ends what was started.
    pub(crate) fn stop(mut self) -> Result<(), LabError> {
        if let Some(child) = &mut self.child {
            child.terminate(STOP_MAX)?;
        }
        if let Some(cluster) = self.cluster {
            cluster.stop()?;
        }
        Ok(())
    }

    /// The processes that answer; none of a target that is somebody else's.
    pub(crate) fn processes(&self) -> Vec<stage::ProcessId> {
        let cluster = self.cluster.iter().flat_map(|c| c.instances()).map(|i| i.process());
        self.child.iter().map(Child::id).chain(cluster).collect()
    }

    /// Whether it was started for this trial.
    pub(crate) fn is_ours(&self) -> bool {
        self.child.is_some() || self.cluster.is_some()
    }
}

/// The command line of the reference target on `cpus`.
pub(crate) fn reference_argv(storage: Storage, cpus: &CpuSet) -> Vec<OsString> {
    let program = std::env::current_exe().map_or_else(|_| "wideload".into(), OsString::from);
    let cpus = cpus.to_string();
    let words = ["serve", "--listen", "127.0.0.1:0", "--storage", storage.name(), "--cpus", &cpus];
    std::iter::once(program).chain(words.iter().map(OsString::from)).collect()
}

/// Starts the reference target and waits until it answers. `raw` is the directory for its log.
pub(crate) fn reference(
    storage: Storage,
    cpus: &CpuSet,
    raw: &Path,
    stop: &AtomicBool,
) -> Result<Provisioned, LabError> {
    std::env::current_exe().map_err(LabError::Program)?;
    let program = Program {
        host: "local".to_owned(),
        instance: "reference".to_owned(),
        argv: reference_argv(storage, cpus),
        cpus: cpus.clone(),
        log: raw.join("reference-target.log"),
    };
    let child = stage::spawn(&program)?;
    let deadline = clock::now() + START_MAX;
    let address = loop {
        let announced = child.last_lines().iter().find_map(|line| announced(line));
        if let Some(address) = announced {
            break address;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        if !child.is_running() || clock::now() > deadline {
            return Err(LabError::Announce { last_lines: child.last_lines() });
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    child.wait_ready(address, START_MAX)?;
    Ok(Provisioned {
        addresses: vec![address],
        child: Some(child),
        cluster: None,
        facts: Value::Null,
    })
}

/// Starts Cassandra on `cpus` and waits until it can be used. Its logs and configuration go to
/// `raw`, its data beside it or to `data_dir`. `said` hears what takes time.
pub(crate) fn cassandra(
    options: &Options,
    data_dir: Option<&Path>,
    cpus: &CpuSet,
    raw: &Path,
    said: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Provisioned, LabError> {
    let prepared = cassandra::prepare(options, said, stop).map_err(cassandra::StartError::from)?;
    let data = match data_dir {
        Some(dir) => dir.join(format!("wideload-run-{}", std::process::id())),
        None => raw.with_file_name("data"),
    };
    let facts = json!({
        "java": prepared.java().version,
        "java_program": prepared.java().program,
        "heap_bytes": prepared.heap().size.0,
        "heap_reason": prepared.heap().why,
        "data": data,
    });
    let (version, heap) = (prepared.version().to_string(), prepared.heap().size);
    said(&format!("starting Cassandra {version} on cpus {cpus}, heap {heap}"));
    let addresses = prepared.addresses();
    let placement = Placement {
        name: "wideload-run".to_owned(),
        cpus: vec![cpus.clone()],
        data,
        logs: raw.to_owned(),
        detached: false,
    };
    let cluster = Cluster::spawn(prepared, &placement)?;
    cluster.wait(stop)?;
    Ok(Provisioned { addresses, child: None, cluster: Some(cluster), facts })
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
pub(crate) fn running(hosts: &[String], stop: &AtomicBool) -> Result<Provisioned, LabError> {
    let addresses = hosts.iter().map(|host| address(host, stop)).collect::<Result<_, _>>()?;
    Ok(Provisioned { addresses, child: None, cluster: None, facts: Value::Null })
}

/// The address of a host, by a number or a name.
fn address(host: &str, stop: &AtomicBool) -> Result<SocketAddr, LabError> {
    if let Ok(address) = host.parse() {
        return Ok(SocketAddr::new(address, CQL_PORT));
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
    let name = if has_port(host) { host.to_owned() } else { format!("{host}:{CQL_PORT}") };
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
        let addresses = running(&hosts, &stop).unwrap().addresses;
        let expected = ["127.0.0.1:9042", "127.0.0.1:19042", "[::1]:9043", "[::1]:9042"];
        assert_eq!(addresses, expected.map(|a| a.parse().unwrap()));
        let error = running(&["no-such-host.invalid".to_owned()], &stop).unwrap_err();
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
