//! `wideload calibrate`: what this client machine can drive at most; kept, and asked by `run`.

use crate::exit::Exit;
use crate::{output, signals};
use indicatif::{ProgressBar, ProgressDrawTarget};
use lab::{Bench, Calibration, Calibrations, LabError, Limit, Spread};
use machine::{Machine, client_and_target_cpus};
use serde_json::json;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use units::CpuSet;

const EXAMPLES: &str = "\
Examples:
  wideload calibrate
  wideload calibrate --client-cpus 2-3 --json

It takes some 12 s and drives the reference target with canned answers. The result is kept in the
user's state directory; `wideload run --rate` warns when a rate is more than half of it.";

/// Measure what this machine can drive at most, its latency floor, and how late its timers are.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Cpus of the client, one worker on each, like 0-3,8 [default: as `wideload run` takes them]
    #[arg(long, value_name = "CPUS")]
    client_cpus: Option<CpuSet>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: &Args) -> Result<ExitCode, Exit> {
    let machine = Machine::read(Path::new("/")).map_err(LabError::from)?;
    let bench = bench(args, machine)?;
    let state = stage::dirs::state().map_err(Exit::environment)?;
    let stop = signals::stop_flag(&signals::Current::default()).map_err(Exit::environment)?;
    let bar = progress();
    let calibration = lab::calibrate(&bench, &mut |what| bar.set_message(what.to_owned()), &stop);
    bar.finish_and_clear();
    let calibration = calibration?;
    let path = Calibrations::below(&state).write(&calibration).map_err(Exit::environment)?;
    if args.json {
        let mut value = serde_json::to_value(&calibration).map_err(Exit::environment)?;
        value["file"] = json!(path.display().to_string());
        output::data(&format!("{value:#}\n"))?;
    } else {
        output::print(&text(&calibration, &path))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A line on stderr for people who watch.
fn progress() -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(4),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn bench(args: &Args, machine: Machine) -> Result<Bench, Exit> {
    let allowed = machine.allowed.clone();
    let split = client_and_target_cpus(&machine, &allowed);
    let Some(client_cpus) = args.client_cpus.clone() else {
        return Ok(Bench { machine, client_cpus: split.client, target_cpus: split.target });
    };
    if client_cpus.is_empty() || !client_cpus.difference(&allowed).is_empty() {
        return Err(LabError::Cpus { flag: "--client-cpus", asked: client_cpus, allowed }.into());
    }
    let rest = allowed.difference(&client_cpus);
    let target_cpus = if rest.is_empty() { allowed } else { rest };
    Ok(Bench { machine, client_cpus, target_cpus })
}

fn text(calibration: &Calibration, path: &Path) -> String {
    let c = calibration;
    let mut text = format!(
        "this client drives at most {:.0} op/s per core ({:.2} us of cpu time per operation)\n",
        c.ops_per_cpu_s,
        1e6 / c.ops_per_cpu_s
    );
    for caveat in &c.caveats {
        let _ = writeln!(text, "  ! {}", caveat.text);
    }
    let limit = match c.limit {
        Limit::Client => "the client was the limit",
        Limit::Target => "the target was the limit",
    };
    let _ = writeln!(
        text,
        "\nceiling     {:.0} op/s, {} workers on cpus {}, {} in flight, busiest {:.0} %: {limit}",
        c.ops_s,
        c.workers,
        c.client_cpus,
        c.in_flight,
        c.client_busy * 100.0
    );
    let _ = writeln!(text, "target      {}, workload {}", c.target, c.workload);
    let _ = writeln!(text, "\n{:<28}{:>10}{:>10}{:>10}{:>10}", "us", "p50", "p99", "p99.9", "max");
    for (name, Spread { p50, p99, p999, max }) in [
        ("floor: one in flight", c.floor_us),
        ("late after a sleep", c.sleep_late_us),
        ("late while polling", c.poll_late_us),
    ] {
        let _ = writeln!(text, "{name:<28}{p50:>10.1}{p99:>10.1}{p999:>10.1}{max:>10.1}");
    }
    let _ = writeln!(text, "\nkept in     {}", path.display());
    text
}
