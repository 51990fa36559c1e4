//! Profiles of `user profile=`: YAML -> schema, distributions, the insert and the queries.
//!
//! Source: cassandra-stress, `StressYaml.java`, `StressProfile.java`. Keys of a profile are as the
//! original has them, keys inside `columnspec` and `insert` in any case; an unknown key is an error
//! there and here. The table's columns are those of `table_definition`; where a profile has none,
//! the caller reads the definition from the database and gives it to [`Profile::table`]. A
//! `columnspec` without a column is let pass there without a word; [`Table::unused`] names it.
//! Bounded: 1 MiB of text, 32 levels, 50 000 values and brackets, 1000 aliases.

use super::column::{ColumnGenerator, ColumnSpec, ColumnType, ScalarType};
use super::create_table::{Place, TableDefinition, TableError};
use super::distribution::{Distribution, DistributionError, Ratio};
use super::ordered::{Ordered, hash_ordered};
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;

const TEXT_SIZE_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 32;
const EVENTS_MAX: usize = 50_000;
const ALIASES_MAX: usize = 1_000;
/// Values of one clustering column below one parent are in memory together.
const CHILDREN_MAX: i64 = 10_000_000;
/// Values and columns are written into buffers of the client: what one may hold.
const VALUE_SIZE_BYTES_MAX: usize = 256 << 20;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    specname: Option<String>,
    keyspace: Option<String>,
    keyspace_definition: Option<String>,
    table: Option<String>,
    table_definition: Option<String>,
    extra_definitions: Option<Vec<String>>,
    columnspec: Option<Vec<BTreeMap<String, String>>>,
    insert: Option<Ordered<String>>,
    queries: Option<Ordered<QueryDocument>>,
    token_range_queries: Option<Ordered<TokenRangeDocument>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct QueryDocument {
    cql: Option<String>,
    fields: Option<String>,
    consistency_level: Option<String>,
    serial_consistency_level: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRangeDocument {
    columns: Option<String>,
    page_size: Option<u32>,
}

/// A profile, read and checked.
#[derive(Debug, Clone)]
pub struct Profile {
    /// `specname`, or keyspace and table with a point between: what queries are named with.
    pub spec_name: String,
    /// The keyspace.
    pub keyspace: String,
    /// Statement that makes the keyspace.
    pub keyspace_definition: Option<String>,
    /// The table.
    pub table: String,
    /// Statement that makes the table.
    pub table_definition: Option<String>,
    /// Its columns, where `table_definition` is there.
    pub definition: Option<TableDefinition>,
    /// Further statements, to be executed after the table is made.
    pub extra_definitions: Vec<String>,
    /// By name, in small letters: the name as written and its distributions.
    columns: BTreeMap<String, (String, ColumnSpec)>,
    /// How rows are written.
    pub insert: Insert,
    /// By name, in small letters.
    pub queries: BTreeMap<String, Query>,
    /// By name.
    pub token_range_queries: BTreeMap<String, TokenRangeQuery>,
    /// As they are shown.
    pub written: Written,
}

/// What a profile says, in the words and the order in which the original shows it.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Columns with their distributions: cluster, size, population.
    pub columns: Vec<(String, [Option<String>; 3])>,
    /// Queries, each in a line.
    pub queries: Vec<(String, String)>,
    /// Queries over token ranges, each in a line.
    pub token_range_queries: Vec<(String, String)>,
    /// Settings of the insert.
    pub insert: Vec<(String, String)>,
}

impl Written {
    fn of(document: &Document) -> Self {
        let columns = document.columnspec.iter().flatten().filter_map(|element| {
            let get = |wanted: &str| {
                let found = element.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
                found.map(|(_, value)| value.clone())
            };
            Some((get("name")?.to_lowercase(), ["cluster", "size", "population"].map(get)))
        });
        let mut columns: Vec<_> = columns.collect();
        // The last one of a name counts, in the place of the first.
        for index in (1..columns.len()).rev() {
            if let Some(first) = (0..index).find(|i| columns[*i].0 == columns[index].0) {
                let last = columns.remove(index);
                columns[first] = last;
            }
        }
        let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
        let queries = document.queries.iter().flat_map(|queries| &queries.0);
        let ranges = document.token_range_queries.iter().flat_map(|queries| &queries.0);
        Self {
            columns: hash_ordered(columns),
            queries: queries
                .map(|(name, query)| {
                    let (cql, fields) = (or_null(&query.cql), or_null(&query.fields));
                    (name.clone(), format!("CQL:{cql};Fields:{fields};"))
                })
                .collect(),
            token_range_queries: ranges
                .map(|(name, query)| {
                    (name.clone(), format!("Columns:{};", or_null(&query.columns)))
                })
                .collect(),
            insert: document.insert.clone().unwrap_or_default().0,
        }
    }
}

/// How rows are written; what the profile leaves open is the command line's or the default.
#[derive(Debug, Clone, Default)]
pub struct Insert {
    /// Partitions in one operation: `fixed(1)`.
    pub partitions: Option<Distribution>,
    /// Share of a partition's rows in one operation: `fixed(1)/1`.
    pub select: Option<Ratio>,
    /// Share of a row's value columns that have a value: `fixed(1)/1`.
    pub row_population: Option<Ratio>,
    /// How rows of one operation are held together: LOGGED.
    pub batch_type: Option<BatchType>,
    /// As written.
    pub consistency: Option<String>,
    /// As written.
    pub serial_consistency: Option<String>,
    /// What stands behind the statement: `IF body = NULL`.
    pub condition: Option<String>,
}

/// Kinds of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BatchType {
    Logged,
    Unlogged,
    Counter,
}

impl BatchType {
    /// The type of that name, in capitals as the original wants it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "LOGGED" => Self::Logged,
            "UNLOGGED" => Self::Unlogged,
            "COUNTER" => Self::Counter,
            _ => return None,
        })
    }
}

/// A query of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The statement; each `?` is bound to the column of its name.
    pub cql: String,
    /// All arguments come from one row; else each from a row of its own (the default).
    pub same_row: bool,
    /// As written.
    pub consistency: Option<String>,
    /// As written.
    pub serial_consistency: Option<String>,
}

/// A query over ranges of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRangeQuery {
    /// What is selected, as written; everything by default.
    pub columns: String,
    /// Rows of one page: 5000.
    pub page_rows: u32,
}

/// Why a profile could not be read.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// Too long.
    #[error("the profile has more than 1 MiB; give each table a profile of its own")]
    Size,
    /// Not YAML, or not the YAML of a profile.
    #[error("the profile is not one that cassandra-stress reads: {0}")]
    Yaml(Box<serde_saphyr::Error>),
    /// A key that must be there.
    #[error("the profile has no '{0}'; add it")]
    Missing(&'static str),
    /// An element of `columnspec` without a name.
    #[error("element {0} of columnspec has no 'name'; add it")]
    NoName(usize),
    /// A key that means nothing.
    #[error("{place} has no option '{key}'; known are {known}")]
    Unknown {
        /// Where it stands.
        place: String,
        /// The key.
        key: String,
        /// What there is.
        known: &'static str,
    },
    /// Two keys that differ in their case.
    #[error("{place} gives '{key}' twice; remove one")]
    Twice {
        /// Where it stands.
        place: String,
        /// The key in small letters.
        key: String,
    },
    /// A distribution or share that is wrong.
    #[error("{place}: {error}")]
    Distribution {
        /// Where it stands.
        place: String,
        /// What is wrong with it.
        error: DistributionError,
    },
    /// A word that is none of those known.
    #[error("{place} is '{value}'; write one of {known}")]
    Word {
        /// Where it stands.
        place: String,
        /// What stands there.
        value: String,
        /// What may.
        known: &'static str,
    },
    /// A table definition that cannot be read.
    #[error("table_definition, {0}")]
    Table(#[from] TableError),
    /// The definition is of another table.
    #[error("table_definition makes '{found}', and table is '{wanted}'; make them the same")]
    OtherTable {
        /// Of the definition.
        found: String,
        /// Of the profile.
        wanted: String,
    },
    /// A name that is taken.
    #[error("the query '{0}' has a name that is taken; give it another")]
    QueryName(String),
    /// No values can be drawn for a column's type.
    #[error(
        "table_definition, line {}, character {}: no values can be drawn for column '{column}' \
         of type {type_text}; take it out, or leave it to skip-unsupported-columns unless it is \
         a key",
        .place.line, .place.column
    )]
    Unsupported {
        /// The column.
        column: String,
        /// Its type as written.
        type_text: String,
        /// Where the type stands.
        place: Place,
    },
    /// A column's distributions ask for values that no client holds.
    #[error("a value of column '{0}' may have more than 256 MiB; give it a smaller size")]
    Large(String),
    /// A clustering column has too many values.
    #[error(
        "clustering column '{0}' may have more than {CHILDREN_MAX} values below one parent; give \
         it a smaller cluster"
    )]
    Many(String),
}

/// The generators of a table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Of the partition key.
    pub partition_key: Vec<NamedColumn>,
    /// Of the clustering key.
    pub clustering_key: Vec<NamedColumn>,
    /// Of all others, in the order of their names.
    pub values: Vec<NamedColumn>,
    /// Columns left out, for no values can be drawn for them.
    pub skipped: Vec<String>,
    /// Names in `columnspec` that no column has.
    pub unused: Vec<String>,
}

/// A column and its generator.
#[derive(Debug, Clone)]
pub struct NamedColumn {
    /// Its name.
    pub name: String,
    /// A collection that is written whole. Others, and counters, are added to.
    pub frozen: bool,
    /// Its values.
    pub generator: ColumnGenerator,
}

impl NamedColumn {
    /// Whether a write adds to what is there (`c = c + ?`).
    #[must_use]
    pub fn is_added_to(&self) -> bool {
        match self.generator.column_type {
            ColumnType::Scalar(scalar) => scalar == ScalarType::Counter,
            ColumnType::List(_) | ColumnType::Set(_) => !self.frozen,
        }
    }
}

type Outcome<T> = Result<T, ProfileError>;

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// When it is not a profile, or anything in it is wrong.
    pub fn parse(text: &str) -> Outcome<Self> {
        if text.len() > TEXT_SIZE_BYTES_MAX {
            return Err(ProfileError::Size);
        }
        let budget = serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_events: EVENTS_MAX,
            max_aliases: ALIASES_MAX,
        };
        let options = serde_saphyr::options! { budget: budget };
        let document: Document = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| ProfileError::Yaml(Box::new(error)))?;
        let written = Written::of(&document);
        let keyspace = document.keyspace.ok_or(ProfileError::Missing("keyspace"))?;
        let table = document.table.ok_or(ProfileError::Missing("table"))?;
        let table_definition = document.table_definition.filter(|text| !text.is_empty());
        let definition = table_definition.as_deref().map(TableDefinition::parse).transpose()?;
        match &definition {
            Some(found) if !found.table.eq_ignore_ascii_case(&table) => {
                let found = found.table.clone();
                return Err(ProfileError::OtherTable { found, wanted: table });
            }
            _ => {}
        }
        let ranges = document.token_range_queries.unwrap_or_default().0;
        let queries = queries(document.queries.unwrap_or_default().0, &ranges)?;
        Ok(Self {
            spec_name: document.specname.unwrap_or_else(|| format!("{keyspace}.{table}")),
            keyspace,
            keyspace_definition: document.keyspace_definition.filter(|text| !text.is_empty()),
            table,
            table_definition,
            definition,
            extra_definitions: document.extra_definitions.unwrap_or_default(),
            columns: columns(document.columnspec.unwrap_or_default())?,
            insert: insert(document.insert.unwrap_or_default().0)?,
            written,
            queries,
            token_range_queries: ranges.into_iter().map(token_range_query).collect(),
        })
    }

    /// The generators of the table's columns. With `skip_unsupported` columns outside of the key
    /// are left out when no values can be drawn for them.
    ///
    /// # Errors
    /// When no values can be drawn for a column that is needed.
    pub fn table(&self, definition: &TableDefinition, skip_unsupported: bool) -> Outcome<Table> {
        let generator = |index: &usize| {
            let column = &definition.columns[*index];
            let Some(column_type) = column.column_type else {
                return Err(ProfileError::Unsupported {
                    column: column.name.clone(),
                    type_text: column.type_text.clone(),
                    place: column.place,
                });
            };
            let given = self.columns.get(&column.name.to_lowercase()).cloned();
            let (name, spec) = given.unwrap_or_else(|| (column.name.clone(), Default::default()));
            let generator = ColumnGenerator::new(&name, column_type, spec);
            if generator.room() > VALUE_SIZE_BYTES_MAX {
                return Err(ProfileError::Large(name));
            }
            let children = generator.cluster().max();
            if definition.clustering_key.contains(index) && children > CHILDREN_MAX {
                return Err(ProfileError::Many(name));
            }
            Ok(NamedColumn { name: column.name.clone(), frozen: column.frozen, generator })
        };
        let (mut values, mut skipped) = (Vec::new(), Vec::new());
        for index in &definition.value_columns() {
            match generator(index) {
                Ok(column) => values.push(column),
                Err(ProfileError::Unsupported { column, .. }) if skip_unsupported => {
                    skipped.push(column);
                }
                Err(error) => return Err(error),
            }
        }
        let has = |name: &String| {
            definition.columns.iter().any(|column| column.name.to_lowercase() == *name)
        };
        Ok(Table {
            partition_key: definition
                .partition_key
                .iter()
                .map(generator)
                .collect::<Outcome<_>>()?,
            clustering_key: definition
                .clustering_key
                .iter()
                .map(generator)
                .collect::<Outcome<_>>()?,
            values,
            skipped,
            unused: self.columns.keys().filter(|name| !has(name)).cloned().collect(),
        })
    }
}

fn columns(
    elements: Vec<BTreeMap<String, String>>,
) -> Outcome<BTreeMap<String, (String, ColumnSpec)>> {
    const KNOWN: &str = "name, population, size, cluster";
    let mut columns = BTreeMap::new();
    for (index, element) in elements.into_iter().enumerate() {
        let mut options = Options::new(format!("element {} of columnspec", index + 1), element)?;
        let name = options.take("name").ok_or(ProfileError::NoName(index + 1))?;
        options.place = format!("columnspec of '{name}'");
        let spec = ColumnSpec {
            population: options.read("population", Distribution::parse)?,
            size: options.read("size", Distribution::parse)?,
            cluster: options.read("cluster", Distribution::parse)?,
        };
        options.end(KNOWN)?;
        // The last one counts, as in the original.
        columns.insert(name.to_lowercase(), (name, spec));
    }
    Ok(columns)
}

fn insert(options: Vec<(String, String)>) -> Outcome<Insert> {
    const KNOWN: &str = "partitions, select, row-population, batchtype, condition, \
                         consistencyLevel, serialConsistencyLevel";
    const TYPES: &str = "LOGGED, UNLOGGED, COUNTER";
    let mut options = Options::new("insert".to_owned(), options)?;
    let batch_type = match options.take("batchtype") {
        Some(value) => Some(BatchType::named(&value).ok_or_else(|| ProfileError::Word {
            place: "batchtype of insert".to_owned(),
            value,
            known: TYPES,
        })?),
        None => None,
    };
    let insert = Insert {
        partitions: options.read("partitions", Distribution::parse)?,
        select: options.read("select", Ratio::parse)?,
        row_population: options.read("row-population", Ratio::parse)?,
        batch_type,
        consistency: options.take("consistencylevel"),
        serial_consistency: options.take("serialconsistencylevel"),
        condition: options.take("condition"),
    };
    options.end(KNOWN)?;
    Ok(insert)
}

fn queries(
    queries: Vec<(String, QueryDocument)>,
    ranges: &[(String, TokenRangeDocument)],
) -> Outcome<BTreeMap<String, Query>> {
    let mut read = BTreeMap::new();
    for (name, query) in queries {
        let lower = name.to_lowercase();
        if lower == "insert"
            || lower == "validate"
            || ranges.iter().any(|(range, _)| *range == name)
        {
            return Err(ProfileError::QueryName(name));
        }
        let same_row = match query.fields.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("samerow") => true,
            None | Some("multirow") => false,
            Some(_) => {
                return Err(ProfileError::Word {
                    place: format!("fields of query '{name}'"),
                    value: query.fields.unwrap_or_default(),
                    known: "samerow, multirow",
                });
            }
        };
        let query = Query {
            cql: query.cql.ok_or(ProfileError::Missing("cql of a query"))?,
            same_row,
            consistency: query.consistency_level,
            serial_consistency: query.serial_consistency_level,
        };
        if read.insert(lower, query).is_some() {
            return Err(ProfileError::QueryName(name));
        }
    }
    Ok(read)
}

fn token_range_query((name, query): (String, TokenRangeDocument)) -> (String, TokenRangeQuery) {
    let columns = query.columns.unwrap_or_else(|| "*".to_owned());
    // The original's driver takes its default for 0, too; the protocol counts in 31 bits.
    let page_rows = query.page_size.filter(|rows| *rows > 0).unwrap_or(5_000).min(i32::MAX as u32);
    (name, TokenRangeQuery { columns, page_rows })
}

/// Keys and values whose keys are known in small letters.
struct Options {
    place: String,
    values: BTreeMap<String, String>,
}

impl Options {
    fn new(place: String, options: impl IntoIterator<Item = (String, String)>) -> Outcome<Self> {
        let mut values = BTreeMap::new();
        for (key, value) in options {
            let key = key.to_lowercase();
            if values.insert(key.clone(), value).is_some() {
                return Err(ProfileError::Twice { place, key });
            }
        }
        Ok(Self { place, values })
    }

    fn take(&mut self, key: &str) -> Option<String> {
        self.values.remove(key)
    }

    fn read<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, DistributionError>,
    ) -> Outcome<Option<T>> {
        let Some(value) = self.take(key).filter(|value| !value.trim().is_empty()) else {
            return Ok(None);
        };
        let place = || format!("{key} of {}", self.place);
        let error = |error| ProfileError::Distribution { place: place(), error };
        parse(&value).map(Some).map_err(error)
    }

    fn end(self, known: &'static str) -> Outcome<()> {
        match self.values.into_iter().next() {
            Some((key, _)) => Err(ProfileError::Unknown { place: self.place, key, known }),
            None => Ok(()),
        }
    }
}
