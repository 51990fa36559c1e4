//! However the program is ended, it ends soon, leaves nothing running and a run directory that can
//! be read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::Control;
use record::manifest::Manifest;
use record::{Outcome, Summary, Verdict};
use rig::serve::{announced, control, executed};
use rig::{Ended, Home, Process, RunDir, Serve, eventually};
use stage::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// Exit status after Ctrl-C.
const INTERRUPTED: i32 = 130;
/// Within this the program ends after it was told to.
const SOON: Duration = Duration::from_secs(4);
/// Within this a run gets to the phase that a test waits for.
const BEGUN: Duration = Duration::from_secs(30);

/// A run at its own reference target, watched through the target's counters.
struct Run<'a> {
    home: &'a Home,
    process: Process,
    target: Control,
    directory: RunDir,
}

impl<'a> Run<'a> {
    /// Starts a run and waits until its target answers.
    fn start(home: &'a Home, arguments: &[&str]) -> Self {
        let out = ["run", "ycsb:a", "--out", "out"];
        let process = home.start(&[&out, arguments].concat());
        let log = home.at("out/trial-0001/raw/reference-target.log");
        let mut address = None;
        let answers = eventually(BEGUN, || {
            address = fs::read_to_string(&log).ok().and_then(|text| announced(&text));
            address.is_some()
        });
        assert!(answers, "no target: {:?}", process.wait(Duration::ZERO));
        let target = control(address.unwrap());
        Self { home, process, target, directory: RunDir(home.at("out")) }
    }

    /// Waits until the target has executed so many statements.
    fn wait_for(&mut self, statements: u64) {
        let begun = eventually(BEGUN, || executed(&mut self.target) >= statements);
        assert!(begun, "the run did not get to {statements} statements");
    }

    /// Sends a signal and waits for the end, which must come soon and leave nothing.
    fn end(self, signal: Signal) -> (Ended, Manifest) {
        let told = Instant::now();
        assert!(self.process.signal(signal));
        let ended = self.process.wait(SOON);
        let after = told.elapsed();
        assert!(after < SOON, "ended after {after:?}");
        self.home.assert_nothing_left();
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
        (ended, self.directory.manifest())
    }
}

/// A run that was interrupted says so, and its report can be built again.
fn assert_interrupted(home: &Home, ended: &Ended, manifest: &Manifest) {
    assert_eq!((ended.status, ended.signal), (Some(INTERRUPTED), None), "{ended:?}");
    assert_eq!(manifest.verdict, Verdict::Interrupted);
    assert!(manifest.failure.as_ref().is_some_and(|f| f.contains("interrupted")), "{manifest:?}");
    assert!(manifest.ended.is_some());
    assert_report(home);
}

fn assert_report(home: &Home) {
    let report = home.at("out/report.html");
    fs::remove_file(&report).expect("the run has left a report");
    let built = home.run(&["report", "out"]);
    assert_eq!(built.status, Some(0), "{built:?}");
    assert!(report.exists());
}

/// What was measured until the end is there, and the same in all files.
fn assert_measured(directory: &RunDir) -> Summary {
    let summary = directory.summary();
    assert!(summary.ops > 0, "{summary:?}");
    assert_eq!(summary.outcomes.total(), summary.ops);
    for log in ["total.hlog", "latency.hlog"] {
        let headline = directory.series(log, "response").count();
        let failed = directory.series(log, "failed_response").count();
        assert_eq!(headline + failed, summary.ops, "{log}");
    }
    summary
}

#[test]
fn an_interrupt_while_loading() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let mut run = Run::start(&home, &["--records", "100M"]);
        run.wait_for(1000);
        let (ended, manifest) = run.end(signal);
        assert_interrupted(&home, &ended, &manifest);
        assert_eq!((ended.stdout.as_str(), ended.stderr.lines().count()), ("", 1), "{ended:?}");
    }
}

#[test]
fn an_interrupt_while_warming_up() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let mut run = Run::start(&home, &["--records", "1k", "--warm", "1h"]);
        run.wait_for(2000);
        let (ended, manifest) = run.end(signal);
        assert_interrupted(&home, &ended, &manifest);
    }
}

#[test]
fn an_interrupt_while_measuring_keeps_what_was_measured() {
    for (signal, load) in [(Signal::INT, "--threads=8"), (Signal::TERM, "--rate=2k/s")] {
        let home = Home::new();
        let arguments = ["--records", "1k", "--warm", "0s", "--duration", "1h", load];
        let mut run = Run::start(&home, &arguments);
        run.wait_for(4000);
        let (ended, manifest) = run.end(signal);
        assert_interrupted(&home, &ended, &manifest);
        let directory = RunDir(home.at("out"));
        let summary = assert_measured(&directory);
        assert_eq!(summary.errors, 0, "what was begun was awaited: {summary:?}");
        assert!(summary.caveats.iter().any(|c| c.code == "interrupted"), "{summary:?}");
        assert_eq!(
            directory.json::<Manifest>("trial-0001/manifest.json").verdict,
            manifest.verdict
        );
        assert!(ended.stdout.contains("INTERRUPTED: ycsb:a"), "{ended:?}");
    }
}

/// A run at a target that froze within the window, when only the drain is left.
fn draining(home: &Home, serve: &Serve) -> Process {
    let target = serve.target();
    let fixed = ["run", "ycsb:a", "--target", &target, "--records", "100", "--out", "out"];
    let load = ["--rate", "1k/s", "--warm", "0s", "--duration", "3s", "--timeout", "1m"];
    let mut control = serve.control();
    let process = home.start(&[&fixed[..], &load].concat());
    // The rows that are loaded, and half a second of the window.
    let begun = eventually(BEGUN, || executed(&mut control) >= 100 + 500);
    assert!(begun, "the run did not begin");
    assert!(serve.process.signal(Signal::STOP));
    // Longer than what is left of the window.
    std::thread::sleep(Duration::from_secs(3));
    process
}

#[test]
fn an_interrupt_while_draining() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let serve = Serve::start(&home, &[]);
        let mut process = draining(&home, &serve);
        assert!(process.is_running(), "it waits for what is in flight");
        assert!(process.signal(signal));
        let ended = process.wait(SOON);
        assert_eq!(home.left(), [serve.process.id()]);
        drop(serve);
        let manifest = RunDir(home.at("out")).manifest();
        assert_interrupted(&home, &ended, &manifest);
        let summary = assert_measured(&RunDir(home.at("out")));
        assert_eq!(summary.ops, 3000, "all that was due in the window is accounted for");
        let timeouts = summary.outcomes.of(Outcome::ClientTimeout);
        assert_eq!(summary.errors, timeouts + summary.outcomes.of(Outcome::NotSent));
        assert!(timeouts > 0, "{summary:?}");
    }
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let mut process = draining(&home, &serve);
    assert!(process.signal(Signal::INT));
    std::thread::sleep(Duration::from_millis(300));
    assert!(process.is_running(), "the first one gives what is in flight a moment");
    let told = Instant::now();
    assert!(process.signal(Signal::INT));
    let ended = process.wait(SOON);
    assert!(told.elapsed() < Duration::from_secs(1), "ended after {:?}", told.elapsed());
    assert_eq!(ended.status, Some(INTERRUPTED), "{ended:?}");
    assert_eq!(home.left(), [serve.process.id()]);
}

#[test]
fn a_second_interrupt_takes_a_frozen_child_along() {
    let home = Home::new();
    let load = ["--records", "1k", "--warm", "0s", "--duration", "1h", "--rate", "2k/s"];
    let mut run = Run::start(&home, &load);
    run.wait_for(2000);
    let child = home.left().into_iter().find(|id| *id != run.process.id()).unwrap();
    assert!(child.signal(Signal::STOP).unwrap());
    // Something falls due meanwhile, for which the first interrupt waits.
    std::thread::sleep(Duration::from_millis(500));
    assert!(run.process.signal(Signal::INT));
    std::thread::sleep(Duration::from_millis(300));
    let (ended, _) = run.end(Signal::INT);
    assert_eq!(ended.status, Some(INTERRUPTED), "{ended:?}");
}

#[test]
fn a_killed_run_takes_its_target_along_and_keeps_its_intervals() {
    let home = Home::new();
    let arguments = ["--records", "1k", "--warm", "0s", "--duration", "1h", "--interval", "100ms"];
    let mut run = Run::start(&home, &arguments);
    let file = |name: &str| fs::read_to_string(home.at("out/trial-0001").join(name));
    let intervals = || file("latency.hlog").map_or(0, |t| t.matches("Tag=read-service").count());
    assert!(eventually(BEGUN, || intervals() >= 3), "no intervals");
    run.wait_for(2000);
    let (ended, manifest) = run.end(Signal::KILL);
    assert_eq!((ended.status, ended.signal), (None, Some(9)));
    assert_eq!((manifest.verdict, manifest.ended), (Verdict::Running, None));
    // All intervals that were over are in both files, in whole lines; the last one may be in one.
    let counters = file("counters.csv").unwrap();
    let counted = counters.matches(",client-0,busy,").count();
    assert!(counted.abs_diff(intervals()) <= 1, "{counted} and {} intervals", intervals());
    assert!(counters.ends_with('\n') && file("latency.hlog").unwrap().ends_with('\n'));
    let built = home.run(&["report", "out"]);
    assert_eq!(built.status, Some(0), "{built:?}");
    assert!(RunDir(home.at("out")).series("latency.hlog", "service").count() > 0);
}

#[test]
fn a_killed_run_leaves_no_target_in_any_phase() {
    for (arguments, statements) in
        [(&["--records", "100M"][..], 1000), (&["--records", "1k", "--warm", "1h"], 2000)]
    {
        let home = Home::new();
        let mut run = Run::start(&home, arguments);
        run.wait_for(statements);
        run.end(Signal::KILL);
        let built = home.run(&["report", "out"]);
        assert_eq!(built.status, Some(0), "{built:?}");
    }
}

/// A target that is killed in mid-run: the run ends in time and says what failed.
fn assert_told_of_death(home: &Home, ended: &Ended, killed: Instant) {
    assert!(killed.elapsed() < Duration::from_secs(5), "ended after {:?}", killed.elapsed());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    let directory = RunDir(home.at("out"));
    let manifest = directory.manifest();
    assert_eq!(manifest.verdict, Verdict::Failed);
    assert!(manifest.failure.as_ref().is_some_and(|f| f.contains("has ended")), "{manifest:?}");
    let summary = assert_measured(&directory);
    assert!(summary.caveats.iter().any(|c| c.code == "target-died"), "{summary:?}");
    assert!(summary.outcomes.of(Outcome::Ok) > 0 && summary.errors > 0, "{summary:?}");
    assert!(summary.outcomes.of(Outcome::ConnectionLost) > 0, "{summary:?}");
    for outcome in [Outcome::Invalid, Outcome::NotFound, Outcome::Error] {
        assert_eq!(summary.outcomes.of(outcome), 0, "{outcome}: {summary:?}");
    }
    assert_report(home);
}

#[test]
fn a_target_that_is_killed_ends_the_run_with_its_failures_by_class() {
    for load in ["--threads=64", "--rate=2k/s"] {
        let home = Home::new();
        let arguments = ["--records", "1k", "--warm", "0s", "--duration", "1h", load];
        let mut run = Run::start(&home, &arguments);
        run.wait_for(4000);
        let child = home.left().into_iter().find(|id| *id != run.process.id()).unwrap();
        // Stopped first, so that something is in flight when it dies.
        assert!(child.signal(Signal::STOP).unwrap());
        std::thread::sleep(Duration::from_millis(500));
        let killed = Instant::now();
        assert!(child.signal(Signal::KILL).unwrap());
        let ended = run.process.wait(BEGUN);
        home.assert_nothing_left();
        assert_told_of_death(&home, &ended, killed);
    }
}

#[test]
fn a_target_that_is_killed_while_loading_ends_the_run() {
    let home = Home::new();
    let mut run = Run::start(&home, &["--records", "100M"]);
    run.wait_for(1000);
    let child = home.left().into_iter().find(|id| *id != run.process.id()).unwrap();
    let killed = Instant::now();
    assert!(child.signal(Signal::KILL).unwrap());
    let ended = run.process.wait(BEGUN);
    assert!(killed.elapsed() < Duration::from_secs(5), "after {:?}", killed.elapsed());
    home.assert_nothing_left();
    assert_eq!((ended.status, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.stderr.contains("has ended"), "{ended:?}");
    assert_eq!(RunDir(home.at("out")).manifest().verdict, Verdict::Failed);
}

#[test]
fn serve_ends_when_it_is_told_to() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let serve = Serve::start(&home, &[]);
        let _connected = serve.control();
        assert!(serve.process.signal(signal));
        let ended = serve.process.wait(SOON);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    }
}
