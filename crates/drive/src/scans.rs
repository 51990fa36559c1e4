//! Ranges of tokens that a worker reads, page by page.
//!
//! An operation is one page. Ranges are dealt out to the workers in turn; each is read by one
//! operation at a time, the next page by whichever comes next. Source: cassandra-stress,
//! `operations/userdefined/TokenRangeQuery.java`, `generate/TokenRangeIterator.java`. Nothing is
//! allocated once the buffers of paging states have grown.

use crate::rows::Answer;
use std::sync::Arc;
use wire::cql::response::paging_state;
use wire::cql::{Cursor, DecodeError, PageTemplate};
use workload::{Draw, Plan, Scan};

/// Of a state in bytes, which names a row by its key: what a key and its clustering may have.
pub(crate) const STATE_SIZE_MAX: usize = 160 << 10;
/// All tokens: behind the first, up to the last. No partition has the least one.
pub(crate) const RING: (i64, i64) = (i64::MIN, i64::MAX);

/// Whether an operation has a range to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It has.
    Begun,
    /// All that are left are being read: its client has nothing to do any more.
    Idle,
    /// All have been read.
    Through,
}

/// Ranges of one worker.
#[derive(Debug)]
pub(crate) struct Scans {
    ranges: Arc<[(i64, i64)]>,
    worker: u64,
    workers: u64,
    /// By operation; None of those that are about partitions.
    operations: Vec<Option<Scanning>>,
    /// By table: parts of ranges that were begun.
    begun: Vec<u64>,
    open: Vec<Open>,
    /// Of `open`, those that are through.
    vacant: Vec<u32>,
}

/// How an operation reads, and which ranges wait for their next page.
#[derive(Debug)]
struct Scanning {
    scan: Scan,
    table: usize,
    waiting: Vec<u32>,
    in_flight: usize,
}

/// A range that was begun.
#[derive(Debug)]
struct Open {
    bounds: (i64, i64),
    /// Where the last page has ended; empty before the first.
    state: Vec<u8>,
    /// Of the partition that the last page has ended in.
    token: Option<i64>,
    through: bool,
}

impl Scans {
    /// Of one of so many workers, over these ranges of a ring.
    pub(crate) fn new(
        plan: &Plan,
        ranges: &Arc<[(i64, i64)]>,
        (worker, workers): (usize, usize),
    ) -> Self {
        let tables = plan.tables.as_ref();
        let of = |operation: &workload::Operation| {
            let (tables, statement) = (tables?, operation.steps.first()?.first_statement);
            let (scan, table) = (*tables.scan_of(statement)?, tables.statements[statement].table);
            Some(Scanning { scan, table, waiting: Vec::new(), in_flight: 0 })
        };
        Self {
            ranges: ranges.clone(),
            worker: worker as u64,
            workers: workers.max(1) as u64,
            operations: plan.run.iter().map(of).collect(),
            begun: vec![0; tables.map_or(0, |tables| tables.tables.len())],
            open: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// Gives an operation the range that it reads next; of others nothing changes.
    pub(crate) fn begin(&mut self, draw: &mut Draw) -> Start {
        let Self { ranges, worker, workers, operations, begun, open, vacant } = self;
        let Some(Some(own)) = operations.get_mut(usize::from(draw.operation)) else {
            return Start::Begun;
        };
        let id = match own.waiting.pop() {
            Some(id) => id,
            None => {
                let parts = u64::from(own.scan.parts.max(1));
                let (number, all) = (
                    begun[own.table] * *workers + *worker,
                    (ranges.len() as u64).saturating_mul(parts),
                );
                if all == 0 || number >= all && !own.scan.wraps {
                    return if own.in_flight > 0 { Start::Idle } else { Start::Through };
                }
                begun[own.table] += 1;
                let range = ranges[(number % all / parts) as usize];
                let bounds = part(range, number % all % parts, parts);
                let id = vacant.pop().unwrap_or_else(|| {
                    let state = Vec::new();
                    open.push(Open { bounds, state, token: None, through: false });
                    (open.len() - 1) as u32
                });
                let slot = &mut open[id as usize];
                (slot.bounds, slot.token, slot.through) = (bounds, None, false);
                slot.state.clear();
                id
            }
        };
        own.in_flight += 1;
        draw.value_seed = u64::from(id);
        draw.key = open[id as usize].bounds.0.cast_unsigned();
        Start::Begun
    }

    /// Writes the frame that asks for the next page; None where its state has no room.
    pub(crate) fn encode(
        &self,
        draw: &Draw,
        template: &PageTemplate,
        (stream, out): (i16, &mut [u8]),
    ) -> Option<usize> {
        let open = self.open.get(draw.value_seed as usize)?;
        let state = (!open.state.is_empty()).then_some(&open.state[..]);
        let size = template.overhead() + open.state.len();
        (size <= out.len()).then(|| template.write(stream, open.bounds, state, out))
    }

    /// Takes a page; returns the partitions that are new in it. Its first column is the token.
    pub(crate) fn take(&mut self, draw: &Draw, answer: &Answer<'_>) -> Result<u32, DecodeError> {
        let Some(open) = self.open.get_mut(draw.value_seed as usize) else { return Ok(0) };
        let mut cells = Cursor::new(answer.cells());
        let mut partitions = 0;
        for _ in 0..answer.count {
            let token = cells.bytes("token")?.and_then(|token| token.try_into().ok());
            let token = token.map(i64::from_be_bytes);
            for _ in 1..answer.column_count {
                cells.bytes("cell")?;
            }
            // Partitions come in the order of their tokens.
            if token.is_some() && token != open.token {
                partitions += 1;
                open.token = token;
            }
        }
        let state = paging_state(answer.header, answer.body)?;
        let own = self.operations.get(usize::from(draw.operation)).and_then(Option::as_ref);
        open.through = state.is_none() || own.is_some_and(|own| own.scan.first_pages);
        open.state.clear();
        open.state.extend_from_slice(state.unwrap_or_default());
        Ok(partitions)
    }

    /// An operation is over, however it ended: what is left of its range is for the next one.
    #[inline]
    pub(crate) fn over(&mut self, draw: &Draw) {
        let Some(Some(own)) = self.operations.get_mut(usize::from(draw.operation)) else { return };
        own.in_flight = own.in_flight.saturating_sub(1);
        let id = draw.value_seed as u32;
        match self.open.get(id as usize) {
            Some(Open { through: true, .. }) => self.vacant.push(id),
            Some(_) => own.waiting.push(id),
            None => {}
        }
    }
}

/// One of so many equal parts of a range.
fn part((from, to): (i64, i64), index: u64, parts: u64) -> (i64, i64) {
    let width = i128::from(to) - i128::from(from);
    let at = |index: u64| (i128::from(from) + width * i128::from(index) / i128::from(parts)) as i64;
    (at(index), at(index + 1))
}

/// The ranges of a ring with these tokens: from one to the next, from the first token of all to
/// the least and from the greatest to the last.
#[must_use]
pub fn token_ranges(mut tokens: Vec<i64>) -> Arc<[(i64, i64)]> {
    tokens.extend([RING.0, RING.1]);
    tokens.sort_unstable();
    tokens.dedup();
    tokens.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_ranges_cover_the_ring_once() {
        let ranges = token_ranges(vec![5, -1000, i64::MAX - 3, 5]);
        assert_eq!(ranges.len(), 4);
        for parts in [1, 3, 7] {
            let all: Vec<_> = ranges
                .iter()
                .flat_map(|range| (0..parts).map(move |index| part(*range, index, parts)))
                .collect();
            assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0), "{all:?}");
            assert_eq!((all[0].0, all[all.len() - 1].1), RING);
        }
        assert_eq!(&token_ranges(Vec::new())[..], [RING]);
    }
}
