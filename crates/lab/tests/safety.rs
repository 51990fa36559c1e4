//! What a trial does to a target that runs already: creates what is missing, loads what is not
//! there, and leaves alone what is not its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drive::{Access, Amount, Arrivals, Control, Load, TableName, Wait};
use lab::{Finished, LabError, Live, LiveInterval, LoadChoice, TargetChoice, Trial};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use target::{Config, Handle, Server};
use units::{CpuId, Nanos};
use wire::cql::{Consistency, Protocol};
use workload::ycsb::{self, Properties};

const RECORDS: u64 = 2000;

/// A target and what has been done to it.
struct Rig {
    target: Handle,
    directory: tempfile::TempDir,
    runs: u32,
}

/// Notes what people are told, and may stop the run.
#[derive(Default)]
struct Notes {
    notices: Vec<String>,
    loaded: u64,
    stop: Arc<AtomicBool>,
}

impl Live for Notes {
    fn stage(&mut self, _: &str) {}
    fn notice(&mut self, what: &str) {
        self.notices.push(what.to_owned());
    }
    fn loading(&mut self, done: u64, _: u64) {
        self.loaded = done;
    }
    fn running(&mut self, _: Nanos, _: &drive::Window) {}
    fn interval(&mut self, _: &LiveInterval<'_>) {}
}

impl Rig {
    fn new() -> Self {
        let config = Config::new("127.0.0.1:0".parse().unwrap());
        let target = Server::bind(config).unwrap().start().unwrap();
        Self { target, directory: tempfile::tempdir().unwrap(), runs: 0 }
    }

    fn address(&self) -> SocketAddr {
        self.target.local_addr()
    }

    fn query(&self, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        let mut control = Control::connect(self.address(), Nanos::from_secs(5)).unwrap();
        control.query(text).unwrap()
    }

    fn rows(&self) -> usize {
        self.query("SELECT y_id FROM ycsb.usertable").len()
    }

    /// When each row was written, in microseconds, by key: what is loaded again is newer.
    fn written(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let rows = self.query("SELECT y_id, writetime(field0) FROM ycsb.usertable");
        rows.into_iter()
            .map(|row| {
                let [key, at] = row.try_into().unwrap();
                (key.unwrap(), at.unwrap())
            })
            .collect()
    }

    /// A short run of reads.
    fn trial(&self, workload: &str, properties: &[&str], records: u64) -> Trial {
        let files: [&str; 0] = [];
        let properties = Properties::load(&files, properties).unwrap();
        let plan = ycsb::plan(workload, &properties, Some(records), None).unwrap().plan;
        let arrivals = Arrivals::Closed { threads: 4, throttle: None };
        Trial {
            plan: Arc::new(plan),
            table: TableName { keyspace: "ycsb".into(), table: "usertable".into() },
            replication: "1".into(),
            target: TargetChoice::Running { hosts: vec![self.address().to_string()] },
            access: Access::default(),
            fixed_hosts: false,
            datacenter: None,
            write_into_existing: false,
            places: Vec::new(),
            client_cpus: std::iter::once(CpuId(0)).collect(),
            load: Load { arrivals, amount: Amount::Ops(200), warm: Nanos::ZERO, limit: None },
            warm_until_steady: false,
            settle: Nanos::ZERO,
            repeat: 1,
            connections_by_shard: false,
            connections: 2,
            wait: Wait::Sleep,
            engine: drive::Engine::Epoll,
            consistency: Consistency::LocalOne.into(),
            protocol: Protocol::default(),
            records: None,
            timeout: Nanos::from_secs(5),
            retries: 0,
            load_retries: 0,
            load_retry_pause: Nanos::ZERO,
            retry_pause: drive::RetryPause::NONE,
            give_up: Nanos::from_secs(10),
            scripted: None,
            seed: 1,
            interval: Nanos::from_secs(1),
            load_choice: LoadChoice::Undecided,
            out: None,
            name: "test".into(),
            command_line: Vec::new(),
            settings: serde_json::Map::new(),
            host: serde_json::Value::Null,
            kept: None,
            forewarned: Vec::new(),
            foreign: None,
        }
    }

    fn run(&mut self, trial: Trial, notes: &mut Notes) -> Result<Finished, LabError> {
        self.runs += 1;
        let out = Some(self.directory.path().join(self.runs.to_string()));
        let stop = notes.stop.clone();
        lab::run(&Trial { out, ..trial }, notes, &stop)
    }

    /// Interrupts the load of a fresh table as soon as it has a row. Progress is told five times a
    /// second, in which a fast machine loads all there is: so somebody looks at the table itself.
    fn interrupted_load(&mut self, trial: Trial) {
        let mut notes = Notes::default();
        let (stop, address) = (notes.stop.clone(), self.address());
        let TableName { keyspace, table } = &trial.table;
        let first_row = format!("SELECT y_id FROM {keyspace}.{table} LIMIT 1");
        let over = AtomicBool::new(false);
        let error = std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut control = Control::connect(address, Nanos::from_secs(5)).unwrap();
                while !over.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                    let begun = control.query(&first_row).is_ok_and(|rows| !rows.is_empty());
                    stop.store(begun, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let ended = self.run(trial, &mut notes);
            over.store(true, Ordering::Relaxed);
            ended.unwrap_err()
        });
        assert!(matches!(error, LabError::Interrupted), "{error}");
    }

    /// How it went, and what people were told.
    fn simply(&mut self, trial: Trial) -> (Result<Finished, LabError>, Vec<String>) {
        let mut notes = Notes::default();
        (self.run(trial, &mut notes), notes.notices)
    }
}

fn reads(rig: &Rig) -> Trial {
    rig.trial("c", &["dataintegrity=true"], RECORDS)
}

fn codes(finished: &Finished) -> Vec<&str> {
    finished.summary.caveats.iter().map(|caveat| caveat.code.as_str()).collect()
}

/// The error of a run that was refused for usage.
fn refused(result: Result<Finished, LabError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.exit_status(), 2, "{error}");
    error.to_string()
}

#[test]
fn a_fresh_table_is_created_and_loaded_once() {
    let mut rig = Rig::new();
    let (first, notices) = rig.simply(reads(&rig));
    let first = first.unwrap();
    assert!(notices[0].contains("loading 2000 rows") && notices[0].contains("MiB"), "{notices:?}");
    assert_eq!((first.summary.ops, first.summary.errors, rig.rows()), (200, 0, 2000));
    let marker = "SELECT records, finished, missing FROM ycsb.wideload_marker WHERE table_name = \
                  'usertable'";
    let row = rig.query(marker).remove(0);
    assert_eq!(row[0].as_deref(), Some(&2000u64.to_be_bytes()[..]));
    assert_eq!((row[1].as_deref(), row[2].as_deref()), (Some(&[1u8][..]), Some(&b""[..])));

    // Again, and with another seed: nothing is loaded.
    let before = rig.written();
    for (load_choice, seed) in
        [(LoadChoice::Undecided, 1), (LoadChoice::Undecided, 2), (LoadChoice::Skip, 1)]
    {
        let (again, notices) = rig.simply(Trial { load_choice, seed, ..reads(&rig) });
        let again = again.unwrap();
        assert_eq!((again.summary.errors, notices.len()), (0, 0), "{notices:?}");
        assert!(!codes(&again).contains(&"no-marker"));
        assert_eq!(rig.written(), before, "{load_choice:?}");
    }
    // A table that is ours is written to by a mix that writes.
    let writes = rig.simply(rig.trial("a", &["dataintegrity=true"], RECORDS));
    assert_eq!((writes.0.unwrap().summary.errors, writes.1.len()), (0, 0));
    rig.simply(Trial { load_choice: LoadChoice::Load, ..reads(&rig) }).0.unwrap();
    let after = rig.written();
    assert!(before.iter().all(|(key, at)| after[key] > *at), "--load loads every row");
}

#[test]
fn rows_of_another_shape_are_refused_and_both_are_named() {
    let mut rig = Rig::new();
    rig.simply(reads(&rig)).0.unwrap();
    let before = rig.written();
    for load_choice in [LoadChoice::Undecided, LoadChoice::Load, LoadChoice::Skip] {
        let other = rig.trial("c", &["dataintegrity=true", "fieldlength=50"], 3000);
        let text = refused(rig.simply(Trial { load_choice, ..other }).0);
        for word in ["2000 keys", "3000 keys", "of 100 bytes", "of 50 bytes", "--table"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    assert_eq!(rig.written(), before);
}

#[test]
fn finished_and_yet_gone_is_told() {
    let mut rig = Rig::new();
    rig.simply(reads(&rig)).0.unwrap();
    rig.query("TRUNCATE ycsb.usertable");
    let text = refused(rig.simply(reads(&rig)).0);
    assert!(text.contains("1000 of 1000") && text.contains("--load"), "{text}");
}

#[test]
fn a_load_that_was_interrupted_is_resumed_where_it_ended() {
    let mut rig = Rig::new();
    let records = 300_000;
    let plan = ["fieldcount=1", "dataintegrity=true"];
    rig.interrupted_load(rig.trial("c", &plan, records));
    let first = rig.written();
    assert!((1..records as usize).contains(&first.len()), "{} rows", first.len());
    let marker = "SELECT finished FROM ycsb.wideload_marker WHERE table_name = 'usertable'";
    assert_eq!(rig.query(marker)[0][0].as_deref(), Some(&[0u8][..]));

    let skip = Trial { load_choice: LoadChoice::Skip, ..rig.trial("c", &plan, records) };
    let finished = rig.simply(skip).0.unwrap();
    assert!(codes(&finished).contains(&"partial-load"));

    // With another seed and other workers: the rows are still those of the first load.
    let cpus = [0, 0].map(CpuId).into_iter().collect();
    let trial = Trial { seed: 2, client_cpus: cpus, ..rig.trial("c", &plan, records) };
    let (finished, notices) = rig.simply(trial);
    assert_eq!(finished.unwrap().summary.errors, 0);
    assert!(notices[0].contains("did not end") && notices[0].contains("resumed"), "{notices:?}");
    let all = rig.written();
    assert_eq!(all.len() as u64, records);
    // What was in flight when it was stopped, 64 at most, may lie behind a gap.
    let twice = first.iter().filter(|(key, at)| all[*key] != **at).count();
    assert!(twice <= 64, "{twice} rows were written twice");
    assert_eq!(rig.query(marker)[0][0].as_deref(), Some(&[1u8][..]));
}

/// A table without marker, with the columns of the workload and so many of its keys.
fn foreign_table(rig: &mut Rig, keys: u64) {
    rig.simply(Trial { plan: rig.trial("c", &["dataintegrity=true"], keys).plan, ..reads(rig) })
        .0
        .unwrap();
    rig.query("DROP TABLE ycsb.wideload_marker");
    rig.query("INSERT INTO ycsb.usertable (y_id, field0) VALUES ('precious', 'data')");
}

fn all_rows(rig: &Rig) -> Vec<Vec<Option<Vec<u8>>>> {
    let mut rows = rig.query("SELECT * FROM ycsb.usertable");
    rows.sort();
    rows
}

#[test]
fn somebody_elses_table_is_not_touched() {
    let mut rig = Rig::new();
    foreign_table(&mut rig, 100);
    let before = all_rows(&rig);
    let writes = rig.trial("a", &["dataintegrity=true"], RECORDS);
    for load_choice in [LoadChoice::Undecided, LoadChoice::Load, LoadChoice::Skip] {
        let text = refused(rig.simply(Trial { load_choice, ..writes.clone() }).0);
        assert!(text.contains("--write-into-existing"), "{text}");
    }
    let text = refused(rig.simply(Trial { load_choice: LoadChoice::Load, ..reads(&rig) }).0);
    assert!(text.contains("--write-into-existing"), "{text}");
    // Reads alone, but their rows are not there.
    let text = refused(rig.simply(reads(&rig)).0);
    assert!(text.contains("keys looked for"), "{text}");
    let skip = Trial { load_choice: LoadChoice::Skip, ..reads(&rig) };
    assert!(codes(&rig.simply(skip).0.unwrap()).contains(&"no-marker"));
    assert_eq!(all_rows(&rig), before);
    let markers = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ycsb' AND \
                   table_name = 'wideload_marker'";
    assert_eq!(rig.query(markers).len(), 0, "and it is not claimed");

    // With leave, it is loaded into; what was there stays, and the table stays theirs.
    let allowed = Trial { write_into_existing: true, ..writes };
    let finished = rig.simply(allowed).0.unwrap();
    assert!(codes(&finished).contains(&"no-marker"));
    assert_eq!((finished.summary.errors, rig.rows() as u64), (0, RECORDS + 1));
    let precious = rig.query("SELECT field0 FROM ycsb.usertable WHERE y_id = 'precious'");
    assert_eq!(precious[0][0].as_deref(), Some(&b"data"[..]));
    assert_eq!(rig.query(markers).len(), 0);
}

#[test]
fn rows_that_are_there_without_a_marker_are_read_with_a_caveat() {
    let mut rig = Rig::new();
    foreign_table(&mut rig, RECORDS);
    let before = all_rows(&rig);
    let (finished, notices) = rig.simply(reads(&rig));
    let finished = finished.unwrap();
    assert_eq!((finished.summary.errors, notices.len()), (0, 0));
    assert!(codes(&finished).contains(&"no-marker"));
    assert_eq!(all_rows(&rig), before);
}

#[test]
fn a_table_of_other_columns_is_refused() {
    let columns: Vec<_> = (0..10).map(|i| format!("field{i} text")).collect();
    let (all, most) = (columns.join(", "), columns[..9].join(", "));
    for (create, named) in [
        (format!("y_id text PRIMARY KEY, {most}"), "no column field9"),
        (format!("y_id text PRIMARY KEY, {most}, field9 int"), "field9 is of type int"),
        (format!("y_id int PRIMARY KEY, {all}"), "y_id is of type int"),
        (format!("y_id text, c int, {all}, PRIMARY KEY (y_id, c)"), "c is part of its key"),
        (format!("id text PRIMARY KEY, y_id text, {all}"), "id is part of its key"),
    ] {
        let mut rig = Rig::new();
        rig.query(
            "CREATE KEYSPACE ycsb WITH replication = {'class': 'SimpleStrategy', \
             'replication_factor': 1}",
        );
        rig.query(&format!("CREATE TABLE ycsb.usertable ({create})"));
        let trial = Trial { write_into_existing: true, ..reads(&rig) };
        let text = refused(rig.simply(trial).0);
        assert!(text.contains(named) && text.contains("CREATE TABLE"), "{named}: {text}");
    }
}

#[test]
fn replication_beyond_the_ring_is_refused_before_anything_is_created() {
    let mut rig = Rig::new();
    let trial = Trial { replication: "3".into(), ..reads(&rig) };
    let text = refused(rig.simply(trial).0);
    assert!(text.contains("3 replicas") && text.contains("--replication"), "{text}");
    let keyspaces =
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'ycsb'";
    assert_eq!(rig.query(keyspaces).len(), 0);
}

#[test]
fn a_marker_that_is_nonsense_is_refused() {
    let mut rig = Rig::new();
    rig.simply(reads(&rig)).0.unwrap();
    for missing in ["'7'", "'5..1'", "'0..9'", "null"] {
        rig.query(&format!(
            "UPDATE ycsb.wideload_marker SET missing = {missing} WHERE table_name = 'usertable'"
        ));
        let text = refused(rig.simply(reads(&rig)).0);
        assert!(text.contains("ycsb.wideload_marker"), "{text}");
    }
}

#[test]
fn neither_markers_of_others_nor_keyspaces_of_the_database_are_touched() {
    let mut rig = Rig::new();
    rig.query(
        "CREATE KEYSPACE ycsb WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}",
    );
    rig.query("CREATE TABLE ycsb.wideload_marker (table_name text PRIMARY KEY, v text)");
    let text = refused(rig.simply(reads(&rig)).0);
    assert!(text.contains("ycsb.wideload_marker") && text.contains("--keyspace"), "{text}");
    let tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ycsb'";
    assert_eq!(rig.query(tables).len(), 1);
    for keyspace in ["system", "system_schema", "system_auth"] {
        let table = TableName { keyspace: keyspace.into(), table: "usertable".into() };
        let trial = Trial { table, write_into_existing: true, ..reads(&rig) };
        let text = refused(rig.simply(trial).0);
        assert!(text.contains("the database's own"), "{text}");
    }
}

/// Everything that a target holds of others: each keyspace, table and column as the schema has it,
/// and every row of every table, byte by byte. What carries our marker is left out.
fn everything_of_others(rig: &Rig) -> BTreeMap<String, Vec<Vec<Option<Vec<u8>>>>> {
    let text = |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone().unwrap()).unwrap();
    let ours = |keyspace: &str, table: &str| {
        keyspace == "ycsb" && (table == "marked" || table == "wideload_marker")
    };
    let mut all = BTreeMap::new();
    let keyspaces = rig.query("SELECT * FROM system_schema.keyspaces");
    all.insert("keyspaces".to_owned(), keyspaces);
    for (of, columns) in [("tables", "keyspace_name, table_name"), ("columns", "*")] {
        let query = format!("SELECT {columns} FROM system_schema.{of}");
        let mut rows = rig.query(&query);
        rows.retain(|row| !ours(&text(&row[0]), &text(&row[1])));
        rows.sort();
        all.insert(of.to_owned(), rows);
    }
    for table in rig.query("SELECT keyspace_name, table_name FROM system_schema.tables") {
        let (keyspace, table) = (text(&table[0]), text(&table[1]));
        if !keyspace.starts_with("system") && !ours(&keyspace, &table) {
            let name = format!("{keyspace}.{table}");
            let mut rows = rig.query(&format!("SELECT * FROM {name}"));
            rows.sort();
            all.insert(name, rows);
        }
    }
    all
}

/// Tables of others: with the workload's columns and some of its keys, of other shapes, and in a
/// keyspace of their own.
fn tables_of_others(rig: &mut Rig) {
    foreign_table(rig, 100);
    rig.query(
        "CREATE KEYSPACE theirs WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}",
    );
    let fields: Vec<_> = (0..10).map(|i| format!("field{i} text")).collect();
    let fields = fields.join(", ");
    for create in [
        "ycsb.fewer (y_id text PRIMARY KEY, field0 text)".to_owned(),
        format!("ycsb.clustered (y_id text, c int, {fields}, PRIMARY KEY (y_id, c))"),
        "theirs.usertable (id int PRIMARY KEY, v text)".to_owned(),
        format!("theirs.fits (y_id text PRIMARY KEY, {fields})"),
    ] {
        rig.query(&format!("CREATE TABLE {create}"));
    }
    for insert in [
        "ycsb.fewer (y_id, field0) VALUES ('user1', 'precious')",
        "ycsb.clustered (y_id, c, field0) VALUES ('user1', 7, 'precious')",
        "theirs.usertable (id, v) VALUES (1, 'precious')",
        "theirs.fits (y_id, field0) VALUES ('user1', 'precious')",
    ] {
        rig.query(&format!("INSERT INTO {insert}"));
    }
}

#[test]
fn whatever_is_run_nothing_of_others_changes() {
    let mut rig = Rig::new();
    tables_of_others(&mut rig);
    let before = everything_of_others(&rig);
    assert!(before["ycsb.usertable"].len() == 101 && before["theirs.fits"].len() == 1);
    let integrity = ["dataintegrity=true"];
    let at =
        |keyspace: &str, table: &str| TableName { keyspace: keyspace.into(), table: table.into() };
    let tables = [
        ("ycsb", "usertable"),
        ("ycsb", "fewer"),
        ("ycsb", "clustered"),
        ("theirs", "usertable"),
        ("theirs", "fits"),
    ];
    for (keyspace, table) in tables {
        for load_choice in [LoadChoice::Undecided, LoadChoice::Load, LoadChoice::Skip] {
            for workload in ["a", "d", "f"] {
                let trial = Trial {
                    table: at(keyspace, table),
                    load_choice,
                    replication: "{'class': 'SimpleStrategy', 'replication_factor': 1}".into(),
                    ..rig.trial(workload, &integrity, RECORDS)
                };
                refused(rig.simply(trial).0);
                let now = everything_of_others(&rig);
                assert_eq!(now, before, "{workload} {load_choice:?} at {keyspace}.{table}");
            }
        }
    }
    // Beside them, a table of our own: loaded in two goes, loaded again, read and written.
    let plan = ["fieldcount=1", "dataintegrity=true"];
    let own = |rig: &Rig, workload: &str| Trial {
        table: at("ycsb", "marked"),
        ..rig.trial(workload, &plan, 300_000)
    };
    rig.interrupted_load(own(&rig, "a"));
    assert_eq!(everything_of_others(&rig), before);
    for (workload, load_choice) in [
        ("a", LoadChoice::Undecided),
        ("a", LoadChoice::Load),
        ("f", LoadChoice::Skip),
        ("d", LoadChoice::Undecided),
    ] {
        let finished = rig.simply(Trial { load_choice, ..own(&rig, workload) }).0.unwrap();
        assert_eq!(finished.summary.errors, 0, "{workload}");
        assert_eq!(everything_of_others(&rig), before, "{workload} {load_choice:?}");
    }
    assert!(rig.query("SELECT y_id FROM ycsb.marked").len() >= 300_000);
    let marked = "SELECT table_name FROM ycsb.wideload_marker";
    assert_eq!(rig.query(marked), [[Some(b"marked".to_vec())]], "and nothing else is claimed");
}
