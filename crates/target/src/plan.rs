//! A statement ready to be executed: compiled against the schema, with its metadata for clients.

use crate::catalog::{Schema, Table};
use crate::choice::Choice;
use crate::cql::ast::{Batch, BatchKind, Parsed, Statement};
use crate::error::{CqlError, invalid};
use crate::expr::{Expr, Markers};
use crate::mock::Canned;
use crate::restrict::Restrictions;
use crate::select::{SelectPlan, compile_select};
use crate::write::WritePlan;
use crate::write_compile::{delete, insert, update};
use std::sync::Arc;
use wire::cql::response::{Column, Metadata, Prepared as WirePrepared};
use wire::murmur3;

/// What an execution does.
#[derive(Debug)]
pub(crate) enum Plan {
    Select(Box<SelectPlan>),
    /// A SELECT on a mock's table.
    Canned(Box<Canned>),
    Write(Box<WritePlan>),
    Batch(Vec<WritePlan>),
    /// DDL, DESCRIBE and USE, carried out from the syntax tree.
    Schema(Statement),
}

/// A compiled statement.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) plan: Plan,
    /// The bound values' specifications.
    pub(crate) markers: Vec<Column>,
    /// Stands for the metadata of the rows.
    pub(crate) metadata_id: PreparedId,
}

/// Stands for a text in a keyspace.
pub(crate) type PreparedId = [u8; 16];

/// The id of a text prepared on a connection that uses `keyspace`: a stable 128-bit hash.
pub(crate) fn prepared_id(keyspace: Option<&str>, text: &str) -> PreparedId {
    let (seed, _) = murmur3::hash(keyspace.unwrap_or("").as_bytes(), 0);
    hash(text.as_bytes(), seed)
}

fn hash(bytes: &[u8], seed: u64) -> PreparedId {
    let (high, low) = murmur3::hash(bytes, seed);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&high.to_be_bytes());
    id[8..].copy_from_slice(&low.to_be_bytes());
    id
}

impl Plan {
    /// Of the rows that it answers.
    fn rows(&self) -> Option<&Metadata> {
        match self {
            Self::Select(plan) => Some(&plan.metadata),
            Self::Canned(canned) => Some(&canned.metadata),
            Self::Write(_) | Self::Batch(_) | Self::Schema(_) => None,
        }
    }

    /// Equal for equal names and types of columns.
    fn metadata_id(&self) -> PreparedId {
        let mut bytes = Vec::new();
        self.rows().into_iter().for_each(|rows| rows.encode(false, &mut bytes));
        hash(&bytes, 0)
    }
}

/// Compiles a parsed text for a connection that uses `keyspace`.
///
/// # Errors
/// [`CqlError::Invalid`] for what the schema does not allow.
pub(crate) fn compile(
    schema: &Schema,
    parsed: Parsed,
    keyspace: Option<&str>,
) -> Result<Compiled, CqlError> {
    let mut markers = Markers::new(parsed.markers);
    let plan = match parsed.statement {
        Statement::Select(select) => {
            let table = schema.table(&select.table, keyspace)?;
            let is_mock = table.is_mock;
            let plan = compile_select(table, &select, &mut markers)?;
            match is_mock {
                true => Plan::Canned(Box::new(Canned::new(&plan))),
                false => Plan::Select(Box::new(plan)),
            }
        }
        Statement::Batch(batch) => batch_plan(schema, &batch, keyspace, &mut markers)?,
        statement @ (Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) => {
            Plan::Write(Box::new(write_plan(schema, &statement, keyspace, &mut markers)?))
        }
        statement => Plan::Schema(statement),
    };
    Ok(Compiled { metadata_id: plan.metadata_id(), plan, markers: markers.finish()? })
}

fn write_plan(
    schema: &Schema,
    statement: &Statement,
    keyspace: Option<&str>,
    markers: &mut Markers,
) -> Result<WritePlan, CqlError> {
    match statement {
        Statement::Insert(s) => insert(schema.table(&s.table, keyspace)?, s, markers),
        Statement::Update(s) => update(schema.table(&s.table, keyspace)?, s, markers),
        Statement::Delete(s) => delete(schema.table(&s.table, keyspace)?, s, markers),
        _ => Err(invalid("a BATCH takes INSERT, UPDATE and DELETE")),
    }
}

fn batch_plan(
    schema: &Schema,
    batch: &Batch,
    keyspace: Option<&str>,
    markers: &mut Markers,
) -> Result<Plan, CqlError> {
    if batch.using.ttl.is_some() {
        return Err(invalid("Global TTL on the BATCH statement is not supported."));
    }
    let mut writes = Vec::with_capacity(batch.statements.len());
    for statement in &batch.statements {
        let mut statement = statement.clone();
        let using = match &mut statement {
            Statement::Insert(s) => &mut s.using,
            Statement::Update(s) => &mut s.using,
            Statement::Delete(s) => &mut s.using,
            _ => return Err(invalid("a BATCH takes INSERT, UPDATE and DELETE")),
        };
        if let Some(timestamp) = &batch.using.timestamp {
            if using.timestamp.is_some() {
                return Err(invalid(
                    "Timestamp must be set either on BATCH or individual statements",
                ));
            }
            using.timestamp = Some(timestamp.clone());
        }
        writes.push(write_plan(schema, &statement, keyspace, markers)?);
    }
    check_batch(batch.kind, writes.iter())?;
    Ok(Plan::Batch(writes))
}

/// Counters and other columns do not go together in a batch.
pub(crate) fn check_batch<'a>(
    kind: BatchKind,
    writes: impl Iterator<Item = &'a WritePlan>,
) -> Result<(), CqlError> {
    let (mut counters, mut others) = (false, false);
    for write in writes {
        counters |= write.table.is_counter;
        others |= !write.table.is_counter;
    }
    match (kind, counters, others) {
        (BatchKind::Counter, _, true) => {
            Err(invalid("Cannot include non-counter statement in a counter batch"))
        }
        (BatchKind::Logged, true, _) => {
            Err(invalid("Cannot include a counter statement in a logged batch"))
        }
        (_, true, true) => {
            Err(invalid("Counter and non-counter mutations cannot exist in the same batch"))
        }
        _ => Ok(()),
    }
}

impl Compiled {
    fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let (one, many): (Option<&Arc<Table>>, &[WritePlan]) = match &self.plan {
            Plan::Select(plan) => (Some(&plan.table), &[]),
            Plan::Canned(canned) => (Some(&canned.table), &[]),
            Plan::Write(plan) => (Some(&plan.table), &[]),
            Plan::Batch(writes) => (None, writes),
            Plan::Schema(_) => (None, &[]),
        };
        one.into_iter().chain(many.iter().map(|w| &w.table))
    }

    /// Whether a table it was compiled against has changed since.
    #[inline]
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.tables().any(|t| t.is_out_of_date())
    }

    /// The answer to PREPARE.
    pub(crate) fn describe(&self, id: &PreparedId) -> WirePrepared {
        let rows = self.plan.rows().cloned().unwrap_or_default();
        let metadata_id = self.metadata_id.to_vec();
        let partition_key = match &self.plan {
            Plan::Select(plan) => key_indexes(&plan.restrictions),
            Plan::Canned(canned) => canned.key_indexes.clone(),
            Plan::Write(plan) => key_indexes(&plan.restrictions),
            _ => Vec::new(),
        };
        let values = Metadata {
            column_count: self.markers.len(),
            columns: self.markers.clone(),
            paging_state: None,
        };
        WirePrepared { id: id.to_vec(), metadata_id, partition_key, values, rows }
    }
}

/// Which markers make up the partition key; none unless all its columns are bound.
pub(crate) fn key_indexes(restrictions: &Restrictions) -> Vec<u16> {
    let index = |choice: &Choice| match choice {
        Choice::One(Expr::Marker { index, .. }) => Some(*index as u16),
        _ => None,
    };
    restrictions.partition.iter().map(index).collect::<Option<_>>().unwrap_or_default()
}
