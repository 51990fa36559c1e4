//! What was done over time, in blocks that steadiness is judged by.
//!
//! In: intervals of the warm-up and of the window, in order. Out: [`Block`]s of at least a given
//! length, and `blocks.csv`. Percentiles of a block are of its merged histograms. Limits: the first
//! [`BLOCKS_MAX`] blocks are kept, what comes later is not judged.

use analyze::steady::Block;
use record::{IntervalRecord, Latency, Outcome};
use std::fmt::Write as _;
use units::Nanos;

/// 4000 s by the second; after the first hour intervals are 10 s long, which makes 28 hours.
const BLOCKS_MAX: usize = 14_000;
/// Length of a block of the window, at least; whole intervals are put together.
pub(crate) const WINDOW_BLOCK: Nanos = Nanos::from_secs(1);

/// All operations of an interval that count for the headline, merged into `latency`, which loses
/// what it held; how many were ok.
pub(crate) fn headline(record: &IntervalRecord, open_loop: bool, latency: &mut Latency) -> u64 {
    latency.clear();
    for op in &record.ops {
        latency.merge(if open_loop { &op.response } else { &op.service });
    }
    record.ops.iter().map(|op| op.count(Outcome::Ok)).sum()
}

/// A series that grows.
#[derive(Debug)]
pub(crate) struct Series {
    block: Nanos,
    /// Begin of the first block.
    origin: Option<Nanos>,
    latency: Latency,
    ok: u64,
    length: Nanos,
    blocks: Vec<Block>,
}

impl Series {
    pub(crate) fn new(block: Nanos) -> Self {
        let (latency, blocks) = (Latency::new(), Vec::new());
        Self { block, origin: None, latency, ok: 0, length: Nanos::ZERO, blocks }
    }

    /// Adds an interval; an unfinished block is not kept. Returns whether one was finished.
    pub(crate) fn add(&mut self, record: &IntervalRecord, latency: &Latency, ok: u64) -> bool {
        let origin = *self.origin.get_or_insert(record.start);
        self.latency.merge(latency);
        self.ok += ok;
        self.length += record.end.since(record.start);
        if self.length < self.block {
            return false;
        }
        let length_s = self.length.as_secs_f64();
        let us = |q| (!self.latency.is_empty()).then(|| self.latency.quantile(q).0 as f64 / 1e3);
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(Block {
                start_s: record.end.since(origin).as_secs_f64() - length_s,
                length_s,
                ops_s: self.ok as f64 / length_s,
                p50_us: us(0.5),
                p99_us: us(0.99),
            });
        }
        self.latency.clear();
        (self.ok, self.length) = (0, Nanos::ZERO);
        true
    }

    /// What is finished.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The blocks that end by `length_s`, of equal length: after the first hour blocks may be
    /// longer, and then only those before are judged.
    pub(crate) fn until(&self, length_s: f64) -> &[Block] {
        let Some(first) = self.blocks.first() else { return &[] };
        // A worker that is woken late ends its interval where it should, so only rounding is left.
        let fits = |b: &&Block| {
            b.start_s + b.length_s <= length_s + 1e-3 && b.length_s < first.length_s * 1.5
        };
        &self.blocks[..self.blocks.iter().take_while(fits).count()]
    }
}

/// The text of `blocks.csv`: `warm_s` is the length of the warm-up.
pub(crate) fn csv(warm: &[Block], warm_s: f64, window: &[Block]) -> String {
    let mut text = "t_s,length_s,phase,ops_s,p50_us,p99_us\n".to_owned();
    let warm = warm.iter().map(|b| (b.start_s - warm_s, "warm", b));
    for (t_s, phase, block) in warm.chain(window.iter().map(|b| (b.start_s, "window", b))) {
        let us = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.1}"));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{t_s:.3},{:.3},{phase},{:.1},{},{}",
            block.length_s,
            block.ops_s,
            us(block.p50_us),
            us(block.p99_us)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::OpRecord;

    fn interval(start_ms: u64, end_ms: u64, ops: u64) -> IntervalRecord {
        let mut op = OpRecord::new(0);
        let us = Nanos::from_micros;
        (0..ops).for_each(|_| op.record(Outcome::Ok, us(200), us(300), us(100)));
        let (start, end) = (Nanos::from_millis(start_ms), Nanos::from_millis(end_ms));
        IntervalRecord { start, end, ops: vec![op] }
    }

    #[test]
    fn intervals_make_blocks_of_the_length_asked_for() {
        let mut series = Series::new(WINDOW_BLOCK);
        let finished: Vec<bool> =
            [(100, 600, 50), (600, 1100, 70), (1100, 3100, 400), (3100, 3200, 1)]
                .map(|(start, end, ops)| {
                    let record = interval(start, end, ops);
                    let mut latency = Latency::new();
                    let ok = headline(&record, false, &mut latency);
                    series.add(&record, &latency, ok)
                })
                .into();
        assert_eq!(finished, [false, true, true, false]);
        let [first, second] = *series.blocks() else { panic!("{:?}", series.blocks()) };
        assert_eq!((first.start_s, first.length_s, first.ops_s), (0.0, 1.0, 120.0));
        assert_eq!((second.start_s, second.length_s, second.ops_s), (1.0, 2.0, 200.0));
        assert!((first.p50_us.unwrap() - 200.0).abs() < 0.3);
        assert_eq!(series.until(3.0).len(), 1, "a longer block is another thing");
        assert_eq!(series.until(0.5).len(), 0);
        let text = csv(&[first], 2.0, &[first]);
        assert_eq!(
            text,
            "t_s,length_s,phase,ops_s,p50_us,p99_us\n-2.000,1.000,warm,120.0,200.1,200.1\n\
             0.000,1.000,window,120.0,200.1,200.1\n"
        );
    }

    #[test]
    fn a_block_without_operations_has_no_percentiles() {
        let mut series = Series::new(WINDOW_BLOCK);
        let record = interval(0, 1000, 0);
        let mut latency = Latency::new();
        let ok = headline(&record, true, &mut latency);
        assert!(series.add(&record, &latency, ok));
        assert_eq!((series.blocks()[0].ops_s, series.blocks()[0].p50_us), (0.0, None));
    }
}
