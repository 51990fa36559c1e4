//! What a machine is doing: cpu times, runnable tasks, swap, clocks, throttling, retransmits.
//!
//! Input: `/proc/{stat,meminfo,vmstat,net/snmp}` and, of the cpus asked for, `cpufreq` and
//! `thermal_throttle`, live or recorded. Output: [`Activity`]: counters since boot and the values
//! of one moment. Two of them make a rate; what follows from it is judged elsewhere.
//!
//! Source: proc(5), RFC 4022 (tcpRetransSegs), the kernel's
//! Documentation/admin-guide/pm/cpufreq.rst and Documentation/ABI/testing/sysfs-devices-system-cpu.
//! Measured cost of one reading on 2 cpus: below 0.3 ms. Limits: cpu times count in ticks, mostly
//! of 10 ms; what a kernel does not have is `None`.

use crate::parse;
use crate::source::Source;
use std::path::Path;
use units::{CpuId, CpuSet};

/// Time of a cpu, or of all, in clock ticks since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// User mode, low priority included, guests included.
    pub user_ticks: u64,
    /// Kernel mode without interrupts.
    pub system_ticks: u64,
    /// Hard and soft interrupts.
    pub interrupt_ticks: u64,
    /// Idle, waiting for a disk included.
    pub idle_ticks: u64,
    /// The part of it that waited for a disk.
    pub disk_wait_ticks: u64,
    /// A guest's: the hypervisor ran somebody else.
    pub steal_ticks: u64,
}

impl CpuTimes {
    /// All of them.
    #[must_use]
    pub fn total_ticks(&self) -> u64 {
        [self.user_ticks, self.system_ticks, self.interrupt_ticks, self.idle_ticks]
            .into_iter()
            .fold(self.steal_ticks, u64::saturating_add)
    }

    /// From `earlier` to this. Zero where a counter ran backwards, as idle time may.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
            interrupt_ticks: self.interrupt_ticks.saturating_sub(earlier.interrupt_ticks),
            idle_ticks: self.idle_ticks.saturating_sub(earlier.idle_ticks),
            disk_wait_ticks: self.disk_wait_ticks.saturating_sub(earlier.disk_wait_ticks),
            steal_ticks: self.steal_ticks.saturating_sub(earlier.steal_ticks),
        }
    }
}

/// One reading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Activity {
    /// Of all cpus together.
    pub all: Option<CpuTimes>,
    /// Of each online cpu, ascending.
    pub cpus: Vec<(CpuId, CpuTimes)>,
    /// Tasks that run or could run now, the reader among them.
    pub runnable_tasks: Option<u64>,
    /// Context switches since boot.
    pub context_switches: Option<u64>,
    /// Swap space in use.
    pub swap_used_bytes: Option<u64>,
    /// Memory that programs could still get.
    pub memory_available_bytes: Option<u64>,
    /// Pages brought in from swap since boot.
    pub swapped_in_pages: Option<u64>,
    /// Pages put out to swap since boot.
    pub swapped_out_pages: Option<u64>,
    /// TCP segments sent again since boot.
    pub tcp_retransmits: Option<u64>,
    /// Mean clock of the watched cpus.
    pub frequency_mhz: Option<f64>,
    /// Throttling events of the watched cpus' cores and packages since boot; a package counts once
    /// for each of its cpus.
    pub throttle_events: Option<u64>,
}

impl Activity {
    /// The times of one cpu.
    #[must_use]
    pub fn cpu(&self, id: CpuId) -> Option<&CpuTimes> {
        let found = self.cpus.binary_search_by_key(&id, |(cpu, _)| *cpu).ok()?;
        self.cpus.get(found).map(|(_, times)| times)
    }
}

/// Reads a machine's activity again and again.
#[derive(Debug)]
pub struct ActivityReader {
    source: Source,
    watched: CpuSet,
}

impl ActivityReader {
    /// Of the machine below `root` (`/` for this one). Clocks and throttling are read of the
    /// `watched` cpus only: asking a cpu for its clock may interrupt it.
    #[must_use]
    pub fn new(root: &Path, watched: &CpuSet) -> Self {
        Self { source: Source::new(root), watched: watched.clone() }
    }

    /// What the machine is doing now.
    #[must_use]
    pub fn read(&self) -> Activity {
        let text = |path| self.source.text(path).unwrap_or_default();
        let (stat, meminfo) = (text("proc/stat"), text("proc/meminfo"));
        let (vmstat, snmp) = (text("proc/vmstat"), text("proc/net/snmp"));
        let size = |key| parse::kib(&meminfo, key);
        let cpus = each_cpu(&stat);
        Activity {
            all: all_cpus(&stat),
            cpus,
            runnable_tasks: number(&stat, "procs_running"),
            context_switches: number(&stat, "ctxt"),
            swap_used_bytes: size("SwapTotal")
                .and_then(|total| Some(total.saturating_sub(size("SwapFree")?))),
            memory_available_bytes: size("MemAvailable"),
            swapped_in_pages: number(&vmstat, "pswpin"),
            swapped_out_pages: number(&vmstat, "pswpout"),
            tcp_retransmits: protocol_counter(&snmp, "Tcp", "RetransSegs"),
            frequency_mhz: self.frequency_mhz(),
            throttle_events: self.throttle_events(),
        }
    }

    fn frequency_mhz(&self) -> Option<f64> {
        let clock = |cpu: CpuId| {
            let path = format!("sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu.0);
            self.source.number::<u32>(&path)
        };
        let khz: Vec<u32> = self.watched.iter().filter_map(clock).collect();
        let sum: f64 = khz.iter().map(|khz| f64::from(*khz)).sum();
        (!khz.is_empty()).then(|| sum / khz.len() as f64 / 1e3)
    }

    fn throttle_events(&self) -> Option<u64> {
        let counts = self.watched.iter().flat_map(|cpu| {
            ["core", "package"].map(|what| {
                let dir = format!("sys/devices/system/cpu/cpu{}/thermal_throttle", cpu.0);
                self.source.number::<u64>(&format!("{dir}/{what}_throttle_count"))
            })
        });
        counts.flatten().fold(None, |sum, n| Some(sum.unwrap_or(0_u64).saturating_add(n)))
    }
}

/// The fields behind `cpu` or `cpu7`: user nice system idle iowait irq softirq steal guest ...;
/// kernels before 2.6.11 have fewer.
fn times<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<CpuTimes> {
    let mut ticks = [0_u64; 8];
    let mut read = 0;
    for tick in &mut ticks {
        let Some(field) = fields.next() else { break };
        *tick = field.parse().ok()?;
        read += 1;
    }
    let [user, low, system, idle, disk_wait, hard, soft, steal] = ticks;
    (read >= 4).then(|| CpuTimes {
        user_ticks: user.saturating_add(low),
        system_ticks: system,
        interrupt_ticks: hard.saturating_add(soft),
        idle_ticks: idle.saturating_add(disk_wait),
        disk_wait_ticks: disk_wait,
        steal_ticks: steal,
    })
}

fn all_cpus(stat: &str) -> Option<CpuTimes> {
    times(stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace())
}

fn each_cpu(stat: &str) -> Vec<(CpuId, CpuTimes)> {
    let one = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_whitespace();
        let id = fields.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
        Some((CpuId(id), times(fields)?))
    };
    let mut cpus: Vec<_> = stat.lines().filter_map(one).collect();
    cpus.sort_unstable_by_key(|(id, _)| *id);
    cpus.dedup_by_key(|(id, _)| *id);
    cpus
}

/// The number of a line `key number`.
fn number(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(key)).then(|| words.next()?.parse().ok())?
    })
}

/// A counter of `/proc/net/snmp`, where a line of names is followed by one of values, both with
/// the protocol in front.
fn protocol_counter(snmp: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| {
        let (head, rest) = line.split_once(':')?;
        (head == protocol).then_some(rest)
    });
    let at = lines.next()?.split_whitespace().position(|field| field == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "\
cpu  124173 7 18854 65066 724 3 2258 89 5 0
cpu0 62501 0 8138 33236 115 0 1188 43 0 0
cpu10 61672 7 10715 31829 608 3 1070 46 0 0
intr 2096967 0 0
ctxt 4540494
btime 1795251652
procs_running 3
procs_blocked 0
";

    #[test]
    fn times_are_those_of_proc_stat() {
        let all = all_cpus(STAT).unwrap();
        assert_eq!((all.user_ticks, all.system_ticks), (124_180, 18_854));
        assert_eq!((all.interrupt_ticks, all.steal_ticks), (2261, 89));
        assert_eq!((all.idle_ticks, all.disk_wait_ticks), (65_790, 724));
        assert_eq!(all.total_ticks(), 124_173 + 7 + 18_854 + 65_066 + 724 + 3 + 2258 + 89);
        let cpus = each_cpu(STAT);
        assert_eq!(cpus.iter().map(|(id, _)| id.0).collect::<Vec<_>>(), [0, 10]);
        assert_eq!(cpus[1].1.steal_ticks, 46);
        let activity = Activity { cpus, ..Activity::default() };
        assert_eq!(activity.cpu(CpuId(10)).unwrap().user_ticks, 61_679);
        assert_eq!(activity.cpu(CpuId(1)), None);
    }

    #[test]
    fn old_kernels_have_fewer_fields_and_fewer_than_four_are_none() {
        let old = all_cpus("cpu  1 2 3 4").unwrap();
        assert_eq!((old.total_ticks(), old.steal_ticks), (10, 0));
        for text in ["cpu  1 2 3", "cpu  1 2 x 4", "cpu0 1 2 3 4", "", "cpu"] {
            assert_eq!(all_cpus(text), None, "{text}");
        }
        assert_eq!(each_cpu("cpu 1 2 3 4\ncpux 1 2 3 4\ncpu1\n"), []);
    }

    #[test]
    fn a_counter_that_runs_backwards_has_not_moved() {
        let earlier = CpuTimes { idle_ticks: 10, user_ticks: 5, ..CpuTimes::default() };
        let later = CpuTimes { idle_ticks: 9, user_ticks: 7, ..CpuTimes::default() };
        let moved = later.since(&earlier);
        assert_eq!((moved.idle_ticks, moved.user_ticks, moved.total_ticks()), (0, 2, 2));
    }

    #[test]
    fn single_numbers_and_protocol_tables() {
        assert_eq!(number(STAT, "procs_running"), Some(3));
        assert_eq!(number(STAT, "procs"), None);
        let snmp = "Ip: A RetransSegs\nIp: 1 2\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 489 0\n";
        assert_eq!(protocol_counter(snmp, "Tcp", "RetransSegs"), Some(489));
        assert_eq!(protocol_counter(snmp, "Tcp", "OutRsts"), None);
        assert_eq!(protocol_counter("Tcp: RetransSegs\n", "Tcp", "RetransSegs"), None);
    }

    #[test]
    fn this_machine_is_active() {
        let cpus: CpuSet = std::iter::once(CpuId(0)).collect();
        let activity = ActivityReader::new(Path::new("/"), &cpus).read();
        assert!(activity.all.is_some_and(|all| all.total_ticks() > 0), "{activity:?}");
        // The reader itself runs.
        assert!(activity.runnable_tasks.is_some_and(|tasks| tasks >= 1), "{activity:?}");
        assert!(!activity.cpus.is_empty() && activity.context_switches > Some(0));
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(
            text in "\\PC{0,80}|(cpu|cpu[0-9]{1,12}|Tcp:|procs_running)?[ 0-9x\n-]{0,80}"
        ) {
            let _ = (all_cpus(&text), each_cpu(&text), number(&text, "procs_running"));
            let _ = protocol_counter(&text, "Tcp", "0");
            let huge = format!("cpu  {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX);
            let times = all_cpus(&huge).unwrap_or_default();
            prop_assert_eq!(times.total_ticks(), u64::MAX);
            prop_assert_eq!(times.since(&times).total_ticks(), 0);
        }
    }
}
