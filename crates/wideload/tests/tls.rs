//! TLS on the command line: runs inside it on both engines, and one sentence with the cure for each
//! way in which it cannot be.

#![cfg(feature = "tls")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../ring/tests/certs/mod.rs"]
mod certs;
mod rig;

use certs::Authority;
use rig::secret::assert_in_no_file;
use rig::{Ended, Home, RunDir, Serve};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const USAGE: i32 = 2;
const ENVIRONMENT: i32 = 3;
/// Nothing that cannot be may take longer; it is a bound against hanging.
const REFUSED_MAX: Duration = Duration::from_secs(40);

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What all of the tests need of certificates.
struct Files {
    ca: PathBuf,
    other_ca: PathBuf,
    server: (PathBuf, PathBuf),
    expired: (PathBuf, PathBuf),
    client: (PathBuf, PathBuf),
    stranger: (PathBuf, PathBuf),
}

impl Files {
    fn new(home: &Home) -> Self {
        let dir = home.at("certs");
        fs::create_dir(&dir).unwrap();
        let (authority, other) = (Authority::new(&dir, "ca"), Authority::new(&dir, "other"));
        Self {
            ca: authority.pem(),
            other_ca: other.pem(),
            server: authority.sign("server", &["127.0.0.1", "db.example"]),
            expired: authority.sign_expired("expired", &["127.0.0.1"]),
            client: authority.sign("client", &[]),
            stranger: other.sign("stranger", &[]),
        }
    }

    fn serve(&self, home: &Home, (cert, key): &(PathBuf, PathBuf), more: &[&str]) -> Serve {
        let tls = ["--tls-cert", text(cert), "--tls-key", text(key)];
        Serve::start(home, &[&tls, more].concat())
    }

    fn trusting(&self) -> Vec<&str> {
        vec!["--tls", "--tls-ca", text(&self.ca)]
    }

    fn as_client(&self) -> Vec<&str> {
        let (cert, key) = (text(&self.client.0), text(&self.client.1));
        [self.trusting(), vec!["--tls-cert", cert, "--tls-key", key]].concat()
    }
}

fn run_at<'a>(target: &'a str, tls: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "ycsb:a", "--target", target, "--records", "1k", "--ops", "5k"];
    let load = ["--warm", "0s", "--threads", "32", "-p", "dataintegrity=true"];
    [&run[..], &load, tls, more].concat()
}

#[test]
fn rows_come_back_verified_inside_tls_on_both_engines() {
    let home = Home::new();
    let files = Files::new(&home);
    let key = fs::read_to_string(&files.client.1).unwrap();
    let key = key.lines().nth(1).unwrap();
    let has_uring = drive::Engine::IoUring.check().is_ok();
    if !has_uring {
        println!("without io-uring: this kernel has none");
    }
    for engine in ["epoll", "io-uring"].into_iter().take(1 + usize::from(has_uring)) {
        let client_ca = ["--tls-client-ca", text(&files.ca), "--engine", engine];
        let serve = files.serve(&home, &files.server, &client_ca);
        for (n, more) in [
            &[][..],
            &["--protocol", "5", "--compression", "lz4"],
            &["--fixed-hosts", "--tls-name", "db.example"],
        ]
        .into_iter()
        .enumerate()
        {
            let (target, out) = (serve.target(), home.at(&format!("{engine}-{n}")));
            let how = ["--engine", engine, "--out", text(&out)];
            let line = run_at(&target, &files.as_client(), &[&how[..], more].concat());
            let summary = home.summary(&line);
            assert_eq!((summary.ops, summary.errors), (5000, 0), "{engine} {more:?}");
            assert!(!summary.caveats.iter().any(|c| c.code == "tls-insecure"), "{engine} {more:?}");
            let manifest = RunDir(out.clone()).manifest();
            assert_eq!(manifest.target["tls"], true);
            assert_eq!(manifest.settings["tls"]["key"], text(&files.client.1));
            assert!(assert_in_no_file(&out, key) > 5);
        }
        let port = format!("native={}", serve.address.port());
        for command in ["write", "read"] {
            let line = [command, "n=500", "no-warmup", "-rate", "threads=4", "-pop", "seq=1..500"];
            let at = ["-node", "127.0.0.1", "-port", &port];
            let all = [&["cassandra-stress"], &files.as_client()[..], &line, &at].concat();
            let ended = home.run(&all);
            assert_eq!(ended.status, Some(0), "{ended:?}");
        }
        // It is taken as it is, with a word about that; `check` sees it too.
        let target = serve.target();
        let insecure = [files.as_client()[3..].to_vec(), vec!["--tls", "--tls-insecure"]].concat();
        let summary = home.summary(&run_at(&target, &insecure, &[]));
        assert!(summary.caveats.iter().any(|c| c.code == "tls-insecure"), "{summary:?}");
        let check = [&["check", "--target", &target][..], &files.as_client()].concat();
        let checked = home.run(&check);
        let line = format!("CQL at {target}");
        let line = checked.stdout.lines().find(|told| told.contains(&line));
        assert!(line.is_some_and(|line| line.starts_with("ok")), "{checked:?}");
        let scylla = ["--scylla", "--shards", "4", "--engine", engine];
        let sharded = files.serve(&home, &files.server, &scylla);
        let target = sharded.target();
        let summary = home.summary(&run_at(&target, &files.trusting(), &["--engine", engine]));
        let shards = summary.shards.unwrap();
        assert_eq!((shards.count, shards.requests, shards.astray), (4, 5000, 0), "{engine}");
    }
    home.assert_nothing_left();
}

/// Runs it and holds its refusal to the rules.
fn refused(home: &Home, line: &[&str], status: i32, says: &[&str]) -> Ended {
    let begin = Instant::now();
    let ended = home.start(line).wait(REFUSED_MAX);
    assert_eq!(ended.status, Some(status), "{line:?}: {ended:?}");
    assert!(begin.elapsed() < REFUSED_MAX, "{line:?}");
    let sentence = ended.stderr.lines().find(|told| told.starts_with("error: "));
    let sentence = sentence.unwrap_or_else(|| panic!("{line:?}: {ended:?}"));
    for word in says {
        assert!(sentence.contains(word), "'{word}' is not in it: {line:?}: {ended:?}");
    }
    assert!(!ended.stderr.contains("panicked") && !ended.stderr.contains("PRIVATE"), "{ended:?}");
    ended
}

#[test]
fn whoever_cannot_be_spoken_with_is_told_in_a_sentence() {
    let home = Home::new();
    let files = Files::new(&home);
    let fine = files.serve(&home, &files.server, &[]);
    let strict = files.serve(&home, &files.server, &["--tls-client-ca", text(&files.ca)]);
    let expired = files.serve(&home, &files.expired, &[]);
    let plain = Serve::start(&home, &[]);
    let of_other = vec!["--tls", "--tls-ca", text(&files.other_ca)];
    let named = [files.trusting(), vec!["--tls-name", "db.elsewhere"]].concat();
    let (cert, key) = (text(&files.stranger.0), text(&files.stranger.1));
    let stranger = [files.trusting(), vec!["--tls-cert", cert, "--tls-key", key]].concat();
    for (serve, tls, says) in [
        (&fine, of_other, &["not signed by an authority", "--tls-ca"][..]),
        (&fine, named, &["127.0.0.1, db.example", "not for db.elsewhere", "--tls-name"]),
        (&expired, files.trusting(), &["expired", "renew it"]),
        (&strict, files.trusting(), &["wants a client's certificate", "--tls-cert"]),
        (&strict, stranger, &["does not take our certificate", "--tls-cert"]),
        (&plain, files.trusting(), &["does not speak TLS", "leave --tls out"]),
        (&fine, vec![], &["speaks TLS", "add --tls"]),
        (&strict, vec![], &["speaks TLS", "add --tls"]),
    ] {
        let target = serve.target();
        let says = [&[target.as_str()][..], says].concat();
        for hosts in [&[][..], &["--fixed-hosts"]] {
            refused(&home, &run_at(&target, &tls, hosts), USAGE, &says);
        }
    }
}

#[test]
fn flags_and_files_that_cannot_be_are_refused_before_anything_begins() {
    let home = Home::new();
    let files = Files::new(&home);
    let nowhere = "127.0.0.1:1";
    let (cert, key) = (text(&files.client.0), text(&files.client.1));
    let other_key = text(&files.server.1);
    for (tls, says) in [
        (vec!["--tls-ca", text(&files.ca)], "--tls"),
        (vec!["--tls", "--tls-cert", cert], "--tls-key"),
        (vec!["--tls", "--tls-key", key], "--tls-cert"),
        (vec!["--tls", "--tls-insecure", "--tls-ca", cert], "--tls-insecure"),
        (vec!["--tls", "--tls-ca", "nowhere.pem"], "nowhere.pem"),
        (vec!["--tls", "--tls-ca", key], "no certificate in PEM"),
        (vec!["--tls", "--tls-cert", cert, "--tls-key", cert], "no private key in PEM"),
        (vec!["--tls", "--tls-cert", cert, "--tls-key", other_key], "cannot be used together"),
        (vec!["--tls", "--tls-name", "a b"], "no host name"),
    ] {
        let ended = home.run(&run_at(nowhere, &tls, &[]));
        assert_eq!(ended.status, Some(USAGE), "{tls:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{tls:?}: {ended:?}");
    }
    for line in [
        &["run", "ycsb:a", "--target", "cassandra", "--tls"][..],
        &["run", "ycsb:a", "--tls"],
        &["check", "--tls"],
        &["scale", "--tls"],
    ] {
        let started = home.run(line);
        assert_eq!(started.status, Some(USAGE), "{started:?}");
        assert!(started.stderr.contains("runs already"), "{started:?}");
    }
    assert!(!home.at("runs").exists());
    // A key that others may read is warned of, and used.
    fs::set_permissions(&files.client.1, fs::Permissions::from_mode(0o644)).unwrap();
    let says = ["cannot connect"];
    let ended = refused(&home, &run_at(nowhere, &files.as_client(), &[]), ENVIRONMENT, &says);
    let warning = ended.stderr.lines().find(|line| line.starts_with("warning: "));
    assert!(warning.is_some_and(|line| line.contains("chmod 600")), "{ended:?}");
}

#[test]
fn connections_come_back_inside_tls() {
    let home = Home::new();
    let files = Files::new(&home);
    let serve = files.serve(&home, &files.server, &["--fault", "drop=0.1%"]);
    let target = serve.target();
    let tls = [files.trusting(), vec!["--retries", "5", "--json"]].concat();
    let line = run_at(&target, &tls, &[]);
    let line: Vec<_> =
        line.into_iter().map(|word| if word == "5k" { "20k" } else { word }).collect();
    let summary = home.run(&line).summary();
    assert_eq!(summary.ops, 20_000, "{summary:?}");
    assert!(summary.errors < 200, "{summary:?}");
    let lost = summary.caveats.iter().find(|c| c.code == "connections-lost");
    assert!(lost.is_some(), "about 20 were: {:?}", summary.caveats);
}
