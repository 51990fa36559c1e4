//! DESCRIBE, which Cassandra answers itself since 4.0: names, and the statements that make things.
//!
//! In: the catalog. Out: the body of a RESULT of rows of texts, as cqlsh prints them.
//! Source: `org.apache.cassandra.cql3.statements.DescribeStatement` of 4.1.

use crate::catalog::{Schema, Table, qualified};
use crate::cql::ast::{Describe, TableName};
use crate::cql::identifier;
use crate::error::{CqlError, invalid};
use crate::schema_file::{create_keyspace, create_table};
use crate::system_tables as system;
use std::iter;
use wire::cql::response::{Column, Metadata, result_kind};
use wire::cql::{ColumnType, put};

/// Columns of everything that is listed.
const LISTED: [&str; 3] = ["keyspace_name", "type", "name"];
/// The same, and the statement.
const MADE: [&str; 4] = ["keyspace_name", "type", "name", "create_statement"];
const CLUSTER: [&str; 3] = ["cluster", "partitioner", "snitch"];
const SNITCH: &str = "org.apache.cassandra.locator.SimpleSnitch";

/// Appends the answer.
///
/// # Errors
/// [`CqlError::Invalid`] when there is no such thing.
pub(crate) fn answer(
    schema: &Schema,
    what: &Describe,
    used: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), CqlError> {
    match what {
        Describe::Cluster => {
            let row = [system::CLUSTER_NAME, system::PARTITIONER, SNITCH].map(str::to_owned);
            rows(CLUSTER, &[row], out);
        }
        Describe::Keyspaces => {
            let listed = schema.keyspaces.keys().map(|name| listed(name, "keyspace", name));
            rows(LISTED, &listed.collect::<Vec<_>>(), out);
        }
        Describe::Tables => {
            let within = |name: &&String| used.is_none_or(|used| used == name.as_str());
            let keyspaces = schema.keyspaces.iter().filter(|(name, _)| within(name));
            let tables = keyspaces.flat_map(|(name, keyspace)| {
                keyspace.tables.keys().map(move |table| listed(name, "table", table))
            });
            rows(LISTED, &tables.collect::<Vec<_>>(), out);
        }
        // There are none of them.
        Describe::Others => rows(LISTED, &[], out),
        Describe::Schema { full } => {
            let shown = |name: &&String| *full || !system::KEYSPACES.contains(&name.as_str());
            let names: Vec<_> = schema.keyspaces.keys().filter(shown).collect();
            let made = names.into_iter().map(|name| keyspace(schema, name, false));
            rows(MADE, &made.collect::<Result<Vec<_>, _>>()?.concat(), out);
        }
        Describe::Keyspace { name, only } => {
            let missing = || invalid("No keyspace specified and no current keyspace");
            let name = name.as_deref().or(used).ok_or_else(missing)?;
            rows(MADE, &keyspace(schema, name, *only)?, out);
        }
        Describe::Table(name) => rows(MADE, &[table(schema, name, used)?], out),
        Describe::Any(name) => {
            let made = match (&name.keyspace, schema.keyspaces.contains_key(&name.name)) {
                (None, true) => keyspace(schema, &name.name, false)?,
                _ => vec![table(schema, name, used)?],
            };
            rows(MADE, &made, out);
        }
    }
    Ok(())
}

fn listed(keyspace: &str, kind: &str, name: &str) -> [String; 3] {
    [identifier(keyspace), kind.to_owned(), identifier(name)]
}

fn table(schema: &Schema, name: &TableName, used: Option<&str>) -> Result<[String; 4], CqlError> {
    let keyspace = qualified(name, used)?;
    let missing = || {
        let (keyspace, table) = (identifier(keyspace), identifier(&name.name));
        invalid(format!("Table '{table}' not found in keyspace '{keyspace}'"))
    };
    let keyspace = schema
        .keyspace(keyspace)
        .map_err(|_| invalid(format!("'{}' not found in keyspaces", identifier(keyspace))))?;
    keyspace.tables.get(&name.name).map(|table| made(table)).ok_or_else(missing)
}

fn made(table: &Table) -> [String; 4] {
    let [keyspace, kind, name] = listed(&table.keyspace, "table", &table.name);
    [keyspace, kind, name, format!("{};", create_table(table))]
}

/// The keyspace, and unless `only` it is asked for, its tables.
fn keyspace(schema: &Schema, name: &str, only: bool) -> Result<Vec<[String; 4]>, CqlError> {
    let missing = || invalid(format!("'{}' not found in keyspaces", identifier(name)));
    let keyspace = schema.keyspaces.get(name).ok_or_else(missing)?;
    let [of, kind, itself] = listed(name, "keyspace", name);
    let first = [of, kind, itself, format!("{};", create_keyspace(name, keyspace))];
    let tables = keyspace.tables.values().filter(|_| !only).map(|table| made(table));
    Ok(iter::once(first).chain(tables).collect())
}

/// Rows of texts.
fn rows<const N: usize>(names: [&str; N], rows: &[[String; N]], out: &mut Vec<u8>) {
    let column = |name: &str| Column {
        keyspace: "system".to_owned(),
        table: "describe".to_owned(),
        name: name.to_owned(),
        kind: ColumnType::Varchar,
    };
    let columns = names.map(column).to_vec();
    put::i32(out, result_kind::ROWS);
    Metadata { column_count: N, columns, paging_state: None }.encode(false, out);
    put::i32(out, rows.len() as i32);
    for cell in rows.iter().flatten() {
        put::bytes(out, Some(cell.as_bytes()));
    }
}
