//! Clock, time, kernel, and what kind of machine this is.

use super::Source::{DsSet, Gregg, Own, Perftune, Sct};
use super::{Finding, Group, Host, absent};

/// Daemons that set the clock, by the name of their process (15 bytes).
const TIME_DAEMONS: [&str; 6] =
    ["chronyd", "ntpd", "systemd-timesyn", "ptp4l", "phc2sys", "openntpd"];

pub(super) fn findings(host: &Host<'_>) -> Vec<Finding> {
    vec![release(host), virtualisation(host), clock_source(host), time_sync(host)]
}

fn release(host: &Host<'_>) -> Finding {
    let limit = "recorded; equal on all hosts";
    let finding = Finding::new(Group::Kernel, "kernel.release", "kernel", limit, &[Gregg]);
    match &host.facts.machine.settings.kernel_release {
        Some(release) => finding.value(release),
        None => finding.unknown(absent("kernel/osrelease")),
    }
}

fn virtualisation(host: &Host<'_>) -> Finding {
    let finding = Finding::new(
        Group::Kernel,
        "kernel.virtualisation",
        "virtualisation",
        "recorded; other guests share the machine",
        &[Own],
    );
    let hints = &host.facts.machine.settings.virtualisation;
    let product: Vec<_> =
        [&hints.sys_vendor, &hints.product_name].into_iter().flatten().cloned().collect();
    let product = product.join(" ");
    match (hints.hypervisor_flag, product.is_empty()) {
        (Some(true), true) => finding.value("a guest"),
        (Some(true), false) => finding.value(format!("a guest: {product}")),
        (Some(false), true) => finding.value("none seen"),
        (_, false) => finding.value(product),
        (None, true) => finding.unknown("neither cpu flags nor DMI say"),
    }
}

fn clock_source(host: &Host<'_>) -> Finding {
    let limit = "tsc (kvm-clock in a guest; arch_sys_counter on Arm)";
    let finding = Finding::new(Group::Kernel, "kernel.clock", "clock source", limit, &[Perftune]);
    match host.facts.machine.settings.clock_source.as_deref() {
        None => finding.unknown(absent("current_clocksource")),
        // Those that are read without a system call: x86, KVM, Hyper-V, Arm, POWER, RISC-V, s390.
        Some(
            name @ ("tsc"
            | "kvm-clock"
            | "hyperv_clocksource_tsc_page"
            | "arch_sys_counter"
            | "timebase"
            | "riscv_clocksource"
            | "tod"),
        ) => finding.value(name),
        Some(name) => finding.value(name).warn(
            "each clock read costs up to microseconds, in client and database",
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    }
}

fn time_sync(host: &Host<'_>) -> Finding {
    let limit = "a daemon that sets the clock";
    let sources = &[DsSet, Sct];
    let finding = Finding::new(Group::Kernel, "kernel.time_sync", "time", limit, sources);
    let activity = &host.facts.tasks;
    if let Some(daemon) = activity.runs(&TIME_DAEMONS) {
        return finding.value(format!("{} runs", daemon.name));
    }
    if activity.timesync_done {
        return finding.value("set by systemd-timesyncd");
    }
    if activity.processes.is_empty() {
        return finding.unknown("no process can be seen in this tree");
    }
    finding.value("no daemon seen").warn(
        "clocks of hosts drift apart: writes are ordered and intervals merged by them",
        "start chronyd (one host alone needs none)",
    )
}
