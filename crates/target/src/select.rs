//! SELECT -> [`SelectPlan`]: which columns come out, of which partitions and rows, in which order.

use crate::catalog::{Column, Role, Table};
use crate::choice::Choice;
use crate::cql::ast::{Select, Selector, Term};
use crate::error::{CqlError, invalid, undefined};
use crate::expr::{Expr, Markers, Receiver, compile};
use crate::restrict::Restrictions;
use std::sync::Arc;
use wire::cql::response::{Column as WireColumn, Metadata};
use wire::cql::{ColumnType, put};

/// One column of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// A column of the table, by index.
    Column(usize),
    Writetime(usize),
    Ttl(usize),
    Token,
    /// Rows, or rows in which the column is not null.
    Count(Option<usize>),
}

/// A compiled SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) restrictions: Restrictions,
    pub(crate) distinct: bool,
    /// Rows come from the end of the store's order to its start.
    pub(crate) reversed: bool,
    /// ORDER BY was given.
    pub(crate) ordered: bool,
    pub(crate) limit: Option<Expr>,
    pub(crate) partition_limit: Option<Expr>,
    /// The answer's columns.
    pub(crate) metadata: Metadata,
    /// Their specifications, encoded: one keyspace and table, then name and type of each.
    pub(crate) columns_encoded: Vec<u8>,
    /// At most one row can come: the key is complete and has no IN.
    pub(crate) is_point: bool,
}

const FILTERING: &str = "Cannot execute this query as it might involve data filtering and thus may \
     have unpredictable performance. If you want to execute this query despite the performance \
     unpredictability, use ALLOW FILTERING";

/// Compiles a SELECT.
pub(crate) fn compile_select(
    table: Arc<Table>,
    select: &Select,
    markers: &mut Markers,
) -> Result<SelectPlan, CqlError> {
    let (outputs, metadata) = outputs(&table, select)?;
    let restrictions = Restrictions::compile(&table, &select.relations, markers)?;
    if select.distinct {
        check_distinct(&table, &outputs, &restrictions)?;
    }
    let scans = restrictions.partition.is_empty() && !restrictions.is_whole_partition();
    if !select.allow_filtering && (!restrictions.filters.is_empty() || scans) {
        return Err(filtering_error(&table, &restrictions));
    }
    let reversed = reversed(&table, select, &restrictions)?;
    let mut limit = |term: &Option<Term>, name| {
        let to = Receiver {
            keyspace: &table.keyspace,
            table: &table.name,
            name,
            kind: &ColumnType::Int,
        };
        term.as_ref().map(|t| compile(t, to, markers)).transpose()
    };
    let partition_limit = limit(&select.per_partition_limit, "[per_partition_limit]")?;
    let limit = limit(&select.limit, "[limit]")?;
    let mut columns_encoded = Vec::new();
    put::string(&mut columns_encoded, &table.keyspace);
    put::string(&mut columns_encoded, &table.name);
    for column in &metadata.columns {
        put::string(&mut columns_encoded, &column.name);
        column.kind.encode(&mut columns_encoded);
    }
    let one = |choices: &[Choice]| choices.iter().all(|c| matches!(c, Choice::One(_)));
    let is_point = !restrictions.partition.is_empty()
        && restrictions.prefix.len() == table.clustering_count
        && one(&restrictions.partition)
        && one(&restrictions.prefix);
    Ok(SelectPlan {
        distinct: select.distinct,
        ordered: !select.order.is_empty(),
        table,
        outputs,
        restrictions,
        reversed,
        limit,
        partition_limit,
        metadata,
        columns_encoded,
        is_point,
    })
}

/// The message names the likeliest cause, as Cassandra does.
fn filtering_error(table: &Table, restrictions: &Restrictions) -> CqlError {
    let skipped = restrictions.filters.iter().find_map(|f| {
        let column = &table.columns[f.column];
        let Role::Clustering { position, .. } = column.role else { return None };
        let before = table.clustering().get(position.checked_sub(1)?)?;
        Some((&column.name, &before.name))
    });
    match skipped {
        Some((name, before)) if !restrictions.partition.is_empty() => invalid(format!(
            "PRIMARY KEY column \"{name}\" cannot be restricted as preceding column \"{before}\" \
             is not restricted by =; or use ALLOW FILTERING"
        )),
        _ => invalid(FILTERING),
    }
}

fn outputs(table: &Table, select: &Select) -> Result<(Vec<Output>, Metadata), CqlError> {
    let mut outputs = Vec::new();
    let mut columns = Vec::new();
    let mut push = |output, name: String, kind: ColumnType| {
        outputs.push(output);
        let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
        columns.push(WireColumn { keyspace, table, name, kind });
    };
    match &select.selectors {
        None => {
            for (index, column) in table.columns.iter().enumerate() {
                push(Output::Column(index), column.name.clone(), column.data_type.kind.clone());
            }
        }
        Some(selectors) => {
            for (selector, alias) in selectors {
                let (output, name, kind) = output(table, selector)?;
                push(output, alias.clone().unwrap_or(name), kind);
            }
        }
    }
    let counts = outputs.iter().filter(|o| matches!(o, Output::Count(_))).count();
    if counts > 0 && counts < outputs.len() {
        return Err(invalid(
            "the reference target does not mix COUNT with columns; send two statements",
        ));
    }
    let column_count = columns.len();
    Ok((outputs, Metadata { column_count, columns, paging_state: None }))
}

fn output(table: &Table, selector: &Selector) -> Result<(Output, String, ColumnType), CqlError> {
    let find = |name: &str| table.column(name).ok_or_else(|| undefined(name));
    Ok(match selector {
        Selector::Column(name) => {
            let (index, column) = find(name)?;
            (Output::Column(index), name.clone(), column.data_type.kind.clone())
        }
        Selector::Count(None) => (Output::Count(None), "count".to_owned(), ColumnType::Bigint),
        Selector::Count(Some(name)) => {
            let (index, _) = find(name)?;
            (Output::Count(Some(index)), format!("system.count({name})"), ColumnType::Bigint)
        }
        Selector::Writetime(name) => {
            let index = timed(find(name)?, "writetime")?;
            (Output::Writetime(index), format!("writetime({name})"), ColumnType::Bigint)
        }
        Selector::Ttl(name) => {
            let index = timed(find(name)?, "ttl")?;
            (Output::Ttl(index), format!("ttl({name})"), ColumnType::Int)
        }
        Selector::Token(names) => {
            let key = &table.columns[..table.partition_count];
            if !key.iter().map(|c| &c.name).eq(names) {
                return Err(invalid("token() takes all columns of the partition key, in order"));
            }
            let name = format!("system.token({})", names.join(", "));
            (Output::Token, name, ColumnType::Bigint)
        }
    })
}

fn timed((index, column): (usize, &Column), function: &str) -> Result<usize, CqlError> {
    let name = &column.name;
    match column.role {
        Role::Partition(_) | Role::Clustering { .. } => Err(invalid(format!(
            "Cannot use selection function {function} on PRIMARY KEY part {name}"
        ))),
        _ if column.data_type.is_multicell() => Err(invalid(format!(
            "Cannot use selection function {function} on non-frozen collection {name}"
        ))),
        _ => Ok(index),
    }
}

fn check_distinct(
    table: &Table,
    outputs: &[Output],
    restrictions: &Restrictions,
) -> Result<(), CqlError> {
    for output in outputs {
        let Output::Column(index) = output else {
            return Err(invalid("SELECT DISTINCT takes columns only"));
        };
        let column = &table.columns[*index];
        if !matches!(column.role, Role::Partition(_) | Role::Static) {
            return Err(invalid(format!(
                "SELECT DISTINCT queries must only request partition key columns and/or static \
                 columns (not {})",
                column.name
            )));
        }
    }
    for (index, column) in table.columns.iter().enumerate().take(table.partition_count) {
        if !outputs.contains(&Output::Column(index)) {
            return Err(invalid(format!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                column.name
            )));
        }
    }
    match restrictions.is_whole_partition() && restrictions.filters.is_empty() {
        true => Ok(()),
        false => Err(invalid("SELECT DISTINCT takes conditions on the partition key only")),
    }
}

/// Whether ORDER BY asks for the reverse of the store's order.
fn reversed(table: &Table, select: &Select, restrictions: &Restrictions) -> Result<bool, CqlError> {
    if select.order.is_empty() {
        return Ok(false);
    }
    if restrictions.partition.is_empty() {
        return Err(invalid(
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ));
    }
    let mut clustering = table.clustering().iter().enumerate();
    let mut reversed = None;
    for (name, descending) in &select.order {
        let fixed =
            |position: usize| matches!(restrictions.prefix.get(position), Some(Choice::One(_)));
        // Columns restricted by = may be left out.
        let found = clustering.find(|(position, c)| c.name == *name || !fixed(*position));
        let Some((_, column)) = found.filter(|(_, c)| c.name == *name) else {
            return Err(match table.column(name) {
                None => undefined(name),
                Some((_, c)) if !matches!(c.role, Role::Clustering { .. }) => invalid(format!(
                    "Order by is currently only supported on the clustered columns of the PRIMARY \
                     KEY, got {name}"
                )),
                Some(_) => invalid(
                    "Order by currently only supports the ordering of columns following their \
                     declared order in the PRIMARY KEY",
                ),
            });
        };
        let declared = matches!(column.role, Role::Clustering { descending: true, .. });
        let opposite = declared != *descending;
        if *reversed.get_or_insert(opposite) != opposite {
            return Err(invalid("Unsupported order by relation"));
        }
    }
    Ok(reversed.unwrap_or(false))
}
