//! A row: its primary key's liveness, its deletion, and its cells by column id.

use super::{Atom, Expiry, NEVER};
use std::collections::BTreeMap;

/// Bytes that a cell and an element of a collection take besides their value.
const CELL_BYTES: i64 = 64;

/// A row. Cells at or before `deleted_us` are not kept.
#[derive(Debug)]
pub(crate) struct Row {
    /// The clustering values, each as `[bytes]`; empty for a static row or a table without
    /// clustering.
    pub(super) clustering: Box<[u8]>,
    pub(super) deleted_us: i64,
    /// What an INSERT leaves even when all other columns are null: an atom with an empty value.
    pub(super) marker: Atom,
    /// In the order of the columns' ids.
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) column: u16,
    pub(super) content: Content,
}

/// What a column holds.
#[derive(Debug)]
pub(crate) enum Content {
    Atom(Atom),
    /// A counter's sum; None when deleted.
    Counter {
        sum: Option<i64>,
        timestamp_us: i64,
    },
    Elements(Box<Elements>),
}

/// A path as it was sent, and the value there.
type Element = (Box<[u8]>, Atom);

/// A collection stored by element.
#[derive(Debug)]
pub(crate) struct Elements {
    pub(super) deleted_us: i64,
    /// By an order-preserving key; with the element (set), key (map) or nothing (list) as it was
    /// sent.
    pub(super) items: BTreeMap<Box<[u8]>, Element>,
}

impl Elements {
    /// Live elements in their order: path and value.
    pub(crate) fn live(&self, now_s: u32) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.items.values().filter_map(move |(path, atom)| Some((&path[..], atom.live(now_s)?)))
    }

    /// Keys of the live elements in their order, with their values.
    pub(crate) fn live_keys(&self, now_s: u32) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.items.iter().filter_map(move |(key, (_, atom))| Some((&key[..], atom.live(now_s)?)))
    }

    /// Removes what was there at `timestamp_us`; returns the growth in bytes.
    pub(crate) fn delete(&mut self, timestamp_us: i64) -> i64 {
        if timestamp_us <= self.deleted_us {
            return 0;
        }
        self.deleted_us = timestamp_us;
        let mut freed = 0;
        self.items.retain(|key, (path, atom)| {
            let keep = atom.timestamp_us > timestamp_us;
            if !keep {
                freed += CELL_BYTES + (key.len() + path.len()) as i64 + atom.size();
            }
            keep
        });
        -freed
    }

    /// Writes an element (None deletes it); returns the growth in bytes.
    pub(crate) fn write(
        &mut self,
        key: &[u8],
        path: &[u8],
        value: Option<&[u8]>,
        write: Write,
    ) -> i64 {
        if write.timestamp_us <= self.deleted_us {
            return 0;
        }
        if let Some((_, atom)) = self.items.get_mut(key) {
            return atom.write(write.timestamp_us, write.expiry, value, write.now_s);
        }
        let mut atom = Atom::absent();
        let size = atom.write(write.timestamp_us, write.expiry, value, write.now_s);
        self.items.insert(key.into(), (path.into(), atom));
        size + CELL_BYTES + (key.len() + path.len()) as i64
    }
}

/// Time and expiry that all cells of a statement share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) timestamp_us: i64,
    pub(crate) expiry: Expiry,
    pub(crate) now_s: u32,
}

impl Row {
    /// An empty row under deletions at or before `deleted_us`.
    pub(crate) fn new(clustering: &[u8], deleted_us: i64) -> Self {
        Self {
            clustering: clustering.into(),
            deleted_us,
            marker: Atom::absent(),
            cells: Vec::new(),
        }
    }

    /// The clustering values, each as `[bytes]`.
    pub(crate) fn clustering(&self) -> &[u8] {
        &self.clustering
    }

    /// Approximate bytes of an empty row.
    pub(crate) fn base_size(&self) -> i64 {
        (size_of::<Self>() + 2 * self.clustering.len()) as i64
    }

    /// Approximate bytes of the row with its cells.
    pub(crate) fn size(&self) -> i64 {
        self.base_size() + self.cells.iter().map(|c| c.content.size()).sum::<i64>()
    }

    /// Whether a SELECT shows the row.
    #[inline]
    pub(crate) fn is_live(&self, now_s: u32) -> bool {
        self.marker.live(now_s).is_some() || self.cells.iter().any(|c| c.content.is_live(now_s))
    }

    /// Whether nothing but a deletion is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.marker.timestamp_us == NEVER
    }

    /// The row's own deletion.
    pub(crate) fn deleted_us(&self) -> i64 {
        self.deleted_us
    }

    /// What the column holds. Ids are dense, so a full row has a column's cell at its id.
    #[inline]
    pub(crate) fn content(&self, column: u16) -> Option<&Content> {
        let guess = self.cells.get(usize::from(column)).filter(|c| c.column == column);
        let cell = guess.or_else(|| {
            let at = self.cells.binary_search_by_key(&column, |c| c.column).ok()?;
            self.cells.get(at)
        })?;
        Some(&cell.content)
    }

    /// The cell of a column, made of `empty` when there is none; with the growth in bytes.
    #[inline]
    fn cell(&mut self, column: u16, empty: impl FnOnce() -> Content) -> (&mut Content, i64) {
        let mut growth = 0;
        let last = self.cells.last().map(|c| c.column);
        let at = match last {
            Some(last) if last >= column => self.cells.binary_search_by_key(&column, |c| c.column),
            _ => Err(self.cells.len()),
        };
        let at = at.unwrap_or_else(|at| {
            growth = CELL_BYTES;
            self.cells.insert(at, Cell { column, content: empty() });
            at
        });
        (&mut self.cells[at].content, growth)
    }

    /// Makes room for as many cells as an INSERT writes.
    pub(crate) fn reserve(&mut self, cells: usize) {
        if self.cells.is_empty() {
            self.cells.reserve_exact(cells);
        }
    }

    /// Notes an INSERT: the row lives, even without other columns.
    pub(crate) fn mark(&mut self, write: Write) {
        if write.timestamp_us > self.deleted_us {
            self.marker.write(write.timestamp_us, write.expiry, Some(&[]), write.now_s);
        }
    }

    /// Writes a column (None deletes it); returns the growth in bytes.
    #[inline]
    pub(crate) fn write(&mut self, column: u16, value: Option<&[u8]>, write: Write) -> i64 {
        if write.timestamp_us <= self.deleted_us {
            return 0;
        }
        let (content, growth) = self.cell(column, || Content::Atom(Atom::absent()));
        growth
            + match content {
                Content::Atom(atom) => {
                    atom.write(write.timestamp_us, write.expiry, value, write.now_s)
                }
                Content::Elements(elements) => elements.delete(write.timestamp_us),
                Content::Counter { sum, timestamp_us } => {
                    *sum = None;
                    *timestamp_us = write.timestamp_us;
                    0
                }
            }
    }

    /// Adds to a counter; returns the growth in bytes. Counters have no last write: a sum is a sum.
    pub(crate) fn add(&mut self, column: u16, delta: i64, write: Write) -> i64 {
        let empty = || Content::Counter { sum: None, timestamp_us: NEVER };
        let (content, growth) = self.cell(column, empty);
        if let Content::Counter { sum, timestamp_us } = content {
            *sum = Some(sum.unwrap_or(0).wrapping_add(delta));
            *timestamp_us = write.timestamp_us.max(*timestamp_us);
        }
        growth
    }

    /// The elements of a collection, for writing; None when the row was deleted later. With the
    /// growth in bytes.
    pub(crate) fn elements(&mut self, column: u16, write: Write) -> Option<(&mut Elements, i64)> {
        if write.timestamp_us <= self.deleted_us {
            return None;
        }
        let deleted_us = self.deleted_us;
        let empty = || Content::Elements(Box::new(Elements { deleted_us, items: BTreeMap::new() }));
        match self.cell(column, empty) {
            (Content::Elements(elements), growth) => Some((elements, growth)),
            _ => None,
        }
    }

    /// Deletes what was there at `timestamp_us`; returns the growth in bytes.
    pub(crate) fn delete(&mut self, timestamp_us: i64) -> i64 {
        if timestamp_us <= self.deleted_us {
            return 0;
        }
        let before = self.size();
        self.deleted_us = timestamp_us;
        if self.marker.timestamp_us <= timestamp_us {
            self.marker = Atom::absent();
        }
        self.cells.retain_mut(|cell| match &mut cell.content {
            Content::Atom(atom) => atom.timestamp_us > timestamp_us,
            Content::Counter { timestamp_us: last, .. } => *last > timestamp_us,
            Content::Elements(elements) => {
                elements.delete(timestamp_us);
                !elements.items.is_empty()
            }
        });
        self.size() - before
    }
}

impl Content {
    fn size(&self) -> i64 {
        CELL_BYTES
            + match self {
                Self::Atom(atom) => atom.size(),
                Self::Counter { .. } => 0,
                Self::Elements(elements) => elements
                    .items
                    .iter()
                    .map(|(k, (p, a))| CELL_BYTES + (k.len() + p.len()) as i64 + a.size())
                    .sum(),
            }
    }

    fn is_live(&self, now_s: u32) -> bool {
        match self {
            Self::Atom(atom) => atom.live(now_s).is_some(),
            Self::Counter { sum, .. } => sum.is_some(),
            Self::Elements(elements) => elements.live(now_s).next().is_some(),
        }
    }
}
