//! A small reader of CREATE TABLE: text -> the table's name, columns, types and keys.
//!
//! Reads what profiles of cassandra-stress define; what stands behind the closing parenthesis is
//! the database's to judge. Types that no values can be drawn for are kept by name and place, so
//! that whoever needs such a column can say so. Source: the CQL grammar of Apache Cassandra 5.0.
//! Bounded: 1 MiB of text, nesting of types 16 deep, 10 000 columns.

use super::column::{ColumnType, ScalarType};
use thiserror::Error;

const TEXT_SIZE_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 16;
const COLUMNS_MAX: usize = 10_000;

/// A table as its definition describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// The keyspace, where the definition names one.
    pub keyspace: Option<String>,
    /// The table.
    pub table: String,
    /// All columns in the order of the definition.
    pub columns: Vec<ColumnDefinition>,
    /// Indices into `columns`.
    pub partition_key: Vec<usize>,
    /// Indices into `columns`.
    pub clustering_key: Vec<usize>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name, in small letters unless quoted.
    pub name: String,
    /// Its type as written, without spaces.
    pub type_text: String,
    /// Its type; None where no values can be drawn for it.
    pub column_type: Option<ColumnType>,
    /// Written whole: `frozen<...>`.
    pub frozen: bool,
    /// One value for the whole partition.
    pub is_static: bool,
    /// Where its type stands.
    pub place: Place,
}

/// A place in a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Character of the line.
    pub column: usize,
}

/// Why a definition could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {}, character {}: {problem}", .place.line, .place.column)]
pub struct TableError {
    /// Where.
    pub place: Place,
    /// What, and what would be right.
    pub problem: TableProblem,
}

/// What can be wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableProblem {
    /// Something else stands there.
    #[error("found {found}, expected {wanted}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What should.
        wanted: &'static str,
    },
    /// A quote or a comment without its end.
    #[error("{0} is not closed; close it")]
    Open(&'static str),
    /// A character that CQL has no use for.
    #[error("'{0}' is no part of CQL; remove it, or quote the name it belongs to")]
    Character(char),
    /// A key column that is not defined.
    #[error("the primary key names '{0}', which is no column; define it, or correct the name")]
    NoColumn(String),
    /// A name given twice.
    #[error("'{0}' is defined or named twice; remove one")]
    Twice(String),
    /// No primary key, or two.
    #[error("{0} primary keys; a table has one: write PRIMARY KEY once")]
    Keys(usize),
    /// A limit of this reader.
    #[error("the definition has more than {0}")]
    Limit(&'static str),
}

use TableProblem as Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// In small letters, or as quoted.
    Name {
        text: String,
        quoted: bool,
    },
    Text,
    Symbol(char),
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    token: Token,
    /// Where the token starts.
    start: usize,
}

type Outcome<T> = Result<T, TableError>;

impl TableDefinition {
    /// Reads `CREATE TABLE ...`.
    ///
    /// # Errors
    /// When it is not the definition of a table.
    pub fn parse(text: &str) -> Outcome<Self> {
        let mut reader = Reader { text, at: 0, token: Token::End, start: 0 };
        if text.len() > TEXT_SIZE_BYTES_MAX {
            return Err(reader.error(Problem::Limit("1 MiB of text")));
        }
        reader.advance()?;
        reader.table()
    }

    /// Columns that are neither part of a key nor anything else: in the order of their names, which
    /// is that of the database.
    #[must_use]
    pub fn value_columns(&self) -> Vec<usize> {
        let is_key = |index: &usize| {
            self.partition_key.contains(index) || self.clustering_key.contains(index)
        };
        let mut values: Vec<usize> = (0..self.columns.len()).filter(|i| !is_key(i)).collect();
        values.sort_by(|a, b| self.columns[*a].name.cmp(&self.columns[*b].name));
        values
    }
}

impl Reader<'_> {
    fn place(&self) -> Place {
        let before = self.text.get(..self.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn error(&self, problem: Problem) -> TableError {
        TableError { place: self.place(), problem }
    }

    fn unexpected<T>(&self, wanted: &'static str) -> Outcome<T> {
        let found = match &self.token {
            Token::Name { text, .. } => format!("'{text}'"),
            Token::Text => "a text".to_owned(),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::End => "the end".to_owned(),
        };
        Err(self.error(Problem::Unexpected { found, wanted }))
    }

    /// Passes blanks and comments.
    fn skip(&mut self) -> Outcome<()> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            self.start = self.at;
            let rest = &rest[blank..];
            if rest.starts_with("--") || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match rest.find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.error(Problem::Open("a comment"))),
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Moves to the next token.
    fn advance(&mut self) -> Outcome<()> {
        self.skip()?;
        let rest = &self.text[self.at..];
        let (token, size) = match rest.chars().next() {
            None => (Token::End, 0),
            Some(quote @ ('"' | '\'')) => {
                let Some((text, size)) = quoted(rest, quote) else {
                    let what = if quote == '"' { "a quoted name" } else { "a text" };
                    return Err(self.error(Problem::Open(what)));
                };
                if quote == '"' {
                    (Token::Name { text, quoted: true }, size)
                } else {
                    (Token::Text, size)
                }
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let size = rest.find(|c| !part(c)).unwrap_or(rest.len());
                let text = rest[..size].to_ascii_lowercase();
                (Token::Name { text, quoted: false }, size)
            }
            Some(c) if "(),.<>;=".contains(c) => (Token::Symbol(c), 1),
            Some(c) => return Err(self.error(Problem::Character(c))),
        };
        self.token = token;
        self.at += size;
        Ok(())
    }

    fn is(&self, word: &str) -> bool {
        matches!(&self.token, Token::Name { text, quoted: false } if text == word)
    }

    fn take(&mut self, word: &str) -> Outcome<bool> {
        let found = self.is(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn take_symbol(&mut self, symbol: char) -> Outcome<bool> {
        let found = self.token == Token::Symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn name(&mut self, wanted: &'static str) -> Outcome<String> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Name { text, .. } if !text.is_empty() => {
                self.advance()?;
                Ok(text)
            }
            other => {
                self.token = other;
                self.unexpected(wanted)
            }
        }
    }

    /// `CREATE TABLE [IF NOT EXISTS] [keyspace.]table (`: the keyspace and the table.
    fn head(&mut self) -> Outcome<(Option<String>, String)> {
        if !self.take("create")? {
            return self.unexpected("CREATE TABLE");
        }
        if !self.take("table")? && !self.take("columnfamily")? {
            return self.unexpected("TABLE");
        }
        if self.take("if")? && !(self.take("not")? && self.take("exists")?) {
            return self.unexpected("IF NOT EXISTS");
        }
        let mut table = self.name("the table's name")?;
        let mut keyspace = None;
        if self.take_symbol('.')? {
            keyspace = Some(std::mem::replace(&mut table, self.name("the table's name")?));
        }
        if !self.take_symbol('(')? {
            return self.unexpected("'(' and the columns");
        }
        Ok((keyspace, table))
    }

    fn table(mut self) -> Outcome<TableDefinition> {
        let (keyspace, table) = self.head()?;
        let mut columns: Vec<ColumnDefinition> = Vec::new();
        let mut keys = Vec::new();
        loop {
            if self.is("primary") {
                self.advance()?;
                keys.push((self.place(), self.primary_key()?));
            } else {
                let place = self.place();
                let (column, is_key) = self.column()?;
                if is_key {
                    keys.push((place, (vec![column.name.clone()], Vec::new())));
                }
                if columns.iter().any(|other| other.name == column.name) {
                    return Err(TableError { place, problem: Problem::Twice(column.name) });
                }
                columns.push(column);
                if columns.len() > COLUMNS_MAX {
                    return Err(self.error(Problem::Limit("10000 columns")));
                }
            }
            if self.take_symbol(')')? {
                break;
            }
            if !self.take_symbol(',')? {
                return self.unexpected("',' or ')'");
            }
        }
        let found = keys.len();
        let (Some((place, (partition, clustering))), 1) = (keys.pop(), found) else {
            return Err(self.error(Problem::Keys(found)));
        };
        let mut keys = Vec::new();
        for name in partition.iter().chain(&clustering) {
            match columns.iter().position(|column| column.name == *name) {
                None => return Err(TableError { place, problem: Problem::NoColumn(name.clone()) }),
                Some(index) if keys.contains(&index) => {
                    return Err(TableError { place, problem: Problem::Twice(name.clone()) });
                }
                Some(index) => keys.push(index),
            }
        }
        let clustering_key = keys.split_off(partition.len());
        Ok(TableDefinition { keyspace, table, columns, partition_key: keys, clustering_key })
    }

    /// `KEY (a, b)` or `KEY ((a, b), c)`: names of the partition key and of the clustering key.
    fn primary_key(&mut self) -> Outcome<(Vec<String>, Vec<String>)> {
        if !self.take("key")? || !self.take_symbol('(')? {
            return self.unexpected("KEY and '('");
        }
        let partition = if self.take_symbol('(')? {
            let mut names = vec![self.name("a column of the partition key")?];
            while !self.take_symbol(')')? {
                if !self.take_symbol(',')? {
                    return self.unexpected("',' or ')'");
                }
                names.push(self.name("a column of the partition key")?);
            }
            names
        } else {
            vec![self.name("a column of the partition key")?]
        };
        let mut clustering = Vec::new();
        while !self.take_symbol(')')? {
            if !self.take_symbol(',')? {
                return self.unexpected("',' or ')'");
            }
            clustering.push(self.name("a clustering column")?);
        }
        Ok((partition, clustering))
    }

    /// `name type [STATIC] [PRIMARY KEY]`; whether it is the key.
    fn column(&mut self) -> Outcome<(ColumnDefinition, bool)> {
        let name = self.name("a column's name or PRIMARY KEY")?;
        let place = self.place();
        let (type_text, frozen) = self.type_text()?;
        let is_static = self.take("static")?;
        let is_key = self.take("primary")?;
        if is_key && !self.take("key")? {
            return self.unexpected("KEY");
        }
        let column_type = column_type(&type_text);
        let column = ColumnDefinition { name, type_text, column_type, frozen, is_static, place };
        Ok((column, is_key))
    }

    /// A type's text, without an outer `frozen`, and whether there was one.
    fn type_text(&mut self) -> Outcome<(String, bool)> {
        let (mut text, mut depth) = (String::new(), 0);
        loop {
            match &self.token {
                Token::Text => {
                    text.push_str("'custom'");
                    self.advance()?;
                }
                Token::Name { .. } => text.push_str(&self.name("a type")?),
                _ => return self.unexpected("a type"),
            }
            if self.take_symbol('<')? {
                text.push('<');
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(self.error(Problem::Limit("16 types inside each other")));
                }
                continue;
            }
            while depth > 0 && self.take_symbol('>')? {
                text.push('>');
                depth -= 1;
            }
            if depth == 0 {
                break;
            }
            if !self.take_symbol(',')? {
                return self.unexpected("',' or '>'");
            }
            text.push(',');
        }
        match text.strip_prefix("frozen<").and_then(|inner| inner.strip_suffix('>')) {
            Some(inner) => Ok((inner.to_owned(), true)),
            None => Ok((text, false)),
        }
    }
}

/// The name between quotes, which are doubled inside, and the size of all of it in bytes.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut rest = text[1..].char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c != quote {
            name.push(c);
        } else if rest.next_if(|(_, next)| *next == quote).is_some() {
            name.push(quote);
        } else {
            return Some((name, at + 2));
        }
    }
    None
}

fn column_type(text: &str) -> Option<ColumnType> {
    let inside = |name| text.strip_prefix(name)?.strip_suffix('>');
    if let Some(element) = inside("list<") {
        return ScalarType::named(element).map(ColumnType::List);
    }
    if let Some(element) = inside("set<") {
        return ScalarType::named(element).map(ColumnType::Set);
    }
    ScalarType::named(text).map(ColumnType::Scalar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(table: &TableDefinition, indices: &[usize]) -> Vec<String> {
        indices.iter().map(|index| table.columns[*index].name.clone()).collect()
    }

    #[test]
    fn tables_of_all_forms() {
        let table = TableDefinition::parse(
            "create table if not exists ks.\"My \"\"T\" ( -- a table\n a text, /* b */ B set<int>,
             c frozen<list<TEXT>>, d counter static, e map<text, frozen<tuple<int, int>>>,
             \"F\" 'org.x.Y', PRIMARY KEY ((a, \"F\"), c)) WITH x = {}",
        )
        .unwrap();
        assert_eq!((table.keyspace.as_deref(), table.table.as_str()), (Some("ks"), "My \"T"));
        assert_eq!(names(&table, &table.partition_key), ["a", "F"]);
        assert_eq!(names(&table, &table.clustering_key), ["c"]);
        assert_eq!(names(&table, &table.value_columns()), ["b", "d", "e"]);
        let [_, b, c, d, e, f] = table.columns.as_slice() else { panic!() };
        assert_eq!(b.column_type, Some(ColumnType::Set(ScalarType::Int)));
        assert_eq!(c.column_type, Some(ColumnType::List(ScalarType::Text)));
        assert!(c.frozen && d.is_static && !b.frozen);
        assert_eq!(
            (e.column_type, e.type_text.as_str()),
            (None, "map<text,frozen<tuple<int,int>>>")
        );
        assert_eq!((e.place, f.column_type), (Place { line: 3, column: 56 }, None));
        let table = TableDefinition::parse("CREATE COLUMNFAMILY t (k int PRIMARY KEY, v int)");
        assert_eq!(table.unwrap().partition_key, [0]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, line, column, part) in [
            ("", 1, 1, "expected CREATE TABLE"),
            ("drop table x", 1, 1, "found 'drop', expected CREATE TABLE"),
            ("create index", 1, 8, "expected TABLE"),
            ("create table t", 1, 15, "found the end, expected '('"),
            ("create table t (\n  a\n)", 3, 1, "found ')', expected a type"),
            ("create table t (a int, b list<int, primary key (a))", 1, 44, "expected ',' or '>'"),
            ("create table t (a int)", 1, 23, "0 primary keys"),
            ("create table t (a int primary key, primary key (a))", 1, 52, "2 primary keys"),
            ("create table t (a int, primary key (b))", 1, 32, "'b', which is no column"),
            ("create table t (a int, primary key (a, a))", 1, 32, "'a' is defined or named twice"),
            ("create table t (a int primary key, A text)", 1, 36, "'a' is defined"),
            ("create table \"t", 1, 14, "a quoted name is not closed"),
            ("create table t /* (", 1, 16, "a comment is not closed"),
            ("create table t (é int)", 1, 17, "'é' is no part of CQL"),
        ] {
            let error = TableDefinition::parse(text).unwrap_err();
            assert_eq!(error.place, Place { line, column }, "{text}: {error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
        let deep = format!("create table t (a {}int", "list<".repeat(20));
        assert!(TableDefinition::parse(&deep).unwrap_err().to_string().contains("16 types"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "(create table (t |\"t\" )?\\(?)?\
                     ([a-c] |int|text|list|<|>|,|\\(|\\)|primary key |'|\"|--|\
                     /\\*|\\*/|é|\n|.){0,30}",
        ) {
            let _ = TableDefinition::parse(&text);
        }
    }
}
