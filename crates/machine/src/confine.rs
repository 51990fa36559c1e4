//! What a process may use of a machine: affinity, cpuset and memory.
//!
//! Input: `proc/self/{status,cgroup,cpuset}` and the cgroup file system that `proc/self/mounts`
//! names. Output: [`Confined`]. Source: cpuset(7), cgroups(7), the kernel's
//! Documentation/admin-guide/cgroup-v2.rst. Limits: the reading process; a quota
//! (`cpu.max`) takes time, not cpus, and is not read.

use crate::numa::numbers;
use crate::parse::field;
use crate::pmem::{mount_table, unescaped};
use crate::source::Source;
use units::{CpuSet, NumaId};

/// Version 1 shows a number near 2^63, which depends on the size of a page, where it has no limit.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Cpus and NUMA nodes that are not forbidden, and memory; `None` where nothing says so.
#[derive(Debug, Default)]
pub(crate) struct Confined {
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) numa: Option<Vec<NumaId>>,
    pub(crate) memory_bytes: Option<u64>,
}

pub(crate) fn read(source: &Source) -> Confined {
    let status = source.text("proc/self/status").unwrap_or_default();
    let allowed = |key| field(&status, &[key]);
    let ids = |text: &str| Some(numbers(text)?.into_iter().map(NumaId).collect::<Vec<_>>());
    let own = Confined {
        cpus: allowed("Cpus_allowed_list").and_then(|list| list.parse().ok()),
        numa: allowed("Mems_allowed_list").and_then(ids),
        memory_bytes: None,
    };
    let group = |what| cpuset(source, what);
    let cpus = group("cpus").and_then(|list| list.parse::<CpuSet>().ok());
    let numa = group("mems").and_then(|list| ids(&list));
    Confined {
        cpus: both(own.cpus, cpus, |a, b| a.intersection(b)),
        numa: both(own.numa, numa, |a, b| a.iter().filter(|n| b.contains(n)).copied().collect()),
        memory_bytes: memory(source),
    }
}

/// The least limit of the process's group and those above it.
fn memory(source: &Source) -> Option<u64> {
    let limits = groups(source, "memory").into_iter().flat_map(|(version, top, group)| {
        let file = if version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        let dirs = above(&top, group.trim_matches('/'));
        dirs.into_iter().filter_map(|dir| source.text(&format!("{dir}/{file}"))).collect::<Vec<_>>()
    });
    let limits = limits.filter_map(|text| text.trim().parse::<u64>().ok());
    limits.filter(|&bytes| bytes < NO_LIMIT_BYTES).min()
}

fn both<T>(a: Option<T>, b: Option<T>, meet: impl Fn(&T, &T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(meet(&a, &b)),
        (a, b) => a.or(b),
    }
}

/// `cpus` or `mems` of the process's cpuset: of version 1 or 2, with or without the prefix; of the
/// group, or of the next one above that has it.
fn cpuset(source: &Source, what: &str) -> Option<String> {
    let files = [format!("cpuset.{what}.effective"), format!("cpuset.{what}"), what.to_owned()];
    groups(source, "cpuset").into_iter().find_map(|(_, top, group)| {
        above(&top, group.trim_matches('/')).into_iter().find_map(|dir| {
            let text = files.iter().find_map(|file| source.text(&format!("{dir}/{file}")));
            text.filter(|text| !text.is_empty())
        })
    })
}

/// Version, mount point and path of the process's groups that may have this controller.
fn groups(source: &Source, controller: &str) -> Vec<(u32, String, String)> {
    let mounts = mount_table(source);
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, path, kind, options) = (words.next(), words.next()?, words.next()?, words.next()?);
        let version = match kind {
            "cgroup2" => 2,
            "cgroup" if options.split(',').any(|option| option == controller) => 1,
            "cpuset" if controller == kind => 1,
            _ => return None,
        };
        let group = group(source, version, controller)?;
        Some((version, unescaped(path).trim_matches('/').to_owned(), group))
    });
    found.collect()
}

/// Path of the process's group: `proc/self/cgroup` has a line `0::/path` for version 2 and
/// `4:cpuset:/path` for version 1; old kernels have `proc/self/cpuset` only.
fn group(source: &Source, version: u32, controller: &str) -> Option<String> {
    let groups = source.text("proc/self/cgroup").unwrap_or_default();
    let named = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next()?, fields.next()?);
        let fits = match version {
            2 => controllers.is_empty(),
            _ => controllers.split(',').any(|each| each == controller),
        };
        fits.then(|| path.to_owned())
    });
    named.or_else(|| source.text("proc/self/cpuset").filter(|_| controller == "cpuset"))
}

/// The directory of a group, and of each above it up to the mount point. In a container the path is
/// often that of the host, and only the mount point is there.
fn above(top: &str, mut group: &str) -> Vec<String> {
    let mut dirs = Vec::new();
    while !group.is_empty() {
        dirs.push(format!("{top}/{group}"));
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
    dirs.push(top.to_owned());
    dirs
}
