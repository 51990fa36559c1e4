//! The command line: arguments -> one repaired line -> a command and groups of words.
//!
//! Arguments are joined with one blank. Blanks around `,`, `=`, `(` and before `)` go, so that
//! `replication(strategy=X, dc1=1)` is one word however the shell has cut it; what is left is cut
//! at blanks. The first word is the command; a word that begins with `-` opens a group, whose name
//! is lower-cased. Input: arguments. Output: words with their place in the repaired line. Source:
//! cassandra-stress, `StressSettings.repairParams` and `parseMap`.

use std::fmt;
use thiserror::Error;

/// A word of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// As written.
    pub(crate) text: String,
    /// Its first character, counted from 1 in the repaired line.
    pub(crate) column: usize,
}

/// A group, or the command, and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// In lower case: `write`, `-rate`.
    pub(crate) name: String,
    /// Of its name, as [`Word::column`].
    pub(crate) column: usize,
    /// What follows, up to the next group.
    pub(crate) words: Vec<Word>,
}

/// A command line, cut into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// As it was repaired.
    pub(crate) text: String,
    /// The command first.
    pub(crate) groups: Vec<Group>,
}

/// Why a command line means nothing. The first line of its text is what the original says.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct LineError {
    /// In the words of the original where it has the same error.
    pub what: String,
    /// Where in the repaired line; None where something is missing.
    pub column: Option<usize>,
    /// What to write instead.
    pub cure: String,
    /// The group whose help tells what can be written, as `help` takes it.
    pub group: Option<String>,
    /// The original takes it; this program does not do it.
    pub unbuilt: bool,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(column) = self.column {
            write!(f, "\n  at character {column} of the command line")?;
        }
        if !self.cure.is_empty() {
            write!(f, "\n  {}", self.cure)?;
        }
        Ok(())
    }
}

impl LineError {
    /// An error of the original at a word.
    pub(crate) fn at(word: &Word, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { column: Some(word.column), ..Self::anywhere(what, cure) }
    }

    /// An error that has no place.
    pub(crate) fn anywhere(what: impl Into<String>, cure: impl Into<String>) -> Self {
        let (what, cure) = (what.into(), cure.into());
        Self { what, column: None, cure, group: None, unbuilt: false }
    }

    /// What the original does and this program does not.
    pub(crate) fn unbuilt(word: &Word, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { unbuilt: true, ..Self::at(word, what, cure) }
    }
}

/// What blanks are in the original's expressions.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// The arguments as one line without needless blanks.
fn repaired(arguments: &[String]) -> String {
    let joined = arguments.join(" ");
    let mut text = String::with_capacity(joined.len());
    let mut blanks = String::new();
    for c in joined.chars() {
        if is_blank(c) {
            blanks.push(c);
            continue;
        }
        let closes = matches!(c, ',' | '=' | '(' | ')');
        let opened = text.ends_with([',', '=', '(']);
        if !closes && !opened {
            text.push_str(&blanks);
        }
        blanks.clear();
        text.push(c);
    }
    text
}

impl Line {
    /// Cuts arguments, the program's name left out.
    ///
    /// # Errors
    /// When there is none, or a group comes twice.
    pub(crate) fn of(arguments: &[String]) -> Result<Self, LineError> {
        let text = repaired(arguments);
        let mut groups: Vec<Group> = Vec::new();
        let mut column = 1;
        for part in text.split(' ') {
            let at = column;
            column += part.chars().count() + 1;
            if part.is_empty() {
                continue;
            }
            let word = Word { text: part.to_owned(), column: at };
            match groups.last_mut() {
                Some(group) if !part.starts_with('-') => group.words.push(word),
                _ => {
                    let name = part.to_lowercase();
                    if groups.iter().any(|group| group.name == name) {
                        let more = "Each option/command can be specified at most once.";
                        let what = format!("{name} is defined multiple times. {more}");
                        return Err(LineError::at(&word, what, "Write its words into one group."));
                    }
                    groups.push(Group { name, column: at, words: Vec::new() });
                }
            }
        }
        if groups.is_empty() {
            let cure = "Write a command: write, read, mixed, counter_write, counter_read, help.";
            return Err(LineError::anywhere("No command specified", cure));
        }
        Ok(Self { text, groups })
    }

    /// Takes a group out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Group> {
        let index = self.groups.iter().position(|group| group.name == name)?;
        Some(self.groups.remove(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> Result<Line, LineError> {
        Line::of(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn blanks_around_signs_go() {
        for (given, repaired) in [
            ("write n = 1000", "write n=1000"),
            ("a replication( strategy=X , dc1=1 ) b", "a replication(strategy=X,dc1=1) b"),
            ("a b( c ) d", "a b(c) d"),
            ("a ) b", "a) b"),
            ("n  =  5", "n=5"),
        ] {
            assert_eq!(line(given).unwrap().text, repaired);
        }
    }

    #[test]
    fn groups_have_their_words_and_places() {
        let line = line("WRITE n=5 -Rate threads=4 -node a,b").unwrap();
        let names: Vec<_> = line.groups.iter().map(|g| (&g.name[..], g.words.len())).collect();
        assert_eq!(names, [("write", 1), ("-rate", 1), ("-node", 1)]);
        assert_eq!(line.groups[1].words[0], Word { text: "threads=4".into(), column: 17 });
    }

    #[test]
    fn a_group_comes_once_and_a_command_there_must_be() {
        let twice = line("write -rate threads=4 -RATE threads=5").unwrap_err();
        assert!(twice.to_string().starts_with("-rate is defined multiple times."), "{twice}");
        assert_eq!(twice.column, Some(23));
        assert_eq!(line("").unwrap_err().what, "No command specified");
        assert_eq!(line("   ").unwrap_err().what, "No command specified");
    }

    proptest! {
        #[test]
        fn any_arguments_are_cut(arguments in prop::collection::vec(".{0,30}", 0..8)) {
            if let Ok(line) = Line::of(&arguments) {
                for group in &line.groups {
                    let there = |column: usize, word: &str| {
                        line.text.chars().skip(column - 1).collect::<String>().starts_with(word)
                    };
                    prop_assert!(group.words.iter().all(|w| there(w.column, &w.text)));
                }
            }
        }
    }
}
