//! `wideload report`: (re)builds the report of a run directory.

use crate::exit::Exit;
use crate::output;
use std::path::PathBuf;
use std::process::ExitCode;

/// (Re)build report.html from a run directory.
///
/// Example:  wideload report runs/latest
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let path = report::build(&args.run).map_err(Exit::environment)?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
