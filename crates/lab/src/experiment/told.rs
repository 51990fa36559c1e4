//! An outcome for people: the verdict first, how sure it is, then what it rests on, what speaks
//! against it, how it was come by, and what to do.
//!
//! Tables have at most 80 columns; sentences are whole lines, which who prints them breaks.

use super::outcome::{Cell, Figures, INSTANCES, Outcome, Scaled};
use crate::caveats::STAND_IN;
use analyze::arms::By;
use analyze::ratio::Ratio;
use analyze::scaling::Step;
use analyze::usl::Usl;
use record::Caveat;
use record::repeats::Spread;
use std::fmt::Write as _;

const SAME_CPUS: &str = "All instances share the cpus that one has alone: op/s are compared, there \
                         is no efficiency.";

impl Outcome {
    /// For people.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        // What is no database is told before anything else.
        let (first, others): (Vec<&Caveat>, Vec<&Caveat>) =
            self.caveats.iter().partition(|caveat| caveat.code == STAND_IN);
        for caveat in first {
            let _ = writeln!(text, "{}", caveat.text);
        }
        let (name, done, planned) = (&self.name, self.done, self.planned);
        let _ = write!(text, "{name}: {done} of {planned} trials ok");
        let codes: Vec<&str> = others.iter().map(|caveat| caveat.code.as_str()).collect();
        let _ = match codes.as_slice() {
            [] => writeln!(text),
            _ => writeln!(text, ", with caveats: {}", codes.join(", ")),
        };
        if self.misplaced > 0 {
            let _ = writeln!(text, "  {} misplaced, not counted", self.misplaced);
        }
        for cell in &self.cells {
            let _ = writeln!(text, "\n{}", heading(&cell.factors));
            cell.write_verdict(&mut text);
        }
        for cell in &self.cells {
            let factor = self.compare.as_deref().unwrap_or("experiment");
            let _ = writeln!(text, "\n{}", heading(&cell.factors));
            cell.write_table(factor, &mut text);
        }
        for scaled in &self.scaled {
            let budget = self.budget.as_deref().unwrap_or("budget");
            let _ = writeln!(text, "\n{}, growth with {budget}", heading(&scaled.factors));
            scaled.write(budget, &mut text);
        }
        for (at, Caveat { code, text: what, cure, .. }) in others.into_iter().enumerate() {
            let blank = if at == 0 { "\n" } else { "" };
            let _ = writeln!(text, "{blank}  ! {code}. {what} {cure}");
        }
        self.write_study(&mut text);
        text
    }

    fn write_study(&self, text: &mut String) {
        let Some(study) = &self.study else { return };
        let _ = writeln!(text, "\nhow it was come by");
        let all = study.arms.iter().chain(&study.clients).chain(&study.left_out);
        for sentence in all {
            let _ = writeln!(text, "  {sentence}");
        }
        if let Some(recommended) = &study.recommended {
            let _ = writeln!(text, "\n{recommended}");
        }
    }
}

fn heading(factors: &[(String, String)]) -> String {
    let level = |(factor, level): &(String, String)| format!("{factor} {level}");
    match factors.is_empty() {
        true => "all trials".to_owned(),
        false => factors.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

impl Cell {
    fn write_verdict(&self, text: &mut String) {
        if let Some(sentence) = &self.sentence {
            let _ = writeln!(text, "  {sentence}");
        }
        if let Some(surely) = &self.surely {
            let _ = writeln!(text, "  how sure: {surely}");
        }
        if self.by == By::ResponseP99 {
            let _ = writeln!(text, "  op/s is the schedule here, and says nothing of the arms");
        }
    }

    fn write_table(&self, factor: &str, text: &mut String) {
        let names = self.arms.iter().map(|arm| arm.name.as_str()).chain([factor]);
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "  {factor:<width$} {:>9}  {:<30}  response p99, ms (median)",
            "op/s", "(from, to)"
        );
        for arm in &self.arms {
            let Figures { name, ops_s_mean, response_p99_us_spread, .. } = arm;
            let _ = match ops_s_mean {
                Some(mean) => writeln!(
                    text,
                    "  {name:<width$} {:>9.0}  {:<30}  {}",
                    mean.value,
                    within(mean),
                    waits(response_p99_us_spread.as_ref())
                ),
                None => writeln!(text, "  {name:<width$}  nothing measured"),
            };
        }
        for arm in &self.arms {
            if let Some(cpu) = &arm.cpu {
                let _ = writeln!(text, "  {:<width$}  {}", arm.name, cpu.in_words());
            }
            if let Some(pages) = arm.pages.as_ref().filter(|pages| !pages.is_one()) {
                let _ = writeln!(text, "  {:<width$}  pages {}", arm.name, pages.in_words());
            }
        }
    }
}

fn within(mean: &Ratio) -> String {
    match mean.interval {
        Some((low, high)) => format!("({low:.0} to {high:.0}, {})", mean.interval_kind.name()),
        None => format!("({})", mean.interval_kind.name()),
    }
}

fn waits(spread: Option<&Spread>) -> String {
    let ms = |us: f64| format!("{:.2}", us / 1e3);
    match spread {
        None => "-".to_owned(),
        Some(of) if of.min < of.max => {
            format!("{} ({} to {})", ms(of.median), ms(of.min), ms(of.max))
        }
        Some(of) => ms(of.median),
    }
}

impl Scaled {
    fn write(&self, budget: &str, text: &mut String) {
        let width = budget.chars().count().max(4);
        let efficiency = if budget == INSTANCES { "" } else { "  efficiency" };
        let _ = writeln!(text, "  {budget:>width$} {:>10}  speed-up{efficiency}", "op/s");
        for (at, Step { budget, level, speedup, efficiency }) in self.steps.iter().enumerate() {
            let (Some(level), Some(speedup)) = (level, speedup) else {
                let _ = writeln!(text, "  {budget:>width$}  nothing measured");
                continue;
            };
            let efficiency = match efficiency {
                Some(_) if at == 0 => "  the base".to_owned(),
                Some(share) => {
                    let within = within_percent(share);
                    format!("  {:.1} % {within}", share.value * 100.0)
                }
                None => String::new(),
            };
            let (ops_s, times) = (level.value, speedup.value);
            let _ = writeln!(text, "  {budget:>width$} {ops_s:>10.0}  {times:>8.2}{efficiency}");
        }
        if budget == INSTANCES {
            let _ = writeln!(text, "  {SAME_CPUS}");
        }
        let _ = match &self.usl {
            Usl::Fitted(fit) => {
                let (sigma, kappa) = (fit.sigma_interval, fit.kappa_interval);
                writeln!(
                    text,
                    "  contention {:.4} ({:.4} to {:.4}), crosstalk {:.5} ({:.5} to {:.5}), 95 %",
                    fit.law.sigma, sigma.0, sigma.1, fit.law.kappa, kappa.0, kappa.1
                )
            }
            Usl::NotFitted { reason } => writeln!(text, "  no scalability law: {reason}"),
        };
    }
}

fn within_percent(share: &Ratio) -> String {
    let kind = share.interval_kind.name();
    match share.interval {
        Some((low, high)) => {
            format!("({:.1} to {:.1}, {kind})", low * 100.0, high * 100.0)
        }
        None => format!("({kind})"),
    }
}
