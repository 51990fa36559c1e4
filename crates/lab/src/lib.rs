//! Experiments: runs a trial from provision to collect and leaves a run directory that explains
//! itself.
//!
//! In: a [`Trial`] (what to drive, at what, how hard). Out: a [`record::Summary`] and a run
//! directory. Phases: provision -> create -> load -> warm -> run -> drain -> collect; whatever was
//! started is stopped on every way out.

mod caveats;
mod data;
mod error;
mod explain;
mod filling;
mod marker;
mod provision;
mod recording;
mod stand_in;
mod trial;
mod watchdog;
mod whole_lines;

pub use caveats::STAND_IN;
pub use error::LabError;
pub use explain::explain;
pub use provision::{Storage, TargetChoice};
pub use trial::{Finished, Live, LiveInterval, LoadChoice, Trial, run};
