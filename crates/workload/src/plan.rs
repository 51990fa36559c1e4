//! The plan: the one form that every foreign workload compiles to and every protocol executes.
//!
//! A plan names what is done (statements over value columns) and how often (weights); it carries no
//! keyspace, address or query text. Operations are lists of steps, a step is one statement or a
//! choice of one per column. Limits: one table, one key column, value columns of one type.

use crate::cassandra_stress;
use crate::keys::{Distribution, KeySpace};
use crate::objects::ValueKind;
use crate::random::{GOLDEN, mix, scale};
use crate::sampler::Draw;
use crate::tables::Tables;
use crate::values::Values;
use std::borrow::Cow;
use std::sync::Arc;

/// Schema, statements, operations and what a [`crate::Sampler`] needs to draw them.
#[derive(Debug, Clone)]
pub struct Plan {
    /// As people write it: `ycsb:a`.
    pub workload: String,
    /// The table.
    pub schema: Schema,
    /// Operations of the load phase: exactly one, which writes a whole row; none where nothing is
    /// loaded.
    pub load: Vec<Operation>,
    /// Operations of the run phase with a weight above zero.
    pub run: Vec<Operation>,
    /// What steps refer to by index.
    pub statements: Vec<Statement>,
    /// Which keys exist and which are asked for.
    pub keys: KeySpace,
    /// What fields hold.
    pub values: Values,
    /// Counters beside them, where some statements are over those.
    pub counters: Option<Counters>,
    /// Records per scan.
    pub scan_lengths: crate::lengths::Lengths,
    /// Operations of one kind follow each other in runs; None draws each by itself.
    pub runs: Option<Runs>,
    /// Tables of any columns, instead of [`Self::schema`] and [`Self::values`]; keys are seeds of
    /// their partitions.
    pub tables: Option<Arc<Tables>>,
}

/// Runs of operations of one kind, as the threads of cassandra-stress do them.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Operations of a run.
    pub lengths: cassandra_stress::Distribution,
    /// Threads over all workers, each of which has a run of its own.
    pub threads: usize,
}

/// What the columns of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cells {
    /// Text, the key too.
    Text,
    /// Blobs, the key too.
    Blob,
    /// Counters with a key that is a blob: writes add.
    Counter,
    /// Of a kind each, which [`Plan::value_kind`] tells; the key is an integer.
    Objects,
}

/// A table of one key column and value columns of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Table name; a flag may override it.
    pub table: String,
    /// Name of the key column.
    pub key_column: String,
    /// Names of the value columns.
    pub columns: Vec<String>,
    /// Their type.
    pub cells: Cells,
    /// Microseconds since 1970 that everything is written with, instead of now.
    pub timestamp_us: Option<u64>,
}

/// What is measured as one op.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// As in tags and tables: `read`, `read-modify-write`.
    pub name: Cow<'static, str>,
    /// Share of the mix; the weights of a phase sum to 1.
    pub weight: f64,
    /// Statements executed one after the other, on the same key.
    pub steps: Vec<Step>,
}

/// One statement of an operation, or one of several that differ in their column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the first choice in [`Plan::statements`].
    pub first_statement: usize,
    /// 1, or the number of columns: one statement per column, in column order.
    pub choices: usize,
    /// `read`, `update`, `insert` or `scan`.
    pub name: &'static str,
    /// The column is chosen apart from [`Draw::column`]: the read of a read-modify-write, whose
    /// column YCSB draws independently of the written one.
    pub column_apart: bool,
    /// The last choice is one of so many statements; 1 where it is one like the others.
    pub last_choices: usize,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Reads columns of one key.
    Read,
    /// Writes columns of an existing key.
    Update,
    /// Writes all columns of a new key.
    Insert,
    /// Reads columns of up to [`Draw::scan_length`] records from a key on, in the order of the
    /// database.
    Scan,
}

/// A statement over value columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub action: Action,
    /// Value columns read or written: indices into [`Schema::columns`], ascending.
    pub columns: Vec<usize>,
    /// The columns are to be named. False only where a read or scan takes all columns and the
    /// original leaves them to the database (`SELECT *`).
    pub by_name: bool,
    /// It is over [`Plan::counters`].
    pub counts: bool,
}

/// A table of counters beside the table, with the same key and columns.
#[derive(Debug, Clone)]
pub struct Counters {
    /// Its name; its keyspace is the same.
    pub table: String,
    /// What they grow by.
    pub values: Values,
}

impl Step {
    /// Index into [`Plan::statements`] of the statement that `draw` asks for.
    #[inline]
    #[must_use]
    pub fn statement(&self, draw: &Draw) -> usize {
        if self.choices <= 1 {
            self.first_statement
        } else if self.column_apart {
            let word = mix(draw.value_seed.wrapping_add(GOLDEN));
            let choice = scale(word, self.choices as u64) as usize;
            let among = if choice + 1 == self.choices { self.last_choices } else { 1 };
            self.first_statement + choice + scale(mix(word), among as u64) as usize
        } else {
            self.first_statement + usize::from(draw.column)
        }
    }
}

impl Plan {
    /// Whether an operation writes keys that reads may ask for once they are acknowledged: the
    /// next keys in turn, interleaved over the workers.
    #[must_use]
    pub fn inserts(&self, operation: &Operation) -> bool {
        let first = operation.steps.first();
        let action = first.and_then(|s| self.statements.get(s.first_statement)).map(|s| s.action);
        let behind = matches!(self.keys.distribution, Distribution::Behind { .. });
        action == Some(Action::Insert) || behind && action == Some(Action::Update)
    }

    /// Longest key text in bytes.
    #[must_use]
    pub fn key_size_max(&self) -> usize {
        self.tables.as_ref().map_or(self.keys.key_size_max(), |tables| tables.key_room())
    }

    /// Bytes that [`Plan::write_key`] needs, and [`Plan::write_key_of`].
    #[must_use]
    pub fn key_room(&self) -> usize {
        self.tables.as_ref().map_or(self.keys.key_room(), |tables| tables.key_room())
    }

    /// As [`Plan::write_key`], the key that a statement is about.
    ///
    /// # Panics
    /// As that, and when tables have no such statement.
    #[inline]
    pub fn write_key_of(&self, statement: usize, key: u64, out: &mut [u8]) -> usize {
        match &self.tables {
            None => self.keys.write_key(key, out),
            Some(tables) => {
                let seed = self.keys.seed_of(key);
                tables.table_of(statement).generator.write_routing_key(seed, out)
            }
        }
    }

    /// Writes the text of a key number to the front of `out`; returns its size in bytes. What
    /// stands behind it in the first [`Plan::key_room`] bytes may be overwritten.
    ///
    /// # Panics
    /// When `out` is shorter than [`Plan::key_room`] and the key does not fit.
    #[inline]
    pub fn write_key(&self, key: u64, out: &mut [u8]) -> usize {
        self.keys.write_key(key, out)
    }

    /// What a column holds, where each has a kind of its own; None where there is no such column.
    #[must_use]
    pub fn value_kind(&self, column: usize) -> Option<ValueKind> {
        self.values.kind(column)
    }

    /// Longest value of one column in bytes.
    #[must_use]
    pub fn value_size_max(&self) -> usize {
        self.values.value_size_max()
    }

    /// Bytes that [`Plan::write_value`] needs.
    #[must_use]
    pub fn value_room(&self) -> usize {
        self.values.value_room()
    }

    /// Writes the value of one column of one op to the front of `out`; returns its size in bytes.
    /// What stands behind it in the first [`Plan::value_room`] bytes may be overwritten. It depends
    /// on (`draw.value_seed`, `column`) alone, or with verified values on (key text, column name).
    ///
    /// # Panics
    /// When `out` is shorter than [`Plan::value_room`] and the value does not fit, or a verified
    /// column does not exist.
    #[inline]
    pub fn write_value(
        &self,
        draw: &Draw,
        key_text: &[u8],
        column: usize,
        out: &mut [u8],
    ) -> usize {
        self.values.write_value(draw.value_seed, key_text, column, &self.schema.columns, out)
    }

    /// Whether values read back can be checked ([`Plan::verify`]).
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.values.verifies()
    }

    /// Whether `value` is what this plan writes to that column of that key; always true when the
    /// plan does not verify.
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn verify(&self, key_text: &[u8], column: usize, value: &[u8]) -> bool {
        self.values.verify(key_text, column, &self.schema.columns, value)
    }
}
