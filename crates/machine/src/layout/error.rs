//! Why a layout cannot be.

use super::Database;
use std::net::IpAddr;
use thiserror::Error;
use units::{Bytes, CpuSet, NumaSet};

/// What cannot be laid out. Each text names the thing and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum LayoutError {
    #[error(
        "'{given}' is no policy: give single, per-package, per-numa, per-llc, a number of \
         instances up to 1024, or cpus for each like '0-7;8-15'"
    )]
    Policy { given: String },
    #[error("'{given}' is no database: give cassandra, scylla, aerospike or reference")]
    Database { given: String },
    #[error("'{given}' is no choice of cpus: give all, or one for the lowest of each core")]
    Smt { given: String },
    #[error("'{given}' reserves nothing: give a number of cores like 2, or cpus like 0-1 or 5-5")]
    Amount { given: String },
    #[error(
        "a budget of {asked} NUMA nodes is not to be had: {have} have free cores; give \
         --numa-count from 1 to {have}"
    )]
    NumaCount { asked: usize, have: usize },
    #[error(
        "{asked} instances do not fit on {cores} cores: give at most {cores}, or let instances \
         share cores, with a layout like 3-shared, or with --split-cores of `wideload plan`"
    )]
    Instances { asked: usize, cores: usize },
    #[error("cpus {cpus} are not online: choose from {online}")]
    Absent { cpus: CpuSet, online: CpuSet },
    #[error(
        "cpus {cpus} may not be used: affinity or cgroup allow {}; choose from these, or give the \
         cgroup more cpus (cpuset.cpus)",
        list(allowed)
    )]
    Forbidden { cpus: CpuSet, allowed: CpuSet },
    #[error(
        "instance {instance} is to have cpus {cpus}, which are outside of the budget or reserved: \
         choose from {}",
        list(inside)
    )]
    Outside { instance: usize, cpus: CpuSet, inside: CpuSet },
    #[error("instances {first} and {second} are both to have cpus {cpus}: give each cpu once")]
    Overlap { first: usize, second: usize, cpus: CpuSet },
    #[error(
        "instances {first} and {second} would share the physical core of cpus {cpus}: give it to \
         one of them, or let them share it with --split-cores of `wideload plan`"
    )]
    SharedCore { first: usize, second: usize, cpus: CpuSet },
    #[error("cpus {cpus} cannot be reserved: usable are {usable}")]
    ReserveAbsent { cpus: CpuSet, usable: CpuSet },
    #[error("the cores of cpus {cpus} are reserved twice: reserve each once")]
    ReservedTwice { cpus: CpuSet },
    #[error("{asked} cores cannot be reserved, {free} are left: reserve fewer")]
    ReserveTooMany { asked: u32, free: usize },
    #[error(
        "nothing is left for instances: of the cpus that can be used {} are reserved; reserve \
         fewer cores, or give other --cpus",
        list(reserved)
    )]
    NothingLeft { reserved: CpuSet },
    #[error(
        "the machine does not say which cpus share a last-level cache: take --policy per-numa, or \
         give the cpus of each instance"
    )]
    NoLlc,
    #[error(
        "{asked} for each instance do not fit: the smallest share is {fits}, of NUMA node {numas}; \
         give at most that with --memory, or fewer instances"
    )]
    Memory { asked: Bytes, fits: Bytes, numas: NumaSet },
    #[error(
        "a heap of {heap} does not fit: with {beside} beside it, it takes more than the {memory} \
         of an instance, or it is below 128.0 MiB; give another --heap, more --memory, or fewer \
         instances"
    )]
    Heap { heap: Bytes, beside: Bytes, memory: Bytes },
    #[error("--heap: {database} has no Java heap: give --memory")]
    NoHeap { database: Database },
    #[error(
        "{memory} for {shards} shards are less than {least} for each, with which Scylla does not \
         start: give --smt one, more --memory, or fewer cpus"
    )]
    PerShard { memory: Bytes, shards: u64, least: Bytes },
    #[error(
        "{data} for the records of an instance are less than {least}: give more --memory, or fewer \
         instances"
    )]
    DataSize { data: Bytes, least: Bytes },
    #[error("no address is given: give at least one, or leave --address out for loopback")]
    NoAddress,
    #[error("no ports are left for instance {instance} on {address}: give more addresses")]
    Ports { instance: usize, address: IpAddr },
    #[error(
        "an instance of {what} 0 is none: give --instance-cores and --instance-memory above zero"
    )]
    Size { what: &'static str },
}

fn list(cpus: &CpuSet) -> String {
    match cpus.is_empty() {
        true => "none".to_owned(),
        false => cpus.to_string(),
    }
}
