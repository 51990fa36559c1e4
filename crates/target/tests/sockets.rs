//! The server on real sockets: taken ports, slow readers, floods, broken frames, stopping.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use target::{Config, Handle, Server};
use wire::cql::request::{QueryParameters, Request};
use wire::cql::response::Response;
use wire::cql::{Consistency, ErrorCode, HEADER_SIZE, Header, Value};

fn config() -> Config {
    // The suite runs these tests with each engine.
    let engine = std::env::var("WIDELOAD_TEST_ENGINE");
    let io = engine.map_or_else(|_| ring::Engine::Epoll, |engine| engine.parse().unwrap());
    Config { io, ..Config::new("127.0.0.1:0".parse().unwrap()) }
}

fn serve(config: Config) -> Handle {
    Server::bind(config).unwrap().start().unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn read_frame(stream: &mut TcpStream) -> std::io::Result<(Header, Vec<u8>)> {
    let mut bytes = [0; HEADER_SIZE];
    stream.read_exact(&mut bytes)?;
    let header = Header::decode(&bytes).unwrap().unwrap();
    let mut body = vec![0; header.body_size];
    stream.read_exact(&mut body)?;
    Ok((header, body))
}

fn start(stream: &mut TcpStream) {
    let mut frame = Vec::new();
    Request::Startup(vec![("CQL_VERSION", "3.0.0")]).encode(0, &mut frame);
    stream.write_all(&frame).unwrap();
    let (header, body) = read_frame(stream).unwrap();
    assert!(matches!(Response::decode(&header, &body), Ok(Response::Ready)));
}

fn query(stream: &mut TcpStream, text: &str, values: &[Value<'_>]) -> (Header, Vec<u8>) {
    let mut parameters = QueryParameters::plain(Consistency::One);
    parameters.values = values.iter().map(|v| (None, *v)).collect();
    let mut frame = Vec::new();
    Request::Query(text, parameters).encode(1, &mut frame);
    stream.write_all(&frame).unwrap();
    let answer = read_frame(stream).unwrap();
    assert!(!matches!(Response::decode(&answer.0, &answer.1), Ok(Response::Error { .. })));
    answer
}

#[test]
fn a_taken_port_is_named_with_the_cure() {
    let target = serve(config());
    let address = target.local_addr();
    let taken = Config { listen: address, ..config() };
    let error = Server::bind(taken).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("--listen"), "{error}");
    let nowhere = Config { listen: "192.0.2.1:0".parse().unwrap(), ..config() };
    assert!(Server::bind(nowhere).unwrap_err().to_string().contains("an address of this host"));
}

#[test]
fn stopping_ends_all_threads_and_frees_the_port() {
    let target = serve(Config { threads: 3, ..config() });
    let address = target.local_addr();
    let mut stream = connect(address);
    start(&mut stream);
    target.shutdown();
    target.join().unwrap();
    assert!(read_frame(&mut stream).is_err());
    Server::bind(Config { listen: address, ..config() }).unwrap();
}

/// A peer that sends requests and does not read: the server stops reading, keeps little, and goes
/// on when it is read.
#[test]
fn a_slow_reader_gets_everything() {
    let target = serve(Config { backlog_max: 64 << 10, ..config() });
    let mut stream = connect(target.local_addr());
    start(&mut stream);
    let create = "CREATE KEYSPACE ks WITH replication = \
                  {'class': 'SimpleStrategy', 'replication_factor': 1}";
    query(&mut stream, create, &[]);
    query(&mut stream, "CREATE TABLE ks.t (k int PRIMARY KEY, v blob)", &[]);
    let value = vec![7; 100_000];
    let insert = "INSERT INTO ks.t (k, v) VALUES (1, ?)";
    query(&mut stream, insert, &[Value::Bytes(&value)]);
    let count = 400i16;
    let mut frames = Vec::new();
    for n in 0..count {
        let parameters = QueryParameters::plain(Consistency::One);
        Request::Query("SELECT v FROM ks.t WHERE k = 1", parameters).encode(n, &mut frames);
    }
    let mut writer = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&frames).unwrap());
    std::thread::sleep(Duration::from_millis(200));
    for n in 0..count {
        let (header, body) = read_frame(&mut stream).unwrap();
        assert_eq!(header.stream, n);
        assert!(body.ends_with(&value[..]));
    }
    sender.join().unwrap();
}

#[test]
fn a_frame_too_long_is_answered_before_the_connection_ends() {
    let target = serve(Config { frame_size_max: 1000, ..config() });
    let mut stream = connect(target.local_addr());
    start(&mut stream);
    let mut frame = Vec::new();
    let text = "x".repeat(500_000);
    Request::Query(&text, QueryParameters::plain(Consistency::One)).encode(5, &mut frame);
    stream.write_all(&frame).unwrap();
    let (header, body) = read_frame(&mut stream).unwrap();
    let Ok(Response::Error { code, .. }) = Response::decode(&header, &body) else {
        panic!("no error")
    };
    assert_eq!((code, header.stream), (ErrorCode::PROTOCOL, 5));
    // Nothing more is answered, and the server ends it.
    assert!(read_frame(&mut stream).is_err());
}

#[test]
fn connections_are_bounded() {
    let target = serve(Config { connections_max: 2, ..config() });
    let mut kept: Vec<_> = (0..2).map(|_| connect(target.local_addr())).collect();
    kept.iter_mut().for_each(start);
    let mut refused = connect(target.local_addr());
    assert_eq!(refused.read(&mut [0; 1]).unwrap_or(0), 0);
    drop(kept.pop());
    // The place is free when the server has seen the end of the other.
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let mut stream = connect(target.local_addr());
        let mut frame = Vec::new();
        Request::Options.encode(0, &mut frame);
        stream.write_all(&frame).is_ok() && read_frame(&mut stream).is_ok()
    });
    assert!(again);
}

/// What one thread is told of, clients of the other threads hear too.
#[test]
fn events_cross_threads() {
    let target = serve(Config { threads: 2, ..config() });
    let mut listeners: Vec<_> = (0..8).map(|_| connect(target.local_addr())).collect();
    for stream in &mut listeners {
        start(stream);
        let mut frame = Vec::new();
        Request::Register(vec!["SCHEMA_CHANGE"]).encode(0, &mut frame);
        stream.write_all(&frame).unwrap();
        read_frame(stream).unwrap();
    }
    let mut stream = connect(target.local_addr());
    start(&mut stream);
    let create = "CREATE KEYSPACE told WITH replication = \
                  {'class': 'SimpleStrategy', 'replication_factor': 1}";
    query(&mut stream, create, &[]);
    for stream in &mut listeners {
        let (header, body) = read_frame(stream).unwrap();
        assert_eq!(header.stream, -1);
        let Ok(Response::Event(kind, mut rest)) = Response::decode(&header, &body) else {
            panic!("no event")
        };
        assert_eq!(kind, "SCHEMA_CHANGE");
        assert_eq!(rest.string("change").unwrap(), "CREATED");
        assert_eq!(
            (rest.string("kind").unwrap(), rest.string("name").unwrap()),
            ("KEYSPACE", "told")
        );
    }
}
