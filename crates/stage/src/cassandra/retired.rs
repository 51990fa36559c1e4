//! What a release of Cassandra or its JVM does not take any more, and what came after it.
//!
//! Input: settings and flags of a user, a release, the major version of a JVM. Output: caveats on
//! old names that are still read, or [`Refused`] with the successor, before anything is started.
//!
//! Sources: the fields and annotations of class `Config` in the jars of 4.1.10 and 5.0.5
//! (`keys.txt`, `renamed.txt`); NEWS.txt of 4.0 (Thrift); the table of flags in HotSpot's
//! `arguments.cpp` of JDK 11 to 18, JEP 158 and 271 (flags of the GC log), 363 (CMS), 366 (parallel
//! old), 374 (biased locking). Tried on JDK 17. Limits: top-level keys.

use super::version::Version;
use super::yaml::Setting;
use thiserror::Error;

const KEYS: &str = include_str!("keys.txt");
const RENAMED: &str = include_str!("renamed.txt");
/// The releases that the keys were read from.
const KNOWN: [&str; 2] = ["4.1.10", "5.0.5"];
/// Keys of Thrift, which ended with Cassandra 4.0.
const THRIFT: [&str; 11] = [
    "start_rpc",
    "rpc_port",
    "rpc_server_type",
    "rpc_min_threads",
    "rpc_max_threads",
    "rpc_listen_backlog",
    "thrift_framed_transport_size_in_mb",
    "thrift_max_message_length_in_mb",
    "thrift_prepared_statements_cache_size_mb",
    "request_scheduler",
    "request_scheduler_options",
];

/// A key or a flag that ends the start. The text names the successor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum Refused {
    #[error("cassandra.{key} is no key of Cassandra {version}: {cure}")]
    Key { key: String, version: String, cure: String },
    #[error(
        "cassandra.{old} and cassandra.{new} are one key of Cassandra {version}, under its old \
         and its new name: give {new} alone"
    )]
    Both { old: String, new: String, version: String },
    #[error("--jvm {flag}: Java {major} does not start with it; {cure}")]
    Flag { flag: String, major: u32, cure: &'static str },
    #[error("--jvm {flag:?} has a line break or another control character in it: give one flag")]
    FlagForm { flag: String },
}

/// Old names among `settings` that this release still reads, as sentences.
///
/// # Errors
/// When it does not read one, because it is gone; what was never a key is judged by
/// [`unknown_keys`].
pub(crate) fn keys(settings: &[Setting], version: &Version) -> Result<Vec<String>, Refused> {
    let mut caveats = Vec::new();
    for setting in settings {
        let key = setting.key();
        if let Some((new, unit)) = renamed(key, version) {
            if settings.iter().any(|other| other.key() == new) {
                let (old, new) = (key.to_owned(), new.to_owned());
                return Err(Refused::Both { old, new, version: version.to_string() });
            }
            let with = match unit {
                "-" => String::new(),
                "?" => ", with a unit".to_owned(),
                unit => format!(", with a unit such as {unit}"),
            };
            caveats.push(format!(
                "cassandra.{key} is an old name, which Cassandra {version} still reads; today it \
                 is {new}{with}"
            ));
            continue;
        }
        if is_key(key, version) {
            continue;
        }
        if let Some(cure) = gone(key, version) {
            let (key, version) = (key.to_owned(), version.to_string());
            return Err(Refused::Key { key, version, cure });
        }
    }
    Ok(caveats)
}

/// Keys that this release does not have, as sentences.
///
/// # Errors
/// When it is one of the releases whose keys are known in full.
pub(crate) fn unknown_keys(
    settings: &[Setting],
    version: &Version,
) -> Result<Vec<String>, Refused> {
    let text = version.to_string();
    let mut caveats = Vec::new();
    let unknown = |key: &&str| !is_key(key, version) && renamed(key, version).is_none();
    for key in settings.iter().map(Setting::key).filter(unknown) {
        if KNOWN.contains(&text.as_str()) {
            let cure = match nearest(key, version) {
                Some(near) => format!("did you mean {near}?"),
                None => "see its cassandra.yaml".to_owned(),
            };
            return Err(Refused::Key { key: key.to_owned(), version: text, cure });
        }
        caveats.push(format!(
            "cassandra.{key} is no key of the release of this line that is known here; Cassandra \
             {text} does not start if it is none of its own"
        ));
    }
    Ok(caveats)
}

/// Flags that this JVM ignores, as sentences.
///
/// # Errors
/// For the first that it does not start with.
pub(crate) fn flags(jvm: &[String], major: u32) -> Result<Vec<String>, Refused> {
    let mut caveats = Vec::new();
    for flag in jvm {
        if flag.chars().any(char::is_control) {
            return Err(Refused::FlagForm { flag: flag.clone() });
        }
        let Some(row) = FLAGS.iter().find(|row| row.is(flag)) else { continue };
        let cure = row.cure;
        if major >= row.refused_from {
            return Err(Refused::Flag { flag: flag.clone(), major, cure });
        }
        if major >= row.ignored_from {
            caveats.push(format!("--jvm {flag}: Java {major} ignores it; {cure}"));
        }
    }
    Ok(caveats)
}

/// The new name and the unit of an old value.
fn renamed(key: &str, version: &Version) -> Option<(&'static str, &'static str)> {
    let line = version.line();
    RENAMED.lines().filter(|line| !line.starts_with('#')).find_map(|row| {
        let mut words = row.split(' ');
        let (old, new) = (words.next()?, words.next()?);
        let (unit, lines) = (words.next()?, words.next()?);
        (old == key && lines.split(',').any(|of| of == line)).then_some((new, unit))
    })
}

fn keys_of(version: &Version) -> impl Iterator<Item = &'static str> {
    let line = version.line();
    KEYS.lines().filter(|row| !row.starts_with('#')).filter_map(move |row| {
        match row.split_once(' ') {
            Some((only, key)) => (only == line).then_some(key),
            None => Some(row),
        }
    })
}

fn is_key(key: &str, version: &Version) -> bool {
    keys_of(version).any(|known| known == key)
}

/// What to do without a key that other releases have.
fn gone(key: &str, version: &Version) -> Option<String> {
    if THRIFT.contains(&key) {
        return Some(
            "Thrift ended with Cassandra 4.0; clients use native_transport_port and \
             native_transport_max_threads"
                .to_owned(),
        );
    }
    let elsewhere = KEYS.lines().find_map(|row| {
        let (line, known) = row.split_once(' ')?;
        (known == key && !row.starts_with('#')).then_some(line)
    })?;
    Some(match version.line() < elsewhere {
        true => format!("it came with {elsewhere}"),
        false => format!("it ended with {elsewhere} and has no successor: leave it out"),
    })
}

/// A key of this release that differs by little.
fn nearest(key: &str, version: &Version) -> Option<&'static str> {
    let close = |known: &&str| distance(key, known) <= 2 + key.len() / 10;
    keys_of(version).filter(close).min_by_key(|known| distance(key, known))
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// A flag of HotSpot that went.
struct Flag {
    /// Its name, or how names begin.
    name: &'static str,
    prefix: bool,
    ignored_from: u32,
    refused_from: u32,
    cure: &'static str,
}

impl Flag {
    fn is(&self, flag: &str) -> bool {
        let Some(name) = flag.strip_prefix("-XX:") else { return false };
        let name = name.strip_prefix(['+', '-']).unwrap_or(name);
        let name = match self.name.contains('=') {
            true => name,
            false => name.split('=').next().unwrap_or(name),
        };
        if self.prefix { name.starts_with(self.name) } else { name == self.name }
    }
}

const fn flag(name: &'static str, ignored: u32, refused: u32, cure: &'static str) -> Flag {
    Flag { name, prefix: false, ignored_from: ignored, refused_from: refused, cure }
}

const NO_CMS: &str = "CMS ended with Java 14: take -XX:+UseG1GC, which is the default, or \
                      -XX:+UseZGC from Java 15";
const GC_LOG: &str = "the GC log is set with -Xlog:gc* from Java 9; wideload writes one";
const LEAVE: &str = "it has no successor: leave it out";

const FLAGS: &[Flag] = &[
    flag("UseConcMarkSweepGC", 14, 15, NO_CMS),
    flag("UseCMSInitiatingOccupancyOnly", 14, 15, NO_CMS),
    Flag { name: "CMS", prefix: true, ignored_from: 14, refused_from: 15, cure: NO_CMS },
    flag("UseParNewGC", 10, 10, "it went with CMS: take -XX:+UseG1GC, which is the default"),
    flag("UseParallelOldGC", 15, 16, "-XX:+UseParallelGC alone does the same"),
    flag("AggressiveOpts", 12, 13, LEAVE),
    flag("UseBiasedLocking", 18, 19, "biased locking is off from Java 15: leave it out"),
    flag("BiasedLockingStartupDelay", 18, 19, "biased locking is off from Java 15: leave it out"),
    flag("PermSize", 8, 17, "take -XX:MetaspaceSize"),
    flag("MaxPermSize", 8, 17, "take -XX:MaxMetaspaceSize"),
    flag("PrintGCDateStamps", 9, 9, GC_LOG),
    flag("PrintGCTimeStamps", 9, 9, GC_LOG),
    flag("PrintHeapAtGC", 9, 9, GC_LOG),
    flag("PrintTenuringDistribution", 9, 9, GC_LOG),
    flag("PrintGCApplicationStoppedTime", 9, 9, GC_LOG),
    flag("PrintPromotionFailure", 9, 9, GC_LOG),
    flag("UseGCLogFileRotation", 9, 9, GC_LOG),
    flag("NumberOfGCLogFiles", 9, 9, GC_LOG),
    flag("GCLogFileSize", 9, 9, GC_LOG),
    flag("UseCGroupMemoryLimitForHeap", 11, 11, "-XX:+UseContainerSupport is on by default"),
    flag("ThreadPriorityPolicy=42", 9, 9, "it takes 0 or 1 from Java 9: leave it out"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(texts: &[&str]) -> Vec<Setting> {
        texts.iter().map(|text| format!("cassandra.{text}").parse().unwrap()).collect()
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn old_names_are_read_with_a_caveat_that_gives_the_new_one() {
        for release in ["4.1.10", "5.0.5", "5.0.9"] {
            let old = settings(&["read_request_timeout_in_ms=5000", "concurrent_reads=64"]);
            let caveats = keys(&old, &version(release)).unwrap();
            assert_eq!(caveats.len(), 1, "{caveats:?}");
            assert!(
                caveats[0].contains("today it is read_request_timeout, with a unit such as ms")
            );
            assert_eq!(unknown_keys(&old, &version(release)), Ok(Vec::new()));
        }
        let both = settings(&["read_request_timeout_in_ms=1", "read_request_timeout=1ms"]);
        let error = keys(&both, &version("5.0.5")).unwrap_err().to_string();
        assert!(error.contains("give read_request_timeout alone"), "{error}");
    }

    #[test]
    fn keys_that_are_gone_or_not_there_yet_are_refused_with_the_successor() {
        let refused = |key: &str, release: &str| {
            keys(&settings(&[&format!("{key}=1")]), &version(release)).unwrap_err().to_string()
        };
        assert!(refused("rpc_port", "5.0.5").contains("native_transport_port"));
        assert!(refused("concurrent_replicates", "5.0.5").contains("ended with 4.1"));
        assert!(refused("storage_compatibility_mode", "4.1.10").contains("came with 5.0"));
        // 5.0 reads it under its new name.
        let old = settings(&["keyspace_count_warn_threshold=1"]);
        assert_eq!(keys(&old, &version("4.1.10")), Ok(Vec::new()));
        assert!(keys(&old, &version("5.0.5")).unwrap()[0].contains("keyspaces_warn_threshold"));
    }

    #[test]
    fn what_never_was_a_key_is_refused_where_all_keys_are_known() {
        let wrong = settings(&["concurent_reads=64"]);
        assert_eq!(keys(&wrong, &version("5.0.5")), Ok(Vec::new()));
        let error = unknown_keys(&wrong, &version("5.0.5")).unwrap_err().to_string();
        assert!(error.contains("did you mean concurrent_reads?"), "{error}");
        assert_eq!(unknown_keys(&wrong, &version("5.0.6")).unwrap().len(), 1);
        let wrong = settings(&["no_such_thing=64"]);
        let error = unknown_keys(&wrong, &version("4.1.10")).unwrap_err().to_string();
        assert!(error.contains("see its cassandra.yaml"), "{error}");
    }

    #[test]
    fn flags_are_judged_by_the_java() {
        let refused = |flag: &str, major| flags(&[flag.to_owned()], major).is_err();
        let ignored = |flag: &str, major| flags(&[flag.to_owned()], major).map(|c| c.len());
        for flag in ["-XX:+UseConcMarkSweepGC", "-XX:CMSInitiatingOccupancyFraction=70"] {
            assert_eq!([8, 11, 17].map(|major| refused(flag, major)), [false, false, true]);
        }
        for flag in ["-XX:+UseParNewGC", "-XX:+PrintHeapAtGC", "-XX:ThreadPriorityPolicy=42"] {
            assert_eq!([8, 11, 17].map(|major| refused(flag, major)), [false, true, true]);
        }
        for flag in
            ["-XX:+UseG1GC", "-XX:ThreadPriorityPolicy=1", "-XX:-UseBiasedLocking", "-Xms1g"]
        {
            assert_eq!([8, 11, 17].map(|major| ignored(flag, major)), [Ok(0), Ok(0), Ok(0)]);
        }
        assert_eq!(ignored("-XX:MaxPermSize=64m", 11), Ok(1));
        let error = flags(&["-XX:+UseConcMarkSweepGC".to_owned()], 17).unwrap_err().to_string();
        assert!(error.contains("Java 17") && error.contains("-XX:+UseG1GC"), "{error}");
    }
}
