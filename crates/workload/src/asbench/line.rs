//! Command lines of Aerospike's benchmarks, cut into options: as `getopt_long` does it, or with the
//! long names behind one dash of the Java tool.
//!
//! In: arguments, the program's name left out. Out: options with their values, in order. Long names
//! may be written with dashes or capitals (`--max-retries`, `--maxRetries`) and cut short where
//! that leaves one name. Limits: none of an option's meaning is known here.

use std::fmt;
use thiserror::Error;

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// One that is joined to it.
    Joined,
}

/// An option: what it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spelling {
    /// With dashes; what [`Given::name`] says.
    name: &'static str,
    letter: Option<char>,
    takes: Takes,
}

const fn option(name: &'static str, letter: Option<char>, takes: Takes) -> Spelling {
    Spelling { name, letter, takes }
}

use Takes::{Joined, Nothing, Value};

/// Those of all generations. `latency` takes a value before asbench 1, and none from then on.
const OPTIONS: &[Spelling] = &[
    option("hosts", Some('h'), Value),
    option("port", Some('p'), Value),
    option("user", Some('U'), Value),
    option("password", Some('P'), Joined),
    option("namespace", Some('n'), Value),
    option("set", Some('s'), Value),
    option("start-key", Some('K'), Value),
    option("keys", Some('k'), Value),
    option("bin", Some('b'), Value),
    option("bins", None, Value),
    option("object-spec", Some('o'), Value),
    option("random", Some('R'), Nothing),
    option("duration", Some('t'), Value),
    option("transactions", None, Value),
    option("workload", Some('w'), Value),
    option("workload-stages", None, Value),
    option("threads", Some('z'), Value),
    option("throughput", Some('g'), Value),
    option("read-bins", None, Value),
    option("write-bins", None, Value),
    option("batch-size", None, Value),
    option("batch-read-size", None, Value),
    option("batch-write-size", None, Value),
    option("batch-delete-size", None, Value),
    option("compress", None, Nothing),
    option("compression-ratio", None, Value),
    option("socket-timeout", None, Value),
    option("read-socket-timeout", None, Value),
    option("write-socket-timeout", None, Value),
    option("timeout", Some('T'), Value),
    option("read-timeout", None, Value),
    option("write-timeout", None, Value),
    option("max-retries", None, Value),
    option("sleep-between-retries", None, Value),
    option("debug", Some('d'), Nothing),
    option("latency", Some('L'), Nothing),
    option("percentiles", None, Value),
    option("output-file", None, Value),
    option("output-period", None, Value),
    option("hdr-hist", None, Value),
    option("shared", Some('S'), Nothing),
    option("replica", Some('C'), Value),
    option("rack-id", None, Value),
    option("read-mode-ap", Some('N'), Value),
    option("read-mode-sc", Some('B'), Value),
    option("commit-level", Some('M'), Value),
    option("conn-pools-per-node", Some('Y'), Value),
    option("min-conns-per-node", None, Value),
    option("max-conns-per-node", None, Value),
    option("async-min-conns-per-node", None, Value),
    option("async-max-conns-per-node", None, Value),
    option("connect-timeout", None, Value),
    option("tender-interval", None, Value),
    option("max-error-rate", None, Value),
    option("error-rate-window", None, Value),
    option("max-socket-idle", None, Value),
    option("durable-delete", Some('D'), Nothing),
    option("async", Some('a'), Nothing),
    option("async-max-commands", Some('c'), Value),
    option("event-loops", Some('W'), Value),
    option("expiration-time", Some('e'), Value),
    option("send-key", None, Nothing),
    option("services-alternate", None, Nothing),
    option("udf-package-name", None, Value),
    option("upn", None, Value),
    option("udf-function-name", None, Value),
    option("ufn", None, Value),
    option("udf-function-values", None, Value),
    option("ufv", None, Value),
    option("tls-enable", None, Nothing),
    option("tls-name", None, Value),
    option("tls-cafile", None, Value),
    option("tls-capath", None, Value),
    option("tls-protocols", None, Value),
    option("tls-cipher-suite", None, Value),
    option("tls-crl-check", None, Nothing),
    option("tls-crl-check-all", None, Nothing),
    option("tls-cert-blacklist", None, Value),
    option("tls-log-session-info", None, Nothing),
    option("tls-keyfile", None, Value),
    option("tls-keyfile-password", None, Joined),
    option("tls-certfile", None, Value),
    option("tls-login-only", None, Nothing),
    option("auth", None, Value),
    option("help", None, Nothing),
    option("usage", Some('u'), Nothing),
    option("version", Some('V'), Nothing),
];

/// Those of wideload, which are not cut short.
const OWN: &[Spelling] = &[
    option("compat", None, Value),
    option("protocol", None, Value),
    option("create", None, Nothing),
    option("client-cpus", None, Value),
    option("seed", None, Value),
    option("out", None, Value),
];

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// Its name, with dashes.
    pub(super) name: &'static str,
    /// As it was written, without a value.
    pub(super) written: String,
    /// Empty where it takes none.
    pub(super) value: String,
}

/// Why a line means nothing, or what of it is not built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct LineError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub cure: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cure)
    }
}

impl LineError {
    pub(super) fn new(what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { what: what.into(), cure: cure.into() }
    }
}

/// How a line is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Long names stand behind one dash, too.
    pub(super) one_dash: bool,
    /// `--latency` has a value.
    pub(super) latency_has_value: bool,
}

/// A name without what tells its spellings apart.
fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect()
}

/// The option of a long name, written in full or cut short.
fn long(name: &str) -> Result<Spelling, LineError> {
    let wanted = folded(name);
    let alike = |spelling: &&Spelling| folded(spelling.name).starts_with(&wanted);
    let exact = OPTIONS.iter().chain(OWN).find(|spelling| folded(spelling.name) == wanted);
    let found: Vec<&Spelling> = OPTIONS.iter().filter(alike).collect();
    match (exact, &found[..]) {
        (Some(spelling), _) => Ok(*spelling),
        (None, [one]) if !wanted.is_empty() => Ok(**one),
        (None, [_, _, ..]) if !wanted.is_empty() => {
            let names: Vec<_> = found.iter().map(|spelling| spelling.name).collect();
            let cure = format!("it may be {}; write it in full", names.join(", "));
            Err(LineError::new(format!("--{name} is no one option"), cure))
        }
        _ => Err(LineError::new(
            format!("there is no option --{name}"),
            "`wideload asbench --help` lists what is known",
        )),
    }
}

/// Whether Java's tool has a long name behind its one dash there.
pub(super) fn is_one_dash_name(word: &str) -> bool {
    let Some(name) = word.strip_prefix('-').filter(|name| name.len() > 3) else { return false };
    !name.starts_with('-') && OPTIONS.iter().any(|spelling| folded(spelling.name) == folded(name))
}

/// Cuts arguments into options.
pub(super) fn options(words: &[String], cut: Cut) -> Result<Vec<Given>, LineError> {
    let mut given = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_long = word.starts_with("--") || cut.one_dash && is_one_dash_name(word);
        if is_long {
            let text = word.trim_start_matches('-');
            let (name, joined) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let spelling = long(name)?;
            let written = word.split_once('=').map_or(&word[..], |(name, _)| name).to_owned();
            let value = value_of(spelling, cut, &written, joined, &mut words)?;
            given.push(Given { name: spelling.name, written, value });
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return Err(LineError::new(
                format!("'{word}' belongs to no option"),
                "an option begins with a dash; a value with blanks needs quotes",
            ));
        };
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let found = OPTIONS.iter().find(|spelling| spelling.letter == Some(letter));
            let Some(spelling) = found else {
                return Err(LineError::new(
                    format!("there is no option -{letter}"),
                    "`wideload asbench --help` lists what is known",
                ));
            };
            let written = format!("-{letter}");
            let takes_none = takes(*spelling, cut) == Takes::Nothing;
            let joined = (!takes_none && !rest.is_empty()).then_some(rest);
            if !takes_none {
                rest = "";
            }
            let value = value_of(*spelling, cut, &written, joined, &mut words)?;
            given.push(Given { name: spelling.name, written, value });
        }
    }
    Ok(given)
}

fn takes(spelling: Spelling, cut: Cut) -> Takes {
    match spelling.name {
        "latency" if cut.latency_has_value => Takes::Value,
        _ => spelling.takes,
    }
}

fn value_of<'a>(
    spelling: Spelling,
    cut: Cut,
    written: &str,
    joined: Option<&str>,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<String, LineError> {
    match (takes(spelling, cut), joined) {
        (Takes::Nothing, Some(value)) => Err(LineError::new(
            format!("{written} takes no value, and '{value}' is joined to it"),
            "leave it out",
        )),
        (Takes::Nothing, None) => Ok(String::new()),
        (Takes::Value | Takes::Joined, Some(value)) => Ok(value.to_owned()),
        (Takes::Joined, None) => Ok(String::new()),
        (Takes::Value, None) => words.next().cloned().ok_or_else(|| {
            LineError::new(format!("{written} has no value"), "write one behind it")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const C: Cut = Cut { one_dash: false, latency_has_value: false };

    fn cut(line: &str, how: Cut) -> Result<Vec<(&'static str, String)>, LineError> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let given = options(&words, how)?;
        Ok(given.into_iter().map(|given| (given.name, given.value)).collect())
    }

    #[test]
    fn letters_and_names_are_one() {
        let short = cut("-h a -k100 -aRc 42 --maxRetries 2 --max-retries=3 -Ppw -L", C).unwrap();
        let long = "--hosts a --keys 100 --async --random --async-max-commands 42 --max-retries 2 \
                    --maxRetries 3 --password=pw --latency";
        assert_eq!(short, cut(long, C).unwrap());
        let java = Cut { one_dash: true, latency_has_value: true };
        let found = cut("-async -asyncMaxCommands 9 -latency 7,1,us -k 5", java).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["async", "async-max-commands", "latency", "keys"]);
        assert_eq!(cut("--object I4", C).unwrap(), [("object-spec", "I4".to_owned())]);
    }

    #[test]
    fn what_is_no_option_is_told() {
        for (line, told) in [
            ("--nothing", "there is no option --nothing"),
            ("-k", "-k has no value"),
            ("-x", "there is no option -x"),
            ("word", "'word' belongs to no option"),
            ("--async=1", "--async takes no value"),
            ("--batch 1", "--batch is no one option: it may be batch-size, batch-read-size"),
            ("--", "there is no option --"),
            ("-", "'-' belongs to no option"),
        ] {
            let error = cut(line, C).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_are_cut_or_refused(words in prop::collection::vec("-{0,2}.{0,12}", 0..6)) {
            for one_dash in [false, true] {
                let _ = options(&words, Cut { one_dash, latency_has_value: one_dash });
            }
        }
    }
}
