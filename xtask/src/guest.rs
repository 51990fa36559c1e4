//! What the emulated guest of `crates/wideload/tests/guest.rs` boots, in `target/guest`.
//!
//! Input: the working tree; a kernel of the distribution's package archive, fetched once and not
//! installed. Output: `vmlinuz`, and `wideload` as a static program, linked like the one that users
//! get (see [`crate::dist`]) and not optimised. Measured: 61 s of cpu time for the program, after
//! that 10 s for what changes; 27 MB to fetch.
//!
//! Needs: an x86-64 host with apt and dpkg-deb for the kernel. The emulator and busybox are
//! installed by `.ci/run`.

use crate::dist::output;
use crate::tidy::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// In the names of the tests that need it.
pub const TESTS: &str = "guest";

/// A kernel for virtual machines: small, with all that is needed built in. It depends on the newest
/// one of its kind.
const KERNEL: &str = "linux-image-cloud-amd64";
/// Of the workspace's `Cargo.toml`.
const PROFILE: &str = "emulated";
const EMULATOR: &str = "qemu-system-x86_64";

/// Makes what is missing; the program anew each time.
///
/// # Errors
/// Says what this machine lacks, or which step failed.
pub fn prepare(root: &Path) -> Result<()> {
    ensure!(std::env::consts::ARCH == "x86_64", "only x86-64 is emulated");
    let found = Command::new(EMULATOR).arg("--version").output();
    ensure!(
        found.is_ok_and(|output| output.status.success()),
        "there is no {EMULATOR}; install the package qemu-system-x86"
    );
    let dir = root.join("target/guest");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let kernel = dir.join("vmlinuz");
    if !kernel.exists() {
        fetch_kernel(&kernel)?;
    }
    build(root, &dir.join("wideload"))
}

/// Fetches the package and takes the kernel out of it.
fn fetch_kernel(kernel: &Path) -> Result<()> {
    let dir = tempfile::tempdir().context("cannot make a directory for the kernel's package")?;
    let depends = output(Command::new("apt-cache").args(["depends", KERNEL]))?;
    let newest = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let newest = newest.with_context(|| format!("apt knows no package {KERNEL}"))?;
    output(Command::new("apt-get").current_dir(dir.path()).args(["download", "-qq", newest]))?;
    let package = only(dir.path(), |name| name.ends_with(".deb"))?;
    let tree = dir.path().join("tree");
    output(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&tree))?;
    let image = only(&tree.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    // Whole or not at all.
    let beside = kernel.with_extension("part");
    fs::copy(&image, &beside).with_context(|| format!("cannot copy {}", image.display()))?;
    fs::rename(&beside, kernel).with_context(|| format!("cannot write {}", kernel.display()))
}

/// The file of `dir` with such a name.
fn only(dir: &Path, fits: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&fits) {
            return Ok(entry.path());
        }
    }
    bail!("{} has not the file that was to be there", dir.display())
}

/// The copy is newer than the sources, also where there was nothing to build: so a test can tell
/// that it is of them.
fn build(root: &Path, program: &Path) -> Result<()> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(cargo());
    command.args(["build", "--profile", PROFILE, "--quiet", "-p", "wideload"]);
    command.args(["--target", &target]).current_dir(root).stdin(Stdio::null());
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    ensure!(
        command.status().context("cannot run cargo build")?.success(),
        "the static program cannot be built; is this host's glibc installed as a static library?"
    );
    let built = root.join("target").join(target).join(PROFILE).join("wideload");
    // Or the copy would go into a file that runs.
    let _ = fs::remove_file(program);
    fs::copy(&built, program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}
