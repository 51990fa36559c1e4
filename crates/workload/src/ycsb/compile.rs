//! From checked properties to a plan: keys, values, statements, operations.
//!
//! Source: CoreWorkload.init, doTransaction* and createOperationGenerator; the cassandra-cql
//! binding for the key column's name and for which reads take all columns unnamed.

use super::reader::{Reader, refuse};
use super::{Settings, YcsbError};
use crate::keys::{Distribution, KeyOrder, KeySpace};
use crate::lengths::Lengths;
use crate::plan::{Action, Cells, Operation, Plan, Schema, Statement, Step};
use crate::values::{Content, Values};
use std::path::Path;
use units::{Bytes, read_plain_text};

/// Records when nobody says how many.
const RECORDS_DEFAULT: u64 = 100_000;
/// Most records, and highest key number.
const RECORDS_MAX: u64 = 1 << 62;
/// Longest field in bytes.
const FIELD_SIZE_MAX: u32 = 1 << 20;
/// Largest histogram file.
const HISTOGRAM_SIZE_MAX: Bytes = Bytes(1 << 20);
/// Most new keys that a zipfian run leaves room for, per loaded key.
const NEW_KEYS_MAX: f64 = 100.0;
/// Proportions are decimals: so far from 1 may their sum be by rounding.
const SUM_TOLERANCE: f64 = 1e-6;
/// YCSB's own counters are Java ints.
const INT_MAX: u32 = i32::MAX as u32;

/// What an update does to a record of Aerospike: `replace` it, as YCSB's binding, or `upsert`.
const UPDATE: &str = "as.update";

/// Reads what concerns the load rather than the plan.
pub(super) fn settings(reader: &Reader<'_>, records: Option<u64>) -> Result<Settings, YcsbError> {
    let given = reader.integer("recordcount", RECORDS_DEFAULT, 1..=RECORDS_MAX)?;
    let records = records.unwrap_or(given);
    if !(1..=RECORDS_MAX).contains(&records) {
        let wanted = format!("a whole number from 1 to {RECORDS_MAX}");
        return Err(refuse("recordcount", &records.to_string(), wanted));
    }
    let insert_start = reader.integer("insertstart", 0, 0..=RECORDS_MAX)?;
    let rest = records.saturating_sub(insert_start).max(1);
    let insert_count = reader.integer("insertcount", rest, 1..=RECORDS_MAX)?;
    let needed = insert_start + insert_count;
    if needed > records {
        return Err(YcsbError::Keys { start: insert_start, count: insert_count, needed, records });
    }
    if reader.boolean("core_workload_insertion_keep_going_on_error", false)? {
        let wanted = "false; use core_workload_insertion_retry_limit to try failed inserts again";
        let name = "core_workload_insertion_keep_going_on_error";
        return Err(refuse(name, "true", wanted.to_owned()));
    }
    let core = ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];
    reader.word("workload", &core)?;
    let above_zero = |name, max| -> Result<_, YcsbError> {
        Ok(Some(reader.integer(name, 0, 0..=max)?).filter(|number| *number > 0))
    };
    Ok(Settings {
        records,
        insert_start,
        insert_count,
        operations: above_zero("operationcount", RECORDS_MAX)?,
        threads: match reader.given("threadcount") {
            Some(_) => Some(reader.small("threadcount", 1, 1..=1_000_000)?),
            None => None,
        },
        rate_ops_s: above_zero("target", 1_000_000_000)?,
        duration_s: above_zero("maxexecutiontime", INT_MAX.into())?,
        table: match reader.given("table") {
            Some(_) => Some(reader.identifier("table", "")?),
            None => None,
        },
        insertion_retry_limit: reader.small(
            "core_workload_insertion_retry_limit",
            0,
            0..=INT_MAX,
        )?,
        insertion_retry_interval_s: reader.small(
            "core_workload_insertion_retry_interval",
            3,
            0..=INT_MAX,
        )?,
        upserts: match reader.given(UPDATE) {
            Some(_) => Some(reader.word(UPDATE, &["replace", "upsert"])? == 1),
            None => None,
        },
    })
}

/// What of the properties is used otherwise than a reader may think.
pub(super) fn notices(reader: &Reader<'_>) -> Result<Vec<String>, YcsbError> {
    Ok(Mix::read(reader)?.notice().into_iter().collect())
}

/// Rows beyond this do not fit a frame of a server with its default limit of 16 MiB.
const ROW_BYTES_MAX: usize = 15 << 20;

/// Compiles the plan itself.
pub(super) fn plan(
    name: &str,
    reader: &Reader<'_>,
    settings: &Settings,
    operations: Option<u64>,
) -> Result<Plan, YcsbError> {
    let field_count = reader.small("fieldcount", 10, 1..=1000)? as usize;
    let prefix = reader.identifier("fieldnameprefix", "field")?;
    let mut statements = Statements { list: Vec::new(), columns: field_count };
    let mix = Mix::read(reader)?;
    let load = vec![Operation {
        name: "insert".into(),
        weight: 1.0,
        steps: vec![statements.all(Action::Insert, true)],
    }];
    let run = mix.operations(&Fields::read(reader)?, &mut statements);
    let values = Values { content: content(reader)? };
    let row_bytes = field_count * values.value_size_max();
    if row_bytes > ROW_BYTES_MAX {
        let (fields, longest) = (field_count, values.value_size_max());
        return Err(YcsbError::RowSize { fields, longest, row_bytes });
    }
    Ok(Plan {
        counters: None,
        workload: format!("ycsb:{name}"),
        schema: Schema {
            table: settings.table.clone().unwrap_or_else(|| "usertable".to_owned()),
            key_column: "y_id".to_owned(),
            columns: (0..field_count).map(|index| format!("{prefix}{index}")).collect(),
            cells: Cells::Text,
            timestamp_us: None,
        },
        load,
        run,
        statements: statements.list,
        keys: keys(reader, settings, operations.or(settings.operations), mix.insert)?,
        values,
        scan_lengths: scan_lengths(reader)?,
        runs: None,
        tables: None,
    })
}

/// Proportions as given.
struct Mix {
    read: f64,
    update: f64,
    insert: f64,
    scan: f64,
    read_modify_write: f64,
}

impl Mix {
    fn read(reader: &Reader<'_>) -> Result<Self, YcsbError> {
        let proportion = |name, default| {
            reader.real(name, default, "a number from 0 to 1000000000", |number| {
                (0.0..=1e9).contains(&number)
            })
        };
        let mix = Self {
            read: proportion("readproportion", 0.95)?,
            update: proportion("updateproportion", 0.05)?,
            insert: proportion("insertproportion", 0.0)?,
            scan: proportion("scanproportion", 0.0)?,
            read_modify_write: proportion("readmodifywriteproportion", 0.0)?,
        };
        if mix.sum() > 0.0 { Ok(mix) } else { Err(YcsbError::NoOperation) }
    }

    /// What people should know of proportions that are no shares of one whole.
    fn notice(&self) -> Option<String> {
        let sum = self.sum();
        ((sum - 1.0).abs() > SUM_TOLERANCE).then(|| {
            format!(
                "the proportions of the operations sum to {} and not to 1; they are scaled to it, \
                 as YCSB does",
                (sum * 1e6).round() / 1e6
            )
        })
    }

    fn sum(&self) -> f64 {
        self.read + self.update + self.insert + self.scan + self.read_modify_write
    }

    fn operations(&self, fields: &Fields, statements: &mut Statements) -> Vec<Operation> {
        let mut list = Vec::new();
        let mut add =
            |name: &'static str, proportion: f64, steps: &mut dyn FnMut() -> Vec<Step>| {
                if proportion > 0.0 {
                    let weight = proportion / self.sum();
                    list.push(Operation { name: name.into(), weight, steps: steps() });
                }
            };
        let named = fields.by_name || fields.verified;
        add("read", self.read, &mut || vec![fields.reading(statements, Action::Read, named)]);
        add("update", self.update, &mut || vec![fields.updating(statements)]);
        add("insert", self.insert, &mut || vec![statements.all(Action::Insert, true)]);
        add("scan", self.scan, &mut || vec![fields.reading(statements, Action::Scan, false)]);
        add("read-modify-write", self.read_modify_write, &mut || {
            let mut read = fields.reading(statements, Action::Read, false);
            let update = fields.updating(statements);
            read.column_apart = read.choices > 1 && update.choices > 1;
            vec![read, update]
        });
        list
    }
}

/// Which fields operations touch.
struct Fields {
    read_all: bool,
    by_name: bool,
    write_all: bool,
    verified: bool,
}

impl Fields {
    fn read(reader: &Reader<'_>) -> Result<Self, YcsbError> {
        Ok(Self {
            read_all: reader.boolean("readallfields", true)?,
            by_name: reader.boolean("readallfieldsbyname", false)?,
            write_all: reader.boolean("writeallfields", false)?,
            verified: reader.boolean("dataintegrity", false)?,
        })
    }

    fn reading(&self, statements: &mut Statements, action: Action, by_name: bool) -> Step {
        if self.read_all { statements.all(action, by_name) } else { statements.each(action) }
    }

    fn updating(&self, statements: &mut Statements) -> Step {
        if self.write_all {
            statements.all(Action::Update, true)
        } else {
            statements.each(Action::Update)
        }
    }
}

/// Statements so far; steps that do the same share them.
struct Statements {
    list: Vec<Statement>,
    columns: usize,
}

impl Statements {
    /// A step with one statement over all columns.
    fn all(&mut self, action: Action, by_name: bool) -> Step {
        self.step(vec![Statement {
            action,
            columns: (0..self.columns).collect(),
            by_name,
            counts: false,
        }])
    }

    /// A step with a statement per column.
    fn each(&mut self, action: Action) -> Step {
        let one =
            |column| Statement { action, columns: vec![column], by_name: true, counts: false };
        self.step((0..self.columns).map(one).collect())
    }

    fn step(&mut self, wanted: Vec<Statement>) -> Step {
        let choices = wanted.len();
        let name = match wanted[0].action {
            Action::Read => "read",
            Action::Update => "update",
            Action::Insert => "insert",
            Action::Scan => "scan",
        };
        let known = self.list.windows(choices).position(|window| window == wanted);
        let first_statement = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.list.extend(wanted);
        }
        Step { first_statement, choices, name, column_apart: false }
    }
}

fn keys(
    reader: &Reader<'_>,
    settings: &Settings,
    operations: Option<u64>,
    insert_proportion: f64,
) -> Result<KeySpace, YcsbError> {
    let (records, loaded) = (settings.records, settings.insert_count);
    let distribution = distribution(reader, records, loaded)?;
    let expected = match distribution {
        Distribution::Zipfian => {
            let operations = operations.unwrap_or(records);
            let expected = operations as f64 * insert_proportion * 2.0;
            if expected > loaded as f64 * NEW_KEYS_MAX {
                return Err(YcsbError::NewKeys {
                    operations,
                    proportion: insert_proportion,
                    expected,
                    loaded,
                    needed: (expected / NEW_KEYS_MAX).ceil(),
                });
            }
            expected
        }
        _ => 0.0,
    };
    let orders = ["hashed", "ordered"];
    Ok(KeySpace {
        start: settings.insert_start,
        loaded,
        records,
        expected_new: expected as u64,
        order: match reader.word("insertorder", &orders)? {
            0 => KeyOrder::Hashed,
            _ => KeyOrder::Ordered,
        },
        zero_padding: reader.small("zeropadding", 1, 0..=100)? as usize,
        distribution,
    })
}

fn distribution(reader: &Reader<'_>, records: u64, loaded: u64) -> Result<Distribution, YcsbError> {
    let fraction = |name, default| {
        reader.real(name, default, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number))
    };
    let data_fraction = fraction("hotspotdatafraction", 0.2)?;
    let operation_fraction = fraction("hotspotopnfraction", 0.8)?;
    let percentile = reader.real(
        "exponential.percentile",
        95.0,
        "a number above 0 and below 100",
        |number| number > 0.0 && number < 100.0,
    )?;
    let newest = reader.real(
        "exponential.frac",
        0.857_142_857_1,
        "a number above 0, up to 1",
        |number| number > 0.0 && number <= 1.0,
    )?;
    let names = ["uniform", "zipfian", "latest", "hotspot", "exponential", "sequential"];
    Ok(match reader.word("requestdistribution", &names)? {
        0 => Distribution::Uniform,
        1 => Distribution::Zipfian,
        2 if records < 4 => return Err(YcsbError::Latest { records }),
        2 => Distribution::Latest,
        3 => {
            let hot_keys = (loaded as f64 * data_fraction) as u64;
            let set = match hot_keys {
                0 if operation_fraction > 0.0 => Some("hot"),
                hot if hot >= loaded && operation_fraction < 1.0 => Some("cold"),
                _ => None,
            };
            if let Some(set) = set {
                let keys = loaded;
                return Err(YcsbError::HotSet { set, data_fraction, operation_fraction, keys });
            }
            Distribution::Hotspot { hot_keys, operation_fraction }
        }
        4 => Distribution::Exponential { percentile, fraction: newest },
        _ => Distribution::Sequential,
    })
}

fn content(reader: &Reader<'_>) -> Result<Content, YcsbError> {
    let max = reader.small("fieldlength", 100, 0..=FIELD_SIZE_MAX)?;
    let min = reader.small("minfieldlength", 1, 0..=FIELD_SIZE_MAX)?;
    let names = ["constant", "uniform", "zipfian", "histogram"];
    let chosen = reader.word("fieldlengthdistribution", &names)?;
    let verified = reader.boolean("dataintegrity", false)?;
    if verified && chosen != 0 {
        return Err(YcsbError::Integrity { distribution: names[chosen].to_owned() });
    }
    if min > max && matches!(chosen, 1 | 2) {
        return Err(bounds("minfieldlength", min, "fieldlength", max));
    }
    Ok(match chosen {
        0 if verified => Content::Verified { size: max },
        0 => Content::Random(Lengths::Constant(max)),
        1 => Content::Random(Lengths::Uniform { min, max }),
        2 => Content::Random(Lengths::zipfian(min, max)),
        _ => Content::Random(histogram(reader.text("fieldlengthhistogram", "hist.txt"))?),
    })
}

fn histogram(path: &str) -> Result<Lengths, YcsbError> {
    let path = Path::new(path);
    let text = read_plain_text(path, HISTOGRAM_SIZE_MAX)
        .map_err(|source| YcsbError::HistogramFile { path: path.to_owned(), source })?;
    Lengths::histogram(&text, FIELD_SIZE_MAX)
        .map_err(|source| YcsbError::Histogram { path: path.to_owned(), source })
}

fn scan_lengths(reader: &Reader<'_>) -> Result<Lengths, YcsbError> {
    let min = reader.small("minscanlength", 1, 1..=INT_MAX)?;
    let max = reader.small("maxscanlength", 1000, 1..=INT_MAX)?;
    if min > max {
        return Err(bounds("minscanlength", min, "maxscanlength", max));
    }
    Ok(match reader.word("scanlengthdistribution", &["uniform", "zipfian"])? {
        0 => Lengths::Uniform { min, max },
        _ => Lengths::zipfian(min, max),
    })
}

fn bounds(low_name: &'static str, low: u32, high_name: &'static str, high: u32) -> YcsbError {
    YcsbError::Bounds { low_name, low: low.into(), high_name, high: high.into() }
}
