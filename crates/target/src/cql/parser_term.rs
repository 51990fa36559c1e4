//! Values and types as written.

use super::ParseError;
use super::ast::{Term, TypeName};
use super::lexer::Kind;
use super::parser::Parser;

/// Nesting of values and of types.
const DEPTH_MAX: usize = 16;

impl Parser<'_> {
    pub(super) fn term(&mut self) -> Result<Term, ParseError> {
        self.term_at(0)
    }

    fn deeper(&mut self, depth: usize) -> Result<usize, ParseError> {
        match depth < DEPTH_MAX {
            true => Ok(depth + 1),
            false => Err(self.error_here("nested deeper than 16 levels")?),
        }
    }

    fn term_at(&mut self, depth: usize) -> Result<Term, ParseError> {
        let depth = self.deeper(depth)?;
        self.count_term()?;
        match self.peek(0)? {
            Kind::Sign("?") | Kind::Sign(":") => self.marker().map(Term::Marker),
            Kind::Sign("[") => {
                self.take()?;
                self.terms_until("]", depth).map(Term::List)
            }
            Kind::Sign("(") => {
                self.take()?;
                self.terms_until(")", depth).map(Term::Tuple)
            }
            Kind::Sign("{") => self.braces(depth),
            Kind::Sign("-") => self.negative(),
            Kind::Word(_) => self.word_term(depth),
            Kind::Text(_)
            | Kind::Integer(_)
            | Kind::Float(_)
            | Kind::Duration(_)
            | Kind::Uuid(_)
            | Kind::Blob(_) => Ok(match self.take()?.kind {
                Kind::Text(text) => Term::Text(text),
                Kind::Integer(text) => Term::Integer(text),
                Kind::Float(text) => Term::Float(text),
                Kind::Duration(text) => Term::Duration(text),
                Kind::Uuid(id) => Term::Uuid(id),
                Kind::Blob(bytes) => Term::Blob(bytes),
                _ => Term::Null,
            }),
            _ => Err(self.unexpected("a value")?),
        }
    }

    /// `?` or `:name`; returns its number.
    pub(super) fn marker(&mut self) -> Result<usize, ParseError> {
        let name = match self.take_sign("?")? {
            true => None,
            false => {
                self.sign(":")?;
                Some(self.name()?)
            }
        };
        if self.markers.len() >= usize::from(u16::MAX) {
            return Err(self.error_here("more than 65535 bind markers")?);
        }
        self.markers.push(name);
        Ok(self.markers.len() - 1)
    }

    fn terms_until(&mut self, close: &str, depth: usize) -> Result<Vec<Term>, ParseError> {
        let mut terms = Vec::new();
        if self.take_sign(close)? {
            return Ok(terms);
        }
        loop {
            terms.push(self.term_at(depth)?);
            if !self.take_sign(",")? {
                self.sign(close)?;
                return Ok(terms);
            }
        }
    }

    fn braces(&mut self, depth: usize) -> Result<Term, ParseError> {
        self.sign("{")?;
        if self.take_sign("}")? {
            return Ok(Term::Set(Vec::new()));
        }
        let first = self.term_at(depth)?;
        if !self.take_sign(":")? {
            let mut terms = vec![first];
            if self.take_sign(",")? {
                terms.append(&mut self.terms_until("}", depth)?);
            } else {
                self.sign("}")?;
            }
            return Ok(Term::Set(terms));
        }
        let mut pairs = vec![(first, self.term_at(depth)?)];
        while self.take_sign(",")? {
            let key = self.term_at(depth)?;
            self.sign(":")?;
            pairs.push((key, self.term_at(depth)?));
        }
        self.sign("}")?;
        Ok(Term::Map(pairs))
    }

    fn negative(&mut self) -> Result<Term, ParseError> {
        self.sign("-")?;
        match self.peek(0)? {
            Kind::Integer(_) | Kind::Float(_) | Kind::Duration(_) | Kind::Word(_) => {}
            _ => return Err(self.unexpected("a number")?),
        }
        Ok(match self.take()?.kind {
            Kind::Integer(text) => Term::Integer(format!("-{text}")),
            Kind::Duration(text) => Term::Duration(format!("-{text}")),
            Kind::Float(text) => Term::Float(format!("-{text}")),
            Kind::Word(word) if word == "infinity" => Term::Float("-infinity".to_owned()),
            Kind::Word(word) if word == "nan" => Term::Float("nan".to_owned()),
            _ => return Err(self.unexpected("a number")?),
        })
    }

    fn word_term(&mut self, depth: usize) -> Result<Term, ParseError> {
        let name = self.name()?;
        Ok(match name.as_str() {
            "null" => Term::Null,
            "true" => Term::Boolean(true),
            "false" => Term::Boolean(false),
            "nan" | "infinity" => Term::Float(name),
            _ => {
                self.sign("(")?;
                Term::Function(name, self.terms_until(")", depth)?)
            }
        })
    }

    pub(super) fn type_name(&mut self) -> Result<TypeName, ParseError> {
        self.type_at(0)
    }

    fn type_at(&mut self, depth: usize) -> Result<TypeName, ParseError> {
        let depth = self.deeper(depth)?;
        let name = match self.peek(0)? {
            Kind::Text(_) => {
                return Err(ParseError::Unsupported {
                    what: "custom types",
                    cure: "use one of CQL's native types",
                });
            }
            _ => self.name()?,
        };
        if !self.is_sign(0, "<")? {
            return Ok(TypeName::Plain(name));
        }
        self.take()?;
        let mut inner = vec![self.type_at(depth)?];
        while self.take_sign(",")? {
            inner.push(self.type_at(depth)?);
        }
        self.sign(">")?;
        let count = inner.len();
        let mut next = inner.drain(..);
        match (name.as_str(), count, next.next(), next.next()) {
            ("list", 1, Some(t), _) => Ok(TypeName::List(Box::new(t))),
            ("set", 1, Some(t), _) => Ok(TypeName::Set(Box::new(t))),
            ("frozen", 1, Some(t), _) => Ok(TypeName::Frozen(Box::new(t))),
            ("map", 2, Some(k), Some(v)) => Ok(TypeName::Map(Box::new(k), Box::new(v))),
            ("tuple", _, Some(first), second) => {
                Ok(TypeName::Tuple([first].into_iter().chain(second).chain(next).collect()))
            }
            _ => Err(self.error_here(&format!("'{name}' does not take {count} type parameters"))?),
        }
    }
}
