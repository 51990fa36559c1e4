//! What a process may use of a machine: affinity and cpuset.
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

/// Cpus and NUMA nodes that are not forbidden; `None` where nothing says so.
#[derive(Debug, Default)]
pub(crate) struct Confined {
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) numa: Option<Vec<NumaId>>,
}

pub(crate) fn read(source: &Source) -> Confined {
    let status = source.text("proc/self/status").unwrap_or_default();
    let allowed = |key| field(&status, &[key]);
    let ids = |text: &str| Some(numbers(text)?.into_iter().map(NumaId).collect::<Vec<_>>());
    let own = Confined {
        cpus: allowed("Cpus_allowed_list").and_then(|list| list.parse().ok()),
        numa: allowed("Mems_allowed_list").and_then(ids),
    };
    let group = |what| cpuset(source, what);
    let cpus = group("cpus").and_then(|list| list.parse::<CpuSet>().ok());
    let numa = group("mems").and_then(|list| ids(&list));
    Confined {
        cpus: both(own.cpus, cpus, |a, b| a.intersection(b)),
        numa: both(own.numa, numa, |a, b| a.iter().filter(|n| b.contains(n)).copied().collect()),
    }
}

fn both<T>(a: Option<T>, b: Option<T>, meet: impl Fn(&T, &T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(meet(&a, &b)),
        (a, b) => a.or(b),
    }
}

/// `cpus` or `mems` of the process's cpuset: of version 1 or 2, with or without the prefix.
fn cpuset(source: &Source, what: &str) -> Option<String> {
    let mounts = mount_table(source);
    let mut found = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, path, kind, options) = (words.next(), words.next()?, words.next()?, words.next()?);
        let has_cpuset = options.split(',').any(|option| option == "cpuset");
        let version = match kind {
            "cgroup2" => 2,
            "cgroup" if has_cpuset => 1,
            "cpuset" => 1,
            _ => return None,
        };
        let group = group(source, version)?;
        let top = unescaped(path).trim_matches('/').to_owned();
        in_group(source, &top, group.trim_matches('/'), what)
    });
    found.next()
}

/// Path of the process's group: `proc/self/cgroup` has a line `0::/path` for version 2 and
/// `4:cpuset:/path` for version 1; old kernels have `proc/self/cpuset` only.
fn group(source: &Source, version: u32) -> Option<String> {
    let groups = source.text("proc/self/cgroup").unwrap_or_default();
    let named = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next()?, fields.next()?);
        let fits = match version {
            2 => controllers.is_empty(),
            _ => controllers.split(',').any(|controller| controller == "cpuset"),
        };
        fits.then(|| path.to_owned())
    });
    named.or_else(|| source.text("proc/self/cpuset"))
}

/// The file of the group, or of the next one above that has it.
fn in_group(source: &Source, top: &str, group: &str, what: &str) -> Option<String> {
    let mut group = group;
    loop {
        let files = [format!("cpuset.{what}.effective"), format!("cpuset.{what}"), what.to_owned()];
        let dir = if group.is_empty() { top.to_owned() } else { format!("{top}/{group}") };
        let text = files.iter().find_map(|file| source.text(&format!("{dir}/{file}")));
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            return Some(text);
        }
        if group.is_empty() {
            return None;
        }
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
}
