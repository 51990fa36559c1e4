//! The parser's hands: looking at tokens, taking them, names, markers; and the choice of the
//! statement.

use super::ParseError;
use super::ast::{Parsed, Statement, TableName};
use super::lexer::{Kind, Lexer, Token};
use std::collections::VecDeque;

/// Values in one text; more is hostile, or a load that should be prepared.
const TERMS_MAX: usize = 1 << 18;

/// Parses one statement, with or without a closing semicolon.
///
/// # Errors
/// [`ParseError`]: not CQL, or CQL that the reference target leaves out.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: VecDeque::with_capacity(3),
        markers: Vec::new(),
        terms: 0,
    };
    let statement = parser.statement()?;
    while parser.take_sign(";")? {}
    match parser.peek(0)? {
        Kind::End => Ok(Parsed { statement, markers: parser.markers }),
        _ => Err(parser.unexpected("the end of the statement")?),
    }
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: VecDeque<Token>,
    pub(super) markers: Vec<Option<String>>,
    terms: usize,
}

impl Parser<'_> {
    /// The token `n` places ahead; 0 is the next.
    pub(super) fn peek(&mut self, n: usize) -> Result<&Kind, ParseError> {
        while self.ahead.len() <= n {
            let token = self.lexer.next()?;
            self.ahead.push_back(token);
        }
        Ok(self.ahead.get(n).map_or(&Kind::End, |t| &t.kind))
    }

    pub(super) fn take(&mut self) -> Result<Token, ParseError> {
        match self.ahead.pop_front() {
            Some(token) => Ok(token),
            None => self.lexer.next(),
        }
    }

    /// The error that something else than the next token was wanted.
    pub(super) fn unexpected(&mut self, wanted: &str) -> Result<ParseError, ParseError> {
        let token = self.take()?;
        let found = match token.kind {
            Kind::Word(text)
            | Kind::Quoted(text)
            | Kind::Integer(text)
            | Kind::Float(text)
            | Kind::Duration(text) => format!("'{text}'"),
            Kind::Text(_) => "a text".to_owned(),
            Kind::Uuid(_) => "a uuid".to_owned(),
            Kind::Blob(_) => "a blob".to_owned(),
            Kind::Sign(sign) => format!("'{sign}'"),
            Kind::End => "the end".to_owned(),
        };
        Ok(self.lexer.error(token.offset, format!("expected {wanted}, found {found}")))
    }

    /// A syntax error at the next token.
    pub(super) fn error_here(&mut self, what: &str) -> Result<ParseError, ParseError> {
        self.peek(0)?;
        let offset = self.ahead.front().map_or(0, |t| t.offset);
        Ok(self.lexer.error(offset, what))
    }

    pub(super) fn is_word(&mut self, n: usize, word: &str) -> Result<bool, ParseError> {
        Ok(matches!(self.peek(n)?, Kind::Word(w) if w == word))
    }

    pub(super) fn is_sign(&mut self, n: usize, sign: &str) -> Result<bool, ParseError> {
        Ok(matches!(self.peek(n)?, Kind::Sign(s) if *s == sign))
    }

    /// Takes the words when all of them come next.
    pub(super) fn take_words(&mut self, words: &[&str]) -> Result<bool, ParseError> {
        for (n, word) in words.iter().enumerate() {
            if !self.is_word(n, word)? {
                return Ok(false);
            }
        }
        self.ahead.drain(..words.len());
        Ok(true)
    }

    pub(super) fn take_word(&mut self, word: &str) -> Result<bool, ParseError> {
        self.take_words(&[word])
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> Result<bool, ParseError> {
        let found = self.is_sign(0, sign)?;
        if found {
            self.take()?;
        }
        Ok(found)
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), ParseError> {
        match self.take_word(word)? {
            true => Ok(()),
            false => Err(self.unexpected(&word.to_ascii_uppercase())?),
        }
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<(), ParseError> {
        match self.take_sign(sign)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{sign}'"))?),
        }
    }

    /// A name: a word or a quoted name.
    pub(super) fn name(&mut self) -> Result<String, ParseError> {
        match self.peek(0)? {
            Kind::Word(_) | Kind::Quoted(_) => match self.take()?.kind {
                Kind::Word(name) | Kind::Quoted(name) => Ok(name),
                _ => Err(self.unexpected("a name")?),
            },
            _ => Err(self.unexpected("a name")?),
        }
    }

    pub(super) fn table_name(&mut self) -> Result<TableName, ParseError> {
        let first = self.name()?;
        if self.take_sign(".")? {
            Ok(TableName { keyspace: Some(first), name: self.name()? })
        } else {
            Ok(TableName { keyspace: None, name: first })
        }
    }

    /// `name, name, ..` up to and with the closing parenthesis; the opening one has been taken.
    pub(super) fn names_to_parenthesis(&mut self) -> Result<Vec<String>, ParseError> {
        let mut names = vec![self.name()?];
        while self.take_sign(",")? {
            names.push(self.name()?);
        }
        self.sign(")")?;
        Ok(names)
    }

    /// Counts a value against the bound on values in a text.
    pub(super) fn count_term(&mut self) -> Result<(), ParseError> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(
                self.error_here("more than 262144 values in a statement; bind them instead")?
            );
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<Statement, ParseError> {
        let word = match self.peek(0)? {
            Kind::Word(word) => word.clone(),
            _ => return Err(self.unexpected("a statement")?),
        };
        match word.as_str() {
            "select" => self.select(),
            "insert" | "update" | "delete" => self.modification(),
            "begin" => self.batch(),
            "use" => {
                self.take()?;
                Ok(Statement::Use(self.name()?))
            }
            "create" | "alter" | "drop" | "truncate" => self.schema_statement(),
            "describe" | "desc" => self.describe(),
            "grant" | "revoke" | "list" => Err(ParseError::Unsupported {
                what: "roles and permissions",
                cure: "it has no users, leave the statement out",
            }),
            _ => Err(self.unexpected("a statement")?),
        }
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
