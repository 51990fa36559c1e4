//! A trial of an experiment: one of many in a run directory that is not its own.

use super::{Running, Trial};
use crate::error::{LabError, table_failed};
use crate::live::Live;
use record::run_dir::{MANIFEST, TRIALS_CSV};
use record::table::{TrialRow, TrialsWriter};
use record::{Caveat, RunDir, Verdict};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::clock;

/// What became of it.
#[derive(Debug)]
pub(crate) struct Measured {
    /// For `trials.csv`, without factors.
    pub(crate) row: TrialRow,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Reasons to trust it less.
    pub(crate) caveats: Vec<Caveat>,
}

/// Carries out `trial` as number `number` of a run directory, once. The directory of the trial is
/// as that of any other; the run's own manifest, table and report are the caller's.
///
/// # Errors
/// [`LabError`]; the trial's manifest says why. Nothing is left running.
pub(crate) fn run_one(
    trial: &Trial,
    run_dir: &RunDir,
    number: u32,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Measured, LabError> {
    let mut running = Running::new(trial, run_dir, number, live, stop);
    running.of_experiment = true;
    let measured = running.measure().and_then(|(mut done, failure)| {
        let row = running.row.take();
        match (row, done.pop(), failure) {
            (_, _, Some(error)) => Err(error),
            (Some(row), Some(done), None) => {
                Ok(Measured { row, failure: done.failure, caveats: done.summary.caveats })
            }
            // Nothing was measured and nothing failed: somebody stopped it in between.
            _ => Err(LabError::Interrupted),
        }
    });
    if let Err(error) = &measured
        && !running.ended
        && run_dir.check().is_ok()
    {
        let mut manifest = running.trial_manifest();
        manifest.end(error.verdict(), Some(error.to_string()), clock::wall());
        // The disk may be what failed.
        let _ = run_dir.trial(number).map(|dir| dir.write_json(MANIFEST, &manifest));
    }
    measured
}

impl Measured {
    /// Whether its figures count.
    pub(crate) fn is_ok(&self) -> bool {
        self.row.verdict == Verdict::Ok.name()
    }
}

impl Running<'_> {
    /// The row of a trial that is done: into the run's table, or for the experiment's.
    pub(super) fn keep_row(&mut self, row: TrialRow) -> Result<(), LabError> {
        if self.of_experiment {
            self.row = Some(row);
            return Ok(());
        }
        let table = match &mut self.rows {
            Some(table) => table,
            rows => rows.insert(TrialsWriter::new(self.run_dir.append(TRIALS_CSV)?)),
        };
        table.row(&row).map_err(table_failed(&self.run_dir.path().join(TRIALS_CSV)))
    }
}
