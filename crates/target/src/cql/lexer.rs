//! Text -> tokens, one at a time, so that a hostile text is never held as a list of tokens.

use super::ParseError;

/// A token and where it begins, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) offset: usize,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Folded to lower case.
    Word(String),
    /// As written between double quotes.
    Quoted(String),
    Text(String),
    Integer(String),
    Float(String),
    Duration(String),
    Uuid([u8; 16]),
    Blob(Vec<u8>),
    /// One of `( ) [ ] { } , ; : . ? = < > + - * / ! %`, or `<=`, `>=`, `!=`.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 22] = [
    "<=", ">=", "!=", "(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "?", "=", "<", ">", "+",
    "-", "*", "/", "%",
];

pub(super) struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or("")
    }

    /// A syntax error at `offset`.
    pub(super) fn error(&self, offset: usize, what: impl Into<String>) -> ParseError {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&b| b != b'\n').count();
        ParseError::Syntax { line, column, what: what.into() }
    }

    /// The next token; [`Kind::End`] for ever after the last.
    pub(super) fn next(&mut self) -> Result<Token, ParseError> {
        self.skip_blanks()?;
        let offset = self.offset;
        let kind = self.kind()?;
        Ok(Token { kind, offset })
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.offset += rest.len() - trimmed.len();
            if trimmed.starts_with("--") || trimmed.starts_with("//") {
                self.offset += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let end = trimmed
                    .find("*/")
                    .ok_or_else(|| self.error(self.offset, "comment without end"))?;
                self.offset += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn kind(&mut self) -> Result<Kind, ParseError> {
        let rest = self.rest();
        let Some(first) = rest.bytes().next() else { return Ok(Kind::End) };
        match first {
            b'\'' => return self.quoted('\'').map(Kind::Text),
            b'"' => {
                let name = self.quoted('"')?;
                return if name.is_empty() {
                    Err(self.error(self.offset, "empty quoted name"))
                } else {
                    Ok(Kind::Quoted(name))
                };
            }
            _ => {}
        }
        if let Some(inner) = rest.strip_prefix("$$") {
            let end = inner
                .find("$$")
                .ok_or_else(|| self.error(self.offset, "text without closing $$"))?;
            self.offset += end + 4;
            return Ok(Kind::Text(inner.get(..end).unwrap_or("").to_owned()));
        }
        if let Some(uuid) = uuid(rest) {
            self.offset += 36;
            return Ok(Kind::Uuid(uuid));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            let word = self.span(|b| b.is_ascii_alphanumeric() || b == b'_');
            return Ok(Kind::Word(word.to_ascii_lowercase()));
        }
        match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => {
                self.offset += sign.len();
                Ok(Kind::Sign(sign))
            }
            None => {
                let character = rest.chars().next().unwrap_or(' ');
                Err(self.error(
                    self.offset,
                    format!("no viable alternative at character '{character}'"),
                ))
            }
        }
    }

    /// Takes the bytes that `accept` holds for; these are ASCII.
    fn span(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let size = rest.bytes().take_while(|&b| accept(b)).count();
        self.offset += size;
        rest.get(..size).unwrap_or("")
    }

    fn quoted(&mut self, quote: char) -> Result<String, ParseError> {
        let start = self.offset;
        let mut text = String::new();
        self.offset += 1;
        loop {
            let rest = self.rest();
            let end =
                rest.find(quote).ok_or_else(|| self.error(start, "text without closing quote"))?;
            text.push_str(rest.get(..end).unwrap_or(""));
            self.offset += end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.offset += 1;
        }
    }

    fn number(&mut self) -> Result<Kind, ParseError> {
        let rest = self.rest();
        if rest.starts_with("0x") || rest.starts_with("0X") {
            let start = self.offset;
            self.offset += 2;
            let digits = self.span(|b| b.is_ascii_hexdigit());
            return hex(digits.as_bytes())
                .map(Kind::Blob)
                .ok_or_else(|| self.error(start, "blob with an odd number of digits"));
        }
        let start = self.offset;
        self.span(|b| b.is_ascii_digit());
        let mut float = false;
        let fraction = self.rest().as_bytes();
        if fraction.first() == Some(&b'.') && fraction.get(1).is_some_and(u8::is_ascii_digit) {
            float = true;
            self.offset += 1;
            self.span(|b| b.is_ascii_digit());
        }
        let exponent = self.rest().as_bytes();
        if matches!(exponent.first(), Some(b'e' | b'E')) {
            let signed = matches!(exponent.get(1), Some(b'+' | b'-'));
            if exponent.get(1 + usize::from(signed)).is_some_and(u8::is_ascii_digit) {
                float = true;
                self.offset += 1 + usize::from(signed);
                self.span(|b| b.is_ascii_digit());
            }
        }
        let unit = self.rest().chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == 'µ');
        if unit && !float {
            self.duration_tail();
            return Ok(Kind::Duration(self.text.get(start..self.offset).unwrap_or("").to_owned()));
        }
        let text = self.text.get(start..self.offset).unwrap_or("").to_owned();
        Ok(if float { Kind::Float(text) } else { Kind::Integer(text) })
    }

    fn duration_tail(&mut self) {
        let rest = self.rest();
        let size: usize = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == 'µ')
            .map(char::len_utf8)
            .sum();
        self.offset += size;
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

/// Reads `8-4-4-4-12` digits at the start of `text`, when no further word character follows.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let bytes = text.as_bytes().get(..36)?;
    let dashes = [8, 13, 18, 23];
    if dashes.iter().any(|&at| bytes.get(at) != Some(&b'-')) {
        return None;
    }
    let digits: Vec<u8> =
        bytes.iter().enumerate().filter(|(at, _)| !dashes.contains(at)).map(|(_, b)| *b).collect();
    let follows = text.as_bytes().get(36).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if follows { None } else { hex(&digits)?.try_into().ok() }
}

/// Reads the text form of a UUID.
pub(crate) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    uuid(text).filter(|_| text.len() == 36)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut lexer = Lexer::new(text);
        let mut kinds = Vec::new();
        loop {
            match lexer.next().unwrap().kind {
                Kind::End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    #[test]
    fn tokens() {
        assert_eq!(
            kinds("SELECT \"Aa\"\"b\" -- no\n'it''s' /* x */ $$a'b$$ // y"),
            [
                Kind::Word("select".into()),
                Kind::Quoted("Aa\"b".into()),
                Kind::Text("it's".into()),
                Kind::Text("a'b".into())
            ]
        );
        assert_eq!(
            kinds("12 1.5 1e3 2E-4 0xCAFE 3h20m 1..2"),
            [
                Kind::Integer("12".into()),
                Kind::Float("1.5".into()),
                Kind::Float("1e3".into()),
                Kind::Float("2E-4".into()),
                Kind::Blob(vec![0xca, 0xfe]),
                Kind::Duration("3h20m".into()),
                Kind::Integer("1".into()),
                Kind::Sign("."),
                Kind::Sign("."),
                Kind::Integer("2".into()),
            ]
        );
        let id = "123e4567-e89b-12d3-a456-426614174000";
        assert!(matches!(kinds(id)[..], [Kind::Uuid(_)]));
        assert_eq!(
            kinds("a<=:b"),
            [Kind::Word("a".into()), Kind::Sign("<="), Kind::Sign(":"), Kind::Word("b".into())]
        );
    }

    #[test]
    fn errors_name_the_place() {
        let mut lexer = Lexer::new("a\n  'b");
        lexer.next().unwrap();
        assert_eq!(lexer.next().unwrap_err().to_string(), "line 2:2 text without closing quote");
        assert!(Lexer::new("0x123").next().is_err());
        assert!(Lexer::new("\"\"").next().is_err());
        assert!(Lexer::new("€").next().is_err());
    }
}
