//! A command line of asbench, carried out: its stages one after the other, each a run of its own.
//!
//! In: settings, this client. Out: the lines of the original each second, its files, and beside
//! them a run directory for each stage. Differences are in `docs/METHODOLOGY.md`.

mod console;
mod files;
mod text;
mod trial;

pub use trial::Client;

use self::console::Console;
use self::files::{HdrDir, Periods};
use crate::error::LabError;
use crate::stress::Sink;
use record::{Caveat, Verdict};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use workload::asbench::Settings;

/// What became of a line.
#[derive(Debug)]
pub struct Done {
    /// Of its last stage.
    pub verdict: Verdict,
    /// Why, where it is not ok.
    pub failure: Option<String>,
    /// One for each stage.
    pub run_dirs: Vec<PathBuf>,
    /// What speaks against the numbers, each once.
    pub caveats: Vec<Caveat>,
}

/// Carries a line out. `out` is the terminal, `begun` hears of each run directory.
///
/// # Errors
/// [`LabError`] when it could not begin or go on; nothing is left running.
pub fn run(
    settings: &Settings,
    client: &Client,
    out: &mut dyn Write,
    begun: &mut dyn FnMut(&Path),
    stop: &Arc<AtomicBool>,
) -> Result<Done, LabError> {
    let mut done =
        Done { verdict: Verdict::Ok, failure: None, run_dirs: Vec::new(), caveats: Vec::new() };
    // Told before anything is measured for them.
    let mut periods = settings.output_file.as_deref().map(Periods::create).transpose()?;
    let mut hdr = settings.hdr_dir.as_deref().map(HdrDir::create).transpose()?;
    let mut sink = Sink::new(out);
    for (number, stage) in settings.stages.iter().enumerate() {
        if settings.stages.len() > 1 {
            sink.line(&format!("Stage {}: {}", number + 1, stage.description));
        }
        if !paused(stage.pause_s, stop) {
            done.verdict = Verdict::Interrupted;
            break;
        }
        let trial = client.trial(settings, number)?;
        let scheduled = stage.ops_per_s > 0;
        let mut console = Console::new(settings, &trial.plan, &mut sink, begun, scheduled);
        console.periods = periods.as_mut();
        console.hdr = hdr.as_mut();
        let finished = crate::trial::run(&trial, &mut console, stop)?;
        done.run_dirs.push(finished.run_dir);
        for caveat in finished.summary.caveats {
            if done.caveats.iter().all(|known| known.code != caveat.code) {
                done.caveats.push(caveat);
            }
        }
        done.verdict = finished.verdict;
        done.failure = finished.failure;
        if done.verdict != Verdict::Ok {
            break;
        }
    }
    if let Some(error) = periods.and_then(Periods::failure) {
        return Err(error);
    }
    if let Some(hdr) = hdr {
        hdr.finish()?;
    }
    match sink.failure() {
        None => Ok(done),
        Some(source) => {
            let path = PathBuf::from("/dev/stdout");
            Err(LabError::NamedFile { what: "write to", path, source })
        }
    }
}

/// Waits; false when it was ended.
fn paused(seconds: u64, stop: &AtomicBool) -> bool {
    for _ in 0..seconds * 10 {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

/// What a line would do, stage by stage.
///
/// # Errors
/// When this client cannot carry it out.
pub fn explain(settings: &Settings, client: &Client) -> Result<String, LabError> {
    let Settings { generation, told_by, .. } = settings;
    let mut text = format!("{:<12} {generation} ({told_by})\n", "generation");
    for (number, stage) in settings.stages.iter().enumerate() {
        if settings.stages.len() > 1 {
            text += &format!("{:<12} {}: {}\n", "stage", number + 1, stage.description);
        }
        if stage.pause_s > 0 {
            text += &format!("{:<12} {} s\n", "pause", stage.pause_s);
        }
        text += &crate::explain(&client.trial(settings, number)?);
    }
    if let Some(shown) = text::latency_in_words(settings)? {
        text += &format!("{:<12} {shown}\n", "latency");
    }
    for notice in &settings.notices {
        text += &format!("{:<12} {notice}\n", "notice");
    }
    Ok(text)
}
