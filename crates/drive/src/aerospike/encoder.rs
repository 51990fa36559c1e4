//! A plan's statements as messages on records.
//!
//! [`Statement`](workload::Statement) + namespace and set -> templates; a [`Draw`] and the digest
//! of its key -> a message, written in place. Keys are strings (of plans over blobs: blobs),
//! columns are bins of bytes, as YCSB's `aerospike` binding has them (`AerospikeClient.java`): a
//! read of all fields asks for all bins, an insert creates the record, and an update replaces it
//! unless [`Writes`] says otherwise.

use std::sync::Arc;
use thiserror::Error;
use wire::aerospike::{
    BIN_NAME_MAX, Command, CommandTemplate, Digest, Key, Message, OpKind, Particle, ReadLevel,
    RecordExists, UserKey, Wanted, WritePolicy, digest,
};
use workload::{Action, Cells, Draw, Plan, Statement};

/// Where records are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPlace {
    /// The namespace, which the servers' configuration has.
    pub namespace: String,
    /// The set, which comes to be with its first record.
    pub set: String,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writes {
    /// What an insert needs to find, and leaves.
    pub insert: RecordExists,
    /// Likewise an update.
    pub update: RecordExists,
    /// How long a server may take for any operation, ms; 0 for as long as it likes.
    pub server_timeout_ms: u32,
}

/// Why a plan cannot be done with records.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the fields are what the texts name
pub enum Unrecordable {
    /// It reads several records in an order.
    #[error(
        "{workload} scans, and Aerospike has no order of records to scan in: drive it over CQL, or \
         a workload without scans (ycsb:a to d, ycsb:f)"
    )]
    Scans { workload: String },
    /// Its statements are CQL, or its cells counters.
    #[error("{workload} is written in CQL's own terms: leave --protocol aerospike out")]
    Statements { workload: String },
    /// A name that no bin can have.
    #[error(
        "field '{name}' cannot be a bin: names of bins have 1 to {BIN_NAME_MAX} bytes; give \
         -p fieldnameprefix= a shorter one"
    )]
    BinName { name: String },
}

/// Writes messages for the statements of a plan. Shared by all workers, never written to.
#[derive(Debug)]
pub struct RecordEncoder {
    plan: Arc<Plan>,
    place: RecordPlace,
    statements: Vec<Executable>,
    frame_size_max: usize,
}

#[derive(Debug)]
struct Executable {
    template: CommandTemplate,
    statement: Statement,
}

impl RecordEncoder {
    /// Of a plan over records of one set.
    ///
    /// # Errors
    /// [`Unrecordable`] when there are no such records.
    pub fn new(plan: Arc<Plan>, place: RecordPlace, writes: Writes) -> Result<Self, Unrecordable> {
        Self::check(&plan)?;
        let key = Key::new(&place.namespace, &place.set, UserKey::String(""));
        let statements: Vec<_> = plan
            .statements
            .iter()
            .map(|statement| {
                let template = template(&plan, statement, &key, &writes);
                Executable { template, statement: statement.clone() }
            })
            .collect();
        let sizes = statements.iter().map(|Executable { template, statement }| {
            // What a value is written with may be longer than itself.
            let values = statement.columns.len() * plan.value_size_max() + plan.value_room();
            template.size(values)
        });
        let frame_size_max = sizes.max().unwrap_or(0);
        Ok(Self { frame_size_max, statements, place, plan })
    }

    /// Whether a plan can be done with records.
    ///
    /// # Errors
    /// [`Unrecordable`] when it cannot.
    pub fn check(plan: &Plan) -> Result<(), Unrecordable> {
        let workload = plan.workload.clone();
        if plan.tables.is_some() || plan.counters.is_some() || plan.schema.cells == Cells::Counter {
            return Err(Unrecordable::Statements { workload });
        }
        if plan.statements.iter().any(|statement| statement.action == Action::Scan) {
            return Err(Unrecordable::Scans { workload });
        }
        let fits = |name: &&String| !(1..=BIN_NAME_MAX).contains(&name.len());
        match plan.schema.columns.iter().find(fits) {
            Some(name) => Err(Unrecordable::BinName { name: name.clone() }),
            None => Ok(()),
        }
    }

    /// No message of this encoder is longer, in bytes.
    #[must_use]
    pub fn frame_size_max(&self) -> usize {
        self.frame_size_max
    }

    /// The plan that it encodes.
    #[must_use]
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The digest of the record with this key.
    #[must_use]
    #[inline]
    pub fn digest(&self, key: &[u8]) -> Digest {
        let text = match self.plan.schema.cells {
            Cells::Text => std::str::from_utf8(key).ok(),
            Cells::Blob | Cells::Counter => None,
        };
        digest(&self.place.set, &text.map_or(UserKey::Blob(key), UserKey::String))
    }

    /// Writes the message of one execution to the front of `out`, which has room for
    /// [`Self::frame_size_max`] bytes; returns its size. `key` is the text of the draw's key, and
    /// `digest` its record's.
    #[inline]
    pub fn encode(
        &self,
        statement: usize,
        draw: &Draw,
        key: &[u8],
        digest: &Digest,
        out: &mut [u8],
    ) -> usize {
        let plan = &*self.plan;
        let Executable { template, statement } = &self.statements[statement];
        if matches!(statement.action, Action::Read | Action::Scan) {
            return template.write(digest, out);
        }
        let mut message = template.begin(digest, out);
        match plan.values.random() {
            Some(random) => {
                for &column in &statement.columns {
                    message.value(|out| random.write(draw.value_seed, column, out));
                }
            }
            None => match plan.values.blobs_of(key) {
                Some(blobs) => {
                    statement.columns.iter().for_each(|&column| {
                        message.value(|out| blobs.write(column, out));
                    });
                }
                None => {
                    statement.columns.iter().for_each(|&column| {
                        message.value(|out| plan.write_value(draw, key, column, out));
                    });
                }
            },
        }
        message.finish()
    }

    /// Whether this statement reads.
    #[must_use]
    #[inline]
    pub fn reads(&self, statement: usize) -> bool {
        self.statements[statement].statement.action == Action::Read
    }

    /// Whether every bin of an answer is what the plan's data integrity says. An update that
    /// replaces leaves fewer bins than there are columns: what is there is compared, and something
    /// has to be.
    #[must_use]
    pub fn verify(&self, draw: &Draw, answer: &Message<'_>, key: &mut [u8]) -> bool {
        let plan = &*self.plan;
        let key_size = plan.write_key(draw.key, key);
        let key = &key[..key_size];
        let blobs = plan.values.blobs_of(key);
        let mut bins = answer.ops().peekable();
        bins.peek().is_some()
            && bins.all(|bin| {
                let columns = &plan.schema.columns;
                let column = columns.iter().position(|name| name.as_bytes() == bin.name);
                column.is_some_and(|column| match &blobs {
                    Some(blobs) => blobs.verify(column, bin.value),
                    None => plan.verify(key, column, bin.value),
                })
            })
    }
}

fn template(plan: &Plan, statement: &Statement, key: &Key<'_>, writes: &Writes) -> CommandTemplate {
    let names = statement.columns.iter().map(|&column| plan.schema.columns[column].as_str());
    let timeout_ms = writes.server_timeout_ms;
    let exists = match statement.action {
        Action::Read | Action::Scan => {
            let names: Vec<_> = names.collect();
            let wanted = if statement.by_name { Wanted::Bins(&names) } else { Wanted::All };
            return CommandTemplate::new(&Command::get(key, wanted, ReadLevel::One, timeout_ms));
        }
        Action::Update => writes.update,
        Action::Insert => writes.insert,
    };
    let policy = WritePolicy { exists, timeout_ms, ..WritePolicy::default() };
    let ops: Vec<_> = names.map(|name| (OpKind::Write, name, Particle::Blob(&[]))).collect();
    CommandTemplate::new(&Command::operate(key, &policy, &ops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ycsb::{self, Properties};

    fn plan(workload: &str, property: &str) -> Plan {
        let files: [&str; 0] = [];
        let properties = Properties::load(&files, &[property]).unwrap();
        ycsb::plan(workload, &properties, Some(10), None).unwrap().plan
    }

    #[test]
    fn what_is_no_record_is_refused_with_a_cure() {
        for (workload, property, says) in [
            ("e", "fieldcount=1", "without scans"),
            ("a", "fieldnameprefix=a_very_long_name", "1 to 15 bytes"),
        ] {
            let refused = RecordEncoder::check(&plan(workload, property)).unwrap_err();
            assert!(refused.to_string().contains(says), "{refused}");
        }
        assert_eq!(RecordEncoder::check(&plan("f", "fieldcount=10")), Ok(()));
    }
}
