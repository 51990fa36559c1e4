//! What a machine's settings say against numbers that come from it.
//!
//! Input: a [`Machine`], the cpus that client and target use on it, and whether a Cassandra runs
//! there. Output: caveats. Pure: a recorded machine is judged as a live one.
//!
//! Source: Intel's Cassandra tuning guide and DataStax's recommended production settings
//! (governor, transparent huge pages), Seastar's perftune (clock source). Limits: this host only;
//! the settings of a target elsewhere are not known.

use machine::{Machine, Settings};
use record::Caveat;
use units::CpuSet;

/// The governor that does not wait for load before it raises the clock.
const GOVERNOR: &str = "performance";
/// Clock sources that are read without a system call: x86, Arm, POWER, s390, RISC-V.
const CLOCK_SOURCES: [&str; 5] =
    ["tsc", "arch_sys_counter", "timebase", "tod", "riscv_clocksource"];
/// The same in a guest, where the hypervisor's page says how to read the TSC.
const GUEST_CLOCK_SOURCES: [&str; 3] = ["kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The host of the client.
    pub machine: &'a Machine,
    /// Cpus of the client, and of the target where it is known to be on this host.
    pub cpus: &'a CpuSet,
    /// Whether a Cassandra runs on this host.
    pub cassandra_here: bool,
}

/// Caveats of how the machine is set.
#[must_use]
pub fn surroundings(of: &Surroundings<'_>) -> Vec<Caveat> {
    let settings = &of.machine.settings;
    let thp = if of.cassandra_here { huge_pages(settings) } else { None };
    [governor(settings, of.cpus), clock_source(settings), thp].into_iter().flatten().collect()
}

fn governor(settings: &Settings, cpus: &CpuSet) -> Option<Caveat> {
    let slow: Vec<String> = settings
        .governors
        .iter()
        .filter(|(name, _)| *name != GOVERNOR)
        .map(|(name, of)| (name, of.intersection(cpus)))
        .filter(|(_, of)| !of.is_empty())
        .map(|(name, of)| format!("{name} on cpus {of}"))
        .collect();
    let text = "The frequency governor is not `performance`: clocks follow the load with a delay, \
                so that times depend on what ran before.";
    (!slow.is_empty()).then(|| {
        Caveat::new("governor", text)
            .evidence(format!("{} (cpufreq/scaling_governor)", slow.join(", ")))
            .cure("`sudo cpupower frequency-set -g performance`.")
    })
}

fn clock_source(settings: &Settings) -> Option<Caveat> {
    let source = settings.clock_source.as_deref()?;
    let guest = settings.virtualisation.hypervisor_flag != Some(false);
    let fine = CLOCK_SOURCES.contains(&source) || (guest && GUEST_CLOCK_SOURCES.contains(&source));
    (!fine).then(|| {
        let wanted = if guest { "tsc or kvm-clock" } else { "tsc" };
        let text = format!(
            "The kernel's clock source is {source}: every clock read costs a system call or more, \
             in the client and in the target."
        );
        Caveat::new("clock-source", text)
            .evidence(format!("clocksource0/current_clocksource is {source}, not {wanted}"))
            .cure(
                "`echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/\
                 current_clocksource`, where available_clocksource offers it.",
            )
    })
}

/// Cassandra's advice: no defragmentation on a page fault. Where huge pages come only on request,
/// a JVM that does not request them is not touched.
fn huge_pages(settings: &Settings) -> Option<Caveat> {
    let (enabled, defrag) = (settings.thp_enabled.as_deref()?, settings.thp_defrag.as_deref()?);
    (enabled == "always" && defrag != "never").then(|| {
        let text = "Transparent huge pages are on for every program: the kernel may stall \
                    Cassandra to make them, which shows as long pauses.";
        Caveat::new("thp", text)
            .evidence(format!("transparent_hugepage/enabled {enabled}, defrag {defrag}"))
            .cure("`echo never | sudo tee /sys/kernel/mm/transparent_hugepage/defrag`.")
    })
}
