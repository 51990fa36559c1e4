//! The Java and Python HdrHistogram libraries read our logs and compute equal percentiles.
//!
//! The libraries come from their registries once and stay under `target/test-tools`; without
//! Python, Java, Maven or a network the test says so and is skipped. Counts are multiples of 1000,
//! so that every rank is whole: the Python library rounds a fractional rank, the other two take the
//! next.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use record::hlog::HlogWriter;
use record::{IntervalRecord, Latency, OpNames, Outcome, Tag};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use units::Nanos;

/// Says why a test did not run: on stderr, and in the file that the test runner names.
fn skip(reason: &str) {
    eprintln!("SKIP: {reason}");
    if let Some(path) = std::env::var_os("WIDELOAD_SKIP_FILE") {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut f| writeln!(f, "SKIP: {reason}")).unwrap();
    }
}

fn tools() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs a command to its end; its output, or why it failed.
fn run(program: impl AsRef<Path>, args: &[&str]) -> Result<String, String> {
    let program = program.as_ref();
    let name = program.display();
    let out = Command::new(program).args(args).output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let text = [out.stderr, out.stdout].concat();
    Err(format!("{name}: {}: {}", out.status, String::from_utf8_lossy(&text).trim()))
}

/// Two intervals of two operations, with failures, a step and values over nine decades.
fn intervals() -> [IntervalRecord; 2] {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        Nanos(seed >> (22 + seed % 32))
    };
    [0, 1].map(|second| {
        let mut interval = IntervalRecord::new(&[0, 2]);
        (interval.start, interval.end) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
        for _ in 0..3000 {
            let (service, lag) = (draw(), draw());
            interval.ops[0].record(Outcome::Ok, service, service + lag, lag);
            interval.ops[1].record(Outcome::Error, service, service + lag, lag);
            interval.ops[1].record_part(0, service);
        }
        interval
    })
}

/// Writes the log; returns what every reader must find in it.
fn write_log(path: &Path) -> BTreeMap<String, Value> {
    let names = [
        OpNames::single("read"),
        OpNames { name: "read_modify_write".into(), parts: vec!["read".into(), "update".into()] },
    ];
    let intervals = intervals();
    let base = Nanos::from_secs(1_700_000_000);
    let mut log = HlogWriter::new(fs::File::create(path).unwrap(), base).unwrap();
    let mut all = IntervalRecord::new(&[0, 2]);
    for interval in &intervals {
        log.write_interval(&names, interval, Nanos::ZERO).unwrap();
        all.merge(interval);
    }
    log.finish().unwrap();
    let mut expected = BTreeMap::new();
    let (read, rmw) = (&all.ops[0], &all.ops[1]);
    for (tag, latency) in [
        ("read-service", &read.service),
        ("read-response", &read.response),
        ("read-lag", &read.lag),
        ("read_modify_write-lag", &rmw.lag),
        ("read_modify_write-failed_service", &rmw.failed_service),
        ("read_modify_write-failed_response", &rmw.failed_response),
        ("read_modify_write-class_error", rmw.class(Outcome::Error).unwrap()),
        ("read_modify_write-part_read", &rmw.parts[0]),
    ] {
        assert!(Tag::parse(tag).is_some(), "{tag}");
        expected.insert(tag.to_owned(), figures(latency));
    }
    expected
}

fn figures(latency: &Latency) -> Value {
    let at = |q| latency.quantile(q).0;
    json!({ "count": latency.count(), "p50": at(0.5), "p99": at(0.99), "p99.9": at(0.999),
            "max": latency.max().0 })
}

fn compare(printed: &str, expected: &BTreeMap<String, Value>) {
    let found: BTreeMap<String, Value> = serde_json::from_str(printed).unwrap();
    assert_eq!(&found, expected);
}

#[test]
fn the_python_library_reads_equal_percentiles() {
    let venv = tools().join("python");
    let python = venv.join("bin/python");
    let made = || -> Result<(), String> {
        if run(&python, &["-c", "import hdrh.log"]).is_ok() {
            return Ok(());
        }
        let venv = venv.to_str().ok_or("the target directory is not UTF-8")?;
        run("python3", &["-m", "venv", "--clear", venv])?;
        let install = ["-m", "pip", "install", "-q", "--retries", "1", "hdrhistogram==0.10.8"];
        run(&python, &install).map(drop)
    };
    if let Err(why) = made() {
        return skip(&format!("Python reader of .hlog: {}", why.replace('\n', " ")));
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("latency.hlog");
    let expected = write_log(&log);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/read_hlog.py");
    compare(&run(python, &[program, log.to_str().unwrap()]).unwrap(), &expected);
}

#[test]
fn the_java_library_reads_equal_percentiles() {
    let jars = tools().join("java");
    let jar = jars.join("HdrHistogram-2.2.2.jar");
    let made = || -> Result<(), String> {
        run("java", &["-version"])?;
        if jar.exists() {
            return Ok(());
        }
        let to = format!("-DoutputDirectory={}", jars.display());
        let what = "-Dartifact=org.hdrhistogram:HdrHistogram:2.2.2";
        run("mvn", &["-q", "-B", "dependency:copy", what, &to]).map(drop)
    };
    if let Err(why) = made() {
        return skip(&format!("Java reader of .hlog: {}", why.replace('\n', " ")));
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("latency.hlog");
    let expected = write_log(&log);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java/ReadHlog.java");
    let args = ["-cp", jar.to_str().unwrap(), program, log.to_str().unwrap()];
    compare(&run("java", &args).unwrap(), &expected);
}
