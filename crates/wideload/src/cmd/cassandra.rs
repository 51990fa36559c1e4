//! The flags of a Cassandra that wideload starts, for `run`, `scale` and `up`.

use anyhow::anyhow;
use lab::experiment::Value;
use stage::cassandra::{HeapAsked, Options, Setting, Source, Version};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use units::Bytes;

/// The release when none is given.
const VERSION: &str = "5.0.5";

/// What is started, and how it is set.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Release of Cassandra, fetched once with the installed Maven [default: 5.0.5]
    #[arg(
        long,
        value_name = "VERSION",
        conflicts_with = "cassandra_home",
        help_heading = "Cassandra"
    )]
    cassandra_version: Option<Version>,
    /// An unpacked Cassandra instead: the directory with lib/ and conf/ in it
    #[arg(long, value_name = "DIR", help_heading = "Cassandra")]
    cassandra_home: Option<PathBuf>,
    /// The JDK [default: JAVA_HOME, or the java on PATH]
    #[arg(long, value_name = "DIR", help_heading = "Cassandra")]
    java_home: Option<PathBuf>,
    /// Heap of an instance, like 4GiB [default: half of the memory up to 1 GiB, or a quarter up to
    /// 8 GiB, whichever is more; of an instance's share]
    #[arg(long, value_name = "SIZE", help_heading = "Cassandra")]
    heap: Option<Bytes>,
    /// Heap of all instances together, in equal parts: what is compared has the same memory in all
    #[arg(long, value_name = "SIZE", conflicts_with = "heap", help_heading = "Cassandra")]
    pub(crate) heap_total: Option<Bytes>,
    /// A key of cassandra.yaml, nested ones with dots; repeat for more
    #[arg(long, value_name = "cassandra.KEY=VALUE", help_heading = "Cassandra")]
    set: Vec<Setting>,
    /// A flag of the JVM, after all others, like -XX:+UseZGC; repeat for more
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true, help_heading = "Cassandra")]
    jvm: Vec<String>,
    /// Address that it listens on, IPv4; a ring takes the ones after it too [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Cassandra")]
    listen: Option<Ipv4Addr>,
    /// Where its data go, in a new directory that is removed with it [default: below the run
    /// directory (run), or the user's state directory (up)]
    #[arg(long, value_name = "DIR", help_heading = "Cassandra")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// A size that comes back as it was.
pub(crate) fn exact(size: Bytes) -> String {
    format!("{}B", size.0)
}

impl Flags {
    /// The flags that were given, for a target that has no use for them.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        [
            ("--cassandra-version", self.cassandra_version.is_some()),
            ("--cassandra-home", self.cassandra_home.is_some()),
            ("--java-home", self.java_home.is_some()),
            ("--heap", self.heap.is_some()),
            ("--heap-total", self.heap_total.is_some()),
            ("--set", !self.set.is_empty()),
            ("--jvm", !self.jvm.is_empty()),
            ("--listen", self.listen.is_some()),
            ("--data-dir", self.data_dir.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect()
    }

    /// As [`stage`] takes them.
    pub(crate) fn options(&self, instances: u32) -> anyhow::Result<Options> {
        let listen = self.listen.unwrap_or(Ipv4Addr::LOCALHOST);
        if listen.is_unspecified() || listen.is_multicast() || listen.is_broadcast() {
            return Err(anyhow!(
                "--listen {listen} is no address of an interface: instances tell it each other, \
                 give one of this host"
            ));
        }
        let source = match (&self.cassandra_home, &self.cassandra_version) {
            (Some(home), _) => Source::Home(home.clone()),
            (None, Some(version)) => Source::Release(version.clone()),
            (None, None) => Source::Release(VERSION.parse()?),
        };
        Ok(Options {
            source,
            java_home: self.java_home.clone(),
            heap: self.heap_asked(),
            settings: self.set.clone(),
            jvm: self.jvm.clone(),
            listen,
            instances,
        })
    }

    /// What is asked of the heap.
    pub(crate) fn heap_asked(&self) -> Option<HeapAsked> {
        self.heap.map(HeapAsked::Each).or(self.heap_total.map(HeapAsked::Total))
    }

    /// As settings of an experiment.
    pub(crate) fn settings(&self) -> Vec<(String, Value)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
        let texts = [
            ("version", self.cassandra_version.as_ref().map(ToString::to_string)),
            ("cassandra-home", path(&self.cassandra_home)),
            ("java-home", path(&self.java_home)),
            ("heap", self.heap.map(exact)),
            ("heap-total", self.heap_total.map(exact)),
            ("listen", self.listen.map(|address| address.to_string())),
            ("data-dir", path(&self.data_dir)),
        ];
        let text =
            |(name, value): (&str, Option<String>)| Some((name.to_owned(), Value::Text(value?)));
        let mut settings: Vec<_> = texts.into_iter().filter_map(text).collect();
        if !self.jvm.is_empty() {
            settings.push(("jvm".to_owned(), Value::List(self.jvm.clone())));
        }
        let keys = self.set.iter().map(|set| (set.dotted(), Value::Text(set.value().to_owned())));
        let keys: Vec<_> = keys.collect();
        if !keys.is_empty() {
            settings.push(("cassandra".to_owned(), Value::Table(keys)));
        }
        settings
    }

    /// As they were given, for the manifest.
    pub(crate) fn recorded(&self) -> serde_json::Value {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
        serde_json::json!({
            "cassandra-version": self.cassandra_version.as_ref().map(ToString::to_string),
            "cassandra-home": path(&self.cassandra_home),
            "java-home": path(&self.java_home),
            "heap": self.heap.map(|heap| heap.to_string()),
            "heap-total": self.heap_total.map(|heap| heap.to_string()),
            "set": self.set.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "jvm": self.jvm,
            "listen": self.listen.map(|address| address.to_string()),
            "data-dir": path(&self.data_dir),
        })
    }
}
