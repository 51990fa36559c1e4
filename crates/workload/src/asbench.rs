//! asbench and the tools before it: command lines -> settings ([`parse`]) -> plans
//! ([`Settings::plan`]).
//!
//! In: the words of a line in any of five generations, which its spelling tells. Out: stages, each
//! with a plan over integer keys and bins. What the tools have and this has not is refused with a
//! sentence; `docs/METHODOLOGY.md` lists it.

mod compile;
mod generation;
mod line;
pub mod object;
mod settings;
mod stages;
mod table;
mod workload;

pub use compile::{READ, WRITE};
pub use generation::Generation;
pub use line::LineError;
pub use settings::{Asked, Own, Settings, parse};
pub use stages::Stage;
pub use table::{LatencyShown, Limits, Table};
pub use workload::{Kind, Workload};
