//! What a package holds beside the program: completions and manual pages, from the command line's
//! own definition.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use rig::Home;
use std::fs;

#[test]
fn completions_know_verbs_and_flags() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let ended = home.run(&["completions", shell]);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["wideload", "serve", "in-flight-max", "write-into-existing"] {
            assert!(ended.stdout.contains(word), "{shell} does not know {word}");
        }
    }
    let ended = home.run(&["completions", "cmd.exe"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("'cmd.exe'") && ended.stderr.contains("bash"), "{ended:?}");
}

#[test]
fn every_verb_has_a_manual_page() {
    let home = Home::new();
    fs::create_dir(home.at("man")).unwrap();
    let ended = home.run(&["man", "man"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let page = |name: &str| fs::read_to_string(home.at("man").join(name)).unwrap();
    for verb in ["run", "ycsb", "up", "down", "ps", "clean", "report", "serve", "completions"] {
        assert!(page(&format!("wideload-{verb}.1")).contains(".SH"), "{verb}");
    }
    assert!(page("wideload.1").contains("wideload\\-run(1)"));
    assert!(page("wideload-run.1").contains("\\-\\-in\\-flight\\-max"));
    let help = home.run(&["--help"]);
    assert!(!help.stdout.contains("manual pages"), "it is for those who build packages");
    let absent = home.run(&["man", "absent"]);
    assert_eq!(absent.status, Some(3), "{absent:?}");
    assert!(absent.stderr.contains("'absent'"), "{absent:?}");
}

#[test]
fn the_manifest_names_the_host_and_the_program() {
    let home = Home::new();
    let run = ["run", "ycsb:c", "--out", "out", "--records", "100", "--warm", "0s"];
    home.summary(&[&run[..], &["--ops", "100"]].concat());
    let manifest = rig::RunDir(home.at("out")).manifest();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(manifest.host["settings"]["host_name"], name.trim());
    assert_eq!(manifest.tool.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest.tool.commit.as_deref(), option_env!("WIDELOAD_COMMIT"));
}

#[test]
fn clients_by_the_hundred_thousand() {
    let home = Home::new();
    let run = ["run", "ycsb:a", "--out", "out", "--storage", "null", "--threads", "100k"];
    let load = ["--records", "1k", "--warm", "0s", "--ops", "300k"];
    let summary = home.summary(&[&run[..], &load].concat());
    assert_eq!((summary.ops, summary.errors), (300_000, 0));
    let settings = rig::RunDir(home.at("out")).manifest().settings;
    assert_eq!(
        (settings["threads"].as_u64(), settings["connections"].as_u64()),
        (Some(100_000), Some(8))
    );
}
