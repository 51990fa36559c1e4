//! Logical cpus, NUMA nodes, and sets of cpus as the kernel writes them.

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

/// No kernel has more cpus than this; a larger number in a list is a typing error, not a machine.
const CPUS_MAX: u32 = 65_536;

/// An ordered set of cpus. Reads and prints the list form of sysfs and taskset: `0-3,8`, also
/// `0-14:2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuSet(BTreeSet<CpuId>);

impl CpuSet {
    /// The cpus in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.0.iter().copied()
    }

    /// Number of cpus.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Without any cpu.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.contains(&cpu)
    }

    /// The cpus in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The cpus that are only in this set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = ParseError;

    /// Reads a cpu list. Empty text is the empty set, as in sysfs.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const FORM: &str = "a cpu list like 0-3,8 or 0-14:2";
        let number = |t: &str| t.trim().parse::<u32>().map_err(|_| form(text, FORM));
        let mut cpus = BTreeSet::new();
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
                return Err(form(text, FORM));
            }
            if last >= CPUS_MAX {
                return Err(range(text, "cpu numbers below 65536"));
            }
            cpus.extend((first..=last).step_by(step as usize).map(CpuId));
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().map(|c| c.0).peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last += 1;
                cpus.next();
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
    }
}
