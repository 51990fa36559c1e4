//! `wideload serve --protocol aerospike`: what it announces, has, and refuses.
// Helpers of a test may fail as the test itself may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, Serve};
use stage::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wire::aerospike::{PROTO_SIZE, ProtoHeader, info};

#[test]
fn it_serves_the_namespaces_that_are_named() {
    let home = Home::new();
    let words = ["--protocol", "aerospike", "--namespace", "hot,cold"];
    let serve = Serve::start(&home, &words);
    assert!(serve.process.stdout().contains("results say nothing about Aerospike"));
    let mut stream = TcpStream::connect(serve.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut request = Vec::new();
    info::put_request(&["namespaces", "namespace/hot", "namespace/test"], &mut request);
    stream.write_all(&request).unwrap();
    let mut head = [0; PROTO_SIZE];
    stream.read_exact(&mut head).unwrap();
    let mut body = vec![0; ProtoHeader::decode(&head, 1 << 16).unwrap().unwrap().size];
    stream.read_exact(&mut body).unwrap();
    let lines: Vec<_> = info::lines(&body).unwrap().collect();
    assert_eq!(lines[0], ("namespaces", "hot;cold"));
    assert!(lines[1].1.contains(";storage-engine.data-size=4294967296;"), "{}", lines[1].1);
    assert!(lines[2].1.starts_with("ERROR:20:"), "{}", lines[2].1);
    assert!(serve.process.signal(Signal::TERM));
    assert_eq!(serve.process.wait(Duration::from_secs(20)).status, Some(0));
}

#[test]
fn what_it_has_not_is_refused() {
    let home = Home::new();
    for (words, says) in [
        (&["--namespace", "test"][..], "with --protocol aerospike only"),
        (&["--protocol", "aerospike", "--storage", "null"], "in memory only"),
        (&["--protocol", "aerospike", "--protocol-max", "4"], "leave it out"),
        (&["--protocol", "aerospike", "--namespace", "a:b"], "1 to 31 letters"),
    ] {
        let ended = home.run(&[&["serve", "--listen", "127.0.0.1:0"][..], words].concat());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
    }
}
