//! What others change under a run: the table is altered, dropped, created again.
//!
//! On the reference target, which is one host; rings that change are in `cassandra_ring_change.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::events::{Event, EventKind, read_events};
use record::{Outcome, Summary};
use rig::{Ended, Home, RunDir, Serve, alone, eventually};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Starts a run of 8 s, does `change` about two seconds into its window, and waits for its end.
fn run_and(home: &Home, serve: &Serve, out: &Path, change: impl FnOnce()) -> Ended {
    let target = serve.target();
    let run = ["run", "ycsb:a", "--json", "--target", &target, "--out", out.to_str().unwrap()];
    let load = ["--records", "1k", "--threads", "8", "--warm", "0s", "--duration", "8s"];
    let process = home.start(&[&run[..], &load].concat());
    let log = out.join("trial-0001/counters.csv");
    let begun = || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() > 1);
    assert!(eventually(Duration::from_secs(60), begun), "the window does not begin");
    std::thread::sleep(Duration::from_secs(1));
    change();
    process.wait(Duration::from_secs(60))
}

fn events(out: &Path) -> Vec<Event> {
    let file = out.join("trial-0001/events.csv");
    read_events(fs::File::open(file).unwrap(), 100).unwrap()
}

fn has(summary: &Summary, code: &str) -> bool {
    summary.caveats.iter().any(|caveat| caveat.code == code)
}

#[test]
fn a_new_column_costs_no_operation_and_is_told() {
    let _alone = alone();
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let out = home.at("out");
    let ended = run_and(&home, &serve, &out, || {
        serve.control().query("ALTER TABLE ycsb.usertable ADD more text").unwrap();
        // What others do elsewhere is nobody's business.
        let theirs = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let create = format!("CREATE KEYSPACE theirs WITH replication = {theirs}");
        serve.control().query(&create).unwrap();
    });
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    assert_eq!(summary.errors, 0, "{summary:?}");
    let events = events(&out);
    let [event] = &events[..] else { panic!("{events:?}") };
    let text = "ycsb.usertable was altered: it is now with more text";
    assert_eq!((event.kind, event.text.as_str()), (EventKind::Schema, text));
    assert!((1.0..8.0).contains(&event.t_s), "{event:?}");
    assert!(has(&summary, "schema-changed") && !has(&summary, "ring-changed"));
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains(text) && report.contains("schema change"));
}

#[test]
fn a_table_that_is_dropped_and_created_again_is_driven_on() {
    let _alone = alone();
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let out = home.at("out");
    let columns: Vec<_> = (0..10).map(|i| format!("field{i} text")).collect();
    let create =
        format!("CREATE TABLE ycsb.usertable (y_id text PRIMARY KEY, {})", columns.join(", "));
    let ended = run_and(&home, &serve, &out, || {
        let mut control = serve.control();
        control.query("DROP TABLE ycsb.usertable").unwrap();
        std::thread::sleep(Duration::from_millis(400));
        control.query(&create).unwrap();
    });
    let summary = ended.summary();
    assert_eq!(summary.outcomes.total(), summary.ops);
    let failed = summary.outcomes.of(Outcome::Error);
    assert!(failed > 0, "{:?}", summary.outcomes);
    // The rows are gone; what is written anew is found again.
    assert!(summary.outcomes.of(Outcome::Ok) > failed * 10, "{:?}", summary.outcomes);
    let told: Vec<_> = events(&out).into_iter().map(|event| event.text).collect();
    assert_eq!(told, ["ycsb.usertable was dropped and created again"]);
    assert!(has(&summary, "schema-changed"));
    let failure = RunDir(out).manifest().failure.unwrap_or_default();
    assert!(ended.status == Some(0) || failure.contains("usertable"), "{failure}");
}
