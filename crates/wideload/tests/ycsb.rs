//! `wideload ycsb`: command lines of YCSB as they are, on the reference target and on nothing, and
//! scripts that read what it prints.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Ended, Home, RunDir, Serve};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WORKLOAD_A: &str = "\
# As the original's file, smaller.
recordcount=1000
operationcount=1000
workload=site.ycsb.workloads.CoreWorkload
readallfields=true
readproportion=0.5
updateproportion=0.5
scanproportion=0
insertproportion=0
requestdistribution=zipfian
";

/// A home with the workload file `a`, and a target.
fn served() -> (Home, Serve) {
    let home = Home::new();
    fs::write(home.at("a"), WORKLOAD_A).unwrap();
    let serve = Serve::start(&home, &[]);
    (home, serve)
}

/// A line of YCSB at a target.
fn line(serve: &Serve, text: &str) -> Vec<String> {
    let (host, port) = (serve.address.ip(), serve.address.port());
    let mut words: Vec<_> = format!("ycsb {text}").split(' ').map(str::to_owned).collect();
    let at = [format!("hosts={host}"), format!("port={port}")];
    at.into_iter().for_each(|pair| words.extend(["-p".to_owned(), pair]));
    words
}

fn run(home: &Home, words: &[String]) -> Ended {
    home.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs a line that must end well.
fn done(home: &Home, words: &[String]) -> Ended {
    let ended = run(home, words);
    assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
    ended
}

/// The value of a figure of the text form.
fn figure(text: &str, metric: &str, measurement: &str) -> f64 {
    let head = format!("[{metric}], {measurement}, ");
    let values: Vec<_> = text.lines().filter_map(|line| line.strip_prefix(&head)).collect();
    assert_eq!(values.len(), 1, "{head}: {text}");
    values[0].parse().unwrap()
}

fn rows(serve: &Serve) -> usize {
    serve.control().query("SELECT y_id FROM ycsb.usertable").unwrap().len()
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ycsb").join(name)
}

/// What the lab's own script makes of a text.
fn throughput_and_latency(text: &str) -> Option<String> {
    let mut shell = Command::new("sh")
        .arg(script("throughput_and_latency.sh"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = shell.wait_with_output().unwrap();
    if !out.status.success() {
        println!("SKIP: there is no awk here");
        return None;
    }
    Some(String::from_utf8(out.stdout).unwrap().trim().to_owned())
}

#[test]
fn load_and_run_at_a_target() {
    let (home, serve) = served();
    let absent = run(&home, &line(&serve, "load cassandra-cql -P a"));
    assert_eq!(absent.status, Some(2), "{absent:?}");
    for part in ["--create", "CREATE KEYSPACE", "CREATE TABLE", "y_id text PRIMARY KEY", "field9"] {
        assert!(absent.stderr.contains(part), "{part}: {}", absent.stderr);
    }

    let load = "load cassandra-cql -P a -threads 8 --create --out load";
    let text = done(&home, &line(&serve, load)).stdout;
    assert_eq!(rows(&serve), 1000);
    assert!(text.starts_with("[OVERALL], RunTime(ms), "), "{text}");
    assert_eq!(figure(&text, "INSERT", "Operations"), 1000.0);
    assert_eq!(figure(&text, "INSERT", "Return=OK"), 1000.0);
    let metrics: Vec<_> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
    let at = |metric: &str| metrics.iter().position(|m| *m == metric).unwrap();
    assert!(at("[TOTAL_GCs]") < at("[CLEANUP]") && at("[CLEANUP]") < at("[INSERT]"), "{text}");

    let ended = done(&home, &line(&serve, "run cassandra-cql -P a -threads 8 -s --out run"));
    let text = &ended.stdout;
    let (reads, updates) = (figure(text, "READ", "Return=OK"), figure(text, "UPDATE", "Return=OK"));
    assert_eq!(reads + updates, 1000.0);
    assert!((350.0..650.0).contains(&reads), "{text}");
    let p = |percentile: &str| figure(text, "READ", &format!("{percentile}PercentileLatency(us)"));
    let (min, max) =
        (figure(text, "READ", "MinLatency(us)"), figure(text, "READ", "MaxLatency(us)"));
    assert!(
        min <= p("50th") && p("50th") <= p("95th") && p("95th") <= p("99th") && p("99th") <= max
    );
    let mean = figure(text, "READ", "AverageLatency(us)");
    assert!((min..=max).contains(&mean), "{text}");
    let (ms, rate) =
        (figure(text, "OVERALL", "RunTime(ms)"), figure(text, "OVERALL", "Throughput(ops/sec)"));
    assert!((rate * ms / 1000.0 - 1000.0).abs() < 1e-6, "{text}");
    let status: Vec<_> = ended.stderr.lines().filter(|l| l.contains(" sec: ")).collect();
    assert!(status.len() >= 2 && status[0].contains("0 operations;"), "{}", ended.stderr);
    assert!(status.last().unwrap().contains("1000 operations;"), "{}", ended.stderr);
    assert!(status.last().unwrap().contains("[READ: Count="), "{}", ended.stderr);

    // The same in wideload's own words, and the lab's script.
    let directory = RunDir(home.at("run"));
    let summary = directory.summary();
    assert_eq!((summary.ops, summary.errors), (1000, 0));
    assert_eq!(summary.latency_us["read"].ops as f64, reads);
    assert!(home.at("run/report.html").is_file());
    let settings = directory.manifest().settings;
    assert_eq!(settings["consistency"], "QUORUM");
    assert_eq!(settings["ycsb"]["properties"]["requestdistribution"], "zipfian");
    if let Some(line) = throughput_and_latency(text) {
        assert!(line.starts_with(&format!("{rate:.3},[")), "{line}");
        assert!(line.contains(&format!(",[READ],{reads},{mean:.1},{}", p("99th"))), "{line}");
        assert!(line.contains(&format!(",[UPDATE],{updates},")), "{line}");
    }
}

#[test]
fn a_line_is_explained_and_nothing_is_done() {
    let (home, serve) = served();
    let before = serve.executed();
    let explained = |text: &str| {
        let words = line(&serve, text);
        let ended = done(&home, &[&["explain".to_owned()], &words[..]].concat());
        assert!(ended.stderr.is_empty(), "{ended:?}");
        ended.stdout
    };
    let says = |text: &str, parts: &[String]| {
        for part in parts {
            assert!(text.contains(&format!("{part}\n")), "{part}: {text}");
        }
    };
    let of = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    let fields: Vec<_> = (0..10).map(|n| format!("field{n}")).collect();
    let columns = fields.iter().map(|name| format!("{name} text")).collect::<Vec<_>>().join(", ");
    let table = format!("ycsb.usertable (y_id text PRIMARY KEY, {columns})");
    let load = explained("load cassandra-cql -P a -threads 8 --create");
    assert!(load.contains(&format!("create       CREATE TABLE IF NOT EXISTS {table}")), "{load}");
    let insert = format!(
        "prepare      INSERT INTO ycsb.usertable (y_id, {}) VALUES ({}?)",
        fields.join(", "),
        "?, ".repeat(10)
    );
    says(&load, &of(&[&insert, "operation    insert 100.0000 %"]));
    assert!(load.contains("drive        closed loop, 8 threads; warm 0s, then every key once"));
    let run = explained(
        "run cassandra-cql -P a -threads 8 -target 500 -p updateproportion=0 -p unknown=1 \
         -p readmodifywriteproportion=0.5 -p cassandra.readconsistencylevel=ONE",
    );
    assert!(run.contains("expect       ycsb.usertable, as by CREATE TABLE"), "{run}");
    assert!(!run.contains("\ncreate ") && !run.contains("\nload "), "{run}");
    says(
        &run,
        &of(&[
            "look for     1000 of the 1000 rows",
            "operation    read 50.0000 %",
            "operation    read-modify-write 50.0000 %: read, then update",
            &format!(
                "prepare      SELECT y_id, {} FROM ycsb.usertable WHERE y_id = ? LIMIT 1",
                fields.join(", ")
            ),
            "prepare      UPDATE ycsb.usertable SET field9 = ? WHERE y_id = ?",
        ]),
    );
    for part in
        ["constant arrivals at 500/s, at most 8 in flight", "then 1000 operations", "unknown"]
    {
        assert!(run.contains(part), "{part}: {run}");
    }
    assert_eq!(serve.executed(), before, "nothing was done");
    assert!(!home.at("runs").exists());

    let basic = ["explain", "ycsb", "run", "basic", "-P", "a", "-p", "basicdb.simulatedelay=5"];
    let text = done(&home, &basic.map(str::to_owned)).stdout;
    says(
        &text,
        &of(&[
            "operation    update 50.0000 %",
            "print        READ usertable KEY [ <all fields>]",
            "print        UPDATE usertable KEY [ field9=VALUE ]",
            "wait         less than 5 ms before each",
            "drive        1 threads, 1000 operations",
        ]),
    );
    let unknown = home.run(&["explain", "ycsb", "run", "mongodb", "-P", "a"]);
    assert_eq!(unknown.status, Some(2), "{unknown:?}");
}

#[test]
fn a_schedule_intended_times_histogram_logs_and_json() {
    let (home, serve) = served();
    done(&home, &line(&serve, "load cassandra-cql -P a --create -threads 4"));
    fs::create_dir(home.at("hdr")).unwrap();
    let words = "run cassandra-cql -P a -threads 4 -target 2000 -p measurement.interval=both \
                 -p hdrhistogram.fileoutput=true -p hdrhistogram.output.path=hdr/ \
                 -p hdrhistogram.percentiles=50,99.9 -p exportfile=out.json \
                 -p exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter";
    let ended = done(&home, &line(&serve, words));
    assert!(ended.stdout.is_empty(), "{ended:?}");
    let text = fs::read_to_string(home.at("out.json")).unwrap();
    let figures: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let of = |metric: &str, measurement: &str| {
        let is = |f: &&serde_json::Value| f["metric"] == metric && f["measurement"] == measurement;
        figures.iter().find(is).unwrap_or_else(|| panic!("{metric} {measurement}: {text}"))["value"]
            .as_f64()
            .unwrap()
    };
    let runtime_ms = of("OVERALL", "RunTime(ms)");
    assert!(runtime_ms > 450.0, "1000 operations at 2000/s take half a second: {runtime_ms}");
    for operation in ["READ", "UPDATE"] {
        let intended = format!("Intended-{operation}");
        assert_eq!(of(operation, "Operations"), of(&intended, "Operations"));
        let slower = of(&intended, "AverageLatency(us)") - of(operation, "AverageLatency(us)");
        assert!(slower > 0.0, "{text}");
        of(operation, "99.9PercentileLatency(us)");
        for file in [operation, &intended] {
            let log = fs::read_to_string(home.at(&format!("hdr/{file}.hdr"))).unwrap();
            assert!(log.contains("Histogram log format version 1.3"), "{log}");
            let entries = record::hlog::HlogReader::new(log.as_bytes());
            let counts: u64 = entries.map(|entry| entry.unwrap().latency.count()).sum();
            assert_eq!(counts as f64, of(operation, "Operations"), "{file}");
        }
    }
    let python =
        Command::new("python3").arg(script("from_json.py")).arg(home.at("out.json")).output();
    match python {
        Ok(out) if out.status.success() => {
            let told = String::from_utf8(out.stdout).unwrap();
            assert!(told.contains("\nREAD.Return=OK="), "{told}");
        }
        _ => println!("SKIP: there is no python3 here"),
    }
}

#[test]
fn a_read_modify_write_reads_and_updates() {
    let (home, serve) = served();
    done(&home, &line(&serve, "load cassandra-cql -P a --create -threads 4"));
    let mix = "run cassandra-cql -P a -threads 4 -p updateproportion=0 \
               -p readmodifywriteproportion=0.5";
    let text = done(&home, &line(&serve, mix)).stdout;
    let of = |metric: &str| figure(&text, metric, "Operations");
    assert_eq!(of("READ"), 1000.0, "{text}");
    assert_eq!(of("READ-MODIFY-WRITE"), of("UPDATE"), "{text}");
    assert!((350.0..650.0).contains(&of("UPDATE")), "{text}");
    assert!(!text.contains("[READ-MODIFY-WRITE], Return"), "{text}");
}

#[test]
fn rows_that_are_not_there_and_time_that_is_over() {
    let (home, serve) = served();
    let half = "load cassandra-cql -P a --create -threads 4 -p insertcount=500";
    assert_eq!(figure(&done(&home, &line(&serve, half)).stdout, "INSERT", "Return=OK"), 500.0);
    assert_eq!(rows(&serve), 500);
    let words = "run cassandra-cql -P a -threads 2 -p operationcount=1000000000 \
                 -p maxexecutiontime=1 -p requestdistribution=uniform -p updateproportion=0 \
                 --out run";
    let ended = run(&home, &line(&serve, words));
    // Half of the reads find nothing: that is more than 1 % errors.
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let text = &ended.stdout;
    let (ok, absent) =
        (figure(text, "READ", "Return=OK"), figure(text, "READ", "Return=NOT_FOUND"));
    assert!(ok > 0.0 && absent > 0.0, "{text}");
    assert_eq!(figure(text, "READ", "Operations"), ok);
    assert_eq!(figure(text, "READ-FAILED", "Operations"), absent);
    assert!((900.0..20_000.0).contains(&figure(text, "OVERALL", "RunTime(ms)")), "{text}");
    let codes: Vec<_> = RunDir(home.at("run")).summary().caveats;
    assert!(codes.iter().any(|caveat| caveat.code == "rows-missing"), "{codes:?}");
    assert!(ended.stderr.contains("Maximum execution time specified as: 1 secs"), "{ended:?}");
}

#[test]
fn the_password_of_a_line_is_nowhere() {
    let (home, serve) = served();
    let word = "hunter-77-two";
    let words = format!(
        "run cassandra-cql -P a --create -p cassandra.username=ann -p cassandra.password={word} \
         -p operationcount=10 --out run"
    );
    let ended = run(&home, &line(&serve, &words));
    assert!(!ended.stdout.contains(word) && !ended.stderr.contains(word), "{ended:?}");
    assert!(ended.stderr.contains("cassandra.password=(redacted)"), "{ended:?}");
    let directory = RunDir(home.at("run"));
    for file in directory.files().iter().filter(|file| !file.ends_with('/')) {
        let bytes = fs::read(home.at("run").join(file)).unwrap();
        assert!(!bytes.windows(word.len()).any(|w| w == word.as_bytes()), "{file}");
    }
    let summary = directory.summary();
    assert!(summary.caveats.iter().any(|caveat| caveat.code == "password-shown"));
}

#[test]
fn basic_prints_operations() {
    let home = Home::new();
    fs::write(home.at("a"), WORKLOAD_A).unwrap();
    let text = done(&home, &words("load basic -P a -p recordcount=3 -p fieldcount=2")).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "***************** properties *****************");
    assert!(lines.contains(&"\"recordcount\"=\"3\""), "{text}");
    let inserts: Vec<_> = lines.iter().filter(|l| l.starts_with("INSERT usertable user")).collect();
    assert_eq!(inserts.len(), 3, "{text}");
    assert!(inserts[0].starts_with("INSERT usertable user6284781860667377211 [ field0="), "{text}");
    assert!(inserts[0].contains(" field1=") && inserts[0].ends_with(" ]"), "{text}");
    assert_eq!(figure(&text, "INSERT", "Return=OK"), 3.0);

    let quiet = "run basic -P a -threads 3 -p basicdb.verbose=false -p basicdb.count=true \
                 -p basicdb.simulatedelay=2 -p basicdb.randomizedelay=false -p operationcount=30";
    let text = done(&home, &words(quiet)).stdout;
    assert!(!text.contains("READ usertable"), "{text}");
    let reads = figure(&text, "READ", "Operations");
    assert_eq!(reads + figure(&text, "UPDATE", "Operations"), 30.0);
    assert!(figure(&text, "READ", "MinLatency(us)") >= 2000.0, "{text}");
    assert!(figure(&text, "READS", "Uniques") <= reads, "{text}");
    assert_eq!(figure(&text, "DELETES", "Uniques"), 0.0);

    let fields = "run basic -P a -p operationcount=20 -p readallfields=false -p updateproportion=0";
    let text = done(&home, &words(fields)).stdout;
    let reads: Vec<_> = text.lines().filter(|l| l.starts_with("READ usertable user")).collect();
    assert_eq!(reads.len(), 20);
    assert!(reads.iter().all(|l| l.contains(" [ field") && l.ends_with(" ]")), "{text}");
}

fn words(text: &str) -> Vec<String> {
    format!("ycsb {text}").split(' ').map(str::to_owned).collect()
}

#[test]
fn lines_that_are_none_are_refused_with_the_cure() {
    let home = Home::new();
    fs::write(home.at("a"), WORKLOAD_A).unwrap();
    for (text, told) in [
        ("run mongodb -P a", "binding 'mongodb' is not driven here"),
        ("run cassandra-cql -P a", "hosts=HOST"),
        ("run cassandra-cql -P a -p hosts=x -p cassandra.useSSL=true", "no TLS"),
        ("run basic -P b", "cannot read property file 'b'"),
        ("run basic", "Missing property: workload"),
        ("run basic -P a -x", "word 5 of the line, '-x'"),
        ("run basic -P a -p measurementtype=none", "measurementtype='none'"),
        ("run cassandra-cql -P a -p hosts=x -p cassandra.readconsistencylevel=MOST", "MOST"),
    ] {
        let ended = run(&home, &words(text));
        assert_eq!(ended.status, Some(2), "{text}: {ended:?}");
        assert!(ended.stderr.contains(told), "{text}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{text}: {ended:?}");
    }
}
