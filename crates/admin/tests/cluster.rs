//! The control plane at a cluster of one, the reference target, and at hosts that do not play
//! along.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use admin::{
    Admin, Cell, Config, ConnectError, QueryError, ReplicationError, RingError, SchemaError,
    literal,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use target::{Handle, Server};
use units::{CpuSet, Credentials, Nanos, Secret};
use wire::cql::{HEADER_SIZE, Header, Opcode, put};
use wire::murmur3;

fn serve() -> Handle {
    let config = target::Config::new("127.0.0.1:0".parse().unwrap());
    Server::bind(config).unwrap().start().unwrap()
}

fn config(hosts: &[SocketAddr]) -> Config {
    Config {
        hosts: hosts.to_vec(),
        credentials: None,
        tls: None,
        fixed_hosts: false,
        identities: Vec::new(),
        datacenter: None,
        timeout: Nanos::from_secs(5),
        cpus: CpuSet::default(),
    }
}

const KEYSPACE: &str = "CREATE KEYSPACE ks WITH replication = \
                        {'class': 'SimpleStrategy', 'replication_factor': 1}";

#[test]
fn schema_rows_probes_and_the_ring() {
    let target = serve();
    for fixed_hosts in [false, true] {
        let config = Config { fixed_hosts, ..config(&[target.local_addr()]) };
        let admin = Admin::connect(&config).unwrap();
        assert_eq!(admin.datacenter(), "datacenter1");
        assert!(admin.versions().unwrap()[0].ends_with("-wideload"));
        admin.schema_change(&KEYSPACE.replace("ks", &format!("ks_{fixed_hosts}"))).unwrap();
        let table = format!("ks_{fixed_hosts}.t");
        let columns = "k text PRIMARY KEY, n bigint, small int, yes boolean, raw blob, none text";
        admin.schema_change(&format!("CREATE TABLE {table} ({columns})")).unwrap();
        let key = "it's";
        let insert = format!(
            "INSERT INTO {table} (k, n, small, yes, raw) VALUES ({}, -5, 7, true, 0x0102)",
            literal(key)
        );
        assert_eq!(admin.query(&insert).unwrap(), []);
        let rows = admin.query(&format!("SELECT * FROM {table}")).unwrap();
        assert_eq!(rows.len(), 1);
        let cell = |name| rows[0].get(name);
        assert_eq!((cell("k").text(), cell("n").integer()), (Some(key), Some(-5)));
        assert_eq!((cell("small").integer(), cell("yes").boolean()), (Some(7), Some(true)));
        assert_eq!((cell("raw"), cell("none")), (&Cell::Bytes(vec![1, 2]), &Cell::Null));
        assert_eq!(cell("absent"), &Cell::Null);

        let probe = format!("SELECT k FROM {table} WHERE k = ?");
        let keys = (0..100).map(|i| if i == 70 { key.to_owned() } else { i.to_string() });
        assert_eq!(admin.count_found(&probe, keys.collect()).unwrap(), 1);
        assert_eq!(admin.count_found(&probe, Vec::new()).unwrap(), 0);

        let ring = admin.ring(&format!("ks_{fixed_hosts}")).unwrap();
        assert_eq!(ring.hosts.len(), 1);
        let host = &ring.hosts[0];
        assert_eq!((host.address, host.up), (target.local_addr(), true));
        assert_eq!((&host.datacenter[..], &host.rack[..]), ("datacenter1", "rack1"));
        assert_eq!(ring.replicas(murmur3::token(key.as_bytes())), [0]);
    }
}

#[test]
fn connects_again_and_past_a_dead_host() {
    let target = serve();
    let dead = free_address();
    let both = config(&[dead, target.local_addr()]);
    for _ in 0..3 {
        let admin = Admin::connect(&both).unwrap();
        assert_eq!(admin.contact(), target.local_addr());
    }
    let error = Admin::connect(&config(&[dead])).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { address, .. } if address == dead));
    assert!(error.to_string().contains("is the database up"), "{error}");
    let none = Admin::connect(&config(&[])).unwrap_err();
    assert!(matches!(none, ConnectError::NoHost));
}

#[test]
fn what_the_database_refuses_is_told_in_its_words() {
    let target = serve();
    let admin = Admin::connect(&config(&[target.local_addr()])).unwrap();
    let error = admin.schema_change("CREATE TABLE nowhere.t (k text PRIMARY KEY)").unwrap_err();
    assert!(matches!(error, SchemaError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("nowhere"), "{error}");
    let error = admin.query("SELECT this is no CQL").unwrap_err();
    assert!(matches!(error, QueryError::Refused { .. }), "{error}");
    let error = admin.count_found("SELECT k FROM no.t WHERE k = ?", vec![]).unwrap_err();
    assert!(matches!(error, QueryError::Refused { .. }), "{error}");
    let error = admin.ring("nowhere").unwrap_err();
    assert!(matches!(error, RingError::Keyspace { .. }), "{error}");
    assert!(matches!(
        admin.check_replication("3"),
        Err(ReplicationError::Beyond { factor: 3, hosts: 1, .. })
    ));
    assert_eq!(admin.check_replication("1"), Ok(()));
    let error = Admin::connect(&Config {
        datacenter: Some("elsewhere".into()),
        ..config(&[target.local_addr()])
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("'elsewhere'") && error.contains("datacenter1"), "{error}");
}

#[test]
fn a_target_that_is_gone_is_told() {
    let target = serve();
    let short = Config { timeout: Nanos::from_millis(300), ..config(&[target.local_addr()]) };
    let admin = Admin::connect(&short).unwrap();
    target.join().unwrap();
    let error = admin.query("SELECT * FROM system.local").unwrap_err();
    assert!(matches!(error, QueryError::Lost { .. }), "{error}");
}

#[test]
fn a_mute_host_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let short = Config { timeout: Nanos::from_millis(200), ..config(&[address]) };
    let error = Admin::connect(&short).unwrap_err();
    assert!(matches!(error, ConnectError::Mute { .. }), "{error}");
    assert!(error.to_string().contains("--timeout"), "{error}");
}

#[test]
fn a_host_of_another_protocol_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(b"220 mail.example.com ESMTP\r\n");
        }
    });
    let error = Admin::connect(&config(&[address])).unwrap_err();
    assert!(!matches!(error, ConnectError::Mute { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn a_missing_and_a_wrong_password_are_named_and_never_shown() {
    let (address, tries) = mock_that_lets_nobody_in();
    let error = Admin::connect(&config(&[address])).unwrap_err();
    assert!(matches!(error, ConnectError::CredentialsMissing { .. }), "{error}");
    assert!(error.to_string().contains("--password-file"), "{error}");
    let password = Secret::new("hunter2");
    let credentials = Some(Credentials { user: "ann".into(), password });
    let config = Config { credentials, ..config(&[address, address]) };
    let error = Admin::connect(&config).unwrap_err();
    assert!(matches!(error, ConnectError::CredentialsRefused { .. }), "{error}");
    let shown = format!("{error} {error:?} {config:?}");
    assert!(shown.contains("'ann'") && !shown.contains("hunter2"), "{shown}");
    assert_eq!(
        tries.load(Ordering::Relaxed),
        1,
        "a refused password is not tried on further hosts"
    );
}

/// A mock: wants a password and refuses all. Counts the passwords it was told.
fn mock_that_lets_nobody_in() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counted) = (stream.unwrap(), counted.clone());
            std::thread::spawn(move || {
                let mut head = [0u8; HEADER_SIZE];
                while stream.read_exact(&mut head).is_ok() {
                    let header = Header::decode(&head).unwrap().unwrap();
                    let mut body = vec![0; header.body_size];
                    stream.read_exact(&mut body).unwrap();
                    let mut frame = Vec::new();
                    let answer = |opcode| Header::response(header.stream, opcode);
                    if header.opcode == Opcode::Options as u8 {
                        answer(Opcode::Supported).frame(&mut frame, |out| put::u16(out, 0));
                    } else if header.opcode == Opcode::AuthResponse as u8 {
                        assert_eq!(body[4..], *b"\0ann\0hunter2");
                        counted.fetch_add(1, Ordering::Relaxed);
                        answer(Opcode::Error).frame(&mut frame, |out| {
                            put::i32(out, 0x0100);
                            put::string(out, "Provided username ann and/or password are incorrect");
                        });
                    } else {
                        answer(Opcode::Authenticate).frame(&mut frame, |out| {
                            put::string(out, "org.apache.cassandra.auth.PasswordAuthenticator");
                        });
                    }
                    stream.write_all(&frame).unwrap();
                }
            });
        }
    });
    (address, tries)
}

/// Nobody listens there.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Takes connections at 127.0.0.2 for a target elsewhere, as a container's port mapping does.
fn port_mapping(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (mut answers, mut back) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut client, &mut server));
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
        }
    });
    address
}

#[test]
fn fixed_hosts_are_reached_where_the_cluster_says_otherwise() {
    let target = serve();
    let mapped = port_mapping(target.local_addr());
    let short = Config { timeout: Nanos::from_millis(500), ..config(&[mapped]) };
    let told = Admin::connect(&short).unwrap();
    let error = told.schema_change(KEYSPACE).unwrap_err();
    assert!(matches!(error, SchemaError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("--fixed-hosts"), "{error}");

    let fixed = Config { fixed_hosts: true, hosts: vec![mapped, target.local_addr()], ..short };
    let admin = Admin::connect(&fixed).unwrap();
    admin.schema_change(KEYSPACE).unwrap();
    let ring = admin.ring("ks").unwrap();
    let hosts: Vec<_> = ring.hosts.iter().map(|host| (host.address, host.up)).collect();
    assert_eq!(hosts, [(mapped, true)], "two addresses of one host are one host");
    assert_eq!(ring.replicas(i64::MIN), [0]);

    // Once it is known who they are, one of them may be dead.
    let hosts = vec![free_address(), mapped];
    assert!(Admin::connect(&Config { hosts: hosts.clone(), ..fixed.clone() }).is_err());
    let identities = vec![([9; 16], hosts[0]), (ring.hosts[0].host_id, mapped)];
    let again = Admin::connect(&Config { hosts, identities, ..fixed }).unwrap();
    assert_eq!((again.contact(), again.ring("ks").unwrap().hosts.len()), (mapped, 1));
}
