//! Records of Aerospike's protocol: whether the set is ours, whether its records are there, whether
//! they are to be loaded.
//!
//! As for tables (see `data`): a namespace has to be there, which is the servers' configuration; a
//! set comes to be with its first record. A set that has records and no marker is somebody else's.
//! The marker is a record of the set `wideload_marker`, whose key is the set's name.

use crate::data::{CONTROL_TIMEOUT_MIN, PROBES, Prepared};
use crate::dialect::Dialect;
use crate::error::LabError;
use crate::filling::{Book, Filling, Keeper};
use crate::live::Live;
use crate::marker::{self, Shape};
use crate::provision::Provisioned;
use crate::trial::{Foreign, LoadChoice, Trial};
use crate::wanted::{Probed, Rows};
use admin::aerospike::{Cluster, Config};
use drive::Masters;
use record::Caveat;
use record::summary::Target;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::aerospike::{Key, RecordExists, UserKey};
use workload::Cells;

/// What a reference target calls its edition.
const STAND_IN: &str = "wideload reference target";

/// A cluster that is looked after while it is driven.
#[derive(Debug)]
pub(crate) struct Tended {
    pub(crate) cluster: Cluster,
    pub(crate) masters: Masters,
}

impl Tended {
    fn of(trial: &Trial, seeds: &[SocketAddr], stop: &Arc<AtomicBool>) -> Result<Self, LabError> {
        let config = Config {
            seeds: seeds.to_vec(),
            namespace: trial.table.keyspace.clone(),
            fixed_hosts: trial.fixed_hosts,
            timeout: trial.timeout.max(CONTROL_TIMEOUT_MIN),
        };
        let cluster = Cluster::connect(&config, stop)?;
        let masters = Masters::new(cluster.masters()).ok_or(LabError::Interrupted)?;
        Ok(Self { cluster, masters })
    }
}

/// What a target is, by its own word: kind, version, and what it does wrong on purpose.
pub(crate) fn kind(cluster: &mut Cluster) -> (&'static str, String, Option<String>) {
    let build = cluster.build().to_owned();
    if cluster.edition() != STAND_IN {
        return ("aerospike", build, None);
    }
    let faults = cluster.info("wideload-faults").ok().filter(|faults| !faults.is_empty());
    (Target::REFERENCE, env!("CARGO_PKG_VERSION").to_owned(), faults)
}

/// Decides whether to load.
pub(crate) fn prepare(
    trial: &Trial,
    target: &Provisioned,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Prepared, LabError> {
    let mut caveats = of_updates(trial);
    if target.databases() > 1 {
        return own(trial, target.addresses.clone(), None, caveats);
    }
    let mut tended = Tended::of(trial, &target.addresses, stop)?;
    let addresses = tended.cluster.addresses();
    if target.is_ours() {
        return own(trial, addresses, Some(tended), caveats);
    }
    let Tended { cluster, .. } = &mut tended;
    let filling = match trial.foreign {
        Some(foreign) => {
            caveats.extend(of_foreign(trial, foreign, cluster)?);
            None
        }
        None => filling(trial, cluster, live, &mut caveats)?,
    };
    let filling = match filling {
        Some(Rows { missing, seed, booked: true }) => {
            let book = Tended::of(trial, &addresses, stop)?.cluster;
            let keeper = Keeper { book: Book::records(book), shape: Shape::of(&trial.plan) };
            Some(Filling { missing, seed, keeper: Some(keeper) })
        }
        Some(Rows { missing, seed, booked: false }) => {
            Some(Filling { missing, seed, keeper: None })
        }
        None => None,
    };
    Ok(Prepared { filling, caveats, tended: Some(tended), ..Prepared::at(addresses) })
}

/// A target of our own is new, and nobody will ask for a marker on it.
fn own(
    trial: &Trial,
    addresses: Vec<SocketAddr>,
    tended: Option<Tended>,
    caveats: Vec<Caveat>,
) -> Result<Prepared, LabError> {
    if trial.load_choice == LoadChoice::Skip {
        return Err(LabError::TableMissing { table: set_name(trial) });
    }
    let filling = (!trial.loads()).then(|| Filling::whole(trial, None));
    Ok(Prepared { filling, caveats, tended, ..Prepared::at(addresses) })
}

/// An update that replaces leaves less of a record than there was.
fn of_updates(trial: &Trial) -> Vec<Caveat> {
    let replaces = trial.records.is_some_and(|records| {
        matches!(records.writes.update, RecordExists::Replace | RecordExists::ReplaceOnly)
    });
    let partial = trial.plan.run.iter().flat_map(|operation| &operation.steps).any(|step| {
        let statement = &trial.plan.statements[step.first_statement];
        statement.action == workload::Action::Update
            && statement.columns.len() < trial.plan.schema.columns.len()
    });
    if !replaces || !partial || trial.loads() {
        return Vec::new();
    }
    let (text, cure) = match Dialect::of(trial) {
        Dialect::Asbench => (
            "A write of RR replaces its record: what was written holds the written bins only, so \
             records shrink while it runs.",
            "Give RU to keep the other bins, or write all of them.",
        ),
        _ => (
            "An update replaces its record, as YCSB's aerospike binding has it: what was updated \
             holds the written field only, so records shrink while it runs.",
            "Give -p as.update=upsert to keep the other fields, or -p writeallfields=true.",
        ),
    };
    vec![Caveat::new("records-shrink", text).cure(cure)]
}

/// `namespace.set`.
pub(crate) fn set_name(trial: &Trial) -> String {
    format!("{}.{}", trial.table.keyspace, trial.table.table)
}

/// Whether the set has any record, as its servers count them.
fn has_records(trial: &Trial, cluster: &mut Cluster) -> Result<bool, LabError> {
    let name = format!("sets/{}/{}", trial.table.keyspace, trial.table.table);
    let told = cluster.info_of_all(&name)?;
    let objects = |value: &String| {
        let count = value.split([':', ';']).find_map(|part| part.strip_prefix("objects="));
        count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    Ok(told.iter().any(|value| objects(value) > 0))
}

/// Which records are to be written before the run.
fn filling(
    trial: &Trial,
    cluster: &mut Cluster,
    live: &mut dyn Live,
    caveats: &mut Vec<Caveat>,
) -> Result<Option<Rows>, LabError> {
    let all = |booked| Some(Rows::all(trial, booked));
    let Some(marker) = marker::read_record(cluster, &trial.table)? else {
        if !has_records(trial, cluster)? {
            return match trial.load_choice {
                LoadChoice::Skip => Err(LabError::TableMissing { table: set_name(trial) }),
                LoadChoice::Load | LoadChoice::Undecided => Ok(all(true)),
            };
        }
        return unmarked(trial, cluster, all(false), caveats);
    };
    Rows::wanted(trial, marker, set_name(trial), || probe(trial, cluster), live, caveats)
}

/// See [`Rows::unmarked`].
fn unmarked(
    trial: &Trial,
    cluster: &mut Cluster,
    all: Option<Rows>,
    caveats: &mut Vec<Caveat>,
) -> Result<Option<Rows>, LabError> {
    let set = set_name(trial);
    let foreign = LabError::ForeignSet { set: set.clone() };
    let cure = "Let wideload load a set of its own with --table.";
    Rows::unmarked(trial, all, (set, "records"), foreign, || probe(trial, cluster), cure, caveats)
}

/// Looks for records that the run of another tool expects.
fn of_foreign(
    trial: &Trial,
    foreign: Foreign,
    cluster: &mut Cluster,
) -> Result<Option<Caveat>, LabError> {
    if foreign.loads {
        return Ok(None);
    }
    let Probed { found, of } = probe(trial, cluster)?;
    Ok((found < of).then(|| crate::foreign::rows_missing(foreign, found, of)))
}

/// The integer that a key's bytes begin with.
fn integer_of(key: &[u8]) -> i64 {
    key.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Looks for up to 1000 keys, evenly over all that the load writes.
fn probe(trial: &Trial, cluster: &mut Cluster) -> Result<Probed, LabError> {
    let keys = &trial.plan.keys;
    let (count, last) = (keys.loaded.min(PROBES), u128::from(keys.loaded.saturating_sub(1)));
    let mut text = vec![0; trial.plan.key_room()];
    let mut found = 0;
    for i in 0..count {
        let ahead = last * u128::from(i) / u128::from(count.saturating_sub(1).max(1));
        let size = trial.plan.write_key(keys.start + ahead as u64, &mut text);
        let key = match (trial.plan.schema.cells, std::str::from_utf8(&text[..size])) {
            (Cells::Text, Ok(text)) => UserKey::String(text),
            (Cells::Objects, _) => UserKey::Integer(integer_of(&text)),
            _ => UserKey::Blob(&text[..size]),
        };
        let key = Key::new(&trial.table.keyspace, &trial.table.table, key);
        found += usize::from(cluster.has(&key)?);
    }
    Ok(Probed { found, of: count as usize })
}
