//! The published lines of cassandra-stress on a real Cassandra, sizes and addresses changed. Where
//! this machine cannot start one the test says so and is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::cassandra::Cluster;
use rig::{Ended, Home};
use std::time::Duration;

#[test]
fn the_published_lines_run_on_cassandra() {
    let home = Home::new();
    let up = ["--listen", "127.76.9.1", "--heap", "1GiB"];
    let Some(cluster) = Cluster::up(&home, &up) else { return };
    let host = cluster.instances[0].address.ip().to_string();
    let stress = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let line = [&["cassandra-stress"], &words[..], &["-node", &host]].concat();
        cluster.start(&line).wait(Duration::from_secs(180))
    };
    let schema =
        "-schema keyspace=ksx replication(strategy=NetworkTopologyStrategy, datacenter1=1)";
    let (mode, draws) = ("-mode native cql3", "-pop dist=gaussian(1..20000,10000,1000)");
    let lines = [
        "write no-warmup duration=5s cl=one -rate threads=1000 -schema replication(factor=3) -pop \
         seq=1..100000000 no-wrap -log interval=1"
            .to_owned(),
        format!("write no-warmup n=20000 -rate threads=100 {mode} -pop seq=1..20000 {schema}"),
        format!("read no-warmup n=20000 -rate threads=400 {mode} {draws} {schema}"),
        format!(
            "mixed ratio(write=2,read=8) no-warmup n=20000 -rate threads=400 {mode} {draws} \
             {schema}"
        ),
        "counter_write n=2000 no-warmup cl=one -rate threads=20 -pop seq=1..1000".to_owned(),
        "counter_read n=2000 no-warmup cl=one -rate threads=20 -pop seq=1..1000".to_owned(),
    ];
    for line in &lines {
        let ended = stress(line);
        assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.trim_end().ends_with("END"), "{line}: {ended:?}");
        let errors = ended.stdout.lines().find(|line| line.starts_with("Total errors"));
        assert!(errors.unwrap().contains(":          0 "), "{line}: {ended:?}");
    }
    profile(&home, &stress);
    // A row that was not written is found to be missing.
    let missing = stress("read no-warmup n=10 -rate threads=1 -pop seq=900000001..900000010");
    assert_eq!(missing.status, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("Data returned was not validated"), "{missing:?}");
}

/// Clustering rows in batches, an index, conditions, every type of column, counters.
const PROFILE: &str = r#"
keyspace: diary
keyspace_definition: |
  CREATE KEYSPACE diary WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
table: notes
table_definition: |
  CREATE TABLE notes (
    writer text, kind blob, written timeuuid, day date, score decimal,
    title ascii, address inet, ratio double, share float, done boolean, number varint, at time,
    since timestamp, small smallint, tiny tinyint, id uuid, whole int, long bigint,
    tags set<text>, steps list<int>, fixed frozen<set<uuid>>,
    PRIMARY KEY ((writer, kind), written, day, score)
  ) WITH CLUSTERING ORDER BY (written DESC, day ASC, score ASC);
extra_definitions:
  - CREATE INDEX IF NOT EXISTS ON notes (title);
columnspec:
  - {name: written, cluster: fixed(5)}
  - {name: day, cluster: uniform(1..3)}
  - {name: at, population: uniform(1..86400000000000)}
insert: {partitions: uniform(1..3), select: fixed(1)/2, batchtype: UNLOGGED}
queries:
  latest:
    cql: select * from notes where writer = ? and kind = ? limit 10
    fields: samerow
  since:
    cql: select title from notes where writer = ? and kind = ? and written >= ?
    consistencyLevel: QUORUM
  close:
    cql: >
      update notes set done = ? where writer = ? and kind = ? and written = ? and day = ? and
      score = ? if whole > 0
    fields: samerow
    serialConsistencyLevel: LOCAL_SERIAL
"#;
const COUNTERS: &str = r#"
keyspace: diary
specname: hits
table: hits
table_definition: CREATE TABLE hits (page text PRIMARY KEY, seen counter, sent counter)
insert: {batchtype: COUNTER, partitions: fixed(2)}
queries: {page: {cql: select * from hits where page = ?, fields: samerow}}
"#;

fn profile(home: &Home, stress: &dyn Fn(&str) -> Ended) {
    std::fs::write(home.at("diary.yaml"), PROFILE).unwrap();
    std::fs::write(home.at("hits.yaml"), COUNTERS).unwrap();
    for line in [
        "user profile=diary.yaml ops(insert=1) n=2000 no-warmup -rate threads=20",
        "user profile=diary.yaml,hits.yaml ops(insert=1,latest=2,since=1,close=1,hits.insert=1,\
         hits.page=1) n=4000 no-warmup -rate threads=20 -pop seq=1..2000",
        "user profile=diary.yaml ops(insert=1,latest=1) n=1000 no-warmup -rate threads=20 -mode \
         native cql3 protocolVersion=5 compression=lz4",
    ] {
        let ended = stress(line);
        assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.contains("Created extra schema."), "{line}: {ended:?}");
        let errors = ended.stdout.lines().find(|line| line.starts_with("Total errors"));
        assert!(errors.unwrap().contains(":          0 "), "{line}: {ended:?}");
        let rows = ended.stdout.lines().find(|line| line.starts_with("Row rate")).unwrap();
        assert!(!rows.contains("latest: 0 row/s"), "{line}: {ended:?}");
    }
}
