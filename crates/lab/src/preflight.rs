//! `wideload check`: gathers what a host and a target say of themselves, for the rules to judge.
//!
//! Input: [`Asked`]. Output: [`Checked`], every finding with what it rests on. Nothing is changed
//! and nothing is started. Cost: half a second of looking at what else runs, some 30 queries per
//! target.

use crate::error::LabError;
use crate::probe::probe;
use crate::provision::running;
use analyze::check::{self, Finding, Host, Occupation, Space, Target, Verdict};
use drive::{Access, ControlError};
use machine::{Facts, Machine, Tasks, client_and_target_cpus};
use stage::cassandra::{self, Options, PrepareError, StartError};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use units::{Bytes, CpuSet, Nanos, clock};

/// What is looked at.
#[derive(Debug)]
pub struct Asked {
    /// The host: `/`, or a recorded tree.
    pub root: PathBuf,
    /// What would be driven.
    pub target: AskedTarget,
    /// Cpus of the client; else as a run takes them.
    pub client_cpus: Option<CpuSet>,
    /// How the target lets us in.
    pub access: Access,
    /// Bound of the connect and of each query.
    pub timeout: Nanos,
    /// Where data would go.
    pub data_dir: PathBuf,
}

/// What would be driven.
#[derive(Debug)]
pub enum AskedTarget {
    /// Nothing yet: the host alone.
    Nothing,
    /// A Cassandra that would be started here.
    Cassandra(Box<Options>),
    /// What runs already: `HOST[:PORT]`.
    Running(Vec<String>),
}

/// What was found.
#[derive(Debug)]
pub struct Checked {
    /// The host.
    pub facts: Facts,
    /// All findings, the target's first.
    pub findings: Vec<Finding>,
}

impl Checked {
    /// The worst verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Ok)
    }
}

/// Looks, and judges.
///
/// # Errors
/// When the host cannot be read at all, or cpus are asked for that may not be used. A target that
/// does not answer is a finding.
pub fn preflight(asked: &Asked) -> Result<Checked, LabError> {
    let live = asked.root == Path::new("/");
    let facts = Facts::read(&asked.root)?;
    let (client_cpus, target_cpus) = cpus(asked, &facts.machine)?;
    let (occupation, space) = match live {
        true => (Some(occupation(&facts.tasks)), space(&asked.data_dir)),
        false => (None, None),
    };
    let starts_target = matches!(asked.target, AskedTarget::Cassandra(_));
    let mut findings = Vec::new();
    match &asked.target {
        AskedTarget::Nothing => {}
        AskedTarget::Cassandra(options) => findings.extend(to_be_started(options)?),
        AskedTarget::Running(hosts) => {
            let host = live.then_some(&facts);
            for target in targets(hosts, asked) {
                findings.extend(check::target(&target, &client_cpus, host));
            }
        }
    }
    findings.extend(check::host(&Host {
        facts: &facts,
        client_cpus: &client_cpus,
        target_cpus: target_cpus.as_ref(),
        occupation: occupation.as_ref(),
        space: space.as_ref(),
        starts_target,
    }));
    Ok(Checked { facts, findings })
}

/// The client's cpus, and those of a target that would be started.
fn cpus(asked: &Asked, machine: &Machine) -> Result<(CpuSet, Option<CpuSet>), LabError> {
    let allowed = &machine.allowed;
    let split = client_and_target_cpus(machine, allowed);
    let client = match &asked.client_cpus {
        Some(cpus) if cpus.is_empty() || !cpus.difference(allowed).is_empty() => {
            let (asked, allowed) = (cpus.clone(), allowed.clone());
            return Err(LabError::Cpus { flag: "--client-cpus", asked, allowed });
        }
        Some(cpus) => cpus.clone(),
        None => split.client,
    };
    let target = matches!(asked.target, AskedTarget::Cassandra(_)).then(|| {
        let rest = allowed.difference(&client);
        match (&asked.client_cpus, rest.is_empty()) {
            (None, _) => split.target,
            (Some(_), false) => rest,
            (Some(_), true) => allowed.clone(),
        }
    });
    Ok((client, target))
}

fn targets(hosts: &[String], asked: &Asked) -> Vec<Target> {
    // Nothing is under way that an interrupt would have to end.
    let unstopped = AtomicBool::new(false);
    let look = |host: &String| match running(std::slice::from_ref(host), false, &unstopped) {
        Ok(found) => {
            let look = |&address| probe(address, asked.timeout, &asked.access);
            found.addresses.iter().map(look).collect()
        }
        Err(error) => vec![Target { address: host.clone(), reached: Err(error.to_string()) }],
    };
    hosts.iter().flat_map(look).collect()
}

/// A fault of the host is a finding; one of the command line is an error.
fn to_be_started(options: &Options) -> Result<Vec<Finding>, LabError> {
    fn said<T>(
        found: Result<T, PrepareError>,
        show: impl FnOnce(T) -> String,
    ) -> Result<Result<String, String>, LabError> {
        match found {
            Err(error) if error.is_usage() => Err(StartError::from(error).into()),
            found => Ok(found.map(show).map_err(|error| error.to_string())),
        }
    }
    let java = said(cassandra::java_of(options), |java| {
        format!("{} ({})", java.version, java.program.display())
    })?;
    let heap = cassandra::heap_of(options).map_err(PrepareError::from);
    let heap = said(heap, |heap| format!("{}: {}", heap.size, heap.why))?;
    let addresses = said(cassandra::free_addresses(options), |addresses| {
        let listed: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        format!("{} is free", listed.join(", "))
    })?;
    Ok(vec![check::java(java), check::heap(heap), check::ports(addresses)])
}

const LOOKS: usize = 11;
const BETWEEN: Nanos = Nanos::from_millis(50);
/// Ticks of `/proc/PID/stat` per second: USER_HZ, 100 on every architecture that this builds for.
const TICKS_PER_S: f64 = 100.0;

/// Looks at what else runs for half a second. `before` was just read.
fn occupation(before: &Tasks) -> Occupation {
    let (root, begin) = (Path::new("/"), clock::now());
    let mut looks: Vec<u32> = (0..LOOKS)
        .filter_map(|_| {
            std::thread::sleep(BETWEEN.to_duration());
            // The task that reads is one of them.
            Tasks::runnable(root).map(|running| running.saturating_sub(1))
        })
        .collect();
    looks.sort_unstable();
    let elapsed_s = clock::now().since(begin).as_secs_f64().max(1e-3);
    let busiest = Tasks::read(root).busiest_since(before, std::process::id());
    let share = |ticks: u64| ticks as f64 / TICKS_PER_S / elapsed_s;
    Occupation {
        runnable: looks.get(looks.len() / 2).copied(),
        busiest: busiest.into_iter().map(|p| (p.name, p.pid, share(p.cpu_ticks))).collect(),
    }
}

/// The room at `dir`, or at the nearest directory above it that exists.
fn space(dir: &Path) -> Option<Space> {
    // What a relative path ends in is the directory that this runs in.
    let here = |dir| if dir == Path::new("") { Path::new(".") } else { dir };
    let room = |dir| Some((dir, stage::space::of(dir).ok()?));
    let (path, stage::space::Space { free, total }) = dir.ancestors().map(here).find_map(room)?;
    (total > Bytes(0)).then(|| Space { path: path.display().to_string(), free, total })
}

/// The line of `wideload check` that would have told of `error`, with the command that prints it.
#[must_use]
pub fn told_by_check(error: &LabError) -> Option<String> {
    use admin::ConnectError;
    match error {
        LabError::Control(
            ControlError::Unreachable { address, .. }
            | ControlError::Mute { address, .. }
            | ControlError::Broken { address, .. }
            | ControlError::NotCql { address, .. },
        )
        | LabError::Connect(
            ConnectError::Unreachable { address, .. }
            | ConnectError::Mute { address, .. }
            | ConnectError::NotCql { address, .. },
        ) => {
            let address = address.to_string();
            let line = check::unreachable(&address, "").line();
            Some(format!("`wideload check --target {address}` says: {line}"))
        }
        LabError::Cassandra(error) => told_by_check_of_start(error),
        _ => None,
    }
}

/// The same of a Cassandra that could not be started.
#[must_use]
pub fn told_by_check_of_start(error: &StartError) -> Option<String> {
    let StartError::Prepare(error) = error else { return None };
    let finding = match &**error {
        PrepareError::Java(error) => check::java(Err(error.to_string())),
        PrepareError::Heap(error) => check::heap(Err(error.to_string())),
        PrepareError::Port { .. } => check::ports(Err(error.to_string())),
        _ => return None,
    };
    Some(format!("`wideload check --target cassandra` says: {}", finding.line()))
}
