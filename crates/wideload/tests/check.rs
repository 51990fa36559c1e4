//! `wideload check`: on this host, on a copied tree, at targets of all kinds; it changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::{Ended, Home, Serve};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

const SCHEMA: &str = include_str!("../schema/check.schema.json");

/// The JSON of a check, held to its schema.
fn json(ended: &Ended) -> Value {
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let shown: BTreeSet<&str> = value["checks"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|check| check["sources"].as_array().unwrap())
        .map(|source| source.as_str().unwrap())
        .collect();
    let named: BTreeSet<&str> =
        value["sources"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(shown, named, "every source has its title");
    value
}

fn check<'a>(value: &'a Value, id: &str) -> &'a Value {
    let mut checks = value["checks"].as_array().unwrap().iter();
    checks.find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id} in {value:#}"))
}

#[test]
fn this_host_is_judged_as_json_and_as_text() {
    let home = Home::new();
    let value = json(&home.run(&["check", "--json"]));
    assert_ne!(check(&value, "disk.free")["verdict"], "unknown", "there is room somewhere");
    assert_eq!(check(&value, "kernel.release")["value"], value["host"]["kernel"]);
    let sum: u64 = value["counts"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum as usize, value["checks"].as_array().unwrap().len());
    for columns in ["80", "120"] {
        let mut command = home.wideload(&["check"]);
        command.env("COLUMNS", columns);
        let ended = rig::Process::start(command).wait(std::time::Duration::from_secs(60));
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        for line in ended.stdout.lines().filter(|line| !line.contains("mend: ")) {
            assert!(line.chars().count() <= columns.parse().unwrap(), "{columns}: {line}");
        }
        for group in ["cpus", "memory", "disks", "network", "what else runs", "sources"] {
            assert!(ended.stdout.lines().any(|line| line == group), "{group}: {}", ended.stdout);
        }
    }
    assert!(rig::RunDir(home.path().to_owned()).files().is_empty(), "it leaves nothing");
}

/// A tree with one fault that warns.
fn tree(home: &Home) {
    let cpu = home.at("tree/sys/devices/system/cpu");
    fs::create_dir_all(cpu.join("cpu0/cpufreq")).unwrap();
    fs::write(cpu.join("online"), "0\n").unwrap();
    fs::write(cpu.join("cpu0/cpufreq/scaling_governor"), "powersave\n").unwrap();
    fs::create_dir_all(home.at("tree/proc/self")).unwrap();
    fs::write(home.at("tree/proc/cpuinfo"), "model name : A \u{1b}[31m cpu\n").unwrap();
}

#[test]
fn a_recorded_tree_is_judged_and_cannot_steer_the_terminal() {
    let home = Home::new();
    tree(&home);
    let value = json(&home.run(&["check", "--root", "tree", "--json", "--strict"]));
    assert_eq!(value["root"], "tree");
    assert_eq!(check(&value, "cpu.governor")["verdict"], "warn");
    assert_eq!(check(&value, "host.runnable")["verdict"], "unknown");
    let ended = home.run(&["check", "--root", "tree"]);
    assert!(ended.stdout.contains("A ?[31m cpu") && !ended.stdout.contains('\u{1b}'), "{ended:?}");
    assert!(ended.stdout.contains("mend: cpupower frequency-set -g performance"), "{ended:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = Home::new();
    fs::create_dir(home.at("empty")).unwrap();
    for (arguments, status, says) in [
        (&["check", "--root", "empty"][..], 3, "shows no cpu"),
        (&["check", "--root", "absent"], 3, "absent"),
        (&["check", "--root", "/", "--target", "127.0.0.1"], 2, "--target"),
        (&["check", "--target", "127.0.0.1:0"], 2, "no port"),
        (&["check", "--client-cpus", "1000"], 2, "--client-cpus 1000"),
        (&["check", "--heap", "1GiB"], 2, "--target cassandra only"),
        (&["check", "--timeout", "0s"], 2, "--timeout 0s"),
        (&["check", "--target", "127.0.0.1", "--user", "me"], 2, "--password-file"),
    ] {
        let ended = home.run(arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(status), ""), "{ended:?}");
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    }
}

#[test]
fn a_target_is_found_with_its_process_and_its_cpus() {
    let home = Home::new();
    let (target_cpu, client_cpu) = rig::serve::two_cpus();
    let serve = Serve::start(&home, &["--cpus", &target_cpu]);
    let target = serve.target();
    let base = ["check", "--json", "--target", &target, "--client-cpus"];
    let value = json(&home.run(&[&base[..], &[&client_cpu]].concat()));
    assert_eq!(check(&value, "target.reach")["verdict"], "ok");
    assert_eq!(check(&value, "target.version")["verdict"], "warn", "it is no database");
    assert_eq!(check(&value, "target.settings")["verdict"], "unknown");
    let cpus = check(&value, "target.cpus");
    let pid = format!("({})", serve.process.id().pid);
    assert!(cpus["value"].as_str().unwrap().contains(&pid), "{cpus}");
    if target_cpu != client_cpu {
        assert_eq!(cpus["verdict"], "ok", "{cpus}");
    }
    let value = json(&home.run(&[&base[..], &[&target_cpu]].concat()));
    assert_eq!(check(&value, "target.cpus")["verdict"], "fail");
    let strict = home.run(&[&base[..], &[&target_cpu, "--strict"]].concat());
    assert_eq!(strict.status, Some(1), "{strict:?}");
}

#[test]
fn a_dead_target_fails_the_check_and_the_run_quotes_it() {
    let home = Home::new();
    // Bound and released: nobody listens on it now.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let value = json(&home.run(&["check", "--json", "--target", &free]));
    assert_eq!(value["verdict"], "fail");
    let reach = check(&value, "target.reach");
    assert!(reach["why"].as_str().unwrap().contains("is the database up"), "{reach}");
    let text = home.run(&["check", "--target", &free]);
    assert!(text.stdout.starts_with("1 fail, "), "{text:?}");
    assert!(text.stdout.contains(&format!("; fail: CQL at {free}\n")), "{text:?}");
    let run = home.run(&["run", "ycsb:a", "--target", &free]);
    assert_eq!((run.status, run.stderr.lines().count()), (Some(3), 1), "{run:?}");
    let quoted = format!("`wideload check --target {free}` says: FAIL CQL at {free}");
    assert!(run.stderr.contains(&quoted), "{run:?}");
}

#[test]
fn a_missing_java_fails_the_check_and_the_run_quotes_it() {
    let home = Home::new();
    fs::create_dir(home.at("bin")).unwrap();
    let without_java = |arguments: &[&str]| {
        let mut command = home.wideload(arguments);
        command.env("PATH", home.at("bin")).env_remove("JAVA_HOME");
        rig::Process::start(command).wait(std::time::Duration::from_secs(60))
    };
    // An address that no other Cassandra on this host listens on.
    let listen = ["--listen", "127.77.0.1"];
    let asked = ["check", "--json", "--target", "cassandra"];
    let value = json(&without_java(&[&asked[..], &listen].concat()));
    let java = check(&value, "target.java");
    assert_eq!(java["verdict"], "fail");
    assert!(java["why"].as_str().unwrap().contains("no java is on PATH"), "{java}");
    assert_eq!(check(&value, "target.ports")["verdict"], "ok");
    // It would inherit this process's limits, which are judged as a database's.
    assert!(check(&value, "limits.nproc")["limit"].as_str().unwrap().contains("database"));
    let run = without_java(&[&["run", "ycsb:a", "--target", "cassandra"], &listen[..]].concat());
    assert_eq!(run.status, Some(3), "{run:?}");
    let quoted = "`wideload check --target cassandra` says: FAIL java: none";
    assert!(run.stderr.contains(quoted), "{run:?}");
}

#[test]
fn a_port_that_is_taken_fails_the_check_and_the_run_quotes_it() {
    let home = Home::new();
    // Held until the end of the test.
    let taken = TcpListener::bind("127.78.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let set = format!("cassandra.native_transport_port={port}");
    let flags = ["--target", "cassandra", "--listen", "127.78.0.1", "--heap", "300MiB"];
    let flags = [&flags[..], &["--set", &set]].concat();
    let value = json(&home.run(&[&["check", "--json"], &flags[..]].concat()));
    let ports = check(&value, "target.ports");
    assert_eq!(ports["verdict"], "fail");
    assert!(ports["why"].as_str().unwrap().contains(&port.to_string()), "{ports}");
    let run = home.run(&[&["run", "ycsb:a"], &flags[..]].concat());
    assert_eq!(run.status, Some(3), "{run:?}");
    let quoted = "`wideload check --target cassandra` says: FAIL ports: taken";
    assert!(run.stderr.contains(quoted), "{run:?}");
}
