//! Latency tables: operations counted into columns whose limits somebody chose.
//!
//! A table of n columns has n - 1 limits. Column 0 holds what is not above the first limit; column
//! i what is above limit i - 1, all of it: shares of the columns fall from left to right and do not
//! add up to 1. Input: histograms (ns); output: counts, which tables of several clients, seconds or
//! trials add up; shares are computed from counts and never averaged. Limits are equally wide
//! steps (`21,40us`) or powers of two of a unit (`7,1` in ms, `10,2,us`): the table of asbench.
//!
//! Accuracy: a histogram's bucket counts as above a limit where all of it is, so that a limit is
//! met within 0.1 % of its value.

use crate::{LATENCY_MAX, Latency};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use units::Nanos;

/// Columns of a table at most.
const COLUMNS_MAX: usize = 1000;

/// Why a table cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnsError {
    /// Its text.
    #[error(
        "'{text}' is no latency table: write COLUMNS,WIDTH as in 21,40us (equal steps), or \
         COLUMNS,SHIFT[,us|ms] as in 7,1 (powers of two)"
    )]
    Form {
        /// As given.
        text: String,
    },
    /// Too few columns, or too many.
    #[error("a latency table has 2 to {COLUMNS_MAX} columns, not {columns}")]
    Columns {
        /// As asked for.
        columns: usize,
    },
    /// Nothing is told apart up there.
    #[error(
        "the last limit of {columns} columns is beyond 1 h, or the steps are none: take fewer \
         columns, or smaller steps"
    )]
    Limit {
        /// As asked for.
        columns: usize,
    },
}

/// What limits are multiples of, and are named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
}

impl LimitUnit {
    const fn size(self) -> u64 {
        match self {
            Self::Micros => 1_000,
            Self::Millis => 1_000_000,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Millis => "ms",
        }
    }
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    limits: Vec<Nanos>,
    /// Where one more column would begin.
    next: Nanos,
    unit: LimitUnit,
}

impl Columns {
    /// Limits that are `width` apart: of 21 columns of 40 us those from 40 us to 800 us.
    ///
    /// # Errors
    /// When that is no table.
    pub fn linear(columns: usize, width: Nanos) -> Result<Self, ColumnsError> {
        let unit = match width.0.is_multiple_of(LimitUnit::Millis.size()) {
            true => LimitUnit::Millis,
            false => LimitUnit::Micros,
        };
        let limit = |index: usize| width.0.checked_mul(index as u64 + 1);
        Self::of(columns, unit, limit)
    }

    /// Limits that are powers of two of a unit: of 7 columns shifted by 1 those from 1 to 32, of 4
    /// shifted by 3 those at 1, 8 and 64.
    ///
    /// # Errors
    /// When that is no table.
    pub fn shifted(columns: usize, shift: u32, unit: LimitUnit) -> Result<Self, ColumnsError> {
        let limit = |index: usize| {
            let bits = shift.checked_mul(u32::try_from(index).ok()?)?;
            1u64.checked_shl(bits)?.checked_mul(unit.size())
        };
        if shift == 0 {
            return Err(ColumnsError::Limit { columns });
        }
        Self::of(columns, unit, limit)
    }

    fn of(
        columns: usize,
        unit: LimitUnit,
        limit: impl Fn(usize) -> Option<u64>,
    ) -> Result<Self, ColumnsError> {
        if !(2..=COLUMNS_MAX).contains(&columns) {
            return Err(ColumnsError::Columns { columns });
        }
        let known = |index| limit(index).filter(|ns| (1..=LATENCY_MAX.0).contains(ns));
        let limits: Option<Vec<Nanos>> = (0..columns - 1).map(|i| known(i).map(Nanos)).collect();
        match (limits, limit(columns - 1)) {
            (Some(limits), Some(next)) => Ok(Self { limits, next: Nanos(next), unit }),
            _ => Err(ColumnsError::Limit { columns }),
        }
    }

    /// How many columns there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there are at least two")]
    pub fn len(&self) -> usize {
        self.limits.len() + 1
    }

    /// Whether limits are equal steps apart.
    #[must_use]
    pub fn is_linear(&self) -> bool {
        let first = self.limits.first().copied().unwrap_or_default();
        self.next.0 == first.0.saturating_mul(self.len() as u64)
            && self.limits.windows(2).all(|pair| pair[1].since(pair[0]) == first)
    }

    /// The limits, ascending.
    #[must_use]
    pub fn limits(&self) -> &[Nanos] {
        &self.limits
    }

    /// The middle of each column taken by itself, in microseconds. The last one is open: it counts
    /// as if one more limit followed, so that of steps of 40 us the column above 800 us is at 820.
    #[must_use]
    pub fn middles_us(&self) -> Vec<f64> {
        let lows = std::iter::once(Nanos::ZERO).chain(self.limits.iter().copied());
        let highs = self.limits.iter().copied().chain([self.next]);
        lows.zip(highs).map(|(low, high)| (low.0 as f64 + high.0 as f64) / 2e3).collect()
    }

    /// The heading of a column: `<=40us`, `>40us`.
    #[must_use]
    pub fn heading(&self, column: usize) -> String {
        let sign = if column == 0 { "<=" } else { ">" };
        format!("{sign}{}", self.limit_text(column))
    }

    /// Its name in a file: `le_40us`, `gt_40us`.
    #[must_use]
    pub fn field(&self, column: usize) -> String {
        let sign = if column == 0 { "le" } else { "gt" };
        format!("{sign}_{}", self.limit_text(column))
    }

    /// The limit that a column begins with; of the first the one that it ends with. Widths that
    /// are no whole microseconds have decimals.
    fn limit_text(&self, column: usize) -> String {
        let limit = self.limits.get(column.saturating_sub(1)).copied().unwrap_or_default();
        let number = limit.0 as f64 / self.unit.size() as f64;
        format!("{number}{}", self.unit.name())
    }

    /// Columns that hold nothing.
    #[must_use]
    pub fn counts(&self) -> ColumnCounts {
        ColumnCounts { samples: 0, above: vec![0; self.limits.len()], sum_ns: 0.0 }
    }
}

impl FromStr for Columns {
    type Err = ColumnsError;

    fn from_str(text: &str) -> Result<Self, ColumnsError> {
        let form = || ColumnsError::Form { text: text.to_owned() };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let count = |text: &str| text.parse::<usize>().map_err(|_| form());
        let unit = |text: &str| match text {
            "us" => Ok(LimitUnit::Micros),
            "ms" => Ok(LimitUnit::Millis),
            _ => Err(form()),
        };
        match parts[..] {
            [columns, step] => match step.parse::<u32>() {
                Ok(shift) => Self::shifted(count(columns)?, shift, LimitUnit::Millis),
                Err(_) => Self::linear(count(columns)?, step.parse().map_err(|_| form())?),
            },
            [columns, shift, named] => {
                let shift = shift.parse().map_err(|_| form())?;
                Self::shifted(count(columns)?, shift, unit(named)?)
            }
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.len() - 1;
        write!(f, "{} columns, {} to {}", self.len(), self.heading(0), self.heading(last))
    }
}

/// What columns hold.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCounts {
    samples: u64,
    /// Of each limit: what is above it.
    above: Vec<u64>,
    sum_ns: f64,
}

impl ColumnCounts {
    /// Counts a histogram in. `columns` are those that this was made for.
    pub fn add(&mut self, columns: &Columns, latency: &Latency) {
        self.samples = self.samples.saturating_add(latency.count());
        self.sum_ns += latency.mean() * latency.count() as f64;
        for bucket in latency.buckets() {
            let below = columns.limits.partition_point(|limit| *limit < bucket.low);
            for above in &mut self.above[..below.min(columns.limits.len())] {
                *above = above.saturating_add(bucket.count);
            }
        }
    }

    /// Counts the same columns of another client, second or trial in.
    pub fn merge(&mut self, other: &Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.sum_ns += other.sum_ns;
        for (ours, theirs) in self.above.iter_mut().zip(&other.above) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// Operations in all.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Operations of each column as it is printed: not above the first limit, then above each.
    #[must_use]
    pub fn cumulative(&self) -> Vec<u64> {
        let first = self.above.first().copied().unwrap_or(0);
        let not_above = self.samples.saturating_sub(first);
        std::iter::once(not_above).chain(self.above.iter().copied()).collect()
    }

    /// Operations of each column by itself; together they are all.
    #[must_use]
    pub fn apart(&self) -> Vec<u64> {
        let from = std::iter::once(self.samples).chain(self.above.iter().copied());
        let to = self.above.iter().copied().chain([0]);
        from.zip(to).map(|(from, to)| from.saturating_sub(to)).collect()
    }

    /// Mean of the values themselves in microseconds, 0 without any.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        if self.samples == 0 { 0.0 } else { self.sum_ns / self.samples as f64 / 1e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(text: &str) -> Columns {
        text.parse().unwrap()
    }

    #[test]
    fn limits_are_powers_of_two_or_steps() {
        let headings = |text: &str| {
            let columns = columns(text);
            (0..columns.len()).map(|i| columns.heading(i)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(headings("7,1"), "<=1ms >1ms >2ms >4ms >8ms >16ms >32ms");
        assert_eq!(headings("4,3"), "<=1ms >1ms >8ms >64ms");
        assert_eq!(headings("4,3,us"), "<=1us >1us >8us >64us");
        assert_eq!(headings("4,40us"), "<=40us >40us >80us >120us");
        assert_eq!(headings("3,2ms"), "<=2ms >2ms >4ms");
        assert_eq!(headings("3,2.5us"), "<=2.5us >2.5us >5us");
        let study = columns("21,40us");
        assert_eq!((study.limits()[0], study.limits()[19]), (Nanos(40_000), Nanos(800_000)));
        assert_eq!((study.middles_us()[0], study.middles_us()[20]), (20.0, 820.0));
        assert_eq!(columns("3,1").middles_us(), [500.0, 1500.0, 3000.0]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_cure() {
        for text in ["", "7", "a,1", "7,x", "7,1,s", "7,1,us,1", "-1,1", "2,"] {
            assert!(matches!(text.parse::<Columns>(), Err(ColumnsError::Form { .. })), "{text}");
        }
        for text in ["1,1", "0,40us", "1001,40us"] {
            let refused = text.parse::<Columns>();
            assert!(matches!(refused, Err(ColumnsError::Columns { .. })), "{text}");
        }
        for text in ["16,5", "7,0", "3,0s", "3,59m"] {
            assert!(matches!(text.parse::<Columns>(), Err(ColumnsError::Limit { .. })), "{text}");
        }
    }

    #[test]
    fn a_limit_belongs_to_what_is_below_it() {
        let table = columns("4,1ms");
        let mut latency = Latency::new();
        for us in [1, 1000, 1900, 2000, 2100, 900_000] {
            latency.record(Nanos::from_micros(us));
        }
        let mut counts = table.counts();
        counts.add(&table, &latency);
        assert_eq!(counts.cumulative(), [2, 4, 2, 1]);
        assert_eq!(counts.apart(), [2, 2, 1, 1]);
        assert!((counts.mean_us() - 907_001.0 / 6.0).abs() < 1.0);
    }

    proptest! {
        #[test]
        fn clients_that_are_merged_count_as_one(
            values in prop::collection::vec(1u64..3_000_000, 0..100),
            split in 0usize..100,
        ) {
            let table = columns("16,40us");
            let of = |values: &[u64]| {
                let mut latency = Latency::new();
                values.iter().for_each(|&ns| latency.record(Nanos(ns)));
                let mut counts = table.counts();
                counts.add(&table, &latency);
                counts
            };
            let (left, right) = values.split_at(split.min(values.len()));
            let (mut merged, all) = (of(left), of(&values));
            merged.merge(&of(right));
            prop_assert_eq!(merged.cumulative(), all.cumulative());
            prop_assert_eq!(merged.apart().iter().sum::<u64>(), values.len() as u64);
            prop_assert!((merged.mean_us() - all.mean_us()).abs() < 1e-6 * all.mean_us().max(1.0));
        }
    }
}
