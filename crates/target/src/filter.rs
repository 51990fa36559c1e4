//! ALLOW FILTERING: conditions that no key serves, applied to each row that is read.

use crate::catalog::{Column, Table};
use crate::cql::ast::{Operator, Term};
use crate::error::{CqlError, invalid};
use crate::expr::{Context, Expr, Markers, Receiver, compile};
use crate::order;
use crate::restrict::receiver;
use crate::types::elements;
use std::cmp::Ordering;
use wire::cql::ColumnType;

/// A compiled condition.
#[derive(Debug)]
pub(crate) struct Filter {
    /// Index of the column in the table.
    pub(crate) column: usize,
    operator: Operator,
    /// Type of what is compared: the column's, or its element's.
    kind: ColumnType,
    value: Expr,
}

/// A condition with its value of this execution.
#[derive(Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) filter: &'a Filter,
    key: Vec<u8>,
}

impl Filter {
    /// Compiles `column operator term`.
    pub(crate) fn compile(
        table: &Table,
        column: &Column,
        operator: Operator,
        term: &Term,
        markers: &mut Markers,
    ) -> Result<Self, CqlError> {
        let kind = match (operator, &column.data_type.kind) {
            (Operator::Contains, ColumnType::List(e) | ColumnType::Set(e)) => (**e).clone(),
            (Operator::Contains, ColumnType::Map(_, value)) => (**value).clone(),
            (Operator::ContainsKey, ColumnType::Map(key, _)) => (**key).clone(),
            (Operator::Contains | Operator::ContainsKey, _) => {
                return Err(invalid(format!("Cannot use CONTAINS on column {}", column.name)));
            }
            (_, kind) if column.data_type.is_multicell() => {
                return Err(invalid(format!(
                    "Collection column '{}' ({}) cannot be restricted by a '{operator:?}' relation",
                    column.name,
                    crate::types::type_name(kind)
                )));
            }
            (Operator::Equal, kind) => kind.clone(),
            (_, kind) if order::is_ordered(kind) => kind.clone(),
            _ => {
                return Err(invalid(format!(
                    "the reference target does not compare values of column {} by range",
                    column.name
                )));
            }
        };
        let to = Receiver { kind: &kind, ..receiver(table, column) };
        let value = compile(term, to, markers)?;
        let column = table.columns.iter().position(|c| c.name == column.name).unwrap_or(0);
        Ok(Self { column, operator, kind, value })
    }

    /// With the value of this execution.
    pub(crate) fn evaluate(
        &self,
        name: &str,
        context: &Context<'_>,
    ) -> Result<Condition<'_>, CqlError> {
        let value = self.value.evaluate(context)?.required(name)?;
        let mut key = Vec::new();
        order::append_any(&self.kind, &value, &mut key);
        Ok(Condition { filter: self, key })
    }
}

impl Condition<'_> {
    /// Whether a column's value (serialized, None for null) satisfies the condition.
    pub(crate) fn accepts(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return false };
        let compare = |value: &[u8]| {
            let mut key = Vec::with_capacity(value.len() + 2);
            order::append_any(&self.filter.kind, value, &mut key);
            key.cmp(&self.key)
        };
        match self.filter.operator {
            Operator::Equal => compare(value) == Ordering::Equal,
            Operator::Less => compare(value) == Ordering::Less,
            Operator::LessOrEqual => compare(value) != Ordering::Greater,
            Operator::Greater => compare(value) == Ordering::Greater,
            Operator::GreaterOrEqual => compare(value) != Ordering::Less,
            // `elements` of a map gives keys and values in turn: which of them counts is told by
            // `step`.
            Operator::Contains | Operator::ContainsKey => self.contains(value, compare),
        }
    }

    fn contains(&self, value: &[u8], compare: impl Fn(&[u8]) -> Ordering) -> bool {
        let count = value.first_chunk().map_or(0, |c| i32::from_be_bytes(*c)).max(0) as usize;
        let Ok(items) = elements(value) else { return false };
        let items: Vec<&[u8]> = items.filter_map(Result::ok).collect();
        let is_map = items.len() > count;
        let step = if is_map { 2 } else { 1 };
        let first = usize::from(is_map && self.filter.operator == Operator::Contains);
        items.iter().skip(first).step_by(step).any(|i| compare(i) == Ordering::Equal)
    }
}
