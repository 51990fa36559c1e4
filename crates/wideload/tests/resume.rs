//! A load that is interrupted, again and again, and resumed: every key is there once, and the
//! marker knows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::serve::{counters, executed};
use rig::{Home, Serve, alone, eventually};
use stage::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

/// As many as one answer of 16 MiB takes the keys of.
const RECORDS: u64 = 500_000;
const SEED: u64 = 0x5eed_0005;
/// Rows that an interrupt may leave behind a gap: those in flight, 64 a worker at least.
const IN_FLIGHT_MAX: u64 = 1024;

/// splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn inserts(serve: &Serve) -> u64 {
    counters(&mut serve.control())["statements.insert"]
}

/// The marker's row: finished, and what is missing.
fn marker(serve: &Serve) -> (bool, String) {
    let query = "SELECT finished, missing FROM ycsb.wideload_marker WHERE table_name = 'usertable'";
    let row = serve.control().query(query).unwrap().remove(0);
    let missing = String::from_utf8(row[1].clone().unwrap()).unwrap();
    (row[0].as_deref() == Some(&[1u8][..]), missing)
}

fn keys(serve: &Serve) -> (usize, BTreeSet<Vec<u8>>) {
    let rows = serve.control().query("SELECT y_id FROM ycsb.usertable").unwrap();
    let keys: BTreeSet<_> = rows.iter().map(|row| row[0].clone().unwrap()).collect();
    (rows.len(), keys)
}

fn interrupted_three_times(signal: Signal) {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let target = serve.target();
    let records = RECORDS.to_string();
    let fixed = ["run", "ycsb:c", "--target", &target, "--records", &records];
    let plan = ["-p", "fieldcount=1", "-p", "fieldlength=10", "--threads", "64"];
    let run = [&fixed[..], &plan, &["--warm", "0s", "--ops", "1000"]].concat();
    let mut state = SEED;
    println!("seed {SEED:#x}, signal {}", signal.as_raw());
    let mut control = serve.control();
    for number in 1..=3u64 {
        // Somewhere in the next eighth of the rows: enough of them are left when it is seen. Not
        // before the first of them, or the process may not be listening for signals yet.
        let at = executed(&mut control) + 1 + random(&mut state) % (RECORDS / 8);
        let process = home.start(&run);
        let reached = eventually(Duration::from_secs(60), || executed(&mut control) >= at);
        assert!(reached, "the load did not get to {at} rows");
        assert!(process.signal(signal));
        let ended = process.wait(Duration::from_secs(30));
        let status = if signal == Signal::KILL { None } else { Some(130) };
        assert_eq!(ended.status, status, "{ended:?}");
        let (there, written) = (keys(&serve).0 as u64, inserts(&serve));
        let (finished, missing) = marker(&serve);
        println!("{number}: at {at}: {there} rows by {written} inserts, missing {missing}");
        assert!(!finished && !missing.is_empty() && there < RECORDS);
        if number > 1 {
            assert!(ended.stderr.contains("resumed") || signal == Signal::KILL, "{ended:?}");
        }
    }
    let ended = home.run(&run);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("resumed"), "{ended:?}");
    let (rows, keys) = keys(&serve);
    assert_eq!((rows as u64, keys.len() as u64), (RECORDS, RECORDS), "every key once");
    assert_eq!(marker(&serve), (true, String::new()));
    // The marker's own rows are inserts too: some each second.
    let again = inserts(&serve) - RECORDS;
    println!("{again} inserts beyond the {RECORDS} rows, the marker's among them");
    if signal != Signal::KILL {
        assert!(again <= 3 * IN_FLIGHT_MAX + 300, "{again} rows were written again");
    }
    // And it is not loaded once more.
    let before = inserts(&serve);
    assert_eq!(home.run(&run).status, Some(0));
    assert_eq!(inserts(&serve), before);
}

#[test]
fn a_load_interrupted_three_times_is_whole_in_the_end() {
    let _alone = alone();
    interrupted_three_times(Signal::INT);
}

#[test]
fn a_load_killed_three_times_is_whole_in_the_end() {
    let _alone = alone();
    interrupted_three_times(Signal::KILL);
}
