//! Interval logs: as a file of any bytes, and as one line around any histogram.
//!
//! Must hold: nothing panics, memory stays bounded, and a histogram that was read is read the
//! same after it was written again.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use record::hlog::{HlogEntry, HlogReader, HlogWriter};
use record::{Series, Tag};
use std::io::Write as _;
use units::Nanos;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    if *kind == b'H' {
        read(&line(bytes));
    } else {
        read(bytes);
    }
});

/// A line of a log whose histogram, once unpacked, is `plain`.
fn line(plain: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(plain).unwrap();
    let zlib = zlib.finish().unwrap();
    // The cookie of a compressed V2 histogram, and the length of what follows.
    let mut packed = 0x1c84_9314_u32.to_be_bytes().to_vec();
    packed.extend((zlib.len() as u32).to_be_bytes());
    packed.extend(zlib);
    format!("Tag=read-service,0.0,1.0,1.0,{}\n", STANDARD.encode(packed)).into_bytes()
}

fn read(log: &[u8]) {
    for entry in HlogReader::new(log) {
        let Ok(entry) = entry else { return };
        let _ = Tag::parse(&entry.tag);
        write_and_read(&entry);
    }
}

fn write_and_read(entry: &HlogEntry) {
    let tag = Tag { op: "read".into(), series: Series::Service };
    let mut writer = HlogWriter::new(Vec::new(), Nanos::ZERO).unwrap();
    if writer.write(&tag, entry.start, entry.length, &entry.latency).is_err() {
        return;
    }
    let log = writer.finish().unwrap();
    let again: Vec<HlogEntry> = HlogReader::new(log.as_slice()).map(Result::unwrap).collect();
    if entry.latency.is_empty() {
        assert!(again.is_empty());
    } else {
        assert_eq!(again.len(), 1);
        assert!(again[0].latency.buckets().eq(entry.latency.buckets()), "other counts");
    }
}
