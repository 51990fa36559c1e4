//! CREATE, ALTER, DROP, TRUNCATE: changes of the catalog, of the schema tables and of prepared
//! statements' validity.

use crate::catalog::{COLUMNS_MAX, Column, Keyspace, Role, Table, qualified};
use crate::cql::ast::{AlterAction, ColumnDefinition, CreateTable, Property, Statement, TableName};
use crate::cql::identifier;
use crate::engine::{Engine, Storage};
use crate::error::{CqlError, invalid, undefined};
use crate::options::{KeyspaceOptions, TableOptions, TabletsOption, keyspace_options, replicas};
use crate::order::is_ordered;
use crate::schema_file;
use crate::store::TableStore;
use crate::system_tables as system;
use crate::types::DataType;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::cql::ColumnType;
use wire::cql::response::SchemaChange;

/// Keyspaces and tables; more is a runaway client.
const KEYSPACES_MAX: usize = 1000;
const TABLES_MAX: usize = 1000;

/// 1024 shards: a client table is spread over them by token.
const SHARD_BITS: u32 = 10;

/// What a schema statement has done.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// None: nothing changed.
    pub(crate) change: Option<SchemaChange>,
    pub(crate) warnings: Vec<String>,
    /// Tables whose rows are freed when the schema knows them no more.
    dropped: Vec<Arc<Table>>,
}

/// What a table on disk is known by.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) id: [u8; 16],
    /// Of its rows' place.
    pub(crate) number: u64,
    /// Names and ids of the columns beyond the key.
    pub(crate) columns: Vec<(String, u16)>,
}

impl Outcome {
    fn keyspace(change: &'static str, keyspace: &str) -> Self {
        let change = SchemaChange { change, keyspace: keyspace.to_owned(), object: None };
        Self { change: Some(change), ..Self::default() }
    }

    fn table(change: &'static str, keyspace: &str, table: &str) -> Self {
        let object = Some(("TABLE", table.to_owned()));
        let change = SchemaChange { change, keyspace: keyspace.to_owned(), object };
        Self { change: Some(change), ..Self::default() }
    }
}

/// Carries out a schema statement of a connection that uses keyspace `used`.
///
/// # Errors
/// [`CqlError`] when names clash or are missing, or definitions are not sound; nothing has changed
/// then.
pub(crate) fn change(
    engine: &Engine,
    statement: &Statement,
    used: Option<&str>,
) -> Result<Outcome, CqlError> {
    let _changing = engine.change();
    let outcome = apply(engine, statement, used)?;
    if let Some(change) = &outcome.change {
        system::renew_schema_version(engine)?;
        if let Some(disk) = &engine.disk {
            disk.save_schema(&schema_file::text(&engine.schema()));
        }
        outcome.dropped.iter().for_each(|table| discard(table));
        engine.events.publish(change);
    }
    Ok(outcome)
}

/// Changes the catalog and what the schema tables say of it, and tells nobody.
///
/// # Errors
/// As [`change`].
pub(crate) fn apply(
    engine: &Engine,
    statement: &Statement,
    used: Option<&str>,
) -> Result<Outcome, CqlError> {
    Ok(match statement {
        Statement::CreateKeyspace { name, if_not_exists, options } => {
            create_keyspace(engine, name, *if_not_exists, options)?
        }
        Statement::AlterKeyspace { name, options } => alter_keyspace(engine, name, options)?,
        Statement::DropKeyspace { name, if_exists } => drop_keyspace(engine, name, *if_exists)?,
        Statement::CreateTable(create) => create_table(engine, create, used)?,
        Statement::AlterTable { table, action } => alter_table(engine, table, action, used)?,
        Statement::DropTable { table, if_exists } => drop_table(engine, table, *if_exists, used)?,
        Statement::Truncate(table) => {
            check_writable(qualified(table, used)?)?;
            engine.schema().table(table, used)?.store.truncate();
            Outcome::default()
        }
        _ => return Err(invalid("not a schema statement")),
    })
}

/// Refuses changes of the system keyspaces.
pub(crate) fn check_writable(keyspace: &str) -> Result<(), CqlError> {
    match system::KEYSPACES.contains(&keyspace) {
        true => Err(CqlError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable."))),
        false => Ok(()),
    }
}

fn check_name(what: &str, name: &str) -> Result<(), CqlError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match plain && !name.is_empty() && name.len() <= 48 {
        true => Ok(()),
        false => Err(invalid(format!(
            "\"{name}\" is not a valid {what} name (must be 1 to 48 characters of a-z, A-Z, 0-9, _)"
        ))),
    }
}

fn warnings(replication: &[(String, String)]) -> Vec<String> {
    let replicas = replicas(replication);
    match replicas > 1 {
        true => vec![format!(
            "the reference target is one instance: rows are kept once, not {replicas} times"
        )],
        false => Vec::new(),
    }
}

/// The tablets of a keyspace's tables: as ScyllaDB has it, where the replication allows them unless
/// it is told otherwise.
fn tablets(
    engine: &Engine,
    replication: &[(String, String)],
    told: Option<TabletsOption>,
) -> Result<Option<u32>, CqlError> {
    let Some(shards) = &engine.shards else {
        return match told {
            None => Ok(None),
            Some(_) => Err(CqlError::Config(
                "tablets are ScyllaDB's: `wideload serve --scylla` has them".to_owned(),
            )),
        };
    };
    let simple = |(key, class): &(String, String)| key == "class" && class.contains("Simple");
    let simple = replication.iter().any(simple);
    let told = told.unwrap_or(TabletsOption { enabled: !simple, initial: 0 });
    match (told.enabled, told.initial) {
        (false, _) => Ok(None),
        (true, _) if simple => Err(CqlError::Config(
            "SimpleStrategy has no tablets: use NetworkTopologyStrategy, or tablets = \
             {'enabled': false}"
                .to_owned(),
        )),
        (true, 0) => Ok(Some(shards.tablets_per_table())),
        (true, initial) => Ok(Some(initial.next_power_of_two())),
    }
}

fn create_keyspace(
    engine: &Engine,
    name: &str,
    if_not_exists: bool,
    options: &[Property],
) -> Result<Outcome, CqlError> {
    check_name("keyspace", name)?;
    let options = keyspace_options(options)?;
    let replication = options.replication.ok_or_else(|| {
        CqlError::Config("Missing mandatory option 'replication' of a keyspace".to_owned())
    })?;
    let durable_writes = options.durable_writes.unwrap_or(true);
    let tablets = tablets(engine, &replication, options.tablets)?;
    {
        let mut schema = engine.schema_mut();
        if schema.keyspaces.contains_key(name) {
            let (keyspace, table) = (name.to_owned(), String::new());
            return match if_not_exists {
                true => Ok(Outcome::default()),
                false => Err(CqlError::AlreadyExists { keyspace, table }),
            };
        }
        if schema.keyspaces.len() >= KEYSPACES_MAX {
            return Err(invalid(format!("there are {KEYSPACES_MAX} keyspaces: drop one first")));
        }
        let replication = replication.clone();
        let tables = BTreeMap::new();
        let keyspace = Keyspace { replication, durable_writes, tablets, tables };
        schema.keyspaces.insert(name.to_owned(), keyspace);
    }
    system::put_keyspace(engine, name, &replication, durable_writes, tablets)?;
    let warnings = warnings(&replication);
    Ok(Outcome { warnings, ..Outcome::keyspace("CREATED", name) })
}

fn alter_keyspace(engine: &Engine, name: &str, options: &[Property]) -> Result<Outcome, CqlError> {
    check_writable(name)?;
    let KeyspaceOptions { replication, durable_writes, tablets } = keyspace_options(options)?;
    if tablets.is_some() {
        return Err(CqlError::Config(
            "whether a keyspace has tablets is said when it is created".to_owned(),
        ));
    }
    let (replication, durable_writes) = {
        let mut schema = engine.schema_mut();
        schema.keyspace(name)?;
        let Some(keyspace) = schema.keyspaces.get_mut(name) else { return Ok(Outcome::default()) };
        if let Some(replication) = replication {
            keyspace.replication = replication;
        }
        keyspace.durable_writes = durable_writes.unwrap_or(keyspace.durable_writes);
        (keyspace.replication.clone(), keyspace.durable_writes)
    };
    system::put_keyspace(engine, name, &replication, durable_writes, None)?;
    let warnings = warnings(&replication);
    Ok(Outcome { warnings, ..Outcome::keyspace("UPDATED", name) })
}

fn drop_keyspace(engine: &Engine, name: &str, if_exists: bool) -> Result<Outcome, CqlError> {
    check_writable(name)?;
    let removed = engine.schema_mut().keyspaces.remove(name);
    match removed {
        Some(keyspace) => {
            keyspace.tables.values().for_each(|table| table.retire());
            system::remove_keyspace(engine, name)?;
            let dropped = keyspace.tables.into_values().collect();
            Ok(Outcome { dropped, ..Outcome::keyspace("DROPPED", name) })
        }
        None if if_exists => Ok(Outcome::default()),
        None => Err(CqlError::Config(format!(
            "Cannot drop non existing keyspace '{}'.",
            identifier(name)
        ))),
    }
}

fn create_table(
    engine: &Engine,
    create: &CreateTable,
    used: Option<&str>,
) -> Result<Outcome, CqlError> {
    let keyspace = qualified(&create.table, used)?;
    let name = &create.table.name;
    check_writable(keyspace)?;
    check_name("table", name)?;
    {
        let schema = engine.schema();
        let tables = &schema.keyspace(keyspace)?.tables;
        if tables.contains_key(name) {
            return match create.if_not_exists {
                true => Ok(Outcome::default()),
                false => Err(CqlError::AlreadyExists {
                    keyspace: keyspace.to_owned(),
                    table: name.clone(),
                }),
            };
        }
        if tables.len() >= TABLES_MAX {
            return Err(invalid(format!("there are {TABLES_MAX} tables: drop one first")));
        }
    }
    let table = Arc::new(build_table(engine, keyspace, create, None)?);
    system::put_table(engine, &table)?;
    if let Some(keyspace) = engine.schema_mut().keyspaces.get_mut(keyspace) {
        keyspace.tables.insert(name.clone(), table);
    }
    let told = "COMPACT STORAGE has no effect on how the reference target keeps rows";
    let warnings = if create.compact { vec![told.to_owned()] } else { Vec::new() };
    Ok(Outcome { warnings, ..Outcome::table("CREATED", keyspace, name) })
}

/// What COMPACT STORAGE has no room for.
fn check_compact(create: &CreateTable, columns: &[Column]) -> Result<(), CqlError> {
    let mut cells = columns.iter().filter(|c| matches!(c.role, Role::Static | Role::Regular));
    if cells.clone().any(|c| c.role == Role::Static) {
        return Err(invalid("Static columns are not supported in COMPACT STORAGE tables"));
    }
    if cells.clone().any(|c| c.data_type.is_multicell()) {
        return Err(invalid("Non-frozen collections are not supported with COMPACT STORAGE"));
    }
    match (create.clustering.is_empty(), cells.clone().count()) {
        (true, 0) => Err(invalid("No definition found that is not part of the PRIMARY KEY")),
        (false, 2..) => {
            let names: Vec<_> = cells.by_ref().map(|c| c.name.as_str()).collect();
            Err(invalid(format!(
                "COMPACT STORAGE with composite PRIMARY KEY allows no more than one column not \
                 part of the PRIMARY KEY (got: {})",
                names.join(", ")
            )))
        }
        _ => Ok(()),
    }
}

/// Makes a table of its definition, over the rows that are `kept`.
///
/// # Errors
/// [`CqlError`] when the definition is not sound.
pub(crate) fn build_table(
    engine: &Engine,
    keyspace: &str,
    create: &CreateTable,
    kept: Option<&Kept>,
) -> Result<Table, CqlError> {
    let mut columns = Vec::with_capacity(create.columns.len());
    for (n, definition) in create.columns.iter().enumerate() {
        if create.columns[..n].iter().any(|c| c.name == definition.name) {
            return Err(invalid(format!("Multiple definition of identifier {}", definition.name)));
        }
        columns.push(column(create, definition)?);
    }
    check_keys(create, &columns)?;
    if create.compact {
        check_compact(create, &columns)?;
    }
    let mut options = TableOptions::new();
    options.apply(&create.options)?;
    number(&mut columns);
    if let Some(kept) = kept {
        renumber(&mut columns, kept)?;
    }
    let counters = |c: &&Column| c.data_type.kind == ColumnType::Counter;
    let counter = columns.iter().find(counters);
    let other =
        columns.iter().find(|c| matches!(c.role, Role::Static | Role::Regular) && !counters(c));
    if counter.is_some() && (other.is_some() || options.default_ttl_s > 0) {
        return Err(invalid(
            "Cannot mix counter and non counter columns in the same table, nor set \
             default_time_to_live on it",
        ));
    }
    let clustered = !create.clustering.is_empty();
    let is_system = system::KEYSPACES.contains(&keyspace);
    let shard_bits = if is_system { 0 } else { SHARD_BITS };
    let mut store = TableStore::new(clustered, shard_bits, Arc::clone(&engine.memory));
    if let Some(disk) = engine.disk.as_ref().filter(|_| !is_system) {
        let number = kept.map_or_else(|| disk.new_number(), |kept| kept.number);
        store = store.on_disk(disk.table(number));
    }
    let store = Arc::new(store);
    let is_mock = !is_system && engine.config.storage == Storage::Null;
    let new_id = || engine.generator.timeuuid(engine.now_us());
    let id = kept.map_or_else(new_id, |kept| kept.id);
    Ok(Table::new((keyspace, &create.table.name), id, columns, options, store, is_mock))
}

/// Numbers the columns beyond the key by name, so that a `SELECT *` reads cells in their order.
fn number(columns: &mut [Column]) {
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    let cells = columns.iter_mut().filter(|c| matches!(c.role, Role::Static | Role::Regular));
    for (id, column) in (0..).zip(cells) {
        column.id = id;
    }
}

/// Gives the columns beyond the key the ids that their cells have.
fn renumber(columns: &mut [Column], kept: &Kept) -> Result<(), CqlError> {
    let cells = columns.iter_mut().filter(|c| matches!(c.role, Role::Static | Role::Regular));
    for column in cells {
        let known = kept.columns.iter().find(|(name, _)| *name == column.name);
        column.id = known.ok_or_else(|| undefined(&column.name))?.1;
    }
    Ok(())
}

fn column(create: &CreateTable, definition: &ColumnDefinition) -> Result<Column, CqlError> {
    let name = &definition.name;
    let data_type = DataType::resolve(&definition.type_name)?;
    let partition = create.partition_key.iter().position(|n| n == name);
    let clustering = create.clustering.iter().position(|n| n == name);
    let role = match (partition, clustering) {
        (Some(position), None) => Role::Partition(position),
        (None, Some(position)) => {
            let descending = create.order.iter().any(|(n, descending)| n == name && *descending);
            Role::Clustering { position, descending }
        }
        (Some(_), Some(_)) => {
            return Err(invalid(format!("{name} stands in the PRIMARY KEY twice")));
        }
        (None, None) if definition.is_static => Role::Static,
        (None, None) => Role::Regular,
    };
    let is_key = matches!(role, Role::Partition(_) | Role::Clustering { .. });
    let refuse = |why: &str| Err(invalid(format!("Invalid PRIMARY KEY component {name}: {why}")));
    if is_key && definition.is_static {
        return refuse("it is static");
    }
    if is_key && data_type.is_multicell() {
        return refuse("a collection there must be frozen");
    }
    if is_key && matches!(data_type.kind, ColumnType::Counter | ColumnType::Duration) {
        return refuse("counters and durations cannot be in it");
    }
    // The system tables order rows by argument types, of which there are none.
    let is_system =
        create.table.keyspace.as_deref().is_some_and(|k| system::KEYSPACES.contains(&k));
    if matches!(role, Role::Clustering { .. }) && !is_ordered(&data_type.kind) && !is_system {
        return refuse(
            "the reference target does not order rows by decimals, collections or tuples; put it \
             into the partition key or use another type",
        );
    }
    Ok(Column { name: name.clone(), data_type, role, id: 0 })
}

fn check_keys(create: &CreateTable, columns: &[Column]) -> Result<(), CqlError> {
    if create.partition_key.is_empty() {
        return Err(invalid("No PRIMARY KEY specified (exactly one required)"));
    }
    for name in create.partition_key.iter().chain(&create.clustering) {
        if !columns.iter().any(|c| c.name == *name) {
            return Err(invalid(format!("Unknown definition {name} referenced in PRIMARY KEY")));
        }
    }
    for key in [&create.partition_key, &create.clustering] {
        if let Some((_, name)) = key.iter().enumerate().find(|(n, name)| key[..*n].contains(name)) {
            return Err(invalid(format!("{name} stands in the PRIMARY KEY twice")));
        }
    }
    let ordered = create.order.iter().map(|(name, _)| name);
    if !create.order.is_empty() && !ordered.eq(create.clustering.iter().take(create.order.len())) {
        return Err(invalid(
            "CLUSTERING ORDER takes clustering columns, in the order of the PRIMARY KEY",
        ));
    }
    if create.clustering.is_empty()
        && let Some(column) = columns.iter().find(|c| c.role == Role::Static)
    {
        return Err(invalid(format!(
            "Static columns are only useful (and thus allowed) if the table has at least one \
             clustering column: {}",
            column.name
        )));
    }
    match columns.len() > COLUMNS_MAX {
        true => Err(invalid(format!("a table has at most {COLUMNS_MAX} columns"))),
        false => Ok(()),
    }
}

fn alter_table(
    engine: &Engine,
    name: &TableName,
    action: &AlterAction,
    used: Option<&str>,
) -> Result<Outcome, CqlError> {
    let keyspace = qualified(name, used)?;
    check_writable(keyspace)?;
    let old = engine.schema().table(name, used)?;
    let mut columns = old.columns.clone();
    let mut options = old.options.clone();
    match action {
        AlterAction::With(properties) => options.apply(properties)?,
        AlterAction::Add(definitions) => {
            for definition in definitions {
                columns.push(added_column(&old, &columns, definition)?);
            }
        }
    }
    if old.is_counter && options.default_ttl_s > 0 {
        return Err(invalid("Cannot set default_time_to_live on a table with counters"));
    }
    if columns.len() > COLUMNS_MAX {
        return Err(invalid(format!("a table has at most {COLUMNS_MAX} columns")));
    }
    let store = Arc::clone(&old.store);
    let names = (old.keyspace.as_str(), old.name.as_str());
    let new = Arc::new(Table::new(names, old.id, columns, options, store, old.is_mock));
    system::put_table(engine, &new)?;
    if let Some(keyspace) = engine.schema_mut().keyspaces.get_mut(keyspace) {
        keyspace.tables.insert(old.name.clone(), new);
    }
    old.retire();
    Ok(Outcome::table("UPDATED", keyspace, &name.name))
}

fn added_column(
    table: &Table,
    columns: &[Column],
    definition: &ColumnDefinition,
) -> Result<Column, CqlError> {
    let name = &definition.name;
    if columns.iter().any(|c| c.name == *name) {
        return Err(invalid(format!(
            "Invalid column name {name} because it conflicts with an existing column"
        )));
    }
    let data_type = DataType::resolve(&definition.type_name)?;
    if (data_type.kind == ColumnType::Counter) != table.is_counter {
        return Err(invalid("Cannot mix counter and non counter columns in the same table"));
    }
    if definition.is_static && table.clustering_count == 0 {
        return Err(undefined(name));
    }
    let id = columns.iter().map(|c| c.id).max().unwrap_or(0).saturating_add(1);
    let role = if definition.is_static { Role::Static } else { Role::Regular };
    Ok(Column { name: name.clone(), data_type, role, id })
}

fn drop_table(
    engine: &Engine,
    name: &TableName,
    if_exists: bool,
    used: Option<&str>,
) -> Result<Outcome, CqlError> {
    let keyspace = qualified(name, used)?;
    check_writable(keyspace)?;
    let removed = match engine.schema_mut().keyspaces.get_mut(keyspace) {
        Some(keyspace) => keyspace.tables.remove(&name.name),
        None => None,
    };
    match removed {
        Some(table) => {
            table.retire();
            system::remove_table(engine, keyspace, &name.name)?;
            let outcome = Outcome::table("DROPPED", keyspace, &name.name);
            Ok(Outcome { dropped: vec![table], ..outcome })
        }
        None if if_exists => Ok(Outcome::default()),
        None => Err(invalid(format!(
            "unconfigured table {}.{}",
            identifier(keyspace),
            identifier(&name.name)
        ))),
    }
}

/// Frees the rows of a dropped table at once, although prepared statements may still hold on to it.
fn discard(table: &Table) {
    match table.store.lsm() {
        Some(lsm) => lsm.delete(),
        None => table.store.truncate(),
    }
}
