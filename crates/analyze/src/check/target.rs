//! What is to be driven: whether it answers, how far it is, and which of its settings make numbers
//! say something else than they seem to.

use super::Source::{CassandraYaml, IntelC, Own, Sct, TechEmpower};
use super::{Finding, Group, io};
use machine::{Facts, Limits};
use units::CpuSet;

/// A host of a target, as it answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// `HOST:PORT` as connected to.
    pub address: String,
    /// What it answered, or why it did not.
    pub reached: Result<Reached, String>,
}

/// A target that answers CQL.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// Its release.
    pub version: Option<String>,
    /// Whether it is wideload's own, and no database.
    pub stand_in: bool,
    /// Median time to establish a connection, in microseconds.
    pub connect_us: f64,
    /// Median time of the smallest query, in microseconds.
    pub query_us: f64,
    /// Its clock against ours; `None` when it does not tell its time.
    pub clock: Option<Clock>,
    /// Its process, when it is on this host and may be seen.
    pub local: Local,
    /// Its settings; `None` when it has no table of them.
    pub settings: Option<Vec<Setting>>,
}

/// Where the target's process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    /// On another host.
    Elsewhere,
    /// On this one, and it may not be looked at.
    Hidden,
    /// On this one.
    Here {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
        /// What it may use.
        limits: Limits,
        /// Where it may run.
        cpus: CpuSet,
    },
}

/// A clock against ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// How far it is ahead, in milliseconds.
    pub ahead_ms: f64,
    /// How far that may be off, in milliseconds.
    pub error_ms: f64,
}

/// A row of `system_views.settings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// Clocks further apart than this are not one clock.
const APART_MS_MAX: f64 = 1.0;

/// The finding on a target that cannot be connected to.
#[must_use]
pub fn unreachable(address: &str, reason: &str) -> Finding {
    reach(address).value("no answer").fail(reason, "start it, or give its CQL address to --target")
}

fn reach(address: &str) -> Finding {
    Finding::new(Group::Target, "target.reach", "CQL at", "answers", &[Own]).of(address)
}

pub(super) fn findings(
    target: &Target,
    client_cpus: &CpuSet,
    host: Option<&Facts>,
) -> Vec<Finding> {
    let reached = match &target.reached {
        Ok(reached) => reached,
        Err(reason) => return vec![unreachable(&target.address, reason)],
    };
    let new = |id, what, limit: &str, sources| {
        Finding::new(Group::Target, id, what, limit, sources).of(&target.address)
    };
    let mut findings = vec![reach(&target.address).value("answers")];
    let version = new("target.version", "version of", "recorded; no stand-in", &[Own]);
    findings.push(match (&reached.version, reached.stand_in) {
        (Some(text), true) => version.value(format!("{text}, reference target")).warn(
            "results on it say nothing about any database",
            "give the address of a database to --target",
        ),
        (Some(text), false) => version.value(text),
        (None, _) => version.unknown("system.local has no release_version"),
    });
    let times = format!("{:.0} us connect, {:.0} us query", reached.connect_us, reached.query_us);
    let round_trip = new("target.rtt", "round trip to", "recorded; it is in every latency", &[Own]);
    findings.push(round_trip.value(times));
    findings.push(clock(new("target.clock", "clock of", "within 1 ms", &[Sct]), reached));
    if let Some(finding) = place(reached, client_cpus, host) {
        findings.push(finding.of(&target.address));
    }
    if let Local::Here { limits, .. } = &reached.local
        && !reached.stand_in
    {
        findings.extend(io::of_database(limits, &target.address));
    }
    findings.extend(settings(reached, &target.address));
    findings
}

fn clock(finding: Finding, reached: &Reached) -> Finding {
    if reached.local != Local::Elsewhere {
        return finding.value("this host's");
    }
    let Some(Clock { ahead_ms, error_ms }) = reached.clock else {
        return finding.unknown("it does not tell its time by CQL");
    };
    let finding = finding.value(format!("{ahead_ms:+.1} ms, +-{error_ms:.1} ms"));
    if ahead_ms.abs() - error_ms > APART_MS_MAX {
        return finding.warn(
            "writes are ordered and intervals merged by clocks that differ",
            "run chronyd on both hosts, with one server",
        );
    }
    match error_ms <= APART_MS_MAX {
        true => finding,
        false => finding.unknown("it is too far away to tell one millisecond by a query"),
    }
}

/// Its cpus against the client's; None when it is elsewhere.
fn place(reached: &Reached, client_cpus: &CpuSet, host: Option<&Facts>) -> Option<Finding> {
    let limit = "no core in common with the client";
    let finding = Finding::new(Group::Target, "target.cpus", "cpus of", limit, &[TechEmpower]);
    let (pid, name, cpus) = match &reached.local {
        Local::Elsewhere => return None,
        Local::Hidden => {
            let why = "its process cannot be seen: it is another user's, or in a container";
            return Some(finding.unknown(why));
        }
        Local::Here { pid, name, cpus, .. } => (pid, name, cpus),
    };
    let siblings = |cpu| {
        let known = host.and_then(|facts| facts.machine.cpu(cpu));
        known.map_or_else(|| [cpu].into_iter().collect(), |cpu| cpu.siblings.clone())
    };
    let cores: CpuSet =
        client_cpus.iter().flat_map(|cpu| siblings(cpu).iter().collect::<Vec<_>>()).collect();
    let shared = cores.intersection(cpus);
    let finding = finding.value(format!("{name} ({pid}) on {cpus}, client on {client_cpus}"));
    Some(match shared.is_empty() {
        true => finding,
        false => finding.fail(
            format!("client and target take cpus {shared} from each other"),
            format!("taskset -acp CPUS {pid}, or give other --client-cpus"),
        ),
    })
}

/// Whether a value is bad.
type IsBad = fn(&str) -> bool;

/// A setting: its names over the releases, what it should be, when it is bad, why, and the cure.
struct Rule {
    id: &'static str,
    names: &'static [&'static str],
    limit: &'static str,
    bad: IsBad,
    why: &'static str,
    sources: &'static [super::Source],
}

const NEVER: IsBad = |_| false;
const IS_TRUE: IsBad = |value| value.eq_ignore_ascii_case("true");
/// `0`, `0MiB`: no digit but zero.
const IS_ABOVE_ZERO: IsBad = |value| value.bytes().any(|b| (b'1'..=b'9').contains(&b));

const RULES: [Rule; 9] = [
    Rule {
        id: "setting.row_cache",
        names: &["row_cache_size", "row_cache_size_in_mb"],
        limit: "0",
        bad: IS_ABOVE_ZERO,
        why: "reads may be answered from memory and never reach a table",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.cdc",
        names: &["cdc_enabled"],
        limit: "false",
        bad: IS_TRUE,
        why: "writes are kept twice, and refused when its space is full",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.audit",
        names: &["audit_logging_options.enabled", "audit_logging_options_enabled"],
        limit: "false",
        bad: IS_TRUE,
        why: "every statement is also written to a log",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.commitlog_sync",
        names: &["commitlog_sync"],
        limit: "recorded; periodic acknowledges before it is on disk",
        bad: NEVER,
        why: "",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.compaction",
        names: &["compaction_throughput", "compaction_throughput_mb_per_sec"],
        limit: "recorded",
        bad: NEVER,
        why: "",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.reads",
        names: &["concurrent_reads"],
        limit: "recorded; Intel: 3 x cpus",
        bad: NEVER,
        why: "",
        sources: &[IntelC],
    },
    Rule {
        id: "setting.writes",
        names: &["concurrent_writes"],
        limit: "recorded; Cassandra: 8 x cpus",
        bad: NEVER,
        why: "",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.read_timeout",
        names: &["read_request_timeout", "read_request_timeout_in_ms"],
        limit: "recorded; shorter than --timeout",
        bad: NEVER,
        why: "",
        sources: &[CassandraYaml],
    },
    Rule {
        id: "setting.write_timeout",
        names: &["write_request_timeout", "write_request_timeout_in_ms"],
        limit: "recorded; shorter than --timeout",
        bad: NEVER,
        why: "",
        sources: &[CassandraYaml],
    },
];

fn settings(reached: &Reached, address: &str) -> Vec<Finding> {
    let Some(settings) = &reached.settings else {
        let finding =
            Finding::new(Group::Target, "target.settings", "settings of", "readable", &[Own]);
        let why = "it has no table system_views.settings (Cassandra has one since 4.0)";
        return vec![finding.of(address).unknown(why)];
    };
    let of_rule = |rule: &Rule| {
        let setting = settings.iter().find(|s| rule.names.contains(&s.name.as_str()))?;
        let finding = Finding::new(Group::Target, rule.id, rule.names[0], rule.limit, rule.sources)
            .value(&setting.value);
        Some(match (rule.bad)(&setting.value) {
            false => finding,
            true => finding
                .warn(rule.why, format!("set {}: {} in cassandra.yaml", rule.names[0], rule.limit)),
        })
    };
    RULES.iter().filter_map(of_rule).collect()
}

/// The finding on the JVM of a Cassandra that is to be started, or why there is none.
#[must_use]
pub fn java(found: Result<String, String>) -> Finding {
    let limit = "one that Cassandra runs on";
    let finding = Finding::new(Group::Target, "target.java", "java", limit, &[CassandraYaml]);
    match found {
        Ok(java) => finding.value(java),
        Err(why) => finding.value("none").fail(why, "install JDK 17, or give --java-home DIR"),
    }
}

/// The finding on its heap, or why it does not fit.
#[must_use]
pub fn heap(found: Result<String, String>) -> Finding {
    let limit = "fits into free memory";
    let finding = Finding::new(Group::Target, "target.heap", "heap", limit, &[CassandraYaml]);
    match found {
        Ok(heap) => finding.value(heap),
        Err(why) => finding.value("does not fit").fail(why, "give a smaller --heap, free memory"),
    }
}

/// The finding on where it would listen, or why it cannot.
#[must_use]
pub fn ports(found: Result<String, String>) -> Finding {
    let finding = Finding::new(Group::Target, "target.ports", "ports", "free", &[CassandraYaml]);
    match found {
        Ok(addresses) => finding.value(addresses),
        Err(why) => finding.value("taken").fail(why, "end what listens there, or give --listen"),
    }
}
