//! Settings -> a plan, and the statements that create what it runs on.
//!
//! Source: cassandra-stress, `operations/predefined/*.java`, `settings/SettingsSchema.java`.

use super::compile_user::plain;
use super::predefined::{BlobGenerator, KeyGenerator};
use super::settings::{Command, Compat, Kind, Population, Schema as Keyspace, Settings, Spec};
use crate::keys::{Distribution, KeyOrder, KeySpace};
use crate::lengths::Lengths;
use crate::plan::{Action, Cells, Counters, Operation, Plan, Runs, Schema, Statement, Step};
use crate::tables::stored_name;
use crate::values::{Content, Values};

/// Tables of rows and of counters.
const STANDARD: &str = "standard1";
const COUNTER: &str = "counter1";

impl Kind {
    /// As in wideload's own tables and tags.
    fn operation(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::CounterWrite => "counter_write",
            Self::CounterRead => "counter_read",
        }
    }
}

impl Settings {
    /// The table that the command is about; the first of several.
    #[must_use]
    pub fn table(&self) -> String {
        match self.user() {
            Some(user) => {
                user.specs.first().map_or(String::new(), |s| stored_name(&s.profile.table))
            }
            None => self.own_table().to_owned(),
        }
    }

    /// The keyspace that the command is about.
    #[must_use]
    pub fn keyspace(&self) -> String {
        let first = self.user().and_then(|user| user.specs.first());
        first.map_or(self.schema.keyspace.clone(), |spec| stored_name(&spec.profile.keyspace))
    }

    /// All tables in full, quoted as CQL needs it.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        match self.user() {
            Some(user) => {
                let of = |s: &Spec| format!("{}.{}", s.profile.keyspace, s.profile.table);
                user.specs.iter().map(of).collect()
            }
            None => {
                let beside = self.counts_beside().then_some(COUNTER);
                let names = std::iter::once(self.own_table()).chain(beside);
                names.map(|name| format!("{}.{name}", plain(&self.schema.keyspace))).collect()
            }
        }
    }

    fn own_table(&self) -> &'static str {
        if self.command.kinds().all(Kind::counts) { COUNTER } else { STANDARD }
    }

    /// Whether rows and counters are mixed, which are in two tables.
    fn counts_beside(&self) -> bool {
        self.own_table() == STANDARD && self.command.kinds().any(Kind::counts)
    }

    /// The plan, for so many threads.
    #[must_use]
    pub fn plan(&self, threads: usize) -> Plan {
        let weighted: Vec<(Kind, f64)> = match &self.command {
            Command::User(user) => return self.user_plan(user, threads),
            Command::Single(kind) => vec![(*kind, 1.0)],
            Command::Mixed { ratios, .. } => {
                let total: f64 = ratios.iter().map(|(_, weight)| weight).sum();
                ratios.iter().map(|(kind, weight)| (*kind, weight / total)).collect()
            }
        };
        let counts = self.own_table() == COUNTER;
        let writer = if counts { Kind::CounterWrite } else { Kind::Write };
        // What a row is loaded with comes first; it is a statement of the run where that writes.
        let mut kinds = vec![writer];
        kinds.extend(weighted.iter().map(|(kind, _)| *kind).filter(|kind| *kind != writer));
        let operation = |kind: Kind, weight: f64| Operation {
            name: kind.operation().into(),
            weight,
            steps: vec![Step {
                first_statement: kinds.iter().position(|k| *k == kind).unwrap_or(0),
                choices: 1,
                name: kind.operation(),
                column_apart: false,
                last_choices: 1,
            }],
        };
        let columns: Vec<usize> = (0..self.columns.names.len()).collect();
        let statement = |kind: &Kind| Statement {
            action: if kind.writes() { Action::Update } else { Action::Read },
            columns: columns.clone(),
            by_name: kind.writes() || !self.columns.slice,
            counts: !counts && kind.counts(),
        };
        Plan {
            workload: format!("cassandra-stress:{}", self.command.name().to_lowercase()),
            schema: Schema {
                table: self.own_table().to_owned(),
                key_column: "key".to_owned(),
                columns: self.columns.names.clone(),
                cells: if counts { Cells::Counter } else { Cells::Blob },
                timestamp_us: self.columns.timestamp_us.filter(|_| !counts),
            },
            load: vec![operation(writer, 1.0)],
            run: weighted.iter().map(|(kind, weight)| operation(*kind, *weight)).collect(),
            statements: kinds.iter().map(statement).collect(),
            keys: self.keys(),
            values: self.values(counts),
            counters: self
                .counts_beside()
                .then(|| Counters { table: COUNTER.to_owned(), values: self.values(true) }),
            scan_lengths: Lengths::Constant(0),
            runs: match &self.command {
                Command::Single(_) | Command::User(_) => None,
                Command::Mixed { clustering, .. } => {
                    Some(Runs { lengths: clustering.distribution.clone(), threads })
                }
            },
            tables: None,
        }
    }

    pub(super) fn keys(&self) -> KeySpace {
        let order = KeyOrder::Seeded(KeyGenerator::new(self.key_size));
        let (first, last, distribution) = match &self.population {
            Population::Drawn(drawn) => {
                let bounds = (drawn.distribution.min(), drawn.distribution.max());
                let (first, last) = (bounds.0.max(0).cast_unsigned(), bounds.1.cast_unsigned());
                (first, last, Distribution::Drawn(drawn.distribution.clone()))
            }
            Population::Sequence { first, last, wrap, lookback } => {
                let mixes = self.command.mixes();
                let distribution = match (lookback.as_ref().filter(|_| mixes), wrap) {
                    (Some(drawn), wrap) => {
                        Distribution::Behind { lookback: drawn.distribution.clone(), wrap: *wrap }
                    }
                    (None, true) => Distribution::Sequential,
                    (None, false) => Distribution::Once,
                };
                (*first, *last, distribution)
            }
        };
        let behind = matches!(distribution, Distribution::Behind { .. });
        KeySpace {
            start: first,
            loaded: last - first + 1,
            // The first key that is written in turn, where reads follow the writes.
            records: if behind { first } else { last + 1 },
            expected_new: 0,
            order,
            zero_padding: 0,
            distribution,
        }
    }

    fn values(&self, counts: bool) -> Values {
        let content = match counts {
            true => Content::Increments(self.add.distribution.clone()),
            false => Content::Blobs {
                columns: self
                    .columns
                    .names
                    .iter()
                    .map(|name| BlobGenerator::new(name, self.columns.size.distribution.clone()))
                    .collect(),
                verify: !self.errors.skip_validation,
            },
        };
        Values { content }
    }

    /// What is created before the run: nothing by commands that only read, or mix.
    #[must_use]
    pub fn schema_statements(&self) -> Vec<String> {
        let Command::Single(kind) = &self.command else { return Vec::new() };
        if !kind.writes() {
            return Vec::new();
        }
        let keyspace = quoted(&self.schema.keyspace);
        let table = |table: &str, cell: &str| {
            let columns: Vec<_> = self
                .columns
                .names
                .iter()
                .map(|name| format!(", {} {cell}", quoted(name)))
                .collect();
            format!(
                "CREATE TABLE IF NOT EXISTS {keyspace}.{table} (key blob PRIMARY KEY{}) WITH {}",
                columns.concat(),
                self.table_options()
            )
        };
        let counters = *kind == Kind::CounterWrite || self.compat != Compat::Scylla;
        let mut all = vec![self.schema.create_keyspace(), table(STANDARD, "blob")];
        all.extend(counters.then(|| table(COUNTER, "counter")));
        all
    }

    fn table_options(&self) -> String {
        let Keyspace { compression, compaction, compaction_options, .. } = &self.schema;
        let class = match self.compat {
            Compat::Scylla => "sstable_compression",
            Compat::Apache3 | Compat::Apache5 => "class",
        };
        let compression = compression.iter().map(|name| (class, &name[..]));
        let mut text = format!("compression = {}", map(compression));
        if let Some(name) = compaction {
            let options = compaction_options.iter().map(|(key, value)| (&key[..], &value[..]));
            let all = std::iter::once(("class", &name[..])).chain(options);
            text += &format!(" AND compaction = {}", map(all));
        }
        text
    }
}

impl Keyspace {
    fn create_keyspace(&self) -> String {
        let given = self.strategy_options.iter().map(|(key, value)| (&key[..], &value[..]));
        let none = self.strategy_options.is_empty().then_some(("replication_factor", "1"));
        let options = std::iter::once(("class", &self.strategy[..])).chain(given).chain(none);
        let storage = match self.storage.is_empty() {
            true => String::new(),
            false => {
                let pairs = self.storage.iter().map(|(key, value)| (&key[..], &value[..]));
                format!(" AND storage = {}", map(pairs))
            }
        };
        format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {}{storage} AND durable_writes = \
             true",
            quoted(&self.keyspace),
            map(options)
        )
    }
}

/// A name in quotes, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A map literal of texts.
fn map<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let pairs: Vec<_> = pairs.map(|(k, v)| format!("{}: {}", text(k), text(v))).collect();
    format!("{{{}}}", pairs.join(", "))
}

#[cfg(test)]
#[path = "compile_tests.rs"]
mod tests;
