//! The table of another tool: it is used as it is, or made as that tool has it.
//!
//! In: a trial and whether its table is there. Out: a table that can be driven, and what its
//! figures rest on. No marker is read or written: the table is the tool's, and its user says what
//! is to be written to it.

use crate::data::probe;
use crate::dialect::Dialect;
use crate::error::LabError;
use crate::trial::{Foreign, Trial};
use crate::wanted::Probed;
use admin::{Admin, literal};
use drive::{create_keyspace, create_table};
use record::Caveat;

/// Makes sure of the table; looks for rows that a run expects.
pub(crate) fn table(
    trial: &Trial,
    foreign: Foreign,
    admin: &Admin,
    exists: bool,
) -> Result<Option<Caveat>, LabError> {
    if !exists {
        return create(trial, foreign, admin).map(|()| None);
    }
    if foreign.loads {
        return Ok(None);
    }
    let Probed { found, of } = probe(trial, admin)?;
    Ok((found < of).then(|| rows_missing(foreign, found, of)))
}

/// Of so many keys that were looked for only these were found.
pub(crate) fn rows_missing(foreign: Foreign, found: usize, of: usize) -> Caveat {
    let text = "Rows that this workload asks for are not there: reads of them find nothing, which \
                is faster than finding something.";
    let evidence = format!("{} of {of} keys looked for are missing", of - found);
    let cure = match foreign.dialect {
        Dialect::Asbench => "Write them first, with -w I and the same -k, -K, -n and -s.",
        _ => "Load the rows first, with the same recordcount, insertstart and insertorder.",
    };
    Caveat::new("rows-missing", text).evidence(evidence).cure(cure)
}

fn create(trial: &Trial, foreign: Foreign, admin: &Admin) -> Result<(), LabError> {
    let keyspace = create_keyspace(&trial.table, &trial.replication);
    let table = create_table(&trial.plan, &trial.table);
    if !foreign.creates {
        let name = trial.table.quoted();
        return Err(LabError::ForeignMissing {
            table: name,
            create: format!("{keyspace}; {table}"),
        });
    }
    let known = format!(
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = {}",
        literal(&trial.table.keyspace)
    );
    if admin.query(&known)?.is_empty() {
        admin.check_replication(&trial.replication)?;
        admin.schema_change(&keyspace)?;
    }
    Ok(admin.schema_change(&table)?)
}
