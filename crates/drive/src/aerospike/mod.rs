//! Aerospike as the engine's protocol: one request at a time on each connection, so that many of
//! them make a pool for each host; records by digest, and their partition's master by the map.
//!
//! A request that has timed out costs its connection: nothing but the order of answers says whose
//! an answer is, so a late one must find nobody. The connection is closed and another one opened in
//! its place at once. There is nothing to say before the first request.

mod encoder;
mod link;
mod masters;
mod pool;

pub use encoder::{RecordEncoder, RecordPlace, Unrecordable, Writes};
#[cfg(test)]
pub(crate) use link::RecordLink;
pub use masters::Masters;
