//! The run directory: histograms, interval log, summary, manifest.
//!
//! Running and analysing meet here and nowhere else: `drive` fills [`OpRecord`]s, the recorder
//! writes them, `analyze` and `report` read them back. Latencies are nanoseconds in histograms;
//! percentiles are computed from full histograms downstream and never averaged. The files are
//! described in `docs/FORMAT.md`.

mod caveat;
mod columns;
mod discard;
pub mod events;
pub mod hlog;
mod latency;
pub mod manifest;
mod op;
mod outcome;
pub mod repeats;
pub mod run_dir;
pub mod summary;
pub mod table;
mod tag;
pub mod utc;
mod whole_file;

pub use caveat::Caveat;
pub use columns::{ColumnCounts, Columns, ColumnsError, LimitUnit};
pub use discard::discard;
pub use latency::{Bucket, LATENCY_MAX, Latency};
pub use manifest::{Manifest, Verdict};
pub use op::{CLASSES, IntervalRecord, OpRecord};
pub use outcome::Outcome;
pub use run_dir::{RunDir, RunDirError, TrialDir};
pub use summary::Summary;
pub use tag::{OpNames, Series, Tag};
pub use whole_file::{Silence, interrupt, write_whole};
