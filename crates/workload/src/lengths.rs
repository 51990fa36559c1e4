//! Lengths (bytes of a field, records of a scan): a random word -> a length.
//!
//! Source: YCSB's ConstantInteger-, UniformLong-, Zipfian- and HistogramGenerator. The histogram
//! keeps that class's arithmetic: bucket i stands for (i + 1) block sizes, its share is decided by
//! "draw <= cumulative count", and the last bucket yields the length of the one before it.

use crate::random::{scale, unit};
use crate::zipfian::Zipfian;
use thiserror::Error;

/// Buckets that a histogram may have.
const BUCKETS_MAX: usize = 65_536;

/// A distribution of lengths.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Lengths {
    /// Always the same.
    Constant(u32),
    /// Each length of min..=max alike.
    Uniform {
        /// Shortest length.
        min: u32,
        /// Longest length.
        max: u32,
    },
    /// Zipfian over min..=max, the shortest most often.
    Zipfian {
        /// Shortest length.
        min: u32,
        /// Ranks above the shortest length.
        ranks: Zipfian,
        /// Longest length.
        max: u32,
    },
    /// As counted in a file.
    Histogram {
        /// Length units per bucket.
        block_size: u32,
        /// Running total of the counts, a value per bucket.
        cumulative: Vec<u64>,
    },
}

/// Why a histogram of lengths could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HistogramError {
    /// The first line is wrong.
    #[error("line 1 must be 'BlockSize', a tab and a whole number from 1 to {limit}")]
    BlockSize {
        /// Largest block size.
        limit: u32,
    },
    /// A bucket's line is wrong.
    #[error("line {line} must be the bucket number {bucket}, a tab and a count from 0 to 2^31 - 1")]
    Bucket {
        /// Line number from 1.
        line: usize,
        /// The bucket that was expected there.
        bucket: usize,
    },
    /// Nothing to draw from.
    #[error("all counts are zero; give at least one bucket a count above zero")]
    Empty,
    /// Too many buckets or too long.
    #[error("more than {BUCKETS_MAX} buckets or a length above {limit}; merge buckets")]
    TooLong {
        /// Longest length allowed.
        limit: u32,
    },
}

impl Lengths {
    /// Zipfian over min..=max.
    pub(crate) fn zipfian(min: u32, max: u32) -> Self {
        let items = u64::from(max.saturating_sub(min)) + 1;
        Self::Zipfian { min, ranks: Zipfian::new(items), max }
    }

    /// Reads YCSB's histogram file: `BlockSize<TAB>n`, then `bucket<TAB>count` with buckets from 0.
    ///
    /// # Errors
    /// When a line has another form, all counts are zero, or a length is above `limit`.
    pub(crate) fn histogram(text: &str, limit: u32) -> Result<Self, HistogramError> {
        let mut lines = text.lines();
        let block_size = lines
            .next()
            .and_then(|line| pair(line, "BlockSize"))
            .filter(|size| (1..=limit).contains(size))
            .ok_or(HistogramError::BlockSize { limit })?;
        let mut cumulative = Vec::new();
        let mut total = 0u64;
        for (bucket, line) in lines.enumerate() {
            if bucket == BUCKETS_MAX {
                return Err(HistogramError::TooLong { limit });
            }
            let count = pair(line, &bucket.to_string())
                .filter(|count| *count <= i32::MAX as u32)
                .ok_or(HistogramError::Bucket { line: bucket + 2, bucket })?;
            total += u64::from(count);
            cumulative.push(total);
        }
        if total == 0 {
            return Err(HistogramError::Empty);
        }
        let longest = u64::from(block_size) * (cumulative.len() as u64 - 1);
        if longest > u64::from(limit) {
            return Err(HistogramError::TooLong { limit });
        }
        Ok(Self::Histogram { block_size, cumulative })
    }

    /// The length that belongs to a random word.
    #[inline]
    pub(crate) fn at(&self, word: u64) -> u32 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { min, max } => min + scale(word, u64::from(max - min) + 1) as u32,
            Self::Zipfian { min, ranks, .. } => min + ranks.rank(unit(word)) as u32,
            Self::Histogram { block_size, cumulative } => {
                let last = cumulative.len().saturating_sub(1);
                let draw = scale(word, cumulative.last().copied().unwrap_or(0));
                let bucket = cumulative[..last].partition_point(|total| *total < draw);
                block_size * (bucket + 1).min(last) as u32
            }
        }
    }

    /// The longest length that can come out.
    #[must_use]
    pub fn max(&self) -> u32 {
        match self {
            Self::Constant(length) => *length,
            Self::Uniform { max, .. } | Self::Zipfian { max, .. } => *max,
            Self::Histogram { block_size, cumulative } => {
                block_size * cumulative.len().saturating_sub(1) as u32
            }
        }
    }
}

/// The number behind `label` and a tab; further columns are ignored, as in YCSB.
fn pair(line: &str, label: &str) -> Option<u32> {
    let mut columns = line.split('\t');
    (columns.next() == Some(label)).then_some(())?;
    columns.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word i of n that cut the 64-bit range into n even parts.
    fn even_words(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(move |i| ((u128::from(i) << 64) / u128::from(n)) as u64 + 1)
    }

    #[test]
    fn histogram_keeps_the_original_arithmetic() {
        // Counts 3, 0, 5, 2; draws 0..10 step down by counts until <= 0:
        // 0..=3 -> 1 block (3 is "<= 0" too), 4..=8 -> 3 blocks, 9 -> last bucket -> 3 blocks.
        let lengths = Lengths::histogram("BlockSize\t10\n0\t3\n1\t0\n2\t5\n3\t2\n", 1000).unwrap();
        let drawn: Vec<u32> = even_words(10).map(|word| lengths.at(word)).collect();
        assert_eq!(drawn, [10, 10, 10, 10, 30, 30, 30, 30, 30, 30]);
        assert_eq!(lengths.max(), 30);
    }

    #[test]
    fn histogram_of_one_bucket_yields_zero_as_the_original_does() {
        let lengths = Lengths::histogram("BlockSize\t10\n0\t3\n", 1000).unwrap();
        assert_eq!((lengths.at(u64::MAX), lengths.max()), (0, 0));
    }

    #[test]
    fn histogram_refuses_what_it_cannot_draw_from() {
        let read = |text: &str| Lengths::histogram(text, 1000).unwrap_err();
        assert_eq!(read(""), HistogramError::BlockSize { limit: 1000 });
        assert_eq!(read("BlockSize\t0\n0\t1"), HistogramError::BlockSize { limit: 1000 });
        assert_eq!(read("Blocks\t10\n0\t1"), HistogramError::BlockSize { limit: 1000 });
        assert_eq!(read("BlockSize\t1\n0\t1\n2\t1"), HistogramError::Bucket { line: 3, bucket: 1 });
        assert_eq!(read("BlockSize\t1\n0\t-1"), HistogramError::Bucket { line: 2, bucket: 0 });
        assert_eq!(read("BlockSize\t1\n0\t0"), HistogramError::Empty);
        assert_eq!(read("BlockSize\t1\n"), HistogramError::Empty);
        assert_eq!(
            read("BlockSize\t900\n0\t1\n1\t1\n2\t1"),
            HistogramError::TooLong { limit: 1000 }
        );
    }

    #[test]
    fn uniform_meets_both_ends_evenly() {
        let lengths = Lengths::Uniform { min: 3, max: 7 };
        let mut counts = [0; 8];
        even_words(1000).for_each(|word| counts[lengths.at(word) as usize] += 1);
        assert_eq!(counts, [0, 0, 0, 200, 200, 200, 200, 200]);
    }

    proptest! {
        #[test]
        fn the_reader_never_panics_and_lengths_stay_inside(
            text in "(BlockSize\t[0-9]{1,4}\n)?([0-9]{1,3}\t-?[0-9]{1,12}\n|.{0,9}\n){0,9}",
            word: u64,
        ) {
            if let Ok(lengths) = Lengths::histogram(&text, 5000) {
                prop_assert!(lengths.at(word) <= lengths.max() && lengths.max() <= 5000);
            }
        }

        #[test]
        fn zipfian_stays_inside(min in 0u32..100, span in 0u32..5000, word: u64) {
            let lengths = Lengths::zipfian(min, min + span);
            prop_assert!((min..=min + span).contains(&lengths.at(word)));
        }
    }
}
