//! From what was driven to what is analysed and kept: names, the kind of load, the client's cost,
//! the verdict, `total.hlog`.

use crate::caveats;
use crate::error::{LabError, log_failed};
use crate::filling::outcomes;
use drive::{Amount, Arrivals, Driven, Ended, Load};
use record::hlog::HlogWriter;
use record::run_dir::TOTAL_HLOG;
use record::summary::{ClientCost, Summary};
use record::{OpNames, Outcome, TrialDir, Verdict};
use units::{Nanos, clock};

/// The operations of a plan, and the steps of those that have several.
pub(crate) fn op_names(operations: &[workload::Operation]) -> Vec<OpNames> {
    let parts = |o: &workload::Operation| match o.steps.len() {
        1 => Vec::new(),
        _ => o.steps.iter().map(|s| s.name.to_owned()).collect(),
    };
    operations.iter().map(|o| OpNames { name: o.name.to_string(), parts: parts(o) }).collect()
}

/// How it was driven, as far as checks depend on it.
pub(crate) fn analyzed_load(load: &Load, driven: &Driven) -> analyze::Load {
    match load.arrivals {
        Arrivals::Closed { throttle: Some(_), .. } => analyze::Load::Throttled,
        Arrivals::Closed { threads, .. } => analyze::Load::Closed { threads: threads as u64 },
        Arrivals::Open { rate, .. } => analyze::Load::Open {
            rate_s: rate.per_s(),
            scheduled: match (driven.ended, load.amount) {
                (Ended::Completed, Amount::Ops(ops)) if load.limit.is_none() => ops,
                _ => outcomes(driven).total(),
            },
            done_in_window: driven.usage.iter().map(|u| u.done_in_window).sum(),
        },
    }
}

/// Writes the histograms of the whole window.
pub(crate) fn write_total(
    trial_dir: &TrialDir,
    names: &[OpNames],
    driven: &Driven,
) -> Result<(), LabError> {
    let base = clock::wall() - (clock::now() - driven.total.start);
    let file = trial_dir.append(TOTAL_HLOG)?;
    HlogWriter::new(std::io::BufWriter::new(file), base)
        .and_then(|mut hlog| {
            hlog.write_interval(names, &driven.total, driven.total.start)?;
            hlog.finish()
        })
        .map_err(log_failed(&trial_dir.path().join(TOTAL_HLOG)))?;
    Ok(())
}

/// What the client cost. Polling is left out of the time per operation and told apart.
pub(crate) fn client_cost(driven: &Driven, ops: u64) -> ClientCost {
    let spin: Nanos = driven.usage.iter().fold(Nanos::ZERO, |sum, u| sum + u.spin);
    let workers_s = driven.elapsed.as_secs_f64() * driven.usage.len() as f64;
    let per_op = |total: f64| (ops > 0).then(|| total / ops as f64);
    let busy = caveats::busy_shares(driven).fold(0.0, f64::max);
    let syscalls: u64 = driven.usage.iter().map(|u| u.syscalls).sum();
    ClientCost {
        cpu_us_per_op: per_op(driven.process_cpu.since(spin).0 as f64 / 1e3),
        syscalls_per_op: per_op(syscalls as f64),
        rss_mib_max: stage::usage::of_self().map(|u| u.rss_max.0 as f64 / f64::from(1 << 20)),
        busy_max: Some(busy),
        spin_share: (workers_s > 0.0).then(|| spin.as_secs_f64() / workers_s),
    }
}

/// How a trial ended, and why if not well.
pub(crate) fn verdict(
    summary: &Summary,
    driven: &Driven,
    give_up: Nanos,
) -> (Verdict, Option<String>) {
    let share = summary.errors as f64 / summary.ops.max(1) as f64;
    let said = driven.first_error.as_ref();
    let said = said.map_or(String::new(), |first| format!("; the first error was: {first}"));
    let failed = |why: String| (Verdict::Failed, Some(why + &said));
    match driven.ended {
        Ended::Stopped => (Verdict::Interrupted, Some("interrupted by the user".to_owned())),
        Ended::GaveUp => failed(format!("nothing succeeded for {give_up} (--give-up)")),
        Ended::Failed => failed("an operation failed, which was to end the run".to_owned()),
        Ended::Completed if summary.ops == 0 => failed(
            "no operation fell due in the window: the target or the client stood still".into(),
        ),
        Ended::Completed if share > analyze::ERRORS_SHARE_MAX => {
            failed(format!("{:.2} % of the operations failed", share * 100.0))
        }
        Ended::Completed => (Verdict::Ok, None),
    }
}

/// The first operation that failed for good, as cassandra-stress words it: attempts, key, and what
/// the target said.
pub(crate) fn failure_text(plan: &workload::Plan, driven: &Driven) -> String {
    let Some(failure) = driven.first_failure else { return "nothing succeeded".to_owned() };
    let statement = plan.run.get(usize::from(failure.operation)).and_then(|o| o.steps.first());
    let statement = statement.map_or(0, |step| step.first_statement);
    let key = match plan.tables.as_ref().and_then(|tables| tables.scan_of(statement)) {
        Some(_) => format!("tokens behind {}", failure.key.cast_signed()),
        None => {
            let mut key = vec![0; plan.key_room()];
            let size = plan.write_key_of(statement, failure.key, &mut key);
            key[..size].iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };
    let unmatched = matches!(failure.outcome, Outcome::NotFound | Outcome::Invalid);
    let said = driven.first_error.as_deref().unwrap_or(failure.outcome.name());
    // The original counts attempts that ended in an error; a row that differs is none.
    match unmatched {
        true => format!("Operation x0 on key(s) [{key}]: Data returned was not validated"),
        false => {
            let attempts = failure.attempts;
            format!("Operation x{attempts} on key(s) [{key}]: Error executing: {said}")
        }
    }
}
