//! Has an instance write what it holds in memory to disk.
//!
//! Input: a [`Cluster`] that this process has started. Output: all memtables are flushed, or why
//! not. The tool is Cassandra's own, from the same jars, over JMX on the loopback interface.
//! Source: `bin/nodetool` and `conf/cassandra-env.sh` of Cassandra 5.0. Measured on 2 cpus: some 3
//! s for an instance, nearly all of it the start of a JVM. Limits: not for detached clusters, and
//! not where the user's flags say how JMX listens.

use super::brief::{self, BriefError};
use super::cache::option;
use super::cluster::Cluster;
use super::jvm;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use thiserror::Error;
use units::{Nanos, clock};

const MAIN: &str = "org.apache.cassandra.tools.NodeTool";
/// What a user's flag about JMX begins with.
const USERS: [&str; 2] = ["-Dcassandra.jmx.", "-Dcom.sun.management.jmxremote"];

/// Why an instance was not flushed. Each text names the instance and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum FlushError {
    #[error(
        "{instance} cannot be asked to flush: its JMX is set by --jvm; leave those flags out, or \
         flush it by hand"
    )]
    NoPort { instance: String },
    #[error("flushing {instance} failed: {reason}; what it said is in {}", log.display())]
    Failed { instance: String, reason: String, log: PathBuf },
    #[error("interrupted while flushing {instance}")]
    Interrupted { instance: String },
}

/// A way to reach an instance's JMX.
#[derive(Debug)]
pub(crate) struct Jmx {
    pub(crate) port: u16,
    /// A directory for what the tool writes down.
    pub(crate) home: PathBuf,
    pub(crate) log: PathBuf,
}

/// A free port on the loopback interface, unless the user's flags are about JMX. Another program
/// may take it before the JVM does; it then says so and ends.
pub(crate) fn free_port(flags: &[String]) -> Option<u16> {
    let users = |flag: &String| USERS.iter().any(|start| flag.starts_with(start));
    if flags.iter().any(users) {
        return None;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}

/// The JVM's flag for it: without a password, on the loopback interface, as the original has it.
pub(crate) fn flag(port: u16) -> String {
    format!("-Dcassandra.jmx.local.port={port}")
}

impl Cluster {
    /// Flushes all instances, one after the other, within `limit` together.
    ///
    /// # Errors
    /// [`FlushError`] of the first that fails.
    pub fn flush(&self, limit: Nanos, stop: &AtomicBool) -> Result<(), FlushError> {
        let deadline = clock::now() + limit;
        for instance in self.instances() {
            let name = instance.name().to_owned();
            let Some(jmx) = instance.jmx() else {
                return Err(FlushError::NoPort { instance: name });
            };
            let left = deadline.since(clock::now());
            let argv = self.argv(jmx);
            let flushed = brief::run_into(&argv, &jmx.log, left, stop);
            let failed = |reason: String| {
                let (instance, log) = (name.clone(), jmx.log.clone());
                FlushError::Failed { instance, reason, log }
            };
            flushed.map_err(|error| match error {
                BriefError::Interrupted => FlushError::Interrupted { instance: name.clone() },
                BriefError::Spawn(error) => failed(error.to_string()),
                BriefError::Endless => failed(format!("it was not done within {limit}")),
                BriefError::Failed { exit, last_lines } => {
                    failed(format!("{exit} {}", last_lines.join(" ")))
                }
            })?;
        }
        Ok(())
    }

    fn argv(&self, jmx: &Jmx) -> Vec<OsString> {
        let (java, class_path) = self.tools();
        let mut argv = vec![java.program.as_os_str().to_owned()];
        argv.extend(jvm::module_flags(java.major).into_iter().map(OsString::from));
        argv.extend(["-Xmx128m", "-XX:ParallelGCThreads=1"].map(OsString::from));
        // Or it keeps a history in the user's home.
        argv.push(option("-Duser.home=", &jmx.home));
        argv.extend(["-cp".into(), class_path, MAIN.into()]);
        let port = jmx.port.to_string();
        argv.extend(["-h", "127.0.0.1", "-p", &port, "flush"].map(OsString::from));
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_jmx_is_left_alone() {
        let flags = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(free_port(&flags(&["-Dcassandra.jmx.local.port=7199"])), None);
        assert_eq!(free_port(&flags(&["-Dcom.sun.management.jmxremote.port=1"])), None);
        let port = free_port(&flags(&["-Xmx1g"])).unwrap();
        assert_eq!(flag(port), format!("-Dcassandra.jmx.local.port={port}"));
    }
}
