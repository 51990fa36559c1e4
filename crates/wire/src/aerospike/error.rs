//! What can be wrong with bytes of this protocol.

use thiserror::Error;

/// Bytes that are not a message of this protocol. Offsets count from the start of what was read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end inside a value.
    #[error("message ends at byte {offset} inside {what}; the peer sends another protocol")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it began.
        offset: usize,
    },
    /// A value that the protocol does not know.
    #[error("{what} {value:#x} is not one of the protocol; is the peer an Aerospike server?")]
    Unknown {
        /// What was being read.
        what: &'static str,
        /// What stood there.
        value: u64,
    },
    /// A length beyond the limit, or one that does not fit what it is of.
    #[error("length {value} of {what} is out of range (at most {max})")]
    Length {
        /// What was being read.
        what: &'static str,
        /// What stood there.
        value: u64,
        /// The greatest that is taken.
        max: u64,
    },
    /// Text that is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        what: &'static str,
    },
    /// A compressed message that cannot be inflated, or not to the size it claims.
    #[error("a compressed message cannot be inflated to the {size} bytes that it claims")]
    Compressed {
        /// The size that it claims.
        size: usize,
    },
}
