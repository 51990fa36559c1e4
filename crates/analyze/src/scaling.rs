//! Speed-up and efficiency against a budget of resources.
//!
//! In: values of a figure that grows with its resources (operations per second), per budget and
//! block, and those of the base. Out: a table of [`Step`]s: level, speed-up over the base, and
//! efficiency = speed-up * base budget / budget, each with its interval (see [`crate::ratio`]).
//! [`against_print`] holds a figure to what a publication prints. Limits: the base has to be
//! measured in the same blocks.

use crate::ratio::{Ratio, level, ratio};
use serde::Serialize;

/// What was measured with so many resources.
#[derive(Debug, Clone, Copy)]
pub struct Level<'a> {
    /// Sockets, NUMA nodes, instances, cores: whatever the experiment counts.
    pub budget: u32,
    /// One per block; None where a trial failed.
    pub values: &'a [Option<f64>],
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// As given.
    pub budget: u32,
    /// The figure itself; None where no trial has given one.
    pub level: Option<Ratio>,
    /// Over the base.
    pub speedup: Option<Ratio>,
    /// Of the speed-up that as many times the resources can give, 1 is all.
    pub efficiency: Option<Ratio>,
}

/// The table of `levels` over `base`.
#[must_use]
pub fn scaling(base: Level<'_>, levels: &[Level<'_>]) -> Vec<Step> {
    let step = |of: &Level<'_>| {
        let speedup = ratio(of.values, base.values);
        let share = f64::from(base.budget) / f64::from(of.budget.max(1));
        Step {
            budget: of.budget,
            level: level(of.values),
            speedup,
            efficiency: speedup.map(|speedup| speedup.times(share)),
        }
    };
    levels.iter().map(step).collect()
}

/// Whether a printed figure is what its inputs give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Print {
    /// Rounded to its decimals.
    Rounded,
    /// Its further decimals were cut off.
    Cut,
    /// By so much less (above 0) or more (below 0) than computed.
    Differs {
        /// Computed less printed.
        by: f64,
    },
}

/// Compares a figure with its print of so many decimals.
#[must_use]
pub fn against_print(computed: f64, printed: f64, decimals: u32) -> Print {
    let unit = 0.1f64.powi(decimals.try_into().unwrap_or(i32::MAX));
    // What binary fractions are off by.
    let slack = 1e-9 * computed.abs().max(1.0);
    let by = computed - printed;
    if by.abs() <= unit / 2.0 + slack {
        Print::Rounded
    } else if by > 0.0 && by < unit - slack {
        Print::Cut
    } else {
        Print::Differs { by }
    }
}

impl Print {
    /// A sentence for a reader of both: "98.75 % computed, 98 % printed: its decimals were cut
    /// off". None when they agree.
    #[must_use]
    pub fn sentence(self, computed: f64, printed: f64, unit: &str) -> Option<String> {
        // As many decimals as a computed figure needs, two at most.
        let short = |value: f64| {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let both =
            format!("{} {unit} computed, {} {unit} printed", short(computed), short(printed));
        match self {
            Self::Rounded => None,
            Self::Cut => Some(format!("{both}: its decimals were cut off")),
            Self::Differs { by } => {
                let direction = if by > 0.0 { "less" } else { "more" };
                Some(format!("{both}: {} {direction} than computed", short(by.abs())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::IntervalKind;

    #[test]
    fn efficiency_is_the_share_of_what_as_many_times_the_resources_could_give() {
        let values = |mean: f64| (0..6).map(|i| Some(mean + f64::from(i))).collect::<Vec<_>>();
        let (one, two, four) = (values(1000.0), values(1900.0), values(3000.0));
        let level = |budget, values| Level { budget, values };
        let table = scaling(level(1, &one), &[level(1, &one), level(2, &two), level(4, &four)]);
        let efficiencies: Vec<f64> = table.iter().map(|s| s.efficiency.unwrap().value).collect();
        for (found, expected) in efficiencies.iter().zip([1.0, 0.95, 0.75]) {
            assert!((found - expected).abs() < 0.002, "{efficiencies:?}");
        }
        assert_eq!(table[0].speedup.unwrap().interval, Some((1.0, 1.0)));
        assert_eq!(table[2].speedup.unwrap().interval_kind, IntervalKind::Sure);
        // A base of two is halved.
        let over_two = scaling(level(2, &two), &[level(4, &four)]);
        assert!((over_two[0].efficiency.unwrap().value - 3000.0 / 1900.0 / 2.0).abs() < 0.002);
        let nothing = [None; 6];
        let empty = &scaling(level(1, &one), &[level(2, &nothing)])[0];
        assert_eq!((empty.level, empty.speedup, empty.efficiency), (None, None, None));
    }

    #[test]
    fn a_print_is_rounded_cut_or_different() {
        assert_eq!(against_print(98.75, 99.0, 0), Print::Rounded);
        assert_eq!(against_print(98.75, 98.0, 0), Print::Cut);
        assert_eq!(against_print(1.9379, 1.94, 2), Print::Rounded);
        assert_eq!(against_print(91.25, 90.0, 0), Print::Differs { by: 1.25 });
        let sentence = |computed: f64, printed| {
            against_print(computed, printed, 0).sentence(computed, printed, "%")
        };
        assert_eq!(sentence(99.4, 99.0), None);
        assert_eq!(
            sentence(98.75, 98.0).unwrap(),
            "98.75 % computed, 98 % printed: its decimals were cut off"
        );
        assert_eq!(
            sentence(91.25, 90.0).unwrap(),
            "91.25 % computed, 90 % printed: 1.25 less than computed"
        );
    }
}
