//! Keyspaces, tables and what else profiles make: statements of the user's, in order.
//!
//! What is there already stays as it is. Names in a profile's statements are of its keyspace.

use crate::data::{SYSTEM_KEYSPACES, writes};
use crate::error::LabError;
use crate::live::Live;
use crate::scripted::Prelude;
use crate::trial::Trial;
use admin::{Admin, SchemaError, literal};
use drive::{Control, ControlError, TableName};
use record::Caveat;
use workload::{Creation, Tables};

/// What CQL calls it when that is there already.
const ALREADY_EXISTS: i32 = 0x2400;

/// Makes what profiles make on a cluster, and waits until its hosts agree.
pub(crate) fn create(tables: &Tables, admin: &Admin, live: &mut dyn Live) -> Result<(), LabError> {
    let change = |statement: &String| match admin.schema_change(statement) {
        Err(SchemaError::Exists { .. }) => Ok(()),
        other => other,
    };
    for table in &tables.tables {
        let Creation { keyspace, table: definition, extra } = &table.creation;
        keyspace.iter().try_for_each(change)?;
        admin.use_keyspace(&table.keyspace)?;
        if definition.is_some() {
            definition.iter().try_for_each(change)?;
            live.prelude(Prelude::Defined);
        }
        if !extra.is_empty() {
            extra.iter().try_for_each(change)?;
            live.prelude(Prelude::Extended);
        }
    }
    Ok(())
}

/// As [`create`], for a run of wideload's own. These tables carry no marker: to write to one that
/// is there takes a word of the user.
pub(crate) fn create_for_run(
    trial: &Trial,
    admin: &Admin,
    live: &mut dyn Live,
    caveats: &mut Vec<Caveat>,
) -> Result<(), LabError> {
    let Some(tables) = &trial.plan.tables else { return Ok(()) };
    for table in &tables.tables {
        let (keyspace, table) = table.stored_names();
        if SYSTEM_KEYSPACES.contains(&&keyspace[..]) {
            return Err(LabError::SystemKeyspace { keyspace });
        }
        let there = format!(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = {} AND table_name \
             = {}",
            literal(&keyspace),
            literal(&table)
        );
        if admin.query(&there)?.is_empty() {
            continue;
        }
        let table = TableName { keyspace, table }.quoted();
        if writes(&trial.plan) && !trial.write_into_existing {
            return Err(LabError::ForeignTable { table });
        }
        let text = format!(
            "{table} was there before: nothing says that its rows are those of this workload."
        );
        caveats.push(Caveat::new("no-marker", text).cure("Give the profile another table."));
    }
    create(tables, admin, live)
}

/// The same on one host that is ours.
pub(crate) fn create_on(control: &mut Control, tables: &Tables) -> Result<(), LabError> {
    let mut change = |statement: &str| match control.query(statement) {
        Err(ControlError::Refused { code: ALREADY_EXISTS, .. }) => Ok(()),
        other => other.map(drop),
    };
    for table in &tables.tables {
        let Creation { keyspace, table: definition, extra } = &table.creation;
        keyspace.iter().try_for_each(|statement| change(statement))?;
        change(&format!("USE {}", table.keyspace))?;
        definition.iter().chain(extra).try_for_each(|statement| change(statement))?;
    }
    Ok(())
}
