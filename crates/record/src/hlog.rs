//! Interval logs of histograms (`.hlog`): what the Java, Python and Rust HdrHistogram tools read.
//!
//! Input: histograms in ns with a tag and an interval; output: one line each of
//! `Tag=T,start_s,length_s,max_ms,base64(V2 compressed)`, start counted from `BaseTime`. Writing
//! uses the `hdrhistogram` crate's encoder. Reading decodes here, into [`Latency`], because a file
//! may be hostile: lines, inflated sizes and indices are bounded, nothing is allocated by a length
//! that the file claims, and a log has a bounded number of tags.
//!
//! Source: `HistogramLogWriter` (log format 1.2) and the V2 encoding of HdrHistogram
//! (hdrhistogram.org). Limits of the reader: histograms from 1 ns to at most 1 h at 2 or 3 digits.

use crate::tag::tagged;
use crate::{IntervalRecord, Latency, OpNames, Tag};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializeError, V2DeflateSerializer};
use std::collections::HashSet;
use std::io::{self, BufRead, Read, Write};
use thiserror::Error;
use units::Nanos;

/// Longest accepted line: the largest histogram, incompressible, in base64 is 406 kB.
const LINE_BYTES_MAX: u64 = 512 * 1024;
/// Largest inflated histogram: header and 9 bytes for each of 33,792 counts.
const INFLATED_BYTES_MAX: u64 = 512 * 1024;
/// Tags of one log: a plan has some ten operations with some fifteen series each.
const TAGS_MAX: usize = 1000;
/// The column `Interval_Max` is in milliseconds, as the Java writer has it by default.
const MAX_NS_PER_UNIT: f64 = 1e6;

const COOKIE_V2: u32 = 0x1c84_9313;
const COOKIE_V2_COMPRESSED: u32 = 0x1c84_9314;
const HEADER_BYTES: usize = 40;

/// How long the intervals of a log are: `first` up to `switch`, `later` from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Length of an interval at the start of a run.
    pub first: Nanos,
    /// Time since the start from which intervals are longer.
    pub switch: Nanos,
    /// Length of an interval from then on.
    pub later: Nanos,
}

impl Intervals {
    /// `interval` for the first hour, ten times as long afterwards, so that a log stays readable.
    #[must_use]
    pub const fn of(interval: Nanos) -> Self {
        let later = Nanos(interval.0.saturating_mul(10));
        Self { first: interval, switch: Nanos::from_secs(3600), later }
    }

    /// The end of the interval that starts at `start`, both counted from the start of the run.
    #[must_use]
    pub fn end_of(&self, start: Nanos) -> Nanos {
        start + if start < self.switch { self.first } else { self.later }
    }
}

/// Why a log could not be written.
#[derive(Debug, Error)]
pub enum HlogWriteError {
    /// The file.
    #[error("cannot write the interval log: {0}; free space or choose another --out")]
    Io(#[from] io::Error),
    /// The encoder.
    #[error("cannot encode histogram '{tag}': {why}")]
    Encode {
        /// The histogram's tag.
        tag: String,
        /// What the encoder says.
        why: String,
    },
}

/// Writes an interval log.
pub struct HlogWriter<W: Write> {
    out: W,
    encoder: V2DeflateSerializer,
    mirror: Mirror,
    encoded: Vec<u8>,
    text: String,
}

impl<W: Write> HlogWriter<W> {
    /// Starts a log whose intervals count from `base`, wall clock time since 1970.
    pub fn new(out: W, base: Nanos) -> Result<Self, HlogWriteError> {
        let version = env!("CARGO_PKG_VERSION");
        Self::with_comment(
            out,
            &format!("#[wideload {version}; values in ns, maximum in ms]"),
            base,
        )
    }

    /// As [`Self::new`], with a first line of the caller's, which begins with `#`.
    pub fn with_comment(mut out: W, comment: &str, base: Nanos) -> Result<Self, HlogWriteError> {
        let base_s = base.as_secs_f64();
        writeln!(out, "{comment}")?;
        writeln!(out, "#[Histogram log format version 1.2]")?;
        writeln!(out, "#[StartTime: {base_s:.3} (seconds since epoch)]")?;
        writeln!(out, "#[BaseTime: {base_s:.3} (seconds since epoch)]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\""
        )?;
        let encoder = V2DeflateSerializer::new();
        let (mirror, encoded, text) = (Mirror::default(), Vec::new(), String::new());
        Ok(Self { out, encoder, mirror, encoded, text })
    }

    /// Writes one histogram over `length` from `start`, counted from the log's base. Nothing when
    /// it is empty.
    pub fn write(
        &mut self,
        tag: &Tag,
        start: Nanos,
        length: Nanos,
        latency: &Latency,
    ) -> Result<(), HlogWriteError> {
        self.write_tagged(&tag.to_string(), start, length, latency)
    }

    /// As [`Self::write`], under a tag of another tool's, which holds no comma, blank or line end.
    pub fn write_tagged(
        &mut self,
        tag: &str,
        start: Nanos,
        length: Nanos,
        latency: &Latency,
    ) -> Result<(), HlogWriteError> {
        if latency.is_empty() {
            return Ok(());
        }
        let failed = |why: String| HlogWriteError::Encode { tag: tag.to_string(), why };
        let histogram = self.mirror.of(latency).map_err(failed)?;
        self.encoded.clear();
        match self.encoder.serialize(histogram, &mut self.encoded) {
            Ok(_) => {}
            Err(V2DeflateSerializeError::IoError(e)) => return Err(e.into()),
            Err(e) => return Err(failed(e.to_string())),
        }
        self.text.clear();
        STANDARD.encode_string(&self.encoded, &mut self.text);
        let (start_s, length_s) = (start.as_secs_f64(), length.as_secs_f64());
        let max = latency.max().0 as f64 / MAX_NS_PER_UNIT;
        writeln!(self.out, "Tag={tag},{start_s:.6},{length_s:.6},{max:.6},{}", self.text)?;
        Ok(())
    }

    /// Writes all histograms of an interval; empty ones and empty operations are skipped.
    /// `origin` is the log's base on the clock of [`IntervalRecord::start`].
    pub fn write_interval(
        &mut self,
        names: &[OpNames],
        interval: &IntervalRecord,
        origin: Nanos,
    ) -> Result<(), HlogWriteError> {
        let start = interval.start.since(origin);
        let length = interval.end.since(interval.start);
        for (names, op) in names.iter().zip(&interval.ops) {
            for (tag, latency) in tagged(names, op) {
                self.write(&tag, start, length, latency)?;
            }
        }
        Ok(())
    }

    /// Gives what is buffered to the file.
    pub fn flush(&mut self) -> Result<(), HlogWriteError> {
        Ok(self.out.flush()?)
    }

    /// Flushes and gives the file back.
    pub fn finish(mut self) -> Result<W, HlogWriteError> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A log of one histogram in a unit of its own, without tags: what other tools write. Values stand
/// in a [`Latency`] as if they were nanoseconds.
pub struct PlainLog<W: Write> {
    out: W,
    encoder: V2DeflateSerializer,
    mirror: Mirror,
}

impl<W: Write> PlainLog<W> {
    /// Starts a log whose intervals count from `base`, wall clock time since 1970.
    pub fn new(mut out: W, comment: &str, base: Nanos) -> Result<Self, HlogWriteError> {
        let (base_s, date) = (base.as_secs_f64(), crate::utc::rfc3339(base.0 / 1_000_000_000));
        writeln!(out, "#[{comment}]")?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[StartTime: {base_s:.3} (seconds since epoch), {date}]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
             \"Interval_Compressed_Histogram\""
        )?;
        Ok(Self { out, encoder: V2DeflateSerializer::new(), mirror: Mirror::default() })
    }

    /// Writes one histogram over `length` from `start`, counted from the log's base, empty or not.
    /// Its maximum is told divided by 10^6, as the Java writer does by itself.
    pub fn write(
        &mut self,
        start: Nanos,
        length: Nanos,
        values: &Latency,
    ) -> Result<(), HlogWriteError> {
        let failed = |why: String| HlogWriteError::Encode { tag: String::new(), why };
        let histogram = self.mirror.of(values).map_err(failed)?;
        let mut encoded = Vec::new();
        match self.encoder.serialize(histogram, &mut encoded) {
            Ok(_) => {}
            Err(V2DeflateSerializeError::IoError(e)) => return Err(e.into()),
            Err(e) => return Err(failed(e.to_string())),
        }
        let (start_s, length_s) = (start.as_secs_f64(), length.as_secs_f64());
        let (max, text) = (values.max().0 as f64 / MAX_NS_PER_UNIT, STANDARD.encode(&encoded));
        writeln!(self.out, "{start_s:.3},{length_s:.3},{max:.3},{text}")?;
        Ok(self.out.flush()?)
    }
}

/// A histogram as text: the V2 encoding, deflated, in base64. Its values are in what unit the
/// caller has them.
///
/// # Errors
/// When it cannot be encoded.
pub fn encoded(values: &Latency) -> Result<String, HlogWriteError> {
    let failed = |why: String| HlogWriteError::Encode { tag: String::new(), why };
    let mut mirror = Mirror::default();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(mirror.of(values).map_err(failed)?, &mut bytes)
        .map_err(|error| failed(error.to_string()))?;
    Ok(STANDARD.encode(&bytes))
}

/// The same buckets as a histogram of the crate, for its encoder. Kept from one to the next:
/// the C library gives memory of this size back to the kernel, which then clears it anew.
#[derive(Default)]
struct Mirror {
    /// By the digits that they keep: 3, and 2.
    fine: Option<Histogram<u64>>,
    coarse: Option<Histogram<u64>>,
}

impl Mirror {
    fn of(&mut self, latency: &Latency) -> Result<&Histogram<u64>, String> {
        let kept = if latency.digits() == 3 { &mut self.fine } else { &mut self.coarse };
        let histogram = match kept {
            Some(histogram) => {
                histogram.reset();
                histogram
            }
            none => none.insert(
                Histogram::new_with_bounds(1, crate::LATENCY_MAX.0, latency.digits())
                    .map_err(|e| e.to_string())?,
            ),
        };
        for bucket in latency.buckets() {
            histogram.record_n(bucket.low.0, bucket.count).map_err(|e| e.to_string())?;
        }
        Ok(histogram)
    }
}

/// Why a log could not be read. Lines count from 1.
#[derive(Debug, Error)]
pub enum HlogReadError {
    /// The file.
    #[error("cannot read line {line} of the interval log: {source}")]
    Io {
        /// Line number.
        line: u64,
        /// What the system says.
        source: io::Error,
    },
    /// Not a line of an interval log.
    #[error(
        "line {line} is no line of an interval log: {why}; the file is damaged or not an .hlog"
    )]
    Line {
        /// Line number.
        line: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A histogram that is damaged or of another kind.
    #[error("the histogram in line {line} cannot be used: {why}; was it written by wideload?")]
    Histogram {
        /// Line number.
        line: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A reader would keep a histogram for each.
    #[error(
        "line {line} has one more tag than the {TAGS_MAX} that a log may have; was it written by \
         wideload?"
    )]
    Tags {
        /// Line number.
        line: u64,
    },
}

/// One histogram of a log.
#[derive(Debug, Clone)]
pub struct HlogEntry {
    /// The tag as written, empty when there is none. [`Tag::parse`] reads ours.
    pub tag: String,
    /// Start of the interval, counted from the log's base time.
    pub start: Nanos,
    /// Length of the interval.
    pub length: Nanos,
    /// The values. Its mean is that of the buckets' middles.
    pub latency: Latency,
}

/// Reads an interval log entry by entry. After an error it ends.
pub struct HlogReader<R: BufRead> {
    input: R,
    line: u64,
    base_s: Option<f64>,
    tags: HashSet<String>,
    ended: bool,
}

impl<R: BufRead> HlogReader<R> {
    /// Reads from `input`, at most 512 KiB of it at a time.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, base_s: None, tags: HashSet::new(), ended: false }
    }

    /// `BaseTime` in seconds since 1970, once its line was read.
    #[must_use]
    pub fn base_s(&self) -> Option<f64> {
        self.base_s
    }

    /// Start and length of the next entry, whose histogram is not decoded.
    /// None at the end, after which there is nothing more to ask for.
    pub fn next_span(&mut self) -> Result<Option<(Nanos, Nanos)>, HlogReadError> {
        self.next_line(|text, line| fields(text, line).map(|f| (f.start, f.length)))
    }

    /// The same entry, unless its tag is one too many.
    fn with_known_tag(
        &mut self,
        entry: Option<HlogEntry>,
    ) -> Result<Option<HlogEntry>, HlogReadError> {
        if let Some(entry) = &entry
            && !self.tags.contains(&entry.tag)
        {
            if self.tags.len() == TAGS_MAX {
                return Err(HlogReadError::Tags { line: self.line });
            }
            self.tags.insert(entry.tag.clone());
        }
        Ok(entry)
    }

    /// What `parse` makes of the next line that holds an entry.
    fn next_line<T>(
        &mut self,
        parse: impl Fn(&str, u64) -> Result<T, HlogReadError>,
    ) -> Result<Option<T>, HlogReadError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            self.line += 1;
            let line = self.line;
            let read = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
            if read.map_err(|source| HlogReadError::Io { line, source })? == 0 {
                return Ok(None);
            }
            if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
                return Err(HlogReadError::Line { line, why: "it is longer than 512 KiB" });
            }
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| HlogReadError::Line { line, why: "it is not UTF-8" })?
                .trim_end();
            if let Some(rest) = text.strip_prefix("#[BaseTime: ") {
                self.base_s = rest.split(' ').next().and_then(|s| s.parse().ok());
            }
            if !(text.is_empty() || text.starts_with('#') || text.starts_with('"')) {
                return parse(text, line).map(Some);
            }
        }
    }
}

impl<R: BufRead> Iterator for HlogReader<R> {
    type Item = Result<HlogEntry, HlogReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let entry = self.next_line(entry).and_then(|entry| self.with_known_tag(entry)).transpose();
        self.ended = !matches!(entry, Some(Ok(_)));
        entry
    }
}

/// The parts of a line.
struct Fields<'a> {
    tag: &'a str,
    start: Nanos,
    length: Nanos,
    encoded: &'a str,
}

fn fields(text: &str, line: u64) -> Result<Fields<'_>, HlogReadError> {
    let wrong = |why| HlogReadError::Line { line, why };
    let (tag, rest) = match text.strip_prefix("Tag=") {
        Some(tagged) => tagged.split_once(',').ok_or_else(|| wrong("the tag does not end"))?,
        None => ("", text),
    };
    let mut fields = rest.splitn(4, ',');
    let mut next = || fields.next().ok_or_else(|| wrong("it has fewer than four fields"));
    let (start, length, _max_ms, encoded) = (next()?, next()?, next()?, next()?);
    let time = |text: &str| {
        let seconds = text.parse::<f64>().ok().filter(|s| (0.0..1e10).contains(s));
        seconds.map(|s| Nanos((s * 1e9).round() as u64)).ok_or_else(|| wrong("a time is no number"))
    };
    Ok(Fields { tag, start: time(start)?, length: time(length)?, encoded })
}

fn entry(text: &str, line: u64) -> Result<HlogEntry, HlogReadError> {
    let Fields { tag, start, length, encoded } = fields(text, line)?;
    let latency = decode(encoded).map_err(|why| HlogReadError::Histogram { line, why })?;
    Ok(HlogEntry { tag: tag.to_owned(), start, length, latency })
}

/// Base64 text of a V2 compressed histogram.
fn decode(text: &str) -> Result<Latency, &'static str> {
    let bytes = STANDARD.decode(text).map_err(|_| "it is not base64")?;
    if be_u32(&bytes, 0) != Some(COOKIE_V2_COMPRESSED) {
        return Err("it is not V2 compressed");
    }
    let packed = bytes.get(8..).ok_or("it is cut off")?;
    let mut plain = Vec::new();
    ZlibDecoder::new(packed)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|_| "its zlib stream is damaged")?;
    if plain.len() as u64 > INFLATED_BYTES_MAX {
        return Err("it is larger than any histogram of 1 ns to 1 h");
    }
    decode_v2(&plain)
}

/// The header's nine words, then counts as zig-zag varints; a negative one skips empty buckets.
fn decode_v2(bytes: &[u8]) -> Result<Latency, &'static str> {
    let word = |at| be_u32(bytes, at).ok_or("its header is cut off");
    if word(0)? != COOKIE_V2 {
        return Err("it is not V2");
    }
    let (length, offset, digits) = (word(4)? as usize, word(8)?, word(12)?);
    let low = u64::from(word(16)?) << 32 | u64::from(word(20)?);
    let ratio = f64::from_bits(u64::from(word(32)?) << 32 | u64::from(word(36)?));
    if offset != 0 || ratio != 1.0 || low != 1 {
        return Err("it does not hold whole nanoseconds from 1 ns");
    }
    let mut latency = match digits {
        2 => Latency::coarse(),
        3 => Latency::new(),
        _ => return Err("it has neither 2 nor 3 digits"),
    };
    let mut rest = bytes
        .get(HEADER_BYTES..)
        .and_then(|counts| counts.get(..length))
        .ok_or("its counts are cut off")?;
    let mut index = 0usize;
    while !rest.is_empty() {
        let (number, used) = varint(rest).ok_or("a count is cut off")?;
        rest = rest.get(used..).unwrap_or_default();
        if number < 0 {
            let skip = usize::try_from(number.unsigned_abs()).map_err(|_| "it is too long")?;
            index = index.checked_add(skip).ok_or("it is too long")?;
        } else {
            if !latency.record_bucket(index, number.unsigned_abs()) {
                return Err("it holds values above 1 h");
            }
            index += 1;
        }
    }
    Ok(latency)
}

fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    word.try_into().ok().map(u32::from_be_bytes)
}

/// A zig-zag number of 1 to 9 bytes: seven bits each, the ninth whole. The number and its length.
fn varint(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        if i == 8 || byte < 0x80 {
            value |= u64::from(byte) << (7 * i);
            return Some(((value >> 1) as i64 ^ -((value & 1) as i64), i + 1));
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
    }
    None
}

/// All of a log by tag, over all its intervals; tags in the order in which they first appear.
pub fn merged<R: BufRead>(reader: HlogReader<R>) -> Result<Vec<(String, Latency)>, HlogReadError> {
    let mut tags: Vec<(String, Latency)> = Vec::new();
    for entry in reader {
        let entry = entry?;
        match tags.iter_mut().find(|(tag, _)| *tag == entry.tag) {
            Some((_, latency)) => latency.merge(&entry.latency),
            None => tags.push((entry.tag, entry.latency)),
        }
    }
    Ok(tags)
}

#[cfg(test)]
#[path = "hlog_tests.rs"]
mod tests;
