//! `wideload explain`: what a foreign command line would do, without doing it.

use super::asbench;
use super::cassandra_stress::{ClientFlags, asked, refused};
use super::ycsb;
use crate::exit::Exit;
use crate::output;
use anyhow::anyhow;
use lab::stress;
use std::process::ExitCode;
use workload::cassandra_stress::Asked;

const EXAMPLES: &str = "\
Examples:
  wideload explain cassandra-stress write n=1M -rate threads=64 -node 10.0.0.5
  wideload explain ycsb run cassandra-cql -P workloads/workloada -p hosts=10.0.0.5
  wideload explain asbench -h 10.0.0.5:3000 -k 1000000 -o S:32 -w RU,100 -a -c 142 --latency 21,4";

/// Say what a command line of another tool would do, statement by statement, and do nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    client: ClientFlags,
    /// The tool's name, cassandra-stress, ycsb or asbench, and its command line
    // Whom TLS is spoken with stands in it.
    #[arg(
        id = "target",
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    line: Vec<String>,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let (tool, line) = match args.line.split_first() {
        Some((tool, line)) => (tool.as_str(), line),
        None => ("", &[][..]),
    };
    let name = std::path::Path::new(tool).file_name().and_then(|name| name.to_str());
    match name {
        Some("cassandra-stress") => cassandra_stress(args, line),
        Some("ycsb" | "ycsb.sh") => {
            output::print(&ycsb::explain(line)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Some("asbench" | "asd-bench" | "benchmarks") => {
            output::print(&asbench::explain(line)?)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let cure = "give cassandra-stress, ycsb or asbench and its command line";
            Err(Exit::usage(anyhow!("'{tool}' is no tool that is known here: {cure}")))
        }
    }
}

fn cassandra_stress(args: &Args, line: &[String]) -> Result<ExitCode, Exit> {
    let tls = args.client.tls()?;
    match asked(line, args.client.compat(), &tls) {
        Ok(Asked::Run(settings)) => {
            let client = args.client.client(line, tls)?;
            output::print(&stress::explain(&settings, &client)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(_) => Err(Exit::usage(anyhow!("help, print and version drive nothing"))),
        Err(error) => refused(&error),
    }
}
