//! `wideload clean`: empties the cache.

use crate::exit::Exit;
use crate::output;
use anyhow::anyhow;
use serde_json::json;
use stage::cassandra::{self, CacheError};
use stage::dirs;
use stage::state::States;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  wideload clean

What is removed is fetched again when it is needed. Run directories, data and logs stay.";

/// Empty the cache of fetched databases.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let cache = dirs::cache().map_err(Exit::environment)?;
    let states = States::below(&dirs::state().map_err(Exit::environment)?);
    for deployment in states.all()? {
        if deployment.any_runs() && deployment.software.starts_with(&cache) {
            let name = &deployment.name;
            return Err(Exit::usage(anyhow!(
                "'{name}' runs from the cache: `wideload down {name}` first"
            )));
        }
    }
    let freed = cassandra::clean(&cache).map_err(|error| match error {
        CacheError::InUse { .. } => Exit::usage(error),
        _ => Exit::environment(error),
    })?;
    if args.json {
        output::data(&format!("{:#}\n", json!({ "cache": cache, "freed_bytes": freed.0 })))?;
    } else {
        output::print(&format!("freed {freed} in {}\n", cache.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
