//! Object specifications: a text -> the values of a record.
//!
//! Of asbench 1 and 2: `I1` to `I8`, `S32`, `B100`, `D`, `b`, lists `[...]`, maps `{key:value}`,
//! numbers of each (`3*I2`), and constants (`42`, `1.5f`, `"text"`, `true`). Of the tools before:
//! `I`, `S:50`, `B:100`, `D`, one for all of `-b COUNT` bins. In: a text; out: values, or where it
//! means nothing. Bounded: 1000 fields, 1 MiB each, eight levels.

use crate::objects::Value;
use std::iter::Peekable;
use std::str::CharIndices;
use thiserror::Error;

/// Fields of a record at most, and values of a list or pairs of a map.
const FIELDS_MAX: usize = 1000;
/// Bytes of a field at most: the largest record that a server takes by default.
const FIELD_SIZE_MAX: usize = 1 << 20;
/// Lists within lists.
const DEPTH_MAX: usize = 8;

/// Why a specification means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the object specification '{text}' means nothing at character {at}: {why}; write fields as \
     I4, S32, B100, D, b, [3*I2], {{S4:I2}} with commas between, or for the tools before S:32, \
     B:100, I, D"
)]
pub struct ObjectError {
    /// As given.
    pub text: String,
    /// The character, counted from 1.
    pub at: usize,
    /// What is wrong there.
    pub why: &'static str,
}

/// Reads a specification of asbench 1 and 2.
///
/// # Errors
/// When it means nothing, or more than a record can hold.
pub fn fields(text: &str) -> Result<Vec<Value>, ObjectError> {
    let mut reader = Reader { text, rest: text.char_indices().peekable() };
    let values = reader.values(None, 0)?;
    match values.is_empty() {
        true => Err(reader.error("there is no field")),
        false => Ok(values),
    }
}

/// Reads a specification of the tools before it: one kind of value, `count` times. Their integers
/// are taken from four bytes, as `I4`.
///
/// # Errors
/// As [`fields`].
pub fn field_before(text: &str, count: usize) -> Result<Vec<Value>, ObjectError> {
    let refuse = |at, why| Err(ObjectError { text: text.to_owned(), at, why });
    let sized = |rest: &str| {
        let size = rest.strip_prefix(':').and_then(|size| size.parse::<u32>().ok());
        size.filter(|size| (1..=FIELD_SIZE_MAX as u32).contains(size))
    };
    let size_why = "a colon and a size from 1 to 1048576 follow";
    let value = match (text.chars().next(), text.get(1..).unwrap_or_default()) {
        (Some('I'), "") => integer_of(4),
        (Some('D'), "") => Value::Double,
        (Some('S'), rest) => match sized(rest) {
            Some(size) => Value::Text(size),
            None => return refuse(2, size_why),
        },
        (Some('B'), rest) => match sized(rest) {
            Some(size) => Value::Blob(size),
            None => return refuse(2, size_why),
        },
        (Some('L' | 'M'), _) => {
            return refuse(1, "lists and maps are written as [50*I4] and {50*S4:I4}");
        }
        _ => return refuse(1, "a field begins with I, S, B or D"),
    };
    if !(1..=FIELDS_MAX).contains(&count) {
        return refuse(1, "a record has 1 to 1000 bins (-b)");
    }
    Ok(vec![value; count])
}

/// Integers of so many bytes that need the last of them: 0 to 255, then 256 to 65535, ...
fn integer_of(bytes: u32) -> Value {
    let least = if bytes == 1 { 0 } else { 1i64 << (8 * (bytes - 1)) };
    let most = if bytes == 8 { i64::MAX } else { (1i64 << (8 * bytes)) - 1 };
    Value::Integer { least, most }
}

struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl Reader<'_> {
    fn error(&mut self, why: &'static str) -> ObjectError {
        let at = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        let at = self.text.get(..at).map_or(0, |before| before.chars().count()) + 1;
        ObjectError { text: self.text.to_owned(), at, why }
    }

    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|(_, c)| *c == ' ').is_some() {}
        self.rest.peek().map(|(_, c)| *c)
    }

    fn take(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.rest.next().is_some()
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some((_, c)) = self.rest.next_if(|(_, c)| c.is_ascii_digit()) {
            digits.push(c);
        }
        digits
    }

    /// Values with commas between, up to `end` or the end of the text.
    fn values(&mut self, end: Option<char>, depth: usize) -> Result<Vec<Value>, ObjectError> {
        let mut values = Vec::new();
        if end.is_some_and(|end| self.take(end)) {
            return Ok(values);
        }
        loop {
            let (count, value) = self.counted(depth)?;
            if values.len() + count > FIELDS_MAX {
                return Err(self.error("these are more than 1000 values"));
            }
            if value.size_max() > FIELD_SIZE_MAX {
                return Err(self.error("this is larger than 1 MiB"));
            }
            values.extend(std::iter::repeat_n(value, count));
            match (self.peek(), end) {
                (Some(','), _) => _ = self.rest.next(),
                (None, None) => return Ok(values),
                (found, end) if found == end && end.is_some() => {
                    self.rest.next();
                    return Ok(values);
                }
                _ => return Err(self.error("a comma or the end is missing")),
            }
        }
    }

    /// A value, and how many of it.
    fn counted(&mut self, depth: usize) -> Result<(usize, Value), ObjectError> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit() || c == '-') {
            return Ok((1, self.value(depth)?));
        }
        let minus = self.take('-');
        let digits = self.digits();
        if !minus && self.take('*') {
            let count = digits.parse().ok().filter(|count| (1..=FIELDS_MAX).contains(count));
            let count = count.ok_or_else(|| self.error("of a value there are 1 to 1000"))?;
            return Ok((count, self.value(depth)?));
        }
        Ok((1, self.number(minus, &digits)?))
    }

    /// A constant number; `1.5f` and `1f` are doubles, and so is whatever has a point.
    fn number(&mut self, minus: bool, whole: &str) -> Result<Value, ObjectError> {
        let sign = if minus { "-" } else { "" };
        let point = self.rest.next_if(|(_, c)| *c == '.').is_some();
        let behind = if point { self.digits() } else { String::new() };
        let double = self.rest.next_if(|(_, c)| *c == 'f').is_some() || point;
        if whole.is_empty() {
            return Err(self.error("a number is missing"));
        }
        match double {
            true => {
                let parsed = format!("{sign}{whole}.{behind}0").parse();
                parsed.map(Value::DoubleOf).map_err(|_| self.error("that is no number"))
            }
            false => {
                let parsed = format!("{sign}{whole}").parse::<i64>();
                let value = parsed.map_err(|_| self.error("that is no integer of 8 bytes"))?;
                Ok(Value::Integer { least: value, most: value })
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, ObjectError> {
        if depth > DEPTH_MAX {
            return Err(self.error("lists and maps nest deeper than eight levels"));
        }
        let Some(first) = self.peek() else { return Err(self.error("a value is missing")) };
        match first {
            '[' => {
                self.rest.next();
                self.values(Some(']'), depth + 1).map(Value::List)
            }
            '{' => {
                self.rest.next();
                self.pairs(depth + 1)
            }
            '"' | '\'' => {
                self.rest.next();
                self.quoted(first)
            }
            't' | 'f' => self.word(),
            'D' => {
                self.rest.next();
                Ok(Value::Double)
            }
            'b' => {
                self.rest.next();
                Ok(Value::Boolean)
            }
            'I' => {
                self.rest.next();
                let digits = self.digits();
                match digits.parse() {
                    Ok(bytes @ 1..=8) => Ok(integer_of(bytes)),
                    _ => Err(self.error("an integer has 1 to 8 bytes: I4")),
                }
            }
            'S' | 'B' => {
                self.rest.next();
                let size = self.digits().parse::<u32>().ok();
                match size.filter(|size| (1..=FIELD_SIZE_MAX as u32).contains(size)) {
                    Some(size) if first == 'S' => Ok(Value::Text(size)),
                    Some(size) => Ok(Value::Blob(size)),
                    None => Err(self.error("a size from 1 to 1048576 follows S and B")),
                }
            }
            _ => Err(self.error("no value begins so")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Value, ObjectError> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None => return Err(self.error("a quote is not closed")),
                Some((_, c)) if c == quote => return Ok(Value::TextOf(text)),
                Some((_, c)) => text.push(c),
            }
        }
    }

    fn word(&mut self) -> Result<Value, ObjectError> {
        let mut word = String::new();
        while let Some((_, c)) = self.rest.next_if(|(_, c)| c.is_ascii_lowercase()) {
            word.push(c);
        }
        match &word[..] {
            "true" => Ok(Value::BooleanOf(true)),
            "false" => Ok(Value::BooleanOf(false)),
            _ => Err(self.error("true and false are the words that mean something")),
        }
    }

    /// Keys and values of a map up to its end. Keys that are drawn may come twice; a map has then
    /// fewer pairs.
    fn pairs(&mut self, depth: usize) -> Result<Value, ObjectError> {
        let mut pairs = Vec::new();
        if self.take('}') {
            return Ok(Value::Map(pairs));
        }
        loop {
            let (count, key) = self.counted(depth)?;
            if matches!(key, Value::List(_) | Value::Map(_)) {
                return Err(self.error("a key of a map is no list and no map"));
            }
            if !self.take(':') {
                return Err(self.error("a colon follows the key of a map"));
            }
            let (one, value) = self.counted(depth)?;
            if one != 1 {
                return Err(self.error("the number of pairs stands before their key"));
            }
            if pairs.len() + count > FIELDS_MAX {
                return Err(self.error("these are more than 1000 pairs"));
            }
            pairs.extend(std::iter::repeat_n((key, value), count));
            if self.take('}') {
                return Ok(Value::Map(pairs));
            }
            if !self.take(',') {
                return Err(self.error("a comma or } is missing"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_as_they_are_written() {
        let found = fields("I4,S32,B100,D,b,[3*I2],{2*S4:I1},42,-1,1.5,2f,\"x,y\",true").unwrap();
        let i2 = Value::Integer { least: 256, most: 65_535 };
        let i1 = Value::Integer { least: 0, most: 255 };
        let constant = |value| Value::Integer { least: value, most: value };
        assert_eq!(
            found,
            [
                Value::Integer { least: 1 << 24, most: (1 << 32) - 1 },
                Value::Text(32),
                Value::Blob(100),
                Value::Double,
                Value::Boolean,
                Value::List(vec![i2.clone(), i2.clone(), i2]),
                Value::Map(vec![(Value::Text(4), i1.clone()), (Value::Text(4), i1)]),
                constant(42),
                constant(-1),
                Value::DoubleOf(1.5),
                Value::DoubleOf(2.0),
                Value::TextOf("x,y".to_owned()),
                Value::BooleanOf(true),
            ]
        );
        assert_eq!(fields("3*I1, S5").unwrap().len(), 4);
        let eight = Value::Integer { least: 1 << 56, most: i64::MAX };
        assert_eq!(fields("I8").unwrap(), [eight]);
        assert_eq!(field_before("S:32", 2).unwrap(), [Value::Text(32), Value::Text(32)]);
        assert_eq!(field_before("I", 1).unwrap(), fields("I4").unwrap());
    }

    #[test]
    fn what_means_nothing_is_told_with_its_place() {
        for (text, at) in [
            ("", 1),
            ("S:50", 2),
            ("I9", 3),
            ("I4,", 4),
            ("I4,X", 4),
            ("[I4", 4),
            ("{I4}", 4),
            ("{[I4]:I4}", 6),
            ("\"a", 3),
            ("tru", 4),
            ("0*I4", 3),
            ("B2000000", 9),
            ("99999999999999999999", 21),
        ] {
            let error = fields(text).unwrap_err();
            assert_eq!(error.at, at, "{error}");
        }
        for text in ["", "S", "S:", "S:0", "B50", "L:5", "I4"] {
            assert!(field_before(text, 1).is_err(), "{text}");
        }
        assert!(field_before("I", 0).is_err() && field_before("I", 1001).is_err());
        assert!(fields(&"[".repeat(5000)).is_err(), "it ends before the stack does");
        assert!(fields("[1000*[1000*[1000*I4]]]").is_err(), "larger than 1 MiB");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ISBDbf0-9,:*\\[\\]{}\"a-z. -]{0,40}") {
            if let Ok(values) = fields(&text) {
                prop_assert!(values.iter().all(|value| value.size_max() <= FIELD_SIZE_MAX));
            }
            let _ = field_before(&text, 1);
        }
    }
}
