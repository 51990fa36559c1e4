//! Several trials of one load as one result.
//!
//! In: the trials that were done, in order. Out: the figures of the median one, with the spread
//! over all that ended ok. All trials work on the same rows: each one's operations have a seed of
//! their own, and inserts go on behind those of the trials before, so that none becomes an update.

use analyze::Overall;
use analyze::repeats::{median_index, spread};
use record::repeats::{Repeat, Repeats};
use record::summary::Stats;
use record::{Caveat, Summary, Verdict};

/// The seed of a trial's operations: that of the run for the first, and one more for each after it.
pub(crate) fn seed(run: u64, number: u32) -> u64 {
    run.wrapping_add(u64::from(number.saturating_sub(1)))
}

/// A trial that is done.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) number: u32,
    pub(crate) seed: u64,
    pub(crate) summary: Summary,
    pub(crate) overall: Overall,
    pub(crate) verdict: Verdict,
    pub(crate) failure: Option<String>,
    /// By worker, as [`drive::Drive::inserted`] takes them.
    pub(crate) inserted: Vec<u64>,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) summary: Summary,
    pub(crate) verdict: Verdict,
    pub(crate) failure: Option<String>,
}

/// The result of `asked` trials, of which some are done; `ended` says how the one behind them
/// ended, if it could not be measured. None when there is none.
pub(crate) fn conclude(
    done: Vec<Done>,
    asked: u32,
    ended: Option<(Verdict, String)>,
) -> Option<Run> {
    let last = done.last()?;
    let (number, own) = (last.number, last.failure.clone().map(|why| (last.verdict, why)));
    let (verdict, failure) = match ended.map(|e| (number + 1, e)).or(own.map(|o| (number, o))) {
        Some((_, (verdict, why))) if asked == 1 => (verdict, Some(why)),
        Some((number, (verdict, why))) => (verdict, Some(format!("trial {number}: {why}"))),
        None => (last.verdict, None),
    };
    if asked == 1 {
        let summary = last.summary.clone();
        return Some(Run { summary, verdict, failure });
    }
    // Where none ended ok, the last one stands for the run, and its verdict with it.
    let mut good: Vec<&Done> = done.iter().filter(|d| d.verdict == Verdict::Ok).collect();
    if good.is_empty() {
        good.push(last);
    }
    good.sort_by(|a, b| a.summary.ops_s.total_cmp(&b.summary.ops_s));
    let median = good[median_index(good.len())];
    let of = |time: fn(&Overall) -> Option<Stats>| {
        let p99: Option<Vec<f64>> = good.iter().map(|d| time(&d.overall).map(|s| s.p99)).collect();
        p99.and_then(|p99| spread(&p99))
    };
    let ops_s: Vec<f64> = good.iter().map(|d| d.summary.ops_s).collect();
    let repeats = Repeats {
        asked,
        median_trial: median.number,
        ops_s: spread(&ops_s)?,
        service_us_p99: of(|overall| overall.service),
        response_us_p99: of(|overall| overall.response),
        trials: done.iter().map(repeat).collect(),
    };
    let caveats = caveats(&done, median);
    let summary = Summary { caveats, repeats: Some(repeats), ..median.summary.clone() };
    Some(Run { summary, verdict, failure })
}

fn repeat(done: &Done) -> Repeat {
    Repeat {
        trial: done.number,
        seed: done.seed,
        verdict: done.verdict,
        ops_s: done.summary.ops_s,
        service_us_p99: done.overall.service.map(|s| s.p99),
        response_us_p99: done.overall.response.map(|s| s.p99),
        caveats: done.summary.caveats.iter().map(|caveat| caveat.code.clone()).collect(),
    }
}

/// Those of the median trial, and of the others what it has not: the spread is theirs too.
fn caveats(done: &[Done], median: &Done) -> Vec<Caveat> {
    let mut all = median.summary.caveats.clone();
    for other in done {
        for caveat in &other.summary.caveats {
            if all.iter().all(|known| known.code != caveat.code) {
                let text = format!("Trial {}: {}", other.number, caveat.text);
                all.push(Caveat { text, ..caveat.clone() });
            }
        }
    }
    let grows = done.len() > 1 && done.iter().any(|d| d.inserted.iter().any(|n| *n > 0));
    all.extend(grows.then(|| {
        let text = "The workload inserts rows: each trial works on a table that is larger by the \
                    inserts of those before it.";
        Caveat::new("repeats-grow", text)
            .cure("Repeat the whole run on a new table to have equal beginnings.")
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::summary::{ClientCost, Outcomes, Target};
    use std::collections::BTreeMap;

    fn done(number: u32, ops_s: f64, verdict: Verdict) -> Done {
        let target = Target { kind: "cql".into(), version: None, protocol: None };
        let summary = Summary {
            schema: 1,
            workload: "ycsb:a".into(),
            target,
            ops: 10,
            ops_s,
            duration_s: 1.0,
            errors: 0,
            outcomes: Outcomes::default(),
            scheduled_rate_s: None,
            latency_us: BTreeMap::new(),
            client: ClientCost::default(),
            caveats: vec![Caveat::new(format!("c{number}"), "Text."), Caveat::new("all", "Text.")],
            shards: None,
            repeats: None,
            run: "runs/x".into(),
        };
        let stats = Stats { p99: 1e6 / ops_s, ..ZERO };
        let overall = Overall { service: Some(stats), response: None, lag: None };
        let failure = (verdict != Verdict::Ok).then(|| "why".to_owned());
        Done { number, seed: 7, summary, overall, verdict, failure, inserted: vec![0, 0] }
    }

    const ZERO: Stats = Stats { mean: 0.0, p50: 0.0, p90: 0.0, p99: 0.0, p999: 0.0, max: 0.0 };

    #[test]
    fn the_median_trial_stands_for_the_run_with_the_caveats_of_all() {
        let all = vec![
            done(1, 100.0, Verdict::Ok),
            done(2, 300.0, Verdict::Ok),
            done(3, 200.0, Verdict::Ok),
            done(4, 250.0, Verdict::Ok),
        ];
        let run = conclude(all, 4, None).unwrap();
        let repeats = run.summary.repeats.clone().unwrap();
        assert_eq!((run.summary.ops_s, repeats.median_trial), (200.0, 3));
        assert_eq!((repeats.ops_s.min, repeats.ops_s.max), (100.0, 300.0));
        assert_eq!(repeats.ops_s.interval_kind, "min-max");
        let p99 = repeats.service_us_p99.unwrap();
        assert_eq!((p99.min.round(), p99.max), (3333.0, 10_000.0));
        assert_eq!((repeats.response_us_p99, repeats.trials.len()), (None, 4));
        assert_eq!((run.verdict, run.failure), (Verdict::Ok, None));
        let codes: Vec<_> = run.summary.caveats.iter().map(|c| c.code.as_str()).collect();
        assert_eq!(codes, ["c3", "all", "c1", "c2", "c4"]);
        assert!(run.summary.caveats[2].text.starts_with("Trial 1: "));
    }

    #[test]
    fn an_end_before_all_are_done_keeps_those_that_are() {
        let some = vec![done(1, 100.0, Verdict::Ok), done(2, 1.0, Verdict::Interrupted)];
        let run = conclude(some.clone(), 3, None).unwrap();
        assert_eq!((run.summary.ops_s, run.verdict), (100.0, Verdict::Interrupted));
        assert_eq!(run.failure.as_deref(), Some("trial 2: why"));
        assert_eq!(run.summary.repeats.unwrap().trials.len(), 2);

        let ended = Some((Verdict::Failed, "no connection".to_owned()));
        let run = conclude(some[..1].to_vec(), 3, ended).unwrap();
        assert_eq!(run.failure.as_deref(), Some("trial 2: no connection"));
        assert_eq!(run.verdict, Verdict::Failed);

        let run = conclude(some[1..].to_vec(), 3, None).unwrap();
        assert_eq!((run.summary.ops_s, run.verdict), (1.0, Verdict::Interrupted));
        assert!(conclude(Vec::new(), 3, None).is_none());
    }

    #[test]
    fn one_trial_is_no_repetition() {
        let run = conclude(vec![done(1, 100.0, Verdict::Failed)], 1, None).unwrap();
        assert_eq!((run.summary.repeats, run.failure.as_deref()), (None, Some("why")));
    }

    #[test]
    fn inserts_of_earlier_trials_are_told() {
        let mut all = vec![done(1, 1.0, Verdict::Ok), done(2, 2.0, Verdict::Ok)];
        all[0].inserted = vec![0, 3];
        let run = conclude(all, 2, None).unwrap();
        assert!(run.summary.caveats.iter().any(|c| c.code == "repeats-grow"));
    }
}
