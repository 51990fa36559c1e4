//! What the benchmark drives, started and stopped.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Name of the deployment that `wideload up` makes for the benchmark.
const DEPLOYMENT: &str = "bench-op";

/// A target that answers.
pub(super) struct Target {
    label: String,
    address: String,
    client_cpu: u32,
    has_records: bool,
    child: Option<Child>,
    /// wideload, to take a deployment down with.
    deployed: Option<PathBuf>,
}

impl Target {
    /// `null`, `memory` and `aerospike` are reference targets on the first cpu; `cassandra`
    /// is put up on all cpus; anything else is an address.
    pub(super) fn start(wideload: &Path, name: &str) -> Result<Self> {
        let last = std::thread::available_parallelism()?.get() as u32 - 1;
        let target = |label: &str, address: String, child, deployed| {
            let (label, has_records) = (label.to_owned(), name == "aerospike");
            Ok(Self { label, address, client_cpu: last, has_records, child, deployed })
        };
        match name {
            "null" | "memory" => {
                let (child, address) = serve(wideload, name)?;
                let label = format!("Reference target, storage {name}, on cpu 0");
                target(&label, address, Some(child), None)
            }
            "aerospike" => {
                let (child, address) = serve_with(wideload, &["--protocol", "aerospike"])?;
                let label = "Reference target, Aerospike's protocol, on cpu 0";
                target(label, address, Some(child), None)
            }
            "cassandra" => {
                let status = Command::new(wideload)
                    .args(["up", "cassandra", "--name", DEPLOYMENT, "--heap", "4GiB"])
                    .status()
                    .context("cannot run wideload up")?;
                if !status.success() {
                    bail!("wideload up cassandra failed");
                }
                let label = "Apache Cassandra 5.0.5 on the same cpus as the client";
                target(label, "127.0.0.1:9042".to_owned(), None, Some(wideload.to_owned()))
            }
            address => target(address, address.to_owned(), None, None),
        }
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Whether it has records: each connection takes one request at a time.
    pub(super) fn has_records(&self) -> bool {
        self.has_records
    }

    pub(super) fn address(&self) -> String {
        self.address.clone()
    }

    pub(super) fn client_cpu(&self) -> String {
        self.client_cpu.to_string()
    }

    /// Ends what was started.
    pub(super) fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        if let Some(wideload) = self.deployed.take() {
            let status = Command::new(wideload).args(["down", DEPLOYMENT]).status()?;
            if !status.success() {
                bail!("wideload down {DEPLOYMENT} failed");
            }
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("cannot end {}: {error}", self.label);
        }
    }
}

/// Starts the reference target and reads where it listens.
fn serve(wideload: &Path, storage: &str) -> Result<(Child, String)> {
    serve_with(wideload, &["--storage", storage])
}

fn serve_with(wideload: &Path, words: &[&str]) -> Result<(Child, String)> {
    let mut child = Command::new(wideload)
        .args(["serve", "--listen", "127.0.0.1:0", "--cpus", "0"])
        .args(words)
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .context("cannot run wideload serve")?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    match line.split_whitespace().last() {
        Some(address) => Ok((child, address.to_owned())),
        None => {
            child.kill()?;
            bail!("wideload serve did not say where it listens")
        }
    }
}

/// The machine in one sentence.
pub(super) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{} ({cpus} cpus), Linux {}.", model.map_or("unknown cpu", |m| m.1), kernel.trim())
}
