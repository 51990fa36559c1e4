//! Profiles -> a plan over their tables, and the statements that make these.
//!
//! The insert is the original's: an UPDATE of all columns, or an INSERT where there is nothing but
//! the key. Source: cassandra-stress, `StressProfile.java`.

use super::conditions::bound_conditions;
use super::profile::{BatchType, NamedColumn, Profile, Query, Table, TokenRangeQuery};
use super::qualify::queried;
use super::rows::PartitionGenerator;
use super::settings::{Command, Compat, Settings, Spec, User, UserAction, UserOperation};
use super::{Distribution, Ratio};
use crate::lengths::Lengths;
use crate::plan::{Action, Cells, Operation, Plan, Runs, Schema, Statement, Step};
use crate::tables::{Bounds, Creation, Scan, TableRows, TableStatement, Tables, Touch, Write};
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
        let mut statements = Vec::new();
        let mut operations = Vec::new();
        let total: f64 = user.operations.iter().map(|operation| operation.weight).sum();
        for operation in &user.operations {
            let steps = self.steps_of(user, operation, &mut statements);
            let (name, weight) = (operation.name.clone().into(), operation.weight / total);
            operations.push(Operation { name, weight, steps });
        }
        let action = |statement: &TableStatement| match statement.touch {
            Touch::Write(_) => Action::Update,
            _ => Action::Read,
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
            run: operations,
            statements: statements
                .iter()
                .map(|statement| Statement {
                    action: action(statement),
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

    /// Appends the statements of an operation; returns its steps.
    fn steps_of(
        &self,
        user: &User,
        operation: &UserOperation,
        statements: &mut Vec<TableStatement>,
    ) -> Vec<Step> {
        let spec = &user.specs[operation.spec];
        let mut step = |name: &'static str, choices: usize, all: Vec<TableStatement>| {
            let (first_statement, last_choices) = (statements.len(), all.len() + 1 - choices);
            statements.extend(all);
            Step { first_statement, choices, name, column_apart: choices > 1, last_choices }
        };
        match &operation.action {
            UserAction::Insert => {
                vec![step("statement", 1, vec![self.insert_of(spec, operation.spec)])]
            }
            UserAction::Validate => {
                let all = self.validations_of(spec, operation.spec);
                vec![step("statement", spec.table.clustering_key.len() + 1, all)]
            }
            UserAction::Scan(name) => {
                let query = spec.profile.token_range_queries.get(name);
                let all = query.map(|query| self.scan_of(spec, operation.spec, query));
                vec![step("statement", 1, all.into_iter().collect())]
            }
            UserAction::Query(name) => {
                let Some(query) = spec.profile.queries.get(name) else { return Vec::new() };
                let asking = self.asking_of(spec, operation.spec, query);
                let conditions = match self.compat {
                    Compat::Apache5 => bound_conditions(&query.cql),
                    _ => Vec::new(),
                };
                if conditions.is_empty() {
                    return vec![step("statement", 1, vec![asking])];
                }
                let look = look_of(spec, operation.spec, &conditions);
                let row_population = self.row_population();
                let touch = Touch::Swap { row_population, conditions };
                let swap = TableStatement { touch, ..asking };
                vec![step("look", 1, vec![look]), step("swap", 1, vec![swap])]
            }
        }
    }

    fn row_population(&self) -> Ratio {
        self.insert.row_population.clone().unwrap_or(Ratio::whole())
    }

    /// The level of conditions that the line gives.
    fn serial(&self) -> Option<String> {
        (self.serial_consistency != "SERIAL").then(|| self.serial_consistency.clone())
    }

    fn asking_of(&self, spec: &Spec, table: usize, query: &Query) -> TableStatement {
        TableStatement {
            table,
            text: queried(bare(&query.cql), &spec.profile.keyspace),
            touch: Touch::Ask { same_row: query.same_row, row_population: self.row_population() },
            consistency: upper(&query.consistency),
            serial_consistency: upper(&query.serial_consistency).or(self.serial()),
        }
    }

    fn insert_of(&self, spec: &Spec, table: usize) -> TableStatement {
        let (line, file) = (&self.insert, &spec.profile.insert);
        TableStatement {
            table,
            text: insert_text(spec),
            touch: Touch::Write(Box::new(self.write_of(&spec.profile))),
            consistency: line.consistency.clone().or_else(|| upper(&file.consistency)),
            serial_consistency: line
                .serial_consistency
                .clone()
                .or_else(|| upper(&file.serial_consistency))
                .or(self.serial()),
        }
    }

    /// The whole partition, and parts of it between two values of the first clustering columns;
    /// between two rows with and without each of them.
    fn validations_of(&self, spec: &Spec, table: usize) -> Vec<TableStatement> {
        let population = self.insert.row_population.as_ref();
        let population = population.or(spec.profile.insert.row_population.as_ref());
        let present = population.map_or(1.0, Ratio::min);
        let whole = format!("SELECT * FROM {}", of_key(spec, &spec.table.partition_key));
        let names: Vec<_> = spec.table.clustering_key.iter().map(|c| plain(&c.name)).collect();
        let statement = |depth: usize, lower_inclusive: bool, upper_inclusive: bool| {
            let (columns, marks) = (names[..depth].join(","), vec!["?"; depth].join(","));
            let below = if lower_inclusive { ">=" } else { ">" };
            let above = if upper_inclusive { "<=" } else { "<" };
            let bounds = match depth {
                0 => String::new(),
                _ => format!(" AND ({columns}){below}({marks}) AND ({columns}){above}({marks})"),
            };
            TableStatement {
                table,
                text: format!("{whole}{bounds}"),
                touch: Touch::Validate(Bounds { depth, lower_inclusive, upper_inclusive, present }),
                consistency: None,
                serial_consistency: None,
            }
        };
        let mut all = vec![statement(0, true, true)];
        all.extend((1..names.len()).map(|depth| statement(depth, true, false)));
        if !names.is_empty() {
            let ways = [(true, true), (true, false), (false, true), (false, false)];
            all.extend(ways.map(|(lower, upper)| statement(names.len(), lower, upper)));
        }
        all
    }

    fn scan_of(&self, spec: &Spec, table: usize, query: &TokenRangeQuery) -> TableStatement {
        let Table { partition_key, clustering_key, values, .. } = &spec.table;
        let names = |columns: &[NamedColumn]| {
            columns.iter().map(|column| plain(&column.name)).collect::<Vec<_>>()
        };
        let columns = match query.columns.trim() {
            "*" => [names(partition_key), names(clustering_key), names(values)].concat().join(", "),
            columns => columns.to_owned(),
        };
        let token = format!("token({})", names(partition_key).join(", "));
        let name = format!("{}.{}", spec.profile.keyspace, spec.profile.table);
        TableStatement {
            table,
            text: format!(
                "SELECT {token}, {columns} FROM {name} WHERE {token} > ? AND {token} <= ?"
            ),
            touch: Touch::Scan(Scan {
                page_rows: query.page_rows,
                parts: self.token_range.parts,
                wraps: self.token_range.wraps,
                first_pages: false,
            }),
            consistency: None,
            serial_consistency: None,
        }
    }

    pub(super) fn write_of(&self, profile: &Profile) -> Write {
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
            visits: self.visits.clone(),
        }
    }

    /// Partitions of an operation on average: what `n=` and rates count.
    #[must_use]
    pub fn partitions_mean(&self) -> f64 {
        let Some(user) = self.user() else { return 1.0 };
        let total: f64 = user.operations.iter().map(|operation| operation.weight).sum();
        let of = |operation: &UserOperation| match operation.action {
            UserAction::Query(_) | UserAction::Validate | UserAction::Scan(_) => operation.weight,
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
                * self.table_of(spec).generator.rows_max()
                / write.visits.as_ref().map_or(1, |visits| visits.visits.min().max(1)) as f64;
            let refused = write.batch == BatchType::Logged && rows > BATCH_ROWS_MAX;
            most = (most.0.max(rows), most.1 || refused);
        }
        most
    }
}

/// A level in capitals.
fn upper(level: &Option<String>) -> Option<String> {
    level.as_ref().map(|level| level.trim().to_uppercase())
}

/// A table and the whole of these columns of its key.
fn of_key<'a>(spec: &Spec, columns: impl IntoIterator<Item = &'a NamedColumn>) -> String {
    let each = |column: &NamedColumn| format!("{} = ?", plain(&column.name));
    let key: Vec<_> = columns.into_iter().map(each).collect();
    format!("{}.{} WHERE {}", spec.profile.keyspace, spec.profile.table, key.join(" AND "))
}

/// Asks one row for what conditions compare. The level is that of the original's driver.
fn look_of(spec: &Spec, table: usize, conditions: &[String]) -> TableStatement {
    let names: Vec<_> = conditions.iter().map(|name| plain(name)).collect();
    let key = spec.table.partition_key.iter().chain(&spec.table.clustering_key);
    TableStatement {
        table,
        text: format!("SELECT {} FROM {}", names.join(", "), of_key(spec, key)),
        touch: Touch::Look,
        consistency: Some("LOCAL_ONE".to_owned()),
        serial_consistency: None,
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
