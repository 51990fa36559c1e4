//! All tests, in the order in which failures are cheapest to find.
//!
//! Input: the working tree. Output: what is done and how long it took, the output of what
//! failed, and as the last line `N passed, N failed, N skipped`.
//!
//! Format and lint count as one test each, so does every fuzz target. A test that cannot be done
//! on a machine prints a line `SKIP: reason` to stderr and returns; it is counted as skipped and
//! its reason is printed. Everything is built in the profile `ci`.

mod outcome;

use crate::fuzz::{self, Fuzzer};
use crate::guest;
use crate::tidy::cargo;
use anyhow::{Context, Result};
use outcome::Outcome;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// How long each fuzz target runs.
const FUZZ_S: u64 = 8;

/// Runs everything; with `filter` only the tests whose name contains it, and neither format,
/// lint nor fuzzing. True when nothing failed.
///
/// # Errors
/// When cargo cannot be run or a log cannot be written; failing tests are no error.
pub fn run(root: &Path, filter: Option<&str>) -> Result<bool> {
    let started = Instant::now();
    let mut all = Outcome::default();
    if filter.is_none() {
        all.add(step(root, started, "format", &["fmt", "--all", "--check"])?);
        let lint =
            "clippy --workspace --all-targets --profile ci --quiet --keep-going -- -D warnings";
        all.add(step(root, started, "lint", &lint.split(' ').collect::<Vec<_>>())?);
    }
    if filter.is_none_or(|filter| filter.contains(guest::TESTS)) {
        say(started, "guest: its kernel, and the program as a static one");
        // Tests of it are skipped where it cannot be had; they say what is missing.
        if let Err(why) = guest::prepare(root) {
            println!("no guest: {why:#}");
        }
    }
    all.add(tests(root, started, filter)?);
    if filter.is_none() {
        all.add(with_io_uring(root, started)?);
    }
    if filter.is_none() {
        all.add(fuzz_targets(root, started)?);
    }
    say(started, "done");
    for failure in &all.failures {
        println!("FAILED {failure}");
    }
    for reason in &all.reasons {
        println!("SKIP: {reason}");
    }
    println!("{} passed, {} failed, {} skipped", all.passed, all.failed, all.skipped);
    Ok(all.failed == 0)
}

fn say(started: Instant, what: &str) {
    println!("[{:6.1} s] {what}", started.elapsed().as_secs_f64());
}

fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    command
}

/// One cargo command that passes or fails as a whole; it prints for itself.
fn step(root: &Path, started: Instant, name: &str, arguments: &[&str]) -> Result<Outcome> {
    say(started, &format!("{name}: cargo {}", arguments.join(" ")));
    let status = command(root, arguments)
        .status()
        .with_context(|| format!("cannot run cargo {}; is it installed?", arguments[0]))?;
    let failure = format!("{name}: cargo {} ({status})", arguments.join(" "));
    Ok(if status.success() { Outcome::passed() } else { Outcome::failed(failure) })
}

fn tests(root: &Path, started: Instant, filter: Option<&str>) -> Result<Outcome> {
    let build = ["test", "--workspace", "--profile", "ci", "--no-run", "--quiet"];
    let built = step(root, started, "build", &build)?;
    if built.failed > 0 {
        return Ok(built);
    }
    let mut arguments = vec!["test", "--workspace", "--profile", "ci", "--no-fail-fast"];
    arguments.extend(filter);
    arguments.extend(["--", "--show-output"]);
    say(started, &format!("test: cargo {}", arguments.join(" ")));
    counted(root, command(root, &arguments), "xtask-test.log")
}

/// What has sockets once more, over the other engine.
fn with_io_uring(root: &Path, started: Instant) -> Result<Outcome> {
    let mut arguments = vec!["test", "--workspace", "--profile", "ci", "--no-fail-fast"];
    for name in ["aerospike", "allocations", "data", "protocols", "sockets"] {
        arguments.extend(["--test", name]);
    }
    arguments.extend(["--", "--show-output"]);
    say(started, &format!("io_uring: cargo {}", arguments.join(" ")));
    let mut command = command(root, &arguments);
    command.env("WIDELOAD_TEST_ENGINE", "io-uring");
    let mut outcome = counted(root, command, "xtask-io-uring.log")?;
    for failure in &mut outcome.failures {
        failure.push_str(" (over io_uring)");
    }
    Ok(outcome)
}

/// Each test of a `cargo test`; all it said is kept below target/ in the file `log`.
fn counted(root: &Path, mut command: Command, log: &str) -> Result<Outcome> {
    let output = command.output().context("cannot run cargo test")?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let path = root.join("target").join(log);
    fs::write(&path, format!("{stdout}\n--- stderr ---\n{stderr}"))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let mut outcome = Outcome::of_tests(&stdout);
    if !output.status.success() && outcome.failed == 0 {
        // A test binary that crashed reports nothing of itself.
        outcome.add(Outcome::failed(format!("cargo test ({}), see target/{log}", output.status)));
        println!("{}", fuzz::tail(&stderr, 40));
    }
    print!("{}", outcome.report);
    Ok(outcome)
}

fn fuzz_targets(root: &Path, started: Instant) -> Result<Outcome> {
    let targets = fuzz::targets(root)?;
    let skipped = |why: String| Outcome::skipped(targets.len(), format!("fuzz targets: {why}"));
    say(started, "fuzz: build");
    let fuzzer = match Fuzzer::find(root) {
        Ok(fuzzer) => fuzzer,
        Err(why) => return Ok(skipped(format!("{why:#}"))),
    };
    if let Err(why) = fuzzer.build() {
        return Ok(Outcome::failed(format!("fuzz: {why:#}")));
    }
    let mut outcome = Outcome::default();
    let abreast = std::thread::available_parallelism().map_or(1, usize::from);
    for targets in targets.chunks(abreast) {
        say(started, &format!("fuzz: {} for {FUZZ_S} s", targets.join(", ")));
        let outcomes = std::thread::scope(|scope| {
            let runs: Vec<_> =
                targets.iter().map(|target| scope.spawn(|| fuzzer.run(target, FUZZ_S))).collect();
            runs.into_iter().map(|run| run.join()).collect::<Vec<_>>()
        });
        for run in outcomes {
            outcome.add(match run {
                Ok(Ok(())) => Outcome::passed(),
                Ok(Err(why)) => Outcome::failed(format!("{why:#}")),
                Err(_) => Outcome::failed("the run of a fuzz target panicked".to_owned()),
            });
        }
    }
    Ok(outcome)
}
