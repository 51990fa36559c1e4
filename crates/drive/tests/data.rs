//! What is written is what the plan says, once, by any number of workers, and can be verified when
//! it is read.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Unwitnessed};
use record::Outcome;
use rig::{closed, control, drive, load, ok, ops, plan, prepare, run, serve};
use std::collections::BTreeSet;
use target::Storage;

fn keys_in_table(address: std::net::SocketAddr) -> Vec<String> {
    let rows = control(address).query("SELECT y_id FROM ycsb.usertable").unwrap();
    rows.into_iter().map(|mut row| String::from_utf8(row.remove(0).unwrap()).unwrap()).collect()
}

fn counter(address: std::net::SocketAddr, name: &str) -> i64 {
    let query = format!("SELECT value FROM system_wideload.counters WHERE name = '{name}'");
    let rows = control(address).query(&query).unwrap();
    i64::from_be_bytes(rows[0][0].as_deref().unwrap().try_into().unwrap())
}

#[test]
fn a_load_covers_its_keys_exactly_once_at_1_2_and_7_workers() {
    for workers in [1, 2, 7] {
        let target = serve(Storage::Memory);
        let plan = plan("a", &["fieldlength=5"], 5003, None);
        let encoder = prepare(target.local_addr(), &plan);
        let driven = load(target.local_addr(), &encoder, workers);
        assert_eq!(ok(&driven), 5003, "{workers} workers");
        // As many inserts as keys, and as many keys as records: each exactly once.
        assert_eq!(counter(target.local_addr(), "statements.insert"), 5003);
        let mut text = [0u8; 64];
        let expected: BTreeSet<_> = (0..5003)
            .map(|key| {
                let size = plan.write_key(key, &mut text);
                String::from_utf8(text[..size].to_vec()).unwrap()
            })
            .collect();
        let found = keys_in_table(target.local_addr());
        assert_eq!(found.len(), 5003);
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    }
}

#[test]
fn keys_beyond_31_bits_are_loaded_and_read() {
    let target = serve(Storage::Memory);
    let start = format!("insertstart={}", 1u64 << 40);
    let records = (1u64 << 40) + 1000;
    let properties = ["insertcount=1000", &start, "fieldcount=1", "insertorder=ordered"];
    let plan = plan("c", &properties, records, Some(2000));
    let encoder = prepare(target.local_addr(), &plan);
    assert_eq!(ok(&load(target.local_addr(), &encoder, 2)), 1000);
    let (driven, ..) = run(
        &drive(target.local_addr(), &encoder, 2, closed(8, Amount::Ops(2000))),
        vec![Unwitnessed; 2],
    );
    assert_eq!(ok(&driven), 2000);
    let keys = keys_in_table(target.local_addr());
    assert!(keys.contains(&format!("user{}", (1u64 << 40) + 999)), "{:?}", &keys[..3]);
}

#[test]
fn all_six_workloads_read_what_was_written() {
    for workload in ["a", "b", "c", "d", "e", "f"] {
        let target = serve(Storage::Memory);
        let properties = ["dataintegrity=true", "fieldcount=3", "fieldlength=20"];
        let plan = plan(workload, &properties, 500, Some(4000));
        let encoder = prepare(target.local_addr(), &plan);
        assert_eq!(ok(&load(target.local_addr(), &encoder, 2)), 500);
        let load = closed(16, Amount::Ops(4000));
        let (driven, ..) =
            run(&drive(target.local_addr(), &encoder, 2, load), vec![Unwitnessed; 2]);
        assert_eq!((ops(&driven), ok(&driven)), (4000, 4000), "workload {workload}");
    }
}

#[test]
fn a_value_that_was_changed_behind_our_back_is_invalid() {
    let target = serve(Storage::Memory);
    let plan = plan("c", &["dataintegrity=true", "fieldcount=2", "fieldlength=20"], 10, Some(1000));
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    let key = keys_in_table(target.local_addr()).remove(0);
    let spoil = format!("UPDATE ycsb.usertable SET field1 = 'spoilt' WHERE y_id = '{key}'");
    control(target.local_addr()).query(&spoil).unwrap();
    let load = closed(4, Amount::Ops(1000));
    let (driven, ..) = run(&drive(target.local_addr(), &encoder, 1, load), vec![Unwitnessed]);
    let invalid = driven.total.ops[0].count(Outcome::Invalid);
    assert!(invalid > 0 && invalid + ok(&driven) == 1000, "{invalid} invalid");
}

#[test]
fn a_row_that_is_missing_is_not_found() {
    let target = serve(Storage::Memory);
    let plan = plan("c", &["requestdistribution=uniform"], 100, Some(1000));
    let encoder = prepare(target.local_addr(), &plan);
    let load = closed(4, Amount::Ops(1000));
    let (driven, ..) = run(&drive(target.local_addr(), &encoder, 1, load), vec![Unwitnessed]);
    assert_eq!(driven.total.ops[0].count(Outcome::NotFound), 1000);
}

#[test]
fn a_read_modify_write_is_one_operation_with_two_parts() {
    let target = serve(Storage::Memory);
    let properties = ["readproportion=0", "readmodifywriteproportion=1"];
    let plan = plan("f", &properties, 100, Some(1000));
    let encoder = prepare(target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    let updates_before = counter(target.local_addr(), "statements.update");
    let load = closed(4, Amount::Ops(1000));
    let (driven, ..) = run(&drive(target.local_addr(), &encoder, 1, load), vec![Unwitnessed]);
    let op = &driven.total.ops[0];
    assert_eq!(op.count(Outcome::Ok), 1000);
    assert_eq!(op.parts.iter().map(record::Latency::count).collect::<Vec<_>>(), [1000, 1000]);
    let parts: f64 = op.parts.iter().map(record::Latency::mean).sum();
    // Between the parts lies a turn of the loop.
    assert!(op.service.mean() >= parts, "{} < {parts}", op.service.mean());
    assert_eq!(counter(target.local_addr(), "statements.update") - updates_before, 1000);
}
