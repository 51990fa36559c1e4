//! What cassandra-stress counts of an interval, from what is recorded of it.
//!
//! Operations that failed are among the latencies there, so the histograms of those that ended well
//! and of those that did not are put together. What was never sent is in none. Rates are over the
//! time from the start of the interval to its end. Source: `report/TimingInterval.java`,
//! `util/Uncertainty.java`.

use record::{IntervalRecord, Latency, OpRecord, Outcome};
use units::Nanos;
use workload::cassandra_stress::settings::OperationType;

/// Which time is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// First send to end.
    Service,
    /// Due to end: of `fixed=`.
    Response,
}

/// What is counted of one kind of operation, or of all.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) service: Latency,
    pub(crate) response: Latency,
    pub(crate) wait: Latency,
    pub(crate) partitions: u64,
    pub(crate) rows: u64,
    pub(crate) errors: u64,
}

impl Counted {
    pub(crate) fn new() -> Self {
        let (service, response, wait) = (Latency::new(), Latency::new(), Latency::new());
        Self { service, response, wait, partitions: 0, rows: 0, errors: 0 }
    }

    /// Adds operations of a kind; with `missing_is_fine` one that found no row is no error.
    pub(crate) fn add(&mut self, kind: &OperationType, op: &OpRecord, missing_is_fine: bool) {
        self.service.merge(&op.service);
        self.service.merge(&op.failed_service);
        self.response.merge(&op.response);
        self.response.merge(&op.failed_response);
        self.wait.merge(&op.lag);
        let (ok, unsent) = (op.count(Outcome::Ok), op.count(Outcome::NotSent));
        let missing = op.count(Outcome::NotFound);
        // A write is about its row however it ends; a read about what it has found.
        let rows = match kind.writes {
            true => op.ops() - unsent,
            false => ok + op.count(Outcome::Invalid),
        };
        let (partitions, rows) =
            if kind.counts_rows { (op.partitions, op.rows) } else { (rows, rows) };
        self.partitions += partitions;
        self.rows += rows;
        self.errors += op.ops() - ok - unsent - if missing_is_fine { missing } else { 0 };
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.wait.merge(&other.wait);
        self.partitions += other.partitions;
        self.rows += other.rows;
        self.errors += other.errors;
    }

    /// The latencies that are printed.
    pub(crate) fn latency(&self, printed: Printed) -> &Latency {
        match printed {
            Printed::Service => &self.service,
            Printed::Response => &self.response,
        }
    }

    /// Operations that are counted.
    pub(crate) fn ops(&self) -> u64 {
        self.service.count()
    }
}

/// By kind, and all together.
#[derive(Debug, Clone)]
pub(crate) struct All {
    pub(crate) kinds: Vec<(OperationType, Counted)>,
    pub(crate) total: Counted,
}

impl All {
    pub(crate) fn none(kinds: &[OperationType]) -> Self {
        let kinds = kinds.iter().map(|kind| (kind.clone(), Counted::new())).collect();
        Self { kinds, total: Counted::new() }
    }

    pub(crate) fn of(
        kinds: &[OperationType],
        record: &IntervalRecord,
        missing_is_fine: bool,
    ) -> Self {
        let mut all = Self::none(kinds);
        for ((kind, counted), op) in all.kinds.iter_mut().zip(&record.ops) {
            counted.add(kind, op, missing_is_fine);
            all.total.merge(counted);
        }
        all
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.merge(theirs);
        }
        self.total.merge(&other.total);
    }
}

/// How well the rate of rows is known: the standard error of its mean over the mean.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Uncertainty {
    intervals: u64,
    sum: f64,
    squares: f64,
    value: f64,
}

impl Uncertainty {
    /// Takes an interval: its rows, its length, its longest latency. The original leaves that
    /// latency out of the length. Where nothing is left then, as of the last part of a second, the
    /// length counts: a rate is not negative.
    pub(crate) fn update(&mut self, rows: u64, length: Nanos, longest: Nanos) {
        let left = if longest < length { length.since(longest) } else { length };
        let seconds = left.as_secs_f64();
        let rate = if rows == 0 { 0.0 } else { rows as f64 / seconds };
        self.intervals += 1;
        self.sum += rate;
        self.squares += rate * rate;
        let count = self.intervals as f64;
        let mean = self.sum / count;
        let deviation = (self.squares / count - mean * mean).sqrt();
        self.value = deviation / count.sqrt() / mean;
    }

    pub(crate) fn value(&self) -> f64 {
        self.value
    }

    /// Whether it is known well enough, or was measured often enough.
    pub(crate) fn is_enough(&self, target: f64, at_least: u64, at_most: u64) -> bool {
        self.value < target && self.intervals >= at_least || self.intervals >= at_most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_operations_are_among_the_latencies_and_the_errors() {
        let mut op = OpRecord::new(0);
        let ms = Nanos::from_millis;
        for (outcome, time) in [
            (Outcome::Ok, 1),
            (Outcome::NotFound, 2),
            (Outcome::ClientTimeout, 3),
            (Outcome::Error, 4),
            (Outcome::NotSent, 5),
        ] {
            op.record(outcome, ms(time), ms(10 * time), ms(0));
        }
        (op.rows, op.partitions) = (30, 2);
        let counted = |writes, counts_rows, fine| {
            let mut counted = Counted::new();
            let kind = OperationType { name: String::new(), writes, counts_rows };
            counted.add(&kind, &op, fine);
            (counted.ops(), counted.rows, counted.partitions, counted.errors)
        };
        assert_eq!(counted(true, false, false), (4, 4, 4, 3));
        assert_eq!(counted(false, false, false), (4, 1, 1, 3));
        assert_eq!(counted(false, false, true), (4, 1, 1, 2));
        assert_eq!(counted(true, true, false), (4, 30, 2, 3));
    }

    #[test]
    fn an_interval_shorter_than_its_longest_latency_has_a_rate_all_the_same() {
        let mut uncertainty = Uncertainty::default();
        uncertainty.update(1000, Nanos::from_secs(1), Nanos::from_millis(1));
        uncertainty.update(1, Nanos::from_millis(1), Nanos::from_millis(2));
        assert!(uncertainty.sum > 2000.0 && uncertainty.value() < 0.01, "{uncertainty:?}");
    }

    #[test]
    fn uncertainty_falls_with_equal_intervals() {
        let mut uncertainty = Uncertainty::default();
        let second = Nanos::from_secs(1);
        for (rows, known) in [(100, false), (120, false), (110, false), (110, false), (110, true)] {
            assert!(!uncertainty.is_enough(0.02, 5, 100), "{uncertainty:?}");
            uncertainty.update(rows, second, Nanos::ZERO);
            assert_eq!(uncertainty.is_enough(0.03, 5, 100), known, "{uncertainty:?}");
        }
        // By hand: rates 100, 120, 110, 110, 110 deviate by sqrt(40); over sqrt(5), over 110.
        assert!((uncertainty.value() - 40f64.sqrt() / 5f64.sqrt() / 110.0).abs() < 1e-12);
        assert!(uncertainty.is_enough(0.0, 1, 5), "at most five");
    }
}
