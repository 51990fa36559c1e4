//! A target on disk: what was there is there again after a restart, and a directory that cannot be
//! used is refused with the cure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Client, Row, Target, int};

/// Changes of the schema and of rows, of all kinds.
const STATEMENTS: [&str; 26] = [
    "CREATE KEYSPACE kept_not WITH replication = {'class': 'SimpleStrategy', \
     'replication_factor': 1}",
    "CREATE TABLE plain (k text PRIMARY KEY, b int, d int) WITH comment = 'a\tb ''c''\nd\\'",
    "INSERT INTO plain (k, b, d) VALUES ('one', 1, 11)",
    "ALTER TABLE plain ADD (a int, \"C c\" text)",
    "INSERT INTO plain (k, a, \"C c\") VALUES ('two', 2, 'capital')",
    "UPDATE plain SET a = 3 WHERE k = 'one'",
    "CREATE TABLE wide (p int, q tuple<int, text>, c int, d text, s int static, v blob, \
     f frozen<list<int>>, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) \
     AND default_time_to_live = 100",
    "INSERT INTO wide (p, q, c, d, s, v, f) VALUES (1, (1, 'x'), 1, 'a', 5, 0xff, [1, 2])",
    "INSERT INTO wide (p, q, c, d, v) VALUES (1, (1, 'x'), 2, 'b', 0x01) USING TTL 10",
    "INSERT INTO wide (p, q, c, d, v) VALUES (1, (1, 'x'), 3, 'c', 0x02)",
    "DELETE FROM wide WHERE p = 1 AND q = (1, 'x') AND c = 3",
    "CREATE TABLE counts (k int PRIMARY KEY, n counter)",
    "UPDATE counts SET n = n + 7 WHERE k = 1",
    "UPDATE counts SET n = n - 2 WHERE k = 1",
    "CREATE TABLE bags (k int PRIMARY KEY, l list<int>, m map<text, int>, s set<int>)",
    "INSERT INTO bags (k, l, m, s) VALUES (1, [1, 2], {'a': 1}, {5, 4})",
    "UPDATE bags SET l = l + [3], m['b'] = 2, s = s - {5} WHERE k = 1",
    "CREATE TABLE emptied (k int PRIMARY KEY)",
    "INSERT INTO emptied (k) VALUES (1)",
    "TRUNCATE emptied",
    "CREATE TABLE dropped (k int PRIMARY KEY)",
    "INSERT INTO dropped (k) VALUES (1)",
    "DROP TABLE dropped",
    "DROP KEYSPACE kept_not",
    "CREATE TABLE dropped (k int PRIMARY KEY, other int)",
    "DELETE FROM plain WHERE k = 'three'",
];

/// All that a client can see of it.
fn seen(client: &mut Client) -> Vec<Vec<Row>> {
    [
        "SELECT k, a, b, d, \"C c\", writetime(b) FROM plain",
        "SELECT * FROM wide",
        "SELECT c, ttl(v) FROM wide",
        "SELECT * FROM counts",
        "SELECT * FROM bags",
        "SELECT * FROM emptied",
        "SELECT * FROM dropped",
        "SELECT * FROM system_schema.columns WHERE keyspace_name = 'ks'",
        "SELECT * FROM system_schema.tables WHERE keyspace_name = 'ks'",
        "SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces",
    ]
    .iter()
    .map(|text| client.ok(text))
    .collect()
}

#[test]
fn schema_and_rows_are_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::at(dir.path()).unwrap();
    let mut client = target.client();
    for statement in STATEMENTS {
        client.ok(statement);
    }
    let before = seen(&mut client);
    assert_eq!((before[1].len(), before[5].len(), before[6].len()), (2, 0, 0));
    drop((client, target));
    for _ in 0..2 {
        let target = Target::at(dir.path()).unwrap();
        let mut client = target.client();
        assert_eq!(seen(&mut client), before);
        drop((client, target));
    }
    // Time goes on, deletions still count, ids of columns are not given twice.
    let target = Target::at(dir.path()).unwrap();
    let mut client = target.client();
    target.advance_s(11);
    assert_eq!(client.ok("SELECT * FROM wide").len(), 1);
    client.ok("INSERT INTO plain (k, d) VALUES ('one', 5) USING TIMESTAMP 1");
    client.ok("ALTER TABLE plain ADD e int");
    let row = &client.ok("SELECT a, b, d, e FROM plain WHERE k = 'one'")[0];
    let row: Vec<_> = row.iter().map(|cell| cell.as_deref().map(int)).collect();
    assert_eq!(row, [Some(3), Some(1), Some(11), None]);
}

#[test]
fn scans_and_pages_go_over_all_shards() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::at(dir.path()).unwrap();
    let mut client = target.client();
    client.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    let memory = Target::new(target::Storage::Memory);
    let mut other = memory.client();
    other.ok("CREATE TABLE t (k int PRIMARY KEY, v int)");
    for n in 0..500 {
        let insert = format!("INSERT INTO t (k, v) VALUES ({n}, {})", n * n);
        client.ok(&insert);
        other.ok(&insert);
    }
    let all = "SELECT token(k), k, v FROM t";
    assert_eq!(client.ok(all), other.ok(all), "the same rows in the same order");
    assert_eq!(client.pages(all, 7), other.ok(all));
    let half = "SELECT k FROM t WHERE token(k) > -9 AND token(k) <= 6000000000000000000";
    assert_eq!(client.pages(half, 3), other.ok(half));
    let used = ["shard-0", "shard-1", "shard-2"].map(|shard| dir.path().join(shard).exists());
    assert_eq!(used, [true; 3]);
    // A key longer than those on disk may be.
    client.ok("CREATE TABLE long (k text PRIMARY KEY, v int)");
    for (n, last) in ["a", "b"].iter().enumerate() {
        let key = "x".repeat(65_000) + last;
        client.ok(&format!("INSERT INTO long (k, v) VALUES ('{key}', {n})"));
    }
    for (n, last) in ["a", "b"].iter().enumerate() {
        let key = "x".repeat(65_000) + last;
        let rows = client.ok(&format!("SELECT k, v FROM long WHERE k = '{key}'"));
        assert_eq!(rows[0][0].as_deref(), Some(key.as_bytes()));
        assert_eq!(int(rows[0][1].as_deref().unwrap()), n as i64);
    }
    assert_eq!(client.ok("SELECT k FROM long").len(), 2);
}

/// The write-ahead logs, the newest one of each shard.
fn logs(dir: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for shard in 0..3 {
        let files = fs::read_dir(dir.join(format!("shard-{shard}"))).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        logs.extend(files.filter(|path| path.extension().is_some_and(|e| e == "jnl")).max());
    }
    assert_eq!(logs.len(), 3, "{logs:?}");
    logs
}

/// Bytes of a log, without the room that was reserved behind them.
fn written(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn a_log_with_a_torn_end_is_taken_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    {
        let target = Target::at(dir.path()).unwrap();
        let mut client = target.client();
        client.ok("CREATE TABLE t (k int PRIMARY KEY, v blob)");
        for n in 0..300 {
            client.ok(&format!("INSERT INTO t (k, v) VALUES ({n}, 0x{})", "ab".repeat(50)));
        }
    }
    // What the end of a host in the midst of a write leaves: half of the last entry.
    for log in logs(dir.path()) {
        let size = written(&log) as u64;
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(size - 20).unwrap();
    }
    let target = Target::at(dir.path()).unwrap();
    let count = target.client().ok("SELECT * FROM t").len();
    assert!((297..300).contains(&count), "one of each shard: {count} of 300");
    target.client().ok("INSERT INTO t (k, v) VALUES (1000, 0x00)");
    drop(target);
    // Or what was there before, behind it.
    for log in logs(dir.path()) {
        let size = written(&log) as u64;
        let mut file = fs::OpenOptions::new().write(true).open(&log).unwrap();
        file.set_len(size).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
        file.write_all(&[0x5a; 37]).unwrap();
    }
    let target = Target::at(dir.path()).unwrap();
    assert_eq!(target.client().ok("SELECT * FROM t").len(), count + 1);
}

fn refusal(dir: &Path) -> String {
    match Target::at(dir) {
        Ok(_) => panic!("{} was not refused", dir.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_directory_that_cannot_be_used_is_refused_with_the_cure() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let target = Target::at(&at("used")).unwrap();
    target.client();
    let error = refusal(&at("used"));
    assert!(error.contains("another target uses") && error.contains("stop it"), "{error}");
    drop(target);

    let about = at("used").join("wideload-target");
    let text = fs::read_to_string(&about).unwrap();
    fs::write(&about, text.replace("format 1", "format 2")).unwrap();
    let error = refusal(&at("used"));
    assert!(error.contains("format 2") && error.contains("--dir"), "{error}");
    fs::write(&about, text).unwrap();

    let schema = at("used").join("schema");
    let kept = fs::read_to_string(&schema).unwrap();
    fs::write(&schema, "table\tnothing\n").unwrap();
    let error = refusal(&at("used"));
    assert!(error.contains("line 1 of its schema") && error.contains("empty one"), "{error}");
    fs::write(&schema, kept).unwrap();
    Target::at(&at("used")).unwrap();

    fs::create_dir(at("foreign")).unwrap();
    fs::write(at("foreign/letter"), "mine").unwrap();
    let error = refusal(&at("foreign"));
    assert!(error.contains("is not empty") && error.contains("--dir"), "{error}");
    let left: Vec<_> = fs::read_dir(at("foreign")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is added to what is somebody else's");

    fs::write(at("file"), "mine").unwrap();
    assert!(refusal(&at("file")).contains("with --dir"));
}
