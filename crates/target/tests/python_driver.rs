//! The Python `cassandra-driver` and `cqlsh` use the target unmodified; what the driver does is in
//! `python/driver_check.py`.
//!
//! They come from their registry once and stay under `target/test-tools`; without Python, pip
//! or a network the test says so and is skipped.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use target::{Config, Server};

const DRIVER: &str = "cassandra-driver==3.30.1";
/// What it compresses with.
const CODECS: [&str; 2] = ["lz4==4.4.5", "python-snappy==0.7.3"];
const CQLSH: &str = "cqlsh==6.2.2";

/// Says why a test did not run: on stderr, and in the file that the test runner names.
fn skip(reason: &str) {
    eprintln!("SKIP: {reason}");
    if let Some(path) = std::env::var_os("WIDELOAD_SKIP_FILE") {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut f| writeln!(f, "SKIP: {reason}")).unwrap();
    }
}

/// Runs a command to its end; its output, or why it failed.
fn run(program: &Path, args: &[&str]) -> Result<String, String> {
    let name = program.display();
    let out = Command::new(program).args(args).output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let text = [out.stderr, out.stdout].concat();
    Err(format!("{name}: {}: {}", out.status, String::from_utf8_lossy(&text).trim()))
}

/// A Python that has the driver and cqlsh.
fn python() -> Result<PathBuf, String> {
    // Tests of this file run at once.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock();
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools");
    fs::create_dir_all(&tools).unwrap();
    let venv = tools.join("python-driver");
    let python = venv.join("bin/python");
    let there = ["-c", "import cassandra.cluster, lz4.block, snappy, cqlshlib.cqlshmain"];
    if run(&python, &there).is_err() {
        run(Path::new("python3"), &["-m", "venv", "--clear", venv.to_str().unwrap()])?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", DRIVER];
        run(&python, &[&install[..], &CODECS, &[CQLSH]].concat())?;
    }
    Ok(python)
}

#[test]
fn the_python_driver_finds_what_it_needs() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return skip(&format!("no Python with {DRIVER}: {reason}")),
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/driver_check.py");
    for (version, compression) in
        [("4", "none"), ("4", "lz4"), ("4", "snappy"), ("5", "none"), ("5", "lz4")]
    {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.threads = 2;
        let target = Server::bind(config).unwrap().start().unwrap();
        let address = target.local_addr();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        match run(&python, &[script.to_str().unwrap(), &host, &port, version, compression]) {
            Ok(printed) => assert_eq!(printed.trim(), "ok", "v{version}, {compression}"),
            Err(error) => panic!("v{version}, {compression}: {error}"),
        }
        target.join().unwrap();
    }
}

#[test]
fn cqlsh_describes_queries_and_copies() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return skip(&format!("no Python with {CQLSH}: {reason}")),
    };
    let target =
        Server::bind(Config::new("127.0.0.1:0".parse().unwrap())).unwrap().start().unwrap();
    let address = target.local_addr();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let directory = tempfile::tempdir().unwrap();
    let rows = directory.path().join("rows.csv");
    let script = format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', \
         'replication_factor': 1}};\nUSE ks;\nCREATE TABLE t (k int PRIMARY KEY, v text);\n\
         DESCRIBE TABLES\nDESCRIBE TABLE t\nINSERT INTO t (k, v) VALUES (1, 'it''s');\n\
         COPY t (k, v) TO '{rows}';\nTRUNCATE t;\nCOPY t (k, v) FROM '{rows}';\n\
         SELECT * FROM t;\n",
        rows = rows.display()
    );
    let file = directory.path().join("script.cql");
    fs::write(&file, script).unwrap();
    let cqlsh = python.with_file_name("cqlsh");
    let words = [host.as_str(), &port, "--no-color", "-f", file.to_str().unwrap()];
    let printed = run(&cqlsh, &words).unwrap();
    for part in [
        "CREATE TABLE ks.t (",
        "PRIMARY KEY ((k))",
        "1 rows exported to 1 files",
        "1 rows imported from 1 files",
        "1 | it's",
        "(1 rows)",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    target.join().unwrap();
}
