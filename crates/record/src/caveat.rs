//! A reason to trust a number less. It travels with the number: summary, manifest, report.

use serde::{Deserialize, Serialize};

/// A reason to trust a number less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Stable, for machines: `client-busy`, `rate-missed`.
    pub code: String,
    /// One or two sentences for people, with the numbers and, where there is one, the cure.
    pub text: String,
}

impl Caveat {
    /// A caveat with that code and text.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into() }
    }
}
