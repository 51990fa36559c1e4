//! What clients ask of a server beside its records: who it is, who its peers are, which partitions
//! it has, and how it fares.

use super::records::{Namespace, Records};
use std::net::SocketAddr;
use wire::aerospike::PARTITIONS;

/// What clients take the server for: they know by it what it understands.
const BUILD: &str = "7.2.0.0";
/// In the words of the protocol: an unknown name.
const UNKNOWN: &str = "ERROR:4:unrecognized command";

/// The value of a name.
pub(super) fn value(records: &Records, member: usize, name: &str) -> String {
    let members = &records.members;
    let (name, argument) = match name.find(['/', ':']) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (name, ""),
    };
    match name {
        "node" => members.name(member),
        "build" => BUILD.to_owned(),
        "edition" | "version" => "wideload reference target".to_owned(),
        "cluster-name" => "null".to_owned(),
        "status" => "ok".to_owned(),
        "features" => "batch-any;batch-index;blob-bits;float;peers;pipelining;replicas".to_owned(),
        "partitions" => PARTITIONS.to_string(),
        "partition-generation" => members.partition_generation().to_string(),
        "peers-generation" => members.peers_generation().to_string(),
        // Nothing of it ever changes.
        "rebalance-generation" | "cluster-generation" => "1".to_owned(),
        "cluster-stable" => "1".to_owned(),
        "peers-clear-std" | "peers-clear-alt" => members.peers(member),
        "service" | "service-clear-std" => address(records, member),
        "service-clear-alt" => String::new(),
        "namespaces" => join(records.namespaces.iter().map(|n| n.name.clone())),
        "namespace" => match records.namespaces.iter().find(|n| n.name == argument) {
            Some(namespace) => told(records, namespace),
            None => "ERROR:20:unknown namespace".to_owned(),
        },
        "replicas" => {
            join(records.namespaces.iter().map(|n| members.replicas(&n.name, member).encode()))
        }
        "rack-ids" => join(records.namespaces.iter().map(|n| format!("{}:0", n.name))),
        "sets" => sets(records, argument),
        "wideload-faults" => {
            records.faults.as_ref().map(|plan| plan.faults.to_string()).unwrap_or_default()
        }
        "statistics" => statistics(records),
        _ => UNKNOWN.to_owned(),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// 15 hexadecimal digits as servers have it, of port and address.
pub(super) fn text_of(address: SocketAddr) -> String {
    let ip = match address.ip() {
        std::net::IpAddr::V4(ip) => u32::from(ip),
        std::net::IpAddr::V6(ip) => ip.to_bits() as u32,
    };
    format!("BB9{:04X}{ip:08X}", address.port())
}

/// Empty when it listens everywhere: whoever asks knows where.
fn address(records: &Records, member: usize) -> String {
    let address = records.members.address(member);
    address.filter(|known| !known.ip().is_unspecified()).map(|a| a.to_string()).unwrap_or_default()
}

fn told(records: &Records, namespace: &Namespace) -> String {
    let (objects, count) = (namespace.records(), records.members.count());
    let used = records.used_bytes();
    let max = records.memory_max.0;
    let stop_writes = used > max;
    format!(
        "ns_cluster_size={count};effective_replication_factor=1;replication-factor=1;\
         objects={objects};master_objects={objects};prole_objects=0;\
         migrate_tx_partitions_remaining=0;migrate_rx_partitions_remaining=0;\
         unavailable_partitions=0;dead_partitions=0;\
         data_used_bytes={used};memory_used_bytes={used};storage-engine=memory;\
         storage-engine.data-size={max};default-ttl=0;stop_writes={stop_writes}"
    )
}

/// Of all namespaces, of one, or of one of its sets: `NAMESPACE` or `NAMESPACE/SET`.
fn sets(records: &Records, argument: &str) -> String {
    let (namespace, set) = argument.split_once('/').unwrap_or((argument, ""));
    let wanted = |name: &str, asked: &str| asked.is_empty() || asked == name;
    let named = records.namespaces.iter().filter(|known| wanted(&known.name, namespace));
    let lines = named.flat_map(|known| {
        let sets = known.sets().into_iter().filter(|(name, _)| wanted(name, set));
        let line =
            |(name, count)| format!("ns={}:set={name}:objects={count}:tombstones=0", known.name);
        sets.map(line).collect::<Vec<_>>()
    });
    lines.map(|line| line + ";").collect()
}

fn statistics(records: &Records) -> String {
    let objects: usize = records.namespaces.iter().map(Namespace::records).sum();
    let mut text = format!(
        "cluster_size={};cluster_integrity=true;objects={objects}",
        records.members.count()
    );
    for (name, count) in records.counters.sums() {
        text.push_str(&format!(";{name}={count}"));
    }
    text
}
