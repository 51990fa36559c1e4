//! What people see of a trial while it goes on: events in, and whatever shows them.

use crate::scripted::Prelude;
use drive::{Driven, OpDone, Window};
use record::{IntervalRecord, Latency, OpNames};
use std::path::Path;
use units::Nanos;

/// One interval, for the live line.
#[derive(Debug)]
pub struct LiveInterval<'a> {
    /// Response time in an open loop, service time in a closed one; ok and timeouts.
    pub latency: &'a Latency,
    /// It is the response time.
    pub is_response: bool,
    /// Operations that ended ok.
    pub ok: u64,
    /// Operations that ended otherwise.
    pub errors: u64,
    /// Its length.
    pub length: Nanos,
    /// Operations in flight at its end.
    pub in_flight: usize,
    /// Of the operations in `record`, in their order.
    pub names: &'a [OpNames],
    /// All that was recorded in it.
    pub record: &'a IntervalRecord,
}

/// What a trial has measured, before anything is concluded from it.
#[derive(Debug)]
pub struct Total<'a> {
    /// Of the operations, in their order.
    pub names: &'a [OpNames],
    /// All of it.
    pub driven: &'a Driven,
    /// Single operations, where they were to be kept: by worker, in the order of their ends.
    pub single: &'a [OpDone],
}

/// Shows people what goes on. All calls come from the thread that called [`crate::run`].
pub trait Live {
    /// Something begins: a sentence without a full stop.
    fn stage(&mut self, what: &str);
    /// The run directory is there: whoever ends this process at once can say so in it, by
    /// [`record::interrupt`].
    fn begun(&mut self, _run_dir: &Path) {}
    /// Something that people should know whether or not they watch: a sentence.
    fn notice(&mut self, what: &str);
    /// So many of so many rows are loaded.
    fn loading(&mut self, done: u64, total: u64);
    /// A warm-up that lasts until it is steady was looked at, and whether it is.
    fn warming(&mut self, _steady: bool) {}
    /// The run goes on; some 20 times a second.
    fn running(&mut self, now: Nanos, window: &Window);
    /// An interval is over.
    fn interval(&mut self, interval: &LiveInterval<'_>);
    /// Whether enough was measured: asked after each interval.
    fn enough(&self) -> bool {
        false
    }
    /// What a foreign command does before it is measured.
    fn prelude(&mut self, _what: Prelude<'_>) {}
    /// A trial is over, and this is what it measured.
    fn total(&mut self, _total: &Total<'_>) {}
}
