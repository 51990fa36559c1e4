//! Keyspaces and tables as they are now. A change makes a new [`Table`] over the same rows and
//! marks the old one as out of date, which is how prepared statements notice.

use crate::cql::ast::TableName;
use crate::cql::identifier;
use crate::error::{CqlError, invalid};
use crate::options::{Replication, TableOptions};
use crate::store::TableStore;
use crate::types::DataType;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a column is in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Position in the partition key.
    Partition(usize),
    /// Position among the clustering columns.
    Clustering {
        position: usize,
        descending: bool,
    },
    Static,
    Regular,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) role: Role,
    /// Names the column's cells; never reused within a table.
    pub(crate) id: u16,
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) keyspace: String,
    pub(crate) name: String,
    pub(crate) id: [u8; 16],
    /// As `SELECT *` shows them: partition key, clustering, static and regular columns, the latter
    /// two by name.
    pub(crate) columns: Vec<Column>,
    pub(crate) partition_count: usize,
    pub(crate) clustering_count: usize,
    pub(crate) options: TableOptions,
    /// All columns beyond the key are counters.
    pub(crate) is_counter: bool,
    pub(crate) store: Arc<TableStore>,
    /// Rows are made up instead of stored.
    pub(crate) is_mock: bool,
    out_of_date: AtomicBool,
}

/// Columns in one table; Cassandra has no such bound, a schema with more is a mistake.
pub(crate) const COLUMNS_MAX: usize = 4096;

impl Table {
    /// A table of these columns, in any order.
    pub(crate) fn new(
        name: (&str, &str),
        id: [u8; 16],
        mut columns: Vec<Column>,
        options: TableOptions,
        store: Arc<TableStore>,
        is_mock: bool,
    ) -> Self {
        columns.sort_by(|a, b| (rank(a.role), &a.name).cmp(&(rank(b.role), &b.name)));
        let count = |kind: u8| columns.iter().filter(|c| rank(c.role).0 == kind).count();
        let counter = |c: &Column| c.data_type.kind == wire::cql::ColumnType::Counter;
        Self {
            keyspace: name.0.to_owned(),
            name: name.1.to_owned(),
            id,
            partition_count: count(0),
            clustering_count: count(1),
            is_counter: columns.iter().any(counter),
            columns,
            options,
            store,
            is_mock,
            out_of_date: AtomicBool::new(false),
        }
    }

    /// The column of this name and its index.
    pub(crate) fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, c)| c.name == name)
    }

    /// The key's columns, partition key first.
    pub(crate) fn key_columns(&self) -> &[Column] {
        &self.columns[..self.partition_count + self.clustering_count]
    }

    /// The clustering columns.
    pub(crate) fn clustering(&self) -> &[Column] {
        &self.key_columns()[self.partition_count..]
    }

    /// Whether the table has been altered or dropped since.
    #[inline]
    pub(crate) fn is_out_of_date(&self) -> bool {
        self.out_of_date.load(Ordering::Acquire)
    }

    /// Marks the table as altered or dropped.
    pub(crate) fn retire(&self) {
        self.out_of_date.store(true, Ordering::Release);
    }
}

fn rank(role: Role) -> (u8, usize) {
    match role {
        Role::Partition(position) => (0, position),
        Role::Clustering { position, .. } => (1, position),
        Role::Static => (2, 0),
        Role::Regular => (3, 0),
    }
}

/// A keyspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyspace {
    /// As given: class and its parameters.
    pub(crate) replication: Replication,
    pub(crate) durable_writes: bool,
    /// Its tables lie in so many tablets each; None: they do not.
    pub(crate) tablets: Option<u32>,
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
}

/// All keyspaces.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) keyspaces: BTreeMap<String, Keyspace>,
}

impl Schema {
    /// The keyspace of this name.
    pub(crate) fn keyspace(&self, name: &str) -> Result<&Keyspace, CqlError> {
        let missing = || invalid(format!("Keyspace {} does not exist", identifier(name)));
        self.keyspaces.get(name).ok_or_else(missing)
    }

    /// The table that a statement names, on a connection that uses keyspace `used`.
    pub(crate) fn table(
        &self,
        name: &TableName,
        used: Option<&str>,
    ) -> Result<Arc<Table>, CqlError> {
        let keyspace = qualified(name, used)?;
        let missing = || {
            let (keyspace, table) = (identifier(keyspace), identifier(&name.name));
            invalid(format!("unconfigured table {keyspace}.{table}"))
        };
        self.keyspace(keyspace)?.tables.get(&name.name).map(Arc::clone).ok_or_else(missing)
    }
}

/// The keyspace that a name means.
pub(crate) fn qualified<'a>(
    name: &'a TableName,
    used: Option<&'a str>,
) -> Result<&'a str, CqlError> {
    name.keyspace.as_deref().or(used).ok_or_else(|| {
        invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify \
             keyspace.tablename",
        )
    })
}
