//! What holds of every layout, on machines and requests drawn at random.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use machine::Machine;
use machine::layout::{Amount, Budget, Layout, Order, Policy, Request, Reserve, Smt, plan};
use proptest::prelude::*;
use std::collections::BTreeMap;
use units::CpuSet;

fn machines() -> impl Strategy<Value = Machine> {
    (1_u32..=2, 1_u32..=4, 1_u32..=2, 1_u32..=4, 1_u32..=4).prop_map(
        |(packages, numas, caches, cores, cpus)| {
            let text = format!(
                "package:{packages} numa:{numas}(memory=64GiB) llc:{caches} core:{cores} cpu:{cpus}"
            );
            Machine::synthetic(&text).unwrap()
        },
    )
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Single),
        Just(Policy::PerPackage),
        Just(Policy::PerNuma),
        Just(Policy::PerLlc),
        (1_u32..=9).prop_map(Policy::Count),
    ]
}

fn requests() -> impl Strategy<Value = Request> {
    (
        policies(),
        proptest::option::of(1_u32..=8),
        proptest::option::of(prop_oneof![Just(Order::Compact), Just(Order::Spread)]),
        prop_oneof![Just(Smt::All), Just(Smt::One)],
        proptest::option::of(0_u32..=3),
        proptest::option::of(0_u32..=3),
    )
        .prop_map(|(policy, numa_count, order, smt, os, client)| Request {
            policy,
            budget: Budget { numa_count, order, cpus: None },
            smt,
            reserve: Reserve {
                os: os.map(Amount::Cores),
                irq: None,
                client: client.map(Amount::Cores),
            },
            ..Request::default()
        })
}

/// Which instance has each physical core, by its lowest cpu.
fn owners(machine: &Machine, layout: &Layout) -> BTreeMap<u32, Vec<u32>> {
    let mut owners: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for placement in &layout.placements {
        for cpu in placement.cpus.iter() {
            let core = machine.cpu(cpu).unwrap().siblings.iter().next().unwrap().0;
            let of = owners.entry(core).or_default();
            if !of.contains(&placement.instance) {
                of.push(placement.instance);
            }
        }
    }
    owners
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_layout_never_overlaps_leaves_its_budget_or_splits_a_core(
        machine in machines(),
        request in requests(),
    ) {
        let Ok(layout) = plan(&machine, &request) else { return Ok(()) };
        let all: usize = layout.placements.iter().map(|placement| placement.cpus.len()).sum();
        prop_assert_eq!(layout.cpus().len(), all, "no cpu twice");
        prop_assert!(layout.cpus().intersection(&layout.reserved).is_empty());
        for placement in &layout.placements {
            prop_assert!(!placement.cpus.is_empty());
            for cpu in placement.cpus.iter() {
                let numa = machine.cpu(cpu).unwrap().numa.unwrap();
                prop_assert!(layout.budget_numas.contains(numa));
            }
        }
        if let Some(count) = request.budget.numa_count {
            prop_assert_eq!(layout.budget_numas.len(), count as usize);
        }
        prop_assert!(owners(&machine, &layout).values().all(|of| of.len() == 1));
    }

    #[test]
    fn memory_of_all_instances_fits_the_budget(machine in machines(), request in requests()) {
        let Ok(layout) = plan(&machine, &request) else { return Ok(()) };
        let memory = |numas: &units::NumaSet| -> u64 {
            let of = machine.numa.iter().filter(|numa| numas.contains(numa.id));
            of.filter_map(|numa| numa.memory_bytes).sum()
        };
        for placement in &layout.placements {
            prop_assert!(placement.memory_bytes.unwrap() < memory(&placement.memory_numas));
        }
        let all: u64 = layout.placements.iter().filter_map(|p| p.memory_bytes).sum();
        prop_assert!(all < memory(&layout.budget_numas));
    }

    #[test]
    fn the_same_input_gives_the_same_layout(machine in machines(), request in requests()) {
        let (first, second) = (plan(&machine, &request), plan(&machine, &request));
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_larger_budget_keeps_what_a_smaller_one_had(machine in machines(), request in requests()) {
        let of = |numa_count| {
            let budget = Budget { numa_count: Some(numa_count), ..request.budget.clone() };
            plan(&machine, &Request { budget, ..request.clone() })
        };
        let mut before: Option<(CpuSet, Vec<CpuSet>)> = None;
        for count in 1..=8 {
            let Ok(layout) = of(count) else { continue };
            let each: Vec<_> = layout.placements.iter().map(|p| p.cpus.clone()).collect();
            if let Some((cpus, instances)) = &before {
                prop_assert!(cpus.difference(&layout.cpus()).is_empty());
                let compact = request.budget.order != Some(Order::Spread);
                if compact && matches!(request.policy, Policy::PerNuma | Policy::PerLlc) {
                    prop_assert_eq!(instances.as_slice(), &each[..instances.len()]);
                }
            }
            before = Some((layout.cpus(), each));
        }
    }
}
