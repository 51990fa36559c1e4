//! The caches of the cpus: level, kind, size, and who shares them.
//!
//! Input: `sys/devices/system/cpu/cpu*/cache/index*`. Output: [`Cache`]s, each once, by level,
//! kind and lowest cpu; sizes in bytes. Source: the kernel's Documentation/ABI/stable/
//! sysfs-devices-system-cpu. Limits: what the kernel does not say is not guessed from the model.

use crate::source::Source;
use crate::topology::{CPU_DIR, siblings};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, CpuSet};

/// POWER and Z have four; a higher number is an accident.
const LEVEL_MAX: u32 = 9;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// Online cpus that share it.
    pub cpus: CpuSet,
}

impl Cache {
    /// Whether data go through it.
    #[must_use]
    pub fn holds_data(&self) -> bool {
        self.kind != CacheKind::Instruction
    }
}

/// Equal caches, for the manifest: a machine of 256 cpus has 600 of them.
#[derive(Serialize)]
struct Alike {
    level: u32,
    kind: CacheKind,
    size_bytes: Option<u64>,
    /// The cpus of each, as lists with a blank between them: `0,128 1,129`.
    shared_by: String,
}

pub(crate) fn read(source: &Source, online: &CpuSet) -> Vec<Cache> {
    let mut caches: BTreeMap<(u32, CacheKind, CpuId), Cache> = BTreeMap::new();
    // Each sharer names all others: one list of them is enough, and on large machines much less.
    let mut known: BTreeMap<(u32, CacheKind), BTreeSet<CpuId>> = BTreeMap::new();
    for cpu in online.iter() {
        let dir = format!("{CPU_DIR}/cpu{}/cache", cpu.0);
        for index in source.numbered(&dir, "index") {
            let dir = format!("{dir}/index{index}");
            let Some((level, kind)) = level_and_kind(source, &dir) else { continue };
            // The recorder copies what is read: all of it.
            let known = known.entry((level, kind)).or_default();
            if known.contains(&cpu) && !source.is_copying() {
                continue;
            }
            let cache = cache(source, &dir, (level, kind), cpu, online);
            known.extend(cache.cpus.iter());
            let first = cache.cpus.iter().next().unwrap_or(cpu);
            caches.entry((level, kind, first)).or_insert(cache);
        }
    }
    caches.into_values().collect()
}

fn level_and_kind(source: &Source, dir: &str) -> Option<(u32, CacheKind)> {
    let kind = match source.text(&format!("{dir}/type")).as_deref() {
        Some("Data") => CacheKind::Data,
        Some("Instruction") => CacheKind::Instruction,
        _ => CacheKind::Unified,
    };
    let level = source.number(&format!("{dir}/level"))?;
    (level <= LEVEL_MAX).then_some((level, kind))
}

fn cache(
    source: &Source,
    dir: &str,
    (level, kind): (u32, CacheKind),
    cpu: CpuId,
    online: &CpuSet,
) -> Cache {
    let file = |name: &str| format!("{dir}/{name}");
    // Where nobody is said to share it, it is the core's own.
    let cpus = source
        .cpus_with(cpu, &[&file("shared_cpu_list")], &[&file("shared_cpu_map")])
        .unwrap_or_else(|| siblings(source, cpu));
    Cache {
        level,
        kind,
        size_bytes: source.text(&file("size")).and_then(|text| size(&text)),
        cpus: cpus.intersection(online),
    }
}

/// `32K`, `1M`; without a unit bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    // Unknown is written as 0.
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|bytes| *bytes > 0)
}

pub(crate) fn as_groups<S: Serializer>(caches: &[Cache], to: S) -> Result<S::Ok, S::Error> {
    let mut groups: BTreeMap<(u32, CacheKind, Option<u64>), Vec<String>> = BTreeMap::new();
    for cache in caches {
        let alike = groups.entry((cache.level, cache.kind, cache.size_bytes)).or_default();
        alike.push(cache.cpus.to_string());
    }
    to.collect_seq(groups.into_iter().map(|((level, kind, size_bytes), cpus)| Alike {
        level,
        kind,
        size_bytes,
        shared_by: cpus.join(" "),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes() {
        for (text, bytes) in
            [("32K", 32 << 10), ("1M", 1 << 20), ("64", 64), ("36608K", 37_486_592)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "K", "0K", "12Q", "1 K", "-1K", "99999999999999999999K"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
