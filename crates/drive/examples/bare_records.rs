//! The floor that `cargo xtask bench-op --target aerospike` compares wideload with: messages that
//! are made beforehand, epoll, one request at a time on each connection, no statistics.
//!
//! In: an address, a set that `wideload run` has loaded, connections. Out: one line of JSON:
//! `ops`, `cpu_us_per_op`, `syscalls_per_op`, `ops_s`. One thread, pinned. All messages are encoded
//! by wideload's own encoder, so that both send the same bytes; per operation the loop sends one
//! and receives the answer to it, of which it reads the eight bytes that say how long it is. It
//! keeps no times, checks no outcome, has no timeout, and knows nothing of a schedule: less cannot
//! be done with these system calls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drive::{RecordEncoder, RecordPlace, Writes};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use units::{CpuSet, clock};
use wire::aerospike::{PROTO_SIZE, ProtoHeader, RecordExists};
use workload::ycsb::{self, Properties};
use workload::{Phase, Sampler};

/// Messages that are sent again and again; enough that no cache of the server serves them all.
const MESSAGES: usize = 50_000;

struct Arguments {
    address: SocketAddr,
    cpu: CpuSet,
    connections: usize,
    ops: u64,
    records: u64,
    properties: Vec<String>,
}

fn arguments() -> Arguments {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, cpu, connections, ops, records, properties @ ..] = words.as_slice() else {
        panic!("bare_records ADDRESS CPU CONNECTIONS OPS RECORDS [PROPERTY=VALUE ...]");
    };
    Arguments {
        address: address.parse().expect("an address with a port"),
        cpu: cpu.parse().expect("a cpu"),
        connections: connections.parse().expect("a number of connections"),
        ops: ops.parse().expect("a number of operations"),
        records: records.parse().expect("a number of records"),
        properties: properties.to_vec(),
    }
}

/// All messages one behind the other, and where each begins.
fn messages(a: &Arguments) -> (Vec<u8>, Vec<usize>) {
    let files: [&str; 0] = [];
    let properties = Properties::load(&files, &a.properties).expect("YCSB properties");
    let plan = ycsb::plan("a", &properties, Some(a.records), Some(a.ops)).expect("a plan").plan;
    let plan = Arc::new(plan);
    let place = RecordPlace { namespace: "test".to_owned(), set: plan.schema.table.clone() };
    let (insert, update) = (RecordExists::CreateOnly, RecordExists::Update);
    let writes = Writes { insert, update, server_timeout_ms: 60_000 };
    let encoder = RecordEncoder::new(plan.clone(), place, writes).expect("a plan over records");
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1);
    let (mut bytes, mut starts) = (Vec::new(), vec![0]);
    let mut message = vec![0; encoder.frame_size_max()];
    let mut key = vec![0; plan.key_room()];
    for _ in 0..MESSAGES {
        let draw = sampler.draw().expect("a run has no end");
        let step = &plan.run[usize::from(draw.operation)].steps[0];
        let key_size = plan.write_key(draw.key, &mut key);
        let key = &key[..key_size];
        let digest = encoder.digest(key);
        let size = encoder.encode(step.statement(&draw), &draw, key, &digest, &mut message);
        bytes.extend_from_slice(&message[..size]);
        starts.push(bytes.len());
    }
    (bytes, starts)
}

struct Bare {
    messages: Vec<u8>,
    starts: Vec<usize>,
    next: usize,
    left: u64,
    syscalls: u64,
}

impl Bare {
    /// Sends the next message, if there is one left to send.
    fn send(&mut self, socket: &OwnedFd) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.syscalls += 1;
        let message = &self.messages[self.starts[self.next]..self.starts[self.next + 1]];
        let size = rustix::net::send(socket, message, SendFlags::NOSIGNAL).expect("a send");
        assert_eq!(size, message.len(), "a socket with nothing under way takes a message");
        self.next = (self.next + 1) % MESSAGES;
    }

    /// Receives on a connection; whether its answer is whole.
    fn receive(&mut self, socket: &OwnedFd, received: &mut Vec<u8>, space: &mut [u8]) -> bool {
        self.syscalls += 1;
        let (_, size) =
            rustix::net::recv(socket, &mut *space, RecvFlags::empty()).expect("an answer");
        assert!(size > 0, "the target closed a connection");
        let whole = |bytes: &[u8]| {
            let header = ProtoHeader::decode(bytes, 1 << 20).expect("an answer");
            header.is_some_and(|header| bytes.len() >= PROTO_SIZE + header.size)
        };
        if received.is_empty() && whole(&space[..size]) {
            return true;
        }
        received.extend_from_slice(&space[..size]);
        let is_whole = whole(received);
        if is_whole {
            received.clear();
        }
        is_whole
    }
}

fn main() {
    let a = arguments();
    let (messages, starts) = messages(&a);
    units::pin_current_thread(&a.cpu).expect("a cpu of this process");
    let mut bare = Bare { messages, starts, next: 0, left: a.ops, syscalls: 0 };
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let connect = |_| {
        let socket = TcpStream::connect(a.address).expect("a target");
        socket.set_nodelay(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        (OwnedFd::from(socket), Vec::new())
    };
    let mut connections: Vec<_> = (0..a.connections).map(connect).collect();
    for (index, (socket, _)) in connections.iter().enumerate() {
        let data = EventData::new_u64(index as u64);
        epoll::add(&epoll, socket, data, EventFlags::IN).unwrap();
    }
    let mut space = vec![0; 16 << 10];
    let (began, cpu) = (clock::now(), clock::process_cpu());
    connections.iter().for_each(|(socket, _)| bare.send(socket));
    let mut done = 0;
    let mut events = Vec::<Event>::with_capacity(512);
    while done < a.ops {
        events.clear();
        bare.syscalls += 1;
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let (socket, received) = &mut connections[event.data.u64() as usize];
            if bare.receive(socket, received, &mut space) {
                done += 1;
                bare.send(socket);
            }
        }
    }
    let (took, cpu) = (clock::now() - began, clock::process_cpu() - cpu);
    let us_per_op = cpu.0 as f64 / 1e3 / done as f64;
    let ops_s = done as f64 / took.as_secs_f64();
    let syscalls = bare.syscalls as f64 / done as f64;
    println!(
        "{{\"ops\": {done}, \"cpu_us_per_op\": {us_per_op:.4}, \"syscalls_per_op\": {syscalls:.4}, \
         \"ops_s\": {ops_s:.1}}}"
    );
}
