//! The files that put a layout into effect: shell, systemd units, and what each database reads.
//!
//! Input: a [`Layout`] and what the user sets. Output: [`Emitted`]: texts with their names, and
//! notes on what was advised, what the user changed, what the database is to be told. Nothing on
//! the host is touched before [`Emitted::write`], which only writes these files.
//!
//! What the user sets wins over advice and is told; what a release refuses is an error that names
//! the successor. Each instance has `run.sh`, which starts it in the foreground without any
//! binding; `numactl.sh` and the unit bind it and run that. Limits: Linux with bash; numactl or
//! systemd 243.

mod aerospike;
mod cassandra;
mod numa_flag;
mod reference;
mod scylla;
mod settings;
mod shell;
mod systemd;
mod write;

pub use settings::{Set, SetError};
pub use write::WriteError;

use crate::cassandra::{Refused, SettingError, VersionError};
use machine::layout::{Database, Layout, Placement, Reason};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What the user decides.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Where the files are going to be: absolute.
    pub root: PathBuf,
    /// The release of the database; else the one that wideload knows best.
    pub version: Option<String>,
    /// The major version of the JVM; else the newest that the release is made for.
    pub java: Option<u32>,
    /// Keys and flags of the database.
    pub settings: Vec<Set>,
    /// Flags of the JVM, after all others.
    pub jvm: Vec<String>,
    /// One ring or cluster of all instances; else each is its own.
    pub ring: bool,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Below the root.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

/// All files, and what is to be said of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Emitted {
    /// In the order in which a reader wants them.
    pub files: Vec<File>,
    /// Advice that was taken or overruled.
    pub notes: Vec<Reason>,
}

/// Why there are no files. Each text names the thing and the cure.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum EmitError {
    #[error("{} cannot be written into scripts: give a path of plain UTF-8", path.display())]
    Root { path: PathBuf },
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error("'{given}' is no release of Aerospike: give one like 8.1.2")]
    AerospikeVersion { given: String },
    #[error("--version {given}: what is emitted for {database} is the same for all: leave it out")]
    NoVersion { database: Database, given: String },
    #[error("--set {set} is for another database than {database}: leave it out")]
    Other { set: String, database: Database },
    #[error("--{flag} is of use with --database cassandra only: leave it out")]
    CassandraOnly { flag: &'static str },
    #[error("Cassandra {version} is made for Java {made_for}, not {java}: give --java {made_for}")]
    Java { version: String, made_for: String, java: u32 },
    #[error("the memory of an instance is not known, and with it no heap: give --memory or --heap")]
    NoHeap,
    #[error("the memory of an instance is not known: give --memory")]
    NoMemory,
    #[error("{address} is no IPv4 address: Cassandra is set up with IPv4 only; give another")]
    Address { address: IpAddr },
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("aerospike.{key} is refused from Aerospike {since} on, and this is {version}: {cure}")]
    Obsolete { key: String, since: String, version: String, cure: &'static str },
    #[error("the reference target is not one ring: leave --ring out")]
    NoRing,
}

/// The files of a layout.
///
/// # Errors
/// [`EmitError`], when something that the user sets cannot be.
pub fn files(layout: &Layout, asked: &Asked) -> Result<Emitted, EmitError> {
    let root = asked.root.to_str().filter(|text| !text.chars().any(char::is_control));
    let root = root.ok_or_else(|| EmitError::Root { path: asked.root.clone() })?;
    fits_the_database(layout.database, asked)?;
    let of_database = match layout.database {
        Database::Cassandra => cassandra::files(layout, asked, root)?,
        Database::Scylla => scylla::files(layout, asked, root)?,
        Database::Aerospike => aerospike::files(layout, asked, root)?,
        Database::Reference => reference::files(layout, asked)?,
    };
    let mut files = vec![shell::start(layout, root), systemd::environment(layout.database)];
    for placement in &layout.placements {
        files.push(shell::bound(layout, placement, root));
        files.push(systemd::unit(layout, placement, root));
    }
    files.extend(of_database.files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let notes = of_database.notes.into_iter().chain(together(layout, asked.ring)).collect();
    Ok(Emitted { files, notes })
}

/// Whether several instances are one database.
fn together(layout: &Layout, ring: bool) -> Option<Reason> {
    let text = match (layout.placements.len(), ring, layout.database) {
        (0 | 1, _, _) => return None,
        (count, true, _) => format!("one database of {count} instances, as asked with --ring"),
        (count, false, Database::Reference) => format!("{count} targets that share nothing"),
        (count, false, _) => format!(
            "{count} databases that share nothing, each with data of its own; --ring makes them \
             one"
        ),
    };
    Some(Reason::new("ring", text))
}

fn fits_the_database(database: Database, asked: &Asked) -> Result<(), EmitError> {
    if let Some(other) = asked.settings.iter().find(|set| set.database() != database) {
        return Err(EmitError::Other { set: other.to_string(), database });
    }
    if database != Database::Cassandra {
        let flags = [("jvm", !asked.jvm.is_empty()), ("java", asked.java.is_some())];
        if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
            return Err(EmitError::CassandraOnly { flag });
        }
    }
    match (&asked.version, database) {
        (Some(given), Database::Scylla | Database::Reference) => {
            Err(EmitError::NoVersion { database, given: given.clone() })
        }
        _ => Ok(()),
    }
}

/// The program that the scripts bind instances with.
#[must_use]
pub fn binder(layout: &Layout) -> &'static str {
    shell::binder(layout)
}

/// `cassandra-1`, the name of an instance and of its directory.
fn name(layout: &Layout, placement: &Placement) -> String {
    format!("{}-{}", layout.database, placement.instance)
}

/// A file in the directory of an instance.
fn file(layout: &Layout, placement: &Placement, file: &str, text: String) -> File {
    let path = Path::new(&name(layout, placement)).join(file);
    File { path, text, executable: file.ends_with(".sh") }
}
