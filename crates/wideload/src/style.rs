//! Colours: on a terminal only, and none with NO_COLOR (no-color.org) or TERM=dumb.

use std::io::IsTerminal;

/// All that is ever sent to a terminal besides text.
pub(crate) const CODES: [&str; 4] = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"];

/// Whether text is coloured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style(bool);

impl Style {
    /// For what is printed on `out`.
    pub(crate) fn of(out: &impl IsTerminal) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self(out.is_terminal() && !unwanted && !dumb)
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self(false)
    }

    #[cfg(test)]
    pub(crate) fn coloured() -> Self {
        Self(true)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
