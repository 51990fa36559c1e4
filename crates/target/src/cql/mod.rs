//! CQL 3.4 text -> syntax tree. Pure; nothing here knows a schema.
//!
//! Source: the CQL grammar of Apache Cassandra 3.11 (`doc/cql3/CQL.textile`). What the target
//! leaves out is recognised and refused by name ([`ParseError::Unsupported`]); anything else
//! unknown is a syntax error. Limits: nesting of values and types, and the number of values in a
//! text, are bounded.

pub mod ast;
mod lexer;
mod parser;
mod parser_ddl;
mod parser_dml;
mod parser_term;

pub(crate) use lexer::parse_uuid;
pub use parser::parse;

use thiserror::Error;

/// Why a text is not a statement that the target carries out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Not CQL.
    #[error("line {line}:{column} {what}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 0, in bytes.
        column: usize,
        /// What was expected or found.
        what: String,
    },
    /// CQL, but beyond the reference target.
    #[error("the reference target does not support {what}; {cure}")]
    Unsupported {
        /// The feature.
        what: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
}

/// Text of an identifier as CQL prints it: quoted only when it must be.
#[must_use]
pub fn identifier(name: &str) -> String {
    let plain = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
