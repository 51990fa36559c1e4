//! INSERT, UPDATE and DELETE -> [`WritePlan`]: checks against the table that CQL asks for.

use crate::catalog::{Column, Role, Table};
use crate::collection::Change;
use crate::condition::Condition;
use crate::cql::ast::{self, Assignment, Delete, Insert, Operator, Relation, Term, Update, Using};
use crate::error::{CqlError, invalid, undefined};
use crate::expr::{Expr, Markers, Receiver, compile};
use crate::restrict::{Restrictions, receiver};
use crate::write::{Action, Operation, Scope, WriteKind, WritePlan, written_column};
use std::sync::Arc;
use wire::cql::ColumnType;

/// Timestamp and TTL as compiled.
type Times = (Option<Expr>, Option<Expr>);

fn times(table: &Table, using: &Using, markers: &mut Markers) -> Result<Times, CqlError> {
    let mut value = |term: &Option<Term>, name, kind: &ColumnType| {
        let to = Receiver { keyspace: &table.keyspace, table: &table.name, name, kind };
        term.as_ref().map(|t| compile(t, to, markers)).transpose()
    };
    if table.is_counter && using.timestamp.is_some() {
        return Err(invalid("Cannot provide custom timestamp for counter updates"));
    }
    if table.is_counter && using.ttl.is_some() {
        return Err(invalid("Cannot provide custom TTL for counter updates"));
    }
    Ok((
        value(&using.timestamp, "[timestamp]", &ColumnType::Bigint)?,
        value(&using.ttl, "[ttl]", &ColumnType::Int)?,
    ))
}

/// Compiles an INSERT.
pub(crate) fn insert(
    table: Arc<Table>,
    insert: &Insert,
    markers: &mut Markers,
) -> Result<WritePlan, CqlError> {
    if table.is_counter {
        return Err(invalid(
            "INSERT statements are not allowed on counter tables, use UPDATE instead",
        ));
    }
    if insert.columns.len() != insert.values.len() {
        return Err(invalid("Unmatched column names/values"));
    }
    let mut relations = Vec::new();
    let mut operations = Vec::new();
    for (n, (name, term)) in insert.columns.iter().zip(&insert.values).enumerate() {
        if insert.columns[..n].contains(name) {
            return Err(invalid(format!("The column names contains duplicates: {name}")));
        }
        let (index, column) = table.column(name).ok_or_else(|| undefined(name))?;
        match column.role {
            Role::Partition(_) | Role::Clustering { .. } => relations.push(Relation::Column {
                column: name.clone(),
                operator: Operator::Equal,
                term: term.clone(),
            }),
            Role::Static | Role::Regular => {
                let value = compile(term, receiver(&table, column), markers)?;
                let action = match column.data_type.is_multicell() {
                    true => Action::Collection(Change::Replace(value)),
                    false => Action::Set(value),
                };
                operations.push(Operation { column: index, action });
            }
        }
    }
    // In the order of the cells, so that a new row is written front to back.
    operations.sort_by_key(|o| table.columns[o.column].id);
    let restrictions = Restrictions::compile(&table, &relations, markers)?;
    let (timestamp, ttl) = times(&table, &insert.using, markers)?;
    let kind = WriteKind::Insert;
    let condition = condition(&table, insert.condition.as_ref(), markers)?;
    let scope = Scope::Rows;
    finish(WritePlan { table, kind, restrictions, scope, operations, timestamp, ttl, condition })
}

/// Compiles an UPDATE.
pub(crate) fn update(
    table: Arc<Table>,
    update: &Update,
    markers: &mut Markers,
) -> Result<WritePlan, CqlError> {
    let (timestamp, ttl) = times(&table, &update.using, markers)?;
    let mut operations = Vec::new();
    for (name, assignment) in &update.assignments {
        let index = written_column(&table, name)?;
        let action = action(&table, &table.columns[index], assignment, markers)?;
        let whole =
            |a: &Action| matches!(a, Action::Set(_) | Action::Collection(Change::Replace(_)));
        let mut same = operations.iter().filter(|o: &&Operation| o.column == index);
        if same.any(|o| whole(&o.action) || whole(&action)) {
            return Err(invalid(format!("Multiple incompatible setting of column {name}")));
        }
        operations.push(Operation { column: index, action });
    }
    let restrictions = Restrictions::compile(&table, &update.relations, markers)?;
    let kind = WriteKind::Update;
    let condition = condition(&table, update.condition.as_ref(), markers)?;
    let scope = Scope::Rows;
    finish(WritePlan { table, kind, restrictions, scope, operations, timestamp, ttl, condition })
}

/// Compiles a DELETE.
pub(crate) fn delete(
    table: Arc<Table>,
    delete: &Delete,
    markers: &mut Markers,
) -> Result<WritePlan, CqlError> {
    if delete.using.ttl.is_some() {
        return Err(CqlError::Syntax("a DELETE takes USING TIMESTAMP, no TTL".to_owned()));
    }
    let mut operations = Vec::new();
    for (name, key) in &delete.columns {
        let index = match table.column(name).ok_or_else(|| undefined(name))? {
            (_, c) if matches!(c.role, Role::Partition(_) | Role::Clustering { .. }) => {
                return Err(invalid(format!(
                    "Invalid identifier {name} for deletion (should not be a PRIMARY KEY part)"
                )));
            }
            (index, _) => index,
        };
        let column = &table.columns[index];
        let action = match (key, column.data_type.is_multicell()) {
            (None, true) => Action::Collection(Change::Replace(Expr::Null)),
            (None, false) => Action::Set(Expr::Null),
            (Some(key), true) => {
                Action::Collection(Change::RemoveAt(element_key(&table, column, key, markers)?))
            }
            (Some(_), false) => {
                return Err(invalid(format!(
                    "Invalid deletion operation for non collection column {name}"
                )));
            }
        };
        operations.push(Operation { column: index, action });
    }
    let (timestamp, ttl) = times(&table, &delete.using, markers)?;
    let restrictions = Restrictions::compile(&table, &delete.relations, markers)?;
    let scope = match operations.is_empty() {
        true if restrictions.prefix.len() == table.clustering_count => Scope::Rows,
        true if restrictions.is_whole_partition() => Scope::Partitions,
        true => Scope::Ranges,
        false => Scope::Rows,
    };
    // A row without clustering is its partition.
    let scope = match (scope, table.clustering_count) {
        (Scope::Rows, 0) if operations.is_empty() => Scope::Partitions,
        (scope, _) => scope,
    };
    let kind = WriteKind::Delete;
    let condition = condition(&table, delete.condition.as_ref(), markers)?;
    finish(WritePlan { table, kind, restrictions, scope, operations, timestamp, ttl, condition })
}

fn condition(
    table: &Table,
    condition: Option<&ast::Condition>,
    markers: &mut Markers,
) -> Result<Option<Condition>, CqlError> {
    condition.map(|condition| Condition::compile(table, condition, markers)).transpose()
}

/// Checks what all writes have in common: the key is complete, nothing else stands in WHERE.
fn finish(plan: WritePlan) -> Result<WritePlan, CqlError> {
    let plan = complete(plan)?;
    if let Some(condition) = &plan.condition {
        condition.check(&plan)?;
    }
    Ok(plan)
}

fn complete(mut plan: WritePlan) -> Result<WritePlan, CqlError> {
    let table = &plan.table;
    if let Some(filter) = plan.restrictions.filters.first() {
        let column = &table.columns[filter.column];
        return Err(match column.role {
            Role::Partition(_) => missing_partition(table),
            Role::Clustering { .. } => missing_clustering(table, &plan.restrictions),
            _ => {
                invalid(format!("Non PRIMARY KEY columns found in where clause: {} ", column.name))
            }
        });
    }
    if plan.restrictions.partition.is_empty() {
        return Err(missing_partition(table));
    }
    if plan.scope != Scope::Rows {
        return Ok(plan);
    }
    let complete = plan.restrictions.prefix.len() == table.clustering_count;
    if !plan.operations.is_empty() && !complete && !plan.touches(Role::Regular) {
        if !plan.restrictions.is_whole_partition() {
            return Err(missing_clustering(table, &plan.restrictions));
        }
        plan.scope = Scope::Statics;
        return Ok(plan);
    }
    match complete {
        true => Ok(plan),
        false if plan.kind == WriteKind::Delete && plan.restrictions.is_slice() => {
            Err(invalid("Range deletions are not supported for specific columns"))
        }
        false => Err(missing_clustering(table, &plan.restrictions)),
    }
}

fn missing_partition(table: &Table) -> CqlError {
    let names: Vec<_> =
        table.columns[..table.partition_count].iter().map(|c| c.name.as_str()).collect();
    let names = names.join(", ");
    invalid(format!(
        "Some partition key parts are missing or not restricted by = or IN; the key is ({names})"
    ))
}

pub(crate) fn missing_clustering(table: &Table, restrictions: &Restrictions) -> CqlError {
    let missing = table.clustering().iter().skip(restrictions.prefix.len());
    let names: Vec<_> = missing.map(|c| c.name.as_str()).collect();
    invalid(format!("Some clustering keys are missing: {}", names.join(", ")))
}

fn element_key(
    table: &Table,
    column: &Column,
    key: &Term,
    markers: &mut Markers,
) -> Result<Expr, CqlError> {
    let (label, kind) = match &column.data_type.kind {
        ColumnType::List(_) => ("idx", ColumnType::Int),
        ColumnType::Map(key, _) => ("key", (**key).clone()),
        ColumnType::Set(element) => ("value", (**element).clone()),
        other => ("value", other.clone()),
    };
    let name = format!("{label}({})", column.name);
    compile(key, Receiver { name: &name, kind: &kind, ..receiver(table, column) }, markers)
}

fn action(
    table: &Table,
    column: &Column,
    assignment: &Assignment,
    markers: &mut Markers,
) -> Result<Action, CqlError> {
    let to = receiver(table, column);
    let name = &column.name;
    let is_counter = column.data_type.kind == ColumnType::Counter;
    let (is_multicell, kind) = (column.data_type.is_multicell(), &column.data_type.kind);
    let unfit = |sign: &str| {
        let kind = column.data_type.name();
        invalid(format!(
            "Invalid operation ({name} = {name} {sign} ..) for column {name} of type {kind}"
        ))
    };
    Ok(match assignment {
        Assignment::Set(_) if is_counter => {
            return Err(invalid(format!(
                "Cannot set the value of counter column {name} (counters can only be \
                 incremented/decremented, not set)"
            )));
        }
        Assignment::Set(term) => {
            let value = compile(term, to, markers)?;
            match is_multicell {
                true => Action::Collection(Change::Replace(value)),
                false => Action::Set(value),
            }
        }
        Assignment::Add(term) | Assignment::Subtract(term) if is_counter => {
            let negative = matches!(assignment, Assignment::Subtract(_));
            Action::Count { delta: compile(term, to, markers)?, negative }
        }
        Assignment::Add(term) if is_multicell => {
            Action::Collection(Change::Add(compile(term, to, markers)?))
        }
        Assignment::Prepend(term) if matches!(kind, ColumnType::List(_)) && is_multicell => {
            Action::Collection(Change::Prepend(compile(term, to, markers)?))
        }
        Assignment::Subtract(term) if is_multicell => {
            let removed = match kind {
                ColumnType::Map(key, _) => ColumnType::Set(key.clone()),
                other => other.clone(),
            };
            let to = Receiver { kind: &removed, ..to };
            Action::Collection(Change::Remove(compile(term, to, markers)?))
        }
        Assignment::Element(key, term) if is_multicell && !matches!(kind, ColumnType::Set(_)) => {
            let key = element_key(table, column, key, markers)?;
            let element = match kind {
                ColumnType::List(element) | ColumnType::Map(_, element) => element,
                other => other,
            };
            let label = format!("value({name})");
            let to = Receiver { name: &label, kind: element, ..to };
            Action::Collection(Change::Put { key, value: compile(term, to, markers)? })
        }
        Assignment::Element(..) => return Err(unfit("[key]")),
        Assignment::Subtract(_) => return Err(unfit("-")),
        Assignment::Add(_) | Assignment::Prepend(_) => return Err(unfit("+")),
    })
}
