//! `wideload report`: (re)builds the report of a run directory.

use crate::exit::Exit;
use crate::output;
use record::Columns;
use report::{ReportError, TableAsked};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  wideload report runs/latest --data
  wideload report runs/adq-on --latency-table 21,40us --against runs/adq-off
  wideload report runs/client-1 --latency-table 7,1 --client runs/client-2 --client runs/client-3";

/// (Re)build report.html from a run directory.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Also write every plot as CSV and JSON, to report-data/ in the run directory
    #[arg(long)]
    data: bool,
    /// Print shares of operations above limits, and put them on the page: 21,40us is 21 columns in
    /// steps of 40 us; 7,1 is 7 columns, each limit shifted left by 1 from 1 ms; 10,2,us the same
    /// from 1 us. With --data every interval is in latency-table.csv
    #[arg(long, value_name = "COLUMNS")]
    latency_table: Option<Columns>,
    /// Another client of the same run: its operations count in the table with those of RUN
    #[arg(long = "client", value_name = "RUN", requires = "latency_table")]
    clients: Vec<PathBuf>,
    /// A run to compare with in the table and its plots; several are clients of one run
    #[arg(long, value_name = "RUN", requires = "latency_table")]
    against: Vec<PathBuf>,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let asked = args.latency_table.clone().map(|columns| TableAsked {
        columns,
        clients: args.clients.clone(),
        against: args.against.clone(),
    });
    let built = report::build_as(&args.run, asked.as_ref(), args.data);
    let built = built.map_err(|error| match error {
        error @ ReportError::Twice { .. } => Exit::usage(error),
        error => Exit::environment(error),
    })?;
    output::print(&built.table.unwrap_or_default())?;
    let lines = built.paths.iter().map(|path| format!("{}\n", path.display()));
    output::print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
