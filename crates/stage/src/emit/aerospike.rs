//! Aerospike: `aerospike.conf` and the start.
//!
//! Input: a layout and settings. Output: `aerospike.conf` and `run.sh` for each instance.
//!
//! `auto-pin` follows the server's own code (`as/src/base/cfg.c`, `cf/src/hardware.c` of the
//! Community Edition 8.1.2): it needs the service bound to network interfaces by name and no
//! irqbalance, moves the interrupts of these NICs itself, and with `numa` takes all cpus of the
//! NUMA node whose index is `--instance`. So it is chosen only where an instance has exactly one
//! whole NUMA node and a NIC there; else the binding comes from outside. Without it the default of
//! `service-threads` counts the cpus of the whole machine, so it is given: one per cpu of the
//! instance, as the server takes it for data in memory. What is obsolete was read from the tags of
//! the server's repository. Limits: one namespace, in memory; `auto-pin adq` only when set.

use super::shell::{HEAD, quoted};
use super::{Asked, EmitError, Emitted, Set, file, name};
use machine::layout::{Layout, Placement, Reason, aerospike_data_bytes};

/// The release when none is given.
const VERSION: (u32, u32) = (8, 1);
/// As in the published study.
const CONNECTIONS_MAX: u32 = 15_000;

pub(super) fn files(layout: &Layout, asked: &Asked, root: &str) -> Result<Emitted, EmitError> {
    let version = version(asked.version.as_deref())?;
    let mut emitted = Emitted::default();
    for placement in &layout.placements {
        let mut conf = conf(layout, placement, asked.ring, version, root)?;
        pinned(placement, &mut emitted.notes);
        for set in &asked.settings {
            let Set::Aerospike(path, value) = set else { continue };
            refuse_obsolete(path, version)?;
            let note = match conf.put(path, value) {
                Some(old) => format!("{set}, as asked, where {old} is advised"),
                None => format!("{set}, as asked, instead of what is usual"),
            };
            emitted.notes.push(Reason::caution("setting", note));
        }
        emitted.files.push(file(layout, placement, "aerospike.conf", conf.text()));
        emitted.files.push(file(layout, placement, "run.sh", run(layout, placement, root)));
    }
    Ok(emitted)
}

fn version(given: Option<&str>) -> Result<(u32, u32), EmitError> {
    let Some(given) = given else { return Ok(VERSION) };
    let mut numbers = given.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major @ 5..)), Some(Ok(minor))) if numbers.all(|number| number.is_ok()) => {
            Ok((major, minor))
        }
        _ => Err(EmitError::AerospikeVersion { given: given.to_owned() }),
    }
}

/// Whether the server pins itself.
fn pins_itself(placement: &Placement) -> bool {
    placement.nic_is_near && placement.whole_numa.is_some()
}

fn pinned(placement: &Placement, notes: &mut Vec<Reason>) {
    let note = match (pins_itself(placement), &placement.nic) {
        (true, Some(nic)) => format!(
            "numa for instance {}: it has a whole NUMA node and {nic} is there; irqbalance \
             has to be off, and the server moves the interrupts of {nic} itself",
            placement.instance
        ),
        (_, None) => "none: it needs network interfaces, and these are local addresses; \
                      numactl or the unit bind the instances"
            .to_owned(),
        (_, Some(_)) => format!(
            "none for instance {}: it has no whole NUMA node with a NIC of its own; \
             numactl or the unit bind it",
            placement.instance
        ),
    };
    let note = Reason::new("auto-pin", note);
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn conf(
    layout: &Layout,
    placement: &Placement,
    ring: bool,
    version: (u32, u32),
    root: &str,
) -> Result<Section, EmitError> {
    let memory = placement.memory_bytes.ok_or(EmitError::NoMemory)?;
    let pins = pins_itself(placement);
    let nic = placement.nic.as_ref().filter(|_| pins);
    let address = nic.cloned().unwrap_or_else(|| placement.address.to_string());
    let port = |name| placement.port(name).unwrap_or_default().to_string();
    let cluster = match ring {
        true => "wideload".to_owned(),
        false => format!("wideload-{}", placement.instance),
    };
    let mut service = Section::new("service");
    service.value("cluster-name", cluster);
    service.value("work-directory", format!("{root}/{}/data", name(layout, placement)));
    service.value("proto-fd-max", CONNECTIONS_MAX.to_string());
    service.value("auto-pin", if pins { "numa" } else { "none" });
    service.value("service-threads", placement.cpus.len().to_string());
    let mut console = Section::new("console");
    console.value("context", "any info");
    let mut of_service = Section::new("service");
    of_service.value("address", address.clone());
    of_service.value("port", port("service"));
    let mut heartbeat = Section::new("heartbeat");
    heartbeat.value("mode", "mesh");
    heartbeat.value("address", address.clone());
    heartbeat.value("port", port("heartbeat"));
    for other in layout.placements.iter().filter(|_| ring) {
        let seed = format!("{} {}", other.address, other.port("heartbeat").unwrap_or_default());
        heartbeat.values.push(("mesh-seed-address-port".to_owned(), seed));
    }
    heartbeat.value("interval", "150");
    heartbeat.value("timeout", "10");
    let at_port = |section: &str, name: &'static str| {
        let mut section = Section::new(section);
        section.value("address", address.clone());
        section.value("port", port(name));
        section
    };
    let network = Section::new("network")
        .with(of_service)
        .with(heartbeat)
        .with(at_port("fabric", "fabric"))
        .with(at_port("info", "info"));
    let logging = Section::new("logging").with(console);
    let namespace = namespace(layout, ring, version, memory);
    Ok(Section::new("").with(service).with(logging).with(network).with(namespace))
}

fn namespace(layout: &Layout, ring: bool, version: (u32, u32), memory: u64) -> Section {
    let copies = if ring { layout.placements.len().min(2) } else { 1 };
    let mut namespace = Section { title: "namespace test".to_owned(), ..Section::new("namespace") };
    namespace.value("replication-factor", copies.to_string());
    namespace.value("default-ttl", "0");
    if version < (7, 0) {
        // Data had no size of their own: they shared one with the index.
        namespace.value("memory-size", format!("{}M", memory >> 20));
        namespace.value("storage-engine", "memory");
        return namespace;
    }
    let title = "storage-engine memory".to_owned();
    let mut storage = Section { title, ..Section::new("storage-engine") };
    storage.value("data-size", format!("{}M", aerospike_data_bytes(memory) >> 20));
    namespace.with(storage)
}

/// The index of the NUMA node is what `--instance` names.
fn run(layout: &Layout, placement: &Placement, root: &str) -> String {
    let dir = format!("{root}/{}", name(layout, placement));
    let index = match placement.whole_numa.filter(|_| pins_itself(placement)) {
        Some(index) => index,
        None => placement.instance - 1,
    };
    format!(
        "{HEAD}# {} in the foreground.\nset -euo pipefail\nmkdir -p {}\nulimit -n {}\n\
         exec \"${{ASD:-asd}}\" --foreground --config-file {} --instance {index}\n",
        name(layout, placement),
        quoted(&format!("{dir}/data")),
        CONNECTIONS_MAX + 1000,
        quoted(&format!("{dir}/aerospike.conf")),
    )
}

/// A part of `aerospike.conf`.
struct Section {
    /// What it is reached by.
    name: String,
    /// What stands before its brace.
    title: String,
    values: Vec<(String, String)>,
    sections: Vec<Section>,
}

impl Section {
    fn new(name: &str) -> Self {
        let name = name.to_owned();
        Self { title: name.clone(), name, values: Vec::new(), sections: Vec::new() }
    }

    fn with(mut self, section: Self) -> Self {
        self.sections.push(section);
        self
    }

    fn value(&mut self, key: &str, value: impl Into<String>) {
        self.values.push((key.to_owned(), value.into()));
    }

    /// Sets what `path` names; what was there before.
    fn put(&mut self, path: &[String], value: &str) -> Option<String> {
        let (first, rest) = path.split_first()?;
        if rest.is_empty() {
            let known = self.values.iter_mut().find(|(key, _)| key == first);
            return match known {
                Some((_, old)) => Some(std::mem::replace(old, value.to_owned())),
                None => {
                    self.value(first, value);
                    None
                }
            };
        }
        let position = self.sections.iter().position(|section| section.name == *first);
        let position = position.unwrap_or_else(|| {
            self.sections.push(Self::new(first));
            self.sections.len() - 1
        });
        self.sections[position].put(rest, value)
    }

    fn text(&self) -> String {
        let parts: Vec<String> = self.sections.iter().map(|section| section.at(0)).collect();
        parts.join("\n")
    }

    fn at(&self, depth: usize) -> String {
        let indent = "    ".repeat(depth);
        let mut text = format!("{indent}{} {{\n", self.title);
        for (key, value) in &self.values {
            text.push_str(&format!("{indent}    {key} {value}\n"));
        }
        for section in &self.sections {
            text.push_str(&section.at(depth + 1));
        }
        text.push_str(&format!("{indent}}}\n"));
        text
    }
}

/// Where (or anywhere, when empty), what, from which release on, what instead.
type Obsolete = (&'static str, &'static str, (u32, u32), &'static str);

const THREADS: &str = "set service.service-threads";

const OBSOLETE: [Obsolete; 23] = [
    ("service", "transaction-queues", (5, 0), THREADS),
    ("service", "transaction-threads-per-queue", (5, 0), THREADS),
    ("service", "allow-inline-transactions", (5, 0), THREADS),
    ("service", "nsup-period", (5, 0), "set namespace.nsup-period"),
    ("service", "object-size-hist-period", (5, 0), "set namespace.nsup-hist-period"),
    ("service", "transaction-pending-limit", (5, 0), "set namespace.transaction-pending-limit"),
    ("service", "scan-max-done", (6, 0), "set service.query-max-done"),
    ("service", "scan-threads-limit", (6, 0), "set service.query-threads-limit"),
    ("namespace", "background-scan-max-rps", (6, 0), "set namespace.background-query-max-rps"),
    ("namespace", "single-scan-threads", (6, 0), "set namespace.single-query-threads"),
    ("namespace", "single-bin", (6, 4), "all namespaces have several bins: leave it out"),
    ("namespace", "data-in-index", (6, 4), "leave it out"),
    (
        "namespace",
        "memory-size",
        (7, 0),
        "set namespace.storage-engine.data-size, and namespace.stop-writes-sys-memory-pct",
    ),
    ("namespace", "high-water-memory-pct", (7, 0), "set namespace.storage-engine.evict-used-pct"),
    ("namespace", "high-water-disk-pct", (7, 0), "set namespace.storage-engine.evict-used-pct"),
    ("namespace", "stop-writes-pct", (7, 0), "set namespace.stop-writes-sys-memory-pct"),
    ("", "mounts-size-limit", (7, 0), "set mounts-budget there"),
    ("", "mounts-high-water-pct", (7, 0), "set evict-mounts-pct there"),
    ("storage-engine", "data-in-memory", (7, 0), "data in memory are storage-engine memory"),
    ("storage-engine", "max-used-pct", (7, 0), "set stop-writes-used-pct there"),
    ("storage-engine", "min-avail-pct", (7, 0), "set stop-writes-avail-pct there"),
    ("storage-engine", "write-block-size", (7, 1), "set flush-size there"),
    ("storage-engine", "post-write-queue", (7, 1), "set post-write-cache there"),
];

fn refuse_obsolete(path: &[String], version: (u32, u32)) -> Result<(), EmitError> {
    let [.., section, key] = path else { return Ok(()) };
    let found = OBSOLETE.iter().find(|(of, name, from, ..)| {
        (of.is_empty() || of == section) && name == key && version >= *from
    });
    match found {
        Some((_, _, from, cure)) => Err(EmitError::Obsolete {
            key: path.join("."),
            since: format!("{}.{}", from.0, from.1),
            version: format!("{}.{}", version.0, version.1),
            cure,
        }),
        None => Ok(()),
    }
}
