//! Whether a Cassandra compacts: asked once, after the window.
//!
//! In: addresses. Out: the tasks of all hosts that tell. Source: `system_views.sstable_tasks`, a
//! virtual table of Cassandra 4.0 and later; each host tells of itself only. Limits: what began and
//! ended within the window is not seen.

use drive::Control;
use record::Caveat;
use record::summary::Target;
use std::net::SocketAddr;
use units::{Credentials, Nanos};

/// A host that does not answer is not waited for longer.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// The first major release with virtual tables.
const RELEASE_MIN: u32 = 4;
/// Tasks that are named.
const NAMED_MAX: usize = 3;

/// Whether a target is a Cassandra that can be asked.
pub(crate) fn is_cassandra(target: &Target) -> bool {
    let major = target.version.as_deref().and_then(|v| v.split('.').next()?.parse::<u32>().ok());
    // Scylla calls itself 3.0.8, our own target 4.1.
    matches!(target.kind.as_str(), "cassandra" | "cql") && major.is_some_and(|m| m >= RELEASE_MIN)
}

/// What is under way, in words; None when no host tells.
pub(crate) fn under_way(
    hosts: &[SocketAddr],
    credentials: Option<&Credentials>,
) -> Option<Vec<String>> {
    let query = "SELECT keyspace_name, table_name, kind FROM system_views.sstable_tasks";
    let ask = |&host: &SocketAddr| {
        let mut control = Control::connect_as(host, PATIENCE, credentials).ok()?;
        let rows = control.query(query).ok()?;
        let text = |cell: &Option<Vec<u8>>| {
            String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
        };
        Some(
            rows.iter()
                .map(|row| in_words(host, &row.iter().map(text).collect::<Vec<_>>()))
                .collect(),
        )
    };
    let told: Vec<Vec<String>> = hosts.iter().filter_map(ask).collect();
    (!told.is_empty()).then(|| told.concat())
}

fn in_words(host: SocketAddr, row: &[String]) -> String {
    match row {
        [keyspace, table, kind, ..] => format!("{kind} of {keyspace}.{table} on {host}"),
        _ => format!("a task on {host}"),
    }
}

/// When there are any.
pub(crate) fn caveat(tasks: &[String]) -> Option<Caveat> {
    let text = format!(
        "Cassandra had {} compaction tasks under way when the window ended: they took cpu and disk \
         from the operations, and the next run will find other files.",
        tasks.len()
    );
    (!tasks.is_empty()).then(|| {
        let named = tasks.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>();
        let more = if tasks.len() > NAMED_MAX { ", ..." } else { "" };
        Caveat::new("compactions", text)
            .evidence(format!("{}{more} (system_views.sstable_tasks)", named.join(", ")))
            .cure("Wait until `nodetool compactionstats` shows none before measuring.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cassandra_with_virtual_tables_is_asked() {
        let target = |kind: &str, version: Option<&str>| Target {
            kind: kind.to_owned(),
            version: version.map(str::to_owned),
            protocol: Some(4),
        };
        for (kind, version, is) in [
            ("cassandra", Some("5.0.5"), true),
            ("cql", Some("4.1.3, 5.0.5"), true),
            ("cql", Some("3.0.8"), false),
            ("cql", None, false),
            (Target::REFERENCE, Some("4.1.0-wideload"), false),
            (Target::REFERENCE, Some("4.0"), false),
        ] {
            assert_eq!(is_cassandra(&target(kind, version)), is, "{kind} {version:?}");
        }
    }

    #[test]
    fn tasks_are_named_and_bounded() {
        assert_eq!(caveat(&[]), None);
        let host = "127.0.0.1:9042".parse().unwrap();
        let row = ["ycsb", "usertable", "compaction"].map(str::to_owned);
        let task = in_words(host, &row);
        assert_eq!(task, "compaction of ycsb.usertable on 127.0.0.1:9042");
        let caveat = caveat(&vec![task; 5]).unwrap();
        assert!(caveat.text.contains("had 5 compaction"), "{caveat:?}");
        assert_eq!(caveat.evidence.matches("usertable").count(), NAMED_MAX);
        assert!(caveat.evidence.contains("..."), "{caveat:?}");
    }

    #[test]
    fn hosts_are_asked_by_their_virtual_table() {
        let config = target::Config::new("127.0.0.1:0".parse().unwrap());
        let host = target::Server::bind(config).unwrap().start().unwrap();
        let mut control = Control::connect(host.local_addr(), PATIENCE).unwrap();
        assert_eq!(under_way(&[host.local_addr()], None), None, "it has no such table");
        // One that looks like Cassandra's.
        for statement in [
            "CREATE KEYSPACE system_views WITH replication = {'class': 'SimpleStrategy', \
             'replication_factor': 1}",
            "CREATE TABLE system_views.sstable_tasks (keyspace_name text, table_name text, task_id \
             uuid, completion_ratio double, kind text, progress bigint, total bigint, unit text, \
             PRIMARY KEY (keyspace_name, table_name, task_id))",
        ] {
            control.query(statement).unwrap();
        }
        assert_eq!(under_way(&[host.local_addr()], None), Some(Vec::new()));
        let insert = "INSERT INTO system_views.sstable_tasks (keyspace_name, table_name, task_id, \
                      kind, progress) VALUES ('ycsb', 'usertable', \
                      123e4567-e89b-12d3-a456-426614174000, 'compaction', 7)";
        control.query(insert).unwrap();
        let tasks = under_way(&[host.local_addr()], None).unwrap();
        assert_eq!(tasks.len(), 1);
        assert!(tasks[0].starts_with("compaction of ycsb.usertable on 127.0.0.1:"), "{tasks:?}");
    }

    #[test]
    fn nobody_tells_where_nobody_answers() {
        assert_eq!(under_way(&["127.0.0.1:1".parse().unwrap()], None), None);
    }
}
