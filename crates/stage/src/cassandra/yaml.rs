//! `cassandra.yaml` of an instance: what a ring needs, and what the user sets.
//!
//! Input: addresses and `KEY=VALUE`. Output: text, one top-level key per line, its value in the
//! form of JSON, which YAML contains. Source: the class `Config` of Cassandra. Limits: what is not
//! in the text has the default of that class, which for some keys is not what the
//! `cassandra.yaml` of a package has; elements of lists cannot be set one by one.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;
use thiserror::Error;

/// The port of CQL, unless `native_transport_port` is set.
const CQL_PORT: u16 = 9042;
/// The port between instances, unless `storage_port` is set.
const STORAGE_PORT: u16 = 7000;
/// Keys of `--set` begin with this.
const PREFIX: &str = "cassandra.";
/// Names in a path; Cassandra's deepest option has four.
const DEPTH_MAX: usize = 8;

/// Keys that wideload writes itself, and the flag to use.
const OURS: [(&str, &str); 3] = [
    ("listen_address", "give --listen ADDRESS"),
    ("rpc_address", "give --listen ADDRESS"),
    ("seed_provider", "all instances are seeds; give --instances N"),
];

/// One `--set cassandra.KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    path: Vec<String>,
    /// In the form of JSON.
    value: String,
}

/// A setting that cannot be made. Each text names it and the cure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum SettingError {
    /// Not of the form.
    #[error("'{given}' is no setting: give one like cassandra.concurrent_writes=64")]
    Form { given: String },
    /// Deeper than any.
    #[error("cassandra.{key}... has {names} names: give a key of at most {DEPTH_MAX}")]
    Deep { key: String, names: usize },
    /// Ours.
    #[error("cassandra.{key} is written by wideload: {cure}")]
    Ours { key: String, cure: &'static str },
    /// A key below one that has a value, or twice.
    #[error("cassandra.{key} is set twice, or with a key below it: give it once")]
    Twice { key: String },
    /// One value for several instances.
    #[error("cassandra.{key} cannot be the same for {instances} instances: leave it out")]
    PerInstance { key: String, instances: u32 },
    /// No port.
    #[error("cassandra.{key} is to be a port from 1 to 65535, not {value}")]
    Port { key: &'static str, value: String },
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(given: &str) -> Result<Self, SettingError> {
        let form = || SettingError::Form { given: given.to_owned() };
        let (key, value) = given.split_once('=').ok_or_else(form)?;
        let path: Vec<_> =
            key.strip_prefix(PREFIX).ok_or_else(form)?.split('.').map(str::to_owned).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_name = |name: &String| !name.is_empty() && name.chars().all(plain);
        if path.len() > DEPTH_MAX {
            let key = path[..DEPTH_MAX].join(".");
            return Err(SettingError::Deep { key, names: path.len() });
        }
        if !path.iter().all(is_name) || value.chars().any(char::is_control) {
            return Err(form());
        }
        if let Some((key, cure)) = OURS.iter().find(|(key, _)| *key == path[0]) {
            return Err(SettingError::Ours { key: (*key).to_owned(), cure });
        }
        Ok(Self { path, value: scalar(value) })
    }
}

impl Setting {
    /// The whole key, with dots between its parts.
    #[must_use]
    pub fn dotted(&self) -> String {
        self.path.join(".")
    }

    /// The value, in the form of JSON.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The top-level key.
    pub(crate) fn key(&self) -> &str {
        &self.path[0]
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}={}", self.dotted(), self.value)
    }
}

/// Numbers, true, null, lists and quoted texts as they are; all else is a text.
fn scalar(value: &str) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(value) {
        Ok(_) => value.trim().to_owned(),
        Err(_) => serde_json::Value::from(value).to_string(),
    }
}

/// The addresses and ports of an instance's ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ring {
    pub(crate) addresses: Vec<Ipv4Addr>,
    pub(crate) cql_port: u16,
    pub(crate) storage_port: u16,
}

impl Ring {
    /// `instances` on consecutive addresses from `first`, on the ports that are set.
    pub(crate) fn new(
        first: Ipv4Addr,
        instances: u32,
        settings: &[Setting],
    ) -> Result<Self, SettingError> {
        let port = |key: &'static str, default: u16| match value_of(settings, key) {
            None => Ok(default),
            Some(value) => value
                .trim_matches('"')
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| SettingError::Port { key, value: value.to_owned() }),
        };
        Ok(Self {
            addresses: (0..instances)
                .map(|n| Ipv4Addr::from(u32::from(first).wrapping_add(n)))
                .collect(),
            cql_port: port("native_transport_port", CQL_PORT)?,
            storage_port: port("storage_port", STORAGE_PORT)?,
        })
    }

    /// What instance `index` says of itself and of the others.
    fn member(&self, index: usize) -> Member {
        Member {
            address: self.addresses[index],
            cql_port: self.cql_port,
            storage_port: self.storage_port,
            seeds: (0..self.addresses.len()).map(|i| self.storage(i)).collect(),
            index,
            instances: self.addresses.len(),
        }
    }

    pub(crate) fn cql(&self, index: usize) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[index], self.cql_port)
    }

    pub(crate) fn storage(&self, index: usize) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[index], self.storage_port)
    }
}

/// An instance and whom it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) address: Ipv4Addr,
    pub(crate) cql_port: u16,
    pub(crate) storage_port: u16,
    /// All of its ring, itself among them.
    pub(crate) seeds: Vec<SocketAddrV4>,
    /// In its ring, from 0.
    pub(crate) index: usize,
    /// How many get the same settings.
    pub(crate) instances: usize,
}

fn value_of<'a>(settings: &'a [Setting], key: &str) -> Option<&'a str> {
    settings.iter().find(|s| s.path.len() == 1 && s.path[0] == key).map(|s| s.value.as_str())
}

/// The text for instance `index` of `ring`.
pub(crate) fn text(
    cluster: &str,
    ring: &Ring,
    index: usize,
    settings: &[Setting],
) -> Result<String, SettingError> {
    text_of(cluster, &ring.member(index), settings)
}

/// The text for one instance.
pub(crate) fn text_of(
    cluster: &str,
    member: &Member,
    settings: &[Setting],
) -> Result<String, SettingError> {
    let instances = member.instances;
    let mut document = Document(base(cluster, member));
    if value_of(settings, "num_tokens").is_none() {
        let token = token(member.index, member.seeds.len());
        document.put("initial_token", format!("\"{token}\""));
    }
    for setting in settings {
        let key = &setting.path[0];
        // One directory or token for all would let them write into each other.
        let own =
            key == "initial_token" || key.ends_with("_directory") || key.ends_with("_directories");
        if own && instances > 1 {
            let instances = instances as u32;
            return Err(SettingError::PerInstance { key: key.clone(), instances });
        }
    }
    let mut written: Vec<&Setting> = Vec::new();
    for setting in settings {
        let clash = |other: &&Setting| {
            let shorter = other.path.len().min(setting.path.len());
            other.path[..shorter] == setting.path[..shorter]
        };
        if written.iter().any(clash) {
            return Err(SettingError::Twice { key: setting.path.join(".") });
        }
        written.push(setting);
    }
    let mut nested = Branch::default();
    for setting in settings {
        nested.put(&setting.path, &setting.value);
    }
    for (key, tree) in nested.0 {
        document.put(&key, tree.flow());
    }
    Ok(document.to_text())
}

/// Tokens evenly over the ring of Murmur3Partitioner, from its lowest on.
fn token(index: usize, instances: usize) -> i64 {
    let step = (1_i128 << 64) / instances.max(1) as i128;
    // Below 2^63 for every index below the number of instances.
    (i128::from(i64::MIN) + step * index as i128) as i64
}

fn base(cluster: &str, member: &Member) -> Vec<(String, String)> {
    let seeds: Vec<_> = member.seeds.iter().map(ToString::to_string).collect();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let address = quoted(&member.address.to_string());
    let seeds = quoted(&seeds.join(","));
    let provider = quoted("org.apache.cassandra.locator.SimpleSeedProvider");
    let entry = |key: &str, value: String| (key.to_owned(), value);
    vec![
        entry("cluster_name", quoted(cluster)),
        entry("partitioner", quoted("org.apache.cassandra.dht.Murmur3Partitioner")),
        entry("endpoint_snitch", quoted("SimpleSnitch")),
        entry("listen_address", address.clone()),
        entry("rpc_address", address),
        entry("native_transport_port", member.cql_port.to_string()),
        entry("storage_port", member.storage_port.to_string()),
        entry("commitlog_sync", quoted("periodic")),
        entry("commitlog_sync_period", quoted("10000ms")),
        // All begin empty and are seeds: there is nothing to stream.
        entry("auto_bootstrap", "false".to_owned()),
        entry(
            "seed_provider",
            format!("[{{\"class_name\": {provider}, \"parameters\": [{{\"seeds\": {seeds}}}]}}]"),
        ),
    ]
}

/// Top-level keys with their values as text, in order.
struct Document(Vec<(String, String)>);

impl Document {
    fn put(&mut self, key: &str, value: String) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn to_text(&self) -> String {
        self.0.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }
}

/// Keys below a key.
#[derive(Default)]
struct Branch(Vec<(String, Tree)>);

enum Tree {
    Leaf(String),
    Branch(Branch),
}

impl Branch {
    /// Puts a value where none is, as was checked before.
    fn put(&mut self, path: &[String], value: &str) {
        let Some((key, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.0.push((key.clone(), Tree::Leaf(value.to_owned())));
            return;
        }
        let position = self.0.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            self.0.push((key.clone(), Tree::Branch(Self::default())));
            self.0.len() - 1
        });
        if let Tree::Branch(branch) = &mut self.0[position].1 {
            branch.put(rest, value);
        }
    }
}

impl Tree {
    fn flow(&self) -> String {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Branch(Branch(entries)) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, tree)| format!("\"{key}\": {}", tree.flow()))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

    fn settings(texts: &[&str]) -> Vec<Setting> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn lines(instances: u32, index: usize, set: &[&str]) -> Result<Vec<String>, SettingError> {
        let settings = settings(set);
        let ring = Ring::new(LISTEN, instances, &settings)?;
        let text = text("test", &ring, index, &settings)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn has(lines: &[String], line: &str) {
        assert!(lines.iter().any(|l| l == line), "{line}\n{lines:#?}");
    }

    #[test]
    fn an_instance_knows_itself_and_all_seeds() {
        let lines = lines(3, 1, &[]).unwrap();
        has(&lines, "listen_address: \"127.0.0.2\"");
        has(&lines, "rpc_address: \"127.0.0.2\"");
        has(&lines, "native_transport_port: 9042");
        let seeds = "\"seeds\": \"127.0.0.1:7000,127.0.0.2:7000,127.0.0.3:7000\"";
        assert!(lines.iter().any(|line| line.contains(seeds)), "{lines:#?}");
        has(&lines, "initial_token: \"-3074457345618258603\"");
    }

    #[test]
    fn tokens_are_evenly_spaced() {
        assert_eq!(
            [0, 1, 2].map(|i| token(i, 3)),
            [i64::MIN, -3_074_457_345_618_258_603, 3_074_457_345_618_258_602]
        );
        assert_eq!((token(0, 1), token(1, 2)), (i64::MIN, 0));
        assert!(token(999, 1000) > token(998, 1000));
    }

    #[test]
    fn values_keep_their_type_and_cannot_break_out() {
        let lines = lines(
            1,
            0,
            &[
                "cassandra.concurrent_writes=64",
                "cassandra.native_transport_port=9142",
                "cassandra.read_request_timeout=10s",
                "cassandra.cluster_name=a: b # c",
                "cassandra.memtable.configurations.skiplist.class_name=SkipListMemtable",
                "cassandra.memtable.configurations.trie.class_name=TrieMemtable",
                "cassandra.data_file_directories=[\"/a\", \"/b\"]",
                "cassandra.num_tokens=16",
            ],
        )
        .unwrap();
        has(&lines, "concurrent_writes: 64");
        has(&lines, "native_transport_port: 9142");
        has(&lines, "read_request_timeout: \"10s\"");
        has(&lines, "cluster_name: \"a: b # c\"");
        has(
            &lines,
            "memtable: {\"configurations\": {\"skiplist\": {\"class_name\": \
            \"SkipListMemtable\"}, \"trie\": {\"class_name\": \"TrieMemtable\"}}}",
        );
        has(&lines, "data_file_directories: [\"/a\", \"/b\"]");
        assert!(!lines.iter().any(|line| line.starts_with("initial_token")), "{lines:#?}");
        assert_eq!(lines.iter().filter(|l| l.starts_with("native_transport_port")).count(), 1);
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_the_cure() {
        for text in [
            "",
            "x=1",
            "cassandra.=1",
            "cassandra.a",
            "cassandra.a..b=1",
            "cassandra.a b=1",
            "cassandra.a=1\nb: 2",
        ] {
            assert!(matches!(text.parse::<Setting>(), Err(SettingError::Form { .. })), "{text}");
        }
        let ours = "cassandra.listen_address=1.2.3.4".parse::<Setting>().unwrap_err();
        assert!(ours.to_string().contains("--listen"), "{ours}");
        for (set, instances) in [
            (&["cassandra.a=1", "cassandra.a=2"][..], 1),
            (&["cassandra.a=1", "cassandra.a.b=2"], 1),
            (&["cassandra.a.b=1", "cassandra.a=2"], 1),
            (&["cassandra.native_transport_port=0"], 1),
            (&["cassandra.storage_port=x"], 1),
            (&["cassandra.initial_token=5"], 2),
            (&["cassandra.commitlog_directory=/x"], 2),
        ] {
            let error = lines(instances, 0, set).unwrap_err().to_string();
            assert!(error.starts_with("cassandra."), "{set:?}: {error}");
        }
        assert!(lines(1, 0, &["cassandra.initial_token=5"]).is_ok());
    }
}
