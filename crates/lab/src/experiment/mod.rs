//! Experiments as files: factors x points of the load x repetitions.
//!
//! In: a TOML file. Out: its trials in order with their expected time ([`plan_file`],
//! [`plan_in_words`]), and, carried out, one run directory with `experiment.toml`, `trials.csv`,
//! `outcome.json` and a directory per trial ([`carry_out`]). An experiment that was interrupted
//! goes on where it was ([`Begun::resume`]).
//! `docs/FORMAT.md` describes the file and the directory. Limits: one client machine; a trial that
//! needs what is not built is planned and not run.

mod carry;
mod compared;
mod error;
mod notes;
mod outcome;
mod plan;
mod read;
mod resources;
mod shown;
mod told;
mod words;

pub use carry::{Begun, Carried, Make, carry_out};
pub(crate) use compared::arm_name;
pub use error::{ExperimentError, Position};
pub use notes::Notes;
pub use outcome::{Cell, Figures, Outcome, Scaled};
pub use plan::{Expected, Planned, plan_file, plan_text};
pub use read::{Experiment, Factor, Level, Order, Setting, Value};
pub use resources::{CpuUse, PagePlacement};
pub use shown::{plan_as_json, plan_in_words, plans_in_words};

#[cfg(test)]
mod tests;
