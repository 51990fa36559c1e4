//! `wideload run`: one workload against one target.

mod args;
mod password;
mod resolve;

pub(crate) use args::{Args, StorageKind};

use crate::exit::Exit;
use crate::signals::{self, Current};
use crate::{output, result, screen::Screen, style::Style};
use record::Verdict;
use std::process::ExitCode;

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    // Before anything is begun: an interrupt during the start is one, too.
    let current = Current::default();
    let stop = signals::stop_flag(&current).map_err(Exit::environment)?;
    let trial = resolve::trial(args)?;
    if args.dry_run {
        output::print(&lab::explain(&trial))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut screen = Screen::new(&trial, current);
    let finished = lab::run(&trial, &mut screen, &stop);
    screen.close();
    let finished = finished?;
    if args.json {
        let json = serde_json::to_string_pretty(&finished.summary).map_err(Exit::environment)?;
        output::print(&format!("{json}\n"))?;
    } else {
        output::print(&result::block(&finished, Style::of(&std::io::stdout())))?;
    }
    Ok(match finished.verdict {
        Verdict::Ok => ExitCode::SUCCESS,
        Verdict::Interrupted => ExitCode::from(130),
        Verdict::Failed | Verdict::Running => ExitCode::from(1),
    })
}
