//! `-XX:+UseNUMA`: where it does something.
//!
//! Input: the JVM's major version, its collector, the NUMA nodes of an instance. Output: the flag
//! or none, and why. Sources: JDK-8189922 (before Java 11 the heap was divided over all NUMA nodes
//! of the machine, whatever the process is bound to: the fault that the ICPE 2019 study found); JEP
//! 345 (G1 places by NUMA node from Java 14 on, before it only interleaves); HotSpot's
//! `os_linux.cpp` of JDK 25 (switches itself off when the process is bound to one node, or when the
//! nodes of its cpus and of its memory differ). Limits: other collectors than G1, parallel and ZGC
//! are taken for unaware.

use machine::layout::{Layout, Placement, Reason};

const FLAG: &str = "-XX:+UseNUMA";

/// What is advised for one instance, unless the user has decided.
pub(super) struct Advice {
    pub(super) on: bool,
    why: &'static str,
}

pub(super) fn is_it(flag: &str) -> bool {
    matches!(flag, "-XX:+UseNUMA" | "-XX:-UseNUMA")
}

pub(super) fn advise(major: u32, jvm: &[String], placement: &Placement) -> Advice {
    let on = |why| Advice { on: true, why };
    let off = |why| Advice { on: false, why };
    if placement.cpu_numas.len() <= 1 {
        return off("bound to one NUMA node there is nothing for it to do");
    }
    let chosen = |flag: &str| jvm.iter().any(|given| given == flag);
    if chosen("-XX:+UseParallelGC") {
        return match major {
            11.. => on("the instance spans NUMA nodes, the parallel collector uses it"),
            _ => off("before Java 11 it divides the heap over all NUMA nodes of the machine"),
        };
    }
    if chosen("-XX:+UseZGC") {
        return match major {
            15.. => on("the instance spans NUMA nodes, ZGC uses it"),
            _ => off("ZGC is no product before Java 15"),
        };
    }
    if chosen("-XX:+UseShenandoahGC") || chosen("-XX:+UseSerialGC") {
        return off("this collector does not place by NUMA node");
    }
    match major {
        14.. => on("the instance spans NUMA nodes, G1 uses it from Java 14 on"),
        _ => off("G1 uses it from Java 14 on; before, it only interleaves the heap"),
    }
}

/// What is said of it, once for all instances that are alike.
pub(super) fn notes(layout: &Layout, major: u32, jvm: &[String]) -> Vec<Reason> {
    let mut notes: Vec<Reason> = Vec::new();
    let decided = jvm.iter().rev().find(|flag| is_it(flag));
    for placement in &layout.placements {
        let advice = advise(major, jvm, placement);
        let not = if advice.on { "" } else { "not " };
        let note = match decided {
            Some(flag) if (flag == FLAG) != advice.on => Reason::caution(
                "jvm",
                format!("{flag}, as asked, where {FLAG} is {not}advised: {}", advice.why),
            ),
            Some(flag) => {
                Reason::new("jvm", format!("{flag}, as asked and advised: {}", advice.why))
            }
            None => Reason::new("jvm", format!("{FLAG} {not}given: {}", advice.why)),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
        if advice.on && placement.cpu_numas != placement.memory_numas {
            let text = format!(
                "instance {}: its cpus are on NUMA nodes {}, its memory on {}: newer JVMs switch \
                 {FLAG} off then",
                placement.instance, placement.cpu_numas, placement.memory_numas
            );
            notes.push(Reason::caution("jvm", text));
        }
    }
    notes
}
