//! Bindings: what is driven, and the properties that only they have.
//!
//! Source: CassandraCQLClient, ScyllaCQLClient, AerospikeClient and BasicDB of YCSB at commit
//! d9faaac. Limits: no TLS, no tracing, no light-weight transactions; no users of Aerospike.

use super::Properties;
use super::YcsbError;
use super::reader::{Reader, refuse};

/// What is driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A database that speaks CQL.
    Cql(CqlBinding),
    /// A database that speaks Aerospike's protocol.
    Aerospike(AerospikeBinding),
    /// Nothing: operations are printed.
    Basic(BasicBinding),
}

/// Of `cassandra-cql` and `scylla`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CqlBinding {
    /// As a launcher names it.
    pub name: &'static str,
    /// Hosts as `HOST:PORT`.
    pub hosts: Vec<String>,
    /// The keyspace, which has to be there.
    pub keyspace: String,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// Consistency level of reads and scans.
    pub read_level: String,
    /// Consistency level of updates and inserts.
    pub write_level: String,
    /// Connections to each host.
    pub connections: u32,
    /// The datacenter that is driven.
    pub datacenter: Option<String>,
    /// Longest wait for an answer in milliseconds.
    pub timeout_ms: u32,
}

/// Of `aerospike`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AerospikeBinding {
    /// The seed, as `HOST:PORT`.
    pub host: String,
    /// The namespace, which has to be there.
    pub namespace: String,
    /// Longest wait for an answer in milliseconds.
    pub timeout_ms: u32,
}

/// Of `basic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasicBinding {
    /// Operations are printed.
    pub verbose: bool,
    /// Each operation takes so long, in milliseconds.
    pub delay_ms: u32,
    /// It takes a random part of that.
    pub random_delay: bool,
    /// Different operations are counted.
    pub count: bool,
}

/// Properties of `aerospike` behind `as.`; `update` is ours.
const AEROSPIKE: [&str; 7] = ["host", "port", "user", "password", "timeout", "namespace", "update"];
/// What it has where a property gives nothing.
const AEROSPIKE_TIMEOUT_MS: u32 = 10_000;

/// What the Java driver has where a property gives nothing: one connection to a host, 12 s.
const CONNECTIONS: u32 = 1;
const TIMEOUT_MS: u32 = 12_000;

/// What a launcher and the property `db` call the bindings.
const NAMES: [(&str, &str); 12] = [
    ("aerospike", "aerospike"),
    ("site.ycsb.db.AerospikeClient", "aerospike"),
    ("com.yahoo.ycsb.db.AerospikeClient", "aerospike"),
    ("cassandra-cql", "cassandra-cql"),
    ("cassandra2-cql", "cassandra-cql"),
    ("site.ycsb.db.CassandraCQLClient", "cassandra-cql"),
    ("com.yahoo.ycsb.db.CassandraCQLClient", "cassandra-cql"),
    ("scylla", "scylla"),
    ("site.ycsb.db.scylla.ScyllaCQLClient", "scylla"),
    ("basic", "basic"),
    ("site.ycsb.BasicDB", "basic"),
    ("com.yahoo.ycsb.BasicDB", "basic"),
];

/// Properties of `cassandra-cql` behind `cassandra.`, and of `scylla` behind `scylla.`.
const CQL: [&str; 11] = [
    "keyspace",
    "username",
    "password",
    "readconsistencylevel",
    "writeconsistencylevel",
    "maxconnections",
    "coreconnections",
    "connecttimeoutmillis",
    "readtimeoutmillis",
    "tracing",
    "useSSL",
];

impl Binding {
    /// Reads the properties of the binding with that name.
    pub(super) fn read(
        name: &str,
        reader: &Reader<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Self, YcsbError> {
        let known = NAMES.iter().find(|(alias, _)| *alias == name).map(|(_, known)| *known);
        if name.starts_with("cassandra2") {
            notices.push("cassandra2-cql is an old name of cassandra-cql".to_owned());
        }
        match known {
            Some("basic") => BasicBinding::read(reader).map(Self::Basic),
            Some("aerospike") => AerospikeBinding::read(reader).map(Self::Aerospike),
            Some(known) => CqlBinding::read(known, reader, notices).map(Self::Cql),
            None => Err(YcsbError::Binding { name: name.escape_debug().to_string() }),
        }
    }

    /// Whether a property belongs to this binding.
    pub(super) fn has(&self, property: &str) -> bool {
        let behind = |prefix| property.strip_prefix(prefix);
        match self {
            Self::Basic(_) => behind("basicdb.").is_some_and(|name| {
                ["verbose", "simulatedelay", "randomizedelay", "count"].contains(&name)
            }),
            Self::Aerospike(_) => behind("as.").is_some_and(|name| AEROSPIKE.contains(&name)),
            Self::Cql(cql) if cql.name == "scylla" => behind("scylla.").is_some_and(|name| {
                CQL.contains(&name) || ["hosts", "port", "lwt", "local_dc"].contains(&name)
            }),
            Self::Cql(_) => {
                ["hosts", "port", "debug"].contains(&property)
                    || behind("cassandra.").is_some_and(|name| CQL.contains(&name))
            }
        }
    }
}

/// Booleans of the bindings, which Java reads as false unless they say `true`.
pub(super) const BOOLEANS: [&str; 8] = [
    "basicdb.verbose",
    "basicdb.randomizedelay",
    "basicdb.count",
    "cassandra.tracing",
    "cassandra.useSSL",
    "scylla.tracing",
    "scylla.useSSL",
    "scylla.lwt",
];

impl CqlBinding {
    fn read(
        name: &'static str,
        reader: &Reader<'_>,
        notices: &mut Vec<String>,
    ) -> Result<Self, YcsbError> {
        let scylla = name == "scylla";
        let prefix = if scylla { "scylla" } else { "cassandra" };
        let own = |name: &str| format!("{prefix}.{name}");
        let (hosts_name, port_name) =
            if scylla { ("scylla.hosts", "scylla.port") } else { ("hosts", "port") };
        let hosts = reader.given(hosts_name).unwrap_or_default();
        let hosts: Vec<&str> = hosts.split(',').map(str::trim).filter(|h| !h.is_empty()).collect();
        if hosts.is_empty() {
            return Err(YcsbError::Hosts { name, property: hosts_name });
        }
        let port = reader.small(port_name, 9042, 1..=65_535)?;
        let wished = |name: &str, cure: &str| match reader.boolean(&own(name), false)? {
            true => Err(refuse(&own(name), "true", format!("false: {cure}"))),
            false => Ok(()),
        };
        wished("useSSL", "there is no TLS yet; use a port without it")?;
        wished("tracing", "requests are not traced; leave it out")?;
        if scylla {
            wished("lwt", "statements with IF are not built; leave it out")?;
        }
        let datacenter = reader.given("scylla.local_dc").filter(|dc| scylla && !dc.is_empty());
        let usual = if datacenter.is_some() { "LOCAL_QUORUM" } else { "QUORUM" };
        let level = |name| reader.given(&own(name)).unwrap_or(usual).to_owned();
        let text = |name: &str| reader.given(&own(name)).filter(|text| !text.is_empty());
        let connections = ["maxconnections", "coreconnections"]
            .map(|name| reader.small(&own(name), CONNECTIONS, 1..=16_384));
        let [most, core] = connections;
        if reader.given(&own("connecttimeoutmillis")).is_some() {
            let name = own("connecttimeoutmillis");
            notices.push(format!(
                "{name} has no effect: connections are given {prefix}.readtimeoutmillis, at least \
                 5 s"
            ));
        }
        Ok(Self {
            name,
            hosts: hosts.iter().map(|host| at_port(host, port)).collect(),
            keyspace: text("keyspace").unwrap_or("ycsb").to_owned(),
            credentials: text("username")
                .map(|user| (user.to_owned(), text("password").unwrap_or_default().to_owned())),
            read_level: level("readconsistencylevel"),
            write_level: level("writeconsistencylevel"),
            connections: most?.max(core?),
            datacenter: datacenter.map(str::to_owned),
            timeout_ms: reader.small(&own("readtimeoutmillis"), TIMEOUT_MS, 1..=3_600_000)?,
        })
    }
}

/// An IPv6 address takes brackets before a port.
fn at_port(host: &str, port: u32) -> String {
    match host.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

impl AerospikeBinding {
    fn read(reader: &Reader<'_>) -> Result<Self, YcsbError> {
        let text = |name: &str| reader.given(name).map(str::trim).filter(|text| !text.is_empty());
        for name in ["as.user", "as.password"] {
            if text(name).is_some() {
                let cure = "nothing: users of Aerospike are not built yet, leave it out and drive \
                            a server without security";
                return Err(refuse(name, "a value", cure.to_owned()));
            }
        }
        // As a number, which every build understands: the original says localhost.
        let host = text("as.host").unwrap_or("127.0.0.1");
        let port = reader.small("as.port", 3000, 1..=65_535)?;
        let namespace = text("as.namespace").unwrap_or("ycsb").to_owned();
        let timeout_ms = reader.small("as.timeout", AEROSPIKE_TIMEOUT_MS, 1..=3_600_000)?;
        Ok(Self { host: at_port(host, port), namespace, timeout_ms })
    }
}

impl BasicBinding {
    fn read(reader: &Reader<'_>) -> Result<Self, YcsbError> {
        Ok(Self {
            verbose: reader.boolean("basicdb.verbose", true)?,
            delay_ms: reader.small("basicdb.simulatedelay", 0, 0..=i32::MAX as u32)?,
            random_delay: reader.boolean("basicdb.randomizedelay", true)?,
            count: reader.boolean("basicdb.count", false)?,
        })
    }
}

/// Whether a password stands in the properties.
pub(super) fn has_password(properties: &Properties) -> bool {
    properties.iter().any(|(name, value)| super::line::is_secret(name) && !value.is_empty())
}
