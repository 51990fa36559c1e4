//! Experiments: runs a trial from provision to collect and leaves a run directory that explains
//! itself.
//!
//! In: a [`Trial`] (what to drive, at what, how hard). Out: a [`record::Summary`] and a run
//! directory. Phases: provision -> create -> load -> warm -> run -> drain -> collect; whatever was
//! started is stopped on every way out.

pub mod asbench;
pub mod basic;
mod calibrate;
mod calibration;
mod capture;
mod caveats;
mod compactions;
mod course;
mod data;
mod data_size;
mod dialect;
mod driven;
mod error;
pub mod experiment;
mod explain;
mod filling;
mod foreign;
mod jvm;
mod kept;
pub mod layout;
mod live;
mod local_target;
mod marker;
mod partition_watch;
mod places;
mod plans;
mod preflight;
mod probe;
mod profiled;
mod provision;
mod recording;
mod records;
mod repeats;
mod requests;
mod ring_watch;
mod run_lock;
pub mod scale;
mod scripted;
mod series;
mod settle;
mod sharded;
mod stand_in;
pub mod stress;
mod trial;
mod wanted;
mod watchdog;
mod whole_lines;

pub use calibrate::{Bench, calibrate};
pub use calibration::{
    Calibration, CalibrationError, Calibrations, Identity, Limit, SCHEMA, Spread,
};
pub use caveats::STAND_IN;
pub use dialect::Dialect;
pub use error::LabError;
pub use explain::{explain, long_warm_up};
pub use live::{Live, LiveInterval, Total};
pub use plans::{MachineSource, Plan, PlanAsked, PlanError, assumed_of, machine_of, plans};
pub use preflight::{
    Asked, AskedTarget, Checked, preflight, told_by_check, told_by_check_of_start,
};
pub use provision::{Storage, TargetChoice};
pub use requests::Records;
pub use scripted::{Prelude, Rehearsal, Scripted};
pub use trial::{Finished, Foreign, LoadChoice, Trial, run};
