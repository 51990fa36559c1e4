//! Settings -> statements, keys, values and draws.

use crate::cassandra_stress::{Asked, Compat, Settings, parse};
use crate::{Phase, Plan, Sampler};
use std::collections::BTreeMap;
use std::sync::Arc;

fn settings(text: &str, compat: Compat) -> Settings {
    let arguments: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    match parse(&arguments, compat, &|_: &str| Err(String::new())) {
        Ok(Asked::Run(settings)) => *settings,
        other => panic!("{text}: {other:?}"),
    }
}

fn plan(text: &str) -> Arc<Plan> {
    Arc::new(settings(text, Compat::Apache3).plan(8))
}

/// The first `count` keys of each worker.
fn keys(plan: &Arc<Plan>, workers: usize, count: usize) -> Vec<Vec<u64>> {
    let of = |worker| {
        let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, worker, workers);
        (0..count).map_while(|_| sampler.draw().map(|draw| draw.key)).collect()
    };
    (0..workers).map(of).collect()
}

#[test]
fn the_schema_is_the_originals() {
    let write = settings(
        "write n=1 -col n=fixed(2) -schema compression=LZ4Compressor \
        compaction(strategy=LeveledCompactionStrategy,sstable_size_in_mb=10)",
        Compat::Apache3,
    );
    assert_eq!(
        write.schema_statements(),
        [
            "CREATE KEYSPACE IF NOT EXISTS \"keyspace1\" WITH replication = {'class': \
             'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': '1'} AND \
             durable_writes = true",
            "CREATE TABLE IF NOT EXISTS \"keyspace1\".standard1 (key blob PRIMARY KEY, \"C0\" \
             blob, \"C1\" blob) WITH compression = {'class': 'LZ4Compressor'} AND compaction = \
             {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '10'}",
            "CREATE TABLE IF NOT EXISTS \"keyspace1\".counter1 (key blob PRIMARY KEY, \"C0\" \
             counter, \"C1\" counter) WITH compression = {'class': 'LZ4Compressor'} AND compaction \
             = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '10'}",
        ]
    );
    assert!(settings("read n=1", Compat::Apache3).schema_statements().is_empty());
    assert!(settings("mixed n=1", Compat::Apache3).schema_statements().is_empty());
    assert_eq!(settings("write n=1", Compat::Scylla).schema_statements().len(), 2);
    let odd = settings("write n=1 -schema replication(factor=1,a'b=c'd)", Compat::Apache3);
    assert!(odd.schema_statements()[0].contains("'a''b': 'c''d'"));
}

#[test]
fn a_sequence_is_covered_once_by_any_number_of_workers() {
    for workers in [1, 2, 3, 7] {
        let mut all: Vec<u64> =
            keys(&plan("write n=100 -pop seq=11..110 no-wrap"), workers, 1000).concat();
        all.sort_unstable();
        assert_eq!(all, (11..=110).collect::<Vec<u64>>(), "{workers} workers");
        // The first n of a longer range, shared evenly, are its first n seeds.
        let mut part: Vec<u64> =
            keys(&plan("write n=42 -pop seq=1..1M"), workers, 42 / workers).concat();
        part.sort_unstable();
        assert_eq!(part, (1..=(42 / workers * workers) as u64).collect::<Vec<_>>());
        // And it begins again.
        let twice = keys(&plan("write n=10 -pop seq=1..5"), workers, 10).concat();
        assert_eq!(twice.len(), 10 * workers);
        assert!(twice.iter().all(|key| (1..=5).contains(key)));
    }
}

#[test]
fn keys_and_columns_are_those_of_the_original() {
    let plan = plan("write n=5 -pop seq=1..5 -col size=FIXED(5)");
    let mut key = vec![0; plan.key_room()];
    let mut value = vec![0; plan.value_room()];
    for (seed, text, c0) in [
        (1, "0P37709P21", [-123i8, 24, 47, -33, -25]),
        (2, "O8LK79LO61", [-72, -32, 83, 32, -51]),
        (5, "77596MO230", [-36, -98, 27, -16, 94]),
    ] {
        let size = plan.write_key(seed, &mut key);
        assert_eq!(&key[..size], text.as_bytes());
        let draw = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1).draw().unwrap();
        let size = plan.write_value(&draw, text.as_bytes(), 0, &mut value);
        let wanted: Vec<u8> = c0.iter().map(|byte| byte.cast_unsigned()).collect();
        assert_eq!(value[..size], wanted);
        assert!(plan.verifies() && plan.verify(text.as_bytes(), 0, &wanted));
        assert!(!plan.verify(text.as_bytes(), 1, &wanted));
        assert!(!plan.verify(text.as_bytes(), 0, &wanted[..4]));
    }
}

#[test]
fn a_mix_comes_in_runs_on_each_thread() {
    let text = "mixed ratio(read=3,write=1) clustering=FIXED(4) n=1";
    let plan = Arc::new(settings(text, Compat::Apache3).plan(6));
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 7, 0, 2);
    // Three threads of this worker take turns.
    let drawn: Vec<u16> = (0..24_000).map(|_| sampler.draw().unwrap().operation).collect();
    for thread in 0..3 {
        let own: Vec<u16> = drawn.iter().skip(thread).step_by(3).copied().collect();
        assert!(own.chunks(4).all(|run| run.iter().all(|op| *op == run[0])), "thread {thread}");
    }
    let reads = drawn.iter().filter(|op| **op == 0).count() as f64 / drawn.len() as f64;
    assert!((0.70..0.80).contains(&reads), "{reads}");
}

#[test]
fn lengths_of_runs_and_keys_follow_their_distributions() {
    let plan = plan("mixed n=1 clustering=GAUSSIAN(1..10) -pop dist=gaussian(1..1000,500,10)");
    let all = keys(&plan, 1, 20_000).concat();
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    assert!((498.0..502.0).contains(&mean), "{mean}");
    let two = keys(&plan, 2, 5);
    assert_ne!(two[0], two[1], "workers have streams of their own");
    assert_eq!(two, keys(&plan, 2, 5), "which repeat");
}

#[test]
fn reads_look_back_from_the_newest_acknowledged() {
    let plan = plan("mixed n=1 -pop seq=101..1100 no-wrap read-lookback=FIXED(3)");
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1);
    sampler.set_acknowledged(150);
    let mut seen: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    while let Some(draw) = sampler.draw() {
        seen.entry(draw.operation).or_default().push(draw.key);
    }
    assert!(seen[&0].iter().all(|key| *key == 148), "{:?}", &seen[&0][..5]);
    assert_eq!(seen[&1], (101..=1100).collect::<Vec<u64>>());
    assert!(plan.inserts(&plan.run[1]) && !plan.inserts(&plan.run[0]));
}
