//! The floor that `cargo xtask bench-op` compares wideload with: prepared frames, epoll, no
//! statistics.
//!
//! In: an address, a table that `wideload run` has loaded, connections, operations in flight.
//! Out: one line of JSON: `ops`, `cpu_us_per_op`, `syscalls_per_op`, `ops_s`. One thread, pinned.
//! All frames are encoded beforehand by wideload's own encoder, so that both send the same bytes;
//! per operation the loop copies one, patches its stream id, and reads the nine bytes of an
//! answer's header. It keeps no times, checks no outcome, has no timeout, and knows nothing of a
//! schedule: less cannot be done with these system calls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drive::{Control, Encoder, TableName, statement_texts};
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use units::{CpuSet, Nanos, clock};
use wire::cql::request::Request;
use wire::cql::{Consistency, HEADER_SIZE};
use workload::ycsb::{self, Properties};
use workload::{Phase, Sampler};

/// Frames that are sent again and again; enough that no cache of the server serves them all.
const FRAMES: usize = 50_000;

struct Arguments {
    address: SocketAddr,
    cpu: CpuSet,
    connections: usize,
    in_flight: usize,
    ops: u64,
    records: u64,
    properties: Vec<String>,
}

fn arguments() -> Arguments {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, cpu, connections, in_flight, ops, records, properties @ ..] = words.as_slice()
    else {
        panic!("bare_loop ADDRESS CPU CONNECTIONS IN_FLIGHT OPS RECORDS [PROPERTY=VALUE ...]");
    };
    Arguments {
        address: address.parse().expect("an address with a port"),
        cpu: cpu.parse().expect("a cpu"),
        connections: connections.parse().expect("a number of connections"),
        in_flight: in_flight.parse().expect("operations in flight"),
        ops: ops.parse().expect("a number of operations"),
        records: records.parse().expect("a number of records"),
        properties: properties.to_vec(),
    }
}

/// All frames one behind the other, and where each begins.
fn frames(a: &Arguments) -> (Vec<u8>, Vec<usize>) {
    let files: [&str; 0] = [];
    let properties = Properties::load(&files, &a.properties).expect("YCSB properties");
    let plan = ycsb::plan("a", &properties, Some(a.records), Some(a.ops)).expect("a plan").plan;
    let plan = Arc::new(plan);
    let table = TableName { keyspace: "ycsb".into(), table: plan.schema.table.clone() };
    let mut control = Control::connect(a.address, Nanos::from_secs(10)).expect("a target");
    let prepare = |text: &String| control.prepare(text).expect("a loaded table").id;
    let ids: Vec<_> = statement_texts(&plan, &table).iter().map(prepare).collect();
    let encoder = Encoder::new(plan.clone(), &table, &ids, Consistency::LocalOne);
    let mut sampler = Sampler::new(plan.clone(), Phase::Run, 1, 0, 1);
    let (mut bytes, mut starts) = (Vec::new(), vec![0]);
    let mut frame = vec![0; encoder.frame_size_max()];
    let mut key = vec![0; plan.key_size_max()];
    for _ in 0..FRAMES {
        let draw = sampler.draw().expect("a run has no end");
        let step = &plan.run[usize::from(draw.operation)].steps[0];
        let key_size = plan.write_key(draw.key, &mut key);
        let key = &key[..key_size];
        let size = encoder.encode(step.statement(&draw), &draw, key, 0, &mut frame);
        bytes.extend_from_slice(&frame[..size]);
        starts.push(bytes.len());
    }
    (bytes, starts)
}

struct Connection {
    socket: OwnedFd,
    received: Vec<u8>,
    end: usize,
    out: Vec<u8>,
}

fn connect(address: SocketAddr) -> Connection {
    let mut socket = TcpStream::connect(address).expect("a target");
    socket.set_nodelay(true).unwrap();
    let mut startup = Vec::new();
    Request::Startup(vec![("CQL_VERSION", "3.0.0")]).encode(0, &mut startup);
    socket.write_all(&startup).unwrap();
    socket.read_exact(&mut [0; HEADER_SIZE]).expect("READY");
    socket.set_nonblocking(true).unwrap();
    Connection { socket: socket.into(), received: vec![0; 256 << 10], end: 0, out: Vec::new() }
}

struct Bare {
    frames: Vec<u8>,
    starts: Vec<usize>,
    next: usize,
    issued: u64,
    ops: u64,
    syscalls: u64,
}

impl Bare {
    fn append(&mut self, stream: [u8; 2], out: &mut Vec<u8>) {
        if self.issued == self.ops {
            return;
        }
        self.issued += 1;
        let frame = &self.frames[self.starts[self.next]..self.starts[self.next + 1]];
        let at = out.len();
        out.extend_from_slice(frame);
        out[at + 2..at + 4].copy_from_slice(&stream);
        self.next = (self.next + 1) % FRAMES;
    }

    /// Takes the answers that have arrived; returns how many.
    fn turn(&mut self, c: &mut Connection) -> u64 {
        self.syscalls += 1;
        let (_, size) = rustix::net::recv(&c.socket, &mut c.received[c.end..], RecvFlags::empty())
            .expect("an answer");
        assert!(size > 0, "the target closed a connection");
        c.end += size;
        let (mut at, mut done) = (0, 0);
        while c.end - at >= HEADER_SIZE {
            let head = &c.received[at..at + HEADER_SIZE];
            let body = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize;
            if c.end - at < HEADER_SIZE + body {
                break;
            }
            let stream = [head[2], head[3]];
            at += HEADER_SIZE + body;
            done += 1;
            self.append(stream, &mut c.out);
        }
        c.received.copy_within(at..c.end, 0);
        c.end -= at;
        done
    }

    /// Sends what is there; the rest goes with the next send, as the sockets here are never full
    /// for long.
    fn send(&mut self, c: &mut Connection) {
        while !c.out.is_empty() {
            self.syscalls += 1;
            match rustix::net::send(&c.socket, &c.out, SendFlags::NOSIGNAL) {
                Ok(size) if size == c.out.len() => c.out.clear(),
                Ok(size) => drop(c.out.drain(..size)),
                Err(rustix::io::Errno::AGAIN) => std::thread::yield_now(),
                Err(error) => panic!("send: {error}"),
            }
        }
    }
}

fn main() {
    let a = arguments();
    let (frames, starts) = frames(&a);
    units::pin_current_thread(&a.cpu).expect("a cpu of this process");
    let mut bare = Bare { frames, starts, next: 0, issued: 0, ops: a.ops, syscalls: 0 };
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let mut connections: Vec<_> = (0..a.connections).map(|_| connect(a.address)).collect();
    for (index, c) in connections.iter().enumerate() {
        let data = EventData::new_u64(index as u64);
        epoll::add(&epoll, &c.socket, data, EventFlags::IN).unwrap();
    }
    let (began, cpu) = (clock::now(), clock::process_cpu());
    for stream in 0..a.in_flight {
        let c = &mut connections[stream % a.connections];
        bare.append(((stream / a.connections) as u16).to_be_bytes(), &mut c.out);
    }
    connections.iter_mut().for_each(|c| bare.send(c));
    let mut done = 0;
    let mut events = Vec::<Event>::with_capacity(64);
    while done < a.ops {
        events.clear();
        bare.syscalls += 1;
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let c = &mut connections[event.data.u64() as usize];
            done += bare.turn(c);
            bare.send(c);
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
