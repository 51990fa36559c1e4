//! YCSB's own output: what was recorded -> the figures, lines and files that scripts written for it
//! read.
//!
//! In: [`record::IntervalRecord`]s (ns) and the settings of a [`workload::ycsb::Measurement`]. Out:
//! text; nothing here writes to a terminal or decides when. Times are microseconds, as there.
//! Source: Measurements, OneMeasurement*, the exporters, Client and StatusThread of YCSB at commit
//! d9faaac. What differs is listed in `docs/METHODOLOGY.md`.

mod console;
mod exporter;
mod figures;
mod java;
mod logs;
mod series;
mod single;
mod status;

pub use console::{Console, Ending};
pub use exporter::export;
pub use figures::{Figure, Number};
pub use logs::LogError;
pub use single::{Single, write_single};
