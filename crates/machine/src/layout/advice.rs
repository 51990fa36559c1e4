//! What each database advises for an instance of a given size.
//!
//! Input: the database, an instance's memory and cpus. Output: margins, its heap, default ports, or
//! why it would not start. Sources: Cassandra's `cassandra-env.sh` (the heap: half of the memory up
//! to 1 GiB or a quarter up to 8 GiB, whichever is more; direct memory up to half of the heap);
//! Scylla's start (refuses less than 1 GiB per shard) and Seastar's `--reserve-memory` (1.5 GiB or
//! 7 %, whichever is more); Aerospike 8.1's `data-size` (memory of the records, beside it the
//! index). Limits: rules of thumb; a result is better than advice.

use super::{LayoutError, Reason, Request};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use units::Bytes;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// A Java heap of this size or more needs pointers of 64 bits.
const HEAP_LARGE: u64 = 32 * GIB;
/// Below this Cassandra does not live long.
const HEAP_LEAST: u64 = 128 * MIB;
const PER_SHARD_LEAST: u64 = GIB;
/// The least `data-size`.
const DATA_LEAST: u64 = 512 * MIB;

/// What is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Database {
    /// Apache Cassandra.
    #[default]
    Cassandra,
    /// ScyllaDB.
    Scylla,
    /// Aerospike.
    Aerospike,
    /// The embedded reference target.
    Reference,
}

impl Database {
    /// In a command line and in names of files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cassandra => "cassandra",
            Self::Scylla => "scylla",
            Self::Aerospike => "aerospike",
            Self::Reference => "reference",
        }
    }

    /// Ports of the first instance on an address: what for, and which. The first is that of
    /// clients.
    #[must_use]
    pub fn ports(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Cassandra => &[("cql", 9042), ("storage", 7000), ("jmx", 7199)],
            Self::Scylla => &[
                ("cql", 9042),
                ("shard-aware", 19042),
                ("storage", 7000),
                ("api", 10000),
                ("prometheus", 9180),
            ],
            Self::Aerospike => {
                &[("service", 3000), ("fabric", 3001), ("heartbeat", 3002), ("info", 3003)]
            }
            Self::Reference => &[("cql", 9042)],
        }
    }

    /// What of a NUMA node's memory is left alone: this fraction, and at least so much.
    pub(super) fn margin(self) -> (u64, Bytes) {
        match self {
            // Seastar refuses more than all but 7 %, or 1.5 GiB, and a little per shard.
            Self::Scylla => (10, Bytes(3 * GIB / 2)),
            _ => (16, Bytes(GIB / 2)),
        }
    }

    pub(super) fn usable_bytes(self, memory: u64) -> u64 {
        let (fraction, least) = self.margin();
        memory.saturating_sub((memory / fraction).max(least.0))
    }
}

impl FromStr for Database {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        [Self::Cassandra, Self::Scylla, Self::Aerospike, Self::Reference]
            .into_iter()
            .find(|database| database.name() == text)
            .ok_or_else(|| LayoutError::Database { given: text.to_owned() })
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Database {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Memory of the records of an Aerospike instance: three quarters of its memory, in whole MiB. The
/// rest is for the index, 64 bytes per record, and for the server itself.
#[must_use]
pub fn aerospike_data_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / 4 * 3) >> 20 << 20
}

/// Whether an instance of so much memory starts, and its heap.
pub(super) fn check(
    request: &Request,
    memory: Option<u64>,
    cpus: usize,
    why: &mut Vec<Reason>,
) -> Result<Option<u64>, LayoutError> {
    if request.heap.is_some() && request.database != Database::Cassandra {
        return Err(LayoutError::NoHeap { database: request.database });
    }
    match request.database {
        Database::Cassandra => heap(request.heap, memory, why),
        Database::Scylla => {
            let shards = cpus.max(1) as u64;
            if let Some(memory) = memory
                && memory / shards < PER_SHARD_LEAST
            {
                return Err(LayoutError::PerShard {
                    memory: Bytes(memory),
                    shards,
                    least: Bytes(PER_SHARD_LEAST),
                });
            }
            let each =
                memory.map_or(String::new(), |m| format!(", {} for each", Bytes(m / shards)));
            let text = format!("one shard per cpu of the instance: at most {shards}{each}");
            why.push(Reason::new("shards", text));
            Ok(None)
        }
        Database::Aerospike => {
            if let Some(memory) = memory {
                let data = aerospike_data_bytes(memory);
                if data < DATA_LEAST {
                    return Err(LayoutError::DataSize {
                        data: Bytes(data),
                        least: Bytes(DATA_LEAST),
                    });
                }
                let text = format!(
                    "{} of it for records (data-size), a quarter for the index and the server",
                    Bytes(data)
                );
                why.push(Reason::new("data-size", text));
            }
            Ok(None)
        }
        Database::Reference => Ok(None),
    }
}

fn heap(
    asked: Option<Bytes>,
    memory: Option<u64>,
    why: &mut Vec<Reason>,
) -> Result<Option<u64>, LayoutError> {
    let heap = match (asked, memory) {
        (Some(asked), _) => asked.0,
        (None, None) => return Ok(None),
        (None, Some(memory)) => usual_heap(memory),
    };
    // As much direct memory as half of the heap; code, classes, stacks, the collector.
    let beside = heap / 2 + GIB / 2;
    if let Some(memory) = memory
        && (heap.saturating_add(beside) > memory || heap < HEAP_LEAST)
    {
        return Err(LayoutError::Heap {
            heap: Bytes(heap),
            beside: Bytes(beside),
            memory: Bytes(memory),
        });
    }
    let text = match asked {
        Some(_) => format!("{}, as asked with --heap", Bytes(heap)),
        None => format!(
            "{}: half of the instance's memory up to 1 GiB, or a quarter up to 8 GiB, as \
             Cassandra's start script takes it",
            Bytes(heap)
        ),
    };
    why.push(Reason::new("heap", text));
    if heap >= HEAP_LARGE {
        let text = "from 32 GiB on the JVM cannot compress pointers: up to some 48 GiB such a heap \
                    holds less than one of 31 GiB";
        why.push(Reason::caution("heap", text));
    }
    Ok(Some(heap))
}

fn usual_heap(memory: u64) -> u64 {
    let (half, quarter) = ((memory / 2).min(GIB), (memory / 4).min(8 * GIB));
    half.max(quarter) >> 20 << 20
}
