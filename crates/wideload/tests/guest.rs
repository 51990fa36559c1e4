//! On a machine with eight NUMA nodes, which is emulated: it is found as it is, instances are where
//! they were put by the kernel's own account, and one that is not is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod emulator;
mod rig;

use emulator::{CPUS_PER_NUMA, MIB_PER_NUMA, NUMAS, NUMAS_PER_PACKAGE, booted, distance};
use rig::eventually;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Of the anonymous pages of an instance.
const SHARE_MIN: f64 = 0.95;

fn text(left: &Path, file: &str) -> String {
    fs::read_to_string(left.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn value(left: &Path, file: &str) -> Value {
    serde_json::from_str(&text(left, file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn status(left: &Path, phase: &str) -> String {
    let said = text(left, &format!("{phase}/run.err"));
    format!("{} {said}", text(left, &format!("{phase}/run.status")).trim())
}

/// The first cpu of a NUMA node, where its instance was put.
fn cpu(numa: usize) -> usize {
    numa * CPUS_PER_NUMA
}

/// Pages by NUMA node of the mappings that no file stands behind, counted without the product: all
/// of them are 4 KiB, which is looked at.
fn pages(left: &Path, phase: &str, numa: usize) -> BTreeMap<usize, u64> {
    let mut pages = BTreeMap::new();
    let maps = text(left, &format!("{phase}/{}.numa_maps", cpu(numa)));
    for line in maps.lines().filter(|l| l.contains(" anon=") && !l.contains(" file=")) {
        assert!(line.ends_with("kernelpagesize_kB=4"), "{line}");
        for word in line.split(' ') {
            let Some((number, count)) = word.strip_prefix('N').and_then(|w| w.split_once('='))
            else {
                continue;
            };
            *pages.entry(number.parse().unwrap()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    pages
}

fn share_on(pages: &BTreeMap<usize, u64>, numa: usize) -> f64 {
    *pages.get(&numa).unwrap_or(&0) as f64 / pages.values().sum::<u64>() as f64
}

/// By the program's own account.
fn share_in_place(found: &Value, numa: usize) -> f64 {
    let bytes = found["anonymous_bytes"].as_object().unwrap_or_else(|| panic!("{found}"));
    let of = |bytes: &Value| bytes.as_f64().unwrap();
    let all: f64 = bytes.values().map(of).sum();
    assert!(all > 1e6, "{found}");
    bytes.get(&numa.to_string()).map_or(0.0, of) / all
}

/// The cpus of every thread of an instance, as the kernel lists them.
fn cpus_of_threads(left: &Path, phase: &str, numa: usize) -> Vec<String> {
    let status = text(left, &format!("{phase}/{}.status", cpu(numa)));
    let cpus = status.lines().filter_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    cpus.map(|cpus| cpus.trim().to_owned()).collect()
}

fn misplaced(summary: &Value) -> Option<&Value> {
    let caveats = summary["caveats"].as_array().unwrap();
    caveats.iter().find(|caveat| caveat["code"] == "misplaced")
}

#[test]
fn the_guest_is_found_as_it_is() {
    let Some(left) = booted() else { return };
    let topo = value(left, "topo/topo.json");
    let machine = &topo["machine"];
    assert_eq!(machine["online"], format!("0-{}", NUMAS * CPUS_PER_NUMA - 1));
    assert_eq!(machine["allowed"], machine["online"]);
    let cpus = machine["cpus"].as_array().unwrap();
    assert_eq!(cpus.len(), NUMAS * CPUS_PER_NUMA);
    for (id, found) in cpus.iter().enumerate() {
        let numa = id / CPUS_PER_NUMA;
        let package = numa / NUMAS_PER_PACKAGE;
        assert_eq!(found["id"], id);
        assert_eq!((&found["package"], &found["numa"]), (&json!(package), &json!(numa)), "{found}");
        assert_eq!(found["siblings"], id.to_string());
        // The emulated cpu does not tell its dies; each has its cache of the last level.
        let same = |other: &Value| other["llc"] == found["llc"];
        assert_eq!(cpus.iter().filter(|other| same(other)).count(), CPUS_PER_NUMA, "{found}");
    }
    let numas = machine["numa"].as_array().unwrap();
    assert_eq!(numas.len(), NUMAS);
    for (id, found) in numas.iter().enumerate() {
        let cpus = format!("{}-{}", cpu(id), cpu(id) + CPUS_PER_NUMA - 1);
        assert_eq!((&found["id"], &found["cpus"]), (&json!(id), &json!(cpus)));
        let distances: Vec<_> = (0..NUMAS).map(|to| distance(id, to).to_string()).collect();
        assert_eq!(found["distances"], distances.join(" "));
        // The kernel itself takes some, most of it on the first.
        let mib = found["memory_bytes"].as_u64().unwrap() as f64 / f64::from(1 << 20);
        let least = if id == 0 { 0.8 } else { 0.95 } * MIB_PER_NUMA as f64;
        assert!(mib >= least && mib <= MIB_PER_NUMA as f64, "{id}: {mib} MiB");
    }
}

#[test]
fn instances_of_the_guest_are_held_where_they_were_put() {
    let Some(left) = booted() else { return };
    // Of the run that is told to end later.
    let manifest = value(left, "moved/manifest.json");
    let target = &manifest["target"];
    for numa in 0..NUMAS {
        let place = &target["places"][numa];
        assert_eq!(place["cpus"], cpu(numa).to_string());
        assert_eq!(place["memory"], format!("bind:{numa}"));
        assert!(share_in_place(place, numa) >= SHARE_MIN, "{numa}: {place}");
        // By the kernel's own account, beside that of the program.
        let pages = pages(left, "held", numa);
        assert!(pages.values().sum::<u64>() > 250, "{numa}: {pages:?}");
        assert!(share_on(&pages, numa) >= SHARE_MIN, "{numa}: {pages:?}");
        let maps = text(left, &format!("held/{}.numa_maps", cpu(numa)));
        let policy = format!("bind:{numa}");
        assert!(maps.lines().all(|line| line.split(' ').nth(1) == Some(&policy)), "{maps}");
        let threads = cpus_of_threads(left, "held", numa);
        assert!(!threads.is_empty());
        assert!(threads.iter().all(|cpus| *cpus == cpu(numa).to_string()), "{numa}: {threads:?}");
    }
    assert_eq!(target["places"].as_array().unwrap().len(), NUMAS);
}

/// In the middle of a run the memory of instance 1 was moved, all threads of instance 4 were given
/// a cpu more, and one thread of instance 6 another cpu.
#[test]
fn instances_of_the_guest_that_were_moved_meanwhile_are_told() {
    let Some(left) = booted() else { return };
    // So it was indeed.
    assert!(share_on(&pages(left, "moved", 0), 5) > 0.5);
    assert_eq!(cpus_of_threads(left, "moved", 0)[0], "0");
    assert!(cpus_of_threads(left, "moved", 3).iter().all(|cpus| cpus == "6-7"));
    let escaped = cpus_of_threads(left, "moved", 5);
    assert_eq!(escaped.iter().filter(|cpus| *cpus == "2").count(), 1, "{escaped:?}");
    let said = status(left, "moved");
    assert!(said.starts_with("130"), "it was ended as by Ctrl-C: {said}");
    let summary = value(left, "moved/run.json");
    assert!(summary["ops"].as_u64() > Some(0) && summary["errors"] == 0, "{summary}");
    let caveat = misplaced(&summary).unwrap_or_else(|| panic!("{summary}"));
    assert!(caveat["text"].as_str().unwrap().contains("3 of 8 instances"), "{caveat}");
    let manifest = value(left, "moved/manifest.json");
    let at_end = manifest["target"]["places_at_end"].as_array().unwrap();
    assert_eq!(at_end.len(), NUMAS);
    let evidence = caveat["evidence"].as_str().unwrap();
    for (numa, found) in at_end.iter().enumerate() {
        let said = match numa {
            0 => &["instance 1 (0@0): ", "0.0 % of the anonymous pages", "lie on 5: "][..],
            3 => &["instance 4 (6@3): ", "may run on cpus 6-7, not on 6"],
            5 => &["instance 6 (10@5): ", "may run on cpus 2, not on 10"],
            _ => {
                assert!(share_in_place(found, numa) >= SHARE_MIN, "{numa}: {found}");
                continue;
            }
        };
        assert!(said.iter().all(|part| evidence.contains(part)), "{said:?}: {evidence}");
        let why = found["misplaced"].as_str().unwrap();
        assert!(evidence.contains(why), "{why}: {evidence}");
    }
}

#[test]
fn an_instance_of_the_guest_whose_memory_is_bound_elsewhere_is_not_measured() {
    let Some(left) = booted() else { return };
    let said = status(left, "refused");
    assert!(said.starts_with('3') && said.contains("bind:5, not bind:3"), "{said}");
    assert_eq!(text(left, "refused/run.json"), "");
    let manifest = value(left, "refused/manifest.json");
    assert_eq!(manifest["verdict"], "failed");
    assert!(manifest["failure"].as_str().unwrap().contains("bind:5, not bind:3"), "{manifest}");
    assert_eq!(text(left, "refused/left"), "", "left running");
}

#[test]
fn layouts_are_compared_in_the_guest() {
    let Some(left) = booted() else { return };
    assert!(status(left, "scale").starts_with('0'), "{}", status(left, "scale"));
    let outcome = value(left, "scale/outcome.json");
    assert_eq!((&outcome["planned"], &outcome["done"]), (&json!(3), &json!(3)));
    let arms = outcome["cells"][0]["arms"].as_array().unwrap();
    let names: Vec<_> = arms.iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["single", "per-package", "per-numa"]);
    let mut numbers = Vec::new();
    for trial in 1..=3 {
        let manifest = value(left, &format!("scale/manifest-{trial}.json"));
        let target = &manifest["target"];
        let places = target["places"].as_array().unwrap();
        let memory: Vec<_> = places.iter().map(|place| place["memory"].as_str().unwrap()).collect();
        let expected: Vec<String> = match places.len() {
            1 => vec!["bind:0-7".into()],
            2 => vec!["bind:0-3".into(), "bind:4-7".into()],
            _ => (0..NUMAS).map(|numa| format!("bind:{numa}")).collect(),
        };
        assert_eq!(memory, expected);
        // They ended by themselves, and were where they were put.
        let at_end = target["places_at_end"].as_array().unwrap();
        assert!(at_end.iter().all(|found| found["anonymous_bytes"].is_object()), "{at_end:?}");
        assert_eq!(at_end.len(), places.len());
        numbers.push(places.len());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, NUMAS]);
}
