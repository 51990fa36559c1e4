//! From merged histograms to the figures of a summary: us, 1/s, s.

use crate::checks;
use record::summary::{OpSummary, Outcomes, Stats};
use record::{Caveat, Latency, OpNames, OpRecord, Outcome};
use std::collections::BTreeMap;
use units::Nanos;

/// How a window was driven; decides which checks apply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Each of `threads` logical clients sends its next operation when the last one is done.
    Closed {
        /// Logical clients over all workers.
        threads: u64,
    },
    /// A closed loop that is held back to a rate: clients pause, Little's law says nothing.
    Throttled,
    /// Operations are due by a schedule.
    Open {
        /// The scheduled rate in 1/s.
        rate_s: f64,
        /// Operations due inside the window.
        scheduled: u64,
        /// Those of them that were done, with any outcome, before the window's end.
        done_in_window: u64,
    },
}

/// A measured window, over all workers.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// The operations of the plan.
    pub names: &'a [OpNames],
    /// Their records, in the same order.
    pub ops: &'a [OpRecord],
    /// First scheduled to last done.
    pub duration: Nanos,
    /// How it was driven.
    pub load: Load,
}

/// The figures of a summary that come from the histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Measured operations of any outcome.
    pub ops: u64,
    /// Ok operations per second.
    pub ops_s: f64,
    /// First scheduled to last done.
    pub duration_s: f64,
    /// Operations that did not end ok.
    pub errors: u64,
    /// Operations by outcome.
    pub outcomes: Outcomes,
    /// The scheduled rate; None in a closed loop.
    pub scheduled_rate_s: Option<f64>,
    /// Latencies by operation; operations that never ran are left out.
    pub latency_us: BTreeMap<String, OpSummary>,
    /// What these numbers themselves give reason to doubt.
    pub caveats: Vec<Caveat>,
}

/// Latencies over all operations merged, as in a row of `trials.csv`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overall {
    /// First send to final outcome.
    pub service: Option<Stats>,
    /// Scheduled to final outcome; None when the rate was missed.
    pub response: Option<Stats>,
    /// Scheduled to sent.
    pub lag: Option<Stats>,
}

/// Mean, percentiles and maximum in microseconds; None of an empty histogram.
#[must_use]
pub fn stats(latency: &Latency) -> Option<Stats> {
    let at = |q| us(latency.quantile(q).0 as f64);
    (!latency.is_empty()).then(|| Stats {
        mean: us(latency.mean()),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: us(latency.max().0 as f64),
    })
}

/// Nanoseconds as microseconds, to whole nanoseconds.
fn us(ns: f64) -> f64 {
    ns.round() / 1e3
}

/// All figures of a window, with the caveats that follow from them.
#[must_use]
pub fn figures(window: &Window) -> Figures {
    let mut outcomes = Outcomes::default();
    for op in window.ops {
        outcomes.0.iter_mut().zip(op.outcomes).for_each(|(sum, n)| *sum += n);
    }
    let missed = checks::rate_missed(window.load);
    let latency_us = window
        .names
        .iter()
        .zip(window.ops)
        .filter(|(_, op)| op.ops() > 0)
        .map(|(names, op)| (names.name.clone(), op_summary(names, op, missed.is_none())))
        .collect();
    let caveats = [
        missed,
        checks::errors(&outcomes),
        checks::littles_law(window),
        checks::few_samples(window),
        checks::clamped(window.ops),
    ];
    let duration_s = window.duration.as_secs_f64();
    let ok = outcomes.of(Outcome::Ok) as f64;
    Figures {
        ops: outcomes.total(),
        ops_s: if duration_s > 0.0 { ok / duration_s } else { 0.0 },
        duration_s,
        errors: outcomes.errors(),
        outcomes,
        scheduled_rate_s: match window.load {
            Load::Open { rate_s, .. } => Some(rate_s),
            Load::Closed { .. } | Load::Throttled => None,
        },
        latency_us,
        caveats: caveats.into_iter().flatten().collect(),
    }
}

fn op_summary(names: &OpNames, op: &OpRecord, rate_kept: bool) -> OpSummary {
    let parts = names.parts.iter().zip(&op.parts);
    OpSummary {
        ops: op.ops(),
        errors: op.ops().saturating_sub(op.count(Outcome::Ok)),
        service: stats(&op.service),
        response: if rate_kept { stats(&op.response) } else { None },
        lag: stats(&op.lag),
        parts: parts.map(|(name, latency)| (name.clone(), stats(latency))).collect(),
    }
}

/// Latencies over all operations of a window, from merged histograms.
#[must_use]
pub fn overall(window: &Window) -> Overall {
    let mut all = OpRecord::new(0);
    for op in window.ops {
        all.service.merge(&op.service);
        all.response.merge(&op.response);
        all.lag.merge(&op.lag);
    }
    let rate_kept = checks::rate_missed(window.load).is_none();
    Overall {
        service: stats(&all.service),
        response: if rate_kept { stats(&all.response) } else { None },
        lag: stats(&all.lag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> [OpNames; 3] {
        let rmw = OpNames { name: "rmw".into(), parts: vec!["read".into(), "update".into()] };
        [OpNames::single("read"), rmw, OpNames::single("scan")]
    }

    /// 1000 reads of 1 to 1000 us, one more that failed; 10 read-modify-writes; no scan.
    fn ops() -> Vec<OpRecord> {
        let mut read = OpRecord::new(0);
        for us in 1..=1000 {
            let service = Nanos::from_micros(us);
            read.record(Outcome::Ok, service, service + Nanos(500), Nanos(500));
        }
        read.record(Outcome::Unavailable, Nanos(7), Nanos(8), Nanos(1));
        let mut rmw = OpRecord::new(2);
        for _ in 0..10 {
            rmw.record(Outcome::Ok, Nanos(900), Nanos(1000), Nanos(100));
            rmw.record_part(0, Nanos(400));
            rmw.record_part(1, Nanos(500));
        }
        vec![read, rmw, OpRecord::new(0)]
    }

    fn window<'a>(names: &'a [OpNames], ops: &'a [OpRecord], load: Load) -> Window<'a> {
        Window { names, ops, duration: Nanos::from_millis(2500), load }
    }

    #[test]
    fn stats_of_a_known_distribution() {
        let ops = ops();
        let stats = stats(&ops[0].service).unwrap();
        // The mean of 1..=1000 us is 500.5; percentiles are the bucket edges, at most 0.1 % above.
        assert_eq!(stats.mean, 500.5);
        let figures = [stats.p50, stats.p90, stats.p99, stats.p999, stats.max];
        for (us, true_us) in figures.into_iter().zip([500.0, 900.0, 990.0, 999.0, 1000.0]) {
            assert!((true_us..=true_us * 1.001).contains(&us), "{us} for {true_us}");
        }
        assert_eq!(super::stats(&Latency::new()), None);
    }

    #[test]
    fn figures_of_a_closed_loop() {
        let (names, ops) = (names(), ops());
        let figures = figures(&window(&names, &ops, Load::Throttled));
        assert_eq!((figures.ops, figures.errors), (1011, 1));
        // 1010 ok in 2.5 s.
        assert_eq!((figures.ops_s, figures.duration_s), (404.0, 2.5));
        assert_eq!(figures.outcomes.of(Outcome::Unavailable), 1);
        assert_eq!(figures.scheduled_rate_s, None);
        let keys: Vec<_> = figures.latency_us.keys().map(String::as_str).collect();
        assert_eq!(keys, ["read", "rmw"]);
        let (read, rmw) = (&figures.latency_us["read"], &figures.latency_us["rmw"]);
        assert_eq!((read.ops, read.errors), (1001, 1));
        assert_eq!(read.response.unwrap().mean, 501.0);
        assert!(read.parts.is_empty());
        assert_eq!(rmw.parts["read"].unwrap().mean, 0.4);
        assert_eq!(rmw.parts["update"].unwrap().p50, 0.5);
    }

    #[test]
    fn a_missed_rate_takes_the_response_away() {
        let (names, ops) = (names(), ops());
        for (done_in_window, kept) in [(990, true), (989, false)] {
            let load = Load::Open { rate_s: 400.0, scheduled: 1000, done_in_window };
            let window = window(&names, &ops, load);
            let figures = figures(&window);
            let read = &figures.latency_us["read"];
            assert_eq!(read.response.is_some(), kept);
            assert_eq!(overall(&window).response.is_some(), kept);
            assert!(read.service.is_some() && read.lag.is_some());
            assert_eq!(figures.caveats.iter().any(|c| c.code == "rate-missed"), !kept);
            assert_eq!(figures.scheduled_rate_s, Some(400.0));
        }
    }

    #[test]
    fn overall_is_of_merged_histograms() {
        let (names, ops) = (names(), ops());
        let all = overall(&window(&names, &ops, Load::Throttled)).service.unwrap();
        // (500,500 us + 10 x 0.9 us) / 1010.
        assert_eq!(all.mean, 495.553);
    }

    #[test]
    fn an_empty_window_has_no_figures() {
        let none = window(&[], &[], Load::Closed { threads: 64 });
        let figures = figures(&Window { duration: Nanos::ZERO, ..none });
        assert_eq!((figures.ops, figures.ops_s), (0, 0.0));
        assert!(figures.latency_us.is_empty() && figures.caveats.is_empty());
    }
}
