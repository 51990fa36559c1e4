//! The published lines of cassandra-stress on a real Cassandra, sizes and addresses changed. Where
//! this machine cannot start one the test says so and is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::Home;
use rig::cassandra::Cluster;
use std::time::Duration;

#[test]
fn the_published_lines_run_on_cassandra() {
    let home = Home::new();
    let up = ["--listen", "127.76.9.1", "--heap", "1GiB"];
    let Some(cluster) = Cluster::up(&home, &up) else { return };
    let host = cluster.instances[0].address.ip().to_string();
    let stress = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let line = [&["cassandra-stress"], &words[..], &["-node", &host]].concat();
        cluster.start(&line).wait(Duration::from_secs(180))
    };
    let schema =
        "-schema keyspace=ksx replication(strategy=NetworkTopologyStrategy, datacenter1=1)";
    let (mode, draws) = ("-mode native cql3", "-pop dist=gaussian(1..20000,10000,1000)");
    let lines = [
        "write no-warmup duration=5s cl=one -rate threads=1000 -schema replication(factor=3) -pop \
         seq=1..100000000 no-wrap -log interval=1"
            .to_owned(),
        format!("write no-warmup n=20000 -rate threads=100 {mode} -pop seq=1..20000 {schema}"),
        format!("read no-warmup n=20000 -rate threads=400 {mode} {draws} {schema}"),
        format!(
            "mixed ratio(write=2,read=8) no-warmup n=20000 -rate threads=400 {mode} {draws} \
             {schema}"
        ),
        "counter_write n=2000 no-warmup cl=one -rate threads=20 -pop seq=1..1000".to_owned(),
        "counter_read n=2000 no-warmup cl=one -rate threads=20 -pop seq=1..1000".to_owned(),
    ];
    for line in &lines {
        let ended = stress(line);
        assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
        assert!(ended.stdout.trim_end().ends_with("END"), "{line}: {ended:?}");
        let errors = ended.stdout.lines().find(|line| line.starts_with("Total errors"));
        assert!(errors.unwrap().contains(":          0 "), "{line}: {ended:?}");
    }
    // A row that was not written is found to be missing.
    let missing = stress("read no-warmup n=10 -rate threads=1 -pop seq=900000001..900000010");
    assert_eq!(missing.status, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("Data returned was not validated"), "{missing:?}");
}
