//! Statistics over recorded numbers, pure.
//!
//! Input: the merged [`record::OpRecord`]s of a measured window and what is known of its load;
//! output: the figures and caveats of a summary. Percentiles come from full histograms and are
//! never averaged. [`check`] judges hosts and targets before a run.
//! No files, no clocks, no sockets.

pub mod check;
mod checks;
mod figures;
pub mod repeats;
pub mod steady;
mod trend;

pub use checks::{ERRORS_SHARE_MAX, RATE_DONE_SHARE_MIN};
pub use figures::{Figures, Load, Overall, Window, figures, overall, stats};
