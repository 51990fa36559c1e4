//! `wideload clean`: empties the cache.

use crate::exit::Exit;
use crate::output;
use anyhow::anyhow;
use serde_json::json;
use stage::cassandra::{self, CacheError};
use stage::dirs;
use stage::state::States;
use std::path::Path;
use std::process::ExitCode;
use units::Bytes;

const EXAMPLES: &str = "\
Examples:
  wideload clean --dry-run     # what would go, and how large it is
  wideload clean

The cache is this user's: all releases in it go. What is removed is fetched again when it is needed,
with the network. Run directories, data and logs stay.";

/// Empty the cache of fetched databases.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only tell what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let cache = dirs::cache().map_err(Exit::environment)?;
    if args.dry_run {
        return show(args, &cache, &cassandra::cached(&cache).map_err(Exit::environment)?);
    }
    let states = States::below(&dirs::state().map_err(Exit::environment)?);
    for deployment in states.all()? {
        if deployment.any_runs() && deployment.software.starts_with(&cache) {
            let name = &deployment.name;
            return Err(Exit::usage(anyhow!(
                "'{name}' runs from the cache: `wideload down {name}` first"
            )));
        }
    }
    let removed = cassandra::clean(&cache).map_err(|error| match error {
        CacheError::InUse { .. } => Exit::usage(error),
        _ => Exit::environment(error),
    })?;
    show(args, &cache, &removed)
}

fn show(args: &Args, cache: &Path, of: &[(String, Bytes)]) -> Result<ExitCode, Exit> {
    let all = Bytes(of.iter().map(|(_, bytes)| bytes.0).sum());
    if args.json {
        let name = |(name, bytes): &(String, Bytes)| json!({ "name": name, "bytes": bytes.0 });
        let listed: Vec<_> = of.iter().map(name).collect();
        let freed = if args.dry_run { Bytes(0) } else { all };
        let value = json!({
            "cache": cache, "dry_run": args.dry_run, "releases": listed, "freed_bytes": freed.0,
        });
        output::data(&format!("{value:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (name, bytes) in of {
        let did = if args.dry_run { "would remove" } else { "removed" };
        text.push_str(&format!("{did} {name}, {bytes}\n"));
    }
    let did = if args.dry_run { "would free" } else { "freed" };
    output::print(&format!("{text}{did} {all} in {}\n", cache.display()))?;
    Ok(ExitCode::SUCCESS)
}
