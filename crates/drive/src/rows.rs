//! Statements over the partitions of tables of any columns: draw -> rows -> EXECUTE or BATCH frame,
//! written in place.
//!
//! Which column a value is for says the server that prepared the statement. Rows are made anew at
//! each attempt, and are the same: what is chosen of a partition follows from the draw. Limits: a
//! frame of 16 MiB, the most that servers take as they are configured, and 65535 rows.

use crate::cql::PreparedId;
use crate::scans::{STATE_SIZE_MAX, Scans, Start};
use crate::validation::{Expected, Ways};
use record::Outcome;
use std::fmt;
use std::sync::Arc;
use wire::cql::request::{BatchKind, PreparedRef};
use wire::cql::{Consistency, Cursor, Header, PageTemplate, RowsTemplate, RowsWriter};
use workload::cassandra_stress::{
    BatchType, DrawState, JavaRandom, Partition, PartitionGenerator, Ratio, SeedVisits, Selection,
};
use workload::{Distribution, Draw, Place, Plan, TableRows, TableStatement, Tables, Touch, Write};

/// Longest frame in bytes.
const FRAME_SIZE_MAX: usize = 16 << 20;
/// Keep the draws of one operation apart: keys, shares, rows.
const KEY_SALT: u64 = 0x9E37_79B9_7F4A_7C15;
const SHARE_SALT: u64 = 0x53_48_41_52_45;
const ROW_SALT: u64 = 0x52_4F_57_53;

/// Why an operation has no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsendable {
    /// It has more rows than a frame holds.
    Large,
    /// It has none.
    Empty,
    /// What names the next page is longer than any key.
    State,
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Large => {
                "an operation has more rows than one frame holds (65535, or 16 MiB): give the \
                 insert a smaller select or fewer partitions"
            }
            Self::Empty => "an operation has no row to write",
            Self::State => "the target's paging state has more than 160 KiB",
        })
    }
}

/// The statements of a plan over tables, as they are executed.
#[derive(Debug)]
pub(crate) struct RowStatements {
    statements: Vec<RowStatement>,
}

#[derive(Debug)]
struct RowStatement {
    template: RowsTemplate,
    /// By value: where it comes from; None has no column, and is null.
    places: Vec<Option<Place>>,
    /// Bytes of the values of a row at most, their lengths among them.
    row_size_max: usize,
    frame_size_max: usize,
    /// Where the columns of its answers come from.
    columns: Vec<Option<Place>>,
    /// By value: which of the columns that were looked at before it is bound to.
    looked: Vec<Option<usize>>,
    /// Of statements that compare rows.
    ways: Option<Ways>,
    /// Of statements over ranges of tokens.
    page: Option<PageTemplate>,
}

/// Rows that a host has sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) header: &'a Header,
    pub(crate) body: &'a [u8],
    /// Rows.
    pub(crate) count: usize,
    /// In the body.
    pub(crate) cells_offset: usize,
    /// Of a row.
    pub(crate) column_count: usize,
}

impl<'a> Answer<'a> {
    /// The cells of all rows.
    pub(crate) fn cells(&self) -> &'a [u8] {
        &self.body[self.cells_offset..]
    }
}

/// What a worker makes rows in. To be used again and again.
#[derive(Debug)]
pub(crate) struct RowScratch {
    /// By table.
    partitions: Vec<Partition>,
    /// Keys that follow each other in an operation are so far apart.
    stride: u64,
    /// Rows that arguments may come from: seed, and where its clustering columns stand in `kept`.
    rows: Vec<KeptRow>,
    kept: Vec<u8>,
    /// By slot: the cells that were looked at, as they came; empty where there was no row.
    looked: Vec<Vec<u8>>,
    expected: Expected,
    scans: Scans,
}

#[derive(Debug, Clone, Copy, Default)]
struct KeptRow {
    seed: i64,
    /// In [`RowScratch::kept`].
    clustering: usize,
}

impl RowScratch {
    /// For one of so many workers, over these ranges of tokens.
    pub(crate) fn new(
        plan: &Plan,
        ranges: &Arc<[(i64, i64)]>,
        (worker, workers): (usize, usize),
    ) -> Option<Self> {
        let tables = &plan.tables.as_ref()?.tables;
        let partitions = tables.iter().map(|table| Partition::new(&table.generator));
        Some(Self {
            partitions: partitions.collect(),
            stride: workers.max(1) as u64,
            rows: Vec::new(),
            kept: Vec::new(),
            looked: Vec::new(),
            expected: Expected::default(),
            scans: Scans::new(plan, ranges, (worker, workers)),
        })
    }

    /// Whether an operation that was drawn has something to be about.
    pub(crate) fn begin(&mut self, draw: &mut Draw) -> Start {
        self.scans.begin(draw)
    }

    /// An operation is over, however it ended. Not inlined: plans without tables do without.
    #[inline(never)]
    pub(crate) fn over(&mut self, draw: &Draw) {
        self.scans.over(draw);
    }

    /// Keeps the cells of a row for the next step of the operation in a slot.
    fn look(&mut self, slot: u32, answer: &Answer<'_>) {
        let slot = slot as usize;
        if self.looked.len() <= slot {
            self.looked.resize_with(slot + 1, Vec::new);
        }
        let kept = &mut self.looked[slot];
        kept.clear();
        if answer.count > 0 {
            kept.extend_from_slice(answer.cells());
        }
    }
}

/// The level of a name that the front end has let pass.
fn level(name: Option<&String>) -> Option<Consistency> {
    name.and_then(|name| name.parse().ok())
}

impl RowStatements {
    /// For statements that were prepared in this version, in the order of the tables'.
    pub(crate) fn new(
        tables: &Tables,
        version: u8,
        ids: &[PreparedId],
        levels: impl Fn(&TableStatement) -> Consistency,
    ) -> Self {
        let of = |(statement, prepared): (&TableStatement, &PreparedId)| {
            let table = &tables.tables[statement.table];
            let places: Vec<_> = prepared.values.iter().map(|name| table.place(name)).collect();
            let room = |place: &Option<Place>| 4 + place.map_or(0, |place| table.room(place));
            let row_size_max = places.iter().map(room).sum();
            let (rows_max, batch) = match &statement.touch {
                Touch::Write(write) => match write.rows_max(table) {
                    1 => (1, None),
                    rows => (rows, Some(batch_kind(write.batch))),
                },
                _ => (1, None),
            };
            let consistency =
                level(statement.consistency.as_ref()).unwrap_or_else(|| levels(statement));
            let serial = level(statement.serial_consistency.as_ref());
            let reference = PreparedRef { id: &prepared.id, metadata_id: &prepared.metadata_id };
            let count = places.len() as u16;
            let levels = (consistency, serial);
            let template = RowsTemplate::new(version, reference, levels, count, batch);
            let page = match &statement.touch {
                Touch::Scan(scan) => {
                    Some(PageTemplate::new(version, reference, levels, scan.page_rows))
                }
                _ => None,
            };
            let looked = match &statement.touch {
                Touch::Swap { conditions, .. } => last_of_each(conditions, &prepared.values),
                _ => Vec::new(),
            };
            let ways = matches!(statement.touch, Touch::Validate(_));
            let rows = rows_max.saturating_mul(row_size_max + template.row_overhead());
            // One row always fits.
            let least = template.overhead() + template.row_overhead() + row_size_max;
            let paged = page.as_ref().map_or(0, |page| page.overhead() + STATE_SIZE_MAX);
            let frame_size_max =
                template.overhead().saturating_add(rows).min(FRAME_SIZE_MAX).max(least).max(paged);
            RowStatement {
                template,
                places,
                row_size_max,
                frame_size_max,
                columns: prepared.columns.iter().map(|name| table.place(name)).collect(),
                looked,
                ways: ways.then(|| Ways::of(&table.generator)),
                page,
            }
        };
        Self { statements: tables.statements.iter().zip(ids).map(of).collect() }
    }

    /// No frame is longer, in bytes.
    pub(crate) fn frame_size_max(&self) -> usize {
        self.statements.iter().map(|statement| statement.frame_size_max).max().unwrap_or(0)
    }

    /// Writes the frame of one execution to the front of `out`, which has room for
    /// [`Self::frame_size_max`] bytes; returns its size and its rows.
    pub(crate) fn encode(
        &self,
        plan: &Plan,
        tables: &Tables,
        statement: usize,
        draw: &Draw,
        (slot, stream, scratch, out): (u32, i16, &mut RowScratch, &mut [u8]),
    ) -> Result<(usize, u32), Unsendable> {
        let executable = &self.statements[statement];
        let asked = &tables.statements[statement];
        let table = &tables.tables[asked.table];
        let out = &mut out[..executable.frame_size_max];
        if let Some(page) = &executable.page {
            let size = scratch.scans.encode(draw, page, (stream, out));
            return size.map(|size| (size, 0)).ok_or(Unsendable::State);
        }
        let mut writer = executable.template.begin(out);
        let RowScratch { partitions, rows, kept, looked, expected, .. } = &mut *scratch;
        let (partition, seed) = (&mut partitions[asked.table], plan.keys.seed_of(draw.key));
        let mut asking = Asking {
            table,
            executable,
            row_population: None,
            same_row: true,
            looked: looked.get(slot as usize).map_or(&[], |looked| looked),
        };
        match &asked.touch {
            Touch::Write(write) => {
                let operation = Writing { plan, table, write, executable, index: asked.table };
                return operation.encode(draw, stream, scratch, writer);
            }
            Touch::Ask { same_row, row_population } => {
                (asking.same_row, asking.row_population) = (*same_row, Some(row_population));
            }
            Touch::Swap { row_population, .. } => asking.row_population = Some(row_population),
            Touch::Look | Touch::Scan(_) => {}
            Touch::Validate(bounds) => {
                let Some(ways) = &executable.ways else { return Err(Unsendable::Empty) };
                if !writer.row(executable.row_size_max) {
                    return Err(Unsendable::Empty);
                }
                let random = &mut random_of(draw);
                let between = expected.ask(ways, partition, (seed, bounds), random);
                // The keys stand before the bounds.
                let keys = executable.places.iter().filter_map(|place| match place {
                    Some(Place::Key(column)) => Some(*column),
                    _ => None,
                });
                keys.for_each(|column| copy(&mut writer, partition.key(column)));
                between.for_each(|value| copy(&mut writer, value));
                return Ok((writer.finish(stream), 0));
            }
        }
        let written = asking.encode(seed, draw, partition, (rows, kept), writer);
        written.map(|writer| (writer.finish(stream), 0))
    }

    /// Takes the rows that a statement has answered; returns its outcome, and the partitions that
    /// they are of where those are counted.
    pub(crate) fn take(
        &self,
        (plan, tables): (&Plan, &Tables),
        (statement, slot): (usize, u32),
        draw: &Draw,
        answer: &Answer<'_>,
        scratch: &mut RowScratch,
    ) -> (Outcome, Option<u32>) {
        let executable = &self.statements[statement];
        let asked = &tables.statements[statement];
        match &asked.touch {
            Touch::Write(_) | Touch::Ask { .. } | Touch::Swap { .. } => (Outcome::Ok, None),
            Touch::Look => {
                scratch.look(slot, answer);
                (Outcome::Ok, None)
            }
            Touch::Scan(_) => match scratch.scans.take(draw, answer) {
                Ok(partitions) => (Outcome::Ok, Some(partitions)),
                Err(_) => (Outcome::Error, None),
            },
            Touch::Validate(bounds) => {
                let Some(ways) = &executable.ways else { return (Outcome::Error, None) };
                let (partition, seed) =
                    (&mut scratch.partitions[asked.table], plan.keys.seed_of(draw.key));
                let (columns, random) = (&executable.columns[..], &mut random_of(draw));
                let met = scratch.expected.is_met(
                    ways,
                    partition,
                    (seed, bounds),
                    random,
                    (columns, answer),
                );
                (if met { Outcome::Ok } else { Outcome::Invalid }, None)
            }
        }
    }
}

/// By value: the place of its name among the conditions, where it is the last of that name.
fn last_of_each(conditions: &[String], values: &[String]) -> Vec<Option<usize>> {
    let mut places = vec![None; values.len()];
    for (index, name) in conditions.iter().enumerate() {
        if let Some(last) = values.iter().rposition(|value| value == name) {
            places[last] = Some(index);
        }
    }
    places
}

/// What the choice of rows of an operation follows from.
fn random_of(draw: &Draw) -> JavaRandom {
    JavaRandom::seeded((draw.value_seed ^ ROW_SALT).cast_signed())
}

fn batch_kind(batch: BatchType) -> BatchKind {
    match batch {
        BatchType::Logged => BatchKind::Logged,
        BatchType::Unlogged => BatchKind::Unlogged,
        BatchType::Counter => BatchKind::Counter,
    }
}

/// A share, drawn for an operation; most are constant.
fn share(ratio: &Ratio, state: &mut DrawState) -> f64 {
    ratio.sample(state)
}

/// The state of an operation's shares.
fn shares_of(draw: &Draw) -> DrawState {
    DrawState::seeded((draw.value_seed ^ SHARE_SALT).cast_signed())
}

/// Puts copies of what a partition holds into a frame.
fn copy(writer: &mut RowsWriter<'_>, value: &[u8]) {
    writer.value(|out| {
        out[..value.len()].copy_from_slice(value);
        value.len()
    });
}

/// The value of a column of a row.
fn value(writer: &mut RowsWriter<'_>, generator: &PartitionGenerator, seed: i64, column: usize) {
    writer.value(|out| Partition::write_value(generator, seed, column, out));
}

/// Rows of some partitions, to be written together.
struct Writing<'a> {
    plan: &'a Plan,
    table: &'a TableRows,
    write: &'a Write,
    executable: &'a RowStatement,
    /// Of the table.
    index: usize,
}

impl Writing<'_> {
    fn encode(
        &self,
        draw: &Draw,
        stream: i16,
        scratch: &mut RowScratch,
        mut writer: RowsWriter<'_>,
    ) -> Result<(usize, u32), Unsendable> {
        let generator = &self.table.generator;
        let mut random = random_of(draw);
        let mut shares = shares_of(draw);
        for place in 0..draw.scan_length.max(1) {
            let seed = self.seed(draw, place, scratch.stride);
            let select = Selection::Share(share(&self.write.select, &mut shares));
            let population = share(&self.write.row_population, &mut shares);
            let partition = &mut scratch.partitions[self.index];
            let mut visits = match &self.write.visits {
                Some(visits) => visits.visit(generator, partition, seed, draw.column),
                None => SeedVisits::new(seed, 1),
            };
            if !partition.start_write(generator, &mut visits, select, population, &mut random) {
                continue;
            }
            while partition.has_row() {
                if !writer.row(self.executable.row_size_max) {
                    return Err(Unsendable::Large);
                }
                let row_seed = partition.row_seed(generator);
                for place in &self.executable.places {
                    match *place {
                        Some(Place::Key(column)) => copy(&mut writer, partition.key(column)),
                        Some(Place::Clustering(column)) => {
                            copy(&mut writer, partition.clustering(column));
                        }
                        Some(Place::Value(column)) if partition.has_value(generator, column) => {
                            value(&mut writer, generator, row_seed, column);
                        }
                        Some(Place::Value(_)) | None => writer.null(),
                    }
                }
                partition.advance(generator, &mut random);
            }
        }
        match writer.rows() {
            0 => Err(Unsendable::Empty),
            rows => Ok((writer.finish(stream), u32::from(rows))),
        }
    }

    /// The seed of one of the operation's partitions.
    fn seed(&self, draw: &Draw, place: u32, stride: u64) -> i64 {
        let keys = &self.plan.keys;
        if place == 0 {
            return keys.seed_of(draw.key);
        }
        let place = u64::from(place);
        match &keys.distribution {
            Distribution::Drawn(distribution) => {
                let state = draw.value_seed ^ place.wrapping_mul(KEY_SALT);
                distribution.sample(&mut DrawState::seeded(state.cast_signed()))
            }
            _ => {
                let behind = (draw.key - keys.start) + place * stride;
                keys.seed_of(keys.start + behind % keys.loaded.max(1))
            }
        }
    }
}

/// Values of rows of one partition, to ask with.
struct Asking<'a> {
    table: &'a TableRows,
    executable: &'a RowStatement,
    /// None is all.
    row_population: Option<&'a Ratio>,
    same_row: bool,
    /// What the step before has found.
    looked: &'a [u8],
}

impl Asking<'_> {
    fn encode<'w>(
        &self,
        seed: i64,
        draw: &Draw,
        partition: &mut Partition,
        (rows, kept): (&mut Vec<KeptRow>, &mut Vec<u8>),
        mut writer: RowsWriter<'w>,
    ) -> Result<RowsWriter<'w>, Unsendable> {
        let generator = &self.table.generator;
        let mut random = random_of(draw);
        let population = self.row_population.map_or(1.0, |r| share(r, &mut shares_of(draw)));
        let places = &self.executable.places;
        let wanted = if self.same_row { 1 } else { places.len().max(1) };
        let selection = Selection::Rows(wanted as u32);
        partition.start_read(
            generator,
            &SeedVisits::new(seed, 1),
            selection,
            population,
            &mut random,
        );
        rows.clear();
        kept.clear();
        while partition.has_row() && rows.len() < wanted {
            rows.push(KeptRow { seed: partition.row_seed(generator), clustering: kept.len() });
            for place in places.iter().flatten() {
                if let Place::Clustering(column) = place {
                    let bytes = partition.clustering(*column);
                    kept.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                    kept.extend_from_slice(bytes);
                }
            }
            partition.advance(generator, &mut random);
        }
        if rows.is_empty() || !writer.row(self.executable.row_size_max) {
            return Err(Unsendable::Empty);
        }
        let mut clustering = 0;
        for (index, place) in places.iter().enumerate() {
            if let Some(Some(found)) = self.executable.looked.get(index) {
                match nth_cell(self.looked, *found) {
                    Some(cell) => copy(&mut writer, cell),
                    None => writer.null(),
                }
                continue;
            }
            // As in the original: each value of a row, the key of the partition.
            let row = rows[(random.next_f64() * rows.len() as f64) as usize % rows.len()];
            match *place {
                Some(Place::Key(column)) => copy(&mut writer, partition.key(column)),
                Some(Place::Clustering(_)) => {
                    copy(&mut writer, nth(&kept[row.clustering..], clustering));
                    clustering += 1;
                }
                Some(Place::Value(column)) if partition.has_value(generator, column) => {
                    value(&mut writer, generator, row.seed, column);
                }
                Some(Place::Value(_)) | None => writer.null(),
            }
        }
        Ok(writer)
    }
}

/// The cell of that index; None where it is null, or there is none.
fn nth_cell(cells: &[u8], index: usize) -> Option<&[u8]> {
    let mut cells = Cursor::new(cells);
    for _ in 0..index {
        cells.bytes("cell").ok()?;
    }
    cells.bytes("cell").ok()?
}

/// The one of that index of values behind their lengths.
fn nth(mut values: &[u8], index: usize) -> &[u8] {
    let mut left = index;
    while let Some((length, rest)) = values.split_first_chunk::<4>() {
        let size = (u32::from_be_bytes(*length) as usize).min(rest.len());
        if left == 0 {
            return &rest[..size];
        }
        left -= 1;
        values = &rest[size..];
    }
    &[]
}
