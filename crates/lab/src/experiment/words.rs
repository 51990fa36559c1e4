//! The words of an experiment: settings by name, what their values look like, and what is not built
//! yet.
//!
//! A setting that `wideload run` has as a flag has the flag's name. Words of what is not built are
//! known all the same, so that a published study can be written down in whole: a trial that uses
//! one says what it needs, and is not run.

use units::{Bytes, Count, Nanos, Rate};

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number, also as text like "100k".
    Count,
    /// A time like "30s".
    Time,
    /// A time, or the word auto.
    TimeOrAuto,
    /// A rate like "20k/s".
    Rate,
    /// A size like "4GiB".
    Size,
    /// true or false.
    Flag,
    /// A list of texts.
    List,
    /// A table of keys and values.
    Table,
}

impl Kind {
    /// For an error.
    pub(crate) fn form(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Count => "a whole number like 64 or \"100k\"".to_owned(),
            Self::Time => "a time like \"30s\"".to_owned(),
            Self::TimeOrAuto => "a time like \"30s\", or \"auto\"".to_owned(),
            Self::Rate => "a rate like \"20k/s\"".to_owned(),
            Self::Size => "a size like \"4GiB\"".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::List => "a list of texts like [\"-Xss256k\"]".to_owned(),
            Self::Table => "a table like { key = \"value\" }".to_owned(),
        }
    }

    /// Whether a text, or a number as text, is of this kind.
    pub(crate) fn takes(self, text: &str) -> bool {
        match self {
            Self::Text => true,
            Self::OneOf(words) => words.contains(&text),
            Self::Count => text.parse::<Count>().is_ok(),
            Self::Time => text.parse::<Nanos>().is_ok(),
            Self::TimeOrAuto => text == "auto" || text.parse::<Nanos>().is_ok(),
            Self::Rate => text.parse::<Rate>().is_ok(),
            Self::Size => text.parse::<Bytes>().is_ok(),
            Self::Flag | Self::List | Self::Table => false,
        }
    }
}

/// How a setting reaches the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// A flag of `wideload run` of the same name.
    Flag,
    /// The workload's name.
    Workload,
    /// What is started: a word of its own, or hosts.
    Target,
    /// A flag of `wideload run` that is called otherwise here; repeated for lists and tables.
    Called(&'static str),
    /// For this plan alone: nothing is passed on.
    Plan,
    /// Not built; the name of what it takes.
    Needs(&'static str),
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) usage: Use,
}

const fn word(name: &'static str, kind: Kind, usage: Use) -> Word {
    Word { name, kind, usage }
}

/// Databases that are started, by name.
pub(crate) const DATABASES: [&str; 4] = ["reference", "cassandra", "scylla", "aerospike"];

/// All settings.
pub(crate) const WORDS: &[Word] = &[
    word("workload", Kind::Text, Use::Workload),
    word("database", Kind::OneOf(&DATABASES), Use::Target),
    word("target", Kind::List, Use::Target),
    word("version", Kind::Text, Use::Called("--cassandra-version")),
    word("cassandra-home", Kind::Text, Use::Flag),
    word("java-home", Kind::Text, Use::Flag),
    word("heap", Kind::Size, Use::Flag),
    word("heap-total", Kind::Size, Use::Flag),
    word("listen", Kind::Text, Use::Flag),
    word("data-dir", Kind::Text, Use::Flag),
    word("jvm", Kind::List, Use::Called("--jvm")),
    word("cassandra", Kind::Table, Use::Called("--set")),
    word("property", Kind::Table, Use::Called("-p")),
    word("storage", Kind::OneOf(&["memory", "null"]), Use::Flag),
    word("target-cpus", Kind::Text, Use::Flag),
    word("client-cpus", Kind::Text, Use::Flag),
    word("keyspace", Kind::Text, Use::Flag),
    word("table", Kind::Text, Use::Flag),
    word("replication", Kind::Text, Use::Flag),
    word("consistency", Kind::Text, Use::Flag),
    word("protocol", Kind::Count, Use::Flag),
    word("compression", Kind::OneOf(&["none", "lz4", "snappy"]), Use::Flag),
    word("engine", Kind::OneOf(&["epoll", "io-uring"]), Use::Flag),
    word("tls", Kind::Flag, Use::Flag),
    word("tls-ca", Kind::Text, Use::Flag),
    word("tls-cert", Kind::Text, Use::Flag),
    word("tls-key", Kind::Text, Use::Flag),
    word("tls-name", Kind::Text, Use::Flag),
    word("tls-insecure", Kind::Flag, Use::Flag),
    word("fixed-hosts", Kind::Flag, Use::Flag),
    word("datacenter", Kind::Text, Use::Flag),
    word("write-into-existing", Kind::Flag, Use::Flag),
    word("records", Kind::Count, Use::Flag),
    word("load", Kind::Flag, Use::Flag),
    word("skip-load", Kind::Flag, Use::Flag),
    word("ops", Kind::Count, Use::Flag),
    word("duration", Kind::Time, Use::Flag),
    word("warm", Kind::TimeOrAuto, Use::Flag),
    word("warm-max", Kind::Time, Use::Flag),
    word("settle", Kind::Time, Use::Flag),
    word("threads", Kind::Count, Use::Flag),
    word("rate", Kind::Rate, Use::Flag),
    word("arrivals", Kind::OneOf(&["constant", "poisson"]), Use::Flag),
    word("throttle", Kind::Rate, Use::Flag),
    word("in-flight-max", Kind::Count, Use::Flag),
    word("timeout", Kind::Time, Use::Flag),
    word("retries", Kind::Count, Use::Flag),
    word("give-up", Kind::Time, Use::Flag),
    word("connections", Kind::Count, Use::Flag),
    word("wait", Kind::OneOf(&["spin", "sleep"]), Use::Flag),
    word("interval", Kind::Time, Use::Flag),
    word("expected-rate", Kind::Rate, Use::Plan),
    word("expected-start", Kind::Time, Use::Plan),
    word("layout", Kind::Text, Use::Flag),
    word("numa-count", Kind::Count, Use::Flag),
    word("spread", Kind::Flag, Use::Flag),
    word("serial", Kind::Time, Use::Flag),
    word("data", Kind::OneOf(&["wipe", "keep"]), Use::Plan),
    word("hosts", Kind::Table, Use::Needs("hosts")),
    word("clients", Kind::Table, Use::Needs("clients")),
    word("cluster", Kind::Table, Use::Needs("clusters")),
    word("vm", Kind::Table, Use::Needs("vm")),
    word("tune", Kind::Table, Use::Needs("tune")),
    word("capture", Kind::List, Use::Needs("capture")),
    word("scylla", Kind::Table, Use::Needs("scylla")),
    word("aerospike", Kind::Table, Use::Needs("aerospike")),
    word("population", Kind::Text, Use::Needs("cassandra-stress")),
    word("columns", Kind::Table, Use::Needs("cassandra-stress")),
    word("object", Kind::Text, Use::Needs("asbench")),
];

/// What is not built, and in words.
pub(crate) const NEEDS: [(&str, &str); 12] = [
    ("data", "the data of a running database wiped before each trial"),
    ("hosts", "databases on several hosts, or on given hardware"),
    ("clients", "several client machines, or several clients with ranges of their own"),
    ("clusters", "rings over several instances, and several of them at a time"),
    ("vm", "virtual machines as hosts"),
    ("tune", "an OS and NIC profile that is set and undone"),
    ("capture", "host metrics beyond those of every run"),
    ("scylla", "ScyllaDB as a target"),
    ("aerospike", "Aerospike as a target"),
    ("cassandra-stress", "in experiments; `wideload run` and `wideload cassandra-stress` have it"),
    ("nosqlbench", "NoSQLBench workloads"),
    ("asbench", "asbench workloads"),
];

/// Settings of the load alone: trials that differ in nothing else can work on the same data.
pub(crate) const OF_THE_LOAD: [&str; 19] = [
    "ops",
    "duration",
    "warm",
    "warm-max",
    "settle",
    "threads",
    "rate",
    "arrivals",
    "throttle",
    "in-flight-max",
    "timeout",
    "retries",
    "give-up",
    "connections",
    "wait",
    "interval",
    "expected-rate",
    "expected-start",
    "consistency",
];

/// Workloads of front ends that are not built, by how their names begin.
const WORKLOADS: [(&str, &str); 3] =
    [("cassandra-stress:", "cassandra-stress"), ("nb:", "nosqlbench"), ("asbench:", "asbench")];

/// The word of a name.
pub(crate) fn find(name: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.name == name)
}

/// What a trial needs that uses this setting with this value.
pub(crate) fn needs(name: &str, value: &str) -> Option<&'static str> {
    match (name, value) {
        ("database", "scylla") => Some("scylla"),
        ("database", "aerospike") => Some("aerospike"),
        ("workload", _) => {
            WORKLOADS.iter().find(|(start, _)| value.starts_with(start)).map(|(_, need)| *need)
        }
        _ => match find(name)?.usage {
            Use::Needs(need) => Some(need),
            _ => None,
        },
    }
}

/// The name among `known` that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.map(|k| (distance(name, k), k)).filter(|(d, _)| *d <= 2).min().map(|(_, known)| known)
}

/// Letters to change, add or leave out (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_of_a_word_is_explained_once() {
        for word in WORDS {
            assert_eq!(WORDS.iter().filter(|w| w.name == word.name).count(), 1, "{}", word.name);
            assert!(OF_THE_LOAD.iter().all(|name| find(name).is_some()));
            if let Use::Needs(need) = word.usage {
                assert!(NEEDS.iter().any(|(name, _)| *name == need), "{need}");
            }
        }
        assert!(WORKLOADS.iter().all(|(_, n)| NEEDS.iter().any(|(name, _)| name == n)));
        assert_eq!(needs("database", "scylla"), Some("scylla"));
        assert_eq!((needs("data", "keep"), needs("data", "wipe")), (None, None));
        assert_eq!(needs("layout", "per-numa"), None);
        assert_eq!(needs("workload", "ycsb:a"), None);
        assert_eq!(needs("workload", "nb:cql-iot"), Some("nosqlbench"));
    }

    #[test]
    fn what_was_meant_is_found() {
        let known = || WORDS.iter().map(|word| word.name);
        assert_eq!(nearest("thread", known()), Some("threads"));
        assert_eq!(nearest("duratoin", known()), Some("duration"));
        assert_eq!(nearest("something", known()), None);
    }
}
