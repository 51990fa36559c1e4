//! The original cassandra-stress beside ours at the reference target: each finds what the other has
//! written, and their lines are alike. Where this machine cannot have the original the tests say so
//! and are skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::original::Original;
use rig::{Ended, Home, Serve};

/// Both, and a target.
struct Pair {
    original: Original,
    home: Home,
    serve: Serve,
}

impl Pair {
    fn get() -> Option<Self> {
        let original = Original::get()?;
        let home = Home::new();
        let serve = Serve::start(&home, &[]);
        Some(Self { original, home, serve })
    }

    fn at(&self, line: &str) -> String {
        format!("{line} -node 127.0.0.1 -port native={}", self.serve.address.port())
    }

    fn ours(&self, line: &str) -> Ended {
        let line = self.at(&format!("cassandra-stress {line}"));
        self.home.run(&line.split(' ').collect::<Vec<_>>())
    }

    fn theirs(&self, line: &str) -> Ended {
        self.original.run(&self.home, &self.at(&format!("{line} -mode native cql3")))
    }
}

/// Fails unless it visited so many partitions without an error.
fn assert_visited(ended: &Ended, partitions: &str) {
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let result = |label: &str| {
        let line = ended.stdout.lines().find(|line| line.starts_with(label));
        let (_, value) = line.unwrap_or_else(|| panic!("{ended:?}")).split_once(':').unwrap();
        value.trim().split(' ').next().unwrap().to_owned()
    };
    assert_eq!((&result("Total partitions")[..], &result("Total errors")[..]), (partitions, "0"));
}

#[test]
fn each_finds_what_the_other_has_written() {
    let Some(pair) = Pair::get() else { return };
    let seeds = "n=20000 no-warmup -rate threads=20 -pop seq=1..20000";

    let columns = "-col n=fixed(7) size=uniform(10..50) -schema keyspace=ours";
    assert_visited(&pair.ours(&format!("write {seeds} {columns}")), "20,000");
    assert_visited(&pair.theirs(&format!("read {seeds} {columns}")), "20,000");
    // It does look: with another size the same rows are others.
    let other = "-col n=fixed(7) size=uniform(10..51) -schema keyspace=ours";
    let other = pair.theirs(&format!("read {seeds} {other}"));
    assert_eq!(other.status, Some(1), "{other:?}");
    assert!(other.stdout.contains("FAILURE"), "{other:?}");

    // `mixed` makes no tables.
    let columns = "keysize=24 -col names=b,a size=exp(20..400) -schema keyspace=theirs";
    let columns = |command: &str| {
        let (keys, rest) = columns.split_once(' ').unwrap();
        format!("{command} {keys} {seeds} {rest}")
    };
    let none = columns("write").replacen("n=20000", "n=0", 1);
    assert_eq!(pair.ours(&none).status, Some(0));
    let wrote = pair.theirs(&columns("mixed ratio(write=1)"));
    assert_visited(&wrote, "20,000");
    assert_visited(&pair.ours(&columns("read")), "20,000");

    let counters = "n=500 no-warmup -rate threads=4 -pop seq=1..50";
    assert_visited(&pair.ours(&format!("counter_write add=fixed(3) {counters}")), "500");
    assert_visited(&pair.theirs(&format!("counter_read {counters}")), "500");
}

/// Rows below a clustering column, with values of several types.
const SHELVES: &str = "
keyspace: shelves
keyspace_definition: |
  CREATE KEYSPACE shelves WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: books
table_definition: |
  CREATE TABLE books (shelf text, place bigint, title text, cover blob, price double, isbn uuid,
    PRIMARY KEY (shelf, place));
columnspec:
  - {name: place, cluster: uniform(1..20)}
insert: {batchtype: UNLOGGED}
queries: {}
token_range_queries:
  all: {columns: '*', page_size: 100}
";

#[test]
fn profiles_are_the_same_rows() {
    let Some(pair) = Pair::get() else { return };
    std::fs::write(pair.home.at("shelves.yaml"), SHELVES).unwrap();
    let user = |ops: &str, rest: &str| {
        format!("user profile=shelves.yaml ops({ops}=1) {rest} no-warmup -rate threads=4")
    };
    let seeds = "-pop seq=1..300 no-wrap";
    assert_visited(&pair.theirs(&format!("{} {seeds}", user("insert", "n=300"))), "300");
    let validated = pair.ours(&format!("{} -pop seq=1..300", user("validate", "n=3000")));
    assert_eq!(validated.status, Some(0), "{validated:?}");
    assert_visited(&pair.ours(&user("all", "n=500")), "300");
    let theirs = pair.theirs(&user("all", "n=500"));
    assert_visited(&theirs, "300");
    let profile = |text: &str| {
        let (_, profile) = text.split_once("* Profile ").unwrap();
        let (profile, _) = profile.split_once("Insert Settings:").unwrap();
        profile.to_owned()
    };
    assert_eq!(profile(&validated.stdout), profile(&theirs.stdout));
}

#[test]
fn lines_are_alike() {
    let Some(pair) = Pair::get() else { return };
    assert_visited(&pair.ours("write n=2000 no-warmup -rate threads=4"), "2,000");
    let mix = "mixed ratio(write=1,read=3) n=2000 no-warmup -rate threads=4";
    for line in [
        format!("{mix} -pop dist=uniform(1..2000)"),
        "read n=2000 no-warmup -rate threads=4 fixed=4000/s -pop dist=uniform(1..2000)".to_owned(),
    ] {
        let (here, there) = (pair.ours(&line), pair.theirs(&line));
        assert_eq!((here.status, there.status), (Some(0), Some(0)), "{here:?} {there:?}");
        let (here, there) = (here.stdout, there.stdout);
        let running =
            |text: &str| text.lines().find(|line| line.starts_with("Running ")).unwrap().to_owned();
        assert_eq!(running(&here), running(&there));
        let header =
            |text: &str| text.lines().find(|line| line.starts_with("type  ")).unwrap().to_owned();
        assert_eq!(header(&here), header(&there));
        let (here_rows, there_rows) = (rows(&here), rows(&there));
        assert!(!here_rows.is_empty() && here_rows == there_rows, "{here_rows:?} {there_rows:?}");
        assert_eq!(results(&here), results(&there));
        assert!(results(&here).len() > 18, "{here}");
    }
}

/// Names of rows in their order, with the number of their cells and how long they are; once each.
fn rows(text: &str) -> Vec<(String, usize, usize)> {
    let named = text.lines().filter_map(|line| {
        let name = line.split(',').next()?;
        let is_row = line.split(',').count() > 10 && !name.contains(' ');
        is_row.then(|| (name.to_owned(), line.split(',').count(), line.len()))
    });
    let mut all: Vec<_> = named.collect();
    let mut seen = Vec::new();
    all.retain(|row| {
        !seen.contains(&row.0) && {
            seen.push(row.0.clone());
            true
        }
    });
    all
}

/// From `Results:` on, each number one sign.
fn results(text: &str) -> Vec<String> {
    let (_, results) = text.split_once("Results:").unwrap();
    let masked = |line: &str| {
        let mut shape = String::new();
        for c in line.chars() {
            let number = c.is_ascii_digit() || matches!(c, ',' | '.') && shape.ends_with('#');
            match number {
                true if shape.ends_with('#') => {}
                true => shape.push('#'),
                // Numbers are set to the right.
                false if c == ' ' && shape.ends_with(' ') => {}
                false => shape.push(c),
            }
        }
        shape
    };
    results.lines().map(masked).collect()
}
