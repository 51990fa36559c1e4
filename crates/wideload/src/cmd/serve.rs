//! `wideload serve`: the reference target on its own.

use crate::exit::Exit;
use crate::signals;
use anyhow::anyhow;
use drive::Engine;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use target::{Config, Server, Storage};
use units::{Bytes, CpuSet, Nanos};

const EXAMPLES: &str = "\
Examples:
  wideload serve --listen 127.0.0.1:9042
  wideload serve --listen 127.0.0.1:9042 --storage null --cpus 1
  wideload serve --listen 127.0.0.1:9042 --serial 500us

It listens on loopback unless told otherwise, has no authentication, and keeps nothing.";

/// Serve CQL from memory: the reference target, a test double that says nothing about Cassandra.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port; port 0 is any free one
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9042",
        value_parser = listen_address
    )]
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
    /// A mock for known truth: each operation holds one lock of the server for so long, asleep, so
    /// that it does 1/TIME operations per second and instances of it scale as one knows
    #[arg(long, value_name = "TIME", value_parser = super::times::serial)]
    serial: Option<Nanos>,
    /// Refuse protocols beyond this version, as an older database would
    #[arg(
        long,
        value_name = "VERSION",
        default_value_t = wire::cql::VERSION_5,
        value_parser = clap::value_parser!(u8).range(4..=5)
    )]
    protocol_max: u8,
    /// How its threads talk to the kernel: epoll, or io-uring from Linux 6.0 on
    #[arg(long, value_name = "ENGINE", default_value = "epoll")]
    engine: Engine,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    if let Some(cpus) = &args.cpus {
        if cpus.is_empty() {
            return Err(Exit::usage(anyhow!("--cpus is empty: name at least one cpu")));
        }
        let allowed = units::cpus_of_current_thread().map_err(Exit::environment)?;
        if !cpus.difference(&allowed).is_empty() {
            return Err(Exit::usage(anyhow!(
                "--cpus {cpus} names cpus that this process may not use; allowed are {allowed}"
            )));
        }
        units::pin_current_thread(cpus)
            .map_err(|e| Exit::environment(anyhow!("cannot run on --cpus {cpus}: {e}")))?;
    }
    if args.memory_max == Bytes(0) {
        return Err(Exit::usage(anyhow!(
            "--memory-max 0 refuses every row: give a size like 4GiB"
        )));
    }
    if args.serial == Some(Nanos::ZERO) {
        return Err(Exit::usage(anyhow!("--serial 0 holds nothing: leave it out")));
    }
    let stop = signals::stop_flag(&signals::Current::default()).map_err(Exit::environment)?;
    let storage = match args.storage {
        super::run::StorageKind::Memory => Storage::Memory,
        super::run::StorageKind::Null => Storage::Null,
    };
    let config = Config {
        storage,
        threads: args.cpus.as_ref().map_or(1, CpuSet::len),
        memory_max: args.memory_max,
        serial: args.serial,
        protocol_max: args.protocol_max,
        io: args.engine,
        ..Config::new(args.listen)
    };
    let server = Server::bind(config).map_err(Exit::environment)?;
    announce(args, server.local_addr());
    server.run(&stop).map_err(Exit::environment)?;
    Ok(ExitCode::SUCCESS)
}

/// A number where a name or a port alone would be guesswork.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().filter(|port| port.parse::<u16>().is_ok());
        let port = port.unwrap_or("9042");
        format!("give a numeric ADDRESS:PORT, like 127.0.0.1:{port} or [::1]:{port}")
    })
}

/// The first line says where it listens (`run` reads it there), the second what it is not, the
/// third what it does on purpose.
fn announce(args: &Args, address: SocketAddr) {
    let storage = match args.storage {
        super::run::StorageKind::Memory => "in memory",
        super::run::StorageKind::Null => "a mock with canned answers",
    };
    let mut out = std::io::stdout();
    // Nobody may be reading; that is no reason not to serve.
    let _ = writeln!(out, "reference target ({storage}) on {address}");
    let _ = writeln!(out, "this is not a database: results say nothing about Cassandra");
    if let Some(serial) = args.serial {
        let ops_s = 1e9 / serial.0 as f64;
        let _ = writeln!(
            out,
            "a mock: each operation holds one lock for {serial}, so it does {ops_s:.0} op/s at most"
        );
    }
    let _ = out.flush();
}
