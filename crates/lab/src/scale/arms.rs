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
    /// How these came to be compared, for people.
    pub(super) why: Vec<String>,
    /// What is not measured.
    pub(super) left_out: LeftOut,
}

/// Arms that are not measured, by what is said of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeftOut(Vec<(String, Vec<String>)>);

impl LeftOut {
    fn add(&mut self, arm: String, why: String) {
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, arms)) => arms.push(arm),
            None => self.0.push((why, vec![arm])),
        }
    }

    /// A sentence for each reason.
    pub(super) fn told(&self) -> Vec<String> {
        let sentence =
            |(why, arms): &(String, Vec<String>)| format!("Left out: {}. {why}", arms.join(", "));
        self.0.iter().map(sentence).collect()
    }
}

impl Arms {
    /// # Errors
    /// When nothing that was asked for is possible here.
    pub(super) fn of(study: &Study, make: &mut Make<'_>) -> Result<Self, LabError> {
        match &study.compared {
            Some(Compared::Layouts(policies)) => {
                let arms = Self::layouts(study, policies, make)?;
                match policies.len() > 1 && arms.arms.len() == 1 && study.numa_counts.len() < 2 {
                    true => Self::instead(study, &arms, make),
                    false => Ok(arms),
                }
            }
            Some(Compared::Instances(counts)) => Self::instances(study, counts, make),
            None => {
                use layout::Policy::{PerLlc, PerNuma, PerPackage, Single};
                let all = [Single, PerPackage, PerNuma, PerLlc].map(Policy::Parts);
                let arms = Self::layouts(study, &all, make)?;
                if arms.arms.len() > 1 {
                    return Ok(arms);
                }
                Self::instead(study, &arms, make)
            }
        }
    }

    /// Numbers of instances, where all layouts come out as one.
    fn instead(study: &Study, layouts: &Self, make: &mut Make<'_>) -> Result<Self, LabError> {
        let mut counted = Self::instances(study, &INSTANCES, make)?;
        let same = layouts.left_out.0.iter().flat_map(|(_, arms)| arms);
        let same: Vec<&str> = same.map(String::as_str).collect();
        let text = format!(
            "Numbers of instances are compared instead of layouts: in what this machine gives the \
             target, {} cannot be or are the same as {}.",
            same.join(", "),
            layouts.arms.first().map_or("another", |arm| arm.name.as_str())
        );
        counted.why.insert(0, text);
        Ok(counted)
    }

    fn layouts(study: &Study, policies: &[Policy], make: &mut Make<'_>) -> Result<Self, LabError> {
        let arm = |layout: &Policy| Arm { name: layout.to_string(), layout: layout.clone() };
        let arms = policies.iter().map(arm).collect();
        Self {
            factor: "layout",
            arms,
            except: Vec::new(),
            why: Vec::new(),
            left_out: LeftOut::default(),
        }
        .distinct(study, make)
    }

    /// Each with its part of the cpus where all of them can have one, else all of them on all cpus.
    fn instances(study: &Study, counts: &[u32], make: &mut Make<'_>) -> Result<Self, LabError> {
        let of = |layout: &dyn Fn(u32) -> Policy| {
            let arm = |&count: &u32| Arm { name: count.to_string(), layout: layout(count) };
            let arms = counts.iter().map(arm).collect();
            Self {
                factor: "instances",
                arms,
                except: Vec::new(),
                why: Vec::new(),
                left_out: LeftOut::default(),
            }
        };
        let parts = of(&|count| Policy::Parts(layout::Policy::Count(count)));
        let parts = parts.distinct(study, make);
        match parts {
            Ok(parts) if parts.left_out.0.is_empty() => Ok(parts),
            _ => {
                let mut shared = of(&Policy::Shared).distinct(study, make)?;
                let text = "There are fewer cores than instances: in every arm all instances share \
                            all cpus of the target.";
                shared.why.insert(0, text.to_owned());
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
            let of = budget.map_or_else(String::new, |n| match n {
                1 => " on 1 NUMA node".to_owned(),
                n => format!(" on {n} NUMA nodes"),
            });
            match make(&planned) {
                Ok(trial) => {
                    let same =
                        seen.iter().find(|(b, places, _)| *b == budget && *places == trial.places);
                    if let Some((.., other)) = same {
                        let same = format!("The same as {other} here.");
                        self.left_out.add(format!("{name}{of}"), same);
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
                    self.left_out.add(format!("{name}{of}"), why);
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
