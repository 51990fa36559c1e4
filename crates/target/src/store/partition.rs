//! A partition: its deletions, its static row, its rows in clustering order.

use super::{NEVER, Row};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Clustering keys from `from` on (included) up to `to` (excluded; None is the end), in the order
/// of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyRange {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Whether it can hold nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    fn contains(&self, key: &[u8]) -> bool {
        key >= &self.from[..] && self.to.as_ref().is_none_or(|to| key < &to[..])
    }
}

/// A partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(super) deleted_us: i64,
    /// Deletions of slices, kept for rows that arrive late.
    pub(super) deleted_ranges: Vec<(KeyRange, i64)>,
    pub(super) statics: Option<Box<Row>>,
    pub(super) rows: Rows,
}

/// Tables without clustering have one row in a partition, and most benchmarks such tables: no map
/// for it.
#[derive(Debug)]
pub(super) enum Rows {
    One(Option<Row>),
    Many(BTreeMap<Box<[u8]>, Row>),
}

impl Partition {
    /// An empty partition; `clustered` when its table has clustering columns.
    pub(crate) fn new(clustered: bool) -> Self {
        let rows = if clustered { Rows::Many(BTreeMap::new()) } else { Rows::One(None) };
        Self { deleted_us: NEVER, deleted_ranges: Vec::new(), statics: None, rows }
    }

    /// The static row.
    pub(crate) fn statics(&self) -> Option<&Row> {
        self.statics.as_deref()
    }

    /// The row of a clustering key.
    pub(crate) fn row(&self, key: &[u8]) -> Option<&Row> {
        match &self.rows {
            Rows::One(row) => row.as_ref(),
            Rows::Many(rows) => rows.get(key),
        }
    }

    /// Rows of a range in the order of the store, with their keys.
    pub(crate) fn rows<'a>(
        &'a self,
        range: &'a KeyRange,
    ) -> impl DoubleEndedIterator<Item = (&'a [u8], &'a Row)> {
        let (one, many) = match &self.rows {
            Rows::One(row) => (row.as_ref().map(|r| (&[][..], r)), None),
            Rows::Many(_) if range.is_empty() => (None, None),
            Rows::Many(rows) => {
                let to = range.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let bounds = (Bound::Included(&range.from[..]), to);
                (None, Some(rows.range::<[u8], _>(bounds)))
            }
        };
        let many = many.into_iter().flatten().map(|(key, row)| (&key[..], row));
        one.into_iter().chain(many)
    }

    /// Gives `write` the row of a clustering key, made when there is none; returns the growth in
    /// bytes.
    #[inline]
    pub(crate) fn write_row(
        &mut self,
        key: &[u8],
        clustering: &[u8],
        write: impl FnOnce(&mut Row) -> i64,
    ) -> i64 {
        let (deleted_us, ranges) = (self.deleted_us, &self.deleted_ranges);
        match &mut self.rows {
            Rows::One(Some(row)) => write(row),
            Rows::One(slot) => {
                let row = slot.insert(Row::new(&[], deleted_us));
                row.base_size() + write(row)
            }
            Rows::Many(rows) => {
                if let Some(row) = rows.get_mut(key) {
                    return write(row);
                }
                let covering = ranges.iter().filter(|(r, _)| r.contains(key)).map(|(_, t)| *t);
                let mut row = Row::new(clustering, covering.fold(deleted_us, i64::max));
                let growth = row.base_size() + key.len() as i64 + write(&mut row);
                rows.insert(key.into(), row);
                growth
            }
        }
    }

    /// Gives `write` the static row; returns the growth in bytes.
    pub(crate) fn write_statics(&mut self, write: impl FnOnce(&mut Row) -> i64) -> i64 {
        let deleted_us = self.deleted_us;
        let growth = self.statics.as_ref().map_or(size_of::<Row>() as i64, |_| 0);
        growth + write(self.statics.get_or_insert_with(|| Box::new(Row::new(&[], deleted_us))))
    }

    /// Deletes all that was there at `timestamp_us`; returns the growth in bytes.
    pub(crate) fn delete(&mut self, timestamp_us: i64) -> i64 {
        if timestamp_us <= self.deleted_us {
            return 0;
        }
        self.deleted_us = timestamp_us;
        self.deleted_ranges.retain(|(_, t)| *t > timestamp_us);
        let mut growth = self.statics.as_mut().map_or(0, |row| row.delete(timestamp_us));
        growth += self.delete_rows(&KeyRange::default(), timestamp_us);
        growth
    }

    /// Deletes the rows of a range; returns the growth in bytes.
    pub(crate) fn delete_range(&mut self, range: KeyRange, timestamp_us: i64) -> i64 {
        if range.is_empty() {
            return 0;
        }
        let growth = self.delete_rows(&range, timestamp_us);
        match self.deleted_ranges.iter_mut().find(|(r, _)| *r == range) {
            Some((_, t)) => {
                *t = timestamp_us.max(*t);
                growth
            }
            None => {
                let size = range.from.len() + range.to.as_ref().map_or(0, Vec::len) + 80;
                self.deleted_ranges.push((range, timestamp_us));
                growth + size as i64
            }
        }
    }

    /// Applies a deletion to rows, and drops those of which nothing is left that the partition or a
    /// range does not remember.
    fn delete_rows(&mut self, range: &KeyRange, timestamp_us: i64) -> i64 {
        let mut growth = 0;
        match &mut self.rows {
            Rows::One(slot) => {
                if let Some(row) = slot {
                    growth += row.delete(timestamp_us);
                }
            }
            Rows::Many(rows) => {
                let to = range.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let bounds = (Bound::Included(&range.from[..]), to);
                let mut dead = Vec::new();
                for (key, row) in rows.range_mut::<[u8], _>(bounds) {
                    growth += row.delete(timestamp_us);
                    if row.is_empty() && row.deleted_us() <= timestamp_us {
                        dead.push(key.clone());
                    }
                }
                for key in dead {
                    if let Some(row) = rows.remove(&key) {
                        growth -= row.base_size() + key.len() as i64;
                    }
                }
            }
        }
        growth
    }
}
