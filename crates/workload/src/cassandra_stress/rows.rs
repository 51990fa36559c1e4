//! Rows of a partition under a `user` profile: a seed -> the partition's key, its clustering rows
//! one after the other, and the values of each.
//!
//! Each clustering column takes a number of values below each value of the column before; they are
//! made level by level, so that memory follows the sum of the levels and not their product. One
//! visit goes over a range of the rows and touches each with a chance. As in the original, values
//! below a level follow from its first value alone, and a row's seed is the fold of the leaf's
//! value onto that of the first leaf.
//!
//! Source: cassandra-stress, `generate/{PartitionGenerator,PartitionIterator,Row}.java`. Chances
//! and shuffles come from the worker's generator; the original's is seeded with the time. A number
//! of values below 1, with which the original ends in an exception, counts as 1. Nothing is
//! allocated once the buffers have grown.

use super::column::ColumnGenerator;
use super::java_random::JavaRandom;
use super::profile::{NamedColumn, Table};
use std::cmp::Ordering;

/// The original compares a chance with this in single precision.
const CERTAIN: f64 = 0.99999f32 as f64;

/// In which order the values of a level come: `-pop contents=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As drawn.
    Arbitrary,
    /// Ascending; as drawn where the type has no order there (inet, collections).
    Sorted,
    /// Anew at each visit.
    Shuffled,
}

/// What makes the partitions of a table.
#[derive(Debug, Clone)]
pub struct PartitionGenerator {
    pub(super) partition_key: Vec<ColumnGenerator>,
    pub(super) clustering: Vec<ColumnGenerator>,
    values: Vec<ColumnGenerator>,
    order: Order,
    /// Values of a level on average.
    components: Vec<i64>,
    /// Rows below one value of a level on average.
    descendants: Vec<i64>,
}

impl PartitionGenerator {
    /// The partitions of a table.
    #[must_use]
    pub fn new(table: &Table, order: Order) -> Self {
        let generators = |columns: &[NamedColumn]| -> Vec<ColumnGenerator> {
            columns.iter().map(|column| column.generator.clone()).collect()
        };
        let clustering = generators(&table.clustering_key);
        let components: Vec<i64> =
            clustering.iter().map(|column| column.cluster().average().max(1)).collect();
        let mut descendants = vec![1i64; components.len()];
        for level in (1..components.len()).rev() {
            descendants[level - 1] = components[level].saturating_mul(descendants[level]);
        }
        let partition_key = generators(&table.partition_key);
        let values = generators(&table.values);
        Self { partition_key, clustering, values, order, components, descendants }
    }

    /// Most rows of a partition; least, as in the original, where distributions are inverted.
    #[must_use]
    pub fn rows_max(&self) -> f64 {
        self.clustering.iter().map(|column| column.cluster().quantile(1.0) as f64).product()
    }

    fn visit_size(&self, expected: i64, visits: i64) -> i64 {
        match visits {
            1 => (self.rows_max() as i64).saturating_add(1),
            visits => (expected / visits).max(1),
        }
    }

    /// The same with its rows in another order.
    #[must_use]
    pub fn ordered(&self, order: Order) -> Self {
        Self { order, ..self.clone() }
    }

    /// In which order the values of a level come.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// How databases order two values of a clustering column; as their bytes where that is not
    /// known.
    #[must_use]
    pub fn compare_stored(&self, column: usize, a: &[u8], b: &[u8]) -> Ordering {
        self.clustering[column].compare_stored(a, b)
    }

    /// Whether what was read of a value column is what was written: of sets in any order.
    #[must_use]
    pub fn is_same(&self, column: usize, written: &[u8], read: &[u8]) -> bool {
        self.values[column].is_same(written, read)
    }

    /// Number of clustering columns.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.clustering.len()
    }

    /// Bytes that a value column needs at most, as [`ColumnGenerator::room`].
    #[must_use]
    pub fn value_room(&self, column: usize) -> usize {
        self.values[column].room()
    }

    /// Number of value columns.
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }
}

/// How much of a partition a visit touches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selection {
    /// Each row with this chance, 0 to 1.
    Share(f64),
    /// About this many rows.
    Rows(u32),
}

/// A seed over its visits: how often its partition is written, and how far that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedVisits {
    /// The seed.
    pub seed: i64,
    /// In how many visits the partition is written.
    pub visits: i64,
    /// Rows that visits so far were meant to write.
    pub position: i64,
}

impl SeedVisits {
    /// A seed whose partition is written in so many visits.
    #[must_use]
    pub fn new(seed: i64, visits: i64) -> Self {
        Self { seed, visits: visits.max(1), position: 0 }
    }
}

/// Values one behind the other, of which the first ones may be through.
#[derive(Debug, Clone, Default)]
struct Values {
    bytes: Vec<u8>,
    /// Start and end of each.
    spans: Vec<(usize, usize)>,
    /// The current one; one before the first while a visit starts.
    head: isize,
    /// For finding what is there twice.
    sorting: Vec<usize>,
}

impl Values {
    fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.head = 0;
    }

    fn left(&self) -> isize {
        self.spans.len() as isize - self.head
    }

    fn get(&self, index: usize) -> &[u8] {
        self.spans.get(index).map_or(&[], |(start, end)| &self.bytes[*start..*end])
    }

    fn current(&self) -> &[u8] {
        self.get(self.head.unsigned_abs())
    }

    fn push(&mut self, generator: &ColumnGenerator, draws: &mut super::column::ColumnDraws) {
        let start = self.bytes.len();
        self.bytes.resize(start + generator.room(), 0);
        let size = generator.write(draws, &mut self.bytes[start..]);
        self.bytes.truncate(start + size);
        self.spans.push((start, start + size));
    }

    /// Keeps the first of equal values.
    fn keep_first(&mut self) {
        let Self { bytes, spans, sorting, .. } = self;
        sorting.clear();
        sorting.extend(0..spans.len());
        let value = |span: (usize, usize)| &bytes[span.0..span.1];
        sorting
            .sort_unstable_by(|a, b| value(spans[*a]).cmp(value(spans[*b])).then_with(|| a.cmp(b)));
        let mut kept = 0;
        for i in 0..sorting.len() {
            if i == 0 || value(spans[sorting[i]]) != value(spans[sorting[i - 1]]) {
                sorting[kept] = sorting[i];
                kept += 1;
            }
        }
        sorting.truncate(kept);
        sorting.sort_unstable();
        for (to, from) in sorting.iter().enumerate() {
            spans[to] = spans[*from];
        }
        spans.truncate(kept);
    }

    fn sort(&mut self, compare: impl Fn(&[u8], &[u8]) -> Ordering) {
        let Self { bytes, spans, .. } = self;
        let value = |span: &(usize, usize)| &bytes[span.0..span.1];
        spans.sort_unstable_by(|a, b| compare(value(a), value(b)));
        spans.dedup_by(|a, b| value(&*a) == value(&*b));
    }

    fn shuffle(&mut self, random: &mut JavaRandom) {
        let count = self.spans.len();
        for at in 0..count {
            let other = at + (random.next_f64() * (count - at) as f64) as usize;
            self.spans.swap(at, other.min(count - 1));
        }
    }
}

/// A partition under way: its key and where in its rows a visit is. To be used again and again.
#[derive(Debug, Clone)]
pub struct Partition {
    key: Values,
    /// Of the columns: the fold of the key.
    seed: i64,
    levels: Vec<Values>,
    /// The clustering columns of the row. Not always the current values of the levels: where a
    /// visit starts at a position that does not exist, the original shows the upper levels' values
    /// of before it has moved on.
    row: Vec<Vec<u8>>,
    /// The fold of each level's first value.
    level_seeds: Vec<i64>,
    current_row: Vec<i64>,
    last_row: Vec<i64>,
    chance: f64,
    rolls: Vec<f64>,
    chances: Vec<f64>,
    row_population: f64,
    has_row: bool,
}

impl Partition {
    /// Room for a partition of that table.
    #[must_use]
    pub fn new(generator: &PartitionGenerator) -> Self {
        let depth = generator.clustering.len();
        Self {
            key: Values::default(),
            seed: 0,
            levels: vec![Values::default(); depth],
            row: vec![Vec::new(); depth],
            level_seeds: vec![0; depth],
            current_row: vec![0; depth],
            last_row: vec![0; depth],
            chance: 1.0,
            rolls: vec![1.0; depth],
            chances: vec![1.0; depth],
            row_population: 1.0,
            has_row: false,
        }
    }

    /// Starts a visit to read. There is a first row then.
    pub fn start_read(
        &mut self,
        generator: &PartitionGenerator,
        visits: &SeedVisits,
        selection: Selection,
        row_population: f64,
        random: &mut JavaRandom,
    ) {
        self.start(generator, visits.seed, row_population);
        let Some(first) = generator.clustering.first() else { return };
        let expected = if visits.position > 0 {
            self.set_last_row(generator, visits.position - 1)
        } else {
            self.last_row.fill(i64::MAX);
            first.children(self.seed).max(1).saturating_mul(generator.descendants[0])
        };
        self.set_chance(selection, expected);
        self.first_level(generator, random);
        self.has_row = self.seek(generator, 0, random);
    }

    /// Rows that each of so many visits to the seed's partition is to write, by what is expected.
    pub fn visit_size(&mut self, generator: &PartitionGenerator, seed: i64, visits: i64) -> i64 {
        self.start(generator, seed, 1.0);
        let Some(first) = generator.clustering.first() else { return 1 };
        let expected = first.children(self.seed).max(1).saturating_mul(generator.descendants[0]);
        generator.visit_size(expected, visits)
    }

    /// Starts a visit to write the next part of the partition, and moves `visits` on by it. False
    /// when the partition is through; else there is a first row.
    pub fn start_write(
        &mut self,
        generator: &PartitionGenerator,
        visits: &mut SeedVisits,
        selection: Selection,
        row_population: f64,
        random: &mut JavaRandom,
    ) -> bool {
        self.start(generator, visits.seed, row_population);
        let Some(first) = generator.clustering.first() else { return true };
        let children = first.children(self.seed).max(1);
        let expected = children.saturating_mul(generator.descendants[0]);
        self.set_chance(selection, expected);
        let count = generator.visit_size(expected, visits.visits);
        loop {
            self.first_level(generator, random);
            let position = visits.position;
            visits.position = position.saturating_add(count);
            self.set_last_row(generator, visits.position - 1);
            self.has_row = self.seek(generator, position, random);
            if self.has_row || self.is_through() {
                return self.has_row;
            }
        }
    }

    /// Key and seed; a table without clustering columns has its one row then.
    fn start(&mut self, generator: &PartitionGenerator, seed: i64, row_population: f64) {
        self.key.clear();
        self.seed = 0;
        for (index, column) in generator.partition_key.iter().enumerate() {
            self.key.push(column, &mut column.seeded(seed));
            self.seed = column.fold(self.seed, self.key.get(index));
        }
        self.row_population = row_population;
        self.has_row = true;
    }

    fn set_chance(&mut self, selection: Selection, expected: i64) {
        self.chance = match selection {
            Selection::Share(share) => share,
            Selection::Rows(rows) => (f64::from(rows) / expected as f64).clamp(0.0, 1.0),
        };
        self.rolls.fill(1.0);
        self.chances.fill(1.0);
    }

    fn first_level(&mut self, generator: &PartitionGenerator, random: &mut JavaRandom) {
        self.levels.iter_mut().for_each(Values::clear);
        self.fill(generator, 0, random);
    }

    /// Component of the partition key.
    #[must_use]
    pub fn key(&self, column: usize) -> &[u8] {
        self.key.get(column)
    }

    /// Whether there is a row; [`Self::advance`] moves to the next.
    #[must_use]
    pub fn has_row(&self) -> bool {
        self.has_row
    }

    /// Whether all rows of the partition have been passed.
    #[must_use]
    pub fn is_through(&self) -> bool {
        self.levels.first().is_none_or(|level| level.left() <= 0)
    }

    /// Clustering column of the row.
    #[must_use]
    pub fn clustering(&self, column: usize) -> &[u8] {
        &self.row[column]
    }

    /// The seed of the row's values.
    #[must_use]
    pub fn row_seed(&self, generator: &PartitionGenerator) -> i64 {
        let leaf = generator.clustering.last().zip(self.levels.last()).zip(self.level_seeds.last());
        leaf.map_or(self.seed, |((column, level), seed)| column.fold(*seed, level.current()))
    }

    /// Whether the row has a value in a value column, by its share of populated ones.
    #[must_use]
    pub fn has_value(&self, generator: &PartitionGenerator, column: usize) -> bool {
        (column + 1) as f64 / generator.values.len() as f64 <= self.row_population
    }

    /// Writes a value column of the row with that seed ([`Self::row_seed`]); returns its size in
    /// bytes.
    ///
    /// # Panics
    /// When `out` is shorter than [`PartitionGenerator::value_room`] and the value does not fit.
    pub fn write_value(
        generator: &PartitionGenerator,
        row_seed: i64,
        column: usize,
        out: &mut [u8],
    ) -> usize {
        let column = &generator.values[column];
        column.write(&mut column.seeded(row_seed), out)
    }

    /// Moves to the next row that is touched.
    pub fn advance(&mut self, generator: &PartitionGenerator, random: &mut JavaRandom) {
        self.has_row = match self.levels.len() {
            0 => false,
            depth => self.step(generator, depth - 1, false, random),
        };
    }

    /// Puts the current value of a level into the row.
    fn show(&mut self, depth: usize) {
        let value = self.levels[depth].current();
        self.row[depth].clear();
        self.row[depth].extend_from_slice(value);
    }

    /// Makes the values of a level below the current ones.
    fn fill(&mut self, generator: &PartitionGenerator, depth: usize, random: &mut JavaRandom) {
        let seed = if depth == 0 { self.seed } else { self.level_seeds[depth - 1] };
        let column = &generator.clustering[depth];
        let level = &mut self.levels[depth];
        level.clear();
        let mut draws = column.seeded(seed);
        for _ in 0..column.children(seed).max(1) {
            level.push(column, &mut draws);
        }
        if level.spans.len() > 1 {
            match (generator.order, column.comparison()) {
                (Order::Sorted, Some(compare)) => level.sort(compare),
                (Order::Shuffled, _) => {
                    level.keep_first();
                    level.shuffle(random);
                }
                _ => level.keep_first(),
            }
        }
        self.level_seeds[depth] = column.fold(seed, level.current());
    }

    /// A count of rows, by the averages, as a position on each level.
    fn decompose(generator: &PartitionGenerator, mut count: i64, position: &mut [i64]) {
        for (at, rows) in position.iter_mut().zip(&generator.descendants) {
            *at = count / rows;
            count %= rows;
        }
        for level in (1..position.len()).rev() {
            let average = generator.components[level];
            if position[level] >= average {
                position[level - 1] += position[level] / average;
                position[level] %= average;
            }
        }
    }

    /// Returns the expected number of rows up to there.
    fn set_last_row(&mut self, generator: &PartitionGenerator, position: i64) -> i64 {
        Self::decompose(generator, position, &mut self.last_row);
        let rows = self.last_row.iter().zip(&generator.descendants);
        rows.fold(1, |sum: i64, (at, rows)| sum.saturating_add(at.saturating_mul(*rows)))
    }

    /// Whether the current row lies before, at or behind the last one of the visit. A position that
    /// does not exist, for levels have fewer values than on average, counts as the row before it.
    fn compare_to_last(&self, depth: usize) -> Ordering {
        let mut behind = false;
        for level in 0..=depth {
            let more = self.levels[level].left() > 1;
            let order = self.current_row[level].cmp(&self.last_row[level]);
            if behind || order == Ordering::Less {
                if more {
                    return Ordering::Less;
                }
                behind = true;
            } else if order == Ordering::Greater {
                return Ordering::Greater;
            }
        }
        Ordering::Equal
    }

    /// Goes to the first row from a position on; whether there is one in this visit.
    fn seek(
        &mut self,
        generator: &PartitionGenerator,
        position: i64,
        random: &mut JavaRandom,
    ) -> bool {
        if position == 0 {
            self.current_row[0] = -1;
            self.levels[0].head -= 1;
            return self.step(generator, 0, true, random);
        }
        Self::decompose(generator, position, &mut self.current_row);
        for level in 0..self.levels.len() {
            if level > 0 {
                self.fill(generator, level, random);
            }
            let passed = isize::try_from(self.current_row[level]).unwrap_or(isize::MAX);
            self.levels[level].head += passed.min(self.levels[level].left());
            if self.levels[level].left() == 0 && !self.ascend(generator, level, random) {
                return false;
            }
            self.show(level);
        }
        let leaf = self.levels.len() - 1;
        if self.compare_to_last(leaf) == Ordering::Greater {
            return false;
        }
        // So that the chance decides about the first row too.
        self.current_row[leaf] -= 1;
        self.levels[leaf].head -= 1;
        self.step(generator, leaf, true, random)
    }

    /// From a position that does not exist to the first row behind it; whether there is one.
    fn ascend(
        &mut self,
        generator: &PartitionGenerator,
        level: usize,
        random: &mut JavaRandom,
    ) -> bool {
        let mut above = level;
        loop {
            if above == 0 {
                return false;
            }
            above -= 1;
            self.levels[above].head += 1;
            if self.levels[above].left() > 0 {
                break;
            }
        }
        self.current_row[above] += 1;
        self.current_row[above + 1..].fill(0);
        for below in above + 1..=level {
            self.fill(generator, below, random);
        }
        true
    }

    /// Moves on at a level and down to the next leaf that is touched; whether there is one.
    fn step(
        &mut self,
        generator: &PartitionGenerator,
        mut depth: usize,
        first: bool,
        random: &mut JavaRandom,
    ) -> bool {
        self.levels[depth].head += 1;
        self.current_row[depth] += 1;
        loop {
            if self.levels[depth].left() <= 0 {
                if depth == 0 {
                    return false;
                }
                depth -= 1;
                self.levels[depth].head += 1;
                self.current_row[depth] += 1;
                if self.current_row[depth] > self.last_row[depth] {
                    return false;
                }
                continue;
            }
            let order = self.compare_to_last(depth);
            if order == Ordering::Greater {
                return false;
            }
            let forced = first && order == Ordering::Equal;
            let chance = self.chance * self.chances[depth];
            if forced || chance > CERTAIN || chance >= random.next_f64() {
                self.show(depth);
                depth += 1;
                if depth == self.levels.len() {
                    return true;
                }
                if self.chance < 1.0 {
                    self.rolls[depth] = self.rolls[depth - 1] / chance.min(1.0);
                    self.chances[depth] = generator.descendants[depth] as f64 * self.rolls[depth];
                }
                self.current_row[depth] = 0;
                self.fill(generator, depth, random);
            } else if order == Ordering::Equal {
                return false;
            } else {
                self.levels[depth].head += 1;
                self.current_row[depth] += 1;
            }
        }
    }
}
