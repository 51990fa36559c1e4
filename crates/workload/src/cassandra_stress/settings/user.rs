//! The command `user`: profiles, and which of their statements are executed how often.
//!
//! Source: cassandra-stress, `settings/SettingsCommandUser.java`, `SettingsInsert.java`.

use super::Compat;
use super::{
    Asked, Command, Drawn, Hosts, Mode, Population, Reader, Settings, drawn,
    types::consistency_named,
};
use crate::cassandra_stress::conditions::bound_conditions;
use crate::cassandra_stress::create_table::TableDefinition;
use crate::cassandra_stress::distribution::Ratio;
use crate::cassandra_stress::line::{Group, Line, LineError, Word};
use crate::cassandra_stress::options::{parts, select};
use crate::cassandra_stress::profile::{BatchType, Insert, Profile, Table};
use crate::cassandra_stress::table;
use crate::revisits::{VISITS_MAX, Visits};
use crate::tables::stored_name;

/// What a line names and does not hold. Errors are words behind `cannot be read:`.
pub trait Sources {
    /// The text of a profile, by its path or its address of `http`.
    ///
    /// # Errors
    /// Why there is none.
    fn text(&self, place: &str) -> Result<String, String>;

    /// The statement that would make a table which the cluster has.
    ///
    /// # Errors
    /// Why that is not known.
    fn table(
        &self,
        cluster: (&Hosts, &Mode),
        keyspace: &str,
        table: &str,
    ) -> Result<String, String>;
}

/// Files alone.
impl<F: Fn(&str) -> Result<String, String>> Sources for F {
    fn text(&self, place: &str) -> Result<String, String> {
        self(place)
    }

    fn table(&self, _: (&Hosts, &Mode), _: &str, _: &str) -> Result<String, String> {
        Err("no cluster is asked for it here".to_owned())
    }
}

/// Whatever they are read by.
pub type Files<'a> = &'a dyn Sources;

/// What the command `user` does.
#[derive(Debug, Clone)]
pub struct User {
    /// `profile=`, as written.
    pub files: String,
    /// By file.
    pub specs: Vec<Spec>,
    /// In the order of the line.
    pub operations: Vec<UserOperation>,
    /// Operations of a kind in a row, on each thread.
    pub clustering: Drawn,
}

/// A profile, and the generators of its table.
#[derive(Debug, Clone)]
pub struct Spec {
    /// As read.
    pub profile: Profile,
    /// Its table's columns.
    pub table: Table,
}

/// One of the operations.
#[derive(Debug, Clone, PartialEq)]
pub struct UserOperation {
    /// As written: what lines and tags show.
    pub name: String,
    /// As written.
    pub weight: f64,
    /// Index of its profile.
    pub spec: usize,
    /// What it does.
    pub action: UserAction,
}

/// What an operation does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
    /// Writes rows.
    Insert,
    /// A query of the profile, by its name in small letters.
    Query(String),
    /// Reads rows, and compares them with what is written.
    Validate,
    /// A query over ranges of tokens, by its name.
    Scan(String),
}

impl User {
    /// Whether ranges of tokens are read.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation.action, UserAction::Scan(_)))
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn only_inserts(&self) -> bool {
        self.operations.iter().all(|operation| operation.action == UserAction::Insert)
    }
}

impl Reader {
    pub(super) fn user(
        mut self,
        command: &Group,
        line: Line,
        files: Files<'_>,
    ) -> Result<Asked, LineError> {
        let chosen = select(command, &table::PROFILES)?;
        let here = Word { text: String::new(), column: command.column };
        let Some(word) = chosen.get("profile=") else {
            let what = "Must specify a profile";
            return Err(LineError::at(&here, what, "Write profile=FILE, with the tables in it."));
        };
        let skips = line.groups.iter().filter(|group| group.name == "-errors").any(|group| {
            group.words.iter().any(|w| w.text.eq_ignore_ascii_case("skip-unsupported-columns"))
        });
        let mut specs: Vec<Spec> = Vec::new();
        for file in word.text.split(',') {
            let spec = self.spec((file, word), skips, files, &line)?;
            if specs.iter().any(|other| other.profile.spec_name == spec.profile.spec_name) {
                let what = "Must only specify a single YAML file per table (including keyspace \
                            qualifier)";
                let cure = "Give one of the profiles another specname.";
                return Err(LineError::at(word, what, cure));
            }
            specs.push(spec);
        }
        let none = || {
            let what = "Must specify at least one command with a non-zero ratio";
            LineError::at(&here, what, "Write ops(insert=1), or names of the profile's queries.")
        };
        let word = chosen.get("ops").ok_or_else(none)?;
        let given = parts("ops", word, &[], true)?.unwrap_or_default();
        let mut operations = Vec::new();
        for (name, value) in given {
            let weight: f64 = value.text.parse().unwrap_or(f64::NAN);
            if !weight.is_finite() || weight < 0.0 {
                let what = format!("Invalid ops specification: {name}={}", value.text);
                return Err(LineError::at(&value, what, "Write a number, as in ops(insert=1)."));
            }
            if weight > 0.0 {
                let (spec, action) = action(&specs, &name, &value)?;
                operations.push(UserOperation { name, weight, spec, action });
            }
        }
        if operations.is_empty() {
            return Err(none());
        }
        let default = Word { text: "gaussian(1..10)".to_owned(), column: command.column };
        let word = chosen.get("clustering=").unwrap_or(&default);
        let clustering = drawn(word)?;
        if clustering.distribution.max() < 1 {
            let what = "A run of operations of one kind must have some";
            return Err(LineError::at(word, what, "Write clustering=FIXED(1) or more."));
        }
        let files = chosen.get("profile=").map_or(String::new(), |word| word.text.clone());
        for word in ["add=", "keysize="] {
            if chosen.has(word) {
                self.ignored(word, "the profile says what rows hold");
            }
        }
        let user = User { files, specs, operations, clustering };
        self.run(Command::User(Box::new(user)), &chosen, line)
    }

    /// A profile of the list.
    fn spec(
        &mut self,
        (file, word): (&str, &Word),
        skips: bool,
        files: Files<'_>,
        line: &Line,
    ) -> Result<Spec, LineError> {
        let scheme = file.split_once("://").map(|(scheme, _)| scheme.to_lowercase());
        let path = match (scheme.as_deref(), file.split_once("://")) {
            (Some("file"), Some((_, path))) => path,
            (None | Some("http"), _) => file,
            (Some(scheme), _) => {
                let what = format!("Profiles are not fetched by {scheme}, by http alone: {file}");
                let cure = "Fetch it, as with curl -O, and name the local file.";
                return Err(LineError::unbuilt(word, what, cure));
            }
        };
        let text = files.text(path).map_err(|why| {
            LineError::at(word, format!("Cannot read the profile {path}: {why}"), "Is it there?")
        })?;
        let failed = |error: &dyn std::fmt::Display| {
            LineError::at(word, format!("Profile {path}: {error}"), "")
        };
        let profile = Profile::parse(&text).map_err(|error| failed(&error))?;
        let found = match &profile.definition {
            Some(definition) => definition.clone(),
            None => self.found(&profile, (path, word), files, line.clone())?,
        };
        let definition = &found;
        if definition.keyspace.as_ref().is_some_and(|name| *name != stored_name(&profile.keyspace))
        {
            let what =
                format!("Profile {path}: table_definition makes a table of another keyspace");
            return Err(LineError::at(word, what, "Make it the same as keyspace."));
        }
        let insert = &profile.insert;
        let asked = profile.queries.values();
        let levels = asked.flat_map(|q| [&q.consistency, &q.serial_consistency]);
        for level in levels.chain([&insert.consistency, &insert.serial_consistency]).flatten() {
            if consistency_named(level).is_none() {
                let what = format!("Profile {path}: there is no consistency level {level}");
                return Err(LineError::at(word, what, "Write one like LOCAL_ONE or QUORUM."));
            }
        }
        let table = profile.table(definition, skips).map_err(|error| failed(&error))?;
        for name in &table.unused {
            self.notices
                .push(format!("{path}: columnspec of '{name}' has no column of the table."));
        }
        for name in &table.skipped {
            self.notices.push(format!("{path}: column '{name}' is left out, by its type."));
        }
        Ok(Spec { profile, table })
    }

    /// The table of a profile that does not define it, as the cluster has it.
    fn found(
        &self,
        profile: &Profile,
        (path, word): (&str, &Word),
        files: Files<'_>,
        mut line: Line,
    ) -> Result<TableDefinition, LineError> {
        // Their notices come when the whole line is read.
        let mut reader = Reader { compat: self.compat, notices: Vec::new() };
        let port = reader.port(&mut line)?;
        let mode = reader.mode(&mut line, port)?;
        let hosts = reader.hosts(&mut line)?;
        let (keyspace, table) = (stored_name(&profile.keyspace), stored_name(&profile.table));
        let text = files.table((&hosts, &mode), &keyspace, &table);
        let read =
            text.and_then(|text| TableDefinition::parse(&text).map_err(|error| error.to_string()));
        read.map_err(|why| {
            let what = format!("Profile {path} has no table_definition: {why}");
            LineError::at(word, what, "Put CREATE TABLE into it, or make the table beforehand.")
        })
    }

    /// The group `-insert`, which goes before what profiles say; levels in capitals.
    pub(super) fn insert_settings(&mut self, chosen: &super::Chosen) -> Result<Insert, LineError> {
        let ratio = |prefix: &str| match chosen.get(prefix) {
            None => Ok(None),
            Some(word) => Ratio::parse(&word.text).map(Some).map_err(|error| {
                let what = format!("Invalid ratio definition: {}", word.text);
                LineError::at(word, what, format!("Here: {}.", error.problem))
            }),
        };
        let upper = |prefix: &str| chosen.get(prefix).map(|word| word.text.to_uppercase());
        Ok(Insert {
            partitions: match chosen.get("partitions=") {
                Some(word) => Some(drawn(word)?.distribution),
                None => None,
            },
            select: ratio("select-ratio=")?,
            row_population: ratio("row-population-ratio=")?,
            batch_type: upper("batchtype=").and_then(|name| BatchType::named(&name)),
            consistency: upper("cl="),
            serial_consistency: upper("serial-cl="),
            condition: None,
        })
    }
}

impl Reader {
    /// In how many visits partitions are written; None where each is at once.
    pub(super) fn visits(&mut self, chosen: &super::Chosen) -> Result<Option<Visits>, LineError> {
        let default = |text: &str| Word { text: text.to_owned(), column: 1 };
        let fixed = default("fixed(1)");
        let word = chosen.get("visits=").unwrap_or(&fixed);
        let visits = drawn(word)?.distribution;
        let uniform = default("uniform(1..1M)");
        let revisited = chosen.get("revisit=").unwrap_or(&uniform);
        let revisit = drawn(revisited)?.distribution;
        let places = revisit.max().saturating_sub(revisit.min());
        if revisit.min() < 0 || places >= i64::from(i32::MAX) {
            let what = "sample range is invalid";
            return Err(LineError::at(revisited, what, "Write revisit=uniform(1..1M)."));
        }
        if visits.max() > VISITS_MAX {
            let what = format!("Invalid value {}; at most {VISITS_MAX} visits", word.text);
            return Err(LineError::at(word, what, "Write visits=fixed(10)."));
        }
        if visits.max() <= 1 {
            if chosen.has("revisit=") {
                self.ignored("-insert revisit=", "each partition is written in one visit");
            }
            return Ok(None);
        }
        Ok(Some(Visits { visits, revisit }))
    }
}

/// What an operation of that name is, of which profile. `word` stands behind the name.
fn action(specs: &[Spec], name: &str, word: &Word) -> Result<(usize, UserAction), LineError> {
    let at = |what: String, cure: String| Err(LineError::at(word, what, cure));
    let (index, command) = match name.rsplit_once('.') {
        None => (0, name),
        Some((spec, command)) => {
            match specs.iter().position(|known| known.profile.spec_name == spec) {
                Some(index) => (index, command),
                None => {
                    let known: Vec<_> = specs.iter().map(|s| &s.profile.spec_name[..]).collect();
                    let what =
                        format!("Op name {name} contains an invalid profile specname: {spec}");
                    return at(what, format!("Profiles are {}.", known.join(", ")));
                }
            }
        }
    };
    let profile = &specs[index].profile;
    let lower = command.to_lowercase();
    if lower == "insert" {
        return Ok((index, UserAction::Insert));
    }
    if lower == "validate" {
        return Ok((index, UserAction::Validate));
    }
    if profile.token_range_queries.contains_key(command) {
        return Ok((index, UserAction::Scan(command.to_owned())));
    }
    if profile.queries.contains_key(&lower) {
        return Ok((index, UserAction::Query(lower)));
    }
    let ranges = profile.token_range_queries.keys();
    let known: Vec<_> = profile.queries.keys().chain(ranges).map(|name| &name[..]).collect();
    at(
        format!("No query defined with name {lower}"),
        format!("The profile has insert, validate and {}.", known.join(", ")),
    )
}

/// What can only be said of all settings together.
pub(super) fn check(settings: &mut Settings) -> Result<(), LineError> {
    let Some(user) = settings.user() else { return Ok(()) };
    let (rows, refused) = settings.rows_written_max();
    if refused {
        let what = format!(
            "ERROR: You have defined a workload that generates batches with more than 65k rows \
             ({rows:.0}), but have required the use of LOGGED batches. There is a 65k row limit on \
             a single batch."
        );
        return Err(LineError::anywhere(what, "Give the insert a smaller select or partitions."));
    }
    let behind = matches!(&settings.population, Population::Sequence { lookback: Some(_), .. });
    let several = user.operations.iter().any(|operation| {
        let insert = &user.specs[operation.spec].profile.insert;
        let partitions = settings.insert.partitions.as_ref().or(insert.partitions.as_ref());
        let one = partitions.is_none_or(|partitions| partitions.constant() == Some(1));
        operation.action == UserAction::Insert && !one
    });
    let unbuilt = |what: &str, cure: &str| {
        Err(LineError { unbuilt: true, ..LineError::anywhere(what, cure) })
    };
    if behind && several {
        let what = "Several partitions in an operation and read-lookback= together are not built";
        return unbuilt(what, "Write partitions=fixed(1), or no read-lookback=.");
    }
    if settings.visits.is_some() && (several || behind) {
        let what = "Several visits to a partition together with several partitions in an \
                    operation, or with read-lookback=, are not built";
        return unbuilt(what, "Write partitions=fixed(1), and no read-lookback=.");
    }
    conditions(settings, user)?;
    if settings.visits.is_some() {
        let inserts = |o: &&UserOperation| o.action == UserAction::Insert;
        let flat = |o: &UserOperation| user.specs[o.spec].table.clustering_key.is_empty();
        if user.operations.iter().filter(inserts).all(flat) {
            let text =
                "-insert visits= has no effect: no insert writes partitions of several rows.";
            settings.notices.push(text.to_owned());
            settings.visits = None;
        }
    }
    if rows > 65_535.0 {
        let text = "An operation of more than 65535 rows, or more than 16 MiB of them, fails: the \
                    original cuts it into several batches.";
        settings.notices.push(text.to_owned());
    }
    if several {
        let mean = settings.partitions_mean();
        let text = format!(
            "n= and rates count partitions: an operation has {mean:.1} on average, and as many \
             operations are done as have so many together."
        );
        settings.notices.push(text);
    }
    Ok(())
}

/// What the generation that reads columns of conditions first asks of them.
fn conditions(settings: &Settings, user: &User) -> Result<(), LineError> {
    if settings.compat != Compat::Apache5 {
        return Ok(());
    }
    for operation in &user.operations {
        let UserAction::Query(name) = &operation.action else { continue };
        let Spec { profile, table } = &user.specs[operation.spec];
        let Some(query) = profile.queries.get(name) else { continue };
        let mut columns = bound_conditions(&query.cql);
        if !columns.is_empty() && !query.same_row {
            let what = format!("CAS is supported only for type 'samerow': query {name}");
            return Err(LineError::anywhere(what, "Write fields: samerow."));
        }
        if let Some(column) = columns.iter().find(|c| table.values.iter().all(|v| v.name != **c)) {
            let what =
                format!("Query {name} has a condition on {column}, which is no value column");
            return Err(LineError::anywhere(what, "Write IF with one of the table's columns."));
        }
        columns.sort_unstable();
        if columns.windows(2).any(|pair| pair[0] == pair[1]) {
            let what = format!("Query {name} has two conditions on one column with a ?");
            return Err(LineError::anywhere(what, "Write one of them with a value."));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
