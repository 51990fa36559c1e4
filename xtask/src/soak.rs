//! The soak test of `crates/wideload/tests/soak.rs` for longer than in the suite.
//!
//! Input: how long, and a seed. Output: a line for each round, and how many operations met how many
//! faults; the first round that fails ends it, with the command lines that repeat it.

use crate::tidy::cargo;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs it; true when nothing failed.
///
/// # Errors
/// When cargo cannot be run.
pub fn run(root: &Path, minutes: u64, seed: u64) -> Result<bool> {
    let words = ["test", "--profile", "ci", "--package", "wideload", "--test", "soak"];
    let status = Command::new(cargo())
        .args(words)
        .args(["--", "--nocapture"])
        .env("WIDELOAD_SOAK_MINUTES", minutes.to_string())
        .env("WIDELOAD_SOAK_SEED", seed.to_string())
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo test")?;
    Ok(status.success())
}
