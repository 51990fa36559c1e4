//! `wideload completions`: what a shell needs to complete the command line.

use crate::exit::Exit;
use crate::output;
use clap_complete::Shell;
use std::process::ExitCode;

/// Print the completions of a shell.
///
/// Example:  source <(wideload completions bash)
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn main(args: &Args, mut command: clap::Command) -> Result<ExitCode, Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "wideload", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
