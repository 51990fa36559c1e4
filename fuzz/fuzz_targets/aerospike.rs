//! A connection of Aerospike's protocol to the reference target, and everything that reads it.
//!
//! Input: bytes as they come from a socket, which are read as one body too. Must hold: nothing
//! panics, nothing is allocated by a length that the bytes only claim, the answers are messages
//! that a client understands, and what is stored stays within its bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use target::{Clock, RecordSession, Records, RecordsConfig, SessionLimits};
use units::Bytes;
use wire::aerospike::info::{self, Peers, Replicas};
use wire::aerospike::{Message, PROTO_SIZE, ProtoHeader, ProtoKind, batch, decompress, msgpack};

fuzz_target!(|input: &[u8]| {
    read(input);
    let records = Arc::new(Records::new(&RecordsConfig {
        namespaces: vec!["test".to_owned()],
        memory_max: Bytes(1 << 20),
        clock: Clock::Manual(Arc::default()),
        addresses: vec![([127, 0, 0, 1], 3000).into()],
        instances: target::Instances::default(),
        faults: target::Faults::default(),
    }));
    let limits = SessionLimits { frame_size_max: 1 << 16, backlog_max: 1 << 20 };
    let mut session = RecordSession::new(Arc::clone(&records), limits);
    let mut out = Vec::new();
    session.receive(input, usize::MAX, &mut out);
    assert!(records.used_bytes() < 2 << 20, "{}", records.used_bytes());
    answers(&out);
});

/// Everything that a reader makes of a body.
fn read(body: &[u8]) {
    let message = Message::decode(body);
    for field in message.iter().flat_map(|message| message.fields()) {
        batch::Rows::decode(field.bytes).into_iter().flatten().for_each(drop);
    }
    message.iter().flat_map(|message| message.ops()).for_each(|op| drop(op.particle()));
    let _ = msgpack::check(body, msgpack::Shape::List);
    let _ = msgpack::check(body, msgpack::Shape::Map);
    let _ = decompress(body, 1 << 16, &mut Vec::new());
    let lines = info::lines(body).into_iter().flatten();
    lines.for_each(|(_, value)| {
        drop(Replicas::decode(value));
        drop(Peers::decode(value));
    });
}

/// Answers are whole, and of the kinds that a client knows.
fn answers(mut out: &[u8]) {
    while let Some(header) = ProtoHeader::decode(out, usize::MAX >> 1).unwrap() {
        let (body, rest) = out[PROTO_SIZE..].split_at(header.size);
        out = rest;
        match header.kind {
            ProtoKind::Message => {
                let mut rest = body;
                while !rest.is_empty() {
                    let (message, next) = Message::decode_first(rest).unwrap();
                    assert!(message.ops().all(|op| op.particle().is_ok()));
                    rest = next;
                }
            }
            ProtoKind::Info => info::lines(body).unwrap().for_each(drop),
            ProtoKind::Admin | ProtoKind::Compressed => {}
        }
    }
    assert!(out.is_empty());
}
