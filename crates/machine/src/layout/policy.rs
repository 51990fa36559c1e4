//! How many instances, and along which borders of the machine.
//!
//! Input: the text of a policy. Output: [`Policy`].

use super::LayoutError;
use std::fmt;
use std::str::FromStr;
use units::CpuSet;

/// More instances than this are no experiment on one host.
const INSTANCES_MAX: u32 = 1024;

/// How a budget is divided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Policy {
    /// One instance over all of it.
    #[default]
    Single,
    /// One on each package.
    PerPackage,
    /// One on each NUMA node.
    PerNuma,
    /// One on each last-level cache.
    PerLlc,
    /// So many, of equally many cores.
    Count(u32),
    /// Exactly these cpus, one set for each instance.
    Custom(Vec<CpuSet>),
}

impl FromStr for Policy {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let unknown = || LayoutError::Policy { given: text.to_owned() };
        match text {
            "single" => return Ok(Self::Single),
            "per-package" => return Ok(Self::PerPackage),
            "per-numa" => return Ok(Self::PerNuma),
            "per-llc" => return Ok(Self::PerLlc),
            _ => {}
        }
        if let Ok(count) = text.parse::<u32>() {
            return match count {
                1..=INSTANCES_MAX => Ok(Self::Count(count)),
                _ => Err(unknown()),
            };
        }
        // One set alone has to end in a semicolon: `0-7;`.
        if !text.contains(';') {
            return Err(unknown());
        }
        let sets = text.trim_end_matches(';').split(';');
        let sets: Result<Vec<CpuSet>, _> = sets.map(str::parse).collect();
        let sets = sets.map_err(|_| unknown())?;
        if sets.iter().any(CpuSet::is_empty) {
            return Err(unknown());
        }
        Ok(Self::Custom(sets))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::PerPackage => f.write_str("per-package"),
            Self::PerNuma => f.write_str("per-numa"),
            Self::PerLlc => f.write_str("per-llc"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Custom(sets) => sets.iter().try_for_each(|cpus| write!(f, "{cpus};")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_as_they_are_printed() {
        for text in ["single", "per-package", "per-numa", "per-llc", "3", "0-7;8-15;", "0,2;"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("0-7;8-15".parse::<Policy>().unwrap().to_string(), "0-7;8-15;");
    }

    #[test]
    fn what_is_no_policy_is_refused_with_the_forms() {
        for text in ["", "per-socket", "0", "1025", "-1", ";", "0-7;;8", "a;b", "0-7", "2.5"] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains("per-numa") && error.contains("0-7;8-15"), "{text}: {error}");
        }
    }
}
