//! Which of Aerospike's benchmarks a command line is for.
//!
//! In: the line's words. Out: a generation, and by which spelling it was told. The tools before
//! asbench had a latency table, objects written `S:50` and names with capitals; the Java one has
//! long names behind one dash. The study of device queues measured with a patched tool whose patch
//! is not published: that `21,4` means 21 columns in steps of 40 us, and that shares are printed
//! with a decimal, is inferred from its tables and the headings in its scripts.

use super::line::{Cut, LineError, is_one_dash_name};
use std::fmt;
use std::str::FromStr;

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The benchmark within the C client.
    Legacy,
    /// The same, its table in microseconds.
    LegacyUsec,
    /// The benchmark of the Java client.
    Java,
    /// asbench.
    Two,
    /// The C client's, as patched for the study of device queues.
    Patched,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::LegacyUsec => "legacy-usec",
            Self::Java => "java",
            Self::Two => "2",
            Self::Patched => "patched",
        })
    }
}

impl FromStr for Generation {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        let all = [Self::Legacy, Self::LegacyUsec, Self::Java, Self::Two, Self::Patched];
        all.into_iter().find(|generation| generation.to_string() == text).ok_or_else(|| {
            let cure = "give legacy, legacy-usec, java, 2 or patched";
            LineError::new(format!("--compat {text} is no generation"), cure)
        })
    }
}

impl Generation {
    /// How its lines are cut.
    pub(super) fn cut(self) -> Cut {
        Cut { one_dash: self == Self::Java, latency_has_value: self != Self::Two }
    }

    /// Objects are written `S:50`, one kind for all bins.
    pub(super) fn writes_colons(self) -> bool {
        self != Self::Two
    }
}

/// The generation of a line, and why.
pub(super) fn told_by(words: &[String]) -> (Generation, String) {
    if let Some(word) = words.iter().find(|word| is_one_dash_name(word)) {
        return (Generation::Java, format!("{word} has one dash"));
    }
    let table = words.iter().enumerate().find_map(|(at, word)| table_at(word, words.get(at + 1)));
    if let Some(table) = table {
        return match is_patched(table) {
            Some(why) => (Generation::Patched, format!("--latency {table} {why}")),
            None => (Generation::Legacy, format!("--latency has a table, {table}")),
        };
    }
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", |next| &next[..]);
        let legacy = match &word[..] {
            "-o" | "--objectSpec" => next == "I" || next.contains(':') && !next.contains('{'),
            "-w" | "--workload" => next.starts_with("I,"),
            "--transactions" | "--bins" => true,
            _ => false,
        };
        if legacy {
            return (Generation::Legacy, format!("{word} {next}"));
        }
    }
    let capitals =
        |word: &&String| word.starts_with("--") && word.contains(|c: char| c.is_ascii_uppercase());
    match words.iter().find(capitals) {
        Some(word) if !words.iter().any(|word| is_dashed(word)) => {
            (Generation::Legacy, format!("{word} has capitals"))
        }
        _ => (Generation::Two, "nothing in it is of the tools before".to_owned()),
    }
}

/// A long name with a dash within.
fn is_dashed(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| name.contains('-'))
}

/// The table that `--latency` has at a word, joined to it or behind it.
fn table_at<'a>(word: &'a str, next: Option<&'a String>) -> Option<&'a str> {
    let value = match word {
        "-L" | "--latency" | "-latency" => next?,
        _ => word.strip_prefix("--latency=").or_else(|| word.strip_prefix("-L"))?,
    };
    let (columns, rest) = value.split_once(',')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    (digits(columns) && rest.starts_with(|c: char| c.is_ascii_digit())).then_some(value)
}

/// Whether only the patched tool takes such a table, and why.
fn is_patched(table: &str) -> Option<&'static str> {
    let parts: Vec<&str> = table.split(',').collect();
    let number = |at: usize| parts.get(at).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    // From 16 bits on a shift of milliseconds has left a minute far behind.
    match (parts.len(), number(0), number(1)) {
        (3.., ..) => Some("has a unit"),
        (_, 17.., _) => Some("has more than 16 columns"),
        (_, columns, shift) if columns.saturating_sub(2) * shift >= 22 => {
            Some("would have limits beyond an hour")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_tells_the_generation() {
        for (line, generation) in [
            ("-h a -k 1 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,us", Generation::Patched),
            ("-h a:3000 -o S:32 -w I --latency 10,2,u -M master", Generation::Patched),
            ("-o S:32 -w I -a -M master --maxRetries 10 -T 10000", Generation::Legacy),
            ("-o S:32 -w RU,100 -a -c 142 -W 12 --latency 16,4", Generation::Patched),
            ("-o S:32 -w RU,100 -a -c 142 -W 12 --latency 21,4", Generation::Patched),
            ("-w RU,50 --latency 7,1", Generation::Legacy),
            ("-L7,1", Generation::Legacy),
            ("-w I,60", Generation::Legacy),
            ("-o I", Generation::Legacy),
            ("--startKey 5", Generation::Legacy),
            ("--startKey 5 --max-retries 2", Generation::Two),
            ("-o I4,S32 -w RU,80 -L", Generation::Two),
            ("-o {S4:I4}", Generation::Two),
            ("-k 5", Generation::Two),
            ("-async -asyncMaxCommands 5", Generation::Java),
            ("-k 5 -latency 7,1,us", Generation::Java),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (found, why) = told_by(&words);
            assert_eq!(found, generation, "{line}: {why}");
        }
        for name in ["legacy", "legacy-usec", "java", "2", "patched"] {
            assert_eq!(name.parse::<Generation>().unwrap().to_string(), name);
        }
        assert!("3".parse::<Generation>().is_err());
    }
}
