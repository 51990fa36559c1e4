//! The gate before a window: what a database still has to do for its load is not to be measured.
//!
//! In: hosts that are Cassandra's. Out: whether they had nothing to write and nothing to compact
//! any more, after which time. On a target that was started for the run memtables are flushed
//! first; on a cluster of others only virtual tables are read, and only after a load. Source:
//! `system_views.sstable_tasks` and `system_views.thread_pools` of Cassandra 4.0 and 5.0; each host
//! tells of itself alone. Limits: hosts without these tables cannot be judged, which is told.

use crate::live::Live;
use crate::provision::Provisioned;
use crate::trial::Trial;
use drive::{Access, Control, ControlError};
use record::Caveat;
use record::summary::Target;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use units::{Nanos, clock};

/// Between looks.
const LOOK: Nanos = Nanos::from_millis(500);
/// So many looks in a row must find nothing: a compaction begins a moment after a flush.
const QUIET_LOOKS: u32 = 4;
/// For an answer.
const ANSWER_MAX: Nanos = Nanos::from_secs(5);
/// Whose work is waited for.
const POOLS: [&[u8]; 3] = [b"CompactionExecutor", b"MemtableFlushWriter", b"MemtablePostFlush"];

/// A gate that trials have to pass.
pub(crate) struct Gate<'a> {
    bound: Nanos,
    access: &'a Access,
    addresses: &'a [SocketAddr],
    /// What is flushed; nothing of a cluster of others.
    own: &'a [stage::cassandra::Cluster],
}

/// How a trial got through it.
#[derive(Debug)]
pub(crate) struct Settled {
    bound: Nanos,
    took: Nanos,
    /// None where nothing was to be flushed.
    flush: Option<Result<(), String>>,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Quiet,
    /// So many tasks were left.
    Busy(u64),
    /// Why it cannot be told.
    Unknown(String),
    Interrupted,
}

/// The gate of a target: of one of our own, and of a cluster that has just been loaded. None of
/// stand-ins, which have nothing to settle, and when the user does not want to wait.
pub(crate) fn gate<'a>(
    trial: &'a Trial,
    provisioned: &'a Provisioned,
    target: &Target,
    addresses: &'a [SocketAddr],
    loaded: bool,
) -> Option<Gate<'a>> {
    let own = &provisioned.clusters;
    // What is told of compactions is told in CQL.
    let wanted = trial.settle > Nanos::ZERO
        && trial.records.is_none()
        && !target.is_stand_in()
        && (!own.is_empty() || loaded);
    wanted.then_some(Gate { bound: trial.settle, access: &trial.access, addresses, own })
}

impl Gate<'_> {
    /// Waits until nothing is left to do, or for as long as the bound says.
    pub(crate) fn pass(&self, live: &mut dyn Live, stop: &AtomicBool) -> Settled {
        let begin = clock::now();
        let flush = (!self.own.is_empty()).then(|| {
            live.stage("settling: flushing what is in memory to disk");
            let flush = |cluster: &stage::cassandra::Cluster| cluster.flush(self.bound, stop);
            self.own.iter().try_for_each(flush).map_err(|error| error.to_string())
        });
        let end = match self.wait(begin, live, stop) {
            Ok(end) => end,
            Err(error) => End::Unknown(error.to_string()),
        };
        Settled { bound: self.bound, took: clock::now().since(begin), flush, end }
    }

    fn wait(
        &self,
        begin: Nanos,
        live: &mut dyn Live,
        stop: &AtomicBool,
    ) -> Result<End, ControlError> {
        let connect = |&host| Control::connect_as(host, ANSWER_MAX, self.access);
        let mut hosts = self.addresses.iter().map(connect).collect::<Result<Vec<_>, _>>()?;
        let mut quiet = 0;
        loop {
            let tasks = hosts.iter_mut().map(tasks).sum::<Result<u64, _>>()?;
            quiet = if tasks == 0 { quiet + 1 } else { 0 };
            if quiet >= QUIET_LOOKS {
                return Ok(End::Quiet);
            }
            let waited = clock::now().since(begin);
            if waited >= self.bound {
                return Ok(End::Busy(tasks));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Interrupted);
            }
            let (waited_s, bound) = (waited.as_secs_f64(), self.bound);
            live.stage(&format!("settling: {tasks} tasks, {waited_s:.0} s of at most {bound}"));
            sleep(LOOK.to_duration());
        }
    }
}

/// What a host still has to do: compactions that run, and what waits in the pools for it.
fn tasks(host: &mut Control) -> Result<u64, ControlError> {
    let running = host.query("SELECT kind FROM system_views.sstable_tasks")?.len() as u64;
    let text = "SELECT name, active_tasks, pending_tasks FROM system_views.thread_pools";
    Ok(running + waiting(&host.query(text)?))
}

/// Sums the counts of the pools that matter.
fn waiting(rows: &[Vec<Option<Vec<u8>>>]) -> u64 {
    let number = |cell: &Option<Vec<u8>>| match cell.as_deref() {
        Some(&[a, b, c, d]) => u64::from(u32::from_be_bytes([a, b, c, d])),
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    };
    let pools = rows.iter().filter(|row| {
        row.first().and_then(Option::as_deref).is_some_and(|name| POOLS.contains(&name))
    });
    pools.flat_map(|row| row.iter().skip(1)).map(number).sum()
}

impl Settled {
    /// For the manifest of the trial.
    pub(crate) fn phase(&self) -> Value {
        let (settled, tasks_left, why) = match &self.end {
            End::Quiet => (Some(true), Some(0), None),
            End::Busy(tasks) => (Some(false), Some(*tasks), None),
            End::Interrupted => (Some(false), None, Some("interrupted".to_owned())),
            End::Unknown(why) => (None, None, Some(why.clone())),
        };
        json!({
            "bound_s": self.bound.as_secs_f64(),
            "took_s": self.took.as_secs_f64(),
            "flushed": self.flush.as_ref().map(Result::is_ok),
            "settled": settled,
            "tasks_left": tasks_left,
            "why": why,
        })
    }

    /// When it had not come to rest, or that cannot be told.
    pub(crate) fn caveat(&self) -> Option<Caveat> {
        let bound = self.bound;
        let caveat = match (&self.end, &self.flush) {
            (End::Interrupted, _) | (End::Quiet, None | Some(Ok(()))) => return None,
            (End::Busy(tasks), _) => Caveat::new(
                "not-settled",
                "The target still had work of its load to do when the run began: compactions and \
                 flushes take part in the figures.",
            )
            .evidence(format!("{tasks} tasks after {bound}"))
            .cure("Give it longer with --settle."),
            (End::Unknown(why), _) => Caveat::new(
                "not-settled",
                "It cannot be told whether the target still had work of its load to do when the \
                 run began.",
            )
            .evidence(why.clone())
            .cure("Wait until it is idle, and use --skip-load with --settle 0s."),
            (End::Quiet, Some(Err(why))) => Caveat::new(
                "not-settled",
                "The target was idle when the run began, but what it held in memory was not \
                 flushed before.",
            )
            .evidence(why.clone())
            .cure("Leave JMX as it is, and give it longer with --settle."),
        };
        Some(caveat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, active: i32, pending: i32) -> Vec<Option<Vec<u8>>> {
        let int = |n: i32| Some(n.to_be_bytes().to_vec());
        vec![Some(name.as_bytes().to_vec()), int(active), int(pending)]
    }

    #[test]
    fn only_the_pools_of_the_load_count() {
        let rows = [
            row("CompactionExecutor", 1, 4),
            row("Native-Transport-Requests", 7, 70),
            row("MemtableFlushWriter", 0, 2),
            vec![None, None, None],
        ];
        assert_eq!(waiting(&rows), 7);
        assert_eq!(waiting(&[]), 0);
    }

    fn settled(end: End, flush: Option<Result<(), String>>) -> Settled {
        Settled { bound: Nanos::from_secs(60), took: Nanos::from_secs(3), flush, end }
    }

    #[test]
    fn what_has_not_settled_has_a_caveat() {
        assert_eq!(settled(End::Quiet, Some(Ok(()))).caveat(), None);
        assert_eq!(settled(End::Quiet, None).caveat(), None);
        for (end, flush, evidence) in [
            (End::Busy(3), None, "3 tasks after 1m"),
            (End::Unknown("no such table".into()), None, "no such table"),
            (End::Quiet, Some(Err("no port".to_owned())), "no port"),
        ] {
            let caveat = settled(end, flush).caveat().unwrap();
            assert_eq!((caveat.code.as_str(), caveat.evidence.as_str()), ("not-settled", evidence));
            assert!(!caveat.cure.is_empty());
        }
    }

    #[test]
    fn the_manifest_tells_how_it_went() {
        let phase = settled(End::Busy(3), Some(Ok(()))).phase();
        assert_eq!((&phase["settled"], &phase["tasks_left"]), (&json!(false), &json!(3)));
        assert_eq!((&phase["flushed"], &phase["took_s"]), (&json!(true), &json!(3.0)));
        assert_eq!(settled(End::Unknown("x".into()), None).phase()["settled"], Value::Null);
    }
}
