//! The printed summary keeps to its JSON schema, and the schema refuses what it should.

// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use record::repeats::{Repeat, Repeats, Spread};
use record::summary::{
    ClientCost, JSON_SCHEMA, OpSummary, Outcomes, ShardBalance, Stats, Summary, Target,
};
use record::{Caveat, Outcome, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn example() -> Summary {
    let stats = Stats { mean: 210.5, p50: 180.0, p90: 400.25, p99: 900.0, p999: 2e3, max: 5e3 };
    let mut outcomes = Outcomes::default();
    outcomes.0[Outcome::Ok.index()] = 299_990;
    outcomes.0[Outcome::ClientTimeout.index()] = 10;
    let read = OpSummary {
        ops: 150_000,
        errors: 10,
        service: Some(stats),
        response: None,
        lag: Some(stats),
        parts: BTreeMap::new(),
    };
    let parts = BTreeMap::from([("read".into(), Some(stats)), ("update".into(), None)]);
    let modify = OpSummary { response: Some(stats), errors: 0, parts, ..read.clone() };
    Summary {
        schema: record::summary::SCHEMA,
        workload: "ycsb:f".into(),
        target: Target {
            kind: "cassandra".into(),
            version: Some("5.0.5".into()),
            protocol: Some(4),
        },
        ops: outcomes.total(),
        ops_s: 71_234.5,
        duration_s: 4.21,
        errors: outcomes.errors(),
        outcomes,
        scheduled_rate_s: None,
        latency_us: BTreeMap::from([("read".into(), read), ("read_modify_write".into(), modify)]),
        client: ClientCost { cpu_us_per_op: Some(2.9), busy_max: Some(0.41), ..Default::default() },
        caveats: vec![
            Caveat::new("client-busy", "A client thread was busy.")
                .evidence("worker 0: 91 % of the window")
                .cure("Give it more cpus with --client-cpus."),
            Caveat::new("few-samples", "Few samples lie above these percentiles."),
        ],
        shards: None,
        repeats: None,
        run: "runs/20261120T110636Z-ycsb-f".into(),
    }
}

fn repeated() -> Summary {
    let repeat = |trial: u32, ops_s: f64| Repeat {
        trial,
        seed: u64::from(trial),
        verdict: Verdict::Ok,
        ops_s,
        service_us_p99: Some(900.0),
        response_us_p99: None,
        caveats: vec!["client-busy".into()],
    };
    let spread = Spread {
        median: 2.0,
        min: 1.0,
        max: 3.0,
        interval: (1.0, 3.0),
        interval_kind: "min-max".into(),
    };
    let repeats = Repeats {
        asked: 4,
        median_trial: 2,
        ops_s: spread.clone(),
        service_us_p99: Some(spread),
        response_us_p99: None,
        trials: vec![repeat(1, 1.0), repeat(2, 2.0), repeat(3, 3.0)],
    };
    let shards =
        ShardBalance { count: 4, requests: 10, least: 2, most: 3, astray: 0, tablets_told: 1 };
    Summary { repeats: Some(repeats), shards: Some(shards), ..example() }
}

fn is_valid(value: &Value) -> bool {
    let schema: Value = serde_json::from_str(JSON_SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap().is_valid(value)
}

#[test]
fn a_summary_keeps_to_the_schema_and_comes_back() {
    let summary = example();
    let value = serde_json::to_value(&summary).unwrap();
    assert!(is_valid(&value), "{value:#}");
    assert_eq!(serde_json::from_value::<Summary>(value).unwrap(), summary);
}

#[test]
fn a_repeated_summary_keeps_to_the_schema_and_comes_back() {
    let summary = repeated();
    let value = serde_json::to_value(&summary).unwrap();
    assert!(is_valid(&value), "{value:#}");
    assert_eq!(serde_json::from_value::<Summary>(value.clone()).unwrap(), summary);
    for (pointer, broken) in [
        ("/shards/count", json!(0)),
        ("/repeats/median_trial", json!(0)),
        ("/repeats/trials", json!([])),
        ("/repeats/trials/0/verdict", json!("fine")),
        ("/repeats/ops_s/interval", json!([1.0])),
        ("/repeats/ops_s/interval_kind", json!("guess")),
    ] {
        let mut value = value.clone();
        *value.pointer_mut(pointer).unwrap() = broken.clone();
        assert!(!is_valid(&value), "{pointer} = {broken}");
    }
}

#[test]
fn keys_are_the_documented_ones_in_their_order() {
    let value = serde_json::to_value(example()).unwrap();
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = "schema workload target ops ops_s duration_s errors outcomes scheduled_rate_s \
                    latency_us client caveats run";
    assert_eq!(keys.join(" "), expected);
    assert_eq!(value["outcomes"].as_object().unwrap().len(), Outcome::COUNT);
    assert_eq!(value["latency_us"]["read"]["response"], Value::Null);
    assert_eq!(value["latency_us"]["read"].get("parts"), None);
}

#[test]
fn the_schema_refuses_what_is_broken() {
    let good = serde_json::to_value(example()).unwrap();
    for (pointer, broken) in [
        ("/schema", json!(2)),
        ("/ops", json!(-1)),
        ("/ops", json!(1.5)),
        ("/ops_s", json!(null)),
        ("/target/kind", json!(null)),
        ("/outcomes/ok", json!("many")),
        ("/latency_us/read/service/p99", json!("fast")),
        ("/latency_us/read/service", json!({"p50": 1.0})),
        ("/client/busy_max", json!(1.2)),
        ("/caveats/0/code", json!("Client Busy")),
        ("/caveats/0", json!({"code": "x", "text": "y", "more": 1})),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(pointer).unwrap() = broken.clone();
        assert!(!is_valid(&value), "{pointer} = {broken}");
    }
    for key in good.as_object().unwrap().keys() {
        let mut value = good.clone();
        value.as_object_mut().unwrap().shift_remove(key);
        assert!(!is_valid(&value), "without {key}");
    }
    let mut value = good.clone();
    value["outcomes"].as_object_mut().unwrap().shift_remove("not_sent");
    assert!(!is_valid(&value));
}
