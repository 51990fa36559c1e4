//! Clients in Python, as their makers give them out: they come from their registry once and stay
//! under `target/test-tools`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Says why a test did not run: on stderr, and in the file that the test runner names.
pub(crate) fn skip(reason: &str) {
    eprintln!("SKIP: {reason}");
    if let Some(path) = std::env::var_os("WIDELOAD_SKIP_FILE") {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut f| writeln!(f, "SKIP: {reason}")).unwrap();
    }
}

/// Runs a command to its end; its output, or why it failed.
pub(crate) fn run(program: &Path, args: &[&str]) -> Result<String, String> {
    let name = program.display();
    let out = Command::new(program).args(args).output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let text = [out.stderr, out.stdout].concat();
    Err(format!("{name}: {}: {}", out.status, String::from_utf8_lossy(&text).trim()))
}

/// A Python in an environment of this name that can `import` these modules, for which `packages`
/// are installed where it cannot.
pub(crate) fn python(name: &str, modules: &str, packages: &[&str]) -> Result<PathBuf, String> {
    // Tests of one file run at once.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock();
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("test-tools");
    fs::create_dir_all(&tools).unwrap();
    let venv = tools.join(name);
    let python = venv.join("bin/python");
    if run(&python, &["-c", &format!("import {modules}")]).is_err() {
        run(Path::new("python3"), &["-m", "venv", "--clear", venv.to_str().unwrap()])?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(&python, &[&install[..], packages].concat())?;
    }
    Ok(python)
}

/// A script of these tests.
pub(crate) fn script(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name);
    path.to_str().unwrap().to_owned()
}
