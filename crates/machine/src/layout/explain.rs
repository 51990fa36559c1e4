//! A layout in words.
//!
//! Input: a [`Layout`]. Output: lines for people.

use super::{Layout, Reason};

impl Reason {
    /// `memory: ...`, with a mark where it is a caution.
    #[must_use]
    pub fn line(&self) -> String {
        let mark = if self.caution { "! " } else { "" };
        format!("{mark}{}: {}", self.about, self.text)
    }
}

impl Layout {
    /// A line for each choice, in the order in which they were made.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        self.why.iter().map(Reason::line).collect()
    }

    /// The reasons that lower the worth of a result.
    pub fn cautions(&self) -> impl Iterator<Item = &Reason> {
        self.why.iter().filter(|reason| reason.caution)
    }
}
