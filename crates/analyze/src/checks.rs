//! What the numbers of a window say against themselves. Each check gives a caveat or nothing.

use crate::figures::{Load, Window};
use crate::share::percent_cut;
use record::summary::Outcomes;
use record::{Caveat, OpRecord, Outcome};

/// Share of the operations scheduled in a window that must be done in it, else the rate was missed.
pub const RATE_DONE_SHARE_MIN: f64 = 0.99;
/// Share of errors above which a run counts as failed (exit status 1).
pub const ERRORS_SHARE_MAX: f64 = 0.01;
/// How far the mean response of a closed loop may be from threads / throughput.
const LITTLE_SHARE_MAX: f64 = 0.01;
/// Samples that must lie above a percentile for it to mean something.
const SAMPLES_ABOVE_MIN: u64 = 10;

/// The schedule was not kept: response times then measure the length of the run, not the target.
pub(crate) fn rate_missed(load: Load) -> Option<Caveat> {
    let Load::Open { rate_s, scheduled, done_in_window } = load else { return None };
    if done_in_window as f64 >= scheduled as f64 * RATE_DONE_SHARE_MIN {
        return None;
    }
    let share = percent_cut(done_in_window as f64 / scheduled as f64);
    let text = format!(
        "Only {share} of the {scheduled} operations scheduled at {rate_s}/s were done within the \
         window. The backlog grows with the run, so that no response time is given; service time \
         and lag are."
    );
    Some(
        Caveat::new("rate-missed", text)
            .evidence(format!(
                "{done_in_window} of {scheduled} done; limit {:.0} %",
                RATE_DONE_SHARE_MIN * 100.0
            ))
            .cure("Lower --rate, or give the side that is the limit more cpus."),
    )
}

/// Operations that did not end ok, by outcome.
pub(crate) fn errors(outcomes: &Outcomes) -> Option<Caveat> {
    let (errors, total) = (outcomes.errors(), outcomes.total());
    if errors == 0 {
        return None;
    }
    let failed = outcomes.iter().filter(|&(outcome, n)| outcome != Outcome::Ok && n > 0);
    let list: Vec<_> = failed.map(|(outcome, n)| format!("{outcome} {n}")).collect();
    let share = percent_cut(errors as f64 / total as f64);
    let text = format!("{errors} of {total} operations ({share}) did not end ok.");
    Some(Caveat::new("errors", text).evidence(list.join(", ")).cure(
        match outcomes.of(Outcome::NotSent) {
            // The target knows nothing of them.
            n if n == errors => {
                "No connection took them in time: see whether the target was there, or lower \
                     the load."
            }
            0 => "The log of the target says why; the trial's raw/ has it when it was started.",
            _ => {
                "The log of the target says why, the trial's raw/ has it when it was started; \
                     for what was not sent see whether the target was there, or lower the load."
            }
        },
    ))
}

/// In a closed loop, threads = throughput x mean response time (J. D. C. Little, 1961), over
/// operations of any outcome. A figure that breaks this was not measured as it says.
pub(crate) fn littles_law(window: &Window) -> Option<Caveat> {
    let Load::Closed { threads } = window.load else { return None };
    let ops: u64 = window.ops.iter().map(OpRecord::ops).sum();
    let duration_ns = window.duration.0 as f64;
    if ops == 0 || duration_ns <= 0.0 {
        return None;
    }
    let sum_ns: f64 = window
        .ops
        .iter()
        .flat_map(|op| [&op.response, &op.failed_response])
        .map(|latency| latency.mean() * latency.count() as f64)
        .sum();
    let found_us = sum_ns / ops as f64 / 1e3;
    let due_us = threads as f64 * duration_ns / ops as f64 / 1e3;
    let off = found_us / due_us - 1.0;
    (off.abs() > LITTLE_SHARE_MAX).then(|| {
        Caveat::new(
            "littles-law",
            format!(
                "The mean response time is {found_us:.1} us, but {threads} threads at this \
                 throughput make {due_us:.1} us: threads stood idle or the run was too short for \
                 the two to agree."
            ),
        )
        .evidence(format!("{:+.1} %; limit {:.0} %", off * 100.0, LITTLE_SHARE_MAX * 100.0))
        .cure("Measure longer; end what stalls the target at the start or the end of the run.")
    })
}

/// Percentiles with fewer than ten samples above them, by operation.
pub(crate) fn few_samples(window: &Window) -> Option<Caveat> {
    let mut thin = Vec::new();
    for (names, op) in window.names.iter().zip(window.ops) {
        let n = op.service.count();
        // One in 10, in 100, in 1000 lies above.
        let weak: Vec<_> = [("p90", 10), ("p99", 100), ("p999", 1000)]
            .into_iter()
            .filter(|&(_, one_in)| n > 0 && n / one_in < SAMPLES_ABOVE_MIN)
            .map(|(name, _)| name)
            .collect();
        if !weak.is_empty() {
            thin.push(format!("{} {} (of {n})", names.name, weak.join(", ")));
        }
    }
    (!thin.is_empty()).then(|| {
        let list = thin.join("; ");
        Caveat::new(
            "few-samples",
            format!(
                "Fewer than {SAMPLES_ABOVE_MIN} samples lie above these percentiles: {list}. They \
                 vary from run to run."
            ),
        )
        .cure("Measure longer, with --duration or --ops.")
    })
}

/// Values beyond the range of the histograms.
pub(crate) fn clamped(ops: &[OpRecord]) -> Option<Caveat> {
    let clamped: u64 = ops.iter().map(OpRecord::clamped).sum();
    (clamped > 0).then(|| {
        Caveat::new(
            "clamped",
            format!(
                "{clamped} recorded times exceed 1 h and are kept as 1 h: maximum and mean are \
                 lower bounds."
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::OpNames;
    use units::Nanos;

    fn reads(count: u64, response: Nanos) -> OpRecord {
        let mut op = OpRecord::new(0);
        (0..count).for_each(|_| op.record(Outcome::Ok, response, response, Nanos::ZERO));
        op
    }

    fn law(count: u64, response: Nanos, threads: u64) -> Option<Caveat> {
        let (names, ops) = ([OpNames::single("read")], [reads(count, response)]);
        let (duration, load) = (Nanos::from_secs(1), Load::Closed { threads });
        littles_law(&Window { names: &names, ops: &ops, duration, load })
    }

    #[test]
    fn a_closed_loop_obeys_littles_law() {
        // 10 threads, 1000 op/s: the mean must be 10 ms.
        assert_eq!(law(1000, Nanos::from_millis(10), 10), None);
        assert_eq!(law(1000, Nanos::from_micros(9_910), 10), None);
        let caveat = law(1000, Nanos::from_millis(5), 10).unwrap();
        assert!(caveat.text.contains("is 5000.0 us") && caveat.text.contains("make 10000.0 us"));
        assert!(caveat.evidence.starts_with("-50.0 %"), "{caveat:?}");
        assert!(law(1000, Nanos::from_micros(10_110), 10).is_some());
    }

    #[test]
    fn the_law_counts_failures_too() {
        let names = [OpNames::single("read")];
        let mut op = reads(500, Nanos::from_millis(10));
        let slow = Nanos::from_millis(10);
        (0..500).for_each(|_| op.record(Outcome::Error, slow, slow, Nanos::ZERO));
        let (duration, load) = (Nanos::from_secs(1), Load::Closed { threads: 10 });
        assert_eq!(littles_law(&Window { names: &names, ops: &[op], duration, load }), None);
    }

    #[test]
    fn errors_are_named_with_their_share() {
        let mut outcomes = Outcomes::default();
        outcomes.0[Outcome::Ok.index()] = 990;
        assert_eq!(errors(&outcomes), None);
        outcomes.0[Outcome::NotFound.index()] = 4;
        outcomes.0[Outcome::Error.index()] = 6;
        let caveat = errors(&outcomes).unwrap();
        assert_eq!(caveat.text, "10 of 1000 operations (1.0 %) did not end ok.");
        assert_eq!(caveat.evidence, "not_found 4, error 6");
        assert!(caveat.cure.starts_with("The log of the target"), "{caveat:?}");
        let mut unsent = Outcomes::default();
        unsent.0[Outcome::NotSent.index()] = 3;
        assert!(!errors(&unsent).unwrap().cure.contains("log"), "the target knows nothing of them");
    }

    #[test]
    fn percentiles_need_ten_samples_above() {
        let names = [OpNames::single("read")];
        let thin = |count| {
            let ops = [reads(count, Nanos(1000))];
            let window = Window {
                names: &names,
                ops: &ops,
                duration: Nanos::from_secs(1),
                load: Load::Throttled,
            };
            few_samples(&window).map(|c| c.text)
        };
        assert_eq!(thin(10_000), None);
        assert_eq!(thin(0), None);
        assert!(thin(9_999).unwrap().contains(": read p999 (of 9999)."));
        assert!(thin(99).unwrap().contains(": read p90, p99, p999 (of 99)."));
    }

    #[test]
    fn values_beyond_an_hour_are_told() {
        let ops = [reads(1, Nanos::MAX)];
        assert!(clamped(&ops).unwrap().text.starts_with("2 recorded times"));
        assert_eq!(clamped(&[reads(1, Nanos(1))]), None);
    }
}
