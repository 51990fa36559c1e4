//! Protocol v5 and compression at the reference target, without sockets: the handshake as it
//! stands, everything behind it in segments or with compressed bodies.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::{START_S, Target, int};
use target::{After, Session, Storage};
use wire::cql::framing::{Incoming, Outgoing};
use wire::cql::request::{Batch, BatchKind, BatchStatement, PreparedRef, QueryParameters, Request};
use wire::cql::response::{Prepared, Response};
use wire::cql::segment::SegmentHeader;
use wire::cql::{Compression, Consistency, ErrorCode, HEADER_SIZE, Header, Protocol, Value};

const FRAME_SIZE_MAX: usize = 1 << 20;

fn all() -> [Protocol; 5] {
    [
        Protocol::default(),
        Protocol::new(4, Compression::Lz4).unwrap(),
        Protocol::new(4, Compression::Snappy).unwrap(),
        Protocol::new(5, Compression::None).unwrap(),
        Protocol::new(5, Compression::Lz4).unwrap(),
    ]
}

fn plain() -> QueryParameters<'static> {
    QueryParameters::plain(Consistency::One)
}

/// A client beyond the handshake.
struct Client {
    session: Session,
    protocol: Protocol,
    outgoing: Outgoing,
    incoming: Incoming,
}

fn startup(protocol: Protocol) -> Vec<u8> {
    let mut options = vec![("CQL_VERSION", "3.0.0")];
    if protocol.compression() != Compression::None {
        options.push(("COMPRESSION", protocol.compression().name()));
    }
    let mut frame = Vec::new();
    Request::Startup(options).encode_at(protocol.version(), 0, &mut frame);
    frame
}

impl Client {
    fn new(target: &Target, protocol: Protocol) -> Self {
        let mut session = target.raw_client().session;
        let mut out = Vec::new();
        let done = session.receive(&startup(protocol), usize::MAX, &mut out);
        assert_eq!(done.after, After::Continue);
        // Bare, in the version that was asked for.
        assert_eq!(out, [0x80 | protocol.version(), 0, 0, 0, 2, 0, 0, 0, 0]);
        let outgoing = Outgoing::new(protocol);
        let incoming = Incoming::new(protocol, FRAME_SIZE_MAX);
        Self { session, protocol, outgoing, incoming }
    }

    fn wired(&mut self, requests: &[Request<'_>]) -> Vec<u8> {
        let (mut frames, mut wired) = (Vec::new(), Vec::new());
        for (stream, request) in requests.iter().enumerate() {
            request.encode_at(self.protocol.version(), stream as i16, &mut frames);
        }
        self.outgoing.encode(&frames, &mut wired);
        wired
    }

    /// The frames in what the target has sent.
    fn frames(&mut self, mut wired: Vec<u8>) -> Vec<(Header, Vec<u8>)> {
        let mut frames = Vec::new();
        loop {
            let consumed = self.incoming.advance(&wired).unwrap();
            wired.drain(..consumed);
            let bytes = self.incoming.frames(&wired);
            let Some(header) = Header::decode(bytes).unwrap() else { break };
            let size = HEADER_SIZE + header.body_size;
            frames.push((header, bytes[HEADER_SIZE..size].to_vec()));
            let consumed = self.incoming.take(size);
            wired.drain(..consumed);
        }
        assert!(wired.is_empty(), "{} bytes left", wired.len());
        frames
    }

    fn ask(&mut self, request: &Request<'_>) -> (Header, Vec<u8>) {
        let wired = self.wired(std::slice::from_ref(request));
        let mut out = Vec::new();
        let done = self.session.receive(&wired, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.answered, done.after), (wired.len(), 1, After::Continue));
        let mut frames = self.frames(out);
        assert_eq!(frames.len(), 1);
        let (header, body) = frames.remove(0);
        assert_eq!(header.version, 0x80 | self.protocol.version());
        (header, body)
    }

    fn ok(&mut self, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        self.rows(&Request::Query(text, plain()))
    }

    fn rows(&mut self, request: &Request<'_>) -> Vec<Vec<Option<Vec<u8>>>> {
        let (header, body) = self.ask(request);
        match Response::decode(&header, &body).unwrap() {
            Response::Error { message, .. } => panic!("{request:?}: {message}"),
            Response::Rows(rows) => {
                let own = |c: Option<&[u8]>| c.map(<[u8]>::to_vec);
                let rows = rows.collect().unwrap().into_iter();
                rows.map(|row| row.into_iter().map(own).collect()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn prepare(&mut self, text: &str, keyspace: Option<&str>) -> Prepared {
        let (header, body) = self.ask(&Request::Prepare(text, keyspace));
        match Response::decode(&header, &body).unwrap() {
            Response::Prepared(prepared) => prepared,
            other => panic!("{other:?}"),
        }
    }
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', \
                        'replication_factor': 1}";

#[test]
fn rows_come_back_in_every_protocol() {
    for protocol in all() {
        let target = Target::new(Storage::Memory);
        let mut client = Client::new(&target, protocol);
        client.ok(KEYSPACE);
        client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
        let insert = client.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)", None);
        let select = client.prepare("SELECT v FROM ks.t WHERE k = ?", None);
        assert_eq!(insert.metadata_id.len(), if protocol.version() == 5 { 16 } else { 0 });
        // 300 kB: over three segments on the way there and back.
        for (key, size) in [(1i32, 10usize), (2, 1000), (3, 300_000)] {
            let (key, value) = (key.to_be_bytes(), "abcd".repeat(size / 4));
            let mut parameters = plain();
            parameters.values =
                vec![(None, Value::Bytes(&key)), (None, Value::Bytes(value.as_bytes()))];
            let execute = |prepared: &'static Prepared| PreparedRef {
                id: &prepared.id,
                metadata_id: &prepared.metadata_id,
            };
            let insert = execute(Box::leak(Box::new(insert.clone())));
            client.rows(&Request::Execute(insert, parameters.clone()));
            parameters.values.pop();
            let select = execute(Box::leak(Box::new(select.clone())));
            let rows = client.rows(&Request::Execute(select, parameters));
            assert!(rows == [[Some(value.into_bytes())]], "{protocol}, {size} bytes");
        }
    }
}

#[test]
fn requests_come_in_pieces_and_answers_go_out_together() {
    for protocol in all() {
        let target = Target::new(Storage::Memory);
        let mut client = Client::new(&target, protocol);
        let query = Request::Query("SELECT key FROM system.local", plain());
        let requests = vec![query; 50];
        let wired = client.wired(&requests);
        // Byte by byte.
        let (mut pending, mut out, mut answered) = (Vec::new(), Vec::new(), 0);
        for byte in &wired {
            pending.push(*byte);
            let done = client.session.receive(&pending, usize::MAX, &mut out);
            pending.drain(..done.consumed);
            answered += done.answered;
            assert_eq!(done.operations, done.answered);
        }
        assert_eq!((answered, pending.len()), (50, 0), "{protocol}");
        assert_eq!(client.frames(out).len(), 50);
        // One at a time, however they came.
        let (mut consumed, mut answers) = (0, 0);
        for _ in 0..50 {
            let mut out = Vec::new();
            let done = client.session.receive(&wired[consumed..], 1, &mut out);
            consumed += done.consumed;
            assert_eq!((done.answered, client.frames(out).len()), (1, 1), "{protocol}");
            answers += done.answered;
        }
        assert_eq!((consumed, answers), (wired.len(), 50));
        // Together.
        let mut out = Vec::new();
        let done = client.session.receive(&wired, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.answered), (wired.len(), 50));
        if protocol.version() == 5 {
            let header = SegmentHeader::decode(&out, protocol.compression()).unwrap().unwrap();
            let head = if protocol.compression() == Compression::None { 6 } else { 8 };
            assert!(header.self_contained);
            assert_eq!(out.len(), head + header.payload_size + 4, "one segment");
        }
        assert_eq!(client.frames(out).len(), 50);
    }
}

#[test]
fn requests_behind_startup_in_the_same_bytes_are_framed() {
    let protocol = Protocol::new(5, Compression::None).unwrap();
    let target = Target::new(Storage::Memory);
    let mut client = Client::new(&target, protocol);
    let wired = client.wired(&[Request::Options]);
    let mut session = target.raw_client().session;
    let mut out = Vec::new();
    let bytes = [startup(protocol), wired].concat();
    let done = session.receive(&bytes, usize::MAX, &mut out);
    assert_eq!((done.consumed, done.answered), (bytes.len(), 2));
    let frames = client.frames(out.split_off(9));
    assert_eq!(frames[0].0.opcode, 6, "SUPPORTED");
}

#[test]
fn what_came_to_harm_ends_the_connection_with_a_reason() {
    for protocol in &all()[3..] {
        let target = Target::new(Storage::Memory);
        let mut client = Client::new(&target, *protocol);
        let mut wired = client.wired(&[Request::Options]);
        let last = wired.len() - 1;
        wired[last] ^= 1;
        let mut out = Vec::new();
        let done = client.session.receive(&wired, usize::MAX, &mut out);
        assert_eq!((done.consumed, done.after), (wired.len(), After::Close));
        let (header, body) = client.frames(out).remove(0);
        match Response::decode(&header, &body).unwrap() {
            Response::Error { code: ErrorCode::PROTOCOL, message, .. } => {
                assert!(message.contains("CRC-32"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn refusal(session: &mut Session, bytes: &[u8]) -> String {
    let mut out = Vec::new();
    session.receive(bytes, usize::MAX, &mut out);
    let header = Header::decode(&out).unwrap().unwrap();
    match Response::decode(&header, &out[HEADER_SIZE..]).unwrap() {
        Response::Error { code: ErrorCode::PROTOCOL, message, .. } => message.to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_spoken_is_refused() {
    let target = Target::speaking(4);
    let v5 = Protocol::new(5, Compression::None).unwrap();
    let text = refusal(&mut target.raw_client().session, &startup(v5));
    assert!(text.contains("unsupported protocol version (5)"), "{text}");
    let target = Target::new(Storage::Memory);
    let mut frame = Vec::new();
    let options = vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "snappy")];
    Request::Startup(options).encode_at(5, 0, &mut frame);
    let text = refusal(&mut target.raw_client().session, &frame);
    assert!(text.contains("snappy"), "{text}");
    // Another version behind STARTUP, and a second STARTUP.
    let mut session = target.raw_client().session;
    let v4 = Protocol::default();
    session.receive(&startup(v4), usize::MAX, &mut Vec::new());
    let text = refusal(&mut session, &startup(v4));
    assert!(text.contains("begun already"), "{text}");
    let text = refusal(&mut session, &startup(v5));
    assert!(text.contains("another one"), "{text}");
}

#[test]
fn a_keyspace_may_come_with_the_request() {
    let target = Target::new(Storage::Memory);
    let mut client = Client::new(&target, Protocol::new(5, Compression::None).unwrap());
    client.ok(KEYSPACE);
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    let named = || QueryParameters { keyspace: Some("ks"), ..plain() };
    client.rows(&Request::Query("INSERT INTO t (k, v) VALUES (1, 1)", named()));
    let id = client.prepare("SELECT v FROM t", Some("ks")).id;
    assert_ne!(id, client.prepare("SELECT v FROM ks.t", None).id);
    client.rows(&Request::Batch(Batch {
        kind: BatchKind::Unlogged,
        statements: vec![(BatchStatement::Text("INSERT INTO t (k, v) VALUES (2, 1)"), vec![])],
        consistency: Consistency::One,
        serial_consistency: None,
        timestamp_us: None,
        keyspace: Some("ks"),
        now_s: None,
    }));
    assert_eq!(client.ok("SELECT k FROM ks.t").len(), 2);
    let (header, body) = client.ask(&Request::Query("SELECT k FROM t", plain()));
    assert!(matches!(Response::decode(&header, &body), Ok(Response::Error { .. })));
}

#[test]
fn cells_expire_by_the_time_that_the_client_says() {
    let target = Target::new(Storage::Memory);
    let mut client = Client::new(&target, Protocol::new(5, Compression::None).unwrap());
    client.ok(KEYSPACE);
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    client.ok("INSERT INTO ks.t (k, v) VALUES (1, 1) USING TTL 100");
    let at = |now_s: i64| QueryParameters { now_s: Some(now_s as i32), ..plain() };
    let select = "SELECT ttl(v) FROM ks.t WHERE k = 1";
    let rows = client.rows(&Request::Query(select, at(START_S + 60)));
    assert_eq!(int(rows[0][0].as_deref().unwrap()), 40);
    assert!(client.rows(&Request::Query(select, at(START_S + 101))).is_empty());
    assert_eq!(client.ok(select).len(), 1, "by the server's clock it lives");
}

#[test]
fn metadata_that_the_client_does_not_have_come_with_the_rows() {
    let target = Target::new(Storage::Memory);
    let mut client = Client::new(&target, Protocol::new(5, Compression::None).unwrap());
    client.ok(KEYSPACE);
    client.ok("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    client.ok("INSERT INTO ks.t (k, v) VALUES (1, 1)");
    let old = client.prepare("SELECT * FROM ks.t", None);
    client.ok("ALTER TABLE ks.t ADD w int");
    let new = client.prepare("SELECT * FROM ks.t", None);
    assert_eq!(old.id, new.id);
    assert_ne!(old.metadata_id, new.metadata_id);
    for (prepared, columns) in [(&old, 3), (&new, 0)] {
        let PreparedRef { id, metadata_id } =
            PreparedRef { id: &prepared.id, metadata_id: &prepared.metadata_id };
        let parameters = QueryParameters { skip_metadata: true, ..plain() };
        let request = Request::Execute(PreparedRef { id, metadata_id }, parameters);
        let (header, body) = client.ask(&request);
        let Response::Rows(rows) = Response::decode(&header, &body).unwrap() else {
            panic!("rows")
        };
        assert_eq!((rows.metadata.columns.len(), rows.metadata.column_count), (columns, 3));
        assert_eq!(rows.collect().unwrap().len(), 1);
    }
}
