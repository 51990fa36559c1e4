//! The syntax tree: what was written, with names folded to lower case unless quoted.

/// A parsed text: one statement and the names of its bind markers in order (`?` has none, `:name`
/// has one).
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// One entry per marker.
    pub markers: Vec<Option<String>>,
}

/// `keyspace.table` or `table`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// None: the connection's keyspace.
    pub keyspace: Option<String>,
    /// The table.
    pub name: String,
}

/// Any statement.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names are CQL's
pub enum Statement {
    Use(String),
    CreateKeyspace { name: String, if_not_exists: bool, options: Vec<Property> },
    AlterKeyspace { name: String, options: Vec<Property> },
    DropKeyspace { name: String, if_exists: bool },
    CreateTable(CreateTable),
    AlterTable { table: TableName, action: AlterAction },
    DropTable { table: TableName, if_exists: bool },
    Truncate(TableName),
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Batch(Batch),
    Describe(Describe),
}

/// DESCRIBE of what.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names are CQL's
pub enum Describe {
    Cluster,
    Schema {
        full: bool,
    },
    Keyspaces,
    Keyspace {
        name: Option<String>,
        only: bool,
    },
    Tables,
    Table(TableName),
    /// Types, functions and aggregates.
    Others,
    /// A keyspace or a table.
    Any(TableName),
}

/// `name = value` after WITH.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Lower case.
    pub name: String,
    /// What stands behind the equals sign.
    pub value: PropertyValue,
}

/// A property's value; scalars keep their text.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum PropertyValue {
    Scalar(String),
    Map(Vec<(String, String)>),
}

/// CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct CreateTable {
    pub table: TableName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    pub partition_key: Vec<String>,
    pub clustering: Vec<String>,
    /// `CLUSTERING ORDER BY`: column and whether it is descending.
    pub order: Vec<(String, bool)>,
    pub options: Vec<Property>,
}

/// A column as declared.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct ColumnDefinition {
    pub name: String,
    pub type_name: TypeName,
    pub is_static: bool,
}

/// A type as written, names in lower case.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum TypeName {
    Plain(String),
    List(Box<TypeName>),
    Set(Box<TypeName>),
    Map(Box<TypeName>, Box<TypeName>),
    Tuple(Vec<TypeName>),
    Frozen(Box<TypeName>),
}

/// What ALTER TABLE does.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum AlterAction {
    Add(Vec<ColumnDefinition>),
    With(Vec<Property>),
}

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// `NULL`
    Null,
    /// Digits with an optional minus.
    Integer(String),
    /// With a point or an exponent, or NaN, Infinity.
    Float(String),
    /// Quoted text.
    Text(String),
    /// `true`, `false`
    Boolean(bool),
    /// Sixteen bytes.
    Uuid([u8; 16]),
    /// `0x..`
    Blob(Vec<u8>),
    /// `1h30m`
    Duration(String),
    /// The n-th marker of the text.
    Marker(usize),
    /// `[..]`
    List(Vec<Term>),
    /// `{..}`; also an empty map.
    Set(Vec<Term>),
    /// `{..: ..}`
    Map(Vec<(Term, Term)>),
    /// `(..)`
    Tuple(Vec<Term>),
    /// `name(..)`, name in lower case.
    Function(String, Vec<Term>),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    ContainsKey,
}

/// One condition of a WHERE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Relation {
    Column {
        column: String,
        operator: Operator,
        term: Term,
    },
    /// `column IN (..)`; a single [`Term::Marker`] in `all` stands for the whole list.
    In {
        column: String,
        terms: InTerms,
    },
    Token {
        columns: Vec<String>,
        operator: Operator,
        term: Term,
    },
    /// `(a, b) > (1, 2)`
    Tuple {
        columns: Vec<String>,
        operator: Operator,
        terms: Vec<Term>,
    },
}

/// What stands behind IN.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum InTerms {
    List(Vec<Term>),
    Marker(usize),
}

/// What a SELECT puts out.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Selector {
    Column(String),
    /// `COUNT(*)`, `COUNT(1)`, or `COUNT(column)`.
    Count(Option<String>),
    Writetime(String),
    Ttl(String),
    Token(Vec<String>),
}

/// SELECT.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Select {
    pub table: TableName,
    /// None: `*`. Each with its alias.
    pub selectors: Option<Vec<(Selector, Option<String>)>>,
    pub distinct: bool,
    pub relations: Vec<Relation>,
    /// Column and whether descending.
    pub order: Vec<(String, bool)>,
    pub per_partition_limit: Option<Term>,
    pub limit: Option<Term>,
    pub allow_filtering: bool,
}

/// `USING TIMESTAMP .. AND TTL ..`
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs)]
pub struct Using {
    pub timestamp: Option<Term>,
    pub ttl: Option<Term>,
}

/// INSERT.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Insert {
    pub table: TableName,
    pub columns: Vec<String>,
    pub values: Vec<Term>,
    pub using: Using,
}

/// One `SET` of an UPDATE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Assignment {
    Set(Term),
    /// `c = c + term`
    Add(Term),
    /// `c = term + c`, lists only.
    Prepend(Term),
    /// `c = c - term`
    Subtract(Term),
    /// `c[key] = term`
    Element(Term, Term),
}

/// UPDATE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Update {
    pub table: TableName,
    pub using: Using,
    pub assignments: Vec<(String, Assignment)>,
    pub relations: Vec<Relation>,
}

/// DELETE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Delete {
    pub table: TableName,
    /// Column, and the key of an element of it.
    pub columns: Vec<(String, Option<Term>)>,
    pub using: Using,
    pub relations: Vec<Relation>,
}

/// The kind of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

/// BEGIN BATCH .. APPLY BATCH.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Batch {
    pub kind: BatchKind,
    pub using: Using,
    /// INSERT, UPDATE and DELETE only.
    pub statements: Vec<Statement>,
}
