//! A machine from a description of one line.
//!
//! Input: `package:2 die:4 numa:1 llc:2 core:4 cpu:2`, the parts from the outside in, each with how
//! many of it are in one of the part before. Output: a tree of sysfs text, so that such a machine
//! goes through the same reader as a real one. A part that is left out is there once; NUMA nodes
//! then once a package. Limits: [`CPUS_MAX`] cpus, [`NUMA_MAX`] NUMA nodes, parts
//! of a kind alike.

use crate::numa::NUMA_DIR;
use crate::topology::CPU_DIR;
use crate::tree::{Tree, TreeError};
use std::fmt::Write as _;
use thiserror::Error;
use units::{Bytes, CpuId, CpuSet};

const CPUS_MAX: u64 = 4096;
const NUMA_MAX: u64 = 1024;
/// Where the description does not say.
const MEMORY_BYTES: u64 = 32 << 30;
/// Distances as the firmware of EPYC servers gives them: same NUMA node, same package, other one.
const DISTANCES: [u32; 3] = [10, 16, 32];

/// Why a description is no machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SyntheticError {
    /// Not of the form, or it makes no sense.
    #[error(
        "synthetic machine, column {column}: {what}; an example: \
         package:2 die:4 numa:1(memory=32GiB) llc:2(size=8MiB) core:4 cpu:2"
    )]
    At {
        /// Where in the text, in characters from 1.
        column: usize,
        /// What is wrong there, and what would be accepted.
        what: String,
    },
    /// No part at all.
    #[error(
        "the synthetic machine is empty: name its parts from the outside in, for example \
         package:2 die:4 numa:1 llc:2 core:4 cpu:2"
    )]
    Empty,
    /// More of it than a tree holds.
    #[error("the synthetic machine is too large: {0}")]
    Tree(#[from] TreeError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Package,
    Die,
    Numa,
    Llc,
    Core,
    Cpu,
}

const PARTS: [(&str, Part); 6] = [
    ("package", Part::Package),
    ("die", Part::Die),
    ("numa", Part::Numa),
    ("llc", Part::Llc),
    ("core", Part::Core),
    ("cpu", Part::Cpu),
];

/// One word of the description.
#[derive(Debug, Clone, Copy)]
struct Level {
    part: Part,
    /// How many are in one of the level before.
    count: u64,
    /// Memory of a NUMA node, size of a cache.
    bytes: Option<u64>,
}

impl Level {
    fn one(part: Part) -> Self {
        Self { part, count: 1, bytes: None }
    }
}

/// The files that such a machine would show.
pub(crate) fn tree(description: &str) -> Result<Tree, SyntheticError> {
    let shape = Shape { levels: complete(levels(description)?) };
    let mut tree = Tree::default();
    shape.put_cpus(&mut tree)?;
    shape.put_numa(&mut tree)?;
    Ok(tree)
}

/// The memory of each NUMA node that is made up, where the description does not say.
pub(crate) fn memory_assumed(description: &str) -> Option<Bytes> {
    let levels = levels(description).ok()?;
    let said = levels.iter().any(|level| level.part == Part::Numa && level.bytes.is_some());
    (!said).then_some(Bytes(MEMORY_BYTES))
}

fn levels(description: &str) -> Result<Vec<Level>, SyntheticError> {
    let mut levels: Vec<Level> = Vec::new();
    for (column, word) in words(description) {
        let at = |what: String| SyntheticError::At { column, what };
        let level = level(word).map_err(at)?;
        if let Some(what) = misplaced(&levels, level.part) {
            return Err(SyntheticError::At { column, what });
        }
        levels.push(level);
        let count_of = |part: Option<Part>| {
            let of_part = |level: &&Level| part.is_none_or(|part| level.part == part);
            let last = levels.iter().rposition(|level| of_part(&level)).map_or(0, |at| at + 1);
            levels[..last].iter().fold(1_u64, |all, level| all.saturating_mul(level.count))
        };
        if count_of(None) > CPUS_MAX {
            return Err(at(format!("{} cpus are more than {CPUS_MAX}", count_of(None))));
        }
        if count_of(Some(Part::Numa)) > NUMA_MAX {
            return Err(at(format!("more than {NUMA_MAX} NUMA nodes")));
        }
    }
    if levels.is_empty() { Err(SyntheticError::Empty) } else { Ok(levels) }
}

/// Words with their columns; blanks inside brackets do not end one.
fn words(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut start, mut depth) = (Vec::new(), None, 0_u32);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = c.is_whitespace() && (depth == 0 || at == text.len());
        match (start, ends) {
            (None, false) if !c.is_whitespace() => start = Some(at),
            (Some(first), true) => {
                words.push((text[..first].chars().count() + 1, &text[first..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn level(word: &str) -> Result<Level, String> {
    let names = "one of package, die, numa, llc, core, cpu";
    let (name, rest) =
        word.split_once(':').ok_or_else(|| format!("'{word}' has no count: write PART:COUNT"))?;
    let part = PARTS
        .iter()
        .find_map(|(known, part)| (*known == name).then_some(*part))
        .ok_or_else(|| format!("'{name}' is no part of a machine: write {names}"))?;
    let (count, attributes) = match rest.split_once('(') {
        Some((count, attributes)) => {
            let closed = attributes.strip_suffix(')');
            (count, Some(closed.ok_or_else(|| format!("'{word}' lacks its closing bracket"))?))
        }
        None => (rest, None),
    };
    let wanted = || format!("'{count}' is no count of {name}: write a whole number from 1");
    let count: u64 = count.parse().ok().filter(|count| *count > 0).ok_or_else(wanted)?;
    let bytes = attributes.map(|text| attribute(part, text)).transpose()?;
    Ok(Level { part, count, bytes })
}

fn attribute(part: Part, text: &str) -> Result<u64, String> {
    let wanted = match part {
        Part::Numa => "memory",
        Part::Llc => "size",
        _ => {
            return Err(format!("'({text})' does not belong there: only numa and llc have a size"));
        }
    };
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    if key.trim() != wanted {
        return Err(format!("'{}' is unknown there: write ({wanted}=SIZE)", key.trim()));
    }
    let bytes: Bytes = value.trim().parse().map_err(|error| format!("{error}"))?;
    // Sysfs counts in KiB.
    match bytes.0 / 1024 * 1024 {
        0 => Err(format!("'{}' is too small: give at least 1KiB", value.trim())),
        bytes if bytes >= 1 << 60 => Err(format!("'{}' is more than a machine has", value.trim())),
        bytes => Ok(bytes),
    }
}

/// What speaks against `part` behind `before`.
fn misplaced(before: &[Level], part: Part) -> Option<String> {
    let name = |part: Part| PARTS.iter().find(|(_, p)| *p == part).map_or("", |(name, _)| name);
    let has = |part: Part| before.iter().any(|level| level.part == part);
    if has(part) {
        return Some(format!("{} is there twice", name(part)));
    }
    // What may not be outside of `part`.
    let inner: &[Part] = match part {
        Part::Package => &[Part::Die, Part::Llc, Part::Core, Part::Cpu],
        Part::Die | Part::Numa | Part::Llc => &[Part::Core, Part::Cpu],
        Part::Core => &[Part::Cpu],
        Part::Cpu => &[],
    };
    let wrong = inner.iter().find(|part| has(**part))?;
    Some(format!("{} is not inside of {}: put it before", name(part), name(*wrong)))
}

/// With the parts that were left out.
fn complete(mut levels: Vec<Level>) -> Vec<Level> {
    let find = |levels: &[Level], part| levels.iter().position(|level| level.part == part);
    if find(&levels, Part::Package).is_none() {
        levels.insert(0, Level::one(Part::Package));
    }
    for part in [Part::Numa, Part::Die] {
        if find(&levels, part).is_none() {
            let package = find(&levels, Part::Package).map_or(0, |at| at + 1);
            levels.insert(package, Level::one(part));
        }
    }
    if find(&levels, Part::Core).is_none() {
        let cpu = find(&levels, Part::Cpu).unwrap_or(levels.len());
        levels.insert(cpu, Level::one(Part::Core));
    }
    if find(&levels, Part::Llc).is_none() {
        let core = find(&levels, Part::Core).unwrap_or(levels.len());
        levels.insert(core, Level::one(Part::Llc));
    }
    if find(&levels, Part::Cpu).is_none() {
        levels.push(Level::one(Part::Cpu));
    }
    levels
}

/// All parts, each once, cores and cpus last.
struct Shape {
    levels: Vec<Level>,
}

impl Shape {
    /// How many cores are in one of `part`.
    fn cores_in(&self, part: Part) -> u64 {
        let inside = self.levels.iter().skip_while(|level| level.part != part).skip(1);
        inside.filter(|level| level.part != Part::Cpu).map(|level| level.count).product()
    }

    fn level(&self, part: Part) -> Level {
        self.levels.iter().find(|level| level.part == part).copied().unwrap_or(Level::one(part))
    }

    fn cores(&self) -> u64 {
        let cores = self.levels.iter().filter(|level| level.part != Part::Cpu);
        cores.map(|level| level.count).product()
    }

    /// The cpus of these cores: first threads, second threads, ...
    fn cpus(&self, cores: std::ops::Range<u64>) -> CpuSet {
        let threads = 0..self.level(Part::Cpu).count;
        let of_thread = |thread| {
            let first = thread * self.cores();
            // Below CPUS_MAX.
            cores.clone().map(move |core| CpuId((first + core) as u32))
        };
        threads.flat_map(of_thread).collect()
    }

    fn put_cpus(&self, tree: &mut Tree) -> Result<(), TreeError> {
        let all = self.cpus(0..self.cores());
        for name in ["present", "online"] {
            tree.put_text(&format!("{CPU_DIR}/{name}"), all.to_string())?;
        }
        let (in_package, in_die) = (self.cores_in(Part::Package), self.cores_in(Part::Die));
        let in_llc = self.cores_in(Part::Llc);
        for core in 0..self.cores() {
            let siblings = self.cpus(core..core + 1).to_string();
            let llc = core / in_llc * in_llc;
            let sharers = self.cpus(llc..llc + in_llc).to_string();
            let size = self.level(Part::Llc).bytes.map(|bytes| format!("{}K", bytes / 1024));
            for cpu in self.cpus(core..core + 1).iter() {
                let files = [
                    ("topology/physical_package_id", (core / in_package).to_string()),
                    ("topology/die_id", (core % in_package / in_die).to_string()),
                    ("topology/core_id", (core % in_package).to_string()),
                    ("topology/core_cpus_list", siblings.clone()),
                    ("cache/index3/level", "3".to_owned()),
                    ("cache/index3/type", "Unified".to_owned()),
                    ("cache/index3/shared_cpu_list", sharers.clone()),
                ];
                let size = size.iter().map(|size| ("cache/index3/size", size.clone()));
                for (name, text) in files.into_iter().chain(size) {
                    tree.put_text(&format!("{CPU_DIR}/cpu{}/{name}", cpu.0), text)?;
                }
            }
        }
        Ok(())
    }

    fn put_numa(&self, tree: &mut Tree) -> Result<(), TreeError> {
        let (in_numa, in_package) = (self.cores_in(Part::Numa), self.cores_in(Part::Package));
        let count = self.cores() / in_numa;
        let kib = self.level(Part::Numa).bytes.unwrap_or(MEMORY_BYTES) / 1024;
        for id in 0..count {
            let first = id * in_numa;
            let distance = |other: u64| {
                let same_package = first / in_package == other * in_numa / in_package;
                DISTANCES[if id == other {
                    0
                } else if same_package {
                    1
                } else {
                    2
                }]
            };
            let distances: Vec<_> = (0..count).map(|other| distance(other).to_string()).collect();
            let mut meminfo = String::new();
            for key in ["MemTotal", "MemFree"] {
                // Writing to a String cannot fail.
                let _ = writeln!(meminfo, "Node {id} {key}: {kib} kB");
            }
            for (name, text) in [
                ("cpulist", self.cpus(first..first + in_numa).to_string()),
                ("meminfo", meminfo),
                ("distance", distances.join(" ")),
            ] {
                tree.put_text(&format!("{NUMA_DIR}/node{id}/{name}"), text)?;
            }
        }
        let total_kib = kib.saturating_mul(count);
        tree.put_text("proc/meminfo", format!("MemTotal: {total_kib} kB"))
    }
}
