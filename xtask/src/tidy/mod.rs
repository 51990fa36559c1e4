//! What reading can check: layers, lengths, headers, words that must not be there.
//!
//! Input: the files that git tracks or would track, and `cargo metadata`. Output: [`Finding`]s
//! of the form `file:line: rule: what, and the cure`.
//!
//! Exceptions are listed in [`allowed`]; the lists may only shrink: an entry that is not needed
//! any more is a finding too. Limits: sources are scanned, not parsed; macros that make
//! unbalanced braces would mislead it.

mod allowed;
mod layers;
mod manifest;
mod per_op;
mod rust;
mod shape;
mod text;
mod words;

use anyhow::{Context, Result, ensure};
use rust::RustFile;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// One thing that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the top of the workspace.
    pub file: String,
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The rule's short name.
    pub rule: &'static str,
    /// What is wrong and what cures it.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.text)
    }
}

/// All findings in the workspace at `root`, sorted.
///
/// # Errors
/// When git or cargo cannot be asked, or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let metadata =
        run(root, &cargo(), &["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let mut findings = layers::check(&metadata);
    let listed = run(root, "git", &["ls-files", "-co", "--exclude-standard"])?;
    let mut paths: Vec<&str> = listed.lines().filter(|p| root.join(p).is_file()).collect();
    paths.sort_unstable();
    let (mut shapes, mut per_op_uses) = (Vec::new(), Vec::new());
    for path in &paths {
        let bytes =
            std::fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        // Binary files have no lines to check.
        let Ok(content) = String::from_utf8(bytes) else { continue };
        findings.extend(text::check(path, &content));
        if path.ends_with("Cargo.toml") {
            findings.extend(manifest::check(path, &content));
        }
        if path.ends_with(".rs") {
            let file = RustFile::new(path, &content);
            shapes.extend(shape::check(&file));
            per_op_uses.extend(per_op::uses(&file));
            findings.extend(words::check(&file));
        }
    }
    findings.extend(allowed::apply(shapes, allowed::SHAPES));
    findings.extend(per_op::check(&per_op_uses));
    findings.sort();
    Ok(findings)
}

/// The cargo that runs this program, else the one on the path.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("cannot run {program}; is it installed?"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {} failed: {stderr}", arguments.join(" "));
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))
}
