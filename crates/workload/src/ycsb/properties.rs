//! Properties: `-p key=value` pairs and files in Java's .properties syntax -> an ordered map.
//!
//! Source: the documentation of java.util.Properties.load: comments (`#`, `!`), `=`, `:` or white
//! space as separator, continuation by a final backslash, escapes `\t \n \r \f \uXXXX`; bytes are
//! ISO 8859-1. Limits: 1 MiB a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;
use units::{Bytes, read_plain};

/// Largest file.
const FILE_SIZE_MAX: Bytes = Bytes(1 << 20);

/// Names and values, in the order of the names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Why properties could not be read.
#[derive(Debug, Error)]
pub enum PropertiesError {
    /// Not `key=value`.
    #[error("'{text}' is no property; write it as -p key=value")]
    Pair {
        /// What was given.
        text: String,
    },
    /// The file cannot be read.
    #[error(
        "cannot read property file '{path}': {source}; name a readable file of key=value lines",
        path = path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A malformed escape.
    #[error("property file '{path}', line {line}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Line from 1.
        line: usize,
        /// What is wrong.
        source: SyntaxError,
    },
}

/// A malformed escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "\\u must be followed by four hexadecimal digits of a character (surrogates in pairs); \
     write \\\\u for a backslash and a u"
)]
pub struct SyntaxError;

impl Properties {
    /// No properties.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Files in their order, then pairs in theirs; the later wins, as in YCSB.
    ///
    /// # Errors
    /// When a file cannot be read or a pair or escape is malformed.
    pub fn load<P: AsRef<Path>, S: AsRef<str>>(
        files: &[P],
        pairs: &[S],
    ) -> Result<Self, PropertiesError> {
        let mut properties = Self::new();
        files.iter().try_for_each(|path| properties.read_file(path.as_ref()))?;
        pairs.iter().try_for_each(|pair| properties.set(pair.as_ref()))?;
        Ok(properties)
    }

    /// Sets one `key=value`.
    ///
    /// # Errors
    /// When there is no `=` or nothing before it.
    pub fn set(&mut self, pair: &str) -> Result<(), PropertiesError> {
        match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                self.0.insert(name.to_owned(), value.to_owned());
                Ok(())
            }
            _ => Err(PropertiesError::Pair { text: pair.to_owned() }),
        }
    }

    /// Adds the properties of a file; they replace those of the same name.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than 1 MiB or has a malformed escape.
    pub fn read_file(&mut self, path: &Path) -> Result<(), PropertiesError> {
        let read_error = |source| PropertiesError::Read { path: path.to_owned(), source };
        let bytes = read_plain(path, FILE_SIZE_MAX).map_err(read_error)?;
        self.parse(&bytes).map_err(|(line, source)| PropertiesError::File {
            path: path.to_owned(),
            line,
            source,
        })
    }

    /// Sets one property.
    pub(super) fn insert(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// The value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and values in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds the properties of a file's bytes; on error the line from 1.
    fn parse(&mut self, bytes: &[u8]) -> Result<(), (usize, SyntaxError)> {
        let mut lines = natural_lines(bytes).enumerate();
        while let Some((index, line)) = lines.next() {
            let line = trim_start(line);
            if line.is_empty() || line[0] == b'#' || line[0] == b'!' {
                continue;
            }
            let mut logical = line.to_vec();
            while continues(&logical) {
                logical.pop();
                match lines.next() {
                    Some((_, next)) => logical.extend(trim_start(next)),
                    None => break,
                }
            }
            let (name, value) = split(&logical);
            let unescaped = |part| unescape(part).map_err(|error| (index + 1, error));
            self.0.insert(unescaped(name)?, unescaped(value)?);
        }
        Ok(())
    }
}

/// White space as this format has it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0C)
}

fn trim_start(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| is_blank(**byte)).count();
    &line[blanks..]
}

/// Lines that end in LF, CR or CR LF.
fn natural_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            rest = None;
            return Some(text);
        };
        let behind = end + if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[behind..]);
        Some(&text[..end])
    })
}

/// Whether the line ends in an odd number of backslashes.
fn continues(line: &[u8]) -> bool {
    line.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Name and value of a logical line, still escaped.
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = line.iter().position(|byte| {
        let ends = !escaped && (is_blank(*byte) || matches!(byte, b'=' | b':'));
        escaped = !escaped && *byte == b'\\';
        ends
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = trim_start(rest);
    let value = rest.strip_prefix(b"=").or_else(|| rest.strip_prefix(b":")).unwrap_or(rest);
    (name, trim_start(value))
}

/// Resolves escapes; ISO 8859-1 bytes are the first 256 code points.
fn unescape(text: &[u8]) -> Result<String, SyntaxError> {
    let mut units = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            units.push(u16::from(byte));
            continue;
        }
        units.push(match bytes.next() {
            Some(b't') => u16::from(b'\t'),
            Some(b'n') => u16::from(b'\n'),
            Some(b'r') => u16::from(b'\r'),
            Some(b'f') => 0x0C,
            Some(b'u') => hexadecimal(&mut bytes)?,
            Some(other) => u16::from(other),
            None => break,
        });
    }
    String::from_utf16(&units).map_err(|_| SyntaxError)
}

fn hexadecimal(bytes: &mut impl Iterator<Item = u8>) -> Result<u16, SyntaxError> {
    (0..4).try_fold(0, |unit, _| {
        let digit = bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        digit.map(|digit| unit << 4 | digit as u16).ok_or(SyntaxError)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        let mut properties = Properties::new();
        properties.parse(text.as_bytes()).unwrap();
        properties.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[track_caller]
    fn assert_parsed(text: &str, wanted: &[(&str, &str)]) {
        let wanted: Vec<_> =
            wanted.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        assert_eq!(parsed(text), wanted, "{text:?}");
    }

    #[test]
    fn separators_and_comments() {
        assert_parsed("a=1\nb:2\nc 3\nd\t=\t4", &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
        assert_parsed("  # a=1\n! b=2\n\n \t\nc=3 ", &[("c", "3 ")]);
        assert_parsed("a==1\nb= :2\nc : =3", &[("a", "=1"), ("b", ":2"), ("c", "=3")]);
        assert_parsed("alone\nempty=", &[("alone", ""), ("empty", "")]);
        assert_parsed("a=1\ra=2\r\nb=3", &[("a", "2"), ("b", "3")]);
    }

    #[test]
    fn continuations() {
        assert_parsed("a=1,\\\n   2,\\\n\t3\nb=4", &[("a", "1,2,3"), ("b", "4")]);
        assert_parsed("a=1\\\\\nb=2", &[("a", "1\\"), ("b", "2")]);
        assert_parsed("# no \\\na=1", &[("a", "1")]);
        assert_parsed("a=1\\\n#2\nb=3", &[("a", "1#2"), ("b", "3")]);
        assert_parsed("a=1\\\r\n  2", &[("a", "12")]);
        assert_parsed("a=1\\", &[("a", "1")]);
    }

    #[test]
    fn escapes() {
        assert_parsed("a\\ b\\=c=d\\:e", &[("a b=c", "d:e")]);
        assert_parsed("a=\\t\\n\\r\\f\\x\\\\", &[("a", "\t\n\r\u{c}x\\")]);
        assert_parsed("a=\\u0041\\u00e9\\ud83d\\ude00", &[("a", "A\u{e9}\u{1f600}")]);
        for bad in ["a=\\u12", "a=\\u12g4", "a=\\ud83d", "a=\\u"] {
            let mut properties = Properties::new();
            assert_eq!(
                properties.parse(format!("# x\n{bad}").as_bytes()),
                Err((2, SyntaxError)),
                "{bad}"
            );
        }
        let mut properties = Properties::new();
        properties.parse(b"a=\xe9").unwrap();
        assert_eq!(properties.get("a"), Some("\u{e9}"));
    }

    #[test]
    fn later_files_and_then_pairs_win() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (directory.path().join("one"), directory.path().join("two"));
        std::fs::write(&one, "a=1\nb=1\nc=1").unwrap();
        std::fs::write(&two, "b=2\nc=2").unwrap();
        let properties = Properties::load(&[one, two], &["c=3", "d=x=y", "e="]).unwrap();
        let all: Vec<_> = properties.iter().collect();
        assert_eq!(all, [("a", "1"), ("b", "2"), ("c", "3"), ("d", "x=y"), ("e", "")]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let none: [&Path; 0] = [];
        for pair in ["", "a", "=1"] {
            let error = Properties::load(&none, &[pair]).unwrap_err().to_string();
            assert!(error.contains(&format!("'{pair}'")) && error.contains("key=value"), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let error = Properties::new().read_file(&absent).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
        for special in [directory.path(), Path::new("/dev/null")] {
            let error = Properties::new().read_file(special).unwrap_err().to_string();
            assert!(error.contains("no regular file"), "{error}");
        }
        let large = directory.path().join("large");
        std::fs::write(&large, vec![b'#'; FILE_SIZE_MAX.0 as usize + 1]).unwrap();
        let error = Properties::new().read_file(&large).unwrap_err().to_string();
        assert!(error.contains("larger than 1.0 MiB"), "{error}");
        std::fs::write(&large, vec![b'#'; FILE_SIZE_MAX.0 as usize]).unwrap();
        Properties::new().read_file(&large).unwrap();
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(
            prop_oneof![
                any::<u8>(),
                prop::sample::select(b"\\\\\\=: \t\r\n#!u0aF".to_vec()),
            ],
            0..200,
        )) {
            let _ = Properties::new().parse(&bytes);
        }

        #[test]
        fn what_is_escaped_comes_back(
            name in "[a-zA-Z =:#!\\\\\t\n]{1,12}",
            value in "[a-z =:#!\\\\\t\n\u{e9}\u{1f600}]{0,12}",
        ) {
            let escape = |text: &str| -> String {
                text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            let text = format!("{} = {}\n", escape(&name), escape(&value));
            prop_assert_eq!(parsed(&text), vec![(name, value)]);
        }
    }
}
