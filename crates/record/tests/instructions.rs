//! What recording one value costs, in instructions: they are the same on every run, times are not.
//!
//! The test runs itself under callgrind, once recording `COUNT` values and once twice as many; the
//! difference is what `COUNT` values cost. Built with the checks of the test profile, which the
//! released program does not have.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use record::Latency;
use std::process::{Command, Stdio};
use units::Nanos;

/// Values recorded; set for the run under callgrind only.
const COUNT_VARIABLE: &str = "RECORD_COUNT";
const COUNT: u64 = 100_000;
/// The budget of the data plane (design: numbers to reach).
const INSTRUCTIONS_MAX: f64 = 60.0;

/// Times between 1 us and 16 ms, cheap to make: a multiplicative sequence.
fn record_values(count: u64) -> u64 {
    let mut latency = Latency::new();
    let mut word = 1u64;
    for _ in 0..count {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        latency.record(std::hint::black_box(Nanos(1_000 + (word >> 40))));
    }
    latency.count()
}

fn instructions(count: u64) -> Option<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "recording_one_value_stays_in_its_budget", "--test-threads=1"])
        .env(COUNT_VARIABLE, count.to_string())
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stderr);
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn recording_one_value_stays_in_its_budget() {
    if let Ok(count) = std::env::var(COUNT_VARIABLE) {
        let count = count.parse().unwrap();
        assert_eq!(record_values(count), count);
        return;
    }
    let program = std::env::current_exe().unwrap();
    if program.components().any(|part| part.as_os_str() == "debug") {
        eprintln!("SKIP: the budget is for optimised code: cargo test --profile ci");
        return;
    }
    let (Some(once), Some(twice)) = (instructions(COUNT), instructions(2 * COUNT)) else {
        eprintln!("SKIP: recording is not held to its instructions: valgrind is not installed");
        return;
    };
    let each = (twice - once) as f64 / COUNT as f64;
    println!("{each:.1} instructions per value, the loop included");
    assert!(each <= INSTRUCTIONS_MAX, "{each:.1} instructions per value");
}
