//! What can be wrong with a frame, and the codes of ERROR responses (section 9).

use thiserror::Error;

/// Bytes that are not a frame of this protocol. Offsets count from the start of the body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The body ends inside a value.
    #[error("frame body ends at byte {offset} inside {what}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it began.
        offset: usize,
    },
    /// A value that the protocol does not know.
    #[error("{what} {value:#x} at byte {offset} is not one of the protocol")]
    Unknown {
        /// What was being read.
        what: &'static str,
        /// What stood there.
        value: u64,
        /// Where.
        offset: usize,
    },
    /// Text that is not UTF-8.
    #[error("text at byte {offset} is not UTF-8")]
    NotUtf8 {
        /// Where it began.
        offset: usize,
    },
    /// A length or count below zero or beyond the limit.
    #[error("length {value} of {what} at byte {offset} is out of range")]
    Length {
        /// What was being read.
        what: &'static str,
        /// What stood there.
        value: i64,
        /// Where.
        offset: usize,
    },
}

/// The code of an ERROR response, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// Something in the server.
    pub const SERVER: Self = Self(0x0000);
    /// A message that breaks the protocol.
    pub const PROTOCOL: Self = Self(0x000A);
    /// Wrong credentials.
    pub const BAD_CREDENTIALS: Self = Self(0x0100);
    /// Fewer replicas alive than the consistency needs.
    pub const UNAVAILABLE: Self = Self(0x1000);
    /// The coordinator sheds load.
    pub const OVERLOADED: Self = Self(0x1001);
    /// The coordinator is starting.
    pub const BOOTSTRAPPING: Self = Self(0x1002);
    /// A TRUNCATE failed.
    pub const TRUNCATE: Self = Self(0x1003);
    /// Too few replicas acknowledged a write in time.
    pub const WRITE_TIMEOUT: Self = Self(0x1100);
    /// Too few replicas answered a read in time.
    pub const READ_TIMEOUT: Self = Self(0x1200);
    /// A replica failed a read.
    pub const READ_FAILURE: Self = Self(0x1300);
    /// A user function failed.
    pub const FUNCTION_FAILURE: Self = Self(0x1400);
    /// A replica failed a write.
    pub const WRITE_FAILURE: Self = Self(0x1500);
    /// Whether a conditional write was done is not known; a write timeout in v4.
    pub const CAS_WRITE_UNKNOWN: Self = Self(0x1700);
    /// Text that is not CQL.
    pub const SYNTAX: Self = Self(0x2000);
    /// Not allowed for this user.
    pub const UNAUTHORIZED: Self = Self(0x2100);
    /// CQL that cannot be carried out.
    pub const INVALID: Self = Self(0x2200);
    /// A configuration that forbids it.
    pub const CONFIG: Self = Self(0x2300);
    /// A keyspace or table that exists already.
    pub const ALREADY_EXISTS: Self = Self(0x2400);
    /// A prepared id that the server does not (any longer) know.
    pub const UNPREPARED: Self = Self(0x2500);
}
