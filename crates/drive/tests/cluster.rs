//! Several hosts: requests reach a host that holds their key, a dead host is left out, a statement
//! that a host has forgotten is prepared again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Drive, Encoder, Roster, Unwitnessed};
use record::Outcome;
use rig::{closed, control, drive, ok, ops, plan, prepare, run, serve};
use std::net::SocketAddr;
use std::sync::Arc;
use target::{Handle, Storage};
use units::Nanos;
use wire::murmur3;
use wire::routing::{HostInfo, Ring};

/// Independent targets, that stand in for the hosts of a ring: each answers whatever it is asked.
fn hosts(count: usize) -> Vec<Handle> {
    (0..count).map(|_| serve(Storage::Null)).collect()
}

fn host(address: SocketAddr) -> HostInfo {
    let name = String::new;
    HostInfo { address, datacenter: name(), rack: name(), host_id: [0; 16], up: true }
}

/// Three ranges of equal size.
fn ring(hosts: &[Handle], replicas: [Vec<u16>; 3]) -> Arc<Ring> {
    let third = i64::MAX / 3 * 2;
    let ends = [i64::MIN + third, i64::MIN + third + third, i64::MAX];
    let infos = hosts.iter().map(|h| host(h.local_addr())).collect();
    Arc::new(Ring::new(infos, ends.into_iter().zip(replicas).collect()))
}

fn counter(address: SocketAddr, name: &str) -> i64 {
    let query = format!("SELECT value FROM system_wideload.counters WHERE name = '{name}'");
    let rows = control(address).query(&query).unwrap();
    i64::from_be_bytes(rows[0][0].as_deref().unwrap().try_into().unwrap())
}

fn executes(hosts: &[Handle]) -> Vec<i64> {
    hosts.iter().map(|h| counter(h.local_addr(), "requests.execute")).collect()
}

fn set_up(hosts: &[Handle]) -> Arc<Encoder> {
    let plan = plan("c", &["requestdistribution=uniform"], 30_000, None);
    let encoders: Vec<_> = hosts.iter().map(|h| prepare(h.local_addr(), &plan)).collect();
    encoders[0].clone()
}

fn roster(addresses: Vec<SocketAddr>, ring: Option<Arc<Ring>>) -> Arc<Roster> {
    Arc::new(Roster::new(addresses, ring))
}

fn drive_all(hosts: &[Handle], encoder: &Arc<Encoder>, ring: Option<Arc<Ring>>) -> Drive {
    Drive {
        databases: vec![roster(hosts.iter().map(Handle::local_addr).collect(), ring)],
        ..drive(hosts[0].local_addr(), encoder, 2, closed(30, Amount::Ops(30_000)))
    }
}

#[test]
fn requests_go_to_the_host_that_holds_their_key() {
    let hosts = hosts(3);
    let encoder = set_up(&hosts);
    let ring = ring(&hosts, [vec![0], vec![1], vec![2]]);
    // What the ring says of the very keys of this run.
    let plan = encoder.plan().clone();
    let mut expected = vec![0i64; 3];
    for worker in 0..2 {
        let mut sampler = workload::Sampler::new(plan.clone(), workload::Phase::Run, 7, worker, 2);
        let mut text = [0; 64];
        for _ in 0..15_000 {
            let size = plan.write_key(sampler.draw().unwrap().key, &mut text);
            let token = murmur3::token(&text[..size]);
            expected[usize::from(ring.replicas(token)[0])] += 1;
        }
    }
    let (driven, ..) = run(&drive_all(&hosts, &encoder, Some(ring)), vec![Unwitnessed; 2]);
    assert_eq!(ok(&driven), 30_000);
    assert_eq!(executes(&hosts), expected);
}

#[test]
fn replicas_share_the_load_and_without_a_ring_all_hosts_do() {
    let all = vec![0, 1, 2];
    for replicated in [true, false] {
        let hosts = hosts(3);
        let encoder = set_up(&hosts);
        let ring = replicated.then(|| ring(&hosts, [all.clone(), all.clone(), all.clone()]));
        // A schedule, because in a closed loop a host that has more of the cpus does more.
        let mut drive = drive_all(&hosts, &encoder, ring);
        drive.load = rig::open("20k/s", Amount::Ops(30_000), 4096);
        let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
        assert_eq!(ok(&driven), 30_000);
        for count in executes(&hosts) {
            assert!((8_000..=12_000).contains(&count), "{count} of 10000");
        }
    }
}

#[test]
fn a_dead_host_is_left_out_and_the_others_share_its_load() {
    let mut hosts = hosts(3);
    let encoder = set_up(&hosts);
    let all = vec![0, 1, 2];
    let ring = ring(&hosts, [all.clone(), all.clone(), all]);
    let mut drive = drive_all(&hosts, &encoder, Some(ring));
    drive.load = closed(30, Amount::Duration(rig::SECOND));
    let dead = hosts.remove(0);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(dead);
    });
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    killer.join().unwrap();
    let lost: u64 = driven.total.ops.iter().map(|op| op.count(Outcome::ConnectionLost)).sum();
    assert!(lost <= 30, "{lost}");
    assert_eq!(ok(&driven) + lost, ops(&driven));
    let left = executes(&hosts);
    let (least, most) = (left[0].min(left[1]) as f64, left[0].max(left[1]) as f64);
    assert!(most / least < 1.2, "{left:?}");
}

/// A ring in which each host holds an equal part, by the order of `hosts`.
fn shared_by(hosts: &[&Handle]) -> Ring {
    let infos = hosts.iter().map(|h| host(h.local_addr())).collect();
    let part = u64::MAX / hosts.len() as u64;
    let end = |i: usize| i64::MIN.wrapping_add_unsigned(part * (i as u64 + 1));
    Ring::new(infos, (0..hosts.len()).map(|i| (end(i), vec![i as u16])).collect())
}

#[test]
fn hosts_that_join_and_leave_in_mid_run_get_and_lose_their_part() {
    let hosts = hosts(3);
    let encoder = set_up(&hosts);
    let [first, second, third] = &hosts[..] else { unreachable!() };
    let before = shared_by(&[first, second]);
    let addresses = vec![first.local_addr(), second.local_addr()];
    let roster = Arc::new(Roster::new(addresses, Some(Arc::new(before))));
    let mut drive = Drive { databases: vec![roster.clone()], ..drive_all(&hosts, &encoder, None) };
    drive.load = closed(30, Amount::Duration(Nanos::from_secs(2)));
    let (at_join, at_leave) = std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let pause = || std::thread::sleep(std::time::Duration::from_millis(600));
            pause();
            let at_join = executes(&hosts);
            let change = roster.update(&shared_by(&[first, second, third]), &[]);
            assert_eq!((change.joined, change.left), (vec![third.local_addr()], vec![]));
            pause();
            let change = roster.update(&shared_by(&[third, second]), &[]);
            assert_eq!((change.joined, change.left), (vec![], vec![first.local_addr()]));
            // What is in flight then is still answered.
            std::thread::sleep(std::time::Duration::from_millis(200));
            (at_join, executes(&hosts))
        });
        let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
        assert_eq!(ok(&driven), ops(&driven), "{:?}", driven.first_error);
        assert!(driven.usage.iter().all(|u| u.connections_lost == 0));
        changes.join().unwrap()
    });
    let at_end = executes(&hosts);
    assert!(at_join[0] > 0 && at_join[1] > 0 && at_join[2] == 0, "{at_join:?}");
    assert!(at_leave[2] > 0, "the third host has joined: {at_leave:?}");
    assert_eq!(at_end[0], at_leave[0], "the first one has left: {at_end:?}");
    assert!(at_end[1] > at_leave[1] && at_end[2] > at_leave[2], "{at_leave:?} {at_end:?}");
    let open = || {
        let count = |name: &str| counter(first.local_addr(), name);
        count("connections.accepted") - count("connections.closed")
    };
    // Those of these two questions, one of which may be closed by now.
    let closed = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        open() <= 2
    });
    assert!(closed, "{} connections are kept to a host that has left", open());
}

#[test]
fn a_host_that_is_alone_is_joined_by_another_and_leaves_in_its_favour() {
    let hosts = hosts(2);
    let encoder = set_up(&hosts);
    let roster = Arc::new(Roster::new(vec![hosts[0].local_addr()], None));
    let mut drive = Drive { databases: vec![roster.clone()], ..drive_all(&hosts, &encoder, None) };
    drive.load = closed(8, Amount::Duration(Nanos::from_millis(1500)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for ring in [shared_by(&[&hosts[0], &hosts[1]]), shared_by(&[&hosts[1]])] {
                std::thread::sleep(std::time::Duration::from_millis(400));
                assert!(!roster.update(&ring, &[]).is_none());
            }
        });
        let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
        assert_eq!(ok(&driven), ops(&driven), "{:?}", driven.first_error);
    });
    assert!(executes(&hosts)[1] > 0);
    assert!(!roster.take_trouble(), "that a host comes and goes is no trouble");
    // The next load begins with who is there.
    let before = executes(&hosts);
    drive.load = closed(8, Amount::Ops(1000));
    assert_eq!(ok(&run(&drive, vec![Unwitnessed; 2]).0), 1000);
    let after = executes(&hosts);
    assert_eq!([after[0] - before[0], after[1] - before[1]], [0, 1000]);
}

#[test]
fn a_statement_that_the_host_forgets_is_prepared_again() {
    let target = serve(Storage::Memory);
    let address = target.local_addr();
    let plan = plan("a", &["fieldcount=2"], 1000, None);
    let encoder = prepare(address, &plan);
    rig::load(address, &encoder, 1);
    let drive = drive(address, &encoder, 2, closed(16, Amount::Duration(rig::SECOND)));
    // A new column makes the target forget every statement of the table.
    let alter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(400));
        control(address).query("ALTER TABLE ycsb.usertable ADD more text").unwrap();
    });
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    alter.join().unwrap();
    assert_eq!(ok(&driven), ops(&driven), "no operation fails for it");
    let prepares: u64 = driven.usage.iter().map(|u| u.prepares).sum();
    assert!((3..=12).contains(&prepares), "{prepares}");
    assert!(driven.usage.iter().all(|u| u.prepares_failed == 0));
}

#[test]
fn databases_have_their_own_rows_and_their_own_share_of_the_load() {
    let hosts: Vec<_> = (0..3).map(|_| serve(Storage::Memory)).collect();
    // Inserts, and reads of the newest rows: whoever asks another database finds nothing.
    let plan = plan("d", &["fieldcount=2"], 1000, None);
    let encoders: Vec<_> = hosts.iter().map(|h| prepare(h.local_addr(), &plan)).collect();
    let all = drive_all(&hosts, &encoders[0], None);
    let databases: Vec<_> = hosts.iter().map(|h| roster(vec![h.local_addr()], None)).collect();
    let fill = Drive {
        load: drive::Load::every_key(32),
        load_keys: true,
        databases: databases.clone(),
        by_shard: true,
        connections: 2,
        ..all.clone()
    };
    let rows = || {
        let rows = |h: &Handle| {
            control(h.local_addr()).query("SELECT y_id FROM ycsb.usertable").unwrap().len()
        };
        hosts.iter().map(rows).collect::<Vec<_>>()
    };
    assert_eq!(ok(&run(&fill, vec![Unwitnessed; 6]).0), 3000);
    assert_eq!(rows(), [1000; 3]);
    let drive = Drive { databases, connections: 2, ..all };
    let (driven, ..) = run(&drive, vec![Unwitnessed; 6]);
    assert_eq!((ok(&driven), ops(&driven)), (30_000, 30_000), "all rows are found");
    let inserted: u64 = driven.usage.iter().map(|u| u.inserts).sum();
    assert_eq!(rows().iter().sum::<usize>() as u64, 3000 + inserted);
    for executed in executes(&hosts) {
        assert_eq!(executed, 1000 + 10_000, "operations are split evenly");
    }
}
