//! A machine as data: its cpus, its memory and the settings that decide what a result is worth.
//!
//! Input: the text of sysfs and procfs below a root, live (`/`) or recorded in a directory.
//! Output: [`Machine`], for planning and for the manifest; [`Activity`], what it is doing. Nothing
//! is bound, only text is read, so that the same reader serves the local host, a copied tree and,
//! later, another host.
//!
//! Source: the kernel's Documentation/ABI/stable/sysfs-devices-system-cpu and
//! sysfs-devices-node, proc(5). Limits: files that a kernel does not have are `None`, of each
//! file at most 4 MiB are read, cpu numbers end at 65535.

mod activity;
mod disks;
mod facts;
mod kernel;
mod nics;
mod parse;
mod power;
mod processes;
mod settings;
mod source;
mod split;
mod tasks;
mod topology;

pub use activity::{Activity, ActivityReader, CpuTimes};
pub use disks::Disk;
pub use facts::Facts;
pub use kernel::Sysctls;
pub use nics::Nic;
pub use power::{IdleState, Power};
pub use processes::{Limit, Limits, Listener, listener};
pub use settings::{Settings, Virtualisation};
pub use split::{Split, client_and_target_cpus, one_per_core};
pub use tasks::{Process, Tasks};
pub use topology::{Cpu, Numa};

use serde::Serialize;
use source::Source;
use std::path::{Path, PathBuf};
use thiserror::Error;
use topology::as_list;
use units::{CpuId, CpuSet};

/// One machine, as its kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Cpus that are plugged in.
    #[serde(serialize_with = "as_list")]
    pub present: CpuSet,
    /// Cpus that the kernel schedules on.
    #[serde(serialize_with = "as_list")]
    pub online: CpuSet,
    /// Present, and switched off.
    #[serde(serialize_with = "as_list")]
    pub offline: CpuSet,
    /// Online, and this process may run on them (affinity, cgroup); equal to `online` where
    /// the tree does not say.
    #[serde(serialize_with = "as_list")]
    pub allowed: CpuSet,
    /// All present cpus, ascending.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes, ascending; empty where the kernel shows none.
    pub numa: Vec<Numa>,
    /// What is set, and what this is.
    pub settings: Settings,
}

/// Why a directory is not a machine.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The root cannot be listed.
    #[error(
        "cannot read the machine at {}: {cause}; give / or a recorded directory",
        root.display()
    )]
    Root {
        /// What was given.
        root: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// Nothing below it names a cpu.
    #[error(
        "{} shows no cpu: neither sys/devices/system/cpu/cpu0 nor proc/cpuinfo is in it; \
         give / or the top of a recorded tree", root.display()
    )]
    NoCpu {
        /// What was given.
        root: PathBuf,
    },
}

impl Machine {
    /// Reads the machine below `root`: `/` for this one, else a recorded tree with `sys` and
    /// `proc` in it.
    ///
    /// # Errors
    /// When `root` cannot be listed, or names no cpu at all. Single missing files are no error.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        std::fs::read_dir(root)
            .map_err(|cause| ReadError::Root { root: root.to_owned(), cause })?;
        let source = Source::new(root);
        let (present, online) = topology::present_and_online(&source);
        if present.is_empty() {
            return Err(ReadError::NoCpu { root: root.to_owned() });
        }
        let numa = topology::numa(&source);
        let cpus = present.iter().map(|id| topology::cpu(&source, id, &numa)).collect();
        let allowed = source
            .text("proc/self/status")
            .and_then(|status| parse::field(&status, &["Cpus_allowed_list"])?.parse().ok())
            .map_or_else(|| online.clone(), |allowed: CpuSet| allowed.intersection(&online));
        Ok(Self {
            offline: present.difference(&online),
            settings: settings::read(&source, &present),
            present,
            online,
            allowed,
            cpus,
            numa,
        })
    }

    /// What is known of one cpu.
    #[must_use]
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|i| &self.cpus[i])
    }
}
