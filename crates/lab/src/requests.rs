//! A trial's plan in the requests of its protocol.

use crate::error::LabError;
use crate::trial::Trial;
use drive::{Encoder, Encoding, PreparedId, RecordEncoder, RecordPlace, Writes, token_ranges};
use std::sync::Arc;
use wire::aerospike::RecordExists;
use workload::Plan;

/// What a trial over records has in place of CQL's levels and statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Records {
    /// How they are written.
    pub writes: Writes,
}

/// Where a trial's records are.
pub(crate) fn place(trial: &Trial) -> RecordPlace {
    RecordPlace { namespace: trial.table.keyspace.clone(), set: trial.table.table.clone() }
}

/// A plan as the trial's load sends it.
pub(crate) fn of_run(
    trial: &Trial,
    plan: Arc<Plan>,
    ids: &[PreparedId],
    ranges: &Arc<[(i64, i64)]>,
) -> Result<Encoding, LabError> {
    encoding(trial, plan, ids, ranges, trial.records)
}

/// A plan as what fills the table sends it: a record that is there already is written anew, so that
/// a load can be resumed.
pub(crate) fn of_load(
    trial: &Trial,
    plan: Arc<Plan>,
    ids: &[PreparedId],
) -> Result<Encoding, LabError> {
    let anew =
        |Records { writes }| Records { writes: Writes { insert: RecordExists::Replace, ..writes } };
    encoding(trial, plan, ids, &token_ranges(Vec::new()), trial.records.map(anew))
}

fn encoding(
    trial: &Trial,
    plan: Arc<Plan>,
    ids: &[PreparedId],
    ranges: &Arc<[(i64, i64)]>,
    records: Option<Records>,
) -> Result<Encoding, LabError> {
    Ok(match records {
        Some(Records { writes }) => {
            Arc::new(RecordEncoder::new(plan, place(trial), writes)?).into()
        }
        None => {
            let (protocol, levels) = (trial.protocol, trial.consistency);
            let encoder = Encoder::speaking(protocol, plan, &trial.table, ids, levels);
            Arc::new(encoder.over(ranges)).into()
        }
    })
}
