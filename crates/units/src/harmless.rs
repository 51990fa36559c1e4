//! Text from elsewhere -> the same without what steers a terminal.

/// Control characters, and those that turn the direction of what is written. Ends of lines too.
#[must_use]
pub fn steers(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control()
}

/// A text with what would steer a terminal spelled out, but for the ends of its lines.
#[must_use]
pub fn harmless(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in text.chars() {
        match steers(c) && c != '\n' {
            true => tamed.extend(c.escape_default()),
            false => tamed.push(c),
        }
    }
    tamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_spelled_out() {
        assert_eq!(harmless("a\u{1b}[2J\u{7}b\nµ"), "a\\u{1b}[2J\\u{7}b\nµ");
        assert_eq!(harmless("x\u{202e}y\r"), "x\\u{202e}y\\r");
    }
}
