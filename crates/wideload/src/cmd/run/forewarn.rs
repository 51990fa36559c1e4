//! What is known against a run before it begins: the rate against this client's calibration.
//!
//! Input: a trial. Output: caveats, and sentences for stderr. A machine without a calibration has
//! nothing to say; a file that is none is named and ignored.

use drive::Arrivals;
use lab::{Calibrations, Identity, Trial};
use machine::Machine;
use record::Caveat;
use std::path::Path;

/// The caveats, and what to tell people now.
pub(super) fn forewarn(trial: &Trial) -> (Vec<Caveat>, Vec<String>) {
    let Arrivals::Open { rate, .. } = trial.load.arrivals else { return Default::default() };
    let (Ok(machine), Ok(state)) = (Machine::read(Path::new("/")), stage::dirs::state()) else {
        return Default::default();
    };
    let found = match Calibrations::below(&state).of(&Identity::of(&machine)) {
        Ok(found) => found,
        Err(error) => return (Vec::new(), vec![format!("note: {error}")]),
    };
    let workers = drive::workers(trial.client_cpus.len(), &trial.load.arrivals, trial.databases());
    let caveat = found.and_then(|calibration| calibration.beyond(rate.per_s(), workers));
    let say = |c: &Caveat| format!("warning: {} {}: {}", c.text, c.evidence, c.cure);
    (caveat.iter().cloned().collect(), caveat.iter().map(say).collect())
}
