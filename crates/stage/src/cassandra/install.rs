//! A Cassandra to start: its jars, its version, the JVM flags that it ships.
//!
//! Input: a release to be fetched, or the directory of an unpacked one. Output: [`Install`].
//! Source: the layouts of the binary tarball (`lib/apache-cassandra-5.0.5.jar`, `conf/`) and of
//! the Debian and RPM packages (`/usr/share/cassandra/apache-cassandra-5.0.5.jar`, `lib/`, with
//! `/etc/cassandra`). Limits: of a shipped `conf/` only the files of JVM flags are read.

use super::brief;
use super::cache::{self, CacheError, Jars};
use super::java::Java;
use super::version::{Version, VersionError};
use crate::dirs::{self, NoHome};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use thiserror::Error;

/// Where Cassandra comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A release, fetched with Maven where it is not in the cache.
    Release(Version),
    /// An unpacked tarball, or the directory of a package.
    Home(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(version) => write!(f, "Cassandra {version}"),
            Self::Home(home) => write!(f, "Cassandra in {}", home.display()),
        }
    }
}

/// Why a source is no Cassandra. Each text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum InstallError {
    /// The cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// No place for the cache.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// The directory's version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// Not a Cassandra.
    #[error(
        "--cassandra-home {} holds no Cassandra ({reason}): give the directory of an unpacked \
         tarball, with lib/ in it", home.display()
    )]
    NoCassandra { home: PathBuf, reason: String },
    /// A path that a class path cannot hold.
    #[error("{} cannot stand in a class path, because of its colon: use another directory",
        dir.display())]
    Colon { dir: PathBuf },
}

/// A Cassandra to start.
#[derive(Debug)]
pub(crate) struct Install {
    pub(crate) version: Version,
    /// Directories of jars.
    pub(crate) jar_dirs: Vec<PathBuf>,
    /// The jar that measures objects, to be loaded as an agent.
    pub(crate) jamm: PathBuf,
    /// Files of JVM flags.
    conf: Option<PathBuf>,
    /// Keeps the cache from being emptied.
    _jars: Option<Jars>,
}

/// Finds or fetches it. `said` hears what takes time.
pub(crate) fn resolve(
    source: &Source,
    said: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Install, InstallError> {
    let install = match source {
        Source::Release(version) => {
            let mvn = brief::on_path("mvn", std::env::var_os("PATH").as_deref());
            let jars = cache::jars(&dirs::cache()?, version, mvn.as_deref(), said, stop)?;
            let jamm = jamm(&jars.dir).ok().flatten();
            let reason = "Maven has fetched no jamm-*.jar".to_owned();
            let jamm = jamm.ok_or_else(|| CacheError::Maven {
                version: version.clone(),
                reason,
                last_lines: Vec::new(),
            })?;
            Install {
                version: version.clone(),
                jar_dirs: vec![jars.dir.clone()],
                jamm,
                conf: None,
                _jars: Some(jars),
            }
        }
        Source::Home(home) => unpacked(home)?,
    };
    let colon = |dir: &&PathBuf| dir.as_os_str().as_encoded_bytes().contains(&b':');
    match install.jar_dirs.iter().find(colon) {
        Some(dir) => Err(InstallError::Colon { dir: dir.clone() }),
        None => Ok(install),
    }
}

fn unpacked(home: &Path) -> Result<Install, InstallError> {
    let none = |reason: String| InstallError::NoCassandra { home: home.to_owned(), reason };
    // The JVM runs elsewhere than where the flag was given.
    let absolute = fs::canonicalize(home).map_err(|cause| none(cause.to_string()))?;
    let lib = absolute.join("lib");
    let main = |dir: &Path| {
        let jars = names(dir).ok()?;
        jars.iter().find_map(|name| {
            let version = name.strip_prefix("apache-cassandra-");
            let version = version.or_else(|| name.strip_prefix("cassandra-all-"))?;
            // Beside it lie jars of the same name with `-sources` and the like.
            version.strip_suffix(".jar")?.parse::<Version>().map_or_else(
                |error| matches!(error, VersionError::Line { .. }).then_some(Err(error)),
                |version| Some(Ok(version)),
            )
        })
    };
    let version = main(&lib).or_else(|| main(&absolute));
    let version = version
        .ok_or_else(|| none("neither it nor lib/ has apache-cassandra-*.jar".to_owned()))??;
    let jamm = jamm(&lib).map_err(|cause| none(format!("lib/: {cause}")))?;
    let jamm = jamm.ok_or_else(|| none("lib/ has no jamm-*.jar".to_owned()))?;
    let conf = [absolute.join("conf"), PathBuf::from("/etc/cassandra")];
    let conf = conf.into_iter().find(|dir| dir.join("jvm-server.options").is_file());
    Ok(Install { version, jar_dirs: vec![lib, absolute], jamm, conf, _jars: None })
}

fn jamm(dir: &Path) -> io::Result<Option<PathBuf>> {
    let names = names(dir)?;
    let jamm = names.iter().find(|name| name.starts_with("jamm-") && name.ends_with(".jar"));
    Ok(jamm.map(|name| dir.join(name)))
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<_> = fs::read_dir(dir)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

impl Install {
    /// The flags that it ships for this JVM; None when it ships none.
    pub(crate) fn shipped_flags(&self, java: &Java) -> Option<Vec<String>> {
        let conf = self.conf.as_ref()?;
        let read = |name: String| fs::read_to_string(conf.join(name)).ok();
        let all = read("jvm-server.options".to_owned())?;
        let own = read(format!("jvm{}-server.options", java.major))?;
        Some(all.lines().chain(own.lines()).flat_map(flags_of).collect())
    }

    /// What the state file shows: the first directory of jars.
    pub(crate) fn dir(&self) -> &Path {
        self.jar_dirs.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// The flags in a line of such a file: those that begin with a dash; some take a second word.
fn flags_of(line: &str) -> Vec<String> {
    let line = line.trim();
    match line.starts_with('-') {
        true => line.split_whitespace().map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn tarball(files: &[(&str, &str)]) -> TempDir {
        let dir = TempDir::new().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn home(dir: &TempDir) -> Result<Install, InstallError> {
        let source = Source::Home(dir.path().to_owned());
        resolve(&source, &mut |_| {}, &AtomicBool::new(false))
    }

    #[test]
    fn a_tarball_knows_its_version_and_its_flags() {
        let dir = tarball(&[
            ("lib/apache-cassandra-5.0.5.jar", ""),
            ("lib/jamm-0.4.0.jar", ""),
            ("conf/jvm-server.options", "# -Xno\n-ea\n  -Xss256k \n"),
            ("conf/jvm17-server.options", "--add-exports a/b=ALL-UNNAMED\n-XX:+UseG1GC\n"),
        ]);
        let install = home(&dir).unwrap();
        assert_eq!(install.version.to_string(), "5.0.5");
        assert!(install.jamm.ends_with("lib/jamm-0.4.0.jar"));
        let java = |major| Java { program: "java".into(), version: String::new(), major };
        let flags = ["-ea", "-Xss256k", "--add-exports", "a/b=ALL-UNNAMED", "-XX:+UseG1GC"];
        assert_eq!(install.shipped_flags(&java(17)).unwrap(), flags);
        assert_eq!(install.shipped_flags(&java(11)), None);
    }

    #[test]
    fn what_is_no_cassandra_is_refused_with_the_cure() {
        let cases = [
            (tarball(&[("lib/x.jar", "")]), "apache-cassandra-*.jar"),
            (tarball(&[("lib/apache-cassandra-5.0.5.jar", "")]), "jamm"),
            (tarball(&[("lib/apache-cassandra-3.11.1.jar", "")]), "5.0.x"),
        ];
        for (dir, said) in &cases {
            let error = home(dir).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let gone = Source::Home("no/such/dir".into());
        let error = resolve(&gone, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("--cassandra-home no/such/dir"), "{error}");
    }
}
