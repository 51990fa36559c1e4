//! Persistent memory: regions, devices that map it, file systems mounted on it.
//!
//! Input: `sys/bus/{nd,dax}/devices`, `sys/block`, `proc/self/mounts`. Output: [`Pmem`]s and
//! [`DaxMount`]s, sizes in bytes. Source: the kernel's Documentation/driver-api/nvdimm and
//! filesystems/dax.rst. Limits: mounts are those of the process that reads; at most 4096.

use crate::source::Source;
use crate::topology::as_numa_number;
use serde::Serialize;
use units::NumaId;

const MOUNTS_MAX: usize = 4096;

/// A region of persistent memory, or a character device that maps memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pmem {
    /// `region0`, `dax0.0`.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// The NUMA node next to it.
    #[serde(serialize_with = "as_numa_number")]
    pub numa: Option<NumaId>,
    /// The driver of a dax device: `device_dax`; `kmem` where it serves as memory.
    pub driver: Option<String>,
}

/// A file system without page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaxMount {
    /// Where it is mounted.
    pub path: String,
    /// On which block device.
    pub device: String,
    /// The NUMA node of the device.
    #[serde(serialize_with = "as_numa_number")]
    pub numa: Option<NumaId>,
}

pub(crate) fn read(source: &Source) -> Vec<Pmem> {
    let on_bus = |bus: &str, prefix: &str| {
        let dir = format!("sys/bus/{bus}/devices");
        let names = source.names(&dir).into_iter().filter(|name| {
            name.strip_prefix(prefix).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
        });
        let pmem = |name: String| {
            let device = format!("{dir}/{name}");
            Pmem {
                size_bytes: source.number(&format!("{device}/size")),
                numa: source.numa_of_device(&device),
                driver: source.link_name(&format!("{device}/driver")),
                name,
            }
        };
        names.map(pmem).collect::<Vec<_>>()
    };
    let mut found = on_bus("nd", "region");
    found.extend(on_bus("dax", "dax"));
    found
}

/// Mounts with `dax` or `dax=always` among their options.
pub(crate) fn mounts(source: &Source) -> Vec<DaxMount> {
    let text = mount_table(source);
    let mount = |line: &str| {
        let mut words = line.split_whitespace();
        let (device, path, options) = (words.next()?, words.next()?, words.nth(1)?);
        let dax = options.split(',').any(|option| option == "dax" || option == "dax=always");
        let name = device.strip_prefix("/dev/").filter(|name| !name.contains('/'))?;
        dax.then(|| DaxMount {
            path: unescaped(path),
            device: device.to_owned(),
            numa: source.numa_of_device(&format!("sys/block/{name}")).or_else(|| {
                // A partition is below its disk.
                source.numa_of_device(&format!("sys/class/block/{name}"))
            }),
        })
    };
    text.lines().take(MOUNTS_MAX).filter_map(mount).collect()
}

/// What is mounted, as the reading process sees it.
pub(crate) fn mount_table(source: &Source) -> String {
    let files = ["proc/self/mounts", "proc/mounts"];
    files.iter().find_map(|path| source.text(path)).unwrap_or_default()
}

/// White space and backslashes are octal numbers there: `\040`.
pub(crate) fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (escaped, plain)| path.replace(escaped, plain))
}
