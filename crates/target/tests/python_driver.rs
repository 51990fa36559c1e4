//! The Python `cassandra-driver` uses the target unmodified; what it does is in
//! `python/driver_check.py`.
//!
//! Without Python, pip or a network the test says so and is skipped.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[path = "support/python.rs"]
mod python;

use target::{Config, Server};

const DRIVER: &str = "cassandra-driver==3.30.1";
/// With what it compresses with.
const PACKAGES: [&str; 3] = [DRIVER, "lz4==4.4.5", "python-snappy==0.7.3"];

#[test]
fn the_python_driver_finds_what_it_needs() {
    let modules = "cassandra.cluster, lz4.block, snappy";
    let python = match python::python("python-driver", modules, &PACKAGES) {
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
