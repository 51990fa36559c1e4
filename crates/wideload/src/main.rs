//! The command line: parse, dispatch, one exit status. No logic lives here.

mod cmd;
mod exit;
mod output;
mod result;
mod screen;
mod signals;
mod style;
mod text;

use clap::{CommandFactory as _, Parser, Subcommand};
use exit::Exit;
use lab::Dialect;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The benchmark lab for distributed NoSQL databases.
#[derive(Debug, Parser)]
#[command(name = "wideload", version, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(Box<cmd::run::Args>),
    Topo(cmd::topo::Args),
    Scale(Box<cmd::scale::Args>),
    Lab(cmd::lab::Args),
    Check(Box<cmd::check::Args>),
    Calibrate(cmd::calibrate::Args),
    Plan(Box<cmd::plan::Args>),
    Up(Box<cmd::up::Args>),
    Down(cmd::down::Args),
    Ps(cmd::ps::Args),
    Clean(cmd::clean::Args),
    Report(cmd::report::Args),
    CassandraStress(cmd::cassandra_stress::Args),
    Asbench(cmd::asbench::Args),
    Explain(cmd::explain::Args),
    Serve(Box<cmd::serve::Args>),
    Ycsb(cmd::ycsb::Args),
    Completions(cmd::completions::Args),
    #[command(hide = true)]
    Man(cmd::man::Args),
}

/// What was given. Called by the name of another tool, the program is that tool.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    let called = arguments.first().map(Path::new).and_then(Path::file_name);
    let mut tools = ["cassandra-stress", "asbench"].into_iter();
    if let Some(tool) = tools.find(|tool| called.is_some_and(|name| name == *tool)) {
        arguments.insert(1, tool.into());
    }
    arguments
}

fn main() -> ExitCode {
    let cli = Cli::parse_from(arguments());
    let result = match cli.verb {
        Verb::Run(args) => cmd::run::main(&args),
        Verb::Topo(args) => cmd::topo::main(&args),
        Verb::Scale(args) => {
            cmd::scale::main(&args).map_err(|exit| exit.in_words_of(Dialect::Scale))
        }
        Verb::Lab(args) => cmd::lab::main(&args),
        Verb::Check(args) => cmd::check::main(&args),
        Verb::Calibrate(args) => cmd::calibrate::main(&args),
        Verb::Plan(args) => cmd::plan::main(&args),
        Verb::Up(args) => cmd::up::main(&args),
        Verb::Down(args) => cmd::down::main(&args),
        Verb::Ps(args) => cmd::ps::main(&args),
        Verb::Clean(args) => cmd::clean::main(&args),
        Verb::Report(args) => cmd::report::main(&args),
        Verb::CassandraStress(args) => cmd::cassandra_stress::main(&args)
            .map_err(|exit| exit.in_words_of(Dialect::CassandraStress)),
        Verb::Asbench(args) => cmd::asbench::main(&args),
        Verb::Explain(args) => cmd::explain::main(&args),
        Verb::Serve(args) => cmd::serve::main(&args),
        Verb::Ycsb(args) => cmd::ycsb::main(&args).map_err(|exit| exit.in_words_of(Dialect::Ycsb)),
        Verb::Completions(args) => cmd::completions::main(&args, Cli::command()),
        Verb::Man(args) => cmd::man::main(&args, Cli::command()),
    };
    match result {
        Ok(code) => code,
        Err(Exit { status, error }) => {
            // A closed terminal is no reason to panic on the way out.
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "error: {}", output::tame(&error.to_string()));
            ExitCode::from(status)
        }
    }
}
