//! Quantities of the field as types, the clock, files that people name, and the hash that two
//! crates above share.
//!
//! Input is what people write (`200k/s`, `30s`, `10M`, `0-3,8`), output is exact integers:
//! nanoseconds, bytes, counts, rational rates. Nothing here rounds a rate: `99999/s` stays a
//! fraction until a schedule is made of it.

mod affinity;
pub mod clock;
mod harmless;
mod idset;
pub mod murmur3;
mod parse;
mod plain;
mod quantity;
mod run_queue;
mod secret;

pub use affinity::{cpus_of_current_thread, pin_current_thread};
pub use harmless::{harmless, steers};
pub use idset::{CpuId, CpuSet, Id, IdSet, NumaId, NumaSet};
pub use parse::ParseError;
pub use plain::{create_unwaiting, open_plain, read_plain, read_plain_text};
pub use quantity::{Bytes, Count, Nanos, Rate};
pub use run_queue::RunQueue;
pub use secret::{Credentials, Secret};
