//! Connections that need a password: at the start, again after each loss, and when it is wrong.
//!
//! The target here is a mock: it asks for a password, answers whoever knows it, and breaks off now
//! and then.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use drive::{
    Access, Amount, Control, ControlError, Drive, DriveError, Encoder, LinkError, Refusal,
    Unwitnessed,
};
use record::Outcome;
use rig::{SECOND, closed, drive, plan, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use units::{Credentials, Secret};
use wire::cql::{Consistency, ErrorCode, HEADER_SIZE, Header, Opcode, put, response};

/// A mock that lets `ann` in by `hunter2`; a connection ends after so many requests. Counts logins.
fn mock(requests_max: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = logins.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, logins) = (stream.unwrap(), counted.clone());
            std::thread::spawn(move || serve(stream, requests_max, &logins));
        }
    });
    (address, logins)
}

fn serve(mut stream: TcpStream, requests_max: usize, logins: &AtomicUsize) -> Option<()> {
    stream.set_nodelay(true).unwrap();
    let (mut let_in, mut requests) = (false, 0);
    loop {
        let mut head = [0u8; HEADER_SIZE];
        stream.read_exact(&mut head).ok()?;
        let header = Header::decode(&head).unwrap().unwrap();
        let mut body = vec![0u8; header.body_size];
        stream.read_exact(&mut body).ok()?;
        let mut frame = Vec::new();
        let answer = |opcode| Header::response(header.stream, opcode);
        if header.opcode == Opcode::Startup as u8 {
            answer(Opcode::Authenticate).frame(&mut frame, |out| put::string(out, "a.Mock"));
        } else if header.opcode == Opcode::AuthResponse as u8 {
            let_in = body[4..] == *b"\0ann\0hunter2";
            if let_in {
                logins.fetch_add(1, Ordering::Relaxed);
                answer(Opcode::AuthSuccess).frame(&mut frame, |out| put::bytes(out, None));
            } else {
                answer(Opcode::Error).frame(&mut frame, |out| {
                    response::put_error(out, ErrorCode(0x0100), "no such user");
                });
            }
        } else {
            assert!(let_in, "a request before the password");
            if requests == requests_max {
                return None;
            }
            requests += 1;
            answer(Opcode::Result).frame(&mut frame, |out| put::i32(out, 1));
        }
        stream.write_all(&frame).ok()?;
    }
}

fn ann(password: &str) -> Access {
    Credentials { user: "ann".into(), password: Secret::new(password) }.into()
}

fn updates(address: SocketAddr, access: Access, ops: u64) -> Drive {
    let plan = plan("a", &["readproportion=0", "updateproportion=1", "fieldcount=1"], 100, None);
    let ids = vec![b"0123456789abcdef".to_vec(); plan.statements.len()];
    let encoder = Arc::new(Encoder::new(plan, &rig::table(), &ids, Consistency::One));
    Drive { access, ..drive(address, &encoder, 1, closed(4, Amount::Ops(ops))) }
}

fn refusal(drive: &Drive) -> Refusal {
    let stop = Arc::new(AtomicBool::new(false));
    let mut counts = rig::Counts::default();
    match drive::run(drive, vec![Unwitnessed], &mut counts, &stop).unwrap_err() {
        DriveError::Link(LinkError::Refused { refusal, .. }) => refusal,
        other => panic!("{other}"),
    }
}

#[test]
fn connections_give_their_password_at_the_start_and_after_each_loss() {
    let (address, logins) = mock(100);
    let (driven, ..) = run(&updates(address, ann("hunter2"), 500), vec![Unwitnessed]);
    let count = |outcome| driven.total.ops.iter().map(|op| op.count(outcome)).sum::<u64>();
    let lost = driven.usage[0].connections_lost;
    assert!(lost >= 3, "500 operations over connections of 100: {lost}");
    assert_eq!(count(Outcome::Ok) + count(Outcome::ConnectionLost), 500);
    assert!(count(Outcome::Ok) >= 450);
    assert!(logins.load(Ordering::Relaxed) as u64 >= 2 + lost - 1);
}

#[test]
fn a_wrong_or_missing_password_ends_the_run_before_it_begins() {
    let (address, logins) = mock(100);
    assert!(matches!(
        refusal(&updates(address, Access::default(), 1)),
        Refusal::CredentialsMissing { .. }
    ));
    let wrong = updates(address, ann("letmein"), 1);
    let refused = refusal(&wrong);
    assert!(matches!(refused, Refusal::Credentials { .. }));
    let shown = format!("{refused} {refused:?} {:?}", wrong.access);
    assert!(shown.contains("no such user") && !shown.contains("letmein"), "{shown}");
    assert_eq!(logins.load(Ordering::Relaxed), 0);
}

#[test]
fn the_control_connection_gives_it_too() {
    let (address, logins) = mock(100);
    let mut control = Control::connect_as(address, SECOND, &ann("hunter2")).unwrap();
    assert_eq!(control.query("UPDATE anything").unwrap(), Vec::<Vec<_>>::new());
    assert_eq!(logins.load(Ordering::Relaxed), 1);
    let error = Control::connect(address, SECOND).unwrap_err();
    assert!(matches!(error, ControlError::NotLetIn { .. }), "{error}");
    assert!(error.to_string().contains("--password-file"), "{error}");
}
