//! Words that must not be shown: they print as `***`, whoever formats what holds them.
//!
//! Limits: memory is not wiped; whoever may read this process's memory may read the password.

use std::fmt;

/// A password. `Debug` and `Display` are redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides `word`.
    #[must_use]
    pub fn new(word: impl Into<String>) -> Self {
        Self(word.into())
    }

    /// The word itself, for whom it was meant.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Who connects to a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Secret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_shows_in_no_format() {
        let password = Secret::new("hunter2");
        let credentials = Credentials { user: "ann".to_owned(), password: password.clone() };
        let shown = format!("{password} {password:?} {password:#?} {credentials:?}");
        assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        assert_eq!(password.expose(), "hunter2");
    }
}
