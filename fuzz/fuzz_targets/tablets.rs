//! What a host says of tablets and shards: payloads of answers, cells of `system.tablets`, options.
//!
//! Must hold: nothing panics, what was understood is understood the same after it was encoded
//! again, and a map that learns whatever it is told stays in order and finds what it learnt last.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cql::{Cursor, HEADER_SIZE, Header};
use wire::shards::Offer;
use wire::tablets::{Tablet, TabletMap, decode_replicas, encode_replicas};

/// Longest payload of those that a map learns from, bytes.
const PAYLOAD_MAX: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tablet) = Tablet::decode(bytes) {
        assert!(tablet.first < tablet.last);
        assert_eq!(Tablet::decode(&tablet.encode()), Ok(tablet));
    }
    if let Ok(replicas) = decode_replicas(bytes) {
        assert_eq!(decode_replicas(&encode_replicas(&replicas)), Ok(replicas));
    }
    if let Ok(Some(header)) = Header::decode(bytes) {
        let _ = Tablet::told_in(&header, &bytes[HEADER_SIZE..]);
    }
    if let Ok(options) = Cursor::new(bytes).string_multimap("options")
        && let Ok(Some(offer)) = Offer::read(&options)
    {
        let sharding = offer.sharding;
        assert!(offer.shard < sharding.shards());
        assert!([i64::MIN, 0, i64::MAX].iter().all(|&t| sharding.shard_of(t) < sharding.shards()));
        let mut ports = sharding.ports_of(offer.shard, bytes.len() as u64);
        assert!(ports.all(|port| sharding.shard_of_port(port) == offer.shard));
    }
    learn(bytes);
});

fn learn(bytes: &[u8]) {
    let mut map = TabletMap::default();
    for payload in bytes.chunks(PAYLOAD_MAX) {
        let Ok(tablet) = Tablet::decode(payload) else { continue };
        map.learn(tablet.clone());
        assert_eq!(map.of(tablet.last), Some(&tablet));
        assert!(map.tablets().windows(2).all(|pair| pair[0].last <= pair[1].first));
    }
}
