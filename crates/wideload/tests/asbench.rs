//! `wideload asbench`: command lines of asbench and of the tools before it, carried out over
//! Aerospike's protocol and over CQL at the reference target.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use admin::aerospike::Server;
use record::summary::Target;
use rig::{Ended, Home, RunDir, Serve};
use stage::Signal;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use units::Nanos;
use wire::aerospike::{Command, Key, Message, Particle, ReadLevel, UserKey, Wanted};

/// A line at a target, as words.
fn words(serve: &Serve, line: &str) -> Vec<String> {
    let host = serve.target();
    let head = ["asbench", "--protocol", "cql", "--create", "-h", &host].map(str::to_owned);
    head.into_iter().chain(line.split_whitespace().map(str::to_owned)).collect()
}

fn run(home: &Home, serve: &Serve, line: &str) -> Ended {
    let words = words(serve, line);
    home.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn done(home: &Home, serve: &Serve, line: &str) -> Ended {
    let ended = run(home, serve, line);
    assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
    ended
}

/// A server of records, and what a line of asbench ends with at it.
fn records(home: &Home) -> Serve {
    Serve::start(home, &["--protocol", "aerospike"])
}

fn at_records(home: &Home, serve: &Serve, line: &str) -> Ended {
    let host = serve.target();
    let head = ["asbench", "-h", &host].into_iter();
    home.run(&head.chain(line.split_whitespace()).collect::<Vec<_>>())
}

/// Types and bytes of the bins of a record, by name; empty where there is none.
fn bins(serve: &Serve, key: i64) -> Vec<(String, u8, Vec<u8>)> {
    let mut server = Server::connect(serve.address, Nanos::from_secs(20), &Arc::default()).unwrap();
    let key = Key::new("test", "testset", UserKey::Integer(key));
    let mut request = Vec::new();
    Command::get(&key, Wanted::All, ReadLevel::One, 0).encode(&mut request);
    let body = server.message(&request).unwrap();
    let message = Message::decode(&body).unwrap();
    let name = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    let mut bins: Vec<_> =
        message.ops().map(|op| (name(op.name), op.particle, op.value.to_vec())).collect();
    bins.sort();
    bins
}

#[test]
fn the_study_s_lines_drive_records() {
    let home = Home::new();
    let serve = records(&home);
    let fill = "-k 1000 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,u -M master";
    let ended = at_records(&home, &serve, fill);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(sum(&ended.stdout, "write"), 1000);
    let text = Particle::String(b"").kind();
    for key in [0, 500, 999] {
        let found = bins(&serve, key);
        let [(name, kind, value)] = &found[..] else { panic!("{key}: {found:?}") };
        assert_eq!((&name[..], *kind, value.len()), ("testbin", text, 32));
    }
    assert_eq!(bins(&serve, 1000), [], "no key behind the last");
    let line = "-k 1000 -o S:32 -w RU,100 -a -c 142 -W 12 --latency 21,4 -t 5000 --out run";
    let ended = at_records(&home, &serve, line);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("caveat rows-missing"), "{}", ended.stderr);
    assert_eq!(sum(&ended.stdout, "read"), 5000);
    assert!(ended.stdout.contains(" >800us\nread "), "{}", ended.stdout);
    let summary = RunDir(home.at("run")).summary();
    assert_eq!((summary.ops, summary.errors), (5000, 0));
    assert_eq!(summary.target.kind, Target::REFERENCE);
    let page = std::fs::read_to_string(home.at("run/report.html")).unwrap();
    assert!(page.contains("142 clients in a closed loop"), "the load of -c");
}

#[test]
fn bins_have_the_types_of_their_objects_and_rr_replaces() {
    let home = Home::new();
    let serve = records(&home);
    let object = "-o I4,S5,B7,D,b,[2*I1],{S2:I1} -k 100";
    let ended = at_records(&home, &serve, &format!("{object} -w I -R"));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let expected = [
        Particle::Integer(0),
        Particle::String(b""),
        Particle::Blob(b""),
        Particle::Double(0.0),
        Particle::Bool(true),
        Particle::List(b""),
        Particle::Map(b""),
    ];
    let found = bins(&serve, 1);
    let kinds: Vec<u8> = found.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, expected.each_ref().map(Particle::kind), "{found:?}");
    let names: Vec<_> = found.iter().map(|(name, ..)| &name[..]).collect();
    assert_eq!((names[0], names[6]), ("testbin", "testbin_7"));
    // A list of two small integers of one byte or of a byte and its head.
    assert_eq!(found[5].2[0], 0x92, "{found:?}");
    assert_ne!(bins(&serve, 2)[1], found[1], "-R");
    // Writes of the first bin alone: RU keeps the others, RR leaves nothing else.
    let line = |kind| format!("{object} -w {kind},0,100,0 -z 4 -t 1 -g 2000");
    let ended = at_records(&home, &serve, &line("RU"));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!((1..=100).all(|key| bins(&serve, key).len() == 7));
    let ended = at_records(&home, &serve, &line("RR"));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("caveat records-shrink: A write of RR"), "{}", ended.stderr);
    let shrunk = (1..=100).filter(|key| bins(&serve, *key).len() == 1).count();
    // 2000 writes of 100 keys leave one out with a chance of some 2 in 10^9 each.
    assert_eq!(shrunk, 100);
    let ended = at_records(&home, &serve, "-n nowhere -w I -k 10");
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("nowhere") && ended.stderr.contains("test"), "{ended:?}");
}

/// The number behind `name(tps=`, added up over all lines.
fn sum(text: &str, name: &str) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(&format!(" {name}(tps=")));
    let number = |rest: &str| rest.split([' ', ')']).next().and_then(|n| n.parse::<u64>().ok());
    lines.map(|(_, rest)| number(rest).expect(rest)).sum()
}

#[test]
fn the_lines_of_the_study_run_with_sizes_and_address_changed() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    for (fill, set) in [
        ("-k 1000 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,us", "a"),
        ("-k 1000 -o S:32 -w I -a -c 168 -W 28 --latency 10,2,u -M master", "b"),
        ("-k 1000 -o S:32 -w I -a -c 100 -W 10 -M master --maxRetries 10 -T 10000", "testset"),
    ] {
        let ended = done(&home, &serve, &format!("{fill} -s {set}"));
        assert_eq!(sum(&ended.stdout, "write"), 1000, "{ended:?}");
        let rows = format!("SELECT key, testbin FROM test.{set}");
        let rows = serve.control().query(&rows).unwrap();
        // Each key once, from 0 on, as before asbench.
        let key = |row: &Vec<Option<Vec<u8>>>| {
            i64::from_be_bytes(row[0].clone().unwrap().try_into().unwrap())
        };
        let mut keys: Vec<i64> = rows.iter().map(key).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..1000).collect::<Vec<_>>());
        let values: Vec<_> = rows.iter().map(|row| row[1].clone().unwrap()).collect();
        assert!(values.iter().all(|value| value.len() == 32 && *value == values[0]));
    }
    for (columns, last) in [(16, ">600us"), (21, ">800us")] {
        let line = "-k 1000 -o S:32 -w RU,100 -a -c 142 -W 12 --latency";
        // Before asbench -t are operations.
        let ended = done(&home, &serve, &format!("{line} {columns},4 -t 5000 --out out-{columns}"));
        assert_eq!(sum(&ended.stdout, "read"), 5000);
        assert!(ended.stderr.starts_with("generation patched"), "{}", ended.stderr);
        let heading = ended.stdout.lines().find(|line| line.contains("<=40us")).unwrap();
        assert!(heading.ends_with(last) && heading.starts_with("      <=40us >40us >80us"));
        let row = ended.stdout.lines().find(|line| line.starts_with("read ")).unwrap();
        let shares: Vec<f64> = row["read  ".len()..]
            .split('%')
            .filter(|share| !share.trim().is_empty())
            .map(|share| share.trim().parse().expect(row))
            .collect();
        assert_eq!(shares.len(), columns, "{row}");
        // Above the first limit is what is not below it; each column has less than the one before.
        assert!((shares[0] + shares[1] - 100.0).abs() < 0.11, "{row}");
        assert!(shares[1..].windows(2).all(|pair| pair[1] <= pair[0]), "{row}");
        // The same table from the run directory.
        let out = format!("out-{columns}");
        let again = home.run(&["report", &out, "--latency-table", &format!("{columns},40us")]);
        assert_eq!(again.status, Some(0), "{again:?}");
        assert!(again.stdout.contains("read service") && again.stdout.contains(last));
    }
    assert_eq!(serve.control().query("SELECT key FROM test.testset").unwrap().len(), 1000);
}

#[test]
fn asbench_tells_hits_misses_percentiles_and_writes_its_files() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    done(&home, &serve, "-k 500 -o I4,S5,B7,D,b,[2*I1] -w I -R");
    let columns = "testbin, testbin_2, testbin_3, testbin_4, testbin_5, testbin_6";
    let rows = serve.control().query(&format!("SELECT {columns} FROM test.testset")).unwrap();
    let sizes = |row: &Vec<Option<Vec<u8>>>| -> Vec<usize> {
        row.iter().map(|cell| cell.as_ref().unwrap().len()).collect()
    };
    assert_eq!(rows.len(), 500);
    assert!(rows.iter().all(|row| sizes(row)[..5] == [8, 5, 7, 8, 1]), "{:?}", rows[0]);
    assert_ne!(rows[0][1], rows[1][1], "-R");
    // Half of the keys that are asked for are not there.
    let line = "-k 1000 -o I4,S5,B7,D,b,[2*I1] -w RU,90,50,50 -L -t 2 -g 1000 --out run \
                --hdr-hist hists --output-file periods --percentiles 50,99";
    let ended = run(&home, &serve, line);
    // Reads that find nothing are no success.
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (reads, writes) = (sum(&ended.stdout, "read"), sum(&ended.stdout, "write"));
    assert_eq!(reads + writes, sum(&ended.stdout, "total"));
    let summary = RunDir(home.at("run")).summary();
    assert_eq!(summary.ops, reads + writes, "{ended:?}");
    assert!(reads > 4 * writes && ended.stdout.contains("(hit="), "{}", ended.stdout);
    assert!(ended.stderr.contains("caveat asbench-schedule:"), "{}", ended.stderr);
    assert!(ended.stderr.contains("caveat rows-missing:"), "{}", ended.stderr);
    let hdr = ended.stdout.lines().rev().find(|line| line.starts_with("hdr: read ")).unwrap();
    assert_eq!(hdr.split(", ").count(), 6, "{hdr}");
    let periods = fs::read_to_string(home.at("periods")).unwrap();
    assert!(periods.lines().any(|line| line.starts_with("read_hist ")), "{periods}");
    let files = fs::read_dir(home.at("hists")).unwrap().count();
    assert_eq!(files, 4, "of reads and writes a histogram and a table");
}

#[test]
fn stages_follow_one_another_and_an_endless_one_ends_by_a_signal() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let stages = "- stage: 1\n  desc: fill\n  workload: I\n  key-start: 1\n  key-end: 301\n\
                  - stage: 2\n  desc: ask\n  workload: RU,100\n  key-start: 1\n  key-end: 301\n  \
                  duration: 1\n";
    fs::write(home.at("stages.yml"), stages).unwrap();
    let ended = done(&home, &serve, "-o S9 --workload-stages stages.yml");
    let heads: Vec<_> = ended.stdout.lines().filter(|line| line.starts_with("Stage ")).collect();
    assert_eq!(heads, ["Stage 1: fill", "Stage 2: ask"]);
    assert_eq!(sum(&ended.stdout, "write"), 300);
    assert!(sum(&ended.stdout, "read") > 0 && !ended.stdout.contains("miss=1"));
    assert_eq!(ended.stderr.lines().filter(|line| line.starts_with("run: ")).count(), 2);
    // As the study ends its runs.
    let words = words(&serve, "-k 300 -K 1 -o S:9 -w RU,100 -a -c 8 --latency 21,4");
    let process = home.start(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(rig::eventually(Duration::from_secs(30), || process.stdout().contains("read(tps=")));
    assert!(process.signal(Signal::TERM));
    let ended = process.wait(Duration::from_secs(30));
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stdout.lines().any(|line| line.starts_with("read ")), "{ended:?}");
}

#[test]
fn what_is_not_built_is_refused_and_explained_is_nothing_done() {
    let home = Home::new();
    for (line, says) in [
        ("asbench --protocol cql -w DB", "workload 'DB': is not built"),
        ("asbench --protocol cql -e 5", "-e is not built"),
        ("asbench --protocol cql --out x --workload-stages none.yml", "cannot read 'none.yml'"),
        ("asbench --protocol cql --client-cpus x", "--client-cpus"),
        ("asbench --nonsense", "there is no option --nonsense: "),
        ("asbench --latency 0,0", "--latency 0,0: "),
        ("explain asbench --help", "help and version drive nothing"),
    ] {
        let ended = home.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.status, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(says), "{line}: {ended:?}");
    }
    let line = "explain asbench --protocol cql -h 192.0.2.1 -k 100000000 -o S:32 -w RU,100 -a \
                -c 142 -W 12 --latency 16,4";
    let ended = home.run(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for said in [
        "generation   patched (--latency 16,4 would have limits beyond an hour)",
        "operation    read 100.0000 %",
        "drive        closed loop, 142 threads; warm 0s, then without an end",
        "16 columns, <=40us to >600us, shares with a decimal",
        "inferred, for the patch is not published",
    ] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let help = home.run(&["asbench", "--help"]);
    assert!(help.status == Some(0) && help.stdout.contains("--object-spec SPEC"), "{help:?}");
    // Called by its name, the program is that tool.
    let link = home.at("asbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wideload"), &link).unwrap();
    let out = home.command(&link).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("Version wideload "), "{out:?}");
}
