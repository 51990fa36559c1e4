//! `wideload report`: (re)builds the report of a run directory.

use crate::exit::Exit;
use crate::output;
use std::path::PathBuf;
use std::process::ExitCode;

/// (Re)build report.html from a run directory.
///
/// Example:  wideload report runs/latest --data
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Also write every plot as CSV and JSON, to report-data/ in the run directory
    #[arg(long)]
    data: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let paths = match args.data {
        true => report::build_with_data(&args.run),
        false => report::build(&args.run).map(|page| vec![page]),
    };
    let paths = paths.map_err(Exit::environment)?;
    let lines = paths.iter().map(|path| format!("{}\n", path.display()));
    output::print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
