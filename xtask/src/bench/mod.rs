//! `cargo xtask bench-op`: what one operation costs the client, beside the bare loop.
//!
//! Input: targets (`null`, `memory`, `aerospike`, `cassandra`, or an address). Output: a table, and
//! the same in `docs/BENCHMARKS.md`. wideload and the bare loop
//! (`crates/drive/examples/bare_loop.rs`, of records `bare_records.rs`) drive the same target in
//! turns; the ratio is the median of the pairs, because the pair decides on a machine where times
//! drift. A peer given by its command line is measured beside them, as a whole process.

mod budget;
pub mod lag;
mod peer;
mod target;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use target::Target;

/// What is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// What is driven: null, memory, aerospike, cassandra, or HOST:PORT
    #[arg(long, value_delimiter = ',', default_value = "null,memory")]
    pub target: Vec<String>,
    /// Pairs per case
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub pairs: u32,
    /// Operations of each run
    #[arg(long, default_value_t = 300_000)]
    pub ops: u64,
    /// Operations in flight
    #[arg(long, value_delimiter = ',', default_value = "64,256,1000",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub threads: Vec<u32>,
    /// Engines of the client, in turns with each other and with the bare loop: epoll, io-uring
    #[arg(long, value_delimiter = ',', default_value = "epoll",
        value_parser = clap::builder::PossibleValuesParser::new(["epoll", "io-uring"]))]
    pub engine: Vec<String>,
    /// A peer: a shell-quoted command line with {host}, {port}, {ops} and {threads} in it,
    /// measured as a whole process on the same target
    #[arg(long)]
    pub peer: Vec<String>,
    /// Print only, and leave docs/BENCHMARKS.md as it is
    #[arg(long)]
    pub dry: bool,
}

/// Rows that are loaded and driven: 5 columns of 34 bytes, as cassandra-stress has them.
const ROWS: [&str; 2] = ["fieldcount=5", "fieldlength=34"];
const RECORDS: u64 = 100_000;
const CONNECTIONS: u32 = 4;
/// Of records: one bin of 32 bytes, as the study of ADQ has them.
const BINS: [&str; 2] = ["fieldcount=1", "fieldlength=32"];

struct Case {
    name: &'static str,
    properties: &'static [&'static str],
}

const CASES: [Case; 2] = [
    Case {
        name: "update",
        properties: &["readproportion=0", "updateproportion=1", "writeallfields=true"],
    },
    Case { name: "read", properties: &["readproportion=1", "updateproportion=0"] },
];

/// Operations in flight while a target warms.
const WARM_THREADS: u32 = 64;

/// One run of either side.
#[derive(Debug, Clone, Copy)]
struct Run {
    us_per_op: f64,
    ops_s: f64,
    /// None of the bare loop, which does not count them.
    syscalls_per_op: Option<f64>,
}

/// The programs that are compared.
struct Programs {
    wideload: PathBuf,
    bare: PathBuf,
    bare_records: PathBuf,
}

/// Runs the benchmark.
///
/// # Errors
/// When something cannot be built, started or understood.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let programs = build(root)?;
    let mut text = String::new();
    for name in &options.target {
        let target = Target::start(&programs.wideload, name)?;
        load(&programs, &target)?;
        let _ = writeln!(text, "### {}\n\n{HEADER}", target.label());
        for case in &CASES {
            // What a JIT compiler or a cache has yet to warm is not counted.
            for engine in &options.engine {
                run_wideload(&programs, &target, case, engine, WARM_THREADS, options.ops)?;
            }
            for threads in &options.threads {
                for row in compare(&programs, &target, case, *threads, options)? {
                    println!("{row}");
                    let _ = writeln!(text, "{row}");
                }
            }
        }
        for peer in &options.peer {
            let row = peer::measure(peer, &target, options.ops)?;
            println!("{row}");
            let _ = writeln!(text, "{row}");
        }
        text.push('\n');
        if name == "null" {
            let table = budget::table(root, &programs.wideload, &target)?;
            println!("{table}");
            text += &table;
        }
        target.stop()?;
    }
    if options.dry { Ok(()) } else { write(root, options, &text) }
}

const HEADER: &str = "\
| operation | in flight | engine | wideload us/op (min-max) | bare us/op (min-max) | \
                      to bare (min-max) | to the first engine (min-max) | wideload op/s | \
                      bare op/s | system calls/op |
|---|---|---|---|---|---|---|---|---|---|";

fn build(root: &Path) -> Result<Programs> {
    for what in [&["--package", "wideload"][..], &["--package", "drive", "--examples"]] {
        let status = Command::new("cargo")
            .args(["build", "--release", "--quiet"])
            .args(what)
            .current_dir(root)
            .status()
            .context("cannot run cargo")?;
        if !status.success() {
            bail!("cargo build --release {} failed", what.join(" "));
        }
    }
    let release = root.join("target/release");
    Ok(Programs {
        wideload: release.join("wideload"),
        bare: release.join("examples/bare_loop"),
        bare_records: release.join("examples/bare_records"),
    })
}

fn properties(target: &Target, case: &Case) -> impl Iterator<Item = String> {
    let rows = if target.has_records() { &BINS } else { &ROWS };
    rows.iter().chain(case.properties).map(|p| (*p).to_owned())
}

fn wideload(programs: &Programs, target: &Target, extra: &[String]) -> Result<Value> {
    let out = tempfile::tempdir()?;
    let (connections, spoken) = (CONNECTIONS.to_string(), ["--protocol", "aerospike"]);
    // Of records there are as many connections as operations in flight.
    let words = match target.has_records() {
        true => &[spoken[0], spoken[1], "-p", "as.update=upsert"][..],
        false => &["--connections", &connections],
    };
    let output = Command::new(&programs.wideload)
        .args(["run", "ycsb:a", "--json", "--warm", "0s", "--target", &target.address()])
        .args(["--client-cpus", &target.client_cpu()])
        .args(words)
        .args(["--records", &RECORDS.to_string(), "--timeout", "60s"])
        .arg("--out")
        .arg(out.path().join("run"))
        .args(extra)
        .stdin(Stdio::null())
        .output()
        .context("cannot run wideload")?;
    if !output.status.success() {
        bail!("wideload {}: {}", extra.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn load(programs: &Programs, target: &Target) -> Result<()> {
    let mut extra: Vec<String> = ["--load", "--ops", "1000"].map(str::to_owned).into();
    extra.extend(properties(target, &CASES[1]).flat_map(|p| ["-p".to_owned(), p]));
    wideload(programs, target, &extra).map(drop)
}

fn run_wideload(
    programs: &Programs,
    target: &Target,
    case: &Case,
    engine: &str,
    threads: u32,
    ops: u64,
) -> Result<Run> {
    let (threads, ops) = (threads.to_string(), ops.to_string());
    let words = ["--skip-load", "--threads", &threads, "--ops", &ops, "--engine", engine];
    let mut extra: Vec<String> = words.map(str::to_owned).into();
    extra.extend(properties(target, case).flat_map(|p| ["-p".to_owned(), p]));
    let summary = wideload(programs, target, &extra)?;
    if summary["errors"] != 0 {
        bail!("{} operations failed: {}", summary["errors"], summary["outcomes"]);
    }
    let number = |value: &Value| value.as_f64().context("the summary lacks a number");
    Ok(Run {
        us_per_op: number(&summary["client"]["cpu_us_per_op"])?,
        ops_s: number(&summary["ops_s"])?,
        syscalls_per_op: summary["client"]["syscalls_per_op"].as_f64(),
    })
}

fn run_bare(
    programs: &Programs,
    target: &Target,
    case: &Case,
    threads: u32,
    ops: u64,
) -> Result<Run> {
    let place = [target.address(), target.client_cpu()];
    let mut bare = match target.has_records() {
        true => Command::new(&programs.bare_records),
        false => Command::new(&programs.bare),
    };
    bare.args(place);
    if !target.has_records() {
        bare.arg(CONNECTIONS.to_string());
    }
    let output = bare
        .args([threads.to_string(), ops.to_string(), RECORDS.to_string()])
        .args(properties(target, case))
        .stdin(Stdio::null())
        .output()
        .context("cannot run the bare loop")?;
    if !output.status.success() {
        bail!("the bare loop failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| result[key].as_f64().with_context(|| format!("no {key}"));
    let (us_per_op, ops_s) = (number("cpu_us_per_op")?, number("ops_s")?);
    Ok(Run { us_per_op, ops_s, syscalls_per_op: None })
}

/// A row for each engine: interleaved rounds, each beginning with another side.
fn compare(
    programs: &Programs,
    target: &Target,
    case: &Case,
    threads: u32,
    options: &Options,
) -> Result<Vec<String>> {
    // The bare loop, and behind it the engines.
    let mut sides: Vec<Vec<Run>> = vec![Vec::new(); 1 + options.engine.len()];
    for round in 0..options.pairs as usize {
        for turn in 0..sides.len() {
            let side = (round + turn) % sides.len();
            let run = match side.checked_sub(1).and_then(|n| options.engine.get(n)) {
                None => run_bare(programs, target, case, threads, options.ops)?,
                Some(engine) => run_wideload(programs, target, case, engine, threads, options.ops)?,
            };
            sides[side].push(run);
        }
    }
    let Some((bare, engines)) = sides.split_first() else { return Ok(Vec::new()) };
    let us = |runs: &[Run]| spread(runs.iter().map(|r| r.us_per_op).collect());
    let ops_s = |runs: &[Run]| median(runs.iter().map(|r| r.ops_s).collect());
    let row = |(n, ours): (usize, &Vec<Run>)| {
        let to = |others: &[Run]| {
            spread(ours.iter().zip(others).map(|(o, b)| o.us_per_op / b.us_per_op).collect())
        };
        let to_first = if n == 0 { String::new() } else { to(&engines[0]) };
        format!(
            "| {} | {threads} | {} | {} | {} | {} | {to_first} | {:.0} | {:.0} | {:.3} |",
            case.name,
            options.engine[n],
            us(ours),
            us(bare),
            to(bare),
            ops_s(ours),
            ops_s(bare),
            median(ours.iter().filter_map(|run| run.syscalls_per_op).collect())
        )
    };
    Ok(engines.iter().enumerate().map(row).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Median and range.
fn spread(values: Vec<f64>) -> String {
    let (low, high) =
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    format!("**{:.2}** ({low:.2}-{high:.2})", median(values))
}

fn write(root: &Path, options: &Options, tables: &str) -> Result<()> {
    let path = root.join("docs/BENCHMARKS.md");
    let machine = target::machine();
    let text = format!(
        "# What an operation costs the client\n\nMade by `cargo xtask bench-op --target {}`: {} \
         operations a run, {} interleaved pairs, {CONNECTIONS} connections, one client thread on \
         a cpu of its own where the target leaves one, rows of 5 x 34 bytes. {machine}\n\nus/op \
         is user and system time of the client over operations: for wideload the whole process in \
         the measured window, for the bare loop from its first send to its last answer. The ratio \
         is the median of the pairs. Targets on loopback run on the same machine: what the kernel \
         does to deliver a frame to the peer is in the sender's time, on both sides of the \
         ratio.\n\n{tables}",
        options.target.join(","),
        options.ops,
        options.pairs,
    );
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: docs/BENCHMARKS.md");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(vec![1.0, 3.0, 2.0]), "**2.00** (1.00-3.00)");
    }
}
