//! Aerospike's Python client uses the target unmodified; what it does is in
//! `python/aerospike_check.py`.
//!
//! Without Python, pip or a network the test says so and is skipped.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[path = "support/python.rs"]
mod python;

use target::{Config, Protocol, Server};

const CLIENT: &str = "aerospike==19.3.0";

#[test]
fn the_python_client_finds_what_it_needs() {
    let python = match python::python("python-aerospike", "aerospike", &[CLIENT]) {
        Ok(python) => python,
        Err(reason) => return python::skip(&format!("no Python with {CLIENT}: {reason}")),
    };
    let script = python::script("aerospike_check.py");
    let namespaces = vec!["test".to_owned(), "other".to_owned()];
    let config = Config {
        protocol: Protocol::Aerospike { namespaces, instances: target::Instances::default() },
        threads: 2,
        ..Config::new("127.0.0.1:0".parse().unwrap())
    };
    let target = Server::bind(config).unwrap().start().unwrap();
    let address = target.local_addr();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    match python::run(&python, &["-W", "ignore", &script, &host, &port]) {
        Ok(printed) => assert_eq!(printed.trim(), "ok"),
        Err(error) => panic!("{error}"),
    }
    target.join().unwrap();
}
