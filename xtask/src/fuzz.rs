//! The fuzz targets in `fuzz/`: each for a while.
//!
//! Input: `fuzz/fuzz_targets/*.rs` and the seeds in `fuzz/corpus/<target>`. Output: whether a
//! target fell over; what made it fall is in `fuzz/artifacts/<target>`, what it printed in
//! `target/fuzz-<target>.log`. What the fuzzer learns
//! goes to `target/fuzz-corpus`, so that a run leaves the tree as it was.
//!
//! Needs the nightly toolchain, for its sanitizers. It builds and runs what `cargo fuzz` would,
//! without it: with cargo-fuzz to be built too, a fresh clone took 143 s instead of 90.

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

/// What libFuzzer learns from: each edge of the program, and what it compares. See
/// <https://clang.llvm.org/docs/SanitizerCoverage.html>.
const COVERAGE: [&str; 4] = ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"];
const MANIFEST: &str = "fuzz/Cargo.toml";
/// Of that manifest.
const PROFILE: &str = "fuzz";

/// A toolchain that can fuzz.
pub struct Fuzzer {
    root: PathBuf,
    triple: String,
}

impl Fuzzer {
    /// Finds the nightly toolchain; installs it where `CI` is set.
    ///
    /// # Errors
    /// When it cannot be had.
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
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        Ok(Self { root: root.to_owned(), triple })
    }

    /// Builds all targets.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn build(&self) -> Result<()> {
        let mut flags = vec!["--cfg=fuzzing".to_owned(), "-Zsanitizer=address".to_owned()];
        flags.push("-Cpasses=sancov-module".to_owned());
        flags.extend(COVERAGE.map(|what| format!("-Cllvm-args=-sanitizer-coverage-{what}")));
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "build", "--quiet", "--bins"]);
        // With a triple, the flags are not those of build scripts.
        command.args(["--manifest-path", MANIFEST, "--profile", PROFILE, "--target", &self.triple]);
        command.env("RUSTFLAGS", flags.join(" ")).env("CARGO_TARGET_DIR", self.built());
        // These would lead back to the toolchain that runs this program.
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        let status = command.current_dir(&self.root).status().context("cannot run rustup")?;
        ensure!(status.success(), "the fuzz targets do not build");
        Ok(())
    }

    fn built(&self) -> PathBuf {
        self.root.join("target/fuzz")
    }

    /// Runs a target for `seconds`.
    ///
    /// # Errors
    /// When it fell over, or cannot be run.
    pub fn run(&self, target: &str, seconds: u64) -> Result<()> {
        let learnt = self.root.join("target/fuzz-corpus").join(target);
        let artifacts = self.root.join("fuzz/artifacts").join(target);
        for dir in [&learnt, &artifacts] {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let log = self.root.join("target").join(format!("fuzz-{target}.log"));
        let cannot_write = || format!("cannot write {}", log.display());
        let file = fs::File::create(&log).with_context(cannot_write)?;
        let program = self.built().join(&self.triple).join(PROFILE).join(target);
        // libFuzzer writes to the first directory and reads all of them.
        let status = Command::new(&program)
            .arg(learnt)
            .arg(self.root.join("fuzz/corpus").join(target))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .stdin(Stdio::null())
            .stdout(file.try_clone().with_context(cannot_write)?)
            .stderr(file)
            .status()
            .with_context(|| format!("cannot run {}", program.display()))?;
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
