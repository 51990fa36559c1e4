//! `wideload serve`: the reference target on its own.

use crate::exit::Exit;
use crate::signals;
use anyhow::anyhow;
use drive::{Engine, tls};
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use target::{
    Config, Delay, Faults, Instances, LsmOptions, Protocol, Scylla, Server, Share, Stall, Storage,
};
use units::{Bytes, Count, CpuSet, Nanos};
use wire::shards::Sharding;

const EXAMPLES: &str = "\
Examples:
  wideload serve --listen 127.0.0.1:9042
  wideload serve --listen 127.0.0.1:9042 --storage null --cpus 1
  wideload serve --listen 127.0.0.1:9042 --storage lsm --dir rows
  wideload serve --protocol aerospike --listen 127.0.0.1:3000 --namespace test
  wideload serve --listen 127.0.0.1:9042 --serial 500us
  wideload serve --listen 127.0.0.1:9142 --tls-cert server.pem --tls-key server.key
  wideload serve --listen 127.0.0.1:9042 --scylla --shards 4
  wideload serve --listen 127.0.0.1:9042 --stall 500ms/10s --delay exp:2ms
  wideload serve --listen 127.0.0.1:9042 --fault overloaded=1%,drop=0.01%,late:15s=0.1%

It listens on loopback unless told otherwise and has no authentication. It keeps nothing, except
with --storage lsm: then what it has acknowledged is there again after whatever ends it.";

/// What becomes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StorageKind {
    /// Rows in memory
    Memory,
    /// Rows on disk, in log-structured merge trees below --dir, with a write-ahead log
    Lsm,
    /// Canned answers: a mock that measures the client alone
    Null,
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Spoken {
    /// CQL, versions 4 and 5 of its protocol
    Cql,
    /// Aerospike's protocol; records in memory
    Aerospike,
}

/// Serve CQL from memory or disk, or Aerospike's protocol from memory: the reference target, a
/// test double that says nothing about Cassandra or Aerospike.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address and port; port 0 is any free one [default: 127.0.0.1:9042, of aerospike
    /// 127.0.0.1:3000]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// What is spoken
    #[arg(long, value_enum, default_value = "cql")]
    protocol: Spoken,
    /// Namespaces that there are, with --protocol aerospike; with commas or again [default: test]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = namespace)]
    namespace: Vec<String>,
    /// What becomes of rows
    #[arg(long, value_enum, default_value = "memory")]
    storage: StorageKind,
    /// Where --storage lsm has its rows; made when it is not there
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Acknowledge only what the disk has: it survives a loss of power too, and is slow. Without,
    /// what is acknowledged survives the end of the process, and is on the disk some seconds later
    #[arg(long)]
    fsync: bool,
    /// Cpus to run on, like 0-3,8; one thread on each [default: one thread, any cpu]
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuSet>,
    /// Refuse writes that add when the rows take more than this, approximately; with --storage lsm
    /// the size of the cache of blocks that were read
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    memory_max: Bytes,
    /// A mock for known truth: each operation holds one lock of the server for so long, asleep, so
    /// that it does 1/TIME operations per second and instances of it scale as one knows
    #[arg(long, value_name = "TIME", value_parser = super::times::serial)]
    serial: Option<Nanos>,
    /// Refuse versions of CQL's protocol beyond this one, as an older database would [default: 5]
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(4..=5))]
    protocol_max: Option<u8>,
    /// How its threads talk to the kernel: epoll, or io-uring from Linux 6.0 on
    #[arg(long, value_name = "ENGINE", default_value = "epoll")]
    engine: Engine,
    /// Speak TLS, with this certificate: PEM, with those between it and its authority behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert: PEM without a password, for its owner's eyes only
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let only clients in that have a certificate signed by an authority in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    #[command(flatten)]
    records: Servers,
    #[command(flatten)]
    like: Like,
    #[command(flatten)]
    wrong: Wrong,
}

/// Several servers of Aerospike's protocol.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Aerospike")]
struct Servers {
    /// Be so many servers, at ports one behind the other, each of which has a part of the
    /// partitions; requests that came to another one than their partition's are refused and
    /// counted (requests.misrouted in the info `statistics`)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=64)
    )]
    instances: u8,
    /// Move an eighth of the partitions to the next server, once in so long
    #[arg(long, value_name = "TIME", value_parser = super::times::tablet_move)]
    move_partitions: Option<Nanos>,
    /// Let the last server be away from and until these times behind the start, like 5s..8s
    #[arg(long, value_name = "FROM..TO", value_parser = span)]
    away: Option<Range<Nanos>>,
}

impl Servers {
    fn instances(&self) -> Result<Instances, Exit> {
        let Self { instances: count, move_partitions: move_every, away } = self.clone();
        if count == 1 && (move_every.is_some() || away.is_some()) {
            return Err(Exit::usage(anyhow!(
                "--move-partitions and --away need several servers: add --instances 3"
            )));
        }
        Ok(Instances { count, move_every, away })
    }
}

/// `FROM..TO`.
fn span(text: &str) -> Result<Range<Nanos>, String> {
    let time = |text: &str| text.parse::<Nanos>().map_err(|error| error.to_string());
    let (from, to) = text.split_once("..").ok_or("give FROM..TO, like 5s..8s")?;
    let span = time(from)?..time(to)?;
    if span.is_empty() { Err("give a time behind the first one".to_owned()) } else { Ok(span) }
}

/// What it has of a ScyllaDB host.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "ScyllaDB")]
struct Like {
    /// Emulate the shards and tablets of a ScyllaDB host, for clients that route by them; how many
    /// requests came to the wrong shard stands in system_wideload.shards, and is told at the end
    #[arg(long)]
    scylla: bool,
    /// So many shards
    #[arg(
        long,
        value_name = "SHARDS",
        default_value_t = 4,
        requires = "scylla",
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    shards: u16,
    /// The port where a client's port chooses the shard [default: that of --listen and 10000, any
    /// free one where that is 0]
    #[arg(long, value_name = "PORT", requires = "scylla")]
    shard_aware_port: Option<u16>,
    /// Move a tablet of every table to the next shard, once in so long
    #[arg(
        long,
        value_name = "TIME",
        requires = "scylla",
        value_parser = super::times::tablet_move
    )]
    move_tablets: Option<Nanos>,
}

/// Upper bits of a token that do not count: what ScyllaDB has by default.
const IGNORE_MSB: u8 = 12;

impl Like {
    fn scylla(&self, listen: SocketAddr) -> Option<Scylla> {
        let sharding = Sharding::new(self.shards, IGNORE_MSB).filter(|_| self.scylla)?;
        let beside = match listen.port() {
            0 => 0,
            port => port.checked_add(10_000).unwrap_or_default(),
        };
        let port = self.shard_aware_port.unwrap_or(beside);
        Some(Scylla { sharding, port, move_every: self.move_tablets })
    }
}

/// What it does wrong on purpose; a result on such a target says so.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Faults")]
struct Wrong {
    /// Stand still, all of it, for so long out of every so long, as for a collection of garbage
    #[arg(long, value_name = "TIME/EVERY")]
    stall: Option<Stall>,
    /// Hold answers back: for 2ms, 1ms..5ms (uniform), exp:2ms (exponential, of this mean) or
    /// lognormal:2ms..20ms (of this median and 99th percentile)
    #[arg(long, value_name = "TIME")]
    delay: Option<Delay>,
    /// Let a share of the operations on tables of clients fail, as 0.01 or 1%, with commas or
    /// again: error, overloaded, unavailable; read-timeout of reads, write-timeout of writes (half
    /// of which are done); drop ends the connection in the midst of the answer; late:15s answers so
    /// much later
    #[arg(long, value_name = "FAULT=SHARE", value_delimiter = ',')]
    fault: Vec<Share>,
    /// Send all answers in pieces of at most so many bytes, at random, each by itself
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pieces: Option<u32>,
    /// Send the answers of a connection together, once in so long
    #[arg(long, value_name = "TIME", value_parser = super::times::gather)]
    gather: Option<Nanos>,
    /// Serve so many operations first before anything goes wrong
    #[arg(long, value_name = "OPS", default_value = "0")]
    faults_after: Count,
    /// What is drawn follows from this: the same operations on the same connections meet the same
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    fault_seed: u64,
}

impl Wrong {
    fn faults(&self) -> Result<Faults, Exit> {
        let faults = Faults {
            stall: self.stall,
            delay: self.delay,
            shares: self.fault.clone(),
            pieces_max: self.pieces.map(|bytes| bytes as usize),
            gather: self.gather,
            after_ops: self.faults_after.0,
            seed: self.fault_seed,
        };
        faults.check().map_err(|error| Exit::usage(anyhow!("--fault: {error}")))?;
        if faults.after_ops > 0 && !faults.are_any() {
            return Err(Exit::usage(anyhow!(
                "--faults-after without a fault: add one, like --fault overloaded=1%"
            )));
        }
        Ok(faults)
    }
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
    let faults = args.wrong.faults()?;
    let storage = storage(args)?;
    let protocol = protocol(args)?;
    let default_port = if args.protocol == Spoken::Cql { 9042 } else { 3000 };
    let listen = args.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], default_port)));
    let stop = signals::stop_flag(&signals::Current::default()).map_err(Exit::environment)?;
    let config = Config {
        protocol,
        storage,
        threads: args.cpus.as_ref().map_or(1, CpuSet::len),
        memory_max: args.memory_max,
        serial: args.serial,
        protocol_max: args.protocol_max.unwrap_or(wire::cql::VERSION_5),
        io: args.engine,
        faults: faults.clone(),
        tls: tls(args)?,
        scylla: args.like.scylla(listen),
        ..Config::new(listen)
    };
    let server = Server::bind(config).map_err(Exit::environment)?;
    announce(args, &faults, &server);
    let (faults_met, shards_met) = (server.faults_met(), server.shards_met());
    server.run(&stop).map_err(Exit::environment)?;
    for met in faults_met().into_iter().chain(shards_met()) {
        // As above: nobody may be reading.
        let _ = writeln!(std::io::stdout(), "{met}");
    }
    Ok(ExitCode::SUCCESS)
}

fn tls(args: &Args) -> Result<Option<tls::Server>, Exit> {
    let Some((cert, key)) = args.tls_cert.clone().zip(args.tls_key.clone()) else {
        return Ok(None);
    };
    let identity = tls::Identity { cert, key };
    super::tls::warn_of_exposed(&identity);
    let files = tls::ServerFiles { identity, client_ca: args.tls_client_ca.clone() };
    tls::Server::new(&files).map(Some).map_err(super::tls::refused)
}

fn protocol(args: &Args) -> Result<Protocol, Exit> {
    if args.protocol == Spoken::Cql {
        if !args.namespace.is_empty() {
            return Err(Exit::usage(anyhow!(
                "--namespace is of use with --protocol aerospike only"
            )));
        }
        if args.records.instances()? != Instances::default() {
            return Err(Exit::usage(anyhow!(
                "--instances is of use with --protocol aerospike only"
            )));
        }
        return Ok(Protocol::Cql);
    }
    if args.storage != StorageKind::Memory {
        return Err(Exit::usage(anyhow!(
            "--protocol aerospike has its records in memory only: leave --storage out"
        )));
    }
    if args.like.scylla {
        return Err(Exit::usage(anyhow!(
            "--scylla is about CQL: leave it out, or --protocol aerospike"
        )));
    }
    if args.protocol_max.is_some() {
        return Err(Exit::usage(anyhow!(
            "--protocol-max is about versions of CQL's protocol: leave it out"
        )));
    }
    let namespaces = match args.namespace.is_empty() {
        true => vec!["test".to_owned()],
        false => args.namespace.clone(),
    };
    Ok(Protocol::Aerospike { namespaces, instances: args.records.instances()? })
}

/// As servers take them: they stand in texts between colons and semicolons.
fn namespace(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    match text.chars().all(is_plain) && (1..32).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err("give 1 to 31 letters, digits, '_', '-' or '$', like test".to_owned()),
    }
}

fn storage(args: &Args) -> Result<Storage, Exit> {
    match (args.storage, &args.dir) {
        (StorageKind::Lsm, Some(dir)) => Ok(Storage::Lsm(LsmOptions {
            dir: dir.clone(),
            fsync: args.fsync,
            shards: args.cpus.as_ref().map_or(1, CpuSet::len),
            cache: args.memory_max,
        })),
        (StorageKind::Lsm, None) => {
            Err(Exit::usage(anyhow!("--storage lsm needs a directory for its rows: add --dir DIR")))
        }
        (_, Some(_)) => Err(Exit::usage(anyhow!("--dir is of use with --storage lsm only"))),
        (_, None) if args.fsync => {
            Err(Exit::usage(anyhow!("--fsync is of use with --storage lsm only")))
        }
        (StorageKind::Memory, None) => Ok(Storage::Memory),
        (StorageKind::Null, None) => Ok(Storage::Null),
    }
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
fn announce(args: &Args, faults: &Faults, server: &Server) {
    let address = server.local_addr();
    let storage = match args.storage {
        StorageKind::Memory => "in memory",
        StorageKind::Lsm => "on disk",
        StorageKind::Null => "a mock with canned answers",
    };
    let mut out = std::io::stdout();
    // Nobody may be reading; that is no reason not to serve.
    let _ = writeln!(out, "reference target ({storage}) on {address}");
    let database = if args.protocol == Spoken::Cql { "Cassandra" } else { "Aerospike" };
    let _ = writeln!(out, "this is not a database: results say nothing about {database}");
    if let Some(serial) = args.serial {
        let ops_s = 1e9 / serial.0 as f64;
        let _ = writeln!(
            out,
            "a mock: each operation holds one lock for {serial}, so it does {ops_s:.0} op/s at most"
        );
    }
    for address in server.more_addrs() {
        let _ = writeln!(out, "another server of it on {address}");
    }
    if let Some(port) = server.shard_aware_port() {
        let shards = args.like.shards;
        let _ = writeln!(out, "like a ScyllaDB: {shards} shards, chosen by source port on {port}");
    }
    if faults.are_any() {
        let _ = writeln!(out, "faults on purpose: {faults}");
    }
    let _ = out.flush();
}
