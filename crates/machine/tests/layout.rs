//! The planner on synthetic machines: the placements of a published study, refusals, properties.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use machine::Machine;
use machine::layout::{
    Addresses, Amount, Budget, Database, Device, Devices, Layout, LayoutError, MemoryAsked, Order,
    Policy, Request, Reserve, Smt, plan, sizing,
};
use units::{Bytes, CpuSet, NumaId, NumaSet};

const GIB: u64 = 1 << 30;
/// Two AMD EPYC 7601: 2 packages of 4 dies, a NUMA node and two caches each, 4 cores on a cache.
const EPYC_7601: &str = "package:2 die:4 numa:1(memory=64GiB) llc:2 core:4 cpu:2";

fn epyc() -> Machine {
    Machine::synthetic(EPYC_7601).unwrap()
}

fn request(policy: &str, numa_count: u32, order: Option<Order>) -> Request {
    Request {
        policy: policy.parse().unwrap(),
        budget: Budget { numa_count: Some(numa_count), order, cpus: None },
        ..Request::default()
    }
}

/// The NUMA nodes of each instance.
fn numas(layout: &Layout) -> Vec<Vec<u32>> {
    let bare = |numas: &NumaSet| numas.iter().map(|numa| numa.0).collect::<Vec<_>>();
    for placement in &layout.placements {
        assert_eq!(placement.cpu_numas, placement.memory_numas);
    }
    layout.placements.iter().map(|placement| bare(&placement.cpu_numas)).collect()
}

/// "A single Cassandra server is mapped to an increasing number of NUMA nodes."
#[test]
fn the_base_of_the_study_is_one_instance_over_1_2_4_8_dies() {
    for (dies, expected) in [(1, 0..1), (2, 0..2), (4, 0..4), (8, 0..8)] {
        let layout = plan(&epyc(), &request("single", dies, None)).unwrap();
        assert_eq!(numas(&layout), vec![expected.collect::<Vec<u32>>()]);
        assert_eq!(layout.cpus().len(), 16 * dies as usize);
    }
}

/// "Except in the 1 die case, we run 2 servers. '2D': each on its own die, in separate sockets.
/// '4D': 2 dies each, of the same socket. '8D': one entire socket each."
#[test]
fn tuning_1_of_the_study_is_one_instance_on_each_socket() {
    let expected: [(u32, &[&[u32]]); 4] = [
        (1, &[&[0]]),
        (2, &[&[0], &[4]]),
        (4, &[&[0, 1], &[4, 5]]),
        (8, &[&[0, 1, 2, 3], &[4, 5, 6, 7]]),
    ];
    for (dies, expected) in expected {
        let layout = plan(&epyc(), &request("per-package", dies, None)).unwrap();
        assert_eq!(numas(&layout), expected, "{dies} dies");
        let sockets: Vec<_> = layout.placements.iter().map(|p| p.cpus.clone()).collect();
        for cpus in &sockets {
            let machine = epyc();
            let packages: Vec<_> =
                cpus.iter().map(|cpu| machine.cpu(cpu).unwrap().package).collect();
            assert!(packages.windows(2).all(|pair| pair[0] == pair[1]), "{cpus}");
        }
    }
}

/// "1D is one server on a single die, 2D is two servers on two dies within a socket, and so on."
#[test]
fn tuning_2_of_the_study_is_one_instance_on_each_die() {
    for dies in [1, 2, 4, 8] {
        let layout = plan(&epyc(), &request("per-numa", dies, None)).unwrap();
        assert_eq!(numas(&layout), (0..dies).map(|die| vec![die]).collect::<Vec<_>>());
        for placement in &layout.placements {
            assert_eq!((placement.cpus.len(), placement.cores), (16, 8));
        }
    }
}

#[test]
fn caches_counts_and_custom_sets_divide_a_budget_too() {
    let machine = epyc();
    let of = |policy: &str, dies| plan(&machine, &request(policy, dies, None)).unwrap();
    let caches = of("per-llc", 8);
    assert_eq!(caches.placements.len(), 16);
    assert!(caches.placements.iter().all(|p| p.cores == 4 && p.cpus.len() == 8));
    assert_eq!(of("4", 8).placements.len(), 4);
    assert_eq!(numas(&of("4", 8)), [[0, 1], [2, 3], [4, 5], [6, 7]]);
    // 8 cores of a die over 3 instances.
    let three: Vec<_> = of("3", 1).placements.iter().map(|p| p.cores).collect();
    assert_eq!(three, [3, 3, 2]);
    let sets: Vec<String> =
        of("per-numa", 2).placements.iter().map(|p| p.cpus.to_string()).collect();
    let custom = of(&sets.join(";"), 2);
    assert_eq!(custom.cpus(), of("per-numa", 2).cpus());
}

#[test]
fn spread_and_compact_can_be_asked_for() {
    let spread = plan(&epyc(), &request("per-numa", 4, Some(Order::Spread))).unwrap();
    assert_eq!(numas(&spread), [[0], [1], [4], [5]]);
    let compact = plan(&epyc(), &request("per-package", 4, Some(Order::Compact))).unwrap();
    assert_eq!(numas(&compact), [[0, 1, 2, 3]]);
}

#[test]
fn one_cpu_of_each_core_can_be_asked_for() {
    let machine = epyc();
    let one = Request { smt: Smt::One, ..request("per-numa", 8, None) };
    let layout = plan(&machine, &one).unwrap();
    for placement in &layout.placements {
        assert_eq!(placement.cpus.len(), 8);
        for cpu in placement.cpus.iter() {
            let siblings = &machine.cpu(cpu).unwrap().siblings;
            assert_eq!(siblings.intersection(&placement.cpus).len(), 1);
        }
    }
}

#[test]
fn memory_is_the_share_less_a_margin() {
    let machine = epyc();
    let each = |policy: &str, dies| {
        plan(&machine, &request(policy, dies, None)).unwrap().placements[0].memory_bytes.unwrap()
    };
    assert_eq!(each("per-numa", 8), 60 * GIB);
    assert_eq!(each("per-numa", 1), 60 * GIB);
    assert_eq!(each("single", 8), 8 * 60 * GIB);
    assert_eq!(each("per-llc", 8), 30 * GIB);
    let layout = plan(&machine, &request("per-numa", 8, None)).unwrap();
    assert_eq!(layout.placements[0].heap_bytes, Some(8 * GIB));
    let small = Machine::synthetic("package:1 numa:2(memory=4GiB) core:2").unwrap();
    let layout = plan(&small, &request("per-numa", 2, None)).unwrap();
    assert_eq!(layout.placements[0].memory_bytes, Some(4 * GIB - GIB / 2));
    assert_eq!(layout.placements[0].heap_bytes, Some(GIB));
    // Equal totals over arms: the same 64 GiB for one and for eight.
    let total = |policy: &str| {
        let memory = MemoryAsked::Total(Bytes(64 * GIB));
        let request = Request { memory, ..request(policy, 8, None) };
        plan(&machine, &request)
            .unwrap()
            .placements
            .iter()
            .filter_map(|p| p.memory_bytes)
            .sum::<u64>()
    };
    assert_eq!([total("single"), total("per-numa")], [64 * GIB, 64 * GIB]);
}

#[test]
fn reserved_cores_are_no_instances_and_the_client_is_the_same_for_every_budget() {
    let machine = epyc();
    let reserve = Reserve {
        os: Some(Amount::Cores(1)),
        irq: Some(Amount::Cores(1)),
        client: Some(Amount::Cores(8)),
    };
    let of = |dies| {
        let devices = Devices {
            nics: vec![Device { name: "eth1".into(), numa: Some(NumaId(2)) }],
            disks: Vec::new(),
        };
        let request =
            Request { reserve: reserve.clone(), devices, ..request("per-numa", dies, None) };
        plan(&machine, &request).unwrap()
    };
    let (small, large) = (of(1), of(7));
    assert_eq!(small.client, large.client);
    assert_eq!(small.client.len(), 16);
    for layout in [&small, &large] {
        assert!(layout.cpus().intersection(&layout.reserved).is_empty());
        assert!(layout.client.difference(&layout.reserved).is_empty());
    }
    // The lowest core is the system's, one of NUMA node 2 that of the interrupts.
    let cores: Vec<_> = large.placements.iter().map(|p| p.cores).collect();
    assert_eq!(cores, [7, 8, 7, 8, 8, 8, 8]);
    assert!(large.cautions().any(|reason| reason.text.contains("7 to 8 cores")));
}

#[test]
fn nics_and_disks_are_taken_where_they_are_near() {
    let device = |name: &str, numa| Device { name: name.into(), numa };
    let devices = Devices {
        nics: vec![device("ens1", Some(NumaId(0))), device("ens8", Some(NumaId(4)))],
        disks: vec![device("nvme0n1", None)],
    };
    let addresses =
        Addresses::Given(vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()]);
    let request = Request { devices, addresses, ..request("per-package", 8, None) };
    let layout = plan(&epyc(), &request).unwrap();
    let nics: Vec<_> = layout.placements.iter().map(|p| p.nic.clone().unwrap()).collect();
    assert_eq!(nics, ["ens1", "ens8"]);
    assert!(layout.placements.iter().all(|p| p.disk.as_deref() == Some("nvme0n1")));
    assert!(layout.explain().iter().any(|line| line.contains("does not say where")));
}

#[test]
fn instances_that_share_an_address_have_ports_of_their_own() {
    let addresses =
        Addresses::Given(vec!["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()]);
    for database in ["cassandra", "scylla", "aerospike", "reference"] {
        let request = Request {
            addresses: addresses.clone(),
            database: database.parse().unwrap(),
            ..request("per-numa", 8, None)
        };
        let layout = plan(&epyc(), &request).unwrap();
        let mut all: Vec<_> = layout
            .placements
            .iter()
            .flat_map(|p| p.ports.iter().map(|port| (p.address, port.number)))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{database}");
    }
    let loopback = plan(&epyc(), &request("per-numa", 8, None)).unwrap();
    assert_eq!(loopback.placements[7].address.to_string(), "127.0.0.8");
    assert_eq!(loopback.placements[7].port("cql"), Some(9042));
}

#[test]
fn what_cannot_be_is_refused_with_the_thing_and_the_cure() {
    let machine = epyc();
    let refused = |request: &Request, parts: &[&str]| {
        let error = plan(&machine, request).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part}: {error}");
        }
    };
    let whole = || request("per-numa", 8, None);
    refused(&request("single", 9, None), &["9 NUMA nodes", "--numa-count from 1 to 8"]);
    refused(&request("single", 0, None), &["0 NUMA nodes", "--numa-count"]);
    refused(&request("65", 8, None), &["65 instances", "64 cores", "--split-cores"]);
    let memory = |bytes| Request { memory: MemoryAsked::Each(Bytes(bytes)), ..whole() };
    refused(&memory(61 * GIB), &["61.0 GiB", "60.0 GiB", "--memory"]);
    refused(
        &Request { heap: Some(Bytes(48 * GIB)), ..whole() },
        &["heap of 48.0 GiB", "60.0 GiB", "--heap"],
    );
    let scylla = Request { database: Database::Scylla, ..memory(8 * GIB) };
    refused(&scylla, &["16 shards", "--smt one"]);
    refused(&Request { heap: Some(Bytes(GIB)), ..scylla }, &["scylla", "--memory"]);
    let aerospike = Request { database: Database::Aerospike, ..memory(GIB / 2) };
    refused(&aerospike, &["records", "--memory"]);
    let reserve = |amount: &str| Request {
        reserve: Reserve { os: Some(amount.parse().unwrap()), ..Reserve::default() },
        ..whole()
    };
    refused(&reserve("64"), &["nothing is left", "reserve"]);
    refused(&reserve("65"), &["65 cores", "64 are left"]);
    refused(&reserve("500-501"), &["500-501", "usable"]);
    let cpus = |cpus: &str| Request {
        budget: Budget { cpus: Some(cpus.parse().unwrap()), ..Budget::default() },
        ..Request::default()
    };
    refused(&cpus("0-3,900"), &["900", "not online"]);
    let sibling = machine.cpus[0].siblings.clone();
    let [first, second] = sibling.iter().collect::<Vec<_>>()[..] else { panic!("{sibling}") };
    let shared = format!("{};{}", first.0, second.0);
    refused(&request(&shared, 8, None), &["share the physical core", "--split-cores"]);
    refused(&request("0-3;3-4", 8, None), &["both", "cpus 3"]);
    refused(&request("0-3;126-127", 1, None), &["instance 2", "126-127", "budget"]);
    let split = Request { split_cores: true, ..request(&shared, 8, None) };
    assert!(plan(&machine, &split).unwrap().cautions().any(|r| r.text.contains("share")));
}

#[test]
fn a_cgroup_that_forbids_cpus_is_respected_and_named() {
    let mut machine = epyc();
    machine.allowed = "0-15".parse().unwrap();
    let layout = plan(&machine, &Request::default()).unwrap();
    assert!(layout.cpus().difference(&machine.allowed).is_empty());
    assert!(layout.cautions().any(|reason| reason.text.contains("forbidden")));
    let budget = Budget { cpus: Some("0-31".parse().unwrap()), ..Budget::default() };
    let error = plan(&machine, &Request { budget, ..Request::default() }).unwrap_err();
    assert!(matches!(error, LayoutError::Forbidden { .. }), "{error}");
    assert!(error.to_string().contains("16-31"), "{error}");
    machine.allowed = CpuSet::default();
    assert!(matches!(plan(&machine, &Request::default()), Err(LayoutError::Forbidden { .. })));
}

#[test]
fn memory_without_cpus_and_cpus_without_memory_are_ordinary() {
    let mut machine = epyc();
    machine.numa[1].memory_bytes = Some(0);
    machine.numa[7].cpus = CpuSet::default();
    for cpu in &mut machine.cpus {
        if cpu.numa == Some(NumaId(7)) {
            cpu.numa = Some(NumaId(6));
        }
    }
    let layout =
        plan(&machine, &Request { policy: Policy::PerNuma, ..Request::default() }).unwrap();
    assert_eq!(layout.placements.len(), 7);
    // The nearest that has some: of its own package, the lowest.
    assert_eq!(layout.placements[1].memory_numas.to_string(), "0");
    let lines = layout.explain().join("\n");
    assert!(lines.contains("memory without cpus is on 7"), "{lines}");
    assert!(lines.contains("is on NUMA 1: instance 2 takes the nearest, of 0"), "{lines}");
}

#[test]
fn a_machine_without_numa_is_whole_and_nothing_is_bound() {
    let mut machine = Machine::synthetic("package:1 core:4 cpu:2").unwrap();
    machine.numa.clear();
    machine.cpus.iter_mut().for_each(|cpu| cpu.numa = None);
    let layout =
        plan(&machine, &Request { policy: Policy::Count(2), ..Request::default() }).unwrap();
    assert_eq!(layout.placements.len(), 2);
    assert!(layout.placements.iter().all(|p| p.memory_numas.is_empty() && p.cores == 2));
}

#[test]
fn memory_that_a_cpuset_forbids_is_not_planned_with() {
    let mut machine = epyc();
    machine.numa[0].allowed = false;
    let layout = plan(&machine, &request("per-numa", 1, None)).unwrap();
    assert_eq!(layout.placements[0].memory_numas.to_string(), "1");
    assert!(layout.cautions().any(|reason| reason.text.contains("forbids the memory")));
}

#[test]
fn memory_beyond_the_limit_of_a_cgroup_is_not_planned_with() {
    let mut machine = epyc();
    let all = |machine: &Machine| {
        let layout = plan(machine, &request("per-numa", 8, None)).unwrap();
        let each = layout.placements.iter().map(|p| p.memory_bytes.unwrap());
        (each.sum::<u64>(), layout.cautions().any(|c| c.text.contains("the cgroup allows")))
    };
    let free = all(&machine);
    let memory = machine.numa.iter().filter_map(|numa| numa.memory_bytes).sum::<u64>();
    machine.settings.memory_bytes = Some(memory);
    machine.memory_limit_bytes = Some(memory / 2);
    let limited = all(&machine);
    assert!(!free.1 && limited.1);
    assert!(limited.0 <= memory / 2 && limited.0 > free.0 * 2 / 5, "{limited:?} of {free:?}");
    let host = |machine| sizing::Host::of(machine, Database::Cassandra, None).memory_bytes;
    assert_eq!(host(&machine), Some(memory / 2));
    assert_eq!(machine.usable_memory_bytes(), Some(memory / 2));
}

#[test]
fn cpus_that_the_scheduler_leaves_alone_are_named() {
    let mut machine = epyc();
    machine.isolated = "8-9".parse().unwrap();
    let layout = plan(&machine, &Request::default()).unwrap();
    assert!(layout.cautions().any(|reason| reason.text.contains("8-9 are isolated")));
}

#[test]
fn cpus_of_unknown_numa_are_left_out() {
    let mut machine = epyc();
    let sibling = machine.cpus[0].siblings.clone();
    for cpu in &mut machine.cpus {
        if sibling.contains(cpu.id) {
            cpu.numa = None;
        }
    }
    let layout = plan(&machine, &Request::default()).unwrap();
    assert!(layout.cpus().intersection(&sibling).is_empty());
    assert!(layout.cautions().any(|reason| reason.text.contains("left out")));
}

#[test]
fn a_torn_list_of_siblings_gives_no_cpu_twice() {
    let mut machine = epyc();
    let second = machine.cpus[0].siblings.iter().last().unwrap();
    for cpu in &mut machine.cpus {
        if cpu.id == second {
            cpu.siblings = [second].into_iter().collect();
        }
    }
    let layout = plan(&machine, &request("64", 8, None)).unwrap();
    let all: usize = layout.placements.iter().map(|placement| placement.cpus.len()).sum();
    assert_eq!((all, layout.cpus().len()), (128, 128));
}
