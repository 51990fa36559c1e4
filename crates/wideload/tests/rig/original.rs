//! The original cassandra-stress, as Apache has published it, for tests that run it beside ours.

use super::{Ended, Home, Process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The last release whose archive is in Maven Central.
const VERSION: &str = "3.11.4";
/// A JVM that starts on a machine that does other things too, and its few operations.
const RUN_MAX: Duration = Duration::from_secs(150);

/// Where its jars are.
pub(crate) struct Original {
    jars: PathBuf,
}

impl Original {
    /// None, with a line that says why, where this machine cannot have it.
    pub(crate) fn get() -> Option<Self> {
        static JARS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match JARS.get_or_init(jars) {
            Ok(jars) => Some(Self { jars: jars.clone() }),
            Err(why) => {
                eprintln!("SKIP: the original cassandra-stress: {why}");
                None
            }
        }
    }

    /// Runs a line of it to its end.
    pub(crate) fn run(&self, home: &Home, line: &str) -> Ended {
        let mut command = home.command("java");
        let path = format!("{0}/tools/lib/*:{0}/lib/*", self.jars.display());
        let quiet = format!("-Dlogback.configurationFile={}/quiet.xml", self.jars.display());
        command.args(["-Xmx512m", "-cp", &path, &quiet, "org.apache.cassandra.stress.Stress"]);
        command.args(line.split(' '));
        Process::start(command).wait(RUN_MAX)
    }
}

/// The jars, fetched once for all tests.
fn jars() -> Result<PathBuf, String> {
    said("java", Command::new("java").arg("-version"))?;
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let dir = tmp.join(format!("cassandra-stress-{VERSION}"));
    if dir.is_dir() {
        return Ok(dir);
    }
    let partial = tempfile::tempdir_in(tmp).map_err(|e| e.to_string())?;
    let archive = format!("apache-cassandra-{VERSION}");
    let artifact = format!("-Dartifact=org.apache.cassandra:apache-cassandra:{VERSION}:tar.gz:bin");
    let into = format!("-DoutputDirectory={}", partial.path().display());
    // -U: Maven remembers for a day what it could not reach.
    let words = ["-B", "-q", "-U", "dependency:copy", &artifact, "-Dtransitive=false", &into];
    said("mvn", Command::new("mvn").args(words))?;
    let file = partial.path().join(format!("{archive}-bin.tar.gz"));
    let parts = [format!("{archive}/lib"), format!("{archive}/tools/lib")];
    let mut tar = Command::new("tar");
    said("tar", tar.arg("-xzf").arg(file).arg("-C").arg(partial.path()).args(parts))?;
    let made = partial.path().join(archive);
    let quiet = "<configuration><root level=\"OFF\"/></configuration>";
    fs::write(made.join("quiet.xml"), quiet).map_err(|e| e.to_string())?;
    match fs::rename(&made, &dir) {
        // Another test has been as quick.
        Err(error) if !dir.is_dir() => Err(error.to_string()),
        _ => Ok(dir),
    }
}

/// What a program that ended badly has said.
fn said(name: &str, command: &mut Command) -> Result<(), String> {
    let out = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    let text = [out.stdout, out.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains("ERROR")).unwrap_or_default();
    if out.status.success() { Ok(()) } else { Err(format!("{name}: {line}")) }
}
