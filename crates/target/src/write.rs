//! INSERT, UPDATE and DELETE, compiled: what they need and what they do to cells.
//!
//! An execution has two steps, so that a batch is refused before any part of it is done:
//! [`WritePlan::bind`] evaluates and validates everything, [`Bound::apply`] cannot fail.

use crate::catalog::{Role, Table};
use crate::collection;
use crate::condition::Condition;
use crate::error::{CqlError, invalid, undefined};
use crate::expr::{Context, Expr, Operand};
use crate::options::TTL_S_MAX;
use crate::restrict::{Partitions, Restrictions, RowKey};
use crate::store::{Expiry, KeyRange, Partition, Row, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Which statement a plan was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Update,
    Delete,
}

/// What a plan touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The rows of full primary keys, and static columns on the way.
    Rows,
    /// Static columns only.
    Statics,
    /// Whole partitions (DELETE).
    Partitions,
    /// Slices of partitions (DELETE).
    Ranges,
}

/// What is done to a column.
#[derive(Debug)]
pub(crate) enum Action {
    /// One value; null deletes.
    Set(Expr),
    Count {
        delta: Expr,
        negative: bool,
    },
    /// A collection by element.
    Collection(collection::Change),
}

/// An action on a column.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Index in the table.
    pub(crate) column: usize,
    pub(crate) action: Action,
}

/// A compiled write.
#[derive(Debug)]
pub(crate) struct WritePlan {
    pub(crate) table: Arc<Table>,
    pub(crate) kind: WriteKind,
    pub(crate) restrictions: Restrictions,
    pub(crate) scope: Scope,
    pub(crate) operations: Vec<Operation>,
    pub(crate) timestamp: Option<Expr>,
    pub(crate) ttl: Option<Expr>,
    /// What must hold for it to be done.
    pub(crate) condition: Option<Condition>,
}

/// An operation's operands of this execution.
#[derive(Debug)]
enum Step<'a> {
    Set(Operand<'a>),
    Count(i64),
    Collection(collection::Step<'a>),
    /// The value was unset: the column stays as it is.
    Nothing,
}

/// A write with all it needs.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) plan: &'a WritePlan,
    /// Tokens and keys.
    pub(crate) partitions: Vec<(i64, Vec<u8>)>,
    pub(crate) rows: Vec<RowKey>,
    ranges: Vec<KeyRange>,
    steps: Vec<Step<'a>>,
    write: Write,
}

fn integer(value: &Option<Expr>, context: &Context<'_>) -> Result<Option<i64>, CqlError> {
    let Some(expr) = value else { return Ok(None) };
    let operand = expr.evaluate(context)?;
    Ok(operand.bytes().and_then(|bytes| match bytes.len() {
        4 => bytes.try_into().ok().map(|b| i64::from(i32::from_be_bytes(b))),
        _ => bytes.try_into().ok().map(i64::from_be_bytes),
    }))
}

impl WritePlan {
    /// Evaluates and validates everything. `timestamp_us` counts without `USING TIMESTAMP`.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] for values that do not fit.
    pub(crate) fn bind<'a>(
        &'a self,
        context: &Context<'a>,
        timestamp_us: i64,
    ) -> Result<Bound<'a>, CqlError> {
        let partitions = match self.restrictions.partitions(&self.table, context)? {
            Partitions::Keys(keys) => keys,
            Partitions::Ring(_) => return Err(invalid("a write needs the whole partition key")),
        };
        let (rows, ranges) = match self.scope {
            Scope::Rows => (self.restrictions.row_keys(&self.table, context)?, Vec::new()),
            Scope::Ranges => (Vec::new(), self.restrictions.ranges(&self.table, context)?),
            Scope::Statics | Scope::Partitions => (Vec::new(), Vec::new()),
        };
        let mut steps = Vec::with_capacity(self.operations.len());
        for operation in &self.operations {
            steps.push(self.step(operation, context)?);
        }
        let write = self.times(context, timestamp_us)?;
        Ok(Bound { plan: self, partitions, rows, ranges, steps, write })
    }

    fn step<'a>(
        &'a self,
        operation: &'a Operation,
        context: &Context<'a>,
    ) -> Result<Step<'a>, CqlError> {
        match &operation.action {
            Action::Set(value) => match value.evaluate(context)? {
                Operand::Unset => Ok(Step::Nothing),
                value => Ok(Step::Set(value)),
            },
            Action::Count { delta, negative } => {
                let name = &self.table.columns[operation.column].name;
                match delta.evaluate(context)? {
                    Operand::Unset => Ok(Step::Nothing),
                    Operand::Null => {
                        Err(invalid(format!("Invalid null value for counter increment of {name}")))
                    }
                    Operand::Bytes(bytes) => {
                        let delta = bytes.as_ref().try_into().map_or(0, i64::from_be_bytes);
                        Ok(Step::Count(if *negative { delta.wrapping_neg() } else { delta }))
                    }
                }
            }
            Action::Collection(change) => {
                let name = &self.table.columns[operation.column].name;
                Ok(change.bind(name, context)?.map_or(Step::Nothing, Step::Collection))
            }
        }
    }

    fn times(&self, context: &Context<'_>, timestamp_us: i64) -> Result<Write, CqlError> {
        let timestamp_us = match integer(&self.timestamp, context)? {
            Some(i64::MIN) => {
                return Err(invalid(format!(
                    "Out of bound timestamp, must be in [{}, {}]",
                    i64::MIN + 1,
                    i64::MAX
                )));
            }
            Some(given) => given,
            None => timestamp_us,
        };
        let now_s = seconds(context.now_us);
        let ttl_s = match integer(&self.ttl, context)? {
            Some(ttl) if ttl < 0 => {
                return Err(invalid(format!("A TTL must be greater or equal to 0, but was {ttl}")));
            }
            Some(ttl) if ttl > TTL_S_MAX => {
                return Err(invalid(format!(
                    "ttl is too large. requested ({ttl}) maximum ({TTL_S_MAX})"
                )));
            }
            Some(ttl) => ttl as u32,
            None => self.table.options.default_ttl_s,
        };
        let at_s = if ttl_s == 0 { 0 } else { now_s.saturating_add(ttl_s) };
        Ok(Write { timestamp_us, expiry: Expiry { ttl_s, at_s }, now_s })
    }
}

/// Microseconds since 1970 as whole seconds.
pub(crate) fn seconds(now_us: i64) -> u32 {
    u32::try_from(now_us.div_euclid(1_000_000)).unwrap_or(0)
}

impl Bound<'_> {
    /// Does it. `sequence` orders the elements of lists.
    pub(crate) fn apply(&self, sequence: &AtomicI64) {
        for (token, key) in &self.partitions {
            let store = &self.plan.table.store;
            store.write(*token, key, |partition| self.apply_to(partition, sequence));
        }
    }

    /// Does it to one of its partitions; returns the growth in bytes.
    #[inline]
    pub(crate) fn apply_to(&self, partition: &mut Partition, sequence: &AtomicI64) -> i64 {
        match self.plan.scope {
            Scope::Partitions => partition.delete(self.write.timestamp_us),
            Scope::Ranges => self
                .ranges
                .iter()
                .map(|r| partition.delete_range(r.clone(), self.write.timestamp_us))
                .sum(),
            Scope::Statics => partition.write_statics(|row| self.apply_row(row, true, sequence)),
            Scope::Rows => {
                let mut growth = 0;
                for (key, clustering) in &self.rows {
                    growth += partition
                        .write_row(key, clustering, |row| self.apply_row(row, false, sequence));
                }
                if self.plan.touches(Role::Static) {
                    growth += partition.write_statics(|row| self.apply_row(row, true, sequence));
                }
                growth
            }
        }
    }

    fn apply_row(&self, row: &mut Row, statics: bool, sequence: &AtomicI64) -> i64 {
        if !statics {
            match self.plan.kind {
                WriteKind::Insert => {
                    row.reserve(self.steps.len());
                    row.mark(self.write);
                }
                WriteKind::Delete if self.steps.is_empty() => {
                    return row.delete(self.write.timestamp_us);
                }
                _ => {}
            }
        }
        let mut growth = 0;
        for (operation, step) in self.plan.operations.iter().zip(&self.steps) {
            let column = &self.plan.table.columns[operation.column];
            if (column.role == Role::Static) != statics {
                continue;
            }
            growth += match step {
                Step::Nothing => 0,
                Step::Set(value) => row.write(column.id, value.bytes(), self.write),
                Step::Count(delta) => row.add(column.id, *delta, self.write),
                Step::Collection(step) => {
                    let kind = &column.data_type.kind;
                    row.elements(column.id, self.write).map_or(0, |(elements, growth)| {
                        growth + step.apply(elements, kind, self.write, sequence)
                    })
                }
            };
        }
        growth
    }
}

impl WritePlan {
    /// Whether an operation is on a column of this role.
    pub(crate) fn touches(&self, role: Role) -> bool {
        self.operations.iter().any(|o| self.table.columns[o.column].role == role)
    }
}

/// Numbers for `count` list elements, in order.
pub(crate) fn list_numbers(sequence: &AtomicI64, count: usize, front: bool) -> i64 {
    let count = count as i64;
    let first = sequence.fetch_add(count, Ordering::Relaxed);
    if front { -first - count } else { first }
}

/// The column a write names, which must not be part of the key.
pub(crate) fn written_column(table: &Table, name: &str) -> Result<usize, CqlError> {
    let (index, column) = table.column(name).ok_or_else(|| undefined(name))?;
    match column.role {
        Role::Partition(_) | Role::Clustering { .. } => {
            Err(invalid(format!("PRIMARY KEY part {name} found in SET part")))
        }
        _ => Ok(index),
    }
}
