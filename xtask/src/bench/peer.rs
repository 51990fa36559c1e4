//! Another load generator on the same target, measured as a whole process.
//!
//! Input: its command line. Output: a row. Start-up and exit of the peer are in its time, which is
//! said in the row; with the number of operations of a benchmark they are a small part of it.

use super::target::Target;
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Operations in flight that a peer is asked for.
const THREADS: u32 = 64;

pub(super) fn measure(command_line: &str, target: &Target, ops: u64) -> Result<String> {
    let address = target.address();
    let (host, port) = address.rsplit_once(':').context("an address without a port")?;
    let filled = command_line
        .replace("{host}", host)
        .replace("{port}", port)
        .replace("{ops}", &ops.to_string())
        .replace("{threads}", &THREADS.to_string());
    let before = children_cpu_s()?;
    let began = Instant::now();
    let output = Command::new("sh")
        .args(["-c", &filled])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .context("cannot run sh")?;
    if !output.status.success() {
        bail!("'{filled}' failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let took_s = began.elapsed().as_secs_f64();
    let cpu_us = (children_cpu_s()? - before) * 1e6 / ops as f64;
    let name = filled.split_whitespace().next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let ops_s = ops as f64 / took_s;
    Ok(format!("| {name} (whole process) | {THREADS} | | {cpu_us:.2} | | | | {ops_s:.0} | | |"))
}

/// User and system time of all children that have ended, from `/proc/self/stat`.
fn children_cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // Behind the name: state is field 3, cutime and cstime are 16 and 17, in ticks of 1/100 s.
    let ticks: u64 = fields.skip(13).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
