//! The page of an experiment: the answer comes first, tables and plots have the rest.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

#[path = "../examples/sample.rs"]
mod sample;

use record::run_dir::OUTCOME_JSON;
use sample::Shape;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn figure(value: f64, low: f64, high: f64) -> Value {
    json!({ "value": value, "interval": [low, high], "interval_kind": "95 %", "pairs": 6 })
}

/// Two arms at one budget, and one that grows over three.
fn outcome() -> Value {
    let step = |budget: u32, ops_s: f64| {
        let speedup = ops_s / 1000.0;
        let share = speedup / f64::from(budget);
        json!({
            "budget": budget,
            "level": figure(ops_s, ops_s * 0.9, ops_s * 1.1),
            "speedup": figure(speedup, speedup * 0.9, speedup * 1.1),
            "efficiency": figure(share, share * 0.9, share * 1.1),
        })
    };
    let fit = json!({
        "law": { "lambda": 1000.0, "sigma": 0.1, "kappa": 0.0 },
        "sigma_interval": [0.05, 0.15],
        "kappa_interval": [0.0, 0.001],
    });
    json!({
        "schema": 1, "name": "layouts", "planned": 12, "done": 11, "missing": 1,
        "compare": "layout", "budget": "dies", "run": "runs/x",
        "cells": [{
            "factors": [["dies", "2"]],
            "arms": [
                {
                    "name": "single", "ops_s": [1.0], "ops_s_mean": figure(1500.0, 1400.0, 1600.0),
                    "cpu": {
                        "host_share": 0.82, "client_cpus": 0.4, "target_cpus": 3.1,
                        "target_cpus_bound": 4, "instances_cpus": [1.5, 1.6],
                    },
                    "pages": {
                        "cpu_numas": [0, 1], "page_numas": [0, 1],
                        "bytes": [[3u64 << 30, 1u64 << 30], [0, 4u64 << 30]], "local_share": 0.875,
                    },
                },
                { "name": "<q>x", "ops_s": [null], "ops_s_mean": null },
            ],
            "comparison": null,
            "sentence": "per-numa is best: 1.27 x single",
            "surely": "by chance in 1 of 1000",
        }],
        "scaled": [
            {
                "factors": [["layout", "single"]],
                "steps": [step(1, 1000.0), step(2, 1818.0), step(4, 3077.0)],
                "usl": { "fitted": fit },
            },
            {
                "factors": [["layout", "per-numa"]],
                "steps": [step(1, 1000.0)],
                "usl": { "not-fitted": { "reason": "1 distinct N was measured" } },
            },
        ],
    })
}

fn page(outcome: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("run");
    sample::write(&dir, &Shape::of("reference"));
    fs::write(dir.join(OUTCOME_JSON), outcome).unwrap();
    read(&dir)
}

fn read(dir: &Path) -> String {
    fs::read_to_string(report::build(dir).unwrap()).unwrap().replace("&#x2f;", "/")
}

#[test]
fn the_verdict_stands_above_everything_but_what_the_target_is() {
    let html = page(&outcome().to_string());
    let header = html.split_once("<body>").unwrap().1.split_once("</header>").unwrap().0;
    assert!(header.contains("says nothing about Cassandra"));
    assert!(header.contains("dies 2: per-numa is best: 1.27 x single."), "{header}");
    assert!(header.contains("11 of 12 trials ended ok."), "{header}");
    // Names of levels are anybody's.
    assert!(html.contains("&lt;q&gt;x") && !html.contains("<q>"));
    assert!(html.len() < 1_500_000);
}

#[test]
fn tables_and_plots_have_the_budget_the_intervals_and_the_law() {
    let html = page(&outcome().to_string());
    let section = html.split_once("<section id=\"outcome\">").unwrap().1;
    let section = section.split_once("</section>").unwrap().0;
    for text in [
        "Throughput, by dies",
        "Efficiency, by dies",
        "<td class=\"n\">4</td>",
        "76.9",
        ">contention</a> 0.100 (0.0500 to 0.150)",
        "the base",
        ">scalability law</a>: 1 distinct N was measured.",
        "nothing measured",
        "81.8 to 100, 95\u{a0}%",
    ] {
        assert!(section.contains(text), "{text}: {section}");
    }
    assert_eq!(section.matches("<svg class=\"chart\"").count(), 3);
    // Mean, ends and law of the one, mean and ends of the other.
    assert!(section.contains("layout single, law") && !section.contains("layout per-numa, law"));
}

#[test]
fn cpu_use_and_page_placement_are_shown_by_arm_with_what_they_mean() {
    let html = page(&outcome().to_string());
    let section = html.split_once("<section id=\"outcome\">").unwrap().1;
    let section = section.split_once("</section>").unwrap().0;
    for text in [
        "Cpus used by the instances, by dies",
        "<span class=\"bar\" style=\"--share: 0.82\"></span>82.0 %",
        "<span class=\"bar\" style=\"--share: 0.775\"></span>3.10 of 4",
        "2 x 1.50 to 1.60",
        "<b>single</b>: 87.5 % ",
        "<th scope=\"row\">NUMA 1</th><td class=\"n\" style=\"--share: 0.0\">0</td>",
        "style=\"--share: 1.0\">4.00</td>",
    ] {
        assert!(section.contains(text), "{text}: {section}");
    }
    // Each term has its line in the glossary.
    let glossary = html.split_once("<section id=\"glossary\">").unwrap().1;
    for meaning in ["by the NUMA node of their cpus and its own", "polling apart"] {
        assert!(glossary.contains(meaning), "{meaning}");
    }
}

#[test]
fn where_there_is_one_numa_a_line_is_enough() {
    let mut outcome = outcome();
    outcome["cells"][0]["arms"][0]["pages"] = json!({
        "cpu_numas": [0], "page_numas": [0], "bytes": [[1u64 << 30]], "local_share": 1.0,
    });
    let html = page(&outcome.to_string());
    assert!(html.contains("one NUMA node has all cpus and all pages"));
    assert!(!html.contains("<table class=\"heat\""));
}

#[test]
fn an_outcome_that_is_damaged_is_told_and_the_rest_is_shown() {
    for damaged in ["{", "[]", "{\"cells\": 3}"] {
        let html = page(damaged);
        assert!(html.contains("outcome.json could not be read"), "{damaged}");
        assert!(html.contains("How to repeat it"));
    }
}
