//! How long an operation waits before it is tried again.
//!
//! Source of the growing pauses: ScyllaDB's fork of cassandra-stress, `SettingsErrors.java`.

use record::Outcome;
use units::Nanos;

/// How pauses grow from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growth {
    /// All are equal.
    #[default]
    Constant,
    /// From the least to the greatest, by the share of the attempts that are used up.
    Linear,
    /// Each is twice as long as the one before.
    Exponential,
}

/// Pauses before further attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryPause {
    /// The first, and no other is shorter.
    pub least: Nanos,
    /// None is longer.
    pub most: Nanos,
    /// From one attempt to the next.
    pub growth: Growth,
    /// Other failures than an overloaded target are tried again at once.
    pub overloaded_only: bool,
    /// Each is longer or shorter by up to a quarter, so that not all clients come back at once.
    pub scattered: bool,
}

impl RetryPause {
    /// No pause.
    pub const NONE: Self = Self::constant(Nanos::ZERO);

    /// The same before each attempt.
    #[must_use]
    pub const fn constant(pause: Nanos) -> Self {
        Self {
            least: pause,
            most: pause,
            growth: Growth::Constant,
            overloaded_only: false,
            scattered: false,
        }
    }

    /// Behind so many failed attempts (1 or more) of so many in all, the last of which ended so.
    /// `random` scatters it.
    pub(crate) fn after(
        &self,
        outcome: Outcome,
        failures: u32,
        attempts: u32,
        random: u64,
    ) -> Nanos {
        if self.overloaded_only && outcome != Outcome::Overloaded {
            return Nanos::ZERO;
        }
        let before = failures.saturating_sub(1);
        let (least, most) = (self.least.0 as f64, self.most.0 as f64);
        let pause = match self.growth {
            Growth::Constant => least,
            Growth::Linear => least + (most - least) * f64::from(before) / f64::from(attempts),
            Growth::Exponential => least * f64::from(before.min(62)).exp2(),
        };
        let share = match self.scattered {
            true => 0.75 + (random >> 11) as f64 / (1u64 << 53) as f64 / 2.0,
            false => 1.0,
        };
        Nanos((pause * share).clamp(least.min(most), most) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(growth: Growth, scattered: bool, random: u64) -> Vec<u64> {
        let least = Nanos::from_millis(10);
        let most = Nanos::from_millis(100);
        let pause = RetryPause { least, most, growth, overloaded_only: true, scattered };
        let of = |failures| pause.after(Outcome::Overloaded, failures, 10, random).0 / 1_000_000;
        (1..=5).map(of).collect()
    }

    #[test]
    fn pauses_grow_within_their_bounds() {
        assert_eq!(pauses(Growth::Constant, false, 0), [10, 10, 10, 10, 10]);
        assert_eq!(pauses(Growth::Linear, false, 0), [10, 19, 28, 37, 46]);
        assert_eq!(pauses(Growth::Exponential, false, 0), [10, 20, 40, 80, 100]);
        assert_eq!(pauses(Growth::Exponential, true, 0), [10, 15, 30, 60, 100]);
        assert_eq!(pauses(Growth::Exponential, true, u64::MAX), [12, 25, 50, 100, 100]);
    }

    #[test]
    fn only_what_is_overloaded_is_left_alone() {
        let constant = RetryPause::constant(Nanos(5));
        assert_eq!(constant.after(Outcome::Error, 1, 10, 7), Nanos(5));
        let pause = RetryPause { overloaded_only: true, ..constant };
        assert_eq!(pause.after(Outcome::Error, 1, 10, 7), Nanos::ZERO);
        assert_eq!(pause.after(Outcome::Overloaded, 1, 10, 7), Nanos(5));
        assert_eq!(RetryPause::NONE.after(Outcome::Overloaded, 3, 10, 7), Nanos::ZERO);
    }
}
