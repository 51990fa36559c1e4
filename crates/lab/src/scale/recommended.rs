//! The configuration of the arm that won.
//!
//! In: the trials of a study that was carried out. Out: the files of `wideload plan` for its layout
//! under `recommended/`, or a sentence why there are none: no arm won in all workloads and at the
//! largest budget, or its instances are not bound to anything.

use crate::experiment::{Carried, Make, Planned, Value, arm_name};
use crate::layout::{Asked, Database, Policy, lay_out};
use analyze::arms::Verdict;
use machine::Machine;
use stage::emit;
use std::path::Path;

const RECOMMENDED: &str = "recommended";

/// What to do with the result, in a sentence or two.
pub(super) fn write(planned: &[Planned], carried: &Carried, make: &mut Make<'_>) -> String {
    match files(planned, carried, make) {
        Ok(told) => told,
        Err(why) => format!("Nothing is recommended: {why}."),
    }
}

/// Writes the files; what is recommended, or why nothing is.
fn files(planned: &[Planned], carried: &Carried, make: &mut Make<'_>) -> Result<String, String> {
    let largest = largest_budget(carried);
    let name = winner(carried, largest.as_ref())?;
    let factor = carried.outcome.compare.as_deref().ok_or("there was nothing to compare")?;
    let named = arm_name(factor, name);
    let is_it = |planned: &&Planned| {
        planned.factors.iter().any(|(known, level)| known == factor && level == name)
            && is_of_budget(&planned.factors, largest.as_ref())
    };
    let planned = planned.iter().find(is_it).ok_or("the best arm is unknown")?;
    let layout = planned.settings.iter().find(|(setting, _)| setting == "layout");
    if let Some((_, Value::Text(layout))) = layout
        && let Ok(Policy::Shared(_)) = layout.parse()
    {
        return Ok(format!(
            "Recommended by throughput: {named}, all on all cpus of the target. There are no files \
             for that, because nothing is bound; several instances need addresses or ports, \
             directories and a part of the memory each."
        ));
    }
    let trial = make(planned).map_err(|error| error.to_string())?;
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
    let dir = root.display();
    Ok(format!("Recommended by throughput: {named}; its scripts and configurations are in {dir}."))
}

/// In NUMA nodes.
fn largest_budget(carried: &Carried) -> Option<String> {
    let measured = carried.outcome.cells.iter().flat_map(|cell| &cell.factors);
    let counts = measured.filter(|(name, _)| name == "numa-count");
    let largest = counts.filter_map(|(_, level)| level.parse::<u32>().ok()).max();
    largest.map(|count| count.to_string())
}

fn is_of_budget(factors: &[(String, String)], largest: Option<&String>) -> bool {
    let budget = factors.iter().find(|(name, _)| name == "numa-count");
    budget.is_none_or(|(_, level)| Some(level) == largest)
}

/// The arm that has won everything at the largest budget.
fn winner<'a>(carried: &'a Carried, largest: Option<&String>) -> Result<&'a str, String> {
    let mut winner: Option<&str> = None;
    for cell in carried.outcome.cells.iter().filter(|cell| is_of_budget(&cell.factors, largest)) {
        let comparison = cell.comparison.as_ref().ok_or("there was nothing to compare")?;
        let Verdict::Winner { .. } = comparison.verdict else {
            return Err(
                "no arm is surely better than all others; more --repetitions, or a longer \
                        --duration, tell smaller differences apart"
                    .to_owned(),
            );
        };
        let best = cell.arms.get(comparison.best).map(|arm| arm.name.as_str());
        if winner.is_some() && best != winner {
            return Err("not the same arm is best for all workloads".to_owned());
        }
        winner = best;
    }
    winner.ok_or_else(|| "no arm was measured".to_owned())
}
