//! Settings, target and machine as short groups of rows.
//!
//! Input: the JSON objects of a manifest, in whatever shape; output: groups with a title. What is
//! known of a machine is summed up (a machine of 128 cpus is two lines, not 128); what is not
//! known is shown as dotted paths, long lists as their length. Nothing is invented: what is absent
//! has no row, and the whole is in `manifest.json`.

use crate::number::{bytes, grouped};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Rows of a group; the others are in the manifest.
const ROWS_MAX: usize = 60;
/// Items of a list that are shown one by one.
const ITEMS_MAX: usize = 8;
/// Characters of a value; a kernel's command line has some hundred.
const VALUE_CHARS_MAX: usize = 600;

/// Rows that belong together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, String)>,
    /// Rows that did not fit.
    pub(crate) left_out: usize,
}

impl Group {
    fn new(title: &str) -> Self {
        Self { title: title.to_owned(), ..Self::default() }
    }

    fn add(&mut self, name: &str, text: impl Into<String>) {
        if self.rows.len() >= ROWS_MAX {
            self.left_out += 1;
            return;
        }
        let text: String = text.into();
        let text = match text.char_indices().nth(VALUE_CHARS_MAX) {
            Some((end, _)) => format!("{} …", &text[..end]),
            None => text,
        };
        self.rows.push((name.to_owned(), text));
    }

    /// Adds a row when there is a value.
    fn add_some(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.add(name, scalar(name, &value));
        }
    }
}

/// Groups of the flags of a run; a flag that none of them knows is under "Other".
const FLAGS: [(&str, &[&str]); 4] = [
    (
        "Workload",
        &[
            "workload",
            "records",
            "properties",
            "property-files",
            "keyspace",
            "table",
            "load",
            "seed",
        ],
    ),
    (
        "Load",
        &[
            "threads",
            "rate",
            "arrivals",
            "throttle",
            "in-flight-max",
            "ops",
            "duration",
            "warm",
            "timeout",
            "retries",
            "give-up",
            "interval",
            "repeat",
            "settle",
        ],
    ),
    (
        "Target",
        &[
            "target",
            "cassandra",
            "target-cpus",
            "user",
            "password-file",
            "fixed-hosts",
            "datacenter",
            "replication",
            "consistency",
            "protocol",
            "compression",
            "write-into-existing",
        ],
    ),
    ("Client", &["client-cpus", "workers", "connections", "engine", "wait"]),
];

/// The flags as they were resolved.
pub(crate) fn settings(settings: &Map<String, Value>) -> Vec<Group> {
    let mut rest = settings.clone();
    let mut groups = Vec::new();
    for (title, flags) in FLAGS {
        let mut group = Group::new(title);
        for flag in flags {
            if let Some(value) = rest.shift_remove(*flag) {
                flatten(flag, &value, &mut group);
            }
        }
        groups.push(group);
    }
    groups.push(other("Other", &Value::Object(rest)));
    groups.retain(|group| !group.rows.is_empty());
    groups
}

/// What was driven.
pub(crate) fn target(target: &Value) -> Vec<Group> {
    let mut group = other("Target as found", target);
    for (name, _) in &mut group.rows {
        *name = name.replace("bytes", "").replace(['_', '.'], " ");
        *name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if group.rows.is_empty() { Vec::new() } else { vec![group] }
}

/// The machine, and whatever else a manifest says of its host.
pub(crate) fn host(host: &Value) -> Vec<Group> {
    let mut rest = host.clone();
    let mut groups = vec![
        processor(&mut rest),
        memory(&mut rest),
        kernel(&mut rest),
        mitigations(&mut rest),
        guest(&mut rest),
        named("Network", take(&mut rest, &["nics"]), nic),
        named("Disks", take(&mut rest, &["disks"]), disk),
    ];
    groups.push(other("Other", &rest));
    groups.retain(|group| !group.rows.is_empty());
    groups
}

fn processor(host: &mut Value) -> Group {
    let mut group = Group::new("Processor");
    group.add_some("model", take(host, &["settings", "cpu_model"]));
    if let Some(Value::Array(cpus)) = take(host, &["cpus"]) {
        group.add("topology", topology(&cpus));
    }
    let online = take(host, &["online"]);
    for (name, key) in [("present", "present"), ("allowed to this program", "allowed")] {
        group.add_some(name, take(host, &[key]).filter(|set| Some(set) != online.as_ref()));
    }
    group.add_some("online", online);
    let offline = take(host, &["offline"]);
    group.add_some("offline", offline.filter(|set| set.as_str() != Some("")));
    if let Some(Value::Object(governors)) = take(host, &["settings", "governors"]) {
        let texts: Vec<_> =
            governors.iter().map(|(name, cpus)| format!("{name} ({})", scalar("", cpus))).collect();
        let none = "the kernel shows none, as in most guests".to_owned();
        group.add("governor", if texts.is_empty() { none } else { texts.join(", ") });
    }
    group.add_some("boost", take(host, &["settings", "boost"]));
    group.add_some("SMT", take(host, &["settings", "smt"]));
    if let Some(mhz) = take(host, &["settings", "frequency_mhz_max"]) {
        group.add("highest clock", format!("{mhz} MHz"));
    }
    for (name, key) in [("isolated cpus", "isolated"), ("cpus without a tick", "nohz_full")] {
        group.add_some(name, take(host, &[key]).filter(|set| set.as_str() != Some("")));
    }
    if let Some(Value::Array(caches)) = take(host, &["caches"]) {
        let texts = caches.iter().map(cache_text).collect::<Vec<_>>();
        group.add("caches", texts.join(", "));
    }
    if let Some(Value::Array(kinds)) = take(host, &["kinds"]).filter(|kinds| *kinds != json!([])) {
        let text =
            |kind: &Value| format!("{} ({})", scalar("", &kind["name"]), scalar("", &kind["cpus"]));
        group.add("kinds of cores", kinds.iter().map(text).collect::<Vec<_>>().join(", "));
    }
    group
}

/// `L3 8 MiB x 16`, of caches that are alike.
fn cache_text(cache: &Value) -> String {
    let kind = cache["kind"].as_str().filter(|kind| *kind != "unified");
    let size = cache["size_bytes"].as_f64().map(bytes);
    let count = cache["shared_by"].as_str().map_or(1, |sets| sets.split(' ').count());
    let words = [Some(format!("L{}", cache["level"])), kind.map(str::to_owned), size];
    format!("{} x {count}", words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// A row for each device, by its name.
fn named(title: &str, devices: Option<Value>, text: fn(&Value) -> Vec<Option<String>>) -> Group {
    let mut group = Group::new(title);
    for device in devices.as_ref().and_then(Value::as_array).into_iter().flatten() {
        let numa = device["numa"].as_u64().map(|numa| format!("at NUMA node {numa}"));
        let words = text(device).into_iter().chain([numa]).flatten();
        group
            .add(device["name"].as_str().unwrap_or_default(), words.collect::<Vec<_>>().join(", "));
    }
    group
}

fn nic(nic: &Value) -> Vec<Option<String>> {
    let queues = match (nic["rx_queues"].as_u64(), nic["tx_queues"].as_u64()) {
        (Some(rx), Some(tx)) => Some(format!("queues {rx} to receive, {tx} to send")),
        _ => None,
    };
    vec![
        nic["up"].as_bool().map(|up| if up { "up" } else { "down" }.to_owned()),
        nic["speed_mbit_s"].as_u64().map(|speed| format!("{speed} Mbit/s")),
        nic["mtu_bytes"].as_u64().map(|mtu| format!("MTU {mtu}")),
        nic["driver"].as_str().map(|driver| format!("driver {driver}")),
        queues,
    ]
}

fn disk(disk: &Value) -> Vec<Option<String>> {
    vec![
        disk["model"].as_str().map(str::to_owned),
        disk["size_bytes"].as_f64().map(bytes),
        disk["rotational"].as_bool().map(|on| if on { "rotational" } else { "flash" }.to_owned()),
        disk["scheduler"].as_str().map(|scheduler| format!("scheduler {scheduler}")),
        disk["read_ahead_kib"].as_u64().map(|kib| format!("read-ahead {kib} KiB")),
    ]
}

/// `128 cpus: 2 packages, 64 cores, 16 last-level caches`.
fn topology(cpus: &[Value]) -> String {
    let distinct = |keys: &[&str]| {
        let known = cpus.iter().filter(|cpu| keys.iter().all(|key| !cpu[*key].is_null()));
        let places = known.map(|cpu| keys.iter().map(|key| cpu[*key].to_string()).collect());
        places.collect::<BTreeSet<Vec<String>>>().len()
    };
    let parts = [
        (distinct(&["package"]), "package"),
        (distinct(&["package", "core"]).max(distinct(&["package", "die", "core"])), "core"),
        (distinct(&["numa"]), "NUMA node"),
        (distinct(&["llc"]), "last-level cache"),
    ];
    let count = |(n, what): &(usize, &str)| format!("{n} {what}{}", if *n == 1 { "" } else { "s" });
    let texts: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(count).collect();
    format!("{}: {}", count(&(cpus.len(), "cpu")), texts.join(", "))
}

fn memory(host: &mut Value) -> Group {
    let mut group = Group::new("Memory");
    group.add_some("memory_bytes", take(host, &["settings", "memory_bytes"]));
    group.add_some("swap_bytes", take(host, &["settings", "swap_bytes"]));
    group.rows.iter_mut().for_each(|row| row.0 = row.0.replace("_bytes", ""));
    group.add_some("swappiness", take(host, &["settings", "swappiness"]));
    group.add_some("transparent huge pages", take(host, &["settings", "thp_enabled"]));
    group.add_some("THP defrag", take(host, &["settings", "thp_defrag"]));
    group.add_some("NUMA balancing", take(host, &["settings", "numa_balancing"]));
    group.add_some("zone reclaim", take(host, &["settings", "zone_reclaim_mode"]));
    if let Some(Value::Array(sizes)) = take(host, &["settings", "huge_pages"]) {
        let text = |pages: &Value| {
            let size = pages["size_bytes"].as_f64().map(bytes).unwrap_or_default();
            format!("{} of {size}", pages["total"])
        };
        group.add("huge pages", sizes.iter().map(text).collect::<Vec<_>>().join(", "));
    }
    if let Some(Value::Array(numa)) = take(host, &["numa"]) {
        group.add("NUMA", numa_text(&numa));
    }
    group
}

fn numa_text(numa: &[Value]) -> String {
    let sizes = numa.iter().filter_map(|one| one["memory_bytes"].as_f64());
    let (least, most) =
        sizes.fold((f64::INFINITY, 0f64), |(low, high), size| (low.min(size), high.max(size)));
    let distances = numa.iter().filter_map(|one| one["distances"].as_array()).flatten();
    let farthest = distances.filter_map(Value::as_u64).max();
    let size = match (least, most) {
        (least, _) if !least.is_finite() => String::new(),
        (least, most) if most < least * 1.02 => format!(", {} each", bytes(most)),
        (least, most) => format!(", {} to {}", bytes(least), bytes(most)),
    };
    let far = farthest.filter(|_| numa.len() > 1).map(|d| format!(", distances up to {d}"));
    format!("{}{size}{}", numa.len(), far.unwrap_or_default())
}

fn kernel(host: &mut Value) -> Group {
    let mut group = Group::new("Kernel");
    group.add_some("host name", take(host, &["settings", "host_name"]));
    group.add_some("release", take(host, &["settings", "kernel_release"]));
    group.add_some("clock source", take(host, &["settings", "clock_source"]));
    group.add_some("command line", take(host, &["settings", "kernel_command_line"]));
    group
}

/// By what the kernel says: `Not affected: 9 (...)`.
fn mitigations(host: &mut Value) -> Group {
    let mut group = Group::new("Mitigations");
    let Some(Value::Object(found)) = take(host, &["settings", "mitigations"]) else { return group };
    let states = ["Vulnerable", "Mitigation", "Not affected"];
    // "Mitigation: PTI"; the kernel also has sentences of its own.
    let state_of = |what: &Value| {
        let what = what.as_str().unwrap_or_default();
        states.into_iter().find(|state| what.starts_with(state)).unwrap_or("Otherwise")
    };
    for state in states.into_iter().chain(["Otherwise"]) {
        let names = found.iter().filter(|(_, what)| state_of(what) == state);
        let names: Vec<_> = names.map(|(name, _)| name.replace('_', " ")).collect();
        if !names.is_empty() {
            group.add(&state.to_lowercase(), format!("{}: {}", names.len(), names.join(", ")));
        }
    }
    group
}

fn guest(host: &mut Value) -> Group {
    let mut group = Group::new("Virtualisation");
    group.add_some("hypervisor", take(host, &["settings", "virtualisation", "hypervisor_flag"]));
    group.add_some("vendor", take(host, &["settings", "virtualisation", "sys_vendor"]));
    group.add_some("product", take(host, &["settings", "virtualisation", "product_name"]));
    group.add_some("firmware", take(host, &["settings", "virtualisation", "bios"]));
    group
}

/// Takes a value out of nested objects; None when it is absent or null.
fn take(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let object = above.iter().try_fold(value, |value, key| value.get_mut(*key))?;
    object.as_object_mut()?.shift_remove(*last).filter(|found| !found.is_null())
}

fn other(title: &str, value: &Value) -> Group {
    let mut group = Group::new(title);
    flatten("", value, &mut group);
    group
}

/// A JSON value as rows of dotted path and text.
fn flatten(path: &str, value: &Value, group: &mut Group) {
    let below = |key: &str| if path.is_empty() { key.into() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(&below(k), v, group)),
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) if items.iter().all(|i| !i.is_object() && !i.is_array()) => {
            let shown = items.iter().take(ITEMS_MAX * 4).map(|item| scalar(path, item));
            let more = items.len().saturating_sub(ITEMS_MAX * 4);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            group.add(path, format!("{}{more}", shown.collect::<Vec<_>>().join(", ")));
        }
        Value::Array(items) if items.len() > ITEMS_MAX => {
            group.add(path, format!("{} entries, see manifest.json", items.len()));
        }
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(i, item)| flatten(&below(&i.to_string()), item, group));
        }
        Value::Null => {}
        other => group.add(path, scalar(path, other)),
    }
}

/// A value as a reader wants it: bytes with a unit, yes and no.
fn scalar(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(n) if name.contains("bytes") => {
            n.as_f64().map_or_else(|| n.to_string(), bytes)
        }
        // A seed or a port is a name, not an amount.
        Value::Number(n) if name.ends_with("records") || name.ends_with("ops") => {
            n.as_u64().map_or_else(|| n.to_string(), grouped)
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(groups: &'a [Group], group: &str, name: &str) -> &'a str {
        let group = groups.iter().find(|g| g.title == group).unwrap();
        &group.rows.iter().find(|(n, _)| n == name).unwrap().1
    }

    /// As the crate `machine` writes it.
    fn machine(cpus: u64) -> Value {
        let one = |id: u64| {
            json!({"id": id, "package": id % 2, "die": 0, "core": id / 4, "siblings": "0,1",
                   "numa": id % 8, "llc": id % 16})
        };
        let size = 64u64 << 30;
        let numa = |id: u64| json!({"id": id, "memory_bytes": size, "distances": [10, 32]});
        json!({
            "present": "0-127", "online": "0-127", "offline": "", "allowed": "0-63",
            "cpus": (0..cpus).map(one).collect::<Vec<_>>(),
            "numa": (0..8).map(numa).collect::<Vec<_>>(),
            "caches": [
                {"level": 1, "kind": "data", "size_bytes": 32768, "shared_by": "0,64 1,65"},
                {"level": 3, "kind": "unified", "size_bytes": 8388608, "shared_by": "0-7"}
            ],
            "nics": [{"name": "eth0", "up": true, "speed_mbit_s": 25000, "mtu_bytes": 1500,
                      "driver": "mlx5", "rx_queues": 8, "tx_queues": 8, "numa": 1}],
            "disks": [{"name": "sda", "rotational": false, "scheduler": "none",
                       "read_ahead_kib": 128, "numa": null}],
            "settings": {
                "cpu_model": "AMD EPYC 7601", "memory_bytes": 512u64 << 30, "swap_bytes": 0,
                "governors": {"performance": "0-127"}, "thp_enabled": "madvise", "boost": true,
                "mitigations": {"l1tf": "Not affected", "mds": "Not affected", "srso": "Safe"},
                "huge_pages": [{"size_bytes": 2097152, "total": 4, "free": 4}],
                "frequency_mhz_max": 3200,
                "virtualisation": {"hypervisor_flag": false, "sys_vendor": null},
                "something_new": [1, 2]
            }
        })
    }

    #[test]
    fn a_large_machine_is_a_few_lines() {
        let groups = host(&machine(128));
        let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
        assert!(rows < 30, "{rows}");
        let topology = row(&groups, "Processor", "topology");
        assert_eq!(topology, "128 cpus: 2 packages, 64 cores, 8 NUMA nodes, 16 last-level caches");
        assert_eq!(row(&groups, "Processor", "governor"), "performance (0-127)");
        assert_eq!(row(&groups, "Processor", "allowed to this program"), "0-63");
        assert_eq!(row(&groups, "Memory", "memory"), "512 GiB");
        assert_eq!(row(&groups, "Memory", "NUMA"), "8, 64 GiB each, distances up to 32");
        assert_eq!(row(&groups, "Memory", "huge pages"), "4 of 2 MiB");
        assert_eq!(row(&groups, "Processor", "highest clock"), "3200 MHz");
        assert_eq!(row(&groups, "Processor", "caches"), "L1 data 32 KiB x 2, L3 8 MiB x 1");
        let eth0 = "up, 25000 Mbit/s, MTU 1500, driver mlx5, queues 8 to receive, 8 to send, at \
                    NUMA node 1";
        assert_eq!(row(&groups, "Network", "eth0"), eth0);
        assert_eq!(row(&groups, "Disks", "sda"), "flash, scheduler none, read-ahead 128 KiB");
        assert_eq!(row(&groups, "Mitigations", "not affected"), "2: l1tf, mds");
        assert_eq!(row(&groups, "Other", "settings.something_new"), "1, 2");
    }

    #[test]
    fn facts_of_any_shape_are_flat_and_bounded() {
        let value =
            json!({"cpu": {"model": "x", "ids": [1, 2]}, "swap": null, "nics": [{"a": true}]});
        let rows = other("", &value).rows;
        let expected = [("cpu.model", "x"), ("cpu.ids", "1, 2"), ("nics.0.a", "yes")];
        assert_eq!(rows, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let many: Map<_, _> = (0..300).map(|i| (i.to_string(), json!(i))).collect();
        let group = other("", &Value::Object(many));
        assert_eq!((group.rows.len(), group.left_out), (ROWS_MAX, 300 - ROWS_MAX));
        let long = json!({"list": vec![json!({"a": 1}); 9], "text": "x".repeat(5000)});
        let rows = other("", &long).rows;
        assert_eq!(rows[0].1, "9 entries, see manifest.json");
        assert!(rows[1].1.ends_with("x …"));
    }

    #[test]
    fn flags_are_grouped_and_none_is_lost() {
        let flags = json!({"rate": "5k/s", "threads": null, "seed": 42, "new-flag": "x",
                           "cassandra": {"heap_bytes": 1073741824u64}, "properties": []});
        let groups = settings(flags.as_object().unwrap());
        let titles: Vec<_> = groups.iter().map(|g| g.title.as_str()).collect();
        assert_eq!(titles, ["Workload", "Load", "Target", "Other"]);
        assert_eq!(row(&groups, "Target", "cassandra.heap_bytes"), "1 GiB");
        assert_eq!(row(&groups, "Other", "new-flag"), "x");
    }
}
