//! Each fault of the reference target gives the outcome and the latency that it should, as counted
//! by both sides; it ends nothing that should go on, and leaves nothing behind.
//!
//! Times are lower bounds where a busy host can only make them longer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::{Outcome, Summary};
use rig::serve::counters;
use rig::{Ended, Home, RunDir, Serve, eventually};
use stage::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

/// Rows that are loaded before anything goes wrong.
const LOAD: [&str; 8] =
    ["run", "ycsb:a", "--records", "1k", "--warm", "0s", "-p", "fieldlength=10"];
/// More than the load, the marker and the probes take; the window has its faults behind it.
const HEALTHY: [&str; 2] = ["--faults-after", "2500"];

struct Faulty {
    home: Home,
    serve: Serve,
}

impl Faulty {
    fn new(faults: &[&str]) -> Self {
        let home = Home::new();
        let serve = Serve::start(&home, faults);
        Self { home, serve }
    }

    /// A run to its end, whatever its exit status.
    fn run(&self, arguments: &[&str]) -> Ended {
        let target = self.serve.target();
        let words = [&LOAD[..], &["--target", &target, "--json", "--out", "out"], arguments];
        self.home.run(&words.concat())
    }

    fn summary(&self, arguments: &[&str]) -> Summary {
        let ended = self.run(arguments);
        assert!(matches!(ended.status, Some(0 | 1)), "{ended:?}");
        let summary = ended.summary();
        let all: u64 = Outcome::ALL.iter().map(|o| summary.outcomes.0[*o as usize]).sum();
        assert_eq!(all, summary.ops, "{summary:?}");
        summary
    }

    /// What the target has counted of its faults.
    fn met(&self) -> BTreeMap<String, u64> {
        let all = counters(&mut self.serve.control());
        let met = |(name, count): (String, u64)| {
            name.strip_prefix("faults.").map(|fault| (fault.to_owned(), count))
        };
        all.into_iter().filter_map(met).collect()
    }

    /// The target has closed what its clients have; it ends in good order and tells its faults.
    fn end(self) -> Ended {
        let closed = eventually(Duration::from_secs(10), || {
            let counted = counters(&mut self.serve.control());
            counted["connections.accepted"] == counted["connections.closed"] + 1
        });
        assert!(closed, "connections are left: {:?}", counters(&mut self.serve.control()));
        assert!(self.serve.process.signal(Signal::TERM));
        let ended = self.serve.process.wait(Duration::from_secs(20));
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.contains("faults met by "), "{ended:?}");
        self.home.assert_nothing_left();
        ended
    }
}

fn count(summary: &Summary, outcome: Outcome) -> u64 {
    summary.outcomes.0[outcome as usize]
}

fn has(summary: &Summary, code: &str) -> bool {
    summary.caveats.iter().any(|caveat| caveat.code == code)
}

#[test]
fn every_refusal_has_its_outcome_and_both_sides_count_alike() {
    let fault = "error=1%,overloaded=2%,unavailable=3%,read-timeout=4%,write-timeout=5%";
    let faulty = Faulty::new(&[&HEALTHY[..], &["--fault", fault]].concat());
    let summary = faulty.summary(&["--ops", "30k", "--threads", "16"]);
    let met = faulty.met();
    assert_eq!(count(&summary, Outcome::Error), met["error"], "{summary:?}");
    assert_eq!(count(&summary, Outcome::Overloaded), met["overloaded"]);
    assert_eq!(count(&summary, Outcome::Unavailable), met["unavailable"]);
    let timeouts = met["read-timeout"] + met["write-timeout"];
    assert_eq!(count(&summary, Outcome::ServerTimeout), timeouts);
    let failed = met.values().sum::<u64>();
    assert_eq!(count(&summary, Outcome::Ok), summary.ops - failed);
    // At least 27,500 operations, half of them reads; six standard deviations.
    for (fault, share) in [("error", 0.01), ("overloaded", 0.02), ("unavailable", 0.03)] {
        let share_met = met[fault] as f64 / 28_500.0;
        assert!((share_met - share).abs() < 0.007, "{fault}: {share_met}");
    }
    for (fault, share) in [("read-timeout", 0.04), ("write-timeout", 0.05)] {
        let share_met = met[fault] as f64 / 14_250.0;
        assert!((share_met - share).abs() < 0.014, "{fault}: {share_met}");
    }
    // Who reads the result learns of it, in every form.
    assert!(has(&summary, "target-faults"), "{summary:?}");
    let manifest =
        RunDir(faulty.home.at("out")).json::<serde_json::Value>("trial-0001/manifest.json");
    let flags = manifest["target"]["faults"].as_str().unwrap();
    assert!(flags.contains("unavailable=0.03") && flags.contains("--fault-seed 1"), "{flags}");
    let said = faulty.end().stdout;
    assert!(said.contains(&format!("{} overloaded", met["overloaded"])), "{said}");
}

#[test]
fn an_answer_behind_the_timeout_is_a_client_timeout_of_that_length() {
    let faulty = Faulty::new(&[&HEALTHY[..], &["--fault", "late:1500ms=2%"]].concat());
    let arguments = ["--ops", "8k", "--threads", "32", "--timeout", "400ms"];
    let summary = faulty.summary(&arguments);
    let late = faulty.met()["late"];
    assert!(late > 20, "{late}");
    // A busy host can make others late too.
    let timeouts = count(&summary, Outcome::ClientTimeout);
    assert!(timeouts >= late && timeouts <= late + late / 4 + 5, "{timeouts} of {late}");
    for op in summary.latency_us.values() {
        assert!(op.service.unwrap().max >= 400e3, "{op:?}");
    }
    faulty.end();
}

#[test]
fn a_dropped_connection_loses_what_is_in_flight_and_is_made_again() {
    let faulty = Faulty::new(&[&HEALTHY[..], &["--fault", "drop=0.2%"]].concat());
    let descriptors = || {
        let pid = faulty.serve.process.id().pid;
        std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
    };
    let before = descriptors();
    let summary = faulty.summary(&["--ops", "20k", "--threads", "8", "--connections", "4"]);
    let dropped = faulty.met()["drop"];
    let lost = count(&summary, Outcome::ConnectionLost);
    // The operation of the drop, and the others on its connection: two on average.
    assert!(dropped >= 10 && (dropped..=dropped * 8).contains(&lost), "{lost} of {dropped}");
    assert_eq!(count(&summary, Outcome::Ok) + lost, summary.ops, "{summary:?}");
    assert!(has(&summary, "connections-lost"), "{summary:?}");
    let gone = eventually(Duration::from_secs(10), || descriptors() <= before);
    assert!(gone, "{} descriptors, {before} before", descriptors());
    faulty.end();
}

#[test]
fn delays_have_their_length() {
    let service = |delay: &str| {
        let faulty = Faulty::new(&["--delay", delay]);
        let summary = faulty.summary(&["--duration", "1500ms", "--threads", "64"]);
        assert_eq!(summary.errors, 0, "{summary:?}");
        faulty.end();
        summary.latency_us["read"].service.unwrap()
    };
    let constant = service("20ms");
    assert!(constant.p50 >= 20e3 && constant.mean >= 20e3, "{constant:?}");
    let uniform = service("10ms..30ms");
    assert!(uniform.p50 >= 18e3 && uniform.p99 >= 29e3, "{uniform:?}");
    let exponential = service("exp:10ms");
    // Median 6.9 ms, 99th percentile 46 ms: below the constant one, and above it.
    assert!(exponential.mean >= 9e3 && exponential.p99 >= 38e3, "{exponential:?}");
    assert!(exponential.p50 < constant.p50, "{exponential:?}");
    let lognormal = service("lognormal:5ms..60ms");
    assert!(lognormal.p50 >= 4.3e3 && lognormal.p99 >= 45e3, "{lognormal:?}");
    assert!(lognormal.p50 < constant.p50, "{lognormal:?}");
}

#[test]
fn a_stall_shows_in_the_response_times_of_all_who_were_due() {
    let faulty = Faulty::new(&["--stall", "300ms/1s"]);
    let summary = faulty.summary(&["--rate", "1k/s", "--duration", "4s"]);
    assert_eq!((summary.errors, summary.ops), (0, 4000), "{summary:?}");
    for op in summary.latency_us.values() {
        // Three in ten wait, evenly up to 300 ms: one in ten waits longer than 200 ms.
        let response = op.response.unwrap();
        assert!(response.p90 >= 150e3 && response.max >= 250e3, "{response:?}");
        assert!(response.p50 < 150e3, "it answers in between: {response:?}");
    }
    let said = faulty.end().stdout;
    assert!(said.contains(" stalls"), "{said}");
}

#[test]
fn answers_in_pieces_are_put_together_in_every_framing() {
    for (pieces, framing) in [
        ("1", &["--protocol", "4"][..]),
        ("1", &["--protocol", "5"]),
        ("13", &["--protocol", "4", "--compression", "snappy"]),
        ("200", &["--protocol", "5", "--compression", "lz4"]),
    ] {
        let faulty = Faulty::new(&["--pieces", pieces]);
        let words = [framing, &["--ops", "500", "--threads", "32", "-p", "dataintegrity=true"]];
        let summary = faulty.summary(&words.concat());
        let outcomes = (summary.ops, count(&summary, Outcome::Ok));
        assert_eq!(outcomes, (500, 500), "{pieces} {framing:?}: {summary:?}");
        faulty.end();
    }
}

#[test]
fn gathered_answers_come_together_and_all_of_them() {
    let faulty = Faulty::new(&["--gather", "20ms"]);
    let summary = faulty.summary(&["--ops", "4k", "--threads", "64"]);
    assert_eq!(count(&summary, Outcome::Ok), 4000, "{summary:?}");
    // Who is answered sends at once, and waits for the next moment.
    let service = summary.latency_us["read"].service.unwrap();
    assert!(service.p50 >= 15e3, "{service:?}");
    faulty.end();
}

#[test]
fn a_seed_repeats_a_run() {
    let run = |seed: &str| {
        let fault = "overloaded=10%,unavailable=5%";
        let faulty =
            Faulty::new(&[&HEALTHY[..], &["--fault", fault, "--fault-seed", seed]].concat());
        let one = ["--ops", "4k", "--threads", "1", "--connections", "1"];
        let summary = faulty.summary(&one);
        faulty.end();
        summary.outcomes
    };
    let first = run("7");
    assert_eq!(first, run("7"));
    assert_ne!(first, run("8"));
}

#[test]
fn what_a_client_asks_of_the_schema_is_never_refused() {
    // Every operation on a table fails; making it, and looking at it, do not.
    let faulty = Faulty::new(&["--fault", "unavailable=1"]);
    let ended = faulty.run(&["--ops", "10", "--give-up", "2s"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("told to fail so"), "{ended:?}");
    let mut control = faulty.serve.control();
    let tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'ycsb'";
    assert!(!control.query(tables).unwrap().is_empty());
    drop(control);
    faulty.end();
}

#[test]
fn wrong_words_are_refused_with_the_cure() {
    let home = Home::new();
    for (words, says) in [
        (&["--stall", "10s"][..], "like 500ms/10s"),
        (&["--stall", "10s/1s"], "shorter than the second"),
        (&["--delay", "gamma:2ms"], "lognormal:MEDIAN..P99"),
        (&["--delay", "9ms..1ms"], "shorter time first"),
        (&["--fault", "flood=1%"], "write-timeout, drop and late:TIME"),
        (&["--fault", "drop=110%"], "at most 1"),
        (&["--fault", "drop=60%,error=60%"], "add up to"),
        (&["--fault", "drop=1%", "--fault", "drop=2%"], "each fault once"),
        (&["--pieces", "0"], "--pieces"),
        (&["--gather", "0s"], "like 5ms"),
        (&["--faults-after", "100"], "add one, like"),
        (&["--fault-seed", "soon"], "--fault-seed"),
    ] {
        let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"][..], words].concat());
        assert_eq!(ended.status, Some(2), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "'{says}' is not in it: {ended:?}");
        assert_eq!(ended.stdout, "");
    }
}
