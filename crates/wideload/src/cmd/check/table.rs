//! Findings as a table for people, in as many columns as the terminal has.
//!
//! Input: findings and a width in columns. Output: text; a summary first, worst first, then the
//! groups, at the end the sources. Only commands that mend something may be longer than a line,
//! because they are to be copied.

use analyze::check::{Finding, Group, Source, Verdict};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 160;
/// Where nobody says how wide it is.
const WIDTH_UNKNOWN: usize = 100;
/// `unknown` and a blank.
const VERDICT: usize = 8;
const GAP: usize = 2;

/// Columns of the terminal: the variable COLUMNS, or what the terminal says.
pub(super) fn width() -> usize {
    let variable = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    variable
        .or_else(|| terminal().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0))
        .unwrap_or(WIDTH_UNKNOWN)
        .clamp(WIDTH_MIN, WIDTH_MAX)
}

/// The documents that these findings refer to, in order.
pub(super) fn sources(findings: &[Finding]) -> BTreeSet<Source> {
    findings.iter().flat_map(|finding| finding.sources.iter().copied()).collect()
}

/// The whole output.
pub(super) fn text(host: &str, findings: &[Finding], width: usize) -> String {
    let mut text = String::new();
    for line in [summary(findings).as_str(), host].iter().flat_map(|text| wrapped(text, width)) {
        let _ = writeln!(text, "{line}");
    }
    let groups: BTreeSet<Group> = findings.iter().map(|finding| finding.group).collect();
    let columns = Columns::of(width);
    for group in groups {
        let _ = writeln!(text, "\n{}", group.title());
        let mut of_group: Vec<_> = findings.iter().filter(|f| f.group == group).collect();
        of_group.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        of_group.iter().for_each(|finding| row(&mut text, finding, &columns));
    }
    text.push_str("\nsources\n");
    for source in sources(findings) {
        let lines = wrapped(source.title(), width - 2 - 12 - GAP);
        for (index, line) in lines.iter().enumerate() {
            let short = if index == 0 { source.short() } else { "" };
            let _ = writeln!(text, "  {short:<12}{:GAP$}{line}", "");
        }
    }
    text
}

/// `2 fail, 3 warn, 1 unknown, 20 ok`, and which are the worst.
fn summary(findings: &[Finding]) -> String {
    let of = |verdict| findings.iter().filter(move |finding| finding.verdict == verdict);
    let counts: Vec<_> = Verdict::ALL
        .iter()
        .filter(|verdict| of(**verdict).count() > 0)
        .map(|verdict| format!("{} {}", of(*verdict).count(), verdict.name()))
        .collect();
    let worst = [Verdict::Fail, Verdict::Warn].into_iter().find(|v| of(*v).count() > 0);
    let names = worst.map(|worst| of(worst).map(Finding::name).collect::<Vec<_>>().join(", "));
    match (worst, names) {
        (Some(worst), Some(names)) => format!("{}; {}: {names}", counts.join(", "), worst.name()),
        _ => counts.join(", "),
    }
}

/// Widths of the columns behind the verdict.
struct Columns {
    name: usize,
    value: usize,
    limit: usize,
    all: usize,
}

impl Columns {
    fn of(all: usize) -> Self {
        let rest = all - VERDICT - 2 * GAP;
        let name = rest * 3 / 11;
        let value = rest * 4 / 11;
        Self { name, value, limit: rest - name - value, all }
    }
}

fn row(text: &mut String, finding: &Finding, columns: &Columns) {
    let shorts: Vec<_> = finding.sources.iter().map(|source| source.short()).collect();
    let limit = format!("{} [{}]", finding.limit, shorts.join(", "));
    let cells = [
        (wrapped(&finding.name(), columns.name), columns.name),
        (wrapped(&finding.value, columns.value), columns.value),
        (wrapped(limit.trim(), columns.limit), columns.limit),
    ];
    let verdict = match finding.verdict {
        Verdict::Ok => "ok".to_owned(),
        verdict => verdict.name().to_uppercase(),
    };
    for index in 0..cells.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0) {
        let mut line = format!("{:<VERDICT$}", if index == 0 { verdict.as_str() } else { "" });
        for (lines, width) in &cells {
            let cell = lines.get(index).map_or("", String::as_str);
            let _ = write!(line, "{cell:<width$}{:GAP$}", "");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for line in wrapped(&finding.why, columns.all - VERDICT) {
        let _ = writeln!(text, "{:VERDICT$}{line}", "");
    }
    if !finding.mend.is_empty() {
        let mend: String = finding.mend.chars().map(plain).collect();
        let _ = writeln!(text, "{:VERDICT$}mend: {mend}", "");
    }
}

/// What would steer the terminal is shown as a question mark: a target or a tree may say anything.
fn plain(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

/// Lines of at most `width` characters, broken at blanks, and inside a word that is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut letters: Vec<char> = word.chars().map(plain).collect();
        if used > 0 && used + 1 + letters.len() > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        while letters.len() > width {
            lines.push(letters.drain(..width).collect());
        }
        used += letters.len();
        line.extend(letters);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks_and_long_words_inside() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("x abcdef", 4), ["x", "abcd", "ef"]);
        assert!(wrapped("  ", 4).is_empty());
        assert_eq!(wrapped("a\u{1b}b", 4), ["a?b"]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_but_commands() {
        let machine = analyze::check::unreachable(
            "some-host-with-a-long-name.example.org:9042",
            "cannot connect to it: connection refused; is the database up, and is this its CQL \
             address? It may also be that a firewall between here and there drops what is sent",
        );
        for width in [60, 80, 120] {
            let text = text("this host: a cpu, 2 cpus", std::slice::from_ref(&machine), width);
            for line in text.lines().filter(|line| !line.contains("mend: ")) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            assert!(text.starts_with("1 fail; fail: CQL at"), "{text}");
            assert!(text.contains("mend: start it"), "{text}");
        }
    }
}
