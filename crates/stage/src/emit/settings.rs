//! Keys and flags of a database that the user sets.
//!
//! Input: `cassandra.KEY=VALUE`, `scylla.FLAG[=VALUE]`, `aerospike.SECTION.KEY=VALUE`. Output:
//! [`Set`]. Sections of Aerospike are `service`, `logging`, `network.X`, `namespace`,
//! `namespace.storage-engine`.

use crate::cassandra::{Setting, SettingError};
use machine::layout::Database;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Names in a path: a section, one inside of it, a key, with room to spare.
const DEPTH_MAX: usize = 8;

/// One `--set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// A key of `cassandra.yaml`.
    Cassandra(Setting),
    /// A flag of Scylla, without its dashes, and its value; without `=` it has none.
    Scylla(String, Option<String>),
    /// Where in `aerospike.conf`, from the outside in, and the value.
    Aerospike(Vec<String>, String),
}

/// A setting that is none. The text gives the forms.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetError {
    /// Of no database.
    #[error(
        "'{given}' is no setting: give one like cassandra.concurrent_writes=64, \
         scylla.overprovisioned, or aerospike.service.proto-fd-max=15000"
    )]
    Form {
        /// What was given.
        given: String,
    },
    /// One of Cassandra's.
    #[error(transparent)]
    Cassandra(#[from] SettingError),
}

impl Set {
    /// Whose it is.
    #[must_use]
    pub fn database(&self) -> Database {
        match self {
            Self::Cassandra(_) => Database::Cassandra,
            Self::Scylla(..) => Database::Scylla,
            Self::Aerospike(..) => Database::Aerospike,
        }
    }
}

impl FromStr for Set {
    type Err = SetError;

    fn from_str(given: &str) -> Result<Self, SetError> {
        let form = || SetError::Form { given: given.to_owned() };
        if given.starts_with("cassandra.") {
            return Ok(Self::Cassandra(given.parse()?));
        }
        let (key, value) = match given.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (given, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = |name: &str| !name.is_empty() && name.chars().all(plain);
        if value.as_ref().is_some_and(|value| value.chars().any(char::is_control)) {
            return Err(form());
        }
        if let Some(flag) = key.strip_prefix("scylla.").filter(|flag| is_name(flag)) {
            // On the command line the keys of scylla.yaml have dashes.
            return Ok(Self::Scylla(flag.replace('_', "-"), value));
        }
        let path: Vec<String> = match key.strip_prefix("aerospike.") {
            Some(path) => path.split('.').map(str::to_owned).collect(),
            None => return Err(form()),
        };
        match value.filter(|value| !value.contains(['{', '}', '#'])) {
            Some(value)
                if (2..=DEPTH_MAX).contains(&path.len())
                    && path.iter().all(|name| is_name(name)) =>
            {
                Ok(Self::Aerospike(path, value))
            }
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cassandra(setting) => setting.fmt(f),
            Self::Scylla(flag, None) => write!(f, "scylla.{flag}"),
            Self::Scylla(flag, Some(value)) => write!(f, "scylla.{flag}={value}"),
            Self::Aerospike(path, value) => write!(f, "aerospike.{}={value}", path.join(".")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_belong_to_a_database() {
        for (text, database) in [
            ("cassandra.concurrent_writes=64", Database::Cassandra),
            ("scylla.overprovisioned", Database::Scylla),
            ("scylla.smp=4", Database::Scylla),
            ("aerospike.service.proto-fd-max=15000", Database::Aerospike),
            ("aerospike.namespace.storage-engine.data-size=4G", Database::Aerospike),
        ] {
            let set: Set = text.parse().unwrap();
            assert_eq!((set.database(), set.to_string().as_str()), (database, text));
        }
        assert_eq!(
            "scylla.cluster_name=x".parse::<Set>().unwrap().to_string(),
            "scylla.cluster-name=x"
        );
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_forms() {
        for text in [
            "",
            "x=1",
            "scylla.",
            "scylla.a b",
            "scylla.a=\n",
            "aerospike.x=1",
            "aerospike.a.b",
            "aerospike.service.x=1 }",
            "aerospike.a..b=1",
            &format!("aerospike.{}=1", ["a"; 3000].join(".")),
            "reference.x=1",
        ] {
            let error = text.parse::<Set>().unwrap_err().to_string();
            assert!(error.contains("aerospike.service."), "{text}: {error}");
        }
        assert!("cassandra.x".parse::<Set>().is_err());
        let deep = format!("cassandra.{}=1", ["a"; 3000].join(".")).parse::<Set>();
        let deep = deep.unwrap_err().to_string();
        assert!(deep.len() < 100 && deep.contains("at most 8"), "{deep}");
    }
}
