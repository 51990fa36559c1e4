//! What `up` has started: remembered across programs, so that it can be found and ended.
//!
//! Input: a directory (`dirs::state()`). Output: a file `up/NAME.json` for every deployment. A
//! process is known by its pid, its start time and the boot it was started in, so that nobody
//! else's process is ever taken for it.
//!
//! Source: proc(5), `/proc/sys/kernel/random/boot_id`. Limits: files of at most [`FILE_SIZE_MAX`].

use crate::{ProcessId, Signal, SignalError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;
use units::{Bytes, Nanos, clock, read_plain_text};

const FILE_SIZE_MAX: Bytes = Bytes(1 << 20);
const NAME_CHARS_MAX: usize = 48;
const POLL: Duration = Duration::from_millis(20);
/// A killed process is gone after this, unless the kernel has it stuck.
const KILL_MAX: Nanos = Nanos::from_secs(10);

/// The version of the file's keys.
pub const SCHEMA: u32 = 1;

/// Something that `up` has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// What it is: `cassandra`.
    pub kind: String,
    /// Its release.
    pub version: String,
    /// When it was started, UTC, RFC 3339.
    pub started: String,
    /// Whether it has been seen up; if not, `up` is still waiting, or was killed.
    pub ready: bool,
    /// The boot that its processes belong to.
    pub boot_id: String,
    /// Directory of its software.
    pub software: PathBuf,
    /// Directory of its data.
    pub data: PathBuf,
    /// Directory of its logs.
    pub logs: PathBuf,
    /// Its processes.
    pub instances: Vec<Deployed>,
}

/// A process of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployed {
    /// Its name.
    pub name: String,
    /// Who it is.
    pub process: ProcessId,
    /// Where it answers.
    pub address: SocketAddr,
    /// The cpus that it was put on.
    pub cpus: String,
}

/// Why what is up is not known or not ended. Each text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum StateError {
    #[error(
        "'{name}' is up already, or its processes died and it was not taken down: \
         `wideload down {name}` first, or give another --name"
    )]
    Exists { name: String },
    #[error("'{name}' is no name: give 1 to 48 letters, digits, '-', '_' and '.', no '.' first")]
    Name { name: String },
    #[error("nothing called '{name}' is up{}; see `wideload ps`", listed(known))]
    Unknown { name: String, known: Vec<String> },
    #[error("cannot read {}: {reason}; see what still runs and remove the file", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("cannot write {}: {cause}; free space, or set XDG_STATE_HOME to a writable place",
        path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error("process {pid} of '{name}' is killed and still there; is its disk stuck?")]
    Stuck { name: String, pid: u32 },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!(" (there is: {})", known.join(", ")) }
}

impl Deployment {
    /// Whether this very process still runs.
    #[must_use]
    pub fn runs(&self, deployed: &Deployed) -> bool {
        self.boot_id == boot_id() && deployed.process.is_alive()
    }

    /// Whether any of its processes still runs.
    #[must_use]
    pub fn any_runs(&self) -> bool {
        self.instances.iter().any(|deployed| self.runs(deployed))
    }

    /// Ends its processes: SIGTERM, after `grace` SIGKILL.
    ///
    /// # Errors
    /// When one may not be signalled or does not end.
    pub fn stop(&self, grace: Nanos) -> Result<(), StateError> {
        let running = || self.instances.iter().filter(|deployed| self.runs(deployed));
        for (signals, patience) in
            [(&[Signal::TERM, Signal::CONT][..], grace), (&[Signal::KILL][..], KILL_MAX)]
        {
            for deployed in running() {
                for signal in signals {
                    deployed.process.signal(*signal)?;
                }
            }
            let deadline = clock::now() + patience;
            while running().next().is_some() && clock::now() < deadline {
                sleep(POLL);
            }
        }
        match running().next() {
            Some(deployed) => {
                Err(StateError::Stuck { name: self.name.clone(), pid: deployed.process.pid })
            }
            None => Ok(()),
        }
    }
}

/// The kernel's name for the time since it was started; empty where it has none.
#[must_use]
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// The deployments of this user.
#[derive(Debug, Clone)]
pub struct States {
    dir: PathBuf,
}

impl States {
    /// Those remembered below `state_dir`.
    #[must_use]
    pub fn below(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("up") }
    }

    /// Fails when the name is taken or none; nothing is written.
    ///
    /// # Errors
    /// [`StateError::Exists`] or [`StateError::Name`].
    pub fn ensure_free(&self, name: &str) -> Result<(), StateError> {
        match self.path(name)?.exists() {
            true => Err(StateError::Exists { name: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// Remembers a new deployment; of two at once only one succeeds.
    ///
    /// # Errors
    /// [`StateError::Exists`] when the name is taken, others when it cannot be written.
    pub fn claim(&self, deployment: &Deployment) -> Result<(), StateError> {
        let path = self.path(&deployment.name)?;
        let written = self.write_beside(&path, deployment)?;
        let linked = fs::hard_link(&written, &path);
        // The link has the content; a file that stays is overwritten by the next.
        let _ = fs::remove_file(&written);
        linked.map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => StateError::Exists { name: deployment.name.clone() },
            _ => StateError::Unwritable { path, cause },
        })
    }

    /// Remembers what has become of a deployment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn update(&self, deployment: &Deployment) -> Result<(), StateError> {
        let path = self.path(&deployment.name)?;
        let written = self.write_beside(&path, deployment)?;
        fs::rename(&written, &path).map_err(|cause| StateError::Unwritable { path, cause })
    }

    /// Forgets one; unknown names are no error.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget(&self, name: &str) -> Result<(), StateError> {
        let path = self.path(name)?;
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(StateError::Unwritable { path, cause })
            }
            _ => Ok(()),
        }
    }

    /// The deployment of this name.
    ///
    /// # Errors
    /// [`StateError::Unknown`] with the names that there are, or what is wrong with its file.
    pub fn get(&self, name: &str) -> Result<Deployment, StateError> {
        let path = self.path(name)?;
        if path.exists() {
            return read(&path);
        }
        let known = self.all()?.into_iter().map(|deployment| deployment.name).collect();
        Err(StateError::Unknown { name: name.to_owned(), known })
    }

    /// All deployments, by name.
    ///
    /// # Errors
    /// When a file is not readable.
    pub fn all(&self) -> Result<Vec<Deployment>, StateError> {
        let unreadable = |cause: io::Error| StateError::Unreadable {
            path: self.dir.clone(),
            reason: cause.to_string(),
        };
        let entries = match fs::read_dir(&self.dir) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unreadable)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| read(path)).collect()
    }

    fn path(&self, name: &str) -> Result<PathBuf, StateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = (1..=NAME_CHARS_MAX).contains(&name.len())
            && name.chars().all(plain)
            && !name.starts_with(['.', '-']);
        match fits {
            true => Ok(self.dir.join(format!("{name}.json"))),
            false => Err(StateError::Name { name: name.to_owned() }),
        }
    }

    fn write_beside(&self, path: &Path, deployment: &Deployment) -> Result<PathBuf, StateError> {
        let unwritable = |cause| StateError::Unwritable { path: path.to_owned(), cause };
        fs::create_dir_all(&self.dir).map_err(unwritable)?;
        let text = serde_json::to_vec_pretty(deployment).map_err(|e| unwritable(e.into()))?;
        let beside = path.with_extension(format!("tmp-{}", std::process::id()));
        fs::write(&beside, text).map_err(unwritable)?;
        Ok(beside)
    }
}

fn read(path: &Path) -> Result<Deployment, StateError> {
    let unreadable = |reason: String| StateError::Unreadable { path: path.to_owned(), reason };
    let text =
        read_plain_text(path, FILE_SIZE_MAX).map_err(|cause| unreadable(cause.to_string()))?;
    let deployment: Deployment =
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    match deployment.schema {
        SCHEMA => Ok(deployment),
        other => Err(unreadable(format!("it is of schema {other}, this program knows {SCHEMA}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn deployment(name: &str, processes: &[ProcessId]) -> Deployment {
        let deployed = |process: &ProcessId| Deployed {
            name: "cassandra-1".into(),
            process: *process,
            address: "127.0.0.1:9042".parse().unwrap(),
            cpus: "0".into(),
        };
        Deployment {
            schema: SCHEMA,
            name: name.into(),
            kind: "cassandra".into(),
            version: "5.0.5".into(),
            started: "2026-11-20T11:06:36Z".into(),
            ready: false,
            boot_id: boot_id(),
            software: "/s".into(),
            data: "/d".into(),
            logs: "/l".into(),
            instances: processes.iter().map(deployed).collect(),
        }
    }

    #[test]
    fn a_name_is_taken_once() {
        let dir = TempDir::new().unwrap();
        let states = States::below(dir.path());
        assert_eq!(states.all().unwrap(), []);
        let mut one = deployment("one", &[]);
        states.claim(&one).unwrap();
        let error = states.claim(&one).unwrap_err();
        assert!(error.to_string().contains("wideload down one"), "{error}");
        assert!(states.ensure_free("one").is_err());
        states.ensure_free("two").unwrap();
        one.ready = true;
        states.update(&one).unwrap();
        assert_eq!(states.all().unwrap(), [one.clone()]);
        assert_eq!(states.get("one").unwrap(), one);
        let error = states.get("two").unwrap_err().to_string();
        assert!(error.contains("there is: one"), "{error}");
        states.forget("one").unwrap();
        states.forget("one").unwrap();
        assert_eq!(fs::read_dir(dir.path().join("up")).unwrap().count(), 0);
    }

    #[test]
    fn bad_names_and_bad_files_are_named() {
        let dir = TempDir::new().unwrap();
        let states = States::below(dir.path());
        for name in ["", ".x", "-x", "a/b", "a b", &"x".repeat(49)] {
            assert!(matches!(states.get(name), Err(StateError::Name { .. })), "{name}");
        }
        states.claim(&deployment("x", &[])).unwrap();
        for text in ["", "{", "{\"schema\": 2}"] {
            fs::write(dir.path().join("up/x.json"), text).unwrap();
            let error = states.all().unwrap_err().to_string();
            assert!(error.contains("x.json"), "{error}");
        }
    }

    #[test]
    fn only_the_very_process_is_ended() {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = ProcessId::of(sleeper.id()).unwrap();
        let recycled = ProcessId { start_ticks: process.start_ticks + 1, ..process };
        let other_boot = Deployment { boot_id: "another".into(), ..deployment("a", &[process]) };
        for not_ours in [deployment("a", &[recycled]), other_boot] {
            assert!(!not_ours.any_runs());
            not_ours.stop(Nanos::ZERO).unwrap();
            assert!(process.is_alive());
        }
        let ours = deployment("a", &[process]);
        assert!(ours.any_runs());
        ours.stop(Nanos::from_secs(10)).unwrap();
        assert!(!ours.any_runs());
        sleeper.wait().unwrap();
    }
}
