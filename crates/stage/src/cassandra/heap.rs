//! How large the heap of an instance is, and whether that fits.
//!
//! Input: what is asked for, the memory of this host, the number of instances. Output: [`Heap`]
//! with its reason, or why not. Source: the rule of thumb of Cassandra's own start script (half of
//! the memory up to 1 GiB, or a quarter up to 8 GiB, whichever is more), `/proc/meminfo`
//! (proc(5)), `memory.max` of cgroups v2. Limits: beside its heap an instance is reckoned with
//! [`beside_heap`]; whatever else starts meanwhile is not known.

use std::fs;
use thiserror::Error;
use units::Bytes;

const GIB: u64 = 1 << 30;
/// Below this Cassandra does not live long.
const LEAST: Bytes = Bytes(128 << 20);

/// What is asked of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapAsked {
    /// So much for each instance.
    Each(Bytes),
    /// So much for all instances together, in equal parts.
    Total(Bytes),
}

impl HeapAsked {
    /// The part of one of `instances`, in whole MiB, as the flag is written.
    #[must_use]
    pub fn each(self, instances: u32) -> Bytes {
        match self {
            Self::Each(size) => size,
            Self::Total(size) => Bytes((size.0 / u64::from(instances.max(1))) >> 20 << 20),
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Each(_) => "--heap",
            Self::Total(_) => "--heap-total",
        }
    }
}

/// The heap of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heap {
    /// Its size, from the first moment on.
    pub size: Bytes,
    /// Why so much, for people.
    pub why: String,
}

/// The memory of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: Bytes,
    pub(crate) available: Bytes,
}

/// Why a heap cannot be. Each text names the flag and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum HeapError {
    /// Two flags say it.
    #[error("{asked} and --jvm {flag} both say how large the heap is: give one of them")]
    Twice { asked: &'static str, flag: String },
    /// No size.
    #[error("--jvm {flag} is no size of a heap: give one like -Xmx4G")]
    Form { flag: String },
    /// Too many share it.
    #[error(
        "--heap-total {total} is {each} for each of {instances} instances, and Cassandra needs \
         {LEAST} at least: give more, or fewer instances"
    )]
    Small { total: Bytes, each: Bytes, instances: u32 },
    /// Too large.
    #[error(
        "no memory for the heap: {instances} x ({heap} heap + {beside} beside it) = {needed}, and \
         {available} of {total} are free; give a smaller --heap, fewer instances, or end what uses \
         the memory"
    )]
    NoMemory {
        instances: u32,
        heap: Bytes,
        beside: Bytes,
        needed: Bytes,
        available: Bytes,
        total: Bytes,
    },
}

/// What an instance takes beside its heap: direct memory up to half of the heap, as Cassandra's
/// start script allows, and 512 MiB for code, classes, stacks and the collector.
pub(crate) fn beside_heap(heap: Bytes) -> Bytes {
    Bytes((heap.0 / 2).saturating_add(GIB / 2))
}

/// The direct memory that the JVM is allowed.
pub(crate) fn direct(heap: Bytes) -> Bytes {
    Bytes(heap.0 / 2)
}

/// Decides. `jvm` are the user's own flags, of which `-Xmx` counts as `--heap`.
pub(crate) fn decide(
    asked: Option<HeapAsked>,
    jvm: &[String],
    instances: u32,
    memory: Memory,
) -> Result<Heap, HeapError> {
    let flag = jvm.iter().rev().find(|flag| flag.starts_with("-Xmx"));
    let heap = match (asked, flag) {
        (Some(asked), Some(flag)) => {
            return Err(HeapError::Twice { asked: asked.flag(), flag: flag.clone() });
        }
        (Some(asked), None) => of_asked(asked, instances)?,
        (None, Some(flag)) => {
            let size = flag["-Xmx".len()..].to_uppercase().parse();
            let size = size.map_err(|_| HeapError::Form { flag: flag.clone() })?;
            Heap { size, why: format!("as asked with --jvm {flag}") }
        }
        (None, None) => usual(memory.total, instances),
    };
    let each = heap.size.0.saturating_add(beside_heap(heap.size).0);
    let needed = Bytes(each.saturating_mul(u64::from(instances)));
    if needed > memory.available {
        return Err(HeapError::NoMemory {
            instances,
            heap: heap.size,
            beside: beside_heap(heap.size),
            needed,
            available: memory.available,
            total: memory.total,
        });
    }
    Ok(heap)
}

fn of_asked(asked: HeapAsked, instances: u32) -> Result<Heap, HeapError> {
    let size = asked.each(instances);
    let why = match asked {
        HeapAsked::Each(_) => "as asked with --heap".to_owned(),
        HeapAsked::Total(total) if size < LEAST => {
            return Err(HeapError::Small { total, each: size, instances });
        }
        HeapAsked::Total(total) => format!("{total} over {instances} instances (--heap-total)"),
    };
    Ok(Heap { size, why })
}

/// What Cassandra's start script would choose on a host with this instance's share of the memory.
fn usual(total: Bytes, instances: u32) -> Heap {
    let share = total.0 / u64::from(instances.max(1));
    let (half, quarter) = ((share / 2).min(GIB), (share / 4).min(8 * GIB));
    // Whole MiB, as the flag is written.
    let size = Bytes(half.max(quarter) >> 20 << 20);
    let rule = match half >= quarter {
        true => "half, at most 1 GiB",
        false => "a quarter, at most 8 GiB",
    };
    let of = match instances {
        1 => format!("of {total} memory"),
        n => format!("of {total} memory over {n} instances"),
    };
    Heap { size, why: format!("{rule}, {of}") }
}

impl Memory {
    /// Of this host, or of the cgroup that this process is in.
    pub(crate) fn of_this_host() -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cgroup = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
            let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
            fs::read_to_string(format!("/sys/fs/cgroup{path}/memory.max")).ok()
        });
        Self::parse(&meminfo, cgroup.as_deref())
    }

    fn parse(meminfo: &str, cgroup_max: Option<&str>) -> Self {
        let field = |key: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        };
        // `max` is no number: then there is no limit.
        let limit = cgroup_max.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
        let total = field("MemTotal:").unwrap_or(u64::MAX).min(limit);
        let available = field("MemAvailable:").unwrap_or(total).min(limit);
        Self { total: Bytes(total), available: Bytes(available) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(total_gib: u64, available_gib: u64) -> Memory {
        Memory { total: Bytes(total_gib * GIB), available: Bytes(available_gib * GIB) }
    }

    fn size_gib(instances: u32, memory: Memory) -> f64 {
        decide(None, &[], instances, memory).unwrap().size.0 as f64 / GIB as f64
    }

    #[test]
    fn the_default_is_that_of_cassandra_for_its_share_of_the_memory() {
        assert_eq!(size_gib(1, host(2, 2)), 1.0);
        assert_eq!(size_gib(1, host(24, 24)), 6.0);
        assert_eq!(size_gib(1, host(256, 256)), 8.0);
        assert_eq!(size_gib(3, host(24, 24)), 2.0);
        let why = decide(None, &[], 3, host(24, 24)).unwrap().why;
        assert!(why.contains("a quarter") && why.contains("3 instances"), "{why}");
    }

    #[test]
    fn what_is_asked_counts_once() {
        let asked = |heap: Option<u64>, jvm: &[&str]| {
            let jvm: Vec<_> = jvm.iter().map(|flag| (*flag).to_owned()).collect();
            let heap = heap.map(|gib| HeapAsked::Each(Bytes(gib * GIB)));
            decide(heap, &jvm, 1, host(24, 24)).map(|heap| heap.size)
        };
        assert_eq!(asked(Some(2), &["-Xss1m"]), Ok(Bytes(2 * GIB)));
        assert_eq!(asked(None, &["-Xmx3g"]), Ok(Bytes(3 * GIB)));
        assert_eq!(asked(None, &["-Xmx3g", "-Xmx512M"]), Ok(Bytes(GIB / 2)));
        let twice = HeapError::Twice { asked: "--heap", flag: "-Xmx3g".into() };
        assert_eq!(asked(Some(2), &["-Xmx3g"]), Err(twice));
        assert!(matches!(asked(None, &["-Xmxlots"]), Err(HeapError::Form { .. })));
    }

    #[test]
    fn a_total_is_shared_evenly_by_any_number_of_instances() {
        let of = |instances, jvm: &[String]| {
            let total = Some(HeapAsked::Total(Bytes(GIB)));
            decide(total, jvm, instances, host(24, 24))
        };
        for instances in [1, 2, 3, 8] {
            let all = of(instances, &[]).unwrap().size.0 * u64::from(instances);
            // To the MiB that a flag is written in.
            assert!((GIB - (u64::from(instances) << 20)..=GIB).contains(&all), "{instances}");
        }
        assert!(of(2, &[]).unwrap().why.contains("1.0 GiB over 2 instances"));
        let error = of(9, &[]).unwrap_err().to_string();
        assert!(error.contains("113.0 MiB for each of 9") && error.contains("fewer"), "{error}");
        let error = of(1, &["-Xmx3g".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("--heap-total and --jvm -Xmx3g"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_sum() {
        let each = |bytes| Some(HeapAsked::Each(Bytes(bytes)));
        assert!(decide(each(GIB), &[], 1, host(24, 2)).is_ok());
        let error = decide(each(GIB), &[], 3, host(24, 4)).unwrap_err().to_string();
        for part in ["3 x", "1.0 GiB heap", "6.0 GiB", "4.0 GiB of 24.0 GiB", "--heap"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(decide(each(u64::MAX), &[], u32::MAX, host(24, 24)).is_err());
    }

    #[test]
    fn a_cgroup_may_be_smaller_than_its_host() {
        let meminfo = "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n";
        assert_eq!(Memory::parse(meminfo, None), host(8, 4));
        assert_eq!(Memory::parse(meminfo, Some("max\n")), host(8, 4));
        assert_eq!(Memory::parse(meminfo, Some("2147483648\n")), host(2, 2));
        assert!(Memory::of_this_host().total < Bytes(u64::MAX));
    }
}
