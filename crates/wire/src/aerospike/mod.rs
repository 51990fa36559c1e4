//! Aerospike's wire protocol: messages on records, and the text protocol for everything else.
//!
//! Source: what clients send and servers answer, as the headers of the public C client
//! (`as_proto.h`, `as_command.h`, `as_status.h`, 2026) name it; there is no specification. All
//! numbers are big-endian.
//!
//! Eight bytes ([`ProtoHeader`]) say how long a body is and what it is. A message on records
//! ([`Message`]) has a header of 22 bytes, fields (namespace, set, digest, ...) and operations on
//! bins. A client has one request under way on a connection: nothing matches an answer to its
//! request but their order. Info ([`info`]) is lines of text. Requests are encoded ([`Command`],
//! [`batch`]) for clients and decoded for the reference target.
//!
//! Not here: authentication, scans and queries, functions (UDF), expressions, operations inside
//! lists and maps, transactions of many records.

pub mod batch;
mod command;
mod compression;
mod error;
pub mod info;
mod key;
mod message;
pub mod msgpack;
mod particle;
mod proto;
mod reader;
mod result_code;
mod template;

pub use command::{Command, Expiry, Generation, ReadLevel, RecordExists, Wanted, WritePolicy};
pub use compression::{compress, decompress};
pub use error::DecodeError;
pub use key::{DIGEST_SIZE, Digest, Key, PARTITIONS, UserKey, digest, partition};
pub use message::{
    Answer, BIN_NAME_MAX, Field, FieldKind, MESSAGE_HEADER_SIZE, Message, MessageHeader, Op,
    OpKind, info1, info2, info3, put_op,
};
pub use particle::Particle;
pub use proto::{PROTO_SIZE, ProtoHeader, ProtoKind, VERSION, begin, finish};
pub use result_code::ResultCode;
pub use template::{CommandTemplate, MessageWriter};
