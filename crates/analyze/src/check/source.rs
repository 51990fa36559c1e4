//! The documents that the limits come from.

use serde::{Serialize, Serializer};

/// A document by its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Intel on Cassandra.
    IntelC,
    /// DataStax, production settings.
    DsSet,
    /// DataStax, huge pages.
    DsThp,
    /// Aerospike's best practices.
    AeroBp,
    /// Scylla's perftune.
    Perftune,
    /// Scylla, benchmark tips.
    ScyllaTips,
    /// `PerfKitBenchmarker`.
    Pkb,
    /// The paper on client hardware.
    ClientHw,
    /// Gregg's checklist.
    Gregg,
    /// samyama.
    Samyama,
    /// `TechEmpower`'s environment.
    TechEmpower,
    /// Arm on local NUMA.
    Arm,
    /// Cassandra's own configuration file.
    CassandraYaml,
    /// The kernel's documentation.
    Kernel,
    /// scylla-cluster-tests.
    Sct,
    /// Our own.
    Own,
}

impl Source {
    /// As it stands behind a finding.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::IntelC => "IntelC",
            Self::DsSet => "DSset",
            Self::DsThp => "DSthp",
            Self::AeroBp => "AeroBP",
            Self::Perftune => "perftune",
            Self::ScyllaTips => "ScyllaTips",
            Self::Pkb => "PKB",
            Self::ClientHw => "ClientHW",
            Self::Gregg => "Gregg",
            Self::Samyama => "samyama",
            Self::TechEmpower => "TechEmpower",
            Self::Arm => "Arm",
            Self::CassandraYaml => "yaml",
            Self::Kernel => "kernel",
            Self::Sct => "SCT",
            Self::Own => "own",
        }
    }

    /// Its title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::IntelC => "Intel, optimization-zone, software/cassandra/README.md",
            Self::DsSet => "DataStax, Recommended production settings",
            Self::DsThp => "DataStax, High CPU troubleshooting (transparent huge pages)",
            Self::AeroBp => "Aerospike 8.1, Best practices, and the server's start-up checks",
            Self::Perftune => "ScyllaDB, seastar scripts/perftune.py and its manual",
            Self::ScyllaTips => "ScyllaDB, Benchmark tips",
            Self::Pkb => "Google, PerfKitBenchmarker (mysql and redis benchmarks)",
            Self::ClientHw => {
                "Taming Performance Variability caused by Client-Side Hardware Configuration, \
                 arXiv 2410.11554"
            }
            Self::Gregg => "B. Gregg, Benchmarking Checklist, 2018",
            Self::Samyama => "samyama, preflight of its benchmarks (runnable tasks per core)",
            Self::TechEmpower => "TechEmpower, Framework Benchmarks, environment",
            Self::Arm => "Arm Learning Paths, Tune network workloads on bare metal, local NUMA",
            Self::CassandraYaml => "Apache Cassandra, conf/cassandra.yaml, comments",
            Self::Kernel => "Linux, Documentation/admin-guide",
            Self::Sct => "ScyllaDB, scylla-cluster-tests, issue 417 (clocks of loaders)",
            Self::Own => "wideload's own limit; no document gives one",
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.short())
    }
}
