//! What a host was doing while it was measured, and what that says against the numbers.
//!
//! Input: readings of [`Activity`] over the measured window, with the cpu time that client and
//! target had until then. Output: caveats. Constant memory, whatever the length of the run.
//!
//! Source: limits by their constants. Limits: what ran between two readings is seen by its cpu time
//! only; a stolen tick counts as 10 ms.

use crate::share::percent_raised;
use machine::Activity;
use record::Caveat;
use units::{Bytes, CpuId, CpuSet, Nanos};

/// Share of a cpu's time that a hypervisor may give to others: beyond it the 99th percentile is
/// theirs. A proposal.
const STEAL_SHARE_MAX: f64 = 0.01;
/// How far the clock may drift over the window: the limit that is proposed for runs that are
/// compared (P. Kolaczkowski, "Estimating benchmark errors").
const FREQUENCY_DRIFT_MAX: f64 = 0.02;
/// Readings below which a drift of the clock cannot be told from its noise.
const FREQUENCY_READINGS_MIN: u64 = 10;
/// Work of others, in shares of all cpus: a quarter of them (samyama-graph#717), and never more
/// than one cpu, because client and target are pinned and cannot move away.
const OTHERS_SHARE_MAX: f64 = 0.25;
const OTHERS_CPUS_MAX: f64 = 1.0;
/// Of a shorter time ticks say nothing.
const JUDGED_MIN: Nanos = Nanos::from_millis(200);

/// A host over a window.
#[derive(Debug, Clone)]
pub struct Course {
    watched: CpuSet,
    first: Reading,
    last: Reading,
    swap_used_bytes_max: u64,
    runnable: Mean,
    frequency: Trend,
}

/// One reading, and when it was taken.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// On the clock of the run.
    pub at: Nanos,
    /// What was read.
    pub activity: Activity,
    /// Cpu time that client and target have had; None where the target's is not known though it
    /// may be on this host.
    pub ours: Option<Nanos>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn of(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Least squares over time.
#[derive(Debug, Clone, Copy, Default)]
struct Trend {
    count: u64,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
}

impl Trend {
    fn add(&mut self, t: f64, y: f64) {
        self.count += 1;
        self.t += t;
        self.y += y;
        self.tt += t * t;
        self.ty += t * y;
    }

    /// How much the fitted line rises over `length`, as a share of the mean.
    fn drift(&self, length: f64) -> Option<f64> {
        let n = self.count as f64;
        let spread = n * self.tt - self.t * self.t;
        (self.count >= FREQUENCY_READINGS_MIN && spread > 0.0 && self.y > 0.0)
            .then(|| (n * self.ty - self.t * self.y) / spread * length / (self.y / n))
    }
}

impl Course {
    /// Of a window that begins with this reading; `watched` are the cpus of client and target.
    #[must_use]
    pub fn begin(watched: &CpuSet, first: Reading) -> Self {
        let mut course = Self {
            watched: watched.clone(),
            swap_used_bytes_max: 0,
            runnable: Mean::default(),
            frequency: Trend::default(),
            last: first.clone(),
            first,
        };
        course.note();
        course
    }

    /// Goes on to a later reading.
    pub fn add(&mut self, reading: Reading) {
        self.last = reading;
        self.note();
    }

    fn note(&mut self) {
        let activity = &self.last.activity;
        let used = activity.swap_used_bytes.unwrap_or(0);
        self.swap_used_bytes_max = self.swap_used_bytes_max.max(used);
        if let Some(tasks) = activity.runnable_tasks {
            self.runnable.add(tasks as f64);
        }
        if let Some(mhz) = activity.frequency_mhz {
            self.frequency.add(self.last.at.since(self.first.at).as_secs_f64(), mhz);
        }
    }

    /// What it says against the numbers of this window.
    #[must_use]
    pub fn caveats(&self) -> Vec<Caveat> {
        let judged = self.elapsed() >= JUDGED_MIN;
        let [steal, others] = match judged {
            true => [self.steal(), self.others()],
            false => [None, None],
        };
        [steal, self.swap(), others, self.throttling(), self.drift()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn elapsed(&self) -> Nanos {
        self.last.at.since(self.first.at)
    }

    fn steal(&self) -> Option<Caveat> {
        let share = |cpu: CpuId| {
            let (from, to) = (self.first.activity.cpu(cpu)?, self.last.activity.cpu(cpu)?);
            let spent = to.since(from);
            let total = spent.total_ticks();
            (total > 0).then(|| (spent.steal_ticks as f64 / total as f64, cpu))
        };
        let worst = self.watched.iter().filter_map(share).max_by(|a, b| a.0.total_cmp(&b.0));
        let (share, cpu) = worst.filter(|(share, _)| *share > STEAL_SHARE_MAX)?;
        let text = "The hypervisor gave cpus of this run to somebody else: latencies hold the time \
                    that the guest did not run.";
        Some(
            Caveat::new("steal", text)
                .evidence(format!("cpu {}: {} stolen (/proc/stat)", cpu.0, percent_raised(share)))
                .cure("Measure on dedicated cpus, or when the neighbours are quiet."),
        )
    }

    fn swap(&self) -> Option<Caveat> {
        let moved = |of: fn(&Activity) -> Option<u64>| {
            let (from, to) = (of(&self.first.activity), of(&self.last.activity));
            to.zip(from).map_or(0, |(to, from)| to.saturating_sub(from))
        };
        let (pages_in, pages_out) = (moved(|a| a.swapped_in_pages), moved(|a| a.swapped_out_pages));
        let used = self.swap_used_bytes_max;
        let text = match (pages_in + pages_out, used) {
            (0, 0) => return None,
            (0, _) => {
                "Swap is in use on this host: memory that was put out has to come back from disk \
                 when it is touched."
            }
            _ => "Memory was swapped while measuring: times hold waits for the disk.",
        };
        Some(
            Caveat::new("swap", text)
                .evidence(format!(
                    "{} of swap in use, {pages_in} pages in and {pages_out} out in the window",
                    Bytes(used)
                ))
                .cure("`sudo swapoff -a`, and give the database less memory if that fails."),
        )
    }

    fn others(&self) -> Option<Caveat> {
        let elapsed_s = self.elapsed().as_secs_f64();
        let (from, to) = (&self.first, &self.last);
        let spent = to.activity.all.as_ref()?.since(from.activity.all.as_ref()?);
        let cpus = to.activity.cpus.len() as f64;
        let ours = to.ours?.since(from.ours?).as_secs_f64() / elapsed_s;
        let working = spent.user_ticks + spent.system_ticks;
        let all = working as f64 / (spent.total_ticks() as f64).max(1.0) * cpus;
        let (others, limit) = (all - ours, (cpus * OTHERS_SHARE_MAX).min(OTHERS_CPUS_MAX));
        let runnable = self.runnable.of().unwrap_or(f64::NAN);
        let text = "Something else was running on this host: it takes cpu time, caches and memory \
                    bandwidth from client and target.";
        (others > limit).then(|| {
            Caveat::new("busy-host", text)
                .evidence(format!(
                    "{others:.2} of {cpus} cpus were used by neither client nor target (limit \
                     {limit:.2}); procs_running was {runnable:.1} on average, the reader included"
                ))
                .cure("`top` shows what it is: end it, or measure when it is over.")
        })
    }

    fn throttling(&self) -> Option<Caveat> {
        let (from, to) =
            (self.first.activity.throttle_events?, self.last.activity.throttle_events?);
        let events = to.saturating_sub(from);
        let text = "The processor was too hot or out of power and throttled itself.";
        (events > 0).then(|| {
            Caveat::new("throttled-cpu", text)
                .evidence(format!("{events} events (thermal_throttle/*_throttle_count)"))
                .cure("Mend the cooling or the power limit, or measure at a lower fixed clock.")
        })
    }

    fn drift(&self) -> Option<Caveat> {
        let drift = self.frequency.drift(self.elapsed().as_secs_f64())?;
        let mean_mhz = self.frequency.y / self.frequency.count as f64;
        let way = if drift > 0.0 { "rose" } else { "fell" };
        (drift.abs() > FREQUENCY_DRIFT_MAX).then(|| {
            let share = percent_raised(drift.abs());
            let text = format!("The clock of the cpus {way} by {share} over the window.");
            Caveat::new("frequency", text)
                .evidence(format!(
                    "{mean_mhz:.0} MHz on average over cpus {} (cpufreq/scaling_cur_freq), limit \
                     {} %",
                    self.watched,
                    FREQUENCY_DRIFT_MAX * 100.0
                ))
                .cure("Fix the clock: governor performance and turbo off, or warm up longer.")
        })
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
