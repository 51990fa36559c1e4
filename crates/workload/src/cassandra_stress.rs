//! cassandra-stress: command lines -> settings -> plans ([`parse`]), and its data bit for bit:
//! seeds -> keys, values, and the distributions that choose them.
//!
//! Data are written by pure functions into the caller's buffers; nothing allocates per operation.
//!
//! Counted by callgrind (release build): a key of 10 bytes takes 78 instructions, the fold of it to
//! the seed of its columns 87, five values of 34 bytes 934; in all 84 ns on one cpu of a shared
//! 2-cpu AMD EPYC virtual machine.

mod column;
mod compile;
mod compile_user;
mod conditions;
mod create_table;
mod distribution;
mod dump;
mod help;
mod java_random;
mod line;
mod logarithm;
mod native;
mod normal;
mod options;
mod ordered;
mod predefined;
mod profile;
mod qualify;
mod routing;
mod rows;
pub mod settings;
mod table;
mod xorshift;

pub use column::{ColumnDraws, ColumnGenerator, ColumnSpec, ColumnType, ScalarType};
pub use create_table::{ColumnDefinition, Place, TableDefinition, TableError, TableProblem};
pub use distribution::{Distribution, DistributionError, DistributionProblem, DrawState, Ratio};
pub use dump::grouped;
pub use help::{help, print};
pub use java_random::JavaRandom;
pub use line::LineError;
pub use native::native;
pub use predefined::{BlobGenerator, KeyGenerator, column_names, fold_bytes, salt};
pub use profile::{
    BatchType, Insert, NamedColumn, Profile, ProfileError, Query, Table, TokenRangeQuery,
};
pub use rows::{Order, Partition, PartitionGenerator, SeedVisits, Selection};
pub use settings::{Asked, Compat, Settings, Sources, parse};
pub use xorshift::Xorshift;
