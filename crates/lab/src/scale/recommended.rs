//! The configuration of the arm that won.
//!
//! In: a study that was carried out. Out: the files of `wideload plan` for its layout under
//! `recommended/`, or a sentence why there are none: no arm won in all workloads and at the largest
//! budget, or its instances are not bound to anything.

use super::arms::Arms;
use super::{Study, combinations, text};
use crate::experiment::{Carried, Make};
use crate::layout::{Asked, Database, Policy, lay_out};
use analyze::arms::Verdict;
use machine::Machine;
use stage::emit;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const RECOMMENDED: &str = "recommended";

pub(super) fn write(
    study: &Study,
    arms: &Arms,
    carried: &Carried,
    make: &mut Make<'_>,
) -> Result<(PathBuf, String), String> {
    let measured = carried.outcome.cells.iter().flat_map(|cell| &cell.factors);
    let counts = measured.filter(|(name, _)| name == "numa-count");
    let largest = counts.filter_map(|(_, level)| level.parse::<u32>().ok()).max();
    let largest = largest.map(|count| count.to_string());
    let of_largest = |factors: &[(String, String)]| {
        let budget = factors.iter().find(|(name, _)| name == "numa-count");
        budget.is_none_or(|(_, level)| Some(level) == largest.as_ref())
    };
    let mut winner: Option<&str> = None;
    for cell in carried.outcome.cells.iter().filter(|cell| of_largest(&cell.factors)) {
        let comparison = cell.comparison.as_ref().ok_or("there was nothing to compare")?;
        let Verdict::Winner { .. } = comparison.verdict else {
            return Err("no arm is surely better than all others".to_owned());
        };
        let best = cell.arms.get(comparison.best).map(|arm| arm.name.as_str());
        if winner.is_some() && best != winner {
            return Err("not the same arm is best for all workloads".to_owned());
        }
        winner = best;
    }
    let name = winner.ok_or("no arm was measured")?;
    let arm = arms.arms.iter().find(|arm| arm.name == name).ok_or("the best arm is unknown")?;
    if let Policy::Shared(count) = arm.layout {
        return Err(format!("{count} instances on all cpus is best, which needs no binding"));
    }
    let why = format!("{} {name} won", arms.factor);
    let planned = combinations(&text::experiment(study, arms, &BTreeMap::new()));
    let planned = planned.map_err(|error| error.to_string())?;
    let is_it = |factors: &[(String, String)]| {
        factors.contains(&(arms.factor.to_owned(), name.to_owned())) && of_largest(factors)
    };
    let planned = planned.iter().find(|planned| is_it(&planned.factors));
    let trial = make(planned.ok_or("the best arm is unknown")?).map_err(|e| e.to_string())?;
    let (database, heap) = match &trial.target {
        crate::TargetChoice::Cassandra { options, .. } => (Database::Cassandra, options.heap),
        _ => (Database::Reference, None),
    };
    let machine = Machine::read(Path::new("/")).map_err(|error| error.to_string())?;
    // What the trial has, with the planner's addresses, memory and reasons.
    let policy = machine::layout::Policy::Custom(
        trial.places.iter().map(|place| place.cpus.clone()).collect(),
    );
    let asked = Asked {
        policy: Policy::Parts(policy),
        numa_count: None,
        order: None,
        cpus: trial.target_cpus(),
        database,
        heap,
    };
    let (_, layout) = lay_out(&machine, &asked).map_err(|error| error.to_string())?;
    let root = carried.run_dir.join(RECOMMENDED);
    let root = std::path::absolute(&root).unwrap_or(root);
    let of_emit = emit::Asked { root: root.clone(), ..emit::Asked::default() };
    let files = emit::files(&layout, &of_emit).map_err(|error| error.to_string())?;
    files.write(&root).map_err(|error| error.to_string())?;
    Ok((root, why))
}
