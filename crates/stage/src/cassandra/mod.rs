//! Apache Cassandra on this host: found or fetched, configured, started, awaited, stopped.
//!
//! Input: [`Options`], then a [`Placement`]. Output: a [`Cluster`] of one instance or a ring on
//! consecutive addresses, every thread on its cpus, every instance answering CQL and knowing all
//! others. The JVM is started directly, never through a script that would wrap it.
//!
//! Measured on 2 cpus, Cassandra 5.0.5, JDK 17, heap 1 GiB: resident memory 1.43 GiB when idle.
//! Source: the configuration and start scripts of Cassandra 4.1 and 5.0. Limits: IPv4; one host;
//! 4.1 and JDK 8 and 11 by their documentation, run here were 5.0 and JDK 17.

mod brief;
mod cache;
mod cluster;
mod data;
mod effect;
pub(crate) mod emitted;
mod flush;
mod heap;
mod install;
mod java;
mod jvm;
mod probe;
mod retired;
mod version;
mod yaml;

pub use cache::{CacheError, cached, clean};
pub use cluster::{Cluster, Instance, NotUp, Placement, StartError, StopError};
pub use data::{DataError, remove as remove_data};
pub use effect::{Asked, Effect};
pub use flush::FlushError;
pub use heap::{Heap, HeapAsked, HeapError};
pub use install::{InstallError, Source};
pub use java::{Java, JavaError};
pub use retired::Refused;
pub use version::{Version, VersionError};
pub use yaml::{Setting, SettingError};

use crate::ready::ensure_free;
use heap::Memory;
use install::Install;
use java::Places;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use thiserror::Error;
use yaml::Ring;

/// More instances than this are no experiment on one host.
pub const INSTANCES_MAX: u32 = 64;

/// What the user wants.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where Cassandra comes from.
    pub source: Source,
    /// The JDK; else that of `JAVA_HOME` or `PATH`.
    pub java_home: Option<PathBuf>,
    /// Else computed, by the number of instances.
    pub heap: Option<HeapAsked>,
    /// Keys of `cassandra.yaml`.
    pub settings: Vec<Setting>,
    /// Flags of the JVM, after all others.
    pub jvm: Vec<String>,
    /// Address of the first instance; the others follow it.
    pub listen: Ipv4Addr,
    /// How many, from 1 to [`INSTANCES_MAX`].
    pub instances: u32,
}

/// Why nothing can be started. Each text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum PrepareError {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Heap(#[from] HeapError),
    #[error(transparent)]
    Java(#[from] JavaError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error("--instances {given}: give 1 to {INSTANCES_MAX}")]
    Instances { given: u32 },
    /// Somebody listens there, or it is no address of this host.
    #[error(
        "cannot listen on {address} ({what}): {cause}; end what listens there, or give another \
         --listen ADDRESS of this host, or --set cassandra.{key}=PORT"
    )]
    Port { address: SocketAddrV4, what: &'static str, key: &'static str, cause: io::Error },
}

impl PrepareError {
    /// Whether the command line is wrong, and not the host.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Setting(_) | Self::Refused(_) | Self::Instances { .. } => true,
            Self::Heap(error) => !matches!(error, HeapError::NoMemory { .. }),
            Self::Java(JavaError::NoProgram { source_name, .. }) => *source_name == "--java-home",
            Self::Install(InstallError::Cache(error)) => {
                matches!(error, CacheError::NoRelease { .. })
            }
            Self::Install(error) => !matches!(error, InstallError::NoHome(_)),
            Self::Java(_) | Self::Port { .. } => false,
        }
    }

    /// Whether the user did not want to wait.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Install(InstallError::Cache(CacheError::Interrupted { .. })))
    }
}

/// A Cassandra that can be started here.
#[derive(Debug)]
pub struct Prepared {
    install: Install,
    java: Java,
    heap: Heap,
    ring: Ring,
    settings: Vec<Setting>,
    jvm: Vec<String>,
}

/// Finds or fetches all that is needed and checks it against this host; starts nothing. `said`
/// hears what takes time; `stop` ends a download.
///
/// # Errors
/// [`PrepareError`], before anything is started.
pub fn prepare(
    options: &Options,
    said: &mut dyn FnMut(&str),
    stop: &AtomicBool,
) -> Result<Prepared, PrepareError> {
    let (settings, instances) = (&options.settings, options.instances);
    if !(1..=INSTANCES_MAX).contains(&instances) {
        return Err(PrepareError::Instances { given: instances });
    }
    let ring = Ring::new(options.listen, instances, settings)?;
    yaml::text("check", &ring, 0, settings)?;
    let heap = heap_of(options)?;
    ensure_ports_free(&ring)?;
    let places = Places::of_environment(options.java_home.as_deref());
    // A wrong JDK is found before a long download.
    if let Source::Release(version) = &options.source {
        retired::keys(settings, version)?;
        let java = java::find(&places, version)?;
        retired::flags(&options.jvm, java.major)?;
    }
    let install = install::resolve(&options.source, said, stop)?;
    let java = java::find(&places, &install.version)?;
    retired::keys(settings, &install.version)?;
    retired::flags(&options.jvm, java.major)?;
    let (settings, jvm) = (settings.clone(), options.jvm.clone());
    Ok(Prepared { install, java, heap, ring, settings, jvm })
}

/// How large the heap of each instance will be, and why.
///
/// # Errors
/// When flags contradict each other, or it does not fit into the free memory.
pub fn heap_of(options: &Options) -> Result<Heap, HeapError> {
    heap::decide(options.heap, &options.jvm, options.instances, Memory::of_this_host())
}

/// Where each instance would answer, when its settings can be used and nobody listens there.
///
/// # Errors
/// When a setting is none, or a port is taken.
pub fn free_addresses(options: &Options) -> Result<Vec<SocketAddr>, PrepareError> {
    let ring = Ring::new(options.listen, options.instances, &options.settings)?;
    yaml::text("check", &ring, 0, &options.settings)?;
    ensure_ports_free(&ring)?;
    Ok((0..ring.addresses.len()).map(|index| SocketAddr::V4(ring.cql(index))).collect())
}

/// The JVM that would be taken; nothing is fetched.
///
/// # Errors
/// When there is none that this Cassandra runs on, or no Cassandra in the directory given.
pub fn java_of(options: &Options) -> Result<Java, PrepareError> {
    let places = Places::of_environment(options.java_home.as_deref());
    Ok(match &options.source {
        Source::Release(version) => java::find(&places, version)?,
        home @ Source::Home(_) => {
            let install = install::resolve(home, &mut |_| {}, &AtomicBool::new(false))?;
            java::find(&places, &install.version)?
        }
    })
}

fn ensure_ports_free(ring: &Ring) -> Result<(), PrepareError> {
    for index in 0..ring.addresses.len() {
        for (address, what, key) in [
            (ring.cql(index), "CQL", "native_transport_port"),
            (ring.storage(index), "between instances", "storage_port"),
        ] {
            ensure_free(SocketAddr::V4(address)).map_err(|error| match error {
                crate::ReadyError::NotFree { cause, .. } => {
                    PrepareError::Port { address, what, key, cause }
                }
                other => PrepareError::Port { address, what, key, cause: io::Error::other(other) },
            })?;
        }
    }
    Ok(())
}

impl Prepared {
    /// The release.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.install.version
    }

    /// The JVM.
    #[must_use]
    pub fn java(&self) -> &Java {
        &self.java
    }

    /// The heap of each instance.
    #[must_use]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The directory of its jars.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.install.dir()
    }

    /// Where each instance will answer.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.ring.addresses.len()).map(|index| SocketAddr::V4(self.ring.cql(index))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use units::Bytes;

    fn options() -> Options {
        Options {
            source: Source::Home("no/such/dir".into()),
            java_home: None,
            heap: Some(HeapAsked::Each(Bytes(1))),
            settings: Vec::new(),
            jvm: Vec::new(),
            listen: Ipv4Addr::new(127, 39, 0, 1),
            instances: 1,
        }
    }

    fn refused(options: &Options) -> PrepareError {
        prepare(options, &mut |_| {}, &AtomicBool::new(false)).unwrap_err()
    }

    #[test]
    fn a_port_in_use_is_named_before_anything_else_is_done() {
        let taken = TcpListener::bind("127.39.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let set = format!("cassandra.storage_port={}", address.port());
        let error = refused(&Options { settings: vec![set.parse().unwrap()], ..options() });
        let text = error.to_string();
        for part in [&address.to_string(), "--listen", "cassandra.storage_port=PORT"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!error.is_usage());
    }

    #[test]
    fn the_fault_of_the_command_line_is_told_from_that_of_the_host() {
        assert!(refused(&options()).is_usage(), "no such --cassandra-home");
        assert!(refused(&Options { instances: 0, ..options() }).is_usage());
        let both = Options { jvm: vec!["-Xmx1g".into()], ..options() };
        assert!(refused(&both).is_usage());
        let vast = Options { heap: Some(HeapAsked::Each(Bytes(1 << 50))), ..options() };
        assert!(!refused(&vast).is_usage());
        let gone = Options {
            source: Source::Release("5.0.5".parse().unwrap()),
            java_home: Some("no/such/jdk".into()),
            ..options()
        };
        assert!(refused(&gone).is_usage());
    }
}
