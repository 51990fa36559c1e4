//! The arms of a study on the machine at hand: which there are, and which are the same.
//!
//! In: a study. Out: the factor that is compared, its levels, and combinations with a budget that
//! cannot be or are the same as another, each with a sentence.

use super::{Compared, Study, combinations, text};
use crate::error::LabError;
use crate::experiment::Make;
use crate::layout::Policy;
use machine::layout;
use stage::Place;
use std::collections::BTreeMap;

/// Numbers of instances where a machine has no layouts to compare.
const INSTANCES: [u32; 3] = [1, 2, 4];

/// One level of what is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) layout: Policy,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arms {
    /// `layout` or `instances`.
    pub(super) factor: &'static str,
    pub(super) arms: Vec<Arm>,
    /// By arm and budget, what is not to be measured.
    pub(super) except: Vec<(String, Option<u32>)>,
    /// Why, for people.
    pub(super) left_out: Vec<String>,
}

impl Arms {
    /// # Errors
    /// When nothing that was asked for is possible here.
    pub(super) fn of(study: &Study, make: &mut Make<'_>) -> Result<Self, LabError> {
        match &study.compared {
            Some(Compared::Layouts(policies)) => Self::layouts(study, policies, make),
            Some(Compared::Instances(counts)) => Self::instances(study, counts, make),
            None => {
                use layout::Policy::{PerLlc, PerNuma, PerPackage, Single};
                let all = [Single, PerPackage, PerNuma, PerLlc].map(Policy::Parts);
                let arms = Self::layouts(study, &all, make)?;
                if arms.arms.len() > 1 {
                    return Ok(arms);
                }
                let mut counted = Self::instances(study, &INSTANCES, make)?;
                let text = "This machine gives the target one package, NUMA node and last-level \
                            cache at most: numbers of instances are compared instead of layouts.";
                counted.left_out.insert(0, text.to_owned());
                Ok(counted)
            }
        }
    }

    fn layouts(study: &Study, policies: &[Policy], make: &mut Make<'_>) -> Result<Self, LabError> {
        let arm = |layout: &Policy| Arm { name: layout.to_string(), layout: layout.clone() };
        let arms = policies.iter().map(arm).collect();
        Self { factor: "layout", arms, except: Vec::new(), left_out: Vec::new() }
            .distinct(study, make)
    }

    /// Each with its part of the cpus where all of them can have one, else all of them on all cpus.
    fn instances(study: &Study, counts: &[u32], make: &mut Make<'_>) -> Result<Self, LabError> {
        let of = |layout: &dyn Fn(u32) -> Policy| {
            let arm = |&count: &u32| Arm { name: count.to_string(), layout: layout(count) };
            let arms = counts.iter().map(arm).collect();
            Self { factor: "instances", arms, except: Vec::new(), left_out: Vec::new() }
        };
        let parts = of(&|count| Policy::Parts(layout::Policy::Count(count)));
        let parts = parts.distinct(study, make);
        match parts {
            Ok(parts) if parts.left_out.is_empty() => Ok(parts),
            _ => {
                let mut shared = of(&Policy::Shared).distinct(study, make)?;
                let text = "There are fewer cores than instances: all instances share all cpus of \
                            the target.";
                shared.left_out.insert(0, text.to_owned());
                Ok(shared)
            }
        }
    }

    /// Without arms that cannot be here, or are the same as one before.
    fn distinct(mut self, study: &Study, make: &mut Make<'_>) -> Result<Self, LabError> {
        // One workload is as good as another to see where instances go.
        let one = Study {
            workloads: study.workloads.iter().take(1).cloned().collect(),
            repetitions: 1,
            ..study.clone()
        };
        let mut planned = combinations(&text::experiment(&one, &self, &BTreeMap::new()))?;
        // Of arms that are the same the first one asked for stays, whatever the order of trials.
        planned.sort_by_key(|planned| {
            let level = planned.factors.iter().find(|(factor, _)| factor == self.factor);
            let is_at = |arm: &Arm| level.is_some_and(|(_, level)| *level == arm.name);
            self.arms.iter().position(is_at)
        });
        let mut seen: Vec<(Option<u32>, Vec<Place>, String)> = Vec::new();
        let mut refused = None;
        for planned in planned {
            let level = |factor: &str| {
                planned.factors.iter().find(|(name, _)| name == factor).map(|(_, level)| level)
            };
            let budget = level("numa-count").and_then(|count| count.parse::<u32>().ok());
            let Some(name) = level(self.factor).cloned() else { continue };
            let of = budget.map_or_else(String::new, |n| format!(" on {n} NUMA nodes"));
            match make(&planned) {
                Ok(trial) => {
                    let same =
                        seen.iter().find(|(b, places, _)| *b == budget && *places == trial.places);
                    if let Some((.., other)) = same {
                        self.left_out.push(format!("{name}{of} is the same as {other} here."));
                        self.except.push((name, budget));
                        continue;
                    }
                    seen.push((budget, trial.places, name));
                }
                Err(error) => {
                    let why = match &error {
                        LabError::Refused { why, .. } => why.clone(),
                        other => other.to_string(),
                    };
                    self.left_out.push(format!("{name}{of} is left out: {why}"));
                    self.except.push((name, budget));
                    refused = Some(error);
                }
            }
        }
        if let (true, Some(error)) = (seen.is_empty(), refused) {
            return Err(error);
        }
        let measured = |arm: &Arm| seen.iter().any(|(.., name)| *name == arm.name);
        self.arms.retain(measured);
        let kept =
            |(name, _): &(String, Option<u32>)| self.arms.iter().any(|arm| arm.name == *name);
        self.except.retain(kept);
        Ok(self)
    }
}
