//! Profiles -> a plan over their tables, and the statements that make these.
//!
//! The insert is the original's: an UPDATE of all columns, or an INSERT where there is nothing but
//! the key. Source: cassandra-stress, `StressProfile.java`.

use super::profile::{BatchType, NamedColumn, Profile};
use super::qualify::queried;
use super::rows::PartitionGenerator;
use super::settings::{Command, Settings, Spec, User, UserAction, UserOperation};
use super::{Distribution, Ratio};
use crate::lengths::Lengths;
use crate::plan::{Action, Cells, Operation, Plan, Runs, Schema, Statement, Step};
use crate::tables::{Creation, TableRows, TableStatement, Tables, Touch, Write};
use crate::values::{Content, Values};
use std::sync::Arc;

/// What a batch can count.
const BATCH_ROWS_MAX: f64 = 65_535.0;

impl Settings {
    /// The profiles' command, where it is that.
    #[must_use]
    pub fn user(&self) -> Option<&User> {
        match &self.command {
            Command::User(user) => Some(user),
            Command::Single(_) | Command::Mixed { .. } => None,
        }
    }

    pub(super) fn user_plan(&self, user: &User, threads: usize) -> Plan {
        let tables: Vec<_> = user.specs.iter().map(|spec| self.table_of(spec)).collect();
        let statements: Vec<_> =
            user.operations.iter().map(|operation| self.statement_of(user, operation)).collect();
        let total: f64 = user.operations.iter().map(|operation| operation.weight).sum();
        let operation = |(index, operation): (usize, &UserOperation)| Operation {
            name: operation.name.clone().into(),
            weight: operation.weight / total,
            steps: vec![Step {
                first_statement: index,
                choices: 1,
                name: "statement",
                column_apart: false,
            }],
        };
        let action = |operation: &UserOperation| match operation.action {
            UserAction::Insert => Action::Update,
            UserAction::Query(_) => Action::Read,
        };
        let first = &user.specs[0];
        let names = |columns: &[NamedColumn]| {
            columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
        };
        Plan {
            workload: "cassandra-stress:user".to_owned(),
            schema: Schema {
                table: first.profile.table.clone(),
                key_column: names(&first.table.partition_key).join(", "),
                columns: [names(&first.table.clustering_key), names(&first.table.values)].concat(),
                cells: Cells::Blob,
                timestamp_us: None,
            },
            load: Vec::new(),
            run: user.operations.iter().enumerate().map(operation).collect(),
            statements: user
                .operations
                .iter()
                .map(|operation| Statement {
                    action: action(operation),
                    columns: Vec::new(),
                    by_name: true,
                    counts: false,
                })
                .collect(),
            keys: self.keys(),
            values: Values { content: Content::Blobs { columns: Vec::new(), verify: false } },
            counters: None,
            scan_lengths: Lengths::Constant(0),
            runs: (user.operations.len() > 1)
                .then(|| Runs { lengths: user.clustering.distribution.clone(), threads }),
            tables: Some(Arc::new(Tables { tables, statements })),
        }
    }

    fn table_of(&self, spec: &Spec) -> TableRows {
        let Profile { keyspace, table, .. } = &spec.profile;
        let statement = |text: &String| bare(text).to_owned();
        let creation = Creation {
            keyspace: spec.profile.keyspace_definition.as_ref().map(statement),
            table: spec.profile.table_definition.as_ref().map(statement),
            extra: spec.profile.extra_definitions.iter().map(statement).collect(),
        };
        let generator = PartitionGenerator::new(&spec.table, self.order);
        TableRows::new((keyspace, table), creation, &spec.table, generator)
    }

    fn statement_of(&self, user: &User, operation: &UserOperation) -> TableStatement {
        let Spec { profile, .. } = &user.specs[operation.spec];
        let whole = self.insert.row_population.clone().unwrap_or(Ratio::whole());
        let upper =
            |level: &Option<String>| level.as_ref().map(|level| level.trim().to_uppercase());
        let query = match &operation.action {
            UserAction::Query(name) => profile.queries.get(name),
            UserAction::Insert => None,
        };
        let serial = (self.serial_consistency != "SERIAL").then(|| self.serial_consistency.clone());
        match query {
            Some(query) => TableStatement {
                table: operation.spec,
                text: queried(bare(&query.cql), &profile.keyspace),
                touch: Touch::Ask { same_row: query.same_row, row_population: whole },
                consistency: upper(&query.consistency),
                serial_consistency: upper(&query.serial_consistency).or(serial),
            },
            None => TableStatement {
                table: operation.spec,
                text: insert_text(&user.specs[operation.spec]),
                touch: Touch::Write(Box::new(self.write_of(profile))),
                consistency: self
                    .insert
                    .consistency
                    .clone()
                    .or_else(|| upper(&profile.insert.consistency)),
                serial_consistency: self
                    .insert
                    .serial_consistency
                    .clone()
                    .or_else(|| upper(&profile.insert.serial_consistency))
                    .or(serial),
            },
        }
    }

    fn write_of(&self, profile: &Profile) -> Write {
        let (line, file) = (&self.insert, &profile.insert);
        let either = |a: &Option<Ratio>, b: &Option<Ratio>| {
            a.clone().or_else(|| b.clone()).unwrap_or(Ratio::whole())
        };
        let partitions = line.partitions.clone().or_else(|| file.partitions.clone());
        Write {
            partitions: partitions.unwrap_or(Distribution::fixed(1)),
            select: either(&line.select, &file.select),
            row_population: either(&line.row_population, &file.row_population),
            batch: line.batch_type.or(file.batch_type).unwrap_or(BatchType::Logged),
        }
    }

    /// Partitions of an operation on average: what `n=` and rates count.
    #[must_use]
    pub fn partitions_mean(&self) -> f64 {
        let Some(user) = self.user() else { return 1.0 };
        let total: f64 = user.operations.iter().map(|operation| operation.weight).sum();
        let of = |operation: &UserOperation| match operation.action {
            UserAction::Query(_) => operation.weight,
            UserAction::Insert => {
                let write = self.write_of(&user.specs[operation.spec].profile);
                operation.weight * write.partitions.average().max(1) as f64
            }
        };
        user.operations.iter().map(of).sum::<f64>() / total
    }

    /// Rows that the operation with the largest writes may write, and whether that is in one
    /// logged batch, which cannot count so many.
    #[must_use]
    pub fn rows_written_max(&self) -> (f64, bool) {
        let mut most = (0.0f64, false);
        for operation in self.user().iter().flat_map(|user| &user.operations) {
            if operation.action != UserAction::Insert {
                continue;
            }
            let Some(spec) = self.user().and_then(|user| user.specs.get(operation.spec)) else {
                continue;
            };
            let write = self.write_of(&spec.profile);
            let rows = write.select.max()
                * write.partitions.max() as f64
                * self.table_of(spec).generator.rows_max();
            let refused = write.batch == BatchType::Logged && rows > BATCH_ROWS_MAX;
            most = (most.0.max(rows), most.1 || refused);
        }
        most
    }
}

/// A statement without what ends it.
fn bare(text: &str) -> &str {
    text.trim().trim_end_matches(';').trim_end()
}

/// A name as the original quotes it: only where it must be.
pub(super) fn plain(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// The statement that writes a row.
fn insert_text(Spec { profile, table }: &Spec) -> String {
    let keys = || table.partition_key.iter().chain(&table.clustering_key);
    let name = format!("{}.{}", profile.keyspace, profile.table);
    let text = if table.values.is_empty() {
        let names: Vec<_> = keys().map(|column| plain(&column.name)).collect();
        let marks = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {name} ({}) values({marks})", names.join(", "))
    } else {
        let set = |column: &NamedColumn| {
            let name = plain(&column.name);
            match column.is_added_to() {
                true => format!("{name} = {name} + ?"),
                false => format!("{name} = ?"),
            }
        };
        let set: Vec<_> = table.values.iter().map(set).collect();
        let key: Vec<_> = keys().map(|column| format!("{} = ?", plain(&column.name))).collect();
        format!("UPDATE {name} SET {} WHERE {}", set.join(","), key.join(" AND "))
    };
    match &profile.insert.condition {
        Some(condition) => format!("{text} {}", condition.trim()),
        None => text,
    }
}
