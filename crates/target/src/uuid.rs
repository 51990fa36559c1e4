//! UUIDs: random ones (version 4) and time-based ones (version 1), RFC 9562.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use wire::murmur3;

/// 100 ns intervals between 1582-10-15 and 1970-01-01.
const EPOCH_100NS: i64 = 0x01b2_1dd2_1381_4000;

/// Makes UUIDs that differ; shared by all connections.
#[derive(Debug)]
pub(crate) struct Generator {
    seed: u64,
    counter: AtomicU64,
    last_100ns: AtomicI64,
}

impl Generator {
    /// A generator whose UUIDs are those of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, counter: AtomicU64::new(0), last_100ns: AtomicI64::new(0) }
    }

    /// A generator that differs from start to start.
    pub(crate) fn unpredictable() -> Self {
        Self::new(RandomState::new().hash_one(units::clock::wall().0))
    }

    /// Version 4.
    pub(crate) fn random(&self) -> [u8; 16] {
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        let (high, low) = murmur3::hash(&n.to_be_bytes(), self.seed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&high.to_be_bytes());
        id[8..].copy_from_slice(&low.to_be_bytes());
        id[6] = id[6] & 0x0f | 0x40;
        id[8] = id[8] & 0x3f | 0x80;
        id
    }

    /// Version 1, later than all before.
    pub(crate) fn timeuuid(&self, now_us: i64) -> [u8; 16] {
        let wanted = now_us.saturating_mul(10).saturating_add(EPOCH_100NS);
        let last = self
            .last_100ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(wanted.max(last + 1)))
            .unwrap_or(0);
        let (clock, machine) = murmur3::hash(b"clock and machine", self.seed);
        let mut low = (machine & 0x0000_ffff_ffff_ffff | clock << 48).to_be_bytes();
        low[0] = low[0] & 0x3f | 0x80;
        low[2] |= 1; // a machine id that is no network card's
        assemble(wanted.max(last + 1), low)
    }
}

fn assemble(time_100ns: i64, low: [u8; 8]) -> [u8; 16] {
    let time = time_100ns.to_be_bytes();
    let mut id = [0; 16];
    id[..4].copy_from_slice(&time[4..]);
    id[4..6].copy_from_slice(&time[2..4]);
    id[6..8].copy_from_slice(&time[..2]);
    id[6] = id[6] & 0x0f | 0x10;
    id[8..].copy_from_slice(&low);
    id
}

/// Milliseconds since 1970 of a version 1 UUID.
pub(crate) fn time_ms(id: &[u8]) -> Option<i64> {
    let id: [u8; 16] = id.try_into().ok()?;
    let time = i64::from_be_bytes([id[6] & 0x0f, id[7], id[4], id[5], id[0], id[1], id[2], id[3]]);
    Some((time - EPOCH_100NS).div_euclid(10_000))
}

/// The least or greatest version 1 UUID of a millisecond, in CQL's order.
pub(crate) fn bound(ms: i64, greatest: bool) -> [u8; 16] {
    let start = ms.saturating_mul(10_000).saturating_add(EPOCH_100NS);
    match greatest {
        false => assemble(start, [0x80; 8]),
        true => assemble(start.saturating_add(9_999), [0x7f; 8]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_comes_back_and_ids_differ() {
        let generator = Generator::new(1);
        let now_us = 1_700_000_000_123_456;
        let (a, b) = (generator.timeuuid(now_us), generator.timeuuid(now_us));
        assert_ne!(a, b);
        assert_eq!(time_ms(&a), Some(now_us / 1000));
        assert_eq!(a[6] >> 4, 1);
        assert_ne!(generator.random(), generator.random());
        assert_eq!(time_ms(&bound(5, false)), Some(5));
        assert_eq!(time_ms(&bound(5, true)), Some(5));
    }
}
