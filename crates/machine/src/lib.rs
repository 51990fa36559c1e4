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
mod archive;
mod caches;
mod confine;
mod disks;
mod facts;
mod kernel;
pub mod layout;
mod nics;
mod numa;
mod outline;
mod parse;
pub mod picture;
mod places;
mod pmem;
mod power;
mod processes;
mod recording;
mod settings;
mod source;
mod split;
mod synthetic;
mod tasks;
mod topology;
mod tree;

pub use activity::{Activity, ActivityReader, CpuTimes};
pub use archive::ArchiveError;
pub use caches::{Cache, CacheKind};
pub use disks::Disk;
pub use facts::Facts;
pub use kernel::Sysctls;
pub use nics::{Irq, Nic};
pub use numa::{Access, HugePages, Numa};
pub use places::{Core, Die, Llc, Package, Place};
pub use pmem::{DaxMount, Pmem};
pub use power::{IdleState, Power};
pub use processes::{Limit, Limits, Listener, listener};
pub use recording::{RecordError, Recording, replace};
pub use settings::{Settings, Virtualisation};
pub use split::{Split, client_and_target_cpus, one_per_core};
pub use synthetic::SyntheticError;
pub use tasks::{Process, Tasks};
pub use topology::{CoreKind, Cpu};
pub use tree::TreeError;

use caches::as_groups;
use serde::Serialize;
use source::Source;
use std::path::{Path, PathBuf};
use thiserror::Error;
use topology::{CPU_DIR, as_list};
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
    /// Online, and this process may run on them (affinity, cpuset); equal to `online` where
    /// the tree does not say.
    #[serde(serialize_with = "as_list")]
    pub allowed: CpuSet,
    /// Memory that this process's cgroup allows; `None` where nothing limits it to less than
    /// there is.
    pub memory_limit_bytes: Option<u64>,
    /// Cpus that the scheduler leaves alone (`isolcpus=`).
    #[serde(serialize_with = "as_list")]
    pub isolated: CpuSet,
    /// Cpus without a tick while one task runs (`nohz_full=`).
    #[serde(serialize_with = "as_list")]
    pub nohz_full: CpuSet,
    /// All present cpus, ascending.
    pub cpus: Vec<Cpu>,
    /// Kinds of cores, the fastest first; empty where all are alike.
    pub kinds: Vec<CoreKind>,
    /// All caches of online cpus, by level, kind and lowest cpu.
    #[serde(serialize_with = "as_groups")]
    pub caches: Vec<Cache>,
    /// NUMA nodes, ascending; empty where the kernel shows none.
    pub numa: Vec<Numa>,
    /// Network interfaces with a device behind them, by name.
    pub nics: Vec<Nic>,
    /// Block devices that can hold data, by name.
    pub disks: Vec<Disk>,
    /// Persistent memory: regions, then dax devices.
    pub pmem: Vec<Pmem>,
    /// File systems without page cache.
    pub dax_mounts: Vec<DaxMount>,
    /// What is set, and what this is.
    pub settings: Settings,
}

/// Why a directory is not a machine.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The root cannot be listed.
    #[error(
        "cannot read the machine at {}: {cause}; give /, a recorded directory or an archive of one",
        root.display()
    )]
    Root {
        /// What was given.
        root: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
    /// A file that is no archive of a machine.
    #[error("cannot read the archive {}: {cause}", file.display())]
    Archive {
        /// What was given.
        file: PathBuf,
        /// What is wrong with it.
        cause: ArchiveError,
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
    /// Not one of its cpus is scheduled on.
    #[error(
        "of the cpus that {} shows none is online (sys/devices/system/cpu/online): record it \
         again, or mend that file", root.display()
    )]
    NoneOnline {
        /// What was given.
        root: PathBuf,
    },
}

/// A directory as it is, an archive unpacked into memory.
fn open(root: &Path) -> Result<Source, ReadError> {
    let unreadable = |cause| ReadError::Root { root: root.to_owned(), cause };
    if std::fs::metadata(root).map_err(unreadable)?.is_dir() {
        std::fs::read_dir(root).map_err(unreadable)?;
        return Ok(Source::new(root));
    }
    let tree =
        archive::read(root).map_err(|cause| ReadError::Archive { file: root.to_owned(), cause })?;
    Ok(Source::memory(tree))
}

impl Machine {
    /// Reads the machine below `root`: `/` for this one, else a recorded tree with `sys` and
    /// `proc` in it, or an archive of one (tar, plain or with gzip or bzip2).
    ///
    /// # Errors
    /// When `root` cannot be read, or names no cpu at all. Single missing files are no error.
    pub fn read(root: &Path) -> Result<Self, ReadError> {
        Self::of(&open(root)?, root)
    }

    fn of(source: &Source, root: &Path) -> Result<Self, ReadError> {
        let root = || root.to_owned();
        match Self::from_source(source) {
            None => Err(ReadError::NoCpu { root: root() }),
            Some(machine) if machine.online.is_empty() => {
                Err(ReadError::NoneOnline { root: root() })
            }
            Some(machine) => Ok(machine),
        }
    }

    /// A machine that is only described, its parts from the outside in:
    /// `package:2 die:4 numa:1 llc:2 core:4 cpu:2` is two sockets of four dies, each a NUMA node
    /// with two last-level caches of four cores with two threads. `numa:1(memory=32GiB)` and
    /// `llc:2(size=8MiB)` give sizes. Cpus are numbered as firmware of x86 servers does: the first
    /// threads of all cores, then the second ones; distances are 10, 16 within a package, else 32.
    ///
    /// # Errors
    /// When the text is not of the form, with the place in it; when the machine is too large.
    pub fn synthetic(description: &str) -> Result<Self, SyntheticError> {
        let tree = synthetic::tree(description)?;
        Self::from_source(&Source::memory(tree)).ok_or(SyntheticError::Empty)
    }

    /// What a description leaves open, and [`Machine::synthetic`] makes up: memory, where it says
    /// nothing of that.
    #[must_use]
    pub fn assumed_of(description: &str) -> Option<String> {
        synthetic::memory_assumed(description).map(|each| {
            format!("the description says nothing of it: {each} for each NUMA node is assumed")
        })
    }

    /// `None` where nothing names a cpu.
    fn from_source(source: &Source) -> Option<Self> {
        let (present, online) = topology::present_and_online(source);
        if present.is_empty() {
            return None;
        }
        let confined = confine::read(source);
        let numa = numa::read(source, &online, confined.numa.as_deref());
        let caches = caches::read(source, &online);
        let cpus = topology::cpus(source, &present, &numa, &caches);
        let settings = settings::read(source, &present);
        let set = |name: &str| source.cpus(&[&format!("{CPU_DIR}/{name}")], &[]);
        Some(Self {
            offline: present.difference(&online),
            allowed: confined.cpus.map_or_else(|| online.clone(), |of| of.intersection(&online)),
            memory_limit_bytes: confined
                .memory_bytes
                .filter(|&limit| settings.memory_bytes.is_none_or(|all| all > limit)),
            isolated: set("isolated").unwrap_or_default(),
            nohz_full: set("nohz_full").unwrap_or_default(),
            kinds: topology::kinds(source, &online),
            nics: nics::read(source),
            disks: disks::read(source),
            pmem: pmem::read(source),
            dax_mounts: pmem::mounts(source),
            settings,
            present,
            online,
            cpus,
            caches,
            numa,
        })
    }

    /// Memory that this process and what it starts can have.
    #[must_use]
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        self.memory_limit_bytes.or(self.settings.memory_bytes)
    }

    /// Of the memory of a NUMA node what a cgroup's limit leaves, if all nodes are used alike.
    pub(crate) fn limited(&self, memory_bytes: u64) -> u64 {
        let all: u64 = self.numa.iter().filter_map(|numa| numa.memory_bytes).sum();
        match self.memory_limit_bytes {
            Some(limit) if limit < all => {
                (u128::from(memory_bytes) * u128::from(limit) / u128::from(all)) as u64
            }
            _ => memory_bytes,
        }
    }

    /// What is known of one cpu.
    #[must_use]
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        self.cpus.binary_search_by_key(&id, |cpu| cpu.id).ok().map(|i| &self.cpus[i])
    }
}
