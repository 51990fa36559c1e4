//! `wideload topo`: the machine as a tree, as JSON, as a picture, as a recording.

use crate::exit::Exit;
use crate::output;
use crate::text::wrap;
use anyhow::{Context as _, anyhow};
use machine::{Machine, Recording, picture};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  wideload topo                                     # this host
  wideload topo --record here.tar.gz                # and keep what it was read from
  wideload topo here.tar.gz --svg here.svg          # draw a recorded one
  wideload topo --synthetic 'package:2 die:4 numa:1(memory=32GiB) llc:2(size=8MiB) core:4 cpu:2'

A recording holds the files of /sys and /proc that describe the machine, its name and kernel command
line among them; no processes and no serial numbers.";

/// Show the machine: packages, NUMA nodes, caches, cores, devices, settings.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to show: / for this host, the top of a recorded tree, or an archive of one
    #[arg(value_name = "SOURCE", default_value = "/")]
    source: PathBuf,
    /// A machine that is only described, its parts from the outside in: package, die, numa, llc,
    /// core, cpu, each with how many are in one of the part before; without memory 32 GiB a NUMA
    /// node
    #[arg(long, value_name = "PARTS", conflicts_with_all = ["source", "record"])]
    synthetic: Option<String>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// Draw it into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Keep what it was read from, to be read elsewhere: a tar with gzip
    #[arg(long, value_name = "FILE.tar.gz")]
    record: Option<PathBuf>,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let (machine, source) = match (&args.synthetic, &args.record) {
        (Some(text), _) => (Machine::synthetic(text).map_err(Exit::usage)?, text.clone()),
        (None, Some(file)) => (record(&args.source, file)?, args.source.display().to_string()),
        (None, None) => {
            let machine = Machine::read(&args.source).map_err(Exit::environment)?;
            (machine, args.source.display().to_string())
        }
    };
    if let Some(file) = &args.svg {
        ::machine::replace(file, |out| out.write_all(picture::svg(&machine).as_bytes()))
            .with_context(|| format!("cannot write the picture {}", file.display()))
            .map_err(|error| Exit::environment(anyhow!("{error:#}")))?;
    }
    if args.json {
        let value = json!({ "schema": 1, "source": source, "machine": machine });
        output::data(&format!("{value:#}\n"))?;
    } else {
        let assumed = args.synthetic.as_deref().and_then(Machine::assumed_of);
        let assumed = assumed.map(|text| format!("{}\n", wrap(&text, "! memory: ", "  ")));
        output::print(&(picture::tree(&machine) + &assumed.unwrap_or_default()))?;
    }
    let written = [("picture", &args.svg), ("recording", &args.record)];
    for (what, file) in written.iter().filter_map(|(what, file)| Some((what, file.as_ref()?))) {
        output::tell(&format!("{what} {}", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn record(source: &Path, file: &Path) -> Result<Machine, Exit> {
    let recording = Recording::read(source).map_err(Exit::environment)?;
    recording.write(file).map_err(Exit::environment)?;
    Ok(recording.machine)
}
