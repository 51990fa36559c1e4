//! Logs come back as they were written, and whatever a file holds, the reader only says so.

use super::*;
use crate::{Outcome, Series};
use proptest::prelude::*;

fn tag(op: &str) -> Tag {
    Tag { op: op.into(), series: Series::Service }
}

fn of(values: &[u64], coarse: bool) -> Latency {
    let mut latency = if coarse { Latency::coarse() } else { Latency::new() };
    values.iter().for_each(|&v| latency.record(Nanos(v)));
    latency
}

fn log_of(latencies: &[Latency]) -> Vec<u8> {
    let mut log = HlogWriter::new(Vec::new(), Nanos(1_700_000_000_250_000_000)).unwrap();
    for (second, latency) in latencies.iter().enumerate() {
        log.write(&tag("read"), Nanos::from_secs(second as u64), Nanos::from_secs(1), latency)
            .unwrap();
    }
    log.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<HlogEntry>, HlogReadError> {
    HlogReader::new(bytes).collect()
}

fn line_with(histogram: &[u8]) -> Vec<u8> {
    format!("0.0,1.0,1.0,{}\n", STANDARD.encode(histogram)).into_bytes()
}

/// A V2 compressed histogram with any header and counts.
fn compressed(low: u64, digits: u32, claimed: u32, counts: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    for word in [COOKIE_V2, claimed, 0, digits] {
        plain.extend(word.to_be_bytes());
    }
    plain.extend(low.to_be_bytes());
    plain.extend(3_600_000_000_000u64.to_be_bytes());
    plain.extend(1.0f64.to_be_bytes());
    plain.extend(counts);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&plain).unwrap();
    let packed = zlib.finish().unwrap();
    let mut all = COOKIE_V2_COMPRESSED.to_be_bytes().to_vec();
    all.extend((packed.len() as u32).to_be_bytes());
    all.extend(packed);
    all
}

#[test]
fn times_tags_and_base_come_back() {
    let bytes = log_of(&[of(&[5], false), of(&[], false), of(&[7, 9], false)]);
    let mut reader = HlogReader::new(&bytes[..]);
    let entries: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.base_s(), Some(1_700_000_000.25));
    // The empty second is skipped.
    assert_eq!(entries.len(), 2);
    assert_eq!((entries[1].start, entries[1].length), (Nanos::from_secs(2), Nanos::from_secs(1)));
    assert_eq!(Tag::parse(&entries[1].tag), Some(tag("read")));
    assert_eq!(entries[1].latency.count(), 2);
}

#[test]
fn spans_need_no_histogram() {
    let mut bytes = log_of(&[of(&[5], false), of(&[], false)]);
    bytes.extend(b"Tag=x,2.5,0.5,1.0,garbage\nTag=x,later,1,1,x\n");
    let mut reader = HlogReader::new(&bytes[..]);
    let (zero, second) = (Nanos::ZERO, Nanos::from_secs(1));
    assert_eq!(reader.next_span().unwrap(), Some((zero, second)));
    let half = Nanos::from_millis(500);
    assert_eq!(reader.next_span().unwrap(), Some((Nanos::from_millis(2500), half)));
    assert!(matches!(reader.next_span(), Err(HlogReadError::Line { .. })));
    assert_eq!(reader.next_span().unwrap(), None);
}

#[test]
fn the_crate_reads_our_lines() {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let bytes = log_of(&[of(&[1, 1000, 2_000_000], false)]);
    let entries: Vec<_> = IntervalLogIterator::new(&bytes).map(Result::unwrap).collect();
    let [LogEntry::StartTime(_), LogEntry::BaseTime(_), LogEntry::Interval(interval)] =
        entries.as_slice()
    else {
        panic!("{entries:?}");
    };
    // 2,000,000 ns in a bucket of 1024 ns, in ms.
    assert_eq!(interval.max(), 2.000895);
    let encoded = STANDARD.decode(interval.encoded_histogram()).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &encoded[..]).unwrap();
    assert_eq!((histogram.len(), histogram.value_at_quantile(0.5)), (3, 1000));
}

#[test]
fn an_interval_writes_what_it_holds_and_no_more() {
    let names = [OpNames::single("read"), OpNames::single("scan")];
    let rmw = OpNames { name: "rmw".into(), parts: vec!["read".into(), "update".into()] };
    let names = [&names[..], &[rmw]].concat();
    let mut interval = IntervalRecord::new(&[0, 0, 2]);
    (interval.start, interval.end) = (Nanos::from_secs(11), Nanos::from_secs(12));
    interval.ops[0].record(Outcome::Ok, Nanos(10), Nanos(30), Nanos(20));
    interval.ops[2].record(Outcome::Overloaded, Nanos(10), Nanos(30), Nanos(20));
    interval.ops[2].record_part(0, Nanos(4));
    let mut log = HlogWriter::new(Vec::new(), Nanos::ZERO).unwrap();
    log.write_interval(&names, &interval, Nanos::from_secs(10)).unwrap();
    let entries = read(&log.finish().unwrap()).unwrap();
    let tags: Vec<_> = entries.iter().map(|e| e.tag.as_str()).collect();
    let expected = [
        "read-service",
        "read-response",
        "read-lag",
        "rmw-lag",
        "rmw-failed_service",
        "rmw-failed_response",
        "rmw-class_overloaded",
        "rmw-part_read",
    ];
    assert_eq!(tags, expected);
    assert!(entries.iter().all(|e| e.start == Nanos::from_secs(1)));
}

#[test]
fn intervals_grow_after_the_first_hour() {
    let intervals = Intervals::of(Nanos::from_secs(1));
    assert_eq!(intervals.end_of(Nanos::ZERO), Nanos::from_secs(1));
    assert_eq!(intervals.end_of(Nanos::from_secs(3599)), Nanos::from_secs(3600));
    assert_eq!(intervals.end_of(Nanos::from_secs(3600)), Nanos::from_secs(3610));
}

#[test]
fn merged_adds_the_intervals_of_a_tag() {
    let bytes = log_of(&[of(&[5, 6], false), of(&[7], false)]);
    let tags = merged(HlogReader::new(&bytes[..])).unwrap();
    assert_eq!(tags.len(), 1);
    assert_eq!((tags[0].0.as_str(), tags[0].1.count()), ("read-service", 3));
}

#[test]
fn hostile_histograms_are_refused_with_the_line() {
    let skip = |n: u64| {
        // The zig-zag of -n in nine bytes.
        let v = n.wrapping_mul(2).wrapping_sub(1);
        let mut bytes: Vec<u8> = (0..8).map(|i| (v >> (7 * i)) as u8 | 0x80).collect();
        bytes.push((v >> 56) as u8);
        bytes
    };
    let far = [skip(1 << 40), vec![2]].concat();
    let least = [skip(1 << 63), vec![2]].concat();
    for (histogram, why) in [
        (compressed(2, 3, 0, &[]), "whole nanoseconds"),
        (compressed(1, 5, 0, &[]), "digits"),
        (compressed(1, 3, u32::MAX, &[2]), "cut off"),
        (compressed(1, 3, 1, &[0x80]), "cut off"),
        (compressed(1, 3, far.len() as u32, &far), "above 1 h"),
        (compressed(1, 3, least.len() as u32, &least), "above 1 h"),
        (compressed(1, 3, 0, &vec![0; 2_000_000]), "larger than"),
        (b"nothing".to_vec(), "V2 compressed"),
    ] {
        let error = read(&line_with(&histogram)).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("line 1"), "{why}: {error}");
    }
}

#[test]
fn counts_near_the_limit_do_not_overflow() {
    // The zig-zag of i64::MAX, twice.
    let most = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let counts = [most, most, most].concat();
    let entries = read(&line_with(&compressed(1, 3, counts.len() as u32, &counts))).unwrap();
    assert!(entries[0].latency.quantile(0.99) <= Nanos(2));
    let text = String::from_utf8(line_with(&compressed(1, 3, counts.len() as u32, &counts)));
    let twice = text.unwrap().repeat(2);
    assert!(merged(HlogReader::new(twice.as_bytes())).unwrap()[0].1.count() > 0);
}

#[test]
fn a_line_without_end_is_refused() {
    let mut long = b"Tag=".to_vec();
    long.resize(3 << 20, b'x');
    assert!(read(&long).unwrap_err().to_string().contains("512 KiB"));
}

proptest! {
    #[test]
    fn written_is_read(
        values in prop::collection::vec(
            prop::collection::vec(0u64..4_000_000_000_000, 1..50), 1..4),
        coarse in any::<bool>(),
    ) {
        let latencies: Vec<_> = values.iter().map(|v| of(v, coarse)).collect();
        let entries = read(&log_of(&latencies)).unwrap();
        prop_assert_eq!(entries.len(), latencies.len());
        for (entry, latency) in entries.iter().zip(&latencies) {
            prop_assert!(entry.latency.buckets().eq(latency.buckets()));
            prop_assert_eq!(entry.latency.digits(), latency.digits());
            prop_assert!((entry.latency.mean() / latency.mean().max(1.0) - 1.0).abs() < 0.006
                || latency.mean() < 1.0);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
        let _ = read(&line_with(&bytes));
        let _ = read(&line_with(&compressed(1, 3, bytes.len() as u32, &bytes)));
        let _ = read(&line_with(&compressed(1, 2, bytes.len() as u32, &bytes)));
    }

    #[test]
    fn damaged_logs_do_not_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = log_of(&[of(&[1, 50, 3_000_000], false), of(&[1 << 41], true)]);
        let index = at.index(bytes.len());
        bytes[index] = byte;
        let _ = read(&bytes);
        let _ = read(&bytes[..cut.index(bytes.len())]);
    }
}

#[test]
fn a_log_of_endless_tags_is_refused() {
    let mut log = HlogWriter::new(Vec::new(), Nanos::ZERO).unwrap();
    let one = of(&[5], true);
    for number in 0..=TAGS_MAX {
        log.write(&tag(&format!("op{number}")), Nanos::ZERO, Nanos(1), &one).unwrap();
    }
    let bytes = log.finish().unwrap();
    let error = merged(HlogReader::new(&bytes[..])).unwrap_err();
    assert!(matches!(error, HlogReadError::Tags { .. }), "{error}");
}
