//! Protocol v5 and compression at a real Cassandra: what was written comes back verified, and the
//! run directory says how it was spoken.
//!
//! Skipped, with a line, where `tests/cassandra.rs` would be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::Outcome;
use rig::Home;
use rig::cassandra::Cluster;

#[test]
fn a_real_cassandra_is_driven_in_every_protocol() {
    let home = Home::new();
    let place = ["--listen", "127.79.1.1", "--heap", "1GiB"];
    let Some(cluster) = Cluster::up(&home, &place) else { return };
    // The last one's rows take several segments each way.
    let short = ["-p", "fieldcount=3", "-p", "fieldlength=20", "--records", "1k", "--ops", "5k"];
    let long = ["-p", "fieldcount=1", "-p", "fieldlength=300000", "--records", "20", "--ops", "60"];
    for (protocol, compression, table, rows) in [
        ("4", "none", "t4", short),
        ("4", "lz4", "t4lz4", short),
        ("4", "snappy", "t4snappy", short),
        ("5", "none", "t5", short),
        ("5", "lz4", "t5lz4", short),
        ("5", "lz4", "t5long", long),
    ] {
        let how = ["--protocol", protocol, "--compression", compression, "--table", table];
        let load = ["--threads", "8", "--warm", "0s", "--settle", "0s", "-p", "dataintegrity=true"];
        let ended = cluster.run(&[&["ycsb:a"], &how[..], &load, &rows].concat());
        assert_eq!(ended.status, Some(0), "{how:?}: {ended:?}");
        let summary = ended.summary();
        assert_eq!((summary.errors, summary.outcomes.of(Outcome::Ok)), (0, summary.ops), "{how:?}");
        assert_eq!(summary.target.protocol, protocol.parse().ok());
    }
}
