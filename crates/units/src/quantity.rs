//! Durations, sizes, counts and rates.

use crate::parse::{ParseError, decimal, form, range, si_factor};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A duration or an instant of [`crate::clock`], in nanoseconds. Holds 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "no deadline".
    pub const MAX: Self = Self(u64::MAX);

    /// Whole seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// Whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// As seconds, for printing and rates.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to this, zero when it lies behind.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// For interfaces of the standard library.
    #[must_use]
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

const DURATION_FORM: &str = "a duration like 500us, 100ms, 30s, 5m or 1h";

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = decimal(text.trim()).ok_or_else(|| form(text, DURATION_FORM))?;
        let unit = match number.suffix {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if number.digits == 0 => 1,
            _ => return Err(form(text, DURATION_FORM)),
        };
        number
            .times(unit)
            .map(Self)
            .ok_or_else(|| range(text, "whole nanoseconds, at most 584 years"))
    }
}

impl fmt::Display for Nanos {
    /// The shortest exact form that [`FromStr`] reads again: `1500ms` is `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (3_600_000_000_000, "h"),
            (60_000_000_000, "m"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
            (1, "ns"),
        ];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        for (size, name) in UNITS {
            // Hours and minutes only when they come out even; below, three decimals at the most.
            if self.0.is_multiple_of(size) {
                return write!(f, "{}{name}", self.0 / size);
            }
            if size <= 1_000_000_000
                && self.0 >= size
                && self.0.is_multiple_of((size / 1000).max(1))
            {
                let text = format!("{}.{:03}", self.0 / size, self.0 % size / (size / 1000));
                return write!(f, "{}{name}", text.trim_end_matches('0'));
            }
        }
        Ok(())
    }
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const FORM: &str = "a size like 512, 64KiB, 16MiB or 1GB";
        let number = decimal(text.trim()).ok_or_else(|| form(text, FORM))?;
        let unit = match number.suffix {
            "" | "B" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "k" | "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            "T" | "TiB" => 1 << 40,
            _ => return Err(form(text, FORM)),
        };
        number.times(unit).map(Self).ok_or_else(|| range(text, "whole bytes, at most 16 EiB"))
    }
}

impl fmt::Display for Bytes {
    /// Binary units with one decimal, for people; not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, name) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift {
                return write!(f, "{:.1} {name}", self.0 as f64 / (1u64 << shift) as f64);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A number of things: `100k`, `10M`, `2.5G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const FORM: &str = "a count like 1000, 100k, 10M or 2.5G";
        let number = decimal(text.trim()).ok_or_else(|| form(text, FORM))?;
        let unit = si_factor(number.suffix).ok_or_else(|| form(text, FORM))?;
        number.times(unit).map(Self).ok_or_else(|| range(text, "a whole number below 2^64"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (size, name) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")] {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{}{name}", self.0 / size);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// Operations per time as an exact fraction: `events` in every `per` nanoseconds. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    events: u64,
    per_ns: u64,
}

impl Rate {
    /// `events` in every `per`; None when either is zero.
    #[must_use]
    pub const fn new(events: u64, per: Nanos) -> Option<Self> {
        if events == 0 || per.0 == 0 { None } else { Some(Self { events, per_ns: per.0 }) }
    }

    /// Events in every [`Self::per_ns`].
    #[must_use]
    pub const fn events(self) -> u64 {
        self.events
    }

    /// Nanoseconds in which [`Self::events`] happen.
    #[must_use]
    pub const fn per_ns(self) -> u64 {
        self.per_ns
    }

    /// Events per second.
    #[must_use]
    pub fn per_s(self) -> f64 {
        self.events as f64 * 1e9 / self.per_ns as f64
    }

    /// The exact number of events due in `[0, window)` when event `k` is due at `k * per / events`.
    #[must_use]
    pub fn events_in(self, window: Nanos) -> u64 {
        let due = u128::from(window.0) * u128::from(self.events);
        u64::try_from(due.div_ceil(u128::from(self.per_ns))).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const FORM: &str =
            "a rate above zero like 5000/s, 99.5k/s, 1M/s or 30/m (plain numbers are per second)";
        let (amount, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
        let mut per_ns: u64 = match unit {
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(form(text, FORM)),
        };
        let number = decimal(amount).ok_or_else(|| form(text, FORM))?;
        let factor = si_factor(number.suffix).ok_or_else(|| form(text, FORM))?;
        let mut events = number.digits * factor;
        let mut decimals = number.decimals;
        while decimals > 0 && events % 10 == 0 {
            events /= 10;
            decimals -= 1;
        }
        let limit = "above 0 and at most 1 G/s";
        per_ns = 10u64
            .checked_pow(decimals)
            .and_then(|f| per_ns.checked_mul(f))
            .ok_or_else(|| range(text, limit))?;
        let events = u64::try_from(events).map_err(|_| range(text, limit))?;
        let rate = Self::new(events, Nanos(per_ns)).ok_or_else(|| range(text, limit))?;
        if events > per_ns { Err(range(text, limit)) } else { Ok(rate) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.per_ns == 1_000_000_000 {
            write!(f, "{}/s", Count(self.events))
        } else {
            write!(f, "{}/s", self.per_s())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_exactly() {
        for (text, ns) in [
            ("30s", 30_000_000_000),
            ("1.5ms", 1_500_000),
            ("2m", 120_000_000_000),
            ("0", 0),
            ("7us", 7000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
        for text in ["", "s", "5", "1.2.3s", "0.5ns", "-1s", "99999999999h", "1e3s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn durations_print_as_they_are_read() {
        for text in ["30s", "1.5s", "2m", "1h", "100ms", "7us", "1.05ms", "90s", "1ns", "61s"] {
            let value: Nanos = text.parse().unwrap();
            assert_eq!(value.to_string().parse(), Ok(value), "{text} printed as {value}");
        }
        assert_eq!(Nanos(1_500_000_000).to_string(), "1.5s");
        assert_eq!(Nanos(1_234_567_891).to_string(), "1234567.891us");
    }

    #[test]
    fn rates_keep_their_fraction() {
        let rate: Rate = "99999/s".parse().unwrap();
        assert_eq!(rate.events_in(Nanos::from_secs(10)), 999_990);
        let slow: Rate = "0.5/s".parse().unwrap();
        assert_eq!(slow.events_in(Nanos::from_secs(10)), 5);
        assert_eq!("1.5k/s".parse::<Rate>().unwrap().events(), 1500);
        for text in ["0", "0/s", "-5/s", "x", "5/y", "2G/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!("10M".parse(), Ok(Count(10_000_000)));
        assert_eq!("1_000".parse(), Ok(Count(1000)));
        assert_eq!("2.5k".parse(), Ok(Count(2500)));
        assert!("2.5".parse::<Count>().is_err());
        assert_eq!("64KiB".parse(), Ok(Bytes(65536)));
        assert_eq!(Bytes(65536).to_string(), "64.0 KiB");
    }
}
