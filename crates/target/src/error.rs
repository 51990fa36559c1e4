//! What a request can fail with, and the ERROR body of each (native protocol v4, section 9).

use crate::cql::{ParseError, identifier};
use thiserror::Error;
use wire::cql::response::put_error;
use wire::cql::{Consistency, DecodeError, ErrorCode, put};

/// Why a request was not carried out; the text goes to the client.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CqlError {
    /// Bytes that break the protocol.
    #[error("{0}")]
    Protocol(String),
    /// Text that is not CQL.
    #[error("{0}")]
    Syntax(String),
    /// CQL that cannot be carried out.
    #[error("{0}")]
    Invalid(String),
    /// Not for clients to change.
    #[error("{0}")]
    Unauthorized(String),
    /// Options that contradict the configuration.
    #[error("{0}")]
    Config(String),
    /// A keyspace (empty table) or table that is there.
    #[error("{}", exists(keyspace, table))]
    AlreadyExists {
        /// The keyspace.
        keyspace: String,
        /// The table, or empty.
        table: String,
    },
    /// A prepared id that is not, or no longer, known.
    #[error("Prepared query with ID {} not found (either the query was not prepared on this host \
             or its table has changed since): prepare it again", hex(.0))]
    Unprepared(Vec<u8>),
    /// More replicas wanted than the one that there is.
    #[error("Cannot achieve consistency level {consistency}: the reference target is one replica")]
    Unavailable {
        /// What was asked for.
        consistency: Consistency,
        /// Replicas it needs.
        required: i32,
    },
    /// A fault on purpose.
    #[error("the reference target was told to fail so (wideload serve --fault)")]
    Injected {
        /// Which.
        code: ErrorCode,
        /// Of the operation.
        consistency: Consistency,
    },
    /// The memory bound is reached.
    #[error(
        "the reference target holds {used_bytes} bytes of its {max_bytes}: drop or truncate a \
             table, or serve with a larger --memory-max"
    )]
    Overloaded {
        /// Approximate bytes held.
        used_bytes: u64,
        /// The bound.
        max_bytes: u64,
    },
}

fn exists(keyspace: &str, table: &str) -> String {
    match table.is_empty() {
        true => format!("Cannot add existing keyspace \"{keyspace}\""),
        false => {
            format!("Cannot add already existing table \"{table}\" to keyspace \"{keyspace}\"")
        }
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl From<ParseError> for CqlError {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Syntax { .. } => Self::Syntax(error.to_string()),
            ParseError::Unsupported { .. } => Self::Invalid(error.to_string()),
        }
    }
}

impl From<DecodeError> for CqlError {
    fn from(error: DecodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// An [`CqlError::Invalid`].
pub(crate) fn invalid(text: impl Into<String>) -> CqlError {
    CqlError::Invalid(text.into())
}

/// The error that a name is not a column of a table.
pub(crate) fn undefined(column: &str) -> CqlError {
    invalid(format!("Undefined column name {}", identifier(column)))
}

impl CqlError {
    /// The protocol's code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Protocol(_) => ErrorCode::PROTOCOL,
            Self::Syntax(_) => ErrorCode::SYNTAX,
            Self::Invalid(_) => ErrorCode::INVALID,
            Self::Unauthorized(_) => ErrorCode::UNAUTHORIZED,
            Self::Config(_) => ErrorCode::CONFIG,
            Self::AlreadyExists { .. } => ErrorCode::ALREADY_EXISTS,
            Self::Unprepared(_) => ErrorCode::UNPREPARED,
            Self::Unavailable { .. } => ErrorCode::UNAVAILABLE,
            Self::Overloaded { .. } => ErrorCode::OVERLOADED,
            Self::Injected { code, .. } => *code,
        }
    }

    /// Appends the body of an ERROR response.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_error(out, self.code(), &self.to_string());
        match self {
            Self::AlreadyExists { keyspace, table } => {
                put::string(out, keyspace);
                put::string(out, table);
            }
            Self::Unprepared(id) => put::short_bytes(out, id),
            Self::Unavailable { consistency, required } => {
                put::consistency(out, *consistency);
                put::i32(out, *required);
                put::i32(out, 1);
            }
            Self::Injected { code, consistency } => put_injected(out, *code, *consistency),
            _ => {}
        }
    }
}

/// What follows the text of an error that one replica is answered for which has not answered.
fn put_injected(out: &mut Vec<u8>, code: ErrorCode, consistency: Consistency) {
    let (answered, wanted) = (0, 1);
    match code {
        ErrorCode::UNAVAILABLE => {
            put::consistency(out, consistency);
            put::i32(out, wanted);
            put::i32(out, answered);
        }
        ErrorCode::READ_TIMEOUT | ErrorCode::WRITE_TIMEOUT => {
            put::consistency(out, consistency);
            put::i32(out, answered);
            put::i32(out, wanted);
            match code {
                ErrorCode::READ_TIMEOUT => out.push(0),
                _ => put::string(out, "SIMPLE"),
            }
        }
        _ => {}
    }
}
