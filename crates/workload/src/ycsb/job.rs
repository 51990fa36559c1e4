//! A command line of YCSB, read with YCSB's own defaults: line -> what is driven, how, and how it
//! is told.
//!
//! Here `recordcount` and `operationcount` default to 0, which stands for 2147483647 records and
//! for no limit, `threadcount` to 1; what is no property is told and not refused, as the original
//! passes it over. Source: Client and CoreWorkload of YCSB at commit d9faaac.

use super::binding::{self, Binding};
use super::compile;
use super::line::{Command, Line, LineError, REDACTED, is_secret};
use super::measurement::{Measurement, check_kept};
use super::names;
use super::properties::{Properties, PropertiesError};
use super::reader::Reader;
use super::{YcsbError, YcsbPlan};
use thiserror::Error;

/// What a line asks for.
#[derive(Debug, Clone)]
pub struct Job {
    /// The phase.
    pub command: Command,
    /// What is driven.
    pub binding: Binding,
    /// The plan; its load phase or its mix is what is driven.
    pub workload: YcsbPlan,
    /// What is measured and told.
    pub measurement: Measurement,
    /// Logical clients.
    pub threads: u32,
    /// Operations; None ends by time or never.
    pub operations: Option<u64>,
    /// Clients poll for the moment an operation is due (`spin.sleep`).
    pub spin: bool,
    /// A password stands on the line or in a file.
    pub password: bool,
    /// All properties as they were read, secrets left out.
    pub properties: Vec<(String, String)>,
    /// For stdout, where the original says it.
    pub warnings: Vec<String>,
    /// What is used otherwise than given, or not at all: sentences.
    pub notices: Vec<String>,
}

/// Why a line cannot be carried out.
#[derive(Debug, Error)]
pub enum JobError {
    /// The line.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A property file.
    #[error(transparent)]
    Properties(#[from] PropertiesError),
    /// A property.
    #[error(transparent)]
    Ycsb(#[from] YcsbError),
    /// No phase.
    #[error("the line names no phase; begin it with load or run, or give -load or -t")]
    Command,
    /// No binding.
    #[error("the line names no binding; choose cassandra-cql, scylla, aerospike or basic")]
    Binding,
    /// No workload class.
    #[error(
        "Missing property: workload; give a workload file with -P, or \
         -p workload=site.ycsb.workloads.CoreWorkload"
    )]
    Workload,
}

/// What 0 records stand for.
const RECORDS_OF_ZERO: &str = "2147483647";

/// Booleans that Java reads as false unless they say `true`.
const BOOLEANS: [&str; 10] = [
    "readallfields",
    "readallfieldsbyname",
    "writeallfields",
    "dataintegrity",
    "status",
    "hdrhistogram.fileoutput",
    "measurement.histogram.verbose",
    "measurement.raw.no_summary",
    "reportlatencyforeacherror",
    "spin.sleep",
];

impl Job {
    /// Reads a line with its files.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn read(line: &Line) -> Result<Self, JobError> {
        let given = line.properties()?;
        let command = match (line.command, given.get("dotransactions")) {
            (Some(command), _) => command,
            (None, Some(run)) if run.eq_ignore_ascii_case("true") => Command::Run,
            (None, Some(_)) => Command::Load,
            (None, None) => return Err(JobError::Command),
        };
        let name = given.get("db").or(line.binding.as_deref()).ok_or(JobError::Binding)?;
        let mut notices = line.notices.clone();
        let properties = as_java(&given, &mut notices);
        let reader = Reader::new(&[], &properties);
        let binding = Binding::read(name, &reader, &mut notices)?;
        if given.get("workload").is_none() {
            return Err(JobError::Workload);
        }
        told(&given, &binding, &mut notices);
        let mut workload = compiled(command, &given, &reader)?;
        let operations = match command {
            Command::Load => Some(workload.plan.keys.loaded),
            Command::Run => workload.settings.operations,
        };
        let measurement = Measurement::read(&reader, &mut notices)?;
        check_kept(&measurement, operations)?;
        let (threads, warnings) = threads(workload.settings.threads.unwrap_or(1), operations);
        notices.append(&mut workload.notices);
        Ok(Self {
            command,
            binding,
            measurement,
            threads,
            operations,
            spin: reader.boolean("spin.sleep", false)?,
            password: binding::has_password(&given),
            properties: shown(&given),
            warnings,
            notices,
            workload,
        })
    }
}

/// The plan, with the keys of a load counted as YCSB counts its operations: `insertcount`, else
/// all of `recordcount`, from `insertstart` on.
fn compiled(
    command: Command,
    given: &Properties,
    reader: &Reader<'_>,
) -> Result<YcsbPlan, YcsbError> {
    let settings = compile::settings(reader, None)?;
    let mut plan = compile::plan(command.name(), reader, &settings, None)?;
    if command == Command::Load && given.get("insertcount").is_none() {
        plan.keys.loaded = settings.records;
        plan.keys.records = plan.keys.start.saturating_add(settings.records);
    }
    let notices = match command {
        Command::Run => compile::notices(reader)?,
        Command::Load => Vec::new(),
    };
    Ok(YcsbPlan { plan, settings, notices })
}

fn threads(wanted: u32, operations: Option<u64>) -> (u32, Vec<String>) {
    match operations {
        Some(most) if u64::from(wanted) > most && most > 0 => {
            let warning = "Warning: the threadcount is bigger than recordcount, the threadcount \
                           will be recordcount!";
            (most as u32, vec![warning.to_owned()])
        }
        _ => (wanted, Vec::new()),
    }
}

/// The properties that are looked at, in the form in which Java understands them.
fn as_java(given: &Properties, notices: &mut Vec<String>) -> Properties {
    let mut properties = Properties::new();
    properties.insert("recordcount", RECORDS_OF_ZERO);
    for (name, value) in given.iter() {
        let is_zero = || value.trim().parse() == Ok(0.0);
        let boolean = BOOLEANS.contains(&name) || binding::BOOLEANS.contains(&name);
        let read = match name {
            _ if boolean => {
                if value.eq_ignore_ascii_case("true") {
                    "true"
                } else {
                    "false"
                }
            }
            "recordcount" if is_zero() => RECORDS_OF_ZERO,
            "insertorder" => {
                if value == "hashed" {
                    "hashed"
                } else {
                    "ordered"
                }
            }
            "hotspotdatafraction" | "hotspotopnfraction" => match value.trim().parse::<f64>() {
                Ok(fraction) if !(0.0..=1.0).contains(&fraction) => {
                    notices.push(format!("{name}={fraction} is outside 0 to 1; it counts as 0"));
                    "0"
                }
                _ => value,
            },
            // A load goes on here whatever it says.
            "core_workload_insertion_keep_going_on_error" => continue,
            _ => value,
        };
        properties.insert(name, read);
    }
    properties
}

/// Properties that are YCSB's and do nothing here, and why; a final dot stands for all of them.
const WITHOUT_EFFECT: [(&str, &str); 8] = [
    ("columnfamily", "a table has one family of columns"),
    ("debug", "requests are not logged"),
    ("htrace.", "requests are not traced"),
    ("maxscanrate", "it belongs to another client"),
    ("measurement.trackjvm", "there is no JVM"),
    ("scanoptimelimit", "it belongs to another client"),
    ("silence", "it belongs to another client"),
    ("discardscannedrecord", "scanned records are never kept"),
];

/// Tells what of the properties does nothing.
fn told(given: &Properties, binding: &Binding, notices: &mut Vec<String>) {
    let mut unknown = Vec::new();
    for (name, _) in given.iter() {
        let of_ours = |known: &&(&str, &str)| {
            name == known.0 || known.0.ends_with('.') && name.starts_with(known.0)
        };
        if let Some((_, why)) = WITHOUT_EFFECT.iter().find(of_ours) {
            notices.push(format!("property {name} has no effect: {why}"));
        } else if !names::is_honoured(name) && !names::is_of_client(name) && !binding.has(name) {
            unknown.push(names::shown(name));
        }
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        notices.push(format!(
            "no property of YCSB's core workload, client or this binding, and without effect: \
             {names}"
        ));
    }
}

fn shown(given: &Properties) -> Vec<(String, String)> {
    let value = |name: &str, value: &str| match is_secret(name) && !value.is_empty() {
        true => REDACTED.to_owned(),
        false => value.to_owned(),
    };
    given.iter().map(|(name, text)| (name.to_owned(), value(name, text))).collect()
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
