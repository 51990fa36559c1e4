//! Which series YCSB would have: operations as they were recorded -> names, latencies, statuses.
//!
//! A read-modify-write is one operation here and three series there; a failure has a series of its
//! own. Statuses: what was answered as asked is OK (and so is a read whose cells were not what was
//! written: that is for VERIFY), a key that is not there NOT_FOUND, everything else ERROR. What was
//! never sent YCSB would never have begun, and is left out.

use super::java;
use record::{Latency, OpNames, OpRecord, Outcome};
use workload::ycsb::{From, Measurement};

/// One series of a kind of latency.
#[derive(Debug, Clone)]
pub(super) struct Series {
    /// `READ`, `READ-FAILED`, `Intended-READ`.
    pub(super) name: String,
    /// In ns; None where YCSB times what is not timed here.
    pub(super) latency: Option<Latency>,
    /// Answers by status, in the order in which they are listed.
    pub(super) returns: Vec<(&'static str, u64)>,
}

/// In the order in which YCSB's map of statuses lists them.
const STATUSES: [&str; 4] = ["OK", "UNEXPECTED_STATE", "NOT_FOUND", "ERROR"];
/// Outcomes that are YCSB's status ERROR, timeouts apart.
const ERRORS: [Outcome; 4] =
    [Outcome::Unavailable, Outcome::Overloaded, Outcome::ConnectionLost, Outcome::Error];
/// All outcomes that are neither ok nor timeouts and were sent.
const OTHERS: [Outcome; 6] = [
    Outcome::NotFound,
    Outcome::Invalid,
    Outcome::Unavailable,
    Outcome::Overloaded,
    Outcome::ConnectionLost,
    Outcome::Error,
];

/// How latencies are looked at.
pub(super) struct View<'a> {
    pub(super) measurement: &'a Measurement,
    /// Operations fell due by a schedule. Without one YCSB's intended times are the real ones.
    pub(super) scheduled: bool,
    /// Cells are compared with what was written.
    pub(super) verifies: bool,
}

/// Operations that were begun, of any outcome.
pub(super) fn begun(op: &OpRecord) -> u64 {
    op.ops() - op.count(Outcome::NotSent)
}

/// All series of a record; those from the moment of sending first, in YCSB's order. `cleanup` is
/// what ending took, once it is known.
pub(super) fn all(
    view: &View<'_>,
    names: &[OpNames],
    ops: &[OpRecord],
    cleanup: Option<&Latency>,
) -> Vec<Series> {
    let (sent, due) = match view.measurement.from {
        From::Sent => (true, false),
        From::Due => (false, true),
        From::Both => (true, true),
    };
    let mut all = Vec::new();
    if sent {
        all = of_kind(view, names, ops, cleanup, false);
    }
    if due {
        let mut intended = of_kind(view, names, ops, cleanup, view.scheduled);
        if sent {
            // Statuses stand once, and nothing is timed twice that has no intended time.
            intended.retain(|series| series.latency.is_some() && series.name != "VERIFY");
            for series in &mut intended {
                series.name.insert_str(0, "Intended-");
                series.returns.clear();
            }
        }
        all.append(&mut intended);
    }
    all
}

fn of_kind(
    view: &View<'_>,
    names: &[OpNames],
    ops: &[OpRecord],
    cleanup: Option<&Latency>,
    due: bool,
) -> Vec<Series> {
    let mut found = Found { view, due, list: Vec::new() };
    for (names, op) in names.iter().zip(ops).filter(|(_, op)| begun(op) > 0) {
        match names.name.as_str() {
            "read-modify-write" => found.read_modify_write(op),
            name => found.simple(&name.to_uppercase(), op),
        }
    }
    if let Some(cleanup) = cleanup {
        found.add("CLEANUP", cleanup);
    }
    java::map_order(&mut found.list, |series| &series.name);
    found.list
}

/// Series so far.
struct Found<'a> {
    view: &'a View<'a>,
    due: bool,
    list: Vec<Series>,
}

impl Found<'_> {
    fn of(&mut self, name: &str) -> &mut Series {
        let known = self.list.iter().position(|series| series.name == name);
        let index = known.unwrap_or_else(|| {
            let (name, latency, returns) = (name.to_owned(), None, Vec::new());
            self.list.push(Series { name, latency, returns });
            self.list.len() - 1
        });
        &mut self.list[index]
    }

    fn add(&mut self, name: &str, latency: &Latency) {
        self.of(name).latency.get_or_insert_default().merge(latency);
    }

    fn count(&mut self, name: &str, status: &'static str, count: u64) {
        if count == 0 {
            return;
        }
        let returns = &mut self.of(name).returns;
        match returns.iter_mut().find(|(known, _)| *known == status) {
            Some((_, sum)) => *sum += count,
            None => returns.push((status, count)),
        }
        returns.sort_by_key(|(known, _)| STATUSES.iter().position(|status| status == known));
    }

    /// Latencies of a failed operation, under the name that its status gets.
    fn failed(&mut self, name: &str, status: &'static str, latency: &Latency) {
        let measurement = self.view.measurement;
        let told = measurement.each_error
            || measurement.tracked_errors.iter().any(|tracked| tracked == status);
        let status = if told { status } else { "FAILED" };
        if !latency.is_empty() {
            self.add(&format!("{name}-{status}"), latency);
        }
    }

    /// An operation of one step.
    fn simple(&mut self, name: &str, op: &OpRecord) {
        self.add(name, &ok(op, self.due));
        self.count(name, "OK", op.count(Outcome::Ok) + op.count(Outcome::Invalid));
        self.failures(name, op);
        self.count(name, "NOT_FOUND", op.count(Outcome::NotFound));
        self.count(name, "ERROR", errors(op));
        if name == "READ" {
            self.verified(op);
        }
    }

    fn failures(&mut self, name: &str, op: &OpRecord) {
        let timeouts = if self.due { &op.timeout_response } else { &op.timeout_service };
        self.failed(name, "NOT_FOUND", &others(op, &[Outcome::NotFound], self.due));
        let mut error = others(op, &ERRORS, self.due);
        error.merge(timeouts);
        self.failed(name, "ERROR", &error);
    }

    /// Three series: the whole, and its steps.
    fn read_modify_write(&mut self, op: &OpRecord) {
        let (all, not_sent) = (begun(op), op.count(Outcome::NotSent));
        let mut whole = if self.due { op.response.clone() } else { op.service.clone() };
        match (self.due, not_sent) {
            (true, 0) => whole.merge(&op.failed_response),
            (true, _) => whole.merge(&others(op, &OTHERS, true)),
            (false, _) => whole.merge(&op.failed_service),
        }
        self.add("READ-MODIFY-WRITE", &whole);
        let [read, update] = [0, 1].map(|step| op.parts.get(step));
        let of = |part: Option<&Latency>| part.map_or(0, Latency::count);
        let (read_ok, update_ok) = (of(read), of(update));
        let (invalid, absent) = (op.count(Outcome::Invalid), op.count(Outcome::NotFound));
        let read_errors = all.saturating_sub(read_ok + invalid + absent);
        self.count("READ", "OK", read_ok + invalid);
        self.count("READ", "NOT_FOUND", absent);
        self.count("READ", "ERROR", read_errors);
        self.count("UPDATE", "OK", update_ok);
        self.count("UPDATE", "ERROR", read_ok.saturating_sub(update_ok));
        if self.due {
            // An update ends when all of it does. When the read ended is not kept.
            self.add("UPDATE", &ok(op, true));
        } else {
            read.into_iter().for_each(|part| self.add("READ", part));
            update.into_iter().for_each(|part| self.add("UPDATE", part));
        }
        // Which step a failure belongs to is known by count; the time is that of the whole.
        self.failures(if read_errors + absent > 0 { "READ" } else { "UPDATE" }, op);
        self.verified(op);
    }

    /// What reading back what was written said; how long comparing took is not known.
    fn verified(&mut self, op: &OpRecord) {
        if self.view.verifies {
            self.of("VERIFY");
            self.count("VERIFY", "OK", op.count(Outcome::Ok));
            self.count("VERIFY", "UNEXPECTED_STATE", op.count(Outcome::Invalid));
            self.count("VERIFY", "ERROR", op.count(Outcome::NotFound) + errors(op));
        }
    }
}

fn errors(op: &OpRecord) -> u64 {
    let timeouts = op.count(Outcome::ClientTimeout) + op.count(Outcome::ServerTimeout);
    timeouts + ERRORS.iter().map(|outcome| op.count(*outcome)).sum::<u64>()
}

/// Latencies of what the database answered as asked.
fn ok(op: &OpRecord, due: bool) -> Latency {
    let mut ok = match due {
        true => op.response.without(&op.timeout_response),
        false => op.service.without(&op.timeout_service),
    };
    ok.merge(&others(op, &[Outcome::Invalid], due));
    ok
}

/// Latencies of some of the outcomes beside ok and timeouts: exact where no others were seen, else
/// from histograms of service times with 2 digits.
fn others(op: &OpRecord, wanted: &[Outcome], due: bool) -> Latency {
    let count = |outcomes: &[Outcome]| outcomes.iter().map(|o| op.count(*o)).sum::<u64>();
    let (some, all) = (count(wanted), count(&OTHERS));
    let waited = due && op.count(Outcome::NotSent) > 0;
    if some == 0 {
        return Latency::new();
    }
    if some == all && !waited {
        return if due { op.failed_response.clone() } else { op.failed_service.clone() };
    }
    let mut latency = Latency::new();
    wanted.iter().filter_map(|o| op.class(*o)).for_each(|class| latency.merge(class));
    latency
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
