//! Statistics over recorded numbers, pure.
//!
//! Input: the merged [`record::OpRecord`]s of a measured window and what is known of its load, of
//! the client and of its host; output: the figures and caveats of a summary. Percentiles come from
//! full histograms and are never averaged. [`check`] judges hosts and targets before a run.
//! No files, no clocks, no sockets.

pub mod arms;
mod cache;
pub mod check;
mod checks;
mod client;
mod course;
mod draws;
mod figures;
pub mod ratio;
pub mod repeats;
pub mod scaling;
mod share;
pub mod steady;
mod student;
mod surroundings;
mod trend;
pub mod usl;
pub mod weighted;

pub use cache::CacheClass;
pub use checks::{ERRORS_SHARE_MAX, RATE_DONE_SHARE_MIN};
pub use client::{Client, client_caveats, kept_waiting};
pub use course::{Course, Reading};
pub use draws::drawn_order;
pub use figures::{Figures, Load, Overall, Window, figures, overall, stats};
pub use share::{percent_cut, percent_raised};
pub use surroundings::{Surroundings, surroundings};
