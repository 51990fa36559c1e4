//! Hosts with shards: requests go to the shard that has their key, whatever becomes of tablets and
//! of the port where a client chooses its shard.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Control, Drive, Encoder, Offering, Roster, Shards, Unwitnessed};
use rig::{closed, control, drive, ok, plan, run, table};
use std::io::{Read, Write};
use std::sync::Arc;
use target::{Config, Handle, Scylla, Server, Storage};
use units::Nanos;
use wire::cql::{Consistency, HEADER_SIZE, Header, Opcode, put};
use wire::routing::{HostInfo, Ring};
use wire::shards::Sharding;

const SHARDS: u16 = 4;
const SIMPLE: &str = "1";
const TABLETS: &str = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}";

fn serve(move_every: Option<Nanos>) -> Handle {
    let sharding = Sharding::new(SHARDS, 12).unwrap();
    let config = Config {
        storage: Storage::Null,
        scylla: Some(Scylla { sharding, port: 0, move_every }),
        ..Config::new("127.0.0.1:0".parse().unwrap())
    };
    Server::bind(config).unwrap().start().unwrap()
}

fn prepare(target: &Handle, replication: &str) -> (Arc<Encoder>, Shards) {
    let plan = plan("a", &["requestdistribution=uniform"], 30_000, None);
    let mut control = control(target.local_addr());
    control.query(&drive::create_keyspace(&table(), replication)).unwrap();
    control.query(&drive::create_table(&plan, &table())).unwrap();
    let texts = drive::statement_texts(&plan, &table());
    let ids: Vec<_> = texts.iter().map(|text| control.prepare(text).unwrap().id).collect();
    let offering = Offering::of(&mut [control], &[table()]).unwrap();
    assert_eq!(offering.unread, [""; 0]);
    let encoder = Encoder::new(plan, &table(), &ids, Consistency::LocalOne);
    (Arc::new(encoder), offering.shards.unwrap())
}

fn sharded(target: &Handle, encoder: &Arc<Encoder>, shards: Shards, load: drive::Load) -> Drive {
    let roster = Roster::new(vec![target.local_addr()], None).sharded(shards);
    Drive { databases: vec![Arc::new(roster)], ..drive(target.local_addr(), encoder, 2, load) }
}

/// Of each shard: requests, misrouted ones.
fn counted(target: &Handle) -> Vec<(i64, i64)> {
    let text = "SELECT shard, requests, misrouted FROM system_wideload.shards";
    let mut rows = control(target.local_addr()).query(text).unwrap();
    rows.sort();
    let number =
        |cell: &Option<Vec<u8>>| i64::from_be_bytes(cell.as_deref().unwrap().try_into().unwrap());
    rows.iter().map(|row| (number(&row[1]), number(&row[2]))).collect()
}

fn requests(target: &Handle) -> i64 {
    counted(target).iter().map(|(requests, _)| requests).sum()
}

fn misrouted(target: &Handle) -> i64 {
    counted(target).iter().map(|(_, misrouted)| misrouted).sum()
}

fn told(driven: &drive::Driven) -> u64 {
    driven.usage.iter().map(|usage| usage.tablets).sum()
}

#[test]
fn every_request_goes_to_its_shard() {
    for replication in [SIMPLE, TABLETS] {
        let target = serve(None);
        let (encoder, shards) = prepare(&target, replication);
        assert_eq!(shards.tablets.is_empty(), replication == SIMPLE);
        let load = closed(32, Amount::Ops(40_000));
        let drive = sharded(&target, &encoder, shards, load);
        let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
        assert_eq!((ok(&driven), told(&driven)), (40_000, 0));
        let counted = counted(&target);
        assert_eq!(misrouted(&target), 0, "{counted:?}");
        // What we say of it is what the target has counted.
        let mut said = vec![0; usize::from(SHARDS)];
        for load in &driven.shards {
            assert_eq!((load.host, load.astray), (target.local_addr(), 0));
            said[usize::from(load.shard)] += load.requests as i64;
        }
        assert_eq!(said, counted.iter().map(|(requests, _)| *requests).collect::<Vec<_>>());
        // Uniform keys: each has 10 000, give or take a tenth.
        assert!(said.iter().all(|count| (9_000..11_000).contains(count)), "{said:?}");
    }
}

#[test]
fn tablets_that_are_not_known_or_move_are_learnt_from_answers() {
    let target = serve(Some(Nanos::from_millis(50)));
    let (encoder, mut shards) = prepare(&target, TABLETS);
    shards.tablets = Default::default();
    let load = closed(16, Amount::Duration(Nanos::from_secs(2)));
    let drive = sharded(&target, &encoder, shards, load);
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    let (told, misrouted) = (told(&driven), misrouted(&target));
    assert_eq!(told as i64, misrouted, "each that came to the wrong shard was told of it");
    // Some forty moves, and eight tablets that nobody knew: each is found out by what is in flight
    // at that moment, at most.
    assert!((20..=(50 + 8) * 16).contains(&misrouted), "{misrouted}");
    assert!(ok(&driven) > 20 * misrouted as u64, "{} and {misrouted}", ok(&driven));
}

#[test]
fn a_host_that_joins_is_driven_by_its_shards() {
    let targets = [serve(None), serve(None)];
    let (encoder, shards) = prepare(&targets[0], SIMPLE);
    prepare(&targets[1], SIMPLE);
    let (first, second) = (targets[0].local_addr(), targets[1].local_addr());
    let load = closed(16, Amount::Duration(Nanos::from_millis(1500)));
    let drive = sharded(&targets[0], &encoder, shards, load);
    let roster = drive.databases[0].clone();
    let joining = std::thread::spawn(move || {
        std::thread::sleep(Nanos::from_millis(300).to_duration());
        let of = |(i, address)| HostInfo {
            address,
            datacenter: "datacenter1".to_owned(),
            rack: "rack1".to_owned(),
            host_id: [i; 16],
            up: true,
        };
        let hosts = [(1, first), (2, second)].map(of).to_vec();
        let ring = Ring::new(hosts, vec![(0, vec![0]), (i64::MAX, vec![1])]);
        assert_eq!(roster.unmet(&ring), [second]);
        let offer = control(second).offer().unwrap().unwrap().unwrap();
        assert_eq!(roster.update(&ring, &[(second, offer)]).joined, [second]);
    });
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    joining.join().unwrap();
    let (requests, misrouted) = (requests(&targets[1]), misrouted(&targets[1]));
    assert!(requests > ok(&driven) as i64 / 10, "{requests} of {}", ok(&driven));
    // Only while its connections came one by one, and until it had the statements.
    assert!(misrouted < requests / 10, "{misrouted} of {requests}");
    let said: u64 = driven.shards.iter().filter(|s| s.host == second).map(|s| s.requests).sum();
    let shards = driven.shards.iter().filter(|load| load.host == second).count();
    assert!((said as i64 - requests).abs() < requests / 10, "{said} of {requests}");
    assert_eq!(shards, usize::from(SHARDS));
}

#[test]
fn without_a_port_that_chooses_the_host_chooses() {
    let closed_port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let target = serve(None);
    let (encoder, shards) = prepare(&target, SIMPLE);
    // Nobody listens there; somebody does who does not look at our port; there is none.
    for port in [Some(closed_port), Some(target.local_addr().port()), None] {
        let mut shards = shards.clone();
        shards.offers.iter_mut().flatten().for_each(|offer| offer.port = port);
        let before = requests(&target);
        let mut drive = sharded(&target, &encoder, shards, closed(32, Amount::Ops(20_000)));
        drive.cpus.truncate(1);
        let (driven, ..) = run(&drive, vec![Unwitnessed; 1]);
        assert_eq!(ok(&driven), 20_000);
        assert_eq!(requests(&target) - before, 20_000);
        let astray: u64 = driven.shards.iter().map(|load| load.astray).sum();
        // The host gives each connection the shard with the fewest, so that most are covered.
        assert!(astray < 15_000, "{port:?}: {astray}");
    }
}

#[test]
fn connections_that_are_told_are_shared_out_over_the_shards() {
    let target = serve(None);
    let (encoder, shards) = prepare(&target, SIMPLE);
    let mut drive = sharded(&target, &encoder, shards, closed(8, Amount::Ops(8_000)));
    (drive.by_shard, drive.connections) = (false, 4);
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    assert_eq!(ok(&driven), 8_000);
    // Each of two workers reaches two of four shards.
    let astray: u64 = driven.shards.iter().map(|load| load.astray).sum();
    assert!((3_500..4_500).contains(&astray), "{astray}");
    assert_eq!(driven.shards.len(), usize::from(SHARDS));
}

#[test]
fn a_host_without_shards_says_so() {
    let target = rig::serve(Storage::Null);
    let mut hosts = [Control::connect(target.local_addr(), rig::SECOND).unwrap()];
    let offering = Offering::of(&mut hosts, &[table()]).unwrap();
    assert!(offering.shards.is_none() && offering.unread.is_empty());
}

/// A host that is ready for everybody and offers this to whoever asks.
fn offering(options: &[(&str, &[&str])]) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut supported = Vec::new();
    put::string_multimap(&mut supported, options);
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; HEADER_SIZE];
        while socket.read_exact(&mut head).is_ok() {
            let header = Header::decode(&head).unwrap().unwrap();
            socket.read_exact(&mut vec![0; header.body_size]).unwrap();
            let (opcode, body) = match header.opcode == Opcode::Options as u8 {
                true => (Opcode::Supported, &supported[..]),
                false => (Opcode::Ready, &[][..]),
            };
            let mut frame = Vec::new();
            Header::response(header.stream, opcode).frame(&mut frame, |out| out.extend(body));
            socket.write_all(&frame).unwrap();
        }
    });
    address
}

#[test]
fn what_makes_no_sense_is_told_and_not_routed_by() {
    for (shards, shard, why) in [
        ("0", "0", "a number from 1 to 65535"),
        ("99999999999999999999", "0", "a number from 1 to 65535"),
        ("4", "4", "below SCYLLA_NR_SHARDS"),
        ("four", "0", "a number from 1 to 65535"),
    ] {
        let address = offering(&[
            ("SCYLLA_NR_SHARDS", &[shards]),
            ("SCYLLA_SHARD", &[shard]),
            ("SCYLLA_SHARDING_IGNORE_MSB", &["12"]),
        ]);
        let mut hosts = [Control::connect(address, rig::SECOND).unwrap()];
        let offering = Offering::of(&mut hosts, &[table()]).unwrap();
        assert!(offering.shards.is_none());
        let [told] = &offering.unread[..] else { panic!("{offering:?}") };
        assert!(told.contains(why), "{told}");
    }
}
