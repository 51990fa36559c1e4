//! Aerospike's protocol on the reference target: what clients of the vendor do not try.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use target::{
    After, Clock, Config, Faults, Handle, Protocol, RecordSession, Records, RecordsConfig, Server,
    SessionLimits,
};
use units::Bytes;
use wire::aerospike::{
    Command, Expiry, Key, Message, OpKind, PROTO_SIZE, Particle, ProtoHeader, ProtoKind, ReadLevel,
    ResultCode, UserKey, Wanted, WritePolicy, batch, begin, finish, info,
};

/// 2030-01-01 UTC, and what the protocol makes of it: seconds since 2010.
const NOW_S: i64 = 1_893_456_000;
const NOW_2010_S: u32 = 631_152_000;

/// A connection without a socket, to records of their own.
struct Client {
    records: Arc<Records>,
    session: RecordSession,
    now_us: Arc<AtomicI64>,
}

/// An answer about a record.
#[derive(Debug, PartialEq)]
struct Got {
    result: ResultCode,
    index: u32,
    generation: u32,
    void_time_s: u32,
    bins: Vec<(String, i64)>,
}

impl Client {
    fn new(memory_max: Bytes, faults: Faults) -> Self {
        let now_us = Arc::new(AtomicI64::new(NOW_S * 1_000_000));
        let records = Arc::new(Records::new(&RecordsConfig {
            namespaces: vec!["test".to_owned()],
            memory_max,
            clock: Clock::Manual(Arc::clone(&now_us)),
            addresses: vec![([127, 0, 0, 1], 3000).into()],
            instances: target::Instances::default(),
            faults,
        }));
        let limits = SessionLimits { frame_size_max: 1 << 20, backlog_max: 64 << 20 };
        let session = RecordSession::new(Arc::clone(&records), limits);
        Self { records, session, now_us }
    }

    fn plain() -> Self {
        Self::new(Bytes(1 << 30), Faults::default())
    }

    fn advance_s(&self, seconds: i64) {
        self.now_us.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }

    /// Sends whole requests; the bodies of the answers.
    fn send(&mut self, bytes: &[u8]) -> Vec<(ProtoKind, Vec<u8>)> {
        let mut out = Vec::new();
        let done = self.session.receive(bytes, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.after), (bytes.len(), After::Continue));
        bodies(&out)
    }

    fn ask(&mut self, command: &Command<'_>) -> Got {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        let answers = self.send(&bytes);
        assert_eq!(answers.len(), 1);
        got(&Message::decode(&answers[0].1).unwrap())
    }

    fn put(&mut self, key: i64, policy: &WritePolicy, value: i64) -> ResultCode {
        let key = Key::new("test", "s", UserKey::Integer(key));
        let ops = [(OpKind::Write, "n", Particle::Integer(value))];
        self.ask(&Command::operate(&key, policy, &ops)).result
    }

    fn get(&mut self, key: i64) -> Got {
        let key = Key::new("test", "s", UserKey::Integer(key));
        self.ask(&Command::get(&key, Wanted::All, ReadLevel::One, 0))
    }

    /// Sends a batch; its answers, and the result of its end.
    fn batch(&mut self, commands: &[Command<'_>]) -> (Vec<Got>, ResultCode) {
        let mut bytes = Vec::new();
        batch::encode(commands, 0, 0, &mut bytes);
        let mut all = Vec::new();
        let parts = self.send(&bytes);
        for (_, body) in &parts {
            let mut rest = &body[..];
            while !rest.is_empty() {
                let (message, next) = Message::decode_first(rest).unwrap();
                rest = next;
                all.push((message.header.info3, got(&message)));
            }
        }
        let (last, end) = all.pop().unwrap();
        assert_eq!(last, 1, "the last message says so");
        assert!(all.iter().all(|(bits, _)| *bits == 0));
        (all.into_iter().map(|(_, got)| got).collect(), end.result)
    }
}

fn bodies(mut bytes: &[u8]) -> Vec<(ProtoKind, Vec<u8>)> {
    let mut bodies = Vec::new();
    while let Some(header) = ProtoHeader::decode(bytes, 256 << 20).unwrap() {
        let (body, rest) = bytes[PROTO_SIZE..].split_at(header.size);
        bodies.push((header.kind, body.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty());
    bodies
}

fn got(message: &Message<'_>) -> Got {
    let number = |particle| match particle {
        Particle::Integer(value) => value,
        Particle::String(text) => text.len() as i64,
        // Of a write that tells of each operation.
        Particle::Null => 0,
        other => unreachable!("{other:?}"),
    };
    let bins = message
        .ops()
        .map(|op| (String::from_utf8(op.name.to_vec()).unwrap(), number(op.particle().unwrap())));
    Got {
        result: ResultCode(message.header.result),
        index: message.header.timeout_ms,
        generation: message.header.generation,
        void_time_s: message.header.ttl_s,
        bins: bins.collect(),
    }
}

fn expiring(expiry: Expiry) -> WritePolicy {
    WritePolicy { expiry, ..WritePolicy::default() }
}

#[test]
fn records_end_when_they_are_to() {
    let mut client = Client::plain();
    assert_eq!(client.put(1, &expiring(Expiry::Seconds(10)), 5), ResultCode::OK);
    client.advance_s(9);
    let there = client.get(1);
    assert_eq!((there.result, there.generation), (ResultCode::OK, 1));
    assert_eq!(there.void_time_s, NOW_2010_S + 10);
    assert_eq!(there.bins, [("n".to_owned(), 5)]);
    // Neither a write that keeps it nor a read moves it.
    assert_eq!(client.put(1, &expiring(Expiry::Keep), 6), ResultCode::OK);
    assert_eq!(client.get(1).void_time_s, NOW_2010_S + 10);
    client.advance_s(1);
    assert_eq!(client.get(1).result, ResultCode::NOT_FOUND);
    assert_eq!(client.records.used_bytes(), 0);
    // It begins anew.
    assert_eq!(client.put(1, &expiring(Expiry::Keep), 7), ResultCode::OK);
    assert_eq!((client.get(1).generation, client.get(1).void_time_s), (1, 0));
    let century = Expiry::Seconds(100 * 365 * 24 * 3600);
    assert_eq!(client.put(1, &expiring(century), 8), ResultCode::PARAMETER);
    assert_eq!(client.get(1).bins, [("n".to_owned(), 7)]);
}

#[test]
fn memory_is_bounded() {
    let mut client = Client::new(Bytes(100_000), Faults::default());
    let mut result = ResultCode::OK;
    let mut written = 0;
    while result == ResultCode::OK {
        let ends = if written % 2 == 0 { Expiry::Seconds(60) } else { Expiry::Never };
        result = client.put(written, &expiring(ends), 1);
        written += 1;
    }
    assert_eq!(result, ResultCode::OUT_OF_SPACE);
    assert!((400..800).contains(&written), "{written} records in 100 kB");
    let used = client.records.used_bytes();
    assert!((100_000..101_000).contains(&used), "{used}");
    // What is there is read, and may go.
    let key = Key::new("test", "s", UserKey::Integer(1));
    assert_eq!(client.get(1).result, ResultCode::OK);
    assert_eq!(client.ask(&Command::delete(&key, &WritePolicy::default())).result, ResultCode::OK);
    assert_eq!(client.put(1, &WritePolicy::default(), 1), ResultCode::OK);
    assert_eq!(client.put(-1, &WritePolicy::default(), 1), ResultCode::OUT_OF_SPACE);
    // What has ended makes room, though nobody asked for it.
    client.advance_s(60);
    assert_eq!(client.put(-1, &WritePolicy::default(), 1), ResultCode::OK);
    assert!(client.records.used_bytes() < used * 6 / 10);
}

#[test]
fn batches_come_back_whole() {
    let mut client = Client::plain();
    let text = vec![b'x'; 10_000];
    let keys: Vec<_> = (0..300).map(|key| Key::new("test", "s", UserKey::Integer(key))).collect();
    let ops = [(OpKind::Write, "t", Particle::String(&text))];
    let policy = WritePolicy::default();
    let puts: Vec<_> = keys.iter().map(|key| Command::operate(key, &policy, &ops)).collect();
    let (rows, end) = client.batch(&puts);
    assert_eq!(end, ResultCode::OK);
    assert!(
        rows.iter().enumerate().all(|(n, r)| (r.result, r.index) == (ResultCode::OK, n as u32))
    );
    // Three megabytes: more than one part.
    let gets: Vec<_> =
        keys.iter().map(|key| Command::get(key, Wanted::All, ReadLevel::One, 0)).collect();
    let (rows, end) = client.batch(&gets);
    assert_eq!((rows.len(), end), (300, ResultCode::OK));
    assert!(rows.iter().all(|row| row.bins == [("t".to_owned(), 10_000)]));
    let nowhere = Key::new("nowhere", "s", UserKey::Integer(1));
    let missing = Key::new("test", "s", UserKey::Integer(-1));
    let some = [
        Command::get(&nowhere, Wanted::All, ReadLevel::One, 0),
        Command::get(&missing, Wanted::All, ReadLevel::One, 0),
        Command::get(&keys[0], Wanted::Header, ReadLevel::One, 0),
    ];
    let (rows, end) = client.batch(&some);
    let results: Vec<_> = rows.iter().map(|row| row.result).collect();
    let wanted = [ResultCode::NAMESPACE, ResultCode::NOT_FOUND, ResultCode::OK];
    assert_eq!((&results[..], end), (&wanted[..], ResultCode::OK));
    assert!(rows[2].bins.is_empty() && rows[2].generation == 1);
}

#[test]
fn what_makes_no_sense_is_answered_so() {
    let mut client = Client::plain();
    assert_eq!(client.put(1, &WritePolicy::default(), 5), ResultCode::OK);
    let key = Key::new("test", "s", UserKey::Integer(1));
    let mut put = Vec::new();
    let ops = [(OpKind::Write, "n", Particle::Integer(5))];
    Command::operate(&key, &WritePolicy::default(), &ops).encode(&mut put);
    let change = |at: usize, byte: u8| {
        let mut bytes = put.clone();
        let at = if at > 30 { bytes.len() - 17 + (at - 31) } else { at };
        bytes[at] = byte;
        bytes
    };
    // Bytes of the header, and of the operation: size (31 to 34), kind, particle, version, name.
    for (at, byte, result) in [
        (8, 23, ResultCode::PARAMETER),
        (10, 0, ResultCode::PARAMETER),
        (10, 0x11, ResultCode::ENTERPRISE_ONLY),
        (12, 1, ResultCode::ENTERPRISE_ONLY),
        (29, 2, ResultCode::PARAMETER),
        (34, 14, ResultCode::PARAMETER),
        (35, 3, ResultCode::UNSUPPORTED),
        (35, 99, ResultCode::UNSUPPORTED),
        (36, 99, ResultCode::PARAMETER),
        (36, 17, ResultCode::PARAMETER),
        (36, 20, ResultCode::PARAMETER),
    ] {
        let answers = client.send(&change(at, byte));
        let message = Message::decode(&answers[0].1).unwrap();
        assert_eq!(ResultCode(message.header.result), result, "{byte} at {at}");
    }
    assert_eq!(client.get(1).bins, [("n".to_owned(), 5)]);
    // Users are not known; info is.
    let mut admin = Vec::new();
    let start = begin(&mut admin);
    admin.extend([0; 16]);
    finish(&mut admin, start, ProtoKind::Admin);
    info::put_request(&["node", "nonsense", "namespace/test"], &mut admin);
    let answers = client.send(&admin);
    assert_eq!((answers[0].0, answers[0].1[1]), (ProtoKind::Admin, 51));
    let lines: Vec<_> = info::lines(&answers[1].1).unwrap().collect();
    assert_eq!(lines[0], ("node", "BB90BB87F000001"));
    assert!(lines[1].1.starts_with("ERROR:4:") && lines[2].1.contains(";objects=1;"));
    // What is another protocol ends the connection.
    for wrong in [&b"GET / HTTP/1.1\r\n"[..], &[2, 9, 0, 0, 0, 0, 0, 0], &[2, 3, 0, 0, 1, 0, 0, 0]]
    {
        let mut out = Vec::new();
        let done = client.session.receive(wrong, usize::MAX, &mut out);
        assert_eq!((done.after, done.consumed, out.len()), (After::Close, wrong.len(), 0));
    }
}

#[test]
fn faults_are_result_codes() {
    let faults = Faults { shares: vec!["overloaded=1".parse().unwrap()], ..Faults::default() };
    let mut client = Client::new(Bytes(1 << 30), faults);
    assert_eq!(client.put(1, &WritePolicy::default(), 5), ResultCode::DEVICE_OVERLOAD);
    let key = Key::new("test", "s", UserKey::Integer(1));
    let (rows, end) = client.batch(&[Command::get(&key, Wanted::All, ReadLevel::One, 0)]);
    assert_eq!((rows.len(), end), (0, ResultCode::DEVICE_OVERLOAD));
    assert_eq!(client.records.used_bytes(), 0);
}

fn serve() -> Handle {
    // The suite runs these tests with each engine.
    let engine = std::env::var("WIDELOAD_TEST_ENGINE");
    let io = engine.map_or_else(|_| ring::Engine::Epoll, |engine| engine.parse().unwrap());
    let namespaces = vec!["test".to_owned()];
    let protocol = Protocol::Aerospike { namespaces, instances: target::Instances::default() };
    let config = Config { io, threads: 2, protocol, ..Config::new(([127, 0, 0, 1], 0).into()) };
    Server::bind(config).unwrap().start().unwrap()
}

fn read_body(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; PROTO_SIZE];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; ProtoHeader::decode(&head, 1 << 20).unwrap().unwrap().size];
    stream.read_exact(&mut body).unwrap();
    body
}

#[test]
fn many_connections_add_to_one_record() {
    let server = serve();
    let address = server.local_addr();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let key = Key::new("test", "", UserKey::String("sum"));
                let ops = [(OpKind::Increment, "n", Particle::Integer(1))];
                let mut bytes = Vec::new();
                // Ten at a time: answers come in the order of requests.
                for _ in 0..10 {
                    Command::operate(&key, &WritePolicy::default(), &ops).encode(&mut bytes);
                }
                for _ in 0..20 {
                    stream.write_all(&bytes).unwrap();
                    for _ in 0..10 {
                        let body = read_body(&mut stream);
                        assert_eq!(Message::decode(&body).unwrap().header.result, 0);
                    }
                }
            });
        }
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let key = Key::new("test", "", UserKey::String("sum"));
    let mut bytes = Vec::new();
    Command::get(&key, Wanted::Bins(&["n"]), ReadLevel::One, 0).encode(&mut bytes);
    // A byte at a time.
    for byte in bytes {
        stream.write_all(&[byte]).unwrap();
    }
    let sum = got(&Message::decode(&read_body(&mut stream)).unwrap());
    assert_eq!((sum.generation, &sum.bins[..]), (1600, &[("n".to_owned(), 1600)][..]));
    // Another protocol is hung up on.
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    server.join().unwrap();
}
