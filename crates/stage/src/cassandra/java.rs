//! The JDK: where it is, which it is, whether this Cassandra runs on it.
//!
//! Input: `--java-home`, `JAVA_HOME`, `PATH`, in this order. Output: [`Java`], found by running
//! `java -version`. Source: JEP 223 (version strings; before it, `1.8.0_392` was Java 8).
//! Limits: one answer within [`ANSWER_MAX`].

use super::brief::{self, BriefError};
use super::version::Version;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use thiserror::Error;
use units::Nanos;

/// A JVM that prints its version takes some 0.1 s.
const ANSWER_MAX: Nanos = Nanos::from_secs(20);

/// A JVM that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Java {
    /// Its program.
    pub program: PathBuf,
    /// Its version in full, such as `17.0.15`.
    pub version: String,
    /// Its major version: 8, 11, 17.
    pub major: u32,
}

/// Why there is no JVM to start. Each text names the program and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum JavaError {
    /// The directory holds none.
    #[error(
        "{source_name} {} has no bin/java: give the directory of JDK {wanted}", home.display()
    )]
    NoProgram { source_name: &'static str, home: PathBuf, wanted: String },
    /// None is installed.
    #[error(
        "no java is on PATH, and JAVA_HOME is not set: install JDK {wanted}, or give it with \
         --java-home DIR"
    )]
    Missing { wanted: String },
    /// It does not say which it is.
    #[error("cannot tell which Java {} is: {reason}; give another with --java-home DIR",
        program.display())]
    Unknown { program: PathBuf, reason: String },
    /// Cassandra does not run on it.
    #[error(
        "Cassandra {cassandra} runs on JDK {wanted}, and {} ({source_name}) is Java {found}: \
         give a fitting one with --java-home DIR", program.display()
    )]
    Unsupported {
        cassandra: String,
        wanted: String,
        program: PathBuf,
        source_name: &'static str,
        found: String,
    },
}

/// Where a JVM may be given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) flag: Option<PathBuf>,
    pub(crate) variable: Option<PathBuf>,
    pub(crate) path: Option<OsString>,
}

impl Places {
    pub(crate) fn of_environment(flag: Option<&Path>) -> Self {
        let variable = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
        Self {
            flag: flag.map(Path::to_owned),
            variable: variable.map(PathBuf::from),
            path: std::env::var_os("PATH"),
        }
    }
}

/// Finds the JVM for `cassandra`.
pub(crate) fn find(places: &Places, cassandra: &Version) -> Result<Java, JavaError> {
    let wanted = either(cassandra.jdks());
    let homes = [("--java-home", &places.flag), ("JAVA_HOME", &places.variable)];
    let home = homes.into_iter().find_map(|(name, home)| Some((name, home.as_ref()?)));
    let (source_name, program) = match home {
        Some((source_name, home)) => {
            let program = home.join("bin/java");
            if !program.is_file() {
                let home = home.clone();
                return Err(JavaError::NoProgram { source_name, home, wanted });
            }
            (source_name, program)
        }
        None => match brief::on_path("java", places.path.as_deref()) {
            Some(program) => ("on PATH", program),
            None => return Err(JavaError::Missing { wanted }),
        },
    };
    let java = ask(program)?;
    if cassandra.jdks().contains(&java.major) {
        return Ok(java);
    }
    Err(JavaError::Unsupported {
        cassandra: cassandra.to_string(),
        wanted,
        program: java.program,
        source_name,
        found: java.version,
    })
}

fn ask(program: PathBuf) -> Result<Java, JavaError> {
    let argv = [program.clone().into_os_string(), "-version".into()];
    let unknown = |reason| JavaError::Unknown { program: program.clone(), reason };
    let lines = brief::run(&argv, ANSWER_MAX).map_err(|error| match error {
        BriefError::Spawn(cause) => unknown(cause.to_string()),
        BriefError::Endless => unknown(format!("'java -version' still runs after {ANSWER_MAX}")),
        BriefError::Failed { exit, last_lines } => {
            unknown(format!("'java -version' ended with {exit}: {}", last_lines.join(" ")))
        }
        BriefError::Interrupted => unknown("interrupted".to_owned()),
    })?;
    // The environment may have made it say other things first.
    let found = lines.iter().find_map(|line| parse(line));
    let said = || unknown(format!("'java -version' says '{}'", lines.join(" ")));
    let (version, major) = found.ok_or_else(said)?;
    Ok(Java { program: program.clone(), version, major })
}

/// The version in a line like `openjdk version "17.0.15" 2025-04-15`, and its major number.
fn parse(line: &str) -> Option<(String, u32)> {
    let (_, rest) = line.split_once(" version \"")?;
    let (version, _) = rest.split_once('"')?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let major = match (numbers.next()?.parse().ok()?, numbers.next()) {
        (1, Some(minor)) => minor.parse().ok()?,
        (major, _) => major,
    };
    Some((version.to_owned(), major))
}

/// `11 or 17`.
fn either(jdks: &[u32]) -> String {
    jdks.iter().map(u32::to_string).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra::brief::tests::script;
    use tempfile::TempDir;

    #[test]
    fn versions_of_all_ages_are_read() {
        for (line, version, major) in [
            ("openjdk version \"17.0.15\" 2025-04-15", "17.0.15", 17),
            ("java version \"1.8.0_392\"", "1.8.0_392", 8),
            ("openjdk version \"11\" 2018-09-25", "11", 11),
            ("openjdk version \"21-ea\" 2023-09-19", "21-ea", 21),
        ] {
            assert_eq!(parse(line), Some((version.to_owned(), major)), "{line}");
        }
        for line in ["", "OpenJDK Runtime Environment", "java version \"x\"", "a version \"17"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    /// A home whose `java` prints this.
    fn home(dir: &TempDir, name: &str, body: &str) -> PathBuf {
        let bin = dir.path().join(name).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        script(&bin.join("java"), body);
        dir.path().join(name)
    }

    fn says(version: &str) -> String {
        format!(
            "echo 'Picked up JAVA_TOOL_OPTIONS: -Dx' >&2; echo 'java version \"{version}\"' >&2"
        )
    }

    #[test]
    fn the_flag_wins_over_the_variable_and_the_variable_over_the_path() {
        let dir = TempDir::new().unwrap();
        let cassandra: Version = "5.0.5".parse().unwrap();
        let [a, b, c] = ["11.0.1", "17.0.2", "17.0.3"].map(|v| home(&dir, v, &says(v)));
        let mut places =
            Places { flag: Some(a), variable: Some(b), path: Some(c.join("bin").into()) };
        let version = |places: &Places| find(places, &cassandra).unwrap().version;
        assert_eq!(version(&places), "11.0.1");
        places.flag = None;
        assert_eq!(version(&places), "17.0.2");
        places.variable = None;
        assert_eq!(version(&places), "17.0.3");
        places.path = None;
        let error = find(&places, &cassandra).unwrap_err().to_string();
        assert!(error.contains("11 or 17") && error.contains("--java-home"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_cure() {
        let dir = TempDir::new().unwrap();
        let cases = [
            ("5.0.5", home(&dir, "new", &says("25.0.3")), "11 or 17", "25.0.3"),
            ("5.0.5", home(&dir, "old", &says("1.8.0_392")), "11 or 17", "1.8.0_392"),
            ("4.1.10", home(&dir, "mid", &says("17.0.15")), "8 or 11", "17.0.15"),
            ("5.0.5", home(&dir, "dumb", "echo hello"), "cannot tell", "hello"),
            ("5.0.5", home(&dir, "fail", "echo broken >&2; exit 3"), "exit status: 3", "broken"),
            ("5.0.5", dir.path().join("nothing"), "no bin/java", "nothing"),
        ];
        for (version, home, said, also) in cases {
            let places = Places { flag: Some(home), ..Places::default() };
            let error = find(&places, &version.parse().unwrap()).unwrap_err().to_string();
            for part in [said, also, "--java-home"] {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }
}
