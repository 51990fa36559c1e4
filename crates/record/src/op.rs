//! What is recorded of one kind of operation: histograms of its times and counts of its outcomes.
//!
//! Service is first send to final outcome, response is scheduled to final outcome, lag is scheduled
//! to sent; all in ns. The headline holds ok and timeouts, everything else is kept apart (design
//! section 7, "Outcomes").

use crate::{Latency, Outcome};
use units::Nanos;

/// Outcomes that have a histogram of their own: all but ok (it is the headline) and not sent (it
/// has no service time).
pub const CLASSES: [Outcome; Outcome::COUNT - 2] = [
    Outcome::NotFound,
    Outcome::Invalid,
    Outcome::ClientTimeout,
    Outcome::ServerTimeout,
    Outcome::Unavailable,
    Outcome::Overloaded,
    Outcome::ConnectionLost,
    Outcome::Error,
];

/// The record of one operation of a plan, by one worker in one interval or merged over any of them.
#[derive(Debug, Clone)]
pub struct OpRecord {
    /// First send to final outcome, of ok and timeouts.
    pub service: Latency,
    /// Scheduled to final outcome, of ok and timeouts.
    pub response: Latency,
    /// Scheduled to first send, of every operation that was sent.
    pub lag: Latency,
    /// First send to final outcome, of all other outcomes.
    pub failed_service: Latency,
    /// Scheduled to final outcome, of all other outcomes; for what was never sent, the time it
    /// waited.
    pub failed_response: Latency,
    /// Service time per outcome of [`CLASSES`], 2 digits.
    pub classes: [Latency; CLASSES.len()],
    /// The timeouts of `service`, for whoever has to tell them apart.
    pub timeout_service: Latency,
    /// The timeouts of `response`.
    pub timeout_response: Latency,
    /// Service time of each step, when the operation has more than one; empty otherwise.
    pub parts: Vec<Latency>,
    /// Operations per outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::COUNT],
    /// Rows that operations on tables have written or got back; 0 of those that have one each.
    pub rows: u64,
    /// Partitions that these are of.
    pub partitions: u64,
}

impl OpRecord {
    /// Empty. `parts` is the number of steps of an operation that has several, else 0.
    #[must_use]
    pub fn new(parts: usize) -> Self {
        Self {
            service: Latency::new(),
            response: Latency::new(),
            lag: Latency::new(),
            failed_service: Latency::new(),
            failed_response: Latency::new(),
            classes: std::array::from_fn(|_| Latency::coarse()),
            timeout_service: Latency::new(),
            timeout_response: Latency::new(),
            parts: (0..parts).map(|_| Latency::new()).collect(),
            outcomes: [0; Outcome::COUNT],
            rows: 0,
            partitions: 0,
        }
    }

    /// Records one finished operation. Of a [`Outcome::NotSent`] one only `response` counts, the
    /// time it waited.
    #[inline(always)]
    pub fn record(&mut self, outcome: Outcome, service: Nanos, response: Nanos, lag: Nanos) {
        self.outcomes[outcome.index()] += 1;
        if outcome == Outcome::Ok {
            self.service.record(service);
            self.response.record(response);
            self.lag.record(lag);
        } else {
            self.record_rare(outcome, service, response, lag);
        }
    }

    /// Everything but ok, kept out of the hot path.
    #[cold]
    fn record_rare(&mut self, outcome: Outcome, service: Nanos, response: Nanos, lag: Nanos) {
        if outcome == Outcome::NotSent {
            self.failed_response.record(response);
            return;
        }
        self.lag.record(lag);
        self.classes[outcome.index() - 1].record(service);
        if outcome.is_headline() {
            self.service.record(service);
            self.response.record(response);
            self.timeout_service.record(service);
            self.timeout_response.record(response);
        } else {
            self.failed_service.record(service);
            self.failed_response.record(response);
        }
    }

    /// Records the service time of one step of an operation with several; a step that the plan did
    /// not announce is not recorded.
    #[inline]
    pub fn record_part(&mut self, step: usize, service: Nanos) {
        if let Some(part) = self.parts.get_mut(step) {
            part.record(service);
        }
    }

    /// Service times of one outcome; None for ok and not sent, which have no histogram of their
    /// own.
    #[must_use]
    pub fn class(&self, outcome: Outcome) -> Option<&Latency> {
        CLASSES.iter().position(|&c| c == outcome).and_then(|i| self.classes.get(i))
    }

    /// Adds all of `other`; the same as recording it here.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.latencies_mut().zip(other.latencies()) {
            ours.merge(theirs);
        }
        for part in other.parts.iter().skip(self.parts.len()) {
            self.parts.push(part.clone());
        }
        self.rows += other.rows;
        self.partitions += other.partitions;
        for (ours, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *ours += theirs;
        }
    }

    /// Makes it empty again; cheap when little was recorded.
    pub fn clear(&mut self) {
        self.latencies_mut().for_each(Latency::clear);
        self.outcomes = [0; Outcome::COUNT];
        (self.rows, self.partitions) = (0, 0);
    }

    /// Operations of any outcome.
    #[must_use]
    pub fn ops(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Operations of one outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()]
    }

    /// Values beyond the range of a histogram, over all of them.
    #[must_use]
    pub fn clamped(&self) -> u64 {
        self.latencies().map(Latency::clamped).sum()
    }

    fn latencies(&self) -> impl Iterator<Item = &Latency> {
        let [service, response] = [&self.timeout_service, &self.timeout_response];
        [&self.service, &self.response, &self.lag, &self.failed_service, &self.failed_response]
            .into_iter()
            .chain([service, response])
            .chain(&self.classes)
            .chain(&self.parts)
    }

    fn latencies_mut(&mut self) -> impl Iterator<Item = &mut Latency> {
        [
            &mut self.service,
            &mut self.response,
            &mut self.lag,
            &mut self.failed_service,
            &mut self.failed_response,
            &mut self.timeout_service,
            &mut self.timeout_response,
        ]
        .into_iter()
        .chain(&mut self.classes)
        .chain(&mut self.parts)
    }
}

/// What one worker, or all of them, recorded in one interval.
#[derive(Debug, Clone)]
pub struct IntervalRecord {
    /// Start, on [`units::clock::now`].
    pub start: Nanos,
    /// End, on the same clock.
    pub end: Nanos,
    /// One record per operation of the plan, in its order.
    pub ops: Vec<OpRecord>,
}

impl IntervalRecord {
    /// Empty. `parts` has for each operation of the plan the number of its steps, 0 when it has
    /// only one.
    #[must_use]
    pub fn new(parts: &[usize]) -> Self {
        let ops = parts.iter().map(|&steps| OpRecord::new(steps)).collect();
        Self { start: Nanos::ZERO, end: Nanos::ZERO, ops }
    }

    /// Adds the operations of `other` and widens the interval to hold both.
    pub fn merge(&mut self, other: &Self) {
        if self.end == Nanos::ZERO {
            self.start = other.start;
        }
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        for (ours, theirs) in self.ops.iter_mut().zip(&other.ops) {
            ours.merge(theirs);
        }
        for op in other.ops.iter().skip(self.ops.len()) {
            self.ops.push(op.clone());
        }
    }

    /// Makes it empty, without an interval.
    pub fn clear(&mut self) {
        self.start = Nanos::ZERO;
        self.end = Nanos::ZERO;
        self.ops.iter_mut().for_each(OpRecord::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(op: &OpRecord) -> [u64; 5] {
        [&op.service, &op.response, &op.lag, &op.failed_service, &op.failed_response]
            .map(Latency::count)
    }

    #[test]
    fn each_outcome_goes_where_it_belongs() {
        for (outcome, expected) in [
            (Outcome::Ok, [1, 1, 1, 0, 0]),
            (Outcome::ClientTimeout, [1, 1, 1, 0, 0]),
            (Outcome::ServerTimeout, [1, 1, 1, 0, 0]),
            (Outcome::NotFound, [0, 0, 1, 1, 1]),
            (Outcome::Overloaded, [0, 0, 1, 1, 1]),
            (Outcome::NotSent, [0, 0, 0, 0, 1]),
        ] {
            let mut op = OpRecord::new(0);
            op.record(outcome, Nanos(10), Nanos(30), Nanos(20));
            assert_eq!(counts(&op), expected, "{outcome}");
            assert_eq!((op.ops(), op.count(outcome)), (1, 1));
            let class = op.class(outcome).map(Latency::count);
            let timeouts = u64::from(outcome.is_headline() && outcome != Outcome::Ok);
            assert_eq!(op.timeout_service.count(), timeouts, "{outcome}");
            assert_eq!(op.timeout_response.count(), timeouts, "{outcome}");
            let own = !matches!(outcome, Outcome::Ok | Outcome::NotSent);
            assert_eq!(class, own.then_some(1), "{outcome}");
        }
    }

    #[test]
    fn classes_are_in_the_order_of_the_outcomes() {
        for (index, outcome) in CLASSES.into_iter().enumerate() {
            assert_eq!(outcome.index(), index + 1);
        }
    }

    #[test]
    fn workers_merge_to_the_whole_and_clear() {
        let (mut a, mut b) = (IntervalRecord::new(&[0, 2]), IntervalRecord::new(&[0, 2]));
        (a.start, a.end) = (Nanos(100), Nanos(200));
        (b.start, b.end) = (Nanos(90), Nanos(190));
        a.ops[0].record(Outcome::Ok, Nanos(1), Nanos(1), Nanos(0));
        b.ops[0].record(Outcome::Error, Nanos(1), Nanos(1), Nanos(0));
        b.ops[1].record(Outcome::Ok, Nanos(7), Nanos(8), Nanos(1));
        b.ops[1].record_part(1, Nanos(4));
        b.ops[1].record_part(9, Nanos(4));
        let mut all = IntervalRecord::new(&[0, 2]);
        all.merge(&a);
        all.merge(&b);
        assert_eq!((all.start, all.end), (Nanos(90), Nanos(200)));
        assert_eq!(all.ops[0].outcomes[Outcome::Ok.index()], 1);
        assert_eq!(all.ops[0].outcomes[Outcome::Error.index()], 1);
        assert_eq!(all.ops[1].parts.iter().map(Latency::count).collect::<Vec<_>>(), [0, 1]);
        all.clear();
        assert_eq!(all.ops.iter().map(OpRecord::ops).sum::<u64>(), 0);
        assert!(all.ops[1].parts.iter().all(Latency::is_empty));
    }
}
