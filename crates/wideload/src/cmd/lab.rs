//! `wideload lab`: experiments as files.

use super::run;
use crate::exit::Exit;
use crate::signals::{self, Current};
use crate::text::{COLUMNS, TIE, wrap};
use crate::{output, screen::Screen};
use anyhow::anyhow;
use clap::Parser as _;
use lab::experiment::{
    Begun, Carried, Planned, carry_out, plan_as_json, plan_file, plans_in_words,
};
use lab::scale::conclude;
use lab::{LabError, Trial};
use record::Verdict;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  wideload lab experiments/002-small.toml --plan       # its trials, and how long they take
  wideload lab experiments/002-small.toml
  wideload lab --plan experiments/*.toml
  wideload lab --resume runs/latest                    # go on after an interruption

Exit status:
  0 done, also when it cannot tell; 1 a trial failed; 2 usage, a malformed file, or what is not
  built; 3 environment; 130 Ctrl-C";

/// Carry out an experiment: factors x points of the load x repetitions, as a TOML file says.
///
/// Each trial starts its target anew, loads, warms up, measures and stops it. Repetitions are
/// interleaved, so that what drifts on the host moves all arms alike. docs/FORMAT.md describes the
/// file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The experiment; several with --plan
    #[arg(value_name = "FILE", required_unless_present = "resume")]
    file: Vec<PathBuf>,
    /// List every trial with its expected time, and do nothing; of several files, only the trials
    /// of what can run here
    #[arg(long, conflicts_with_all = ["resume", "out"])]
    plan: bool,
    /// Go on with the experiment of this run directory: trials that ended ok stay
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "out"])]
    resume: Option<PathBuf>,
    /// The run directory: new or empty [default: runs/<utc>-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the outcome, or the plan, as JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `wideload run`, as an experiment's settings give them.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    run: run::Args,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    if args.plan {
        return plan(args);
    }
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let make = &mut trial;
    let mut begun = match (&args.resume, args.file.as_slice()) {
        (Some(run), _) => Begun::resume(run, make)?,
        (None, [file]) => Begun::new(file, args.out.as_deref(), make)?,
        (None, _) => {
            return Err(Exit::usage(anyhow!(
                "one experiment is carried out at a time: give one FILE, or --plan"
            )));
        }
    };
    let mut screen = Screen::of_experiment(current);
    let line = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let carried = carry_out(&mut begun, line, make, &mut screen, &stop);
    screen.close();
    let mut carried = carried?;
    conclude(&begun, &mut carried, make)?;
    show_carried(args.json, &carried)?;
    Ok(status(&carried))
}

/// Exit status of an experiment.
pub(crate) fn status(carried: &Carried) -> ExitCode {
    match carried.verdict {
        Verdict::Ok if carried.report.is_err() => ExitCode::from(3),
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Interrupted => ExitCode::from(130),
        Verdict::Failed | Verdict::Running => ExitCode::from(1),
    }
}

/// The trial of settings: they are flags of `run`, and held to the same rules.
pub(crate) fn trial(planned: &Planned) -> Result<Trial, LabError> {
    let refused = |why: String| {
        // Behind an empty line there is how to call `run`, which is not what was called.
        let lines = why.trim_start_matches("error: ").lines().take_while(|line| !line.is_empty());
        let why = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        LabError::Refused { number: planned.number, factors: planned.in_words(), why }
    };
    let line =
        Line::try_parse_from(planned.arguments()).map_err(|error| refused(error.to_string()))?;
    let mut trial = run::trial(&line.run).map_err(|exit| refused(exit.error.to_string()))?;
    trial.forewarned = run::forewarned(&trial);
    Ok(trial)
}

/// That `run` knows this workload.
pub(crate) fn workload(name: &str) -> Result<(), Exit> {
    let line = Line::try_parse_from([name]).map_err(Exit::usage)?;
    run::workload(&line.run).map_err(|error| Exit::usage(anyhow!("--workload {name}: {error}")))
}

fn plan(args: &Args) -> Result<ExitCode, Exit> {
    let mut plans = Vec::new();
    for file in &args.file {
        let planned = plan_file(file).map_err(LabError::from)?;
        // Another machine may have what this one has not: it is told, and no error.
        let buildable = planned.1.iter().filter(|p| p.block == 1 && p.needs.is_empty());
        if let Some(refused) = buildable.map(trial).find_map(Result::err) {
            output::tell(&format!("note: {} would be refused here: {refused}", file.display()));
        }
        plans.push(planned);
    }
    if args.json {
        let all: Vec<_> = plans.iter().map(|(e, trials)| plan_as_json(e, trials)).collect();
        let json = serde_json::to_string_pretty(&all).map_err(Exit::environment)?;
        output::data(&format!("{json}\n"))?;
    } else {
        output::print(&plans_in_words(&plans))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what became of an experiment.
pub(crate) fn show_carried(json: bool, carried: &Carried) -> Result<(), Exit> {
    let run = carried.run_dir.display();
    if let Err(why) = &carried.report {
        output::tell(&format!("no report: {why}; make it with: wideload report {run}"));
    }
    if json {
        let json = serde_json::to_string_pretty(&carried.outcome).map_err(Exit::environment)?;
        return output::data(&format!("{json}\n"));
    }
    let mut text = in_lines(&carried.outcome.in_words());
    if let Some(why) = &carried.failure {
        text.push_str(&wrap(&format!("{}: {why}", carried.verdict.name()), "\n", ""));
        text.push('\n');
    }
    text.push('\n');
    if carried.outcome.missing > 0 {
        text.push_str(&format!("go on with: wideload lab --resume {run}\n"));
    }
    text.push_str(&format!("run     {run}\n"));
    if let Ok(report) = &carried.report {
        text.push_str(&format!("report  {}\n", report.display()));
    }
    output::print(&text)
}

/// Sentences in lines of the terminal; rows of tables, whose cells are more than a blank apart,
/// stay as they are.
fn in_lines(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let words = line.trim_start();
        let indent = &line[..line.len() - words.len()];
        match line.chars().count() <= COLUMNS || words.contains("  ") {
            true => lines.push_str(line),
            false => {
                let words = words.replace(" %", &format!("{TIE}%"));
                lines.push_str(&wrap(&words, indent, &format!("{indent}  ")));
            }
        }
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_and_rows_of_tables_are_not() {
        let sentence = format!("  best is one: {}", "1.300 times two, ".repeat(8));
        let row = format!("  single  {:>80}", 1);
        let lines = in_lines(&format!("{sentence}\n{row}\n"));
        assert!(lines.ends_with(&format!("{row}\n")), "{lines}");
        let broken = lines.lines().filter(|line| *line != row);
        assert!(broken.clone().count() > 1, "{lines}");
        assert!(broken.clone().all(|line| line.starts_with("  ") && line.len() <= 80), "{lines}");
    }
}
