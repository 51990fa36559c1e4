//! Changes of lists, sets and maps that are stored by element.
//!
//! A list's elements are ordered by numbers from one sequence: appended ones count up from it,
//! prepended ones down. Setting or removing by index, and removing by value, look at the elements
//! that are live, as Cassandra's do.

use crate::error::{CqlError, invalid};
use crate::expr::{Context, Expr, Operand};
use crate::order;
use crate::store::{Elements, Write};
use crate::types::elements;
use crate::write::list_numbers;
use std::borrow::Cow;
use std::sync::atomic::AtomicI64;
use wire::cql::ColumnType;

/// A compiled change.
#[derive(Debug)]
pub(crate) enum Change {
    /// `c = ..`
    Replace(Expr),
    /// `c = c + ..`
    Add(Expr),
    /// `c = .. + c`, lists only.
    Prepend(Expr),
    /// `c = c - ..`: values of a list, elements of a set, keys of a map.
    Remove(Expr),
    /// `c[key] = value`; a null value removes.
    Put { key: Expr, value: Expr },
    /// `DELETE c[key]`.
    RemoveAt(Expr),
}

/// A change with its operands; bytes are validated collections or elements.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Replace(Option<Cow<'a, [u8]>>),
    Add(Cow<'a, [u8]>),
    Prepend(Cow<'a, [u8]>),
    Remove(Cow<'a, [u8]>),
    Put { key: Cow<'a, [u8]>, value: Option<Cow<'a, [u8]>> },
}

fn optional(operand: Operand<'_>) -> Option<Cow<'_, [u8]>> {
    match operand {
        Operand::Bytes(bytes) => Some(bytes),
        Operand::Null | Operand::Unset => None,
    }
}

impl Change {
    /// With the operands of this execution; None when there is nothing to do.
    pub(crate) fn bind<'a>(
        &'a self,
        name: &str,
        context: &Context<'a>,
    ) -> Result<Option<Step<'a>>, CqlError> {
        Ok(match self {
            Self::Replace(value) => match value.evaluate(context)? {
                Operand::Unset => None,
                value => Some(Step::Replace(optional(value))),
            },
            Self::Add(value) => optional(value.evaluate(context)?).map(Step::Add),
            Self::Prepend(value) => optional(value.evaluate(context)?).map(Step::Prepend),
            Self::Remove(value) => optional(value.evaluate(context)?).map(Step::Remove),
            Self::Put { key, value } => {
                let key = element_key(key.evaluate(context)?, name)?;
                match value.evaluate(context)? {
                    Operand::Unset => None,
                    value => Some(Step::Put { key, value: optional(value) }),
                }
            }
            Self::RemoveAt(key) => {
                let key = element_key(key.evaluate(context)?, name)?;
                Some(Step::Put { key, value: None })
            }
        })
    }
}

fn element_key<'a>(key: Operand<'a>, name: &str) -> Result<Cow<'a, [u8]>, CqlError> {
    optional(key).ok_or_else(|| invalid(format!("Invalid null or unset key or index for {name}")))
}

impl Step<'_> {
    /// Does it; returns the growth in bytes.
    pub(crate) fn apply(
        &self,
        to: &mut Elements,
        kind: &ColumnType,
        write: Write,
        sequence: &AtomicI64,
    ) -> i64 {
        match self {
            Self::Replace(None) => to.delete(write.timestamp_us),
            Self::Replace(Some(bytes)) => {
                // What was there goes, what comes with the same time stays.
                let freed = to.delete(write.timestamp_us.saturating_sub(1));
                freed + add(to, kind, bytes, write, sequence, false)
            }
            Self::Add(bytes) => add(to, kind, bytes, write, sequence, false),
            Self::Prepend(bytes) => add(to, kind, bytes, write, sequence, true),
            Self::Remove(bytes) => items(bytes).map(|i| remove(to, kind, i, write)).sum(),
            Self::Put { key, value } => put(to, kind, key, value.as_deref(), write),
        }
    }
}

/// The items of a validated collection.
fn items(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    elements(bytes).ok().into_iter().flatten().filter_map(Result::ok)
}

fn element_order(kind: &ColumnType, element: &[u8]) -> Vec<u8> {
    let element_kind = match kind {
        ColumnType::Set(element) | ColumnType::Map(element, _) => element,
        other => other,
    };
    let mut key = Vec::with_capacity(element.len() + 2);
    order::append_any(element_kind, element, &mut key);
    key
}

fn add(
    to: &mut Elements,
    kind: &ColumnType,
    bytes: &[u8],
    write: Write,
    sequence: &AtomicI64,
    front: bool,
) -> i64 {
    let mut growth = 0;
    match kind {
        ColumnType::List(_) => {
            let first = list_numbers(sequence, items(bytes).count(), front);
            for (number, item) in (first..).zip(items(bytes)) {
                let key = ((number as u64) ^ (1 << 63)).to_be_bytes();
                growth += to.write(&key, &[], Some(item), write);
            }
        }
        ColumnType::Map(..) => {
            let mut items = items(bytes);
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                growth += to.write(&element_order(kind, key), key, Some(value), write);
            }
        }
        _ => {
            for item in items(bytes) {
                growth += to.write(&element_order(kind, item), item, Some(&[]), write);
            }
        }
    }
    growth
}

fn remove(to: &mut Elements, kind: &ColumnType, item: &[u8], write: Write) -> i64 {
    match kind {
        ColumnType::List(_) => {
            let live = to.live_keys(write.now_s).filter(|(_, value)| *value == item);
            let keys: Vec<Vec<u8>> = live.map(|(key, _)| key.to_vec()).collect();
            keys.iter().map(|key| to.write(key, &[], None, write)).sum()
        }
        _ => to.write(&element_order(kind, item), item, None, write),
    }
}

fn put(
    to: &mut Elements,
    kind: &ColumnType,
    key: &[u8],
    value: Option<&[u8]>,
    write: Write,
) -> i64 {
    match kind {
        ColumnType::List(_) => {
            let index = key.try_into().map_or(-1, i32::from_be_bytes);
            let key = usize::try_from(index)
                .ok()
                .and_then(|i| to.live_keys(write.now_s).nth(i).map(|(key, _)| key.to_vec()));
            // Beyond the end there is nothing to set or remove.
            key.map_or(0, |key| to.write(&key, &[], value, write))
        }
        _ => to.write(&element_order(kind, key), key, value, write),
    }
}
