//! Typed access to properties: name -> checked value, else the workload file's, else the default.

use super::YcsbError;
use super::properties::Properties;
use std::ops::RangeInclusive;

/// Properties on top of a workload file.
pub(super) struct Reader<'a> {
    file: &'static [(&'static str, &'static str)],
    properties: &'a Properties,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        file: &'static [(&'static str, &'static str)],
        properties: &'a Properties,
    ) -> Self {
        Self { file, properties }
    }

    /// What the user gave for `name`.
    pub(super) fn given(&self, name: &str) -> Option<&'a str> {
        self.properties.get(name)
    }

    /// The value of `name`, or None when only the default is left.
    fn find(&self, name: &str) -> Option<&'a str> {
        let in_file =
            || self.file.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        self.given(name).or_else(in_file)
    }

    /// A whole number within limits.
    pub(super) fn integer(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, YcsbError> {
        let Some(text) = self.find(name) else { return Ok(default) };
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            refuse(name, text, wanted)
        })
    }

    /// As [`Reader::integer`], below 2^32.
    pub(super) fn small(
        &self,
        name: &str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, YcsbError> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        // The limits were 32 bits wide, so the value is.
        self.integer(name, default.into(), range).map(|number| number as u32)
    }

    /// A number for which `holds`; `wanted` says in words what that is.
    pub(super) fn real(
        &self,
        name: &str,
        default: f64,
        wanted: &str,
        holds: impl Fn(f64) -> bool,
    ) -> Result<f64, YcsbError> {
        let Some(text) = self.find(name) else { return Ok(default) };
        let number = text.trim().parse().ok().filter(|number| holds(*number));
        number.ok_or_else(|| refuse(name, text, wanted.to_owned()))
    }

    /// `true` or `false`, in any case.
    pub(super) fn boolean(&self, name: &str, default: bool) -> Result<bool, YcsbError> {
        let Some(text) = self.find(name) else { return Ok(default) };
        match text.trim() {
            yes if yes.eq_ignore_ascii_case("true") => Ok(true),
            no if no.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(refuse(name, text, "true or false".to_owned())),
        }
    }

    /// One of some words; the first is the default. Returns its index.
    pub(super) fn word(&self, name: &str, words: &[&str]) -> Result<usize, YcsbError> {
        let Some(text) = self.find(name) else { return Ok(0) };
        words
            .iter()
            .position(|word| *word == text.trim())
            .ok_or_else(|| refuse(name, text, format!("one of {}", words.join(", "))))
    }

    /// A name of a table or column: a letter, then letters, digits and underscores.
    pub(super) fn identifier(&self, name: &str, default: &str) -> Result<String, YcsbError> {
        let text = self.find(name).unwrap_or(default);
        let fits = text.len() <= 48
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        fits.then(|| text.to_owned()).ok_or_else(|| {
            let wanted = "a letter and up to 47 letters, digits and underscores (ASCII)";
            refuse(name, text, wanted.to_owned())
        })
    }

    /// Text as it stands.
    pub(super) fn text(&self, name: &str, default: &'a str) -> &'a str {
        self.find(name).unwrap_or(default)
    }
}

/// The error of a value out of range or form.
pub(super) fn refuse(name: &str, value: &str, wanted: String) -> YcsbError {
    let value = value.chars().take(60).flat_map(char::escape_debug).collect();
    YcsbError::Value { name: name.to_owned(), value, wanted }
}
