//! Consistency levels (section 3).

use std::fmt;
use std::str::FromStr;

/// How many replicas must answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
#[allow(missing_docs)] // the names are the specification's
pub enum Consistency {
    Any = 0x0000,
    One = 0x0001,
    Two = 0x0002,
    Three = 0x0003,
    Quorum = 0x0004,
    All = 0x0005,
    LocalQuorum = 0x0006,
    EachQuorum = 0x0007,
    Serial = 0x0008,
    LocalSerial = 0x0009,
    LocalOne = 0x000A,
}

impl Consistency {
    /// All levels with their names, by value.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Any, "ANY"),
        (Self::One, "ONE"),
        (Self::Two, "TWO"),
        (Self::Three, "THREE"),
        (Self::Quorum, "QUORUM"),
        (Self::All, "ALL"),
        (Self::LocalQuorum, "LOCAL_QUORUM"),
        (Self::EachQuorum, "EACH_QUORUM"),
        (Self::Serial, "SERIAL"),
        (Self::LocalSerial, "LOCAL_SERIAL"),
        (Self::LocalOne, "LOCAL_ONE"),
    ];

    /// The level of this value.
    #[must_use]
    pub fn from_u16(value: u16) -> Option<Self> {
        Self::ALL.iter().map(|(level, _)| *level).find(|level| *level as u16 == value)
    }
}

impl FromStr for Consistency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(text))
            .map(|(level, _)| *level)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|(_, name)| *name).collect();
                format!("'{text}' is not a consistency level; one of {}", names.join(", "))
            })
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}
