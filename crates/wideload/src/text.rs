//! Text for a terminal of 80 columns: words into lines, large numbers into short ones.

/// Columns that every terminal has.
pub(crate) const COLUMNS: usize = 80;

/// A blank at which no line ends.
pub(crate) const TIE: char = '\u{a0}';

/// Words in lines of at most [`COLUMNS`]; the first line begins with `first`, all others with
/// `rest`. A word that is longer than a line, such as a path, gets one of its own. Words joined by
/// [`TIE`] stay together.
pub(crate) fn wrap(text: &str, first: &str, rest: &str) -> String {
    let mut lines = vec![first.to_owned()];
    let mut fresh = true;
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        let width = |text: &str| text.chars().count();
        let line = lines.last().map_or(0, |line| width(line));
        if !fresh && line + 1 + width(word) > COLUMNS {
            lines.push(rest.to_owned());
            fresh = true;
        }
        if let Some(line) = lines.last_mut() {
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
        }
        fresh = false;
    }
    lines.join("\n").replace(TIE, " ")
}

/// A count in at most six characters: `9999`, `123k`, `45.6M`.
pub(crate) fn short(count: f64) -> String {
    match count {
        n if n < 9_999.5 => format!("{n:.0}"),
        n if n < 999_500.0 => format!("{:.0}k", n / 1e3),
        n if n < 999_950_000.0 => format!("{:.1}M", n / 1e6),
        n => format!("{:.1}G", n / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_into_lines_that_fit() {
        let text = "word ".repeat(40);
        let wrapped = wrap(&text, "  ! ", "    ");
        assert!(wrapped.lines().all(|line| line.chars().count() <= COLUMNS), "{wrapped}");
        assert_eq!(wrapped.split_whitespace().filter(|w| *w == "word").count(), 40);
        assert!(
            wrapped.starts_with("  ! word") && wrapped.lines().nth(1).unwrap().starts_with("    w")
        );
        assert!(wrap(&format!("{} 74{TIE}%", "w".repeat(76)), "", "").ends_with("\n74 %"));
        let path = "p".repeat(100);
        assert_eq!(wrap(&format!("see {path} there"), "", "> "), format!("see\n> {path}\n> there"));
    }

    #[test]
    fn counts_are_short() {
        for (count, text) in
            [(0.0, "0"), (9_999.0, "9999"), (12_345.0, "12k"), (1.26e6, "1.3M"), (2e9, "2.0G")]
        {
            assert_eq!(short(count), text);
        }
    }
}
