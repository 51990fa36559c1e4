//! What the host and the target's processes do while a run is measured, once a second.
//!
//! In: the start of the window and the time of each tick. Out: rows of `counters.csv` (source
//! `procfs`), and the [`Course`] that caveats are read from. Runs on the recorder's thread, which
//! is awake twenty times a second anyway: a thread of its own would be one more to schedule on a
//! full host, and would need a way to the counters' file. The data plane never waits for the
//! recorder. Measured cost: 0.3 ms a reading on 2 cpus with one target process; each reading
//! records its own.

use analyze::{Course, Reading};
use machine::{Activity, ActivityReader, CpuTimes};
use record::table::Counter;
use stage::usage::Usage;
use stage::{ProcessId, usage};
use std::path::Path;
use units::{CpuSet, Nanos, clock};

/// Between readings.
const EVERY: Nanos = Nanos::from_secs(1);
/// A last reading closer to the one before it would only be noise.
const LAST_MIN: Nanos = Nanos::from_millis(100);

/// Reads a host over a window.
#[derive(Debug)]
pub(crate) struct Capture {
    reader: ActivityReader,
    watched: CpuSet,
    /// Of the target, those on this host.
    processes: Vec<ProcessId>,
    /// Whether the target may be one of this host's processes without being known.
    target_unknown: bool,
    course: Option<Course>,
    before: Sample,
    window_start: Nanos,
}

/// One reading, and what else is told beside it.
#[derive(Debug, Default)]
struct Sample {
    reading: Reading,
    target_cpu: Nanos,
    /// Of each process, in their order.
    processes_cpu: Vec<Nanos>,
    target_rss_bytes: u64,
    /// Cpu time that all readings have cost.
    cost: Nanos,
}

impl Capture {
    /// Of this host; clocks and stolen time are those of `watched`.
    pub(crate) fn new(watched: CpuSet, processes: Vec<ProcessId>, target_unknown: bool) -> Self {
        Self {
            reader: ActivityReader::new(Path::new("/"), &watched),
            watched,
            processes,
            target_unknown,
            course: None,
            before: Sample::default(),
            window_start: Nanos::ZERO,
        }
    }

    /// Rows that are due by `now`; none while warming up.
    pub(crate) fn tick(&mut self, now: Nanos, window_start: Nanos) -> Vec<Counter> {
        if now < window_start {
            return Vec::new();
        }
        if self.course.is_none() {
            self.window_start = window_start;
            self.before = self.sample();
            self.course = Some(Course::begin(&self.watched, self.before.reading.clone()));
            return Vec::new();
        }
        if now.since(self.before.reading.at) < EVERY {
            return Vec::new();
        }
        self.go_on()
    }

    /// The rows since the last tick, and all that was seen.
    pub(crate) fn finish(mut self) -> (Vec<Counter>, Option<Course>) {
        let due = clock::now().since(self.before.reading.at) >= LAST_MIN;
        let rows = if self.course.is_some() && due { self.go_on() } else { Vec::new() };
        (rows, self.course)
    }

    fn go_on(&mut self) -> Vec<Counter> {
        let now = self.sample();
        let rows = self.rows(&now);
        if let Some(course) = &mut self.course {
            course.add(now.reading.clone());
        }
        self.before = now;
        rows
    }

    fn sample(&self) -> Sample {
        let began = clock::thread_cpu();
        let activity = self.reader.read();
        let used: Vec<_> = self
            .processes
            .iter()
            .map(|process| process.is_alive().then(|| usage::of(process.pid)).flatten())
            .collect();
        let cpu = |index: usize, used: &Option<Usage>| {
            let before = self.before.processes_cpu.get(index).copied().unwrap_or_default();
            // What one that has ended has used does not come back to others.
            used.as_ref().map_or(before, |used| used.cpu_user + used.cpu_system)
        };
        let processes_cpu: Vec<_> = used.iter().enumerate().map(|(i, u)| cpu(i, u)).collect();
        let target_cpu = processes_cpu.iter().fold(Nanos::ZERO, |sum, cpu| sum + *cpu);
        let client_cpu = clock::process_cpu();
        let ours = (!self.target_unknown).then_some(client_cpu + target_cpu);
        Sample {
            reading: Reading { at: clock::now(), activity, ours },
            target_cpu,
            processes_cpu,
            target_rss_bytes: used.iter().flatten().map(|u| u.rss.0).sum(),
            cost: self.before.cost + clock::thread_cpu().since(began),
        }
    }

    fn rows(&self, now: &Sample) -> Vec<Counter> {
        let (from, to) = (&self.before.reading.activity, &now.reading.activity);
        let length_s = now.reading.at.since(self.before.reading.at).as_secs_f64().max(1e-9);
        let per_s = |of: fn(&Activity) -> Option<u64>| {
            of(to).zip(of(from)).map(|(to, from)| to.saturating_sub(from) as f64 / length_s)
        };
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut values = shares(from, to);
        values.extend([
            ("procs_running", to.runnable_tasks.map(|n| n as f64), "tasks"),
            ("context_switches", per_s(|a| a.context_switches), "1/s"),
            ("memory_available", to.memory_available_bytes.map(mib), "MiB"),
            ("swap_used", to.swap_used_bytes.map(mib), "MiB"),
            ("swapped_in", per_s(|a| a.swapped_in_pages), "pages/s"),
            ("swapped_out", per_s(|a| a.swapped_out_pages), "pages/s"),
            ("tcp_retransmits", per_s(|a| a.tcp_retransmits), "1/s"),
            ("frequency", to.frequency_mhz, "MHz"),
            ("throttling", per_s(|a| a.throttle_events), "1/s"),
        ]);
        let used = |to: Nanos, from: Nanos| Some(to.since(from).as_secs_f64() / length_s);
        if !self.processes.is_empty() {
            values.push(("target_cpu", used(now.target_cpu, self.before.target_cpu), "cpus"));
            values.push(("target_rss", Some(mib(now.target_rss_bytes)), "MiB"));
        }
        values.push(("capture_cpu", used(now.cost, self.before.cost), "cpus"));
        let t_s = now.reading.at.since(self.window_start).as_secs_f64();
        let row = |source: &str, (metric, value, unit): Value| {
            let (host, source) = ("local".to_owned(), source.to_owned());
            let (metric, unit) = (metric.to_owned(), unit.to_owned());
            Some(Counter { t_s, host, source, metric, value: value?, unit })
        };
        let of_host = values.into_iter().filter_map(|value| row("procfs", value));
        let mut rows: Vec<Counter> = of_host.collect();
        // Of one alone it is that of the target.
        if self.processes.len() > 1 {
            let both = now.processes_cpu.iter().zip(&self.before.processes_cpu);
            let each = (1..).zip(both).filter_map(|(number, (to, from))| {
                row(&format!("instance-{number}"), ("cpu", used(*to, *from), "cpus"))
            });
            rows.extend(each);
        }
        rows
    }
}

type Value = (&'static str, Option<f64>, &'static str);

/// Shares of the time of all cpus.
fn shares(from: &Activity, to: &Activity) -> Vec<Value> {
    let spent = to.all.zip(from.all).map(|(to, from)| to.since(&from));
    let share = |of: fn(&CpuTimes) -> u64| {
        let spent = spent.filter(|spent| spent.total_ticks() > 0)?;
        Some(of(&spent) as f64 / spent.total_ticks() as f64)
    };
    [
        ("cpu_user", share(|t| t.user_ticks)),
        ("cpu_system", share(|t| t.system_ticks)),
        ("cpu_interrupts", share(|t| t.interrupt_ticks)),
        ("cpu_disk_wait", share(|t| t.disk_wait_ticks)),
        ("cpu_steal", share(|t| t.steal_ticks)),
    ]
    .map(|(metric, value)| (metric, value, "share"))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_with_the_window_and_come_once_a_second() {
        let me = ProcessId::of(std::process::id()).unwrap();
        let cpus: CpuSet = "0".parse().unwrap();
        let mut capture = Capture::new(cpus, vec![me], false);
        let start = clock::now();
        assert_eq!(capture.tick(start, start + EVERY), []);
        assert!(capture.course.is_none(), "nothing is read while warming up");
        assert_eq!(capture.tick(start, start), []);
        assert_eq!(capture.tick(start + Nanos::from_millis(900), start), []);
        // By the caller's clock a second has passed.
        let rows = capture.tick(clock::now() + EVERY, start);
        let of = |metric: &str| rows.iter().find(|row| row.metric == metric);
        assert!(of("procs_running").is_some_and(|row| row.value >= 1.0), "{rows:?}");
        assert!(of("target_rss").is_some_and(|row| row.value > 0.1), "{rows:?}");
        assert!(of("capture_cpu").is_some_and(|row| row.value > 0.0), "{rows:?}");
        assert!(rows.iter().all(|row| row.source == "procfs" && row.value.is_finite()));
        std::thread::sleep(LAST_MIN.to_duration());
        let (rows, course) = capture.finish();
        assert!(!rows.is_empty() && course.is_some());
        assert!(rows.iter().all(|row| row.t_s >= 0.1), "{rows:?}");
    }

    #[test]
    fn a_run_that_never_left_its_warm_up_has_no_course() {
        let (rows, course) = Capture::new(CpuSet::default(), Vec::new(), false).finish();
        assert!(rows.is_empty() && course.is_none());
    }
}
