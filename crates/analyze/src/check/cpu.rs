//! Speed and sleep of the cpus, and who shares a core.

use super::Source::{ClientHw, DsSet, Gregg, IntelC, Own, TechEmpower};
use super::{Finding, Group, Host, absent};
use machine::{IdleState, Machine};
use std::collections::BTreeMap;
use units::CpuSet;

/// An idle state that takes longer to leave shows in latencies.
const EXIT_US_MAX: u32 = 50;

pub(super) fn findings(host: &Host<'_>) -> Vec<Finding> {
    vec![
        model(host),
        governor(host),
        energy_preference(host),
        energy_bias(host),
        boost(host),
        idle(host),
        smt(host),
        siblings(host),
        mitigations(host),
    ]
}

/// `performance on 0-3, powersave on 4-7`.
fn by_value(values: &BTreeMap<String, CpuSet>) -> String {
    let one = |(value, cpus): (&String, &CpuSet)| format!("{value} on {cpus}");
    match values.len() {
        1 => values.keys().cloned().collect(),
        _ => values.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn model(host: &Host<'_>) -> Finding {
    let finding = Finding::new(Group::Cpu, "cpu.model", "model", "recorded", &[Gregg]);
    let settings = &host.facts.machine.settings;
    match &settings.cpu_model {
        Some(model) => {
            let microcode = host.facts.microcode.as_deref();
            let microcode = microcode.map_or(String::new(), |rev| format!(", microcode {rev}"));
            finding.value(format!("{model}{microcode}"))
        }
        None => finding.unknown(absent("the model in proc/cpuinfo")),
    }
}

/// In a guest the host decides on frequencies; without this its silence would look like an error.
fn is_guest(machine: &Machine) -> bool {
    machine.settings.virtualisation.hypervisor_flag == Some(true)
}

fn no_frequencies(machine: &Machine, path: &str) -> String {
    match is_guest(machine) {
        true => "this is a guest: its host decides, look there".to_owned(),
        false => absent(path),
    }
}

fn governor(host: &Host<'_>) -> Finding {
    let finding = Finding::new(
        Group::Cpu,
        "cpu.governor",
        "governor",
        "performance",
        &[IntelC, DsSet, ClientHw],
    );
    let machine = &host.facts.machine;
    let governors = &machine.settings.governors;
    let finding = match governors.is_empty() {
        true => return finding.unknown(no_frequencies(machine, "cpufreq/scaling_governor")),
        false => finding.value(by_value(governors)),
    };
    match governors.keys().all(|governor| governor == "performance") {
        true => finding,
        false => finding.warn(
            "cpus clock up only under load: latencies at low rates are too high, and vary",
            "cpupower frequency-set -g performance",
        ),
    }
}

fn energy_preference(host: &Host<'_>) -> Finding {
    let finding = Finding::new(
        Group::Cpu,
        "cpu.epp",
        "energy preference",
        "performance",
        &[IntelC, ClientHw],
    );
    let preferences = &host.facts.power.preferences;
    if preferences.is_empty() {
        let path = "cpufreq/energy_performance_preference";
        return finding.unknown(no_frequencies(&host.facts.machine, path));
    }
    let finding = finding.value(by_value(preferences));
    // With the governor performance, drivers show the number 0.
    match preferences.keys().all(|value| value == "performance" || value == "0") {
        true => finding,
        false => finding.warn(
            "the cpu trades speed for energy by itself, differently from run to run",
            "cpupower set --epp performance",
        ),
    }
}

fn energy_bias(host: &Host<'_>) -> Finding {
    let finding = Finding::new(Group::Cpu, "cpu.epb", "energy bias", "0", &[IntelC, ClientHw]);
    let biases = &host.facts.power.biases;
    if biases.is_empty() {
        return finding.unknown(no_frequencies(&host.facts.machine, "power/energy_perf_bias"));
    }
    let finding = finding.value(by_value(biases));
    match biases.keys().all(|value| value == "0") {
        true => finding,
        false => finding
            .warn("the cpu trades speed for energy by itself (0 is speed)", "cpupower set -b 0"),
    }
}

fn boost(host: &Host<'_>) -> Finding {
    let finding =
        Finding::new(Group::Cpu, "cpu.boost", "turbo", "recorded; equal on all hosts", &[IntelC]);
    match host.facts.machine.settings.boost {
        Some(on) => finding.value(if on { "on" } else { "off" }),
        None => finding
            .unknown(no_frequencies(&host.facts.machine, "cpufreq/boost or intel_pstate/no_turbo")),
    }
}

fn idle(host: &Host<'_>) -> Finding {
    let limit = format!("exit within {EXIT_US_MAX} us");
    let finding = Finding::new(Group::Cpu, "cpu.idle", "idle states", limit, &[ClientHw, Own]);
    let states = &host.facts.power.idle;
    let Some(deepest) = states.iter().rev().find(|state| !state.enabled.is_empty()) else {
        return match states.is_empty() {
            true => finding.unknown(no_frequencies(&host.facts.machine, "cpu*/cpuidle")),
            false => finding.value("none"),
        };
    };
    let finding = finding.value(format!("{} takes {} us", deepest.name, deepest.exit_us));
    if deepest.exit_us <= EXIT_US_MAX {
        return finding;
    }
    let slow = |state: &&IdleState| state.exit_us > EXIT_US_MAX && !state.enabled.is_empty();
    let names: Vec<_> = states.iter().filter(slow).map(|state| state.name.as_str()).collect();
    finding.warn(
        format!("an operation that meets an idle cpu waits for it to wake: {}", names.join(", ")),
        format!("cpupower idle-set -D {EXIT_US_MAX}"),
    )
}

fn smt(host: &Host<'_>) -> Finding {
    let finding =
        Finding::new(Group::Cpu, "cpu.smt", "SMT", "recorded; equal on all hosts", &[IntelC]);
    let machine = &host.facts.machine;
    let shared = machine.cpus.iter().any(|cpu| cpu.siblings.len() > 1);
    finding.value(match (machine.settings.smt, shared) {
        (Some(false), _) | (None, false) => "off: one cpu per core",
        _ => "on: cores have several cpus",
    })
}

fn siblings(host: &Host<'_>) -> Finding {
    let new =
        |what, limit: &str| Finding::new(Group::Cpu, "cpu.shared", what, limit, &[TechEmpower]);
    let Some(target) = host.target_cpus else {
        // Of a target that runs already its own finding tells.
        return new("client", "recorded").value(format!("on {}", host.client_cpus));
    };
    let finding = new("client and target", "no core in common");
    let value = format!("client on {}, target on {target}", host.client_cpus);
    let mend = "give --client-cpus and --target-cpus on different cores, or another client host";
    let finding = finding.value(value);
    let shared = host.client_cpus.intersection(target);
    if !shared.is_empty() {
        let why = format!("client and target take cpus {shared} from each other");
        return finding.fail(why, mend);
    }
    let cores: CpuSet = host
        .client_cpus
        .iter()
        .filter_map(|cpu| host.facts.machine.cpu(cpu))
        .flat_map(|cpu| cpu.siblings.iter())
        .collect();
    let beside = cores.intersection(target);
    match beside.is_empty() {
        true => finding,
        false => {
            let why = format!("the target's cpus {beside} are siblings of the client's");
            finding.fail(why, mend)
        }
    }
}

fn mitigations(host: &Host<'_>) -> Finding {
    let finding = Finding::new(
        Group::Cpu,
        "cpu.mitigations",
        "mitigations",
        "recorded; equal on all hosts",
        &[Gregg],
    );
    let all = &host.facts.machine.settings.mitigations;
    if all.is_empty() {
        return finding.unknown(absent("cpu/vulnerabilities"));
    }
    let count = |prefix: &str| all.values().filter(|state| state.starts_with(prefix)).count();
    finding.value(format!(
        "{} mitigated, {} open, {} not affected",
        count("Mitigation"),
        count("Vulnerable"),
        count("Not affected")
    ))
}
