//! cassandra-stress: partitions and their clustering rows, against folds that the original printed.
//!
//! The figures come from the original's classes on OpenJDK 17: over the seeds 1 to 40, for each
//! visit its number and key, for each row its clustering columns and values, with their lengths.

// Clippy's exception for tests does not reach the functions that they share.
#![allow(clippy::unwrap_used)]

use workload::cassandra_stress::{
    JavaRandom, Order, Partition, PartitionGenerator, Profile, SeedVisits, Selection, fold_bytes,
};

/// Definitions of tables, and their columnspecs.
const TABLES: [(&str, &str); 5] = [
    (
        "site text, ck1 int, ck2 text, v1 bigint, v2 blob, v3 double, PRIMARY KEY (site, ck1, ck2)",
        "[{name: site, population: uniform(1..10M), size: gaussian(5..100)},
          {name: ck1, population: uniform(1..10), cluster: uniform(1..6)},
          {name: ck2, cluster: gaussian(1..5)}, {name: v2, size: uniform(1..40)}]",
    ),
    ("a text, b uuid, c boolean, d decimal, e text, f int, PRIMARY KEY ((a, b))", "[]"),
    (
        "k blob, at timestamp, v int, w text, PRIMARY KEY (k, at)",
        "[{name: at, population: uniform(1..30), cluster: fixed(20)}]",
    ),
    (
        "k bigint, x uuid, y inet, z blob, v smallint, PRIMARY KEY (k, x, y, z)",
        "[{name: x, population: uniform(1..4), cluster: uniform(1..4)},
          {name: y, population: uniform(1..3), cluster: uniform(1..3)},
          {name: z, population: uniform(1..50), size: fixed(1), cluster: uniform(1..10)}]",
    ),
    (
        "k int, x smallint, y double, PRIMARY KEY (k, x, y)",
        "[{name: x, cluster: exp(1..8)},
          {name: y, population: gaussian(-9..9), cluster: ~exp(1..5)}]",
    ),
];

/// Table, order, visits of a partition, share of values, then: visits, rows and fold of all.
const ORIGINALS: [(usize, Order, i64, f64, u32, u32, i64); 40] = [
    (0, Order::Arbitrary, 1, 1.0, 40, 310, -1_943_574_283_490_769_360),
    (0, Order::Arbitrary, 1, 0.5, 40, 310, -6_176_074_298_853_902_559),
    (0, Order::Arbitrary, 4, 1.0, 152, 268, -6_846_003_256_685_723_964),
    (0, Order::Arbitrary, 4, 0.5, 152, 268, -2_464_283_212_796_563_816),
    (0, Order::Sorted, 1, 1.0, 40, 312, -5_564_167_989_240_067_080),
    (0, Order::Sorted, 1, 0.5, 40, 312, -8_100_190_872_060_580_145),
    (0, Order::Sorted, 4, 1.0, 152, 264, 5_936_279_662_691_227_232),
    (0, Order::Sorted, 4, 0.5, 152, 264, 3_277_860_764_432_652_662),
    (1, Order::Arbitrary, 1, 1.0, 40, 40, 4_187_119_608_116_117_399),
    (1, Order::Arbitrary, 1, 0.5, 40, 40, 3_598_169_574_554_733_658),
    (1, Order::Arbitrary, 4, 1.0, 40, 40, 4_187_119_608_116_117_399),
    (1, Order::Arbitrary, 4, 0.5, 40, 40, 3_598_169_574_554_733_658),
    (1, Order::Sorted, 1, 1.0, 40, 40, 4_187_119_608_116_117_399),
    (1, Order::Sorted, 1, 0.5, 40, 40, 3_598_169_574_554_733_658),
    (1, Order::Sorted, 4, 1.0, 40, 40, 4_187_119_608_116_117_399),
    (1, Order::Sorted, 4, 0.5, 40, 40, 3_598_169_574_554_733_658),
    (2, Order::Arbitrary, 1, 1.0, 40, 600, 4_292_899_390_404_192_443),
    (2, Order::Arbitrary, 1, 0.5, 40, 600, 1_180_599_921_759_443_639),
    (2, Order::Arbitrary, 4, 1.0, 134, 600, -2_476_341_993_682_687_092),
    (2, Order::Arbitrary, 4, 0.5, 134, 600, -6_317_412_926_345_672_460),
    (2, Order::Sorted, 1, 1.0, 40, 600, 5_050_899_203_591_883_239),
    (2, Order::Sorted, 1, 0.5, 40, 600, -1_558_718_747_824_967_733),
    (2, Order::Sorted, 4, 1.0, 134, 600, -7_266_207_182_800_039_484),
    (2, Order::Sorted, 4, 0.5, 134, 600, -5_613_342_473_227_075_796),
    (3, Order::Arbitrary, 1, 1.0, 40, 208, -8_557_183_563_980_797_851),
    (3, Order::Arbitrary, 1, 0.5, 40, 208, -2_049_443_039_428_667_149),
    (3, Order::Arbitrary, 4, 1.0, 127, 481, -1_306_491_781_603_696_934),
    (3, Order::Arbitrary, 4, 0.5, 127, 481, -4_486_496_365_823_806_675),
    (3, Order::Sorted, 1, 1.0, 40, 208, 4_156_809_218_136_883_126),
    (3, Order::Sorted, 1, 0.5, 40, 208, 4_096_875_583_973_684_309),
    (3, Order::Sorted, 4, 1.0, 127, 481, 4_670_725_181_347_090_536),
    (3, Order::Sorted, 4, 0.5, 127, 481, -2_614_562_417_586_739_487),
    (4, Order::Arbitrary, 1, 1.0, 59, 478, 2_052_234_876_736_536_236),
    (4, Order::Arbitrary, 1, 0.5, 59, 478, 2_052_234_876_736_536_236),
    (4, Order::Arbitrary, 4, 1.0, 161, 367, -4_676_098_332_105_372_921),
    (4, Order::Arbitrary, 4, 0.5, 161, 367, -4_676_098_332_105_372_921),
    (4, Order::Sorted, 1, 1.0, 60, 438, 3_219_317_810_063_856_472),
    (4, Order::Sorted, 1, 0.5, 60, 438, 3_219_317_810_063_856_472),
    (4, Order::Sorted, 4, 1.0, 160, 335, 5_614_967_834_069_553_937),
    (4, Order::Sorted, 4, 0.5, 160, 335, 5_614_967_834_069_553_937),
];

fn partitions(table: usize, order: Order) -> (PartitionGenerator, usize, usize) {
    let (definition, columnspec) = TABLES[table];
    let text = format!(
        "keyspace: k\ntable: t\ntable_definition: CREATE TABLE t ({definition})\n\
         columnspec: {columnspec}\n"
    );
    let profile = Profile::parse(&text).unwrap();
    let table = profile.table(profile.definition.as_ref().unwrap(), false).unwrap();
    assert!(table.unused.is_empty());
    let (keys, levels) = (table.partition_key.len(), table.clustering_key.len());
    (PartitionGenerator::new(&table, order), keys, levels)
}

fn fold(fold: i64, value: &[u8]) -> i64 {
    fold_bytes(fold.wrapping_mul(31).wrapping_add(value.len() as i64), value)
}

#[test]
fn partitions_are_the_original_ones() {
    let mut random = JavaRandom::seeded(1);
    for (table, order, visits, population, visit_count, row_count, expected) in ORIGINALS {
        let name = format!("table {table}, {order:?}, {visits} visits, {population} of the values");
        let (generator, keys, levels) = partitions(table, order);
        let mut partition = Partition::new(&generator);
        let (mut all, mut visits_seen, mut rows_seen) = (0i64, 0, 0);
        for seed in 1..=40 {
            let mut seed = SeedVisits::new(seed, visits);
            let all_rows = Selection::Share(1.0);
            while partition.start_write(&generator, &mut seed, all_rows, population, &mut random) {
                visits_seen += 1;
                all = all.wrapping_mul(31).wrapping_add(7);
                all = (0..keys).fold(all, |all, column| fold(all, partition.key(column)));
                while partition.has_row() {
                    rows_seen += 1;
                    all = (0..levels).fold(all, |all, at| fold(all, partition.clustering(at)));
                    let row_seed = partition.row_seed(&generator);
                    for column in 0..generator.value_count() {
                        if !partition.has_value(&generator, column) {
                            all = all.wrapping_mul(31).wrapping_sub(1);
                            continue;
                        }
                        let mut out = vec![0; generator.value_room(column)];
                        let size = Partition::write_value(&generator, row_seed, column, &mut out);
                        all = fold(all, &out[..size]);
                    }
                    partition.advance(&generator, &mut random);
                }
                if levels == 0 {
                    break;
                }
            }
        }
        assert_eq!((visits_seen, rows_seen), (visit_count, row_count), "{name}");
        assert_eq!(all, expected, "{name}");
    }
}

/// Rows of a visit to read: as (first, second, third) clustering columns in one text.
fn read(
    generator: &PartitionGenerator,
    selection: Selection,
    random: &mut JavaRandom,
) -> Vec<Vec<u8>> {
    let mut partition = Partition::new(generator);
    partition.start_read(generator, &SeedVisits::new(3, 1), selection, 1.0, random);
    let mut rows = Vec::new();
    while partition.has_row() {
        rows.push(
            [partition.clustering(0), partition.clustering(1), partition.clustering(2)].concat(),
        );
        partition.advance(generator, random);
    }
    rows
}

#[test]
fn a_share_of_the_rows_is_touched() {
    let (generator, ..) = partitions(3, Order::Arbitrary);
    let mut random = JavaRandom::seeded(2);
    let all = read(&generator, Selection::Share(1.0), &mut random);
    let rounds = 2_000;
    let mut touched = 0;
    for _ in 0..rounds {
        let some = read(&generator, Selection::Share(0.3), &mut random);
        assert!(some.iter().all(|row| all.contains(row)));
        touched += some.len();
    }
    let share = touched as f64 / (rounds * all.len()) as f64;
    // Levels have other numbers of values than on average, by which the original reckons.
    assert!((0.2..0.4).contains(&share), "{share} of {} rows", all.len());
    let few = read(&generator, Selection::Rows(1), &mut random);
    assert!(few.len() < all.len(), "{} of {}", few.len(), all.len());
}

#[test]
fn shuffled_rows_are_the_same_in_another_order() {
    let (sorted, ..) = partitions(3, Order::Sorted);
    let (shuffled, ..) = partitions(3, Order::Shuffled);
    let mut random = JavaRandom::seeded(4);
    let keys = |generator: &PartitionGenerator, random: &mut JavaRandom| {
        let mut partition = Partition::new(generator);
        let all = Selection::Share(1.0);
        partition.start_read(generator, &SeedVisits::new(5, 1), all, 1.0, random);
        let mut first: Vec<Vec<u8>> = Vec::new();
        while partition.has_row() {
            first.push(partition.clustering(0).to_vec());
            partition.advance(generator, random);
        }
        first.dedup();
        first
    };
    let ascending = keys(&sorted, &mut random);
    assert!(ascending.len() > 1 && ascending.is_sorted());
    let orders: Vec<Vec<Vec<u8>>> = (0..20).map(|_| keys(&shuffled, &mut random)).collect();
    assert!(orders.iter().any(|order| *order != ascending));
    for mut order in orders {
        order.sort();
        assert_eq!(order, ascending);
    }
}
