//! Faults as words: how a command line names them, and how a server tells them.

use super::{Delay, Fault, Faults, Share, Stall};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use units::{Nanos, ParseError};

/// Longer is longer than any histogram.
const TIME_MAX: Nanos = Nanos::from_secs(3600);

/// Why words name no fault.
#[derive(Debug, Error, PartialEq)]
pub enum FaultError {
    /// A time that is none.
    #[error("{0}")]
    Time(#[from] ParseError),
    /// A time out of bounds.
    #[error("'{0}' is no time for a fault: give one above 0 and of at most 1h")]
    Bounds(String),
    /// A stall is two times.
    #[error("'{0}' is no stall: give its time and how often it comes, like 500ms/10s")]
    Stall(String),
    /// A stall that never ends.
    #[error("'{0}' stalls for ever: the first time is that of a stall, shorter than the second")]
    Endless(String),
    /// A distribution that is not known.
    #[error(
        "'{0}' is no delay: give a time like 2ms, a range like 1ms..5ms, exp:MEAN like exp:2ms, \
         or lognormal:MEDIAN..P99 like lognormal:2ms..20ms"
    )]
    Delay(String),
    /// A range from more to less.
    #[error("'{0}' ends before it begins: give the shorter time first")]
    Backwards(String),
    /// A fault and its share.
    #[error("'{0}' is no fault with its share: give one like overloaded=1% or drop=0.001")]
    NoShare(String),
    /// A fault that is not known.
    #[error(
        "'{0}' is no fault: there are error, overloaded, unavailable, read-timeout, \
         write-timeout, drop and late:TIME"
    )]
    Unknown(String),
    /// A share that is none.
    #[error("'{0}' is no share: give one above 0 and of at most 1, like 0.01 or 1%")]
    Share(String),
    /// A fault twice.
    #[error("'{0}' is given twice: give each fault once, with its whole share")]
    Twice(String),
    /// More than all.
    #[error("the shares of faults add up to {0} of the {1}: give 1 or less in all")]
    Sum(f64, &'static str),
}

fn time(text: &str) -> Result<Nanos, FaultError> {
    let time: Nanos = text.parse()?;
    match time > Nanos::ZERO && time <= TIME_MAX {
        true => Ok(time),
        false => Err(FaultError::Bounds(text.to_owned())),
    }
}

fn range(text: &str, whole: &str) -> Result<(Nanos, Nanos), FaultError> {
    let (from, to) = text.split_once("..").ok_or_else(|| FaultError::Delay(whole.to_owned()))?;
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err(FaultError::Backwards(text.to_owned()));
    }
    Ok((from, to))
}

impl FromStr for Stall {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let parts = text.split_once('/').ok_or_else(|| FaultError::Stall(text.to_owned()))?;
        let stall = Self { time: time(parts.0)?, every: time(parts.1)? };
        match stall.time < stall.every {
            true => Ok(stall),
            false => Err(FaultError::Endless(text.to_owned())),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.time, self.every)
    }
}

impl FromStr for Delay {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        match text.split_once(':') {
            Some(("exp", mean)) => Ok(Self::Exponential(time(mean)?)),
            Some(("lognormal", times)) => {
                range(times, text).map(|(median, p99)| Self::Lognormal(median, p99))
            }
            Some(_) => Err(FaultError::Delay(text.to_owned())),
            None if text.contains("..") => {
                range(text, text).map(|(from, to)| Self::Uniform(from, to))
            }
            None => match text.starts_with(|c: char| c.is_ascii_digit()) {
                true => Ok(Self::Constant(time(text)?)),
                false => Err(FaultError::Delay(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(time) => write!(f, "{time}"),
            Self::Uniform(from, to) => write!(f, "{from}..{to}"),
            Self::Exponential(mean) => write!(f, "exp:{mean}"),
            Self::Lognormal(median, p99) => write!(f, "lognormal:{median}..{p99}"),
        }
    }
}

impl FromStr for Share {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, number) =
            text.split_once('=').ok_or_else(|| FaultError::NoShare(text.to_owned()))?;
        let fault = match (name, name.split_once(':')) {
            (_, Some(("late", late))) => Fault::Late(time(late)?),
            ("error", _) => Fault::Error,
            ("overloaded", _) => Fault::Overloaded,
            ("unavailable", _) => Fault::Unavailable,
            ("read-timeout", _) => Fault::ReadTimeout,
            ("write-timeout", _) => Fault::WriteTimeout,
            ("drop", _) => Fault::Drop,
            _ => return Err(FaultError::Unknown(name.to_owned())),
        };
        let (digits, scale) = match number.strip_suffix('%') {
            Some(digits) => (digits, 100.0),
            None => (number, 1.0),
        };
        let share = digits.parse::<f64>().ok().map(|share| share / scale);
        match share.filter(|share| *share > 0.0 && *share <= 1.0) {
            Some(share) => Ok(Self { fault, share }),
            None => Err(FaultError::Share(number.to_owned())),
        }
    }
}

impl Fault {
    /// As on the command line, without its time.
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::ReadTimeout => "read-timeout",
            Self::WriteTimeout => "write-timeout",
            Self::Drop => "drop",
            Self::Late(_) => "late",
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Late(time) => write!(f, "late:{time}={}", self.share),
            fault => write!(f, "{}={}", fault.name(), self.share),
        }
    }
}

impl Faults {
    /// Whether the shares can be met.
    ///
    /// # Errors
    /// [`FaultError`] when a fault is named twice, or their shares add up to more than all reads or
    /// all writes.
    pub fn check(&self) -> Result<(), FaultError> {
        for (n, share) in self.shares.iter().enumerate() {
            if self.shares[..n].iter().any(|s| s.fault.name() == share.fault.name()) {
                return Err(FaultError::Twice(share.fault.name().to_owned()));
            }
        }
        let sum = |other: Fault| -> f64 {
            self.shares.iter().filter(|s| s.fault != other).map(|s| s.share).sum()
        };
        for (other, of) in [(Fault::WriteTimeout, "reads"), (Fault::ReadTimeout, "writes")] {
            // A sum of decimal fractions misses 1 by a little.
            if sum(other) > 1.0 + 1e-9 {
                return Err(FaultError::Sum(sum(other), of));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    /// The flags that make them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut flags = Vec::new();
        let mut flag = |name: &str, value: Option<String>| {
            flags.extend(value.map(|value| format!("--{name} {value}")));
        };
        flag("stall", self.stall.map(|s| s.to_string()));
        flag("delay", self.delay.map(|d| d.to_string()));
        let shares: Vec<_> = self.shares.iter().map(Share::to_string).collect();
        flag("fault", (!shares.is_empty()).then(|| shares.join(",")));
        flag("pieces", self.pieces_max.map(|n| n.to_string()));
        flag("gather", self.gather.map(|t| t.to_string()));
        flag("faults-after", (self.after_ops > 0).then(|| self.after_ops.to_string()));
        flag("fault-seed", Some(self.seed.to_string()));
        f.write_str(&flags.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<T: FromStr<Err = FaultError> + fmt::Display>(text: &str) -> Result<String, String> {
        text.parse::<T>().map(|value| value.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn words_and_back() {
        for text in ["500ms/10s", "1us/1h"] {
            assert_eq!(parsed::<Stall>(text), Ok(text.to_owned()));
        }
        for text in ["2ms", "1ms..5ms", "exp:2ms", "lognormal:2ms..20ms"] {
            assert_eq!(parsed::<Delay>(text), Ok(text.to_owned()));
        }
        let shares = ["error=0.5", "overloaded=1", "unavailable=0.01", "read-timeout=0.001"];
        for text in [&shares[..], &["write-timeout=0.2", "drop=0.0001", "late:15s=0.1"]].concat() {
            assert_eq!(parsed::<Share>(text), Ok(text.to_owned()));
        }
        assert_eq!(parsed::<Share>("drop=1%"), Ok("drop=0.01".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_cure() {
        let refused = |result: Result<String, String>, says: &str| {
            let error = result.unwrap_err();
            assert!(error.contains(says), "'{says}' is not in: {error}");
        };
        refused(parsed::<Stall>("500ms"), "like 500ms/10s");
        refused(parsed::<Stall>("10s/500ms"), "shorter than");
        refused(parsed::<Stall>("0s/1s"), "above 0");
        refused(parsed::<Stall>("x/1s"), "x");
        for text in ["slow", "gamma:2ms", "lognormal:2ms", ""] {
            refused(parsed::<Delay>(text), "lognormal:MEDIAN..P99");
        }
        refused(parsed::<Delay>("5ms..1ms"), "shorter time first");
        refused(parsed::<Delay>("exp:2h"), "at most 1h");
        refused(parsed::<Share>("drop"), "drop=0.001");
        refused(parsed::<Share>("flood=1"), "write-timeout");
        refused(parsed::<Share>("late=1%"), "late:TIME");
        for text in ["drop=0", "drop=1.5", "drop=-1", "drop=NaN", "drop=101%", "drop="] {
            refused(parsed::<Share>(text), "above 0 and of at most 1");
        }
    }

    #[test]
    fn shares_add_up() {
        let check = |words: &[&str]| {
            let shares = words.iter().map(|w| w.parse().unwrap()).collect();
            Faults { shares, ..Faults::default() }.check()
        };
        assert_eq!(check(&["read-timeout=1", "write-timeout=1"]), Ok(()));
        assert_eq!(check(&["error=0.1", "drop=0.2", "late:1s=0.7"]), Ok(()));
        assert!(matches!(check(&["read-timeout=1", "drop=0.1"]), Err(FaultError::Sum(_, "reads"))));
        assert!(check(&["late:1s=0.1", "late:2s=0.1"]).unwrap_err().to_string().contains("twice"));
    }
}
