//! The jars of a release, from Maven Central into this user's cache by the installed `mvn`.
//!
//! Input: a [`Version`]. Output: a directory of jars, complete or not there at all: it is filled
//! under another name, gets a list of its files and sizes, and is renamed. What does not match
//! its list is thrown away and fetched anew. Which mirror, proxy and local repository are used is
//! Maven's configuration and none of ours.
//!
//! Source: the plugin `dependency`, goal `copy-dependencies`, of Apache Maven. Limits: one download
//! at a time of one release, at most [`FETCH_MAX`]; some 100 jars, 66 MB.

use super::brief::{self, BriefError};
use super::version::Version;
use crate::lock::Lock;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;
use thiserror::Error;
use units::{Bytes, Nanos};

/// A slow connection takes minutes.
const FETCH_MAX: Nanos = Nanos::from_secs(1200);
/// How often it is asked whether somebody else is done with fetching.
const POLL: Duration = Duration::from_millis(50);
/// The list in a complete directory.
const LIST: &str = "complete.json";
/// What every directory in the cache begins with.
const PREFIX: &str = "cassandra-";
const LOCK_SUFFIX: &str = ".lock";

/// Why there are no jars. Each text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum CacheError {
    /// No Maven.
    #[error(
        "no mvn is on PATH to fetch Cassandra {version} with: install Maven, or give an unpacked \
         Cassandra with --cassandra-home DIR"
    )]
    NoMaven { version: Version },
    /// No network.
    #[error(
        "Maven cannot reach its repository to fetch Cassandra {version}: go online, set a mirror \
         or proxy in Maven's settings.xml, or give an unpacked Cassandra with --cassandra-home \
         DIR{}",
        quoted(last_lines)
    )]
    Offline { version: Version, last_lines: Vec<String> },
    /// No such release.
    #[error(
        "Maven finds no Cassandra {version}: give a release that exists, like 5.0.5{}",
        quoted(last_lines)
    )]
    NoRelease { version: Version, last_lines: Vec<String> },
    /// Something else.
    #[error(
        "Maven could not fetch Cassandra {version} ({reason}): mend what it says, or give an \
         unpacked Cassandra with --cassandra-home DIR{}",
        quoted(last_lines)
    )]
    Maven { version: Version, reason: String, last_lines: Vec<String> },
    /// A file.
    #[error("cannot write {}: {cause}; free space, or set XDG_CACHE_HOME to another place",
        path.display())]
    File { path: PathBuf, cause: io::Error },
    /// Somebody needs what should be removed.
    #[error("{} is in use by a running wideload: end it first", path.display())]
    InUse { path: PathBuf },
    /// The user's wish.
    #[error("interrupted while fetching Cassandra {version}")]
    Interrupted { version: Version },
}

fn quoted(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "\n    " + line)
}

/// A complete directory of jars. While this lives nobody removes it.
#[derive(Debug)]
pub(crate) struct Jars {
    pub(crate) dir: PathBuf,
    _lock: Lock,
}

/// What a complete directory holds.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    files: Vec<(String, u64)>,
}

/// The jars of `version` below `cache`, fetched by `mvn` where they are missing. `said` hears what
/// takes time.
pub(crate) fn jars(
    cache: &Path,
    version: &Version,
    mvn: Option<&Path>,
    said: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Jars, CacheError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |cause| CacheError::File { path, cause }
    };
    fs::create_dir_all(cache).map_err(file(cache))?;
    let dir = cache.join(format!("{PREFIX}{version}"));
    let lock_path = cache.join(format!("{PREFIX}{version}{LOCK_SUFFIX}"));
    loop {
        // Whoever uses the jars shares the lock; whoever makes or removes them has it alone.
        if let Some(lock) = Lock::try_shared(&lock_path).map_err(file(&lock_path))?
            && is_complete(&dir)
        {
            return Ok(Jars { dir, _lock: lock });
        }
        // Not waited for: whoever was first may use the jars for hours, and share them.
        if let Some(_alone) = Lock::try_exclusive(&lock_path).map_err(file(&lock_path))?
            && !is_complete(&dir)
        {
            let mvn = mvn.ok_or_else(|| CacheError::NoMaven { version: version.clone() })?;
            said(&format!("fetching Cassandra {version} with Maven into {}", dir.display()));
            fetch(&dir, version, mvn, stop)?;
            continue;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(CacheError::Interrupted { version: version.clone() });
        }
        sleep(POLL);
    }
}

fn fetch(dir: &Path, version: &Version, mvn: &Path, stop: &AtomicBool) -> Result<(), CacheError> {
    let partial = dir.with_file_name(format!("{PREFIX}{version}.partial"));
    let filled = fill(&partial, version, mvn, stop).and_then(|()| {
        let cause = |cause| CacheError::File { path: dir.to_owned(), cause };
        remove(dir).map_err(cause)?;
        fs::rename(&partial, dir).map_err(cause)
    });
    if filled.is_err() {
        // What could not be written cannot always be removed; the next fetch begins with it.
        let _ = remove(&partial);
    }
    filled
}

fn fill(
    partial: &Path,
    version: &Version,
    mvn: &Path,
    stop: &AtomicBool,
) -> Result<(), CacheError> {
    let file = |cause| CacheError::File { path: partial.to_owned(), cause };
    remove(partial).map_err(file)?;
    fs::create_dir_all(partial).map_err(file)?;
    let pom = partial.join("pom.xml");
    fs::write(&pom, pom_text(version)).map_err(file)?;
    // -U: Maven remembers for a day what it could not reach.
    let flags = ["-B", "-q", "-U", "-DincludeScope=runtime", "dependency:copy-dependencies", "-f"];
    let mut argv: Vec<OsString> = vec![mvn.into()];
    argv.extend(flags.map(OsString::from));
    argv.push(pom.clone().into());
    argv.push(option("-DoutputDirectory=", partial));
    let log = partial.join("maven.log");
    brief::run_into(&argv, &log, FETCH_MAX, stop).map_err(|error| refused(version, error))?;
    for made in [pom, log] {
        fs::remove_file(made).map_err(file)?;
    }
    let listed = Listed { files: files(partial).map_err(file)? };
    let main = format!("cassandra-all-{version}.jar");
    if !listed.files.iter().any(|(name, _)| *name == main) {
        let reason = format!("it ended well and left no {main}");
        return Err(CacheError::Maven { version: version.clone(), reason, last_lines: Vec::new() });
    }
    let text = serde_json::to_vec(&listed).map_err(|error| file(error.into()))?;
    fs::write(partial.join(LIST), text).map_err(file)
}

/// `-Dkey=PATH`, whatever bytes the path is of.
pub(crate) fn option(key: &str, path: &Path) -> OsString {
    let mut word = OsString::from(key);
    word.push(path);
    word
}

/// The smallest project that depends on the release.
fn pom_text(version: &Version) -> String {
    format!(
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>wideload</groupId>\n  \
         <artifactId>cassandra-jars</artifactId>\n  <version>1</version>\n  \
         <packaging>pom</packaging>\n  <dependencies>\n    <dependency>\n      \
         <groupId>org.apache.cassandra</groupId>\n      <artifactId>cassandra-all</artifactId>\n\
         \x20     <version>{version}</version>\n    </dependency>\n  </dependencies>\n</project>\n"
    )
}

/// Tells by Maven's words what is wrong.
fn refused(version: &Version, error: BriefError) -> CacheError {
    let version = version.clone();
    let (reason, last_lines) = match error {
        BriefError::Interrupted => return CacheError::Interrupted { version },
        BriefError::Spawn(error) => (error.to_string(), Vec::new()),
        BriefError::Endless => (format!("it was not done after {FETCH_MAX}"), Vec::new()),
        BriefError::Failed { exit, last_lines } => (exit, last_lines),
    };
    // Colours may stand before the word; of its long explanations the first line says it.
    let error = last_lines.iter().find_map(|line| Some(line[line.find("[ERROR]")?..].to_owned()));
    let told = error.map_or(last_lines, |line| vec![line]);
    let says = |words: &[&str]| told.iter().any(|l| words.iter().any(|word| l.contains(word)));
    let offline = [
        "offline mode",
        "Unknown host",
        "Could not transfer",
        "failed to transfer",
        "No plugin found for prefix",
        "Connection refused",
        "Network is unreachable",
        "timed out",
    ];
    if says(&offline) {
        CacheError::Offline { version, last_lines: told }
    } else if says(&["Could not find artifact org.apache.cassandra:cassandra-all"]) {
        CacheError::NoRelease { version, last_lines: told }
    } else {
        CacheError::Maven { version, reason, last_lines: told }
    }
}

/// Whether all that is listed is there, in its full size.
fn is_complete(dir: &Path) -> bool {
    let listed = fs::read(dir.join(LIST)).ok().and_then(|b| serde_json::from_slice(&b).ok());
    let Some(Listed { files }) = listed else { return false };
    let whole = |(name, size): &(String, u64)| {
        dir.join(name).metadata().is_ok_and(|m| m.is_file() && m.len() == *size)
    };
    !files.is_empty() && files.iter().all(whole)
}

/// The files of a directory and their sizes, sorted.
fn files(dir: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, entry.metadata()?.len()));
    }
    files.sort();
    Ok(files)
}

fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// What is in the cache: names of directories and their sizes, sorted.
///
/// # Errors
/// When it cannot be read.
pub fn cached(cache: &Path) -> Result<Vec<(String, Bytes)>, CacheError> {
    let file = |cause| CacheError::File { path: cache.to_owned(), cause };
    let names = match files(cache) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(file)?,
    };
    let is_release = |name: &str| name.starts_with(PREFIX) && !name.ends_with(LOCK_SUFFIX);
    let releases = names.into_iter().map(|(name, _)| name).filter(|name| is_release(name));
    let size = |name: String| {
        let bytes = files(&cache.join(&name)).map_err(file)?.iter().map(|(_, size)| size).sum();
        Ok((name, Bytes(bytes)))
    };
    releases.map(size).collect()
}

/// Removes all releases from the cache; which ones, and how many bytes that were.
///
/// # Errors
/// [`CacheError::InUse`] when a running wideload needs one: then nothing is removed.
pub fn clean(cache: &Path) -> Result<Vec<(String, Bytes)>, CacheError> {
    let file = |cause| CacheError::File { path: cache.to_owned(), cause };
    let names = match files(cache) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(file)?,
    };
    let mut locks = Vec::new();
    for (name, _) in names.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let release = name.trim_end_matches(LOCK_SUFFIX).trim_end_matches(".partial");
        let path = cache.join(format!("{release}{LOCK_SUFFIX}"));
        if locks.iter().any(|(_, locked)| *locked == path) {
            continue;
        }
        let lock = Lock::try_exclusive(&path).map_err(file)?;
        let lock = lock.ok_or_else(|| CacheError::InUse { path: cache.join(release) })?;
        locks.push((lock, path));
    }
    let removed = cached(cache)?;
    for (name, _) in &removed {
        remove(&cache.join(name)).map_err(file)?;
    }
    for (_held, path) in &locks {
        fs::remove_file(path).map_err(file)?;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassandra::brief::tests::script;
    use tempfile::TempDir;

    /// A Maven that leaves two jars where it is told, and counts how often it was asked.
    const FAKE: &str = "for a; do case $a in -DoutputDirectory=*) out=${a#*=};; esac; done\n\
        echo asked >> \"${0%/*}/asked\"\n\
        echo main > \"$out/cassandra-all-5.0.5.jar\"; echo jamm > \"$out/jamm-0.4.0.jar\"";

    struct Rig {
        dir: TempDir,
        version: Version,
    }

    impl Rig {
        fn new(mvn: &str) -> Self {
            let dir = TempDir::new().unwrap();
            script(&dir.path().join("mvn"), mvn);
            Self { dir, version: "5.0.5".parse().unwrap() }
        }

        fn cache(&self) -> PathBuf {
            self.dir.path().join("cache")
        }

        fn jars(&self) -> Result<Jars, CacheError> {
            let mvn = self.dir.path().join("mvn");
            let stop = AtomicBool::new(false);
            jars(&self.cache(), &self.version, Some(&mvn), &mut |_| {}, &stop)
        }

        fn asked(&self) -> usize {
            let asked = fs::read_to_string(self.dir.path().join("asked"));
            asked.map_or(0, |text| text.lines().count())
        }
    }

    #[test]
    fn jars_are_fetched_once() {
        let rig = Rig::new(FAKE);
        let dir = rig.jars().unwrap().dir;
        assert!(dir.join("jamm-0.4.0.jar").is_file());
        assert_eq!(files(&dir).unwrap().len(), 3, "jars and their list");
        assert_eq!(rig.jars().unwrap().dir, dir);
        assert_eq!(rig.asked(), 1);
    }

    #[test]
    fn half_a_directory_is_made_anew() {
        let rig = Rig::new(FAKE);
        let dir = rig.jars().unwrap().dir;
        let jar = dir.join("jamm-0.4.0.jar");
        let breakages: [&dyn Fn(); 4] = [
            &|| fs::write(&jar, "ja").unwrap(),
            &|| fs::remove_file(&jar).unwrap(),
            &|| fs::write(dir.join(LIST), "{\"files\": [").unwrap(),
            &|| fs::remove_file(dir.join(LIST)).unwrap(),
        ];
        for (times, breakage) in breakages.into_iter().enumerate() {
            breakage();
            // What a killed download has left.
            fs::create_dir_all(rig.cache().join("cassandra-5.0.5.partial/x")).unwrap();
            rig.jars().unwrap();
            assert_eq!(fs::read_to_string(&jar).unwrap(), "jamm\n");
            assert!(!rig.cache().join("cassandra-5.0.5.partial").exists());
            assert_eq!(rig.asked(), times + 2);
        }
    }

    #[test]
    fn two_at_once_fetch_once() {
        let rig = Rig::new(&FAKE.replace("echo asked", "sleep 0.2; echo asked"));
        std::thread::scope(|scope| {
            let both = [scope.spawn(|| rig.jars()), scope.spawn(|| rig.jars())];
            let _both = both.map(|one| one.join().unwrap().unwrap());
        });
        assert_eq!(rig.asked(), 1);
    }

    #[test]
    fn what_maven_says_becomes_a_cure_and_nothing_is_left() {
        let transfer = "printf '\\033[0m[ERROR] Could not transfer artifact x: Unknown host y\\n\
            [ERROR] \\n[ERROR] To see the full stack trace\\n'; exit 1";
        let find = "echo '[ERROR] Could not find artifact org.apache.cassandra:cassandra-all:jar:\
            5.0.99 in z'; exit 1";
        for (mvn, said) in [
            (transfer, "go online"),
            (find, "a release that exists"),
            ("echo '[ERROR] no plugin'; exit 1", "no plugin"),
            ("exit 0", "left no cassandra-all-5.0.5.jar"),
        ] {
            let rig = Rig::new(mvn);
            let error = rig.jars().unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("5.0.5"), "{error}");
            let left = files(&rig.cache()).unwrap();
            assert_eq!(left.len(), 1, "only the lock: {left:?}");
        }
        let rig = Rig::new("");
        let stop = AtomicBool::new(false);
        let error = jars(&rig.cache(), &rig.version, None, &mut |_| {}, &stop).unwrap_err();
        assert!(error.to_string().contains("install Maven"), "{error}");
    }

    #[test]
    fn the_cache_is_emptied_unless_somebody_needs_it() {
        let rig = Rig::new(FAKE);
        let jars = rig.jars().unwrap();
        let error = clean(&rig.cache()).unwrap_err();
        assert!(matches!(error, CacheError::InUse { .. }), "{error}");
        assert!(is_complete(&jars.dir));
        drop(jars);
        fs::write(rig.cache().join("not ours"), "x").unwrap();
        let listed = cached(&rig.cache()).unwrap();
        assert_eq!((listed.len(), listed[0].0.as_str()), (1, "cassandra-5.0.5"));
        assert!(listed[0].1 > Bytes(0));
        assert_eq!(clean(&rig.cache()).unwrap(), listed);
        let left = files(&rig.cache()).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(clean(&rig.dir.path().join("no such cache")).unwrap().is_empty());
    }
}
