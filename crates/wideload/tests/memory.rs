//! What a run holds in memory does not depend on how long it is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, alone};

#[test]
fn a_thousand_clients_fit_in_64_mib_however_many_intervals_there_are() {
    let _alone = alone();
    let home = Home::new();
    let resident_mib = |duration: &str, interval: &str| {
        let load = ["run", "ycsb:a", "--records", "1k", "--threads", "1000", "--warm", "200ms"];
        let window = ["--duration", duration, "--interval", interval];
        let summary = home.summary(&[&load[..], &window].concat());
        summary.client.rss_mib_max.expect("Linux tells")
    };
    let (short, long) = (resident_mib("1s", "1s"), resident_mib("8s", "10ms"));
    println!("resident at most: {short:.1} MiB with 1 interval, {long:.1} MiB with 800");
    assert!(short <= 64.0 && long <= 64.0, "{short} MiB and {long} MiB");
}
