//! The fuzz targets in `fuzz/`: each for a while.
//!
//! Input: `fuzz/fuzz_targets/*.rs` and the seeds in `fuzz/corpus/<target>`. Output: whether a
//! target fell over; what made it fall is in `fuzz/artifacts/<target>`, what it printed in
//! `target/fuzz-<target>.log`. What the fuzzer learns
//! goes to `target/fuzz-corpus`, so that a run leaves the tree as it was.
//!
//! Needs the nightly toolchain (sanitizers) and cargo-fuzz; it is built into `target/tools` when
//! it is not installed.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The targets, sorted.
///
/// # Errors
/// When `fuzz/fuzz_targets` cannot be listed.
pub fn targets(root: &Path) -> Result<Vec<String>> {
    let dir = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().and_then(|name| name.to_str());
            targets.push(name.context("a fuzz target's name is no text")?.to_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

/// A cargo that can fuzz.
pub struct Fuzzer {
    root: PathBuf,
    path: std::ffi::OsString,
}

impl Fuzzer {
    /// Finds the nightly toolchain and cargo-fuzz, and installs what is missing: cargo-fuzz into
    /// `target/tools`, the toolchain only where `CI` is set.
    ///
    /// # Errors
    /// Says which of them cannot be had.
    pub fn find(root: &Path) -> Result<Self> {
        if !succeeds(Command::new("rustup").args(["run", "nightly", "cargo", "--version"])) {
            ensure!(
                std::env::var_os("CI").is_some(),
                "no nightly toolchain; install it with `rustup toolchain install nightly`"
            );
            let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
            ensure!(
                succeeds(Command::new("rustup").args(install)),
                "the nightly toolchain cannot be installed"
            );
        }
        let tools = root.join("target/tools");
        let old = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&old));
        let path = std::env::join_paths(paths).context("PATH cannot be extended")?;
        let fuzzer = Self { root: root.to_owned(), path };
        if !succeeds(fuzzer.cargo("--version").env("PATH", &fuzzer.path)) {
            println!("building cargo-fuzz into target/tools");
            let mut install = Command::new(super::tidy::cargo());
            install.args(["install", "cargo-fuzz", "--locked", "--quiet", "--root"]).arg(&tools);
            ensure!(
                install.status().is_ok_and(|status| status.success()),
                "cargo-fuzz cannot be built; try `cargo install cargo-fuzz --locked`"
            );
        }
        Ok(fuzzer)
    }

    /// Builds all targets.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn build(&self) -> Result<()> {
        let status = self.cargo("build").status().context("cannot run rustup")?;
        ensure!(status.success(), "the fuzz targets do not build");
        Ok(())
    }

    /// Runs a target for `seconds`.
    ///
    /// # Errors
    /// When it fell over, or cannot be run.
    pub fn run(&self, target: &str, seconds: u64) -> Result<()> {
        let learnt = self.root.join("target/fuzz-corpus").join(target);
        fs::create_dir_all(&learnt).with_context(|| format!("cannot make {}", learnt.display()))?;
        let log = self.root.join("target").join(format!("fuzz-{target}.log"));
        let cannot_write = || format!("cannot write {}", log.display());
        let file = fs::File::create(&log).with_context(cannot_write)?;
        // libFuzzer writes to the first directory and reads all of them.
        let status = self
            .cargo("run")
            .arg(target)
            .arg(learnt)
            .arg(self.root.join("fuzz/corpus").join(target))
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .stdin(Stdio::null())
            .stdout(file.try_clone().with_context(cannot_write)?)
            .stderr(file)
            .status()
            .context("cannot run rustup")?;
        if !status.success() {
            let output =
                fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
            println!("{}", tail(&String::from_utf8_lossy(&output), 60));
            bail!(
                "fuzz target {target} fell over: its output is in {}, the input in \
                 fuzz/artifacts/{target}",
                log.display()
            );
        }
        Ok(())
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz", subcommand]).current_dir(&self.root);
        // These would lead back to the toolchain that runs this program.
        command.env("PATH", &self.path).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        command
    }
}

/// The last `lines` lines of `text`.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn succeeds(command: &mut Command) -> bool {
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command.output().is_ok_and(|output| output.status.success())
}

/// `cargo xtask fuzz`: each target, or the one named, for `minutes`.
///
/// # Errors
/// When a target fell over, does not exist, or the tools are missing.
pub fn fuzz(root: &Path, target: Option<&str>, minutes: u64) -> Result<()> {
    let mut targets = targets(root)?;
    if let Some(wanted) = target {
        ensure!(
            targets.iter().any(|target| target == wanted),
            "no fuzz target '{wanted}'; there are: {}",
            targets.join(", ")
        );
        targets.retain(|target| target == wanted);
    }
    let fuzzer = Fuzzer::find(root)?;
    fuzzer.build()?;
    for target in targets {
        println!("fuzzing {target} for {minutes} min");
        fuzzer.run(&target, minutes.saturating_mul(60))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }

    #[test]
    fn every_target_has_seeds() {
        let root = crate::root().unwrap();
        let targets = targets(&root).unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            let seeds = fs::read_dir(root.join("fuzz/corpus").join(&target)).unwrap();
            assert!(seeds.count() > 0, "{target}");
        }
    }
}
