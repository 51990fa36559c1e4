//! The two tables of a run: `trials.csv`, a row per trial, and `counters.csv`, a series over time.

use crate::manifest::Verdict;
use crate::summary::{Stats, Summary};
use std::io::{self, Read, Write};
use thiserror::Error;

/// Why a table could not be written or read.
#[derive(Debug, Error)]
#[error("{table}: {source}; check the free space, or that the file is a table of wideload")]
pub struct TableError {
    table: &'static str,
    source: csv::Error,
}

impl TableError {
    /// What the system says, where that is why.
    ///
    /// # Errors
    /// The error itself, where it is another.
    pub fn into_io(self) -> Result<io::Error, Self> {
        match self.source.kind() {
            csv::ErrorKind::Io(_) => Ok(self.source.into()),
            _ => Err(self),
        }
    }
}

pub(crate) fn failed(table: &'static str) -> impl Fn(csv::Error) -> TableError {
    move |source| TableError { table, source }
}

/// One trial in `trials.csv`. Latencies are over all its operations merged, never averaged.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRow {
    /// Number from 1.
    pub trial: u32,
    /// Workload, as in the summary.
    pub workload: String,
    /// Kind of target, as in the summary.
    pub target: String,
    /// What this trial varies: name and value with unit; the same names in all rows.
    pub factors: Vec<(String, String)>,
    /// Measured operations of any outcome.
    pub ops: u64,
    /// Ok operations per second.
    pub ops_s: f64,
    /// First scheduled to last done.
    pub duration_s: f64,
    /// Operations that did not end ok.
    pub errors: u64,
    /// Scheduled rate of an open loop.
    pub scheduled_rate_s: Option<f64>,
    /// Service time of ok and timeouts.
    pub service: Option<Stats>,
    /// Response time of ok and timeouts; None when the rate was missed.
    pub response: Option<Stats>,
    /// Lag of all that was sent.
    pub lag: Option<Stats>,
    /// How it ended.
    pub verdict: String,
    /// Codes of its caveats.
    pub caveats: Vec<String>,
}

impl TrialRow {
    /// The row of a trial, without factors: `service`, `response` and `lag` are over all its
    /// operations.
    #[must_use]
    pub fn of(
        trial: u32,
        summary: &Summary,
        [service, response, lag]: [Option<Stats>; 3],
        verdict: Verdict,
    ) -> Self {
        Self {
            trial,
            workload: summary.workload.clone(),
            target: summary.target.kind.clone(),
            factors: Vec::new(),
            ops: summary.ops,
            ops_s: summary.ops_s,
            duration_s: summary.duration_s,
            errors: summary.errors,
            scheduled_rate_s: summary.scheduled_rate_s,
            service,
            response,
            lag,
            verdict: verdict.name().to_owned(),
            caveats: summary.caveats.iter().map(|caveat| caveat.code.clone()).collect(),
        }
    }
}

const STATS: [&str; 6] = ["mean", "p50", "p90", "p99", "p999", "max"];

fn stat_fields(stats: Option<Stats>) -> [String; 6] {
    match stats {
        Some(s) => [s.mean, s.p50, s.p90, s.p99, s.p999, s.max].map(|us| us.to_string()),
        None => Default::default(),
    }
}

/// Whether `trials.csv` has a column of this name whatever is varied: no factor may be called so.
#[must_use]
pub fn is_own_column(name: &str) -> bool {
    const BEFORE: [&str; 8] =
        ["trial", "workload", "target", "ops", "ops_s", "duration_s", "errors", "scheduled_rate_s"];
    let is_stat = |kind: &str| {
        let stat = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix("_us_"));
        stat.is_some_and(|stat| STATS.contains(&stat))
    };
    BEFORE.contains(&name)
        || ["verdict", "caveats"].contains(&name)
        || ["service", "response", "lag"].into_iter().any(is_stat)
}

/// Writes `trials.csv`. The header comes with the first row, which decides the factors.
pub struct TrialsWriter<W: Write> {
    out: csv::Writer<W>,
    started: bool,
}

impl<W: Write> TrialsWriter<W> {
    /// A table without rows.
    pub fn new(out: W) -> Self {
        Self { out: csv::WriterBuilder::new().from_writer(out), started: false }
    }

    /// Adds a row and flushes it, so that an aborted experiment keeps what it has.
    pub fn row(&mut self, row: &TrialRow) -> Result<(), TableError> {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        if !self.started {
            self.started = true;
            let mut header = names(&["trial", "workload", "target"]);
            header.extend(row.factors.iter().map(|(name, _)| name.clone()));
            header.extend(names(&["ops", "ops_s", "duration_s", "errors", "scheduled_rate_s"]));
            for kind in ["service", "response", "lag"] {
                header.extend(STATS.iter().map(|stat| format!("{kind}_us_{stat}")));
            }
            header.extend(names(&["verdict", "caveats"]));
            self.out.write_record(&header).map_err(failed("trials.csv"))?;
        }
        let mut fields = vec![row.trial.to_string(), row.workload.clone(), row.target.clone()];
        fields.extend(row.factors.iter().map(|(_, value)| value.clone()));
        fields.extend([
            row.ops.to_string(),
            row.ops_s.to_string(),
            row.duration_s.to_string(),
            row.errors.to_string(),
            row.scheduled_rate_s.map(|r| r.to_string()).unwrap_or_default(),
        ]);
        for stats in [row.service, row.response, row.lag] {
            fields.extend(stat_fields(stats));
        }
        fields.extend([row.verdict.clone(), row.caveats.join(";")]);
        self.out.write_record(&fields).map_err(failed("trials.csv"))?;
        self.out.flush().map_err(|e| failed("trials.csv")(e.into()))
    }
}

/// Reads `trials.csv`, at most `rows_max` rows, and whether there were more. Columns that
/// [`TrialsWriter`] does not write itself are factors. Rows without a number of the trial are left
/// out; a figure that is no number is 0 or None.
pub fn read_trials(input: impl Read, rows_max: usize) -> Result<(Vec<TrialRow>, bool), TableError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let header = reader.headers().map_err(failed("trials.csv"))?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed("trials.csv"))?;
        if rows.len() == rows_max {
            return Ok((rows, true));
        }
        let fields: Vec<(&str, &str)> = header.iter().zip(record.iter()).collect();
        rows.extend(trial_row(&fields));
    }
    Ok((rows, false))
}

fn trial_row(fields: &[(&str, &str)]) -> Option<TrialRow> {
    const KNOWN: [&str; 10] = [
        "trial",
        "workload",
        "target",
        "ops",
        "ops_s",
        "duration_s",
        "errors",
        "scheduled_rate_s",
        "verdict",
        "caveats",
    ];
    let text = |name: &str| fields.iter().find(|(n, _)| *n == name).map_or("", |(_, text)| text);
    let number = |name: &str| text(name).parse::<f64>().ok().filter(|n| n.is_finite());
    let stats = |kind: &str| {
        let value = |stat: &str| number(&format!("{kind}_us_{stat}"));
        let [mean, p50, p90, p99, p999, max] = STATS.map(value);
        Some(Stats { mean: mean?, p50: p50?, p90: p90?, p99: p99?, p999: p999?, max: max? })
    };
    let is_factor = |name: &str| {
        let kinds = ["service_us_", "response_us_", "lag_us_"];
        !KNOWN.contains(&name) && !kinds.iter().any(|kind| name.starts_with(kind))
    };
    let factors = fields.iter().filter(|(name, _)| is_factor(name));
    let caveats = text("caveats").split(';').filter(|code| !code.is_empty());
    Some(TrialRow {
        trial: text("trial").parse().ok()?,
        workload: text("workload").to_owned(),
        target: text("target").to_owned(),
        factors: factors.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ops: text("ops").parse().unwrap_or(0),
        ops_s: number("ops_s").unwrap_or(0.0),
        duration_s: number("duration_s").unwrap_or(0.0),
        errors: text("errors").parse().unwrap_or(0),
        scheduled_rate_s: number("scheduled_rate_s"),
        service: stats("service"),
        response: stats("response"),
        lag: stats("lag"),
        verdict: text("verdict").to_owned(),
        caveats: caveats.map(str::to_owned).collect(),
    })
}

/// One value of a series in `counters.csv`.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Seconds since the start of the measured window; negative while warming.
    pub t_s: f64,
    /// The host it was read on.
    pub host: String,
    /// Where it comes from: `client`, `target`, `procfs`.
    pub source: String,
    /// Which metric, unit not in the name.
    pub metric: String,
    /// The value.
    pub value: f64,
    /// Its unit: `share`, `MiB`, `1/s`.
    pub unit: String,
}

/// Writes `counters.csv`.
pub struct CountersWriter<W: Write> {
    out: csv::Writer<W>,
}

const COUNTER_COLUMNS: [&str; 6] = ["t_s", "host", "source", "metric", "value", "unit"];

impl<W: Write> CountersWriter<W> {
    /// A table with its header.
    pub fn new(out: W) -> Result<Self, TableError> {
        let mut out = csv::WriterBuilder::new().from_writer(out);
        out.write_record(COUNTER_COLUMNS).map_err(failed("counters.csv"))?;
        Ok(Self { out })
    }

    /// Adds a value.
    pub fn write(&mut self, c: &Counter) -> Result<(), TableError> {
        let (t_s, value) = (format!("{:.3}", c.t_s), c.value.to_string());
        let fields = [&t_s, &c.host, &c.source, &c.metric, &value, &c.unit];
        self.out.write_record(fields).map_err(failed("counters.csv"))
    }

    /// Writes what is buffered to the file.
    pub fn flush(&mut self) -> Result<(), TableError> {
        self.out.flush().map_err(|e| failed("counters.csv")(e.into()))
    }
}

/// Reads `counters.csv` row by row, at most `rows_max` of them, and tells whether there were more.
/// Rows whose time or value is no number are left out.
pub fn each_counter(
    input: impl Read,
    rows_max: usize,
    mut take: impl FnMut(Counter),
) -> Result<bool, TableError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(failed("counters.csv"))?;
        if number == rows_max {
            return Ok(true);
        }
        let text = |i: usize| record.get(i).unwrap_or_default().to_owned();
        let number = |i: usize| record.get(i)?.parse::<f64>().ok().filter(|n| n.is_finite());
        let (Some(t_s), Some(value)) = (number(0), number(4)) else { continue };
        let (host, source, metric, unit) = (text(1), text(2), text(3), text(5));
        take(Counter { t_s, host, source, metric, value, unit });
    }
    Ok(false)
}

/// Reads `counters.csv` as [`each_counter`] does, into memory.
pub fn read_counters(
    input: impl Read,
    rows_max: usize,
) -> Result<(Vec<Counter>, bool), TableError> {
    let mut rows = Vec::new();
    let more = each_counter(input, rows_max, |row| rows.push(row))?;
    Ok((rows, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_per_trial_under_one_header() {
        let stats = Stats { mean: 1.5, p50: 1.0, p90: 2.0, p99: 3.0, p999: 4.0, max: 5.0 };
        let mut row = TrialRow {
            trial: 1,
            workload: "ycsb:a".into(),
            target: "scylla".into(),
            factors: vec![("threads".into(), "64".into())],
            ops: 10,
            ops_s: 2.5,
            duration_s: 4.0,
            errors: 1,
            scheduled_rate_s: None,
            service: Some(stats),
            response: None,
            lag: None,
            verdict: "ok".into(),
            caveats: vec!["rate-missed".into(), "errors".into()],
        };
        let mut bytes = Vec::new();
        let mut table = TrialsWriter::new(&mut bytes);
        table.row(&row).unwrap();
        row.trial = 2;
        row.factors[0].1 = "a,b".into();
        table.row(&row).unwrap();
        drop(table);
        let (rows, more) = read_trials(&bytes[..], 10).unwrap();
        assert_eq!((rows.len(), &rows[1], more), (2, &row, false));
        assert!(read_trials(&bytes[..], 1).unwrap().1);
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("trial,workload,target,threads,ops,ops_s,duration_s,errors,"));
        assert!(lines[0].ends_with("lag_us_max,verdict,caveats"));
        let first =
            "1,ycsb:a,scylla,64,10,2.5,4,1,,1.5,1,2,3,4,5,,,,,,,,,,,,,ok,rate-missed;errors";
        assert_eq!(lines[1], first);
        assert!(lines[2].starts_with("2,ycsb:a,scylla,\"a,b\",10,"));
    }

    #[test]
    fn counters_come_back_and_are_bounded() {
        let mut bytes = Vec::new();
        let mut table = CountersWriter::new(&mut bytes).unwrap();
        let counter = |t_s: f64| Counter {
            t_s,
            host: "local".into(),
            source: "client".into(),
            metric: "busy, worker 0".into(),
            value: 0.25,
            unit: "share".into(),
        };
        (0..3).for_each(|t| table.write(&counter(f64::from(t))).unwrap());
        table.flush().unwrap();
        drop(table);
        bytes.extend(b"x,local,client,busy,nothing,share\n");
        let (rows, more) = read_counters(&bytes[..], 10).unwrap();
        assert_eq!((rows, more), ((0..3).map(|t| counter(f64::from(t))).collect(), false));
        assert!(read_counters(&bytes[..], 2).unwrap().1);
    }
}
