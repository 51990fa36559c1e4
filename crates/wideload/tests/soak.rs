//! Random faults of the reference target against random settings of the client, for a while: every
//! run ends in time and in good order, its outcomes add up, and neither side panics, hangs or keeps
//! what it should give back.
//!
//! The variable WIDELOAD_SOAK_MINUTES says how long (`cargo xtask soak --minutes N` sets it), and
//! WIDELOAD_SOAK_SEED which faults; without them it is some seconds of always the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::Engine;
use record::Outcome;
use rig::serve::counters;
use rig::{Home, Serve, eventually};
use stage::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Of a run of the suite.
const SHORT: Duration = Duration::from_secs(5);
/// Beyond the window: loading, late answers, a busy host.
const PATIENCE: Duration = Duration::from_secs(90);
/// The rows are about 1 MiB; answers that are held back are bounded by connection.
const TARGET_RSS_MIB_MAX: u64 = 512;
const CLIENT_RSS_MIB_MAX: f64 = 512.0;

/// xorshift64: G. Marsaglia, "Xorshift RNGs" (2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

fn faults(random: &mut Random, home: &Home) -> Vec<String> {
    let mut words = vec!["--faults-after".to_owned(), "2500".to_owned()];
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--fault-seed", random.below(1000).to_string());
    let mut shares = Vec::new();
    for fault in ["error", "overloaded", "unavailable", "read-timeout", "write-timeout"] {
        if random.one_in(2) {
            shares.push(format!("{fault}=0.{:03}", 1 + random.below(20)));
        }
    }
    if random.one_in(2) {
        shares.push(format!("drop=0.{:04}", 1 + random.below(20)));
    }
    if random.one_in(2) {
        shares.push(format!("late:{}ms=0.01", 100 + random.below(3000)));
    }
    if !shares.is_empty() {
        add("--fault", shares.join(","));
    }
    if random.one_in(2) {
        let time_ms = 1 + random.below(300);
        add("--stall", format!("{time_ms}ms/{}ms", time_ms * 2 + random.below(2000)));
    }
    match random.below(6) {
        0 => add("--delay", format!("{}ms", 1 + random.below(20))),
        1 => add("--delay", format!("exp:{}us", 100 + random.below(9000))),
        2 => add("--delay", format!("lognormal:1ms..{}ms", 5 + random.below(500))),
        _ => {}
    }
    if random.one_in(4) {
        add("--pieces", (1 + random.below(500)).to_string());
    }
    if random.one_in(4) {
        add("--gather", format!("{}ms", 1 + random.below(30)));
    }
    match random.below(4) {
        0 => add("--storage", "null".to_owned()),
        1 => {
            add("--storage", "lsm".to_owned());
            add("--dir", home.at("rows").display().to_string());
        }
        _ => {}
    }
    add("--engine", engine(random));
    words
}

/// Either engine; where the machine gives no io_uring, epoll.
fn engine(random: &mut Random) -> String {
    let engine = if random.one_in(2) { Engine::IoUring } else { Engine::Epoll };
    let given = if engine.check().is_ok() { engine } else { Engine::Epoll };
    given.to_string()
}

fn client(random: &mut Random, window: Duration) -> Vec<String> {
    let duration = format!("{}ms", window.as_millis());
    let mut words =
        ["run", "ycsb:a", "--records", "1k", "--warm", "0s", "--json"].map(str::to_owned).to_vec();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--duration", duration);
    add("--timeout", format!("{}ms", 200 + random.below(2000)));
    add("--connections", (1 + random.below(12)).to_string());
    add("--retries", random.below(3).to_string());
    add("--engine", engine(random));
    add("--protocol", (4 + random.below(2)).to_string());
    if random.one_in(2) {
        add("--compression", "lz4".to_owned());
    }
    match random.below(3) {
        0 => add("--rate", format!("{}/s", 500 + random.below(5000))),
        1 => add("--threads", (1 + random.below(16)).to_string()),
        _ => add("--threads", (100 + random.below(1000)).to_string()),
    }
    words
}

/// Mebibytes of a process that are in memory.
fn rss_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// One target, one client; operations and faults.
fn round(random: &mut Random, window: Duration) -> (u64, u64) {
    let home = Home::new();
    let (faults, client) = (faults(random, &home), client(random, window));
    let told = format!("serve {} | {}", faults.join(" "), client.join(" "));
    let words: Vec<_> = faults.iter().map(String::as_str).collect();
    let mut serve = Serve::start(&home, &words);
    let pid = serve.process.id().pid;
    // Without the files of the storage, which come and go as it compacts.
    let rows = home.at("rows");
    let descriptors = || {
        let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let of_rows = |fd: &Path| std::fs::read_link(fd).is_ok_and(|to| to.starts_with(&rows));
        all.filter(|fd| !of_rows(&fd.as_ref().unwrap().path())).count()
    };
    // It announces itself before its threads have all they need; who is answered has waited for
    // that, and is gone by the end of the second.
    counters(&mut serve.control());
    let mut before = usize::MAX;
    eventually(Duration::from_secs(1), || {
        before = before.min(descriptors());
        false
    });
    let target = serve.target();
    let mut words: Vec<_> = client.iter().map(String::as_str).collect();
    words.extend(["--target", &target]);
    let ended = home.start(&words).wait(window + PATIENCE);
    // 1 is more than 1 % of errors.
    assert!(matches!(ended.status, Some(0 | 1)), "{told}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{told}: {ended:?}");
    let summary = ended.summary();
    let all: u64 = Outcome::ALL.iter().map(|o| summary.outcomes.0[*o as usize]).sum();
    assert_eq!(all, summary.ops, "{told}: {summary:?}");
    assert!(summary.outcomes.0[Outcome::Ok as usize] > 0, "{told}: {summary:?}");
    assert_eq!(summary.outcomes.0[Outcome::Invalid as usize], 0, "{told}: {summary:?}");
    assert!(summary.client.rss_mib_max < Some(CLIENT_RSS_MIB_MAX), "{told}: {summary:?}");
    assert!(serve.process.is_running(), "{told}: the target has ended");
    let mut met = 0;
    let closed = eventually(Duration::from_secs(20), || {
        let counted = counters(&mut serve.control());
        let faults = counted.iter().filter(|(name, _)| name.starts_with("faults."));
        met = faults.map(|(_, count)| count).sum();
        counted["connections.accepted"] == counted["connections.closed"] + 1
    });
    assert!(closed, "{told}: connections are left: {:?}", counters(&mut serve.control()));
    let gone = eventually(Duration::from_secs(20), || descriptors() <= before);
    assert!(gone, "{told}: {} descriptors are left of {before}", descriptors());
    let rss = rss_mib(pid);
    assert!(rss < TARGET_RSS_MIB_MAX, "{told}: the target has {rss} MiB");
    assert!(serve.process.signal(Signal::TERM));
    let ended = serve.process.wait(Duration::from_secs(20));
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{told}: {ended:?}");
    home.assert_nothing_left();
    println!("{} op, {met} faults, target {rss} MiB: {told}", summary.ops);
    (summary.ops, met)
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn random_faults_for_a_while() {
    let long = number("WIDELOAD_SOAK_MINUTES").map(|minutes| Duration::from_secs(minutes * 60));
    let (whole, window) = match long {
        None => (SHORT, Duration::from_millis(1500)),
        Some(long) => (long, Duration::from_secs(15)),
    };
    let seed = number("WIDELOAD_SOAK_SEED").unwrap_or(1);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let begun = Instant::now();
    let (mut rounds, mut ops, mut faults) = (0, 0, 0);
    while rounds == 0 || begun.elapsed() + window < whole {
        let (of_ops, of_faults) = round(&mut random, window);
        (rounds, ops, faults) = (rounds + 1, ops + of_ops, faults + of_faults);
    }
    assert!(faults > 0, "no operation met a fault");
    let took = begun.elapsed().as_secs();
    println!("{rounds} rounds in {took} s: {ops} operations, {faults} faults, seed {seed}");
}
