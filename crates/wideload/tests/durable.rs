//! The reference target on disk is killed in the midst of writes, again and again: what it has
//! acknowledged is there when it is started again, within seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::Control;
use rig::serve::{announced, control, two_cpus};
use rig::{Home, Process, Serve, eventually};
use stage::Signal;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const WRITERS: i64 = 4;
const KILLS: usize = 20;
/// A start reads at most 128 MiB of log for each shard.
const START_MAX: Duration = Duration::from_secs(20);

const SCHEMA: [&str; 3] = [
    "CREATE KEYSPACE kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE kept.rows (k bigint PRIMARY KEY, v blob)",
    "CREATE TABLE kept.hot (k bigint PRIMARY KEY, v bigint)",
];

/// What one writer knows to be kept.
#[derive(Debug, Default, Clone)]
struct Acknowledged {
    /// Rows 0 to this one (excluded) are inserted.
    inserts: i64,
    /// The last value of the row that is always written again.
    update: i64,
    /// Rows 0 to this one (excluded) are deleted.
    deletes: i64,
}

fn key(writer: i64, row: i64) -> i64 {
    writer << 40 | row
}

/// Writes until the target is gone; returns what was acknowledged.
fn write(address: SocketAddr, writer: i64, mut known: Acknowledged) -> Acknowledged {
    let mut control = control(address);
    let padding = "ab".repeat(100);
    loop {
        let (row, next) = (key(writer, known.inserts), known.update + 1);
        let insert = format!("INSERT INTO kept.rows (k, v) VALUES ({row}, 0x{padding})");
        if control.query(&insert).is_err() {
            return known;
        }
        known.inserts += 1;
        let update = format!("UPDATE kept.hot SET v = {next} WHERE k = {writer}");
        if control.query(&update).is_err() {
            return known;
        }
        known.update = next;
        if known.inserts % 10 == 0 {
            let row = key(writer, known.deletes);
            if control.query(&format!("DELETE FROM kept.rows WHERE k = {row}")).is_err() {
                return known;
            }
            known.deletes += 1;
        }
    }
}

fn numbers(control: &mut Control, query: &str) -> Vec<i64> {
    let rows = control.query(query).unwrap();
    let cells = rows.into_iter().flatten().flatten();
    cells.map(|cell| i64::from_be_bytes(cell[..].try_into().unwrap())).collect()
}

/// Everything that was acknowledged is there; what was not may be.
fn assert_kept(control: &mut Control, known: &[Acknowledged], kill: usize) {
    let found: BTreeSet<_> = numbers(control, "SELECT k FROM kept.rows").into_iter().collect();
    for (writer, known) in (0..).zip(known) {
        let missing =
            (known.deletes + 1..known.inserts).find(|row| !found.contains(&key(writer, *row)));
        assert_eq!(missing, None, "kill {kill}: writer {writer} of {known:?}");
        let back = (0..known.deletes).find(|row| found.contains(&key(writer, *row)));
        assert_eq!(back, None, "kill {kill}: deleted rows are back: writer {writer} of {known:?}");
        let hot = format!("SELECT v FROM kept.hot WHERE k = {writer}");
        let value = numbers(control, &hot).first().copied().unwrap_or(0);
        let fresh = (known.update..=known.update + 1).contains(&value);
        assert!(fresh, "kill {kill}: writer {writer} reads {value} of {known:?}");
    }
}

fn kill_again_and_again(kills: usize, flags: &[&str]) {
    let home = Home::new();
    let (one, two) = two_cpus();
    let cpus = if one == two { one } else { format!("{one},{two}") };
    let words = [&["--storage", "lsm", "--dir", "rows", "--cpus", &cpus][..], flags].concat();
    let mut known = vec![Acknowledged::default(); WRITERS as usize];
    let mut slowest = Duration::ZERO;
    for kill in 0..=kills {
        let begun = Instant::now();
        let serve = Serve::start(&home, &words);
        let mut control = serve.control();
        slowest = slowest.max(begun.elapsed());
        if kill == 0 {
            for statement in SCHEMA {
                control.query(statement).unwrap();
            }
        }
        assert_kept(&mut control, &known, kill);
        if kill == kills {
            break;
        }
        let address = serve.address;
        known = std::thread::scope(|scope| {
            let write = |(writer, known)| scope.spawn(move || write(address, writer, known));
            let writers: Vec<_> = (0..).zip(known.drain(..)).map(write).collect();
            // Not always in the same moment of what it does.
            std::thread::sleep(Duration::from_millis(100 + (kill as u64 * 37) % 150));
            assert!(serve.process.signal(Signal::KILL));
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(serve.process.wait(Duration::from_secs(20)).signal, Some(9));
    }
    let writes: i64 = known.iter().map(|k| k.inserts + k.update + k.deletes).sum();
    assert!(writes > kills as i64 * 10, "{known:?}");
    assert!(slowest < START_MAX, "a start took {slowest:?}");
    println!("{kills} kills, {writes} writes acknowledged and kept, slowest start {slowest:?}");
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    kill_again_and_again(KILLS, &[]);
}

#[test]
fn also_when_every_answer_waits_for_the_disk() {
    kill_again_and_again(2, &["--fsync"]);
}

/// Serves from a file system that is small, and again when it has been made larger.
const SMALL_DISK: &str = r#"mkdir disk && mount -t tmpfs -o size=8M none disk || exit 77
"$0" "$@"
echo "ended with status $?" >&2
mount -o remount,size=64M none disk && exec "$0" "$@""#;

#[test]
fn a_full_disk_ends_the_target_and_nothing_acknowledged_is_lost() {
    let home = Home::new();
    let own = ["--map-root-user", "--mount", "sh", "-c"];
    let mount = "mkdir try && mount -t tmpfs none try";
    let probe = home.command("unshare").args(own).arg(mount).output();
    if !probe.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: no file system of one's own can be had here: {probe:?}");
        return;
    }
    let mut command = home.command("unshare");
    command.args(own).args([SMALL_DISK, env!("CARGO_BIN_EXE_wideload"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--storage", "lsm", "--dir", "disk/rows"]);
    let mut process = Process::start(command);
    let mut next = |known: &str| {
        let mut address = None;
        eventually(Duration::from_secs(20), || {
            let text = process.stdout();
            address = text.split_once(known).and_then(|(_, rest)| announced(rest));
            address.is_some() || !process.is_running()
        });
        address.expect("no target has announced itself")
    };
    let first = next("");
    for statement in SCHEMA {
        control(first).query(statement).unwrap();
    }
    let known: Vec<_> = std::thread::scope(|scope| {
        let write = |writer| scope.spawn(move || write(first, writer, Acknowledged::default()));
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(known.iter().all(|known| known.inserts > 100), "{known:?}");
    let second = next(&first.to_string());
    assert_kept(&mut control(second), &known, 0);
    assert!(process.signal(Signal::TERM));
    let ended = process.wait(Duration::from_secs(20));
    let said = ["No space left", "nothing has been acknowledged since", "ended with status 3"];
    assert!(said.iter().all(|words| ended.stderr.contains(words)), "{ended:?}");
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[test]
fn a_run_finds_its_rows_again() {
    let home = Home::new();
    let words = ["--storage", "lsm", "--dir", "rows"];
    let run = |serve: &Serve| {
        let target = serve.target();
        let words = ["run", "ycsb:f", "--records", "2k", "--ops", "5k", "--warm", "0s"];
        let summary = home.summary(&[&words[..], &["--target", &target, "--out", "out"]].concat());
        assert_eq!((summary.ops, summary.errors), (5000, 0), "{summary:?}");
        let manifest = std::fs::read_to_string(home.at("out/trial-0001/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        std::fs::remove_dir_all(home.at("out")).unwrap();
        assert!(summary.caveats.iter().any(|caveat| caveat.code == "stand-in"), "{summary:?}");
        manifest["target"]["loaded_rows"].as_u64().unwrap()
    };
    let serve = Serve::start(&home, &words);
    assert_eq!(run(&serve), 2000);
    let taken = home.run(&[&["serve", "--listen", "127.0.0.1:0"][..], &words].concat());
    assert_eq!(taken.status, Some(3), "{taken:?}");
    assert!(taken.stderr.contains("another target uses rows"), "{taken:?}");
    assert_eq!(taken.stderr.lines().count(), 1, "{taken:?}");
    assert!(serve.process.signal(Signal::TERM));
    assert_eq!(serve.process.wait(Duration::from_secs(20)).status, Some(0));
    assert_eq!(run(&Serve::start(&home, &words)), 0, "they were loaded before");
    for (words, says) in [
        (&["--storage", "lsm"][..], "add --dir DIR"),
        (&["--dir", "rows"], "with --storage lsm only"),
        (&["--fsync"], "with --storage lsm only"),
    ] {
        let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"][..], words].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
    }
}
