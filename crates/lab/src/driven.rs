//! From what was driven to what is analysed and kept: names, the kind of load, `total.hlog`.

use crate::error::{LabError, log_failed};
use crate::filling::outcomes;
use drive::{Amount, Arrivals, Driven, Ended, Load};
use record::hlog::HlogWriter;
use record::run_dir::TOTAL_HLOG;
use record::{OpNames, TrialDir};
use units::clock;

/// The operations of a plan, and the steps of those that have several.
pub(crate) fn op_names(operations: &[workload::Operation]) -> Vec<OpNames> {
    let parts = |o: &workload::Operation| match o.steps.len() {
        1 => Vec::new(),
        _ => o.steps.iter().map(|s| s.name.to_owned()).collect(),
    };
    operations.iter().map(|o| OpNames { name: o.name.to_owned(), parts: parts(o) }).collect()
}

/// How it was driven, as far as checks depend on it.
pub(crate) fn analyzed_load(load: &Load, driven: &Driven) -> analyze::Load {
    match load.arrivals {
        Arrivals::Closed { throttle: Some(_), .. } => analyze::Load::Throttled,
        Arrivals::Closed { threads, .. } => analyze::Load::Closed { threads: threads as u64 },
        Arrivals::Open { rate, .. } => analyze::Load::Open {
            rate_s: rate.per_s(),
            scheduled: match (driven.ended, load.amount) {
                (Ended::Completed, Amount::Ops(ops)) => ops,
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
