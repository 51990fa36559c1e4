//! An interrupt at any moment: from the start of the program to its report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use record::{Manifest, Verdict};
use rig::{Ended, Home, Process, RunDir, alone, eventually};
use stage::Signal;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

const INTERRUPTED: i32 = 130;
/// Within this the program ends after it was told to, on a busy machine.
const SOON: Duration = Duration::from_secs(8);
const MOMENTS: u32 = 50;
const SEED: u64 = 0x5eed_0004;

/// A short run with every phase in it.
const RUN: [&str; 12] = [
    "run",
    "ycsb:a",
    "--out",
    "out",
    "--records",
    "20k",
    "--warm",
    "200ms",
    "--duration",
    "400ms",
    "--interval",
    "100ms",
];

/// splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What was begun is told, can be read, and nothing is left beside it. Returns how far it got.
fn assert_told(home: &Home, ended: &Ended) -> &'static str {
    let directory = RunDir(home.at("out"));
    let has = |file: &str| directory.0.join(file).exists();
    if !has("manifest.json") {
        // Before the program listened to signals, or before it began anything.
        let by_signal = ended.signal.is_some() && ended.status.is_none();
        assert!(by_signal || ended.status == Some(INTERRUPTED), "{ended:?}");
        assert!(RunDir(home.path().to_owned()).files().iter().all(|f| f == "out/"), "{ended:?}");
        return "nothing begun";
    }
    for file in directory.files() {
        assert!(!file.ends_with(".part") && !file.contains(".probe"), "{file}: {ended:?}");
    }
    let manifest = directory.manifest();
    assert!(manifest.ended.is_some(), "{manifest:?}");
    let reached = match manifest.verdict {
        Verdict::Ok => {
            assert_eq!(ended.status, Some(0), "{ended:?}");
            "it was over"
        }
        Verdict::Interrupted => {
            assert_eq!((ended.status, ended.signal), (Some(INTERRUPTED), None), "{ended:?}");
            assert!(manifest.failure.as_ref().is_some_and(|f| f.contains("interrupted")));
            if has("trial-0001/summary.json") { "while measuring" } else { "before measuring" }
        }
        _ => panic!("{manifest:?} after {ended:?}"),
    };
    assert_eq!(directory.json::<Manifest>("trial-0001/manifest.json").verdict, manifest.verdict);
    if has("trial-0001/summary.json") {
        let summary = directory.summary();
        assert_eq!(summary.outcomes.total(), summary.ops);
        let total = directory.series("total.hlog", "response").count();
        let failed = directory.series("total.hlog", "failed_response").count();
        assert_eq!(total + failed, summary.ops);
    }
    assert!(has("report.html"), "{reached}: {:?}", directory.files());
    let built = home.run(&["report", "out"]);
    assert_eq!(built.status, Some(0), "{built:?}");
    reached
}

#[test]
fn at_any_moment() {
    let _alone = alone();
    let whole = {
        let home = Home::new();
        let ended = home.run(&RUN);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        ended.after
    };
    let mut state = SEED;
    println!("seed {SEED:#x}, a whole run takes {whole:?}");
    for number in 0..MOMENTS {
        let home = Home::new();
        let at = whole.mul_f64(random(&mut state) as f64 / u64::MAX as f64 * 1.05);
        let signal = [Signal::INT, Signal::TERM, Signal::HUP][random(&mut state) as usize % 3];
        let process = home.start(&RUN);
        sleep(at);
        let told = Instant::now();
        // False when it was over by itself.
        process.signal(signal);
        let ended = process.wait(SOON);
        let after = told.elapsed();
        home.assert_nothing_left();
        assert!(!ended.stderr.contains("panicked"), "{number}, after {at:?}: {ended:?}");
        let reached = assert_told(&home, &ended);
        println!(
            "{number:2}: signal {} at {at:?}: {reached}, ended after {after:?}",
            signal.as_raw()
        );
    }
}

/// A host that takes connections and never answers; counts them.
fn mute() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let counts = count.clone();
    spawn(move || {
        let mut held = Vec::new();
        for connection in listener.incoming() {
            held.push(connection);
            counts.fetch_add(1, Ordering::Relaxed);
        }
    });
    (address, count)
}

fn connecting(home: &Home, arguments: &[&str], count: &AtomicUsize) -> Process {
    let process = home.start(arguments);
    let connected = eventually(Duration::from_secs(30), || count.load(Ordering::Relaxed) > 0);
    assert!(connected, "it did not connect: {:?}", process.wait(Duration::ZERO));
    process
}

#[test]
fn while_the_control_plane_connects() {
    let _alone = alone();
    for more in [&[][..], &["--fixed-hosts"]] {
        let home = Home::new();
        let (address, count) = mute();
        // The timeout of each host is far longer than the patience of this test.
        let hosts = [&address[..]; 3].join(",");
        let run = ["run", "ycsb:a", "--out", "out", "--target", &hosts, "--timeout", "1m"];
        let process = connecting(&home, &[&run, more].concat(), &count);
        sleep(Duration::from_millis(200));
        assert!(process.signal(Signal::INT));
        let told = Instant::now();
        let ended = process.wait(SOON);
        println!("{more:?}: ended {:?} after the signal", told.elapsed());
        assert_eq!(assert_told(&home, &ended), "before measuring");
        home.assert_nothing_left();
    }
}

#[test]
fn a_second_one_ends_at_once_and_says_so() {
    let _alone = alone();
    let home = Home::new();
    let load = ["--records", "1k", "--warm", "0s", "--duration", "1h", "--rate", "2k/s"];
    let process = home.start(&[&["run", "ycsb:a", "--out", "out"], &load[..]].concat());
    let log = home.at("out/trial-0001/latency.hlog");
    let begun = || std::fs::metadata(&log).is_ok_and(|found| found.len() > 0);
    assert!(eventually(Duration::from_secs(30), begun), "the run did not begin");
    // A frozen target: the first one waits for what is in flight.
    let child = home.left().into_iter().find(|id| *id != process.id()).unwrap();
    assert!(child.signal(Signal::STOP).unwrap());
    sleep(Duration::from_millis(300));
    assert!(process.signal(Signal::INT));
    sleep(Duration::from_millis(100));
    assert!(process.signal(Signal::INT));
    let ended = process.wait(SOON);
    assert_eq!((ended.status, ended.signal), (Some(INTERRUPTED), None), "{ended:?}");
    home.assert_nothing_left();
    let directory = RunDir(home.at("out"));
    for file in ["manifest.json", "trial-0001/manifest.json"] {
        let manifest: Manifest = directory.json(file);
        assert_eq!(manifest.verdict, Verdict::Interrupted, "{file}");
        assert!(manifest.failure.unwrap().contains("interrupted") && manifest.ended.is_some());
    }
    assert!(directory.files().iter().all(|file| !file.ends_with(".part")));
    let built = home.run(&["report", "out"]);
    assert_eq!(built.status, Some(0), "{built:?}");
    assert!(directory.series("latency.hlog", "service").count() > 0, "the intervals are kept");
}

#[test]
fn a_terminal_closed_twice_is_one_wish() {
    let _alone = alone();
    let home = Home::new();
    let load = ["--records", "1k", "--warm", "0s", "--duration", "1h"];
    let process = home.start(&[&["run", "ycsb:a", "--out", "out"], &load[..]].concat());
    let log = home.at("out/trial-0001/latency.hlog");
    let begun = || std::fs::metadata(&log).is_ok_and(|found| found.len() > 0);
    assert!(eventually(Duration::from_secs(30), begun), "the run did not begin");
    // The kernel says so, and the shell says so again.
    assert!(process.signal(Signal::HUP));
    process.signal(Signal::HUP);
    let ended = process.wait(SOON);
    assert_eq!(assert_told(&home, &ended), "while measuring");
    home.assert_nothing_left();
}
