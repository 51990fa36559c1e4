//! Lightweight transactions: `IF ..` of a write, compiled, and writes that are done if the
//! conditions among them hold.
//!
//! In: what a statement says, bound values. Out: rows of `[applied]` and, where it is false, of
//! what is there instead. All is decided under the lock of the one partition. Source: Apache
//! Cassandra 3.11: `ModificationStatement`, `BatchStatement`, `ColumnCondition`. A given timestamp,
//! counters and IN on the key are refused, as there.

use crate::catalog::{Role, Table};
use crate::choice::Choice;
use crate::cql::ast::{self, Comparison, InTerms, Operator, Term};
use crate::error::{CqlError, invalid, undefined};
use crate::expr::{Context, Expr, Markers, Operand, Receiver, compile};
use crate::order;
use crate::read::{View, value};
use crate::restrict::receiver;
use crate::store::{Partition, Row};
use crate::types::elements;
use crate::write::{Bound, Scope, WritePlan};
use crate::write_compile::missing_clustering;
use std::sync::atomic::AtomicI64;
use wire::cql::response::{result_kind, rows_flags};
use wire::cql::{ColumnType, put};

/// The column that says whether the writes were done.
const APPLIED: &str = "[applied]";

/// What must hold for a write to be done.
#[derive(Debug)]
pub(crate) enum Condition {
    Exists,
    NotExists,
    Columns(Vec<Test>),
}

/// A test of a column.
#[derive(Debug)]
pub(crate) struct Test {
    /// Index in the table.
    column: usize,
    check: Check,
}

#[derive(Debug)]
enum Check {
    Is(Operator, Expr),
    IsNot(Expr),
    In(Vec<Expr>),
    /// One marker for the whole list.
    InBound(Expr),
}

/// A test with its operands of this execution, as keys of the column's order; None is null.
#[derive(Debug)]
enum BoundCheck {
    Is(Operator, Option<Vec<u8>>),
    IsNot(Option<Vec<u8>>),
    In(Vec<Option<Vec<u8>>>),
}

/// A write of a transaction, with or without a condition of its own.
#[derive(Debug)]
pub(crate) struct ConditionalWrite<'a> {
    bound: Bound<'a>,
    /// Of the tests of its condition, in their order.
    checks: Vec<BoundCheck>,
}

/// Writes to one partition that are done together or not at all.
pub(crate) struct Transaction<'t, 'a> {
    writes: &'t [ConditionalWrite<'a>],
    is_batch: bool,
}

/// What became of a transaction: the answer.
pub(crate) struct Decided<'t> {
    table: &'t Table,
    applied: bool,
    /// Columns of the rows behind `[applied]`, by index.
    columns: Vec<usize>,
    /// Of what is there instead.
    rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl Condition {
    /// Compiles an IF.
    pub(crate) fn compile(
        table: &Table,
        condition: &ast::Condition,
        markers: &mut Markers,
    ) -> Result<Self, CqlError> {
        let columns = match condition {
            ast::Condition::Exists => return Ok(Self::Exists),
            ast::Condition::NotExists => return Ok(Self::NotExists),
            ast::Condition::Columns(columns) => columns,
        };
        let test = |(name, comparison): &(String, Comparison)| {
            let (index, column) = table.column(name).ok_or_else(|| undefined(name))?;
            if matches!(column.role, Role::Partition(_) | Role::Clustering { .. }) {
                return Err(invalid(format!(
                    "PRIMARY KEY column '{name}' cannot have IF conditions"
                )));
            }
            let null = |term: &Term| *term == Term::Null;
            let with_null = match comparison {
                Comparison::Is(Operator::Equal, term) | Comparison::IsNot(term) => null(term),
                _ => false,
            };
            if column.data_type.is_multicell() && !with_null {
                return Err(invalid(format!(
                    "the reference target compares collections like {name} with null alone in \
                     conditions"
                )));
            }
            let to = receiver(table, column);
            Ok(Test { column: index, check: Check::compile(comparison, to, markers)? })
        };
        columns.iter().map(test).collect::<Result<_, _>>().map(Self::Columns)
    }

    /// Whether a statement may have it.
    pub(crate) fn check(&self, plan: &WritePlan) -> Result<(), CqlError> {
        let table = &plan.table;
        if table.is_counter {
            return Err(invalid("Conditional updates are not supported on counter tables"));
        }
        if plan.timestamp.is_some() {
            return Err(invalid("Cannot provide custom timestamp for conditional updates"));
        }
        let one = |choices: &[Choice]| choices.iter().all(|c| matches!(c, Choice::One(_)));
        for (choices, key) in [
            (&plan.restrictions.partition, "partition key"),
            (&plan.restrictions.prefix, "clustering key columns"),
        ] {
            if !one(choices) {
                return Err(invalid(format!(
                    "IN on the {key} is not supported with conditional updates"
                )));
            }
        }
        match plan.scope {
            Scope::Rows => Ok(()),
            Scope::Partitions if table.clustering_count == 0 => Ok(()),
            Scope::Statics => match self {
                Self::Columns(tests)
                    if tests.iter().any(|t| table.columns[t.column].role == Role::Regular) =>
                {
                    Err(missing_clustering(table, &plan.restrictions))
                }
                _ => Ok(()),
            },
            Scope::Partitions | Scope::Ranges => Err(invalid(
                "DELETE statements must restrict all PRIMARY KEY columns with equality relations \
                 in order to delete non static columns",
            )),
        }
    }

    fn tests(&self) -> &[Test] {
        match self {
            Self::Columns(tests) => tests,
            Self::Exists | Self::NotExists => &[],
        }
    }
}

impl Check {
    fn compile(
        comparison: &Comparison,
        to: Receiver<'_>,
        markers: &mut Markers,
    ) -> Result<Self, CqlError> {
        Ok(match comparison {
            Comparison::Is(Operator::Contains | Operator::ContainsKey, _) => {
                return Err(invalid(format!("Cannot use CONTAINS in a condition on {}", to.name)));
            }
            Comparison::Is(operator, term) => {
                if *operator != Operator::Equal && !order::is_ordered(to.kind) {
                    return Err(invalid(format!(
                        "the reference target does not compare values of column {} by range",
                        to.name
                    )));
                }
                Self::Is(*operator, compile(term, to, markers)?)
            }
            Comparison::IsNot(term) => Self::IsNot(compile(term, to, markers)?),
            Comparison::In(InTerms::List(terms)) => {
                let each = terms.iter().map(|term| compile(term, to, markers));
                Self::In(each.collect::<Result<_, _>>()?)
            }
            Comparison::In(InTerms::Marker(index)) => {
                let kind = ColumnType::List(Box::new(to.kind.clone()));
                let name = format!("in({})", to.name);
                let to = Receiver { name: &name, kind: &kind, ..to };
                Self::InBound(compile(&Term::Marker(*index), to, markers)?)
            }
        })
    }

    fn bind(&self, kind: &ColumnType, context: &Context<'_>) -> Result<BoundCheck, CqlError> {
        let operand = |expr: &Expr| match expr.evaluate(context)? {
            Operand::Unset => Err(invalid("Invalid 'unset' value in condition")),
            Operand::Null => Ok(None),
            Operand::Bytes(bytes) => Ok(Some(key(kind, &bytes))),
        };
        Ok(match self {
            Self::Is(operator, expr) => match (operator, operand(expr)?) {
                (Operator::Equal, value) => BoundCheck::Is(*operator, value),
                (_, None) => return Err(invalid("Invalid comparison with null in a condition")),
                (_, value) => BoundCheck::Is(*operator, value),
            },
            Self::IsNot(expr) => BoundCheck::IsNot(operand(expr)?),
            Self::In(list) => BoundCheck::In(list.iter().map(operand).collect::<Result<_, _>>()?),
            Self::InBound(expr) => match expr.evaluate(context)? {
                Operand::Bytes(bytes) => {
                    let each = elements(&bytes).map_err(invalid)?;
                    let each = each.map(|element| element.map(|e| Some(key(kind, e))));
                    BoundCheck::In(each.collect::<Result<_, _>>().map_err(invalid)?)
                }
                _ => return Err(invalid("Invalid null list in a condition")),
            },
        })
    }
}

/// Of the order of a type; equal for equal values.
fn key(kind: &ColumnType, value: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(value.len() + 2);
    order::append_any(kind, value, &mut key);
    key
}

impl BoundCheck {
    fn holds(&self, found: Option<Vec<u8>>) -> bool {
        match self {
            Self::Is(Operator::Equal, value) => found == *value,
            Self::IsNot(value) => found != *value,
            Self::In(values) => values.contains(&found),
            Self::Is(operator, value) => {
                let (Some(found), Some(value)) = (found, value) else { return false };
                match operator {
                    Operator::Less => found < *value,
                    Operator::LessOrEqual => found <= *value,
                    Operator::Greater => found > *value,
                    _ => found >= *value,
                }
            }
        }
    }
}

impl<'a> ConditionalWrite<'a> {
    /// Evaluates and validates everything.
    pub(crate) fn bind(
        plan: &'a WritePlan,
        context: &Context<'a>,
        timestamp_us: i64,
    ) -> Result<Self, CqlError> {
        let tests = plan.condition.as_ref().map_or(&[][..], Condition::tests);
        let check =
            |test: &Test| test.check.bind(&plan.table.columns[test.column].data_type.kind, context);
        let checks = tests.iter().map(check).collect::<Result<_, _>>()?;
        Ok(Self { bound: plan.bind(context, timestamp_us)?, checks })
    }

    /// The row that its condition is about, and the static one where that counts.
    fn view<'p>(&'p self, partition: &'p Partition) -> View<'p> {
        let plan = self.bound.plan;
        let (token, key) = self.bound.partitions.first().map_or((0, &[][..]), |(t, k)| (*t, k));
        let row = match plan.scope {
            Scope::Statics => None,
            Scope::Rows => self.bound.rows.first().and_then(|(key, _)| partition.row(key)),
            Scope::Partitions | Scope::Ranges => partition.row(&[]),
        };
        View { token, key, row, statics: partition.statics() }
    }

    fn exists(&self, view: &View<'_>, now_s: u32) -> bool {
        let counts = match self.bound.plan.scope {
            Scope::Statics => view.statics,
            _ => view.row,
        };
        counts.is_some_and(|row: &Row| row.is_live(now_s))
    }

    fn holds(&self, partition: &Partition, now_s: u32) -> bool {
        let table = &self.bound.plan.table;
        let view = self.view(partition);
        match &self.bound.plan.condition {
            None => true,
            Some(Condition::Exists) => self.exists(&view, now_s),
            Some(Condition::NotExists) => !self.exists(&view, now_s),
            Some(Condition::Columns(tests)) => {
                tests.iter().zip(&self.checks).all(|(test, check)| {
                    let kind = &table.columns[test.column].data_type.kind;
                    let found = value(table, test.column, &view, now_s);
                    check.holds(found.map(|found| key(kind, &found)))
                })
            }
        }
    }
}

impl<'t, 'a> Transaction<'t, 'a> {
    /// Of writes that go together.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] when they are of several tables or partitions.
    pub(crate) fn new(
        writes: &'t [ConditionalWrite<'a>],
        is_batch: bool,
    ) -> Result<Self, CqlError> {
        let Some(first) = writes.first() else {
            return Err(invalid("a transaction needs a statement"));
        };
        for write in writes {
            let (bound, first) = (&write.bound, &first.bound);
            let (table, of_first) = (&bound.plan.table, &first.plan.table);
            if (&table.keyspace, &table.name) != (&of_first.keyspace, &of_first.name) {
                return Err(invalid("Batch with conditions cannot span multiple tables"));
            }
            if bound.partitions.len() != 1 || bound.partitions != first.partitions {
                return Err(invalid("Batch with conditions cannot span multiple partitions"));
            }
        }
        Ok(Self { writes, is_batch })
    }

    /// Columns of what is there instead, by index. Those of the key stand before them in a batch.
    fn columns(&self, table: &Table) -> Vec<usize> {
        let conditions = || self.writes.iter().filter_map(|w| w.bound.plan.condition.as_ref());
        let whole = |condition: &Condition| match condition {
            Condition::NotExists => true,
            Condition::Exists => self.is_batch,
            Condition::Columns(_) => false,
        };
        if conditions().any(whole) {
            return (0..table.columns.len()).collect();
        }
        let key = if self.is_batch { table.partition_count + table.clustering_count } else { 0 };
        let mut columns: Vec<usize> = (0..key).collect();
        for test in conditions().flat_map(Condition::tests) {
            if !columns.contains(&test.column) {
                columns.push(test.column);
            }
        }
        columns
    }

    /// Decides, and does the writes if the conditions hold. A mock holds no rows: there all do.
    pub(crate) fn execute(&self, sequence: &AtomicI64, now_s: u32) -> Decided<'t> {
        // `new` has seen to it that there is one.
        let first = &self.writes[0].bound;
        let table: &'t Table = &first.plan.table;
        let mut decided =
            Decided { table, applied: table.is_mock, columns: Vec::new(), rows: Vec::new() };
        if table.is_mock {
            return decided;
        }
        let (token, key) = &first.partitions[0];
        table.store.write(*token, key, |partition| {
            decided.applied = self.writes.iter().all(|write| write.holds(partition, now_s));
            if decided.applied {
                return self.writes.iter().map(|w| w.bound.apply_to(partition, sequence)).sum();
            }
            decided.columns = self.columns(table);
            for write in self.writes.iter().filter(|w| w.bound.plan.condition.is_some()) {
                let view = write.view(partition);
                let live = |row: Option<&Row>| row.is_some_and(|row| row.is_live(now_s));
                if !live(view.row) && !live(view.statics) {
                    continue;
                }
                let cell = |column: &usize| {
                    value(table, *column, &view, now_s).map(|value| value.into_owned())
                };
                decided.rows.push(decided.columns.iter().map(cell).collect());
            }
            if decided.rows.is_empty() {
                decided.columns.clear();
            }
            0
        });
        decided
    }
}

impl Decided<'_> {
    /// Rows of the answer.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len().max(1)
    }

    /// Appends the body of the answer.
    pub(crate) fn encode(&self, skip_metadata: bool, out: &mut Vec<u8>) {
        put::i32(out, result_kind::ROWS);
        put::i32(
            out,
            if skip_metadata { rows_flags::NO_METADATA } else { rows_flags::GLOBAL_TABLE },
        );
        put::i32(out, self.columns.len() as i32 + 1);
        if !skip_metadata {
            put::string(out, &self.table.keyspace);
            put::string(out, &self.table.name);
            put::string(out, APPLIED);
            ColumnType::Boolean.encode(out);
            for column in self.columns.iter().map(|index| &self.table.columns[*index]) {
                put::string(out, &column.name);
                column.data_type.kind.encode(out);
            }
        }
        put::i32(out, self.rows() as i32);
        for row in 0..self.rows() {
            put::bytes(out, Some(&[u8::from(self.applied)]));
            let cells = self.rows.get(row).into_iter().flatten();
            cells.for_each(|cell| put::bytes(out, cell.as_deref()));
        }
    }
}
