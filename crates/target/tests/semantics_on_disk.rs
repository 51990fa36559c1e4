//! What statements mean is the same with rows on disk.

#[path = "semantics.rs"]
mod semantics;
