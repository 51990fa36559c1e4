//! Whether a cluster can hold what a replication asks for, told before a keyspace is created.
//!
//! In: a factor or CQL's map literal, and the hosts of each datacenter. Out: nothing, or what is
//! beyond the ring. Strategies other than Simple- and NetworkTopologyStrategy are left to the
//! database.

use crate::connect::Admin;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a replication does not fit a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum ReplicationError {
    /// Neither a factor nor a map.
    #[error(
        "--replication '{text}' is neither a factor nor a map: {why}; write it like 3, or \
         {{'class': 'NetworkTopologyStrategy', 'dc1': 3}}"
    )]
    Form { text: String, why: String },
    /// More replicas than hosts.
    #[error(
        "--replication asks for {factor} replicas in {place}, which has hosts for {hosts}: give at \
         most {hosts}, or start more hosts"
    )]
    Beyond { factor: u64, place: String, hosts: usize },
    /// A datacenter that is not there.
    #[error("--replication names datacenter '{name}', which this cluster has not; it has {known}")]
    Datacenter { name: String, known: String },
}

impl Admin {
    /// Whether this cluster has the hosts that `replication` (a factor or a map literal) asks for.
    ///
    /// # Errors
    /// [`ReplicationError`]: more replicas than hosts, unknown datacenters, another form.
    pub fn check_replication(&self, replication: &str) -> Result<(), ReplicationError> {
        let mut hosts = BTreeMap::new();
        for host in self.session().get_cluster_state().get_nodes_info() {
            *hosts.entry(host.datacenter.clone().unwrap_or_default()).or_insert(0) += 1;
        }
        check(replication, &hosts)
    }
}

/// As [`Admin::check_replication`], with the number of hosts by datacenter.
fn check(replication: &str, hosts: &BTreeMap<String, usize>) -> Result<(), ReplicationError> {
    let all = hosts.values().sum();
    let fits = |factor: u64, place: &str, hosts: usize| {
        if factor > hosts as u64 {
            let place = place.to_owned();
            return Err(ReplicationError::Beyond { factor, place, hosts });
        }
        Ok(())
    };
    if let Ok(factor) = replication.trim().parse() {
        return fits(factor, "this cluster", all);
    }
    let entries = entries(replication)
        .map_err(|why| ReplicationError::Form { text: replication.to_owned(), why })?;
    let class = entries.iter().find(|(name, _)| name == "class").map_or("", |(_, class)| class);
    let topology = match class.rsplit('.').next() {
        Some("SimpleStrategy") => false,
        Some("NetworkTopologyStrategy") => true,
        _ => return Ok(()),
    };
    for (name, value) in entries.iter().filter(|(name, _)| name != "class") {
        // `3/1` is transient replication: three replicas, one of them transient.
        let factor = value.split('/').next().and_then(|factor| factor.parse().ok());
        let Some(factor) = factor else {
            let why = format!("'{name}' is '{value}' and not a whole number");
            return Err(ReplicationError::Form { text: replication.to_owned(), why });
        };
        match (topology, hosts.get(name)) {
            (true, Some(&count)) => fits(factor, &format!("datacenter {name}"), count)?,
            (false, _) if name == "replication_factor" => fits(factor, "this cluster", all)?,
            (true, None) if name == "replication_factor" => {
                for (name, &count) in hosts {
                    fits(factor, &format!("datacenter {name}"), count)?;
                }
            }
            (true, None) => {
                let known = hosts.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(ReplicationError::Datacenter { name: name.clone(), known });
            }
            (false, _) => {}
        }
    }
    Ok(())
}

/// The entries of a CQL map literal of words and numbers; the reason where it is none.
fn entries(literal: &str) -> Result<Vec<(String, String)>, String> {
    let inner = literal.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner.ok_or("it is not in braces")?.trim_start();
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let (name, after) = word(rest)?;
        let after = after.strip_prefix(':').ok_or(format!("no ':' behind '{name}'"))?;
        let (value, after) = word(after.trim_start())?;
        entries.push((name, value));
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if after.is_empty() => after,
            None => return Err(format!("something stands behind '{after}'")),
        };
    }
    Ok(entries)
}

/// A quoted word (a doubled quote stands for one) or a bare one, and what follows it.
fn word(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        return match word {
            "" => Err(format!("a word was expected at '{text}'")),
            word => Ok((word.to_owned(), rest.trim_start())),
        };
    };
    let (mut word, mut rest) = (String::new(), quoted);
    loop {
        let (part, after) = rest.split_once('\'').ok_or("a quote is not closed")?;
        word.push_str(part);
        let Some(more) = after.strip_prefix('\'') else { return Ok((word, after.trim_start())) };
        word.push('\'');
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hosts() -> BTreeMap<String, usize> {
        [("dc1".to_owned(), 3), ("it's".to_owned(), 1)].into()
    }

    #[test]
    fn what_the_cluster_can_hold_passes() {
        for replication in [
            "1",
            "4",
            "{'class': 'SimpleStrategy', 'replication_factor': 4}",
            "{'class':'SimpleStrategy','replication_factor':'4'}",
            "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'it''s': '1'}",
            "{'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'dc1' : '3/1'}",
            "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
            "{'class': 'com.example.Mine', 'replication_factor': 99}",
        ] {
            assert_eq!(check(replication, &hosts()), Ok(()), "{replication}");
        }
    }

    #[test]
    fn what_is_beyond_the_ring_is_named() {
        for (replication, named) in [
            ("5", "5 replicas in this cluster, which has hosts for 4"),
            ("{'class': 'SimpleStrategy', 'replication_factor': 5}", "5 replicas in this cluster"),
            ("{'class': 'NetworkTopologyStrategy', 'dc1': 4}", "4 replicas in datacenter dc1"),
            ("{'class': 'NetworkTopologyStrategy', 'replication_factor': 2}", "datacenter it's"),
            ("{'class': 'NetworkTopologyStrategy', 'dc9': 1}", "it has dc1, it's"),
            ("{'class': 'NetworkTopologyStrategy', 'dc1': many}", "'dc1' is 'many'"),
            ("{'class' 'SimpleStrategy'}", "no ':' behind 'class'"),
            ("{'class: 1}", "not closed"),
            ("three", "not in braces"),
        ] {
            let error = check(replication, &hosts()).unwrap_err().to_string();
            assert!(error.contains(named), "{replication}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "\\{?('[a-z']{0,4}'|[a-z0-9:, ]|é){0,9}\\}?") {
            let _ = check(&text, &hosts());
        }
    }
}
