//! `wideload serve`: the reference target on its own.

use crate::exit::Exit;
use crate::signals;
use anyhow::anyhow;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use target::{Config, Server, Storage};
use units::{Bytes, CpuSet};

const EXAMPLES: &str = "\
Examples:
  wideload serve --listen 127.0.0.1:9042
  wideload serve --listen 127.0.0.1:9042 --storage null --cpus 1

It listens on loopback unless told otherwise, has no authentication, and keeps nothing.";

/// Serve CQL from memory: the reference target, a test double that says nothing about Cassandra.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9042")]
    listen: SocketAddr,
    /// What becomes of rows
    #[arg(long, value_enum, default_value = "memory")]
    storage: super::run::StorageKind,
    /// Cpus to run on, like 0-3,8; one thread on each [default: one thread, any cpu]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Refuse writes that add when the rows take more than this, approximately
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    memory_max: Bytes,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    if let Some(cpus) = &args.cpus {
        if cpus.is_empty() {
            return Err(Exit::usage(anyhow!("--cpus is empty: name at least one cpu")));
        }
        units::pin_current_thread(cpus).map_err(|e| {
            Exit::usage(anyhow!("cannot run on --cpus {cpus}: {e}; are they online and allowed?"))
        })?;
    }
    if args.memory_max == Bytes(0) {
        return Err(Exit::usage(anyhow!(
            "--memory-max 0 refuses every row: give a size like 4GiB"
        )));
    }
    let stop = signals::stop_flag().map_err(Exit::environment)?;
    let storage = match args.storage {
        super::run::StorageKind::Memory => Storage::Memory,
        super::run::StorageKind::Null => Storage::Null,
    };
    let config = Config {
        storage,
        threads: args.cpus.as_ref().map_or(1, CpuSet::len),
        memory_max: args.memory_max,
        ..Config::new(args.listen)
    };
    let server = Server::bind(config).map_err(Exit::environment)?;
    announce(args, server.local_addr());
    server.run(&stop).map_err(Exit::environment)?;
    Ok(ExitCode::SUCCESS)
}

/// The first line says where it listens (`run` reads it there), the second what it is not.
fn announce(args: &Args, address: SocketAddr) {
    let storage = match args.storage {
        super::run::StorageKind::Memory => "in memory",
        super::run::StorageKind::Null => "a mock with canned answers",
    };
    let mut out = std::io::stdout();
    // Nobody may be reading; that is no reason not to serve.
    let _ = writeln!(out, "reference target ({storage}) on {address}");
    let _ = writeln!(out, "this is not a database: results say nothing about Cassandra");
    let _ = out.flush();
}
