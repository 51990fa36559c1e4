//! `cargo xtask`: the command line of the project's own tasks.

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The project's own tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check what reading can check: layers, lengths, headers, words that must not be there.
    Tidy,
    /// Run all tests: format, lint, tests, 20 s of each fuzz target.
    Test {
        /// Run only the tests whose name contains this, and neither format, lint nor fuzzing.
        filter: Option<String>,
    },
    /// Measure what an operation costs the client, beside a bare loop; writes docs/BENCHMARKS.md.
    BenchOp(xtask::bench::Options),
    /// Measure how late the client is by itself, beside a poll loop; writes docs/LAG.md.
    BenchLag(xtask::bench::lag::Options),
    /// Build the static program and pack it with its completions, manual pages and licences.
    Dist,
    /// Make what the guest with eight NUMA nodes boots, for `cargo test --test guest`.
    Guest,
    /// Drive the reference target with random faults: nothing may hang, leak or panic.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// Which faults, and which settings of the client.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run the fuzz targets.
    Fuzz {
        /// How long each target runs.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// Only this one.
        target: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True when nothing was found and nothing failed.
fn run(task: Task) -> Result<bool> {
    let root = xtask::root()?;
    match task {
        Task::Tidy => {
            let findings = xtask::tidy::check(&root)?;
            for finding in &findings {
                println!("{finding}");
            }
            println!("{} findings", findings.len());
            Ok(findings.is_empty())
        }
        Task::Test { filter } => xtask::suite::run(&root, filter.as_deref()),
        Task::BenchOp(options) => xtask::bench::run(&root, &options).map(|()| true),
        Task::BenchLag(options) => xtask::bench::lag::run(&root, &options),
        Task::Guest => xtask::guest::prepare(&root).map(|()| true),
        Task::Dist => xtask::dist::dist(&root).map(|()| true),
        Task::Soak { minutes, seed } => xtask::soak::run(&root, minutes, seed),
        Task::Fuzz { minutes, target } => {
            xtask::fuzz::fuzz(&root, target.as_deref(), minutes)?;
            Ok(true)
        }
    }
}
