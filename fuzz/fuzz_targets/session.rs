//! A connection to the reference target: CQL texts, or raw frames, from the first byte on.
//!
//! Input: lines of CQL, each sent as a QUERY to an engine that has one table; or, behind a zero
//! byte, bytes as they come from a socket. Must hold: nothing panics, every statement gets exactly
//! one answer that the client's decoder understands, and what is stored stays within its bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use target::{Clock, Engine, EngineConfig, Session, SessionLimits, Storage};
use units::Bytes;
use wire::cql::request::{QueryParameters, Request};
use wire::cql::response::Response;
use wire::cql::{Consistency, HEADER_SIZE, Header};

const SCHEMA: [&str; 3] = [
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE k.t (a int, b int, c text, l list<int>, m map<text, int>, s set<int>, \
     PRIMARY KEY (a, b))",
    "USE k",
];

fuzz_target!(|input: &[u8]| {
    let engine = Arc::new(
        Engine::new(EngineConfig {
            storage: Storage::Memory,
            memory_max: Bytes(1 << 20),
            prepared_max: 100,
            clock: Clock::Manual(Arc::default()),
            address: ([127, 0, 0, 1], 9042).into(),
            protocol_max: 5,
            faults: target::Faults::default(),
            is_tls: false,
            scylla: None,
        })
        .unwrap(),
    );
    let limits = SessionLimits { frame_size_max: 1 << 16, backlog_max: 1 << 20 };
    let mut session = Session::new(engine.clone(), engine.counters(), limits);
    let mut out = Vec::new();
    let mut frame = Vec::new();
    Request::Startup(vec![("CQL_VERSION", "3.0.0")]).encode(0, &mut frame);
    session.receive(&frame, usize::MAX, &mut out);
    if let Some(raw) = input.strip_prefix(&[0]) {
        session.receive(raw, usize::MAX, &mut out);
        return;
    }
    SCHEMA.iter().for_each(|text| ask(&mut session, text));
    let text = String::from_utf8_lossy(input);
    text.lines().take(50).for_each(|line| ask(&mut session, line));
    assert!(engine.memory_used().0 < 4 << 20, "{:?}", engine.memory_used());
});

fn ask(session: &mut Session, text: &str) {
    let (mut frame, mut out) = (Vec::new(), Vec::new());
    Request::Query(text, QueryParameters::plain(Consistency::One)).encode(7, &mut frame);
    if frame.len() > 1 << 16 {
        return;
    }
    let done = session.receive(&frame, usize::MAX, &mut out);
    assert_eq!(done.consumed, frame.len());
    let header = Header::decode(&out).unwrap().expect("an answer");
    assert_eq!((header.stream, out.len() - HEADER_SIZE), (7, header.body_size));
    if let Response::Rows(rows) = Response::decode(&header, &out[HEADER_SIZE..]).unwrap() {
        rows.collect().unwrap();
    }
}
