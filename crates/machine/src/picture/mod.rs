//! A machine as a picture: a tree for the terminal, boxes as SVG.
//!
//! Input: a [`crate::Machine`]. Output: text. Pure; what is said in both is here.

mod extras;
mod svg;
mod tree;

use crate::outline::{Kind, Part};
use crate::{CoreKind, Machine};
use units::{Bytes, CpuSet};

pub use svg::svg;
pub use tree::tree;

/// `2 packages, 8 NUMA nodes, 16 L3, 64 cores, 128 cpus`.
fn counts(machine: &Machine) -> String {
    let llcs: Vec<_> = machine.llcs().into_iter().filter(|llc| llc.id.is_some()).collect();
    let level = llcs.first().and_then(|llc| llc.level).unwrap_or(0);
    let with = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let cache = format!("L{level}");
    let packages = machine.packages().iter().filter(|package| package.id.is_some()).count();
    let words = [
        with(packages, "package", "packages"),
        with(machine.numa.len(), "NUMA node", "NUMA nodes"),
        with(llcs.len(), &cache, &cache),
        with(machine.cores().len(), "core", "cores"),
        with(machine.online.len(), "cpu", "cpus"),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Model, memory, kernel.
fn brief(machine: &Machine) -> String {
    let settings = &machine.settings;
    let words = [
        settings.cpu_model.clone(),
        settings.memory_bytes.map(size),
        settings.kernel_release.as_ref().map(|release| format!("Linux {release}")),
        settings.virtualisation.hypervisor_flag.unwrap_or(false).then(|| "a guest".to_owned()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The size of a part: `64 GiB`; `no memory` of a NUMA node without.
fn size_of(part: &Part) -> Option<String> {
    match (part.kind, part.bytes?) {
        (Kind::Numa, 0) => Some("no memory".to_owned()),
        (_, bytes) => Some(size(bytes)),
    }
}

/// `64 GiB`, `1.5 MiB`: whole numbers without a decimal.
fn size(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(".0 ", " ")
}

/// A cpu list that is read back: `0-3,8`; where cpus alternate between packages `0-78:2`.
fn list(cpus: &CpuSet) -> String {
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.0).collect();
    let mut rest = numbers.as_slice();
    let mut words = Vec::new();
    while let Some((first, others)) = rest.split_first() {
        let step = others.first().map_or(1, |second| second - first);
        let run = rest.windows(2).take_while(|pair| pair[1] - pair[0] == step).count();
        // Two numbers are shorter than a range of them, but for neighbours.
        let run = if step > 1 && run < 2 { 0 } else { run };
        words.push(match (run, step) {
            (0, _) => first.to_string(),
            (_, 1) => format!("{first}-{}", rest[run]),
            _ => format!("{first}-{}:{step}", rest[run]),
        });
        rest = &rest[run + 1..];
    }
    words.join(",")
}

/// What a part is called, with a number or without: `numa 3`, `L3`, `core`.
fn name(part: &Part, id: Option<u32>, kinds: &[CoreKind]) -> String {
    let numbered = |what: &str| match id {
        Some(id) => format!("{what} {id}"),
        None => what.to_owned(),
    };
    match part.kind {
        Kind::Machine => "machine".to_owned(),
        Kind::Package => numbered("package"),
        Kind::Die => numbered("die"),
        Kind::Numa => numbered("numa"),
        Kind::Llc => format!("L{}", part.rank.unwrap_or(0)),
        Kind::Core => {
            let kind = part.rank.and_then(|index| kinds.get(index as usize));
            kind.map_or_else(|| "core".to_owned(), |kind| format!("{} core", kind.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_short_and_read_back() {
        for (text, short) in [
            ("0-3,8", "0-3,8"),
            ("0,2,4,6", "0-6:2"),
            ("0,4,8,1,5,9", "0-1,4-5,8-9"),
            ("0,16", "0,16"),
            ("1,3", "1,3"),
            ("0-1,64-65", "0-1,64-65"),
            ("5", "5"),
            ("", ""),
        ] {
            let cpus: CpuSet = text.parse().unwrap();
            assert_eq!(list(&cpus), short, "{text}");
            assert_eq!(list(&cpus).parse::<CpuSet>().unwrap(), cpus, "{text}");
        }
    }
}
