//! Reasons to trust a trial's numbers less that its figures alone do not show.

use crate::trial::Trial;
use drive::{Arrivals, Driven, Ended, Wait, WorkerUsage};
use record::{Caveat, summary::Target};

/// A worker that is busier than this share of the window may be what limits the result.
const BUSY_SHARE_MAX: f64 = 0.8;

/// Code of the caveat that says that the target is no database. Text shows it before any number.
pub const STAND_IN: &str = "stand-in";

/// The share of the window that each worker worked, polling apart; 0 to 1.
pub(crate) fn busy_shares(driven: &Driven) -> impl Iterator<Item = f64> + '_ {
    let elapsed = driven.elapsed.as_secs_f64().max(1e-9);
    driven.usage.iter().map(move |u| u.cpu.since(u.spin).as_secs_f64() / elapsed)
}

/// The caveats of how a trial was set up and how it went.
pub(crate) fn of(trial: &Trial, target: &Target, driven: &Driven) -> Vec<Caveat> {
    let sentences =
        [of_target(target), of_set_up(trial), of_course(trial, driven), of_end(trial, driven)];
    sentences.into_iter().flatten().map(|(code, text)| Caveat::new(code, text)).collect()
}

type Sentences = Vec<(&'static str, String)>;

fn of_target(target: &Target) -> Sentences {
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
    vec![(STAND_IN, text.to_owned())]
}

fn of_set_up(trial: &Trial) -> Sentences {
    let mut sentences = Vec::new();
    if trial.cpus_shared {
        let cpus = &trial.client_cpus;
        let text = format!("Client and target share cpus {cpus}: they take time from each other.");
        sentences.push(("shared-cpus", text));
    }
    let open_loop = matches!(trial.load.arrivals, Arrivals::Open { .. });
    if trial.wait == Wait::Sleep && open_loop {
        let text = "The client sleeps until an operation is due: lag holds the time that the \
                    kernel takes to wake it.";
        sentences.push(("wait-sleep", text.to_owned()));
    }
    if matches!(trial.load.arrivals, Arrivals::Closed { throttle: Some(_), .. }) {
        let text = "A throttled closed loop sends less while the target stalls, so its latencies \
                    hide the wait: use --rate for latency at a load.";
        sentences.push(("throttled", text.to_owned()));
    }
    sentences
}

fn of_course(trial: &Trial, driven: &Driven) -> Sentences {
    let mut sentences = Vec::new();
    let busy = busy_shares(driven).fold(0.0, f64::max);
    if busy > BUSY_SHARE_MAX {
        let text = format!(
            "A client thread was busy {:.0} % of the time: the client may be the limit. Give it \
             more cpus with --client-cpus.",
            busy * 100.0
        );
        sentences.push(("client-busy", text));
    }
    let sum = |field: fn(&WorkerUsage) -> u64| driven.usage.iter().map(field).sum::<u64>();
    let mut count = |code, count: u64, what: &str| {
        if count > 0 {
            sentences.push((code, format!("{count} {what}")));
        }
    };
    let lost = sum(|u| u.connections_lost);
    count("connections-lost", lost, "connections broke while measuring and were opened again.");
    let late = format!("answers came after their --timeout {}.", trial.timeout);
    count("late-answers", sum(|u| u.late), &late);
    let prepares = "times a host did not know a statement: it was prepared there again.";
    count("prepared-again", sum(|u| u.prepares), prepares);
    let merged = "intervals were recorded together with the next one, because this host was too \
                  busy to write them.";
    count("intervals-merged", sum(|u| u.intervals_merged), merged);
    let unseen = "inserts were acknowledged too late to be read afterwards.";
    count("inserts-unseen", sum(|u| u.acknowledgements_lost), unseen);
    sentences
}

fn of_end(trial: &Trial, driven: &Driven) -> Sentences {
    match driven.ended {
        Ended::Completed => Vec::new(),
        Ended::Stopped => {
            let text = "The run was interrupted: these are the operations until then.";
            vec![("interrupted", text.to_owned())]
        }
        Ended::GaveUp => {
            let after = trial.give_up;
            let text = format!("The run ended early: nothing succeeded for {after} (--give-up).");
            vec![("gave-up", text)]
        }
    }
}
