//! Where things of this user are kept: what can be made again, and what must be remembered.
//!
//! Input: `XDG_CACHE_HOME`, `XDG_STATE_HOME`, `HOME`. Output: the directories `wideload` below
//! them; nothing is created. Source: XDG Base Directory Specification 0.8, by which a relative
//! path in such a variable is to be ignored.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Neither the variable nor `HOME` says where.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no place to keep things: set {variable} or HOME to an absolute path")]
pub struct NoHome {
    /// The variable that would say it.
    pub variable: &'static str,
}

/// What can be made again: `$XDG_CACHE_HOME/wideload`.
///
/// # Errors
/// When neither the variable nor `HOME` is an absolute path.
pub fn cache() -> Result<PathBuf, NoHome> {
    from_environment("XDG_CACHE_HOME", ".cache")
}

/// What must be remembered, such as what is up: `$XDG_STATE_HOME/wideload`.
///
/// # Errors
/// When neither the variable nor `HOME` is an absolute path.
pub fn state() -> Result<PathBuf, NoHome> {
    from_environment("XDG_STATE_HOME", ".local/state")
}

fn from_environment(variable: &'static str, below_home: &str) -> Result<PathBuf, NoHome> {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    place(path(variable), path("HOME"), below_home).ok_or(NoHome { variable })
}

fn place(given: Option<PathBuf>, home: Option<PathBuf>, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: Option<PathBuf>| path.filter(|path| Path::is_absolute(path));
    let base = absolute(given).or_else(|| absolute(home).map(|home| home.join(below_home)))?;
    Some(base.join("wideload"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_and_relative_paths_do_not_count() {
        let at = |given: &str, home: &str| {
            let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
            place(path(given), path(home), ".cache")
        };
        assert_eq!(at("/a", "/h"), Some("/a/wideload".into()));
        assert_eq!(at("", "/h"), Some("/h/.cache/wideload".into()));
        assert_eq!(at("a", "/h"), Some("/h/.cache/wideload".into()));
        assert_eq!(at("a", "h"), None);
        assert_eq!(at("", ""), None);
    }
}
