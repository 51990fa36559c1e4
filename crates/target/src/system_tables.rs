//! The tables that drivers ask for: ordinary tables of the store, written when something changes.
//!
//! What is imitated is Cassandra 4.1, as far as drivers and tools ask: `peers_v2` beside `peers`,
//! `system_virtual_schema` without virtual tables, and DESCRIBE ([`crate::describe`]).
//! `system_wideload.counters` is ours: it is rewritten with the sums of [`crate::counters`]
//! whenever it is read.

use crate::catalog::{Keyspace, Role, Table};
use crate::cql;
use crate::cql::ast::Statement;
use crate::ddl;
use crate::engine::Engine;
use crate::error::{CqlError, hex, invalid};
use crate::options::{quoted, quoted_map};
use std::net::{IpAddr, Ipv4Addr};

/// Keyspaces that clients cannot change.
pub(crate) const KEYSPACES: [&str; 4] =
    ["system", "system_schema", "system_virtual_schema", "system_wideload"];

/// The keyspace of the target's own tables.
pub(crate) const OWN: &str = "system_wideload";

/// The version whose system tables are imitated; the suffix tells people and programs what it is.
pub(crate) const RELEASE_VERSION: &str = "4.1.0-wideload";
/// The CQL that is understood, as far as it is.
pub(crate) const CQL_VERSION: &str = "3.4.6";
/// What the one instance calls its cluster.
pub(crate) const CLUSTER_NAME: &str = "wideload reference target";
/// The partitioner of all tables.
pub(crate) const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

const TABLES: [&str; 19] = [
    "CREATE TABLE system.local (key text PRIMARY KEY, bootstrapped text, broadcast_address inet, \
     broadcast_port int, cluster_name text, cql_version text, data_center text, \
     gossip_generation int, host_id uuid, listen_address inet, listen_port int, \
     native_protocol_version text, partitioner text, rack text, release_version text, \
     rpc_address inet, rpc_port int, schema_version uuid, tokens set<text>, \
     truncated_at map<uuid, blob>)",
    "CREATE TABLE system.peers (peer inet PRIMARY KEY, data_center text, host_id uuid, \
     preferred_ip inet, rack text, release_version text, rpc_address inet, schema_version uuid, \
     tokens set<text>)",
    "CREATE TABLE system.peers_v2 (peer inet, peer_port int, data_center text, host_id uuid, \
     native_address inet, native_port int, preferred_ip inet, preferred_port int, rack text, \
     release_version text, schema_version uuid, tokens set<text>, PRIMARY KEY (peer, peer_port))",
    "CREATE TABLE system.size_estimates (keyspace_name text, table_name text, range_start text, \
     range_end text, mean_partition_size bigint, partitions_count bigint, \
     PRIMARY KEY (keyspace_name, table_name, range_start, range_end))",
    "CREATE TABLE system_schema.keyspaces (keyspace_name text PRIMARY KEY, durable_writes boolean, \
     replication frozen<map<text, text>>)",
    "CREATE TABLE system_schema.tables (keyspace_name text, table_name text, \
     additional_write_policy text, bloom_filter_fp_chance double, \
     caching frozen<map<text, text>>, cdc boolean, comment text, \
     compaction frozen<map<text, text>>, compression frozen<map<text, text>>, \
     crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, \
     extensions frozen<map<text, blob>>, flags frozen<set<text>>, gc_grace_seconds int, id uuid, \
     max_index_interval int, memtable text, memtable_flush_period_in_ms int, \
     min_index_interval int, read_repair text, read_repair_chance double, speculative_retry text, \
     PRIMARY KEY (keyspace_name, table_name))",
    "CREATE TABLE system_schema.columns (keyspace_name text, table_name text, column_name text, \
     clustering_order text, column_name_bytes blob, kind text, position int, type text, \
     PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_schema.dropped_columns (keyspace_name text, table_name text, \
     column_name text, dropped_time timestamp, kind text, type text, \
     PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_schema.triggers (keyspace_name text, table_name text, trigger_name text, \
     options frozen<map<text, text>>, PRIMARY KEY (keyspace_name, table_name, trigger_name))",
    "CREATE TABLE system_schema.views (keyspace_name text, view_name text, base_table_id uuid, \
     base_table_name text, additional_write_policy text, bloom_filter_fp_chance double, \
     caching frozen<map<text, text>>, \
     cdc boolean, comment text, compaction frozen<map<text, text>>, \
     compression frozen<map<text, text>>, crc_check_chance double, \
     dclocal_read_repair_chance double, default_time_to_live int, \
     extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid, \
     include_all_columns boolean, max_index_interval int, memtable text, \
     memtable_flush_period_in_ms int, min_index_interval int, read_repair text, \
     read_repair_chance double, speculative_retry text, where_clause text, \
     PRIMARY KEY (keyspace_name, view_name))",
    "CREATE TABLE system_schema.types (keyspace_name text, type_name text, \
     field_names frozen<list<text>>, field_types frozen<list<text>>, \
     PRIMARY KEY (keyspace_name, type_name))",
    "CREATE TABLE system_schema.functions (keyspace_name text, function_name text, \
     argument_types frozen<list<text>>, argument_names frozen<list<text>>, body text, \
     called_on_null_input boolean, language text, return_type text, \
     PRIMARY KEY (keyspace_name, function_name, argument_types))",
    "CREATE TABLE system_schema.aggregates (keyspace_name text, aggregate_name text, \
     argument_types frozen<list<text>>, final_func text, initcond text, return_type text, \
     state_func text, state_type text, \
     PRIMARY KEY (keyspace_name, aggregate_name, argument_types))",
    "CREATE TABLE system_schema.indexes (keyspace_name text, table_name text, index_name text, \
     kind text, options frozen<map<text, text>>, \
     PRIMARY KEY (keyspace_name, table_name, index_name))",
    "CREATE TABLE system_virtual_schema.keyspaces (keyspace_name text PRIMARY KEY)",
    "CREATE TABLE system_virtual_schema.tables (keyspace_name text, table_name text, comment text, \
     PRIMARY KEY (keyspace_name, table_name))",
    "CREATE TABLE system_virtual_schema.columns (keyspace_name text, table_name text, \
     column_name text, clustering_order text, column_name_bytes blob, kind text, position int, \
     type text, PRIMARY KEY (keyspace_name, table_name, column_name))",
    "CREATE TABLE system_wideload.counters (name text PRIMARY KEY, value bigint)",
    "CREATE TABLE system_wideload.target (key text PRIMARY KEY, storage text, says text, \
     faults text)",
];

/// Makes the system keyspaces, and their description of themselves.
pub(crate) fn create(engine: &Engine) -> Result<(), CqlError> {
    let local =
        || vec![("class".to_owned(), "org.apache.cassandra.locator.LocalStrategy".to_owned())];
    for name in KEYSPACES {
        let keyspace =
            Keyspace { replication: local(), durable_writes: true, tables: Default::default() };
        engine.schema_mut().keyspaces.insert(name.to_owned(), keyspace);
    }
    for text in TABLES {
        let Statement::CreateTable(create) = cql::parse(text)?.statement else {
            return Err(invalid("a system table is no table"));
        };
        let keyspace = create.table.keyspace.clone().unwrap_or_default();
        let table = ddl::build_table(engine, &keyspace, &create, None)?;
        let mut schema = engine.schema_mut();
        if let Some(keyspace) = schema.keyspaces.get_mut(&keyspace) {
            keyspace.tables.insert(table.name.clone(), table.into());
        }
    }
    let tables: Vec<_> = {
        let schema = engine.schema();
        schema.keyspaces.values().flat_map(|k| k.tables.values().cloned()).collect()
    };
    for name in KEYSPACES {
        put_keyspace(engine, name, &local(), true)?;
    }
    tables.iter().try_for_each(|table| put_table(engine, table))?;
    put_local(engine)
}

fn put_local(engine: &Engine) -> Result<(), CqlError> {
    let address = match engine.config.address.ip() {
        // Listening everywhere is no address to connect to.
        any if any.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        address => address,
    };
    let port = engine.config.address.port();
    let id = uuid_text(&engine.generator.random());
    let generation = engine.now_us() / 1_000_000;
    let protocol = engine.config.protocol_max;
    engine.run(&format!(
        "INSERT INTO system.local (key, bootstrapped, broadcast_address, broadcast_port, \
         cluster_name, cql_version, data_center, gossip_generation, host_id, listen_address, \
         listen_port, native_protocol_version, partitioner, rack, release_version, rpc_address, \
         rpc_port, schema_version, tokens) VALUES ('local', 'COMPLETED', '{address}', {port}, \
         '{CLUSTER_NAME}', '{CQL_VERSION}', 'datacenter1', {generation}, {id}, '{address}', \
         {port}, '{protocol}', '{PARTITIONER}', 'rack1', '{RELEASE_VERSION}', '{address}', \
         {port}, uuid(), {{'{}'}})",
        i64::MIN
    ))?;
    let faults = engine.faults.as_ref().map(|plan| quoted(&plan.faults.to_string()));
    let faults = faults.unwrap_or_else(|| "null".to_owned());
    let storage = engine.config.storage.name();
    engine.run(&format!(
        "INSERT INTO system_wideload.target (key, storage, says, faults) VALUES ('target', \
         '{storage}', \
         'a test double of one instance; results on it say nothing about Apache Cassandra', \
         {faults})"
    ))
}

/// Tells drivers that the schema has changed.
pub(crate) fn renew_schema_version(engine: &Engine) -> Result<(), CqlError> {
    engine.run("UPDATE system.local SET schema_version = uuid() WHERE key = 'local'")
}

/// The text form of a UUID.
pub(crate) fn uuid_text(id: &[u8; 16]) -> String {
    let digits = hex(id);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("");
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// Writes a keyspace's row.
pub(crate) fn put_keyspace(
    engine: &Engine,
    name: &str,
    replication: &[(String, String)],
    durable_writes: bool,
) -> Result<(), CqlError> {
    engine.run(&format!(
        "INSERT INTO system_schema.keyspaces (keyspace_name, durable_writes, replication) \
         VALUES ({}, {durable_writes}, {})",
        quoted(name),
        quoted_map(replication)
    ))
}

/// Writes a table's row and those of its columns.
pub(crate) fn put_table(engine: &Engine, table: &Table) -> Result<(), CqlError> {
    let (keyspace, name) = (quoted(&table.keyspace), quoted(&table.name));
    let (names, values): (Vec<_>, Vec<_>) = table.options.iter().unzip();
    let flags = if table.is_counter { "{'compound', 'counter'}" } else { "{'compound'}" };
    engine.run(&format!(
        "INSERT INTO system_schema.tables (keyspace_name, table_name, extensions, flags, id, {}) \
         VALUES ({keyspace}, {name}, {{}}, {flags}, {}, {})",
        names.join(", "),
        uuid_text(&table.id),
        values.join(", ")
    ))?;
    for column in &table.columns {
        let (kind, position, order) = match column.role {
            Role::Partition(position) => ("partition_key", position as i32, "none"),
            Role::Clustering { position, descending: false } => {
                ("clustering", position as i32, "asc")
            }
            Role::Clustering { position, descending: true } => {
                ("clustering", position as i32, "desc")
            }
            Role::Static => ("static", -1, "none"),
            Role::Regular => ("regular", -1, "none"),
        };
        engine.run(&format!(
            "INSERT INTO system_schema.columns (keyspace_name, table_name, column_name, \
             clustering_order, column_name_bytes, kind, position, type) VALUES ({keyspace}, \
             {name}, {}, '{order}', 0x{}, '{kind}', {position}, {})",
            quoted(&column.name),
            hex(column.name.as_bytes()),
            quoted(&column.data_type.name())
        ))?;
    }
    Ok(())
}

/// Deletes a table's rows.
pub(crate) fn remove_table(engine: &Engine, keyspace: &str, table: &str) -> Result<(), CqlError> {
    for of in ["tables", "columns"] {
        engine.run(&format!(
            "DELETE FROM system_schema.{of} WHERE keyspace_name = {} AND table_name = {}",
            quoted(keyspace),
            quoted(table)
        ))?;
    }
    Ok(())
}

/// Deletes a keyspace's rows and those of all that was in it.
pub(crate) fn remove_keyspace(engine: &Engine, keyspace: &str) -> Result<(), CqlError> {
    for of in ["keyspaces", "tables", "columns"] {
        engine.run(&format!(
            "DELETE FROM system_schema.{of} WHERE keyspace_name = {}",
            quoted(keyspace)
        ))?;
    }
    Ok(())
}

/// Writes the sums of the counters into their table.
pub(crate) fn put_counters(engine: &Engine) -> Result<(), CqlError> {
    let memory = ("memory.bytes", engine.memory.used_bytes());
    for (name, value) in engine.counters.sums().into_iter().chain([memory]) {
        engine.run(&format!(
            "INSERT INTO system_wideload.counters (name, value) VALUES ('{name}', {value})"
        ))?;
    }
    Ok(())
}
