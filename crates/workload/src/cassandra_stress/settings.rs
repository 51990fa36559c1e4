//! A command line as typed settings: every option of the original, its default filled in.
//!
//! In: arguments. Out: what is asked for, and a sentence for each word that is understood and has
//! no effect here, so that nothing is read and ignored. Files that a line names are not opened.
//! Source: cassandra-stress, `settings/Settings*.java`.

use super::distribution::{Distribution, DistributionError, DistributionProblem};
use super::line::{Group, Line, LineError, Word};
use super::options::{Chosen, Pattern, parts, select};
use super::predefined::column_names;
use super::table;
use units::{Credentials, Secret};

mod groups;
mod shown;
mod types;
mod user;

pub use shown::Shown;
pub use types::{
    Columns, Command, Compat, Delay, DelayPolicy, Drawn, End, Errors, Graph, Hosts, Kind, Level,
    Log, Mode, OperationType, Population, Rate, Schema, Settings, TimeUnit, TokenRange, Truncate,
};
pub use user::{Files, Sources, Spec, User, UserAction, UserOperation};

/// What a command line asks for.
#[derive(Debug, Clone)]
pub enum Asked {
    /// Work.
    Run(Box<Settings>),
    /// Help, on a command or an option.
    Help(Option<String>),
    /// What a distribution yields.
    Print(Drawn),
    /// The version.
    Version,
}

/// Reads a command line, the program's name left out.
///
/// # Errors
/// [`LineError`]: what the original says too, where and what to write instead; or that something
/// is not built here.
pub fn parse(arguments: &[String], compat: Compat, files: Files<'_>) -> Result<Asked, LineError> {
    let mut line = Line::of(arguments)?;
    if let Some(help) = line.take("help").or_else(|| line.take("-?")) {
        return help_asked(&help, &line);
    }
    if line.groups.iter().any(|group| group.name == "version") {
        return Ok(Asked::Version);
    }
    if let Some(print) = line.take("print") {
        return print_asked(&print).map(Asked::Print);
    }
    let command = line.groups.remove(0);
    let word = Word { text: command.name.clone(), column: command.column };
    let refuse = |what: &str, cure: &str| Err(LineError::unbuilt(&word, what, cure));
    let name = table::COMMANDS
        .iter()
        .find(|(name, others, _)| *name == command.name || others.contains(&&command.name[..]));
    match name.map(|(name, _, _)| *name) {
        Some("user") => Reader { compat, notices: Vec::new() }.user(&command, line, files),
        Some("legacy") => refuse(
            "The command line before 2.1 is not read here",
            "Write it in the form of 2.1: write n=1000 -rate threads=50 -node HOST.",
        ),
        Some("mixed") => Reader { compat, notices: Vec::new() }.mixed(&command, line),
        Some(name) => {
            let kind = match name {
                "read" => Kind::Read,
                "write" => Kind::Write,
                "counter_write" => Kind::CounterWrite,
                _ => Kind::CounterRead,
            };
            Reader { compat, notices: Vec::new() }.single(kind, &command, line)
        }
        None => {
            let names: Vec<_> = table::COMMANDS.iter().map(|(name, _, _)| *name).collect();
            let cure = format!("The first word is a command: {}.", names.join(", "));
            let what = match command.name.starts_with('-') {
                true => "No command specified".to_owned(),
                false => format!("Invalid command {}", command.name),
            };
            Err(LineError::at(&word, what, cure))
        }
    }
}

fn help_asked(help: &Group, line: &Line) -> Result<Asked, LineError> {
    let what = "Invalid command/option provided to help";
    let cure = "Write help, or help and one command or option.";
    match (&help.words[..], &line.groups[..]) {
        ([], []) => Ok(Asked::Help(None)),
        ([], [group]) if group.words.is_empty() => Ok(Asked::Help(Some(group.name.clone()))),
        ([word], []) => Ok(Asked::Help(Some(word.text.to_lowercase()))),
        ([word, ..], _) => Err(LineError::at(word, what, cure)),
        _ => Err(LineError::anywhere(what, cure)),
    }
}

fn print_asked(print: &Group) -> Result<Drawn, LineError> {
    const PRINT: &[super::options::Opt] =
        &[super::options::required("dist=", Pattern::Distribution, "A distribution")];
    let chosen = select(print, &[PRINT])?;
    let word = chosen.get("dist=").cloned().unwrap_or(Word { text: String::new(), column: 1 });
    drawn(&word)
}

/// Reads a distribution where it was written.
fn drawn(word: &Word) -> Result<Drawn, LineError> {
    let failed = |DistributionError { spec, position, problem }| {
        let what = match &problem {
            DistributionProblem::Form => format!("Illegal distribution specification: {spec}"),
            DistributionProblem::Name(name) => format!("Illegal distribution type: {name}"),
            _ => format!("Invalid parameter list for distribution: {spec}"),
        };
        let column = Some(word.column + position.saturating_sub(1));
        LineError { column, ..LineError::anywhere(what, format!("Here: {problem}.")) }
    };
    let distribution = Distribution::parse(&word.text).map_err(failed)?;
    Ok(Drawn { text: word.text.clone(), distribution })
}

/// Digits, and then perhaps k, m or b for 10^3, 10^6, 10^9.
fn count(text: &str) -> Option<i64> {
    let (digits, factor) = match text.bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 1000),
        b'm' => (&text[..text.len() - 1], 1_000_000),
        b'b' => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

/// A whole number that its pattern has let through.
fn number<T: TryFrom<i64>>(word: &Word, what: &str) -> Result<T, LineError> {
    let value = count(&word.text).and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        LineError::at(
            word,
            format!("For input string: \"{}\"", word.text),
            format!("Give a smaller number for {what}."),
        )
    })
}

/// Reads groups; keeps what has no effect.
struct Reader {
    compat: Compat,
    notices: Vec<String>,
}

impl Reader {
    fn single(self, kind: Kind, command: &Group, line: Line) -> Result<Asked, LineError> {
        let chosen = select(command, &table::COMMAND)?;
        self.run(Command::Single(kind), &chosen, line)
    }

    fn mixed(self, command: &Group, line: Line) -> Result<Asked, LineError> {
        let chosen = select(command, &table::MIXED)?;
        let mut ratios = vec![(Kind::Read, 1.0), (Kind::Write, 1.0)];
        if let Some(word) = chosen.get("ratio") {
            ratios.clear();
            let given = parts("ratio", word, table::RATIOS, false)?.unwrap_or_default();
            for (name, value) in &given {
                let kind = match &name[..] {
                    "read" => Kind::Read,
                    "write" => Kind::Write,
                    "counter_write" => Kind::CounterWrite,
                    _ => Kind::CounterRead,
                };
                let weight: f64 = value.text.parse().unwrap_or(0.0);
                if weight > 0.0 && weight.is_finite() {
                    ratios.push((kind, weight));
                }
            }
            // In whatever order they are given, they are told by their names.
            ratios.sort_by_key(|(kind, _)| kind.name());
            if ratios.is_empty() {
                let what = "Must specify at least one command with a non-zero ratio";
                return Err(LineError::at(word, what, "Write ratio(read=1,write=1)."));
            }
        }
        let default = Word { text: "GAUSSIAN(1..10)".to_owned(), column: command.column };
        let clustering = drawn(chosen.get("clustering=").unwrap_or(&default))?;
        if clustering.distribution.max() < 1 {
            let word = chosen.get("clustering=").unwrap_or(&default);
            let what = "A run of operations of one kind must have some";
            return Err(LineError::at(word, what, "Write clustering=FIXED(1) or more."));
        }
        self.run(Command::Mixed { ratios, clustering }, &chosen, line)
    }

    /// The rest of the line.
    fn run(
        mut self,
        command: Command,
        chosen: &Chosen,
        mut line: Line,
    ) -> Result<Asked, LineError> {
        let shown = Shown::of(&line);
        let end = self.end(chosen, chosen.grouping)?;
        let truncate = truncate(chosen);
        let upper = |prefix: &str, default: &str| {
            chosen.get(prefix).map_or(default.to_owned(), |word| word.text.to_uppercase())
        };
        let (consistency, serial_consistency) =
            (upper("cl=", "LOCAL_ONE"), upper("serial-cl=", "SERIAL"));
        let is_user = matches!(command, Command::User(_));
        if chosen.has("serial-cl=") && !is_user {
            self.ignored("serial-cl=", "nothing here is a conditional statement");
        }
        let fixed = |text: &str, column| Word { text: text.to_owned(), column };
        let add = drawn(chosen.get("add=").unwrap_or(&fixed("fixed(1)", 1)))?;
        if chosen.has("add=") && !is_user && !command.kinds().any(|kind| kind == Kind::CounterWrite)
        {
            self.ignored("add=", "no counter is written");
        }
        let key_size = chosen.get("keysize=").map_or(Ok(10), |word| self.key_size(word))?;
        self.send_to(&mut line)?;
        let port = self.port(&mut line)?;
        let rate = self.rate(&mut line, &command, end)?;
        let (population, order) = self.population(&mut line, &command, end)?;
        let token_range = self.token_range(&mut line, &command)?;
        let (insert, visits) = self.insert(&mut line, is_user)?;
        let columns = self.columns(&mut line, &command)?;
        let errors = self.errors(&mut line, is_user)?;
        let log = self.log(&mut line)?;
        let mode = self.mode(&mut line, port)?;
        let hosts = self.hosts(&mut line)?;
        let schema = self.schema(&mut line, &command)?;
        self.transport(&mut line)?;
        let graph = self.graph(&mut line)?;
        nothing_left(&line)?;
        let mut settings = Settings {
            compat: self.compat,
            command,
            end,
            warm_up: !chosen.has("no-warmup"),
            truncate,
            consistency,
            serial_consistency,
            key_size,
            add,
            rate,
            population,
            order,
            insert,
            visits,
            token_range,
            columns,
            schema,
            hosts,
            mode,
            errors,
            log,
            graph,
            shown,
            notices: self.notices,
        };
        user::check(&mut settings)?;
        Ok(Asked::Run(Box::new(settings)))
    }

    /// Says of a word that it changes nothing here, and why.
    fn ignored(&mut self, word: &str, why: &str) {
        self.notices.push(format!("{word} has no effect: {why}."));
    }

    fn key_size(&self, word: &Word) -> Result<usize, LineError> {
        let size: u64 = number(word, "keysize=")?;
        // What a partition key may have in Cassandra.
        if (1..=65_535).contains(&size) {
            return Ok(size as usize);
        }
        let what = format!("Invalid value {size}; a key has 1 to 65535 bytes");
        Err(LineError::at(word, what, "Write keysize=10."))
    }

    fn end(&self, chosen: &Chosen, form: usize) -> Result<End, LineError> {
        let whole = |prefix: &str, default: u64| {
            chosen.get(prefix).map_or(Ok(default), |word| number(word, prefix))
        };
        if let (1, Some(word)) = (form, chosen.get("n=")) {
            return Ok(End::Count(number(word, "n=")?));
        }
        if let (2, Some(word)) = (form, chosen.get("duration=")) {
            let (digits, unit) = word.text.split_at(word.text.len() - 1);
            let unit = match unit {
                "s" | "S" => TimeUnit::Seconds,
                "m" | "M" => TimeUnit::Minutes,
                _ => TimeUnit::Hours,
            };
            let amount: u64 = number(&Word { text: digits.to_owned(), ..*word }, "duration=")?;
            // A year; beyond, times in nanoseconds would not be kept.
            if amount == 0 || amount.saturating_mul(unit.seconds()) > 366 * 86_400 {
                let what = format!("Invalid value {}; a run lasts 1s to a year", word.text);
                return Err(LineError::at(word, what, "Write duration=30s."));
            }
            return Ok(End::Time { amount, unit });
        }
        let target = chosen.get("err<").map_or(0.02, |word| word.text.parse().unwrap_or(0.02));
        let (intervals_min, intervals_max) = (whole("n>", 30)?, whole("n<", 200)?);
        Ok(End::Uncertainty { target, intervals_min, intervals_max })
    }
}

/// That every group of the line was read.
fn nothing_left(line: &Line) -> Result<(), LineError> {
    if let Some(group) = line.groups.first() {
        let left: Vec<_> = line.groups.iter().map(|group| &group.name[..]).collect();
        let what = "Error processing command line arguments. The following were ignored:";
        let word = Word { text: group.name.clone(), column: group.column };
        let known: Vec<_> = table::GROUPS.iter().map(|(name, ..)| *name).collect();
        let cure = format!("Groups are {}.", known.join(" "));
        return Err(LineError::at(&word, format!("{what} {}", left.join(" ")), cure));
    }
    Ok(())
}

/// When tables are emptied.
fn truncate(chosen: &Chosen) -> Truncate {
    match chosen.get("truncate=").map(|word| word.text.to_lowercase()).as_deref() {
        Some("once") => Truncate::Once,
        Some("always") => Truncate::Always,
        _ => Truncate::Never,
    }
}

/// Names of columns that an option lists or counts, and their number as written.
fn names_of(chosen: &Chosen) -> Result<(Vec<String>, Option<Drawn>), LineError> {
    /// Beyond, a frame would not hold a row of them.
    const COLUMNS_MAX: i64 = 10_000;
    if let Some(word) = chosen.get("names=") {
        let mut names: Vec<String> = word.text.split(',').map(str::to_owned).collect();
        names.sort_unstable();
        let twice = names.windows(2).any(|pair| pair[0] == pair[1]);
        let odd = |name: &String| name.is_empty() || name.contains('"') || name == "key";
        if twice || names.iter().any(odd) {
            let what = format!("Invalid value {}; must be names of columns", word.text);
            return Err(LineError::at(word, what, "Write each name once: names=A,B."));
        }
        return Ok((names, None));
    }
    let default = Word { text: "FIXED(5)".to_owned(), column: 1 };
    let word = chosen.get("n=").unwrap_or(&default);
    let count = drawn(word)?;
    let most = count.distribution.max();
    if !(1..=COLUMNS_MAX).contains(&most) {
        let what = format!("Invalid value {}; a table has 1 to {COLUMNS_MAX} columns", word.text);
        return Err(LineError::at(word, what, "Write n=FIXED(5)."));
    }
    Ok((column_names(most as usize), Some(count)))
}

/// Credentials of the words that have them.
fn credentials(chosen: &Chosen) -> Option<Credentials> {
    let user = chosen.get("user=")?.text.clone();
    let password = chosen.get("password=").map_or(String::new(), |word| word.text.clone());
    Some(Credentials { user, password: Secret::new(password) })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
