//! A real Cassandra that takes TLS alone and wants a certificate of its clients: it is driven in
//! every protocol, and whoever comes otherwise is told why it does not work.
//!
//! Needs what `tests/cassandra.rs` needs, else it is skipped with the reason.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../ring/tests/certs/mod.rs"]
mod certs;
mod rig;

use certs::Authority;
use record::Outcome;
use rig::Home;
use rig::cassandra::Cluster;
use std::fs;
use std::path::Path;

const ADDRESS: &str = "127.79.9.1";

/// `--set cassandra.client_encryption_options...`, with keys and certificates in PEM.
fn settings(dir: &Path) -> Vec<String> {
    let at = |name: &str| dir.join(name).display().to_string();
    let factory = "org.apache.cassandra.security.PEMBasedSslContextFactory";
    [
        ("enabled", "true".to_owned()),
        ("optional", "false".to_owned()),
        ("require_client_auth", "true".to_owned()),
        ("ssl_context_factory.class_name", factory.to_owned()),
        ("keystore", at("own.pem")),
        ("truststore", at("ca.pem")),
    ]
    .into_iter()
    .flat_map(|(key, value)| {
        ["--set".to_owned(), format!("cassandra.client_encryption_options.{key}={value}")]
    })
    .collect()
}

#[test]
fn a_real_cassandra_that_wants_certificates_is_driven() {
    let home = Home::new();
    let dir = home.at("certs");
    fs::create_dir(&dir).unwrap();
    let authority = Authority::new(&dir, "ca");
    let (cert, key) = authority.sign("server", &[ADDRESS]);
    let both = [fs::read(&key).unwrap(), fs::read(&cert).unwrap()].concat();
    fs::write(dir.join("own.pem"), both).unwrap();
    let (cert, key) = authority.sign("client", &[]);
    let settings = settings(&dir);
    let settings: Vec<_> = settings.iter().map(String::as_str).collect();
    let place = ["--listen", ADDRESS, "--heap", "1GiB"];
    let Some(cluster) = Cluster::up(&home, &[&place[..], &settings].concat()) else { return };
    let pem = authority.pem();
    let ca = ["--tls", "--tls-ca", pem.to_str().unwrap()];
    let ours = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let load = ["ycsb:a", "--threads", "8", "--warm", "0s", "--settle", "0s", "--records", "1k"];
    let much = ["--ops", "5k", "-p", "dataintegrity=true"];
    for (protocol, compression, table) in [("4", "none", "t4"), ("5", "lz4", "t5")] {
        let how = ["--protocol", protocol, "--compression", compression, "--table", table];
        let ended = cluster.run(&[&load[..], &much, &ca, &ours, &how].concat());
        assert_eq!(ended.status, Some(0), "{how:?}: {ended:?}");
        let summary = ended.summary();
        assert_eq!((summary.errors, summary.outcomes.of(Outcome::Ok)), (0, summary.ops), "{how:?}");
    }
    for (tls, says) in [
        (&[][..], "speaks TLS: add --tls"),
        (&ca[..], "wants a client's certificate"),
        (&[&ours[..], &["--tls"]].concat(), "not signed by an authority"),
    ] {
        let ended = cluster.run(&[&load[..], &much, tls].concat());
        assert_eq!(ended.status, Some(2), "{tls:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{tls:?}: {ended:?}");
    }
}
