//! What else runs on a host.
//!
//! Input: `proc/stat`, `proc/loadavg` and `proc/PID/stat`. Output: [`Tasks`]: one moment; two of
//! them tell who used the cpus in between. Source: proc(5). Limits: at most 65536 processes.

use crate::source::Source;
use std::path::Path;

/// More processes than this are not looked at.
const PROCESSES_MAX: usize = 65_536;

/// What runs on a host at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tasks {
    /// Tasks that run or want to (`procs_running`), the reader among them.
    pub runnable: Option<u32>,
    /// Load average over one minute.
    pub load_1min: Option<f64>,
    /// Processes that could be read; empty in trees without them.
    pub processes: Vec<Process>,
    /// Whether systemd-timesyncd has set the clock.
    pub timesync_done: bool,
}

/// A process and the cpu time that it has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// User and system time since its start, in clock ticks.
    pub cpu_ticks: u64,
}

impl Tasks {
    /// Reads what runs below `root`.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        read(&Source::new(root))
    }

    /// Tasks that run or want to below `root` at this moment, and nothing else.
    #[must_use]
    pub fn runnable(root: &Path) -> Option<u32> {
        runnable(&Source::new(root))
    }

    /// Whether a process has one of these names.
    #[must_use]
    pub fn runs(&self, names: &[&str]) -> Option<&Process> {
        self.processes.iter().find(|process| names.contains(&process.name.as_str()))
    }

    /// The processes that used the cpus most since `before`, most first: name, number and ticks;
    /// without process `except`.
    #[must_use]
    pub fn busiest_since(&self, before: &Self, except: u32) -> Vec<Process> {
        let old = |pid| before.processes.iter().find(|p| p.pid == pid).map(|p| p.cpu_ticks);
        let mut used: Vec<_> = self
            .processes
            .iter()
            .filter(|process| process.pid != except)
            .filter_map(|process| {
                let cpu_ticks = process.cpu_ticks.saturating_sub(old(process.pid)?);
                (cpu_ticks > 0).then(|| Process { cpu_ticks, ..process.clone() })
            })
            .collect();
        used.sort_by_key(|process| std::cmp::Reverse(process.cpu_ticks));
        used
    }
}

fn runnable(source: &Source) -> Option<u32> {
    let stat = source.text("proc/stat")?;
    let count = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    count.trim().parse().ok()
}

pub(crate) fn read(source: &Source) -> Tasks {
    let load = source.text("proc/loadavg");
    let pids = source.numbered("proc", "");
    let process = |pid: u32| process(pid, &source.text(&format!("proc/{pid}/stat"))?);
    Tasks {
        runnable: runnable(source),
        load_1min: load.and_then(|text| text.split_whitespace().next()?.parse().ok()),
        processes: pids.into_iter().take(PROCESSES_MAX).filter_map(process).collect(),
        timesync_done: source.exists("run/systemd/timesync/synchronized"),
    }
}

/// `17 (name with ) and blanks) S 1 ...`: fields 14 and 15 are user and system ticks.
fn process(pid: u32, stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut ticks = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let cpu_ticks = ticks.next()?.ok()?.checked_add(ticks.next()?.ok()?)?;
    Some(Process { pid, name: name.to_owned(), cpu_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_shift_the_fields() {
        let line = "17 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20";
        let found = process(17, line);
        assert_eq!(found, Some(Process { pid: 17, name: "a) b (c)".into(), cpu_ticks: 42 }));
        for text in ["", "17", "17 (x", "17 (x) S 1", "17 (x) S 1 2 3 4 5 6 7 8 9 10 a b"] {
            assert_eq!(process(17, text), None, "{text}");
        }
    }

    #[test]
    fn the_busiest_are_told_by_the_difference() {
        let at = |ticks: &[(u32, u64)]| {
            let process = |&(pid, cpu_ticks)| Process { pid, name: format!("p{pid}"), cpu_ticks };
            Tasks { processes: ticks.iter().map(process).collect(), ..Tasks::default() }
        };
        let before = at(&[(1, 100), (2, 50), (3, 7), (9, 0)]);
        let after = at(&[(1, 101), (2, 90), (3, 7), (4, 1000), (9, 500)]);
        let busiest: Vec<_> =
            after.busiest_since(&before, 9).iter().map(|p| (p.pid, p.cpu_ticks)).collect();
        // Number 4 is new: what it used before it was seen is not known.
        assert_eq!(busiest, [(2, 40), (1, 1)]);
    }
}
