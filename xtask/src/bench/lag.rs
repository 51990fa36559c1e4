//! `cargo xtask bench-lag`: how late the client is by itself in an open loop, beside a plain poll
//! loop on the same cpu.
//!
//! Input: nothing but this machine. Output: a table, and the same in `docs/LAG.md`. wideload drives
//! a target with canned answers on the first cpu from the last one; between its runs
//! `crates/drive/examples/spin_jitter.rs` polls for the same moments for the same time and does
//! nothing else. The median of the pairs decides, because a machine's jitter drifts.

use super::target::{self, Target};
use super::{Programs, median, spread};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Pairs of runs
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub pairs: u32,
    /// Operations per second
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// Seconds of each run
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub seconds: u32,
    /// Print only, and leave docs/LAG.md as it is
    #[arg(long)]
    pub dry: bool,
}

/// What is to be kept: 99 of 100 operations leave this early, us.
const LAG_US_MAX: f64 = 20.0;
/// Or this much behind what the machine itself does, us.
const BEHIND_US_MAX: f64 = 10.0;

/// A distribution, us.
#[derive(Debug, Clone, Copy)]
struct Late {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Runs the benchmark; true when the target is kept.
///
/// # Errors
/// When something cannot be built, started or understood.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let programs = super::build(root)?;
    let jitter = build_jitter(root)?;
    let target = Target::start(&programs.wideload, "null")?;
    let mut pairs = Vec::new();
    for pair in 0..options.pairs {
        // The first of a pair in turns.
        let (own, lag) = if pair % 2 == 0 {
            let own = spin_jitter(&jitter, &target, options)?;
            (own, lag(&programs, &target, options)?)
        } else {
            let lag = lag(&programs, &target, options)?;
            (spin_jitter(&jitter, &target, options)?, lag)
        };
        println!("{}", row(&(pair + 1).to_string(), own, lag));
        pairs.push((own, lag));
    }
    target.stop()?;
    let (text, kept) = report(&pairs);
    println!("{text}");
    if !options.dry {
        write(root, options, &pairs, &text)?;
    }
    Ok(kept)
}

fn build_jitter(root: &Path) -> Result<PathBuf> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "drive", "--example", "spin_jitter"])
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo build --release --example spin_jitter failed");
    }
    Ok(root.join("target/release/examples/spin_jitter"))
}

fn spin_jitter(program: &Path, target: &Target, options: &Options) -> Result<Late> {
    let output = Command::new(program)
        .args([target.client_cpu(), options.rate.to_string(), options.seconds.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("cannot run spin_jitter")?;
    if !output.status.success() {
        bail!("spin_jitter failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    late(&result, ["p50_us", "p99_us", "p999_us", "max_us"])
}

/// The lag of one run. One operation only, so that its histogram is that of the run.
fn lag(programs: &Programs, target: &Target, options: &Options) -> Result<Late> {
    let out = tempfile::tempdir()?;
    let output = Command::new(&programs.wideload)
        .args(["run", "ycsb:c", "--json", "--target", &target.address(), "--records", "1000"])
        .args(["--client-cpus", &target.client_cpu(), "--wait", "spin", "--warm", "1s"])
        .args(["--rate", &format!("{}/s", options.rate)])
        .args(["--duration", &format!("{}s", options.seconds), "--out"])
        .arg(out.path().join("run"))
        .stdin(Stdio::null())
        .output()
        .context("cannot run wideload")?;
    if !output.status.success() {
        bail!("wideload run: {}", String::from_utf8_lossy(&output.stderr));
    }
    let summary: Value = serde_json::from_slice(&output.stdout)?;
    let due = u64::from(options.rate) * u64::from(options.seconds);
    if summary["errors"] != 0 || summary["ops"] != due {
        bail!("{} operations of {due}, {}", summary["ops"], summary["outcomes"]);
    }
    late(&summary["latency_us"]["read"]["lag"], ["p50", "p99", "p999", "max"])
}

fn late(value: &Value, keys: [&str; 4]) -> Result<Late> {
    let number = |key: &str| value[key].as_f64().with_context(|| format!("no {key} in {value}"));
    let [p50, p99, p999, max] = keys;
    Ok(Late { p50: number(p50)?, p99: number(p99)?, p999: number(p999)?, max: number(max)? })
}

const HEADER: &str = "\
| pair | poll loop p50 | p99 | p99.9 | max | lag p50 | p99 | p99.9 | max | lag p99 - poll loop p99 |
|---|---|---|---|---|---|---|---|---|---|";

fn row(name: &str, own: Late, lag: Late) -> String {
    let mut row = format!("| {name} |");
    for late in [own, lag] {
        for us in [late.p50, late.p99, late.p999, late.max] {
            let _ = write!(row, " {us:.1} |");
        }
    }
    row + &format!(" {:+.1} |", lag.p99 - own.p99)
}

/// What the pairs come to, and whether the target is kept.
fn report(pairs: &[(Late, Late)]) -> (String, bool) {
    let lags: Vec<_> = pairs.iter().map(|(_, lag)| lag.p99).collect();
    let owns: Vec<_> = pairs.iter().map(|(own, _)| own.p99).collect();
    let behind: Vec<_> = pairs.iter().map(|(own, lag)| lag.p99 - own.p99).collect();
    let kept = median(lags.clone()) <= LAG_US_MAX || median(behind.clone()) <= BEHIND_US_MAX;
    let text = format!(
        "Medians (min-max) of {} pairs, us: lag p99 {}, poll loop p99 {}, difference {}. The \
         target, a lag p99 of at most {LAG_US_MAX:.0} us or at most {BEHIND_US_MAX:.0} us behind \
         the poll loop, is {}.",
        pairs.len(),
        spread(lags),
        spread(owns),
        spread(behind),
        if kept { "kept" } else { "**missed**" }
    );
    (text, kept)
}

fn write(root: &Path, options: &Options, pairs: &[(Late, Late)], verdict: &str) -> Result<()> {
    let path = root.join("docs/LAG.md");
    let rows: String = pairs
        .iter()
        .enumerate()
        .map(|(index, (own, lag))| row(&(index + 1).to_string(), *own, *lag) + "\n")
        .collect();
    let text = format!(
        "# How late the client is by itself\n\nMade by `cargo xtask bench-lag`: an open loop of \
         {}/s for {} s at the reference target with canned answers on the first cpu, one client \
         thread on the last, `--wait spin`; in turns with a loop that does nothing but poll the \
         clock for the same moments on the same cpu. {}\n\nLag is scheduled to sent. What the poll \
         loop is late is the machine's own: interrupts, the hypervisor, other tasks. No client can \
         be better.\n\nAll in us.\n\n{HEADER}\n{rows}\n{verdict}\n",
        options.rate,
        options.seconds,
        target::machine(),
    );
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: docs/LAG.md");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(own: f64, lag: f64) -> (Late, Late) {
        let late = |p99| Late { p50: 1.0, p99, p999: 2.0 * p99, max: 3.0 * p99 };
        (late(own), late(lag))
    }

    #[test]
    fn either_limit_keeps_the_target_and_the_median_decides() {
        assert!(report(&[pair(5.0, 19.0)]).1);
        assert!(report(&[pair(40.0, 50.0)]).1, "ten behind a bad machine");
        assert!(!report(&[pair(5.0, 21.0)]).1);
        assert!(report(&[pair(5.0, 18.0), pair(5.0, 900.0), pair(5.0, 19.0)]).1);
        assert!(report(&[pair(5.0, 21.0)]).0.contains("missed"));
        assert_eq!(row("1", pair(5.0, 8.0).0, pair(5.0, 8.0).1).matches('|').count(), 11);
    }
}
