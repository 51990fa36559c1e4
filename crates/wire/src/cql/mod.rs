//! CQL native protocol, versions 4 and 5: frames as bytes.
//!
//! Source: the `native_protocol_v4.spec` of Apache Cassandra; section numbers in this module refer
//! to it, or to `native_protocol_v5.spec` where that is said. A frame is a nine-byte [`Header`] and
//! a body. Requests and responses are encoded and
//! decoded both ways, because the client's data plane, its control connection and the reference
//! target all stand on this module.

mod checksum;
mod compression;
mod consistency;
mod cursor;
mod error;
pub mod framing;
mod header;
mod protocol;
pub mod put;
pub mod request;
pub mod response;
mod rows;
pub mod segment;
mod template;
mod types;

pub use consistency::Consistency;
pub use cursor::{Cursor, Value};
pub use error::{DecodeError, ErrorCode};
pub use header::{HEADER_SIZE, Header, Opcode, flags};
pub use protocol::{Compression, Protocol, ProtocolError, VERSION, VERSION_5};
pub use rows::{RowsTemplate, RowsWriter};
pub use template::{ExecuteTemplate, FrameWriter, PageTemplate};
pub use types::ColumnType;

/// Set in a header's version byte when the frame is a response.
pub const RESPONSE: u8 = 0x80;
/// No frame of either side may be longer (section 2: 256 MiB).
pub const BODY_SIZE_MAX: usize = 256 << 20;
