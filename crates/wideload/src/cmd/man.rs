//! `wideload man`: manual pages, for those who build packages; not in the list of verbs.

use crate::exit::Exit;
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the manual pages, one for each verb, into a directory.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An existing directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn main(args: &Args, command: clap::Command) -> Result<ExitCode, Exit> {
    clap_mangen::generate_to(command, &args.dir).map_err(|source| {
        let dir = args.dir.display();
        Exit::environment(anyhow!(
            "cannot write the manual pages into '{dir}': {source}; name a directory that is there"
        ))
    })?;
    Ok(ExitCode::SUCCESS)
}
