//! `wideload down`: ends what `up` has started.

use crate::exit::Exit;
use crate::output;
use anyhow::anyhow;
use stage::cassandra::remove_data;
use stage::dirs;
use stage::state::{Deployment, States};
use std::process::ExitCode;
use units::Nanos;

const EXAMPLES: &str = "\
Examples:
  wideload down                      the only one that is up
  wideload down cassandra --keep-data

Processes are known by pid and start time: nobody else's is ended. Logs stay until the next `up` of
that name.";

/// How long a database may take to end by itself.
const GRACE: Nanos = Nanos::from_secs(30);

/// Stop what `wideload up` has started, and remove its data.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Which; may be left out when only one is up
    name: Option<String>,
    /// Leave its data where they are
    #[arg(long)]
    keep_data: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let states = States::below(&dirs::state().map_err(Exit::environment)?);
    let Some(deployment) = choose(args, &states)? else {
        output::print(if args.json { "[]\n" } else { "nothing is up\n" })?;
        return Ok(ExitCode::SUCCESS);
    };
    let Deployment { name, data, logs, .. } = &deployment;
    let running = deployment.instances.iter().filter(|i| deployment.runs(i)).count();
    deployment.stop(GRACE)?;
    if !args.keep_data {
        remove_data(data).map_err(Exit::environment)?;
    }
    states.forget(name)?;
    let kept = args.keep_data.then_some(data);
    if args.json {
        let done = serde_json::json!([{
            "name": name, "stopped": running, "data": kept, "logs": logs,
        }]);
        output::data(&format!("{done:#}\n"))?;
    } else {
        let all = deployment.instances.len();
        let data = kept.map_or(String::new(), |data| format!("data  {}\n", data.display()));
        output::print(&format!(
            "stopped '{name}': {running} of {all} processes ran\n{data}logs  {}\n",
            logs.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn choose(args: &Args, states: &States) -> Result<Option<Deployment>, Exit> {
    if let Some(name) = &args.name {
        return Ok(Some(states.get(name)?));
    }
    let mut all = states.all()?;
    if all.len() > 1 {
        let names: Vec<_> = all.iter().map(|deployment| deployment.name.as_str()).collect();
        return Err(Exit::usage(anyhow!("several are up: name one of {}", names.join(", "))));
    }
    Ok(all.pop())
}
