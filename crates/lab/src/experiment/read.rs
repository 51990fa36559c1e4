//! The text of an experiment -> [`Experiment`]. Every error has line, column and a cure.

use super::error::{ExperimentError, Source};
use super::words::{self, Kind, NEEDS, WORDS};
use record::table::is_own_column;
use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Repetitions, levels and combinations beyond these are a slip of the pen.
const REPETITIONS_MAX: i64 = 1000;
/// Trials of an experiment.
pub(crate) const TRIALS_MAX: usize = 100_000;

/// Behind the name of a factor that is also a column's: the column of its levels.
pub(super) const LEVEL: &str = "_level";

/// In which order trials are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Each repetition of all combinations is a block: in a drawn order, and back in the next.
    Interleaved,
    /// As they are listed, all repetitions of a combination one after the other.
    Listed,
}

/// A value of a setting, as text where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, numbers, true and false.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// Keys and values.
    Table(Vec<(String, Value)>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => write!(f, "[{}]", items.join(", ")),
            Self::Table(entries) => {
                let entry = |(key, value): &(String, Self)| format!("{key}={value}");
                write!(f, "{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A setting by its name.
pub type Setting = (String, Value);

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// As in the table of trials.
    pub name: String,
    /// What it sets.
    pub settings: Vec<Setting>,
    /// What it needs that is not built.
    pub needs: Vec<String>,
}

/// What an experiment varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// At least one.
    pub levels: Vec<Level>,
}

/// Levels by the factors' names: where all of them are met.
pub(crate) type Match = Vec<(String, String)>;

/// Settings for some of the combinations, which win over all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) levels: Match,
    pub(crate) settings: Vec<Setting>,
}

/// An experiment as it was written down, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// Of its runs.
    pub name: String,
    /// What it is about, for people.
    pub about: String,
    /// In which order trials are run.
    pub order: Order,
    /// Of each combination.
    pub repetitions: u32,
    /// Of the order, and of the trials' operations.
    pub seed: u64,
    /// The factor whose levels are compared.
    pub compare: Option<String>,
    /// The factor that counts resources.
    pub budget: Option<String>,
    /// What all of it needs that is not built.
    pub needs: Vec<String>,
    /// Of all trials.
    pub settings: Vec<Setting>,
    /// The last one changes first. Points of the load are the last.
    pub factors: Vec<Factor>,
    pub(crate) except: Vec<Match>,
    pub(crate) when: Vec<When>,
    /// As given.
    pub(crate) text: String,
}

type Entry<'t, 'i> = (&'t str, usize, Range<usize>, &'t DeValue<'i>);

/// Entries in the order of the file, with where the key begins and where the value is.
fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<Entry<'t, 'i>> {
    let entry = |(key, value): (&'t toml::Spanned<_>, &'t toml::Spanned<DeValue<'i>>)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        (name.as_ref(), key.span().start, value.span(), value.get_ref())
    };
    let mut all: Vec<_> = table.iter().map(entry).collect();
    all.sort_by_key(|(_, at, _, _)| *at);
    all
}

struct Reader<'a> {
    source: Source<'a>,
}

/// Reads an experiment; `source` names the file for errors.
pub(crate) fn read(source: Source<'_>) -> Result<Experiment, ExperimentError> {
    // Of all errors the first: those behind it may follow from it.
    let (document, errors) = DeTable::parse_recoverable(source.text);
    let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
    if let Some(error) = errors.iter().min_by_key(|error| start(error)) {
        let what = error.message().lines().next().unwrap_or("this is no TOML").to_owned();
        return Err(source.error(start(error), what, "see toml.io for how TOML is written"));
    }
    Reader { source }.experiment(document.get_ref())
}

impl Reader<'_> {
    fn experiment(&self, document: &DeTable<'_>) -> Result<Experiment, ExperimentError> {
        let mut read = Experiment {
            name: String::new(),
            about: String::new(),
            order: Order::Interleaved,
            repetitions: 1,
            seed: 1,
            compare: None,
            budget: None,
            needs: Vec::new(),
            settings: Vec::new(),
            factors: Vec::new(),
            except: Vec::new(),
            when: Vec::new(),
            text: self.source.text.to_owned(),
        };
        const PARTS: [&str; 6] = ["experiment", "settings", "factors", "load", "except", "when"];
        let parts = entries(document);
        for (name, at, _, _) in &parts {
            self.known("section", name, *at, &PARTS)?;
        }
        let part = |wanted: &str| parts.iter().find(|(name, ..)| *name == wanted);
        let Some((_, at, _, value)) = part("experiment") else {
            let cure = "begin the file with [experiment] and name = \"...\"";
            return Err(self.source.error(0, "there is no [experiment]", cure));
        };
        self.head(&mut read, self.table("experiment", value, *at)?)?;
        if read.name.is_empty() {
            let cure = "add name = \"...\" below [experiment]";
            return Err(self.source.error(*at, "the experiment has no name", cure));
        }
        if let Some((_, at, _, value)) = part("settings") {
            read.settings = self.settings(self.table("settings", value, *at)?, &[])?;
        }
        // Points of a load change first, wherever they stand in the file.
        for name in ["factors", "load"] {
            let Some((_, at, _, value)) = part(name) else { continue };
            for (factor, at, span, value) in entries(self.table(name, value, *at)?) {
                let factor = self.factor(factor, at, span, value)?;
                read.factors.push(factor);
            }
        }
        self.matches(&mut read, &parts)?;
        self.check_columns(&read)?;
        self.check_names(&read, document)?;
        Ok(read)
    }

    /// That names can be shown, and are the heads of columns of their own.
    fn check_columns(&self, read: &Experiment) -> Result<(), ExperimentError> {
        let levels = read.factors.iter().flat_map(|factor| &factor.levels);
        let mut names = [&read.name].into_iter().chain(levels.map(|level| &level.name));
        let factors = || read.factors.iter().map(|factor| &factor.name);
        let steers = |name: &&String| name.chars().any(char::is_control);
        if let Some(name) = names.find(steers).or_else(|| factors().find(steers)) {
            let what = format!("the name {name:?} has characters that steer a terminal");
            return Err(self.source.error(0, what, "take them out of it"));
        }
        let of_own = |name: &&String| {
            let own = name.strip_suffix(LEVEL);
            own.is_some_and(|own| is_own_column(own) && factors().any(|other| other == own))
        };
        match factors().find(of_own) {
            Some(name) => {
                let what = format!("the levels of two factors would stand in a column '{name}'");
                Err(self.source.error(0, what, "give one of them another name"))
            }
            None => Ok(()),
        }
    }

    /// What stands below `[experiment]`.
    fn head(&self, read: &mut Experiment, table: &DeTable<'_>) -> Result<(), ExperimentError> {
        const KEYS: [&str; 8] =
            ["name", "about", "order", "repetitions", "seed", "compare", "budget", "needs"];
        for (key, at, span, value) in entries(table) {
            self.known("key", key, at, &KEYS)?;
            match key {
                "name" => read.name = self.text(key, value, &span)?,
                "about" => read.about = self.text(key, value, &span)?.trim().to_owned(),
                "order" => {
                    read.order = match self.text(key, value, &span)?.as_str() {
                        "interleaved" => Order::Interleaved,
                        "listed" => Order::Listed,
                        other => {
                            let what = format!("order '{other}' is unknown");
                            let cure = "choose \"interleaved\" or \"listed\"";
                            return Err(self.source.error(span.start, what, cure));
                        }
                    }
                }
                "repetitions" => {
                    read.repetitions = self.number(key, value, &span, 1..=REPETITIONS_MAX)? as u32;
                }
                "seed" => read.seed = self.number(key, value, &span, 0..=i64::MAX)? as u64,
                "compare" => read.compare = Some(self.text(key, value, &span)?),
                "budget" => read.budget = Some(self.text(key, value, &span)?),
                _ => read.needs = self.needs(value, &span)?,
            }
        }
        Ok(())
    }

    /// A factor: a list of values of the setting of its name, or of tables with a name each.
    fn factor(
        &self,
        name: &str,
        at: usize,
        span: Range<usize>,
        value: &DeValue<'_>,
    ) -> Result<Factor, ExperimentError> {
        let DeValue::Array(items) = value else {
            let what = format!("the factor '{name}' is no list");
            let cure = format!("give its levels like {name} = [1, 2, 4]");
            return Err(self.source.error(span.start, what, cure));
        };
        if items.is_empty() {
            let what = format!("the factor '{name}' has no levels");
            return Err(self.source.error(span.start, what, "give at least one, or leave it out"));
        }
        let mut levels: Vec<Level> = Vec::new();
        for item in items.iter() {
            let level = match item.get_ref() {
                DeValue::Table(table) => self.level(name, item.span().start, table)?,
                value => {
                    if words::find(name).is_none() {
                        let what = format!("'{name}' is no setting that could have this value");
                        let cure = self.meant(name).unwrap_or_else(|| {
                            "give its levels names and settings: { name = \"...\", ... }".to_owned()
                        });
                        return Err(self.source.error(at, what, cure));
                    }
                    let value = self.setting(name, value, &item.span())?;
                    let name = name.to_owned();
                    Level { name: value.to_string(), settings: vec![(name, value)], needs: vec![] }
                }
            };
            if levels.iter().any(|other| other.name == level.name) {
                let what = format!("'{}' has the level '{}' twice", name, level.name);
                let cure = "take one out; repetitions = N repeats all of them";
                return Err(self.source.error(item.span().start, what, cure));
            }
            levels.push(level);
        }
        Ok(Factor { name: name.to_owned(), levels })
    }

    fn level(
        &self,
        factor: &str,
        at: usize,
        table: &DeTable<'_>,
    ) -> Result<Level, ExperimentError> {
        let mut level = Level { name: String::new(), settings: Vec::new(), needs: Vec::new() };
        for (key, _, span, value) in entries(table) {
            match key {
                "name" => level.name = self.text(key, value, &span)?,
                "needs" => level.needs = self.needs(value, &span)?,
                _ => {}
            }
        }
        level.settings = self.settings(table, &["name", "needs"])?;
        match level.name.is_empty() {
            false => Ok(level),
            true => {
                let what = format!("a level of '{factor}' has no name");
                Err(self.source.error(at, what, "add name = \"...\" to it"))
            }
        }
    }

    /// `[[except]]` and `[[when]]`.
    fn matches(
        &self,
        read: &mut Experiment,
        parts: &[Entry<'_, '_>],
    ) -> Result<(), ExperimentError> {
        for (part, at, _, value) in parts.iter().filter(|p| ["except", "when"].contains(&p.0)) {
            let DeValue::Array(items) = value else {
                let cure = format!("write [[{part}]]");
                return Err(self.source.error(*at, format!("'{part}' is no list"), cure));
            };
            for item in items.iter() {
                let table = self.table(part, item.get_ref(), item.span().start)?;
                let mut levels = Match::new();
                let mut settings = Vec::new();
                for (key, at, span, value) in entries(table) {
                    match key {
                        "why" => drop(self.text(key, value, &span)?),
                        "set" if *part == "when" => {
                            settings = self.settings(self.table(key, value, span.start)?, &[])?;
                        }
                        _ => levels.push(self.matched(read, key, at, value, &span)?),
                    }
                }
                if levels.is_empty() || (*part == "when" && settings.is_empty()) {
                    let what = format!("this [[{part}]] says nothing");
                    let cure = match *part {
                        "when" => "name levels of factors, and set = { ... }",
                        _ => "name levels of factors, like layout = \"single\"",
                    };
                    return Err(self.source.error(item.span().start, what, cure));
                }
                match *part {
                    "when" => read.when.push(When { levels, settings }),
                    _ => read.except.push(levels),
                }
            }
        }
        Ok(())
    }

    /// A factor and one of its levels.
    fn matched(
        &self,
        read: &Experiment,
        key: &str,
        at: usize,
        value: &DeValue<'_>,
        span: &Range<usize>,
    ) -> Result<(String, String), ExperimentError> {
        let names: Vec<&str> = read.factors.iter().map(|f| f.name.as_str()).collect();
        self.known("factor", key, at, &names)?;
        let level = self.plain(value, span)?;
        let levels = read.factors.iter().filter(|f| f.name == key).flat_map(|f| &f.levels);
        let levels: Vec<&str> = levels.map(|l| l.name.as_str()).collect();
        if levels.contains(&level.as_str()) {
            return Ok((key.to_owned(), level));
        }
        let what = format!("'{key}' has no level '{level}'");
        Err(self.source.error(span.start, what, format!("it has {}", levels.join(", "))))
    }

    /// `compare` and `budget` name factors; a factor stands once.
    fn check_names(
        &self,
        read: &Experiment,
        document: &DeTable<'_>,
    ) -> Result<(), ExperimentError> {
        let names: Vec<&str> = read.factors.iter().map(|f| f.name.as_str()).collect();
        let value_of = |key: &str| {
            let head = document.get("experiment").and_then(|head| head.get_ref().get(key));
            head.map_or(0, |value| value.span().start)
        };
        for (key, name) in [("compare", &read.compare), ("budget", &read.budget)] {
            let Some(name) = name else { continue };
            self.known("factor", name, value_of(key), &names)?;
        }
        if let Some(name) = &read.budget {
            let factor = read.factors.iter().find(|f| f.name == *name);
            let counts = |level: &Level| level.name.parse::<u32>().is_ok_and(|n| n > 0);
            if let Some(bad) = factor.and_then(|f| f.levels.iter().find(|l| !counts(l))) {
                let what = format!("the budget '{name}' has the level '{}', no number", bad.name);
                let cure = "a budget counts resources: name its levels 1, 2, 4";
                return Err(self.source.error(value_of("budget"), what, cure));
            }
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let what = format!("'{name}' is a factor and a point of the load");
                return Err(self.source.error(0, what, "leave it out of one of them"));
            }
        }
        Ok(())
    }

    fn settings(
        &self,
        table: &DeTable<'_>,
        without: &[&str],
    ) -> Result<Vec<Setting>, ExperimentError> {
        let mut settings = Vec::new();
        for (key, at, span, value) in entries(table) {
            if without.contains(&key) {
                continue;
            }
            if words::find(key).is_none() {
                let what = format!("the setting '{key}' is unknown");
                let cure = self.meant(key).unwrap_or_else(|| {
                    let names: Vec<_> = WORDS.iter().map(|word| word.name).collect();
                    format!("settings are {}", names.join(", "))
                });
                return Err(self.source.error(at, what, cure));
            }
            settings.push((key.to_owned(), self.setting(key, value, &span)?));
        }
        Ok(settings)
    }

    fn meant(&self, name: &str) -> Option<String> {
        let known = words::nearest(name, WORDS.iter().map(|word| word.name))?;
        Some(format!("is '{known}' meant?"))
    }

    /// A value of the setting of this name, held to its kind.
    fn setting(
        &self,
        name: &str,
        value: &DeValue<'_>,
        span: &Range<usize>,
    ) -> Result<Value, ExperimentError> {
        let kind = words::find(name).map_or(Kind::Text, |word| word.kind);
        let read = self.value(value, span)?;
        let fits = match (&read, value, kind) {
            (Value::List(_), _, Kind::List) | (Value::Table(_), _, Kind::Table) => true,
            (_, DeValue::Boolean(_), Kind::Flag) => true,
            (_, DeValue::Boolean(_), _) | (_, _, Kind::Flag) => false,
            (Value::Text(text), _, kind) => kind.takes(text),
            _ => false,
        };
        match fits {
            true => Ok(read),
            false => {
                let what = format!("'{name}' cannot be {read}");
                Err(self.source.error(span.start, what, format!("give {}", kind.form())))
            }
        }
    }

    fn value(&self, value: &DeValue<'_>, span: &Range<usize>) -> Result<Value, ExperimentError> {
        Ok(match value {
            DeValue::Array(items) => {
                let plain = items.iter().map(|item| self.plain(item.get_ref(), &item.span()));
                Value::List(plain.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => {
                let mut read = Vec::new();
                for (key, _, span, value) in entries(table) {
                    read.push((key.to_owned(), self.value(value, &span)?));
                }
                Value::Table(read)
            }
            plain => Value::Text(self.plain(plain, span)?),
        })
    }

    /// The text of a text, a number, true or false.
    fn plain(&self, value: &DeValue<'_>, span: &Range<usize>) -> Result<String, ExperimentError> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Float(number) => Ok(number.to_string()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Datetime(_) => {
                Err(self.source.error(span.start, "no setting is a date", "give it in quotes"))
            }
            DeValue::Array(_) | DeValue::Table(_) => {
                let what = "a list or a table stands where one value belongs";
                Err(self.source.error(span.start, what, "give a text or a number"))
            }
        }
    }

    fn needs(
        &self,
        value: &DeValue<'_>,
        span: &Range<usize>,
    ) -> Result<Vec<String>, ExperimentError> {
        let DeValue::Array(items) = value else {
            let cure = "give a list like [\"vm\"]";
            return Err(self.source.error(span.start, "'needs' is no list", cure));
        };
        let names: Vec<&str> = NEEDS.iter().map(|(name, _)| *name).collect();
        let mut needs = Vec::new();
        for item in items.iter() {
            let need = self.text("needs", item.get_ref(), &item.span())?;
            self.known("need", &need, item.span().start, &names)?;
            needs.push(need);
        }
        Ok(needs)
    }

    fn text(
        &self,
        key: &str,
        value: &DeValue<'_>,
        span: &Range<usize>,
    ) -> Result<String, ExperimentError> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => {
                let what = format!("'{key}' is no text");
                Err(self.source.error(span.start, what, "put it into quotes"))
            }
        }
    }

    fn number(
        &self,
        key: &str,
        value: &DeValue<'_>,
        span: &Range<usize>,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, ExperimentError> {
        let number = match value {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok(),
            _ => None,
        };
        number.filter(|n| range.contains(n)).ok_or_else(|| {
            let what = format!("'{key}' is no number in its range");
            let cure = format!("give {} to {}", range.start(), range.end());
            self.source.error(span.start, what, cure)
        })
    }

    fn table<'t, 'i>(
        &self,
        name: &str,
        value: &'t DeValue<'i>,
        at: usize,
    ) -> Result<&'t DeTable<'i>, ExperimentError> {
        match value {
            DeValue::Table(table) => Ok(table),
            _ => {
                let what = format!("'{name}' is no table");
                Err(self.source.error(at, what, "give keys and values: key = \"value\""))
            }
        }
    }

    fn known(
        &self,
        what: &str,
        name: &str,
        at: usize,
        known: &[&str],
    ) -> Result<(), ExperimentError> {
        if known.contains(&name) {
            return Ok(());
        }
        let cure = match words::nearest(name, known.iter().copied()) {
            Some(near) => format!("is '{near}' meant?"),
            None if known.is_empty() => "there is none in this experiment".to_owned(),
            None => format!("choose from {}", known.join(", ")),
        };
        Err(self.source.error(at, format!("the {what} '{name}' is unknown"), cure))
    }
}
