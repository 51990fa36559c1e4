//! A plan's statements as CQL: the text that is prepared, and the frames that execute it.
//!
//! [`Statement`](workload::Statement) + keyspace and table -> CQL text; prepared id + [`Draw`] ->
//! EXECUTE frame, written in place. The texts over columns of text are those of YCSB's
//! `cassandra-cql` binding (`CassandraCQLClient.java`): reads and scans of all fields select
//! everything, an update names the fields that it sets, an insert names all. Those over blobs and
//! counters are cassandra-stress's.

use crate::rows::{Answer, RowScratch, RowStatements, Unsendable};
use crate::scans::token_ranges;
use record::Outcome;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use wire::cql::request::PreparedRef;
use wire::cql::response::{Metadata, Prepared};
use wire::cql::{Consistency, ExecuteTemplate, FrameWriter, Protocol};
use workload::{
    Action, Blobs, Cells, Counters, Draw, Plan, Random, Statement, TableStatement, Touch, ValueKind,
};

/// A name as CQL wants it: quoted where it is not a plain lower-case identifier.
#[must_use]
pub fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Keyspace and table of a run.
#[derive(Debug, Clone)]
pub struct TableName {
    /// As given, unquoted.
    pub keyspace: String,
    /// As given, unquoted.
    pub table: String,
}

impl TableName {
    /// `keyspace.table`, quoted where needed.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.keyspace), identifier(&self.table))
    }
}

/// Consistency levels of a plan's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Of reads and scans.
    pub read: Consistency,
    /// Of updates and inserts.
    pub write: Consistency,
}

impl From<Consistency> for Levels {
    fn from(level: Consistency) -> Self {
        Self { read: level, write: level }
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { read, write } if read == write => write!(f, "{read}"),
            Self { read, write } => write!(f, "{read} for reads, {write} for writes"),
        }
    }
}

impl Levels {
    fn of(&self, action: Action) -> Consistency {
        match action {
            Action::Read | Action::Scan => self.read,
            Action::Update | Action::Insert => self.write,
        }
    }
}

/// Creates the keyspace where it is missing; `replication` is a map literal or a factor for
/// `SimpleStrategy`.
#[must_use]
pub fn create_keyspace(name: &TableName, replication: &str) -> String {
    let map = match replication.trim().parse::<u32>() {
        Ok(factor) => format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"),
        Err(_) => replication.to_owned(),
    };
    format!("CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {map}", identifier(&name.keyspace))
}

/// Creates the plan's table where it is missing.
#[must_use]
pub fn create_table(plan: &Plan, name: &TableName) -> String {
    let mut text = format!("CREATE TABLE IF NOT EXISTS {} (", name.quoted());
    let key = key_type(plan);
    let _ = write!(text, "{} {key} PRIMARY KEY", identifier(&plan.schema.key_column));
    for (index, column) in plan.schema.columns.iter().enumerate() {
        let _ = write!(text, ", {} {}", identifier(column), value_type(plan, index));
    }
    text + ")"
}

/// CQL's type of the key.
#[must_use]
pub fn key_type(plan: &Plan) -> &'static str {
    match plan.schema.cells {
        Cells::Text => "text",
        Cells::Blob | Cells::Counter => "blob",
        Cells::Objects => "bigint",
    }
}

/// CQL's type of a value column. Lists and maps of any values have none, and are blobs.
#[must_use]
pub fn value_type(plan: &Plan, column: usize) -> &'static str {
    match (plan.schema.cells, plan.value_kind(column)) {
        (Cells::Counter, _) => "counter",
        (_, Some(ValueKind::Integer)) => "bigint",
        (_, Some(ValueKind::Double)) => "double",
        (_, Some(ValueKind::Boolean)) => "boolean",
        (Cells::Text, None) | (_, Some(ValueKind::Text)) => "text",
        (Cells::Blob | Cells::Objects, None)
        | (_, Some(ValueKind::Blob | ValueKind::List | ValueKind::Map)) => "blob",
    }
}

/// The text of every statement of a plan, in its order.
#[must_use]
pub fn statement_texts(plan: &Plan, name: &TableName) -> Vec<String> {
    if let Some(tables) = &plan.tables {
        return tables.statements.iter().map(|statement| statement.text.clone()).collect();
    }
    let beside = |table: &str| {
        TableName { keyspace: name.keyspace.clone(), table: table.to_owned() }.quoted()
    };
    let counters = plan.counters.as_ref().map(|counters| beside(&counters.table));
    let text = |statement: &Statement| match &counters {
        Some(counters) if statement.counts => text_of(plan, statement, counters),
        _ => text_of(plan, statement, &name.quoted()),
    };
    plan.statements.iter().map(text).collect()
}

fn text_of(plan: &Plan, statement: &Statement, table: &str) -> String {
    let key = identifier(&plan.schema.key_column);
    let columns = statement.columns.iter().map(|&i| identifier(&plan.schema.columns[i]));
    let listed = |separator: &str| columns.clone().collect::<Vec<_>>().join(separator);
    match statement.action {
        Action::Read => {
            let limit = if plan.schema.cells == Cells::Text { " LIMIT 1" } else { "" };
            format!("SELECT {} FROM {table} WHERE {key} = ?{limit}", selection(plan, statement))
        }
        Action::Scan => format!(
            "SELECT {} FROM {table} WHERE token({key}) >= token(?) LIMIT ?",
            selection(plan, statement)
        ),
        Action::Update => {
            let at = plan.schema.timestamp_us.filter(|_| !statement.counts);
            let at = at.map(|at| format!(" USING TIMESTAMP {at}"));
            let cells = if statement.counts { Cells::Counter } else { plan.schema.cells };
            let set = match cells {
                Cells::Counter => {
                    columns.map(|c| format!("{c} = {c} + ?")).collect::<Vec<_>>().join(", ")
                }
                Cells::Text | Cells::Blob | Cells::Objects => listed(" = ?, ") + " = ?",
            };
            format!("UPDATE {table}{} SET {set} WHERE {key} = ?", at.unwrap_or_default())
        }
        Action::Insert => {
            let marks = ", ?".repeat(statement.columns.len());
            format!("INSERT INTO {table} ({key}, {}) VALUES (?{marks})", listed(", "))
        }
    }
}

/// What a read asks for. The key is always among it where everything is: as in `SELECT *`, but in
/// an order that is known here, so that what comes back can be verified.
fn selection(plan: &Plan, statement: &Statement) -> String {
    let columns = statement.columns.iter().map(|&i| identifier(&plan.schema.columns[i]));
    let key = (selects_key(statement)).then(|| identifier(&plan.schema.key_column));
    key.into_iter().chain(columns).collect::<Vec<_>>().join(", ")
}

fn selects_key(statement: &Statement) -> bool {
    !statement.by_name || statement.action == Action::Scan
}

/// What a prepared statement is executed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedId {
    /// Of the statement.
    pub id: Vec<u8>,
    /// Of the metadata of its rows; empty in protocol v4, which has none.
    pub metadata_id: Vec<u8>,
    /// What its values are for, by the names that the server gives them: columns, mostly.
    pub values: Vec<String>,
    /// What its rows hold, by the names that the server gives it.
    pub columns: Vec<String>,
}

impl From<Prepared> for PreparedId {
    fn from(prepared: Prepared) -> Self {
        let names = |metadata: Metadata| {
            metadata.columns.into_iter().map(|column| column.name).collect::<Vec<_>>()
        };
        Self {
            id: prepared.id,
            metadata_id: prepared.metadata_id,
            values: names(prepared.values),
            columns: names(prepared.rows),
        }
    }
}

/// Writes EXECUTE frames for the statements of a plan. Shared by all workers, never written to.
#[derive(Debug)]
pub struct Encoder {
    plan: Arc<Plan>,
    statements: Vec<Executable>,
    /// Of a plan over tables; it writes the frames then.
    rows: Option<RowStatements>,
    /// What statements over ranges of tokens read.
    ranges: Arc<[(i64, i64)]>,
    frame_size_max: usize,
    protocol: Protocol,
}

/// The values of most plans. A function of its own, because the loop needs all registers.
#[inline(never)]
fn write_random<'a>(
    mut frame: FrameWriter<'a>,
    random: Random,
    value_seed: u64,
    columns: &[usize],
) -> FrameWriter<'a> {
    for &column in columns {
        frame.value(|out| random.write(value_seed, column, out));
    }
    frame
}

/// Blobs that follow from the key.
#[inline(never)]
fn write_blobs<'a>(
    mut frame: FrameWriter<'a>,
    blobs: Blobs<'_>,
    columns: &[usize],
) -> FrameWriter<'a> {
    for &column in columns {
        frame.value(|out| blobs.write(column, out));
    }
    frame
}

/// What the counters beside the rows grow by.
#[inline(never)]
fn write_counts<'a>(
    mut frame: FrameWriter<'a>,
    plan: &Plan,
    draw: &Draw,
    columns: &[usize],
) -> FrameWriter<'a> {
    for &column in columns {
        frame.value(|out| match &plan.counters {
            Some(Counters { values, .. }) => {
                values.write_value(draw.value_seed, &[], column, &plan.schema.columns, out)
            }
            None => 0,
        });
    }
    frame
}

#[derive(Debug)]
struct Executable {
    template: ExecuteTemplate,
    statement: Statement,
    text: String,
    id: Vec<u8>,
}

impl Encoder {
    /// For prepared ids in the order of the plan's statements, in protocol v4 without compression.
    #[must_use]
    pub fn new(
        plan: Arc<Plan>,
        table: &TableName,
        ids: &[Vec<u8>],
        levels: impl Into<Levels>,
    ) -> Self {
        let bare = |id: &Vec<u8>| {
            let (metadata_id, values, columns) = (Vec::new(), Vec::new(), Vec::new());
            PreparedId { id: id.clone(), metadata_id, values, columns }
        };
        let ids: Vec<_> = ids.iter().map(bare).collect();
        Self::speaking(Protocol::default(), plan, table, &ids, levels)
    }

    /// For statements that were prepared in this protocol, in the order of the plan's.
    #[must_use]
    pub fn speaking(
        protocol: Protocol,
        plan: Arc<Plan>,
        table: &TableName,
        ids: &[PreparedId],
        levels: impl Into<Levels>,
    ) -> Self {
        let levels = levels.into();
        let texts = statement_texts(&plan, table);
        let statements: Vec<_> = plan
            .statements
            .iter()
            .zip(ids)
            .zip(texts)
            .map(|((statement, PreparedId { id, metadata_id, .. }), text)| {
                let values = match statement.action {
                    Action::Read => 1,
                    Action::Scan => 2,
                    Action::Update | Action::Insert => statement.columns.len() + 1,
                };
                let (version, prepared) = (protocol.version(), PreparedRef { id, metadata_id });
                let level = levels.of(statement.action);
                Executable {
                    template: ExecuteTemplate::new(version, prepared, level, values as u16),
                    statement: statement.clone(),
                    text,
                    id: id.clone(),
                }
            })
            .collect();
        let sizes = statements.iter().map(|Executable { template, statement, .. }| {
            let values = match statement.action {
                Action::Read | Action::Scan => 8,
                // What a value is written with may be longer than itself.
                Action::Update | Action::Insert => {
                    let counter = if plan.counters.is_some() { size_of::<i64>() } else { 0 };
                    let (most, room) = (plan.value_size_max(), plan.value_room());
                    statement.columns.len() * (4 + most.max(counter)) + room.max(counter)
                }
            };
            template.frame_size(4 + plan.key_size_max() + values)
        });
        let rows = plan.tables.as_ref().map(|tables| {
            let level = |statement: &TableStatement| match statement.touch {
                Touch::Write(_) => levels.write,
                _ => levels.read,
            };
            RowStatements::new(tables, protocol.version(), ids, level)
        });
        let frame_size_max = match &rows {
            Some(rows) => rows.frame_size_max(),
            None => sizes.max().unwrap_or(0),
        };
        let ranges = token_ranges(Vec::new());
        Self { frame_size_max, statements, rows, ranges, plan, protocol }
    }

    /// The same, over a ring with these ranges of tokens; without them they are all in one.
    #[must_use]
    pub fn over(self, ranges: &Arc<[(i64, i64)]>) -> Self {
        Self { ranges: ranges.clone(), ..self }
    }

    /// Ranges of tokens of the ring.
    #[must_use]
    pub fn ranges(&self) -> &Arc<[(i64, i64)]> {
        &self.ranges
    }

    /// No frame of this encoder is longer, in bytes.
    #[must_use]
    pub fn frame_size_max(&self) -> usize {
        self.frame_size_max
    }

    /// Of the connections that its frames go out on.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The plan that it encodes.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Writes the key of a draw, which routes it, to the front of `out`, which has the plan's room
    /// for keys; returns its size in bytes.
    #[inline]
    pub(crate) fn write_key(&self, draw: &Draw, out: &mut [u8]) -> usize {
        if self.rows.is_none() {
            return self.plan.write_key(draw.key, out);
        }
        // An operation over tables is one statement.
        let operation = &self.plan.run[usize::from(draw.operation)];
        self.plan.write_key_of(operation.steps[0].first_statement, draw.key, out)
    }

    /// Writes the frame of one execution to the front of `out`, which has room for
    /// [`Self::frame_size_max`] bytes; returns its size. `key` is the text of the draw's key.
    #[inline]
    pub fn encode(
        &self,
        statement: usize,
        draw: &Draw,
        key: &[u8],
        stream: i16,
        out: &mut [u8],
    ) -> usize {
        let plan = &*self.plan;
        let Executable { template, statement, .. } = &self.statements[statement];
        let mut frame = template.begin(out);
        let copy_key = |out: &mut [u8]| {
            out[..key.len()].copy_from_slice(key);
            key.len()
        };
        if statement.action != Action::Update {
            frame.value(copy_key);
        }
        match statement.action {
            Action::Read => {}
            Action::Scan => frame.value(|out| {
                out[..4].copy_from_slice(&draw.scan_length.to_be_bytes());
                4
            }),
            Action::Update | Action::Insert => match plan.values.random() {
                Some(random) => {
                    frame = write_random(frame, random, draw.value_seed, &statement.columns);
                }
                None if statement.counts => {
                    frame = write_counts(frame, plan, draw, &statement.columns);
                }
                None => match plan.values.blobs_of(key) {
                    Some(blobs) => frame = write_blobs(frame, blobs, &statement.columns),
                    None => {
                        for &column in &statement.columns {
                            frame.value(|out| plan.write_value(draw, key, column, out));
                        }
                    }
                },
            },
        }
        if statement.action == Action::Update {
            frame.value(copy_key);
        }
        frame.finish(stream)
    }

    /// As [`Self::encode`], of a plan over tables; also the rows that the frame writes.
    #[inline]
    pub(crate) fn encode_rows(
        &self,
        statement: usize,
        draw: &Draw,
        into: (u32, i16, &mut RowScratch, &mut [u8]),
    ) -> Result<(usize, u32), Unsendable> {
        match (&self.rows, &self.plan.tables) {
            (Some(rows), Some(tables)) => rows.encode(&self.plan, tables, statement, draw, into),
            _ => Err(Unsendable::Empty),
        }
    }

    /// Which of the plan's tables a statement is over; the first one where there is only one.
    #[inline]
    pub(crate) fn table_of(&self, statement: usize) -> usize {
        let tables = self.plan.tables.as_ref();
        tables.map_or(0, |tables| tables.statements[statement].table)
    }

    /// Takes the rows that a statement of a plan over tables has answered, for the operation in a
    /// slot; returns its outcome, and the partitions that they are of where those are counted.
    pub(crate) fn take_rows(
        &self,
        place: (usize, u32),
        draw: &Draw,
        answer: &Answer<'_>,
        scratch: &mut RowScratch,
    ) -> (Outcome, Option<u32>) {
        match (&self.rows, &self.plan.tables) {
            (Some(rows), Some(tables)) => {
                rows.take((&self.plan, tables), place, draw, answer, scratch)
            }
            _ => (Outcome::Ok, None),
        }
    }

    /// Whether its statements are over tables: what they answer is theirs.
    #[must_use]
    #[inline]
    pub fn has_tables(&self) -> bool {
        self.rows.is_some()
    }

    /// Whether every cell of every row is what the plan's data integrity says. `cells` is the body
    /// of the answer behind its metadata. True for answers of writes.
    #[must_use]
    pub fn verify(
        &self,
        statement: usize,
        draw: &Draw,
        rows: usize,
        cells: &[u8],
        key: &mut [u8],
    ) -> bool {
        let plan = &*self.plan;
        let statement = &self.statements[statement].statement;
        if statement.counts {
            return true;
        }
        let key_size = plan.write_key(draw.key, key);
        let mut cells = wire::cql::Cursor::new(cells);
        for _ in 0..rows {
            let mut row_key: &[u8] = &key[..key_size];
            if selects_key(statement) {
                match cells.bytes("key") {
                    // A scan's rows have keys of their own.
                    Ok(Some(cell)) if statement.action == Action::Scan || cell == row_key => {
                        row_key = cell
                    }
                    _ => return false,
                }
            }
            if let Some(blobs) = plan.values.blobs_of(row_key) {
                let same = |&column: &usize| match cells.bytes("cell") {
                    Ok(Some(value)) => blobs.verify(column, value),
                    _ => false,
                };
                if !statement.columns.iter().all(same) {
                    return false;
                }
                continue;
            }
            for &column in &statement.columns {
                match cells.bytes("cell") {
                    Ok(Some(value)) if plan.verify(row_key, column, value) => {}
                    _ => return false,
                }
            }
        }
        true
    }

    /// The text of a statement, to prepare it again where a host has forgotten it.
    #[must_use]
    pub fn text(&self, statement: usize) -> &str {
        &self.statements[statement].text
    }

    /// Whether `id` is the one that this statement is executed by.
    #[must_use]
    pub fn is_id(&self, statement: usize, id: &[u8]) -> bool {
        self.statements[statement].id == id
    }

    /// Whether this statement scans.
    #[must_use]
    #[inline]
    pub fn scans(&self, statement: usize) -> bool {
        self.statements[statement].statement.action == Action::Scan
    }

    /// Whether answers of this statement are rows.
    #[must_use]
    #[inline]
    pub fn reads(&self, statement: usize) -> bool {
        matches!(self.statements[statement].statement.action, Action::Read | Action::Scan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, quoted) in
            [("ycsb", "ycsb"), ("Ycsb", "\"Ycsb\""), ("1a", "\"1a\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(identifier(name), quoted);
        }
    }

    #[test]
    fn replication_is_a_factor_or_a_map() {
        let name = TableName { keyspace: "k".into(), table: "t".into() };
        assert!(
            create_keyspace(&name, "3")
                .ends_with("{'class': 'SimpleStrategy', 'replication_factor': 3}")
        );
        let map = "{'class': 'NetworkTopologyStrategy', 'dc1': 3}";
        assert!(create_keyspace(&name, map).ends_with(map));
    }
}
