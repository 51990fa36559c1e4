//! The load phase: fills a table, keeps book of what is written, and goes on where an earlier one
//! ended.
//!
//! In: the ranges of keys that are missing. Out: all of them written, or an error and a marker that
//! says what is still missing. Each worker writes a contiguous share of a range; written is what
//! has been acknowledged without a gap. A load that is killed has told its marker so about once a
//! second; what it wrote since then is written again, with the same bytes.

use crate::error::LabError;
use crate::live::Live;
use crate::marker::{self, Marker, Shape};
use crate::requests;
use crate::trial::Trial;
use admin::Admin;
use admin::aerospike::Cluster;
use drive::{Drive, Driven, Ended, Interval, Observer, OpDone, PreparedId, Witness};
use record::Outcome;
use record::hlog::Intervals;
use record::summary::Outcomes;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Nanos, clock};
use workload::{InsertWindow, Plan};

/// How often the marker is told.
const TELL_EVERY: Nanos = Nanos::from_secs(1);
/// Rows of a worker that may be in flight or written behind a gap.
const WINDOW: usize = 1 << 20;

/// What is to be loaded.
#[derive(Debug)]
pub(crate) struct Filling {
    /// Keys, ascending.
    pub(crate) missing: Vec<Range<u64>>,
    /// Of the values.
    pub(crate) seed: u64,
    /// Keeps book of it; None where nobody will look.
    pub(crate) keeper: Option<Keeper>,
}

/// Writes a table's marker.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) book: Book,
    pub(crate) shape: Shape,
}

/// Where the marker is.
#[derive(Debug)]
pub(crate) enum Book {
    /// A row beside the table.
    Table(Box<Admin>),
    /// A record beside the set.
    Records(Box<RefCell<Cluster>>),
}

impl Book {
    pub(crate) fn records(cluster: Cluster) -> Self {
        Self::Records(Box::new(RefCell::new(cluster)))
    }

    fn write(&self, trial: &Trial, marker: &Marker) -> Result<(), LabError> {
        let (table, records) = (&trial.table, trial.plan.keys.loaded);
        match self {
            Self::Table(admin) => marker::write(admin, table, marker, records)?,
            Self::Records(cluster) => {
                marker::write_record(&mut cluster.borrow_mut(), table, marker, records)?;
            }
        }
        Ok(())
    }
}

/// How a load is driven.
pub(crate) struct Pour<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) ids: &'a [PreparedId],
    /// Everything but the keys, the seed and the plan.
    pub(crate) drive: Drive,
    pub(crate) workers: usize,
}

impl Filling {
    /// All keys of the trial's plan.
    pub(crate) fn whole(trial: &Trial, keeper: Option<Keeper>) -> Self {
        let keys = &trial.plan.keys;
        let all = keys.start..keys.start + keys.loaded;
        Self { missing: vec![all], seed: trial.seed, keeper }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.missing.iter().map(|keys| keys.end - keys.start).sum()
    }

    /// Loads what is missing, range by range.
    pub(crate) fn pour(
        &self,
        pour: &Pour<'_>,
        live: &mut dyn Live,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LabError> {
        let databases = pour.drive.databases.len();
        let (total, mut done) = (self.rows() * databases as u64, 0);
        // Before the first row: what was whole is not from now on.
        self.tell(pour.trial, self.missing.clone())?;
        for (index, keys) in self.missing.iter().enumerate() {
            let behind = &self.missing[index + 1..];
            let plan = Arc::new(part(&pour.trial.plan, keys));
            let written: Vec<Arc<AtomicU64>> = (0..pour.workers).map(|_| Arc::default()).collect();
            let peers = pour.workers / databases;
            let shares = (0..pour.workers).map(|w| plan.keys.load_share(w / databases, peers));
            let shares: Vec<_> = shares.zip(written.clone()).collect();
            let witnesses = shares.iter().map(|(share, w)| Contiguous::new(share, w)).collect();
            let drive = Drive {
                encoder: requests::of_load(pour.trial, plan, pour.ids)?,
                seed: self.seed,
                load_keys: true,
                intervals: Intervals::of(Nanos::from_millis(200)),
                ..pour.drive.clone()
            };
            let missing = || missing(&shares, behind);
            let tell = || self.tell(pour.trial, missing());
            let told = clock::now();
            let mut observer = Loading { live, total, done, told, tell: &tell };
            let driven = drive::run(&drive, witnesses, &mut observer, stop);
            let driven = driven.map_err(LabError::from).and_then(|(d, _)| check(pour.trial, &d));
            if let Err(error) = driven {
                // The error of the load is the one to show; the marker knows of less than there is.
                let _ = self.tell(pour.trial, missing());
                return Err(error);
            }
            done += (keys.end - keys.start) * databases as u64;
        }
        self.tell(pour.trial, Vec::new())
    }

    fn tell(&self, trial: &Trial, missing: Vec<Range<u64>>) -> Result<(), LabError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let marker = Marker { shape: keeper.shape.clone(), seed: self.seed, missing };
        keeper.book.write(trial, &marker)
    }
}

/// The plan that loads only `keys`; the values of a key are the same in every part.
fn part(plan: &Plan, keys: &Range<u64>) -> Plan {
    let mut part = plan.clone();
    (part.keys.start, part.keys.loaded) = (keys.start, keys.end - keys.start);
    part
}

/// What of the shares is not written, and what lies behind them; neighbours joined.
fn missing(shares: &[(Range<u64>, Arc<AtomicU64>)], behind: &[Range<u64>]) -> Vec<Range<u64>> {
    let rest = shares.iter().map(|(s, written)| s.start + written.load(Ordering::Relaxed)..s.end);
    let mut missing: Vec<Range<u64>> = Vec::new();
    for keys in rest.chain(behind.iter().cloned()).filter(|keys| !keys.is_empty()) {
        match missing.last_mut() {
            Some(last) if last.end == keys.start => last.end = keys.end,
            _ => missing.push(keys),
        }
    }
    missing
}

fn check(trial: &Trial, driven: &Driven) -> Result<(), LabError> {
    match driven.ended {
        Ended::Stopped => return Err(LabError::Interrupted),
        Ended::GaveUp => return Err(LabError::LoadGaveUp { give_up: trial.give_up }),
        Ended::Completed | Ended::Failed => {}
    }
    let all = outcomes(driven);
    let failed: Vec<_> = all.iter().filter(|(o, n)| *o != Outcome::Ok && *n > 0).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let named: Vec<_> = failed.iter().map(|(o, n)| format!("{n} {}", o.name())).collect();
    let failed = failed.iter().map(|(_, n)| n).sum();
    let said = match &driven.first_error {
        Some(first) => format!("the target's first error was: {first}"),
        None => "the target said nothing".to_owned(),
    };
    let (total, outcomes) = (trial.plan.keys.loaded, named.join(", "));
    Err(LabError::Load { failed, total, outcomes, said })
}

/// All operations by outcome.
pub(crate) fn outcomes(driven: &Driven) -> Outcomes {
    let mut all = Outcomes::default();
    for op in &driven.total.ops {
        all.0.iter_mut().zip(op.outcomes).for_each(|(sum, n)| *sum += n);
    }
    all
}

/// Publishes how many rows of a worker's share are written without a gap.
struct Contiguous {
    window: InsertWindow,
    written: Arc<AtomicU64>,
}

impl Contiguous {
    fn new(share: &Range<u64>, written: &Arc<AtomicU64>) -> Self {
        Self { window: InsertWindow::new(share.start, 0, 1, WINDOW), written: written.clone() }
    }
}

impl Witness for Contiguous {
    fn op(&mut self, done: OpDone) {
        // What lies too far behind a gap is written again when the load is resumed.
        if done.outcome == Outcome::Ok && self.window.acknowledge(done.key).is_ok() {
            self.written.store(self.window.contiguous(), Ordering::Relaxed);
        }
    }
}

/// Shows the rows and tells the marker while a load goes on.
struct Loading<'a, T> {
    live: &'a mut dyn Live,
    total: u64,
    done: u64,
    told: Nanos,
    tell: &'a T,
}

impl<T: Fn() -> Result<(), LabError>> Observer for Loading<'_, T> {
    fn interval(&mut self, interval: Interval<'_>) -> Result<(), io::Error> {
        self.done += interval.record.ops.iter().map(record::OpRecord::ops).sum::<u64>();
        self.live.loading(self.done, self.total);
        if clock::now().since(self.told) >= TELL_EVERY {
            // A busy target may not take it; the next one will do.
            let _ = (self.tell)();
            self.told = clock::now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(key: u64, outcome: Outcome) -> OpDone {
        let (scheduled, done) = (Nanos::ZERO, Nanos::ZERO);
        OpDone { operation: 0, key, scheduled, sent: None, done, outcome }
    }

    #[test]
    fn missing_is_what_was_not_acknowledged_without_a_gap() {
        let shares: Vec<(_, Arc<AtomicU64>)> =
            [10..20, 20..30, 30..30].map(|share| (share, Arc::default())).into();
        let mut workers: Vec<_> = shares.iter().map(|(s, w)| Contiguous::new(s, w)).collect();
        let behind = [30..40, 50..60];
        assert_eq!(missing(&shares, &behind), [10..40, 50..60]);
        for key in [11, 10, 12, 15] {
            workers[0].op(done(key, Outcome::Ok));
        }
        for (key, outcome) in [(20, Outcome::Ok), (21, Outcome::ClientTimeout), (22, Outcome::Ok)] {
            workers[1].op(done(key, outcome));
        }
        assert_eq!(missing(&shares, &behind), [13..20, 21..40, 50..60]);
        (13..20).for_each(|key| workers[0].op(done(key, Outcome::Ok)));
        assert_eq!(missing(&shares, &behind[1..]), [21..30, 50..60]);
    }
}
