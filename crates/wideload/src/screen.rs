//! What people see while a trial runs: a bar for loading, one line for the run, cut to the width of
//! the terminal. Nothing when stderr is no terminal.

use crate::output;
use crate::signals::Current;
use crate::text::short;
use drive::Amount;
use drive::Window;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::{Live, LiveInterval, Trial};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};
use units::Nanos;

/// A load that has gone on for less has no rate yet.
const RATE_AFTER: Duration = Duration::from_millis(500);

/// The terminal, on stderr: stdout is for results.
pub(crate) struct Screen {
    bar: ProgressBar,
    /// When a load began, and with how many rows.
    loading: Option<(Instant, u64)>,
    ops: Option<u64>,
    done: u64,
    figures: String,
    until_steady: bool,
    steady: bool,
    current: Current,
}

impl Screen {
    /// Of trials of any kind, one after the other.
    pub(crate) fn of_experiment(current: Current) -> Self {
        Self::showing(None, false, current)
    }

    /// `current` is told the run directory.
    pub(crate) fn new(trial: &Trial, current: Current) -> Self {
        let ops = match trial.load.amount {
            Amount::Ops(ops) => Some(ops),
            Amount::Duration(_) | Amount::EveryKey => None,
        };
        Self::showing(ops, trial.warm_until_steady, current)
    }

    fn showing(ops: Option<u64>, until_steady: bool, current: Current) -> Self {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(4),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {wide_msg}"));
        Self {
            bar,
            loading: None,
            ops,
            done: 0,
            figures: String::new(),
            current,
            until_steady,
            steady: false,
        }
    }

    fn warming_text(&self, now: Nanos, window: &Window) -> String {
        let left_s = window.start.since(now).as_secs_f64().ceil();
        match (self.until_steady, self.steady) {
            (false, _) => format!("warming up, {left_s:.0} s left"),
            (true, true) => "warming up: steady".to_owned(),
            (true, false) => {
                let (warmed_s, all_s) = (
                    now.since(window.begin).as_secs_f64(),
                    window.start.since(window.begin).as_secs_f64(),
                );
                format!("warming up: not yet steady, {warmed_s:.0} s of at most {all_s:.0} s")
            }
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn close(&self) {
        self.bar.finish_and_clear();
    }
}

/// Rows per second and the time that is left, once there is something to tell.
fn rate_text(done: u64, before: u64, total: u64, elapsed: Duration) -> String {
    let loaded = done.saturating_sub(before) as f64;
    if elapsed < RATE_AFTER || loaded == 0.0 {
        return String::new();
    }
    let rate = loaded / elapsed.as_secs_f64();
    let left_s = total.saturating_sub(done) as f64 / rate;
    format!("  {}/s  {left_s:.0} s left", short(rate))
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a bad one would show in every run.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Live for Screen {
    fn stage(&mut self, what: &str) {
        (self.loading, self.steady, self.done) = (None, false, 0);
        // Of the trial before.
        self.figures.clear();
        self.bar.set_style(style("{spinner} {wide_msg}"));
        self.bar.set_message(output::tame(what));
        self.bar.tick();
    }

    fn begun(&mut self, run_dir: &Path) {
        self.current.set(run_dir.to_owned());
    }

    fn notice(&mut self, what: &str) {
        // Above the bar where there is one.
        self.bar.suspend(|| output::tell(what));
    }

    fn loading(&mut self, done: u64, total: u64) {
        let (began, before) = *self.loading.get_or_insert_with(|| {
            self.bar.set_style(style("loading {bar:20} {wide_msg}"));
            self.bar.set_length(total);
            (Instant::now(), done)
        });
        self.bar.set_position(done);
        let (rows, of) = (short(done as f64), short(total as f64));
        let rate = rate_text(done, before, total, began.elapsed());
        self.bar.set_message(format!("{rows} of {of} rows{rate}"));
    }

    fn warming(&mut self, steady: bool) {
        self.steady = steady;
    }

    fn running(&mut self, now: Nanos, window: &Window) {
        // What nobody sees is not put together either: it would be a quarter of what all threads
        // beside the workers cost.
        if self.bar.is_hidden() {
            return;
        }
        let text = if now < window.start {
            self.warming_text(now, window)
        } else {
            let left = match (self.ops, window.end) {
                (Some(ops), _) if ops > self.done && self.done > 0 => {
                    let elapsed = now.since(window.start).as_secs_f64();
                    format!("{:.0} s left  ", (ops - self.done) as f64 * elapsed / self.done as f64)
                }
                (_, Some(end)) => format!("{:.0} s left  ", end.since(now).as_secs_f64().ceil()),
                _ => String::new(),
            };
            format!("{left}{}", self.figures)
        };
        self.bar.set_message(text);
        self.bar.tick();
    }

    fn interval(&mut self, interval: &LiveInterval<'_>) {
        self.done += interval.ok + interval.errors;
        let ms = |q| interval.latency.quantile(q).0 as f64 / 1e6;
        let ops_s = interval.ok as f64 / interval.length.as_secs_f64().max(1e-9);
        let kind = if interval.is_response { "response" } else { "service" };
        self.figures = format!(
            "{} op/s  {kind} p50 {:.2} ms  p99 {:.2} ms  {} errors  {} in flight  ",
            short(ops_s),
            ms(0.5),
            ms(0.99),
            short(interval.errors as f64),
            short(interval.in_flight as f64)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_has_a_rate_when_it_has_gone_on_for_a_while() {
        assert_eq!(rate_text(16_000, 0, 20_000, Duration::from_micros(40)), "");
        assert_eq!(rate_text(0, 0, 20_000, Duration::from_secs(3)), "");
        // Rows of a load that goes on where another was stopped do not count.
        let told = rate_text(14_000, 10_000, 20_000, Duration::from_secs(2));
        assert_eq!(told, "  2000/s  3 s left");
    }
}
