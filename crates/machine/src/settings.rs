//! What is set on a machine, and what kind of machine it is.
//!
//! Input: procfs and the rest of sysfs. Output: [`Settings`], for the manifest: the things that
//! make two results differ on equal hardware.

use crate::numa::{HugePages, huge_pages};
use crate::parse::{choice, field, kib};
use crate::source::Source;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use units::CpuSet;

/// Settings of the kernel and facts on the hardware; `None` where the machine does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// As the vendor calls it; on Arm the implementer and part numbers of the MIDR.
    pub cpu_model: Option<String>,
    /// `uname -n`.
    pub host_name: Option<String>,
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// `/proc/cmdline`.
    pub kernel_command_line: Option<String>,
    /// Memory that the kernel manages, in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space in use or not, in bytes.
    pub swap_bytes: Option<u64>,
    /// `vm.swappiness`.
    pub swappiness: Option<u32>,
    /// Frequency governor -> its cpus. Empty in most guests.
    #[serde(serialize_with = "as_lists")]
    pub governors: BTreeMap<String, CpuSet>,
    /// Whether clocks may rise above the nominal one.
    pub boost: Option<bool>,
    /// Whether more than one cpu of a core is on.
    pub smt: Option<bool>,
    /// Transparent huge pages: always, madvise or never.
    pub thp_enabled: Option<String>,
    /// When the kernel works for a huge page: always, defer, madvise, never.
    pub thp_defrag: Option<String>,
    /// `tsc` makes a clock read cheap; `hpet` and `acpi_pm` do not.
    pub clock_source: Option<String>,
    /// `kernel.numa_balancing`: 0 off, 1 on, 2 memory tiering.
    pub numa_balancing: Option<u32>,
    /// `vm.zone_reclaim_mode`: whether a NUMA node frees its own memory before another one's is
    /// taken; absent on kernels without NUMA.
    pub zone_reclaim_mode: Option<u32>,
    /// Huge pages that are set aside on the whole machine.
    pub huge_pages: Vec<HugePages>,
    /// Highest clock of the fastest cpu.
    pub frequency_mhz_max: Option<u32>,
    /// CPU vulnerability -> what the kernel does about it.
    pub mitigations: BTreeMap<String, String>,
    /// Whether this is a guest.
    pub virtualisation: Virtualisation,
}

/// Hints at a hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Virtualisation {
    /// The `hypervisor` flag of `/proc/cpuinfo` (x86); `None` where there are no flags.
    pub hypervisor_flag: Option<bool>,
    /// DMI system vendor: `QEMU`, `Amazon EC2`, `Dell Inc.`.
    pub sys_vendor: Option<String>,
    /// DMI product.
    pub product_name: Option<String>,
    /// Firmware: its maker, version and date.
    pub bios: Option<String>,
}

pub(crate) fn read(source: &Source, cpus: &CpuSet) -> Settings {
    let cpuinfo = source.text("proc/cpuinfo").unwrap_or_default();
    let meminfo = source.text("proc/meminfo").unwrap_or_default();
    let thp = |file: &str| chosen(source, &format!("sys/kernel/mm/transparent_hugepage/{file}"));
    Settings {
        cpu_model: cpu_model(&cpuinfo),
        host_name: source.text("proc/sys/kernel/hostname"),
        kernel_release: source.text("proc/sys/kernel/osrelease").or_else(|| {
            // "Linux version 5.14.0 (builder@host) ..."
            source.text("proc/version")?.split_whitespace().nth(2).map(str::to_owned)
        }),
        kernel_command_line: source.text("proc/cmdline"),
        memory_bytes: kib(&meminfo, "MemTotal"),
        swap_bytes: kib(&meminfo, "SwapTotal"),
        swappiness: source.number("proc/sys/vm/swappiness"),
        governors: governors(source, cpus),
        boost: source.flag("sys/devices/system/cpu/cpufreq/boost").or_else(|| {
            source.flag("sys/devices/system/cpu/intel_pstate/no_turbo").map(|no_turbo| !no_turbo)
        }),
        smt: source.flag("sys/devices/system/cpu/smt/active"),
        thp_enabled: thp("enabled"),
        thp_defrag: thp("defrag"),
        clock_source: source
            .text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        numa_balancing: source.number("proc/sys/kernel/numa_balancing"),
        zone_reclaim_mode: source.number("proc/sys/vm/zone_reclaim_mode"),
        huge_pages: huge_pages(source, "sys/kernel/mm/hugepages"),
        frequency_mhz_max: frequency_mhz_max(source, cpus),
        mitigations: mitigations(source),
        virtualisation: Virtualisation {
            hypervisor_flag: field(&cpuinfo, &["flags"])
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            sys_vendor: source.text("sys/class/dmi/id/sys_vendor"),
            product_name: source.text("sys/class/dmi/id/product_name"),
            bios: bios(source),
        },
    }
}

fn chosen(source: &Source, path: &str) -> Option<String> {
    choice(&source.text(path)?).map(str::to_owned)
}

/// x86 says `model name`, POWER `cpu`, old Arm `Processor`, IA-64 `family`; AArch64 says only
/// numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    field(cpuinfo, &["model name", "cpu", "Processor", "family"]).map(str::to_owned).or_else(|| {
        let implementer = field(cpuinfo, &["CPU implementer"])?;
        let part = field(cpuinfo, &["CPU part"])?;
        Some(format!("implementer {implementer} part {part}"))
    })
}

fn bios(source: &Source) -> Option<String> {
    let field = |name: &str| source.text(&format!("sys/class/dmi/id/bios_{name}"));
    let words: Vec<_> = ["vendor", "version", "date"].into_iter().filter_map(field).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn frequency_mhz_max(source: &Source, cpus: &CpuSet) -> Option<u32> {
    let khz = |cpu: units::CpuId| -> Option<u32> {
        let dir = format!("sys/devices/system/cpu/cpu{}/cpufreq", cpu.0);
        source.number(&format!("{dir}/cpuinfo_max_freq"))
    };
    cpus.iter().filter_map(khz).max().map(|khz| khz / 1000)
}

fn governors(source: &Source, cpus: &CpuSet) -> BTreeMap<String, CpuSet> {
    let mut governors: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for cpu in cpus.iter() {
        let path = format!("sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", cpu.0);
        if let Some(governor) = source.text(&path) {
            governors.entry(governor).or_default().push(cpu);
        }
    }
    governors.into_iter().map(|(name, cpus)| (name, cpus.into_iter().collect())).collect()
}

fn mitigations(source: &Source) -> BTreeMap<String, String> {
    const DIR: &str = "sys/devices/system/cpu/vulnerabilities";
    let read = |name: String| Some((name.clone(), source.text(&format!("{DIR}/{name}"))?));
    source.names(DIR).into_iter().filter_map(read).collect()
}

fn as_lists<S: Serializer>(
    governors: &BTreeMap<String, CpuSet>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(governors.iter().map(|(name, cpus)| (name, cpus.to_string())))
}
