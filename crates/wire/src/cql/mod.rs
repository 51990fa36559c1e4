//! CQL native protocol, version 4: frames as bytes.
//!
//! Source: the `native_protocol_v4.spec` of Apache Cassandra; section numbers in this module refer
//! to it. A frame is a nine-byte [`Header`] and a body. Requests and responses are encoded and
//! decoded both ways, because the client's data plane, its control connection and the reference
//! target all stand on this module.

mod consistency;
mod cursor;
mod error;
mod header;
pub mod put;
pub mod request;
pub mod response;
mod template;
mod types;

pub use consistency::Consistency;
pub use cursor::{Cursor, Value};
pub use error::{DecodeError, ErrorCode};
pub use header::{HEADER_SIZE, Header, Opcode, flags};
pub use template::{ExecuteTemplate, FrameWriter};
pub use types::ColumnType;

/// The protocol version that this module speaks, as it stands in a request's header.
pub const VERSION: u8 = 4;
/// Set in a header's version byte when the frame is a response.
pub const RESPONSE: u8 = 0x80;
/// No frame of either side may be longer (section 2: 256 MiB).
pub const BODY_SIZE_MAX: usize = 256 << 20;
