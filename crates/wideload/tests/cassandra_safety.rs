//! A real Cassandra that belongs to somebody, with a password: whatever is run at it, what is not
//! wideload's stays as it is, byte by byte, and the password is seen by nobody.
//!
//! Needs what `tests/cassandra.rs` needs, else it is skipped with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::Control;
use rig::cassandra::Cluster;
use rig::secret::{assert_in_no_file, has};
use rig::{Ended, Home, eventually};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use units::{Credentials, Nanos, Secret};

const SECRET: &str = "battery-staple-4417";
const REPLICATION: &str = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
const USAGE: Option<i32> = Some(2);

type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// A cluster of somebody's, and who we are there.
struct Theirs<'a> {
    home: &'a Home,
    cluster: Cluster<'a>,
    superuser: Control,
}

impl<'a> Theirs<'a> {
    fn up(home: &'a Home) -> Option<Self> {
        let up = ["--listen", "127.77.1.1", "--heap", "1GiB", "--jvm"];
        let delay = "-Dcassandra.superuser_setup_delay_ms=0";
        let door = ["--set", "cassandra.authenticator=PasswordAuthenticator"];
        let cluster = Cluster::up(home, &[&up[..], &[delay], &door].concat())?;
        let address = cluster.instances[0].address;
        let mut superuser = None;
        eventually(Duration::from_secs(60), || {
            superuser = connect(address, "cassandra", "cassandra");
            superuser.is_some()
        });
        let superuser = superuser.expect("the superuser of a new cluster comes in");
        Some(Self { home, cluster, superuser })
    }

    fn query(&mut self, text: &str) -> Rows {
        self.superuser.query(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// Somebody's data: with the workload's columns and some of its keys, of other shapes, in a
    /// keyspace of their own, and in one whose name is like those of the system.
    fn fill(&mut self) {
        let fields: Vec<_> = (0..10).map(|i| format!("field{i} text")).collect();
        let fits = format!("y_id text PRIMARY KEY, {}", fields.join(", "));
        for keyspace in ["shared", "theirs", "system_data"] {
            self.query(&format!("CREATE KEYSPACE {keyspace} WITH replication = {REPLICATION}"));
        }
        for (table, columns) in [
            ("shared.usertable", fits.as_str()),
            ("shared.fewer", "y_id text PRIMARY KEY, field0 text"),
            ("shared.nonsense", &fits),
            ("theirs.usertable", &fits),
            ("theirs.wideload_marker", "id int PRIMARY KEY, v text"),
            ("system_data.usertable", &fits),
        ] {
            self.query(&format!("CREATE TABLE {table} ({columns})"));
        }
        for insert in [
            "shared.usertable (y_id, field0) VALUES ('user6284781860667377211', 'precious')",
            "shared.usertable (y_id, field0) VALUES ('user1', 'precious')",
            "shared.fewer (y_id, field0) VALUES ('user1', 'precious')",
            "shared.nonsense (y_id, field0) VALUES ('user1', 'precious')",
            "theirs.usertable (y_id, field0) VALUES ('user1', 'precious')",
            "theirs.wideload_marker (id, v) VALUES (1, 'precious')",
            "system_data.usertable (y_id, field0) VALUES ('user1', 'precious')",
        ] {
            self.query(&format!("INSERT INTO {insert}"));
        }
        self.query("CREATE INDEX by_field0 ON shared.usertable (field0)");
        self.query(&format!("CREATE ROLE ann WITH PASSWORD = '{SECRET}' AND LOGIN = true"));
        for keyspace in ["shared", "theirs", "system_data"] {
            let grant = format!("GRANT ALL PERMISSIONS ON KEYSPACE {keyspace} TO ann");
            // Without an authorizer everybody may do everything, and this says so.
            let _ = self.superuser.query(&grant);
        }
    }

    /// All schema and all rows, with the times at which they were written, that are not ours.
    fn everything_of_others(&mut self) -> BTreeMap<String, Rows> {
        let text = |cell: &Option<Vec<u8>>| {
            String::from_utf8(cell.clone().unwrap_or_default()).unwrap_or_default()
        };
        let ours = |keyspace: &str, table: &str| {
            keyspace == "shared" && ["marked", "other_plan", "wideload_marker"].contains(&table)
        };
        let mut all = BTreeMap::new();
        for of in ["keyspaces", "types", "views", "functions", "aggregates", "triggers", "indexes"]
        {
            let rows = self.query(&format!("SELECT * FROM system_schema.{of}"));
            all.insert(of.to_owned(), rows);
        }
        for of in ["tables", "columns", "dropped_columns"] {
            let mut rows = self.query(&format!("SELECT * FROM system_schema.{of}"));
            rows.retain(|row| !ours(&text(&row[0]), &text(&row[1])));
            all.insert(of.to_owned(), rows);
        }
        let roles = self.query("SELECT * FROM system_auth.roles");
        all.insert("roles".to_owned(), roles);
        for table in self.query("SELECT keyspace_name, table_name FROM system_schema.tables") {
            let (keyspace, table) = (text(&table[0]), text(&table[1]));
            let known = ["shared", "theirs", "system_data"].contains(&keyspace.as_str());
            if known && !ours(&keyspace, &table) {
                let name = format!("{keyspace}.{table}");
                let rows = self.query(&format!("SELECT * FROM {name}"));
                let written = match table.as_str() {
                    "wideload_marker" => "v",
                    _ => "field0",
                };
                let times = self.query(&format!("SELECT WRITETIME({written}) FROM {name}"));
                all.insert(format!("{name} times"), times);
                all.insert(name, rows);
            }
        }
        all
    }

    /// A short run as ann.
    fn run(&self, words: &[&str]) -> Ended {
        let short = ["--records", "1k", "--ops", "1k", "--warm", "0s", "--threads", "8"];
        let file = self.home.at("password");
        let who = ["--user", "ann", "--password-file", file.to_str().unwrap()];
        self.cluster.run(&[&["ycsb:a"], &short[..], &who, words].concat())
    }

    fn refused(&self, words: &[&str], said: &[&str]) {
        let ended = self.run(words);
        assert_eq!(ended.status, USAGE, "{words:?}: {ended:?}");
        for part in said {
            let stderr = &ended.stderr;
            assert!(stderr.contains(part), "{words:?} does not say '{part}': {stderr}");
        }
        assert!(!has(format!("{ended:?}").as_bytes(), SECRET), "{ended:?}");
    }
}

fn connect(address: SocketAddr, user: &str, password: &str) -> Option<Control> {
    let who = Credentials { user: user.to_owned(), password: Secret::new(password) };
    Control::connect_as(address, Nanos::from_secs(5), &who.into()).ok()
}

#[test]
fn what_others_have_stays_as_it_is_and_the_password_is_seen_by_nobody() {
    let home = Home::new();
    let Some(mut theirs) = Theirs::up(&home) else { return };
    let file = home.at("password");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    theirs.fill();
    let before = theirs.everything_of_others();
    assert_eq!(before["shared.usertable"].len(), 2);

    strangers_stay_outside(&theirs);
    tables_of_others_are_refused(&mut theirs, &before);
    own_tables_lie_beside_them(&mut theirs, &before);
    let consent = ["--keyspace", "shared", "--write-into-existing", "--load"];
    let ended = theirs.run(&consent);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let mut now = theirs.everything_of_others();
    for table in ["shared.usertable", "shared.usertable times"] {
        assert_ne!(now[table], before[table], "it was allowed to");
        now.insert(table.to_owned(), before[table].clone());
    }
    assert!(now == before, "{}", difference(&now, &before));

    fs::remove_file(&file).unwrap();
    assert!(assert_in_no_file(home.path(), SECRET) > 20);
}

fn difference(now: &BTreeMap<String, Rows>, before: &BTreeMap<String, Rows>) -> String {
    let changed = before.iter().filter(|(name, rows)| now.get(*name) != Some(rows));
    let changed: Vec<_> = changed.map(|(name, _)| name.as_str()).collect();
    format!("changed: {changed:?} of {:?}", now.keys().collect::<Vec<_>>())
}

fn strangers_stay_outside(theirs: &Theirs<'_>) {
    let short = ["ycsb:a", "--records", "1k", "--ops", "1k"];
    let ended = theirs.cluster.run(&short);
    assert_eq!(ended.status, USAGE, "{ended:?}");
    assert!(ended.stderr.contains("wants authentication"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--password-file"), "{}", ended.stderr);
    let wrong = theirs.home.at("wrong");
    fs::write(&wrong, "battery-staple-wrong").unwrap();
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).unwrap();
    let who = ["--user", "ann", "--password-file", wrong.to_str().unwrap()];
    let ended = theirs.cluster.run(&[&short[..], &who].concat());
    assert_eq!(ended.status, USAGE, "{ended:?}");
    assert!(ended.stderr.contains("refused user 'ann'"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("battery-staple"), "{}", ended.stderr);
}

fn tables_of_others_are_refused(theirs: &mut Theirs<'_>, before: &BTreeMap<String, Rows>) {
    // A table of ours with other rows, and a marker that nobody can read.
    let other = ["--keyspace", "shared", "--table", "other_plan", "-p", "fieldcount=1"];
    let ended = theirs.run(&other);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    theirs.query(
        "INSERT INTO shared.wideload_marker (table_name, missing) VALUES ('nonsense', '7..3')",
    );
    let plan = theirs.query("SELECT * FROM shared.other_plan");
    let foreign = ["without a marker", "--write-into-existing"];
    for (keyspace, table, said) in [
        ("shared", "usertable", &foreign[..]),
        ("shared", "fewer", &["is not as this workload needs it", "CREATE TABLE"]),
        ("shared", "other_plan", &["is not as this workload needs it", "--table"]),
        ("shared", "nonsense", &["marker", "DELETE FROM shared.wideload_marker"]),
        ("theirs", "usertable", &["theirs.wideload_marker", "another --keyspace"]),
        ("theirs", "absent", &["theirs.wideload_marker", "another --keyspace"]),
        ("system_data", "usertable", &foreign),
        ("system_auth", "roles", &["the database's own", "another --keyspace"]),
        ("system_distributed", "absent", &["the database's own", "another --keyspace"]),
    ] {
        // With --write-into-existing rows of a table that fits may be written to.
        let flags: [&[&str]; 2] = match said == foreign {
            true => [&[], &["--load"]],
            false => [&["--skip-load"], &["--load", "--write-into-existing"]],
        };
        for flags in flags {
            let at = ["--keyspace", keyspace, "--table", table];
            theirs.refused(&[&at[..], flags].concat(), said);
        }
        let now = theirs.everything_of_others();
        assert!(now == *before, "{keyspace}.{table} {}", difference(&now, before));
    }
    // The same columns and other rows.
    let fewer = [&other[..], &["-p", "fieldlength=50"]].concat();
    theirs.refused(&fewer[..], &["holds other rows than this workload's", "drop it yourself"]);
    assert!(theirs.query("SELECT * FROM shared.other_plan") == plan, "ours is kept as well");
    // What is not there is not made where it cannot be.
    let nowhere = ["--keyspace", "nowhere"];
    theirs.refused(&[&nowhere[..], &["--skip-load"]].concat(), &["does not exist", "--skip-load"]);
    theirs.refused(&[&nowhere[..], &["--replication", "3"]].concat(), &["3 replicas", "at most 1"]);
    let now = theirs.everything_of_others();
    assert!(now == *before, "{}", difference(&now, before));
}

/// Loaded, read and written while everything that `ps` could show is looked at.
fn own_tables_lie_beside_them(theirs: &mut Theirs<'_>, before: &BTreeMap<String, Rows>) {
    let own = ["--keyspace", "shared", "--table", "marked"];
    for flags in [&[][..], &["--load"], &["--skip-load"], &["--write-into-existing"]] {
        let over = std::sync::atomic::AtomicBool::new(false);
        let (ended, looks) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| looks_until(theirs.home, &over));
            let ended = theirs.run(&[&own[..], flags].concat());
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            (ended, watch.join().unwrap())
        });
        assert_eq!((ended.status, ended.summary().errors), (Some(0), 0), "{ended:?}");
        assert!(looks > 3 && !has(format!("{ended:?}").as_bytes(), SECRET), "{ended:?}");
    }
    let now = theirs.everything_of_others();
    assert!(now == *before, "{}", difference(&now, before));
    let marked = theirs.query("SELECT table_name FROM shared.wideload_marker");
    assert_eq!(marked.len(), 3, "those of our two tables, and the nonsense");
}

/// How often it was looked at the command lines and environments of all that was started.
fn looks_until(home: &Home, over: &std::sync::atomic::AtomicBool) -> usize {
    let mut looks = 0;
    while !over.load(std::sync::atomic::Ordering::Relaxed) {
        for id in home.left() {
            for file in ["cmdline", "environ"] {
                let shown = fs::read(format!("/proc/{}/{file}", id.pid)).unwrap_or_default();
                assert!(!has(&shown, SECRET), "the {file} of {id:?} has the secret");
            }
        }
        looks += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    looks
}
