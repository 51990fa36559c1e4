//! What is wrong with an experiment's file: where, what, and the cure.

use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an experiment cannot be read or planned.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The file.
    #[error(
        "cannot read '{}': {source}; give the path of an experiment, a TOML file",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What stands in it.
    #[error("{at}: {what}; {cure}")]
    Text {
        /// File, line and column.
        at: Position,
        /// What is wrong.
        what: String,
        /// What to do.
        cure: String,
    },
}

/// A place in a file, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file as it was given.
    pub path: PathBuf,
    /// Line.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}, column {}", self.path.display(), self.line, self.column)
    }
}

/// A text and its file, for errors in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// The error at a byte of the text.
    pub(crate) fn error(
        &self,
        byte: usize,
        what: impl Into<String>,
        cure: impl Into<String>,
    ) -> ExperimentError {
        let before = self.text.get(..byte).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let at = Position { path: self.path.to_owned(), line, column };
        ExperimentError::Text { at, what: what.into(), cure: cure.into() }
    }
}
