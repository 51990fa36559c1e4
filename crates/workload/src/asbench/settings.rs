//! Options of Aerospike's benchmarks -> what they ask for, with the defaults of each generation.
//!
//! In: a cut line and the text of a file of stages. Out: settings and notices, or why the line
//! cannot be carried out. An option without effect here is told, one that would change what is
//! measured is refused: none is ignored. Defaults are those of the tools' code, where their help
//! says something else.

use super::generation::{Generation, told_by};
use super::line::{Given, LineError, options};
use super::object;
use super::stages::{self, Stage};
use super::table::{LatencyShown, table};
use super::workload::{Kind, Workload};
use crate::objects::Value;
use std::ops::RangeInclusive;

/// Keys at most, and the highest of them.
const KEYS_MAX: u64 = 1 << 62;
/// Bytes of the name of a bin at most.
const BIN_NAME_SIZE_MAX: usize = 15;
/// Commands under way at most.
const COMMANDS_MAX: u64 = 1 << 20;
const PERCENTILES: &str = "50,90,99,99.9,99.99";

/// A command line as it is meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whose line it is.
    pub generation: Generation,
    /// What told it.
    pub told_by: String,
    /// Seeds, each with its port.
    pub hosts: Vec<String>,
    /// Namespace; over CQL the keyspace.
    pub namespace: String,
    /// Set; over CQL the table.
    pub set: String,
    /// Of the first bin; others are `NAME_2` and on.
    pub bin: String,
    /// What is done, one after the other.
    pub stages: Vec<Stage>,
    /// Clients of a synchronous stage.
    pub threads: u32,
    /// Commands under way in an asynchronous one.
    pub commands: u32,
    /// Threads that drive them.
    pub event_loops: u32,
    /// Of an attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Further attempts.
    pub retries: u32,
    /// Writes are acknowledged by the master alone.
    pub master_commits: bool,
    /// What is shown of latencies.
    pub latency: LatencyShown,
    /// Percentiles of the lines of asbench.
    pub percentiles: Vec<f64>,
    /// Where counts of latencies go every so many seconds.
    pub output_file: Option<String>,
    /// So many.
    pub output_period_s: u64,
    /// Directory of histograms.
    pub hdr_dir: Option<String>,
    /// How it is carried out.
    pub own: Own,
    /// What has no effect here, or another one, in sentences.
    pub notices: Vec<String>,
}

/// What the tools do not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// Over CQL instead of Aerospike's protocol.
    pub protocol: Option<String>,
    /// Keyspace and table are made where they are missing.
    pub create: bool,
    /// One worker on each, as text.
    pub client_cpus: Option<String>,
    /// Of all random choices.
    pub seed: Option<u64>,
    /// The run directory.
    pub out: Option<String>,
}

/// What a line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// To be carried out.
    Run(Box<Settings>),
    /// `--help`, `--usage`.
    Help,
    /// `--version`.
    Version,
}

/// Reads a line. `read` gives the text of the file of `--workload-stages`.
///
/// # Errors
/// When it means nothing, or asks for what is not built.
pub fn parse(
    words: &[String],
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Asked, LineError> {
    // Its own place in the line does not matter, nor what it decides how the line is cut.
    let compat = words.iter().zip(words.iter().skip(1)).find(|(word, _)| *word == "--compat");
    let joined = words.iter().find_map(|word| word.strip_prefix("--compat="));
    let named = joined.or(compat.map(|(_, name)| &name[..]));
    let (generation, why) = match named {
        Some(name) => (name.parse()?, format!("--compat {name}")),
        None => told_by(words),
    };
    let line = Line { generation, given: options(words, generation.cut())? };
    for (name, asked) in
        [("help", Asked::Help), ("usage", Asked::Help), ("version", Asked::Version)]
    {
        if line.given.iter().any(|given| given.name == name) {
            return Ok(asked);
        }
    }
    line.settings(why, read).map(|settings| Asked::Run(Box::new(settings)))
}

/// Options of one line.
struct Line {
    generation: Generation,
    given: Vec<Given>,
}

/// What cannot be done here, by name, and what to do instead.
const UNBUILT: &[(&str, &str)] = &[
    ("user", "run against a server without authentication"),
    ("password", "run against a server without authentication"),
    ("auth", "run against a server without authentication"),
    ("batch-size", "leave it out: each record is a command"),
    ("batch-read-size", "leave it out: each record is a command"),
    ("batch-write-size", "leave it out: each record is a command"),
    ("batch-delete-size", "leave it out: each record is a command"),
    ("expiration-time", "leave it out: records live as long as the namespace lets them"),
    ("compress", "leave it out"),
    ("compression-ratio", "leave it out: blobs are random throughout"),
    ("send-key", "leave it out: keys are sent as digests"),
    ("durable-delete", "leave it out: nothing is deleted"),
    ("services-alternate", "name the addresses that this host reaches"),
    ("rack-id", "leave it out: reads go to the master"),
    ("sleep-between-retries", "leave it out: further attempts follow at once"),
    ("max-error-rate", "leave it out: every operation is sent"),
    ("udf-package-name", "leave it out: no function is called"),
    ("upn", "leave it out: no function is called"),
    ("udf-function-name", "leave it out: no function is called"),
    ("ufn", "leave it out: no function is called"),
    ("udf-function-values", "leave it out: no function is called"),
    ("ufv", "leave it out: no function is called"),
];

/// What has no effect here, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("shared", "there is one client process, and nothing to share"),
    ("debug", "what fails is told in any case"),
    ("conn-pools-per-node", "each worker has connections of its own"),
    ("min-conns-per-node", "connections are made before the first command"),
    ("max-conns-per-node", "there are as many connections as commands under way"),
    ("async-min-conns-per-node", "connections are made before the first command"),
    ("async-max-conns-per-node", "there are as many connections as commands under way"),
    ("connect-timeout", "connections have the time limit of commands"),
    ("tender-interval", "the cluster is looked at by wideload's own rules"),
    ("error-rate-window", "errors are counted and do not hold commands back"),
    ("max-socket-idle", "connections are kept"),
];

impl Line {
    /// What was given of an option; of several the last, as there.
    fn value(&self, name: &str) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.name == name)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|given| given.value.clone())
    }

    fn number(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, LineError> {
        let Some(given) = self.value(name) else { return Ok(default) };
        number_in(&given.value, &range).ok_or_else(|| refused(given, &range))
    }

    fn word(&self, name: &str, known: &[&str]) -> Result<Option<String>, LineError> {
        let Some(given) = self.value(name) else { return Ok(None) };
        match known.contains(&&given.value[..]) {
            true => Ok(Some(given.value.clone())),
            false => Err(LineError::new(
                format!("{} {} is not known", given.written, given.value),
                format!("give {}", known.join(", ")),
            )),
        }
    }

    fn settings(
        &self,
        told_by: String,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Settings, LineError> {
        let mut notices = Vec::new();
        self.refuse_unbuilt()?;
        self.spellings(&mut notices);
        self.modes(&mut notices)?;
        let own = self.own()?;
        let over_cql = own.protocol.as_deref() == Some("cql");
        let port = self.number("port", if over_cql { 9042 } else { 3000 }, 1..=65_535)?;
        let hosts = hosts(&self.text("hosts").unwrap_or_else(|| "127.0.0.1".into()), port)?;
        let (bin, objects) = self.objects()?;
        let stages = self.stages(&objects, &mut notices, read)?;
        let latency = self.latency(&mut notices)?;
        self.of_stages(&own, &stages, &mut notices);
        Ok(Settings {
            generation: self.generation,
            told_by,
            hosts,
            namespace: self.name("namespace", "test")?,
            set: self.name("set", "testset")?,
            bin,
            stages,
            threads: self.number("threads", 16, 1..=10_000)? as u32,
            commands: self.number("async-max-commands", 50, 1..=COMMANDS_MAX)? as u32,
            event_loops: self.number("event-loops", 1, 1..=1024)? as u32,
            timeout_ms: self.timeout(&mut notices)?,
            retries: self.number("max-retries", 1, 0..=1000)? as u32,
            master_commits: self.word("commit-level", &["all", "master"])?.as_deref()
                == Some("master"),
            latency,
            percentiles: percentiles(&self.text("percentiles").unwrap_or_default())?,
            output_file: self.text("output-file"),
            output_period_s: self.number("output-period", 1, 1..=86_400)?,
            hdr_dir: self.text("hdr-hist"),
            own,
            notices,
        })
    }

    /// Options without effect, and those that are written in another way today.
    fn spellings(&self, notices: &mut Vec<String>) {
        for given in &self.given {
            let found = WITHOUT_EFFECT.iter().find(|(name, _)| *name == given.name);
            if let Some((_, why)) = found {
                notices.push(format!("{} has no effect: {why}.", given.written));
            }
            if self.generation == Generation::Two
                && given.written.starts_with("--")
                && given.written.contains(|c: char| c.is_ascii_uppercase())
            {
                notices.push(format!("{} is written --{} today.", given.written, given.name));
            }
        }
    }

    /// Options that the stages, or the protocol, leave without effect.
    fn of_stages(&self, own: &Own, stages: &[Stage], notices: &mut Vec<String>) {
        let over_cql = own.protocol.as_deref() == Some("cql");
        let is = |name: &str| self.value(name).is_some();
        let any = |which: fn(&Stage) -> bool| stages.iter().any(which);
        let ended = |stage: &Stage| {
            !stage.workload.is_random() && (stage.duration_s.is_some() || stage.ops.is_some())
        };
        let told = [
            (
                over_cql && is("commit-level"),
                "-M has no effect over CQL: one replica is waited for.",
            ),
            (
                over_cql && any(|stage| stage.workload.kind == Kind::ReadReplace),
                "Over CQL a write of RR leaves columns that it does not write, as one of RU.",
            ),
            (
                !over_cql && own.create,
                "--create has no effect: a set comes to be with its first record.",
            ),
            (
                any(ended),
                "-t has no effect on a stage that writes each key: it ends when they are written.",
            ),
            (
                is("threads") && any(|stage| stage.asynchronous),
                "-z has no effect on asynchronous stages: -c says how many commands are under way.",
            ),
            (
                is("event-loops") && any(|stage| !stage.asynchronous),
                "-W has no effect on synchronous stages: -z says how many clients there are.",
            ),
            (
                is("event-loops") && any(|stage| stage.asynchronous),
                "-W is the most workers that drive commands; there are never more than client \
                 cpus (--client-cpus).",
            ),
        ];
        let told = told.into_iter().filter(|(holds, _)| *holds);
        notices.extend(told.map(|(_, sentence)| sentence.to_owned()));
    }

    fn refuse_unbuilt(&self) -> Result<(), LineError> {
        for given in &self.given {
            let cure = match UNBUILT.iter().find(|(name, _)| *name == given.name) {
                Some((_, cure)) => *cure,
                None if given.name.starts_with("tls-") => "run against a port without TLS",
                None => continue,
            };
            let what = format!("{} is not built", given.written);
            return Err(LineError::new(what, cure));
        }
        Ok(())
    }

    /// From where is read, and what is waited for.
    fn modes(&self, notices: &mut Vec<String>) -> Result<(), LineError> {
        let replica = self.word("replica", &["master", "any", "sequence", "preferRack"])?;
        if replica.is_some_and(|replica| replica != "master") {
            notices.push("-C has no effect: every command goes to the master.".to_owned());
        }
        self.word("read-mode-ap", &["one", "all"])?;
        let modes = ["session", "linearize", "allowReplica", "allowUnavailable"];
        self.word("read-mode-sc", &modes)?;
        for (name, usual) in [("read-mode-ap", "one"), ("read-mode-sc", "session")] {
            if let Some(given) = self.value(name).filter(|given| given.value != usual) {
                let what = format!("{} {} is not built", given.written, given.value);
                return Err(LineError::new(what, format!("give {usual}, the default")));
            }
        }
        Ok(())
    }

    /// The name of the first bin, and what all hold.
    fn objects(&self) -> Result<(String, Vec<Value>), LineError> {
        let colons = self.generation.writes_colons();
        let bins = self.value("bin").or_else(|| self.value("bins"));
        let said = |error: object::ObjectError| LineError::new(error.to_string(), "see --help");
        let text = self.text("object-spec");
        if !colons {
            let bin = bins.map_or("testbin", |given| &given.value[..]).to_owned();
            let objects = object::fields(&text.unwrap_or_else(|| "I4".into())).map_err(said)?;
            let longest = bin_name(&bin, objects.len() - 1);
            if bin.is_empty() || longest.len() > BIN_NAME_SIZE_MAX {
                let cure = "a bin's name has 1 to 15 characters, the number behind it included";
                return Err(LineError::new(format!("'{longest}' is no name of a bin"), cure));
            }
            return Ok((bin, objects));
        }
        let count = match bins {
            Some(given) => {
                number_in(&given.value, &(1..=1000)).ok_or_else(|| refused(given, &(1..=1000)))?
            }
            None => 1,
        };
        let text = text.unwrap_or_else(|| "I".into());
        let kinds: Vec<&str> = match self.generation {
            // Java's tool takes a list of them, bin by bin.
            Generation::Java => text.split(',').collect(),
            _ => vec![&text],
        };
        let bins = (0..count as usize).map(|bin| kinds[bin % kinds.len()]);
        let fields = bins.map(|kind| object::field_before(kind, 1));
        let fields: Result<Vec<Vec<Value>>, _> = fields.collect();
        Ok(("testbin".to_owned(), fields.map_err(said)?.concat()))
    }

    fn stages(
        &self,
        objects: &[Value],
        notices: &mut Vec<String>,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Vec<Stage>, LineError> {
        let workload = self.text("workload").unwrap_or_else(|| "RU,50".into());
        let workload = Workload::parse(&workload, self.generation)?;
        let two = self.generation == Generation::Two;
        let duration_s = match self.value("duration") {
            // Before asbench the letter was for operations.
            Some(given) if !two && given.written == "-t" => None,
            Some(_) => Some(self.number("duration", 0, 0..=10_000_000)?),
            None => None,
        };
        let ops = match (self.value("transactions"), self.value("duration")) {
            (Some(given), _) => Some(given),
            (None, Some(given)) if !two && given.written == "-t" => Some(given),
            _ => None,
        };
        let ops = ops.map(|given| {
            number_in(&given.value, &(1..=KEYS_MAX)).ok_or_else(|| refused(given, &(1..=KEYS_MAX)))
        });
        let start_default = if two { 1 } else { 0 };
        let first = Stage {
            description: String::new(),
            workload,
            duration_s: duration_s.or(workload.is_random().then_some(10).filter(|_| two)),
            ops: ops.transpose()?,
            ops_per_s: self.number("throughput", 0, 0..=1_000_000_000)? as u32,
            key_start: self.number("start-key", start_default, 0..=KEYS_MAX)?,
            keys: self.number("keys", 1_000_000, 1..=KEYS_MAX)?,
            objects: objects.to_vec(),
            read_bins: self.bins_of("read-bins", objects.len())?,
            write_bins: self.bins_of("write-bins", objects.len())?,
            pause_s: 0,
            random: self.value("random").is_some(),
            asynchronous: self.value("async").is_some(),
        };
        first.check()?;
        match self.text("workload-stages") {
            None => Ok(vec![first]),
            Some(path) => {
                for name in ["workload", "duration", "throughput", "object-spec", "random"] {
                    if let Some(given) = self.value(name) {
                        let written = &given.written;
                        notices.push(format!("{written} is what stages that do not say so take."));
                    }
                }
                let unread = |why| LineError::new(format!("cannot read '{path}'"), why);
                let text = read(&path).map_err(unread)?;
                stages::parse(&text, &first)
            }
        }
    }

    fn bins_of(&self, name: &str, bins: usize) -> Result<Vec<usize>, LineError> {
        match self.value(name) {
            None => Ok((0..bins).collect()),
            Some(given) => stages::bins(&given.value, bins),
        }
    }

    fn timeout(&self, notices: &mut Vec<String>) -> Result<u64, LineError> {
        const RANGE: RangeInclusive<u64> = 0..=3_600_000;
        // The client library's own default, where the help says none.
        let both = self.number("timeout", 1000, RANGE)?;
        let of = |name| self.number(name, both, RANGE);
        let (read, write) = (of("read-timeout")?, of("write-timeout")?);
        if read != write {
            let what = format!("reads that time out after {read} ms and writes after {write} ms");
            return Err(LineError::new(what, "are not built: give both the same, with -T"));
        }
        let idle = self.number("socket-timeout", 30_000, RANGE)?;
        for name in ["read-socket-timeout", "write-socket-timeout"] {
            if self.number(name, idle, RANGE)? != idle {
                let what = format!("--{name} apart from --socket-timeout");
                return Err(LineError::new(what, "is not built: give --socket-timeout alone"));
            }
        }
        let limits = [read, idle].into_iter().filter(|ms| *ms > 0);
        let least = limits.min().unwrap_or(3_600_000);
        if read == 0 && idle == 0 {
            notices.push("Without a time limit an attempt ends after one hour.".to_owned());
        }
        Ok(least)
    }

    fn latency(&self, notices: &mut Vec<String>) -> Result<LatencyShown, LineError> {
        match self.value("latency") {
            None => Ok(LatencyShown::Nothing),
            Some(_) if self.generation == Generation::Two => Ok(LatencyShown::Percentiles),
            Some(given) => {
                let (table, notice) = table(&given.value, self.generation)?;
                notices.extend(notice);
                Ok(LatencyShown::Table(table))
            }
        }
    }

    fn name(&self, option: &str, default: &str) -> Result<String, LineError> {
        let name = self.text(option).unwrap_or_else(|| default.to_owned());
        match name.is_empty() || name.len() > 63 {
            true => Err(LineError::new(
                format!("'{name}' is no name of a {option}"),
                "it has 1 to 63 characters",
            )),
            false => Ok(name),
        }
    }

    fn own(&self) -> Result<Own, LineError> {
        let seed = match self.value("seed") {
            None => None,
            Some(_) => Some(self.number("seed", 1, 0..=u64::MAX)?),
        };
        Ok(Own {
            protocol: self.word("protocol", &["cql", "aerospike"])?,
            create: self.value("create").is_some(),
            client_cpus: self.text("client-cpus"),
            seed,
            out: self.text("out"),
        })
    }
}

/// The name of the bin of an index.
pub(super) fn bin_name(first: &str, index: usize) -> String {
    if index == 0 { first.to_owned() } else { format!("{first}_{}", index + 1) }
}

fn number_in(text: &str, range: &RangeInclusive<u64>) -> Option<u64> {
    text.trim().parse().ok().filter(|number| range.contains(number))
}

fn refused(given: &Given, range: &RangeInclusive<u64>) -> LineError {
    LineError::new(
        format!("{} {} is out of range", given.written, given.value),
        format!("give a whole number from {} to {}", range.start(), range.end()),
    )
}

/// Seeds with their ports: `host`, `host:port` or `host:tlsname:port` with commas between.
fn hosts(text: &str, port: u64) -> Result<Vec<String>, LineError> {
    let host = |host: &str| {
        let host = host.trim();
        // An address of IPv6 stands in brackets.
        let (name, behind) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, behind)) => (format!("[{name}]"), behind.strip_prefix(':')),
            None => match host.split_once(':') {
                Some((name, behind)) => (name.to_owned(), Some(behind)),
                None => (host.to_owned(), None),
            },
        };
        let port = behind.map_or(Some(port), |behind| behind.parse().ok());
        match port.filter(|port| (1..=65_535).contains(port) && !name.is_empty()) {
            Some(port) => Ok(format!("{name}:{port}")),
            None => Err(LineError::new(
                format!("'{host}' is no host"),
                "write HOST or HOST:PORT with commas between; names for TLS are not built",
            )),
        }
    };
    text.split(',').map(host).collect()
}

fn percentiles(text: &str) -> Result<Vec<f64>, LineError> {
    let text = if text.is_empty() { PERCENTILES } else { text };
    let one = |text: &str| {
        let number = text.trim().parse::<f64>().ok();
        number.filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| {
            LineError::new(
                format!("'{text}' is no percentile"),
                "write numbers from 0 to 100 with commas between",
            )
        })
    };
    text.split(',').map(one).collect()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
