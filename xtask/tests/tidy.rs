//! The tree itself keeps the rules, and a tree that does not is told so.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::process::Command;

#[test]
fn the_tree_is_tidy() {
    let findings = xtask::tidy::check(&xtask::root().unwrap()).unwrap();
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn every_kind_of_rule_is_applied_to_a_tree() {
    let dir = tempfile::TempDir::new().unwrap();
    let long = format!("// {}\nfn node() {{ todo!() }}\n", "-".repeat(100));
    let machine_path = concat!("see /ho", "me/me/x\n");
    for (path, text) in [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/*\"]\n[workspace.dependencies]\na = \"1\"\n",
        ),
        ("crates/odd/Cargo.toml", "[package]\nname = \"odd\"\nedition = \"2024\"\n"),
        ("crates/odd/src/lib.rs", &long),
        ("crates/odd/README.md", machine_path),
        (".gitignore", "/ignored\n"),
        ("ignored/a.md", machine_path),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert!(Command::new("git").arg("init").arg("-q").arg(dir.path()).status().unwrap().success());
    let findings = xtask::tidy::check(dir.path()).unwrap();
    let found: Vec<(&str, &str)> = findings
        .iter()
        .filter(|finding| dir.path().join(&finding.file).exists())
        .map(|finding| (finding.file.as_str(), finding.rule))
        .collect();
    assert_eq!(
        found,
        [
            ("Cargo.toml", "dependency"),
            ("crates/odd/Cargo.toml", "layers"),
            ("crates/odd/README.md", "machine-path"),
            ("crates/odd/src/lib.rs", "line-length"),
            ("crates/odd/src/lib.rs", "module-header"),
            ("crates/odd/src/lib.rs", "unfinished"),
            ("crates/odd/src/lib.rs", "vocabulary"),
        ]
    );
}
