//! What is told to connections that have sent REGISTER: changes of the schema, in order.
//!
//! Any thread publishes; each thread of the server reads what is new to it and sends it on. There
//! is one instance, so no status or topology ever changes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::cql::response::SchemaChange;
use wire::cql::{Header, Opcode, put};

/// Events kept for threads that are behind; a thread further behind misses the oldest.
const KEPT_MAX: usize = 1024;

/// The latest events as frames.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    published: AtomicU64,
    frames: Mutex<VecDeque<Arc<[u8]>>>,
}

impl EventLog {
    /// Publishes a change of the schema.
    pub(crate) fn publish(&self, change: &SchemaChange) {
        let mut frame = Vec::new();
        // Events have stream -1.
        Header::response(-1, Opcode::Event).frame(&mut frame, |out| {
            put::string(out, "SCHEMA_CHANGE");
            change.encode(out);
        });
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        frames.push_back(frame.into());
        if frames.len() > KEPT_MAX {
            frames.pop_front();
        }
        self.published.fetch_add(1, Ordering::Release);
    }

    /// Number of events since the start.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// The frames behind the first `seen` events; moves `seen` on.
    pub(crate) fn since(&self, seen: &mut u64) -> Vec<Arc<[u8]>> {
        let frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let new = (self.published() - *seen) as usize;
        *seen = self.published();
        frames.iter().skip(frames.len().saturating_sub(new)).map(Arc::clone).collect()
    }
}
