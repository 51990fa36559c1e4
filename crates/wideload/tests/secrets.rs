//! A password is seen by nobody but the target that asks for it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Home, Process, Serve, eventually, secret};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wire::cql::{ErrorCode, HEADER_SIZE, Header, Opcode, put, response};

const SECRET: &str = "correct-horse-7731";
const VARIABLE: &str = "WIDELOAD_PASSWORD";

/// A door before a target: lets `ann` in by the secret, and passes everything else on. Counts who
/// came in.
fn door(target: SocketAddr) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let let_in = Arc::new(AtomicUsize::new(0));
    let counted = let_in.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = counted.clone();
            std::thread::spawn(move || pass(stream, target, &counted));
        }
    });
    (address, let_in)
}

fn frame(stream: &mut TcpStream) -> Option<(Header, Vec<u8>)> {
    let mut bytes = vec![0u8; HEADER_SIZE];
    stream.read_exact(&mut bytes).ok()?;
    let header = Header::decode(&bytes).unwrap().unwrap();
    bytes.resize(HEADER_SIZE + header.body_size, 0);
    stream.read_exact(&mut bytes[HEADER_SIZE..]).ok()?;
    Some((header, bytes))
}

fn pass(mut client: TcpStream, target: SocketAddr, let_in: &AtomicUsize) -> Option<()> {
    let mut server = TcpStream::connect(target).ok()?;
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    loop {
        let (header, bytes) = frame(&mut client)?;
        let mut answer = Vec::new();
        if header.opcode == Opcode::Startup as u8 {
            // The target has no door of its own: it is begun with, and its READY is kept back.
            server.write_all(&bytes).ok()?;
            frame(&mut server)?;
            let authenticate = Header::response(header.stream, Opcode::Authenticate);
            authenticate.frame(&mut answer, |out| put::string(out, "a.Door"));
        } else if header.opcode == Opcode::AuthResponse as u8 {
            let token = format!("\0ann\0{SECRET}");
            if bytes[HEADER_SIZE + 4..] == *token.as_bytes() {
                let success = Header::response(header.stream, Opcode::AuthSuccess);
                success.frame(&mut answer, |out| put::bytes(out, None));
                client.write_all(&answer).ok()?;
                let_in.fetch_add(1, Ordering::Relaxed);
                break;
            }
            let error = Header::response(header.stream, Opcode::Error);
            error.frame(&mut answer, |out| {
                response::put_error(out, ErrorCode(0x0100), "bad credentials");
            });
        } else {
            // OPTIONS, before the password.
            server.write_all(&bytes).ok()?;
            answer = frame(&mut server)?.1;
        }
        client.write_all(&answer).ok()?;
    }
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(std::net::Shutdown::Both);
    Some(())
}

fn assert_in_no_file(directory: &Path) -> usize {
    secret::assert_in_no_file(directory, SECRET)
}

fn has_secret(bytes: &[u8]) -> bool {
    secret::has(bytes, SECRET)
}

/// Looks at all that `ps` could show, until the program has ended; how often it looked.
fn watch(home: &Home, process: &mut Process, own_environment: bool) -> usize {
    let mut looks = 0;
    while process.is_running() {
        for id in home.left() {
            let read = |file| fs::read(format!("/proc/{}/{file}", id.pid)).unwrap_or_default();
            assert!(!has_secret(&read("cmdline")), "ps shows the secret");
            if id != process.id() || !own_environment {
                // Between fork and exec a process still has its parent's.
                let seen = || !has_secret(&read("environ"));
                let clean = eventually(Duration::from_secs(1), seen);
                assert!(clean, "the environment of {id:?} has the secret");
            }
        }
        looks += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    looks
}

#[test]
fn the_password_of_a_target_is_in_no_file_output_or_process() {
    let home = Home::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("{SECRET}\n")).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.path().to_str().unwrap();
    let serve = Serve::start(&home, &[]);
    let (target, let_in) = door(serve.address);
    let run = ["run", "ycsb:a", "--target", &target, "--fixed-hosts", "--user", "ann"];
    let short = ["--records", "1k", "--warm", "200ms", "--duration", "1s"];
    for (out, by_file, last) in
        [("a", true, "--json"), ("b", false, "--load"), ("c", true, "--load")]
    {
        let mut arguments = [&run[..], &short, &["--out", out, last]].concat();
        if by_file {
            arguments.extend(["--password-file", file]);
        }
        let mut command = home.wideload(&arguments);
        command.env("XDG_STATE_HOME", home.at("state")).env_remove(VARIABLE);
        if !by_file {
            command.env(VARIABLE, SECRET);
        }
        let mut process = Process::start(command);
        let looks = watch(&home, &mut process, !by_file);
        let ended = process.wait(Duration::from_secs(60));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(looks > 3 && !has_secret(format!("{ended:?}").as_bytes()), "{ended:?}");
    }
    assert!(let_in.load(Ordering::Relaxed) >= 3 * 9, "every connection came by the door");
    assert!(assert_in_no_file(home.path()) > 20);
}

#[test]
fn a_refused_password_is_not_shown() {
    let home = Home::new();
    let serve = Serve::start(&home, &[]);
    let (target, _) = door(serve.address);
    for (variable, arguments) in [
        (format!("{SECRET}-wrong"), &["--user", "ann", "--fixed-hosts"][..]),
        (format!("{SECRET}-wrong"), &["--user", "bob"]),
    ] {
        let run = [&["run", "ycsb:a", "--out", "out", "--target", &target], arguments].concat();
        let mut command = home.wideload(&run);
        command.env(VARIABLE, variable);
        let ended = Process::start(command).wait(Duration::from_secs(60));
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("refused user") && ended.stderr.contains("--password-file"));
        assert!(!has_secret(format!("{ended:?}").as_bytes()), "{ended:?}");
        assert_in_no_file(home.path());
        fs::remove_dir_all(home.at("out")).unwrap();
    }
}

#[test]
fn what_is_started_does_not_inherit_the_password() {
    let home = Home::new();
    let run = ["run", "ycsb:a", "--out", "out", "--records", "1k", "--warm", "0s"];
    let mut command = home.wideload(&[&run[..], &["--duration", "2s"]].concat());
    command.env(VARIABLE, SECRET);
    let mut process = Process::start(command);
    let started = eventually(Duration::from_secs(20), || home.left().len() > 1);
    assert!(started, "no target was started");
    watch(&home, &mut process, true);
    let ended = process.wait(Duration::from_secs(60));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_in_no_file(home.path());
}
