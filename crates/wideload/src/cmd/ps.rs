//! `wideload ps`: what `up` has started, and whether it still runs.

use crate::exit::Exit;
use crate::output;
use serde_json::{Value, json};
use stage::dirs;
use stage::state::{Deployed, Deployment, States};
use std::fmt::Write as _;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  wideload ps
  wideload ps --json";

/// List what `wideload up` has started, also what has died since.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let all = States::below(&dirs::state().map_err(Exit::environment)?).all()?;
    if args.json {
        let all = Value::from(all.iter().map(as_json).collect::<Vec<_>>());
        output::data(&format!("{all:#}\n"))?;
    } else if all.is_empty() {
        output::print("nothing is up\n")?;
    } else {
        output::print(&table(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `up`, `starting` while nobody has seen it up, or `dead`.
fn state(deployment: &Deployment, deployed: &Deployed) -> &'static str {
    match (deployment.runs(deployed), deployment.ready) {
        (true, true) => "up",
        (true, false) => "starting",
        (false, _) => "dead",
    }
}

/// What is remembered of a deployment, and the state of each instance.
pub(crate) fn as_json(deployment: &Deployment) -> Value {
    let instance = |deployed: &Deployed| {
        json!({
            "name": deployed.name,
            "state": state(deployment, deployed),
            "address": deployed.address.to_string(),
            "cpus": deployed.cpus,
            "pid": deployed.process.pid,
            "start_ticks": deployed.process.start_ticks,
        })
    };
    json!({
        "name": deployment.name,
        "kind": deployment.kind,
        "version": deployment.version,
        "started": deployment.started,
        "software": deployment.software,
        "data": deployment.data,
        "logs": deployment.logs,
        "instances": deployment.instances.iter().map(instance).collect::<Vec<_>>(),
    })
}

/// A line per instance.
pub(crate) fn table(all: &[Deployment]) -> String {
    let mut rows = vec![
        ["NAME", "WHAT", "INSTANCE", "STATE", "ADDRESS", "CPUS", "PID", "SINCE"].map(str::to_owned),
    ];
    for deployment in all {
        let what = format!("{} {}", deployment.kind, deployment.version);
        for deployed in &deployment.instances {
            rows.push([
                deployment.name.clone(),
                what.clone(),
                deployed.name.clone(),
                state(deployment, deployed).to_owned(),
                deployed.address.to_string(),
                deployed.cpus.clone(),
                deployed.process.pid.to_string(),
                deployment.started.clone(),
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
