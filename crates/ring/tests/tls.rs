//! TLS over both engines: bytes come out as they went in, whatever their number; who may not be
//! trusted is not, and either side learns why.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod certs;

use certs::Authority;
use ring::tls::{Client, ClientFiles, Failure, Identity, Server, ServerFiles};
use ring::{BufferSizes, ConnectionId, Engine, Epoll, Event, Flush, Ring, Uring};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::spawn;
use std::time::{Duration, Instant};
use units::{Nanos, clock};

/// Small, so that what is sent takes several turns and records.
const SIZES: BufferSizes = BufferSizes { send: 4096, receive: 4096, receive_max: 64 << 20 };
const PATIENCE: Duration = Duration::from_secs(20);

fn identity((cert, key): (PathBuf, PathBuf)) -> Identity {
    Identity { cert, key }
}

fn trusting(ca: &Path) -> ClientFiles {
    ClientFiles { ca: Some(ca.to_owned()), identity: None, name: None, verify: true }
}

fn engines() -> Vec<Engine> {
    let there = |engine: &Engine| match engine.check() {
        Ok(()) => true,
        Err(why) => {
            eprintln!("without {engine}: {why}");
            false
        }
    };
    [Engine::Epoll, Engine::IoUring].into_iter().filter(there).collect()
}

/// Sends back what it receives, until it is dropped.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn echo(engine: Engine, files: &ServerFiles) -> Echo {
    let server = Server::new(files).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), Arc::<AtomicBool>::default());
    let stopped = stop.clone();
    spawn(move || match engine {
        Engine::Epoll => serve(server.over(Epoll::new(SIZES).unwrap(), SIZES), listener, &stopped),
        Engine::IoUring => {
            serve(server.over(Uring::new(SIZES).unwrap(), SIZES), listener, &stopped);
        }
    });
    Echo { address, stop }
}

fn serve<R: Ring>(mut ring: R, listener: TcpListener, stop: &AtomicBool) {
    ring.listen(listener).unwrap();
    let mut events = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        ring.wait(Some(clock::now() + Nanos::from_millis(20)), &mut events).unwrap();
        for event in events.drain(..) {
            match event {
                Event::Received { connection, .. } => {
                    let bytes = ring.received(connection).to_vec();
                    ring.consume(connection, bytes.len());
                    ring.filling(connection).append(|out| out.extend_from_slice(&bytes));
                    let _ = ring.flush(connection);
                }
                Event::Writable { connection } => drop(ring.flush(connection)),
                Event::Closed { connection, .. } => ring.close(connection),
                Event::Connected { .. } | Event::Accepted { .. } => {}
            }
        }
    }
}

/// Sends `bytes` when connected; gives back what came, and the end if it came to that.
fn talk(engine: Engine, client: &Client, to: SocketAddr, bytes: &[u8]) -> Talk {
    match engine {
        Engine::Epoll => talk_on(client.over(Epoll::new(SIZES).unwrap(), SIZES), to, bytes),
        Engine::IoUring => talk_on(client.over(Uring::new(SIZES).unwrap(), SIZES), to, bytes),
    }
}

#[derive(Debug)]
enum Talk {
    Echoed(Vec<u8>),
    Closed(Option<io::Error>),
    Silence,
}

impl Talk {
    fn failure(self) -> Failure {
        let Self::Closed(Some(error)) = &self else { panic!("{self:?}") };
        Failure::of(error).unwrap_or_else(|| panic!("{error:?}")).clone()
    }
}

fn talk_on<R: Ring>(mut ring: R, to: SocketAddr, bytes: &[u8]) -> Talk {
    let id = ring.connect(to).unwrap();
    let (mut came, mut events) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        ring.wait(Some(clock::now() + Nanos::from_millis(50)), &mut events).unwrap();
        for event in events.drain(..) {
            match event {
                Event::Connected { .. } => send(&mut ring, id, bytes),
                Event::Received { .. } => {
                    came.extend_from_slice(ring.received(id));
                    let size = ring.received(id).len();
                    ring.consume(id, size);
                }
                Event::Writable { .. } => drop(ring.flush(id)),
                Event::Closed { error, .. } => return Talk::Closed(error),
                Event::Accepted { .. } => panic!("nothing listens here"),
            }
        }
        if came.len() >= bytes.len() && !bytes.is_empty() {
            return Talk::Echoed(came);
        }
    }
    Talk::Silence
}

/// The first flush of a connection does not wait, as it does not without TLS.
fn send<R: Ring>(ring: &mut R, id: ConnectionId, bytes: &[u8]) {
    ring.filling(id).append(|out| out.extend_from_slice(bytes));
    assert_eq!(ring.unsent(id), bytes.len());
    // Empty when the peer has closed it meanwhile.
    assert_ne!(ring.flush(id).unwrap(), Flush::Waiting);
}

#[test]
fn bytes_come_back_as_they_went() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "ca");
    let signed = identity(authority.sign("server", &["127.0.0.1"]));
    let server = ServerFiles { identity: signed, client_ca: None };
    let client = Client::new(&trusting(&authority.pem())).unwrap();
    for engine in engines() {
        let echo = echo(engine, &server);
        for size in [1, 16 << 10, (16 << 10) + 1, 3_000_000] {
            let bytes: Vec<u8> = (0..size).map(|i: usize| (i * 31 % 251) as u8).collect();
            let talk = talk(engine, &client, echo.address, &bytes);
            assert!(matches!(&talk, Talk::Echoed(came) if *came == bytes), "{engine} {size}");
        }
    }
}

#[test]
fn who_may_not_be_trusted_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(dir.path(), "ca"), Authority::new(dir.path(), "other"));
    let of = |signed| ServerFiles { identity: identity(signed), client_ca: None };
    let fine = of(authority.sign("fine", &["127.0.0.1", "db.example"]));
    let expired = of(authority.sign_expired("expired", &["127.0.0.1"]));
    let elsewhere = of(authority.sign("elsewhere", &["10.0.0.9"]));
    let nameless = of(authority.sign("nameless", &[]));
    let trusting_both = trusting(&authority.pem());
    let named = |name: &str| ClientFiles { name: Some(name.into()), ..trusting_both.clone() };
    let name = |expected: &str, presented: &str| Failure::Name {
        expected: expected.into(),
        presented: presented.into(),
    };
    let no_name = "no name at all (it has no subject alternative names)";
    for engine in engines() {
        for (server, client, failure) in [
            (&fine, trusting(&other.pem()), Failure::Untrusted),
            (&expired, trusting_both.clone(), Failure::Expired),
            (&elsewhere, trusting_both.clone(), name("127.0.0.1", "10.0.0.9")),
            (&nameless, trusting_both.clone(), name("127.0.0.1", no_name)),
            (&fine, named("other.example"), name("other.example", "127.0.0.1, db.example")),
        ] {
            let echo = echo(engine, server);
            let client = Client::new(&client).unwrap();
            assert_eq!(talk(engine, &client, echo.address, b"x").failure(), failure, "{engine}");
        }
        // By name, and whoever it is when nothing is verified.
        for (server, client) in [
            (&fine, named("db.example")),
            (&expired, ClientFiles { ca: None, verify: false, ..trusting_both.clone() }),
        ] {
            let echo = echo(engine, server);
            let client = Client::new(&client).unwrap();
            let talk = talk(engine, &client, echo.address, b"x");
            assert!(matches!(&talk, Talk::Echoed(came) if came == b"x"), "{engine} {talk:?}");
        }
    }
}

#[test]
fn an_authority_may_be_a_server_where_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &'static str| Authority::serving(dir.path(), name, &["127.0.0.1"]);
    let ((own, key), (other, _)) = (of("own"), of("other"));
    let server = ServerFiles { identity: identity((own.clone(), key)), client_ca: None };
    let elsewhere = ClientFiles { name: Some("db.example".into()), ..trusting(&own) };
    for engine in engines() {
        let echo = echo(engine, &server);
        let ask =
            |files: &ClientFiles| talk(engine, &Client::new(files).unwrap(), echo.address, b"x");
        let trusted = ask(&trusting(&own));
        assert!(matches!(&trusted, Talk::Echoed(came) if came == b"x"), "{engine} {trusted:?}");
        assert_eq!(ask(&trusting(&other)).failure(), Failure::Authority, "{engine}");
        let name = ask(&elsewhere).failure();
        assert!(matches!(name, Failure::Name { .. }), "{engine} {name:?}");
    }
}

#[test]
fn a_certificate_that_is_demanded_is_shown_or_the_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(dir.path(), "ca"), Authority::new(dir.path(), "other"));
    let server = ServerFiles {
        identity: identity(authority.sign("server", &["127.0.0.1"])),
        client_ca: Some(authority.pem()),
    };
    let known = identity(authority.sign("client", &[]));
    let stranger = identity(other.sign("stranger", &[]));
    for engine in engines() {
        let echo = echo(engine, &server);
        let ask = |identity: Option<&Identity>| {
            let files = ClientFiles { identity: identity.cloned(), ..trusting(&authority.pem()) };
            talk(engine, &Client::new(&files).unwrap(), echo.address, b"hello")
        };
        let shown = ask(Some(&known));
        assert!(matches!(&shown, Talk::Echoed(came) if came == b"hello"), "{engine} {shown:?}");
        let without = ask(None).failure();
        assert!(matches!(without, Failure::CertificateWanted(_)), "{engine} {without:?}");
        let refused = ask(Some(&stranger)).failure();
        assert!(matches!(refused, Failure::CertificateRefused(_)), "{engine} {refused:?}");
    }
}

/// Answers whatever comes with `answer`, and then closes.
fn answering(answer: &'static [u8]) -> SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn what_is_no_tls_is_told_on_both_sides() {
    use std::io::{Read as _, Write as _};
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "ca");
    let signed = identity(authority.sign("server", &["127.0.0.1"]));
    let client = Client::new(&trusting(&authority.pem())).unwrap();
    for engine in engines() {
        // An ERROR of protocol v4, and nothing at all.
        let cql = answering(b"\x84\0\0\0\0\0\0\0\x08\0\0\0\x0a\0\x02no");
        assert_eq!(talk(engine, &client, cql, b"x").failure(), Failure::NotTls, "{engine}");
        let mute = answering(b"");
        assert_eq!(talk(engine, &client, mute, b"x").failure(), Failure::Ended, "{engine}");
        // A request of CQL to a server of TLS: an alert comes back.
        let echo = echo(engine, &ServerFiles { identity: signed.clone(), client_ca: None });
        let mut plain = TcpStream::connect(echo.address).unwrap();
        plain.set_read_timeout(Some(PATIENCE)).unwrap();
        plain.write_all(&[4, 0, 0, 0, 5, 0, 0, 0, 0]).unwrap();
        let mut answer = [0; 2];
        plain.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [21, 3], "{engine}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "ca");
    let (cert, key) = authority.sign("one", &["127.0.0.1"]);
    let (_, other_key) = authority.sign("two", &["127.0.0.1"]);
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let trusted = trusting(&authority.pem());
    let with = |cert: &Path, key: &Path| ClientFiles {
        identity: Some(Identity { cert: cert.into(), key: key.into() }),
        ..trusted.clone()
    };
    for (files, words) in [
        (trusting(Path::new("/nowhere.pem")), ["file of authorities", "/nowhere.pem"]),
        (trusting(&empty), ["empty", "PEM"]),
        (trusting(&key), ["one.key", "certificate"]),
        (with(&empty, &key), ["empty", "certificate"]),
        (with(&cert, &cert), ["one.pem", "private key"]),
        (with(&cert, &other_key), ["one.pem", "two.key"]),
        (ClientFiles { name: Some("a b".into()), ..trusted.clone() }, ["a b", "--tls-name"]),
    ] {
        let error = Client::new(&files).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
        assert!(!error.contains("PRIVATE"), "{error}");
    }
}
