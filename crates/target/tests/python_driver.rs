//! The Python `cassandra-driver` and `cqlsh` use the target unmodified; what the driver does is in
//! `python/driver_check.py`.
//!
//! Without Python, pip or a network the test says so and is skipped.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "tls")]
#[path = "../../ring/tests/certs/mod.rs"]
mod certs;
#[path = "support/python.rs"]
mod python;

use std::fs;
use std::path::PathBuf;
use target::{Config, Server};

const DRIVER: &str = "cassandra-driver==3.30.1";
const CQLSH: &str = "cqlsh==6.2.2";
/// With what the driver compresses with.
const PACKAGES: [&str; 4] = [DRIVER, "lz4==4.4.5", "python-snappy==0.7.3", CQLSH];

/// A Python that has the driver and cqlsh.
fn python() -> Result<PathBuf, String> {
    let modules = "cassandra.cluster, lz4.block, snappy, cqlshlib.cqlshmain";
    python::python("python-driver", modules, &PACKAGES)
}

#[test]
fn the_python_driver_finds_what_it_needs() {
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return python::skip(&format!("no Python with {DRIVER}: {reason}")),
    };
    let script = python::script("driver_check.py");
    for (version, compression) in
        [("4", "none"), ("4", "lz4"), ("4", "snappy"), ("5", "none"), ("5", "lz4")]
    {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.threads = 2;
        let target = Server::bind(config).unwrap().start().unwrap();
        let address = target.local_addr();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        match python::run(&python, &[&script, &host, &port, version, compression]) {
            Ok(printed) => assert_eq!(printed.trim(), "ok", "v{version}, {compression}"),
            Err(error) => panic!("v{version}, {compression}: {error}"),
        }
        target.join().unwrap();
    }
}

#[cfg(feature = "tls")]
#[test]
fn it_does_so_inside_tls() {
    use ring::tls::{Identity, Server as Tls, ServerFiles};
    let python = match python() {
        Ok(python) => python,
        Err(reason) => return python::skip(&format!("no Python with {DRIVER}: {reason}")),
    };
    let script = python::script("driver_check.py");
    let dir = tempfile::tempdir().unwrap();
    let authority = certs::Authority::new(dir.path(), "ca");
    let (cert, key) = authority.sign("server", &["127.0.0.1"]);
    authority.sign("client", &[]);
    let identity = Identity { cert, key };
    let files = ServerFiles { identity, client_ca: Some(authority.pem()) };
    for (version, compression) in [("4", "none"), ("5", "lz4")] {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.threads = 2;
        config.tls = Some(Tls::new(&files).unwrap());
        let target = Server::bind(config).unwrap().start().unwrap();
        let address = target.local_addr();
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let of = [script.as_str(), &host, &port, version, compression];
        match python::run(&python, &[&of[..], &[dir.path().to_str().unwrap()]].concat()) {
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
        Err(reason) => return python::skip(&format!("no Python with {CQLSH}: {reason}")),
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
    let printed = python::run(&cqlsh, &words).unwrap();
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
