//! Machines from a description: they go through the reader of real ones and come out as described.

#![allow(clippy::unwrap_used, clippy::panic)]

use machine::{Machine, SyntheticError};
use proptest::prelude::*;
use units::{CpuId, CpuSet, NumaId};

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

#[test]
fn two_sockets_of_four_dies_are_as_described() {
    let text = "package:2 die:4 numa:1(memory=32GiB) llc:2(size=8MiB) core:4 cpu:2";
    let machine = Machine::synthetic(text).unwrap();
    assert_eq!(machine.online, set("0-127"));
    let count =
        (machine.packages().len(), machine.dies().len(), machine.numa.len(), machine.llcs().len());
    assert_eq!(count, (2, 8, 8, 16));
    let cores = machine.cores();
    assert_eq!(cores.len(), 64);
    assert_eq!((&cores[1].cpus, &cores[63].cpus), (&set("1,65"), &set("63,127")));
    assert_eq!(machine.packages()[1].cpus, set("32-63,96-127"));
    assert_eq!(machine.packages()[1].numa, [4, 5, 6, 7].map(NumaId));
    let numa = machine.numa(NumaId(1)).unwrap();
    assert_eq!(numa.cpus, set("8-15,72-79"));
    assert_eq!((numa.memory_bytes, numa.memory_free_bytes), (Some(32 << 30), Some(32 << 30)));
    assert_eq!(numa.distances, [16, 10, 16, 16, 32, 32, 32, 32]);
    assert_eq!(machine.distance(NumaId(1), NumaId(4)), Some(32));
    let llc = &machine.llcs()[3];
    assert_eq!((llc.id, &llc.cpus), (Some(12), &set("12-15,76-79")));
    assert_eq!(
        (llc.level, llc.size_bytes, llc.place.numa),
        (Some(3), Some(8 << 20), Some(NumaId(1)))
    );
    let cpu = machine.cpu(CpuId(77)).unwrap();
    assert_eq!((cpu.package, cpu.die, cpu.core), (Some(0), Some(1), Some(13)));
    assert_eq!(machine.settings.memory_bytes, Some(256 << 30));
}

#[test]
fn parts_that_are_left_out_are_there_once() {
    for (text, packages, dies, numa, llcs, cores, cpus) in [
        ("cpu:1", 1, 1, 1, 1, 1, 1),
        ("core:4", 1, 1, 1, 1, 4, 4),
        ("package:2 core:8 cpu:2", 2, 2, 2, 2, 16, 32),
        ("package:1 die:2 core:2", 1, 2, 1, 2, 4, 4),
        ("package:2 numa:2 die:2 core:2", 2, 8, 4, 8, 16, 16),
        ("package:1 numa:4 llc:2 core:3", 1, 1, 4, 8, 24, 24),
        // A NUMA node over two sockets: the firmware interleaves.
        ("numa:1 package:2 core:2 cpu:2", 2, 2, 1, 2, 4, 8),
        ("  package:2   core:1 ", 2, 2, 2, 2, 2, 2),
    ] {
        let machine = Machine::synthetic(text).unwrap();
        let found = (
            machine.packages().len(),
            machine.dies().len(),
            machine.numa.len(),
            machine.llcs().len(),
            machine.cores().len(),
            machine.online.len(),
        );
        assert_eq!(found, (packages, dies, numa, llcs, cores, cpus), "{text}");
    }
}

#[test]
fn what_is_no_machine_is_refused_at_its_column() {
    for (text, at, told) in [
        ("package", 1, "no count"),
        ("package:2 dye:4", 11, "no part of a machine"),
        ("package:2 die:x", 11, "no count of die"),
        ("package:0", 1, "whole number from 1"),
        ("package:-1", 1, "whole number from 1"),
        ("package:2 package:2", 11, "twice"),
        ("core:2 llc:2", 8, "not inside of core"),
        ("die:2 package:2", 7, "not inside of die"),
        ("package:2 cpu:2 core:2", 17, "not inside of cpu"),
        ("package:99999999999999999999", 1, "no count"),
        ("package:64 core:64 cpu:2", 20, "more than 4096"),
        ("numa:1025", 1, "more than 1024"),
        ("numa:1(memory=1GiB", 1, "closing bracket"),
        ("package:1 numa:1(size=1GiB)", 11, "write (memory=SIZE)"),
        ("package:1 numa:1(memory=lots)", 11, "'lots' is not a size"),
        ("package:1 numa:1(memory=1)", 11, "too small"),
        ("package:1 core:1(size=1GiB)", 11, "only numa and llc"),
        ("né:1", 1, "no part"),
        ("package:1 né:1 core:x", 11, "no part"),
    ] {
        match Machine::synthetic(text).unwrap_err() {
            SyntheticError::At { column, what } => {
                assert_eq!(column, at, "{text}: {what}");
                assert!(what.contains(told), "{text}: {what}");
            }
            other => panic!("{text}: {other}"),
        }
    }
    for text in ["", "  "] {
        assert_eq!(Machine::synthetic(text).unwrap_err(), SyntheticError::Empty);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn all_parts_cover_the_cpus_once(
        package in 1usize..3, die in 1usize..4, numa in 1usize..3, llc in 1usize..3,
        core in 1usize..4, cpu in 1usize..3,
    ) {
        let text = format!(
            "package:{package} die:{die} numa:{numa} llc:{llc} core:{core} cpu:{cpu}"
        );
        let machine = Machine::synthetic(&text).unwrap();
        let total = package * die * numa * llc * core * cpu;
        prop_assert_eq!(machine.online.len(), total);
        let parts: [Vec<CpuSet>; 5] = [
            machine.packages().into_iter().map(|part| part.cpus).collect(),
            machine.dies().into_iter().map(|part| part.cpus).collect(),
            machine.numa.iter().map(|part| part.cpus.clone()).collect(),
            machine.llcs().into_iter().map(|part| part.cpus).collect(),
            machine.cores().into_iter().map(|part| part.cpus).collect(),
        ];
        let mut count = 1;
        for (sets, factor) in parts.iter().zip([package, die, numa, llc, core]) {
            count *= factor;
            prop_assert_eq!(sets.len(), count);
            prop_assert_eq!(sets.iter().map(CpuSet::len).sum::<usize>(), total);
            let all: CpuSet = sets.iter().flat_map(CpuSet::iter).collect();
            prop_assert_eq!(&all, &machine.online);
        }
    }

    #[test]
    fn no_description_makes_it_panic(text in "\\PC{0,40}|([a-z]{3,7}:[0-9()=a-zA-Z]{0,9} ){0,6}") {
        let _ = Machine::synthetic(&text);
    }
}

#[test]
fn a_large_machine_keeps_a_manifest_of_moderate_size() {
    let machine = Machine::synthetic("package:2 numa:4 llc:4 core:4 cpu:2").unwrap();
    let text = serde_json::to_string_pretty(&machine).unwrap();
    assert!(text.len() < 100_000, "{} bytes for 256 cpus", text.len());
}
