//! Options of tables and keyspaces: which there are, their defaults, and what a WITH may say.
//!
//! All options of Cassandra 4.1, and the two of 3.11 that it has no use for, are taken and shown in
//! `system_schema.tables`; of them only `default_time_to_live` has an effect here. Defaults are
//! those of 4.1.

use crate::cql::ast::{Property, PropertyValue};
use crate::error::{CqlError, invalid};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Map,
}

/// Name, kind, default as a CQL constant.
const OPTIONS: [(&str, Kind, &str); 18] = [
    ("additional_write_policy", Kind::Text, "'99p'"),
    ("bloom_filter_fp_chance", Kind::Number, "0.01"),
    ("caching", Kind::Map, "{'keys': 'ALL', 'rows_per_partition': 'NONE'}"),
    ("cdc", Kind::Boolean, "null"),
    ("comment", Kind::Text, "''"),
    (
        "compaction",
        Kind::Map,
        "{'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', \
         'max_threshold': '32', 'min_threshold': '4'}",
    ),
    (
        "compression",
        Kind::Map,
        "{'chunk_length_in_kb': '16', 'class': 'org.apache.cassandra.io.compress.LZ4Compressor'}",
    ),
    ("crc_check_chance", Kind::Number, "1.0"),
    ("dclocal_read_repair_chance", Kind::Number, "0.0"),
    ("default_time_to_live", Kind::Integer, "0"),
    ("gc_grace_seconds", Kind::Integer, "864000"),
    ("max_index_interval", Kind::Integer, "2048"),
    ("memtable", Kind::Text, "null"),
    ("memtable_flush_period_in_ms", Kind::Integer, "0"),
    ("min_index_interval", Kind::Integer, "128"),
    ("read_repair", Kind::Text, "'BLOCKING'"),
    ("read_repair_chance", Kind::Number, "0.0"),
    ("speculative_retry", Kind::Text, "'99p'"),
];

/// A replication strategy's class and parameters, as pairs.
pub(crate) type Replication = Vec<(String, String)>;

/// Twenty years, Cassandra's greatest TTL.
pub(crate) const TTL_S_MAX: i64 = 630_720_000;

/// A table's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableOptions {
    /// By name, as CQL constants.
    values: BTreeMap<&'static str, String>,
    /// Seconds that a value lives without `USING TTL`; 0 is for ever.
    pub(crate) default_ttl_s: u32,
}

/// Text as a CQL constant.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Pairs of texts as a CQL map.
pub(crate) fn quoted_map(pairs: &[(String, String)]) -> String {
    let inner: Vec<_> =
        pairs.iter().map(|(k, v)| format!("{}: {}", quoted(k), quoted(v))).collect();
    format!("{{{}}}", inner.join(", "))
}

impl TableOptions {
    /// The defaults.
    pub(crate) fn new() -> Self {
        let values = OPTIONS.iter().map(|(n, _, v)| (*n, (*v).to_owned())).collect();
        Self { values, default_ttl_s: 0 }
    }

    /// Takes what a WITH says.
    ///
    /// # Errors
    /// [`CqlError::Syntax`] for an unknown name as Cassandra has it, [`CqlError::Config`] for a
    /// value that does not fit.
    pub(crate) fn apply(&mut self, properties: &[Property]) -> Result<(), CqlError> {
        for property in properties {
            let name = &property.name;
            if name == "id" {
                return Err(invalid(
                    "the reference target chooses the ID of a table: leave it out",
                ));
            }
            let Some((name, kind, _)) = OPTIONS.iter().find(|(n, ..)| n == name) else {
                return Err(CqlError::Syntax(format!(
                    "Unknown property '{name}': the options of Cassandra 4.1 are known"
                )));
            };
            let value = constant(*kind, &property.value).ok_or_else(|| {
                let kind = format!("{kind:?}").to_lowercase();
                CqlError::Config(format!("Invalid value for property '{name}': want a {kind}"))
            })?;
            if *name == "default_time_to_live" {
                let ttl = value.parse().ok().filter(|t| (0..=TTL_S_MAX).contains(t));
                self.default_ttl_s = ttl.map(|t: i64| t as u32).ok_or_else(|| {
                    CqlError::Config(format!(
                        "default_time_to_live must be between 0 and {TTL_S_MAX} (got {value})"
                    ))
                })?;
            }
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// Name and CQL constant of each option.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

fn constant(kind: Kind, value: &PropertyValue) -> Option<String> {
    match (kind, value) {
        (Kind::Map, PropertyValue::Map(pairs)) => {
            let mut pairs = pairs.clone();
            for (name, class) in &mut pairs {
                if name == "class" && !class.contains('.') && class.ends_with("Strategy") {
                    *class = format!("org.apache.cassandra.db.compaction.{class}");
                }
            }
            Some(quoted_map(&pairs))
        }
        (Kind::Text, PropertyValue::Scalar(text)) => Some(quoted(text)),
        (Kind::Integer, PropertyValue::Scalar(text)) => {
            text.parse::<i32>().ok().map(|_| text.clone())
        }
        (Kind::Number, PropertyValue::Scalar(text)) => {
            text.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| format!("{n:?}"))
        }
        (Kind::Boolean, PropertyValue::Scalar(text)) => {
            let lower = text.to_ascii_lowercase();
            ["true", "false"].contains(&lower.as_str()).then_some(lower)
        }
        _ => None,
    }
}

/// A keyspace's options: replication and durable writes.
///
/// # Errors
/// [`CqlError::Config`] when replication is missing or malformed.
pub(crate) fn keyspace_options(
    properties: &[Property],
) -> Result<(Option<Replication>, Option<bool>), CqlError> {
    let (mut replication, mut durable_writes) = (None, None);
    for property in properties {
        match (property.name.as_str(), &property.value) {
            ("replication", PropertyValue::Map(pairs)) => {
                replication = Some(check_replication(pairs)?);
            }
            ("durable_writes", PropertyValue::Scalar(text)) => {
                durable_writes = Some(text.eq_ignore_ascii_case("true"));
            }
            (name, _) => {
                return Err(CqlError::Syntax(format!(
                    "Unknown or malformed property '{name}': keyspaces have replication = {{..}} \
                     and durable_writes = true|false"
                )));
            }
        }
    }
    Ok((replication, durable_writes))
}

fn check_replication(pairs: &[(String, String)]) -> Result<Replication, CqlError> {
    const PACKAGE: &str = "org.apache.cassandra.locator.";
    let config = |text: String| Err(CqlError::Config(text));
    let Some((_, class)) = pairs.iter().find(|(k, _)| k == "class") else {
        return config("Missing mandatory replication strategy class".to_owned());
    };
    let short = class.rsplit('.').next().unwrap_or(class);
    if !["SimpleStrategy", "NetworkTopologyStrategy", "LocalStrategy"].contains(&short) {
        return config(format!(
            "Unable to find replication strategy class '{class}': use SimpleStrategy or \
             NetworkTopologyStrategy"
        ));
    }
    let has_factor = pairs.iter().any(|(k, _)| k == "replication_factor");
    if short == "SimpleStrategy" && !has_factor {
        return config("SimpleStrategy requires a replication_factor strategy option.".to_owned());
    }
    let mut checked = vec![("class".to_owned(), format!("{PACKAGE}{short}"))];
    for (key, value) in pairs.iter().filter(|(k, _)| k != "class") {
        if !value.parse::<u16>().is_ok_and(|n| n > 0) {
            return config(format!(
                "Replication factor must be numeric and positive; found {value}"
            ));
        }
        checked.push((key.clone(), value.clone()));
    }
    Ok(checked)
}

/// The sum of the factors of a checked replication.
pub(crate) fn replicas(replication: &[(String, String)]) -> u32 {
    replication.iter().filter_map(|(_, v)| v.parse::<u32>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(name: &str, value: &str) -> Property {
        Property { name: name.into(), value: PropertyValue::Scalar(value.into()) }
    }

    #[test]
    fn options_are_checked() {
        let mut options = TableOptions::new();
        options.apply(&[scalar("default_time_to_live", "30"), scalar("comment", "it's")]).unwrap();
        assert_eq!(options.default_ttl_s, 30);
        assert!(options.iter().any(|o| o == ("comment", "'it''s'")));
        assert!(options.apply(&[scalar("colour", "red")]).is_err());
        assert!(options.apply(&[scalar("default_time_to_live", "-1")]).is_err());
        assert!(options.apply(&[scalar("gc_grace_seconds", "soon")]).is_err());
        assert!(options.apply(&[scalar("compaction", "x")]).is_err());
    }

    #[test]
    fn replication_is_checked() {
        let map = |pairs: &[(&str, &str)]| Property {
            name: "replication".into(),
            value: PropertyValue::Map(
                pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            ),
        };
        let good = map(&[("class", "NetworkTopologyStrategy"), ("dc1", "3"), ("dc2", "2")]);
        let (replication, _) = keyspace_options(&[good]).unwrap();
        assert_eq!(replicas(&replication.unwrap()), 5);
        assert!(keyspace_options(&[map(&[("class", "SimpleStrategy")])]).is_err());
        assert!(
            keyspace_options(&[map(&[("class", "Odd"), ("replication_factor", "1")])]).is_err()
        );
        assert!(keyspace_options(&[map(&[("replication_factor", "1")])]).is_err());
    }
}
