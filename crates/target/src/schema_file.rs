//! The schema of a target on disk: a file of its directory, written anew with every change.
//!
//! In: the catalog. Out: text, a line for each keyspace and table, and the catalog again. A line of
//! a table has, behind tabs, its id, the number of its rows' place, the ids of its columns, and the
//! statement that makes it; that of a keyspace its statement alone.

use crate::catalog::{Keyspace, Role, Schema, Table};
use crate::cql::ast::Statement;
use crate::cql::{self, identifier};
use crate::ddl::{self, Kept};
use crate::engine::Engine;
use crate::error::{CqlError, hex};
use crate::options::quoted_map;
use crate::store::StoreError;
use crate::system_tables as system;
use std::fmt::Write as _;
use std::sync::Arc;

/// The catalog, without the system keyspaces.
pub(crate) fn text(schema: &Schema) -> String {
    let mut text = String::new();
    for (name, keyspace) in &schema.keyspaces {
        if system::KEYSPACES.contains(&name.as_str()) {
            continue;
        }
        line(&mut text, &["keyspace", &create_keyspace(name, keyspace)]);
        for table in keyspace.tables.values() {
            let Some(lsm) = table.store.lsm() else { continue };
            let cells =
                table.columns.iter().filter(|c| matches!(c.role, Role::Static | Role::Regular));
            let ids: Vec<_> = cells.map(|c| format!("{}={}", c.id, c.name)).collect();
            let number = lsm.number.to_string();
            let words = ["table", &hex(&table.id), &number, &ids.join(","), &create_table(table)];
            line(&mut text, &words);
        }
    }
    text
}

fn line(text: &mut String, words: &[&str]) {
    let escaped: Vec<_> = words.iter().map(|word| escape(word)).collect();
    text.push_str(&escaped.join("\t"));
    text.push('\n');
}

fn escape(word: &str) -> String {
    word.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

fn unescape(word: &str) -> Option<String> {
    let mut text = String::with_capacity(word.len());
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                'n' => '\n',
                't' => '\t',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(text)
}

/// The statement that makes a keyspace as it is now.
pub(crate) fn create_keyspace(name: &str, keyspace: &Keyspace) -> String {
    let (replication, durable) = (quoted_map(&keyspace.replication), keyspace.durable_writes);
    format!(
        "CREATE KEYSPACE {} WITH replication = {replication} AND durable_writes = {durable}",
        identifier(name)
    )
}

/// The statement that makes a table as it is now.
pub(crate) fn create_table(table: &Table) -> String {
    let mut text =
        format!("CREATE TABLE {}.{} (", identifier(&table.keyspace), identifier(&table.name));
    for column in &table.columns {
        let fixed = if column.role == Role::Static { " static" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "{} {}{fixed}, ", identifier(&column.name), column.data_type.name());
    }
    let names = |columns: &[crate::catalog::Column]| {
        columns.iter().map(|c| identifier(&c.name)).collect::<Vec<_>>().join(", ")
    };
    let (partition, clustering) = table.key_columns().split_at(table.partition_count);
    let _ = write!(text, "PRIMARY KEY (({})", names(partition));
    if !clustering.is_empty() {
        let _ = write!(text, ", {}", names(clustering));
    }
    text.push_str("))");
    // The type has no value that means null.
    let options = table.options.iter().filter(|(_, value)| *value != "null");
    let mut options: Vec<_> = options.map(|(name, value)| format!("{name} = {value}")).collect();
    if !clustering.is_empty() {
        let order = |column: &crate::catalog::Column| {
            let descending = matches!(column.role, Role::Clustering { descending: true, .. });
            format!("{} {}", identifier(&column.name), if descending { "DESC" } else { "ASC" })
        };
        let order: Vec<_> = clustering.iter().map(order).collect();
        options.insert(0, format!("CLUSTERING ORDER BY ({})", order.join(", ")));
    }
    let _ = write!(text, " WITH {}", options.join(" AND "));
    text
}

/// Makes the keyspaces and tables that the directory's file names, over their rows.
pub(crate) fn restore(engine: &Engine) -> Result<(), StoreError> {
    let Some(disk) = &engine.disk else { return Ok(()) };
    let text = disk.schema()?.unwrap_or_default();
    let mut numbers = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let wrong = |why: String| disk.corrupt(format!("line {} of its schema: {why}", n + 1));
        let words: Option<Vec<_>> = line.split('\t').map(unescape).collect();
        let words = words.unwrap_or_default();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let restored = match words[..] {
            ["keyspace", create] => keyspace(engine, create),
            ["table", id, number, ids, create] => match kept(id, number, ids) {
                Some(kept) => {
                    numbers.push(kept.number);
                    table(engine, create, &kept)
                }
                None => return Err(wrong("its ids are none".to_owned())),
            },
            _ => return Err(wrong("it is neither a keyspace nor a table".to_owned())),
        };
        restored.map_err(|error| wrong(error.to_string()))?;
    }
    disk.keep_only(&numbers);
    disk.failure().map_or(Ok(()), |why| Err(disk.corrupt(why.to_owned())))
}

fn kept(id: &str, number: &str, ids: &str) -> Option<Kept> {
    let id = (0..16).map(|n| u8::from_str_radix(id.get(2 * n..2 * n + 2)?, 16).ok());
    let id: Vec<u8> = id.collect::<Option<_>>()?;
    let column = |word: &str| {
        let (id, name) = word.split_once('=')?;
        Some((name.to_owned(), id.parse().ok()?))
    };
    let columns = ids.split(',').filter(|word| !word.is_empty()).map(column);
    Some(Kept {
        id: id.try_into().ok()?,
        number: number.parse().ok()?,
        columns: columns.collect::<Option<_>>()?,
    })
}

fn keyspace(engine: &Engine, create: &str) -> Result<(), CqlError> {
    let statement = cql::parse(create)?.statement;
    ddl::apply(engine, &statement, None).map(|_| ())
}

fn table(engine: &Engine, create: &str, kept: &Kept) -> Result<(), CqlError> {
    let Statement::CreateTable(create) = cql::parse(create)?.statement else {
        return Err(crate::error::invalid("not a table"));
    };
    let keyspace = create.table.keyspace.clone().unwrap_or_default();
    let table = Arc::new(ddl::build_table(engine, &keyspace, &create, Some(kept))?);
    system::put_table(engine, &table)?;
    let mut schema = engine.schema_mut();
    let missing = || crate::error::invalid("its keyspace does not stand before it");
    let keyspace = schema.keyspaces.get_mut(&keyspace).ok_or_else(missing)?;
    keyspace.tables.insert(table.name.clone(), table);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_no_tabs_and_lines() {
        for word in ["", "a\tb\nc\\d", "\\n", "\\\\t"] {
            assert_eq!(unescape(&escape(word)).as_deref(), Some(word));
            assert!(!escape(word).contains(['\t', '\n']));
        }
        assert_eq!(unescape("\\x"), None);
        assert_eq!(unescape("\\"), None);
    }
}
