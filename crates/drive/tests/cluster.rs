//! Several hosts: requests reach a host that holds their key, a dead host is left out, a statement
//! that a host has forgotten is prepared again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Drive, Encoder, Unwitnessed};
use record::Outcome;
use rig::{closed, control, drive, ok, ops, plan, prepare, run, serve};
use std::net::SocketAddr;
use std::sync::Arc;
use target::{Handle, Storage};
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

fn drive_all(hosts: &[Handle], encoder: &Arc<Encoder>, ring: Option<Arc<Ring>>) -> Drive {
    Drive {
        addresses: hosts.iter().map(Handle::local_addr).collect(),
        ring,
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
