//! Names: the six workload files as data, and which properties are honoured or refused.
//!
//! Source: YCSB's workloads/workload{a..f}, CoreWorkload, Client and the bindings' READMEs.

use super::YcsbError;
use super::properties::Properties;

/// What the files of the six workloads set, but for recordcount and operationcount (both 1000).
pub(super) fn workload_file(name: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match name {
        "a" => &[
            ("readproportion", "0.5"),
            ("updateproportion", "0.5"),
            ("requestdistribution", "zipfian"),
        ],
        "b" => &[
            ("readproportion", "0.95"),
            ("updateproportion", "0.05"),
            ("requestdistribution", "zipfian"),
        ],
        "c" => &[
            ("readproportion", "1"),
            ("updateproportion", "0"),
            ("requestdistribution", "zipfian"),
        ],
        "d" => &[
            ("readproportion", "0.95"),
            ("updateproportion", "0"),
            ("insertproportion", "0.05"),
            ("requestdistribution", "latest"),
        ],
        "e" => &[
            ("readproportion", "0"),
            ("updateproportion", "0"),
            ("insertproportion", "0.05"),
            ("scanproportion", "0.95"),
            ("requestdistribution", "zipfian"),
            ("maxscanlength", "100"),
            ("scanlengthdistribution", "uniform"),
        ],
        "f" => &[
            ("readproportion", "0.5"),
            ("updateproportion", "0"),
            ("readmodifywriteproportion", "0.5"),
            ("requestdistribution", "zipfian"),
        ],
        _ => return None,
    })
}

/// Properties that are read.
const HONOURED: [&str; 38] = [
    "as.update",
    "core_workload_insertion_keep_going_on_error",
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "exponential.frac",
    "exponential.percentile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "maxexecutiontime",
    "maxscanlength",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readallfields",
    "readallfieldsbyname",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "table",
    "target",
    "threadcount",
    "updateproportion",
    "workload",
    "writeallfields",
    "zeropadding",
];

const HISTOGRAMS: &str = "full histograms of every operation are always in the run directory";
const REPORT: &str = "use --out for the run directory and --json for a summary";
const INTERVALS: &str = "the run directory always holds the series; set their step with --interval";
const TARGET: &str = "name the database with the flags of `run` (--target, --protocol, \
                      --keyspace, --namespace, --consistency, --timeout, --connections)";

/// Properties of YCSB that are refused; a name with a final dot stands for all that begin with it.
const NO_EFFECT: [(&str, &str); 30] = [
    ("as.", TARGET),
    ("basicdb.", "for a target that does no work use `serve --storage null`"),
    ("cassandra.", TARGET),
    ("columnfamily", "a table has one family of columns; leave it out"),
    ("db", TARGET),
    ("debug", "leave it out"),
    ("discardscannedrecord", "scanned records are never kept; leave it out"),
    ("dotransactions", "--load and --skip-load choose whether the rows are loaded"),
    ("exporter", REPORT),
    ("exportfile", REPORT),
    ("hdrhistogram.", HISTOGRAMS),
    ("histogram.", HISTOGRAMS),
    ("hosts", TARGET),
    ("htrace.", "leave it out"),
    ("jdbc.", TARGET),
    ("label", "use --name"),
    ("latencytrackederrors", "outcomes are always told apart; leave it out"),
    ("maxscanrate", "use --rate or --throttle"),
    ("measurement.", "service time, response time and lag are always recorded; leave it out"),
    ("measurementtype", HISTOGRAMS),
    ("port", TARGET),
    ("reportlatencyforeacherror", "outcomes are always told apart; leave it out"),
    ("scanoptimelimit", "use --timeout"),
    ("scylla.", TARGET),
    ("silence", "leave it out"),
    ("status", "a live line is shown on a terminal; leave it out"),
    ("status.interval", "use --interval"),
    ("timeseries.", INTERVALS),
    ("timestampinterval", "it belongs to another workload class; leave it out"),
    ("timestampkey", "it belongs to another workload class; leave it out"),
];

/// Refuses the first property that is not honoured.
pub(super) fn check(properties: &Properties) -> Result<(), YcsbError> {
    for (name, _) in properties.iter() {
        if is_honoured(name) {
            continue;
        }
        let known =
            |known: &str| name == known || (known.ends_with('.') && name.starts_with(known));
        if let Some((_, cure)) = NO_EFFECT.iter().find(|(pattern, _)| known(pattern)) {
            return Err(YcsbError::NoEffect { name: name.to_owned(), cure });
        }
        return Err(YcsbError::Unknown { name: shown(name), cure: nearest(name) });
    }
    Ok(())
}

/// Properties of the client rather than of the workload, which a line of YCSB may have.
const CLIENT: [&str; 20] = [
    "db",
    "dotransactions",
    "exporter",
    "exportfile",
    "hdrhistogram.fileoutput",
    "hdrhistogram.output.path",
    "hdrhistogram.percentiles",
    "histogram.buckets",
    "label",
    "latencytrackederrors",
    "measurement.histogram.verbose",
    "measurement.interval",
    "measurement.raw.no_summary",
    "measurement.raw.output_file",
    "measurementtype",
    "reportlatencyforeacherror",
    "spin.sleep",
    "status",
    "status.interval",
    "timeseries.granularity",
];

/// Whether the core workload reads it.
pub(super) fn is_honoured(name: &str) -> bool {
    HONOURED.contains(&name)
}

/// Whether the client reads it.
pub(super) fn is_of_client(name: &str) -> bool {
    CLIENT.contains(&name)
}

/// A name fit for one line of a message.
pub(super) fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(60).flat_map(char::escape_debug).collect();
    if name.chars().nth(60).is_some() {
        text.push_str("...");
    }
    text
}

fn nearest(name: &str) -> String {
    let lower = name.chars().take(60).collect::<String>().to_lowercase();
    let known = HONOURED.iter().chain(NO_EFFECT.iter().map(|(name, _)| name));
    let nearest = known
        .filter(|known| !known.ends_with('.'))
        .map(|known| (distance(&lower, known), known))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, known)) if distance * 3 <= known.len() => {
            format!("did you mean '{known}'?")
        }
        _ => "see YCSB's core properties for the names".to_owned(),
    }
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
