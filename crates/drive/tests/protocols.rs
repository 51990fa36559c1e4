//! Protocol v5 and compression on the data plane: what is written comes back, however the bytes
//! arrive; what came to harm, or is not spoken, is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{
    Access, Amount, Control, ControlError, DriveError, Encoder, LinkError, Refusal, Unwitnessed,
};
use record::Outcome;
use rig::{SECOND, closed, control, drive, load, ok, ops, plan, prepare_in, run, serve, speaking};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use target::{Config, Server, Storage};
use units::{Credentials, Secret};
use wire::cql::framing::{Incoming, Outgoing};
use wire::cql::{Compression, HEADER_SIZE, Header, Opcode, Protocol, put};

fn all() -> [Protocol; 4] {
    [
        speaking(4, Compression::Lz4),
        speaking(4, Compression::Snappy),
        speaking(5, Compression::None),
        speaking(5, Compression::Lz4),
    ]
}

/// What a relay does with a piece of so many bytes: lengths of the pieces that it sends on.
type Cut = fn(usize) -> usize;

/// Passes on what goes to the target and back, in pieces; `harm` flips a bit of what comes back,
/// once, behind so many bytes, and ends that connection behind them.
fn relay(to: SocketAddr, cut: Cut, harm: Option<u64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Of all connections, so that it is done once.
    let back = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (client, target) = (stream.unwrap(), TcpStream::connect(to).unwrap());
            client.set_nodelay(true).unwrap();
            target.set_nodelay(true).unwrap();
            let (c, t) = (client.try_clone().unwrap(), target.try_clone().unwrap());
            std::thread::spawn(move || pass(c, t, cut, |_| true));
            let back = back.clone();
            std::thread::spawn(move || {
                pass(target, client, cut, |bytes: &mut [u8]| {
                    let before = back.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    let at = harm.and_then(|at| at.checked_sub(before));
                    let byte = at.and_then(|at| bytes.get_mut(at as usize));
                    byte.map(|byte| *byte ^= 4).is_none()
                });
            });
        }
    });
    address
}

/// Until an end closes, or `touch` of a piece wants no more.
fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    cut: Cut,
    mut touch: impl FnMut(&mut [u8]) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(size) = from.read(&mut bytes) {
        if size == 0 {
            break;
        }
        let more = touch(&mut bytes[..size]);
        let mut rest = &bytes[..size];
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(cut(rest.len()).clamp(1, rest.len()));
            if to.write_all(piece).is_err() {
                return;
            }
            rest = behind;
        }
        if !more {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

const VERIFIED: [&str; 3] = ["dataintegrity=true", "fieldcount=3", "fieldlength=20"];

fn loads_and_reads(protocol: Protocol, address: SocketAddr, workload: &str, ops_wanted: u64) {
    let plan = plan(workload, &VERIFIED, 500, Some(ops_wanted));
    let encoder = prepare_in(protocol, address, &plan);
    assert_eq!(ok(&load(address, &encoder, 2)), 500, "{protocol}");
    let drive = drive(address, &encoder, 2, closed(16, Amount::Ops(ops_wanted)));
    let (driven, ..) = run(&drive, vec![Unwitnessed; 2]);
    let seen = (ops(&driven), ok(&driven));
    assert_eq!(seen, (ops_wanted, ops_wanted), "{protocol}: {:?}", driven.first_error);
}

#[test]
fn all_six_workloads_read_what_was_written_in_v5_with_lz4() {
    for workload in ["a", "b", "c", "d", "e", "f"] {
        let target = serve(Storage::Memory);
        loads_and_reads(speaking(5, Compression::Lz4), target.local_addr(), workload, 4000);
    }
}

#[test]
fn every_protocol_reads_what_was_written() {
    for protocol in all() {
        let target = serve(Storage::Memory);
        loads_and_reads(protocol, target.local_addr(), "a", 4000);
    }
}

#[test]
fn segments_may_be_split_and_coalesced_anywhere() {
    let cuts: [Cut; 2] = [|_| 7, |left| left / 2];
    for protocol in all() {
        for cut in cuts {
            let target = serve(Storage::Memory);
            loads_and_reads(protocol, relay(target.local_addr(), cut, None), "a", 1000);
        }
    }
}

#[test]
fn a_row_over_several_segments_comes_back() {
    for protocol in all() {
        let target = serve(Storage::Memory);
        let properties = ["dataintegrity=true", "fieldcount=2", "fieldlength=200000"];
        let plan = plan("f", &properties, 20, Some(100));
        let encoder = prepare_in(protocol, target.local_addr(), &plan);
        assert_eq!(ok(&load(target.local_addr(), &encoder, 1)), 20);
        let drive = drive(target.local_addr(), &encoder, 1, closed(4, Amount::Ops(100)));
        let (driven, ..) = run(&drive, vec![Unwitnessed]);
        assert_eq!((ops(&driven), ok(&driven)), (100, 100), "{protocol}");
    }
}

#[test]
fn a_segment_that_came_to_harm_costs_its_connection_and_no_more() {
    let protocol = speaking(5, Compression::None);
    let target = serve(Storage::Memory);
    let plan = plan("c", &VERIFIED, 200, Some(4000));
    let encoder = prepare_in(protocol, target.local_addr(), &plan);
    load(target.local_addr(), &encoder, 1);
    let address = relay(target.local_addr(), |left| left, Some(50_000));
    let drive = drive(address, &encoder, 1, closed(8, Amount::Ops(4000)));
    let (driven, ..) = run(&drive, vec![Unwitnessed]);
    let lost = driven.total.ops[0].count(Outcome::ConnectionLost);
    assert!((1..=8).contains(&lost), "{lost} lost of 8 in flight");
    assert_eq!(ok(&driven) + lost, 4000);
    assert_eq!(driven.usage[0].connections_lost, 1);
    let error = driven.first_error.unwrap();
    assert!(error.contains("CRC"), "{error}");
}

#[test]
fn a_statement_that_was_forgotten_is_prepared_again() {
    for protocol in all() {
        let target = serve(Storage::Memory);
        let plan = plan("a", &VERIFIED, 200, Some(2000));
        let encoder = prepare_in(protocol, target.local_addr(), &plan);
        load(target.local_addr(), &encoder, 1);
        control(target.local_addr()).query("ALTER TABLE ycsb.usertable ADD more text").unwrap();
        let drive = drive(target.local_addr(), &encoder, 1, closed(8, Amount::Ops(2000)));
        let (driven, ..) = run(&drive, vec![Unwitnessed]);
        assert_eq!(ok(&driven), 2000, "{protocol}: {:?}", driven.first_error);
        assert!(driven.usage[0].prepares > 0);
    }
}

#[test]
fn what_the_target_does_not_speak_is_told_with_the_cure() {
    let config = Config { protocol_max: 4, ..Config::new("127.0.0.1:0".parse().unwrap()) };
    let target = Server::bind(config).unwrap().start().unwrap();
    let v5 = speaking(5, Compression::Lz4);
    let error =
        Control::speaking(v5, target.local_addr(), SECOND, &Access::default(), &Arc::default());
    let error = error.unwrap_err();
    assert!(matches!(error, ControlError::NotLetIn { .. }), "{error:?}");
    for words in ["does not take protocol v5 with lz4", "--protocol 4", "--compression none"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // The data plane too, when it comes to that.
    let plan = plan("c", &VERIFIED, 10, Some(10));
    let ids = vec![b"0123456789abcdef".to_vec(); plan.statements.len()];
    let id = |id: Vec<u8>| drive::PreparedId {
        id: id.clone(),
        metadata_id: id,
        values: Vec::new(),
        columns: Vec::new(),
    };
    let ids: Vec<_> = ids.into_iter().map(id).collect();
    let level = wire::cql::Consistency::One;
    let encoder = Arc::new(Encoder::speaking(v5, plan, &rig::table(), &ids, level));
    let drive = drive(target.local_addr(), &encoder, 1, closed(1, Amount::Ops(10)));
    let mut counts = rig::Counts::default();
    let refused = drive::run(&drive, vec![Unwitnessed], &mut counts, &Arc::default());
    match refused.unwrap_err() {
        DriveError::Link(LinkError::Refused { refusal: Refusal::Protocol { .. }, .. }) => {}
        other => panic!("{other}"),
    }
}

/// Asks for a password outside of segments, takes and answers it inside.
fn strict(protocol: Protocol) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; HEADER_SIZE];
        stream.read_exact(&mut head).unwrap();
        let startup = Header::decode(&head).unwrap().unwrap();
        assert_eq!((startup.version, startup.opcode), (5, Opcode::Startup as u8));
        stream.read_exact(&mut vec![0; startup.body_size]).unwrap();
        let answer = |opcode, body: &[u8]| {
            let mut out = Vec::new();
            let header = Header::response(0, opcode).at(5);
            header.frame(&mut out, |out| out.extend_from_slice(body));
            out
        };
        let mut who = Vec::new();
        put::string(&mut who, "a.Mock");
        stream.write_all(&answer(Opcode::Authenticate, &who)).unwrap();
        let mut incoming = Incoming::new(protocol, 1 << 20);
        let mut outgoing = Outgoing::new(protocol);
        let (mut received, mut buffer) = (Vec::new(), [0; 1000]);
        for (expected, reply) in [
            (Opcode::AuthResponse, answer(Opcode::AuthSuccess, &[0xFF; 4])),
            (Opcode::Query, answer(Opcode::Result, &[0, 0, 0, 1])),
        ] {
            while incoming.frames(&received).is_empty() {
                let size = stream.read(&mut buffer).unwrap();
                received.extend_from_slice(&buffer[..size]);
                let consumed = incoming.advance(&received).unwrap();
                received.drain(..consumed);
            }
            let frame = incoming.frames(&received).to_vec();
            assert_eq!((frame[0], frame[4]), (5, expected as u8));
            let consumed = incoming.take(frame.len());
            received.drain(..consumed);
            let mut wired = Vec::new();
            outgoing.encode(&reply, &mut wired);
            stream.write_all(&wired).unwrap();
        }
    });
    address
}

#[test]
fn a_password_goes_in_a_segment() {
    for compression in [Compression::None, Compression::Lz4] {
        let protocol = speaking(5, compression);
        let ann = Credentials { user: "ann".into(), password: Secret::new("hunter2") };
        let address = strict(protocol);
        let stop = Arc::default();
        let mut control = Control::speaking(protocol, address, SECOND, &ann.into(), &stop).unwrap();
        assert!(control.query("anything").unwrap().is_empty());
    }
}
