//! A reason to trust a number less. It travels with the number: summary, manifest, report.

use serde::{Deserialize, Serialize};

/// A reason to trust a number less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Stable, for machines: `client-busy`, `rate-missed`.
    pub code: String,
    /// One or two sentences for people: what is so, and what that does to the numbers.
    pub text: String,
    /// What was found, with its numbers and where they come from; empty when the text says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// What to do about it, a command where there is one; empty when there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cure: String,
}

impl Caveat {
    /// A caveat with that code and text.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        let (evidence, cure) = (String::new(), String::new());
        Self { code: code.into(), text: text.into(), evidence, cure }
    }

    /// The same with what was found.
    #[must_use]
    pub fn evidence(self, evidence: impl Into<String>) -> Self {
        Self { evidence: evidence.into(), ..self }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: cure.into(), ..self }
    }
}
