//! The part of the target that runs on this host: started for the trial, or found listening.
//!
//! In: what was provisioned and the addresses to drive. Out: processes, their cpus, and whether
//! there is more of it that cannot be seen.

use crate::provision::Provisioned;
use crate::trial::Trial;
use stage::{ProcessId, listener};
use std::net::SocketAddr;
use units::{CpuId, CpuSet};

/// The target on this host.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalTarget {
    pub(crate) processes: Vec<ProcessId>,
    /// That these may run on.
    pub(crate) cpus: CpuSet,
    /// Addresses of this host whose process cannot be found.
    pub(crate) unknown: Vec<SocketAddr>,
    /// All addresses are this host's.
    pub(crate) all_here: bool,
}

impl LocalTarget {
    pub(crate) fn of(trial: &Trial, target: &Provisioned, addresses: &[SocketAddr]) -> Self {
        if target.is_ours() {
            let (processes, cpus) = (target.processes(), trial.target_cpus());
            return Self { processes, cpus, unknown: Vec::new(), all_here: true };
        }
        let (here, elsewhere): (Vec<SocketAddr>, Vec<SocketAddr>) =
            addresses.iter().partition(|address| listener::is_here(address.ip()));
        let mut found = Self { all_here: elsewhere.is_empty(), ..Self::default() };
        let mut cpus: Vec<CpuId> = Vec::new();
        for (listener, address) in listener::at(&here).into_iter().zip(here) {
            match listener {
                Some(listener) if found.processes.contains(&listener.process) => {}
                Some(listener) => {
                    found.processes.push(listener.process);
                    cpus.extend(listener.cpus.iter());
                }
                None => found.unknown.push(address),
            }
        }
        found.cpus = cpus.into_iter().collect();
        found
    }
}
