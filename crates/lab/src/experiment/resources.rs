//! What the arms of an experiment used: cpu time of host, client and instances, and from which
//! NUMA nodes their cpus take memory.
//!
//! In: the directories of trials that ended ok: `counters.csv`, and of the manifest `target.places`
//! and the host's NUMA nodes. Out: means over the trials, [`CpuUse`] and [`PagePlacement`]. A mean
//! over a window weighs each row by the time since the one before. Limits: which cpu touches which
//! page is not known; an instance on several NUMA nodes counts for each by its share of cpus.

use record::Manifest;
use record::run_dir::{COUNTERS_CSV, MANIFEST};
use record::table::{Counter, each_counter};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use units::{CpuSet, open_plain};

/// Rows of one trial that are read.
const ROWS_MAX: usize = 1_000_000;

/// Cpu time within the window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuUse {
    /// Of all cpus of the host, the share that programs, kernel and interrupts used; 0 to 1.
    pub host_share: Option<f64>,
    /// Cpus that the client's workers worked, polling apart.
    pub client_cpus: f64,
    /// Cpus that all instances used together; None of a target that was not seen.
    pub target_cpus: Option<f64>,
    /// Cpus that they may use together.
    pub target_cpus_bound: usize,
    /// Cpus that each instance used.
    pub instances_cpus: Vec<f64>,
}

/// Anonymous memory by the NUMA node of the cpus that use it and that of its pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PagePlacement {
    /// NUMA nodes of the instances' cpus, ascending: the rows.
    pub cpu_numas: Vec<u32>,
    /// NUMA nodes of the pages, ascending: the columns.
    pub page_numas: Vec<u32>,
    /// Of all instances together.
    pub bytes: Vec<Vec<u64>>,
    /// The share of it that is on the node of its cpus; 0 to 1.
    pub local_share: f64,
}

/// What some trials used, all of one arm.
pub(super) fn used(dirs: &[PathBuf]) -> (Option<CpuUse>, Option<PagePlacement>) {
    let trials: Vec<OfTrial> = dirs.iter().filter_map(|dir| OfTrial::read(dir)).collect();
    (cpu_use(&trials), page_placement(&trials))
}

/// A series and its weighted sum.
#[derive(Debug, Default)]
struct Mean {
    until_s: f64,
    sum: f64,
}

impl Mean {
    fn add(&mut self, row: &Counter) {
        // What is measured while warming up has negative times.
        if row.t_s > self.until_s {
            self.sum += row.value * (row.t_s - self.until_s);
            self.until_s = row.t_s;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.until_s > 0.0).then(|| self.sum / self.until_s)
    }
}

type Pages = BTreeMap<(u32, u32), f64>;

#[derive(Debug, Default)]
struct OfTrial {
    means: BTreeMap<(String, String), Mean>,
    bound: CpuSet,
    /// Bytes by the nodes of cpu and page.
    pages: Pages,
}

impl OfTrial {
    /// None where the manifest cannot be read; series that are not there are empty.
    fn read(dir: &Path) -> Option<Self> {
        let manifest = Manifest::read(&dir.join(MANIFEST)).ok()?;
        let mut trial = Self::default();
        if let Ok(file) = open_plain(&dir.join(COUNTERS_CSV)) {
            // What is damaged from some row on is read until there.
            let _ = each_counter(file, ROWS_MAX, |row| {
                let key = (row.source.clone(), row.metric.clone());
                trial.means.entry(key).or_default().add(&row);
            });
        }
        let cpus_of = |value: &Value| value.as_str()?.parse::<CpuSet>().ok();
        let numa = |numa: &Value| {
            Some((u32::try_from(numa["id"].as_u64()?).ok()?, cpus_of(&numa["cpus"])?))
        };
        let numas = manifest.host["numa"].as_array().into_iter().flatten().filter_map(numa);
        let numas: Vec<(u32, CpuSet)> = numas.collect();
        for place in manifest.target["places"].as_array().into_iter().flatten() {
            let Some(cpus) = cpus_of(&place["cpus"]) else { continue };
            trial.bound = trial.bound.union(&cpus);
            for (of_cpu, numa_cpus) in &numas {
                let part = cpus.intersection(numa_cpus).len() as f64 / cpus.len().max(1) as f64;
                for (of_page, bytes) in place["anonymous_bytes"].as_object().into_iter().flatten() {
                    let (Ok(of_page), Some(bytes)) = (of_page.parse(), bytes.as_f64()) else {
                        continue;
                    };
                    if part > 0.0 {
                        *trial.pages.entry((*of_cpu, of_page)).or_default() += bytes * part;
                    }
                }
            }
        }
        Some(trial)
    }

    fn mean(&self, source: &str, metric: &str) -> Option<f64> {
        self.means.get(&(source.to_owned(), metric.to_owned()))?.value()
    }

    /// In the order of their numbers; of one instance that of the target.
    fn instances(&self) -> Vec<f64> {
        let each = (1..).map_while(|number| self.mean(&format!("instance-{number}"), "cpu"));
        let each: Vec<f64> = each.collect();
        match each.is_empty() {
            true => self.mean("procfs", "target_cpu").into_iter().collect(),
            false => each,
        }
    }

    fn host_share(&self) -> Option<f64> {
        let parts = ["cpu_user", "cpu_system", "cpu_interrupts"];
        parts.iter().map(|metric| self.mean("procfs", metric)).sum()
    }

    fn client_cpus(&self) -> f64 {
        let is_worker = |source: &str| source.starts_with("client-");
        let busy = self.means.iter().filter(|((s, metric), _)| is_worker(s) && metric == "busy");
        busy.filter_map(|(_, mean)| mean.value()).sum()
    }
}

/// None of no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        (sum, count) = (sum + value, count + 1);
    }
    (count > 0).then(|| sum / f64::from(count))
}

fn cpu_use(trials: &[OfTrial]) -> Option<CpuUse> {
    let measured: Vec<&OfTrial> = trials.iter().filter(|trial| !trial.means.is_empty()).collect();
    let instances: Vec<Vec<f64>> = measured.iter().map(|trial| trial.instances()).collect();
    let most = instances.iter().map(Vec::len).max()?;
    let each = |index: usize| mean(instances.iter().filter_map(|of| of.get(index).copied()));
    Some(CpuUse {
        host_share: mean(measured.iter().filter_map(|trial| trial.host_share())),
        client_cpus: mean(measured.iter().map(|trial| trial.client_cpus()))?,
        target_cpus: mean(measured.iter().filter_map(|t| t.mean("procfs", "target_cpu"))),
        target_cpus_bound: measured.iter().map(|trial| trial.bound.len()).max()?,
        instances_cpus: (0..most).filter_map(each).collect(),
    })
}

fn page_placement(trials: &[OfTrial]) -> Option<PagePlacement> {
    let looked: Vec<&Pages> = trials.iter().map(|t| &t.pages).filter(|p| !p.is_empty()).collect();
    let mut all = Pages::new();
    for pages in &looked {
        for (at, bytes) in *pages {
            *all.entry(*at).or_default() += bytes / looked.len() as f64;
        }
    }
    let mut cpu_numas: Vec<u32> = all.keys().map(|(of_cpu, _)| *of_cpu).collect();
    cpu_numas.dedup();
    let mut page_numas: Vec<u32> = all.keys().map(|(_, of_page)| *of_page).collect();
    page_numas.sort_unstable();
    page_numas.dedup();
    let total: f64 = all.values().sum();
    let local: f64 = all.iter().filter(|((c, p), _)| c == p).map(|(_, bytes)| bytes).sum();
    let cell = |at: (u32, u32)| all.get(&at).map_or(0, |bytes| *bytes as u64);
    let row = |of_cpu: &u32| page_numas.iter().map(|of_page| cell((*of_cpu, *of_page))).collect();
    (total > 0.0).then(|| PagePlacement {
        bytes: cpu_numas.iter().map(row).collect(),
        cpu_numas: cpu_numas.clone(),
        page_numas: page_numas.clone(),
        local_share: local / total,
    })
}

impl CpuUse {
    /// For people.
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        if let Some(share) = self.host_share {
            text += &format!("host {:.0} % busy, ", share * 100.0);
        }
        if let Some(target) = self.target_cpus {
            let all = if self.target_cpus_bound == 1 { "cpu" } else { "cpus" };
            text += &format!("target {target:.2} of {} {all}", self.target_cpus_bound);
            let least = self.instances_cpus.iter().copied().fold(f64::INFINITY, f64::min);
            let most = self.instances_cpus.iter().copied().fold(0.0, f64::max);
            if self.instances_cpus.len() > 1 {
                text += &format!(" (each {least:.2} to {most:.2})");
            }
            text += ", ";
        }
        text + &format!("client {:.2} cpus", self.client_cpus)
    }
}

impl PagePlacement {
    /// One NUMA node for cpus and pages: there was no choice.
    pub(super) fn is_one(&self) -> bool {
        self.cpu_numas.len() == 1 && self.page_numas == self.cpu_numas
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        format!("{:.1} % on the NUMA node of their cpus", self.local_share * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use units::Nanos;

    /// A trial on two NUMA nodes of two cpus each.
    fn trial(dir: &Path, places: Value, counters: &str) -> PathBuf {
        fs::create_dir_all(dir).unwrap();
        let mut manifest = Manifest::starting("a", Vec::new(), Nanos::ZERO);
        manifest.host = json!({ "numa": [{ "id": 0, "cpus": "0-1" }, { "id": 2, "cpus": "2-3" }] });
        manifest.target = json!({ "places": places });
        fs::write(dir.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        let header = "t_s,host,source,metric,value,unit\n";
        fs::write(dir.join(COUNTERS_CSV), format!("{header}{counters}")).unwrap();
        dir.to_owned()
    }

    #[test]
    fn cpu_time_is_weighed_by_its_intervals_and_averaged_over_trials() {
        let home = tempfile::tempdir().unwrap();
        let places = json!([{ "cpus": "0-1" }, { "cpus": "2" }]);
        let counters = |instance: f64| {
            format!(
                "-1.0,local,client-0,busy,1,share\n1.0,local,client-0,busy,0.5,share\n\
                 1.0,local,client-1,busy,0.25,share\n\
                 1.0,local,procfs,cpu_user,0.5,share\n1.0,local,procfs,cpu_system,0.2,share\n\
                 1.0,local,procfs,cpu_interrupts,0,share\n\
                 1.0,local,procfs,target_cpu,1.0,cpus\n1.5,local,procfs,target_cpu,4.0,cpus\n\
                 1.5,local,instance-1,cpu,{instance},cpus\n1.5,local,instance-2,cpu,0.5,cpus\n"
            )
        };
        let dirs = [
            trial(&home.path().join("1"), places.clone(), &counters(1.0)),
            trial(&home.path().join("2"), places, &counters(2.0)),
        ];
        let cpu = used(&dirs).0.unwrap();
        assert_eq!((cpu.client_cpus, cpu.target_cpus), (0.75, Some(2.0)));
        assert!((cpu.host_share.unwrap() - 0.7).abs() < 1e-9);
        assert_eq!((cpu.target_cpus_bound, cpu.instances_cpus.clone()), (3, vec![1.5, 0.5]));
        let words = "host 70 % busy, target 2.00 of 3 cpus (each 0.50 to 1.50), client 0.75 cpus";
        assert_eq!(cpu.in_words(), words);
    }

    #[test]
    fn pages_are_counted_by_the_numa_of_the_cpu_and_their_own() {
        let home = tempfile::tempdir().unwrap();
        // One instance at home, one on both nodes with all of its pages on one.
        let places = json!([
            { "cpus": "2-3", "anonymous_bytes": { "2": 600 } },
            { "cpus": "0-3", "anonymous_bytes": { "0": 200 } },
        ]);
        let dir = trial(home.path(), places, "");
        let (cpu, pages) = used(std::slice::from_ref(&dir));
        let pages = pages.unwrap();
        assert_eq!((&pages.cpu_numas, &pages.page_numas), (&vec![0, 2], &vec![0, 2]));
        assert_eq!(pages.bytes, [[100, 0], [100, 600]]);
        assert_eq!(pages.local_share, 700.0 / 800.0);
        assert_eq!(cpu, None);
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(used(&[home.path().join("none")]), (None, None));
        assert_eq!(used(&[]), (None, None));
        // A kernel without NUMA, a target of somebody else's.
        let dir = trial(home.path(), Value::Null, "1.0,local,client-0,busy,0.5,share\n");
        let (cpu, pages) = used(&[dir]);
        let cpu = cpu.unwrap();
        assert_eq!((cpu.client_cpus, cpu.target_cpus, cpu.host_share), (0.5, None, None));
        assert_eq!((cpu.in_words(), pages), ("client 0.50 cpus".to_owned(), None));
    }
}
