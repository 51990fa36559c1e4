//! Idle states and energy preferences: what makes an idle cpu slow to wake or to clock up.
//!
//! Input: `sys/devices/system/cpu/cpu*/{cpuidle,cpufreq,power}`. Output: [`Power`], latencies in
//! microseconds. Source: the kernel's Documentation/admin-guide/pm/{cpuidle,intel_epb}.rst.

use crate::source::Source;
use std::collections::BTreeMap;
use units::{CpuId, CpuSet};

/// How cpus save energy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Power {
    /// Idle states, shallow ones first; empty where the kernel manages none (most guests).
    pub idle: Vec<IdleState>,
    /// Energy performance preference (EPP) -> its cpus.
    pub preferences: BTreeMap<String, CpuSet>,
    /// Energy performance bias (EPB), 0 (performance) to 15 (power save) -> its cpus.
    pub biases: BTreeMap<String, CpuSet>,
}

/// A state that an idle cpu may enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleState {
    /// As the driver calls it: `POLL`, `C1`, `C6`.
    pub name: String,
    /// How long it takes to leave it, in microseconds.
    pub exit_us: u32,
    /// Cpus on which it is allowed.
    pub enabled: CpuSet,
}

pub(crate) fn read(source: &Source, cpus: &CpuSet) -> Power {
    let by_value = |file: &str| {
        let mut values: BTreeMap<String, Vec<CpuId>> = BTreeMap::new();
        for cpu in cpus.iter() {
            let path = format!("sys/devices/system/cpu/cpu{}/{file}", cpu.0);
            if let Some(value) = source.text(&path).filter(|value| !value.is_empty()) {
                values.entry(value).or_default().push(cpu);
            }
        }
        values.into_iter().map(|(value, cpus)| (value, cpus.into_iter().collect())).collect()
    };
    Power {
        idle: idle(source, cpus),
        preferences: by_value("cpufreq/energy_performance_preference"),
        biases: by_value("power/energy_perf_bias"),
    }
}

/// The states of all cpus, merged by name and latency.
fn idle(source: &Source, cpus: &CpuSet) -> Vec<IdleState> {
    let mut states: BTreeMap<(u32, String), Vec<CpuId>> = BTreeMap::new();
    for cpu in cpus.iter() {
        let dir = format!("sys/devices/system/cpu/cpu{}/cpuidle", cpu.0);
        for number in source.numbered(&dir, "state") {
            let file = |name: &str| format!("{dir}/state{number}/{name}");
            let (Some(name), Some(exit_us)) =
                (source.text(&file("name")), source.number(&file("latency")))
            else {
                continue;
            };
            let on = states.entry((exit_us, name)).or_default();
            // Kernels before 2.6.39 cannot disable one.
            if source.flag(&file("disable")) != Some(true) {
                on.push(cpu);
            }
        }
    }
    let state = |((exit_us, name), cpus): ((u32, String), Vec<CpuId>)| IdleState {
        name,
        exit_us,
        enabled: cpus.into_iter().collect(),
    };
    states.into_iter().map(state).collect()
}
