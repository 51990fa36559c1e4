//! Rows of a partition, compared with what was written.
//!
//! In: a seed, and the answer to all rows of its partition or to those between two of them. Out:
//! whether exactly those rows are there, each with its values. Rows are found by their clustering
//! columns, so that the order of the answer does not matter. Source: cassandra-stress,
//! `operations/userdefined/ValidatingSchemaQuery.java`, which generates in ascending order; where a
//! partition was written in another one, its values are others (they follow from the first of each
//! level). Here a partition is right in either way. Nothing is allocated once the buffers have
//! grown. Cost: all rows of the partition are made, at the request and at the answer.

use crate::rows::Answer;
use std::cmp::Ordering;
use wire::cql::{Cursor, DecodeError};
use workload::cassandra_stress::{
    JavaRandom, Order, Partition, PartitionGenerator, SeedVisits, Selection,
};
use workload::{Bounds, Place};

/// The rows of a partition.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    rows: Vec<Row>,
    /// Clustering columns of all rows, each behind its length.
    kept: Vec<u8>,
    /// The first clustering columns of the bounds, likewise.
    lower: Vec<u8>,
    upper: Vec<u8>,
    /// Of the row that is looked for.
    sought: Vec<u8>,
    value: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    seed: i64,
    /// In [`Expected::kept`].
    start: usize,
    end: usize,
}

/// In which ways the rows of a table may have been made.
#[derive(Debug)]
pub(crate) struct Ways {
    /// As the line has them, and bounds are drawn from.
    first: PartitionGenerator,
    /// As the original expects them, where that is another way.
    sorted: Option<PartitionGenerator>,
}

impl Ways {
    pub(crate) fn of(generator: &PartitionGenerator) -> Self {
        let sorted = generator.ordered(Order::Sorted);
        match generator.order() {
            // Nothing is known of how they were shuffled.
            Order::Sorted | Order::Shuffled => Self { first: sorted, sorted: None },
            Order::Arbitrary => Self { first: generator.clone(), sorted: Some(sorted) },
        }
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The values that stand behind their lengths.
fn each(mut values: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = values.split_first_chunk::<4>()?;
        let size = (u32::from_be_bytes(*length) as usize).min(rest.len());
        values = &rest[size..];
        Some(&rest[..size])
    })
}

/// How databases order the first clustering columns of rows; of as many as the shorter one has.
fn compare(generator: &PartitionGenerator, a: &[u8], b: &[u8]) -> Ordering {
    let columns = each(a).zip(each(b)).enumerate();
    let orders = columns.map(|(column, (a, b))| generator.compare_stored(column, a, b));
    orders.fold(Ordering::Equal, Ordering::then)
}

impl Expected {
    /// Makes the rows of a seed's partition.
    fn fill(&mut self, generator: &PartitionGenerator, partition: &mut Partition, seed: i64) {
        self.rows.clear();
        self.kept.clear();
        let (visits, whole) = (SeedVisits::new(seed, 1), Selection::Share(1.0));
        // Of no effect where all are taken.
        let mut random = JavaRandom::seeded(0);
        partition.start_read(generator, &visits, whole, 1.0, &mut random);
        while partition.has_row() {
            let start = self.kept.len();
            (0..generator.depth()).for_each(|c| put(partition.clustering(c), &mut self.kept));
            let (seed, end) = (partition.row_seed(generator), self.kept.len());
            self.rows.push(Row { seed, start, end });
            partition.advance(generator, &mut random);
        }
    }

    /// Draws bounds from the rows.
    fn bound(&mut self, generator: &PartitionGenerator, depth: usize, random: &mut JavaRandom) {
        let Self { rows, kept, lower, upper, .. } = self;
        let mut drawn = || {
            let row = rows[(random.next_f64() * rows.len() as f64) as usize % rows.len()];
            &kept[row.start..row.end]
        };
        let pair = (drawn(), drawn());
        let (low, high) = match compare_first(generator, depth, pair.0, pair.1) {
            Ordering::Greater => (pair.1, pair.0),
            _ => pair,
        };
        for (bound, row) in [(lower, low), (upper, high)] {
            bound.clear();
            each(row).take(depth).for_each(|value| put(value, bound));
        }
    }

    /// Keeps the rows between the bounds, in the order of their bytes.
    fn keep(&mut self, generator: &PartitionGenerator, bounds: &Bounds) {
        let Self { rows, kept, lower, upper, .. } = self;
        if bounds.depth > 0 {
            rows.retain(|row| {
                let row = &kept[row.start..row.end];
                let (low, high) = (compare(generator, row, lower), compare(generator, row, upper));
                (low == Ordering::Greater || bounds.lower_inclusive && low == Ordering::Equal)
                    && (high == Ordering::Less || bounds.upper_inclusive && high == Ordering::Equal)
            });
        }
        rows.sort_unstable_by(|a, b| kept[a.start..a.end].cmp(&kept[b.start..b.end]));
    }

    /// Draws what a seed's partition is asked for; returns the values of the bounds, the lower
    /// one's first.
    pub(crate) fn ask<'s>(
        &'s mut self,
        ways: &Ways,
        partition: &mut Partition,
        (seed, bounds): (i64, &Bounds),
        random: &mut JavaRandom,
    ) -> impl Iterator<Item = &'s [u8]> + use<'s> {
        self.fill(&ways.first, partition, seed);
        self.lower.clear();
        self.upper.clear();
        if bounds.depth > 0 {
            self.bound(&ways.first, bounds.depth, random);
        }
        each(&self.lower).chain(each(&self.upper))
    }

    /// Whether an answer to [`Self::ask`], drawn as there, has these rows. `columns` are those of
    /// the answer.
    pub(crate) fn is_met(
        &mut self,
        ways: &Ways,
        partition: &mut Partition,
        (seed, bounds): (i64, &Bounds),
        random: &mut JavaRandom,
        (columns, answer): (&[Option<Place>], &Answer<'_>),
    ) -> bool {
        drop(self.ask(ways, partition, (seed, bounds), random));
        for generator in [Some(&ways.first), ways.sorted.as_ref()].into_iter().flatten() {
            self.fill(generator, partition, seed);
            self.keep(generator, bounds);
            let same = self.rows.len() == answer.count
                && answer.column_count == columns.len()
                && self.has(generator, partition, bounds, (columns, answer)).unwrap_or(false);
            if same {
                return true;
            }
        }
        false
    }

    /// Whether each row of the answer is one of these.
    fn has(
        &mut self,
        generator: &PartitionGenerator,
        partition: &Partition,
        bounds: &Bounds,
        (columns, answer): (&[Option<Place>], &Answer<'_>),
    ) -> Result<bool, DecodeError> {
        let mut cells = Cursor::new(answer.cells());
        for _ in 0..answer.count {
            self.sought.clear();
            for wanted in 0..generator.depth() {
                let mut row = Cursor::new(cells.rest());
                for place in columns {
                    let cell = row.bytes("cell")?;
                    if *place == Some(Place::Clustering(wanted)) {
                        put(cell.unwrap_or_default(), &mut self.sought);
                    }
                }
            }
            let Self { rows, kept, sought, .. } = self;
            let found = rows.binary_search_by(|row| kept[row.start..row.end].cmp(&sought[..]));
            let Ok(found) = found else { return Ok(false) };
            let seed = self.rows[found].seed;
            for place in columns {
                let cell = cells.bytes("cell")?;
                let same = match *place {
                    Some(Place::Key(column)) => cell == Some(partition.key(column)),
                    Some(Place::Value(column)) => {
                        self.is_value(generator, (seed, column), bounds, cell)
                    }
                    Some(Place::Clustering(_)) | None => true,
                };
                if !same {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether a value column has what was written to it.
    fn is_value(
        &mut self,
        generator: &PartitionGenerator,
        (seed, column): (i64, usize),
        bounds: &Bounds,
        cell: Option<&[u8]>,
    ) -> bool {
        let Some(cell) = cell else {
            let share = (column + 1) as f64 / generator.value_count() as f64;
            return share > bounds.present;
        };
        let room = generator.value_room(column);
        if self.value.len() < room {
            self.value.resize(room, 0);
        }
        let size = Partition::write_value(generator, seed, column, &mut self.value);
        generator.is_same(column, &self.value[..size], cell)
    }
}

/// As [`compare`], of so many columns.
fn compare_first(generator: &PartitionGenerator, depth: usize, a: &[u8], b: &[u8]) -> Ordering {
    let columns = each(a).zip(each(b)).take(depth).enumerate();
    let orders = columns.map(|(column, (a, b))| generator.compare_stored(column, a, b));
    orders.fold(Ordering::Equal, Ordering::then)
}
