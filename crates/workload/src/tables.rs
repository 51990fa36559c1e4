//! Tables of columns of any types, and statements over their partitions: what the profiles of
//! cassandra-stress compile to, beside the one table of a [`crate::Schema`].
//!
//! A statement writes rows of one or several partitions, or asks with values of one. Its text is
//! the user's; each of its values is a column's, by name. Keys are seeds of partitions. Limits: a
//! key of up to 64 KiB.

use crate::cassandra_stress::{BatchType, Distribution, PartitionGenerator, Ratio, Table};
use crate::revisits::Visits;

/// Tables, and in the order of [`crate::Plan::statements`] what is done to them.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The tables.
    pub tables: Vec<TableRows>,
    /// What is done.
    pub statements: Vec<TableStatement>,
}

/// A table and what its rows hold.
#[derive(Debug, Clone)]
pub struct TableRows {
    /// Its keyspace, as given.
    pub keyspace: String,
    /// Its name, as given.
    pub table: String,
    /// What makes it.
    pub creation: Creation,
    /// Its rows.
    pub generator: PartitionGenerator,
    /// Its columns.
    columns: Vec<(String, Place)>,
}

/// Statements of the user's that make a table; names in them are of its keyspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Creation {
    /// The keyspace.
    pub keyspace: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// What else there is to be.
    pub extra: Vec<String>,
}

/// Where the value of a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Component of the partition key.
    Key(usize),
    /// Clustering column.
    Clustering(usize),
    /// Any other column.
    Value(usize),
}

/// What is done to a table.
#[derive(Debug, Clone)]
pub struct TableStatement {
    /// Index of the table.
    pub table: usize,
    /// The CQL, with names that need no keyspace from elsewhere.
    pub text: String,
    /// Which rows it touches.
    pub touch: Touch,
    /// Its level, in capitals; None is that of the run.
    pub consistency: Option<String>,
    /// Its level of conditions, in capitals; None leaves it to the server.
    pub serial_consistency: Option<String>,
}

/// Which rows a statement touches.
#[derive(Debug, Clone)]
pub enum Touch {
    /// Rows of some partitions are written together.
    Write(Box<Write>),
    /// It is executed once, with values of rows of one partition.
    Ask {
        /// All values come from one row; else each from a row of its own.
        same_row: bool,
        /// Share of a row's value columns that have a value.
        row_population: Ratio,
    },
    /// One row is asked for, for what conditions are about; [`Touch::Swap`] is next, on this row.
    Look,
    /// It is executed with values of one row, but for the columns of conditions: these are bound to
    /// what was there.
    Swap {
        /// Share of a row's value columns that have a value.
        row_population: Ratio,
        /// In the order in which they were asked for.
        conditions: Vec<String>,
    },
    /// Rows of one partition are asked for, all or between two of them, and compared with what was
    /// written.
    Validate(Bounds),
    /// The next page of a range of tokens is asked for.
    Scan(Scan),
}

/// Which rows of a partition are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Clustering columns that two bounds are about; 0 has none, and is the whole partition.
    pub depth: usize,
    /// The lower bound is among them.
    pub lower_inclusive: bool,
    /// The upper bound is.
    pub upper_inclusive: bool,
    /// Share of a row's value columns that surely have a value; others may have none.
    pub present: f64,
}

/// How ranges of tokens are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// Rows of a page, at most.
    pub page_rows: u32,
    /// Each range of the ring is read in so many parts.
    pub parts: u32,
    /// Ranges are read again when all have been.
    pub wraps: bool,
    /// Only the first page of each range is read.
    pub first_pages: bool,
}

/// Rows of a page in a warm-up, at most.
const WARM_PAGE_ROWS: u32 = 100;

/// How rows are written.
#[derive(Debug, Clone)]
pub struct Write {
    /// Partitions of an operation.
    pub partitions: Distribution,
    /// Share of the rows of each.
    pub select: Ratio,
    /// Share of a row's value columns that have a value.
    pub row_population: Ratio,
    /// How rows of one operation are held together.
    pub batch: BatchType,
    /// Partitions are written in several visits; None writes each at once.
    pub visits: Option<Visits>,
}

/// A name as the database stores it: in small letters, where it is not quoted.
#[must_use]
pub(crate) fn stored_name(name: &str) -> String {
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    quoted.map_or_else(|| name.to_lowercase(), str::to_owned)
}

impl Write {
    /// Most rows of an operation, as far as the frame of a batch can count them.
    #[must_use]
    pub fn rows_max(&self, table: &TableRows) -> usize {
        let partitions = self.partitions.max().max(1) as f64;
        (partitions * table.generator.rows_max()).ceil().clamp(1.0, f64::from(u16::MAX)) as usize
    }
}

impl TableRows {
    /// A table with the rows that `generator` makes of it.
    #[must_use]
    pub fn new(
        (keyspace, table): (&str, &str),
        creation: Creation,
        columns: &Table,
        generator: PartitionGenerator,
    ) -> Self {
        let places = |named: &[crate::cassandra_stress::NamedColumn], place: fn(usize) -> Place| {
            let each = named.iter().enumerate();
            each.map(|(index, column)| (column.name.clone(), place(index))).collect::<Vec<_>>()
        };
        let columns = [
            places(&columns.partition_key, Place::Key),
            places(&columns.clustering_key, Place::Clustering),
            places(&columns.values, Place::Value),
        ];
        Self {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
            creation,
            generator,
            columns: columns.concat(),
        }
    }

    /// Where the column of that name has its values from; None when there is none.
    #[must_use]
    pub fn place(&self, column: &str) -> Option<Place> {
        self.columns.iter().find(|(name, _)| name == column).map(|(_, place)| *place)
    }

    /// Keyspace and table as the database stores their names.
    #[must_use]
    pub fn stored_names(&self) -> (String, String) {
        (stored_name(&self.keyspace), stored_name(&self.table))
    }

    /// Bytes of all rows of a partition, at most.
    #[must_use]
    pub fn partition_bytes_max(&self) -> f64 {
        let row: usize = self.columns.iter().map(|(_, place)| self.room(*place)).sum();
        row as f64 * self.generator.rows_max()
    }

    /// Names of all columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| &name[..])
    }

    /// Bytes of a value from there, at most.
    #[must_use]
    pub fn room(&self, place: Place) -> usize {
        match place {
            Place::Key(index) => self.generator.key_room(index),
            Place::Clustering(index) => self.generator.clustering_room(index),
            Place::Value(index) => self.generator.value_room(index),
        }
    }
}

impl Tables {
    /// The table of a statement.
    ///
    /// # Panics
    /// When there is no such statement.
    #[must_use]
    #[inline]
    pub fn table_of(&self, statement: usize) -> &TableRows {
        &self.tables[self.statements[statement].table]
    }

    /// Partitions of an operation that executes a statement; None where it is always one.
    #[must_use]
    #[inline]
    pub(crate) fn partitions_of(&self, statement: usize) -> Option<&Distribution> {
        match &self.statements.get(statement)?.touch {
            Touch::Write(write) => Some(&write.partitions),
            _ => None,
        }
    }

    /// In how many visits a statement writes partitions, and of which table.
    #[must_use]
    pub(crate) fn visits_of(&self, statement: usize) -> Option<(&Visits, &TableRows)> {
        match &self.statements.get(statement)?.touch {
            Touch::Write(write) => Some((write.visits.as_ref()?, self.table_of(statement))),
            _ => None,
        }
    }

    /// How a statement reads ranges of tokens; None of those that are about partitions.
    #[must_use]
    #[inline]
    pub fn scan_of(&self, statement: usize) -> Option<&Scan> {
        match &self.statements.get(statement)?.touch {
            Touch::Scan(scan) => Some(scan),
            _ => None,
        }
    }

    /// Whether a statement reads ranges of tokens.
    #[must_use]
    pub fn scans(&self) -> bool {
        (0..self.statements.len()).any(|statement| self.scan_of(statement).is_some())
    }

    /// The same for a warm-up: of ranges of tokens only the beginnings are read.
    #[must_use]
    pub fn rehearsed(&self) -> Self {
        let mut tables = self.clone();
        for statement in &mut tables.statements {
            if let Touch::Scan(scan) = &mut statement.touch {
                scan.page_rows = scan.page_rows.min(WARM_PAGE_ROWS);
                scan.first_pages = true;
            }
        }
        tables
    }

    /// Bytes that the key of any partition needs.
    #[must_use]
    pub fn key_room(&self) -> usize {
        self.tables.iter().map(|table| table.generator.routing_room()).max().unwrap_or(0)
    }
}
