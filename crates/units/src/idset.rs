//! Logical cpus, NUMA nodes, and sets of them as the kernel writes them.

use crate::parse::{ParseError, form, range};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A logical cpu, as numbered by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

/// A NUMA node, as numbered by the kernel; ids may be sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumaId(pub u32);

/// What the kernel numbers and lists in sets.
pub trait Id: Copy + Ord {
    /// No kernel numbers higher; a larger number in a list is a typing error, not a machine.
    const COUNT_MAX: u32;
    /// What a list of them looks like, for messages.
    const FORM: &'static str;
    /// What is said of a number that is too large.
    const RANGE: &'static str;
    /// By its number.
    fn of(number: u32) -> Self;
    /// Its number.
    fn number(self) -> u32;
}

impl Id for CpuId {
    const COUNT_MAX: u32 = 65_536;
    const FORM: &'static str = "a cpu list like 0-3,8 or 0-14:2";
    const RANGE: &'static str = "cpu numbers below 65536";

    fn of(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

impl Id for NumaId {
    /// `MAX_NUMNODES` of the kernel is at most this.
    const COUNT_MAX: u32 = 1024;
    const FORM: &'static str = "a list of NUMA nodes like 0-1,3";
    const RANGE: &'static str = "numbers of NUMA nodes below 1024";

    fn of(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

/// An ordered set. Reads and prints the list form of sysfs and taskset: `0-3,8`, also `0-14:2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdSet<T>(BTreeSet<T>);

/// A set of cpus.
pub type CpuSet = IdSet<CpuId>;

/// A set of NUMA nodes.
pub type NumaSet = IdSet<NumaId>;

impl<T> Default for IdSet<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Id> IdSet<T> {
    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter().copied()
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Without any member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: T) -> bool {
        self.0.contains(&id)
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// What is only in this set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }
}

impl<T: Id> FromIterator<T> for IdSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(ids: I) -> Self {
        Self(ids.into_iter().collect())
    }
}

impl<T: Id> FromStr for IdSet<T> {
    type Err = ParseError;

    /// Reads a list. Empty text is the empty set, as in sysfs.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = |t: &str| t.trim().parse::<u32>().map_err(|_| form(text, T::FORM));
        let mut ids = BTreeSet::new();
        let mut named = 0u32;
        for part in text.trim().split(',').filter(|p| !p.trim().is_empty()) {
            let (span, step) = match part.split_once(':') {
                Some((span, step)) => (span, number(step)?),
                None => (part, 1),
            };
            let (first, last) = match span.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(span)?, number(span)?),
            };
            if first > last || step == 0 {
                return Err(form(text, T::FORM));
            }
            if last >= T::COUNT_MAX {
                return Err(range(text, T::RANGE));
            }
            // Each once is all there are; a list that goes on and on is no list.
            named += (last - first) / step + 1;
            if named > T::COUNT_MAX {
                return Err(range(text, T::RANGE));
            }
            ids.extend((first..=last).step_by(step as usize).map(T::of));
        }
        Ok(Self(ids))
    }
}

impl<T: Id> fmt::Display for IdSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.iter().map(|id| id.number()).peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.peek() == Some(&(last + 1)) {
                last += 1;
                numbers.next();
            }
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_printed_as_the_kernel_does() {
        for (text, printed) in
            [("0-3,8", "0-3,8"), ("0-6:2", "0,2,4,6"), ("", ""), ("5,4,3", "3-5"), ("1\n", "1")]
        {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), printed);
        }
        for text in ["a", "3-1", "1-2:0", "0-99999999", "1-", "-1"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
        assert_eq!("0,2-3".parse::<NumaSet>().unwrap().to_string(), "0,2-3");
        assert!("1024".parse::<NumaSet>().is_err());
        assert!("0-65535,".repeat(1000).parse::<CpuSet>().is_err(), "bounded work");
    }
}
