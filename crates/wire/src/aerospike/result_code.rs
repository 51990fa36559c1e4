//! What a server says of an operation: one byte.

use std::fmt;

/// A result code as sent, also one without a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResultCode(pub u8);

impl ResultCode {
    /// Done.
    pub const OK: Self = Self(0);
    /// Something in the server.
    pub const SERVER_ERROR: Self = Self(1);
    /// There is no such record.
    pub const NOT_FOUND: Self = Self(2);
    /// The record has another generation than the one asked for.
    pub const GENERATION: Self = Self(3);
    /// A request that makes no sense to the server.
    pub const PARAMETER: Self = Self(4);
    /// The record is there already.
    pub const EXISTS: Self = Self(5);
    /// The namespace is full.
    pub const OUT_OF_SPACE: Self = Self(8);
    /// The server has not answered in its own time.
    pub const TIMEOUT: Self = Self(9);
    /// No server has the record's partition, or this one has not.
    pub const UNAVAILABLE: Self = Self(11);
    /// The bin's value has a type that the operation is not for.
    pub const BIN_TYPE: Self = Self(12);
    /// The record is larger than a record may be.
    pub const RECORD_TOO_BIG: Self = Self(13);
    /// Too many operations wait for the record.
    pub const KEY_BUSY: Self = Self(14);
    /// The server does not know how.
    pub const UNSUPPORTED: Self = Self(16);
    /// Its storage does not keep up.
    pub const DEVICE_OVERLOAD: Self = Self(18);
    /// There is no such namespace.
    pub const NAMESPACE: Self = Self(20);
    /// A bin's name is too long.
    pub const BIN_NAME: Self = Self(21);
    /// Not allowed now.
    pub const FORBIDDEN: Self = Self(22);
    /// Only the paid edition does this.
    pub const ENTERPRISE_ONLY: Self = Self(25);
    /// The server does not know users.
    pub const SECURITY_NOT_SUPPORTED: Self = Self(51);

    /// In a word; None for one that has no name here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OK => "ok",
            Self::SERVER_ERROR => "server error",
            Self::NOT_FOUND => "record not found",
            Self::GENERATION => "generation differs",
            Self::PARAMETER => "invalid request",
            Self::EXISTS => "record exists",
            Self::OUT_OF_SPACE => "namespace is full",
            Self::TIMEOUT => "server timeout",
            Self::UNAVAILABLE => "partition unavailable",
            Self::BIN_TYPE => "bin has another type",
            Self::RECORD_TOO_BIG => "record too big",
            Self::KEY_BUSY => "record busy",
            Self::UNSUPPORTED => "not supported",
            Self::DEVICE_OVERLOAD => "storage overloaded",
            Self::NAMESPACE => "no such namespace",
            Self::BIN_NAME => "bin name too long",
            Self::FORBIDDEN => "forbidden",
            Self::ENTERPRISE_ONLY => "enterprise edition only",
            Self::SECURITY_NOT_SUPPORTED => "security not supported",
            _ => return None,
        })
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "result code {}", self.0),
        }
    }
}
