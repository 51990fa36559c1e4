//! Lines of cassandra-stress, profiles among them, and of YCSB on a real Cassandra, sizes and
//! addresses changed, and the original cassandra-stress on the same rows. Where this machine cannot
//! start a Cassandra, or cannot have the original, the test says so and leaves that out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::cassandra::Cluster;
use rig::original::Original;
use rig::serve::control;
use rig::{Ended, Home};
use std::fs;
use std::time::Duration;

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

/// Rows below columns of types whose order is not that of their bytes.
const SEATS: &str = r#"
keyspace: diary
keyspace_definition: |
  CREATE KEYSPACE diary WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
specname: seats
table: seats
table_definition: |
  CREATE TABLE seats (
    hall text, block uuid, at timeuuid, seat int, owner text, price double, tags set<text>,
    PRIMARY KEY ((hall, seat), block, at)
  ) WITH CLUSTERING ORDER BY (block ASC, at DESC)
columnspec:
  - {name: block, cluster: fixed(3)}
  - {name: at, cluster: fixed(2)}
  - {name: seat, population: uniform(-1M..1M)}
insert: {batchtype: UNLOGGED}
queries:
  swap:
    cql: >
      update seats set price = ? where hall = ? and block = ? and at = ? and seat = ? if owner = ?
    fields: samerow
token_range_queries:
  all: {page_size: 100}
  owners: {columns: owner}
"#;

/// A ring of one, and lines of other tools at it.
struct Lines<'a> {
    home: &'a Home,
    cluster: Cluster<'a>,
    host: String,
}

#[test]
fn published_lines_run_on_cassandra() {
    let home = Home::new();
    let up = ["--listen", "127.76.9.1", "--heap", "1GiB"];
    let Some(cluster) = Cluster::up(&home, &up) else { return };
    let host = cluster.instances[0].address.ip().to_string();
    let lines = Lines { home: &home, cluster, host };
    lines.of_cassandra_stress();
    lines.of_profiles();
    lines.on_a_table_made_beforehand();
    lines.of_ycsb();
    if let Some(original) = Original::get() {
        lines.beside(&original);
    }
}

/// Fails unless it went to its end without an error.
fn assert_good(line: &str, ended: &Ended) {
    assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
    assert!(ended.stdout.trim_end().ends_with("END"), "{line}: {ended:?}");
    let errors = ended.stdout.lines().find(|line| line.starts_with("Total errors"));
    assert!(errors.unwrap().contains(":          0 "), "{line}: {ended:?}");
}

impl Lines<'_> {
    fn stress(&self, line: &str) -> Ended {
        let words: Vec<&str> = line.split(' ').collect();
        let line = [&["cassandra-stress"], &words[..], &["-node", &self.host]].concat();
        self.cluster.start(&line).wait(Duration::from_secs(180))
    }

    fn of_cassandra_stress(&self) {
        let schema =
            "-schema keyspace=ksx replication(strategy=NetworkTopologyStrategy, datacenter1=1)";
        let (mode, draws) = ("-mode native cql3", "-pop dist=gaussian(1..20000,10000,1000)");
        let lines = [
            "write no-warmup duration=5s cl=one -rate threads=1000 -schema replication(factor=3) \
             -pop seq=1..100000000 no-wrap -log interval=1"
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
        lines.iter().for_each(|line| assert_good(line, &self.stress(line)));
        // A row that was not written is found to be missing.
        let missing =
            self.stress("read no-warmup n=10 -rate threads=1 -pop seq=900000001..900000010");
        assert_eq!(missing.status, Some(1), "{missing:?}");
        assert!(missing.stderr.contains("Data returned was not validated"), "{missing:?}");
    }

    fn of_profiles(&self) {
        fs::write(self.home.at("diary.yaml"), PROFILE).unwrap();
        fs::write(self.home.at("hits.yaml"), COUNTERS).unwrap();
        fs::write(self.home.at("seats.yaml"), SEATS).unwrap();
        let seats = "user profile=seats.yaml no-warmup -rate threads=20";
        for (ops, rest) in [
            ("insert", "n=200 -pop seq=1..200 no-wrap"),
            ("validate", "n=2000 -pop seq=1..200"),
            (
                "insert",
                "n=900 -pop seq=1..200 no-wrap -insert visits=fixed(3) revisit=uniform(1..20)",
            ),
            ("validate", "n=2000 -pop seq=1..200 -mode native cql3 protocolVersion=5"),
            ("all", "n=1000 -tokenrange split-factor=3"),
            ("owners", "n=300 -tokenrange wrap"),
            ("swap", "n=500 -pop seq=1..200"),
        ] {
            let (ends, rest) = rest.split_once(' ').unwrap();
            let line = seats.replacen(" no-warmup", &format!(" ops({ops}=1) {ends} no-warmup"), 1);
            let line = match ops {
                "swap" => format!("--compat apache-5 {line} {rest}"),
                _ => format!("{line} {rest}"),
            };
            let ended = self.stress(&line);
            assert_good(&line, &ended);
            let found = match ops {
                "all" => "Total partitions          :        200 ",
                _ => "Total partitions",
            };
            assert!(ended.stdout.contains(found), "{line}: {ended:?}");
        }
        let missing = self.stress(
            "user profile=seats.yaml ops(validate=1) n=100 no-warmup -rate threads=2 -pop \
             seq=901..1000",
        );
        assert_eq!(missing.status, Some(1), "{missing:?}");
        assert!(missing.stderr.contains("Data returned was not validated"), "{missing:?}");
        for line in [
            "user profile=diary.yaml ops(insert=1) n=2000 no-warmup -rate threads=20",
            "user profile=diary.yaml,hits.yaml ops(insert=1,latest=2,since=1,close=1,hits.insert=1,\
             hits.page=1) n=4000 no-warmup -rate threads=20 -pop seq=1..2000",
            "user profile=diary.yaml ops(insert=1,latest=1) n=1000 no-warmup -rate threads=20 \
             -mode native cql3 protocolVersion=5 compression=lz4",
        ] {
            let ended = self.stress(line);
            assert_good(line, &ended);
            assert!(ended.stdout.contains("Created extra schema."), "{line}: {ended:?}");
            let rows = ended.stdout.lines().find(|line| line.starts_with("Row rate")).unwrap();
            assert!(!rows.contains("latest: 0 row/s"), "{line}: {ended:?}");
        }
    }

    /// The table of 003: what this Cassandra takes of it is there, what it refuses is listed.
    fn on_a_table_made_beforehand(&self) {
        let columns = "(key blob PRIMARY KEY, \"C0\" blob, \"C1\" blob, \"C2\" blob, \"C3\" blob, \
                       \"C4\" blob) WITH COMPACT STORAGE";
        let options = "AND bloom_filter_fp_chance = 0.01 AND caching = {'keys': 'ALL', \
                       'rows_per_partition': 'ALL'} AND crc_check_chance = 1.0";
        let ddl = format!(
            "-- as published\n\
             CREATE KEYSPACE ks3 WITH replication = {{'class': 'NetworkTopologyStrategy', \
             'datacenter1': '1'}};\n\
             CREATE TABLE ks3.standard1 {columns} {options} AND dclocal_read_repair_chance = 0.1;\n\
             CREATE TABLE ks3.standard1 {columns} {options};\n"
        );
        fs::write(self.home.at("003.cql"), ddl).unwrap();
        let line = "write n=1000 no-warmup -rate threads=10 -schema keyspace=ks3 -node";
        let words: Vec<&str> = line.split(' ').collect();
        let own = ["cassandra-stress", "--ddl", "003.cql"];
        let all = [&own, &words[..], &[&self.host]].concat();
        let ended = self.cluster.start(&all).wait(Duration::from_secs(120));
        assert_good(line, &ended);
        let refused: Vec<_> = ended.stderr.lines().filter(|l| l.starts_with("--ddl: ")).collect();
        assert_eq!(refused.len(), 1, "{ended:?}");
        assert!(refused[0].contains("dclocal_read_repair_chance"), "{ended:?}");
        let mut control = control(self.cluster.instances[0].address);
        let table = "FROM system_schema.tables WHERE keyspace_name = 'ks3' AND table_name = \
                     'standard1'";
        let mut cell = |column: &str| {
            let rows = control.query(&format!("SELECT {column} {table}")).unwrap();
            String::from_utf8_lossy(rows[0][0].as_deref().unwrap_or_default()).into_owned()
        };
        assert!(cell("caching").contains("rows_per_partition"), "{}", cell("caching"));
        assert_eq!(cell("caching").matches("ALL").count(), 2, "{}", cell("caching"));
        // Every other table is compound.
        assert!(!cell("flags").contains("compound"), "{}", cell("flags"));
        let read = "read n=1000 no-warmup -rate threads=10 -pop seq=1..1000 -schema keyspace=ks3";
        assert_good(read, &self.stress(read));
    }

    /// The core workloads in the order that YCSB gives them: those that insert come last.
    fn of_ycsb(&self) {
        let mixes: [(&str, &str, &[&str]); 6] = [
            ("a", "readproportion=0.5\nupdateproportion=0.5", &["READ", "UPDATE"]),
            ("b", "readproportion=0.95\nupdateproportion=0.05", &["READ", "UPDATE"]),
            ("c", "readproportion=1\nupdateproportion=0", &["READ"]),
            (
                "f",
                "readproportion=0.5\nupdateproportion=0\nreadmodifywriteproportion=0.5",
                &["READ", "UPDATE", "READ-MODIFY-WRITE"],
            ),
            (
                "d",
                "readproportion=0.95\nupdateproportion=0\ninsertproportion=0.05\n\
                 requestdistribution=latest",
                &["READ", "INSERT"],
            ),
            (
                "e",
                "readproportion=0\nupdateproportion=0\ninsertproportion=0.05\n\
                 scanproportion=0.95\nmaxscanlength=100",
                &["SCAN", "INSERT"],
            ),
        ];
        let common = "workload=site.ycsb.workloads.CoreWorkload\nrecordcount=1000\n\
                      operationcount=2000\nrequestdistribution=zipfian\n";
        for (name, mix, _) in &mixes {
            fs::write(self.home.at(name), format!("{common}{mix}\n")).unwrap();
        }
        let hosts = format!("hosts={}", self.host);
        let ycsb = |phase: &str, name: &str, more: &[&str]| {
            let line = ["ycsb", phase, "cassandra-cql", "-P", name, "-p", &hosts, "-threads", "16"];
            let ended = self.cluster.start(&[&line, more].concat()).wait(Duration::from_secs(120));
            assert_eq!(ended.status, Some(0), "{phase} {name}: {ended:?}");
            ended.stdout
        };
        let figure = |text: &str, head: &str| -> f64 {
            let value = text.lines().find_map(|line| line.strip_prefix(head));
            value.unwrap_or_else(|| panic!("{head}: {text}")).parse().unwrap()
        };
        let loaded = ycsb("load", "a", &["--create"]);
        assert_eq!(figure(&loaded, "[INSERT], Return=OK, "), 1000.0, "{loaded}");
        for (name, _, operations) in &mixes {
            let text = ycsb("run", name, &[]);
            let of = |operation: &&str| figure(&text, &format!("[{operation}], Operations, "));
            let ok = |operation: &&str| figure(&text, &format!("[{operation}], Return=OK, "));
            // The steps of a read-modify-write are counted by themselves, as in the original.
            let once: Vec<_> = match *name {
                "f" => vec!["READ"],
                _ => operations.to_vec(),
            };
            assert_eq!(once.iter().map(of).sum::<f64>(), 2000.0, "{name}: {text}");
            assert_eq!(once.iter().map(ok).sum::<f64>(), 2000.0, "{name}: {text}");
            assert!(operations.iter().all(|operation| of(operation) > 0.0), "{name}: {text}");
            assert!(!text.contains("-FAILED]"), "{name}: {text}");
        }
    }

    /// What the original writes validates here, and what is written here validates there.
    fn beside(&self, original: &Original) {
        let there = |line: &str| {
            original.run(self.home, &format!("{line} -mode native cql3 -node {}", self.host))
        };
        let all = "n=5000 no-warmup -rate threads=20 -pop seq=1..5000 -schema keyspace=theirs";
        assert_good("the original writes", &there(&format!("write {all}")));
        assert_good("read here", &self.stress(&format!("read {all}")));
        // The rows of 003, under their own names.
        let all = "n=5000 no-warmup -rate threads=20 -pop seq=1..5000 -col size=uniform(1..90) \
                   names=a,b -schema keyspace=ours";
        assert_good("write here", &self.stress(&format!("write {all}")));
        assert_good("the original reads", &there(&format!("read {all}")));
    }
}
