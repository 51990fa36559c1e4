//! The data plane: drives a plan at a target and records every operation.
//!
//! One thread per client cpu, pinned, owning its connections, random streams, schedule and
//! histograms; see `docs/ARCHITECTURE.md` for the way of one operation. The caller prepares over a
//! [`Control`] connection, hands an [`Encoder`] and a [`Drive`] to [`run`], and observes intervals
//! as they complete.

mod access;
mod aerospike;
mod answers;
mod connection;
mod control;
mod cql;
mod cql_link;
mod encoding;
mod ending;
mod exchange;
mod framed;
mod handshake;
mod horizon;
mod inserts;
mod jitter;
mod links;
mod listening;
mod load;
mod offering;
mod operations;
mod outcome;
mod pacer;
mod protocol;
mod ramp;
mod recorder;
mod retry_pause;
mod roster;
mod router;
mod rows;
mod run;
mod sharded;
mod slots;
mod source;
mod stream;
mod streams;
mod tally;
mod worker;

pub use access::Access;
pub use aerospike::{Masters, RecordEncoder, RecordPlace, Unrecordable, Writes};
pub use control::{Control, ControlError};
pub use cql::{
    Encoder, Levels, PreparedId, TableName, create_keyspace, create_table, identifier,
    statement_texts, types,
};
pub use encoding::Encoding;
pub use exchange::WorkerUsage;
pub use handshake::Refusal;
pub use jitter::jitter;
pub use links::LinkError;
pub use listening::Happening;
pub use load::{Amount, Arrivals, Load, Wait};
pub use offering::Offering;
pub use pacer::Pacer;
pub use recorder::Interval;
pub use retry_pause::{Growth, RetryPause};
pub use ring::{Engine, Unavailable, tls};
pub use roster::{Change, Roster};
pub use run::{Drive, DriveError, Driven, Ended, Failure, Observer, connections, run, workers};
pub use sharded::{ShardLoad, Shards};
pub use source::Window;
pub use tally::{OpDone, Unwitnessed, WARM_BLOCK, Witness};
