//! `wideload ycsb`: YCSB's own command line.

mod screen;
mod trial;

use crate::exit::Exit;
use crate::output;
use crate::signals::{self, Current};
use anyhow::anyhow;
use lab::Trial;
use record::Verdict;
use report::ycsb::{Figure, export};
use screen::Screen;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use workload::ycsb::{Binding, Job, JobError, Line, Measurement, redacted};

const EXAMPLES: &str = "\
Examples:
  wideload ycsb load basic -P workloads/workloada -p recordcount=3
  wideload ycsb load cassandra-cql -P workloads/workloada -p hosts=10.0.0.5 --create
  wideload ycsb run cassandra-cql -P workloads/workloada -p hosts=10.0.0.5 -threads 64 -s
  wideload ycsb run aerospike -P workloads/workloada -p as.host=10.0.0.5 -p as.namespace=test
  wideload ycsb run scylla -P workloads/workloadb -p scylla.hosts=10.0.0.5 -target 20000 \\
      -p measurement.interval=both -p hdrhistogram.fileoutput=true

What it prints is YCSB's; what it measured is in a run directory as that of `wideload run`.

Exit status:
  0 done; 1 ended early or more than 1 % errors; 2 usage; 3 environment; 130 Ctrl-C";

/// Carry out a command line of YCSB: load|run BINDING [options].
///
/// Bindings: cassandra-cql, scylla, aerospike, and basic, which prints operations. Options are
/// YCSB's: -P FILE, -p KEY=VALUE, -threads N, -target N, -s, -l LABEL, -load, -t, -db CLASS, -cp
/// PATH, -jvm-args ARGS; and two of wideload: --create makes keyspace and table where they are
/// missing, --out DIR names the run directory. Defaults, properties and output are YCSB's; what has
/// no effect is told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// load or run, a binding, and options
    #[arg(
        value_name = "LINE",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let (line, job) = asked(&args.words)?;
    let shown: Vec<_> = args.words.iter().map(|word| redacted(word)).collect();
    say(&format!("Command line: {}", shown.join(" ")));
    job.notices.iter().for_each(|notice| say(&format!("notice: {notice}")));
    for warning in &job.warnings {
        output::print(&format!("{warning}\n"))?;
    }
    writable(&job.measurement)?;
    let mut screen = Screen::new(&job, current);
    let verdict = match &job.binding {
        Binding::Basic(basic) => {
            screen.starts();
            let ended = lab::basic::run(&job, *basic, &mut screen, &stop);
            ended.map_err(Exit::environment)?
        }
        Binding::Cql(cql) => drive(&trial::trial(&line, &job, cql)?, &mut screen, &stop)?,
        Binding::Aerospike(records) => {
            drive(&trial::trial(&line, &job, records)?, &mut screen, &stop)?
        }
    };
    told(&job.measurement, &screen.figures()?)?;
    Ok(match verdict {
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Interrupted => ExitCode::from(130),
        Verdict::Failed | Verdict::Running => ExitCode::from(1),
    })
}

fn drive(trial: &Trial, screen: &mut Screen, stop: &Arc<AtomicBool>) -> Result<Verdict, Exit> {
    let finished = lab::run(trial, screen, stop)?;
    screen.conclude(&finished);
    Ok(finished.verdict)
}

/// Reads a line with its files.
fn asked(words: &[String]) -> Result<(Line, Job), Exit> {
    let line = Line::parse(words).map_err(|e| Exit::usage(JobError::from(e)))?;
    let job = Job::read(&line).map_err(Exit::usage)?;
    Ok((line, job))
}

/// What a line would do, statement by statement.
pub(super) fn explain(words: &[String]) -> Result<String, Exit> {
    let (line, job) = asked(words)?;
    let mut text = match &job.binding {
        Binding::Basic(basic) => lab::basic::explain(&job, *basic),
        Binding::Cql(cql) => lab::explain(&trial::trial(&line, &job, cql)?),
        Binding::Aerospike(records) => lab::explain(&trial::trial(&line, &job, records)?),
    };
    for (what, said) in [("says", &job.warnings), ("notice", &job.notices)] {
        said.iter().for_each(|sentence| text += &format!("{what:<12} {sentence}\n"));
    }
    Ok(text)
}

/// What cannot be written is told before anything is measured for it.
fn writable(measurement: &Measurement) -> Result<(), Exit> {
    if let Some(path) = &measurement.export_file {
        units::create_unwaiting(path).map_err(export_failed(path))?;
    }
    if let Some(prefix) = &measurement.hdr_prefix {
        // Whatever stands behind the last slash begins the names of files.
        let dir =
            prefix.rsplit_once('/').map_or(".", |(dir, _)| if dir.is_empty() { "/" } else { dir });
        if !Path::new(dir).is_dir() {
            return Err(Exit::environment(anyhow!(
                "histogram logs cannot be written into '{dir}', which is no directory: make it, or \
                 give another hdrhistogram.output.path"
            )));
        }
    }
    Ok(())
}

fn export_failed(path: &Path) -> impl FnOnce(io::Error) -> Exit + '_ {
    move |error| {
        let path = path.display();
        Exit::environment(anyhow!("cannot write exportfile '{path}': {error}; name a writable one"))
    }
}

/// The figures, to where they belong.
fn told(measurement: &Measurement, figures: &[Figure]) -> Result<(), Exit> {
    let text = export(measurement.exporter, figures);
    match &measurement.export_file {
        None => output::print(&text),
        Some(path) => units::create_unwaiting(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(export_failed(path)),
    }
}

/// To people; a closed stderr is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", output::tame_all(text));
}
