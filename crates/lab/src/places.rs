//! Where the instances of a target were put, and where their memory was found, for the manifest.
//!
//! In: places and, of each, the bytes of anonymous memory by NUMA node. Out: JSON, an object per
//! instance: its cpus and its memory policy in the kernel's form, bytes by the number of the NUMA
//! node.

use serde_json::{Map, Value, json};
use stage::{PagesPerNuma, Place};

/// An object per instance, in their order. One place may be shared by several instances.
pub(crate) fn facts(places: &[Place], pages: &[PagesPerNuma]) -> Value {
    let of = |(index, pages): (usize, &PagesPerNuma)| {
        let place = places.get(index).or(places.first()).cloned().unwrap_or_default();
        let bytes: Map<String, Value> =
            pages.iter().map(|(numa, bytes)| (numa.0.to_string(), bytes.0.into())).collect();
        json!({
            "cpus": place.cpus.to_string(),
            "memory": place.memory.to_string(),
            "anonymous_bytes": bytes,
        })
    };
    pages.iter().enumerate().map(of).collect()
}
