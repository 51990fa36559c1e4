//! What clients ask of a server beside its records: who it is, who its peers are, which partitions
//! it has, and how it fares.

use super::records::{Namespace, Records};
use wire::aerospike::PARTITIONS;
use wire::aerospike::info::Replicas;

/// What clients take the server for: they know by it what it understands.
const BUILD: &str = "7.2.0.0";
/// In the words of the protocol: an unknown name.
const UNKNOWN: &str = "ERROR:4:unrecognized command";

/// The value of a name.
pub(super) fn value(records: &Records, name: &str) -> String {
    let (name, argument) = match name.find(['/', ':']) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (name, ""),
    };
    match name {
        "node" => server_name(records),
        "build" => BUILD.to_owned(),
        "edition" | "version" => "wideload reference target".to_owned(),
        "cluster-name" => "null".to_owned(),
        "status" => "ok".to_owned(),
        "features" => "batch-any;batch-index;blob-bits;float;peers;pipelining;replicas".to_owned(),
        "partitions" => PARTITIONS.to_string(),
        // Nothing of it ever changes.
        "partition-generation"
        | "peers-generation"
        | "rebalance-generation"
        | "cluster-generation" => "1".to_owned(),
        "cluster-stable" => "1".to_owned(),
        "peers-clear-std" | "peers-clear-alt" => "1,3000,[]".to_owned(),
        "service" | "service-clear-std" => address(records),
        "service-clear-alt" => String::new(),
        "namespaces" => join(records.namespaces.iter().map(|n| n.name.clone())),
        "namespace" => match records.namespaces.iter().find(|n| n.name == argument) {
            Some(namespace) => told(records, namespace),
            None => "ERROR:20:unknown namespace".to_owned(),
        },
        "replicas" => join(records.namespaces.iter().map(|n| Replicas::whole(&n.name).encode())),
        "rack-ids" => join(records.namespaces.iter().map(|n| format!("{}:0", n.name))),
        "statistics" => statistics(records),
        _ => UNKNOWN.to_owned(),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

/// 15 hexadecimal digits as servers have it, of port and address.
fn server_name(records: &Records) -> String {
    let address = match records.address.ip() {
        std::net::IpAddr::V4(ip) => u32::from(ip),
        std::net::IpAddr::V6(ip) => ip.to_bits() as u32,
    };
    format!("BB9{:04X}{address:08X}", records.address.port())
}

/// Empty when it listens everywhere: whoever asks knows where.
fn address(records: &Records) -> String {
    match records.address.ip().is_unspecified() {
        true => String::new(),
        false => records.address.to_string(),
    }
}

fn told(records: &Records, namespace: &Namespace) -> String {
    let objects = namespace.records();
    let used = records.used_bytes();
    let max = records.memory_max.0;
    let stop_writes = used > max;
    format!(
        "ns_cluster_size=1;effective_replication_factor=1;replication-factor=1;objects={objects};\
         master_objects={objects};prole_objects=0;migrate_tx_partitions_remaining=0;\
         migrate_rx_partitions_remaining=0;unavailable_partitions=0;dead_partitions=0;\
         data_used_bytes={used};memory_used_bytes={used};storage-engine=memory;\
         storage-engine.data-size={max};default-ttl=0;stop_writes={stop_writes}"
    )
}

fn statistics(records: &Records) -> String {
    let objects: usize = records.namespaces.iter().map(Namespace::records).sum();
    let mut text = format!("cluster_size=1;cluster_integrity=true;objects={objects}");
    for (name, count) in records.counters.sums() {
        text.push_str(&format!(";{name}={count}"));
    }
    text
}
