//! Schema, rows and statements: what is there, what is created, whether it is to be loaded, what is
//! prepared.
//!
//! On a target that runs already (design section 7, Safety) only what is missing is created, and
//! nothing is altered, truncated or dropped. Tables are written to when they carry wideload's
//! marker, or when the user says so. The marker and up to 1000 probed keys, evenly over all keys,
//! decide whether the rows are there. A target of our own is new, so all of it is created and
//! loaded, unless its data are kept and were loaded by a trial before.

use crate::error::LabError;
use crate::filling::{Book, Filling, Keeper};
use crate::foreign;
use crate::live::Live;
use crate::marker::{self, Marker, Shape};
use crate::profiled;
use crate::provision::Provisioned;
use crate::records::{self, Tended};
use crate::ring_watch::{self, Watched};
use crate::sharded;
use crate::trial::{LoadChoice, Trial};
use crate::wanted::{Probed, Rows};
use admin::{Admin, literal};
use drive::{
    Access, Control, Offering, PreparedId, Shards, TableName, create_keyspace, create_table,
    identifier, key_type, statement_texts, token_ranges, value_type,
};
use record::Caveat;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};
use wire::routing::Ring;
use workload::{Action, Cells, Plan, TableRows};

/// What the control plane found and made.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Prepared ids in the order of the plan's statements.
    pub(crate) ids: Vec<PreparedId>,
    /// The rows that are to be written first.
    pub(crate) filling: Option<Filling>,
    /// `release_version` of the hosts, several with commas.
    pub(crate) version: Option<String>,
    /// The hosts to drive.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Which of them hold what, in the order of `addresses`; None for one host.
    pub(crate) ring: Option<Arc<Ring>>,
    /// Of tokens, of the ring.
    pub(crate) ranges: Arc<[(i64, i64)]>,
    /// None when no host has any.
    pub(crate) shards: Option<Shards>,
    /// What is looked after while it is driven; None on a target that nobody else can change.
    pub(crate) watched: Option<Watched>,
    /// The servers of records, which are looked after; None of one that is ours alone.
    pub(crate) tended: Option<Tended>,
    /// What the figures rest on.
    pub(crate) caveats: Vec<Caveat>,
}

impl Prepared {
    /// Nothing but where it is.
    pub(crate) fn at(addresses: Vec<SocketAddr>) -> Self {
        Self {
            ids: Vec::new(),
            filling: None,
            version: None,
            addresses,
            ring: None,
            ranges: token_ranges(Vec::new()),
            shards: None,
            watched: None,
            tended: None,
            caveats: Vec::new(),
        }
    }
}

/// Longest wait for a control request; loads and runs have their own timeout.
pub(crate) const CONTROL_TIMEOUT_MIN: Nanos = Nanos::from_secs(5);
/// Keyspaces of Cassandra and ScyllaDB themselves.
pub(crate) const SYSTEM_KEYSPACES: [&str; 10] = [
    "system",
    "system_auth",
    "system_cluster_metadata",
    "system_distributed",
    "system_distributed_everywhere",
    "system_metrics",
    "system_schema",
    "system_traces",
    "system_views",
    "system_virtual_schema",
];
/// Keys that are looked for.
pub(crate) const PROBES: u64 = 1000;

/// Creates what is missing, decides whether to load, prepares on every host.
pub(crate) fn prepare(
    trial: &Trial,
    target: &Provisioned,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Prepared, LabError> {
    let timeout = trial.timeout.max(CONTROL_TIMEOUT_MIN);
    let mut prepared = if trial.records.is_some() {
        records::prepare(trial, target, live, stop)?
    } else if !target.children.is_empty() || target.databases() > 1 {
        own(trial, &target.addresses, timeout, stop)?
    } else {
        running(trial, &target.addresses, timeout, live, stop)?
    };
    if let Some(filling) = prepared.filling.as_ref().filter(|_| !target.is_ours()) {
        let table = match trial.records {
            Some(_) => records::set_name(trial),
            None => trial.table.quoted(),
        };
        let volume = volume(&trial.plan, filling.rows());
        live.notice(&format!("loading {volume} into {table}"));
    }
    if trial.records.is_some() {
        return Ok(prepared);
    }
    let connect = |&host| Control::speaking(trial.protocol, host, timeout, &trial.access, stop);
    let controls = prepared.addresses.iter().map(connect);
    let mut controls = controls.collect::<Result<Vec<_>, _>>()?;
    prepared.ids = ids(trial, &mut controls)?;
    if let (Some(tables), Some(control)) = (&trial.plan.tables, controls.first_mut())
        && tables.scans()
    {
        prepared.ranges = ranges(control)?;
    }
    if target.databases() == 1 {
        let offering = Offering::of(&mut controls, &tables(trial))?;
        prepared.caveats.extend(sharded::unread(&offering));
        prepared.shards = offering.shards;
    }
    Ok(prepared)
}

/// What is driven, in the order of the plan's tables.
fn tables(trial: &Trial) -> Vec<TableName> {
    let Some(tables) = &trial.plan.tables else { return vec![trial.table.clone()] };
    let names = tables.tables.iter().map(TableRows::stored_names);
    names.map(|(keyspace, table)| TableName { keyspace, table }).collect()
}

/// The ranges of a cluster's ring, between neighbouring tokens of its hosts.
fn ranges(control: &mut Control) -> Result<Arc<[(i64, i64)]>, LabError> {
    let mut tokens = Vec::new();
    for table in ["local", "peers"] {
        for row in control.query(&format!("SELECT tokens FROM system.{table}"))? {
            let listed = row.first().and_then(Option::as_deref).unwrap_or_default();
            tokens.extend(texts(listed).filter_map(|token| token.parse::<i64>().ok()));
        }
    }
    Ok(token_ranges(tokens))
}

/// The elements of a set of texts, as it comes.
fn texts(set: &[u8]) -> impl Iterator<Item = &str> {
    let mut rest = set.get(4..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (text, left) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        rest = left;
        std::str::from_utf8(text).ok()
    })
}

/// So many rows of a plan in words, with their size before overhead and replication.
pub(crate) fn volume(plan: &Plan, rows: u64) -> String {
    let row = row_bytes_max(plan);
    let bytes = Bytes(rows.saturating_mul(row));
    format!("{rows} rows of at most {row} bytes: {bytes} without overhead and replicas")
}

/// Key and values of a row, at most; of tables those of a partition.
pub(crate) fn row_bytes_max(plan: &Plan) -> u64 {
    if let Some(tables) = &plan.tables {
        let largest = tables.tables.iter().map(TableRows::partition_bytes_max);
        return largest.fold(0.0, f64::max) as u64;
    }
    (plan.key_size_max() + plan.schema.columns.len() * plan.value_size_max()) as u64
}

fn ids(trial: &Trial, controls: &mut [Control]) -> Result<Vec<PreparedId>, LabError> {
    let mut ids: Vec<PreparedId> = Vec::new();
    for (index, statement) in statement_texts(&trial.plan, &trial.table).into_iter().enumerate() {
        let mut prepared =
            controls.iter_mut().map(|c| c.prepare(&statement)).collect::<Result<Vec<_>, _>>()?;
        let id = PreparedId::from(prepared.swap_remove(0));
        let same = |other| PreparedId::from(other) == id;
        if !prepared.into_iter().all(same) {
            return Err(LabError::Ids { statement });
        }
        if let Some(tables) = &trial.plan.tables
            && tables.scan_of(index).is_none()
        {
            let table = tables.table_of(index);
            let lacking = id.values.iter().find(|name| table.place(name).is_none());
            if let Some(value) = lacking.cloned() {
                let columns = table.columns().collect::<Vec<_>>().join(", ");
                return Err(LabError::NoColumn { statement, value, columns });
            }
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Beside data that are kept: they were loaded in whole. Several databases have no marker of their
/// own.
pub(crate) fn loaded_mark(data: &Path) -> PathBuf {
    data.with_extension("loaded")
}

/// A target of our own is new, and nobody will ask for a marker on it.
fn own(
    trial: &Trial,
    addresses: &[SocketAddr],
    timeout: Nanos,
    stop: &Arc<AtomicBool>,
) -> Result<Prepared, LabError> {
    if trial.load_choice == LoadChoice::Skip {
        return Err(LabError::TableMissing { table: trial.table.quoted() });
    }
    for &address in addresses {
        let mut control = Control::connect_unless(address, timeout, &Access::default(), stop)?;
        if let Some(tables) = &trial.plan.tables {
            profiled::create_on(&mut control, tables)?;
            continue;
        }
        control.query(&create_keyspace(&trial.table, &trial.replication))?;
        control.query(&create_table(&trial.plan, &trial.table))?;
    }
    let filled = trial.loads() || trial.plan.tables.is_some();
    let loaded = trial.kept.as_deref().is_some_and(|data| loaded_mark(data).exists());
    Ok(Prepared {
        filling: (!filled && !loaded).then(|| Filling::whole(trial, None)),
        ..Prepared::at(addresses.to_vec())
    })
}

/// How the control plane of a trial connects.
pub(crate) fn config(trial: &Trial, addresses: &[SocketAddr], timeout: Nanos) -> admin::Config {
    admin::Config {
        hosts: addresses.to_vec(),
        credentials: trial.access.credentials.clone(),
        tls: trial.access.tls.clone(),
        fixed_hosts: trial.fixed_hosts,
        identities: Vec::new(),
        datacenter: trial.datacenter.clone(),
        timeout,
        cpus: trial.client_cpus.clone(),
    }
}

fn running(
    trial: &Trial,
    addresses: &[SocketAddr],
    timeout: Nanos,
    live: &mut dyn Live,
    stop: &Arc<AtomicBool>,
) -> Result<Prepared, LabError> {
    let config = config(trial, addresses, timeout);
    let admin = Admin::connect_unless(&config, stop)?;
    let version = Some(admin.versions()?.join(", ")).filter(|version| !version.is_empty());
    let mut caveats = Vec::new();
    let rows = match (&trial.scripted, trial.foreign) {
        (Some(scripted), _) => {
            scripted.create(trial, &admin, live)?;
            None
        }
        (None, _) if trial.plan.tables.is_some() => {
            profiled::create_for_run(trial, &admin, live, &mut caveats)?;
            None
        }
        (None, foreign) => {
            let found = Found::of(trial, &admin)?;
            match foreign {
                Some(_) if found.mock => None,
                Some(foreign) => {
                    caveats.extend(foreign::table(trial, foreign, &admin, found.table)?);
                    None
                }
                None => found.rows(trial, &admin, live, &mut caveats)?,
            }
        }
    };
    let ring = hosts(trial, &admin, &mut caveats)?;
    let addresses = ring.hosts.iter().map(|host| host.address).collect();
    let datacenter = Some(admin.datacenter().to_owned()).filter(|name| !name.is_empty());
    let watched = Watched {
        config: admin::Config {
            datacenter,
            identities: ring.hosts.iter().map(|host| (host.host_id, host.address)).collect(),
            ..config
        },
        table: trial.table.clone(),
        shape: ring_watch::shape(&admin, &trial.table)?,
    };
    // The driver's connections live on only where a load has to be booked.
    let filling = rows.map(|Rows { missing, seed, booked }| {
        let keeper = booked.then(|| {
            let (book, shape) = (Book::Table(Box::new(admin)), Shape::of(&trial.plan));
            Keeper { book, shape }
        });
        Filling { missing, seed, keeper }
    });
    let ring = (ring.hosts.len() > 1).then(|| Arc::new(ring));
    let watched = Some(watched);
    Ok(Prepared { filling, version, ring, watched, caveats, ..Prepared::at(addresses) })
}

/// The hosts of the preferred datacenter that can be reached.
fn hosts(trial: &Trial, admin: &Admin, caveats: &mut Vec<Caveat>) -> Result<Ring, LabError> {
    let all = admin.ring(&trial.table.keyspace)?;
    let near = all.only(|host| host.datacenter == admin.datacenter());
    let ring = near.only(|host| host.up);
    let out: Vec<_> =
        near.hosts.iter().filter(|host| !host.up).map(|host| host.address.to_string()).collect();
    if ring.hosts.is_empty() {
        return Err(LabError::NoHostUp { hosts: out.join(", ") });
    }
    if !out.is_empty() {
        let text = "Hosts of the cluster were left out, because they could not be connected to.";
        let cure = "Bring them up; --fixed-hosts uses only the addresses given.";
        caveats.push(Caveat::new("hosts-left-out", text).evidence(out.join(", ")).cure(cure));
    }
    Ok(ring)
}

/// What there is of a trial's table.
#[derive(Debug)]
struct Found {
    table: bool,
    marker: Option<Marker>,
    /// The target gives canned answers: what it says about rows means nothing.
    mock: bool,
}

impl Found {
    fn of(trial: &Trial, admin: &Admin) -> Result<Self, LabError> {
        let keyspace = &trial.table.keyspace;
        if SYSTEM_KEYSPACES.contains(&keyspace.as_str()) {
            return Err(LabError::SystemKeyspace { keyspace: keyspace.clone() });
        }
        let mock = is_mock(admin)?;
        let table = columns_fit(trial, admin)?;
        let unmarked = mock || trial.foreign.is_some();
        let marker = if unmarked { None } else { marker::read(admin, &trial.table)? };
        Ok(Self { table, marker, mock })
    }

    /// Creates what is missing; which rows are to be written before the run.
    fn rows(
        self,
        trial: &Trial,
        admin: &Admin,
        live: &mut dyn Live,
        caveats: &mut Vec<Caveat>,
    ) -> Result<Option<Rows>, LabError> {
        let shape = Shape::of(&trial.plan);
        let all = |booked| Some(Rows::all(trial, booked));
        if !self.table {
            if trial.load_choice == LoadChoice::Skip {
                return Err(LabError::TableMissing { table: trial.table.quoted() });
            }
            self.create(trial, admin, shape)?;
            return Ok(all(!self.mock));
        }
        if self.mock {
            return Ok(if trial.load_choice == LoadChoice::Load { all(false) } else { None });
        }
        let Some(marker) = self.marker else { return unmarked(trial, admin, all(false), caveats) };
        let look = || probe(trial, admin);
        Rows::wanted(trial, marker, trial.table.quoted(), look, live, caveats)
    }

    /// The marker comes before the table, so that no table of ours is ever without.
    fn create(&self, trial: &Trial, admin: &Admin, shape: Shape) -> Result<(), LabError> {
        let keyspace = format!(
            "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = {}",
            literal(&trial.table.keyspace)
        );
        if admin.query(&keyspace)?.is_empty() {
            admin.check_replication(&trial.replication)?;
            admin.schema_change(&create_keyspace(&trial.table, &trial.replication))?;
        }
        if !self.mock {
            marker::create(admin, &trial.table)?;
            let keys = &trial.plan.keys;
            let missing = std::iter::once(keys.start..keys.start + keys.loaded).collect();
            let marker = Marker { shape, seed: trial.seed, missing };
            marker::write(admin, &trial.table, &marker, keys.loaded)?;
        }
        Ok(admin.schema_change(&create_table(&trial.plan, &trial.table))?)
    }
}

/// See [`Rows::unmarked`].
fn unmarked(
    trial: &Trial,
    admin: &Admin,
    all: Option<Rows>,
    caveats: &mut Vec<Caveat>,
) -> Result<Option<Rows>, LabError> {
    let table = trial.table.quoted();
    let foreign = LabError::ForeignTable { table: table.clone() };
    let cure = "Let wideload load a table of its own with --keyspace or --table.";
    Rows::unmarked(trial, all, (table, "rows"), foreign, || probe(trial, admin), cure, caveats)
}

pub(crate) fn writes(plan: &Plan) -> bool {
    let writes =
        |&index: &usize| matches!(plan.statements[index].action, Action::Update | Action::Insert);
    plan.run.iter().flat_map(|o| &o.steps).any(|step| writes(&step.first_statement))
}

/// Looks for up to 1000 keys, evenly over all that the load writes.
pub(crate) fn probe(trial: &Trial, admin: &Admin) -> Result<Probed, LabError> {
    let keys = &trial.plan.keys;
    let (count, last) = (keys.loaded.min(PROBES), u128::from(keys.loaded.saturating_sub(1)));
    let mut text = vec![0; trial.plan.key_room()];
    let wanted: Vec<_> = (0..count)
        .map(|i| {
            let ahead = last * u128::from(i) / u128::from(count.saturating_sub(1).max(1));
            let size = trial.plan.write_key(keys.start + ahead as u64, &mut text);
            text[..size].to_vec()
        })
        .collect();
    let key = identifier(&trial.plan.schema.key_column);
    let query = format!("SELECT {key} FROM {} WHERE {key} = ?", trial.table.quoted());
    let probed = wanted.len();
    let found = match trial.plan.schema.cells {
        Cells::Text => {
            let texts = wanted.iter().map(|key| String::from_utf8_lossy(key).into_owned());
            admin.count_found(&query, texts.collect())?
        }
        Cells::Blob | Cells::Counter => admin.count_found_blobs(&query, wanted)?,
        Cells::Objects => {
            let keys = wanted.iter().filter_map(|key| key.first_chunk());
            admin
                .count_found_integers(&query, keys.map(|key| i64::from_be_bytes(*key)).collect())?
        }
    };
    Ok(Probed { found, of: probed })
}

/// Whether the table exists; an error when it does and its columns are not the plan's.
fn columns_fit(trial: &Trial, admin: &Admin) -> Result<bool, LabError> {
    let query = format!(
        "SELECT column_name, kind, type FROM system_schema.columns WHERE keyspace_name = {} AND \
         table_name = {}",
        literal(&trial.table.keyspace),
        literal(&trial.table.table)
    );
    let rows = admin.query(&query)?;
    if rows.is_empty() {
        return Ok(false);
    }
    let refuse = |wrong: String| {
        let create = create_table(&trial.plan, &trial.table);
        Err(LabError::TableShape { table: trial.table.quoted(), wrong, create })
    };
    let cell = |row: &admin::Row, column| row.get(column).text().unwrap_or_default().to_owned();
    let schema = &trial.plan.schema;
    for row in &rows {
        let (name, kind) = (cell(row, "column_name"), cell(row, "kind"));
        let keyed = matches!(kind.as_str(), "partition_key" | "clustering");
        if keyed && (kind != "partition_key" || name != schema.key_column) {
            return refuse(format!("{name} is part of its key"));
        }
    }
    let columns = schema.columns.iter().enumerate();
    let columns = columns.map(|(index, name)| (name, value_type(&trial.plan, index)));
    let key = (&schema.key_column, key_type(&trial.plan));
    for (name, wanted) in std::iter::once(key).chain(columns) {
        let row = rows.iter().find(|row| row.get("column_name").text() == Some(name));
        let Some(row) = row else { return refuse(format!("it has no column {name}")) };
        let of = cell(row, "type");
        let fits = of == wanted || wanted == "text" && matches!(of.as_str(), "varchar" | "ascii");
        if !fits {
            return refuse(format!("its column {name} is of type {of} and not {wanted}"));
        }
        if name == &schema.key_column && cell(row, "kind") != "partition_key" {
            return refuse(format!("its column {name} is not its key"));
        }
    }
    Ok(true)
}

/// Whether a reference target without storage answers.
fn is_mock(admin: &Admin) -> Result<bool, LabError> {
    let exists = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = \
                  'system_wideload' AND table_name = 'target'";
    if admin.query(exists)?.is_empty() {
        return Ok(false);
    }
    let rows = admin.query("SELECT storage FROM system_wideload.target")?;
    Ok(rows.first().is_some_and(|row| row.get("storage").text() == Some("null")))
}
