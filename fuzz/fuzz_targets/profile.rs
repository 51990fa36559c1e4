//! What users of cassandra-stress write: distributions, table definitions, profiles.
//!
//! Input: a line, read as a distribution and as a share; the rest, read as a profile and
//! as a table definition. Must hold: nothing panics, draws stay in the bounds that the distribution
//! tells, and values fit the room that their column tells.

#![no_main]

use libfuzzer_sys::fuzz_target;
use workload::cassandra_stress::{
    Distribution, DrawState, JavaRandom, Order, Partition, PartitionGenerator, Profile, Ratio,
    SeedVisits, Selection, Table, TableDefinition,
};

/// Values and partitions up to this size are drawn.
const DRAWN_SIZE_BYTES_MAX: usize = 1 << 16;
const DRAWN_CHILDREN_MAX: i64 = 100;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let _ = Ratio::parse(line);
    if let Ok(distribution) = Distribution::parse(line) {
        draw(&distribution);
    }
    let _ = TableDefinition::parse(rest);
    let Ok(profile) = Profile::parse(rest) else { return };
    let Some(definition) = &profile.definition else { return };
    if let Ok(table) = profile.table(definition, true) {
        visit(&table);
    }
});

fn draw(distribution: &Distribution) {
    let mut state = DrawState::seeded(7);
    for _ in 0..20 {
        let value = distribution.sample(&mut state);
        assert!((distribution.min()..=distribution.max()).contains(&value));
        let _ = distribution.sample_f64(&mut state);
    }
}

fn visit(table: &Table) {
    let columns = table.partition_key.iter().chain(&table.clustering_key).chain(&table.values);
    let small = columns.clone().all(|column| {
        column.generator.room() <= DRAWN_SIZE_BYTES_MAX
            && column.generator.cluster().max() <= DRAWN_CHILDREN_MAX
    });
    if !small || columns.count() > 20 || table.clustering_key.len() > 2 {
        return;
    }
    let generator = PartitionGenerator::new(table, Order::Sorted);
    let mut partition = Partition::new(&generator);
    let mut random = JavaRandom::seeded(1);
    let mut visits = SeedVisits::new(1, 2);
    let share = Selection::Share(0.5);
    partition.start_write(&generator, &mut visits, share, 1.0, &mut random);
    for _ in 0..50 {
        if !partition.has_row() {
            return;
        }
        let seed = partition.row_seed(&generator);
        for column in 0..generator.value_count() {
            let mut out = vec![0; generator.value_room(column)];
            let size = Partition::write_value(&generator, seed, column, &mut out);
            assert!(size <= out.len());
        }
        partition.advance(&generator, &mut random);
    }
}
