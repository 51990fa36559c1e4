//! Results on stdout.

use crate::exit::Exit;
use crate::style;
use anyhow::anyhow;
use std::io::{self, Write as _};
use units::steers;

/// What the kernel says of a terminal that was closed.
const EIO: i32 = 5;
/// Characters of an error that are shown; a server may say anything, at any length.
const ERROR_CHARS_MAX: usize = 4000;

/// An error as it may go to a terminal: what would steer it is spelled out, and it has an end.
pub(crate) fn tame(error: &str) -> String {
    tame_all(error).chars().take(ERROR_CHARS_MAX).collect()
}

/// A text of any length, with what would steer a terminal spelled out, but for colours.
pub(crate) fn tame_all(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = style::CODES.iter().find(|code| rest.starts_with(**code));
        let size = match colour {
            Some(code) => code.len(),
            None => c.len_utf8(),
        };
        match (colour, steers(c) && c != '\n') {
            (None, true) => tamed.extend(c.escape_default()),
            _ => tamed.push_str(&rest[..size]),
        }
        rest = &rest[size..];
    }
    tamed
}

/// Tells people something while a result is made, on stderr. A stderr that is closed is no reason
/// to stop.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{}", tame_all(text));
}

/// Prints a result for people: names in it may come from anywhere. Otherwise as [`data`].
pub(crate) fn print(text: &str) -> Result<(), Exit> {
    data(&tame_all(text))
}

/// Prints a result for machines, as it is. A reader that has gone away (`| head`, a closed
/// terminal) has seen what it wanted and is no failure; a full disk behind `> FILE` is one.
pub(crate) fn data(text: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if !is_gone(&error) => {
            Err(Exit::environment(anyhow!("cannot write the result to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_spelled_out() {
        assert_eq!(tame("a\u{1b}]0;pwn\u{7}b\nc"), "a\\u{1b}]0;pwn\\u{7}b\nc");
        assert_eq!(tame(&"x".repeat(100_000)).len(), ERROR_CHARS_MAX);
        let red = "\u{1b}[31m2 \u{b5}s\u{1b}[0m";
        assert_eq!(
            tame_all(&format!("{red}\u{1b}[2J\u{202e}\t")),
            format!("{red}\\u{{1b}}[2J\\u{{202e}}\\t")
        );
    }
}
