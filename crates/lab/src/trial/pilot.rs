//! How many clients keep a target busy: looked for before it is measured.
//!
//! In: a closed-loop trial. Out: points of a search. The number of clients doubles from a few per
//! instance on, until two doublings in a row give less than [`GAIN_MIN`] more than the best before:
//! one point alone may be an accident. [`enough`] takes the least number that does as well. Limits:
//! short drives on a cold target: the figures themselves are good for this choice only.

use super::set_up::SetUp;
use super::{Running, Trial};
use crate::error::LabError;
use crate::filling::outcomes;
use crate::live::Live;
use crate::provision::TargetChoice;
use drive::{Amount, Arrivals, Drive, Ended, Interval, Load, Observer, Unwitnessed};
use record::{Outcome, RunDir};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Nanos;

/// Clients per instance to begin with.
const CLIENTS_FIRST: usize = 16;
/// More than this in all are not looked for.
const CLIENTS_MAX: usize = 4096;
/// A doubling that gives less than this share more gives nothing.
const GAIN_MIN: f64 = 0.03;
/// So many of these in a row are the end.
const FLAT_MAX: u32 = 2;
/// How long a search drives.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Before the first point.
    first: Nanos,
    /// Before every other point.
    warm: Nanos,
    /// Of each point.
    length: Nanos,
}

impl Pace {
    /// Of what is as fast in its first moment as later.
    const NATIVE: Self = Self {
        first: Nanos::from_millis(100),
        warm: Nanos::from_millis(100),
        length: Nanos::from_millis(300),
    };
    /// Of a JVM, which compiles what it runs while it runs: more clients would look better only
    /// because they come later.
    const JVM: Self = Self {
        first: Nanos::from_secs(15),
        warm: Nanos::from_millis(500),
        length: Nanos::from_secs(1),
    };

    fn of(target: &TargetChoice) -> Self {
        match target {
            TargetChoice::Reference { .. } => Self::NATIVE,
            TargetChoice::Cassandra { .. } | TargetChoice::Running { .. } => Self::JVM,
        }
    }
}

/// One number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Point {
    /// Operations in flight.
    pub(crate) threads: usize,
    /// Ok operations per second.
    pub(crate) ops_s: f64,
}

/// The least number of clients that do as well as any, within [`GAIN_MIN`].
pub(crate) fn enough(points: &[Point]) -> Option<usize> {
    let best = points.iter().map(|point| point.ops_s).fold(0.0, f64::max);
    let does = |point: &&Point| point.ops_s >= best * (1.0 - GAIN_MIN);
    points.iter().find(does).map(|point| point.threads)
}

/// How long a search takes, roughly, for people.
pub(crate) fn search_takes(target: &TargetChoice) -> &'static str {
    match target {
        TargetChoice::Reference { .. } => "some 5 to 10 s",
        TargetChoice::Cassandra { .. } | TargetChoice::Running { .. } => "about a minute",
    }
}

/// Starts the target of `trial`, loads it, and looks for the number of clients. What is started and
/// said goes to the directory of trial 1 of `run_dir`.
///
/// # Errors
/// [`LabError`]; nothing is left running.
pub(crate) fn pilot(
    trial: &Trial,
    run_dir: &RunDir,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Point>, LabError> {
    let mut running = Running::new(trial, run_dir, 1, live, stop);
    let trial_dir = run_dir.trial(1)?;
    let SetUp { provisioned, ready, watchdog, .. } = running.set_up(&trial_dir)?;
    let each = CLIENTS_FIRST.min(CLIENTS_MAX / ready.databases.len().max(1)).max(1);
    let mut threads = each * ready.databases.len();
    let pace = Pace::of(&trial.target);
    let mut points: Vec<Point> = Vec::new();
    let mut flat = 0;
    loop {
        running.live.stage(&format!("looking for the load: {threads} clients"));
        let arrivals = Arrivals::Closed { threads, throttle: None };
        let warm = if points.is_empty() { pace.first } else { pace.warm };
        let amount = Amount::Duration(pace.length);
        let load = Load { arrivals, amount, warm, limit: None };
        let workers = drive::workers(trial.client_cpus.len(), &arrivals, trial.databases());
        let drive = Drive { load, ..running.drive_of(&ready) };
        let unseen = vec![Unwitnessed; workers];
        let (driven, _) = drive::run(&drive, unseen, &mut Unseen, watchdog.halt())?;
        match driven.ended {
            Ended::Stopped if watchdog.died() => return Err(LabError::target_died(&trial_dir)),
            Ended::Stopped => return Err(LabError::Interrupted),
            Ended::Completed | Ended::GaveUp | Ended::Failed => {}
        }
        let ops_s = outcomes(&driven).of(Outcome::Ok) as f64 / pace.length.as_secs_f64();
        let best = points.iter().map(|point| point.ops_s).fold(0.0, f64::max);
        points.push(Point { threads, ops_s });
        flat = if ops_s < best * (1.0 + GAIN_MIN) { flat + 1 } else { 0 };
        if flat == FLAT_MAX || threads * 2 > CLIENTS_MAX {
            break;
        }
        threads *= 2;
    }
    drop(watchdog);
    provisioned.stop()?;
    Ok(points)
}

/// Keeps nothing.
struct Unseen;

impl Observer for Unseen {
    fn interval(&mut self, _interval: Interval<'_>) -> Result<(), io::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_number_that_does_as_well_is_enough() {
        let points = |ops: &[f64]| {
            let point = |(i, ops_s): (usize, &f64)| Point { threads: 16 << i, ops_s: *ops_s };
            ops.iter().enumerate().map(point).collect::<Vec<_>>()
        };
        assert_eq!(enough(&points(&[100.0, 190.0, 250.0, 255.0, 240.0])), Some(64));
        // An accident at the end is not what is measured with.
        assert_eq!(enough(&points(&[100.0, 190.0, 0.0])), Some(32));
        assert_eq!(enough(&[]), None);
    }
}
