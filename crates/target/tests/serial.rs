//! A server whose operations hold one lock: its capacity, who is answered meanwhile, its bounds and
//! its end. Times are lower bounds, or the order of answers: a busy machine does not break them.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use target::{Config, Handle, Server};
use units::Nanos;
use wire::cql::request::{QueryParameters, Request};
use wire::cql::response::Response;
use wire::cql::{Consistency, HEADER_SIZE, Header};

const SELECT: &str = "SELECT release_version FROM system.local WHERE key = 'local'";

fn serve(serial: Duration, change: impl FnOnce(&mut Config)) -> Handle {
    let serial = Some(Nanos(serial.as_nanos() as u64));
    let mut config = Config { serial, ..Config::new("127.0.0.1:0".parse().unwrap()) };
    change(&mut config);
    Server::bind(config).unwrap().start().unwrap()
}

/// A connection past the handshake.
fn client(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut frame = Vec::new();
    Request::Startup(vec![("CQL_VERSION", "3.0.0")]).encode(0, &mut frame);
    stream.write_all(&frame).unwrap();
    assert_eq!(read_stream(&mut stream), 0);
    stream
}

/// Sends operations with the stream ids given.
fn ask(stream: &mut TcpStream, ids: std::ops::Range<i16>) {
    let mut frames = Vec::new();
    for id in ids {
        let parameters = QueryParameters::plain(Consistency::One);
        Request::Query(SELECT, parameters).encode(id, &mut frames);
    }
    stream.write_all(&frames).unwrap();
}

/// The stream id of the next answer, which is no error.
fn read_stream(stream: &mut TcpStream) -> i16 {
    let mut bytes = [0; HEADER_SIZE];
    stream.read_exact(&mut bytes).unwrap();
    let header = Header::decode(&bytes).unwrap().unwrap();
    let mut body = vec![0; header.body_size];
    stream.read_exact(&mut body).unwrap();
    assert!(!matches!(Response::decode(&header, &body), Ok(Response::Error { .. }) | Err(_)));
    header.stream
}

#[test]
fn operations_of_all_connections_and_threads_share_one_capacity() {
    let serial = Duration::from_millis(2);
    let target = serve(serial, |config| config.threads = 3);
    let mut clients: Vec<_> = (0..6).map(|_| client(target.local_addr())).collect();
    let begun = Instant::now();
    clients.iter_mut().for_each(|stream| ask(stream, 0..50));
    for stream in &mut clients {
        let ids: Vec<_> = (0..50).map(|_| read_stream(stream)).collect();
        assert!(ids.iter().copied().eq(0..50), "{ids:?}");
    }
    let took = begun.elapsed();
    assert!(took >= serial * 300, "300 operations in {took:?}");
    // Lateness of single wake-ups does not add up: they would be 300.
    println!("300 operations of 2 ms took {took:?}");
    assert!(took < serial * 300 * 5, "300 operations took {took:?}");
}

#[test]
fn others_are_received_and_answered_while_operations_wait() {
    let target = serve(Duration::from_millis(150), |_| {});
    let mut busy = client(target.local_addr());
    let mut other = client(target.local_addr());
    let begun = Instant::now();
    ask(&mut busy, 0..20);
    let mut frame = Vec::new();
    Request::Options.encode(77, &mut frame);
    other.write_all(&frame).unwrap();
    busy.write_all(&frame).unwrap();
    assert_eq!(read_stream(&mut other), 77);
    // A new connection is taken too.
    drop(client(target.local_addr()));
    // It waits for no lock, and overtakes those of its own connection that do.
    let all: Vec<_> = (0..21).map(|_| read_stream(&mut busy)).collect();
    let waited: Vec<_> = all.iter().copied().filter(|id| *id != 77).collect();
    assert!(waited.iter().copied().eq(0..20), "{all:?}");
    assert_eq!(all.last(), Some(&19), "{all:?}");
    assert!(begun.elapsed() >= Duration::from_millis(3000));
}

#[test]
fn waiting_answers_are_bounded_and_all_of_them_come() {
    // A backlog of a few answers: the server stops reading, and goes on as they leave.
    let target = serve(Duration::from_micros(300), |config| config.backlog_max = 1000);
    let mut stream = client(target.local_addr());
    ask(&mut stream, 0..400);
    let ids: Vec<_> = (0..400).map(|_| read_stream(&mut stream)).collect();
    assert!(ids.iter().copied().eq(0..400));
}

#[test]
fn who_has_gone_is_not_answered_through_another_connection() {
    let target = serve(Duration::from_millis(60), |_| {});
    let mut gone = client(target.local_addr());
    ask(&mut gone, 100..110);
    // The server has them before it sees the end.
    std::thread::sleep(Duration::from_millis(20));
    drop(gone);
    for _ in 0..3 {
        let mut stream = client(target.local_addr());
        ask(&mut stream, 1..3);
        assert_eq!((read_stream(&mut stream), read_stream(&mut stream)), (1, 2));
    }
}

#[test]
fn stopping_waits_for_no_lock() {
    let target = serve(Duration::from_secs(3600), |_| {});
    let mut stream = client(target.local_addr());
    ask(&mut stream, 0..3);
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    target.join().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "no answer before its time");
}
