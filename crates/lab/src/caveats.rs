//! Reasons to trust a trial's numbers less that its figures alone do not show.
//!
//! In: the trial, what it drove, and how that went. Out: caveats. What can be judged by numbers
//! alone is judged in `analyze`; here are the facts that only a trial knows.

use crate::compactions::is_cassandra;
use crate::local_target::LocalTarget;
use crate::places::MISPLACED;
use crate::sharded;
use crate::trial::Trial;
use analyze::{Client, Course, Surroundings, client_caveats, kept_waiting, surroundings};
use drive::{Arrivals, Driven, Ended, Wait, WorkerUsage};
use machine::Machine;
use record::{Caveat, summary::Target};
use units::{CpuSet, Nanos};

/// Code of the caveat that says that the target is no database. Text shows it before any number.
pub const STAND_IN: &str = "stand-in";

/// The share of the window that each worker worked, polling apart; 0 to 1.
pub(crate) fn busy_shares(driven: &Driven) -> impl Iterator<Item = f64> + '_ {
    let elapsed = driven.elapsed.as_secs_f64().max(1e-9);
    driven.usage.iter().map(move |u| u.cpu.since(u.spin).as_secs_f64() / elapsed)
}

/// The share of the window that each worker was ready to run and others had its cpu; 0 to 1.
fn waited_shares(driven: &Driven) -> Vec<f64> {
    let elapsed = driven.elapsed.as_secs_f64().max(1e-9);
    driven.usage.iter().map(|u| u.waited.as_secs_f64() / elapsed).collect()
}

/// The caveats of how a trial was set up and how it went.
pub(crate) fn of(
    trial: &Trial,
    target: &Target,
    driven: &Driven,
    window: &analyze::Window<'_>,
) -> Vec<Caveat> {
    let busy: Vec<f64> = busy_shares(driven).collect();
    let waited = waited_shares(driven);
    let sum = |field: fn(&WorkerUsage) -> u64| driven.usage.iter().map(field).sum::<u64>();
    let first = driven.usage.iter().map(|u| u.first_scheduled).min().unwrap_or_default();
    let client = client_caveats(&Client {
        ops: window.ops,
        load: window.load,
        busy: &busy,
        waited: &waited,
        polls: trial.wait == Wait::Spin,
        in_flight_max: trial.load.arrivals.in_flight_max() as u64,
        full_in_flight: sum(|u| u.full_in_flight),
        full_streams: sum(|u| u.full_streams),
        // Nothing fell due at all: that is a failure, not a late start.
        idle_start: if first == Nanos::MAX {
            Nanos::ZERO
        } else {
            first.since(driven.window.start)
        },
        duration: window.duration,
    });
    let shards = sharded::astray(driven).into_iter().collect();
    let course = of_course(trial, driven);
    [of_target(target), of_set_up(trial), client, course, shards, of_end(trial, driven)].concat()
}

fn of_target(target: &Target) -> Vec<Caveat> {
    let text = match target.kind.as_str() {
        Target::NULL_MOCK => {
            "The target is a mock that gives canned answers: this measures the client and says \
             nothing about any database."
        }
        Target::REFERENCE => {
            "The target is wideload's own reference target: this says nothing about Cassandra or \
             any other database."
        }
        _ => return Vec::new(),
    };
    vec![Caveat::new(STAND_IN, text).cure("For a database give --target.")]
}

fn of_set_up(trial: &Trial) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let open_loop = matches!(trial.load.arrivals, Arrivals::Open { .. });
    if trial.wait == Wait::Sleep && open_loop {
        let text = "The client sleeps until an operation is due: lag holds the time that the \
                    kernel takes to wake it.";
        caveats.push(Caveat::new("wait-sleep", text).cure("Give --wait spin, on cpus of its own."));
    }
    if matches!(trial.load.arrivals, Arrivals::Closed { throttle: Some(_), .. }) {
        let text = "A throttled closed loop sends less while the target stalls, so its latencies \
                    hide the wait.";
        caveats.push(Caveat::new("throttled", text).cure("Use --rate for latency at a load."));
    }
    if trial.access.tls.as_ref().is_some_and(|tls| !tls.verifies()) {
        let text = "The certificate of the target was not verified: whoever is in between may \
                    have answered.";
        let cure = "Give --tls-ca with its authority, and leave --tls-insecure out.";
        caveats.push(Caveat::new("tls-insecure", text).cure(cure));
    }
    caveats
}

/// What the host of the client, and of the target where it is the same, says.
pub(crate) fn of_host(
    trial: &Trial,
    target: &Target,
    local: &LocalTarget,
    machine: &Machine,
    course: Option<&Course>,
    driven: &Driven,
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let shared = trial.client_cpus.intersection(&local.cpus);
    if !shared.is_empty() {
        let text =
            format!("Client and target share cpus {shared}: they take time from each other.");
        let evidence = format!("client {}, target {}", trial.client_cpus, local.cpus);
        let cure = "Give them cpus of their own, with --client-cpus and --target-cpus or taskset.";
        caveats.push(Caveat::new("shared-cpus", text).evidence(evidence).cure(cure));
    }
    if !local.unknown.is_empty() {
        let hosts: Vec<_> = local.unknown.iter().map(ToString::to_string).collect();
        let text = "The target runs on this host, on cpus that are not known: it may take time \
                    from the client, and other load cannot be told from it.";
        let cure = "Run wideload as the target's user or as root, so that it can see the target.";
        let evidence = format!("no process is seen to listen on {}", hosts.join(", "));
        caveats.push(Caveat::new("unknown-cpus", text).evidence(evidence).cure(cure));
    }
    caveats.extend(surroundings(&Surroundings {
        machine,
        cpus: &watched(trial, local),
        cassandra_here: is_cassandra(target) && !local.cpus.is_empty(),
    }));
    let mut of_course = course.map(Course::caveats).unwrap_or_default();
    for caveat in of_course.iter_mut().filter(|caveat| caveat.code == "busy-host") {
        caveat.evidence.push_str(&kept_waiting(&waited_shares(driven)));
    }
    caveats.extend(of_course);
    caveats
}

/// Cpus whose clocks and stolen time count.
pub(crate) fn watched(trial: &Trial, local: &LocalTarget) -> CpuSet {
    trial.client_cpus.iter().chain(local.cpus.iter()).collect()
}

/// Whoever moves the client moves it onto cpus of the target, or onto one for all of it.
fn workers_moved(trial: &Trial, driven: &Driven) -> Option<Caveat> {
    let moved = driven.usage.iter().filter(|usage| usage.moved).count();
    if moved == 0 {
        return None;
    }
    let (all, cpus) = (driven.usage.len(), &trial.client_cpus);
    let text = format!(
        "At the end {moved} of {all} workers of the client were not where they were put, each on \
         one of cpus {cpus}: figures and the client's cost are those of other cpus."
    );
    let cure = "Find what moves them (a cgroup, taskset, numad), keep it off and run it again.";
    Some(Caveat::new(MISPLACED, text).cure(cure))
}

fn of_course(trial: &Trial, driven: &Driven) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(workers_moved(trial, driven));
    let sum = |field: fn(&WorkerUsage) -> u64| driven.usage.iter().map(field).sum::<u64>();
    let mut count = |code, count: u64, text: &str, cure: &str| {
        if count > 0 {
            caveats.push(Caveat::new(code, format!("{count} {text}")).cure(cure));
        }
    };
    let lost = "connections broke while measuring and were opened again.";
    let cure = "The log of the target, or of what is between, says why.";
    count("connections-lost", sum(|u| u.connections_lost), lost, cure);
    let replaced = "connections were closed and opened again, because a request on them had no \
                    answer in time.";
    let cure = "See why the target was late; a longer --timeout waits for it.";
    count("connections-replaced", sum(|u| u.connections_replaced), replaced, cure);
    let late = format!("answers came after their --timeout {}.", trial.timeout);
    let cure = "Give a longer --timeout, or less load.";
    count("late-answers", sum(|u| u.late), &late, cure);
    let prepares = "times a host did not know a statement: it was prepared there again.";
    let cure = "See whether a host was restarted or forgets statements for want of memory.";
    count("prepared-again", sum(|u| u.prepares), prepares, cure);
    let merged = "intervals were recorded together with the next one, because this host was too \
                  busy to write them.";
    let cure = "Leave a cpu to the recorder: fewer --client-cpus, or a longer --interval.";
    count("intervals-merged", sum(|u| u.intervals_merged), merged, cure);
    let unseen = "inserts were acknowledged too late to be read afterwards.";
    let cure = "Lower the load: reads may ask for older keys than the workload says.";
    count("inserts-unseen", sum(|u| u.acknowledgements_lost), unseen, cure);
    if driven.elapsed < trial.interval && driven.ended == Ended::Completed {
        let text = "The window is shorter than one interval: series over time hold one part of an \
                    interval, and nothing can be said about steadiness.";
        let evidence = format!("{:.3} s of {}", driven.elapsed.as_secs_f64(), trial.interval);
        let cure = "Measure longer with --duration or --ops, or shorten --interval.";
        caveats.push(Caveat::new("partial-intervals", text).evidence(evidence).cure(cure));
    }
    caveats
}

fn of_end(trial: &Trial, driven: &Driven) -> Vec<Caveat> {
    match driven.ended {
        Ended::Completed => Vec::new(),
        Ended::Stopped => {
            let text = "The run was interrupted: these are the operations until then.";
            vec![Caveat::new("interrupted", text).cure("Run it again.")]
        }
        Ended::GaveUp => {
            let after = trial.give_up;
            let text = format!("The run ended early: nothing succeeded for {after} (--give-up).");
            let cure = "See whether the target is up and what its log says.";
            vec![Caveat::new("gave-up", text).cure(cure)]
        }
        Ended::Failed => {
            let text =
                "The run ended early: an operation failed, and the command says that none may.";
            let cure = "See what the target says; -errors ignore goes on.";
            vec![Caveat::new("operation-failed", text).cure(cure)]
        }
    }
}
