//! A release of Cassandra, and the JDKs that it runs on.
//!
//! Input: the text of a version. Output: [`Version`]. Source: "Java" under "Getting started,
//! Installing" of the documentation of Cassandra 4.1 and 5.0. Limits: the lines 4.1 and 5.0.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A release line, with the major versions of the JDKs that it is made for.
const LINES: [((u32, u32), &[u32]); 2] = [((4, 1), &[8, 11]), ((5, 0), &[11, 17])];

/// Longer texts are no version.
const LENGTH_MAX: usize = 32;

/// A release such as 5.0.5, of a line that wideload can start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    text: String,
    jdks: &'static [u32],
}

/// A version that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum VersionError {
    /// Not of the form of a release.
    #[error("'{given}' is no release of Cassandra: give one like 5.0.5 or 4.1.10")]
    Form {
        /// What was given.
        given: String,
    },
    /// Of a line whose flags and files are not known here.
    #[error(
        "Cassandra {given} cannot be started by this version of wideload: use 4.1.x or 5.0.x, or \
         start it yourself and give its addresses to --target"
    )]
    Line {
        /// What was given.
        given: String,
    },
}

impl Version {
    /// The JDKs that it is made for, by major version, ascending.
    #[must_use]
    pub fn jdks(&self) -> &'static [u32] {
        self.jdks
    }

    /// Its release line: `5.0`.
    #[must_use]
    pub fn line(&self) -> &str {
        let end = self.text.match_indices(['.', '-']).nth(1).map_or(self.text.len(), |(at, _)| at);
        &self.text[..end]
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let form = || VersionError::Form { given: text.chars().take(LENGTH_MAX).collect() };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        if text.len() > LENGTH_MAX || !text.chars().all(plain) {
            return Err(form());
        }
        let (major, rest) = text.split_once('.').ok_or_else(form)?;
        let (minor, patch) = rest.split_once(['.', '-']).ok_or_else(form)?;
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| form());
        if !patch.starts_with(|c: char| c.is_ascii_alphanumeric()) || patch.contains("..") {
            return Err(form());
        }
        let line = (number(major)?, number(minor)?);
        let jdks = LINES.iter().find(|(known, _)| *known == line).map(|(_, jdks)| *jdks);
        let jdks = jdks.ok_or_else(|| VersionError::Line { given: text.to_owned() })?;
        Ok(Self { text: text.to_owned(), jdks })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_know_their_jdks() {
        let jdks = |text: &str| text.parse::<Version>().map(|version| version.jdks());
        assert_eq!(jdks("5.0.5"), Ok(&[11, 17][..]));
        assert_eq!(jdks("5.0-rc1"), Ok(&[11, 17][..]));
        assert_eq!(jdks("4.1.10"), Ok(&[8, 11][..]));
        for (text, line) in [("5.0.5", "5.0"), ("5.0-rc1", "5.0"), ("4.1.10", "4.1")] {
            assert_eq!(text.parse::<Version>().unwrap().line(), line);
        }
    }

    #[test]
    fn what_is_no_release_is_refused_with_the_cure() {
        for text in ["", "5", "5.0", "5.0.", "a.b.c", "5.0.5 ", "5.0./etc", "5.0...", "5.0.5:x"] {
            let error = text.parse::<Version>().unwrap_err();
            assert!(matches!(error, VersionError::Form { .. }), "{text}: {error}");
        }
        for text in ["3.11.19", "4.0.1", "5.1.0", "50.0.5"] {
            let error = text.parse::<Version>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("5.0.x"), "{error}");
        }
        assert!("5.0.".repeat(100).parse::<Version>().is_err());
    }
}
