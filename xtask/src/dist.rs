//! What users get: one static program, its completions and manual pages, in one archive.
//!
//! Input: the working tree. Output: `target/dist/wideload-VERSION-TARGET.tar.gz` with the program,
//! README, LICENSE, THIRD-PARTY-NOTICES, completions and manual pages, and its SHA-256 beside it.
//! The program is static-pie with glibc: it runs on any Linux of its architecture, takes numeric
//! addresses, and says so when it is given a name. Before it is packed it must run once.
//!
//! Needs: git (for the commit, optional), tar, sha256sum.

use crate::tidy::cargo;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the program is linked with beside crates, by the build and not by `cargo metadata`.
const BESIDE_CRATES: &str = "\
The program is linked statically with the GNU C Library (LGPL-2.1-or-later,
https://www.gnu.org/software/libc/) and the Rust standard library (MIT OR Apache-2.0,
https://www.rust-lang.org/). Whoever wants to link it with another C library builds it from source.
";

/// Builds, checks and packs. Prints the path of the archive.
///
/// # Errors
/// When a step fails; the step is named.
pub fn dist(root: &Path) -> Result<()> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let program = build(root, &target)?;
    check(&program)?;
    let name = format!("wideload-{}-{target}", env!("CARGO_PKG_VERSION"));
    let dist = root.join("target/dist");
    let tree = dist.join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot empty {}", tree.display()))?;
    }
    for part in ["completions", "man"] {
        let part = tree.join(part);
        fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
    }
    for (from, to) in [
        (program.clone(), "wideload"),
        (root.join("README.md"), "README.md"),
        (root.join("LICENSE"), "LICENSE"),
    ] {
        fs::copy(&from, tree.join(to))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    fs::write(tree.join("THIRD-PARTY-NOTICES"), notices(root, &target)?)?;
    for (shell, file) in
        [("bash", "wideload.bash"), ("zsh", "_wideload"), ("fish", "wideload.fish")]
    {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        fs::write(tree.join("completions").join(file), script)?;
    }
    output(Command::new(&program).arg("man").arg(tree.join("man")))?;
    let archive = dist.join(format!("{name}.tar.gz"));
    let tar = ["--owner=0", "--group=0", "--sort=name", "-czf"];
    output(Command::new("tar").current_dir(&dist).args(tar).arg(&archive).arg(&name))?;
    let file = format!("{name}.tar.gz");
    let sum = output(Command::new("sha256sum").current_dir(&dist).arg(&file))?;
    fs::write(dist.join(format!("{file}.sha256")), &sum)?;
    println!("{}", archive.display());
    print!("{sum}");
    Ok(())
}

/// Static, without symbols, knowing its commit.
fn build(root: &Path, target: &str) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["build", "--release", "--locked", "-p", "wideload", "--target", target]);
    command.current_dir(root).stdin(Stdio::null());
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    if let Some(commit) = commit(root) {
        command.env("WIDELOAD_COMMIT", commit);
    }
    if !command.status().context("cannot run cargo build")?.success() {
        bail!("the static build failed; is the glibc of this host installed as a static library?");
    }
    Ok(root.join("target").join(target).join("release/wideload"))
}

/// None outside a repository; marked where files differ from the commit.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        output(Command::new("git").current_dir(root).args(arguments)).ok().map(|s| s.trim().into())
    };
    let commit: String = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed: String = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-changed") })
}

/// It has no interpreter and no library, it runs, and it says what it cannot do.
fn check(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    if asks_for_interpreter(&bytes).context("the program is no 64-bit ELF file")? {
        bail!("{} asks for a dynamic linker: it is not static", program.display());
    }
    let home = tempfile::tempdir().context("cannot make a directory to run it in")?;
    let run = ["run", "ycsb:a", "--records", "1k", "--warm", "0s", "--duration", "1s", "--json"];
    let text = output(Command::new(program).current_dir(home.path()).args(run))?;
    let summary: Value = serde_json::from_str(&text).context("its summary is no JSON")?;
    let (ops, errors) = (summary["ops"].as_u64(), summary["errors"].as_u64());
    if ops.is_none_or(|ops| ops == 0) || errors != Some(0) {
        bail!("its run of 1 s ended with {ops:?} operations and {errors:?} errors");
    }
    let named = ["run", "ycsb:a", "--target", "localhost"];
    let refused = Command::new(program).current_dir(home.path()).args(named).output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    if refused.status.code() != Some(3) || !said.contains("give an address") {
        bail!("given a name, it says '{}'", said.trim());
    }
    let secured = ["--target", "127.0.0.1:1", "--tls", "--tls-ca", "nowhere.pem"];
    let run = ["run", "ycsb:a"];
    let refused =
        Command::new(program).current_dir(home.path()).args(run).args(secured).output()?;
    let said = String::from_utf8_lossy(&refused.stderr);
    if !said.contains("nowhere.pem") {
        bail!("asked for TLS, it says '{}'", said.trim());
    }
    println!("the static program ran {} operations in 1 s", ops.unwrap_or_default());
    Ok(())
}

/// Whether a 64-bit little-endian ELF file has a program header of type `PT_INTERP` (elf(5)); None
/// when it is no such file.
fn asks_for_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, size: usize| {
        let bytes = elf.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    elf.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let (offset, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        if number(usize::try_from(offset + index * size).ok()?, 4)? == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

/// Every crate that is in the program, with its version and licence.
fn notices(root: &Path, target: &str) -> Result<String> {
    let tree = output(Command::new(cargo()).current_dir(root).args([
        "tree", "--locked", "-p", "wideload", "-e", "normal", "--prefix", "none", "--target",
        target, "-f", "{p}",
    ]))?;
    // `name vVERSION` and, of our own crates, a path behind it.
    let used: BTreeSet<(String, String)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
        })
        .collect();
    let metadata = output(Command::new(cargo()).current_dir(root).args([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        target,
    ]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    notices_of(&metadata, &used)
}

fn notices_of(metadata: &Value, used: &BTreeSet<(String, String)>) -> Result<String> {
    let mut text = format!(
        "wideload contains the following crates. Their licences are in their sources at the\n\
         addresses given.\n\n{BESIDE_CRATES}\n"
    );
    let word = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut lines = BTreeSet::new();
    for package in metadata["packages"].as_array().context("cargo metadata has no packages")? {
        let (name, version) = (word(package, "name"), word(package, "version"));
        // Our own have no source; their licence is LICENSE.
        if package["source"].is_null() || !used.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let licence = match word(package, "license") {
            none if none.is_empty() => format!("see {}", word(package, "license_file")),
            licence => licence,
        };
        lines.insert(format!("{name} {version}: {licence}, {}", word(package, "repository")));
    }
    if lines.is_empty() {
        bail!("cargo metadata lists none of the crates that cargo tree does");
    }
    for line in lines {
        writeln!(text, "{}", line.trim_end_matches([',', ' ']))?;
    }
    Ok(text)
}

/// What a command prints; its failure is an error with what it said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("run {shown}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{shown} ended with {}: {}", output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed no text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dynamic_program_is_told_from_a_static_one() {
        let mut elf = vec![0u8; 0x40 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[0x20], elf[0x36], elf[0x38]) = (0x40, 56, 2);
        assert_eq!(asks_for_interpreter(&elf), Some(false));
        elf[0x40 + 56] = 3;
        assert_eq!(asks_for_interpreter(&elf), Some(true));
        assert_eq!(asks_for_interpreter(&elf[..0x60]), None);
        assert_eq!(asks_for_interpreter(b"#!/bin/sh"), None);
    }

    #[test]
    fn notices_name_what_is_in_the_program_and_nothing_else() {
        let package = |name: &str, source: Option<&str>, licence: Option<&str>| {
            json!({"name": name, "version": "1.0.0", "source": source, "license": licence,
                "license_file": "COPYING", "repository": "https://example.org"})
        };
        let registry = Some("registry");
        let metadata = json!({"packages": [
            package("b", registry, Some("MIT")),
            package("a", registry, None),
            package("ours", None, Some("Apache-2.0")),
            package("only-in-tests", registry, Some("MIT")),
        ]});
        let used = ["a", "b", "ours"].map(|name| (name.to_owned(), "1.0.0".to_owned()));
        let text = notices_of(&metadata, &used.into()).unwrap();
        let crates: Vec<_> = text.lines().rev().take(2).collect();
        let b = "b 1.0.0: MIT, https://example.org";
        assert_eq!(crates, [b, "a 1.0.0: see COPYING, https://example.org"]);
        assert!(text.contains("GNU C Library") && !text.contains("only-in-tests"), "{text}");
    }
}
