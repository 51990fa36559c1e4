//! WHERE -> which partitions, which rows of them, and what is left to filter.
//!
//! Compiled once against the table; evaluated per execution into tokens, serialized keys and ranges
//! of clustering keys.

use crate::catalog::{Column, Role, Table};
use crate::choice::{Choice, choice, each_combination};
use crate::cql::ast::{InTerms, Operator, Relation, Term};
use crate::error::{CqlError, invalid, undefined};
use crate::expr::{Context, Expr, Function, Markers, Receiver, compile};
use crate::filter::Filter;
use crate::keys::append_partition_key;
use crate::order;
use crate::store::KeyRange;
use std::borrow::Cow;
use wire::cql::{ColumnType, put};
use wire::murmur3;

/// A bound of a slice, on one or more clustering columns.
#[derive(Debug)]
struct Edge {
    values: Vec<Expr>,
    inclusive: bool,
}

/// A bound on tokens.
#[derive(Debug)]
struct TokenEdge {
    value: Expr,
    inclusive: bool,
}

/// A compiled WHERE.
#[derive(Debug, Default)]
pub(crate) struct Restrictions {
    /// A choice for each column of the partition key, or none at all.
    pub(crate) partition: Vec<Choice>,
    token_from: Option<TokenEdge>,
    token_to: Option<TokenEdge>,
    /// Choices for the first clustering columns.
    pub(crate) prefix: Vec<Choice>,
    /// Bounds in the order of the types, on the columns behind the prefix.
    lower: Option<Edge>,
    upper: Option<Edge>,
    /// The clustering column at which a slice by a tuple begins.
    tuple_start: Option<usize>,
    pub(crate) filters: Vec<Filter>,
}

/// The partitions of a statement.
#[derive(Debug)]
pub(crate) enum Partitions {
    /// Sorted by token and key, each once.
    Keys(Vec<(i64, Vec<u8>)>),
    /// From the first to the last token, both included; None when the bounds exclude everything.
    Ring(Option<(i64, i64)>),
}

/// A row's clustering: key in the store, and values as `[bytes]`.
pub(crate) type RowKey = (Vec<u8>, Vec<u8>);

/// Conditions on one column, as they are collected.
#[derive(Default)]
struct Conditions<'a> {
    equal: Option<&'a Term>,
    within: Option<&'a InTerms>,
    /// Everything else, with its operator.
    others: Vec<(Operator, &'a Term)>,
}

/// What a column's value is compiled for.
pub(crate) fn receiver<'a>(table: &'a Table, column: &'a Column) -> Receiver<'a> {
    Receiver {
        keyspace: &table.keyspace,
        table: &table.name,
        name: &column.name,
        kind: &column.data_type.kind,
    }
}

impl Restrictions {
    /// Compiles a WHERE. What neither keys nor slices can serve becomes filters.
    pub(crate) fn compile(
        table: &Table,
        relations: &[Relation],
        markers: &mut Markers,
    ) -> Result<Self, CqlError> {
        let mut this = Self::default();
        let mut columns: Vec<Conditions<'_>> =
            table.columns.iter().map(|_| Conditions::default()).collect();
        for relation in relations {
            this.collect(table, relation, &mut columns, markers)?;
        }
        let (key, rest) = columns.split_at_mut(table.partition_count);
        this.partition_key(table, key, markers)?;
        this.clustering(table, &rest[..table.clustering_count], markers)?;
        let first = table.partition_count + table.clustering_count;
        for (column, conditions) in table.columns.iter().zip(&columns).skip(first) {
            this.filter(table, column, conditions, markers)?;
        }
        Ok(this)
    }

    fn collect<'a>(
        &mut self,
        table: &Table,
        relation: &'a Relation,
        columns: &mut [Conditions<'a>],
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        let find = |name: &str| table.column(name).ok_or_else(|| undefined(name));
        match relation {
            Relation::Token { columns, operator, term } => {
                self.token(table, columns, *operator, term, markers)
            }
            Relation::Tuple { columns, operator, terms } => {
                self.tuple(table, columns, *operator, terms, markers)
            }
            Relation::In { column, terms } => {
                let (index, column) = find(column)?;
                let conditions = &mut columns[index];
                if conditions.within.is_some() || conditions.equal.is_some() {
                    return Err(twice(&column.name));
                }
                conditions.within = Some(terms);
                Ok(())
            }
            Relation::Column { column, operator: Operator::Equal, term } => {
                let (index, column) = find(column)?;
                let conditions = &mut columns[index];
                if conditions.within.is_some() || conditions.equal.is_some() {
                    return Err(twice(&column.name));
                }
                conditions.equal = Some(term);
                Ok(())
            }
            Relation::Column { column, operator, term } => {
                let (index, _) = find(column)?;
                columns[index].others.push((*operator, term));
                Ok(())
            }
        }
    }

    fn token(
        &mut self,
        table: &Table,
        columns: &[String],
        operator: Operator,
        term: &Term,
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        let key = &table.columns[..table.partition_count];
        if !key.iter().map(|c| &c.name).eq(columns) {
            let names: Vec<_> = key.iter().map(|c| c.name.as_str()).collect();
            return Err(invalid(format!(
                "The token() function must be applied to all partition key components, in \
                 order: token({})",
                names.join(", ")
            )));
        }
        let value = match term {
            Term::Function(name, arguments) if name == "token" => {
                if arguments.len() != key.len() {
                    return Err(invalid("Invalid number of arguments in call to function token"));
                }
                let pairs = key.iter().zip(arguments);
                let arguments = pairs
                    .map(|(c, t)| compile(t, receiver(table, c), markers))
                    .collect::<Result<_, _>>()?;
                Expr::Function { function: Function::Token, arguments }
            }
            term => {
                let name = "partition key token";
                let to = Receiver {
                    keyspace: &table.keyspace,
                    table: &table.name,
                    name,
                    kind: &ColumnType::Bigint,
                };
                compile(term, to, markers)?
            }
        };
        let edge = |inclusive| Some(TokenEdge { value: value.clone(), inclusive });
        let (from, to) = match operator {
            Operator::Equal => (edge(true), edge(true)),
            Operator::Greater => (edge(false), None),
            Operator::GreaterOrEqual => (edge(true), None),
            Operator::Less => (None, edge(false)),
            Operator::LessOrEqual => (None, edge(true)),
            _ => return Err(invalid("token() takes =, <, <=, > and >= only")),
        };
        set_edge(&mut self.token_from, from, "token")?;
        set_edge(&mut self.token_to, to, "token")
    }

    fn tuple(
        &mut self,
        table: &Table,
        columns: &[String],
        operator: Operator,
        terms: &[Term],
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        let start = table.clustering().iter().position(|c| Some(&c.name) == columns.first());
        let slice = start.and_then(|s| table.clustering().get(s..s + columns.len()));
        let slice = slice.filter(|s| s.iter().map(|c| &c.name).eq(columns)).ok_or_else(|| {
            invalid("a tuple in WHERE takes clustering columns, in the order of the primary key")
        })?;
        if terms.len() != slice.len() {
            return Err(invalid("a tuple in WHERE has as many values as columns"));
        }
        let descending = |c: &Column| matches!(c.role, Role::Clustering { descending: true, .. });
        if slice.iter().any(|c| descending(c) != descending(&slice[0])) {
            return Err(invalid(
                "the reference target does not slice by a tuple of ascending and descending \
                 columns; restrict them one by one",
            ));
        }
        let pairs = slice.iter().zip(terms);
        let values = pairs
            .map(|(c, t)| compile(t, receiver(table, c), markers))
            .collect::<Result<_, _>>()?;
        let (from, to) = edges(operator, values).ok_or_else(|| {
            invalid("a tuple in WHERE takes <, <=, > and >=; write equalities one by one")
        })?;
        if self.tuple_start.is_some_and(|s| Some(s) != start) {
            return Err(invalid("tuples in WHERE must begin with the same clustering column"));
        }
        self.tuple_start = start;
        set_edge(&mut self.lower, from, &slice[0].name)?;
        set_edge(&mut self.upper, to, &slice[0].name)
    }

    fn partition_key(
        &mut self,
        table: &Table,
        conditions: &[Conditions<'_>],
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        let complete = conditions.iter().all(|c| c.equal.is_some() || c.within.is_some());
        for (column, conditions) in table.columns.iter().zip(conditions) {
            if complete && conditions.others.is_empty() {
                self.partition.push(choice(
                    table,
                    column,
                    conditions.equal,
                    conditions.within,
                    markers,
                )?);
            } else if complete {
                return Err(twice(&column.name));
            } else {
                self.filter(table, column, conditions, markers)?;
            }
        }
        let token = self.token_from.is_some() || self.token_to.is_some();
        match token && complete {
            true => {
                Err(invalid("Columns cannot be restricted by both a normal relation and token()"))
            }
            false => Ok(()),
        }
    }

    fn clustering(
        &mut self,
        table: &Table,
        conditions: &[Conditions<'_>],
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        let mut open = true;
        for (column, conditions) in table.clustering().iter().zip(conditions) {
            let picked = conditions.equal.is_some() || conditions.within.is_some();
            if picked && !conditions.others.is_empty() {
                return Err(twice(&column.name));
            }
            let slice = !conditions.others.is_empty()
                && conditions
                    .others
                    .iter()
                    .all(|(o, _)| !matches!(o, Operator::Contains | Operator::ContainsKey));
            if open && picked {
                self.prefix.push(choice(
                    table,
                    column,
                    conditions.equal,
                    conditions.within,
                    markers,
                )?);
                continue;
            }
            if open && slice {
                for (operator, term) in &conditions.others {
                    let value = compile(term, receiver(table, column), markers)?;
                    if let Some((from, to)) = edges(*operator, vec![value]) {
                        set_edge(&mut self.lower, from, &column.name)?;
                        set_edge(&mut self.upper, to, &column.name)?;
                    }
                }
            } else {
                self.filter(table, column, conditions, markers)?;
            }
            open = false;
        }
        self.check_tuple_follows_prefix(table)
    }

    /// A slice by a tuple must begin right behind the columns that are restricted by `=`.
    fn check_tuple_follows_prefix(&self, table: &Table) -> Result<(), CqlError> {
        match self.tuple_start {
            Some(start) if start != self.prefix.len() => {
                let name = &table.clustering()[start].name;
                Err(invalid(format!(
                    "Clustering column \"{name}\" cannot be restricted by a tuple here: the \
                     columns before it, and only they, take ="
                )))
            }
            _ => Ok(()),
        }
    }

    fn filter(
        &mut self,
        table: &Table,
        column: &Column,
        conditions: &Conditions<'_>,
        markers: &mut Markers,
    ) -> Result<(), CqlError> {
        if conditions.within.is_some() {
            return Err(invalid(format!(
                "IN predicates on non-primary-key columns ({}) is not yet supported",
                column.name
            )));
        }
        let equal = conditions.equal.map(|t| (Operator::Equal, t));
        for (operator, term) in equal.into_iter().chain(conditions.others.iter().copied()) {
            self.filters.push(Filter::compile(table, column, operator, term, markers)?);
        }
        Ok(())
    }

    /// Whether there is no condition on the clustering columns by key or slice.
    pub(crate) fn is_whole_partition(&self) -> bool {
        self.prefix.is_empty() && !self.is_slice()
    }

    /// Whether a bound is set behind the prefix.
    pub(crate) fn is_slice(&self) -> bool {
        self.lower.is_some() || self.upper.is_some()
    }

    /// The partitions of this execution.
    pub(crate) fn partitions(
        &self,
        table: &Table,
        context: &Context<'_>,
    ) -> Result<Partitions, CqlError> {
        if self.partition.is_empty() {
            return self.ring(context).map(Partitions::Ring);
        }
        let mut keys = Vec::with_capacity(1);
        each_combination(&self.partition, &table.columns, context, |parts| {
            let mut key = Vec::with_capacity(parts.iter().map(|p| p.len() + 3).sum());
            append_partition_key(parts, &mut key)?;
            keys.push((murmur3::token(&key), key));
            Ok(())
        })?;
        if keys.len() > 1 {
            keys.sort();
            keys.dedup();
        }
        Ok(Partitions::Keys(keys))
    }

    fn ring(&self, context: &Context<'_>) -> Result<Option<(i64, i64)>, CqlError> {
        let token = |edge: &TokenEdge| -> Result<i64, CqlError> {
            let bytes = edge.value.evaluate(context)?.required("token")?;
            bytes.as_ref().try_into().map(i64::from_be_bytes).map_err(|_| invalid("Invalid token"))
        };
        let first = match &self.token_from {
            None => Some(i64::MIN),
            Some(edge) if edge.inclusive => Some(token(edge)?),
            Some(edge) => token(edge)?.checked_add(1),
        };
        let last = match &self.token_to {
            None => Some(i64::MAX),
            // The least token as an upper bound closes the ring, as in Cassandra.
            Some(edge) => match token(edge)? {
                i64::MIN => Some(i64::MAX),
                token if edge.inclusive => Some(token),
                token => token.checked_sub(1),
            },
        };
        Ok(first.zip(last).filter(|(first, last)| first <= last))
    }

    /// The rows named by a full primary key.
    pub(crate) fn row_keys(
        &self,
        table: &Table,
        context: &Context<'_>,
    ) -> Result<Vec<RowKey>, CqlError> {
        let columns = table.clustering();
        if columns.is_empty() {
            return Ok(vec![(Vec::new(), Vec::new())]);
        }
        let mut keys = Vec::with_capacity(1);
        each_combination(&self.prefix, columns, context, |parts| {
            let mut clustering = Vec::new();
            parts.iter().for_each(|p| put::bytes(&mut clustering, Some(p)));
            if clustering.len() > usize::from(u16::MAX) {
                let size = clustering.len();
                return Err(invalid(format!(
                    "The sum of all clustering columns is too long ({size} > 65535)"
                )));
            }
            keys.push((prefix_key(columns, parts), clustering));
            Ok(())
        })?;
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    /// The ranges of clustering keys, in the order of the store, without overlap.
    pub(crate) fn ranges(
        &self,
        table: &Table,
        context: &Context<'_>,
    ) -> Result<Vec<KeyRange>, CqlError> {
        if self.is_whole_partition() {
            return Ok(vec![KeyRange::default()]);
        }
        let columns = table.clustering();
        let behind = &columns[self.prefix.len()..];
        let descending = matches!(
            behind.first().map(|c| c.role),
            Some(Role::Clustering { descending: true, .. })
        );
        let (from, to) = match descending {
            false => (&self.lower, &self.upper),
            true => (&self.upper, &self.lower),
        };
        let from = from.as_ref().map(|e| edge_key(e, behind, context)).transpose()?;
        let to = to.as_ref().map(|e| edge_key(e, behind, context)).transpose()?;
        let mut ranges = Vec::with_capacity(1);
        each_combination(&self.prefix, columns, context, |parts| {
            let prefix = prefix_key(columns, parts);
            let bound = |edge: &Option<(Vec<u8>, bool)>, is_end: bool| {
                let (key, past) = match edge {
                    // An excluded start and an included end both lie behind everything that begins
                    // with the edge.
                    Some((key, inclusive)) => ([&prefix[..], key].concat(), *inclusive == is_end),
                    None => (prefix.clone(), is_end),
                };
                let mut key = key;
                if past && !order::successor(&mut key) { None } else { Some(key) }
            };
            if let Some(from) = bound(&from, false) {
                let range = KeyRange { from, to: bound(&to, true) };
                if !range.is_empty() {
                    ranges.push(range);
                }
            }
            Ok(())
        })?;
        ranges.sort_by(|a, b| a.from.cmp(&b.from));
        ranges.dedup();
        Ok(ranges)
    }
}

fn twice(name: &str) -> CqlError {
    invalid(format!(
        "{name} cannot be restricted by more than one relation if it includes an Equal"
    ))
}

fn set_edge<T>(slot: &mut Option<T>, edge: Option<T>, name: &str) -> Result<(), CqlError> {
    match (slot.is_some(), edge) {
        (_, None) => Ok(()),
        (true, Some(_)) => Err(invalid(format!(
            "More than one restriction was found for the same bound on {name}"
        ))),
        (false, edge) => {
            *slot = edge;
            Ok(())
        }
    }
}

/// Lower and upper edge of a comparison.
fn edges(operator: Operator, values: Vec<Expr>) -> Option<(Option<Edge>, Option<Edge>)> {
    let inclusive = matches!(operator, Operator::GreaterOrEqual | Operator::LessOrEqual);
    let edge = Some(Edge { values, inclusive });
    match operator {
        Operator::Greater | Operator::GreaterOrEqual => Some((edge, None)),
        Operator::Less | Operator::LessOrEqual => Some((None, edge)),
        _ => None,
    }
}

/// The key of the first clustering columns' values.
fn prefix_key(columns: &[Column], parts: &[Cow<'_, [u8]>]) -> Vec<u8> {
    let mut key = Vec::with_capacity(parts.iter().map(|p| p.len() + 4).sum());
    for (column, part) in columns.iter().zip(parts) {
        let descending = matches!(column.role, Role::Clustering { descending: true, .. });
        order::append(&column.data_type.kind, part, descending, &mut key);
    }
    key
}

fn edge_key(
    edge: &Edge,
    columns: &[Column],
    context: &Context<'_>,
) -> Result<(Vec<u8>, bool), CqlError> {
    let mut parts = Vec::with_capacity(edge.values.len());
    for (value, column) in edge.values.iter().zip(columns) {
        parts.push(value.evaluate(context)?.required(&column.name)?);
    }
    Ok((prefix_key(columns, &parts), edge.inclusive))
}
