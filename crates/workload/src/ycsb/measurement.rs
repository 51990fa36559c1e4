//! What YCSB measures and how it tells it: properties -> checked settings.
//!
//! Source: Measurements, OneMeasurement*, DBWrapper, Client and StatusThread of YCSB at commit
//! d9faaac; names and defaults are theirs.

use super::YcsbError;
use super::reader::{Reader, refuse};
use std::path::PathBuf;

/// What is kept of each operation (`measurementtype`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Percentiles of a histogram.
    Hdr,
    /// Buckets of a millisecond.
    Buckets,
    /// Both, under names of their own.
    HdrAndBuckets,
    /// Averages over time.
    Series,
    /// Every single one.
    Raw,
    /// Percentiles, and every single one.
    HdrAndRaw,
}

/// From when a latency counts (`measurement.interval`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The moment it was sent: service time.
    Sent,
    /// The moment it was due: response time.
    Due,
    /// One series for each.
    Both,
}

/// The form of the final figures (`exporter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exporter {
    /// `[READ], Operations, 5`
    Text,
    /// Objects, one behind the other.
    Json,
    /// One array of objects.
    JsonArray,
}

/// How measurements are taken and told.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// What is kept.
    pub kind: Kind,
    /// From when latencies count.
    pub from: From,
    /// Percentiles in percent.
    pub percentiles: Vec<f64>,
    /// All buckets are told, too.
    pub verbose: bool,
    /// Histogram logs are written to files whose names begin so; None writes none.
    pub hdr_prefix: Option<String>,
    /// Buckets of a millisecond.
    pub buckets: u32,
    /// Length of a step of the averages over time, in milliseconds.
    pub granularity_ms: u32,
    /// Every single operation is appended to it; stdout when None.
    pub raw_file: Option<PathBuf>,
    /// Of every single operation there is also a summary.
    pub raw_summary: bool,
    /// Latencies of failed operations are told by status.
    pub each_error: bool,
    /// As `each_error`, of these.
    pub tracked_errors: Vec<String>,
    /// Seconds between status lines; None shows none.
    pub status_s: Option<u32>,
    /// In front of status lines.
    pub label: String,
    /// Form of the final figures.
    pub exporter: Exporter,
    /// Where they go; stdout when None.
    pub export_file: Option<PathBuf>,
}

const KINDS: [(&str, Kind); 6] = [
    ("hdrhistogram", Kind::Hdr),
    ("histogram", Kind::Buckets),
    ("hdrhistogram+histogram", Kind::HdrAndBuckets),
    ("timeseries", Kind::Series),
    ("raw", Kind::Raw),
    ("hdrhistogram+raw", Kind::HdrAndRaw),
];

const PERCENTILES: [f64; 3] = [50.0, 95.0, 99.0];

impl Measurement {
    /// Reads the settings; what is used otherwise than given goes to `notices`.
    pub(super) fn read(reader: &Reader<'_>, notices: &mut Vec<String>) -> Result<Self, YcsbError> {
        let kind = reader.word("measurementtype", &KINDS.map(|(name, _)| name))?;
        let from = match reader.word("measurement.interval", &["op", "intended", "both"])? {
            0 => From::Sent,
            1 => From::Due,
            _ => From::Both,
        };
        let text = |name| Some(reader.text(name, "")).filter(|text| !text.is_empty());
        let hdr = reader.boolean("hdrhistogram.fileoutput", false)?;
        let status = reader.boolean("status", false)?;
        let status_s = reader.small("status.interval", 10, 1..=86_400)?;
        Ok(Self {
            kind: KINDS[kind].1,
            from,
            percentiles: percentiles(reader, notices),
            verbose: reader.boolean("measurement.histogram.verbose", false)?,
            hdr_prefix: hdr.then(|| reader.text("hdrhistogram.output.path", "").to_owned()),
            buckets: reader.small("histogram.buckets", 1000, 1..=10_000_000)?,
            granularity_ms: reader.small("timeseries.granularity", 1000, 10..=3_600_000)?,
            raw_file: text("measurement.raw.output_file").map(PathBuf::from),
            raw_summary: !reader.boolean("measurement.raw.no_summary", false)?,
            each_error: reader.boolean("reportlatencyforeacherror", false)?,
            tracked_errors: match text("latencytrackederrors") {
                Some(list) => list.split(',').map(str::to_owned).collect(),
                None => Vec::new(),
            },
            status_s: status.then_some(status_s),
            label: reader.text("label", "").to_owned(),
            exporter: exporter(reader, notices),
            export_file: text("exportfile").map(PathBuf::from),
        })
    }

    /// Whether single operations are kept.
    #[must_use]
    pub fn keeps_operations(&self) -> bool {
        matches!(self.kind, Kind::Raw | Kind::HdrAndRaw)
    }
}

/// An unreadable list is told and replaced by the default, as in the original.
fn percentiles(reader: &Reader<'_>, notices: &mut Vec<String>) -> Vec<f64> {
    let Some(text) = reader.given("hdrhistogram.percentiles") else { return PERCENTILES.to_vec() };
    let number = |part: &str| part.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p));
    text.split(',').map(number).collect::<Option<Vec<f64>>>().unwrap_or_else(|| {
        notices.push(format!(
            "hdrhistogram.percentiles='{}' is no list of numbers from 0 to 100; the default \
             50,95,99 is used",
            text.escape_debug()
        ));
        PERCENTILES.to_vec()
    })
}

/// An unknown class is told and replaced by the text form, as in the original.
fn exporter(reader: &Reader<'_>, notices: &mut Vec<String>) -> Exporter {
    let Some(class) = reader.given("exporter") else { return Exporter::Text };
    let packages = ["site.ycsb.measurements.exporter.", "com.yahoo.ycsb.measurements.exporter."];
    let name = packages.iter().find_map(|package| class.strip_prefix(package));
    match name {
        Some("TextMeasurementsExporter") => Exporter::Text,
        Some("JSONMeasurementsExporter") => Exporter::Json,
        Some("JSONArrayMeasurementsExporter") => Exporter::JsonArray,
        _ => {
            let class = class.escape_debug();
            notices
                .push(format!("Could not find exporter {class}, will use default text reporter."));
            Exporter::Text
        }
    }
}

/// Most operations of which every single one is kept: about 32 bytes each.
const KEPT_OPERATIONS_MAX: u64 = 10_000_000;

/// Every single operation can be kept only where it is known how many there are.
pub(super) fn check_kept(
    measurement: &Measurement,
    operations: Option<u64>,
) -> Result<(), YcsbError> {
    if !measurement.keeps_operations() || operations.is_some_and(|n| n <= KEPT_OPERATIONS_MAX) {
        return Ok(());
    }
    let wanted = format!(
        "another type, or come with at most {KEPT_OPERATIONS_MAX} operations (operationcount, or \
         insertcount of a load): each is kept in memory until the end"
    );
    Err(refuse("measurementtype", "raw", wanted))
}
