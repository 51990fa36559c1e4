//! The project's own tasks: what must hold of the sources, and how all tests are run.
//!
//! Input: the working tree. Output: findings, and a line that sums the tests up.
//! `cargo xtask --help` lists the tasks.

pub mod bench;
pub mod dist;
pub mod fuzz;
pub mod guest;
pub mod soak;
pub mod suite;
pub mod tidy;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The top of the workspace.
///
/// # Errors
/// When this program was built elsewhere and the tree is gone.
pub fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask lies in no workspace")?;
    root.canonicalize().with_context(|| format!("cannot find the workspace at {}", root.display()))
}
