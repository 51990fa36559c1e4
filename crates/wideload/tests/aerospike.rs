//! Aerospike's protocol: what `serve` announces, has, and refuses; what `run` does over it, and
//! what it tells of a target that stands still.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use admin::aerospike::Server;
use record::Outcome;
use record::summary::Summary;
use rig::{Home, RunDir, Serve, alone};
use stage::Signal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use units::Nanos;

/// What a server says of these names.
fn asked<const N: usize>(address: SocketAddr, names: [&str; N]) -> [String; N] {
    let (timeout, stop) = (Nanos::from_secs(20), Arc::default());
    let mut server = Server::connect(address, timeout, &stop).unwrap();
    server.info(names).unwrap()
}

#[test]
fn it_serves_the_namespaces_that_are_named() {
    let home = Home::new();
    let words = ["--protocol", "aerospike", "--namespace", "hot,cold"];
    let serve = Serve::start(&home, &words);
    assert!(serve.process.stdout().contains("results say nothing about Aerospike"));
    let lines = asked(serve.address, ["namespaces", "namespace/hot", "namespace/test"]);
    assert_eq!(lines[0], "hot;cold");
    assert!(lines[1].contains(";storage-engine.data-size=4294967296;"), "{}", lines[1]);
    assert!(lines[2].starts_with("ERROR:20:"), "{}", lines[2]);
    assert!(serve.process.signal(Signal::TERM));
    assert_eq!(serve.process.wait(Duration::from_secs(20)).status, Some(0));
}

#[test]
fn what_it_has_not_is_refused() {
    let home = Home::new();
    for (words, says) in [
        (&["--namespace", "test"][..], "with --protocol aerospike only"),
        (&["--protocol", "aerospike", "--storage", "null"], "in memory only"),
        (&["--protocol", "aerospike", "--protocol-max", "4"], "leave it out"),
        (&["--protocol", "aerospike", "--namespace", "a:b"], "1 to 31 letters"),
    ] {
        let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"][..], words].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
    }
}

/// A short run over Aerospike's protocol.
const SHORT: [&str; 9] =
    ["--protocol", "aerospike", "--records", "2k", "--ops", "4k", "--warm", "0s", "--threads=16"];

fn count(summary: &Summary, outcome: Outcome) -> u64 {
    summary.outcomes.0[outcome as usize]
}

#[test]
fn a_run_starts_its_own_target_and_says_what_was_spoken() {
    let home = Home::new();
    for (workload, more) in [("ycsb:a", &[][..]), ("ycsb:f", &["--engine", "io-uring"])] {
        let name = workload.replace(':', "-");
        let out = home.at(&name);
        let words = ["run", workload, "--out", out.to_str().unwrap()];
        let ended = home.run(&[&words[..], &SHORT, more, &["--json"]].concat());
        if ended.stderr.contains("io_uring") && ended.status == Some(3) {
            println!("skipped: this kernel has no io_uring to use");
            continue;
        }
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let summary = ended.summary();
        assert_eq!((summary.ops, count(&summary, Outcome::Ok)), (4000, 4000), "{workload}");
        assert_eq!((summary.target.kind.as_str(), summary.target.protocol), ("reference", Some(2)));
        let shrinks = summary.caveats.iter().any(|caveat| caveat.code == "records-shrink");
        assert!(shrinks, "{:?}", summary.caveats);
        let manifest = RunDir(out).manifest();
        assert_eq!(manifest.target["spoken"], "aerospike");
        assert_eq!(manifest.settings["update"], "replace-only");
        assert_eq!(manifest.settings["connections"], 16);
    }
    home.assert_nothing_left();
}

#[test]
fn a_set_is_loaded_once_and_another_ones_is_not_written_to() {
    let home = Home::new();
    let serve = Serve::start(&home, &["--protocol", "aerospike", "--namespace", "hot"]);
    let target = serve.target();
    let run = |words: &[&str]| {
        let at = ["run", "ycsb:a", "--target", &target, "--namespace", "hot"];
        home.run(&[&at[..], &SHORT, words, &["--json"]].concat())
    };
    let objects = || {
        let [sets] = asked(serve.address, ["sets/hot"]);
        let of = |set: &str| sets.split(';').any(|line| line.contains(set));
        (of("set=usertable:objects=2000:"), of("set=wideload_marker:objects=1:"))
    };
    assert_eq!(run(&[]).status, Some(0));
    assert_eq!(objects(), (true, true));
    // Its rows are there, updated or not: nothing is loaded, and other settings of updates fit.
    let again = run(&["-p", "as.update=upsert"]);
    assert_eq!(again.status, Some(0), "{again:?}");
    assert!(!again.stderr.contains("loading"), "{again:?}");
    let codes: Vec<_> = again.summary().caveats.into_iter().map(|caveat| caveat.code).collect();
    assert!(!codes.contains(&"records-shrink".to_owned()), "{codes:?}");
    assert_eq!(objects(), (true, true));
    for (words, says) in [
        (&["-p", "fieldcount=3"][..], "columns"),
        (&["--table", "wideload_marker"], "--write-into-existing"),
        (&["--table", "other", "--skip-load"], "other"),
    ] {
        let refused = run(words);
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let home = Home::new();
    let serve = Serve::start(&home, &["--protocol", "aerospike", "--namespace", "hot,cold"]);
    let target = serve.target();
    for (words, says) in [
        (&["ycsb:e"][..], "without scans"),
        (&["ycsb:a", "--target", &target, "--namespace", "warm"], "(hot, cold)"),
        (&["ycsb:a", "--keyspace", "ks"], "--namespace"),
        (&["ycsb:a", "--consistency", "ONE"], "configuration has it"),
        (&["ycsb:a", "--storage", "null"], "in memory only"),
        (&["ycsb:a", "--user", "ann", "--target", &target], "not built yet"),
        (&["ycsb:a", "-p", "fieldnameprefix=much_too_long_a_name"], "1 to 15 bytes"),
    ] {
        let refused = home.run(&[&["run"], words, &["--protocol", "aerospike"]].concat());
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{says}: {refused:?}");
    }
    for words in [&["--namespace", "hot"], &["-p", "as.update=upsert"]] {
        let refused = home.run(&[&["run", "ycsb:a"][..], words].concat());
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("--protocol aerospike"), "{refused:?}");
    }
}

/// A second of standing still under a rate: what was sent into it times out at its real length, and
/// what was due meanwhile has waited.
#[test]
fn a_target_that_stands_still_shows_in_timeouts_and_in_all_who_waited() {
    let _alone = alone();
    let home = Home::new();
    let serve = Serve::start(&home, &["--protocol", "aerospike"]);
    let target = serve.target();
    let words = ["run", "ycsb:c", "--target", &target];
    assert_eq!(home.run(&[&words[..], &SHORT].concat()).status, Some(0));
    let [before] = asked(serve.address, ["statistics"]);
    let rate = ["--rate", "2k/s", "--in-flight-max", "32", "--timeout", "300ms", "--warm", "0s"];
    let words = [&words[..], &["--protocol", "aerospike", "--records", "2k"], &rate].concat();
    let run = home.start(&[&words[..], &["--duration", "4s", "--json"]].concat());
    let reads = |statistics: &str| {
        let count = statistics.split(';').find_map(|part| part.strip_prefix("records.read="));
        count.unwrap().parse::<u64>().unwrap()
    };
    let middle = reads(&before) + 4000;
    let reached = rig::eventually(Duration::from_secs(30), || {
        let [now] = asked(serve.address, ["statistics"]);
        reads(&now) >= middle
    });
    assert!(reached, "the run did not get to its middle");
    serve.freeze(Duration::from_secs(1));
    let ended = run.wait(Duration::from_secs(60));
    // One in a hundred has failed, or more.
    assert!(matches!(ended.status, Some(0 | 1)), "{ended:?}");
    let summary = ended.summary();
    let late = count(&summary, Outcome::ClientTimeout);
    // Those that were in flight, and those on the connections that took their place.
    assert!((32..1000).contains(&late), "{late}");
    assert_eq!((summary.ops, count(&summary, Outcome::Ok)), (8000, 8000 - late));
    let read = &summary.latency_us["read"];
    let service = read.service.expect("operations were done");
    assert!(service.max >= 300e3, "{service:?}");
    // A quarter of all was due while it stood, and waited up to a second: one in ten 0.6 s.
    let response = read.response.expect("all of the rate was done");
    assert!(response.p90 >= 400e3 && response.max >= 900e3, "{response:?}");
    let codes: Vec<_> = summary.caveats.iter().map(|caveat| caveat.code.as_str()).collect();
    assert!(codes.contains(&"connections-replaced"), "{codes:?}");
}

/// A line of YCSB with the `aerospike` binding, which loads, reads what was loaded, and prints what
/// YCSB prints.
#[test]
fn a_line_of_ycsb_loads_and_runs() {
    let home = Home::new();
    let serve = Serve::start(&home, &["--protocol", "aerospike", "--namespace", "ycsb"]);
    std::fs::write(home.at("a"), "recordcount=500\noperationcount=2000\n").unwrap();
    let port = format!("as.port={}", serve.address.port());
    let line = |command: &str, more: &[&str]| {
        let words = ["ycsb", command, "aerospike", "-P", "a", "-threads", "8", "-p"];
        let at = [&port, "-p", "as.host=127.0.0.1", "-p", "updateproportion=0.5"];
        let core = ["-p", "workload=site.ycsb.workloads.CoreWorkload"];
        home.run(&[&words[..], &at.map(AsRef::as_ref), &core, more].concat())
    };
    let loaded = line("load", &[]);
    assert_eq!(loaded.status, Some(0), "{loaded:?}");
    assert!(loaded.stdout.contains("[INSERT], Return=OK, 500\n"), "{loaded:?}");
    let run = line("run", &["-p", "readproportion=0.5"]);
    assert_eq!(run.status, Some(0), "{run:?}");
    let returned = |what: &str| {
        let head = format!("[{what}], Return=OK, ");
        let count = run.stdout.lines().find_map(|line| line.strip_prefix(&head));
        count.map_or(0, |count| count.trim().parse::<u64>().unwrap())
    };
    assert_eq!(returned("READ") + returned("UPDATE"), 2000, "{run:?}");
    // What is there already is not created again, as the binding has it.
    assert!(line("load", &[]).stdout.contains("[INSERT], Return=ERROR, 500\n"));
    for (more, says) in [
        (&["-p", "as.user=ann"][..], "users of Aerospike are not built yet"),
        (&["-p", "as.namespace=other"], "-p as.namespace="),
        (&["-p", "scanproportion=0.1"], "without scans"),
        (&["--create"], "leave it out"),
    ] {
        let refused = line("run", more);
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
}

/// Three servers in one process, each of which has a third of the partitions: a key goes to its
/// master, also when partitions move and a server is away for a while.
#[test]
fn operations_go_to_the_master_of_their_partition() {
    let home = Home::new();
    let misrouted = |serve: &Serve| {
        let [statistics] = asked(serve.address, ["statistics"]);
        let count = statistics.split(';').find_map(|part| part.strip_prefix("requests.misrouted="));
        count.unwrap().parse::<u64>().unwrap()
    };
    let three = ["--protocol", "aerospike", "--instances", "3"];
    let still = Serve::start(&home, &three);
    let target = still.target();
    let words = ["run", "ycsb:b", "--target", &target];
    let summary = home.summary(&[&words[..], &SHORT].concat());
    assert_eq!((count(&summary, Outcome::Ok), misrouted(&still)), (4000, 0));
    // The others are known by the first one only: without them two thirds have no master.
    let alone = home.run(&[&words[..], &SHORT, &["--fixed-hosts"]].concat());
    assert_eq!(alone.status, Some(3), "{alone:?}");
    assert!(alone.stderr.contains("2730 of the 4096 partitions"), "{alone:?}");

    let restless = Serve::start(
        &home,
        &[&three[..], &["--move-partitions", "1500ms", "--away", "3s..4500ms"]].concat(),
    );
    let target = restless.target();
    let base = ["run", "ycsb:b", "--target", &target, "--protocol", "aerospike"];
    let long = ["--records", "2k", "--duration", "6s", "--warm", "0s", "--rate", "2k/s", "--json"];
    let ended = home.run(&[&base[..], &long, &["--in-flight-max", "64"]].concat());
    let summary = ended.summary();
    let ok = count(&summary, Outcome::Ok);
    // Each change is followed within a second; most of the time nothing changes.
    assert!(ok * 10 > summary.ops * 6, "{:?}", summary.outcomes);
    assert!(misrouted(&restless) > 0, "something has moved");
    assert!(count(&summary, Outcome::Unavailable) > 0, "{:?}", summary.outcomes);
    let changes = summary.caveats.iter().find(|caveat| caveat.code == "ring-changed").unwrap();
    assert!(changes.evidence.matches("partitions have another master").count() >= 3, "{changes:?}");
    // What came last is known: the same servers, nothing misrouted any more.
    let before = misrouted(&restless);
    let quiet = ["--records", "2k", "--ops", "500", "--warm", "0s", "--threads", "4", "--json"];
    assert_eq!(home.run(&[&base[..], &quiet].concat()).status.map(|s| s <= 1), Some(true));
    assert!(misrouted(&restless) - before < 200);
}
