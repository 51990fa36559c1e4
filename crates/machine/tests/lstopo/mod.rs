//! lstopo's text (`lstopo -v`), as far as it is compared: a tree by indentation, and a matrix.

use std::collections::BTreeSet;
use units::{CpuId, CpuSet};

/// What it says of a machine.
#[derive(Default)]
pub(crate) struct Lstopo {
    pub(crate) cpus: CpuSet,
    /// Cpus of each package with a cpu.
    pub(crate) packages: BTreeSet<CpuSet>,
    /// Cpus that share the outermost cache that holds data.
    pub(crate) llcs: BTreeSet<CpuSet>,
    pub(crate) cores: BTreeSet<CpuSet>,
    /// Number and memory, as printed.
    pub(crate) numa: Vec<(u32, Option<String>)>,
    /// From, to, distance, by the kernel's numbers.
    pub(crate) distances: BTreeSet<(u32, u32, u32)>,
}

/// Something of the tree, and the cpus below it.
struct Part<'a> {
    depth: usize,
    line: &'a str,
    cpus: Vec<CpuId>,
}

fn is_llc_candidate(line: &str) -> bool {
    ["L2Cache", "L3Cache", "L4Cache", "L1dCache", "L1Cache"]
        .iter()
        .any(|kind| line.starts_with(kind))
}

impl Lstopo {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut found = Self::default();
        let mut logical = Vec::new();
        let tree = text.lines().take_while(|line| !line.starts_with("depth 0"));
        for line in tree {
            let depth = line.len() - line.trim_start().len();
            let line = line.trim_start();
            parts.push(Part { depth, line, cpus: Vec::new() });
            if line.starts_with("PU L#") {
                let mut below = usize::MAX;
                for part in parts.iter_mut().rev() {
                    if part.depth < below {
                        below = part.depth;
                        part.cpus.push(CpuId(physical(line).unwrap()));
                    }
                }
            } else if line.starts_with("NUMANode") {
                let id = physical(line).unwrap();
                let number = line.split("L#").nth(1).unwrap();
                let number = number.split([' ', ')']).next().unwrap().parse().unwrap();
                logical.push((number, id));
                found.numa.push((id, word(line, "local=").map(str::to_owned)));
            }
        }
        found.numa.sort();
        let sets = |keep: &dyn Fn(&str) -> bool| -> BTreeSet<CpuSet> {
            let kept = parts.iter().filter(|part| keep(part.line) && !part.cpus.is_empty());
            kept.map(|part| part.cpus.iter().copied().collect()).collect()
        };
        found.cpus = sets(&|line| line.starts_with("PU")).iter().flat_map(CpuSet::iter).collect();
        found.packages = sets(&|line| line.starts_with("Package"));
        found.cores = sets(&|line| line.starts_with("Core"));
        // Of nested caches the outermost.
        let caches = sets(&is_llc_candidate);
        let inside = |a: &CpuSet, b: &CpuSet| a != b && a.difference(b).is_empty();
        found.llcs =
            caches.iter().filter(|a| !caches.iter().any(|b| inside(a, b))).cloned().collect();
        found.distances = distances(text, &logical);
        found
    }
}

/// The text behind `key`, up to a blank or bracket.
fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(key).nth(1)?.split([' ', ')']).next()
}

fn physical(line: &str) -> Option<u32> {
    word(line, "P#")?.parse().ok()
}

/// `index 0 1` and a line per NUMA node, by lstopo's own numbers.
fn distances(text: &str, logical: &[(u32, u32)]) -> BTreeSet<(u32, u32, u32)> {
    let id = |number: u32| logical.iter().find(|(n, _)| *n == number).unwrap().1;
    let numbers = |line: &str| -> Vec<u32> {
        line.split_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Relative latency matrix (name NUMALatency"))
        .skip(1);
    let Some(head) = lines.next() else { return BTreeSet::new() };
    let columns = numbers(head.trim_start().trim_start_matches("index"));
    let rows = lines.map(numbers).take_while(|row| row.len() == columns.len() + 1);
    let cells = rows.flat_map(|row| {
        let values = row[1..].to_vec();
        columns.iter().zip(values).map(move |(to, value)| (row[0], *to, value)).collect::<Vec<_>>()
    });
    cells.map(|(from, to, value)| (id(from), id(to), value)).collect()
}

/// As lstopo prints sizes: to the nearest unit of which there are at least 10.
pub(crate) fn memory(bytes: u64) -> String {
    let (shift, unit) = match bytes {
        b if b < 10 << 20 => (10, "KiB"),
        b if b < 10 << 30 => (20, "MiB"),
        b if b < 10 << 40 => (30, "GiB"),
        _ => (40, "TiB"),
    };
    format!("{}{unit}", ((bytes >> (shift - 1)) + 1) >> 1)
}
