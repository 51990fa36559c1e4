//! Sans-I/O codecs and routing hashes: bytes in, values out, and back.
//!
//! No socket, no clock, no thread. Every decoder takes hostile bytes: it returns an error, never
//! panics, and allocates no more than the frame in hand could fill.

pub mod aerospike;
pub mod cql;
pub mod murmur3;
pub mod routing;
pub mod shards;
pub mod tablets;
