//! `wideload run`: one workload against one target.

mod args;
mod forewarn;
mod password;
mod recorded;
mod records;
mod resolve;

pub(crate) use args::{Args, WarmUp};
pub(crate) use password::credentials;
pub(crate) use resolve::{CASSANDRA, check_host, trial, trial_of, workload};

use crate::exit::Exit;
use crate::signals::{self, Current};
use crate::{output, result, screen::Screen, style::Style};
use lab::{Finished, Trial};
use record::{Caveat, Verdict};
use std::process::ExitCode;

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    // Before anything is begun: an interrupt during the start is one, too.
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let mut trial = resolve::trial(args)?;
    let (forewarned, sentences) = forewarn::forewarn(&trial);
    trial.forewarned = forewarned;
    sentences.iter().for_each(|sentence| output::tell(sentence));
    if args.dry_run {
        output::print(&lab::explain(&trial))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(note) = lab::long_warm_up(&trial) {
        output::tell(&note);
    }
    let mut screen = Screen::new(&trial, current);
    let finished = lab::run(&trial, &mut screen, &stop);
    screen.close();
    let finished = finished?;
    if args.json {
        let json = serde_json::to_string_pretty(&finished.summary).map_err(Exit::environment)?;
        output::data(&format!("{json}\n"))?;
    } else {
        output::print(&result::block(&finished, Style::of(&std::io::stdout())))?;
    }
    let doubts = if args.strict { doubts(&finished) } else { Vec::new() };
    if !doubts.is_empty() {
        output::tell(&format!("--strict: the result has caveats: {}", doubts.join(", ")));
    }
    Ok(match finished.verdict {
        Verdict::Ok if !doubts.is_empty() => ExitCode::from(1),
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Interrupted => ExitCode::from(130),
        Verdict::Failed | Verdict::Running => ExitCode::from(1),
    })
}

/// What is known to speak against a trial before it begins.
pub(crate) fn forewarned(trial: &Trial) -> Vec<Caveat> {
    forewarn::forewarn(trial).0
}

/// Codes of the caveats that `--strict` does not let pass: all but the one that says what the
/// target is. No other run would be without that one, and it leads every text.
fn doubts(finished: &Finished) -> Vec<&str> {
    let codes = finished.summary.caveats.iter().map(|caveat| caveat.code.as_str());
    codes.filter(|code| *code != lab::STAND_IN).collect()
}
