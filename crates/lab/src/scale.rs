//! The layout study: which layout of instances is best on this machine, and by how much.
//!
//! In: a [`Study`], and what makes a trial of a planned one. Out: an experiment whose arms are
//! layouts, or numbers of instances, each with as many clients as keep it busy, carried out block
//! by block; the files of the best arm under `recommended/`. All arms have the same cpus, heap and
//! rows in all, and the same client; arms that are the same here are measured once. Source: Talreja
//! et al., ICPE 2019. Limits: this host alone; the number of clients is looked for once per arm.

mod arms;
mod foreseen;
mod recommended;
mod text;

pub use foreseen::{Budget, Foreseen, Found as FoundLayout, Layout, foresee};

use crate::error::LabError;
use crate::experiment::{
    Begun, Carried, Make, Notes, Planned, Value, arm_name, carry_out, plan_text,
};
use crate::layout::Policy;
use crate::live::Live;
use crate::run_lock::RunLock;
use crate::trial::{Point, enough, pilot, search_takes};
use arms::Arms;
use record::run_dir::{MANIFEST, OUTCOME_JSON, write_failed};
use record::{Manifest, RunDir, Verdict, discard};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, clock};

/// Where the searches for the load leave what they started and heard.
const PILOTS: &str = "pilots";
const PILOTS_JSON: &str = "pilots.json";

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// Layouts, each over every budget.
    Layouts(Vec<Policy>),
    /// Numbers of instances on the same cpus.
    Instances(Vec<u32>),
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Study {
    /// None is what this machine has: its layouts, else numbers of instances.
    pub compared: Option<Compared>,
    /// Budgets in NUMA nodes; empty for all of the target's cpus.
    pub numa_counts: Vec<u32>,
    /// Workloads.
    pub workloads: Vec<String>,
    /// Of each combination.
    pub repetitions: u32,
    /// Of all random choices.
    pub seed: u64,
    /// Clients of every arm; None looks for them.
    pub threads: Option<u32>,
    /// Of Cassandras: the heaps of all instances of an arm together, on the largest budget; on a
    /// smaller one their part by its NUMA nodes.
    pub heap_total: Option<Bytes>,
    /// Further settings of all trials, by their names in an experiment's file.
    pub settings: Vec<(String, Value)>,
}

/// Carries a study out.
///
/// # Errors
/// [`LabError`]; a run directory that was begun says why. Nothing is left running.
pub fn scale(
    study: &Study,
    out: Option<&Path>,
    command_line: Vec<String>,
    make: &mut Make<'_>,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Carried, LabError> {
    let arms = Arms::of(study, make)?;
    // Before hours may go by.
    arms.why.iter().for_each(|why| live.notice(why));
    arms.left_out.told().iter().for_each(|why| live.notice(why));
    let run_dir = RunDir::create(out, "scale")?;
    let lock = RunLock::take(run_dir.path())?;
    let mut manifest = Manifest::starting("scale", command_line.clone(), clock::wall());
    run_dir.write_json(MANIFEST, &manifest)?;
    live.begun(run_dir.path());
    let clients = match study.threads {
        Some(_) => Ok(Clients::new()),
        None => search(study, &arms, &run_dir, make, live, stop),
    };
    let begun = clients.and_then(|clients| {
        let text = text::experiment(study, &arms, &clients);
        Ok((Begun::of_text(&text, run_dir.clone(), lock, make)?, clients))
    });
    let (mut begun, clients) =
        begun.inspect_err(|error| give_up(&run_dir, &mut manifest, error))?;
    let notes = Notes {
        arms: arms.why.clone(),
        clients: clients_in_words(study, &clients),
        left_out: arms.left_out.told(),
        recommended: None,
    };
    notes.write(&run_dir)?;
    let mut carried = carry_out(&mut begun, command_line, make, live, stop)?;
    conclude(&begun, &mut carried, make)?;
    Ok(carried)
}

/// What a study recommends, when all of it is measured, also one that was interrupted and has been
/// resumed. Of other experiments nothing.
///
/// # Errors
/// When it cannot be written.
pub fn conclude(begun: &Begun, carried: &mut Carried, make: &mut Make<'_>) -> Result<(), LabError> {
    let Some(mut notes) = carried.outcome.study.clone() else { return Ok(()) };
    if carried.outcome.missing > 0 {
        return Ok(());
    }
    let run_dir = begun.run_dir();
    notes.recommended = Some(recommended::write(begun.planned(), carried, make));
    notes.write(run_dir)?;
    carried.outcome.study = Some(notes);
    run_dir.write_json(OUTCOME_JSON, &carried.outcome)?;
    carried.report = report::build(run_dir.path()).map_err(|error| error.to_string());
    Ok(())
}

/// How many clients each arm has, and how that was found.
fn clients_in_words(study: &Study, clients: &Clients) -> Vec<String> {
    if let Some(threads) = study.threads {
        return vec![format!("Every arm has {threads} clients, operations in flight, as asked.")];
    }
    let level = |(factor, level): &(String, String)| arm_name(factor, level);
    let at = |at: &[(String, String)]| at.iter().map(level).collect::<Vec<_>>().join(", ");
    let all: Vec<_> =
        clients.iter().map(|(levels, threads)| format!("{threads} with {}", at(levels))).collect();
    vec![format!(
        "Clients, each with one operation in flight: {}. For each arm that is the least number \
         that came within 3 % of the most op/s in short drives before.",
        all.join("; ")
    )]
}

/// Clients by the levels of a combination.
type Clients = BTreeMap<Vec<(String, String)>, usize>;
type Found = Vec<(Vec<(String, String)>, Vec<Point>)>;

/// The end before anything was measured. Of one that the user wanted nothing is left; any other
/// has its reason in the directory, with the logs of what was started.
fn give_up(run_dir: &RunDir, manifest: &mut Manifest, error: &LabError) {
    manifest.end(error.verdict(), Some(error.to_string()), clock::wall());
    // The disk may be what failed.
    let _ = run_dir.write_json(MANIFEST, manifest);
    let _ = match error.verdict() {
        Verdict::Interrupted => discard(run_dir).map_err(LabError::from),
        _ => report::build(run_dir.path()).map(drop).map_err(LabError::from),
    };
}

/// Looks for the clients of each combination.
fn search(
    study: &Study,
    arms: &Arms,
    run_dir: &RunDir,
    make: &mut Make<'_>,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Clients, LabError> {
    let mut found = Found::new();
    let planned = combinations(&text::experiment(study, arms, &BTreeMap::new()))?;
    let all = planned.len();
    for (done, planned) in planned.into_iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let name: Vec<_> = planned.factors.iter().map(|(_, level)| file_name(level)).collect();
        let dir = run_dir.path().join(PILOTS).join(name.join("-"));
        fs::create_dir_all(&dir).map_err(write_failed(&dir))?;
        let pilots = RunDir::create(Some(&dir), "pilot")?;
        let trial = make(&planned)?;
        live.notice(&format!(
            "arm {} of {all}, {}: looking for the number of clients that keeps it busy; {} an arm",
            done + 1,
            planned.in_words(),
            search_takes(&trial.target)
        ));
        found.push((planned.factors.clone(), pilot(&trial, &pilots, live, stop)?));
    }
    run_dir.write_json(PILOTS_JSON, &shown(&found))?;
    Ok(found.iter().filter_map(|(at, points)| Some((at.clone(), enough(points)?))).collect())
}

/// One planned trial of each combination.
fn combinations(text: &str) -> Result<Vec<Planned>, LabError> {
    let (_, planned) = plan_text(&PathBuf::from("scale"), text)?;
    Ok(planned.into_iter().filter(|planned| planned.block == 1).collect())
}

fn file_name(level: &str) -> String {
    level.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn shown(found: &Found) -> serde_json::Value {
    let one = |(factors, points): &(Vec<(String, String)>, Vec<Point>)| {
        let factors: BTreeMap<_, _> = factors.iter().cloned().collect();
        serde_json::json!({ "factors": factors, "points": points })
    };
    found.iter().map(one).collect()
}
