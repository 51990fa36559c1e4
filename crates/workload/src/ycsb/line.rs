//! YCSB's own command line: words -> phase, binding, properties.
//!
//! `load|run BINDING` and the options of the launcher and of its client, in any order: `-P FILE`,
//! `-p KEY=VALUE`, `-threads N`, `-target N`, `-s`, `-l LABEL`, `-load`, `-t`, `-db CLASS`,
//! `-cp PATH`, `-jvm-args ARGS`; and two of our own, `--create` and `--out DIR`. Source: bin/ycsb,
//! bin/ycsb.sh and Client.parseArguments of YCSB at commit d9faaac. Later words win over earlier
//! ones, the phase named by `load` or `run` over `-load` and `-t`, and all of them over files.

use super::{Properties, PropertiesError};
use std::path::PathBuf;
use thiserror::Error;

/// Which phase of a workload is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Writes the records.
    Load,
    /// The mix of operations.
    Run,
}

impl Command {
    /// As the command line has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Run => "run",
        }
    }
}

/// A command line that was taken apart; nothing is read or checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The phase, when a word names it.
    pub command: Option<Command>,
    /// The binding as a launcher names it.
    pub binding: Option<String>,
    /// Property files in their order.
    pub files: Vec<PathBuf>,
    /// `key=value` in their order, options as the properties that they set.
    pub pairs: Vec<String>,
    /// Keyspace and table are created where they are missing (`--create`).
    pub create: bool,
    /// The run directory (`--out`).
    pub out: Option<PathBuf>,
    /// What does nothing here: sentences.
    pub notices: Vec<String>,
}

/// Why a command line is none. Positions count words from 1.
#[derive(Debug, Error)]
pub enum LineError {
    /// A word that nothing begins with.
    #[error(
        "word {position} of the line, '{word}', is no option of YCSB; it takes -P FILE, \
         -p KEY=VALUE, -threads N, -target N, -s, -l LABEL, -load, -t, -db CLASS, -cp PATH and \
         -jvm-args ARGS"
    )]
    Option {
        /// Where it stands.
        position: usize,
        /// The word.
        word: String,
    },
    /// A word behind phase and binding that is no option.
    #[error(
        "word {position} of the line, '{word}', follows no option; the line is load|run BINDING \
         [options]"
    )]
    Stray {
        /// Where it stands.
        position: usize,
        /// The word.
        word: String,
    },
    /// The first word is no phase.
    #[error("'{word}' is no command of YCSB that is driven here; choose load or run")]
    Command {
        /// The word.
        word: String,
    },
    /// The line ends where a value is due.
    #[error("{option} at the end of the line has no value; give it {wanted}")]
    Missing {
        /// The option.
        option: String,
        /// What belongs behind it.
        wanted: &'static str,
    },
    /// A value that is no whole number.
    #[error("{option} {value} (word {position} of the line) is no whole number; give one like 64")]
    Number {
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// Where the value stands.
        position: usize,
    },
    /// A pair without an equals sign.
    #[error(
        "'{pair}' (word {position} of the line) is no property; write it as -p operationcount=99999"
    )]
    Pair {
        /// The word.
        pair: String,
        /// Where it stands.
        position: usize,
    },
}

impl Line {
    /// Takes a line apart.
    ///
    /// # Errors
    /// [`LineError`], with the position of the word.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, LineError> {
        let mut line = Self::default();
        let mut words = words.iter().map(AsRef::as_ref).enumerate();
        while let Some((index, word)) = words.next() {
            let mut value = |wanted| match words.next() {
                Some((index, value)) => Ok((index + 1, value)),
                None => Err(LineError::Missing { option: word.to_owned(), wanted }),
            };
            match word {
                "-P" => line.files.push(value("a property file")?.1.into()),
                "-p" => {
                    let (position, pair) = value("key=value")?;
                    line.pair(position, pair)?;
                }
                "-threads" | "-target" => {
                    let name = if word == "-target" { "target" } else { "threadcount" };
                    let (position, number) = value("a whole number")?;
                    if number.parse::<i32>().is_err() {
                        let (option, value) = (word.to_owned(), number.to_owned());
                        return Err(LineError::Number { option, value, position });
                    }
                    line.set(name, number);
                }
                "-s" => line.set("status", "true"),
                "-l" => line.set("label", value("a label")?.1),
                "-load" => line.set("dotransactions", "false"),
                "-t" => line.set("dotransactions", "true"),
                "-db" => line.set("db", value("a class or the name of a binding")?.1),
                "-cp" => line.no_effect(word, value("a path")?.1, "nothing is loaded from it"),
                "-jvm-args" => {
                    line.no_effect(word, value("arguments of a JVM")?.1, "there is no JVM");
                }
                "--create" => line.create = true,
                "--out" => line.out = Some(value("a directory")?.1.into()),
                _ if word.starts_with("-jvm-args=") => {
                    line.no_effect("-jvm-args", &word["-jvm-args=".len()..], "there is no JVM");
                }
                _ => line.positional(index + 1, word)?,
            }
        }
        Ok(line)
    }

    fn pair(&mut self, position: usize, pair: &str) -> Result<(), LineError> {
        match pair.split_once('=') {
            Some((name, _)) if !name.is_empty() => self.pairs.push(pair.to_owned()),
            _ => return Err(LineError::Pair { pair: pair.to_owned(), position }),
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) {
        self.pairs.push(format!("{name}={value}"));
    }

    fn no_effect(&mut self, option: &str, value: &str, why: &str) {
        self.notices.push(format!("{option} {value} has no effect: {why}"));
    }

    fn positional(&mut self, position: usize, word: &str) -> Result<(), LineError> {
        let word_owned = || word.to_owned();
        match (word, self.command, &self.binding) {
            _ if word.starts_with('-') => Err(LineError::Option { position, word: word_owned() }),
            ("load", None, None) => {
                self.command = Some(Command::Load);
                Ok(())
            }
            ("run", None, None) => {
                self.command = Some(Command::Run);
                Ok(())
            }
            (_, Some(_), None) => {
                self.binding = Some(word_owned());
                Ok(())
            }
            (_, None, None) if position == 1 => Err(LineError::Command { word: word_owned() }),
            _ => Err(LineError::Stray { position, word: word_owned() }),
        }
    }

    /// The properties of the line, over those of its files.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn properties(&self) -> Result<Properties, PropertiesError> {
        Properties::load(&self.files, &self.pairs)
    }
}

/// Whether a property holds what nobody else is to see.
#[must_use]
pub(super) fn is_secret(property: &str) -> bool {
    property.to_ascii_lowercase().ends_with("password")
}

/// What stands in place of a secret.
pub(super) const REDACTED: &str = "(redacted)";

/// A word of a command line as it may be shown and kept: the value of a secret property is left
/// out, whether it stands alone or behind `-p` in one word.
#[must_use]
pub fn redacted(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if is_secret(name) && !value.is_empty() => {
            format!("{name}={REDACTED}")
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Line {
        Line::parse(&text.split(' ').collect::<Vec<_>>()).unwrap()
    }

    fn refused(text: &str) -> String {
        Line::parse(&text.split(' ').collect::<Vec<_>>()).unwrap_err().to_string()
    }

    #[test]
    fn the_order_of_the_launcher() {
        let line = parsed(
            "run cassandra-cql -P workloads/workloada -p hosts=10.0.0.5 -threads 64 -target 1000 \
             -s -p recordcount=5 -jvm-args -Xmx4g -cp /x",
        );
        assert_eq!(line.command, Some(Command::Run));
        assert_eq!(line.binding.as_deref(), Some("cassandra-cql"));
        assert_eq!(line.files, [PathBuf::from("workloads/workloada")]);
        let pairs =
            ["hosts=10.0.0.5", "threadcount=64", "target=1000", "status=true", "recordcount=5"];
        assert_eq!(line.pairs, pairs);
        assert_eq!(line.notices.len(), 2, "{:?}", line.notices);
        assert!(line.notices[0].contains("-Xmx4g") && line.notices[0].contains("no JVM"));
    }

    #[test]
    fn the_order_of_the_client() {
        let line = parsed("-db site.ycsb.BasicDB -P w -load -p a=b=c -l one");
        assert_eq!((line.command, line.binding.as_deref()), (None, None));
        let pairs = ["db=site.ycsb.BasicDB", "dotransactions=false", "a=b=c", "label=one"];
        assert_eq!(line.pairs, pairs);
        let line = parsed("-s load basic --create --out d");
        assert_eq!(line.command, Some(Command::Load));
        assert_eq!((line.create, line.out), (true, Some("d".into())));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (line, told) in [
            ("shell basic", "'shell' is no command"),
            ("run basic -x", "word 3 of the line, '-x', is no option"),
            ("run basic w", "word 3 of the line, 'w', follows no option"),
            ("run basic -P", "-P at the end of the line has no value"),
            ("run basic -threads many", "-threads many (word 4 of the line) is no whole number"),
            ("run basic -p a", "'a' (word 4 of the line) is no property"),
            ("run basic -p =a", "'=a' (word 4 of the line) is no property"),
        ] {
            assert!(refused(line).contains(told), "{line}: {}", refused(line));
        }
    }

    #[test]
    fn later_words_win_over_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("w");
        std::fs::write(&file, "threadcount=2\ntarget=3\n").unwrap();
        let file = file.to_str().unwrap();
        let words = ["run", "basic", "-threads", "7", "-P", file, "-p", "threadcount=9"];
        let properties = Line::parse(&words).unwrap().properties().unwrap();
        let of = |name| properties.get(name);
        assert_eq!((of("threadcount"), of("target")), (Some("9"), Some("3")));
    }

    #[test]
    fn passwords_are_left_out() {
        for (word, shown) in [
            ("cassandra.password=hunter2", "cassandra.password=(redacted)"),
            ("scylla.password=a=b", "scylla.password=(redacted)"),
            ("cassandra.username=ann", "cassandra.username=ann"),
            ("cassandra.password=", "cassandra.password="),
            ("-p", "-p"),
        ] {
            assert_eq!(redacted(word), shown);
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(words in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "load", "run", "basic", "-P", "-p", "-threads", "-target", "-s", "-l", "-load",
                    "-t", "-db", "-cp", "-jvm-args", "-jvm-args=", "--create", "--out", "a=b", "=",
                ])
                .prop_map(str::to_owned),
                "\\PC{0,8}",
            ],
            0..12,
        )) {
            if let Ok(line) = Line::parse(&words) {
                line.pairs.iter().for_each(|pair| drop(redacted(pair)));
            }
        }
    }
}
