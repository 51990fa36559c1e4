//! What keeps an operation that is due from being sent is counted: operations in flight, or the
//! stream ids of a connection.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{Amount, Drive, Encoder, Interval, Observer, Unwitnessed};
use rig::{drive, open, ops, plan};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use units::Nanos;
use wire::cql::{Consistency, HEADER_SIZE, Header, Opcode};

/// A target that lets one connection in and then swallows everything.
fn swallowing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; HEADER_SIZE];
        stream.read_exact(&mut head).unwrap();
        let startup = Header::decode(&head).unwrap().unwrap();
        stream.read_exact(&mut vec![0; startup.body_size]).unwrap();
        let ready = Header::response(startup.stream, Opcode::Ready).encode();
        stream.write_all(&ready).unwrap();
        io::copy(&mut stream, &mut io::sink())
    });
    address
}

struct Unobserved;

impl Observer for Unobserved {
    fn interval(&mut self, _: Interval<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// 50,000 operations over one connection: how often which bound was full.
fn full(in_flight_max: usize) -> (u64, u64) {
    let plan = plan("c", &[], 100, None);
    let ids = vec![b"0123456789abcdef".to_vec(); plan.statements.len()];
    let encoder = Arc::new(Encoder::new(plan, &rig::table(), &ids, Consistency::One));
    let load = open("100k/s", Amount::Duration(Nanos::from_millis(500)), in_flight_max);
    let drive = drive(swallowing(), &encoder, 1, load);
    let drive = Drive { connections: 1, timeout: Nanos::from_secs(3), ..drive };
    let run = drive::run(&drive, vec![Unwitnessed], &mut Unobserved, &Arc::default());
    let (driven, _) = run.unwrap();
    assert_eq!(ops(&driven), 50_000);
    (driven.usage[0].full_in_flight, driven.usage[0].full_streams)
}

#[test]
fn sixteen_in_flight_are_few() {
    let (in_flight, streams) = full(16);
    assert!(in_flight > 0 && streams == 0, "{in_flight} {streams}");
}

#[test]
fn a_connection_has_32768_stream_ids() {
    let (in_flight, streams) = full(60_000);
    assert!(in_flight == 0 && streams > 0, "{in_flight} {streams}");
}
